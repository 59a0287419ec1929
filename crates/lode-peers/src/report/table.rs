//! The table of text.

use std::fmt::Write as _;

use lode_bench::{bytes_text, date_text, grouped};

use super::{HEADINGS, Head, Told, columns, finding, grid, walks};
use crate::results::Line;

/// Everything, ours first in each line; losses, what is short of an aim, and noise
/// once more at the end.
pub fn text(told: &Told) -> String {
    let mut text = head(&told.head);
    let _ = writeln!(text, "\n{}\n", super::ratios_text(told.head.rounds));
    text.push_str(&grid::text(&rows(&told.lines), 3));
    text + &losses(told) + &short_of_aims(told) + &remarks(told)
}

fn head(head: &Head) -> String {
    let mut text = String::new();
    let mut row = |label: &str, value: String| {
        let _ = writeln!(text, "{label:<11} {value}");
    };
    row("Date:", date_text(head.unix_seconds));
    row("CPU:", head.processor.clone().unwrap_or_else(|| "unknown".to_string()));
    row("Kernel:", head.kernel.clone().unwrap_or_else(|| "unknown".to_string()));
    row("Command:", head.command.clone());
    row("Lane:", head.lane.name().to_string());
    row("Entries:", grouped(head.entries));
    row("Lookups:", grouped(head.reads));
    row("Rounds:", head.rounds.to_string());
    row("Seed:", head.seed.to_string());
    row("Threads:", head.threads.to_string());
    if let Some(limit) = head.memory_limit {
        row("Memory:", format!("{} for each engine, page cache included", bytes_text(limit)));
    }
    if !head.optimized {
        row("WARNING:", "built without optimization: figures mean nothing".to_string());
    }
    text.push('\n');
    text.push_str(&settings(head));
    for engine in &head.engines {
        for deviation in &engine.deviations {
            let _ = writeln!(text, "{} {deviation}.", engine.engine.name());
        }
    }
    text
}

fn settings(head: &Head) -> String {
    let names = head.engines.iter().map(|engine| engine.engine.name().to_string());
    let versions = head.engines.iter().map(|engine| engine.version.clone());
    let mut rows = vec![
        std::iter::once(String::new()).chain(names).collect::<Vec<String>>(),
        std::iter::once("version".to_string()).chain(versions).collect(),
    ];
    for (name, values) in head.settings() {
        rows.push(std::iter::once(name).chain(values).collect());
    }
    grid::text(&rows, 1)
}

fn rows(lines: &[Line]) -> Vec<Vec<String>> {
    let labels = ["workload", "size", "engine"];
    let mut rows = vec![labels.into_iter().chain(HEADINGS).map(str::to_string).collect()];
    for line in lines {
        for (at, cell) in line.cells.iter().enumerate() {
            let [name, sizes] = match at {
                0 => [line.name(), line.case.sizes().to_string()],
                _ => [String::new(), String::new()],
            };
            let mut row = vec![name, sizes, cell.engine.name().to_string()];
            row.extend(columns(cell));
            rows.push(row);
        }
    }
    rows
}

fn losses(told: &Told) -> String {
    let mut text = String::new();
    let losses: Vec<_> = told.losses().collect();
    let _ = writeln!(text, "\n{} losses", losses.len());
    for (line, cell) in losses {
        let _ = writeln!(text, "  {}", finding(line, cell));
    }
    let doubtful: Vec<_> = told.doubtful().collect();
    if !doubtful.is_empty() {
        let _ = writeln!(text, "{} below 1 on noisy lines", doubtful.len());
    }
    for (line, cell) in doubtful {
        let _ = writeln!(text, "  {}", finding(line, cell));
    }
    text
}

fn short_of_aims(told: &Told) -> String {
    if !told.has_aims() {
        return String::new();
    }
    let short: Vec<_> = told.short_of_aims().collect();
    let mut text = format!("{} short of an aim\n", short.len());
    for (line, cell, aim) in short {
        let _ = writeln!(text, "  {}, aim {aim}", finding(line, cell));
    }
    text
}

/// What is noisy, how fast memory was, what was written beside readers, and what is
/// missing.
fn remarks(told: &Told) -> String {
    let mut text = String::new();
    for (noise, lines) in told.noise() {
        let _ = writeln!(text, "noisy ({noise}): {}", lines.join(", "));
    }
    if let Some(memory) = walks::text(told) {
        let _ = writeln!(text, "memory: {memory}");
    }
    for line in &told.lines {
        for cell in &line.cells {
            if let Some(puts) = cell.puts_beside {
                let (title, engine) = (line.title(), cell.engine.name());
                let _ = writeln!(text, "{title}: {engine} wrote {puts:.0} a second beside");
            }
        }
    }
    for gap in &told.gaps {
        let (engine, workload) = (gap.engine.name(), gap.workload.name());
        let _ = writeln!(text, "{engine} cannot do {workload}: {}", gap.reason);
    }
    text
}
