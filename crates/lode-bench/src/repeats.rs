//! What several runs of one benchmark have in common: mean, median, and how
//! far the mean can be trusted. The lines are RocksDB's.

use serde::Serialize;

use crate::line::Line;

/// 95 % of a normal distribution are within so many standard deviations of its
/// mean. Few runs are not normally distributed; it is RocksDB's measure.
const Z_95: f64 = 1.959964;

/// The runs of one benchmark so far.
#[derive(Clone, Debug, Default)]
pub struct Repeats {
    name: String,
    ops_per_second: Vec<f64>,
    /// Of the runs that moved bytes.
    mib_per_second: Vec<f64>,
}

/// The figures of several runs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Average {
    /// The benchmark.
    pub name: String,
    /// Its runs.
    pub runs: usize,
    /// Operations a second.
    pub ops_per_second: Spread,
    /// Mebibytes a second, where every run moved any.
    pub mib_per_second: Option<Spread>,
}

/// Mean and median of some figures.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Spread {
    /// Their mean.
    pub mean: f64,
    /// The mean is this far from the true one at most, with a probability of
    /// 95 %.
    pub ci95: f64,
    /// Their median.
    pub median: f64,
}

impl Spread {
    /// Of two figures or more.
    fn of(figures: &[f64]) -> Spread {
        let count = figures.len() as f64;
        let mean = figures.iter().sum::<f64>() / count;
        let squares: f64 = figures.iter().map(|figure| (figure - mean).powi(2)).sum();
        let deviation = (squares / (count - 1.0)).sqrt();
        let mut sorted = figures.to_vec();
        sorted.sort_by(f64::total_cmp);
        let middle = sorted.len() / 2;
        let median = match sorted.len() % 2 {
            1 => sorted[middle],
            _ => (sorted[middle - 1] + sorted[middle]) / 2.0,
        };
        Spread { mean, ci95: Z_95 * deviation / count.sqrt(), median }
    }
}

impl Repeats {
    /// No run of `name` yet.
    pub fn new(name: &str) -> Repeats {
        Repeats { name: name.to_string(), ..Repeats::default() }
    }

    /// Adds a run.
    pub fn add(&mut self, line: &Line) {
        self.ops_per_second.push(line.ops_per_second);
        self.mib_per_second.extend(line.mib_per_second);
    }

    /// The figures; `None` of less than two runs.
    pub fn average(&self) -> Option<Average> {
        let runs = self.ops_per_second.len();
        (runs > 1).then(|| Average {
            name: self.name.clone(),
            runs,
            ops_per_second: Spread::of(&self.ops_per_second),
            mib_per_second: (self.mib_per_second.len() == runs)
                .then(|| Spread::of(&self.mib_per_second)),
        })
    }
}

impl Average {
    /// `fillseq [AVG 2 runs] : 901 (± 23) ops/sec;  100.0 (± 2.5) MB/sec`, after
    /// each run.
    pub fn text(&self) -> String {
        let Average { name, runs, ops_per_second: ops, mib_per_second } = self;
        let mut text = format!(
            "{name} [AVG {runs} runs] : {} (± {}) ops/sec",
            ops.mean as i64, ops.ci95 as i64
        );
        if let Some(mib) = mib_per_second {
            text += &format!("; {:6.1} (± {:.1}) MB/sec", mib.mean, mib.ci95);
        }
        text + "\n"
    }

    /// `fillseq [CI95 2 runs] : (878, 924) ops/sec; (97.5, 102.5) MB/sec`, in
    /// place of [`Average::text`].
    pub fn interval_text(&self) -> String {
        let Average { name, runs, ops_per_second: ops, mib_per_second } = self;
        let (mean, ci95) = (ops.mean as i64, ops.ci95 as i64);
        let (low, high) = (mean - ci95, mean + ci95);
        let mut text = format!("{name} [CI95 {runs} runs] : ({low}, {high}) ops/sec");
        if let Some(mib) = mib_per_second {
            text += &format!("; ({:.1}, {:.1}) MB/sec", mib.mean - mib.ci95, mib.mean + mib.ci95);
        }
        text + "\n"
    }

    /// Mean and median, after the last run.
    pub fn final_text(&self) -> String {
        let Average { name, runs, ops_per_second: ops, mib_per_second } = self;
        let millis = if ops.mean > 0.0 { 1_000.0 / ops.mean } else { 0.0 };
        let mut mean = format!(
            "{name} [AVG    {runs} runs] : {} (± {}) ops/sec; {millis:.3} ms/op",
            ops.mean as i64, ops.ci95 as i64
        );
        let mut median = format!("{name} [MEDIAN {runs} runs] : {} ops/sec", ops.median as i64);
        if let Some(mib) = mib_per_second {
            mean += &format!("; {:6.1} (± {:.1}) MB/sec", mib.mean, mib.ci95);
            median += &format!("; {:6.1} MB/sec", mib.median);
        }
        format!("\n{mean}\n{median}\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::line::Around;
    use crate::worker::Total;
    use std::time::Duration;

    fn repeats(seconds: &[u64], bytes: u64) -> Repeats {
        let mut repeats = Repeats::new("fillseq");
        for &seconds in seconds {
            let elapsed = Duration::from_secs(seconds);
            let total = Total { ops: 1_200, bytes, elapsed, ..Total::default() };
            repeats.add(&Line::new("fillseq", total, Around::default()));
        }
        repeats
    }

    /// Computed by hand: of 2, 4 and 9 the mean is 5, the median 4, the
    /// deviation the root of (9 + 1 + 16) / 2 = 13, and 1.959964 times it,
    /// divided by the root of 3, is 4.08.
    #[test]
    fn spread_is_the_textbook_one() {
        let spread = Spread::of(&[4.0, 9.0, 2.0]);
        assert_eq!((spread.mean, spread.median), (5.0, 4.0));
        assert!((spread.ci95 - 4.080).abs() < 1e-3, "{spread:?}");
        let even = Spread::of(&[1.0, 3.0, 5.0, 11.0]);
        assert_eq!((even.mean, even.median), (5.0, 4.0));
        assert_eq!(Spread::of(&[7.0, 7.0]).ci95, 0.0);
    }

    /// Scripts find RocksDB's lines. 1,200 operations in 1, 2 and 3 seconds are
    /// 1200, 600 and 400 a second: mean 733.3, deviation 416.3, interval 471.1.
    #[test]
    fn lines_are_those_of_rocksdb() {
        let average = repeats(&[1, 2, 3], 6 << 20).average().expect("three runs");
        assert_eq!(
            average.text(),
            "fillseq [AVG 3 runs] : 733 (± 471) ops/sec;    3.7 (± 2.4) MB/sec\n"
        );
        assert_eq!(
            average.interval_text(),
            "fillseq [CI95 3 runs] : (262, 1204) ops/sec; (1.3, 6.0) MB/sec\n"
        );
        assert_eq!(
            average.final_text(),
            "\nfillseq [AVG    3 runs] : 733 (± 471) ops/sec; 1.364 ms/op;    3.7 (± 2.4) MB/sec\n\
             fillseq [MEDIAN 3 runs] : 600 ops/sec;    3.0 MB/sec\n"
        );
        let average = repeats(&[1, 2], 0).average().expect("two runs");
        assert_eq!(average.text(), "fillseq [AVG 2 runs] : 900 (± 587) ops/sec\n");
    }

    /// One run has no average.
    #[test]
    fn one_run_has_no_average() {
        assert_eq!(repeats(&[1], 0).average(), None);
    }
}
