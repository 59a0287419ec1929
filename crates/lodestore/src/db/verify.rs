//! Verification: every byte of every table read and checked.

use crate::error::Result;
use crate::sync::Arc;

use super::engine::Engine;

/// What [`crate::Db::verify`] has read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VerifyReport {
    /// Tables, all sound.
    pub tables: u64,
    /// Their data blocks.
    pub blocks: u64,
    /// Their entries.
    pub entries: u64,
    /// Their bytes.
    pub bytes: u64,
}

impl Engine {
    pub(crate) fn verify(self: &Arc<Self>) -> Result<VerifyReport> {
        let mut report = VerifyReport::default();
        let families = self.families.load_full();
        for family in families.all() {
            let view = family.views.keep();
            for level in view.version.levels() {
                for file in level.tables().iter() {
                    let counts = file.table()?.verify(family.context(false))?;
                    report.tables += 1;
                    report.blocks += counts.blocks;
                    report.entries += counts.entries;
                    report.bytes += file.meta.bytes;
                }
            }
        }
        Ok(report)
    }
}
