//! Keeping to the memory budget: memtables are flushed before they are full
//! when all of them together hold too much, and writers wait for that.
//!
//! Half of the memtables' share fills while the other half is flushed. Memory
//! that readers pin (an old cursor keeps its memtables) is counted, and makes
//! the cache smaller; nobody waits for it, because only the reader can end it.

use std::time::Duration;

use crate::batch::FamilyId;
use crate::budget::{Item, give_back_free_memory};
use crate::error::{Result, StallCause};
use crate::scheduler::Lane;
use crate::stats::Counter;
use crate::sync::Arc;

use super::admission::Patience;
use super::commit::{ActiveMemtable, CommitState};
use super::engine::Engine;

/// How long a writer waits at most before it looks again: nobody tells it that
/// another database of the budget has flushed.
const LOOK_AGAIN: Duration = Duration::from_millis(2);
/// How long it waits for other databases: one that cannot flush must not stop
/// it for good.
const NEIGHBOURS_WAIT_MAX: Duration = Duration::from_secs(1);

/// Giving memory back takes some milliseconds, and allocations wait meanwhile.
const GIVE_BACK_PAUSE: Duration = Duration::from_secs(1);

impl Engine {
    /// Marks the largest memtable as full when memtables hold more than half
    /// of their share.
    #[inline]
    pub(crate) fn keep_to_budget(&self, commit: &mut CommitState) {
        let budget = self.shared.memory.budget();
        let (active, sealed) = budget.memtable_bytes();
        // Memory comes in blocks: between two of them there is nothing to do.
        if active + sealed == commit.memory_seen || active + sealed < budget.memtable_share() / 2 {
            return;
        }
        commit.memory_seen = active + sealed;
        self.crowd_out(commit);
    }

    #[cold]
    fn crowd_out(&self, commit: &mut CommitState) {
        let memory = &self.shared.memory;
        let share = memory.budget().memtable_share();
        let (active, _) = memory.budget().memtable_bytes();
        // Only databases that hold nothing else are asked to give: one that is
        // in use gives by itself.
        let own = memory.used(Item::Memtables);
        let is_asked = || own < active / 2 && memory.budget().ask_largest(memory);
        if active >= share / 2
            && (active >= share / 8 * 7 || !is_asked())
            && let Some(family) = largest(commit)
            && !commit.full.contains(&family)
        {
            self.shared.statistics.add(Counter::EarlyFlushes, 1);
            commit.full.push(family);
        }
    }

    /// Holds a writer back while memtables hold all of their share and a flush
    /// is on its way to change that.
    ///
    /// # Errors
    /// `Stalled` if it may not wait so long; what keeps flushes from going on.
    #[cold]
    pub(crate) fn await_memory(&self, patience: &Patience) -> Result<()> {
        let (scheduler, budget) = (&self.shared.scheduler, self.shared.memory.budget());
        let (begin, mut waited) = (scheduler.now(), false);
        let result = loop {
            if let Err(error) = self.health.check() {
                break Err(error);
            }
            let state = self.background.lock();
            let now = scheduler.now();
            let is_own = !state.groups.is_empty();
            let is_awaited = is_own || now < begin + NEIGHBOURS_WAIT_MAX;
            if !budget.is_crowded() || !budget.is_flushing() || !is_awaited {
                break Ok(());
            }
            if let Some(error) = state.retrying_flush.as_ref().filter(|_| is_own) {
                break Err(error.clone());
            }
            if let Err(error) = patience.check(StallCause::Memory, now) {
                break Err(error);
            }
            waited = true;
            drop(self.background.wait_for(scheduler, state, LOOK_AGAIN));
        };
        if waited {
            self.count_memory_wait(begin, scheduler.now());
        }
        result
    }

    /// Lets other databases of the budget have this one's memtables flushed.
    pub(crate) fn lend_memory(self: &Arc<Self>) {
        let engine = Arc::downgrade(self);
        self.shared.memory.when_asked(move || {
            let Some(engine) = engine.upgrade() else { return };
            let scheduler = Arc::clone(&engine.shared.scheduler);
            scheduler.submit(Lane::Urgent, move || engine.flush_largest());
        });
    }

    /// Seals the largest memtable, unless a writer is at work: that one sees
    /// for itself that there is too little memory.
    fn flush_largest(self: &Arc<Self>) {
        if let Some(mut commit) = self.commit.try_lock()
            // Asked under the lock, which closing takes before it gives the directory up.
            && !self.background.is_closing()
            && self.health.check().is_ok()
            && let Some(family) = largest(&commit)
        {
            self.shared.statistics.add(Counter::EarlyFlushes, 1);
            // What fails here fails for the next writer too, who is told.
            let _ = self.seal(&mut commit, &[family]);
        }
        self.shared.memory.was_answered();
    }

    /// After background work: gives what it freed back to the system, if there
    /// is a limit on memory, and not too often.
    pub(crate) fn give_back_memory(&self) {
        if self.shared.memory.budget().bytes_max().is_none() {
            return;
        }
        let is_due = {
            let now = self.shared.scheduler.now();
            let mut last = self.memory_given_back.lock();
            let is_due = now.saturating_sub(*last) >= GIVE_BACK_PAUSE;
            if is_due {
                *last = now;
            }
            is_due
        };
        // Whoever comes meanwhile finds that it was done, and does not wait.
        if is_due {
            give_back_free_memory();
        }
    }

    /// After the limit on memory was changed: where memtables hold more than
    /// half of their share now, the largest are sealed, as many as that takes;
    /// what caches gave up goes back to the system.
    pub(crate) fn fit_memory(self: &Arc<Self>) {
        if self.check_writable().is_ok() {
            let mut commit = self.commit.lock();
            // The limit is another one, even if what is held is the same.
            commit.memory_seen = usize::MAX;
            let excess = self.largest_in_excess(&commit);
            if !excess.is_empty() {
                self.shared.statistics.add(Counter::EarlyFlushes, excess.len() as u64);
                // What fails here fails for the next writer too, who is told.
                let _ = self.seal(&mut commit, &excess);
            }
        }
        self.give_back_memory();
        // There may be memory for more of them.
        self.start_compactions();
    }

    /// The largest memtables, without which the others fit half of their share.
    fn largest_in_excess(&self, commit: &CommitState) -> Vec<FamilyId> {
        let budget = self.shared.memory.budget();
        let (mut active, _) = budget.memtable_bytes();
        let mut filled: Vec<_> =
            commit.memtables().iter().filter(|active| !active.table.is_empty()).collect();
        filled.sort_by_key(|active| std::cmp::Reverse(active.table.memory_bytes()));
        let is_excess = |filled: &&&ActiveMemtable| {
            let is_excess = active > budget.memtable_share() / 2;
            active = active.saturating_sub(filled.table.memory_bytes());
            is_excess
        };
        filled.iter().take_while(is_excess).map(|active| active.family.id).collect()
    }

    /// True if memory suffices for one more compaction.
    pub(crate) fn has_memory_to_compact(&self) -> bool {
        !self.shared.memory.budget().is_short_for_compactions()
    }
}

/// The family whose memtable holds most, if any holds something.
fn largest(commit: &CommitState) -> Option<FamilyId> {
    let filled = commit.memtables().iter().filter(|active| !active.table.is_empty());
    let largest = filled.max_by_key(|active| active.table.memory_bytes());
    largest.map(|active| active.family.id)
}
