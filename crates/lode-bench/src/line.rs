//! One line of results: LevelDB's format, with operations a second on every
//! line, and the same figures for JSON.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use lodestore::Counter;
use serde::Serialize;

use crate::counts::Counts;
use crate::histogram::{Histogram, Latency};
use crate::timeline::Sample;
use crate::worker::{Found, Parts, Total};

/// What a benchmark did.
#[derive(Clone, Debug, Serialize)]
pub struct Line {
    /// The benchmark.
    pub name: String,
    /// Threads that were measured.
    pub threads: u64,
    /// Operations of all threads.
    pub ops: u64,
    /// From the first start to the last end.
    pub seconds: f64,
    /// Time of a thread for each of its operations.
    pub micros_per_op: f64,
    /// Operations of all threads together in a second.
    pub ops_per_second: f64,
    /// Bytes of keys and values, where the benchmark counts them.
    pub bytes: u64,
    /// Mebibytes of keys and values in a second.
    pub mib_per_second: Option<f64>,
    /// Lookups that found their key.
    pub lookups: Option<Found>,
    /// Operations by kind, where there are several kinds.
    pub parts: Option<Parts>,
    /// What the thread beside those that are measured does, as in `writer`.
    pub beside: Option<&'static str>,
    /// Operations of that thread.
    pub ops_beside: Option<u64>,
    /// True if it was run to warm up.
    #[serde(skip)]
    warmup: bool,
    /// True if the user ended it.
    pub stopped: bool,
    /// Remarks of LevelDB's kind, as in `(1000 ops)`.
    pub remark: Option<String>,
    /// Comparisons of keys, if they were counted.
    pub comparisons: Option<u64>,
    /// Percentiles, if operations were timed.
    pub latency: Option<Latency>,
    /// What the engine counted meanwhile.
    pub counters: BTreeMap<&'static str, u64>,
    /// The part of block lookups that the cache answered.
    pub cache_hit_rate: Option<f64>,
    /// Seconds that writers were held back.
    pub stall_seconds: f64,
    /// Bytes of the database's files afterwards.
    pub disk_bytes: u64,
    /// The most memory of the process until then.
    pub peak_rss_bytes: Option<u64>,
    /// What happened when; empty if nobody wants to know.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub samples: Vec<Sample>,
    /// For [`Line::text`].
    #[serde(skip)]
    histogram: Option<Histogram>,
}

/// What surrounds a measurement.
#[derive(Clone, Debug, Default)]
pub struct Around {
    /// Threads that were measured.
    pub threads: u64,
    /// True if the user ended it.
    pub stopped: bool,
    /// A remark for the line.
    pub remark: Option<String>,
    /// What the thread beside those that are measured does.
    pub beside: Option<&'static str>,
    /// True if it was run to warm up.
    pub warmup: bool,
    /// True if the histogram is wanted below the line.
    pub pictured: bool,
    /// What happened when.
    pub samples: Vec<Sample>,
    /// Comparisons of keys, if they were counted.
    pub comparisons: Option<u64>,
    /// What the engine counted meanwhile.
    pub counts: Counts,
    /// Bytes of the database's files afterwards.
    pub disk_bytes: u64,
    /// The most memory of the process until then.
    pub peak_rss_bytes: Option<u64>,
}

impl Line {
    /// The figures of `total`.
    pub fn new(name: &str, total: Total, around: Around) -> Line {
        let seconds = total.elapsed.as_secs_f64();
        // LevelDB pretends that at least one operation was done.
        let ops = total.ops.max(1) as f64;
        let per_second = |amount: f64| if seconds > 0.0 { amount / seconds } else { 0.0 };
        let mib = total.bytes as f64 / f64::from(1 << 20);
        Line {
            name: name.to_string(),
            threads: around.threads,
            ops: total.ops,
            seconds,
            micros_per_op: total.thread_time.as_secs_f64() * 1e6 / ops,
            ops_per_second: per_second(total.ops as f64),
            bytes: total.bytes,
            mib_per_second: (total.bytes > 0).then(|| per_second(mib)),
            lookups: total.found,
            parts: total.parts,
            beside: around.beside,
            ops_beside: total.beside,
            warmup: around.warmup,
            stopped: around.stopped,
            remark: joined(around.remark, total.remark),
            comparisons: around.comparisons,
            latency: total.histogram.as_ref().and_then(Histogram::latency),
            counters: around.counts.named().collect(),
            cache_hit_rate: around.counts.cache_hit_rate(),
            stall_seconds: around.counts.stall_seconds(),
            disk_bytes: around.disk_bytes,
            peak_rss_bytes: around.peak_rss_bytes,
            samples: around.samples,
            histogram: total.histogram.filter(|_| around.pictured),
        }
    }

    /// True if the engine counted writes meanwhile.
    pub fn wrote(&self) -> bool {
        self.counters.contains_key(Counter::RecordsWritten.name())
    }

    /// True if the engine wrote files meanwhile.
    pub fn changed_disk(&self) -> bool {
        [Counter::LogBytes, Counter::FlushBytes, Counter::CompactionBytesWritten]
            .iter()
            .any(|counter| self.counters.contains_key(counter.name()))
    }

    /// Time of all measured threads together.
    pub fn thread_seconds(&self) -> f64 {
        self.micros_per_op * self.ops as f64 / 1e6
    }

    /// The line, with what follows it: `%-12s : %11.3f micros/op;` as in
    /// LevelDB, then operations a second, then LevelDB's rest.
    pub fn text(&self) -> String {
        let mut text = format!(
            "{:<12} : {:11.3} micros/op; {:.0} ops/s;",
            self.name, self.micros_per_op, self.ops_per_second
        );
        if let Some(rate) = self.mib_per_second {
            let _ = write!(text, " {rate:6.1} MB/s");
        }
        if let Some(Found { found, total }) = self.lookups {
            let _ = write!(text, " ({found} of {total} found)");
        }
        if let (Some(name), Some(ops)) = (self.beside, self.ops_beside) {
            let rate = if self.seconds > 0.0 { ops as f64 / self.seconds } else { 0.0 };
            let _ = write!(text, " ({name}: {rate:.0} ops/s)");
        }
        if let Some(remark) = &self.remark {
            let _ = write!(text, " {remark}");
        }
        if self.warmup {
            text.push_str(" (warm-up)");
        }
        if self.stopped {
            text.push_str(" (stopped)");
        }
        text.push('\n');
        if let Some(histogram) = &self.histogram {
            let _ = write!(text, "Microseconds per op:\n{}\n", histogram.text());
        }
        if let Some(comparisons) = self.comparisons {
            let _ = writeln!(text, "Comparisons: {comparisons}");
        }
        text
    }
}

fn joined(first: Option<String>, second: Option<String>) -> Option<String> {
    match (first, second) {
        (Some(first), Some(second)) => Some(format!("{first} {second}")),
        (first, second) => first.or(second),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn total(ops: u64, bytes: u64, micros: u64, threads: u32) -> Total {
        Total {
            ops,
            bytes,
            thread_time: Duration::from_micros(micros) * threads,
            elapsed: Duration::from_micros(micros),
            ..Total::default()
        }
    }

    /// A script that parses LevelDB's line finds its fields where they were.
    #[test]
    fn line_is_that_of_leveldb_with_ops_per_second() {
        let line = Line::new("fillseq", total(1_000, 116_000, 812, 1), Around::default());
        assert_eq!(
            line.text(),
            "fillseq      :       0.812 micros/op; 1231527 ops/s;  136.2 MB/s\n"
        );
    }

    /// Lookups tell how many found their key; long names push the line along.
    #[test]
    fn lookups_tell_what_was_found() {
        let mut sum = total(2_000, 0, 1_000, 2);
        sum.found = Some(Found { found: 1_500, total: 2_000 });
        sum.beside = Some(70);
        let around = Around { beside: Some("writer"), ..Around::default() };
        let line = Line::new("readwhilewriting", sum, around);
        assert_eq!(
            line.text(),
            "readwhilewriting :       1.000 micros/op; 2000000 ops/s; (1500 of 2000 found) \
             (writer: 70000 ops/s)\n"
        );
    }

    /// Two threads do twice the operations in the same time: the time of one
    /// operation stays, the rate doubles.
    #[test]
    fn threads_add_to_the_rate() {
        let line = Line::new("readrandom", total(2_000, 0, 1_000, 2), Around::default());
        assert_eq!((line.micros_per_op, line.ops_per_second), (1.0, 2e6));
    }

    /// A benchmark that did nothing prints zeros, not an error.
    #[test]
    fn nothing_done_is_printed_as_nothing() {
        let remark = Some("(0 ops)".to_string());
        let around = Around { stopped: true, remark, ..Around::default() };
        let line = Line::new("readseq", total(0, 0, 0, 1), around);
        assert_eq!(
            line.text(),
            "readseq      :       0.000 micros/op; 0 ops/s; (0 ops) (stopped)\n"
        );
    }
}
