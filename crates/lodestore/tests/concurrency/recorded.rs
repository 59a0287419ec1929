//! Writes that were acknowledged, with the time of that, and the states of the
//! database that follow from them.

use lodestore::{Db, MemFs, Options, Result, Scheduler, WriteBatch, WriteOptions};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

pub const DIRECTORY: &str = "/concurrency";

/// A small database on `fs`.
pub fn options(fs: &MemFs, seed: u64) -> Options {
    let fs = Arc::new(fs.clone());
    let mut options = Options { create_if_missing: true, fs, ..Options::default() };
    options.scheduler = Some(Scheduler::seeded(1, seed));
    options.cache_bytes = 0;
    options.family.block_bytes = 256;
    options
}

/// One acknowledged write.
#[derive(Clone, Copy, Debug)]
pub struct Acknowledged {
    pub writer: usize,
    /// From 1 on, for each writer.
    pub index: u64,
    /// Of its last record.
    pub sequence: u64,
    pub synced: bool,
    begin: u64,
    end: u64,
}

/// All that were acknowledged, by a clock that everybody shares.
#[derive(Default)]
pub struct Recorded {
    clock: AtomicU64,
    list: Mutex<Vec<Acknowledged>>,
}

impl Recorded {
    pub fn now(&self) -> u64 {
        self.clock.fetch_add(1, Ordering::SeqCst)
    }

    /// Write `index` of `writer`: the index in the writer's own key, in one of
    /// its own for this write, and the writer's name in one that all share.
    pub fn write(
        &self,
        db: &Db,
        options: &WriteOptions,
        (writer, index): (usize, u64),
    ) -> Result<u64> {
        let mut batch = WriteBatch::new();
        batch.put(&last_key(writer), &index.to_le_bytes());
        batch.put(&key(writer, index), b"");
        batch.put(b"shared", &[writer as u8]);
        let begin = self.now();
        let sequence = db.write_with(options, &mut batch)?;
        let (end, synced) = (self.now(), options.sync);
        let done = Acknowledged { writer, index, sequence, synced, begin, end };
        self.list.lock().expect("nobody panics").push(done);
        Ok(sequence)
    }

    /// In the order of their numbers, which must be one in which they could have
    /// been made one after the other.
    pub fn sorted(&self) -> Vec<Acknowledged> {
        let mut list = self.list.lock().expect("nobody panics").clone();
        list.sort_by_key(|done| done.sequence);
        for (at, later) in list.iter().enumerate() {
            for earlier in &list[..at] {
                assert!(earlier.sequence < later.sequence, "{earlier:?} and {later:?}");
                let is_possible = later.end > earlier.begin;
                assert!(is_possible, "{later:?} had ended before {earlier:?} began");
            }
        }
        list
    }

    /// The highest number of those that had been acknowledged at `time`.
    pub fn acknowledged_at(&self, time: u64) -> u64 {
        let list = self.list.lock().expect("nobody panics");
        list.iter().filter(|done| done.end < time).map(|done| done.sequence).max().unwrap_or(0)
    }
}

pub fn last_key(writer: usize) -> Vec<u8> {
    format!("last-{writer}").into_bytes()
}

pub fn key(writer: usize, index: u64) -> Vec<u8> {
    format!("write-{writer}-{index}").into_bytes()
}

/// The last index of each writer up to `sequence`.
pub fn state_at(sorted: &[Acknowledged], writers: usize, sequence: u64) -> Vec<u64> {
    let mut state = vec![0; writers];
    for done in sorted.iter().filter(|done| done.sequence <= sequence) {
        state[done.writer] = done.index;
    }
    state
}

/// What the writers' own keys hold.
pub fn indices<T: AsRef<[u8]>>(values: Vec<Result<Option<T>>>) -> Vec<u64> {
    values
        .into_iter()
        .map(|value| value.expect("memory can be read"))
        .map(|value| value.map_or(0, |v| u64::from_le_bytes(v.as_ref().try_into().expect("8"))))
        .collect()
}
