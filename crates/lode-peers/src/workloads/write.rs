//! Fills and deletes.

use super::{Done, Purpose, Run, Timer};
use crate::engine::{Changes, Result};
use crate::stream::Keys;
use crate::workload::{DELETE_ALL_BUT, ENTRIES_PER_SLOW_ONE, SLOW_ONES_MIN};

/// Changes that one batch of the workload's preparation has for everybody.
pub const LOAD_CHANGES: usize = 1_000;

/// Version of values that fills write, and that overwrites do.
const FILLED: u64 = 0;
const OVERWRITTEN: u64 = 1;

pub fn fill_in_order(run: &Run<'_>) -> Result<Done> {
    put_all(run, 0..run.stream.entries(), FILLED)
}

pub fn fill_at_random(run: &Run<'_>) -> Result<Done> {
    put_all(run, filled_at_random(run), FILLED)
}

pub fn overwrite(run: &Run<'_>) -> Result<Done> {
    put_all(run, drawn(run, Purpose::Overwrite), OVERWRITTEN)
}

pub fn delete_in_order(run: &Run<'_>) -> Result<Done> {
    delete_all(run, 0..first_kept(run))
}

pub fn delete_at_random(run: &Run<'_>) -> Result<Done> {
    delete_all(run, drawn(run, Purpose::Delete))
}

pub fn fill_synced(run: &Run<'_>) -> Result<Done> {
    let mut writer = Writer::new(run);
    for number in slow_ones(run) {
        let value = run.stream.value(number, FILLED);
        writer.put_synced(number, value)?;
    }
    writer.finish()
}

pub fn fill_large(run: &Run<'_>) -> Result<Done> {
    // A batch of many would be larger than memtables are.
    let mut writer = Writer::new(&Run { batch_changes: 1, ..*run });
    for number in slow_ones(run) {
        let value = run.stream.large_value(number);
        writer.put(number, value)?;
    }
    writer.finish()
}

/// The first number that deleteseq leaves.
pub fn first_kept(run: &Run<'_>) -> u64 {
    run.stream.entries() - run.stream.entries().div_ceil(DELETE_ALL_BUT)
}

/// What fillrandom writes, in its order.
pub fn filled_at_random(run: &Run<'_>) -> impl Iterator<Item = u64> + use<> {
    drawn(run, Purpose::Fill)
}

fn drawn(run: &Run<'_>, purpose: Purpose) -> impl Iterator<Item = u64> + use<> {
    run.stream.draws(purpose as u64).take(run.stream.entries() as usize)
}

/// Of the entries that take long, fewer are written, at random.
fn slow_ones(run: &Run<'_>) -> impl Iterator<Item = u64> + use<> {
    let entries = run.stream.entries();
    let count = (entries / ENTRIES_PER_SLOW_ONE).max(SLOW_ONES_MIN.min(entries));
    run.stream.draws(Purpose::Fill as u64).take(count as usize)
}

fn put_all(run: &Run<'_>, numbers: impl Iterator<Item = u64>, version: u64) -> Result<Done> {
    let mut writer = Writer::new(run);
    for number in numbers {
        let value = run.stream.value(number, version);
        writer.put(number, value)?;
    }
    writer.finish()
}

fn delete_all(run: &Run<'_>, numbers: impl Iterator<Item = u64>) -> Result<Done> {
    let mut writer = Writer::new(run);
    for number in numbers {
        writer.delete(number)?;
    }
    writer.finish()
}

/// Writes single entries, or batches where the lane says so.
struct Writer<'a> {
    run: Run<'a>,
    keys: Keys,
    changes: Changes,
    timer: Timer,
    done: Done,
}

impl<'a> Writer<'a> {
    fn new(run: &Run<'a>) -> Writer<'a> {
        Writer {
            run: *run,
            keys: run.stream.keys(),
            changes: Changes::default(),
            timer: Timer::new(run),
            done: Done::default(),
        }
    }

    #[inline]
    fn put(&mut self, number: u64, value: &[u8]) -> Result<()> {
        let key = self.keys.key(number);
        self.done.operations += 1;
        self.done.user_bytes += (key.len() + value.len()) as u64;
        if self.run.batch_changes == 1 {
            return self.timer.time(|| self.run.engine.put(key, value));
        }
        self.changes.put(key, value);
        self.write_if(self.run.batch_changes)
    }

    fn put_synced(&mut self, number: u64, value: &[u8]) -> Result<()> {
        let key = self.keys.key(number);
        self.done.operations += 1;
        self.done.user_bytes += (key.len() + value.len()) as u64;
        self.timer.time(|| self.run.engine.put_synced(key, value))
    }

    #[inline]
    fn delete(&mut self, number: u64) -> Result<()> {
        let key = self.keys.key(number);
        self.done.operations += 1;
        self.done.user_bytes += key.len() as u64;
        if self.run.batch_changes == 1 {
            return self.timer.time(|| self.run.engine.delete(key));
        }
        self.changes.delete(key);
        self.write_if(self.run.batch_changes)
    }

    /// Writes the batch if it has so many changes.
    fn write_if(&mut self, changes: usize) -> Result<()> {
        if self.changes.len() < changes || self.changes.is_empty() {
            return Ok(());
        }
        self.timer.time(|| self.run.engine.write(&self.changes))?;
        self.changes.clear();
        Ok(())
    }

    fn finish(mut self) -> Result<Done> {
        self.write_if(1)?;
        self.done.latencies = self.timer.latencies;
        Ok(self.done)
    }
}
