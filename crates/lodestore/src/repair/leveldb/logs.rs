//! The logs of a damaged LevelDB database, record by record.

use std::path::{Path, PathBuf};

use crate::batch::{BatchRef, Record};
use crate::error::{Error, Result};
use crate::fs::{self, Fs};
use crate::key::{SequenceNumber, Trailer, trailer};
use crate::leveldb::decode_batch;
use crate::leveldb::log::Records;
use crate::leveldb::names::LevelDbFile;

use super::Loss;
use super::guide::Guide;

/// The logs that count, oldest first.
#[derive(Default)]
pub(super) struct Logs {
    pub(super) list: Vec<FoundLog>,
    pub(super) entries: u64,
    /// The number of the first entry.
    pub(super) first_sequence: Option<SequenceNumber>,
    pub(super) last_sequence: SequenceNumber,
    pub(super) losses: Vec<Loss>,
    pub(super) notes: Vec<String>,
}

pub(super) struct FoundLog {
    pub(super) number: u64,
    pub(super) name: String,
    path: PathBuf,
    /// The newest number in the logs before it.
    after: SequenceNumber,
}

/// One entry of a log.
pub(super) type Entry = (Vec<u8>, Trailer, Vec<u8>);

impl Logs {
    /// Reads the logs that the manifest names or, if it is damaged, all.
    pub(super) fn read(
        fs: &dyn Fs,
        directory: &Path,
        files: &[(String, LevelDbFile)],
        guide: &Guide,
    ) -> Result<Logs> {
        let mut logs = Logs::default();
        for (name, kind) in files {
            let LevelDbFile::Log(number) = *kind else { continue };
            if !guide.is_exact() || guide.state.needs_log(number) {
                let (name, path) = (name.clone(), directory.join(name));
                logs.list.push(FoundLog { number, name, path, after: 0 });
            }
        }
        logs.list.sort_by_key(|log| log.number);
        for log in std::mem::take(&mut logs.list) {
            let log = FoundLog { after: logs.last_sequence, ..log };
            logs.examine(fs, &log)?;
            logs.list.push(log);
        }
        Ok(logs)
    }

    /// Reads a log for what is in it, and what is missing.
    fn examine(&mut self, fs: &dyn Fs, log: &FoundLog) -> Result<()> {
        let (mut first_sequence, mut last) = (None, log.after);
        let (mut entries, mut losses, mut open) = (0, Vec::new(), Vec::<Loss>::new());
        let torn_at = log.visit(fs, &mut |met| {
            match met {
                Met::Batch(_, batch) => {
                    let first = batch.sequence();
                    losses.extend(open.drain(..).map(|loss| until(loss, first)));
                    let count = batch.records().filter(Record::takes_sequence).count() as u64;
                    last = last_number(&batch);
                    first_sequence.get_or_insert(first);
                    entries += count;
                }
                Met::Damage(offset, what) => {
                    let what = format!("at offset {offset}: {what}");
                    let (file, sequences) = (log.name.clone(), Some((last + 1, None)));
                    open.push(Loss { file, what, sequences, deletes: true, ..Loss::default() });
                }
            }
            Ok(())
        })?;
        self.losses.extend(losses.into_iter().chain(open));
        self.entries += entries;
        self.first_sequence = self.first_sequence.or(first_sequence);
        self.last_sequence = self.last_sequence.max(last);
        self.notes.extend(torn_at.map(|at| {
            let what = "ends in the middle of a record, as after a crash: it is left out";
            format!("{} {what} (byte {at})", log.name)
        }));
        Ok(())
    }
}

/// The number of the last entry, or of the one before if it has none.
fn last_number(batch: &BatchRef<'_>) -> SequenceNumber {
    let count = batch.records().filter(Record::takes_sequence).count() as u64;
    (batch.sequence() + count).saturating_sub(1)
}

/// What was lost ends before the entry with the number `first`.
fn until(loss: Loss, first: SequenceNumber) -> Loss {
    let sequences = loss.sequences.map(|(from, _)| (from, Some(first.saturating_sub(1))));
    Loss { sequences, ..loss }
}

/// What is met in a log.
pub(super) enum Met<'r> {
    /// A record that is sound, and the batch that it holds.
    Batch(&'r [u8], BatchRef<'r>),
    /// Where something is damaged, and what.
    Damage(u64, String),
}

impl FoundLog {
    /// Gives all that is in it to `visit`. Returns where a crash cut it off in the
    /// middle of a record, if one did.
    pub(super) fn visit(
        &self,
        fs: &dyn Fs,
        visit: &mut dyn FnMut(Met<'_>) -> Result<()>,
    ) -> Result<Option<u64>> {
        let file = fs::read_all(fs, &self.path);
        let file = file.map_err(|error| Error::io(&self.path, "read", error))?;
        let (mut records, mut last) = (Records::salvage(&file), self.after);
        loop {
            match records.next() {
                Ok(None) => return Ok(records.torn_at()),
                Ok(Some((record, offset))) => match decode_batch(record) {
                    Ok(batch) if batch.sequence() > last => {
                        last = last_number(&batch);
                        visit(Met::Batch(record, batch))?;
                    }
                    Ok(_) => {
                        let what = "its number was given out before".to_string();
                        visit(Met::Damage(offset, what))?;
                    }
                    Err(what) => visit(Met::Damage(offset, what))?,
                },
                Err(damage) => {
                    visit(Met::Damage(damage.offset, damage.what.text().to_string()))?;
                }
            }
        }
    }

    /// All entries that can be read, as they were written.
    pub(super) fn entries(&self, fs: &dyn Fs) -> Result<Vec<Entry>> {
        let mut entries = Vec::new();
        self.visit(fs, &mut |met| {
            let Met::Batch(_, batch) = met else { return Ok(()) };
            let mut sequence = batch.sequence();
            for record in batch.records() {
                let Record::Entry { kind, key, value, .. } = record else { continue };
                entries.push((key.to_vec(), trailer(sequence, kind), value.to_vec()));
                sequence += 1;
            }
            Ok(())
        })?;
        Ok(entries)
    }

    /// A log of the records that can be read; empty if there are none.
    pub(super) fn cleaned(&self, fs: &dyn Fs) -> Result<Vec<u8>> {
        let mut file = Vec::new();
        self.visit(fs, &mut |met| {
            if let Met::Batch(record, _) = met {
                crate::leveldb::log::append(&mut file, record);
            }
            Ok(())
        })?;
        Ok(file)
    }
}
