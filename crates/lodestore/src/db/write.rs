//! Writes: group commit.
//!
//! batch -> admission -> queue -> (leader:) sequence numbers -> log -> memtables
//! -> publish
//!
//! A writer that finds nobody at work leads: it commits its own batch at once.
//! Writers that come meanwhile queue up; the leader hands the lead to the
//! first of them, who commits all of them as one log record.
//! Invariants: one leader at a time, who alone holds the commit state; a
//! sequence number is published after everything up to it is in its memtable;
//! a batch is in the log before it is in a memtable.

use std::panic::resume_unwind;

use crate::batch::{FamilyId, Numbered, Record, WriteBatch};
use crate::error::{Error, Result, StallCause};
use crate::key::{Kind, SEQUENCE_MAX, SequenceNumber};
use crate::latency::Operation;
use crate::options::WriteOptions;
use crate::stats::Counter;
use crate::sync::Arc;
use crate::sync::thread::catch_panic;

use super::admission::Patience;
use super::commit::CommitState;
use super::engine::Engine;
use super::queue::{GROUP_BYTES_MAX, Ticket};

impl Engine {
    /// Commits `batch`, alone or with others. Gives the sequence number of its
    /// last record.
    pub(crate) fn write(
        self: &Arc<Self>,
        options: WriteOptions,
        batch: &mut WriteBatch,
    ) -> Result<SequenceNumber> {
        self.shared.timed(Operation::Write, || self.queue_and_commit(options, batch))
    }

    fn queue_and_commit(
        self: &Arc<Self>,
        options: WriteOptions,
        batch: &mut WriteBatch,
    ) -> Result<SequenceNumber> {
        batch.check()?;
        if options.sync && !self.logging {
            return Err(Error::invalid("a synced write needs the log, which is off: use flush"));
        }
        let patience = self.patience(&options);
        self.admit(batch, &patience)?;
        let ticket = self.queue.lead_or_join(|| Ticket::new(options, std::mem::take(batch)));
        if let Some(ticket) = ticket {
            return self.follow(&ticket, batch, &patience);
        }
        let result = catch_panic(|| self.commit_one(options, batch));
        // Also after a panic (a comparator's, say): others must not wait for ever.
        self.queue.hand_over();
        result.unwrap_or_else(|panic| resume_unwind(panic))
    }

    /// Waits until a leader has committed this writer's batch, or leads.
    fn follow(
        self: &Arc<Self>,
        ticket: &Arc<Ticket>,
        batch: &mut WriteBatch,
        patience: &Patience,
    ) -> Result<SequenceNumber> {
        let outcome = match self.wait_in_queue(ticket, patience) {
            Some(outcome) => outcome,
            None => {
                self.lead();
                let outcome = ticket.state.lock().outcome.take();
                outcome.expect("the leader's own batch is in the group")
            }
        };
        *batch = std::mem::take(&mut ticket.state.lock().batch);
        outcome
    }

    /// Waits for an outcome or the lead; `None` means the lead. A writer that
    /// may wait no longer goes, unless a leader has taken its batch already.
    fn wait_in_queue(
        &self,
        ticket: &Arc<Ticket>,
        patience: &Patience,
    ) -> Option<Result<SequenceNumber>> {
        let Some(until) = patience.until() else { return ticket.wait() };
        let scheduler = &self.shared.scheduler;
        let mut state = ticket.state.lock();
        loop {
            if state.outcome.is_some() || state.leads {
                return state.outcome.take();
            }
            let left = until.saturating_sub(scheduler.now());
            if left.is_zero() {
                break;
            }
            state = scheduler.wait_on(&ticket.changed, &ticket.state, state, left);
        }
        drop(state);
        if self.queue.withdraw(ticket) {
            self.shared.statistics.add(Counter::WritesRefused, 1);
            return Some(Err(Error::Stalled { cause: StallCause::Log }));
        }
        ticket.wait()
    }

    /// Commits the waiting writers, this one first, and hands the lead over.
    fn lead(self: &Arc<Self>) {
        let tickets = self.queue.take_group();
        let mut batches: Vec<WriteBatch> = Vec::with_capacity(tickets.len());
        let mut sync = false;
        for ticket in &tickets {
            let mut state = ticket.state.lock();
            sync |= state.options.sync;
            batches.push(std::mem::take(&mut state.batch));
        }
        let options = WriteOptions { sync, ..WriteOptions::default() };
        let outcomes = catch_panic(|| self.commit_group(options, &mut batches));
        let outcomes = outcomes.unwrap_or_else(|_| {
            let outcome = Error::invalid("a comparator panicked during the commit");
            vec![Err(outcome); tickets.len()]
        });
        for ((ticket, batch), outcome) in tickets.iter().zip(batches).zip(outcomes) {
            ticket.finish(batch, outcome);
        }
        self.queue.hand_over();
    }

    /// Does `work` while writers wait in the queue: what they wrote before is in
    /// memtables, and nothing is added to these. The commit lock is free; a
    /// replica's [`Engine::apply_at`] takes it without queueing.
    pub(crate) fn while_writers_wait<T>(&self, work: impl FnOnce() -> T) -> T {
        self.queue.take_lead();
        let result = catch_panic(work);
        self.queue.hand_over();
        result.unwrap_or_else(|panic| resume_unwind(panic))
    }

    /// Commits one batch.
    fn commit_one(
        self: &Arc<Self>,
        options: WriteOptions,
        batch: &mut WriteBatch,
    ) -> Result<SequenceNumber> {
        let mut commit = self.commit.lock();
        self.prepare(&mut commit)?;
        self.check_families(&commit, batch)?;
        let first = commit.last_sequence + 1;
        let last = self.number(batch, first)?;
        self.log_and_insert(&mut commit, options, first, last, batch)?;
        Ok(last)
    }

    /// Commits batches as one log record. A batch that names an unknown family
    /// fails alone; a failure of the log is everybody's.
    fn commit_group(
        self: &Arc<Self>,
        options: WriteOptions,
        batches: &mut [WriteBatch],
    ) -> Vec<Result<SequenceNumber>> {
        let mut commit = self.commit.lock();
        if let Err(error) = self.prepare(&mut commit) {
            return batches.iter().map(|_| Err(error.clone())).collect();
        }
        let first = commit.last_sequence + 1;
        let mut last = commit.last_sequence;
        let mut group = std::mem::take(&mut commit.group);
        group.clear();
        let mut outcomes = Vec::with_capacity(batches.len());
        for batch in batches {
            let numbered =
                self.check_families(&commit, batch).and_then(|()| self.number(batch, last + 1));
            if let Ok(sequence) = numbered {
                last = sequence;
                group.append(batch);
            }
            outcomes.push(numbered);
        }
        // A synced batch without records makes durable what was written before it.
        let is_barrier = options.sync && outcomes.iter().any(Result::is_ok);
        if !group.is_empty() || is_barrier {
            group.set_sequence(first);
            if let Err(error) = self.log_and_insert(&mut commit, options, first, last, &group) {
                outcomes.iter_mut().for_each(|outcome| *outcome = Err(error.clone()));
            }
        }
        if group.bytes() <= 2 * GROUP_BYTES_MAX {
            commit.group = group;
        }
        outcomes
    }

    /// Gives the batch's records the numbers from `first` on; returns the last.
    pub(crate) fn number(
        &self,
        batch: &mut WriteBatch,
        first: SequenceNumber,
    ) -> Result<SequenceNumber> {
        // The first is a caller's in `apply_at`: any number.
        let end = first.saturating_add(u64::from(batch.sequence_count()));
        if first > SEQUENCE_MAX || end > SEQUENCE_MAX + 1 {
            return Err(Error::invalid("sequence numbers end at 2^56 - 1"));
        }
        batch.set_sequence(first);
        Ok(end - 1)
    }

    /// Refuses batches for families that are not there, operands that no
    /// operator could merge and ranges that end before they begin, before
    /// anything of them is logged.
    pub(crate) fn check_families(&self, commit: &CommitState, batch: &WriteBatch) -> Result<()> {
        if batch.is_plain() {
            return Ok(());
        }
        for record in batch.records() {
            let Record::Entry { family, kind, key, value } = record else { continue };
            let Some(memtable) = commit.memtable(family) else {
                return Err(Error::missing(format!("family number {}", family.0)));
            };
            if kind == Kind::Merge && !memtable.merges {
                let name = &memtable.family.name;
                return Err(Error::invalid(format!("family {name:?} has no merge operator")));
            }
            let order = memtable.family.order();
            if kind == Kind::RangeDelete && order.compare(key, value).is_gt() {
                return Err(Error::invalid("a range that is to be deleted ends before it begins"));
            }
        }
        Ok(())
    }

    /// The commit itself: log, memtables, publication. `batch` is numbered from
    /// `first` to `last`.
    pub(crate) fn log_and_insert(
        &self,
        commit: &mut CommitState,
        options: WriteOptions,
        first: SequenceNumber,
        last: SequenceNumber,
        batch: &WriteBatch,
    ) -> Result<()> {
        if self.logging {
            self.append_to_log(commit, options, batch)?;
        }
        commit.last_sequence = last;
        insert(commit, batch, first);
        self.shared.visible.publish(last);
        let statistics = &self.shared.statistics;
        statistics.add(Counter::CommitGroups, 1);
        statistics.add(Counter::RecordsWritten, u64::from(batch.sequence_count()));
        statistics.add(Counter::UserBytesWritten, batch.bytes() as u64);
        Ok(())
    }
}

/// A batch of at least so many entries is put into its memtable in key order: 0.75
/// instead of 2.0 microseconds an entry for 240,000 random keys, nothing gained
/// for a hundred.
const SORTED_ENTRIES_MIN: u32 = 1000;

/// Puts the batch's records into their memtables.
fn insert(commit: &mut CommitState, batch: &WriteBatch, first: SequenceNumber) {
    let is_large = batch.sequence_count() >= SORTED_ENTRIES_MIN;
    if is_large && batch.is_plain() && commit.default_is_bytewise() {
        for Numbered { nth, kind, key, value } in batch.by_key() {
            let sequence = first + SequenceNumber::from(nth);
            commit.insert(FamilyId::DEFAULT, (sequence, kind), key, value);
        }
        return;
    }
    let mut sequence = first;
    for record in batch.records() {
        if let Record::Entry { family, kind, key, value } = record {
            commit.insert(family, (sequence, kind), key, value);
            sequence += 1;
        }
    }
}
