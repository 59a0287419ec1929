//! How fast it goes, told while it runs: rows of `--report_file`, and lines on
//! standard error with `--stats_interval_seconds`.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::error::BenchError;

/// The columns are RocksDB's.
const HEADER: &str = "secs_elapsed,interval_qps\n";

/// `--report_file`: one row for each interval of the run, whatever benchmark it
/// falls into.
#[derive(Debug)]
pub struct RateFile {
    path: PathBuf,
    file: File,
    every: Duration,
    next: Duration,
    ops_told: u64,
}

impl RateFile {
    /// Creates the file, or empties it, and writes its header.
    pub fn create(path: &Path, every: Duration) -> Result<RateFile, BenchError> {
        let start = || {
            let mut file = File::create(path)?;
            file.write_all(HEADER.as_bytes())?;
            Ok(file)
        };
        let file = start().map_err(BenchError::io(path))?;
        Ok(RateFile { path: path.to_path_buf(), file, every, next: every, ops_told: 0 })
    }

    /// Writes a row if one is due, `elapsed` after the run began; `ops` are
    /// those of all its benchmarks.
    pub fn look(&mut self, elapsed: Duration, ops: u64) -> Result<(), BenchError> {
        if elapsed < self.next {
            return Ok(());
        }
        let row = row(elapsed, ops - self.ops_told);
        self.file.write_all(row.as_bytes()).map_err(BenchError::io(&self.path))?;
        self.ops_told = ops;
        self.next = following(self.every, elapsed);
        Ok(())
    }
}

/// The first multiple of `every` after `elapsed`.
fn following(every: Duration, elapsed: Duration) -> Duration {
    let intervals = elapsed.as_nanos() / every.as_nanos() + 1;
    every.saturating_mul(u32::try_from(intervals).unwrap_or(u32::MAX))
}

fn row(elapsed: Duration, ops: u64) -> String {
    format!("{:.0},{ops}\n", elapsed.as_secs_f64())
}

/// The lines on standard error, for one benchmark.
#[derive(Debug)]
pub struct RateLines {
    name: String,
    every: Duration,
    next: Duration,
    last: Duration,
    ops_told: u64,
}

impl RateLines {
    /// Lines for the benchmark `name`.
    pub fn new(name: &str, every: Duration) -> RateLines {
        let last = Duration::ZERO;
        RateLines { name: name.to_string(), every, next: every, last, ops_told: 0 }
    }

    /// The line that is due, if one is, `elapsed` after the benchmark began.
    pub fn look(&mut self, elapsed: Duration, ops: u64) -> Option<String> {
        if elapsed < self.next {
            return None;
        }
        let (part, whole) = ((elapsed - self.last).as_secs_f64(), elapsed.as_secs_f64());
        let done = ops - self.ops_told;
        let line = format!(
            "{} ... ({done},{ops}) ops and ({:.1},{:.1}) ops/second in ({part:.6},{whole:.6}) \
             seconds\n",
            self.name,
            done as f64 / part,
            ops as f64 / whole,
        );
        self.ops_told = ops;
        self.last = elapsed;
        self.next = following(self.every, elapsed);
        Some(line)
    }
}

/// Prints on standard error. A terminal that went away is no reason to end a
/// measurement.
pub fn tell(text: &str) {
    let _ = io::stderr().write_all(text.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The file is RocksDB's: a header, then whole seconds and the operations
    /// of each interval, over all benchmarks.
    #[test]
    fn rows_are_those_of_rocksdb() {
        let path = std::env::temp_dir().join(format!("lode-rates-{}", std::process::id()));
        let mut rates = RateFile::create(&path, Duration::from_secs(2)).expect("temporary file");
        for (millis, ops) in [(500, 10), (2_010, 100), (2_060, 110), (4_000, 150), (9_400, 400)] {
            rates.look(Duration::from_millis(millis), ops).expect("writing");
        }
        let text = std::fs::read_to_string(&path).expect("it is there");
        assert_eq!(text, "secs_elapsed,interval_qps\n2,100\n4,50\n9,250\n");
        std::fs::remove_file(&path).expect("cleaning up");
    }

    /// A file that cannot be written is told at the beginning, with its name.
    #[test]
    fn impossible_file_is_told() {
        let error = RateFile::create(Path::new("/nowhere/at/all.csv"), Duration::from_secs(1));
        assert!(error.expect_err("no such directory").to_string().contains("/nowhere/at/all.csv"));
    }

    /// A line has the figures of the interval and of the whole.
    #[test]
    fn lines_have_interval_and_whole() {
        let mut lines = RateLines::new("fillseq", Duration::from_secs(1));
        assert_eq!(lines.look(Duration::from_millis(900), 50), None);
        lines.look(Duration::from_secs(1), 100).expect("due");
        assert_eq!(
            lines.look(Duration::from_millis(2_000), 400).expect("due"),
            "fillseq ... (300,400) ops and (300.0,200.0) ops/second in (1.000000,2.000000) \
             seconds\n"
        );
    }
}
