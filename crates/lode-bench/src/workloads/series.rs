//! `timeseries`: one thread adds entries of a random id and the next time, the
//! others read all entries of a random id, or delete those that are expired.
//!
//! The clock counts entries, so that equal flags write equal keys.

use std::sync::atomic::Ordering;

use lodestore::{ReadOptions, Result, WriteBatch};

use crate::keys::KeyBuffer;
use crate::worker::{Plan, Worker};

/// Runs the first thread's part, or one of the others'.
pub fn run(worker: &mut Worker<'_>) -> Result<()> {
    match worker.index {
        0 => write(worker),
        index if index <= worker.plan.shapes.series.deletion_threads => delete(worker),
        _ => read(worker),
    }
}

fn write(worker: &mut Worker<'_>) -> Result<()> {
    let Worker { random, plan, meter, .. } = worker;
    meter.set_beside();
    let mut key = plan.keys.buffer();
    let mut values = plan.values.source();
    let mut batch = WriteBatch::new();
    let entry_bytes = plan.keys.key_bytes() + plan.value_bytes;
    while meter.more() {
        let id = random.uniform(plan.shapes.series.ids);
        let time = plan.clock.fetch_add(1, Ordering::Relaxed);
        batch.clear();
        batch.put(key.set_pair(id, time), values.next(plan.value_bytes));
        plan.db.write_with(&plan.write_options, &mut batch)?;
        meter.finished(1, entry_bytes);
        meter.hold_writes(entry_bytes);
    }
    Ok(())
}

/// An operation is one entry that was read.
fn read(worker: &mut Worker<'_>) -> Result<()> {
    let Worker { random, plan, meter, .. } = worker;
    let mut key = plan.keys.buffer();
    let (mut ids, mut found) = (0, 0);
    while meter.more_while(plan.leader_runs()) {
        let mut cursor = entries_of_id(plan, &mut key, random.uniform(plan.shapes.series.ids));
        ids += 1;
        found += u64::from(cursor.valid());
        while cursor.valid() {
            meter.finished(1, cursor.key().len() + cursor.value().len());
            cursor.next();
        }
        cursor.status()?;
        meter.hold_reads(1);
    }
    meter.set_found_of(found, ids);
    Ok(())
}

/// An operation is one entry that was deleted.
fn delete(worker: &mut Worker<'_>) -> Result<()> {
    let Worker { random, plan, meter, .. } = worker;
    let mut key = plan.keys.buffer();
    let mut batch = WriteBatch::new();
    let (mut ids, mut found) = (0, 0);
    while meter.more_while(plan.leader_runs()) {
        let mut cursor = entries_of_id(plan, &mut key, random.uniform(plan.shapes.series.ids));
        ids += 1;
        found += u64::from(cursor.valid());
        let now = plan.clock.load(Ordering::Relaxed);
        let oldest = now.saturating_sub(plan.shapes.series.time_range);
        // Times ascend: after the first that is not expired none is.
        while cursor.valid() && key.second_of(cursor.key()).is_some_and(|time| time < oldest) {
            batch.clear();
            batch.delete(cursor.key());
            plan.db.write_with(&plan.write_options, &mut batch)?;
            meter.finished(1, cursor.key().len());
            cursor.next();
        }
        cursor.status()?;
        meter.hold_reads(1);
    }
    meter.set_found_of(found, ids);
    Ok(())
}

/// A cursor at the first entry of `id`, that sees no other id's.
fn entries_of_id(plan: &Plan<'_>, key: &mut KeyBuffer, id: u64) -> lodestore::DbCursor {
    key.set_pair(id, 0);
    let prefix = Some(key.pair_prefix().to_vec());
    let mut cursor = plan.db.cursor_with(ReadOptions { prefix, ..ReadOptions::default() });
    cursor.first();
    cursor
}
