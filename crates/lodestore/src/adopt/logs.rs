//! What LevelDB's logs hold that is in no table yet.

use std::path::Path;

use crate::batch::{BatchRef, Record};
use crate::error::{Error, Result};
use crate::fs::{self, Fs};
use crate::key::{Kind, SequenceNumber, Trailer, trailer};
use crate::leveldb::log::Records;

/// One entry of a log.
pub(super) type Entry = (Vec<u8>, Trailer, Vec<u8>);

/// What a log holds.
#[derive(Default)]
pub(super) struct Log {
    /// As they were written.
    pub(super) entries: Vec<Entry>,
    pub(super) last_sequence: SequenceNumber,
    /// Where a crash cut the file off in the middle of a record, if one did.
    pub(super) torn_at: Option<u64>,
    /// The file's name.
    pub(super) name: String,
}

/// Reads a log.
///
/// # Errors
/// `Corruption` if there is damage before its end, which LevelDB would pass
/// over in silence; `Io`.
pub(super) fn read(fs: &dyn Fs, path: &Path) -> Result<Log> {
    let bytes = fs::read_all(fs, path).map_err(|error| Error::io(path, "read", error))?;
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let (mut records, mut log) = (Records::new(&bytes), Log { name, ..Log::default() });
    loop {
        let next = records.next();
        let next =
            next.map_err(|damage| Error::corruption(path, damage.offset, damage.what.text()))?;
        let Some((record, offset)) = next else { break };
        log.take(record).map_err(|what| Error::corruption(path, offset, what))?;
    }
    log.torn_at = records.torn_at();
    Ok(log)
}

impl Log {
    fn take(&mut self, record: &[u8]) -> std::result::Result<(), String> {
        let batch = BatchRef::decode(record)?;
        let mut sequence = batch.sequence();
        for record in batch.records() {
            match record {
                Record::Entry { kind: kind @ (Kind::Put | Kind::Delete), key, value, .. } => {
                    self.entries.push((key.to_vec(), trailer(sequence, kind), value.to_vec()));
                    sequence += 1;
                }
                _ => return Err("a record of a kind that LevelDB does not have".to_string()),
            }
        }
        self.last_sequence = self.last_sequence.max(sequence.saturating_sub(1));
        Ok(())
    }
}
