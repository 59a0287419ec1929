//! How long operations took: percentiles, and a picture in characters.
//! Latencies are kept with three significant digits in a few hundred
//! kilobytes, whatever their number, and are merged across threads.

use std::fmt::Write as _;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Longest latency told apart, in nanoseconds: longer ones count as this.
const NANOS_MAX: u64 = 3_600_000_000_000;
const SIGNIFICANT_DIGITS: u8 = 3;
/// Marks for a row that holds everything.
const MARKS: f64 = 20.0;
/// Percentiles that are printed, with their names in JSON.
const PERCENTILES: [f64; 5] = [50.0, 75.0, 99.0, 99.9, 99.99];

/// Latencies of one benchmark.
#[derive(Clone, Debug)]
pub struct Histogram {
    nanos: hdrhistogram::Histogram<u64>,
}

/// The figures of a histogram, in microseconds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Latency {
    /// Operations (or batches) measured.
    pub count: u64,
    /// Their mean.
    pub average_micros: f64,
    /// Their standard deviation.
    pub stddev_micros: f64,
    /// The shortest.
    pub min_micros: f64,
    /// Half were no longer than this.
    pub p50_micros: f64,
    /// Three quarters were no longer than this.
    pub p75_micros: f64,
    /// 99 of 100 were no longer than this.
    pub p99_micros: f64,
    /// 999 of 1,000 were no longer than this.
    pub p99_9_micros: f64,
    /// 9,999 of 10,000 were no longer than this.
    pub p99_99_micros: f64,
    /// The longest.
    pub max_micros: f64,
}

impl Default for Histogram {
    fn default() -> Histogram {
        let nanos = hdrhistogram::Histogram::new_with_bounds(1, NANOS_MAX, SIGNIFICANT_DIGITS)
            .expect("the bounds are constants that the histogram accepts");
        Histogram { nanos }
    }
}

impl Histogram {
    /// Adds one latency.
    #[inline]
    pub fn add(&mut self, latency: Duration) {
        self.nanos.saturating_record(latency.as_nanos() as u64);
    }

    /// Adds all that `other` has seen.
    pub fn merge(&mut self, other: &Histogram) {
        self.nanos.add(&other.nanos).expect("all histograms have the same bounds");
    }

    /// The figures; `None` if nothing was added.
    pub fn latency(&self) -> Option<Latency> {
        if self.nanos.is_empty() {
            return None;
        }
        let micros = |nanos: u64| nanos as f64 / 1e3;
        let [p50, p75, p99, p99_9, p99_99] =
            PERCENTILES.map(|p| micros(self.nanos.value_at_percentile(p)));
        Some(Latency {
            count: self.nanos.len(),
            average_micros: self.nanos.mean() / 1e3,
            stddev_micros: self.nanos.stdev() / 1e3,
            min_micros: micros(self.nanos.min()),
            p50_micros: p50,
            p75_micros: p75,
            p99_micros: p99,
            p99_9_micros: p99_9,
            p99_99_micros: p99_99,
            max_micros: micros(self.nanos.max()),
        })
    }

    /// The figures and one row for each bucket that is not empty, as LevelDB
    /// and RocksDB print them.
    pub fn text(&self) -> String {
        let Some(latency) = self.latency() else {
            return "Count: 0\n".to_string();
        };
        let mut text = String::new();
        write_figures(&mut text, &latency);
        text.push_str("------------------------------------------------------\n");
        let total = latency.count as f64;
        let mut seen = 0;
        for (low, high, count) in self.buckets() {
            seen += count;
            let share = count as f64 / total;
            let marks = "#".repeat((MARKS * share + 0.5) as usize);
            let _ = writeln!(
                text,
                "[ {:>7}, {:>7} ) {count:>7} {:7.3}% {:7.3}% {marks}",
                limit_text(low),
                limit_text(high),
                share * 100.0,
                seen as f64 / total * 100.0,
            );
        }
        text
    }

    /// `(low, high, count)` of each bucket that is not empty, in nanoseconds.
    fn buckets(&self) -> Vec<(u64, u64, u64)> {
        let mut rows: Vec<(u64, u64, u64)> = Vec::new();
        let mut limits = limits_nanos().peekable();
        let mut low = 0;
        for recorded in self.nanos.iter_recorded() {
            let value = recorded.value_iterated_to();
            while let Some(&limit) = limits.peek() {
                if value < limit {
                    break;
                }
                low = limit;
                limits.next();
            }
            let high = limits.peek().copied().unwrap_or(u64::MAX);
            let count = recorded.count_at_value();
            match rows.last_mut() {
                Some(row) if row.0 == low => row.2 += count,
                _ => rows.push((low, high, count)),
            }
        }
        rows
    }
}

/// The three lines of figures.
fn write_figures(text: &mut String, l: &Latency) {
    let _ = writeln!(
        text,
        "Count: {}  Average: {:.4}  StdDev: {:.2}",
        l.count, l.average_micros, l.stddev_micros
    );
    let _ = writeln!(
        text,
        "Min: {:.4}  Median: {:.4}  Max: {:.4}",
        l.min_micros, l.p50_micros, l.max_micros
    );
    let _ = writeln!(
        text,
        "Percentiles: P50: {:.2} P75: {:.2} P99: {:.2} P99.9: {:.2} P99.99: {:.2}",
        l.p50_micros, l.p75_micros, l.p99_micros, l.p99_9_micros, l.p99_99_micros
    );
}

/// Upper limits of the rows: LevelDB's (1 2 .. 10 12 14 16 18 20 25 .. 50 60 ..
/// microseconds and so on), and tenths of a microsecond below 1, where most of
/// our reads are.
fn limits_nanos() -> impl Iterator<Item = u64> {
    const STEPS: [u64; 16] = [10, 12, 14, 16, 18, 20, 25, 30, 35, 40, 45, 50, 60, 70, 80, 90];
    let tenths = (1..10).map(|n| n * 100);
    let ones = (1..10).map(|n| n * 1_000);
    let rest = (3..12).flat_map(|exponent| STEPS.map(|step| step * 10u64.pow(exponent)));
    tenths.chain(ones).chain(rest)
}

/// A limit in microseconds, with a decimal only where it says something.
fn limit_text(nanos: u64) -> String {
    match nanos {
        0 => "0".to_string(),
        u64::MAX => "inf".to_string(),
        _ if nanos < 1_000 => format!("{:.1}", nanos as f64 / 1e3),
        _ => format!("{}", nanos / 1_000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A thousand latencies of 1 to 1000 microseconds have known percentiles.
    #[test]
    fn percentiles_of_a_known_set_are_right() {
        let mut histogram = Histogram::default();
        (1..=1000).for_each(|n| histogram.add(Duration::from_micros(n)));
        let latency = histogram.latency().expect("it is not empty");
        assert_eq!(latency.count, 1000);
        for (found, expected) in [
            (latency.average_micros, 500.5),
            (latency.min_micros, 1.0),
            (latency.p50_micros, 500.0),
            (latency.p75_micros, 750.0),
            (latency.p99_micros, 990.0),
            (latency.p99_9_micros, 999.0),
            (latency.max_micros, 1000.0),
        ] {
            assert!((found / expected - 1.0).abs() < 2e-3, "{found} is not {expected}");
        }
    }

    /// Threads keep histograms of their own, and the sum is as if one had.
    #[test]
    fn merged_histograms_count_everything() {
        let (mut a, mut b) = (Histogram::default(), Histogram::default());
        a.add(Duration::from_nanos(150));
        b.add(Duration::from_micros(15));
        b.add(Duration::from_secs(7_200));
        a.merge(&b);
        let latency = a.latency().expect("it is not empty");
        assert_eq!(latency.count, 3);
        assert!(latency.max_micros >= 3.5e9, "an hour is the longest told apart");
    }

    /// Rows show their limits, their share and as many marks as it deserves.
    #[test]
    fn rows_have_limits_shares_and_bars() {
        let mut histogram = Histogram::default();
        (0..3).for_each(|_| histogram.add(Duration::from_nanos(150)));
        histogram.add(Duration::from_micros(13));
        let text = histogram.text();
        assert!(text.starts_with("Count: 4  Average: "), "{text}");
        assert!(
            text.contains("[     0.1,     0.2 )       3  75.000%  75.000% ###############\n"),
            "{text}"
        );
        assert!(text.contains("[      12,      14 )       1  25.000% 100.000% #####\n"), "{text}");
        assert!(text.contains("P50: 0.15 P75: 0.15 P99: 13.0"), "{text}");
    }

    /// Nothing measured is said, not divided by.
    #[test]
    fn empty_histogram_prints_a_count_of_zero() {
        assert_eq!(Histogram::default().text(), "Count: 0\n");
        assert!(Histogram::default().latency().is_none());
    }

    /// Limits ascend: a row is never met twice.
    #[test]
    fn limits_ascend() {
        let limits: Vec<u64> = limits_nanos().collect();
        assert!(limits.windows(2).all(|pair| pair[0] < pair[1]));
        assert_eq!(limits[..10], [100, 200, 300, 400, 500, 600, 700, 800, 900, 1000]);
    }
}
