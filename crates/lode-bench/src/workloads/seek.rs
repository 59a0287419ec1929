//! Benchmarks that seek, and perhaps read on from there.

use lodestore::{DbCursor, Result};

use super::beside;
use crate::shapes::SeekShape;
use crate::worker::Worker;

/// Makes a cursor and seeks to a random key, for each operation anew; reads on
/// as `--seek_nexts` and `--reverse_iterator` say.
pub fn random(worker: &mut Worker<'_>) -> Result<()> {
    let Worker { random, plan, meter, .. } = worker;
    let mut key = plan.keys.buffer();
    let mut found = 0;
    while meter.more() {
        let key = key.set(random.uniform(plan.num));
        let mut cursor = plan.db.cursor();
        cursor.seek(key);
        found += u64::from(cursor.valid() && cursor.key() == key);
        let bytes = read_on(&mut cursor, plan.shapes.seek);
        cursor.status()?;
        drop(cursor);
        meter.finished(1, bytes);
        meter.hold_reads(1);
    }
    meter.set_found(found);
    Ok(())
}

/// [`random`] while the first thread writes.
pub fn random_while_writing(worker: &mut Worker<'_>) -> Result<()> {
    beside::writing(worker, random)
}

/// Seeks with one cursor, each time up to 99 keys further; begins again at the
/// last key.
pub fn ordered(worker: &mut Worker<'_>) -> Result<()> {
    let Worker { random, plan, meter, .. } = worker;
    let mut key = plan.keys.buffer();
    let mut cursor = plan.db.cursor();
    let mut number = 0;
    let mut found = 0;
    while meter.more() {
        number = (number + random.uniform(100)) % plan.num;
        let key = key.set(number);
        cursor.seek(key);
        if cursor.valid() {
            found += u64::from(cursor.key() == key);
        } else {
            cursor.status()?;
        }
        meter.finished(1, 0);
        meter.hold_reads(1);
    }
    meter.set_found(found);
    Ok(())
}

/// Reads the entry where `cursor` is and those after or before it, `--seek_nexts`
/// in all; returns their bytes.
#[inline]
fn read_on(cursor: &mut DbCursor, shape: SeekShape) -> usize {
    let mut bytes = 0;
    for _ in 0..shape.nexts {
        if !cursor.valid() {
            break;
        }
        bytes += cursor.key().len() + cursor.value().len();
        if shape.reverse {
            cursor.prev();
        } else {
            cursor.next();
        }
    }
    bytes
}
