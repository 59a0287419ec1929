//! Before a write joins the commit queue: is there room for it?
//!
//! writer -> (a family is behind:) its `pacer` -> commit queue
//! Invariant: nobody waits here with a lock that flushes, compactions or other
//! families need; a write that is refused has left no trace.

use std::time::Duration;

use crate::batch::{FamilyId, Record, WriteBatch};
use crate::compact::pick::debt_bytes;
use crate::error::{Error, Result, StallCause};
use crate::options::WriteOptions;
use crate::stats::Counter;
use crate::sync::Arc;
use crate::sync::atomic::Ordering;

use super::background::BackgroundState;
use super::compaction::limits;
use super::engine::Engine;
use super::family::FamilyCore;
use super::pacer::Turn;
use super::pressure::{self, Load};
use super::stalls::{LONG, Wait};

/// How long a write may wait.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Patience {
    no_slowdown: bool,
    /// By the scheduler's clock.
    until: Option<Duration>,
}

impl Patience {
    /// # Errors
    /// `Stalled` if a writer that would wait for `cause` at `now` must not.
    pub(crate) fn check(&self, cause: StallCause, now: Duration) -> Result<()> {
        let is_late = self.until.is_some_and(|until| now >= until);
        if self.no_slowdown || is_late { Err(Error::Stalled { cause }) } else { Ok(()) }
    }

    /// Until when the write may wait for its turn in the commit queue.
    pub(crate) fn until(&self) -> Option<Duration> {
        self.until
    }
}

impl Engine {
    /// How long a write with `options` that begins now may wait.
    #[inline]
    pub(crate) fn patience(&self, options: &WriteOptions) -> Patience {
        let until = options.deadline.map(|time| self.shared.scheduler.now().saturating_add(time));
        Patience { no_slowdown: options.no_slowdown, until }
    }

    /// Holds the writer of `batch` back while a family that it writes to is
    /// behind.
    ///
    /// # Errors
    /// `Stalled` if it may not wait so long; what keeps the background from
    /// going on, if that is a failure.
    #[inline]
    pub(crate) fn admit(&self, batch: &WriteBatch, patience: &Patience) -> Result<()> {
        let is_pressed = self.is_pressed.load(Ordering::Acquire);
        if !is_pressed && !self.shared.memory.budget().is_crowded() {
            return Ok(());
        }
        let admitted = if is_pressed { self.admit_to_each(batch, patience) } else { Ok(()) };
        let admitted = admitted.and_then(|()| self.await_memory(patience));
        if let Err(Error::Stalled { .. }) = admitted {
            self.shared.statistics.add(Counter::WritesRefused, 1);
        }
        admitted
    }

    fn admit_to_each(&self, batch: &WriteBatch, patience: &Patience) -> Result<()> {
        let families = self.families.load();
        let is_only = families.all().nth(1).is_none();
        for family in families.all().filter(|family| family.pacer.is_pressed()) {
            // Where there is one family, a large batch need not be looked through.
            if is_only || writes_to(batch, family.id) {
                self.wait_for_turn(family, batch.bytes() as u64, patience)?;
            }
        }
        Ok(())
    }

    fn wait_for_turn(
        &self,
        family: &Arc<FamilyCore>,
        bytes: u64,
        patience: &Patience,
    ) -> Result<()> {
        let (scheduler, pacer) = (&self.shared.scheduler, &family.pacer);
        let begin = scheduler.now();
        let fill = self.active_fill(family);
        if pacer.lock().pass(begin, fill, &family.options(), bytes) {
            return Ok(());
        }
        let mut waited: Option<(StallCause, bool)> = None;
        let (mut stopped_by, mut evidence) = (None, None);
        let number = pacer.lock().join();
        let result = loop {
            if let Err(error) = self.may_wait(family, stopped_by) {
                break Err(error);
            }
            let fill = self.active_fill(family);
            let mut line = pacer.lock();
            let now = scheduler.now();
            let Turn::Wait { cause, time, is_stop } =
                line.ask(number, now, fill, &family.options(), bytes)
            else {
                break Ok(());
            };
            if let Err(error) = patience.check(cause, now) {
                break Err(error);
            }
            stopped_by = is_stop.then_some(cause);
            if evidence.is_none() && now.saturating_sub(begin) >= LONG / 2 {
                let load = line.load(fill);
                drop(line);
                evidence = Some(self.describe(family, &load));
                continue;
            }
            // The cause that it waited for first is the one that is counted.
            let (first, was_stop) = waited.unwrap_or((cause, false));
            waited = Some((first, was_stop || is_stop));
            let left = patience.until.map_or(time, |until| time.min(until - now));
            drop(scheduler.wait_on(&pacer.changed, &pacer.line, line, left));
        };
        pacer.lock().leave(number);
        pacer.wake(); // the next in line is the first now
        if let Some((cause, is_stop)) = waited {
            let wait = Wait { cause, begin, end: scheduler.now(), is_stop };
            self.count_wait(family, wait, evidence.as_deref());
        }
        result
    }

    /// # Errors
    /// If waiting on would be in vain: writing has failed, or what must happen
    /// first has.
    fn may_wait(&self, family: &FamilyCore, stopped_by: Option<StallCause>) -> Result<()> {
        self.health.check()?;
        if self.families.load().get(family.id).is_none() {
            return Err(Error::missing(format!("family {:?}", family.name)));
        }
        let failure = match stopped_by {
            None => None,
            Some(StallCause::Flush) => self.background.lock().retrying_flush.clone(),
            Some(_) => self.background.lock().compaction_failure(),
        };
        failure.map_or(Ok(()), Err)
    }

    /// Tells writers how far behind flushes and compactions are now.
    pub(crate) fn update_pressure(&self) {
        let mut state = self.background.lock();
        self.tell_pacers(&mut state);
        self.background.notify();
    }

    /// [`Engine::update_pressure`] under the background's lock, so that what
    /// was counted earlier is never told later.
    pub(crate) fn tell_pacers(&self, state: &mut BackgroundState) {
        let (mut is_pressed, mut compactions_are_behind) = (false, false);
        let mut urgency = 0.0f64;
        for family in self.families.load().all() {
            let view = family.views.load();
            let load = Load {
                sealed_memtables: view.sealed.len(),
                active_fill: 0.0,
                level0_tables: view.version.level(0).tables().len(),
                debt_bytes: debt_bytes(&view.version, &limits(family)),
            };
            is_pressed |= family.pacer.update(load, &family.options(), &state.meters);
            urgency = urgency.max(pressure::urgency(&load, &family.options()));
            compactions_are_behind |= pressure::compactions_are_behind(&load, &family.options());
        }
        self.limiter.set_urgency(urgency);
        state.compactions_are_behind = compactions_are_behind;
        self.is_pressed.store(is_pressed, Ordering::Release);
    }

    /// Makes writers in line look whether waiting is still worth while.
    pub(crate) fn wake_writers(&self) {
        self.families.load().all().for_each(|family| family.pacer.wake());
    }

    /// How far the family's memtable, or the log, is from being sealed.
    fn active_fill(&self, family: &FamilyCore) -> f64 {
        let memtable = family.views.load().active.memory_bytes() as f64;
        let log = self.log_bytes.load(Ordering::Relaxed) as f64;
        let of_memtable = memtable / family.options().memtable_bytes as f64;
        of_memtable.max(log / self.log_bytes_max().max(1) as f64)
    }
}

fn writes_to(batch: &WriteBatch, wanted: FamilyId) -> bool {
    let is_its = |record| matches!(record, Record::Entry { family, .. } if family == wanted);
    batch.records().any(is_its)
}
