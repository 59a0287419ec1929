//! How far a load or a comparison is, on standard error, if that is a terminal.

use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

use lode_bench::{bytes_text, grouped, seconds_text};

const INTERVAL: Duration = Duration::from_millis(250);
/// Records between looks at the clock.
const CHECK_RECORDS: u64 = 1_024;

/// A line that is drawn over and over, and gone at the end.
pub struct Progress {
    verb: &'static str,
    input_bytes: Option<u64>,
    start: Instant,
    drawn: Option<Instant>,
    shown: bool,
}

impl Progress {
    /// A line that starts with `verb`; `input_bytes`, where known, tells how
    /// far it is.
    pub fn new(verb: &'static str, input_bytes: Option<u64>) -> Progress {
        let shown = io::stderr().is_terminal();
        Progress { verb, input_bytes, start: Instant::now(), drawn: None, shown }
    }

    /// Draws it if it is time.
    pub fn update(&mut self, records: u64, bytes: u64) {
        if !self.shown || !records.is_multiple_of(CHECK_RECORDS) {
            return;
        }
        let now = Instant::now();
        if now - self.drawn.unwrap_or(self.start) < INTERVAL {
            return;
        }
        self.drawn = Some(now);
        let text = text(self.verb, records, bytes, self.input_bytes, now - self.start);
        // A terminal that went away is no reason to stop the work.
        let _ = write!(io::stderr(), "\r\x1b[K{text}");
    }

    /// Time since it was made.
    pub fn elapsed(&self) -> Duration {
        self.start.elapsed()
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if self.drawn.is_some() {
            let _ = write!(io::stderr(), "\r\x1b[K");
        }
    }
}

fn text(
    verb: &str,
    records: u64,
    bytes: u64,
    input_bytes: Option<u64>,
    elapsed: Duration,
) -> String {
    let seconds = elapsed.as_secs_f64().max(1e-9);
    let rate = |amount: u64| (amount as f64 / seconds) as u64;
    let mut text = format!(
        "{verb}  {} records  {} records/s  {}/s",
        grouped(records),
        grouped(rate(records)),
        bytes_text(rate(bytes))
    );
    if let Some(total) = input_bytes.filter(|&total| total > 0 && bytes > 0) {
        let part = (bytes as f64 / total as f64).min(1.0);
        let left = seconds * (1.0 - part) / part;
        text.push_str(&format!("  {:.0} %  {} left", part * 100.0, seconds_text(left)));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// With a file the end is foreseen, with a pipe it is not.
    #[test]
    fn line_tells_what_is_known() {
        let second = Duration::from_secs(1);
        assert_eq!(
            text("load", 2_000, 1 << 20, Some(4 << 20), second),
            "load  2,000 records  2,000 records/s  1.0 MiB/s  25 %  3.0 s left"
        );
        assert_eq!(text("load", 0, 0, None, second), "load  0 records  0 records/s  0 B/s");
    }
}
