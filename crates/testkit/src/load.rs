//! Several writers at once, each with a history that follows from a seed, so
//! that what a crash left of it can be judged without having recorded it.
//!
//! Batch `i` of a writer is a function of (seed, writer, i). Each batch touches
//! two families and holds a marker, the number of the batch, so the recovered
//! markers say how many batches of each writer are left; everything else must
//! then be what those batches give, in every family. One shared counter, to
//! which each batch adds 1, must be their sum.

use crate::command::{Action, Change, Operator};
use crate::random::Random;
use crate::text::Datum;
use lodestore::{AddU64, Append, Db, Family, FamilyOptions, Options, Result, WriteBatch};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Everything in a database: family -> key -> value.
pub type Contents = BTreeMap<String, BTreeMap<Vec<u8>, Vec<u8>>>;

/// Family in which values are appended to.
pub const APPEND: &str = "append";
/// Family of the shared counter.
pub const COUNT: &str = "count";
/// Key of the shared counter, in [`COUNT`].
pub const COUNT_KEY: &[u8] = b"batches";
const KEYS: usize = 40;

/// One writer and its endless history.
#[derive(Clone, Copy, Debug)]
pub struct Writer {
    /// What the history follows from, with `id`.
    pub seed: u64,
    /// Its number; no two writers of a database share one.
    pub id: u8,
    /// Longest value that it writes.
    pub value_bytes_max: usize,
}

impl Writer {
    /// The changes of batch `index`, which is counted from 1.
    pub fn changes(&self, index: u64) -> Vec<Change> {
        let seed = self.seed ^ u64::from(self.id) << 56 ^ index.wrapping_mul(0x9e37_79b9);
        let mut random = Random::new(seed);
        let change = |family: &str, key: String, action: Action| Change {
            family: family.to_string(),
            key: key.as_bytes().into(),
            action,
        };
        let mut changes = Vec::new();
        for _ in 0..random.between(1, 6) {
            let first = random.below(KEYS);
            let key = format!("{:02}/{first:03}", self.id);
            let end = format!("{:02}/{:03}", self.id, first + random.below(KEYS / 4));
            let range = || Action::DeleteRange(end.as_bytes().into());
            let length = random.below(self.value_bytes_max + 1);
            let value = Datum::Generated { length, seed: random.word() >> 32 };
            changes.push(match random.below(10) {
                8 => change("default", key, range()),
                9 => change(APPEND, key, range()),
                0..=1 => change("default", key, Action::Delete),
                2 => change(APPEND, key, Action::Delete),
                3 => change(APPEND, key, Action::Merge(format!("{index}").as_bytes().into())),
                4 => change(APPEND, key, Action::Put(value)),
                _ => change("default", key, Action::Put(value)),
            });
        }
        let number = |n: u64| Datum::Literal(n.to_le_bytes().to_vec());
        let count = Datum::Literal(COUNT_KEY.to_vec());
        changes.push(Change {
            family: COUNT.to_string(),
            key: count,
            action: Action::Merge(number(1)),
        });
        changes.push(change("default", self.marker(), Action::Put(number(index))));
        changes
    }

    /// The key of the number of this writer's last batch.
    pub fn marker(&self) -> String {
        format!("~{:02}", self.id)
    }

    /// Batch `index` as the engine takes it.
    pub fn batch(&self, index: u64, families: &Families) -> WriteBatch {
        let mut batch = WriteBatch::new();
        for Change { family, key, action } in self.changes(index) {
            let (family, key) = (families.named(&family), key.bytes());
            match action {
                Action::Put(value) => batch.put_in(family, &key, &value.bytes()),
                Action::Delete => batch.delete_in(family, &key),
                Action::SingleDelete => batch.single_delete_in(family, &key),
                Action::DeleteRange(end) => batch.delete_range_in(family, &key, &end.bytes()),
                Action::Merge(operand) => batch.merge_in(family, &key, &operand.bytes()),
            };
        }
        batch
    }

    /// How many of this writer's batches `contents` holds, by its marker.
    pub fn batches_in(&self, contents: &Contents) -> u64 {
        let marker = contents["default"].get(self.marker().as_bytes());
        marker.map_or(0, |bytes| {
            u64::from_le_bytes(bytes[..].try_into().expect("a marker has eight bytes"))
        })
    }
}

/// The families that writers write to.
pub struct Families {
    default: Family,
    append: Family,
    count: Family,
}

impl Families {
    fn named(&self, name: &str) -> &Family {
        match name {
            APPEND => &self.append,
            COUNT => &self.count,
            _ => &self.default,
        }
    }

    /// The families of `db`, created if they are missing.
    ///
    /// # Errors
    /// What creating one gives.
    pub fn of(db: &Db, options: &Options) -> Result<Families> {
        let family = |name: &str| match db.family(name) {
            Some(family) => Ok(family),
            None => db.create_family(name, family_options(&options.family, name)),
        };
        Ok(Families { default: family("default")?, append: family(APPEND)?, count: family(COUNT)? })
    }
}

fn family_options(base: &FamilyOptions, name: &str) -> FamilyOptions {
    let mut options = base.clone();
    options.merge_operator = match name {
        APPEND => Some(Arc::new(Append::with_delimiter(b","))),
        COUNT => Some(Arc::new(AddU64)),
        _ => None,
    };
    options
}

/// `options` with the merge operators of the writers' families.
pub fn with_families(mut options: Options) -> Options {
    for name in [APPEND, COUNT] {
        options.families.insert(name.to_string(), family_options(&options.family, name));
    }
    options
}

/// What writers' batches give, built up batch by batch.
#[derive(Clone, Debug, Default)]
pub struct Expected {
    contents: Contents,
}

impl Expected {
    /// Adds batch `index` of `writer`. Writers share no key but the counter,
    /// so the order between them does not matter.
    pub fn apply(&mut self, writer: &Writer, index: u64) {
        for Change { family, key, action } in writer.changes(index) {
            let operator = if family == COUNT { Operator::Add } else { Operator::Append };
            let entries = self.contents.entry(family).or_default();
            let key = key.bytes();
            match action {
                Action::Put(value) => drop(entries.insert(key, value.bytes())),
                Action::Delete | Action::SingleDelete => drop(entries.remove(&key)),
                Action::DeleteRange(end) => {
                    let end = end.bytes();
                    entries.retain(|k, _| *k < key || *k >= end);
                }
                Action::Merge(operand) => {
                    let value =
                        crate::model::merge(operator, entries.remove(&key), &operand.bytes());
                    entries.insert(key, value.expect("operands make sense"));
                }
            }
        }
    }

    /// The entries of one of the writers' families.
    ///
    /// # Panics
    /// If nothing was written to it.
    pub fn family(&self, name: &str) -> &BTreeMap<Vec<u8>, Vec<u8>> {
        &self.contents[name]
    }

    /// The first difference from `found` in the writers' families, in words.
    pub fn difference(&self, found: &Contents) -> Option<String> {
        let none = BTreeMap::new();
        ["default", APPEND, COUNT].iter().find_map(|family| {
            let expected = self.contents.get(*family).unwrap_or(&none);
            difference_in(family, expected, found.get(*family).unwrap_or(&none))
        })
    }
}

/// The first difference between two families' entries, in words.
pub fn difference_in(
    family: &str,
    expected: &BTreeMap<Vec<u8>, Vec<u8>>,
    found: &BTreeMap<Vec<u8>, Vec<u8>>,
) -> Option<String> {
    use crate::text::{escape, show};
    let shown = |value: Option<&Vec<u8>>| value.map_or("(absent)".to_string(), |v| show(v));
    let mut keys = expected.keys().chain(found.keys());
    let key = keys.find(|key| expected.get(*key) != found.get(*key))?;
    let (wanted, got) = (shown(expected.get(key)), shown(found.get(key)));
    Some(format!("family {family}, key {}: expected {wanted}, found {got}", escape(key)))
}

/// Reads everything, forwards; the same backwards must be the same.
///
/// # Errors
/// What reading gives.
///
/// # Panics
/// If the two directions differ.
pub fn contents(db: &Db) -> Result<Contents> {
    let mut contents = Contents::new();
    for name in db.family_names() {
        let Some(family) = db.family(&name) else { continue };
        let mut entries = BTreeMap::new();
        let mut cursor = family.cursor();
        cursor.first();
        while cursor.valid() {
            let before = entries.insert(cursor.key().to_vec(), cursor.value().to_vec());
            assert!(before.is_none(), "a cursor met a key twice in {name}");
            cursor.next();
        }
        cursor.status()?;
        let mut backwards = 0;
        cursor.last();
        while cursor.valid() {
            assert_eq!(entries.get(cursor.key()).map(|v| &v[..]), Some(cursor.value()));
            backwards += 1;
            cursor.prev();
        }
        cursor.status()?;
        assert_eq!(entries.len(), backwards, "entries of {name} met backwards");
        contents.insert(name, entries);
    }
    Ok(contents)
}
