//! Records as they are read out of a batch, and the check that bytes from
//! outside pass before they are trusted.

use super::{BATCH_HEADER_BYTES, FamilyId, sequence_count_in, sequence_in, tag};
use crate::coding::Reader;
use crate::error::Undecodable;
use crate::key::{KEY_BYTES_MAX, Kind, SEQUENCE_MAX, SequenceNumber, VALUE_BYTES_MAX};

/// One record of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Record<'a> {
    /// Something said of a key. Takes a sequence number.
    Entry {
        /// The key's family.
        family: FamilyId,
        /// What is said.
        kind: Kind,
        /// The key; for a range delete, the first one that is deleted.
        key: &'a [u8],
        /// The value or merge operand; the first key that a range delete leaves
        /// alone; empty for other deletes.
        value: &'a [u8],
    },
    /// Bytes that the log keeps and the database ignores.
    Opaque(&'a [u8]),
    /// A hint of a later build, for whoever knows its tag. Ignored like opaque
    /// bytes, and kept with its batch.
    Hint {
        /// At least 0x80.
        tag: u8,
        /// What follows the tag.
        bytes: &'a [u8],
    },
}

impl Record<'_> {
    /// True if the record uses up one sequence number; opaque bytes do not, as in
    /// RocksDB.
    #[inline]
    pub(crate) fn takes_sequence(&self) -> bool {
        matches!(self, Record::Entry { .. })
    }
}

/// A valid batch in someone else's buffer, as recovery reads it from the log.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BatchRef<'a> {
    bytes: &'a [u8],
    records: u32,
}

impl<'a> BatchRef<'a> {
    /// Checks all of `bytes`. Nothing is allocated but for the error.
    ///
    /// # Errors
    /// What is wrong; the caller adds the file and the offset.
    pub(crate) fn decode(bytes: &'a [u8]) -> std::result::Result<BatchRef<'a>, Undecodable> {
        if bytes.len() < BATCH_HEADER_BYTES {
            return Err(format!("a batch of {} bytes has no header", bytes.len()).into());
        }
        let mut reader = Reader::new(&bytes[BATCH_HEADER_BYTES..]);
        let (mut records, mut sequences) = (0u32, 0u64);
        while !reader.is_empty() {
            let at = bytes.len() - reader.rest().len();
            let record = read_record(&mut reader).map_err(|wrong| wrong.within_batch(at))?;
            // A record has at least one byte and a batch at most u32::MAX, by
            // the record that holds it; only a caller's own Vec could be longer.
            records = records.checked_add(1).ok_or("too many records in a batch")?;
            sequences += u64::from(record.takes_sequence());
        }
        let (first, count) = (sequence_in(bytes), sequence_count_in(bytes));
        if sequences != u64::from(count) {
            return Err(format!("a batch of {count} entries has {sequences}").into());
        }
        // The last entry's number is first + count - 1.
        if first > SEQUENCE_MAX || sequences > SEQUENCE_MAX - first + 1 {
            return Err(format!("sequence numbers from {first} on pass 56 bits").into());
        }
        Ok(BatchRef { bytes, records })
    }

    pub(crate) fn sequence(&self) -> SequenceNumber {
        sequence_in(self.bytes)
    }

    pub(crate) fn sequence_count(&self) -> u32 {
        sequence_count_in(self.bytes)
    }

    /// All records, opaque ones too.
    pub(crate) fn record_count(&self) -> u32 {
        self.records
    }

    pub(crate) fn records(&self) -> Records<'a> {
        Records { reader: Reader::new(&self.bytes[BATCH_HEADER_BYTES..]) }
    }
}

/// The records of a batch that is known to be valid.
#[derive(Clone, Debug)]
pub(crate) struct Records<'a> {
    reader: Reader<'a>,
}

impl<'a> Records<'a> {
    /// The records of a whole, valid batch.
    #[inline]
    pub(super) fn new(batch: &'a [u8]) -> Records<'a> {
        Records::from(batch, BATCH_HEADER_BYTES)
    }

    /// Those from byte `at` of a whole, valid batch on, where one begins.
    #[inline]
    pub(super) fn from(batch: &'a [u8], at: usize) -> Records<'a> {
        Records { reader: Reader::new(&batch[at..]) }
    }

    /// Bytes of the records that are still to come.
    #[inline]
    pub(super) fn unread_bytes(&self) -> usize {
        self.reader.rest().len()
    }
}

impl<'a> Iterator for Records<'a> {
    type Item = Record<'a>;

    #[inline]
    fn next(&mut self) -> Option<Record<'a>> {
        if self.reader.is_empty() {
            return None;
        }
        Some(read_record(&mut self.reader).expect("the batch was checked when it was made"))
    }
}

/// Why a record cannot be read.
#[derive(Clone, Copy, Debug)]
enum Wrong {
    Malformed(&'static str),
    UnknownTag(u8),
}

impl Wrong {
    /// The same of a record at byte `at` of a batch.
    fn within_batch(self, at: usize) -> Undecodable {
        match self {
            Wrong::Malformed(what) => format!("{what}, at byte {at} of a batch").into(),
            Wrong::UnknownTag(tag) => {
                let what = format!("a record with tag {tag:#04x} at byte {at} of a batch");
                Undecodable::Unknown(what)
            }
        }
    }
}

const SHORT: Wrong = Wrong::Malformed("a record ends early");

/// The next record; the reader must not be empty.
#[inline]
fn read_record<'a>(reader: &mut Reader<'a>) -> std::result::Result<Record<'a>, Wrong> {
    let tag = reader.u8().ok_or(SHORT)?;
    if let Some(kind) = Kind::from_byte(tag) {
        return read_entry(reader, FamilyId::DEFAULT, kind);
    }
    let kind = match tag {
        tag::FAMILY_DELETE => Kind::Delete,
        tag::FAMILY_PUT => Kind::Put,
        tag::FAMILY_MERGE => Kind::Merge,
        tag::FAMILY_SINGLE_DELETE => Kind::SingleDelete,
        tag::FAMILY_RANGE_DELETE => Kind::RangeDelete,
        tag::OPAQUE => return Ok(Record::Opaque(reader.slice().ok_or(SHORT)?)),
        tag::HINTS.. => return Ok(Record::Hint { tag, bytes: reader.slice().ok_or(SHORT)? }),
        _ => return Err(Wrong::UnknownTag(tag)),
    };
    let family = reader.varint().ok_or(SHORT)?;
    let family =
        u32::try_from(family).map_err(|_| Wrong::Malformed("a family's id passes 32 bits"))?;
    read_entry(reader, FamilyId(family), kind)
}

#[inline]
fn read_entry<'a>(
    reader: &mut Reader<'a>,
    family: FamilyId,
    kind: Kind,
) -> std::result::Result<Record<'a>, Wrong> {
    let key = reader.slice().ok_or(SHORT)?;
    let value = match kind {
        Kind::Delete | Kind::SingleDelete => &[],
        _ => reader.slice().ok_or(SHORT)?,
    };
    if key.len() > KEY_BYTES_MAX || value.len() > VALUE_BYTES_MAX {
        return Err(Wrong::Malformed("a key or value is longer than allowed"));
    }
    Ok(Record::Entry { family, kind, key, value })
}
