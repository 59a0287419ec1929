//! What the first thread does beside readers that are measured: it writes or
//! scans until they are done.

use lodestore::{Result, WriteBatch};

use crate::worker::Worker;

/// What a reader does.
type Read = fn(&mut Worker<'_>) -> Result<()>;

/// Runs `read` in all threads but the first, which puts random keys until the
/// others are done.
pub fn writing(worker: &mut Worker<'_>, read: Read) -> Result<()> {
    if worker.index > 0 { read(worker) } else { write(worker) }
}

/// Runs `read` in all threads but the first, which scans everything, over and
/// over, until the others are done.
pub fn scanning(worker: &mut Worker<'_>, read: Read) -> Result<()> {
    if worker.index > 0 { read(worker) } else { scan(worker) }
}

fn write(worker: &mut Worker<'_>) -> Result<()> {
    let Worker { random, plan, meter, .. } = worker;
    meter.set_beside();
    let mut key = plan.keys.buffer();
    let mut values = plan.values.source();
    let mut batch = WriteBatch::new();
    let entry_bytes = plan.keys.key_bytes() + plan.value_bytes;
    while plan.others_run() {
        batch.clear();
        batch.put(key.set(random.uniform(plan.num)), values.next(plan.value_bytes));
        plan.db.write_with(&plan.write_options, &mut batch)?;
        meter.finished(1, entry_bytes);
        meter.hold_writes(entry_bytes);
    }
    Ok(())
}

/// An operation is one entry. As in RocksDB, one cursor serves for all: it
/// goes on seeing the state at its beginning.
fn scan(worker: &mut Worker<'_>) -> Result<()> {
    let Worker { plan, meter, .. } = worker;
    meter.set_beside();
    let mut cursor = plan.db.cursor();
    while plan.others_run() {
        if cursor.valid() {
            cursor.next();
        } else {
            cursor.status()?;
            cursor.first();
        }
        meter.finished(1, 0);
    }
    cursor.status()
}
