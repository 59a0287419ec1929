//! The sections of the page, each from what a run tells.

use lodestore::Counter;
use serde_json::Value;

use super::bars::{Row, dots, stacks};
use super::curve::{Stretch, layers, rates};
use super::html::{Table, escape, figure, legend, paragraph, remark, section};
use super::scale::short;
use crate::counts::STALL_CAUSES;
use crate::document::{Choices, Told};
use crate::line::Line;
use crate::numbers::{bytes_text, grouped, seconds_text};
use crate::system;
use crate::timeline::Sample;

/// Stretches of a curve: more than this are not told apart on a phone.
const STRETCHES_MAX: usize = 90;
/// A course of fewer samples says nothing.
const SAMPLES_MIN: usize = 4;
/// Names of the percentiles that are drawn.
const PERCENTILES: [&str; 6] = ["p50", "p75", "p99", "p99.9", "p99.99", "max"];

/// What ran where.
pub fn heading(told: &Told<'_>, title: &str) -> String {
    let settings = told.settings;
    let machine = system::processor().unwrap_or_else(|| "an unknown processor".to_string());
    format!(
        "<header>\n<h1>{}</h1>\n{}</header>\n",
        escape(title),
        paragraph(&format!(
            "Lodestore {} on {machine}: {} entries with keys of {} and values of {} bytes, {}, \
             measured for {}.",
            env!("CARGO_PKG_VERSION"),
            grouped(settings.num),
            settings.keys.key_bytes(),
            settings.value_bytes,
            match settings.threads {
                1 => "one thread".to_string(),
                threads => format!("{threads} threads"),
            },
            seconds_text(told.summary.seconds),
        ))
    )
}

/// What a reader should know first: what went wrong, then what the figures
/// mean.
pub fn findings(told: &Told<'_>) -> String {
    let mut html = String::from("<ul>\n");
    let mut bad = |text: &str| html += &format!("<li class=\"bad\">{}</li>\n", escape(text));
    if cfg!(debug_assertions) {
        bad("This program was built without optimization: its figures mean nothing.");
    }
    for line in told.lines {
        let part = stalled_part(line);
        if part >= 0.01 {
            bad(&format!(
                "{}: writers were held back for {:.0} % of their time ({}).",
                line.name,
                part * 100.0,
                seconds_text(line.stall_seconds)
            ));
        }
        let failed = line.remark.as_deref().filter(|remark| remark.contains("failure"));
        if let Some(remark) = failed {
            bad(&format!("{}: {remark}.", line.name));
        }
    }
    for sentence in told.summary.sentences(told.lines) {
        html += &format!("<li>{}</li>\n", escape(&sentence));
    }
    for note in &told.settings.notes {
        html += &format!("<li class=\"faint\">{}</li>\n", escape(note));
    }
    section("What stands out", &(html + "</ul>\n"))
}

/// A row for each line.
pub fn lines(told: &Told<'_>) -> String {
    let headings = [
        "benchmark",
        "ops/s",
        "us/op",
        "MB/s",
        "p50 us",
        "p99 us",
        "p99.9 us",
        "max us",
        "cache",
        "held back",
        "disk after",
        "remark",
    ];
    let mut table = Table::new(&headings);
    let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".to_string());
    for line in told.lines {
        let latency = line.latency.as_ref();
        let micros = |value: Option<f64>| or_dash(value.map(|v| format!("{v:.1}")));
        table.row(&[
            line.name.clone(),
            grouped(line.ops_per_second.round() as u64),
            format!("{:.3}", line.micros_per_op),
            or_dash(line.mib_per_second.map(|rate| format!("{rate:.1}"))),
            micros(latency.map(|l| l.p50_micros)),
            micros(latency.map(|l| l.p99_micros)),
            micros(latency.map(|l| l.p99_9_micros)),
            micros(latency.map(|l| l.max_micros)),
            or_dash(line.cache_hit_rate.map(|rate| format!("{:.0} %", rate * 100.0))),
            or_dash((line.stall_seconds > 0.0).then(|| seconds_text(line.stall_seconds))),
            bytes_text(line.disk_bytes),
            remarks(line),
        ]);
    }
    section("Lines", &table.html())
}

fn remarks(line: &Line) -> String {
    let found = line.lookups.map(|found| format!("{} of {} found", found.found, found.total));
    let stopped = line.stopped.then(|| "stopped".to_string());
    let parts: Vec<String> = line.remark.clone().into_iter().chain(found).chain(stopped).collect();
    parts.join("; ")
}

/// Benchmarks that were repeated.
pub fn averages(told: &Told<'_>) -> String {
    if told.averages.is_empty() {
        return String::new();
    }
    let mut table = Table::new(&["benchmark", "runs", "mean ops/s", "95 % within", "median ops/s"]);
    for average in told.averages {
        let ops = &average.ops_per_second;
        table.row(&[
            average.name.clone(),
            average.runs.to_string(),
            grouped(ops.mean.round() as u64),
            format!("± {}", grouped(ops.ci95.round() as u64)),
            grouped(ops.median.round() as u64),
        ]);
    }
    section("Repeats", &table.html())
}

/// Percentiles of all lines in one picture.
pub fn latencies(told: &Told<'_>) -> String {
    let rows: Vec<Row> = told.lines.iter().filter_map(latency_row).collect();
    if rows.is_empty() {
        return String::new();
    }
    let picture = dots("latency percentiles of each benchmark", &rows, "us");
    let caption = "Microseconds of an operation (of a batch, where there are batches), on a \
                   logarithmic scale.";
    section("Latency", &(legend(&PERCENTILES) + &figure(&picture, caption)))
}

fn latency_row(line: &Line) -> Option<Row> {
    let l = line.latency.as_ref().filter(|_| line.ops > 1)?;
    let micros =
        [l.p50_micros, l.p75_micros, l.p99_micros, l.p99_9_micros, l.p99_99_micros, l.max_micros];
    // A clock that is too coarse shows a latency of zero, which has no logarithm.
    let values = micros.map(|value| value.max(0.001)).to_vec();
    Some(Row { name: line.name.clone(), values })
}

/// Rates and levels over time, for each line that took long enough.
pub fn courses(told: &Told<'_>) -> String {
    let (long, short): (Vec<&Line>, Vec<&Line>) =
        told.lines.iter().filter(|l| l.ops > 1).partition(|l| l.samples.len() >= SAMPLES_MIN);
    let mut html = String::new();
    for line in long {
        html += &course(line);
    }
    if !html.is_empty() {
        html = format!("<div class=\"grid\">\n{html}</div>\n");
        let names = level_names(told.lines);
        let colours = remark("Colours of the levels:") + &legend(&names);
        html += &format!("<div class=\"together\">\n{colours}</div>\n");
    }
    if !short.is_empty() {
        let names: Vec<&str> = short.iter().map(|line| line.name.as_str()).collect();
        html += &remark(&format!("Too short for a course: {}.", names.join(", ")));
    }
    section("Over time", &html)
}

fn course(line: &Line) -> String {
    let stretches = stretches(&line.samples, line.threads);
    let mut parts = format!("<h3>{}</h3>\n", escape(&line.name));
    parts += &rates(&format!("operations a second of {} over time", line.name), &stretches);
    let mut caption = "operations a second".to_string();
    if line.stall_seconds > 0.0 {
        caption += "; red: writers were held back";
    }
    let moved = line.samples.iter().any(|s| s.level_bytes != line.samples[0].level_bytes);
    if moved {
        let times: Vec<f64> = line.samples.iter().map(|s| s.seconds).collect();
        let levels = levels_of(&line.samples);
        let label = format!("bytes of the levels during {} over time", line.name);
        let high = line.samples.iter().map(Sample::bytes).max().unwrap_or(0);
        let (divisor, unit) = byte_unit(high);
        let scaled = |layer: &Vec<f64>| layer.iter().map(|bytes| bytes / divisor).collect();
        let levels: Vec<Vec<f64>> = levels.iter().map(scaled).collect();
        parts += &layers(&label, &times, &levels, &|amount| format!("{} {unit}", short(amount)));
        caption += "; below: bytes of memtables and levels";
    }
    figure(&parts, &caption)
}

/// Each level, then the memtables, at every sample.
fn levels_of(samples: &[Sample]) -> Vec<Vec<f64>> {
    let count = samples.iter().map(|s| s.level_bytes.len()).max().unwrap_or(0);
    let memtables = samples.iter().map(|s| s.memtable_bytes as f64).collect();
    let level = |at: usize| -> Vec<f64> {
        samples.iter().map(|s| s.level_bytes.get(at).map_or(0.0, |&b| b as f64)).collect()
    };
    (0..count).map(level).chain([memtables]).collect()
}

fn level_names(lines: &[Line]) -> Vec<String> {
    let samples = lines.iter().flat_map(|line| &line.samples);
    let count = samples.map(|s| s.level_bytes.len()).max().unwrap_or(0);
    let names = (0..count).map(|level| format!("level {level}"));
    names.chain(["memtables".to_string()]).collect()
}

/// Rates between samples, neighbours taken together where there are many.
fn stretches(samples: &[Sample], threads: u64) -> Vec<Stretch> {
    let step = samples.len().div_ceil(STRETCHES_MAX);
    let mut points: Vec<&Sample> = samples.iter().step_by(step).collect();
    if let (Some(last), false) = (samples.last(), (samples.len() - 1).is_multiple_of(step)) {
        points.push(last);
    }
    // A benchmark ends soon after a sample: a rate over so short a time would be
    // a peak that never was.
    if let [.., a, b, c] = points[..]
        && c.seconds - b.seconds < (b.seconds - a.seconds) / 2.0
    {
        points.remove(points.len() - 2);
    }
    let pairs = points.windows(2).filter(|pair| pair[1].seconds > pair[0].seconds);
    let stretch = |pair: &[&Sample]| {
        let seconds = pair[1].seconds - pair[0].seconds;
        let stalled = pair[1].stall_seconds - pair[0].stall_seconds;
        Stretch {
            from: pair[0].seconds,
            to: pair[1].seconds,
            rate: pair[1].ops.saturating_sub(pair[0].ops) as f64 / seconds,
            stalled: (stalled / (seconds * threads.max(1) as f64)).clamp(0.0, 1.0),
        }
    };
    pairs.map(stretch).collect()
}

/// How long writers waited, and why.
pub fn stalls(told: &Told<'_>) -> String {
    let mut table = Table::new(&["benchmark", "cause", "held back", "of the writers' time"]);
    let mut any = false;
    for line in told.lines {
        let time = line.thread_seconds();
        for cause in &STALL_CAUSES {
            let Some(&micros) = line.counters.get(cause.micros.name()) else { continue };
            any = true;
            let seconds = micros as f64 / 1e6;
            let part =
                if time > 0.0 { format!("{:.1} %", seconds / time * 100.0) } else { "-".into() };
            table.row(&[line.name.clone(), cause.name.to_string(), seconds_text(seconds), part]);
        }
    }
    let html = if any { table.html() } else { paragraph("No writer was held back.") };
    section("Stalls", &html)
}

fn stalled_part(line: &Line) -> f64 {
    let time = line.thread_seconds();
    // Where only a thread beside those that are measured writes, its wait is
    // compared with their time.
    if time > 0.0 && line.wrote() { (line.stall_seconds / time).min(1.0) } else { 0.0 }
}

/// What was written for each byte of the program's.
pub fn amplification(told: &Told<'_>) -> String {
    let rows: Vec<Row> = told.lines.iter().filter_map(amplification_row).collect();
    if rows.is_empty() {
        return String::new();
    }
    let picture = stacks("bytes written for each byte of the program", &rows, &|n| short(n));
    let whole = told.summary.write_amplification.map_or(String::new(), |amplification| {
        format!(" Over the whole run, {amplification:.2} without the log.")
    });
    let caption = format!(
        "Bytes that were written for each byte of keys and values while the benchmark ran; what \
         compactions owe to it afterwards is in the next one.{whole}"
    );
    let legend = legend(&["flushes", "compactions", "log"]);
    section("Write amplification", &(legend + &figure(&picture, &caption)))
}

fn amplification_row(line: &Line) -> Option<Row> {
    let count = |counter: Counter| line.counters.get(counter.name()).copied().unwrap_or(0) as f64;
    let user = count(Counter::UserBytesWritten);
    let written = [Counter::FlushBytes, Counter::CompactionBytesWritten, Counter::LogBytes];
    let values = || written.map(|counter| count(counter) / user).to_vec();
    (user > 0.0).then(|| Row { name: line.name.clone(), values: values() })
}

/// The levels at the end of the run.
pub fn levels(told: &Told<'_>) -> String {
    let last = told.lines.iter().rev().find_map(|line| line.samples.last());
    let Some(last) = last else {
        return String::new();
    };
    let (divisor, unit) = byte_unit(last.bytes());
    let row = |colour: usize, name: String, bytes: u64| {
        let mut values = vec![0.0; colour];
        values.push(bytes as f64 / divisor);
        Row { name: format!("{name}: {}", bytes_text(bytes)), values }
    };
    let levels = last.level_bytes.iter().enumerate().filter(|&(_, &bytes)| bytes > 0);
    let mut rows: Vec<Row> =
        levels.map(|(level, &bytes)| row(level, format!("level {level}"), bytes)).collect();
    rows.push(row(last.level_bytes.len(), "memtables".to_string(), last.memtable_bytes));
    let label = "bytes of each level at the end";
    let picture = stacks(label, &rows, &|amount| format!("{} {unit}", short(amount)));
    let caption = "Bytes when the last benchmark ended; levels without tables are left out.";
    section("Levels at the end", &figure(&picture, caption))
}

/// What the flags chose.
pub fn settings(told: &Told<'_>) -> String {
    let choices = serde_json::to_value(Choices::of(told.settings)).unwrap_or_default();
    let mut html = String::from("<div class=\"wide\"><table class=\"words\">\n<tbody>\n");
    setting_rows(&mut html, "", &choices);
    let directory = Value::from(told.directory.display().to_string());
    setting_rows(&mut html, "directory", &directory);
    section("Settings", &(html + "</tbody></table></div>\n"))
}

/// A row for `value`, or for each part of it.
fn setting_rows(html: &mut String, name: &str, value: &Value) {
    let text = match value {
        Value::Object(parts) => {
            for (part, value) in parts {
                setting_rows(html, format!("{name} {}", part.replace('_', " ")).trim(), value);
            }
            return;
        }
        Value::Null => "not set".to_string(),
        Value::Number(number) if name.contains("bytes") && number.is_u64() => {
            bytes_text(number.as_u64().unwrap_or_default())
        }
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    *html += &format!("<tr><td>{}</td><td>{}</td></tr>\n", escape(name), escape(&text));
}

/// The largest unit of which `bytes` are one or more: marks on an axis are round
/// only in it.
fn byte_unit(bytes: u64) -> (f64, &'static str) {
    let units = [(30, "GiB"), (20, "MiB"), (10, "KiB")];
    let unit = units.iter().find(|(bits, _)| bytes >> bits > 0);
    unit.map_or((1.0, "B"), |&(bits, name)| ((1u64 << bits) as f64, name))
}
