//! The records of a log of LevelDB, all of whose bytes are in memory.

use std::path::Path;

use crate::error::{Error, Result};
use crate::fs::{ReadableFile, read_whole};
use crate::key::SequenceNumber;
use crate::leveldb::decode_batch;
use crate::leveldb::log::{Damage, Records, begins_with_record};
use crate::leveldb::names::{LevelDbFile, parse};

use super::log::LogEnd;

#[derive(Debug)]
pub(super) struct LevelDbRecords {
    /// As in the file's name; 0 if it has another one.
    pub(super) number: u64,
    bytes: Vec<u8>,
    /// Where the next record begins.
    at: usize,
    record: Vec<u8>,
}

impl LevelDbRecords {
    /// The records of `file`, unless neither its name nor its beginning say that
    /// it is a log of LevelDB.
    pub(super) fn read(file: &dyn ReadableFile, path: &Path) -> Result<Option<LevelDbRecords>> {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let number = match parse(name) {
            Some(LevelDbFile::Log(number)) => Some(number),
            _ => None,
        };
        let bytes = read_whole(file).map_err(|error| Error::io(path, "read", error))?;
        if number.is_none() && !begins_with_record(&bytes) {
            return Ok(None);
        }
        let number = number.unwrap_or(0);
        Ok(Some(LevelDbRecords { number, bytes, at: 0, record: Vec::new() }))
    }

    /// The number of the first entry; 0 if there is none, or it cannot be read.
    pub(super) fn first_sequence(&self) -> SequenceNumber {
        let mut records = Records::new(&self.bytes);
        let Ok(Some((record, _))) = records.next() else { return 0 };
        decode_batch(record).map_or(0, |batch| batch.sequence())
    }

    /// The next record and where it begins; `None` at the end.
    pub(super) fn next(&mut self, path: &Path) -> Result<Option<(u64, &[u8])>> {
        let mut records = Records::resume(&self.bytes, self.at);
        let Some((record, offset)) = records.next().map_err(|damage| corrupt(path, damage))? else {
            return Ok(None);
        };
        self.record.clear();
        self.record.extend_from_slice(record);
        self.at = records.at();
        Ok(Some((offset, &self.record)))
    }

    /// How they end.
    pub(super) fn end(self, path: &Path) -> Result<LogEnd> {
        let (mut records, mut offset) = (Records::resume(&self.bytes, self.at), self.at);
        while records.next().map_err(|damage| corrupt(path, damage))?.is_some() {
            offset = records.at();
        }
        let torn = "a record that was not written to its end, as after a crash";
        let rest = records.torn_at().map(|_| torn.to_string());
        Ok(LogEnd { offset: offset as u64, rest, ..LogEnd::default() })
    }
}

fn corrupt(path: &Path, damage: Damage) -> Error {
    Error::corruption(path, damage.offset, damage.what.text())
}
