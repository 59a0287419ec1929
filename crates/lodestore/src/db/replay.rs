//! Replaying the log when a database is opened.
//!
//! First everything is read and checked without consequences; then it is read
//! again into memtables, and those are written to tables, installed by one
//! edit. A crash anywhere in between changes nothing: the log is still there.

use std::path::{Path, PathBuf};

use crate::batch::{BatchRef, FamilyId, Record};
use crate::budget::Item;
use crate::error::{Error, Result};
use crate::filename;
use crate::fs::Fs;
use crate::key::{FileId, SequenceNumber};
use crate::memtable::Memtable;
use crate::stats::Counter;
use crate::sync::{Arc, Mutex};
use crate::version::manifest::Recovered;
use crate::version::{State, VersionEdit};
use crate::wal::{self, Access, Cut, DurableLog, Expected, Origin, Place, Predecessor, Recovery};

use super::commit::{ActiveMemtable, CommitState};
use super::engine::Engine;
use super::family::FamilyCore;
use super::logs::ActiveLog;
use super::open::log_files;

/// A log that was checked: what to read again, so that nothing else is found.
pub(crate) struct CheckedLog {
    directory: PathBuf,
    database: FileId,
    pub(crate) first_live: u64,
    durable: DurableLog,
    /// Also those that do not count: their headers bound the ones before them.
    segments: Vec<(u64, PathBuf)>,
    predecessor: Option<Predecessor>,
    /// Whether no batch is in it.
    pub(crate) is_empty: bool,
    cut: Option<Cut>,
}

impl CheckedLog {
    /// For reading it again.
    fn expected(&self) -> Expected<'_> {
        let CheckedLog { directory, database, first_live, durable, .. } = self;
        let (database, first_live, durable) = (*database, *first_live, *durable);
        Expected { directory, database, first_live, durable }
    }

    /// # Errors
    /// `Corruption` if what was `read` the second time ends elsewhere.
    fn check_same(&self, read: &Recovery) -> Result<()> {
        let again = read.as_predecessor();
        if again == self.predecessor {
            return Ok(());
        }
        let end = |log: Option<Predecessor>| log.map_or((0, 0), |log| (log.number, log.bytes));
        let ((number, first), (again_number, second)) = (end(self.predecessor), end(again));
        let path = filename::log_path(&self.directory, number);
        let what = format!(
            "read once, the log ends here; read again, in log {again_number} at {second}: \
             the device does not give the same bytes twice"
        );
        Err(Error::corruption(&path, first, what))
    }

    /// What was left out at the log's end, in words.
    pub(crate) fn note(&self) -> Option<String> {
        let Cut { path, offset, what } = self.cut.as_ref()?;
        Some(format!("{} ends at offset {offset}: {what}", path.display()))
    }
}

/// Reads the whole log and checks that it fits the manifest.
///
/// # Errors
/// `Corruption` if acknowledged records are damaged or missing, or if the
/// manifest is older than the log.
pub(crate) fn check(
    fs: &Arc<dyn Fs>,
    directory: &Path,
    manifest: &Recovered,
    access: Access,
) -> Result<CheckedLog> {
    let state = &manifest.state;
    let first_live = state.oldest_log_number().unwrap_or(0);
    let segments = log_files(&**fs, directory)?;
    let mut is_empty = true;
    let mut expected: Option<SequenceNumber> = None;
    let (database, durable) = (manifest.identity.database_id, state.durable_log);
    let known = Expected { directory, database, first_live, durable };
    let recovery = wal::recover(&**fs, known, &segments, access, &mut |place, payload| {
        let batch = decode(place, payload)?;
        is_empty = false;
        if expected.is_some_and(|expected| batch.sequence() < expected) {
            return Err(Error::corruption(place.path, place.offset, "sequence numbers go back"));
        }
        expected = Some(batch.sequence() + u64::from(batch.sequence_count()));
        batch.records().try_for_each(|record| check_record(place, state, record))
    })?;
    recovery.begun.iter().try_for_each(|origin| check_origin(origin, manifest))?;
    let predecessor = recovery.as_predecessor();
    let directory = directory.to_path_buf();
    Ok(CheckedLog {
        directory,
        database,
        first_live,
        durable,
        segments,
        predecessor,
        is_empty,
        cut: recovery.cut,
    })
}

fn decode<'a>(place: Place<'_>, payload: &'a [u8]) -> Result<BatchRef<'a>> {
    BatchRef::decode(payload).map_err(|undecodable| undecodable.at(place.path, place.offset))
}

/// Refuses a segment that does not belong to this manifest.
fn check_origin(origin: &Origin, manifest: &Recovered) -> Result<()> {
    let Origin { path, header, manifest_edit } = origin;
    let (number, identity) = (header.number, &manifest.identity);
    // Edits after the checkpoint were made in this manifest and in no other.
    let is_of_another = header.manifest_id != identity.id;
    if header.manifest_edit > manifest.checkpoint_edit && is_of_another {
        let what = format!(
            "log {number} was begun under manifest {}, but the one in use then was {}: \
             it is of a copy of this database, or the manifest is",
            header.manifest_id, identity.id
        );
        return Err(Error::corruption(path, 0, what));
    }
    if *manifest_edit > identity.edit {
        let what = format!(
            "log {number} knows of edit {manifest_edit} of the manifest, which ends at edit {}: \
             an older manifest was put back, or its end is lost",
            identity.edit
        );
        return Err(Error::corruption(path, 0, what));
    }
    Ok(())
}

/// Refuses an entry of a family that the manifest cannot have dropped.
fn check_record(place: Place<'_>, state: &State, record: Record<'_>) -> Result<()> {
    match record {
        Record::Entry { family, .. } if family.0 >= state.next_family_id => {
            let what = format!("family {} was never created", family.0);
            Err(Error::corruption(place.path, place.offset, what))
        }
        Record::Entry { .. } | Record::Opaque(_) | Record::Hint { .. } => Ok(()),
    }
}

/// Makes `state` one that needs none of the segments there are. It is what a new
/// manifest begins with where the log holds nothing: no edit has to say it then.
pub(crate) fn leave_behind(state: &mut State) {
    let next = state.next_file_number;
    state.families.values_mut().for_each(|family| family.log_number = next);
}

/// Replays into tables, where there is something to replay. The log goes on after
/// the segments that there are; the first write begins one.
pub(crate) fn into_tables(engine: &Arc<Engine>, log: &CheckedLog) -> Result<()> {
    let mut commit = engine.commit.lock();
    if !log.is_empty {
        install(engine, &mut commit, log)?;
    }
    engine.shared.visible.publish(commit.last_sequence);
    if engine.logging {
        commit.log = Some(ActiveLog::after(log.predecessor, &engine.logs.sealed));
        engine.logs.begin_after(commit.last_sequence);
    }
    Ok(())
}

/// Writes what the log holds to tables, and installs these.
fn install(engine: &Arc<Engine>, commit: &mut CommitState, log: &CheckedLog) -> Result<()> {
    let created = Mutex::new(Vec::new());
    let mut replay = Replay::new(engine, commit);
    let read = replay.run(log, &mut |replay| replay.write_full(&created));
    // Before the log is given up.
    let written = read.and_then(|read| log.check_same(&read));
    let written = written.and_then(|()| replay.write_all(&created));
    if let Err(error) = written {
        engine.remove_tables(&created.lock());
        return Err(error);
    }
    let mut edit = replay.edit;
    // Whatever the log held is in the tables of this edit.
    let next_log = engine.versions.new_file_number();
    for family in engine.families.load().all() {
        edit.log_numbers.push((family.id.0, next_log));
    }
    edit.last_sequence = Some(commit.last_sequence);
    engine.versions.apply(edit, |id, version| {
        if let Some(family) = engine.families.load().get(FamilyId(id)) {
            family.views.install(Arc::clone(version), &[]);
        }
    })
}

/// Replays into memtables only.
///
/// # Errors
/// `InvalidArgument` if they exceed their share of a limit on memory.
pub(crate) fn into_memtables(engine: &Arc<Engine>, log: &CheckedLog) -> Result<()> {
    let mut commit = engine.commit.lock();
    let mut replay = Replay::new(engine, &mut commit);
    let budget = engine.shared.memory.budget();
    // A process that writes may have made the log longer since it was checked.
    replay.run(log, &mut |_| {
        let (active, sealed) = budget.memtable_bytes();
        if active + sealed <= budget.memtable_share() {
            return Ok(());
        }
        Err(Error::invalid(
            "the log is too long to be read into the memory that is allowed: \
             open the database for writing once, or with more memory",
        ))
    })?;
    engine.shared.visible.publish(commit.last_sequence);
    Ok(())
}

struct Replay<'a> {
    engine: &'a Arc<Engine>,
    commit: &'a mut CommitState,
    edit: VersionEdit,
    /// The segment that was counted last as one that was replayed.
    counted: Option<u64>,
}

impl<'a> Replay<'a> {
    fn new(engine: &'a Arc<Engine>, commit: &'a mut CommitState) -> Replay<'a> {
        Replay { engine, commit, edit: VersionEdit::default(), counted: None }
    }

    /// Inserts every record that is in no table yet; calls `after` after each
    /// batch. What was read.
    fn run(
        &mut self,
        log: &CheckedLog,
        after: &mut dyn FnMut(&mut Self) -> Result<()>,
    ) -> Result<Recovery> {
        let fs = &self.engine.shared.fs;
        // Whether they may be written to was asked when they were checked.
        let access = Access::ReadOnly;
        let known = log.expected();
        wal::recover(&**fs, known, &log.segments, access, &mut |place, payload| {
            self.insert(place, decode(place, payload)?);
            after(self)
        })
    }

    fn insert(&mut self, place: Place<'_>, batch: BatchRef<'_>) {
        let mut sequence = batch.sequence();
        for record in batch.records() {
            if let Record::Entry { family, kind, key, value } = record {
                if self.is_wanted(family, place.number) {
                    self.count(place.number);
                    self.commit.insert(family, (sequence, kind), key, value);
                }
                sequence += 1;
            }
        }
        self.commit.last_sequence = self.commit.last_sequence.max(sequence.saturating_sub(1));
    }

    fn count(&mut self, segment: u64) {
        let statistics = &self.engine.shared.statistics;
        statistics.add(Counter::RecordsReplayed, 1);
        if self.counted.replace(segment) != Some(segment) {
            statistics.add(Counter::SegmentsReplayed, 1);
        }
    }

    /// False for records of dropped families and of families whose tables hold
    /// what this segment held.
    fn is_wanted(&self, family: FamilyId, segment: u64) -> bool {
        self.commit.memtable(family).is_some()
            && self.engine.versions.log_number(family.0).is_some_and(|first| segment >= first)
    }

    /// Writes memtables that are full to tables, or all of them if together
    /// they hold what may fill before a flush.
    fn write_full(&mut self, created: &Mutex<Vec<u64>>) -> Result<()> {
        let memory = &self.engine.shared.memory;
        if memory.used(Item::Memtables) >= memory.budget().memtable_share() / 2 {
            return self.write_all(created);
        }
        let full = std::mem::take(&mut self.commit.full);
        full.into_iter().try_for_each(|family| self.write(family, created))
    }

    fn write_all(&mut self, created: &Mutex<Vec<u64>>) -> Result<()> {
        self.commit.full.clear();
        let families = self.engine.family_ids();
        families.into_iter().try_for_each(|family| self.write(family, created))
    }

    /// Writes a family's memtable to a table and begins an empty one.
    fn write(&mut self, id: FamilyId, created: &Mutex<Vec<u64>>) -> Result<()> {
        let Some(active) = self.commit.memtable(id) else { return Ok(()) };
        if active.table.is_empty() {
            return Ok(());
        }
        let (family, full): (Arc<FamilyCore>, Arc<Memtable>) =
            (Arc::clone(&active.family), Arc::clone(&active.table));
        for meta in self.engine.write_memtable(&family, &full, created)? {
            self.edit.tables_added.push((id.0, 0, meta));
        }
        let (table, writer) = Memtable::new(family.order().clone(), &self.engine.shared.memory);
        family.views.begin(Arc::clone(&table));
        self.commit.put_memtable(ActiveMemtable::new(&family, table, writer));
        Ok(())
    }
}
