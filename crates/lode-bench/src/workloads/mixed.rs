//! Benchmarks that read and write in turn, and merges.

use lodestore::{Result, WriteBatch};

use crate::worker::{Parts, Worker};

/// Of each 100 operations, looks up `--readwritepercent` random keys, then puts
/// random keys.
pub fn read_write(worker: &mut Worker<'_>) -> Result<()> {
    let Worker { random, plan, meter, .. } = worker;
    let mut key = plan.keys.buffer();
    let mut values = plan.values.source();
    let mut batch = WriteBatch::new();
    let mut parts = Parts::default();
    while meter.more() {
        let key = key.set(random.uniform(plan.num));
        if meter.done() % 100 < plan.shapes.read_percent {
            parts.reads += 1;
            parts.found += u64::from(plan.db.get(key)?.is_some());
            meter.finished(1, 0);
            meter.hold_reads(1);
        } else {
            let value = values.next(plan.value_bytes);
            let bytes = key.len() + value.len();
            batch.clear();
            batch.put(key, value);
            plan.db.write_with(&plan.write_options, &mut batch)?;
            parts.writes += 1;
            parts.value_bytes += value.len() as u64;
            meter.finished(1, 0);
            meter.hold_writes(bytes);
        }
    }
    meter.set_parts(parts);
    Ok(())
}

/// Looks up a random key, then puts a new value under it: one operation.
pub fn update(worker: &mut Worker<'_>) -> Result<()> {
    let Worker { random, plan, meter, .. } = worker;
    let mut key = plan.keys.buffer();
    let mut values = plan.values.source();
    let mut batch = WriteBatch::new();
    let mut parts = Parts::default();
    while meter.more() {
        let key = key.set(random.uniform(plan.num));
        let mut bytes = 0;
        if let Some(value) = plan.db.get(key)? {
            parts.found += 1;
            bytes = key.len() + value.len();
        }
        let value = values.next(plan.value_bytes);
        batch.clear();
        batch.put(key, value);
        plan.db.write_with(&plan.write_options, &mut batch)?;
        let written = key.len() + value.len();
        parts.reads += 1;
        parts.writes += 1;
        parts.value_bytes += value.len() as u64;
        meter.finished(1, bytes + written);
        meter.hold_writes(written);
    }
    meter.set_parts(parts);
    Ok(())
}

/// Merges operands into random keys of the first `--merge_keys`, without
/// reading them.
pub fn merge(worker: &mut Worker<'_>) -> Result<()> {
    let Worker { random, plan, meter, .. } = worker;
    let mut key = plan.keys.buffer();
    let mut values = plan.values.source();
    let mut batch = WriteBatch::new();
    let mut parts = Parts::default();
    while meter.more() {
        let key = key.set(random.uniform(plan.shapes.merge_keys));
        let operand = values.next(plan.value_bytes);
        let bytes = key.len() + operand.len();
        batch.clear();
        batch.merge(key, operand);
        plan.db.write_with(&plan.write_options, &mut batch)?;
        parts.writes += 1;
        parts.value_bytes += operand.len() as u64;
        meter.finished(1, bytes);
        meter.hold_writes(bytes);
    }
    meter.set_parts(parts);
    Ok(())
}
