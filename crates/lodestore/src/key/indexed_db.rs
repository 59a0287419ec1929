//! The order of keys in Chrome's IndexedDB databases, `idb_cmp1`.
//!
//! From Chromium's `content/browser/indexed_db/docs/leveldb_coding_scheme.md`: a
//! key begins with the ids of a database, an object store and an index. What
//! follows depends on them: fields of metadata, or a key of IndexedDB, which has
//! a type. The least key is below all others, then come numbers, dates, strings,
//! binary keys, arrays, and above all of them the greatest key.
//!
//! What is no key by that scheme is compared bytewise from where it ends to be one.

use std::cmp::Ordering;

use super::Comparator;

/// The name that Chrome stores.
pub(super) const NAME: &str = "idb_cmp1";

/// See the module.
pub(super) struct IndexedDb;

impl Comparator for IndexedDb {
    fn name(&self) -> &str {
        NAME
    }

    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        let mut pair = Pair { a, b };
        pair.keys().err().unwrap_or_else(|| pair.rest())
    }
}

/// The fields of metadata.
#[derive(Clone, Copy)]
enum Field {
    Byte,
    Number,
    Text,
}

/// The fields of what is stored for all databases, by its kind.
fn global_fields(kind: u8) -> &'static [Field] {
    match kind {
        100 => &[Field::Number],            // an id that is free
        201 => &[Field::Text, Field::Text], // an origin, and the name of a database
        _ => &[],
    }
}

/// The fields of what is stored for one database, by its kind.
fn database_fields(kind: u8) -> &'static [Field] {
    match kind {
        50 => &[Field::Number, Field::Byte], // of an object store, and what of it
        100 => &[Field::Number, Field::Number, Field::Byte], // of an index, and what of it
        150 => &[Field::Number],             // the id of an object store that is free
        151 => &[Field::Number, Field::Number], // of an index
        200 => &[Field::Text],               // the name of an object store
        201 => &[Field::Number, Field::Text], // of an index
        _ => &[],
    }
}

/// Types of keys, as they are stored.
mod kind {
    pub(super) const GREATEST: u8 = 0;
    pub(super) const STRING: u8 = 1;
    pub(super) const DATE: u8 = 2;
    pub(super) const NUMBER: u8 = 3;
    pub(super) const ARRAY: u8 = 4;
    pub(super) const LEAST: u8 = 5;
    pub(super) const BINARY: u8 = 6;
}

/// Where a type is in the order of types.
fn rank(kind: u8) -> u16 {
    match kind {
        kind::LEAST => 0,
        kind::NUMBER => 1,
        kind::DATE => 2,
        kind::STRING => 3,
        kind::BINARY => 4,
        kind::ARRAY => 5,
        kind::GREATEST => 6,
        unknown => 7 + u16::from(unknown),
    }
}

/// Of a database, an object store and an index.
type Ids = (u64, u64, u64);

/// `Err`: the order is decided.
type Undecided<T = ()> = Result<T, Ordering>;

fn undecided(order: Ordering) -> Undecided {
    if order.is_eq() { Ok(()) } else { Err(order) }
}

/// What was not compared yet of two keys.
struct Pair<'a> {
    a: &'a [u8],
    b: &'a [u8],
}

impl Pair<'_> {
    fn keys(&mut self) -> Undecided {
        match self.prefix()? {
            (0, _, _) => self.metadata(global_fields),
            (_, 0, _) => self.metadata(database_fields),
            // Values, whether there are any, and blobs.
            (_, _, 1..=3) => self.key(),
            (_, _, 30..) => self.index_entry(),
            _ => Ok(()),
        }
    }

    /// The ids, which are the same.
    fn prefix(&mut self) -> Undecided<Ids> {
        let (Some((a, rest_a)), Some((b, rest_b))) = (prefix(self.a), prefix(self.b)) else {
            return Err(self.rest());
        };
        (self.a, self.b) = (rest_a, rest_b);
        undecided(a.cmp(&b)).map(|()| a)
    }

    fn metadata(&mut self, fields: fn(u8) -> &'static [Field]) -> Undecided {
        let kind = self.byte()?;
        fields(kind).iter().try_for_each(|field| match field {
            Field::Byte => self.byte().map(|_| ()),
            Field::Number => self.number(),
            Field::Text => self.units(2),
        })
    }

    /// An indexed key, and the key that it leads to; a number of older versions
    /// is between them and comes last.
    fn index_entry(&mut self) -> Undecided {
        self.key()?;
        let (Some((a, rest_a)), Some((b, rest_b))) = (number(self.a), number(self.b)) else {
            return Err(self.rest());
        };
        (self.a, self.b) = (rest_a, rest_b);
        if self.a.is_empty() || self.b.is_empty() {
            undecided(self.a.len().cmp(&self.b.len()))?;
        } else {
            self.key()?;
        }
        undecided(a.cmp(&b))
    }

    /// A key of IndexedDB. Arrays may be nested as deep as the key is long.
    fn key(&mut self) -> Undecided {
        // Of the arrays that are open: elements to come, and what decides then.
        let mut arrays: Vec<(u64, Ordering)> = Vec::new();
        loop {
            if let Some(array) = self.value()? {
                arrays.push(array);
            }
            loop {
                match arrays.last_mut() {
                    None => return Ok(()),
                    Some((0, lengths)) => undecided(*lengths)?,
                    Some((left, _)) => {
                        *left -= 1;
                        break;
                    }
                }
                arrays.pop();
            }
        }
    }

    /// A key that is no array, or the head of one: the elements that both arrays
    /// have, and how their lengths compare.
    fn value(&mut self) -> Undecided<Option<(u64, Ordering)>> {
        let (Some((&a, rest_a)), Some((&b, rest_b))) = (self.a.split_first(), self.b.split_first())
        else {
            return Err(self.rest());
        };
        undecided(rank(a).cmp(&rank(b)))?;
        (self.a, self.b) = (rest_a, rest_b);
        match a {
            kind::STRING => self.units(2)?,
            kind::BINARY => self.units(1)?,
            kind::DATE | kind::NUMBER => self.double()?,
            kind::ARRAY => return self.array_lengths().map(Some),
            _ => {}
        }
        Ok(None)
    }

    fn array_lengths(&mut self) -> Undecided<(u64, Ordering)> {
        let (Some((a, rest_a)), Some((b, rest_b))) = (number(self.a), number(self.b)) else {
            return Err(self.rest());
        };
        (self.a, self.b) = (rest_a, rest_b);
        Ok((a.min(b), a.cmp(&b)))
    }

    fn byte(&mut self) -> Undecided<u8> {
        match (self.a, self.b) {
            ([a, rest_a @ ..], [b, rest_b @ ..]) if a == b => {
                (self.a, self.b) = (rest_a, rest_b);
                Ok(*a)
            }
            _ => Err(self.rest()),
        }
    }

    fn number(&mut self) -> Undecided {
        let (Some((a, rest_a)), Some((b, rest_b))) = (number(self.a), number(self.b)) else {
            return Err(self.rest());
        };
        (self.a, self.b) = (rest_a, rest_b);
        undecided(a.cmp(&b))
    }

    /// A length in units of so many bytes, and these: UTF-16 with its higher byte
    /// first, or bytes.
    fn units(&mut self, unit_bytes: usize) -> Undecided {
        let split = |bytes| {
            let (count, rest) = number(bytes)?;
            let length = usize::try_from(count).ok()?.checked_mul(unit_bytes)?;
            rest.split_at_checked(length)
        };
        let (Some((a, rest_a)), Some((b, rest_b))) = (split(self.a), split(self.b)) else {
            return Err(self.rest());
        };
        (self.a, self.b) = (rest_a, rest_b);
        undecided(a.cmp(b))
    }

    fn double(&mut self) -> Undecided {
        let (Some((a, rest_a)), Some((b, rest_b))) =
            (self.a.split_first_chunk(), self.b.split_first_chunk())
        else {
            return Err(self.rest());
        };
        (self.a, self.b) = (rest_a, rest_b);
        let (a, b) = (f64::from_le_bytes(*a), f64::from_le_bytes(*b));
        undecided(a.partial_cmp(&b).unwrap_or_else(|| a.total_cmp(&b)))
    }

    fn rest(&self) -> Ordering {
        self.a.cmp(self.b)
    }
}

/// The ids that a key begins with: the bits of its first byte say how long each
/// of them is. And what follows.
fn prefix(key: &[u8]) -> Option<(Ids, &[u8])> {
    let (&lengths, rest) = key.split_first()?;
    let (database, rest) = id(rest, (lengths >> 5) + 1)?;
    let (store, rest) = id(rest, (lengths >> 2 & 7) + 1)?;
    let (index, rest) = id(rest, (lengths & 3) + 1)?;
    Some(((database, store, index), rest))
}

fn id(bytes: &[u8], length: u8) -> Option<(u64, &[u8])> {
    let (id, rest) = bytes.split_at_checked(usize::from(length))?;
    let mut whole = [0; 8];
    whole[..id.len()].copy_from_slice(id);
    Some((u64::from_le_bytes(whole), rest))
}

/// A number of seven bits a byte, the lowest first. And what follows.
fn number(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let mut value = 0;
    for (i, &byte) in bytes.iter().enumerate().take(9) {
        value |= u64::from(byte & 0x7f) << (7 * i);
        if byte < 0x80 {
            return Some((value, &bytes[i + 1..]));
        }
    }
    None
}

#[cfg(test)]
mod tests;
