//! The engine's counters at a moment, and what happened between two moments.

use lodestore::{Counter, Statistics};

/// Something for which writers are held back.
#[derive(Clone, Copy, Debug)]
pub struct StallCause {
    /// Its name in reports.
    pub name: &'static str,
    /// Microseconds that writers were held back for it.
    pub micros: Counter,
    /// What was the matter, and what helps.
    pub advice: &'static str,
}

/// All of them.
pub const STALL_CAUSES: [StallCause; 4] = [
    StallCause {
        name: "level 0",
        micros: Counter::StallLevel0Micros,
        advice: "level 0 was long; more --background_threads shorten it",
    },
    StallCause {
        name: "flushes",
        micros: Counter::StallMemtableMicros,
        advice: "flushes lagged; a larger --write_buffer_size evens that out",
    },
    StallCause {
        name: "compaction debt",
        micros: Counter::StallDebtMicros,
        advice: "compactions owed too much; more --background_threads help, or fewer writes",
    },
    StallCause {
        name: "memory",
        micros: Counter::StallMemoryMicros,
        advice: "memtables held their share of the memory; a larger --memory_budget helps",
    },
];

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

    /// The part of row lookups that the row cache answered.
    pub fn row_hit_rate(&self) -> Option<f64> {
        let hits = self.get(Counter::RowHits);
        ratio(hits, hits + self.get(Counter::RowMisses))
    }

    /// Seconds that writers were held back, summed over the writers, whatever
    /// for.
    pub fn stall_seconds(&self) -> f64 {
        let micros: u64 = STALL_CAUSES.iter().map(|cause| self.get(cause.micros)).sum();
        micros as f64 / 1e6
    }
}

fn ratio(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Time in which writers were held back counts whatever the cause is: no
    /// counter of such a time is left out.
    #[test]
    fn every_cause_of_a_stall_counts() {
        let of_time = |counter: &&Counter| {
            counter.name().starts_with("stall.") && counter.name().ends_with("-micros")
        };
        let named: Vec<&Counter> = Counter::ALL.iter().filter(of_time).collect();
        assert_eq!(named.len(), STALL_CAUSES.len());
        let values = Counter::ALL.iter().map(|c| u64::from(named.contains(&c)) * 250_000);
        let counts = Counts { values: values.collect() };
        assert_eq!(counts.stall_seconds(), 1.0);
    }
}
