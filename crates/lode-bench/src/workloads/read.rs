//! Benchmarks that read: lookups and scans.

use lodestore::{DbCursor, Result};

use super::beside;
use crate::random::Random;
use crate::worker::Worker;

/// Looks up random keys.
pub fn random(worker: &mut Worker<'_>) -> Result<()> {
    let lookups = &worker.plan.lookups;
    look_up(worker, |random| lookups.draw(random))
}

/// Looks up random keys of the first hundredth.
pub fn hot(worker: &mut Worker<'_>) -> Result<()> {
    let range = worker.plan.num.div_ceil(100);
    look_up(worker, |random| random.uniform(range))
}

#[inline]
fn look_up(worker: &mut Worker<'_>, draw: impl Fn(&mut Random) -> u64) -> Result<()> {
    let Worker { random, plan, meter, .. } = worker;
    let mut key = plan.keys.buffer();
    let mut found = 0;
    while meter.more() {
        let value = plan.db.get(key.set(draw(random)))?;
        found += u64::from(value.is_some());
        meter.finished(1, 0);
        meter.hold_reads(1);
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
        meter.hold_reads(1);
    }
    meter.set_found(found);
    Ok(())
}

/// Looks up random keys while the first thread writes.
pub fn random_while_writing(worker: &mut Worker<'_>) -> Result<()> {
    beside::writing(worker, random)
}

/// Looks up random keys while the first thread scans.
pub fn random_while_scanning(worker: &mut Worker<'_>) -> Result<()> {
    beside::scanning(worker, random)
}

/// Looks up random keys, `--batch_size` of them in one `multi_get`.
pub fn multi_random(worker: &mut Worker<'_>) -> Result<()> {
    let Worker { random, plan, meter, .. } = worker;
    let mut keys = vec![plan.keys.buffer(); plan.batch_entries as usize];
    let stride = plan.shapes.multiread_stride;
    let mut found = 0;
    while meter.more() {
        let count = plan.batch_entries.min(meter.left()) as usize;
        let keys = &mut keys[..count];
        // The last key of a batch with a stride must be a key, too.
        let room = plan.num.saturating_sub((count as u64 - 1).saturating_mul(stride)).max(1);
        let mut number = plan.lookups.draw(random).min(room - 1);
        for key in keys.iter_mut() {
            key.set(number);
            number = match stride {
                0 => plan.lookups.draw(random),
                _ => (number + stride) % plan.num,
            };
        }
        let mut bytes = 0;
        for value in plan.db.multi_get(keys) {
            if let Some(value) = value? {
                found += 1;
                bytes += plan.keys.key_bytes() + value.len();
            }
        }
        meter.finished(count as u64, bytes);
        meter.hold_reads(count as u64);
    }
    meter.set_found(found);
    Ok(())
}

/// [`multi_random`] while the first thread writes.
pub fn multi_random_while_writing(worker: &mut Worker<'_>) -> Result<()> {
    beside::writing(worker, multi_random)
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
