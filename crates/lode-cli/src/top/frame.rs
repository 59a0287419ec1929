//! A frame as text, at most 80 columns wide.

use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use lode_bench::{bytes_text, grouped, seconds_text};
use lodestore::Counter;
use lodestore::inspect::{LatencyStatus, Status};

use super::screen::Ink;
use super::source::{Change, Files, Level, Watched};

const COLUMNS: usize = 80;
const BAR_COLUMNS: usize = 20;

/// The causes of stalls: name, time, paced writes if there can be any, stopped
/// writes.
const STALLS: [(&str, Counter, Option<Counter>, Counter); 4] = [
    (
        "flush behind",
        Counter::StallMemtableMicros,
        Some(Counter::SlowdownsMemtable),
        Counter::StopsMemtable,
    ),
    (
        "level 0 long",
        Counter::StallLevel0Micros,
        Some(Counter::SlowdownsLevel0),
        Counter::StopsLevel0,
    ),
    ("debt", Counter::StallDebtMicros, Some(Counter::SlowdownsDebt), Counter::StopsDebt),
    ("memory", Counter::StallMemoryMicros, None, Counter::StopsMemory),
];

/// The frame.
pub fn text(directory: &Path, watched: &Watched, family: Option<&str>, ink: Ink) -> String {
    let mut text = String::new();
    let path = shortened(&directory.display().to_string(), COLUMNS - 40);
    match watched {
        Watched::Absent => {
            line(&mut text, &format!("{}  {path}", ink.bold("lode top")));
            line(&mut text, &ink.alarming("there is no database now; waiting for one"));
            return text;
        }
        Watched::Process { status, age } => {
            let up = seconds_text(status.uptime.as_secs_f64());
            let late = if *age > status.interval * 2 + Duration::from_secs(1) {
                ink.alarming(&format!(", {} s old", age.as_secs()))
            } else {
                String::new()
            };
            let who = format!("process {}, up {up}{late}", status.pid);
            line(&mut text, &format!("{}  {path}  {who}", ink.bold("lode top")));
            for error in &status.errors {
                line(&mut text, &ink.alarming(&shortened(error, COLUMNS)));
            }
            text.push('\n');
            activity(&mut text, status);
            text.push('\n');
            levels(&mut text, &watched.levels(family), ink);
            background(&mut text, status);
            stalls(&mut text, status, ink);
            latencies(&mut text, status, ink);
        }
        Watched::Files { files, reason } => {
            line(&mut text, &format!("{}  {path}", ink.bold("lode top")));
            line(&mut text, &shortened(&format!("from its files: {reason}"), COLUMNS));
            text.push('\n');
            levels(&mut text, &watched.levels(family), ink);
            files_below(&mut text, files);
        }
    }
    text
}

fn line(text: &mut String, line: &str) {
    text.push_str(line);
    text.push('\n');
}

/// The end of a text that is too long.
fn shortened(text: &str, columns: usize) -> String {
    let count = text.chars().count();
    match count > columns {
        true => format!("...{}", text.chars().skip(count + 3 - columns).collect::<String>()),
        false => text.to_string(),
    }
}

/// What a counter did in the window, for each second of it.
fn rate(status: &Status, counter: Counter) -> f64 {
    status.counter(counter.name()).1 as f64 / status.window.as_secs_f64().max(1e-9)
}

fn in_window(status: &Status, counter: Counter) -> u64 {
    status.counter(counter.name()).1
}

/// How large the tables are that flushes make, since the opening: many small
/// ones cost more than few large ones.
fn flushes(status: &Status) -> String {
    let total = |counter: Counter| status.counter(counter.name()).0;
    match total(Counter::FlushBytes).checked_div(total(Counter::Flushes)) {
        Some(mean) => format!("{} each", bytes_text(mean)),
        None => String::new(),
    }
}

fn share(part: u64, whole: u64) -> String {
    match whole {
        0 => "-".to_string(),
        _ => format!("{:.1} %", 100.0 * part as f64 / whole as f64),
    }
}

fn activity(text: &mut String, status: &Status) {
    let each = |counter| grouped(rate(status, counter).round() as u64);
    let bytes = |counter| bytes_text(rate(status, counter) as u64);
    let now = |counter| in_window(status, counter);
    line(
        text,
        &format!(
            "writes  {:>11}/s  {:>11}/s    gets   {:>11}/s  found {}",
            each(Counter::RecordsWritten),
            bytes(Counter::UserBytesWritten),
            each(Counter::Gets),
            share(now(Counter::GetsFound), now(Counter::Gets))
        ),
    );
    line(
        text,
        &format!(
            "log     {:>11}/s  {:>8} syncs/s  seeks  {:>11}/s",
            bytes(Counter::LogBytes),
            each(Counter::LogSyncs),
            each(Counter::Seeks)
        ),
    );
    line(
        text,
        &format!(
            "flush   {:>11}/s  {:>16}  reads  {:>11}/s  {}/s",
            bytes(Counter::FlushBytes),
            flushes(status),
            each(Counter::BlockReads),
            bytes(Counter::BlockBytesRead)
        ),
    );
    let hits = |hit, miss| share(now(hit), now(hit) + now(miss));
    line(
        text,
        &format!(
            "compact {:>11}/s                  hits   data {}, index {}, filter {}",
            bytes(Counter::CompactionBytesWritten),
            hits(Counter::CacheHits, Counter::CacheMisses),
            hits(Counter::CacheIndexHits, Counter::CacheIndexMisses),
            hits(Counter::CacheFilterHits, Counter::CacheFilterMisses)
        ),
    );
    let total = |counter: Counter| status.counter(counter.name()).0;
    let written = total(Counter::FlushBytes) + total(Counter::CompactionBytesWritten);
    let amplification = written as f64 / total(Counter::UserBytesWritten).max(1) as f64;
    let asked = now(Counter::FilterUseful) + now(Counter::FilterPassed);
    line(
        text,
        &format!(
            "write amplification {amplification:>6.2}               filter denies {}, wrong {}",
            share(now(Counter::FilterUseful), asked),
            share(now(Counter::FilterFalsePositive), asked)
        ),
    );
    let limit = status.memory_bytes_max.map_or(String::new(), |b| format!(" of {}", bytes_text(b)));
    line(
        text,
        &format!(
            "memory {}{limit}, cache {} of {}",
            bytes_text(status.memory_bytes),
            bytes_text(status.cache_bytes),
            bytes_text(status.cache_bytes_max)
        ),
    );
    if now(Counter::RowHits) + now(Counter::RowMisses) > 0 {
        let rows = hits(Counter::RowHits, Counter::RowMisses);
        line(text, &format!("row cache hits {rows}"));
    }
    if status.snapshots > 0 {
        let (count, lag) = (grouped(status.snapshots as u64), grouped(status.snapshot_lag));
        line(text, &format!("snapshots {count}, the oldest {lag} writes old"));
    }
}

fn levels(text: &mut String, levels: &[Level], ink: Ink) {
    let heading = format!("{:>5} {:>8} {:>12} {:>16}", "level", "tables", "size", "entries");
    let scored = levels.iter().any(|level| level.score.is_some());
    let heading = if scored { format!("{heading} {:>7}", "full") } else { heading };
    line(text, &ink.bold(&heading));
    for (number, level) in levels.iter().enumerate().filter(|(_, level)| level.files > 0) {
        let Level { files, bytes, entries, score } = level;
        let (bytes, entries) = (bytes_text(*bytes), entries_text(*entries));
        let score = match score {
            None => String::new(),
            // The last level has no size to keep.
            Some(_) if number + 1 == levels.len() => format!(" {:>7}", "-"),
            Some(score) if *score > 1.0 => ink.alarming(&format!(" {score:>7.2}")),
            Some(score) => format!(" {score:>7.2}"),
        };
        line(text, &format!("{number:>5} {files:>8} {bytes:>12} {entries:>16}{score}"));
    }
    let sum = |of: fn(&Level) -> u64| levels.iter().map(of).sum::<u64>();
    let (files, bytes) = (sum(|level| level.files as u64), bytes_text(sum(|level| level.bytes)));
    let entries = entries_text(levels.iter().map(|level| level.entries).sum());
    line(text, &format!("{:>5} {files:>8} {bytes:>12} {entries:>16}", "all"));
}

fn entries_text(entries: Option<u64>) -> String {
    entries.map_or("-".to_string(), grouped)
}

fn background(text: &mut String, status: &Status) {
    let bytes: u64 = status.families.iter().map(|family| family.memtable_bytes).sum();
    let sealed: usize = status.families.iter().map(|family| family.sealed_memtables).sum();
    let flushing = status.flushing.map_or(String::new(), |time| {
        format!(", a flush runs for {}", seconds_text(time.as_secs_f64()))
    });
    text.push('\n');
    let bytes = bytes_text(bytes);
    line(text, &format!("memtables {bytes}, {sealed} wait for their flush{flushing}"));
    for of in &status.compactions {
        let part = of.bytes_read as f64 / of.bytes.max(1) as f64;
        let filled = (part * BAR_COLUMNS as f64) as usize;
        let bar = format!("{}{}", "#".repeat(filled), "-".repeat(BAR_COLUMNS - filled));
        line(
            text,
            &format!(
                "compaction {} -> {}  {} tables, {}  [{bar}] {:.0} %  {}",
                of.level_from,
                of.level_to,
                of.tables,
                bytes_text(of.bytes),
                100.0 * part,
                seconds_text(of.elapsed.as_secs_f64())
            ),
        );
    }
}

fn stalls(text: &mut String, status: &Status, ink: Ink) {
    let total = |counter: Counter| status.counter(counter.name()).0;
    let stalled = STALLS.iter().filter(|(_, micros, slowdowns, stops)| {
        let paced = slowdowns.map_or(0, total);
        total(*micros) + paced + total(*stops) > 0
    });
    let mut rows = stalled.peekable();
    if rows.peek().is_none() {
        line(text, "no write was held back");
        return;
    }
    text.push('\n');
    let heading = format!(
        "{:<14} {:>12} {:>12} {:>12} {:>12}",
        "writes held", "now", "in all", "paced", "stopped"
    );
    line(text, &ink.bold(&heading));
    for (name, micros, slowdowns, stops) in rows {
        let now = rate(status, *micros) / 1e3;
        let paced = slowdowns.map_or("-".to_string(), |counter| grouped(total(counter)));
        let row = format!(
            "{name:<14} {:>7.0} ms/s {:>12} {paced:>12} {:>12}",
            now,
            seconds_text(total(*micros) as f64 / 1e6),
            grouped(total(*stops))
        );
        line(text, &if now >= 1.0 { ink.alarming(&row) } else { row });
    }
}

fn latencies(text: &mut String, status: &Status, ink: Ink) {
    text.push('\n');
    if status.latencies.is_empty() {
        line(text, "no operation was timed");
        return;
    }
    let heading = format!(
        "{:<11} {:>9} {:>10} {:>10} {:>10} {:>10} {:>10}",
        "latency", "timed", "mean", "p50", "p95", "p99", "p99.9"
    );
    line(text, &ink.bold(&heading));
    for LatencyStatus { name, samples, mean, p50, p95, p99, p999, .. } in &status.latencies {
        let mut row = format!("{name:<11} {:>9}", grouped(*samples));
        for time in [mean, p50, p95, p99, p999] {
            let _ = write!(row, " {:>10}", time_text(*time));
        }
        line(text, &row);
    }
}

/// A short duration in the unit that leaves a whole part.
fn time_text(time: Duration) -> String {
    let nanos = time.as_nanos() as f64;
    match nanos {
        n if n < 1e3 => format!("{n:.0} ns"),
        n if n < 1e6 => format!("{:.1} us", n / 1e3),
        n if n < 1e9 => format!("{:.1} ms", n / 1e6),
        n => format!("{:.1} s", n / 1e9),
    }
}

fn files_below(text: &mut String, files: &Files) {
    text.push('\n');
    let (logs, bytes) = (files.log_files, bytes_text(files.log_bytes));
    let unreferenced = bytes_text(files.unreferenced_bytes);
    line(text, &format!("log {bytes} in {logs} files, not referenced {unreferenced}"));
    if let Some(Change { time, bytes_new, bytes_gone }) = files.change {
        let each = |bytes: u64| bytes_text((bytes as f64 / time.as_secs_f64().max(1e-9)) as u64);
        line(text, &format!("tables: {}/s came, {}/s went", each(bytes_new), each(bytes_gone)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// However long a path, however large the numbers: 80 columns.
    #[test]
    fn frames_fit_into_80_columns() {
        let name = "x".repeat(200);
        assert_eq!(shortened(&name, 40).chars().count(), 40);
        assert_eq!(shortened("short", 40), "short");
        let level = Level {
            files: 99_999,
            bytes: u64::MAX / 8,
            entries: Some(999_999_999_999),
            score: Some(99.9),
        };
        let mut text = String::new();
        levels(&mut text, &[level; 7], Ink::Plain);
        assert!(text.lines().all(|line| line.chars().count() <= COLUMNS), "{text}");
        assert_eq!(text.lines().count(), 9);
        let mut coloured = String::new();
        levels(&mut coloured, &[level; 7], Ink::Coloured);
        assert!(coloured.contains("\x1b[31m"), "what is too full is marked");
    }

    /// Times have the unit that a reader expects.
    #[test]
    fn times_have_units() {
        let text = |nanos| time_text(Duration::from_nanos(nanos));
        assert_eq!(
            [text(999), text(1_500), text(2_000_000), text(3_100_000_000)],
            ["999 ns", "1.5 us", "2.0 ms", "3.1 s"]
        );
    }
}
