//! Going on after a failure that made the database read-only.
//!
//! What is in memory is written to new tables, named by a new manifest, and a
//! new log is begun; no file whose sync failed is ever trusted again.

use crate::error::Result;
use crate::sync::Arc;

use super::engine::Engine;

impl Engine {
    pub(crate) fn resume(self: &Arc<Self>) -> Result<()> {
        let mut commit = self.commit.lock();
        if self.health.check().is_ok() {
            return Ok(());
        }
        self.wait_until_idle();
        self.versions.rotate()?;
        if self.options.logging {
            self.rotate_log(&mut commit)?;
        }
        self.health.clear();
        self.restart_background();
        drop(commit);
        // The log that failed may not hold what was acknowledged: only tables
        // make that safe again.
        let flushed = self.flush(&self.family_ids());
        flushed.inspect_err(|error| self.health.fail(error.clone()))
    }
}
