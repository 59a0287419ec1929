//! Benchmarks that are one operation on the whole database. The first thread
//! does it; the runner starts no other.

use lodestore::Result;

use crate::worker::Worker;

/// Compacts everything.
pub fn compact(worker: &mut Worker<'_>) -> Result<()> {
    worker.plan.db.compact_range(None, None)?;
    worker.meter.finished(1, 0);
    Ok(())
}

/// Writes what is in memory to tables.
pub fn flush(worker: &mut Worker<'_>) -> Result<()> {
    worker.plan.db.flush_all()?;
    worker.meter.finished(1, 0);
    Ok(())
}

/// Waits until no flush and no compaction is left to do.
pub fn wait_for_compaction(worker: &mut Worker<'_>) -> Result<()> {
    worker.plan.db.wait_for_background()?;
    worker.meter.finished(1, 0);
    Ok(())
}

/// Reads all tables and checks all checksums.
pub fn verify_checksum(worker: &mut Worker<'_>) -> Result<()> {
    let report = worker.plan.db.verify()?;
    worker.meter.finished(1, report.bytes as usize);
    worker.meter.set_remark(format!("({} tables, {} entries)", report.tables, report.entries));
    Ok(())
}
