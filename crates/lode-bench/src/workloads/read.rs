//! Benchmarks that read: lookups, scans and seeks.

use std::sync::atomic::Ordering;

use lodestore::{DbCursor, Result};

use crate::worker::Worker;

/// Looks up random keys.
pub fn random(worker: &mut Worker<'_>) -> Result<()> {
    look_up(worker, worker.plan.num)
}

/// Looks up random keys of the first hundredth.
pub fn hot(worker: &mut Worker<'_>) -> Result<()> {
    look_up(worker, worker.plan.num.div_ceil(100))
}

fn look_up(worker: &mut Worker<'_>, range: u64) -> Result<()> {
    let Worker { random, plan, meter, .. } = worker;
    let mut key = plan.keys.buffer();
    let mut found = 0;
    while meter.more() {
        let value = plan.db.get(key.set(random.uniform(range)))?;
        found += u64::from(value.is_some());
        meter.finished(1, 0);
    }
    meter.set_found(found);
    Ok(())
}

/// Looks up random keys that no benchmark writes.
pub fn missing(worker: &mut Worker<'_>) -> Result<()> {
    let Worker { random, plan, meter, .. } = worker;
    let mut key = plan.keys.buffer();
    let mut found = 0;
    while meter.more() {
        let value = plan.db.get(key.set_missing(random.uniform(plan.num)))?;
        found += u64::from(value.is_some());
        meter.finished(1, 0);
    }
    meter.set_found(found);
    Ok(())
}

/// The first thread writes random keys until the others have read theirs. It
/// is not measured, as in LevelDB; how much it wrote is told.
pub fn random_while_writing(worker: &mut Worker<'_>) -> Result<()> {
    if worker.index > 0 {
        return random(worker);
    }
    let Worker { random, plan, meter, .. } = worker;
    let mut key = plan.keys.buffer();
    let mut values = plan.values.source();
    let mut batch = lodestore::WriteBatch::new();
    let mut written = 0;
    while plan.running.load(Ordering::Relaxed) > 1 {
        batch.clear();
        batch.put(key.set(random.uniform(plan.num)), values.next(plan.value_bytes));
        plan.db.write_with(&plan.write_options, &mut batch)?;
        written += 1;
    }
    meter.set_beside(written);
    Ok(())
}

/// Reads forwards from the first entry.
pub fn sequential(worker: &mut Worker<'_>) -> Result<()> {
    scan(worker, DbCursor::first, DbCursor::next)
}

/// Reads backwards from the last entry.
pub fn reverse(worker: &mut Worker<'_>) -> Result<()> {
    scan(worker, DbCursor::last, DbCursor::prev)
}

#[inline]
fn scan(
    worker: &mut Worker<'_>,
    begin: impl Fn(&mut DbCursor),
    step: impl Fn(&mut DbCursor),
) -> Result<()> {
    let Worker { plan, meter, .. } = worker;
    let mut cursor = plan.db.cursor();
    begin(&mut cursor);
    while meter.more() {
        if !cursor.valid() {
            cursor.status()?;
            // A run limited by time starts again at the end of the entries.
            if plan.duration.is_none() || meter.done() == 0 {
                break;
            }
            begin(&mut cursor);
            if !cursor.valid() {
                break;
            }
        }
        meter.finished(1, cursor.key().len() + cursor.value().len());
        step(&mut cursor);
    }
    cursor.status()
}

/// Makes a cursor and seeks, for each operation anew.
pub fn seek_random(worker: &mut Worker<'_>) -> Result<()> {
    let Worker { random, plan, meter, .. } = worker;
    let mut key = plan.keys.buffer();
    let mut found = 0;
    while meter.more() {
        let key = key.set(random.uniform(plan.num));
        let mut cursor = plan.db.cursor();
        cursor.seek(key);
        if cursor.valid() {
            found += u64::from(cursor.key() == key);
        } else {
            cursor.status()?;
        }
        drop(cursor);
        meter.finished(1, 0);
    }
    meter.set_found(found);
    Ok(())
}
