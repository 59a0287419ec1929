//! Going on after a failure that made the database read-only.
//!
//! What is in memory is written to new tables, named by a new manifest, and a
//! new log is begun; no file whose sync failed is ever trusted again. Writers
//! wait until that is done: a synced write would need the log that failed.

use crate::error::Result;
use crate::events::Event;
use crate::sync::Arc;
use crate::version::VersionEdit;

use super::commit::CommitState;
use super::engine::Engine;

impl Engine {
    pub(crate) fn resume(self: &Arc<Self>) -> Result<()> {
        let mut commit = self.commit.lock();
        if self.health.check().is_ok() {
            // Compactions may have stopped all the same.
            self.restart_background();
            return Ok(());
        }
        self.wait_until_idle();
        self.versions.rotate()?;
        self.logs.distrust_live();
        // What could not be made durable is rewritten to tables below.
        self.logs.sealed.forget_below(u64::MAX);
        let begun = self.begin_anew(&mut commit);
        begun.inspect_err(|error| self.health.fail(error.clone()))?;
        self.shared.events.tell(Event::Resumed);
        Ok(())
    }

    /// The log that failed may not hold what was acknowledged: only tables
    /// make that safe again. Then no family needs a segment before the new one,
    /// also a family that had nothing in memory.
    ///
    /// All that is in memory is installed in one step. Groups that were waiting
    /// relied on the log for what the same batches wrote to other families.
    fn begin_anew(self: &Arc<Self>, commit: &mut CommitState) -> Result<()> {
        let families = self.family_ids();
        // No flush begins before the failure is forgotten.
        if self.seal(commit, &families)?.is_none() && self.logging {
            self.rotate_log(commit)?;
        }
        // The flush that follows may need the new segment's room, and could not take it
        // while the log is locked.
        if let Some(log) = &mut commit.log {
            log.give_room_back();
        }
        self.merge_waiting_groups();
        self.health.clear();
        self.restart_background();
        self.wait_for_flush(|state| state.groups.is_empty())?;
        commit.full.clear();
        if let Some(log) = &commit.log {
            let number = log.number();
            let log_numbers = families.iter().map(|family| (family.0, number)).collect();
            let edit = VersionEdit { log_numbers, ..VersionEdit::default() };
            self.versions.apply(edit, |_, _| {})?;
            self.logs.retire(self.versions.log_number_min());
        }
        Ok(())
    }
}
