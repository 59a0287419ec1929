//! Background work of one database: which flushes wait, which compactions
//! run, and who waits for them.
//!
//! One flush job at a time works off the queue of sealed memtables, oldest
//! first; up to as many compactions run as the scheduler has threads for them.
//! Nothing here is ever started by a read.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use crate::batch::FamilyId;
use crate::compact::pick::Running;
use crate::error::{Error, Result};
use crate::events::Event;
use crate::memtable::give_back_kept;
use crate::scheduler::{Lane, Scheduler};
use crate::stats::Statistics;
use crate::sync::atomic::{AtomicBool, Ordering};
use crate::sync::thread::{Panic, catch_panic};
use crate::sync::{Arc, Condvar, Mutex, MutexGuard};

use super::compaction::{Failed, Job, Outcome};
use super::engine::Engine;
use super::flush::SealGroup;
use super::health::may_pass;
use super::pressure::Meters;

/// How long a job that failed for want of space waits before the next try.
const RETRY_PAUSE: Duration = Duration::from_millis(100);

/// A database that nothing came to for so long is at rest.
const REST_DELAY: Duration = Duration::from_secs(5);

/// A database that is open for so long is not one that somebody only looks into.
const OPENING_DELAY: Duration = Duration::from_secs(1);

/// How often a caller looks whether the last removed file is gone.
const REMOVAL_PAUSE: Duration = Duration::from_millis(1);

#[derive(Default)]
pub(crate) struct Background {
    state: Mutex<BackgroundState>,
    changed: Condvar,
    /// Set under the lock, once: no job begins any more.
    is_closing: AtomicBool,
}

#[derive(Default)]
pub(crate) struct BackgroundState {
    /// Memtables to flush, oldest first. A group stays until it is installed.
    pub(crate) groups: VecDeque<Arc<SealGroup>>,
    pub(crate) is_flushing: bool,
    /// When the flush that runs began.
    pub(crate) flushing_since: Option<Duration>,
    /// What compactions work on.
    running: BTreeMap<FamilyId, Running>,
    /// Compactions that run.
    pub(crate) compactions: usize,
    /// Threads that work on parts of compactions, besides those that these
    /// themselves have.
    pub(crate) helpers: usize,
    /// The compactions that run, in numbers, by the number of the first input.
    pub(crate) at_work: BTreeMap<u64, Work>,
    /// What flushes and compactions achieve.
    pub(crate) meters: Meters,
    /// True while some family's level 0 or debt holds its writers back.
    pub(crate) compactions_are_behind: bool,
    /// Compactions asked for by a caller, who works through them alone.
    pub(crate) manual: usize,
    /// True if nothing came for level 0 for a while.
    pub(crate) is_at_rest: bool,
    /// How often something came.
    arrivals: u64,
    /// The last failure of a flush that is being retried.
    pub(crate) retrying_flush: Option<Error>,
    /// The last failure of a compaction that is being retried.
    pub(crate) retrying_compaction: Option<Error>,
    /// The failure that ended compactions until `resume`: a table that cannot
    /// be read, or one that cannot be written. Nothing else stops for that.
    pub(crate) failed_compaction: Option<Error>,
}

/// A compaction at work, in numbers.
#[derive(Clone, Debug)]
pub(crate) struct Work {
    /// From, to.
    pub(crate) levels: (usize, usize),
    pub(crate) tables: usize,
    pub(crate) bytes: u64,
    pub(crate) begin: Duration,
    /// What it has read so far.
    pub(crate) reads: Arc<Statistics>,
}

impl BackgroundState {
    /// The compactions of a family that run.
    pub(crate) fn running_of(&self, family: FamilyId) -> Running {
        self.running.get(&family).cloned().unwrap_or_default()
    }

    pub(crate) fn begin(&mut self, job: &Job, begin: Duration) {
        let plan = job.plan();
        self.running.entry(job.family()).or_default().add(plan);
        self.compactions += 1;
        let levels = (plan.level_from, plan.level_to);
        let (tables, bytes) = (plan.tables().count(), plan.bytes());
        let reads = Arc::clone(job.reads());
        self.at_work.insert(job.number(), Work { levels, tables, bytes, begin, reads });
    }

    fn end_rest(&mut self) {
        self.arrivals += 1;
        self.is_at_rest = false;
    }

    /// Threads that compactions and their helpers keep busy.
    pub(crate) fn threads_taken(&self) -> usize {
        self.compactions + self.helpers
    }

    /// Why compactions do not go on, if they do not.
    pub(crate) fn compaction_failure(&self) -> Option<Error> {
        self.failed_compaction.clone().or_else(|| self.retrying_compaction.clone())
    }

    /// Once nothing runs any more, nothing holds tables for it either.
    pub(crate) fn end(&mut self, job: Job) {
        let running = self.running.get_mut(&job.family()).expect("the job was begun");
        running.remove(job.plan());
        if running.count() == 0 {
            self.running.remove(&job.family());
        }
        self.compactions -= 1;
        self.at_work.remove(&job.number());
    }

    /// Counts what a compaction that ends now has taken off writers' hands.
    /// Gives when it began.
    pub(crate) fn measure(&mut self, job: &Job, end: Duration) -> Option<Duration> {
        let work = self.at_work.get(&job.number())?;
        let bytes = job.user_bytes();
        if work.levels.0 == 0 {
            self.meters.level0.add(work.begin, end, bytes);
        }
        self.meters.compaction.add(work.begin, end, bytes);
        Some(work.begin)
    }
}

impl Background {
    /// Waits for a change, no longer than `duration`.
    pub(crate) fn wait_for<'a>(
        &'a self,
        scheduler: &Scheduler,
        state: MutexGuard<'a, BackgroundState>,
        duration: Duration,
    ) -> MutexGuard<'a, BackgroundState> {
        scheduler.wait_on(&self.changed, &self.state, state, duration)
    }

    pub(crate) fn is_closing(&self) -> bool {
        self.is_closing.load(Ordering::Acquire)
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, BackgroundState> {
        self.state.lock()
    }

    /// Waits until something changes.
    pub(crate) fn wait<'a>(
        &self,
        state: MutexGuard<'a, BackgroundState>,
    ) -> MutexGuard<'a, BackgroundState> {
        self.changed.wait(state)
    }

    pub(crate) fn notify(&self) {
        self.changed.notify_all();
    }
}

impl Engine {
    /// Queues a sealed group and makes sure that a flush job runs.
    pub(crate) fn queue_flush(self: &Arc<Self>, group: Arc<SealGroup>) {
        let mut state = self.background.lock();
        state.groups.push_back(group);
        state.end_rest();
        self.start_flushing(&mut state);
        self.tell_pacers(&mut state);
    }

    fn start_flushing(self: &Arc<Self>, state: &mut BackgroundState) {
        if state.is_flushing
            || self.background.is_closing()
            || state.groups.is_empty()
            || self.health.check().is_err()
        {
            return;
        }
        state.is_flushing = true;
        self.submit_flush();
    }

    fn submit_flush(self: &Arc<Self>) {
        let engine = Arc::clone(self);
        self.shared.scheduler.submit(Lane::Urgent, move || engine.flush_queued());
    }

    /// The flush job: works on the oldest group, then queues itself again.
    /// Other databases may share the thread, and one that is always busy, or
    /// whose disk is full, must not keep it.
    fn flush_queued(self: &Arc<Self>) {
        let group = {
            let mut state = self.background.lock();
            let next = state.groups.front().cloned();
            let stop = self.background.is_closing() || self.health.check().is_err();
            match next {
                Some(group) if !stop => {
                    state.flushing_since = Some(self.shared.scheduler.now());
                    group
                }
                _ => {
                    state.is_flushing = false;
                    state.flushing_since = None;
                    self.background.notify();
                    return;
                }
            }
        };
        match told_panic(|| self.flush_group(&group), "flush") {
            Ok(()) => {
                let mut state = self.background.lock();
                let flushed = state.groups.pop_front();
                state.retrying_flush = None;
                drop(state);
                // The memory first: writers may be waiting for that.
                drop((flushed, group));
                let state = self.background.lock();
                self.background.notify();
                self.rest_later(&state);
                drop(state);
                self.give_back_memory();
                self.start_compactions();
            }
            Err(error) => self.retry_or_fail(error, |state| &mut state.retrying_flush),
        }
        self.submit_flush();
    }

    /// Compactions that were due when the database was opened begin at once if they hold
    /// writers back, and otherwise after a while, or with the first flush: who opens it
    /// for a moment would have them begun and given up again.
    pub(crate) fn compact_after_opening(self: &Arc<Self>) {
        if self.background.lock().compactions_are_behind {
            return self.start_compactions();
        }
        let engine = Arc::downgrade(self);
        self.shared.scheduler.submit_after(OPENING_DELAY, move || {
            if let Some(engine) = engine.upgrade() {
                engine.start_compactions();
            }
        });
    }

    /// Looks for compactions after tables came from outside.
    pub(crate) fn compact_arrived(self: &Arc<Self>) {
        let mut state = self.background.lock();
        state.end_rest();
        self.rest_later(&state);
        drop(state);
        self.start_compactions();
    }

    /// Once all is flushed: looks again after a while whether nothing more came.
    fn rest_later(self: &Arc<Self>, state: &BackgroundState) {
        if !state.groups.is_empty() {
            return;
        }
        let (engine, arrivals) = (Arc::downgrade(self), state.arrivals);
        self.shared.scheduler.submit_after(REST_DELAY, move || {
            let Some(engine) = engine.upgrade() else { return };
            let mut state = engine.background.lock();
            if state.arrivals == arrivals {
                state.is_at_rest = true;
                drop(state);
                engine.give_back();
                engine.start_compactions();
            }
        });
    }

    /// Gives back what was kept for the writes to come.
    fn give_back(&self) {
        give_back_kept();
        self.logs.close_retired();
        self.logs.keep_spares(self.spares_at_rest_max());
    }

    /// After a failure in the background: waits a little if it may pass by
    /// itself, else makes the database read-only. Writers in line are told.
    fn retry_or_fail(
        &self,
        error: Error,
        retrying: impl FnOnce(&mut BackgroundState) -> &mut Option<Error>,
    ) {
        let mut state = self.background.lock();
        if may_pass(&error) && !self.background.is_closing() {
            self.shared.events.tell(Event::Retried { error: &error });
            *retrying(&mut state) = Some(error);
            self.background.notify();
            drop(state);
            // It may be room that is missing, and tables free more than they take: with
            // them the log's old segments go.
            self.logs.keep_spares(0);
            self.give_log_room_back();
            self.wake_writers();
            self.shared.scheduler.sleep(RETRY_PAUSE);
        } else {
            self.health.fail(error);
            self.background.notify();
            drop(state);
            self.wake_writers();
        }
    }

    /// Starts compactions until all threads have one or none is worth while.
    pub(crate) fn start_compactions(self: &Arc<Self>) {
        if self.read_only {
            return; // nothing may be written, nor is the directory locked
        }
        let mut state = self.background.lock();
        while state.threads_taken() < self.shared.scheduler.steady_threads()
            && self.may_compact(&state)
            && (state.compactions == 0 || self.has_memory_to_compact())
        {
            let Some(job) = self.pick_compaction(&state) else { return };
            state.begin(&job, self.shared.scheduler.now());
            let engine = Arc::clone(self);
            let lane = if job.plan().level_from == 0 { Lane::Soon } else { Lane::Steady };
            self.shared.scheduler.submit(lane, move || {
                // It may have waited behind those of other databases.
                let result = catch_panic(|| engine.run_compaction(&job));
                let result = result.unwrap_or_else(|panic| {
                    Err(Failed::BeforeInstalling(panic_error(panic, "compaction")))
                });
                engine.finish_compaction(job, result);
            });
        }
    }

    /// False once compactions are to begin no more.
    pub(crate) fn may_compact(&self, state: &BackgroundState) -> bool {
        !self.background.is_closing()
            && state.failed_compaction.is_none()
            && self.health.check().is_ok()
    }

    pub(crate) fn finish_compaction(self: &Arc<Self>, job: Job, result: Outcome) {
        let failed = result.is_err();
        match result {
            Ok(()) => {}
            // Given up, or of no account any more: nothing has changed, and the next
            // open begins anew.
            Err(Failed::BeforeInstalling(_)) if self.background.is_closing() => {}
            Err(Failed::BeforeInstalling(error)) if !may_pass(&error) => {
                self.shared.events.tell(Event::CompactionsStopped { error: &error });
                self.background.lock().failed_compaction.get_or_insert(error);
                self.wake_writers();
            }
            Err(Failed::BeforeInstalling(error) | Failed::Installing(error)) => {
                self.retry_or_fail(error, |state| &mut state.retrying_compaction);
            }
        }
        let mut state = self.background.lock();
        state.end(job);
        if !failed {
            state.retrying_compaction = None;
        }
        self.background.notify();
        drop(state);
        self.give_back_memory();
        self.start_compactions();
    }

    /// Waits until `done` holds, or writing has failed.
    ///
    /// # Errors
    /// `ReadOnly` with the failure.
    pub(crate) fn wait_until(&self, done: impl Fn(&BackgroundState) -> bool) -> Result<()> {
        let mut state = self.background.lock();
        while !done(&state) {
            self.health.check()?;
            state = self.background.wait(state);
        }
        Ok(())
    }

    /// Waits until no flush or compaction is pending or running, those included
    /// that begin when the database has been at rest for a while.
    ///
    /// # Errors
    /// What made the database read-only, or ended compactions.
    pub(crate) fn wait_for_background(self: &Arc<Self>) -> Result<()> {
        if self.read_only {
            return Ok(());
        }
        loop {
            self.health.check()?;
            self.start_compactions();
            self.wait_until(|s| s.groups.is_empty() && !s.is_flushing && s.threads_taken() == 0)?;
            let mut state = self.background.lock();
            if let Some(error) = &state.failed_compaction {
                return Err(error.clone());
            }
            state.is_at_rest |= state.groups.is_empty();
            if state.groups.is_empty()
                && state.threads_taken() == 0
                && self.pick_compaction(&state).is_none()
            {
                drop(state);
                self.give_back();
                return self.wait_for_removals();
            }
        }
    }

    /// Waits until the files of tables that nobody uses any more are gone.
    fn wait_for_removals(&self) -> Result<()> {
        while self.shared.home.is_removing() {
            self.shared.scheduler.sleep(REMOVAL_PAUSE);
        }
        Ok(())
    }

    /// [`Engine::wait_until`] for what flushes will do. A failure that they are
    /// retrying (a full disk) is told at once.
    pub(crate) fn wait_for_flush(&self, done: impl Fn(&BackgroundState) -> bool) -> Result<()> {
        let mut state = self.background.lock();
        while !done(&state) {
            self.health.check()?;
            if let Some(error) = &state.retrying_flush {
                return Err(error.clone());
            }
            state = self.background.wait(state);
        }
        Ok(())
    }

    /// Starts again what stopped because of a failure that was cleared.
    pub(crate) fn restart_background(self: &Arc<Self>) {
        let mut state = self.background.lock();
        (state.retrying_flush, state.retrying_compaction) = (None, None);
        state.failed_compaction = None;
        self.start_flushing(&mut state);
        drop(state);
        self.start_compactions();
    }

    /// Makes one group of all that wait for their flush. No flush may be running.
    pub(crate) fn merge_waiting_groups(&self) {
        let mut state = self.background.lock();
        assert!(!state.is_flushing, "a flush works on the oldest group");
        let merged = state.groups.drain(..).reduce(|older, newer| Arc::new(older.with(&newer)));
        state.groups.extend(merged);
    }

    /// Waits until no job runs; after a failure none starts.
    pub(crate) fn wait_until_idle(&self) {
        let mut state = self.background.lock();
        while state.is_flushing || state.threads_taken() > 0 {
            state = self.background.wait(state);
        }
    }

    /// # Errors
    /// Once the database is being closed: what is not needed for that ends.
    pub(crate) fn check_open(&self) -> Result<()> {
        match self.background.is_closing() {
            true => Err(Error::invalid("the database is being closed")),
            false => Ok(()),
        }
    }

    /// Lets a running flush end, has compactions give up, and starts no more.
    pub(crate) fn stop_background(&self) {
        {
            let _state = self.background.lock();
            self.background.is_closing.store(true, Ordering::Release);
        }
        self.limiter.hurry();
        self.wait_until_idle();
    }
}

/// Turns a panic in a merge operator or comparator into an error, so that the
/// job ends in order and writers are told, instead of waiting for ever.
fn told_panic(job: impl FnOnce() -> Result<()>, name: &str) -> Result<()> {
    catch_panic(job).unwrap_or_else(|panic| Err(panic_error(panic, name)))
}

pub(crate) fn panic_error(panic: Panic, name: &str) -> Error {
    let text = panic.downcast_ref::<&str>().map(|text| text.to_string());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default();
    Error::invalid(format!("a {name} panicked: {text}"))
}
