//! The engine's counters at a moment, and what happened between two moments.

use lodestore::{Counter, Statistics};

/// The value of every counter.
#[derive(Clone, Debug, Default)]
pub struct Counts {
    values: Vec<u64>,
}

impl Counts {
    /// The counters now.
    pub fn now(statistics: &Statistics) -> Counts {
        Counts { values: Counter::ALL.iter().map(|&c| statistics.get(c)).collect() }
    }

    /// What happened since `before`.
    pub fn since(&self, before: &Counts) -> Counts {
        let pairs = self.values.iter().enumerate();
        let value = |at: usize| before.values.get(at).copied().unwrap_or(0);
        Counts { values: pairs.map(|(at, now)| now.saturating_sub(value(at))).collect() }
    }

    /// One counter.
    pub fn get(&self, counter: Counter) -> u64 {
        let at = Counter::ALL.iter().position(|&c| c == counter);
        at.and_then(|at| self.values.get(at)).copied().unwrap_or(0)
    }

    /// Counters that are not zero, with their names.
    pub fn named(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let pairs = Counter::ALL.iter().zip(&self.values);
        pairs.filter(|&(_, &value)| value > 0).map(|(counter, &value)| (counter.name(), value))
    }

    /// Bytes written to tables for each byte that the program wrote; `None` if
    /// it wrote nothing. The log is not in it.
    pub fn write_amplification(&self) -> Option<f64> {
        let tables = self.get(Counter::FlushBytes) + self.get(Counter::CompactionBytesWritten);
        ratio(tables, self.get(Counter::UserBytesWritten))
    }

    /// The part of block lookups that the cache answered.
    pub fn cache_hit_rate(&self) -> Option<f64> {
        let hits = self.get(Counter::CacheHits);
        ratio(hits, hits + self.get(Counter::CacheMisses))
    }

    /// Seconds that writers were held back, summed over the writers.
    pub fn stall_seconds(&self) -> f64 {
        let micros = self.get(Counter::StallLevel0Micros)
            + self.get(Counter::StallMemtableMicros)
            + self.get(Counter::StallDebtMicros);
        micros as f64 / 1e6
    }
}

fn ratio(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}
