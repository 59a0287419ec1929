//! Keeping to the memory budget: memtables are flushed before they are full
//! when all of them together hold too much, and writers wait for that.
//!
//! Half of the memtables' share fills while the other half is flushed. Memory
//! that readers pin (an old cursor keeps its memtables) is counted, and makes
//! the cache smaller; nobody waits for it, because only the reader can end it.

use std::time::Duration;

use crate::batch::FamilyId;
use crate::budget::Item;
use crate::error::Result;
use crate::scheduler::Lane;
use crate::stats::Counter;
use crate::sync::Arc;

use super::commit::CommitState;
use super::engine::Engine;
use super::family::FamilyCore;

/// How often a writer looks whether another database's flush is done.
const PAUSE: Duration = Duration::from_millis(2);
/// How often it looks at most: a neighbour that cannot flush must not stop it.
const PAUSES_MAX: u32 = 500;

/// A partition is read where a block is: about as large as one.
const PARTITION_BYTES: usize = 4096;

impl Engine {
    /// Marks the largest memtable as full when memtables hold more than half
    /// of their share, and waits while they hold all of it.
    #[inline]
    pub(crate) fn keep_to_budget(self: &Arc<Self>, commit: &mut CommitState) -> Result<()> {
        let budget = self.shared.memory.budget();
        let (active, sealed) = budget.memtable_bytes();
        // Memory comes in blocks: between two of them there is nothing to do.
        if active + sealed == commit.memory_seen || active + sealed < budget.memtable_share() / 2 {
            return Ok(());
        }
        commit.memory_seen = active + sealed;
        self.crowd_out(commit)
    }

    #[cold]
    fn crowd_out(self: &Arc<Self>, commit: &mut CommitState) -> Result<()> {
        let memory = &self.shared.memory;
        let share = memory.budget().memtable_share();
        let (active, sealed) = memory.budget().memtable_bytes();
        if active + sealed >= share {
            self.wait_for_memory(share)?;
        }
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
        Ok(())
    }

    /// Waits until memtables hold less than `share`, or no flush is left that
    /// could change it.
    fn wait_for_memory(&self, share: usize) -> Result<()> {
        let budget = self.shared.memory.budget();
        let is_crowded = || {
            let (active, sealed) = budget.memtable_bytes();
            active + sealed >= share
        };
        let begin = self.shared.scheduler.now();
        let waited = self.wait_for_flush(|state| !is_crowded() || state.groups.is_empty());
        for _ in 0..PAUSES_MAX {
            if waited.is_err() || !is_crowded() || !budget.is_flushing() {
                break;
            }
            self.shared.scheduler.sleep(PAUSE);
        }
        let micros = (self.shared.scheduler.now() - begin).as_micros() as u64;
        self.shared.statistics.add(Counter::StallMemoryMicros, micros);
        waited
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
        let closing = self.background.lock().is_closing;
        if let Some(mut commit) = self.commit.try_lock()
            && !closing
            && self.health.check().is_ok()
            && let Some(family) = largest(&commit)
        {
            self.shared.statistics.add(Counter::EarlyFlushes, 1);
            // What fails here fails for the next writer too, who is told.
            let _ = self.seal(&mut commit, &[family]);
        }
        self.shared.memory.was_answered();
    }

    /// The size of partitions of the index and filter of a family's new tables.
    pub(crate) fn partition_bytes(&self, family: &FamilyCore) -> usize {
        let limited = self.shared.memory.budget().bytes_max().is_some();
        let default = if limited { PARTITION_BYTES } else { usize::MAX };
        family.options.partition_bytes.unwrap_or(default)
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
