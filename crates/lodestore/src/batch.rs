//! Write batches: records that become visible, and durable, all or none.
//!
//! write -> `WriteBatch` bytes -> `wal` (the very same bytes) -> memtable
//!
//! | OFFSET | SIZE | MEANING |
//! |---|---|---|
//! | 0 | 8 | sequence number of the first record that takes one |
//! | 8 | 4 | records that take a sequence number |
//! | 12 | .. | records, one after the other (docs/format/batch.md) |
//!
//! All tags are RocksDB's (`db/dbformat.h`), the first two LevelDB's.
//!
//! Invariant: the bytes of a [`WriteBatch`] are always valid; whatever comes
//! from outside passes [`BatchRef::decode`] first, and is trusted from then on.

mod by_key;
mod decode;

pub(crate) use by_key::Numbered;
pub use decode::Record;
pub(crate) use decode::{BatchRef, Records};

use crate::coding::{VARINT64_BYTES_MAX, put_varint, varint_bytes};
use crate::error::{Error, Result, Undecodable};
use crate::key::{Kind, SEQUENCE_MAX, SequenceNumber, too_long};

/// Bytes before the first record.
pub(crate) const BATCH_HEADER_BYTES: usize = 12;
/// The longest batch: a log record's length has 32 bits.
pub(crate) const BATCH_BYTES_MAX: usize = u32::MAX as usize;

/// The most entries of a batch. A memtable's arena holds 16 GiB, which the
/// shortest entries would fill six times from one batch of 4 GiB; this many,
/// with 4 GiB of keys and values and a full memtable, fit.
pub(crate) const BATCH_ENTRIES_MAX: u32 = 1 << 28;

/// Tags of records that are not an entry of the default family; an entry's tag
/// there is its [`Kind`].
mod tag {
    pub(super) const OPAQUE: u8 = 0x03;
    pub(super) const FAMILY_DELETE: u8 = 0x04;
    pub(super) const FAMILY_PUT: u8 = 0x05;
    pub(super) const FAMILY_MERGE: u8 = 0x06;
    pub(super) const FAMILY_SINGLE_DELETE: u8 = 0x08;
    pub(super) const FAMILY_RANGE_DELETE: u8 = 0x0e;
    /// From here on a tag need not be known: a slice follows, and no number is
    /// taken.
    pub(super) const HINTS: u8 = 0x80;
}

/// Which family (named key space) of a database a record belongs to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FamilyId(pub u32);

impl FamilyId {
    /// The family that every database has.
    pub const DEFAULT: FamilyId = FamilyId(0);
}

/// Records to write together: after any crash all of them are there or none.
///
/// Adding never fails. A record that is too long, or that would make the batch
/// longer than 4 GiB, is left out, and writing the batch then gives
/// [`Error::InvalidArgument`] and changes nothing; so does a batch of more than
/// 2^28 entries.
///
/// ```
/// # use lodestore::{Db, MemFs, Options, WriteBatch, WriteOptions};
/// # let fs = std::sync::Arc::new(MemFs::new());
/// # let options = Options { create_if_missing: true, fs, ..Options::default() };
/// # let db = Db::open("db", options)?;
/// let users = db.family_or_create("users")?;
/// let mut batch = WriteBatch::new();
/// batch.put(b"users", b"1");
/// batch.put_in(&users, b"ann", b"ann@example.org");
/// db.write_with(&WriteOptions::SYNCED, &mut batch)?; // survives power loss
/// assert!(users.get(b"ann")?.is_some());
/// # Ok::<(), lodestore::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct WriteBatch {
    /// Header and records. The header's count is kept current.
    bytes: Vec<u8>,
    /// All records, opaque ones too.
    records: u32,
    /// See [`WriteBatch::is_plain`].
    plain: bool,
    /// Why a record was left out, for the first one that was.
    refused: Option<Box<str>>,
}

impl Default for WriteBatch {
    fn default() -> WriteBatch {
        WriteBatch::new()
    }
}

impl WriteBatch {
    /// An empty batch.
    pub fn new() -> WriteBatch {
        WriteBatch::with_capacity(0)
    }

    /// An empty batch with room for `bytes` bytes of records.
    pub fn with_capacity(bytes: usize) -> WriteBatch {
        let mut buffer = Vec::with_capacity(BATCH_HEADER_BYTES + bytes);
        buffer.extend_from_slice(&[0; BATCH_HEADER_BYTES]);
        WriteBatch { bytes: buffer, records: 0, plain: true, refused: None }
    }

    /// Sets `key` to `value` in the default family.
    #[inline]
    pub fn put(&mut self, key: &[u8], value: &[u8]) {
        self.put_in(FamilyId::DEFAULT, key, value);
    }

    /// Removes `key` from the default family, if it is there.
    #[inline]
    pub fn delete(&mut self, key: &[u8]) {
        self.delete_in(FamilyId::DEFAULT, key);
    }

    /// Adds an operand for the default family's merge operator.
    #[inline]
    pub fn merge(&mut self, key: &[u8], operand: &[u8]) {
        self.merge_in(FamilyId::DEFAULT, key, operand);
    }

    /// Removes `key` from the default family: see
    /// [`WriteBatch::single_delete_in`].
    #[inline]
    pub fn single_delete(&mut self, key: &[u8]) {
        self.single_delete_in(FamilyId::DEFAULT, key);
    }

    /// Removes all keys of the default family from `begin` up to `end`: see
    /// [`WriteBatch::delete_range_in`].
    #[inline]
    pub fn delete_range(&mut self, begin: &[u8], end: &[u8]) {
        self.delete_range_in(FamilyId::DEFAULT, begin, end);
    }

    /// Sets `key` to `value` in `family`.
    #[inline]
    pub fn put_in(&mut self, family: impl Into<FamilyId>, key: &[u8], value: &[u8]) {
        self.add_entry(Kind::Put as u8, tag::FAMILY_PUT, family.into(), key, Some(value));
    }

    /// Removes `key` from `family`, if it is there.
    #[inline]
    pub fn delete_in(&mut self, family: impl Into<FamilyId>, key: &[u8]) {
        self.add_entry(Kind::Delete as u8, tag::FAMILY_DELETE, family.into(), key, None);
    }

    /// Removes `key` from `family`, where it was put at most once since it was
    /// last removed, and neither merged nor removed by [`WriteBatch::delete`].
    /// Then this is a [`WriteBatch::delete`] that costs less: the two records
    /// go together as soon as a compaction meets both. Otherwise older values
    /// of the key may come back.
    #[inline]
    pub fn single_delete_in(&mut self, family: impl Into<FamilyId>, key: &[u8]) {
        let tag = tag::FAMILY_SINGLE_DELETE;
        self.add_entry(Kind::SingleDelete as u8, tag, family.into(), key, None);
    }

    /// Removes all keys of `family` from `begin`, inclusive, up to `end`,
    /// exclusive, in the family's order: one record, however many keys there
    /// are. Records that are added later are not touched. Writing the batch
    /// gives [`Error::InvalidArgument`] if `end` comes before `begin`; if they
    /// are equal, nothing is removed.
    #[inline]
    pub fn delete_range_in(&mut self, family: impl Into<FamilyId>, begin: &[u8], end: &[u8]) {
        let tag = tag::FAMILY_RANGE_DELETE;
        self.add_entry(Kind::RangeDelete as u8, tag, family.into(), begin, Some(end));
    }

    /// Adds an operand for the merge operator of `family`.
    #[inline]
    pub fn merge_in(&mut self, family: impl Into<FamilyId>, key: &[u8], operand: &[u8]) {
        self.add_entry(Kind::Merge as u8, tag::FAMILY_MERGE, family.into(), key, Some(operand));
    }

    /// Adds bytes that readers of the log see and the database ignores. They
    /// take no sequence number.
    pub fn opaque(&mut self, bytes: &[u8]) {
        if !self.admit(0, bytes.len()) {
            return;
        }
        self.bytes.reserve(1 + VARINT64_BYTES_MAX + bytes.len());
        self.bytes.push(tag::OPAQUE);
        crate::coding::put_slice(&mut self.bytes, bytes);
        self.records += 1;
    }

    /// Removes all records; the memory is kept for the next ones.
    pub fn clear(&mut self) {
        self.bytes.truncate(BATCH_HEADER_BYTES);
        self.bytes.fill(0);
        self.records = 0;
        self.plain = true;
        self.refused = None;
    }

    /// True if all records are puts and deletes of the default family, which
    /// any database takes: there is nothing about them to look up.
    #[inline]
    pub(crate) fn is_plain(&self) -> bool {
        self.plain
    }

    /// Number of records, opaque ones included.
    pub fn len(&self) -> usize {
        self.records as usize
    }

    /// True if there is no record.
    pub fn is_empty(&self) -> bool {
        self.records == 0
    }

    /// Bytes that the batch takes in the log.
    pub fn bytes(&self) -> usize {
        self.bytes.len()
    }

    /// The records in order, then the error that writing the batch would give
    /// because one was left out, if one was.
    pub fn iter(&self) -> impl Iterator<Item = Result<Record<'_>>> {
        self.records().map(Ok).chain(self.check().err().map(Err))
    }

    /// Adds the records of `other` after those that are here.
    pub fn append(&mut self, other: &WriteBatch) {
        if self.refused.is_none() {
            self.refused.clone_from(&other.refused);
        }
        let body = &other.bytes[BATCH_HEADER_BYTES..];
        if body.len() > BATCH_BYTES_MAX - self.bytes.len() {
            self.refuse("a batch is longer than 4 GiB".to_string());
            return;
        }
        self.bytes.extend_from_slice(body);
        self.records += other.records;
        self.plain &= other.plain;
        self.set_sequence_count(self.sequence_count() + other.sequence_count());
    }

    #[inline]
    fn add_entry(
        &mut self,
        tag: u8,
        family_tag: u8,
        family: FamilyId,
        key: &[u8],
        value: Option<&[u8]>,
    ) {
        let value_length = value.map_or(0, <[u8]>::len);
        if !self.admit(key.len(), value_length) {
            return;
        }
        let bytes = &mut self.bytes;
        bytes.reserve(1 + 3 * VARINT64_BYTES_MAX + key.len() + value_length);
        if family == FamilyId::DEFAULT {
            bytes.push(tag);
        } else {
            bytes.push(family_tag);
            put_varint(bytes, u64::from(family.0));
        }
        put_varint(bytes, key.len() as u64);
        bytes.extend_from_slice(key);
        if let Some(value) = value {
            put_varint(bytes, value.len() as u64);
            bytes.extend_from_slice(value);
        }
        self.records += 1;
        self.plain &= family == FamilyId::DEFAULT && tag <= Kind::Put as u8;
        self.set_sequence_count(self.sequence_count() + 1);
    }

    /// True if a record of these lengths fits; otherwise remembers why not.
    #[inline]
    fn admit(&mut self, key_bytes: usize, value_bytes: usize) -> bool {
        match refusal(self.bytes.len(), key_bytes, value_bytes) {
            None => true,
            Some(why) => {
                self.refuse(why);
                false
            }
        }
    }

    #[cold]
    fn refuse(&mut self, why: String) {
        self.refused.get_or_insert(why.into_boxed_str());
    }

    #[inline]
    fn set_sequence_count(&mut self, count: u32) {
        self.bytes[8..12].copy_from_slice(&count.to_le_bytes());
    }
}

/// What the engine does with a batch.
impl WriteBatch {
    /// A batch from its stored bytes.
    ///
    /// # Errors
    /// What is wrong with them, if they are not a batch.
    pub(crate) fn from_bytes(bytes: Vec<u8>) -> std::result::Result<WriteBatch, Undecodable> {
        let records = BatchRef::decode(&bytes)?.record_count();
        Ok(WriteBatch { bytes, records, plain: false, refused: None })
    }

    /// # Errors
    /// `InvalidArgument` if a record had to be left out, or there are too many.
    pub(crate) fn check(&self) -> Result<()> {
        if self.sequence_count() > BATCH_ENTRIES_MAX {
            let what = format!("a batch has more than {BATCH_ENTRIES_MAX} entries");
            return Err(Error::invalid(what));
        }
        match &self.refused {
            None => Ok(()),
            Some(why) => Err(Error::invalid(why.as_ref())),
        }
    }

    /// The batch as the log stores it.
    #[inline]
    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The sequence number of the first record that takes one.
    #[inline]
    pub(crate) fn sequence(&self) -> SequenceNumber {
        sequence_in(&self.bytes)
    }

    /// Gives the first record that takes a sequence number `first`, the next
    /// one `first + 1`, ...
    #[inline]
    pub(crate) fn set_sequence(&mut self, first: SequenceNumber) {
        debug_assert!(first <= SEQUENCE_MAX);
        self.bytes[..8].copy_from_slice(&first.to_le_bytes());
    }

    /// How many sequence numbers the records take.
    #[inline]
    pub(crate) fn sequence_count(&self) -> u32 {
        sequence_count_in(&self.bytes)
    }

    /// The records in order.
    #[inline]
    pub(crate) fn records(&self) -> Records<'_> {
        Records::new(&self.bytes)
    }
}

pub(crate) fn sequence_in(bytes: &[u8]) -> SequenceNumber {
    u64::from_le_bytes(bytes[..8].try_into().expect("eight bytes"))
}

pub(crate) fn sequence_count_in(bytes: &[u8]) -> u32 {
    u32::from_le_bytes(bytes[8..12].try_into().expect("four bytes"))
}

/// Why a record of these lengths can't be added to a batch of `used` bytes.
#[inline]
fn refusal(used: usize, key_bytes: usize, value_bytes: usize) -> Option<String> {
    let too_long = too_long(key_bytes, value_bytes);
    if too_long.is_some() {
        return too_long;
    }
    // Tag, family and both lengths, at their longest for lengths of 32 bits.
    let overhead = 1 + 3 * varint_bytes(u64::from(u32::MAX));
    let room = BATCH_BYTES_MAX - used;
    if room < overhead || room - overhead < key_bytes || room - overhead - key_bytes < value_bytes {
        return Some("a batch is longer than 4 GiB".to_string());
    }
    None
}

#[cfg(test)]
mod tests;
