//! The end of a run, for a person: what each benchmark reached, what it cost
//! in memory and on disk, and what that means.

use std::fmt::Write as _;

use lodestore::Counter;
use serde::Serialize;

use crate::counts::{Counts, STALL_CAUSES, StallCause};
use crate::line::Line;
use crate::numbers::{bytes_text, grouped, seconds_text};

/// Hit rates below this are worth a remark.
const HIT_RATE_LOW: f64 = 0.9;
/// Parts of the time that writers may wait without a remark.
const STALL_PART_LOW: f64 = 0.01;

/// The figures of the whole run.
#[derive(Clone, Debug, Serialize)]
pub struct Summary {
    /// Seconds that were measured.
    pub seconds: f64,
    /// The most memory of the process.
    pub peak_rss_bytes: Option<u64>,
    /// Bytes of keys and values that the program wrote.
    pub user_bytes: u64,
    /// Bytes of the log.
    pub log_bytes: u64,
    /// Bytes of tables that flushes wrote.
    pub flush_bytes: u64,
    /// Bytes of tables that compactions wrote.
    pub compaction_bytes: u64,
    /// Bytes written to tables for each byte of the program.
    pub write_amplification: Option<f64>,
    /// Bytes of the last database's files.
    pub disk_bytes: u64,
    /// Bytes of its tables.
    pub table_bytes: u64,
    /// Seconds that writers waited because level 0 was long.
    pub stall_level0_seconds: f64,
    /// Seconds that writers waited because flushes lagged.
    pub stall_memtable_seconds: f64,
    /// Seconds that writers waited because compactions owed too much.
    pub stall_debt_seconds: f64,
    /// Seconds that writers waited for want of memory.
    pub stall_memory_seconds: f64,
    /// The part of block lookups that the cache answered.
    pub cache_hit_rate: Option<f64>,
    /// The part of row lookups that the row cache answered.
    pub row_cache_hit_rate: Option<f64>,
    /// True if the user ended the run.
    pub stopped: bool,
}

impl Summary {
    /// Adds up `lines`; `counts` are those of the whole run, `table_bytes` of
    /// the database at the end.
    pub fn new(
        lines: &[Line],
        counts: &Counts,
        table_bytes: u64,
        stopped: bool,
        peak_rss_bytes: Option<u64>,
    ) -> Summary {
        let seconds = |counter| counts.get(counter) as f64 / 1e6;
        Summary {
            // An empty sum of floats is -0.0, which would be printed so.
            seconds: lines.iter().fold(0.0, |sum, l| sum + l.seconds),
            peak_rss_bytes,
            user_bytes: counts.get(Counter::UserBytesWritten),
            log_bytes: counts.get(Counter::LogBytes),
            flush_bytes: counts.get(Counter::FlushBytes),
            compaction_bytes: counts.get(Counter::CompactionBytesWritten),
            write_amplification: counts.write_amplification(),
            disk_bytes: lines.last().map_or(0, |l| l.disk_bytes),
            table_bytes,
            stall_level0_seconds: seconds(Counter::StallLevel0Micros),
            stall_memtable_seconds: seconds(Counter::StallMemtableMicros),
            stall_debt_seconds: seconds(Counter::StallDebtMicros),
            stall_memory_seconds: seconds(Counter::StallMemoryMicros),
            cache_hit_rate: counts.cache_hit_rate(),
            row_cache_hit_rate: counts.row_hit_rate(),
            stopped,
        }
    }

    /// The summary as text.
    pub fn text(&self, lines: &[Line]) -> String {
        let mut text = String::from("\nSummary\n");
        for line in lines {
            let _ = writeln!(text, "{}", row(line));
        }
        text.push('\n');
        self.write_figures(&mut text);
        text.push('\n');
        for sentence in self.sentences(lines) {
            let _ = writeln!(text, "{sentence}");
        }
        text
    }

    fn write_figures(&self, text: &mut String) {
        let mut figure = |label: &str, value: String| {
            let _ = writeln!(text, "  {label:<20} {value}");
        };
        figure("time measured", seconds_text(self.seconds));
        if let Some(bytes) = self.peak_rss_bytes {
            figure("peak memory", format!("{} resident", bytes_text(bytes)));
        }
        if let Some(amplification) = self.write_amplification {
            let part = |bytes: u64| bytes as f64 / self.user_bytes as f64;
            figure(
                "write amplification",
                format!(
                    "{amplification:.2} (flushes {:.2}, compactions {:.2}; the log adds {:.2})",
                    part(self.flush_bytes),
                    part(self.compaction_bytes),
                    part(self.log_bytes)
                ),
            );
        }
        figure(
            "size on disk",
            format!(
                "{} at the end (tables {})",
                bytes_text(self.disk_bytes),
                bytes_text(self.table_bytes)
            ),
        );
        let stalls = self.stalls().into_iter().filter(|(_, seconds)| *seconds > 0.0);
        let held: Vec<String> = stalls
            .map(|(cause, seconds)| format!("{} for {}", seconds_text(seconds), cause.name))
            .collect();
        let held = if held.is_empty() { "never".to_string() } else { held.join(", ") };
        figure("writers held back", held);
        if let Some(rate) = self.cache_hit_rate {
            figure("cache hit rate", format!("{:.1} %", rate * 100.0));
        }
        if let Some(rate) = self.row_cache_hit_rate {
            figure("row cache hit rate", format!("{:.1} %", rate * 100.0));
        }
    }

    /// How long writers were held back, by cause.
    fn stalls(&self) -> [(&'static StallCause, f64); 4] {
        let [level0, flushes, debt, memory] = &STALL_CAUSES;
        [
            (level0, self.stall_level0_seconds),
            (flushes, self.stall_memtable_seconds),
            (debt, self.stall_debt_seconds),
            (memory, self.stall_memory_seconds),
        ]
    }

    /// What the figures mean, in sentences.
    pub fn sentences(&self, lines: &[Line]) -> Vec<String> {
        let mut sentences = Vec::new();
        if self.stopped {
            sentences.push("The run was stopped early: its last line is a part.".to_string());
        }
        sentences.extend(fastest_and_slowest(lines));
        if let Some(amplification) = self.write_amplification {
            sentences.push(format!(
                "For each byte that was written, {amplification:.1} bytes went into tables{}.",
                match self.log_bytes {
                    0 => String::new(),
                    bytes => {
                        let ratio = bytes as f64 / self.user_bytes as f64;
                        format!(" and {ratio:.1} more into the log")
                    }
                }
            ));
        }
        sentences.push(self.stall_sentence(lines));
        if let Some(rate) = self.cache_hit_rate.filter(|&rate| rate < HIT_RATE_LOW) {
            sentences.push(format!(
                "{:.0} % of the blocks that reads needed were not in the cache; a larger \
                 --cache_size (or --memory_budget) would make them faster.",
                (1.0 - rate) * 100.0
            ));
        }
        sentences
    }

    fn stall_sentence(&self, lines: &[Line]) -> String {
        let stalls = self.stalls();
        let stalled: f64 = stalls.iter().map(|(_, seconds)| seconds).sum();
        let writing: f64 = lines.iter().filter(|l| l.wrote()).map(Line::thread_seconds).sum();
        let part = if writing > 0.0 { stalled / writing } else { 0.0 };
        let worst = stalls.into_iter().max_by(|a, b| a.1.total_cmp(&b.1));
        match worst {
            Some((cause, _)) if part >= STALL_PART_LOW => format!(
                "Writers waited for {:.0} % of their time, mostly because {}.",
                part * 100.0,
                cause.advice
            ),
            _ => "Writers hardly ever had to wait for background work.".to_string(),
        }
    }
}

/// `  fillseq            1,231,527 ops/s     0.812 us  ...`
fn row(line: &Line) -> String {
    let mut text = match line.ops {
        0 | 1 => format!("  {:<18} {:>12}", line.name, seconds_text(line.seconds)),
        _ => format!(
            "  {:<18} {:>12} ops/s {:>12.3} us/op",
            line.name,
            grouped(line.ops_per_second.round() as u64),
            line.micros_per_op
        ),
    };
    if let Some(latency) = &line.latency {
        let _ =
            write!(text, "   p99 {:.1} us   max {:.0} us", latency.p99_micros, latency.max_micros);
    }
    if let Some(rate) = line.cache_hit_rate {
        let _ = write!(text, "   cache {:.0} %", rate * 100.0);
    }
    if line.changed_disk() {
        let _ = write!(text, "   disk {}", bytes_text(line.disk_bytes));
    }
    if line.stall_seconds > 0.0 {
        let _ = write!(text, "   held back {}", seconds_text(line.stall_seconds));
    }
    text
}

/// Names the extremes among benchmarks that do more than one operation.
fn fastest_and_slowest(lines: &[Line]) -> Option<String> {
    let mut rated: Vec<&Line> = lines.iter().filter(|l| l.ops > 1).collect();
    rated.sort_by(|a, b| a.ops_per_second.total_cmp(&b.ops_per_second));
    let (slowest, fastest) = (rated.first()?, rated.last()?);
    (rated.len() > 1).then(|| {
        format!(
            "Fastest was {} with {} operations a second, slowest {} with {}.",
            fastest.name,
            grouped(fastest.ops_per_second.round() as u64),
            slowest.name,
            grouped(slowest.ops_per_second.round() as u64)
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::line::Around;
    use crate::worker::Total;
    use std::time::Duration;

    fn line(name: &str, ops: u64) -> Line {
        let elapsed = Duration::from_secs(2);
        let total = Total { ops, bytes: 0, thread_time: elapsed, elapsed, ..Total::default() };
        Line::new(name, total, Around { disk_bytes: 64 << 20, ..Around::default() })
    }

    fn summary(lines: &[Line]) -> Summary {
        let mut summary = Summary::new(lines, &Counts::default(), 63 << 20, false, Some(1 << 30));
        summary.user_bytes = 100;
        summary.flush_bytes = 60;
        summary.compaction_bytes = 140;
        summary.log_bytes = 110;
        summary.write_amplification = Some(2.0);
        summary
    }

    /// Each line, each cost and a sentence about them are there.
    #[test]
    fn summary_tells_lines_costs_and_meaning() {
        let lines = [line("fillseq", 2_000_000), line("readrandom", 500_000), line("compact", 1)];
        let text = summary(&lines).text(&lines);
        for expected in [
            "  fillseq               1,000,000 ops/s        1.000 us/op\n",
            "peak memory          1.0 GiB resident\n",
            "write amplification  2.00 (flushes 0.60, compactions 1.40; the log adds 1.10)\n",
            "size on disk         64.0 MiB at the end (tables 63.0 MiB)\n",
            "Fastest was fillseq with 1,000,000 operations a second, slowest readrandom with 250,000.",
            "2.0 bytes went into tables and 1.1 more into the log.",
            "hardly ever had to wait",
        ] {
            assert!(text.contains(expected), "{expected:?} is not in\n{text}");
        }
    }

    /// Waiting writers and a small cache are not passed over.
    #[test]
    fn stalls_and_misses_are_explained() {
        let mut lines = [line("fillrandom", 1_000)];
        lines[0].counters.insert("write.records", 1_000);
        let mut summary = summary(&lines);
        summary.stall_memtable_seconds = 0.75;
        summary.stall_memory_seconds = 0.25;
        summary.cache_hit_rate = Some(0.25);
        summary.row_cache_hit_rate = Some(0.5);
        summary.stopped = true;
        let text = summary.text(&lines);
        assert!(text.contains("Writers waited for 50 % of their time, mostly because flushes"));
        assert!(text.contains("back    750 ms for flushes, 250 ms for memory\n"), "{text}");
        assert!(text.contains("row cache hit rate   50.0 %\n"), "{text}");
        assert!(text.contains("75 % of the blocks"), "{text}");
        assert!(text.contains("stopped early"), "{text}");
    }

    /// A run without lines still ends in a summary.
    #[test]
    fn empty_run_has_a_summary() {
        let summary = Summary::new(&[], &Counts::default(), 0, true, None);
        assert!(summary.text(&[]).contains("time measured        0 ms"));
    }
}
