//! A record of a manifest (`db/version_edit.cc`): what changed.

use crate::coding::{Reader, put_slice, put_varint};

use super::{Checked, split_key};

/// Levels that a LevelDB database has.
pub(crate) const LEVELS: usize = 7;

mod tag {
    pub(super) const COMPARATOR: u64 = 1;
    pub(super) const LOG_NUMBER: u64 = 2;
    pub(super) const NEXT_FILE_NUMBER: u64 = 3;
    pub(super) const LAST_SEQUENCE: u64 = 4;
    pub(super) const COMPACT_POINTER: u64 = 5;
    pub(super) const DELETED_FILE: u64 = 6;
    pub(super) const NEW_FILE: u64 = 7;
    pub(super) const PREVIOUS_LOG_NUMBER: u64 = 9;
    /// Of Basho's fork: a table, and when its entries expire.
    pub(super) const NEW_EXPIRING_FILE: u64 = 11;
}

/// A table as a manifest has it. The bounds are stored keys: the user's, and
/// eight bytes of sequence number and kind, which [`Edit::decode`] has seen to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LevelDbTable {
    pub(crate) number: u64,
    pub(crate) bytes: u64,
    pub(crate) smallest: Vec<u8>,
    pub(crate) largest: Vec<u8>,
}

/// One change of the state.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Edit {
    pub(crate) comparator: Option<Vec<u8>>,
    /// Logs before this one count no more, but for the previous one.
    pub(crate) log_number: Option<u64>,
    pub(crate) previous_log_number: Option<u64>,
    pub(crate) next_file_number: Option<u64>,
    pub(crate) last_sequence: Option<u64>,
    /// Where the next compaction of a level begins, as a stored key: ours choose anew.
    pub(crate) compact_pointers: Vec<(usize, Vec<u8>)>,
    /// Level and number.
    pub(crate) deleted: Vec<(usize, u64)>,
    pub(crate) added: Vec<(usize, LevelDbTable)>,
    /// A table that is added has entries that expire, as Basho's fork has them.
    pub(crate) expires: bool,
}

impl Edit {
    /// Decodes a record of a manifest.
    pub(crate) fn decode(record: &[u8]) -> Checked<Edit> {
        let (mut edit, mut reader) = (Edit::default(), Reader::new(record));
        while !reader.is_empty() {
            let wrong = "a malformed change in a manifest";
            edit.field(&mut reader).ok_or(wrong)?.ok_or(UNKNOWN)?;
        }
        Ok(edit)
    }

    /// Reads a field: `None` if it is malformed, `Some(None)` if unknown.
    fn field(&mut self, reader: &mut Reader<'_>) -> Option<Option<()>> {
        match reader.varint()? {
            tag::COMPARATOR => self.comparator = Some(reader.slice()?.to_vec()),
            tag::LOG_NUMBER => self.log_number = Some(reader.varint()?),
            tag::NEXT_FILE_NUMBER => self.next_file_number = Some(reader.varint()?),
            tag::LAST_SEQUENCE => self.last_sequence = Some(reader.varint()?),
            tag::PREVIOUS_LOG_NUMBER => self.previous_log_number = Some(reader.varint()?),
            tag::COMPACT_POINTER => {
                self.compact_pointers.push((level(reader)?, reader.slice()?.to_vec()));
            }
            tag::DELETED_FILE => self.deleted.push((level(reader)?, reader.varint()?)),
            tag::NEW_FILE => self.added.push(added(reader)?),
            tag::NEW_EXPIRING_FILE => {
                self.added.push(added(reader)?);
                // From when and until when they were written, and when the last of them
                // says itself that it expires: nothing if none does.
                let (_, written_last, said_last) =
                    (reader.varint()?, reader.varint()?, reader.varint()?);
                self.expires |= written_last != 0 || said_last != 0;
            }
            _ => return Some(None),
        }
        Some(Some(()))
    }

    /// The record that says this.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        if let Some(name) = &self.comparator {
            put_varint(&mut out, tag::COMPARATOR);
            put_slice(&mut out, name);
        }
        let numbers = [
            (tag::LOG_NUMBER, self.log_number),
            (tag::PREVIOUS_LOG_NUMBER, self.previous_log_number),
            (tag::NEXT_FILE_NUMBER, self.next_file_number),
            (tag::LAST_SEQUENCE, self.last_sequence),
        ];
        for (tag, number) in numbers {
            if let Some(number) = number {
                put_varint(&mut out, tag);
                put_varint(&mut out, number);
            }
        }
        for (level, key) in &self.compact_pointers {
            put_varint(&mut out, tag::COMPACT_POINTER);
            put_varint(&mut out, *level as u64);
            put_slice(&mut out, key);
        }
        for &(level, number) in &self.deleted {
            let numbers = [tag::DELETED_FILE, level as u64, number];
            numbers.into_iter().for_each(|n| put_varint(&mut out, n));
        }
        for (level, table) in &self.added {
            let tag = if self.expires { tag::NEW_EXPIRING_FILE } else { tag::NEW_FILE };
            let numbers = [tag, *level as u64, table.number, table.bytes];
            numbers.into_iter().for_each(|n| put_varint(&mut out, n));
            put_slice(&mut out, &table.smallest);
            put_slice(&mut out, &table.largest);
            let times = if self.expires { &[1, 1, 0][..] } else { &[] };
            times.iter().for_each(|&n| put_varint(&mut out, n));
        }
        out
    }
}

/// A table, and its level before that.
fn added(reader: &mut Reader<'_>) -> Option<(usize, LevelDbTable)> {
    let level = level(reader)?;
    let (number, bytes) = (reader.varint()?, reader.varint()?);
    let (smallest, largest) = (stored_key(reader)?, stored_key(reader)?);
    Some((level, LevelDbTable { number, bytes, smallest, largest }))
}

const UNKNOWN: &str = "a change in a manifest of a kind that LevelDB does not have";

fn level(reader: &mut Reader<'_>) -> Option<usize> {
    let level = usize::try_from(reader.varint()?).ok()?;
    (level < LEVELS).then_some(level)
}

fn stored_key(reader: &mut Reader<'_>) -> Option<Vec<u8>> {
    let stored = reader.slice()?;
    split_key(stored).ok().map(|_| stored.to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edit() -> Edit {
        let table = |number| LevelDbTable {
            number,
            bytes: 2_000_000,
            smallest: b"a.......".to_vec(),
            largest: b"z.......".to_vec(),
        };
        Edit {
            comparator: Some(b"leveldb.BytewiseComparator".to_vec()),
            log_number: Some(12),
            previous_log_number: Some(0),
            next_file_number: Some(15),
            last_sequence: Some(1 << 40),
            compact_pointers: vec![(2, b"m.......".to_vec())],
            deleted: vec![(0, 3), (6, 4)],
            added: vec![(0, table(13)), (6, table(14))],
            expires: false,
        }
    }

    #[test]
    fn an_edit_is_read_as_it_was_written() {
        assert_eq!(Edit::decode(&edit().encode()), Ok(edit()));
        assert_eq!(Edit::decode(&[]), Ok(Edit::default()));
        let expiring = Edit { expires: true, ..edit() };
        assert_eq!(Edit::decode(&expiring.encode()), Ok(expiring));
    }

    #[test]
    fn malformed_and_foreign_edits_are_refused() {
        let record = edit().encode();
        for length in 0..record.len() {
            let _ = Edit::decode(&record[..length]);
        }
        // A table with a bound that is too short for a number.
        assert!(Edit::decode(&[7, 0, 1, 1, 1, b'a', 1, b'b']).is_err());
        // A table at a level that LevelDB does not have.
        assert!(Edit::decode(&[7, 7, 1, 1, 0, 0]).is_err());
        // A column family of RocksDB.
        assert_eq!(Edit::decode(&[0xc8, 0x01, 0]), Err(UNKNOWN));
    }
}
