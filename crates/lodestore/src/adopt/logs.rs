//! What LevelDB's logs hold that is in no table yet.

use std::path::Path;

use crate::batch::{BatchRef, Record};
use crate::error::{Error, Result};
use crate::fs::{self, Fs};
use crate::key::{SequenceNumber, Trailer, trailer};
use crate::leveldb::decode_batch;
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
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let mut log = Log { name, ..Log::default() };
    log.torn_at = visit(fs, path, &mut |record| {
        log.take(&decode_batch(record).expect("it was visited because it can be decoded"));
        Ok(())
    })?;
    Ok(log)
}

/// Gives every record of a log to `visit`, each of which is a batch as ours are.
/// Returns where a crash cut the file off in the middle of a record, if one did.
///
/// # Errors
/// Those of [`read`], and of `visit`.
pub(super) fn visit(
    fs: &dyn Fs,
    path: &Path,
    visit: &mut dyn FnMut(&[u8]) -> Result<()>,
) -> Result<Option<u64>> {
    let bytes = fs::read_all(fs, path).map_err(|error| Error::io(path, "read", error))?;
    let mut records = Records::new(&bytes);
    loop {
        let next = records.next();
        let next =
            next.map_err(|damage| Error::corruption(path, damage.offset, damage.what.text()))?;
        let Some((record, offset)) = next else { return Ok(records.torn_at()) };
        decode_batch(record).map_err(|what| Error::corruption(path, offset, what))?;
        visit(record)?;
    }
}

impl Log {
    fn take(&mut self, batch: &BatchRef<'_>) {
        let mut sequence = batch.sequence();
        for record in batch.records() {
            let Record::Entry { kind, key, value, .. } = record else { continue };
            self.entries.push((key.to_vec(), trailer(sequence, kind), value.to_vec()));
            sequence += 1;
        }
        self.last_sequence = self.last_sequence.max(sequence.saturating_sub(1));
    }
}
