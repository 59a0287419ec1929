//! The line on standard error that tells how far a benchmark is. It is drawn
//! over and over in one place, and gone when the benchmark ends.

use std::io::Write;
use std::time::{Duration, Instant};

use crate::numbers::{grouped, seconds_text};

/// How often the line is drawn.
pub const INTERVAL: Duration = Duration::from_millis(250);
/// The first drawing waits this long: short benchmarks show none.
const SILENCE: Duration = Duration::from_millis(500);

/// What the end of a benchmark depends on.
#[derive(Clone, Copy, Debug)]
pub enum Goal {
    /// So many operations of all threads.
    Ops(u64),
    /// So much time.
    Time(Duration),
    /// Another thread's end.
    Unknown,
}

/// Draws for one benchmark.
#[derive(Debug)]
pub struct Progress {
    name: String,
    goal: Goal,
    start: Instant,
    /// When it is drawn next, after `start`.
    next: Duration,
    drawn: bool,
}

impl Progress {
    /// A line for `name`, not drawn yet.
    pub fn new(name: &str, goal: Goal) -> Progress {
        let start = Instant::now();
        Progress { name: name.to_string(), goal, start, next: SILENCE, drawn: false }
    }

    /// Draws it if that is due, `done` operations being done.
    pub fn draw(&mut self, done: u64) {
        let elapsed = self.start.elapsed();
        if elapsed < self.next {
            return;
        }
        self.next = elapsed + INTERVAL;
        let text = text(&self.name, self.goal, done, elapsed);
        // A terminal that went away is no reason to end a measurement.
        let _ = write!(std::io::stderr(), "\r\x1b[K{text}");
        self.drawn = true;
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if self.drawn {
            let _ = write!(std::io::stderr(), "\r\x1b[K");
        }
    }
}

/// `fillrandom  37 %  3,700,000 ops  812,000 ops/s  8.0 s left`
fn text(name: &str, goal: Goal, done: u64, elapsed: Duration) -> String {
    let seconds = elapsed.as_secs_f64();
    let rate = done as f64 / seconds.max(1e-9);
    let (part, left) = match goal {
        Goal::Unknown => {
            return format!("{name}  {} ops  {} ops/s", grouped(done), grouped(rate as u64));
        }
        Goal::Ops(ops) => (
            done as f64 / ops.max(1) as f64,
            (rate > 0.0).then(|| ops.saturating_sub(done) as f64 / rate),
        ),
        Goal::Time(limit) => {
            let limit = limit.as_secs_f64();
            (seconds / limit, Some((limit - seconds).max(0.0)))
        }
    };
    let left = left.map_or(String::new(), |s| format!("  {} left", seconds_text(s)));
    format!(
        "{name}  {:.0} %  {} ops  {} ops/s{left}",
        (part * 100.0).min(100.0),
        grouped(done),
        grouped(rate as u64)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rate and time left follow from what was done so far.
    #[test]
    fn line_tells_rate_and_time_left() {
        assert_eq!(
            text("fillseq", Goal::Ops(1_000_000), 250_000, Duration::from_secs(5)),
            "fillseq  25 %  250,000 ops  50,000 ops/s  15.0 s left"
        );
        assert_eq!(
            text("readseq", Goal::Time(Duration::from_secs(10)), 80, Duration::from_secs(4)),
            "readseq  40 %  80 ops  20 ops/s  6.0 s left"
        );
    }

    /// Where only another thread knows the end, none is promised.
    #[test]
    fn unknown_end_is_not_promised() {
        assert_eq!(
            text("timeseries", Goal::Unknown, 2_000, Duration::from_secs(2)),
            "timeseries  2,000 ops  1,000 ops/s"
        );
    }

    /// Nothing done yet promises nothing.
    #[test]
    fn no_time_left_is_told_before_the_first_operation() {
        assert_eq!(
            text("compact", Goal::Ops(1), 0, Duration::from_secs(2)),
            "compact  0 %  0 ops  0 ops/s"
        );
    }
}
