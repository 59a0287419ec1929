//! What LevelDB's logs hold that is in no table yet.

use std::path::Path;

use crate::batch::{BatchRef, Record};
use crate::error::{Error, Result};
use crate::fs::{self, Fs};
use crate::key::{SequenceNumber, Trailer, trailer};
use crate::leveldb::decode_batch;
use crate::leveldb::directory::LevelDb;
use crate::leveldb::log::{Damage, Flaw, Records};

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

/// Reads a log. No record of it has a number below `next`, nor below that of one
/// before it; `next` is the lowest that the next log may begin with then.
///
/// # Errors
/// `Corruption` if there is damage before its end, which LevelDB would pass
/// over in silence, or if numbers go back; `Io`.
pub(super) fn read(fs: &dyn Fs, path: &Path, next: &mut SequenceNumber) -> Result<Log> {
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let mut log = Log { name, ..Log::default() };
    log.torn_at = visit(fs, path, next, &mut |record| {
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
    next: &mut SequenceNumber,
    visit: &mut dyn FnMut(&[u8]) -> Result<()>,
) -> Result<Option<u64>> {
    let bytes = fs::read_all(fs, path).map_err(|error| Error::io(path, "read", error))?;
    let mut records = Records::new(&bytes);
    loop {
        let (record, offset) = match records.next() {
            Ok(None) => return Ok(records.torn_at()),
            Ok(Some(found)) => found,
            Err(damage) if is_abandoned(&damage) => continue,
            Err(damage) => {
                return Err(Error::corruption(path, damage.offset, damage.what.text()));
            }
        };
        let wrong = |what: &str| Error::corruption(path, offset, what);
        let batch = decode_batch(record).map_err(|what| wrong(&what))?;
        if batch.sequence() < *next {
            return Err(wrong("sequence numbers go back"));
        }
        *next = batch.sequence() + u64::from(batch.sequence_count());
        visit(record)?;
    }
}

/// The newest number that an entry of a table may have: the manifest's last, unless the
/// logs, which hold what is newer than all tables, begin before that.
///
/// # Errors
/// `Io`. Damage is for whoever reads the logs.
pub(super) fn newest_in_tables(fs: &dyn Fs, database: &LevelDb) -> Result<SequenceNumber> {
    let newest = database.state.last_sequence;
    for (_, path) in &database.logs {
        let bytes = fs::read_all(fs, path).map_err(|error| Error::io(path, "read", error))?;
        let mut records = Records::new(&bytes);
        let first = loop {
            match records.next() {
                Ok(Some((record, _))) => break decode_batch(record).ok().map(|b| b.sequence()),
                Err(damage) if is_abandoned(&damage) => continue,
                Ok(None) | Err(_) => break None,
            }
        };
        if let Some(first) = first {
            return Ok(newest.min(first.saturating_sub(1)));
        }
    }
    Ok(newest)
}

/// True for the beginning of a record with another right behind it: a process was killed
/// before it had written all, and the next one went on in the same file (`reuse_logs`).
/// The record was never acknowledged, and nothing lies between the two.
fn is_abandoned(damage: &Damage) -> bool {
    matches!(damage.what, Flaw::WithoutEnd(_))
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
