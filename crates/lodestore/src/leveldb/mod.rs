//! LevelDB's formats: what its files say, byte by byte; all but `directory`
//! and `new_database` without I/O.
//!
//! | part | job |
//! |---|---|
//! | `names` | which file a name is |
//! | `log` | records of a log or manifest file |
//! | `edit` | a record of a manifest: tables added and deleted |
//! | `footer` | where a table's index is |
//! | `stored` | a stored block: checksum, and which codec |
//! | `block` | the entries of a block |
//! | `filter` | the Bloom filters of a table |
//! | `table` | a whole table, to be written |
//! | `salvage` | what can be read of a damaged table |
//! | `directory` | which files there are, and what the manifest says of them |
//! | `new_database` | a directory that is being written |
//! | `text` | what a change says, as LevelDB prints it |
//!
//! What a log's records hold is a part of what ours hold, see `batch`.
//!
//! Sources: `doc/log_format.md`, `doc/table_format.md`, `db/version_edit.cc`,
//! `db/filename.cc` and `util/bloom.cc` of LevelDB 1.23.
//! Everything here doubts its input: no length is believed before it was
//! compared with the bytes present, and nothing is allocated from one.

pub(crate) mod block;
pub(crate) mod directory;
pub(crate) mod edit;
pub(crate) mod filter;
pub(crate) mod footer;
pub(crate) mod log;
pub(crate) mod names;
pub(crate) mod new_database;
pub(crate) mod salvage;
pub(crate) mod stored;
pub(crate) mod table;
#[cfg(test)]
pub(crate) mod testing;
pub(crate) mod text;

use crate::batch::{BatchRef, FamilyId, Record};
use crate::checksum::crc32c;
use crate::error::Undecodable;
use crate::key::{Kind, Trailer};

/// The outcome of a check that only says what is wrong.
type Checked<T> = Result<T, &'static str>;

/// What LevelDB stores instead of a CRC-32C, so that a checksum of bytes that
/// hold checksums keeps its worth.
fn masked(crc: u32) -> u32 {
    crc.rotate_right(15).wrapping_add(0xa282_ead8)
}

/// [`masked`] of the checksum of `bytes`.
fn masked_crc32c(bytes: &[u8]) -> u32 {
    masked(crc32c(bytes))
}

/// What a record of a log holds.
///
/// # Errors
/// What is wrong with it, in words.
pub(crate) fn decode_batch(record: &[u8]) -> Result<BatchRef<'_>, String> {
    let batch = BatchRef::decode(record).map_err(Undecodable::into_text)?;
    let is_known = |record| {
        matches!(
            record,
            Record::Entry { family: FamilyId::DEFAULT, kind: Kind::Put | Kind::Delete, .. }
        )
    };
    match batch.records().all(is_known) {
        true => Ok(batch),
        false => Err("a record of a kind that LevelDB does not have".to_string()),
    }
}

/// A stored key.
pub(crate) fn join_key(user_key: &[u8], trailer: Trailer) -> Vec<u8> {
    [user_key, &trailer.to_le_bytes()].concat()
}

/// Divides a stored key into user key and trailer.
pub(crate) fn split_key(stored: &[u8]) -> Checked<(&[u8], Trailer)> {
    let (user_key, trailer) = stored.split_last_chunk::<8>().ok_or("a key without a number")?;
    Ok((user_key, u64::from_le_bytes(*trailer)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The mask of `util/crc32c.h`: the value for "foo" is the one that the
    /// formula there gives.
    #[test]
    fn checksums_are_masked_as_leveldb_masks_them() {
        let crc = crc32c(b"123456789");
        assert_eq!(crc, 0xe306_9283);
        assert_eq!(masked(crc), crc.rotate_right(15).wrapping_add(0xa282_ead8));
        assert_eq!(masked(0), 0xa282_ead8);
    }

    #[test]
    fn keys_are_divided_before_their_last_eight_bytes() {
        let stored = [b"key".as_slice(), &(7u64 << 8 | 1).to_le_bytes()].concat();
        assert_eq!(split_key(&stored), Ok((&b"key"[..], 7 << 8 | 1)));
        assert!(split_key(b"1234567").is_err());
    }
}
