//! What happened when, within one benchmark: samples for plots and for JSON.
//! Their number is bounded: when there are too many, every second one goes and
//! the next come half as often.

use std::time::Duration;

use lodestore::{Counter, Db};
use serde::Serialize;

use crate::counts::Counts;

/// The first samples are this far apart...
const STEP_MIN: Duration = Duration::from_millis(50);
/// ...and there are never more than this.
const SAMPLES_MAX: usize = 400;

/// The state at one moment. Amounts are those since the benchmark began.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Sample {
    /// Seconds since the benchmark began.
    pub seconds: f64,
    /// Operations.
    pub ops: u64,
    /// Bytes of keys and values that the program wrote.
    pub user_bytes: u64,
    /// Bytes of tables that flushes wrote.
    pub flush_bytes: u64,
    /// Bytes of tables that compactions wrote.
    pub compaction_bytes: u64,
    /// Seconds that writers were held back, summed over the writers.
    pub stall_seconds: f64,
    /// Bytes of the tables of each level, now.
    pub level_bytes: Vec<u64>,
    /// Bytes of the memtables, now.
    pub memtable_bytes: u64,
}

impl Sample {
    /// The state of `db` now; `counts` are those since the benchmark began.
    pub fn now(elapsed: Duration, ops: u64, counts: &Counts, db: &Db) -> Sample {
        let stats = db.stats();
        Sample {
            seconds: elapsed.as_secs_f64(),
            ops,
            user_bytes: counts.get(Counter::UserBytesWritten),
            flush_bytes: counts.get(Counter::FlushBytes),
            compaction_bytes: counts.get(Counter::CompactionBytesWritten),
            stall_seconds: counts.stall_seconds(),
            level_bytes: stats.levels.iter().map(|level| level.bytes).collect(),
            memtable_bytes: stats.memtable_bytes,
        }
    }

    /// Bytes of memtables and tables, now.
    pub fn bytes(&self) -> u64 {
        self.memtable_bytes + self.level_bytes.iter().sum::<u64>()
    }
}

/// The samples of one benchmark.
#[derive(Clone, Debug)]
pub struct Timeline {
    samples: Vec<Sample>,
    step: Duration,
    next: Duration,
}

impl Default for Timeline {
    fn default() -> Timeline {
        Timeline { samples: Vec::new(), step: STEP_MIN, next: Duration::ZERO }
    }
}

impl Timeline {
    /// True if a sample is wanted, so much after the benchmark began.
    pub fn is_due(&self, elapsed: Duration) -> bool {
        elapsed >= self.next
    }

    /// Adds a sample, which is later than those before it.
    pub fn add(&mut self, elapsed: Duration, sample: Sample) {
        self.samples.push(sample);
        if self.samples.len() > SAMPLES_MAX {
            let mut keep = false;
            self.samples.retain(|_| {
                keep = !keep;
                keep
            });
            self.step *= 2;
        }
        self.next = elapsed + self.step;
    }

    /// All samples, the first at the beginning.
    pub fn into_samples(self) -> Vec<Sample> {
        self.samples
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A day gives no more samples than a minute, from its beginning to its end.
    #[test]
    fn samples_are_bounded_and_evenly_spread() {
        let mut timeline = Timeline::default();
        for millis in (0..86_400_000u64).step_by(50) {
            let elapsed = Duration::from_millis(millis);
            if timeline.is_due(elapsed) {
                let seconds = elapsed.as_secs_f64();
                timeline.add(elapsed, Sample { seconds, ..Sample::default() });
            }
        }
        let samples = timeline.into_samples();
        assert!((SAMPLES_MAX / 2..=SAMPLES_MAX).contains(&samples.len()), "{}", samples.len());
        assert_eq!(samples[0].seconds, 0.0);
        let gaps: Vec<f64> = samples.windows(2).map(|p| p[1].seconds - p[0].seconds).collect();
        let longest = gaps.iter().copied().fold(0.0, f64::max);
        assert!(gaps.iter().all(|&gap| gap > longest / 4.0), "{gaps:?}");
        assert!(samples[samples.len() - 1].seconds > 86_400.0 - 2.0 * longest);
    }
}
