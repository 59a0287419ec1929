//! The page: one file without scripts, losses in red and first.

use std::fmt::Write as _;

use lode_bench::report::html::{Table, document, escape, figure, paragraph, remark, section};
use lode_bench::{bytes_text, date_text, grouped};

use super::bars::{Bar, picture};
use super::{HEADINGS, Head, Told, columns, finding, walks};
use crate::engines::EngineKind;
use crate::statistics::Verdict;

/// The page of a run.
pub fn html(told: &Told) -> String {
    let title = format!("Lodestore beside other engines, lane {}", told.head.lane.name());
    let body = [
        format!("<h1>{}</h1>\n", escape(&title)),
        paragraph(&summary(&told.head)),
        paragraph(&super::ratios_text(told.head.rounds)),
        section("Losses", &losses(told)),
        section("Short of an aim", &short_of_aims(told)),
        section("Ratios", &pictures(told)),
        section("Figures", &figures(told)),
        section("What claims nothing, or is missing", &missing(told)),
        section("Settings", &settings(&told.head)),
    ];
    document(&title, &body.concat())
}

fn summary(head: &Head) -> String {
    let mut text = format!(
        "{}; {}; kernel {}; {} entries, {} lookups, {} rounds, seed {}, {} threads",
        date_text(head.unix_seconds),
        head.processor.as_deref().unwrap_or("unknown processor"),
        head.kernel.as_deref().unwrap_or("unknown"),
        grouped(head.entries),
        grouped(head.reads),
        head.rounds,
        head.seed,
        head.threads,
    );
    if let Some(limit) = head.memory_limit {
        let _ = write!(text, "; {} of memory, page cache included", bytes_text(limit));
    }
    if !head.optimized {
        text.push_str("; built without optimization: figures mean nothing");
    }
    text
}

fn losses(told: &Told) -> String {
    let mut html = String::new();
    for (line, cell) in told.losses() {
        let _ = writeln!(html, "<li class=\"bad\">{}</li>", escape(&finding(line, cell)));
    }
    for (line, cell) in told.doubtful() {
        let _ = writeln!(html, "<li>noisy: {}</li>", escape(&finding(line, cell)));
    }
    list(&html, "None.")
}

fn short_of_aims(told: &Told) -> String {
    let mut html = String::new();
    for (line, cell, aim) in told.short_of_aims() {
        let _ = writeln!(html, "<li>{}, aim {aim}</li>", escape(&finding(line, cell)));
    }
    list(&html, if told.has_aims() { "None." } else { "There are no aims for this." })
}

/// The list of `items`, or what stands there if there are none.
fn list(items: &str, without: &str) -> String {
    if items.is_empty() { paragraph(without) } else { format!("<ul>\n{items}</ul>\n") }
}

/// A picture for each peer.
fn pictures(told: &Told) -> String {
    let mut parts = String::new();
    let peers = told.head.engines.iter().map(|engine| engine.engine);
    for peer in peers.filter(|&engine| engine != EngineKind::Lodestore) {
        let bars: Vec<Bar> = told.lines.iter().filter_map(|line| bar(line, peer)).collect();
        if !bars.is_empty() {
            let caption = format!("{}: its time as a multiple of Lodestore's", peer.name());
            parts += &figure(&picture(&caption, &bars), &caption);
        }
    }
    if parts.is_empty() {
        return parts;
    }
    let remark = remark(
        "Bars to the right of 1 are wins of Lodestore, red ones to the left losses, grey ones \
         claim nothing. The thin line is the interval of the median.",
    );
    format!("{remark}<div class=\"grid\">\n{parts}</div>\n")
}

fn bar(line: &crate::results::Line, peer: EngineKind) -> Option<Bar> {
    let cell = line.cell(peer)?;
    let ratio = cell.ratio.filter(|ratio| ratio.low > 0.0)?;
    let class = match cell.verdict {
        Some(Verdict::Loss) => "stall",
        Some(Verdict::Win) => "f0",
        // Grey.
        _ => "f7",
    };
    let name = format!("{} {}, {:.2}", line.name(), line.case.sizes(), ratio.median);
    Some(Bar { name, ratio: [ratio.low, ratio.median, ratio.high], class })
}

fn figures(told: &Told) -> String {
    let headings: Vec<&str> = ["workload", "size", "engine"].into_iter().chain(HEADINGS).collect();
    let mut table = Table::new(&headings);
    for line in &told.lines {
        for cell in &line.cells {
            let names = [line.name(), line.case.sizes().into(), cell.engine.name().into()];
            let cells: Vec<String> = names.into_iter().chain(columns(cell)).collect();
            match cell.verdict {
                Some(Verdict::Loss) => table.bad_row(&cells),
                _ => table.row(&cells),
            }
        }
    }
    table.html()
}

fn missing(told: &Told) -> String {
    let noisy = told
        .noise()
        .into_iter()
        .map(|(noise, lines)| format!("Noisy ({noise}): {}.", lines.join(", ")));
    let memory = walks::text(told).map(|text| format!("Memory: {text}."));
    let gaps = told.gaps.iter().map(|gap| {
        format!("{} cannot do {}: {}", gap.engine.name(), gap.workload.name(), gap.reason)
    });
    noisy.chain(memory).chain(gaps).map(|text| paragraph(&text)).collect()
}

fn settings(head: &Head) -> String {
    let names = head.engines.iter().map(|engine| engine.engine.name());
    let headings: Vec<&str> = std::iter::once("setting").chain(names).collect();
    let mut table = Table::new(&headings);
    let versions = head.engines.iter().map(|engine| engine.version.clone());
    table.row(&std::iter::once("version".to_string()).chain(versions).collect::<Vec<_>>());
    for (name, values) in head.settings() {
        table.row(&std::iter::once(name).chain(values).collect::<Vec<_>>());
    }
    let mut html = table.html() + &remark("A dash is the engine's own default.");
    for engine in &head.engines {
        for deviation in &engine.deviations {
            html += &paragraph(&format!("{} {deviation}.", engine.engine.name()));
        }
    }
    html + &remark(&format!("Command: {}", head.command))
}
