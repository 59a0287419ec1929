//! Benchmarks that only write: puts and deletes.

use lodestore::{Result, WriteBatch};

use crate::random::Random;
use crate::worker::{Plan, Worker};

/// Puts keys 0, 1, 2, ...
pub fn put_sequential(worker: &mut Worker<'_>) -> Result<()> {
    put(worker, sequential)
}

/// Puts random keys.
pub fn put_random(worker: &mut Worker<'_>) -> Result<()> {
    put(worker, random)
}

/// Deletes keys 0, 1, 2, ...
pub fn delete_sequential(worker: &mut Worker<'_>) -> Result<()> {
    delete(worker, sequential)
}

/// Deletes random keys.
pub fn delete_random(worker: &mut Worker<'_>) -> Result<()> {
    delete(worker, random)
}

/// Puts every key once, in random order.
pub fn put_unique_random(worker: &mut Worker<'_>) -> Result<()> {
    put(worker, unique_random)
}

/// The number of the `at`-th key that a thread writes.
type Choose = fn(&mut Random, at: u64, plan: &Plan<'_>) -> u64;

fn sequential(_: &mut Random, at: u64, plan: &Plan<'_>) -> u64 {
    // Only a run limited by time comes round to the first key again.
    if at < plan.num { at } else { at % plan.num }
}

fn random(random: &mut Random, _: u64, plan: &Plan<'_>) -> u64 {
    random.uniform(plan.num)
}

fn unique_random(random: &mut Random, at: u64, plan: &Plan<'_>) -> u64 {
    plan.permutation.at(sequential(random, at, plan))
}

#[inline]
fn put(worker: &mut Worker<'_>, choose: Choose) -> Result<()> {
    let plan = worker.plan;
    let mut key = plan.keys.buffer();
    let mut values = plan.values.source();
    let entry_bytes = plan.keys.key_bytes() + plan.value_bytes;
    write_batches(worker, |random, at, batch| {
        let key = key.set(choose(random, at, plan));
        batch.put(key, values.next(plan.value_bytes));
        entry_bytes
    })
}

fn delete(worker: &mut Worker<'_>, choose: Choose) -> Result<()> {
    let plan = worker.plan;
    let mut key = plan.keys.buffer();
    write_batches(worker, |random, at, batch| {
        batch.delete(key.set(choose(random, at, plan)));
        0
    })
}

/// Writes batches until the meter says that it is enough. `add` puts the
/// `at`-th record into the batch and returns the bytes that count for MB/s.
#[inline]
fn write_batches(
    worker: &mut Worker<'_>,
    mut add: impl FnMut(&mut Random, u64, &mut WriteBatch) -> usize,
) -> Result<()> {
    let Worker { random, plan, meter, .. } = worker;
    let mut batch = WriteBatch::new();
    while meter.more() {
        batch.clear();
        let entries = plan.batch_entries.min(meter.left());
        let mut bytes = 0;
        for at in meter.done()..meter.done() + entries {
            bytes += add(random, at, &mut batch);
        }
        plan.db.write_with(&plan.write_options, &mut batch)?;
        meter.finished(entries, bytes);
        meter.hold_writes(bytes);
    }
    Ok(())
}
