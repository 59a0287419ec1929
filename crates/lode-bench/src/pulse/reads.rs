//! The reads of a round, three ways: one thread in the order of the keys, many
//! threads with a part of that order each, many keys at once (`multi_get`).
//!
//! What is found is kept as a digest while the clock runs, and compared with
//! what the stream says afterwards.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use lodestore::Db;

use crate::error::BenchError;
use crate::histogram::Histogram;
use crate::pulse::entry::{Entries, Key, digest};

/// Reads between looks at the stop flag.
const CHECK_READS: usize = 256;

/// How a round reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// One thread gets key after key, in sorted order.
    Sort,
    /// Threads (see --threads) get a part of the sorted keys each.
    Mread,
    /// Threads get many keys (see --batch-keys) with each call.
    Batch,
}

impl Mode {
    /// The name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Mode::Sort => "sort",
            Mode::Mread => "mread",
            Mode::Batch => "batch",
        }
    }
}

/// A key that is read, and the digest of the value that must be there.
#[derive(Clone, Debug)]
pub struct Wanted {
    key: Key,
    digest: u64,
}

impl AsRef<[u8]> for Wanted {
    fn as_ref(&self) -> &[u8] {
        &self.key
    }
}

/// What the reads of a round came to.
#[derive(Debug)]
pub struct ReadsDone {
    /// From the sorting of the keys to the last value.
    pub elapsed: Duration,
    /// Time of each call.
    pub histogram: Histogram,
    /// False if the user stopped it: nothing was compared then.
    pub complete: bool,
}

/// Reads with so many threads.
#[derive(Clone, Copy, Debug)]
pub struct Reader<'a> {
    /// From here.
    pub db: &'a Db,
    /// In this way.
    pub mode: Mode,
    /// With so many threads; 1 in [`Mode::Sort`].
    pub threads: usize,
    /// Keys of a call in [`Mode::Batch`].
    pub batch_keys: usize,
    /// Set when the user wants it to end.
    pub stop: &'a AtomicBool,
}

/// What must be found for the entries of these numbers.
pub fn wanted(entries: &Entries, numbers: &[u64]) -> Vec<Wanted> {
    let mut value = Vec::new();
    let wanted = numbers.iter().map(|&number| {
        entries.value(number, &mut value);
        Wanted { key: entries.key(number), digest: digest(&value) }
    });
    wanted.collect()
}

impl Reader<'_> {
    /// Reads all of `wanted`, which is sorted first, and compares.
    /// # Errors: `Damaged` names the first key whose value is not the one that
    /// was written.
    pub fn read(&self, wanted: &mut [Wanted], during: &str) -> Result<ReadsDone, BenchError> {
        let mut found = vec![0; wanted.len()];
        let start = Instant::now();
        wanted.sort_unstable_by_key(|w| w.key);
        let histograms = self.read_parts(wanted, &mut found);
        let elapsed = start.elapsed();
        let mut histogram = Histogram::default();
        for part in histograms.map_err(BenchError::engine(during))? {
            histogram.merge(&part);
        }
        let complete = !self.stop.load(Ordering::Relaxed);
        if complete {
            compare(wanted, &found, during)?;
        }
        Ok(ReadsDone { elapsed, histogram, complete })
    }

    fn read_parts(
        &self,
        wanted: &[Wanted],
        found: &mut [u64],
    ) -> lodestore::Result<Vec<Histogram>> {
        let part = wanted.len().div_ceil(self.threads).max(1);
        if self.threads == 1 {
            return Ok(vec![self.read_part(wanted, found)?]);
        }
        std::thread::scope(|scope| {
            let parts = wanted.chunks(part).zip(found.chunks_mut(part));
            let threads: Vec<_> = parts
                .map(|(wanted, found)| scope.spawn(|| self.read_part(wanted, found)))
                .collect();
            threads.into_iter().map(|t| t.join().expect("readers return errors")).collect()
        })
    }

    fn read_part(&self, wanted: &[Wanted], found: &mut [u64]) -> lodestore::Result<Histogram> {
        match self.mode {
            Mode::Sort | Mode::Mread => self.get_each(wanted, found),
            Mode::Batch => self.get_many(wanted, found),
        }
    }

    fn get_each(&self, wanted: &[Wanted], found: &mut [u64]) -> lodestore::Result<Histogram> {
        let mut histogram = Histogram::default();
        let mut last = Instant::now();
        for (at, (wanted, found)) in wanted.iter().zip(found).enumerate() {
            if at % CHECK_READS == 0 && self.stop.load(Ordering::Relaxed) {
                break;
            }
            *found = self.db.get(&wanted.key)?.map_or(0, |value| digest(&value));
            let now = Instant::now();
            histogram.add(now - last);
            last = now;
        }
        Ok(histogram)
    }

    fn get_many(&self, wanted: &[Wanted], found: &mut [u64]) -> lodestore::Result<Histogram> {
        let mut histogram = Histogram::default();
        let keys = self.batch_keys;
        for (wanted, found) in wanted.chunks(keys).zip(found.chunks_mut(keys)) {
            if self.stop.load(Ordering::Relaxed) {
                break;
            }
            let start = Instant::now();
            for (found, value) in found.iter_mut().zip(self.db.multi_get(wanted)) {
                *found = value?.map_or(0, |value| digest(&value));
            }
            histogram.add(start.elapsed());
        }
        Ok(histogram)
    }
}

fn compare(wanted: &[Wanted], found: &[u64], during: &str) -> Result<(), BenchError> {
    let pairs = || wanted.iter().zip(found).filter(|(wanted, found)| wanted.digest != **found);
    let Some((first, digest)) = pairs().next() else {
        return Ok(());
    };
    let (wrong, all) = (pairs().count(), wanted.len());
    let what = if *digest == 0 { "is not there" } else { "has another value than was written" };
    let key: String = first.key.iter().map(|byte| format!("{byte:02x}")).collect();
    Err(BenchError::Damaged(format!(
        "{during}: {wrong} of {all} keys are wrong; the first of them, {key}, {what}; \
         lode db verify looks for damage"
    )))
}
