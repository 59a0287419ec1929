//! The log's segments: the one being written, the ones that still matter, and
//! the ones whose files can be used again.
//!
//! Invariant: a segment's file is given up only when no family needs it, by a
//! durable manifest, and no pin keeps it.

use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;

use crate::batch::WriteBatch;
use crate::error::{Error, Result};
use crate::filename;
use crate::fs::Fs;
use crate::key::{FileId, SEQUENCE_MAX, SequenceNumber};
use crate::options::WriteOptions;
use crate::record::Failure;
use crate::stats::Counter;
use crate::sync::atomic::Ordering;
use crate::sync::{Arc, Mutex};
use crate::version::VersionEdit;
use crate::wal::{DurableLog, Predecessor, Room, SegmentHeader, SegmentWriter};

use super::commit::CommitState;
use super::engine::Engine;
use super::sealed::SealedSegments;
use super::stalls;
use super::updates::LogPin;

/// Files of retired segments that wait to be used again: a sync of one is the
/// faster, and so is a write.
const SPARES_MAX: usize = 2;

/// At rest and without syncs they take no more than this part of what all tables do.
const SPARES_PART: u64 = 32;

/// Sealed segments that are kept open because they may not be durable yet;
/// the oldest beyond these are synced, so that descriptors suffice.
const SEALED_OPEN_MAX: usize = 8;

/// The writing end of the log.
pub(crate) struct ActiveLog {
    /// `None` after a segment was sealed and before the next one exists.
    writer: Option<SegmentWriter>,
    older: Arc<SealedSegments>,
    /// The newest sealed segment.
    predecessor: Option<Predecessor>,
    /// The last edit of the manifest that the log knows of.
    noted_edit: u64,
    /// How far the manifest knows it to be durable.
    named: DurableLog,
}

impl ActiveLog {
    /// A log that goes on after `predecessor`, if there was one. What it seals
    /// goes to `older`.
    pub(crate) fn after(
        predecessor: Option<Predecessor>,
        older: &Arc<SealedSegments>,
    ) -> ActiveLog {
        let older = Arc::clone(older);
        ActiveLog { writer: None, older, predecessor, noted_edit: 0, named: DurableLog::default() }
    }

    /// True if the next record needs a new segment.
    #[inline]
    pub(crate) fn must_rotate(&self) -> bool {
        self.writer.as_ref().is_none_or(|writer| writer.poison().is_some())
    }

    /// The segment being written.
    pub(crate) fn number(&self) -> u64 {
        self.writer.as_ref().map_or(0, |writer| writer.header().number)
    }

    /// Where the newest segment ends. If the next one could not be begun, that
    /// is the one sealed last.
    pub(crate) fn bytes(&self) -> u64 {
        let sealed = self.predecessor.map_or(0, |sealed| sealed.bytes);
        self.writer.as_ref().map_or(sealed, SegmentWriter::bytes)
    }

    /// True if there is nothing in it that a sync would keep.
    fn is_empty(&self) -> bool {
        self.older.is_empty() && self.writer.as_ref().is_none_or(SegmentWriter::is_empty)
    }

    /// Lets the log know how far the manifest has come.
    fn note_edit(&mut self, edit: u64) -> std::result::Result<(), Failure> {
        if let Some(writer) = self.writer.as_mut().filter(|_| edit > self.noted_edit) {
            writer.note_manifest_edit(edit)?;
            self.noted_edit = edit;
        }
        Ok(())
    }

    /// How far the segment being written survives power loss.
    fn durable(&self) -> Option<DurableLog> {
        self.writer.as_ref().map(SegmentWriter::durable).filter(|durable| durable.bytes > 0)
    }

    /// Makes everything in the log survive power loss. Segments below
    /// `needed_from` do not matter any more.
    fn sync(&mut self, needed_from: u64) -> Result<()> {
        self.sync_older(needed_from)?;
        match &mut self.writer {
            Some(writer) => writer.sync().map_err(Failure::into_error),
            None => Ok(()),
        }
    }

    /// Makes the sealed segments durable, so that the one being written may be.
    fn sync_older(&mut self, needed_from: u64) -> Result<()> {
        self.older.forget_below(needed_from);
        self.older.sync_below(u64::MAX)?;
        match &mut self.writer {
            Some(writer) => writer.predecessors_are_durable().map_err(Failure::into_error),
            None => Ok(()),
        }
    }

    /// Gives back the room that the segment being written has behind its last record.
    pub(crate) fn give_room_back(&mut self) {
        if let Some(writer) = &mut self.writer {
            writer.give_room_back();
        }
    }

    /// Ends the segment being written.
    fn seal(&mut self) -> Option<Predecessor> {
        if let Some(writer) = self.writer.take() {
            let sealed = writer.seal();
            self.predecessor = Some(sealed.as_predecessor());
            self.older.push(sealed);
        }
        self.predecessor
    }
}

/// The segments of a database, shared by writers, flushes and readers.
pub(crate) struct Logs {
    fs: Arc<dyn Fs>,
    directory: PathBuf,
    pub(crate) sealed: Arc<SealedSegments>,
    state: Mutex<LogsState>,
}

#[derive(Default)]
struct LogsState {
    /// Ascending; the last is being written.
    live: VecDeque<LiveSegment>,
    /// Retired files that may be overwritten.
    spares: Vec<PathBuf>,
    /// Sequence number -> how many pins keep the log from there on.
    pins: BTreeMap<SequenceNumber, usize>,
    /// The first sequence number that is written here: until then there is no segment.
    /// `None` where none is written at all.
    opened_at: Option<SequenceNumber>,
    /// Segments below this matter to no family.
    needed_from: u64,
    /// The file of a segment below this is not used again.
    trusted_from: u64,
    /// Sequence numbers of ingested tables, which no log holds: first and last
    /// of each call, ascending. Those before the oldest segment are forgotten.
    gaps: VecDeque<(SequenceNumber, SequenceNumber)>,
}

#[derive(Clone, Copy)]
struct LiveSegment {
    number: u64,
    first_sequence: SequenceNumber,
    /// Where it ends, once it is sealed.
    sealed_bytes: Option<u64>,
}

/// A segment that a reader of the log is to read.
#[derive(Clone, Debug)]
pub(crate) struct SegmentPlace {
    pub(crate) number: u64,
    pub(crate) path: PathBuf,
    /// Where it ends, if it is sealed.
    pub(crate) sealed_bytes: Option<u64>,
}

impl Logs {
    pub(crate) fn new(fs: &Arc<dyn Fs>, directory: PathBuf) -> Logs {
        Logs { fs: Arc::clone(fs), directory, sealed: Arc::default(), state: Mutex::default() }
    }

    /// A retired file to write the next segment over, if there is one.
    fn take_spare(&self) -> Option<PathBuf> {
        self.state.lock().spares.pop()
    }

    fn begin(&self, number: u64, first_sequence: SequenceNumber, sealed: Option<Predecessor>) {
        let mut state = self.state.lock();
        if let (Some(last), Some(sealed)) = (state.live.back_mut(), sealed) {
            last.sealed_bytes = Some(sealed.bytes);
        }
        state.live.push_back(LiveSegment { number, first_sequence, sealed_bytes: None });
    }

    /// The log goes on after `last`.
    pub(crate) fn begin_after(&self, last: SequenceNumber) {
        self.state.lock().opened_at = Some(SEQUENCE_MAX.min(last + 1));
    }

    /// Removes files that were kept to be used again, all but `count`. Locked meanwhile:
    /// whoever closes the database must find them gone, since the next one in the
    /// directory may have files of these names.
    pub(crate) fn keep_spares(&self, count: usize) {
        let mut state = self.state.lock();
        let kept = count.min(state.spares.len());
        for path in state.spares.drain(kept..) {
            // What stays behind is removed by the next open.
            let _ = self.fs.remove(&path);
        }
    }

    /// Closes sealed segments that nobody needs: removed ones take room until then.
    pub(crate) fn close_retired(&self) {
        self.sealed.forget_below(self.needed_from());
    }

    /// Bytes of the sealed segments that still matter.
    pub(crate) fn sealed_bytes(&self) -> u64 {
        self.state.lock().live.iter().filter_map(|segment| segment.sealed_bytes).sum()
    }

    /// Gives up segments below `needed_from`, up to the first that a pin keeps.
    pub(crate) fn retire(&self, needed_from: u64) {
        let mut removed = Vec::new();
        {
            let mut state = self.state.lock();
            state.needed_from = state.needed_from.max(needed_from);
            while let Some(number) = state.retirable() {
                state.live.pop_front();
                let path = filename::log_path(&self.directory, number);
                let is_trusted = number >= state.trusted_from;
                let has_place = state.spares.len() < SPARES_MAX;
                if is_trusted && has_place && self.fs.capabilities().overwriting {
                    state.spares.push(path);
                } else {
                    removed.push(path);
                }
            }
            let kept_from = state.live.front().map_or(0, |segment| segment.first_sequence);
            while state.gaps.front().is_some_and(|&(_, last)| last < kept_from) {
                state.gaps.pop_front();
            }
        }
        for path in removed {
            // What stays behind is removed by the next open.
            let _ = self.fs.remove(&path);
        }
    }

    /// The sync of some live segment has failed: none of their files is synced
    /// again, not even when it is written over from its start. Nor those that wait
    /// for that: a flush may have retired one since.
    pub(crate) fn distrust_live(&self) {
        let mut state = self.state.lock();
        state.trusted_from = state.live.back().map_or(0, |segment| segment.number + 1);
        drop(state);
        self.keep_spares(0);
    }

    fn needed_from(&self) -> u64 {
        self.state.lock().needed_from
    }

    /// Notes that the log holds nothing from `first` to `last`.
    pub(crate) fn add_gap(&self, first: SequenceNumber, last: SequenceNumber) {
        self.state.lock().gaps.push_back((first, last));
    }

    /// The gaps that end at `sequence` or later.
    pub(crate) fn gaps_since(
        &self,
        sequence: SequenceNumber,
    ) -> VecDeque<(SequenceNumber, SequenceNumber)> {
        let state = self.state.lock();
        state.gaps.iter().copied().filter(|&(_, last)| last >= sequence).collect()
    }

    /// Keeps the log from `sequence` on until the pin goes.
    pub(crate) fn pin(&self, engine: &Arc<Engine>, sequence: SequenceNumber) -> LogPin {
        self.add_pin(sequence);
        LogPin { sequence, engine: Arc::downgrade(engine) }
    }

    fn add_pin(&self, sequence: SequenceNumber) {
        *self.state.lock().pins.entry(sequence).or_default() += 1;
    }

    pub(crate) fn unpin(&self, sequence: SequenceNumber) {
        let mut state = self.state.lock();
        let count = state.pins.get_mut(&sequence).expect("a pin is listed while it lives");
        *count -= 1;
        if *count == 0 {
            state.pins.remove(&sequence);
        }
    }

    /// The first sequence number that the log still has, and the segments that
    /// hold `sequence` and what follows.
    pub(crate) fn segments_since(
        &self,
        sequence: SequenceNumber,
    ) -> (SequenceNumber, Vec<SegmentPlace>) {
        let state = self.state.lock();
        let first = state.live.front().map(|segment| segment.first_sequence);
        let kept_from = first.or(state.opened_at).unwrap_or(SequenceNumber::MAX);
        // A segment is of interest unless the next one begins at or below.
        let passed = state.live.iter().skip(1).take_while(|s| s.first_sequence <= sequence).count();
        let place = |segment: &LiveSegment| SegmentPlace {
            number: segment.number,
            path: filename::log_path(&self.directory, segment.number),
            sealed_bytes: segment.sealed_bytes,
        };
        (kept_from, state.live.iter().skip(passed).map(place).collect())
    }

    /// Numbers of all live segments, and where the sealed ones end.
    pub(crate) fn live(&self) -> Vec<SegmentPlace> {
        self.segments_since(0).1
    }
}

impl LogsState {
    /// The oldest segment, if nothing keeps it.
    fn retirable(&self) -> Option<u64> {
        let (oldest, next) = (self.live.front()?, self.live.get(1)?);
        let is_pinned = self.pins.keys().next().is_some_and(|&pin| pin < next.first_sequence);
        (oldest.number < self.needed_from && !is_pinned).then_some(oldest.number)
    }
}

impl Engine {
    /// Begins a new segment.
    ///
    /// # Errors
    /// `Io`: nothing is lost, and the next write tries again.
    pub(crate) fn rotate_log(&self, commit: &mut CommitState) -> Result<()> {
        self.versions.begin_own()?;
        let number = self.versions.new_file_number();
        let manifest = self.versions.manifest();
        let first_sequence = SEQUENCE_MAX.min(commit.last_sequence + 1);
        let log = commit.log.as_mut().expect("logging is on");
        // Without synced writes nothing else closes them before it is at rest.
        self.logs.close_retired();
        let surplus = log.older.sync_all_but(SEALED_OPEN_MAX);
        surplus.inspect_err(|error| self.health.take(error))?;
        let predecessor = log.seal();
        let header = SegmentHeader {
            number,
            id: FileId(self.shared.scheduler.random_u128()),
            database: manifest.database_id,
            manifest_id: manifest.id,
            manifest_edit: manifest.edit,
            first_sequence,
            predecessor,
            short_records: true,
        };
        let fs = &self.shared.fs;
        let path = filename::log_path(&self.shared.directory, number);
        let spare = self.logs.take_spare();
        let room_bytes = self.options.lock().family.memtable_bytes as u64;
        let room = match spare {
            _ if self.log_mapped => Room::Mapped(room_bytes),
            Some(_) => Room::AsNeeded,
            None => Room::Ahead(room_bytes),
        };
        let writer = SegmentWriter::create(fs, &path, &header, spare.as_deref(), room)?;
        if spare.is_some() {
            self.shared.statistics.add(Counter::LogSegmentsRecycled, 1);
        }
        log.writer = Some(writer);
        log.noted_edit = manifest.edit;
        self.log_bytes.store(0, Ordering::Relaxed);
        self.logs.begin(number, first_sequence, predecessor);
        Ok(())
    }

    /// How many files of old segments are worth their room once nothing is written.
    pub(crate) fn spares_at_rest_max(&self) -> usize {
        if self.shared.statistics.get(Counter::LogSyncs) > 0 {
            return SPARES_MAX;
        }
        let families = self.families.load();
        let versions = families.all().filter_map(|family| self.versions.current(family.id.0));
        let tables: u64 = versions.map(|version| version.bytes()).sum();
        let segment = self.options.lock().family.memtable_bytes.max(1) as u64;
        SPARES_MAX.min((tables / SPARES_PART / segment) as usize)
    }

    /// Appends a batch to the log and, if wanted, makes the log durable.
    pub(crate) fn append_to_log(
        &self,
        commit: &mut CommitState,
        options: WriteOptions,
        batch: &WriteBatch,
    ) -> Result<()> {
        let begin = options.sync.then(|| self.shared.scheduler.now());
        let bytes_before = commit.log.as_ref().map_or(0, ActiveLog::bytes);
        let appended = self.append_and_sync(commit, options, batch);
        let bytes = commit.log.as_ref().map_or(0, ActiveLog::bytes);
        self.log_bytes.store(bytes, Ordering::Relaxed);
        self.shared.statistics.add(Counter::LogBytes, bytes.saturating_sub(bytes_before));
        if let Some(begin) = begin {
            let end = self.shared.scheduler.now();
            if end.saturating_sub(begin) >= stalls::LONG {
                let who = format!("a synced write of {} bytes waited for the log", batch.bytes());
                self.note_log_wait(begin, end, &who);
            }
        }
        appended
    }

    fn append_and_sync(
        &self,
        commit: &mut CommitState,
        options: WriteOptions,
        batch: &WriteBatch,
    ) -> Result<()> {
        let log = commit.log.as_mut().expect("logging is on");
        let statistics = &self.shared.statistics;
        if options.sync {
            statistics.add(Counter::LogSyncs, 1);
            let needed_from = self.logs.needed_from();
            log.sync_older(needed_from).inspect_err(|error| self.health.take(error))?;
        }
        let noted = log.note_edit(self.versions.last_edit());
        noted.map_err(|failure| self.take_log_failure(failure))?;
        let writer = log.writer.as_mut().expect("a segment was begun");
        let appended = match options.sync {
            true => writer.append_and_sync(batch.as_bytes()),
            false => writer.append(batch.as_bytes()),
        };
        appended.map_err(|failure| self.take_log_failure(failure))?;
        if options.sync
            && log.named.number < log.number()
            && let Err(error) = self.name_durable_log(log)
        {
            // The batch is durable, so its write succeeds: its numbers are taken.
            // The next sync tries again, unless nothing may be written any more.
            self.health.take(&error);
        }
        Ok(())
    }

    /// Lets the manifest know how far the log is durable: no later segment
    /// would tell if its newest one were lost. Asked for at a segment's first
    /// sync only, and when the database is closed.
    fn name_durable_log(&self, log: &mut ActiveLog) -> Result<()> {
        let Some(durable) = log.durable().filter(|durable| *durable != log.named) else {
            return Ok(());
        };
        let edit = VersionEdit { durable_log: Some(durable), ..VersionEdit::default() };
        self.versions.apply(edit, |_, _| {})?;
        log.named = durable;
        Ok(())
    }

    /// Makes the whole log durable, and the manifest know that. Nothing is
    /// appended to it afterwards.
    pub(crate) fn close_log(&self, commit: &mut CommitState) -> Result<()> {
        // After a failure nothing is known of either.
        self.health.check()?;
        if commit.log.as_ref().is_some_and(|log| !log.is_empty()) {
            self.sync_last_records(commit)?;
        }
        if let Some(log) = &mut commit.log {
            log.give_room_back();
        }
        Ok(())
    }

    /// [`ActiveLog::give_room_back`], unless a writer is at work: that one is not waited
    /// for.
    pub(crate) fn give_log_room_back(&self) {
        if let Some(mut commit) = self.commit.try_lock()
            && let Some(log) = &mut commit.log
        {
            log.give_room_back();
        }
    }

    fn sync_last_records(&self, commit: &mut CommitState) -> Result<()> {
        if let Some(log) = &mut commit.log {
            log.note_edit(self.versions.last_edit()).map_err(Failure::into_error)?;
        }
        self.sync_commit_log(commit)?;
        match &mut commit.log {
            Some(log) => self.name_durable_log(log),
            None => Ok(()),
        }
    }

    /// A record that was cut off again, or a full disk, is this writer's
    /// failure only. Otherwise nobody knows what the log holds.
    fn take_log_failure(&self, failure: Failure) -> Error {
        if let Failure::Poisoned(error) = &failure {
            self.health.take(error);
        }
        failure.into_error()
    }

    /// Makes all writes up to now survive power loss.
    pub(crate) fn sync_log(&self) -> Result<()> {
        if !self.logging {
            return Err(Error::invalid("there is no log to sync: logging is off, use flush"));
        }
        let mut commit = self.commit.lock();
        self.health.check()?;
        self.sync_commit_log(&mut commit).inspect_err(|error| self.health.take(error))
    }

    pub(crate) fn sync_commit_log(&self, commit: &mut CommitState) -> Result<()> {
        let needed_from = self.logs.needed_from();
        self.shared.statistics.add(Counter::LogSyncs, 1);
        let Some(log) = &mut commit.log else { return Ok(()) };
        log.sync(needed_from)?;
        if log.named.number < log.number() {
            self.name_durable_log(log)?;
        }
        Ok(())
    }
}

#[cfg(all(test, simulation))]
mod simulation;
