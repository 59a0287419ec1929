//! Keys as the engine sees them: a user's key, a sequence number and a kind;
//! and the order of keys.
//!
//! Entries are ordered by user key ascending, then by sequence number
//! descending, then by kind descending, as in LevelDB and RocksDB: the newest
//! version of a key is met first.

use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

mod indexed_db;

/// The number of a record in the order of all writes: 1, 2, 3, ... Zero means
/// "older than everything" and is what compaction gives to entries that no
/// snapshot can tell apart any more. At most [`SEQUENCE_MAX`].
pub type SequenceNumber = u64;

/// The largest sequence number: 56 bits.
pub const SEQUENCE_MAX: SequenceNumber = (1 << 56) - 1;

/// The longest key and the longest value, in bytes: lengths are 32 bits in
/// LevelDB's formats, and one batch must hold a record with its header.
pub const KEY_BYTES_MAX: usize = u32::MAX as usize - 64;
/// See [`KEY_BYTES_MAX`].
pub const VALUE_BYTES_MAX: usize = u32::MAX as usize - 64;

/// Why a key and a value of these lengths cannot be stored, if they cannot.
#[inline]
pub(crate) fn too_long(key_bytes: usize, value_bytes: usize) -> Option<String> {
    if key_bytes > KEY_BYTES_MAX {
        return Some(format!("a key has {key_bytes} bytes; at most {KEY_BYTES_MAX} are allowed"));
    }
    if value_bytes > VALUE_BYTES_MAX {
        return Some(format!(
            "a value has {value_bytes} bytes; at most {VALUE_BYTES_MAX} are allowed"
        ));
    }
    None
}

/// A file's random identity, unique across all databases.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct FileId(pub u128);

impl fmt::Debug for FileId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl fmt::Display for FileId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

/// What a stored entry says about its key. The numbers are those that
/// LevelDB and RocksDB store (`db/dbformat.h` in both).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
#[repr(u8)]
pub enum Kind {
    /// The key is absent from here on.
    Delete = 0x00,
    /// The key has this value.
    Put = 0x01,
    /// An operand for the family's merge operator.
    Merge = 0x02,
    /// Cancels exactly one earlier put.
    SingleDelete = 0x07,
    /// Every key from this one up to the value, exclusive, is absent.
    RangeDelete = 0x0f,
}

impl Kind {
    /// Its name in reports, as in `"range delete"`.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Delete => "delete",
            Kind::Put => "put",
            Kind::Merge => "merge",
            Kind::SingleDelete => "single delete",
            Kind::RangeDelete => "range delete",
        }
    }

    /// True for what may make a key exist.
    pub(crate) fn is_value(self) -> bool {
        matches!(self, Kind::Put | Kind::Merge)
    }

    /// The kind stored as `byte`; `None` if no entry has it.
    #[inline]
    pub(crate) fn from_byte(byte: u8) -> Option<Kind> {
        Some(match byte {
            0x00 => Kind::Delete,
            0x01 => Kind::Put,
            0x02 => Kind::Merge,
            0x07 => Kind::SingleDelete,
            0x0f => Kind::RangeDelete,
            _ => return None,
        })
    }
}

/// Sequence number and kind in one word: `sequence << 8 | kind`. A larger
/// trailer is met first.
pub(crate) type Trailer = u64;

/// The trailer that precedes every version of a key in the order of entries.
pub(crate) const TRAILER_NEWEST: Trailer = u64::MAX;

#[inline]
pub(crate) fn trailer(sequence: SequenceNumber, kind: Kind) -> Trailer {
    debug_assert!(sequence <= SEQUENCE_MAX);
    sequence << 8 | kind as u64
}

/// The largest trailer that a reader at `sequence` may see: seeking to it
/// finds the newest version that is no newer than the snapshot.
#[inline]
pub(crate) fn trailer_visible_at(sequence: SequenceNumber) -> Trailer {
    sequence << 8 | 0xff
}

#[inline]
pub(crate) fn sequence_of(trailer: Trailer) -> SequenceNumber {
    trailer >> 8
}

/// The kind in `trailer`; `None` if the byte is no kind that is known.
#[inline]
pub(crate) fn kind_of(trailer: Trailer) -> Option<Kind> {
    Kind::from_byte(trailer as u8)
}

/// A user key with its trailer, owned.
#[derive(Clone, PartialEq, Eq, Default)]
pub(crate) struct InternalKey {
    pub(crate) user_key: Vec<u8>,
    pub(crate) trailer: Trailer,
}

impl InternalKey {
    pub(crate) fn new(user_key: &[u8], trailer: Trailer) -> InternalKey {
        InternalKey { user_key: user_key.to_vec(), trailer }
    }

    /// A place that no entry from this one on precedes: the entry itself, or
    /// one that is shorter where its key is long.
    pub(crate) fn before(user_key: &[u8], trailer: Trailer, order: &KeyOrder) -> InternalKey {
        match order.floor(user_key) {
            floor if floor.len() < user_key.len() => InternalKey::new(floor, TRAILER_NEWEST),
            whole => InternalKey::new(whole, trailer),
        }
    }

    /// A place that no entry up to this one follows: the entry itself, or a
    /// shorter one where its key is long.
    pub(crate) fn behind(user_key: &[u8], trailer: Trailer, order: &KeyOrder) -> InternalKey {
        match order.ceiling(user_key) {
            Some(user_key) => InternalKey { user_key, trailer: TRAILER_NEWEST },
            None => InternalKey::new(user_key, trailer),
        }
    }
}

impl fmt::Debug for InternalKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sequence = sequence_of(self.trailer);
        write!(f, "{}@{sequence}:{:02x}", self.user_key.escape_ascii(), self.trailer as u8)
    }
}

/// An order of user keys other than bytewise. It must be a total order, never
/// change for a database, and be the same under the same name.
pub trait Comparator: Send + Sync {
    /// A name that is stored; a database opens only under the same one.
    fn name(&self) -> &str;

    /// The order of `a` and `b`.
    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering;

    /// True if keys that compare equal always have equal bytes. Filters are
    /// used only then.
    fn equal_means_identical(&self) -> bool {
        false
    }

    /// May replace `start` by a shorter key in `start <= key < limit`, to make
    /// indexes small. Doing nothing is right too.
    fn shorten_separator(&self, start: &mut Vec<u8>, limit: &[u8]) {
        let _ = (start, limit);
    }
}

/// The name under which bytewise order is stored, as LevelDB stores it.
pub(crate) const BYTEWISE_NAME: &str = "leveldb.BytewiseComparator";

/// The order of a family's keys: bytewise, inlined everywhere, or the user's.
#[derive(Clone, Default)]
pub enum KeyOrder {
    /// Unsigned bytes, a prefix before what it is a prefix of.
    #[default]
    Bytewise,
    /// The user's own order.
    Custom(Arc<dyn Comparator>),
}

impl fmt::Debug for KeyOrder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl KeyOrder {
    /// The order of that name, if the library has it: bytewise, and `idb_cmp1` of
    /// Chrome's IndexedDB.
    pub fn built_in(name: &str) -> Option<KeyOrder> {
        match name {
            BYTEWISE_NAME => Some(KeyOrder::Bytewise),
            indexed_db::NAME => Some(KeyOrder::Custom(Arc::new(indexed_db::IndexedDb))),
            _ => None,
        }
    }

    /// The order of keys that are stored in the order `stored`, for who gives this one:
    /// bytewise order, the default, stands for any that the library has. `None` if it
    /// is another one.
    pub(crate) fn for_stored(&self, stored: &str) -> Option<KeyOrder> {
        if self.name() == stored {
            return Some(self.clone());
        }
        KeyOrder::built_in(stored).filter(|_| self.is_bytewise())
    }

    /// The name that is stored with a database.
    pub fn name(&self) -> &str {
        match self {
            KeyOrder::Bytewise => BYTEWISE_NAME,
            KeyOrder::Custom(comparator) => comparator.name(),
        }
    }

    /// The order of two user keys.
    #[inline]
    pub fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        match self {
            KeyOrder::Bytewise => a.cmp(b),
            KeyOrder::Custom(comparator) => comparator.compare(a, b),
        }
    }

    /// The order of two entries: user key ascending, then trailer descending.
    #[inline]
    pub(crate) fn compare_entries(&self, a: (&[u8], Trailer), b: (&[u8], Trailer)) -> Ordering {
        self.compare(a.0, b.0).then_with(|| b.1.cmp(&a.1))
    }

    #[inline]
    pub(crate) fn is_bytewise(&self) -> bool {
        matches!(self, KeyOrder::Bytewise)
    }

    /// True if equal keys have equal bytes, so that hashing a key is sound.
    pub(crate) fn equal_means_identical(&self) -> bool {
        match self {
            KeyOrder::Bytewise => true,
            KeyOrder::Custom(comparator) => comparator.equal_means_identical(),
        }
    }

    /// A key in `start <= key < limit`, shorter than `start` where that is easy.
    pub(crate) fn separator(&self, start: &[u8], limit: &[u8]) -> Vec<u8> {
        match self {
            KeyOrder::Custom(comparator) => {
                let mut key = start.to_vec();
                comparator.shorten_separator(&mut key, limit);
                key
            }
            KeyOrder::Bytewise => {
                let common = common_prefix_bytes(start, limit);
                let (Some(&low), Some(&high)) = (start.get(common), limit.get(common)) else {
                    return start.to_vec(); // one is a prefix of the other
                };
                // If the next number of the first byte that differs is the
                // limit's, a later byte can be raised instead.
                let raised = if low + 1 < high { common } else { common + 1 };
                increased(start, raised).unwrap_or_else(|| start.to_vec())
            }
        }
    }

    /// What stands for a long key where a lower bound is wanted: its first
    /// bytes. A short key, and any under an order that is not bytewise, stands
    /// for itself.
    pub(crate) fn floor<'k>(&self, user_key: &'k [u8]) -> &'k [u8] {
        match self {
            KeyOrder::Bytewise => &user_key[..user_key.len().min(BOUND_BYTES_MAX)],
            KeyOrder::Custom(_) => user_key,
        }
    }

    /// The first key behind all those that share a long key's floor; `None` if
    /// the key is not long, or nothing is behind them.
    pub(crate) fn ceiling(&self, user_key: &[u8]) -> Option<Vec<u8>> {
        let floor = self.floor(user_key);
        if floor.len() == user_key.len() {
            return None;
        }
        let last = floor.iter().rposition(|&byte| byte < 0xff)?;
        increased(floor, last)
    }
}

/// Keys beyond this length are cut where they serve as bounds: of tables, in
/// the manifest, in indexes. So these stay small, however long keys are.
pub(crate) const BOUND_BYTES_MAX: usize = 64 << 10;

/// `key` up to its first byte from `at` on that can be increased, that byte
/// increased by one; `None` if there is no such byte.
fn increased(key: &[u8], at: usize) -> Option<Vec<u8>> {
    let last = at + key.get(at..)?.iter().position(|&byte| byte < 0xff)?;
    let mut key = key[..=last].to_vec();
    key[last] += 1;
    Some(key)
}

/// Bytes that `a` and `b` have in common from their start.
#[inline]
pub(crate) fn common_prefix_bytes(a: &[u8], b: &[u8]) -> usize {
    a.iter().zip(b).take_while(|(x, y)| x == y).count()
}

/// The first key after all that begin with `prefix`; `None` if there is none.
pub(crate) fn prefix_end(prefix: &[u8]) -> Option<Vec<u8>> {
    let last = prefix.iter().rposition(|&byte| byte != 0xff)?;
    let mut end = prefix[..=last].to_vec();
    end[last] += 1;
    Some(end)
}

/// The first eight bytes of `key` as a number that compares as they do; short
/// keys are filled up with zeros, so equal heads decide nothing.
#[inline]
pub(crate) fn head(key: &[u8]) -> u64 {
    u64::from_be_bytes(first_bytes(key))
}

/// The same of the first sixteen bytes.
#[inline]
pub(crate) fn long_head(key: &[u8]) -> u128 {
    u128::from_be_bytes(first_bytes(key))
}

#[inline]
fn first_bytes<const N: usize>(key: &[u8]) -> [u8; N] {
    key.first_chunk().copied().unwrap_or_else(|| {
        let mut bytes = [0; N];
        bytes[..key.len()].copy_from_slice(key);
        bytes
    })
}

/// The 64-bit hash of a user key that filters are built from and asked with.
#[inline]
pub(crate) fn hash(user_key: &[u8]) -> u64 {
    xxhash_rust::xxh3::xxh3_64(user_key)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The newest version of a key is met first, whatever its kind.
    #[test]
    fn newer_entries_of_a_key_come_first() {
        let order = KeyOrder::Bytewise;
        let old = (&b"k"[..], trailer(1, Kind::Put));
        let new = (&b"k"[..], trailer(2, Kind::Delete));
        assert_eq!(order.compare_entries(new, old), Ordering::Less);
        assert_eq!(order.compare_entries((b"j", 0), new), Ordering::Less);
        assert!(trailer_visible_at(1) > old.1 && trailer_visible_at(1) < new.1);
    }

    /// A separator stays within its bounds and is no longer than the key.
    #[test]
    fn separators_are_short_and_between() {
        let order = KeyOrder::Bytewise;
        for (start, limit, expected) in [
            (&b"abcdef"[..], &b"abzz"[..], &b"abd"[..]),
            (b"abc", b"abcd", b"abc"),
            (b"abc1", b"abd", b"abc2"),
            (b"", b"a", b""),
            (b"a\xff\xff", b"c", b"b"),
            (b"a\xff\x01\x05", b"b", b"a\xff\x02"),
            (b"ab", b"b", b"ac"),
            (b"a\xff", b"b", b"a\xff"),
        ] {
            let key = order.separator(start, limit);
            assert_eq!(key, expected);
            assert!(start <= &key[..] && &key[..] < limit);
        }
    }

    /// Bounds of long keys are short, and bounds: keys that may lie in two
    /// tables of a level have bounds that don't overlap.
    #[test]
    fn long_keys_have_short_bounds() {
        let order = KeyOrder::Bytewise;
        let long = |byte: u8, tail: &[u8]| [&vec![byte; BOUND_BYTES_MAX], tail].concat();
        for key in [b"short".to_vec(), long(b'a', b""), long(0xff, b"x")] {
            assert_eq!(order.ceiling(&key), None);
            assert_eq!(InternalKey::behind(&key, 7, &order), InternalKey::new(&key, 7));
        }
        assert_eq!(InternalKey::before(b"short", 7, &order), InternalKey::new(b"short", 7));
        let (a, b) = (long(b'a', b"tail"), long(b'b', b"tail"));
        let behind = InternalKey::behind(&a, 7, &order);
        let before = InternalKey::before(&b, 7, &order);
        assert_eq!(before, InternalKey::new(&b[..BOUND_BYTES_MAX], TRAILER_NEWEST));
        assert!(a < behind.user_key && behind.user_key <= before.user_key && before.user_key < b);
        assert!(behind.user_key.len() <= BOUND_BYTES_MAX);
    }

    /// Comparing heads first never contradicts comparing keys, and long ones tell
    /// more keys apart.
    #[test]
    fn heads_order_as_keys_do() {
        let keys: [&[u8]; 8] = [
            b"",
            b"\0",
            b"a",
            b"a\0",
            b"abcdefgh",
            b"abcdefghi",
            b"abcdefghijklmnop",
            b"abcdefghijklmnopq",
        ];
        for (index, a) in keys.iter().enumerate() {
            for b in &keys[index..] {
                assert!(head(a) <= head(b) && long_head(a) <= long_head(b), "{a:?} {b:?}");
            }
        }
        assert!(head(keys[4]) == head(keys[5]) && long_head(keys[4]) < long_head(keys[5]));
    }

    /// The end of a prefix is the first key that sorts after all with it.
    #[test]
    fn prefix_end_is_the_first_key_after_the_prefix() {
        assert_eq!(prefix_end(b"ab"), Some(b"ac".to_vec()));
        assert_eq!(prefix_end(b"a\xff\xff"), Some(b"b".to_vec()));
        assert_eq!(prefix_end(b"\xff"), None);
        assert_eq!(prefix_end(b""), None);
    }
}
