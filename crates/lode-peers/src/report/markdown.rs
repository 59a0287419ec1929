//! Markdown of runs, for a page of results: a table of ratios, of one run or of
//! several side by side, then a table of what they cost, noise, losses, what is
//! short of an aim, and what is missing.

use std::collections::BTreeSet;

use lode_bench::report::html::escape;
use lode_bench::{bytes_text, date_text, grouped};

use super::{Told, walks};
use crate::engines::EngineKind;
use crate::results::{Cell, Gap, Line, Span};

const MIB: f64 = (1 << 20) as f64;
/// Lines on which Lodestore differs from itself by more are told by name.
const NOISE_TOLD: f64 = 0.10;
/// Flags that say where something is on one machine, each with a value.
const PLACES: [&str; 3] = ["--directory", "--html", "--json"];

/// The section of a run.
pub fn text(told: &Told) -> String {
    let parts = [title(told), summary(told), ratios(&[told], Line::title), costs(told)];
    joined(parts.into_iter().chain(findings(told)))
}

/// One table of the ratios of all `runs`, in the order of the first, and then a
/// section for each with the rest.
pub fn beside(runs: &[Told]) -> String {
    let section = |told: &Told| {
        let parts = [title(told), summary(told), costs(told)];
        joined(parts.into_iter().chain(findings(told)))
    };
    let all: Vec<&Told> = runs.iter().collect();
    // Sizes tell lines of one run apart, and otherwise runs.
    let has_one_shape = |told: &&Told| shapes(told).len() == 1;
    let name = if all.iter().all(has_one_shape) { Line::name } else { Line::title };
    joined([ratios(&all, name)].into_iter().chain(runs.iter().map(section)))
}

fn findings(told: &Told) -> [String; 5] {
    [noise(told), memory(told), below_one(told), short_of_aims(told), gaps(told)]
}

/// What there is nothing of leaves no empty lines behind.
fn joined(parts: impl Iterator<Item = String>) -> String {
    parts.filter(|part| !part.is_empty()).collect::<Vec<String>>().join("\n")
}

fn title(told: &Told) -> String {
    let head = &told.head;
    let mut sizes: Vec<&str> = told.lines.iter().map(|line| line.case.sizes()).collect();
    let mut seen = BTreeSet::new();
    sizes.retain(|size| seen.insert(*size));
    let memory = head.memory_limit.map(|limit| format!(", {} of memory", bytes_text(limit)));
    format!(
        "### Lane {}: {} entries, sizes {}{}\n",
        head.lane.name(),
        grouped(head.entries),
        sizes.join(", "),
        memory.unwrap_or_default()
    )
}

fn summary(told: &Told) -> String {
    let head = &told.head;
    let engines = head.engines.iter().filter(|head| head.engine != EngineKind::LodestoreAgain);
    let versions = engines.map(|head| format!("{} {}", head.engine.title(), head.version));
    let unknown = "unknown".to_string();
    let facts = [
        day(told),
        rounds(told),
        format!("{} lookups", grouped(head.reads)),
        format!("processor {}", head.processor.as_ref().unwrap_or(&unknown)),
        format!("kernel {}", head.kernel.as_ref().unwrap_or(&unknown)),
        versions.collect::<Vec<String>>().join(", "),
        format!("`{}`", command(&head.command)),
    ];
    let warning = if head.optimized { "" } else { " Built without optimization: worth nothing." };
    format!("{}.{warning}\n", facts.join("; "))
}

/// `2026-11-21`.
fn day(told: &Told) -> String {
    date_text(told.head.unix_seconds).chars().take("2026-11-21".len()).collect()
}

/// Those that were asked for.
fn shapes(told: &Told) -> Vec<&'static str> {
    let shapes = told.lines.iter().map(|line| line.case.shape);
    shapes.collect::<BTreeSet<_>>().into_iter().map(|shape| shape.name()).collect()
}

fn rounds(told: &Told) -> String {
    let ratios = told.cells().filter_map(|(_, cell)| cell.ratio);
    let coverage = ratios.map(|ratio| ratio.coverage).fold(0.0, f64::max);
    match told.head.rounds {
        1 => "1 round".to_string(),
        rounds => format!("{rounds} rounds, intervals of {:.0} %", coverage * 100.0),
    }
}

/// What was typed, without places.
fn command(typed: &str) -> String {
    let mut kept = vec!["lode-peers"];
    let mut words = typed.split(' ').skip(1);
    while let Some(word) = words.next() {
        if PLACES.contains(&word) {
            words.next();
        } else if !PLACES.iter().any(|place| word.starts_with(&format!("{place}="))) {
            kept.push(word);
        }
    }
    kept.join(" ")
}

/// What a row of ratios is called by.
type Name = fn(&Line) -> String;

/// A row for each line of any of `runs`; for each run our time, and the ratios of
/// its peers.
fn ratios(runs: &[&Told], name: Name) -> String {
    let headings = runs.iter().zip(distinctions(runs)).flat_map(|(told, distinction)| {
        let ours = format!("Lodestore{distinction} us/op");
        let theirs =
            peers(told).into_iter().map(|peer| format!("{} ratio (low-high)", peer.title()));
        [ours].into_iter().chain(theirs)
    });
    let headings: Vec<String> = ["line".to_string()].into_iter().chain(headings).collect();
    let columns = headings.len();
    let mut table = row(headings.into_iter()) + &rule(columns);
    for called in rows(runs, name) {
        let cells = runs.iter().flat_map(|told| {
            let line = told.lines.iter().find(|line| name(line) == called);
            ratios_of(told, line)
        });
        table += &row([called.clone()].into_iter().chain(cells));
    }
    table
}

/// Names of all lines; what only later runs have comes last.
fn rows(runs: &[&Told], name: Name) -> Vec<String> {
    let mut rows: Vec<String> = Vec::new();
    for called in runs.iter().flat_map(|told| &told.lines).map(name) {
        if !rows.contains(&called) {
            rows.push(called);
        }
    }
    rows
}

/// Our time and the ratio of each peer in `line`; dashes where a run has no such line.
fn ratios_of(told: &Told, line: Option<&Line>) -> Vec<String> {
    let cell = |engine, text: &dyn Fn(&Line, &Cell) -> Option<String>| {
        let text_of_line = |line| text_of(line, engine, |cell| text(line, cell));
        line.map_or("-".to_string(), text_of_line)
    };
    let ours = cell(EngineKind::Lodestore, &|_, cell| Some(figure(cell.micros)));
    let peers = peers(told).into_iter();
    let theirs = peers.map(|peer| cell(peer, &|line, cell| ratio(told, line, cell)));
    [ours].into_iter().chain(theirs).collect()
}

/// What tells each of `runs` from the others: `, equal, 1,000,000`; nothing of one.
fn distinctions(runs: &[&Told]) -> Vec<String> {
    let facts = |told: &&Told| {
        let (lane, entries) = (told.head.lane.name().to_string(), grouped(told.head.entries));
        [lane, entries, shapes(told).join(" "), day(told)]
    };
    let facts: Vec<[String; 4]> = runs.iter().map(facts).collect();
    let differs = |at: &usize| facts.iter().any(|of_run| of_run[*at] != facts[0][*at]);
    let differing: Vec<usize> = (0..4).filter(differs).collect();
    let told = |of_run: &[String; 4]| {
        differing.iter().map(|&at| format!(", {}", of_run[at])).collect::<String>()
    };
    facts.iter().map(told).collect()
}

/// `1.87x (1.80-1.95), aim 2`.
fn ratio(told: &Told, line: &Line, cell: &Cell) -> Option<String> {
    let ratio = cell.ratio?;
    let mut text = format!("{:.2}x", ratio.median);
    if ratio.median < 1.0 {
        text = format!("**{text}**");
    }
    // One round has no interval.
    if ratio.coverage > 0.0 {
        text += &format!(" ({:.2}-{:.2})", ratio.low, ratio.high);
    }
    if let Some(aim) = told.missed_aim(line, cell) {
        text += &format!(", aim {aim}");
    }
    Some(text)
}

/// What a cell of the second table tells: what it is, and its figure.
type Cost = (&'static str, fn(&Cell) -> Option<f64>);

/// What every write costs, in the order of the cells.
const COSTS: [Cost; 3] = [
    ("bytes written for each of the user's", |cell| cell.write_amplification),
    ("MiB of the directory", |cell| Some(cell.directory_bytes / MIB)),
    ("MiB of peak RSS", |cell| Some(cell.peak_rss_bytes / MIB)),
];
const LATENCY: Cost = ("p99.9 in us", |cell| cell.p99_9_micros);
const READ: Cost = ("bytes read an operation", |cell| Some(cell.read_bytes));

/// The second table: of writes, and of reads too where it has something to tell
/// of them.
fn costs(told: &Told) -> String {
    let has_latencies = told.cells().any(|(_, cell)| cell.p99_9_micros.is_some());
    let is_limited = told.head.memory_limit.is_some();
    let mut costs = COSTS.to_vec();
    costs.extend(has_latencies.then_some(LATENCY));
    costs.extend(is_limited.then_some(READ));
    // Both lines of a write have the same costs.
    let is_told = |line: &&Line| {
        let has_costs = has_latencies || is_limited || line.case.workload.is_write();
        line.span == Span::Calls && has_costs
    };
    let lines: Vec<&Line> = told.lines.iter().filter(is_told).collect();
    if lines.is_empty() { String::new() } else { costs_table(told, &lines, &costs) }
}

fn costs_table(told: &Told, lines: &[&Line], costs: &[Cost]) -> String {
    let engines = [EngineKind::Lodestore].into_iter().chain(peers(told)).collect::<Vec<_>>();
    let names = costs.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(" / ");
    let titles = engines.iter().map(|engine| engine.title().to_string());
    let headings = ["line".to_string()].into_iter().chain(titles);
    let mut table = format!("In each cell: {names}.\n\n");
    table += &(row(headings) + &rule(engines.len() + 1));
    let figures = |cell: &Cell| {
        let texts = costs.iter().map(|(_, of)| of(cell).map_or("-".to_string(), figure));
        Some(texts.collect::<Vec<String>>().join(" / "))
    };
    for line in lines {
        let cells = engines.iter().map(|&engine| text_of(line, engine, figures));
        table += &row([line.title()].into_iter().chain(cells));
    }
    table
}

/// How far Lodestore was from itself.
fn noise(told: &Told) -> String {
    let difference = |line: &Line| {
        let ratio = line.cell(EngineKind::LodestoreAgain)?.ratio?;
        Some((ratio.median - 1.0).abs())
    };
    let all = told.lines.iter().filter_map(difference);
    let Some(largest) = all.clone().reduce(f64::max) else { return String::new() };
    let least = all.fold(largest, f64::min);
    let far = told.lines.iter().filter_map(|line| {
        let difference = difference(line).filter(|&difference| difference > NOISE_TOLD)?;
        Some(format!("{} ({})", line.title(), percent(difference)))
    });
    let far = far.collect::<Vec<String>>().join(", ");
    format!(
        "Lodestore against itself differed by {} to {}; by more than {:.0} %: {}.\n",
        percent(least),
        percent(largest),
        NOISE_TOLD * 100.0,
        if far.is_empty() { "nowhere" } else { &far }
    )
}

fn memory(told: &Told) -> String {
    walks::text(told).map_or(String::new(), |text| format!("Memory: {text}.\n"))
}

fn below_one(told: &Told) -> String {
    let is_below = |cell: &Cell| cell.ratio.is_some_and(|ratio| ratio.median < 1.0);
    let below = told.cells().filter(|(_, cell)| is_peer(cell.engine) && is_below(cell));
    list("Below 1", below.map(|(line, cell)| finding(told, line, cell)).collect())
}

fn short_of_aims(told: &Told) -> String {
    let short = told.short_of_aims().map(|(line, cell, _)| finding(told, line, cell)).collect();
    if told.has_aims() { list("Short of an aim", short) } else { String::new() }
}

fn gaps(told: &Told) -> String {
    let item = |gap: &Gap| {
        let (engine, workload) = (gap.engine.title(), gap.workload.name());
        format!("{engine} cannot do {workload}: {}", escape(&gap.reason))
    };
    let items: Vec<String> = told.gaps.iter().map(item).collect();
    if items.is_empty() { String::new() } else { list("Missing", items) }
}

/// `readseq 16-100: RocksDB 0.50x (aim 2)`.
fn finding(told: &Told, line: &Line, cell: &Cell) -> String {
    let ratio = cell.ratio.map_or(String::new(), |ratio| format!(" {:.2}x", ratio.median));
    let aim = told.missed_aim(line, cell).map_or(String::new(), |aim| format!(" (aim {aim})"));
    format!("{}: {}{ratio}{aim}", line.title(), cell.engine.title())
}

fn list(title: &str, items: Vec<String>) -> String {
    if items.is_empty() {
        return format!("{title}: none.\n");
    }
    let items: String = items.iter().map(|item| format!("- {item}\n")).collect();
    format!("{title}:\n\n{items}")
}

fn peers(told: &Told) -> Vec<EngineKind> {
    let engines = told.head.engines.iter().map(|head| head.engine);
    engines
        .filter(|&engine| is_peer(engine))
        .collect::<BTreeSet<EngineKind>>()
        .into_iter()
        .collect()
}

fn is_peer(engine: EngineKind) -> bool {
    !matches!(engine, EngineKind::Lodestore | EngineKind::LodestoreAgain)
}

fn row(cells: impl Iterator<Item = String>) -> String {
    format!("| {} |\n", cells.collect::<Vec<String>>().join(" | "))
}

/// The line below the headings.
fn rule(columns: usize) -> String {
    format!("|{}\n", "---|".repeat(columns))
}

/// What `text` makes of the cell of `engine`; a dash where there is nothing.
fn text_of(line: &Line, engine: EngineKind, text: impl Fn(&Cell) -> Option<String>) -> String {
    line.cell(engine).and_then(text).unwrap_or_else(|| "-".to_string())
}

/// Three digits that count, or all before the point.
fn figure(value: f64) -> String {
    match value {
        0.0 => "0".to_string(),
        value if value < 1.0 => format!("{value:.3}"),
        value if value < 10.0 => format!("{value:.2}"),
        value if value < 100.0 => format!("{value:.1}"),
        value => grouped(value.round() as u64),
    }
}

fn percent(part: f64) -> String {
    format!("{:.1} %", part * 100.0)
}
