//! The engine of one open database: everything that its handles share.

use std::time::Duration;

use crate::batch::{FamilyId, WriteBatch};
use crate::error::{Error, Result};
use crate::events::Event;
use crate::fs::{FileLock, LimitedFs};
use crate::key::SequenceNumber;
use crate::limiter::Tenant;
use crate::memtable::{Memtable, give_back_kept};
use crate::options::Options;
use crate::sync::atomic::{AtomicBool, AtomicU64};
use crate::sync::{Arc, Mutex, Published};
use crate::versions::Versions;

use super::admission::Patience;
use super::background::Background;
use super::commit::{ActiveMemtable, CommitState};
use super::family::{Families, FamilyCore, Shared};
use super::flush::SealGroup;
use super::health::Health;
use super::logs::Logs;
use super::options_file::OptionsFiles;
use super::publish::Publisher;
use super::queue::CommitQueue;
use super::stalls::StallLog;

/// One open database.
///
/// Locks, in the order in which they may be taken while another is held:
/// the publisher's thread, then `commit`, then `background`, then
/// `options_files`, `options`, and those inside `versions`, `logs`, a family's
/// views and its pacer, the limiter.
pub(crate) struct Engine {
    /// What holds now, but for families: each has its own.
    pub(crate) options: Mutex<Options>,
    pub(crate) logging: bool,
    pub(crate) log_mapped: bool,
    /// [`Options::log_bytes_max`], for those who come by often.
    pub(crate) log_bytes_max: AtomicU64,
    /// The cap on open files.
    pub(crate) file_limit: LimitedFs,
    pub(crate) options_files: Mutex<OptionsFiles>,
    pub(crate) shared: Arc<Shared>,
    pub(crate) families: Published<Families>,
    pub(crate) queue: CommitQueue,
    pub(crate) commit: Mutex<CommitState>,
    pub(crate) background: Background,
    pub(crate) versions: Versions,
    pub(crate) logs: Logs,
    pub(crate) health: Health,
    /// True while some family's writers must ask before they write.
    pub(crate) is_pressed: AtomicBool,
    /// Length of the log segment being written.
    pub(crate) log_bytes: AtomicU64,
    pub(crate) stalls: StallLog,
    /// When memory was given back last.
    pub(crate) memory_given_back: Mutex<Duration>,
    /// Tells other processes how the database is.
    pub(crate) publisher: Publisher,
    /// Limits what flushes and compactions write.
    pub(crate) limiter: Arc<Tenant>,
    /// Held while the database is open; `None` for read-only openers.
    pub(crate) lock: Mutex<Option<Box<dyn FileLock>>>,
    pub(crate) read_only: bool,
    /// What opening had to leave out, in words: ends of files that were never
    /// acknowledged as durable.
    pub(crate) recovery: Vec<String>,
}

impl Engine {
    /// Makes sure that a commit can go on: writing has not failed, the log
    /// takes records, and full memtables are replaced by new ones as far as
    /// their families have room. Where there is none, `admission` keeps writers
    /// away until there is: those that it let in before go on in the full one.
    #[inline]
    pub(crate) fn prepare(self: &Arc<Self>, commit: &mut CommitState) -> Result<()> {
        self.check_writable()?;
        self.keep_to_budget(commit);
        if !commit.full.is_empty() {
            self.seal_full(commit)?;
        }
        // Many families may fill one segment long before any of them is full.
        if commit.log.as_ref().is_some_and(|log| log.bytes() > self.log_bytes_max()) {
            self.seal_laggards(commit)?;
        }
        if commit.log.as_ref().is_some_and(|log| log.must_rotate()) {
            self.rotate_log(commit)?;
        }
        Ok(())
    }

    /// # Errors
    /// `ReadOnly` after a failure, or if it was opened for reading.
    #[inline]
    pub(crate) fn check_writable(&self) -> Result<()> {
        self.health.check()?;
        if self.read_only {
            let cause = Box::new(Error::invalid("the database was opened for reading only"));
            return Err(Error::ReadOnly { cause });
        }
        Ok(())
    }

    fn seal_full(self: &Arc<Self>, commit: &mut CommitState) -> Result<()> {
        let has_room = |id: &&FamilyId| commit.memtable(**id).is_some_and(|m| m.family.has_room());
        let full: Vec<FamilyId> = commit.full.iter().filter(has_room).copied().collect();
        if full.is_empty() {
            return Ok(());
        }
        self.seal(commit, &full)?;
        self.seal_laggards(commit)
    }

    /// Replaces the memtables of `families` by empty ones and queues the old
    /// ones for flushing. `None` if there was nothing in them.
    ///
    /// With logging off, all families are sealed together: what a flush makes
    /// durable is then one state of the whole database.
    pub(crate) fn seal(
        self: &Arc<Self>,
        commit: &mut CommitState,
        families: &[FamilyId],
    ) -> Result<Option<Arc<SealGroup>>> {
        let wanted = |active: &&ActiveMemtable| {
            !active.table.is_empty() && (!self.logging || families.contains(&active.family.id))
        };
        let members: Vec<(Arc<FamilyCore>, Arc<Memtable>)> = commit
            .memtables()
            .iter()
            .filter(wanted)
            .map(|active| (Arc::clone(&active.family), Arc::clone(&active.table)))
            .collect();
        if members.is_empty() {
            return Ok(None);
        }
        // What a family has in sealed memtables does not count: those are
        // flushed before these.
        let stays = |active: &ActiveMemtable| !active.table.is_empty() && !wanted(&active);
        let others_in_log = commit.memtables().iter().any(stays);
        // Entries from here on are in later segments.
        if self.logging {
            self.rotate_log(commit)?;
        }
        let log_number = commit.log.as_ref().map_or(0, |log| log.number());
        let idle: Vec<FamilyId> = commit
            .memtables()
            .iter()
            .filter(|active| {
                active.table.is_empty() && active.family.views.load().sealed.is_empty()
            })
            .map(|active| active.family.id)
            .collect();
        commit.full.retain(|id| !members.iter().any(|(family, _)| family.id == *id));
        for (family, _) in &members {
            let (table, writer) = Memtable::new(family.order().clone(), &self.shared.memory);
            family.views.seal(Arc::clone(&table));
            commit.put_memtable(ActiveMemtable::new(family, table, writer));
        }
        let awaited = Arc::new(self.shared.memory.budget().begin_flush());
        let group =
            Arc::new(SealGroup { members, log_number, others_in_log, idle, _awaited: awaited });
        self.queue_flush(Arc::clone(&group));
        Ok(Some(group))
    }

    /// Seals families that keep old log segments alive once the log as a whole
    /// is too long.
    fn seal_laggards(self: &Arc<Self>, commit: &mut CommitState) -> Result<()> {
        let live_bytes = commit.log.as_ref().map_or(0, |log| log.bytes());
        if self.logs.sealed_bytes() + live_bytes <= self.log_bytes_max() {
            return Ok(());
        }
        // A family with nothing in memory keeps no segment: it moves along.
        let in_memory = commit.memtables().iter().filter(|active| !active.table.is_empty());
        let log_numbers: Vec<(FamilyId, Option<u64>)> = in_memory
            .map(|active| (active.family.id, self.versions.log_number(active.family.id.0)))
            .collect();
        let oldest = log_numbers.iter().map(|&(_, number)| number).min();
        let laggards: Vec<FamilyId> = log_numbers
            .into_iter()
            .filter(|(_, number)| Some(*number) == oldest)
            .map(|(id, _)| id)
            .filter(|id| commit.memtable(*id).is_some_and(|m| m.family.has_room()))
            .collect();
        if laggards.is_empty() {
            return Ok(());
        }
        self.seal(commit, &laggards).map(|_| ())
    }

    /// Flushes the memtables of `families` and waits for it.
    pub(crate) fn flush(self: &Arc<Self>, families: &[FamilyId]) -> Result<()> {
        {
            let mut commit = self.commit.lock();
            self.prepare(&mut commit)?;
            self.seal(&mut commit, families)?;
        }
        // Groups are installed in order: when none of now is left, all of it
        // is durable.
        let waits_for = self.background.lock().groups.back().cloned();
        match waits_for {
            None => Ok(()),
            Some(group) => {
                self.wait_for_flush(|state| !state.groups.iter().any(|other| other.holds(&group)))
            }
        }
    }

    /// Ids of all open families.
    pub(crate) fn family_ids(&self) -> Vec<FamilyId> {
        self.families.load().all().map(|family| family.id).collect()
    }

    /// Commits a batch of another database's log under its own sequence
    /// numbers. Numbers may be left out, not go back.
    pub(crate) fn apply_at(
        self: &Arc<Self>,
        first: SequenceNumber,
        batch: &mut WriteBatch,
    ) -> Result<()> {
        batch.check()?;
        self.admit(batch, &Patience::default())?;
        let mut commit = self.commit.lock();
        self.prepare(&mut commit)?;
        if first <= commit.last_sequence {
            return Err(Error::invalid(format!(
                "sequence number {first} was given out before; the last is {}",
                commit.last_sequence
            )));
        }
        self.check_families(&commit, batch)?;
        let last = self.number(batch, first)?;
        self.log_and_insert(&mut commit, Default::default(), first, last, batch)
    }

    /// Ends all work of this database and releases its lock. Called once, when
    /// the last handle goes.
    pub(crate) fn close(self: &Arc<Self>) {
        self.stop_publishing();
        if !self.read_only {
            if !self.logging {
                // Without a log, memory is all there is. Who wants to know
                // whether this worked calls `flush_all` first.
                let _ = self.flush(&self.family_ids());
            }
            self.stop_background();
            // A courtesy: nothing was promised for unsynced writes.
            if let Some(mut commit) = self.commit.lock_if_sound() {
                let _ = self.close_log(&mut commit);
            }
            self.logs.keep_spares(0);
        }
        give_back_kept();
        self.shared.home.close();
        *self.lock.lock() = None;
        self.shared.events.tell(Event::Closed { directory: &self.shared.directory });
    }
}
