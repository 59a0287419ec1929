//! What the user gets to see: a table of text, a JSON document, a page, and
//! Markdown of documents.

mod grid;
mod bars;
mod walks;
pub mod table;
pub mod document;
pub mod page;
pub mod markdown;

use std::collections::BTreeMap;

use lode_bench::system;
use serde::{Deserialize, Serialize};

use crate::adapters;
use crate::engines::EngineKind;
use crate::lanes::{Lane, deviations};
use crate::results::{Cell, Gap, Line, Sample, Walk};
use crate::schedule::Plan;
use crate::statistics::{Verdict, coverage_of};
use crate::targets::Setting;

/// Everything that there is to tell.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Told {
    /// Where, when and how.
    pub head: Head,
    /// What came out.
    pub lines: Vec<Line>,
    /// What engines cannot do.
    pub gaps: Vec<Gap>,
    /// What it was computed from.
    pub samples: Vec<Sample>,
    /// What memory took meanwhile; none in older documents.
    #[serde(default)]
    pub walks: Vec<Walk>,
}

/// Where, when and how engines were compared.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Head {
    /// Seconds since 1970.
    pub unix_seconds: u64,
    /// The processor.
    pub processor: Option<String>,
    /// The kernel's version.
    pub kernel: Option<String>,
    /// False if this was built without optimization.
    pub optimized: bool,
    /// What was typed.
    pub command: String,
    /// The lane.
    pub lane: Lane,
    /// Entries of each database.
    pub entries: u64,
    /// Repeats.
    pub rounds: usize,
    /// What everything follows from.
    pub seed: u64,
    /// Threads that look keys up.
    pub threads: u64,
    /// Lookups of each workload.
    pub reads: u64,
    /// Memory that each engine had.
    pub memory_limit: Option<u64>,
    /// Who was compared.
    pub engines: Vec<EngineHead>,
}

/// An engine and how it was set up.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct EngineHead {
    /// Its name.
    pub engine: EngineKind,
    /// Its version.
    pub version: String,
    /// Settings and their values; none where the engine's default holds.
    pub settings: Vec<(String, Option<String>)>,
    /// What it does otherwise than the others.
    pub deviations: Vec<String>,
}

impl Head {
    /// The head of a run of `plan`.
    pub fn new(plan: &Plan, command: String) -> Head {
        let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").ok();
        let engine = |&engine: &EngineKind| EngineHead {
            engine,
            version: adapters::version(engine),
            settings: plan.lane.settings(engine, plan.memory_limit).rows(),
            deviations: deviations(engine).iter().map(ToString::to_string).collect(),
        };
        Head {
            unix_seconds: system::unix_seconds(),
            processor: system::processor(),
            kernel: kernel.map(|text| text.trim().to_string()),
            optimized: !cfg!(debug_assertions),
            command,
            lane: plan.lane,
            entries: plan.entries,
            rounds: plan.rounds,
            seed: plan.seed,
            threads: plan.threads,
            reads: plan.reads,
            memory_limit: plan.memory_limit,
            engines: plan.engines.iter().map(engine).collect(),
        }
    }

    /// What aims depend on.
    fn setting(&self) -> Setting {
        let Head { lane, entries, memory_limit, .. } = *self;
        Setting { lane, entries, memory_limit }
    }

    /// Settings that somebody was told, each with a value for every engine.
    fn settings(&self) -> Vec<(String, Vec<String>)> {
        let Some(first) = self.engines.first() else { return Vec::new() };
        let value = |engine: &EngineHead, at: usize| {
            engine.settings[at].1.clone().unwrap_or_else(|| "-".to_string())
        };
        let row = |(at, (name, _)): (usize, &(String, Option<String>))| {
            let values = self.engines.iter().map(|engine| value(engine, at));
            (name.clone(), values.collect::<Vec<String>>())
        };
        let rows = first.settings.iter().enumerate().map(row);
        rows.filter(|(_, values)| values.iter().any(|value| value != "-")).collect()
    }
}

impl Told {
    /// Lines and cells where we take longer. Lodestore again is never among them:
    /// what it would be makes the line noisy.
    fn losses(&self) -> impl Iterator<Item = (&Line, &Cell)> {
        self.cells().filter(|(_, cell)| cell.verdict == Some(Verdict::Loss))
    }

    /// Lines and cells where we seem to take longer, but that are too noisy for
    /// a claim: told as well, since noise is no excuse.
    fn doubtful(&self) -> impl Iterator<Item = (&Line, &Cell)> {
        self.cells().filter(|(_, cell)| {
            cell.engine != EngineKind::LodestoreAgain
                && cell.verdict == Some(Verdict::Noisy)
                && cell.ratio.is_some_and(|ratio| ratio.median < 1.0)
        })
    }

    /// The least ratio that is wanted of `cell`; `None` where nothing is.
    fn aim(&self, line: &Line, cell: &Cell) -> Option<f64> {
        self.head.setting().aim(line.case, line.span, cell.engine)
    }

    /// False if nothing at all is wanted of anybody.
    fn has_aims(&self) -> bool {
        self.cells().any(|(line, cell)| self.aim(line, cell).is_some())
    }

    /// The aim that `cell` is short of, noisy or not.
    fn missed_aim(&self, line: &Line, cell: &Cell) -> Option<f64> {
        let ratio = cell.ratio?;
        self.aim(line, cell).filter(|&aim| ratio.median < aim)
    }

    /// Lines and cells that are short of their aim, with the aim.
    fn short_of_aims(&self) -> impl Iterator<Item = (&Line, &Cell, f64)> {
        self.cells().filter_map(|(line, cell)| Some((line, cell, self.missed_aim(line, cell)?)))
    }

    fn cells(&self) -> impl Iterator<Item = (&Line, &Cell)> {
        self.lines.iter().flat_map(|line| line.cells.iter().map(move |cell| (line, cell)))
    }

    /// Why nothing is claimed, and of which lines.
    fn noise(&self) -> BTreeMap<&str, Vec<String>> {
        let mut lines = BTreeMap::<&str, Vec<String>>::new();
        for line in &self.lines {
            if let Some(noise) = &line.noise {
                lines.entry(noise).or_default().push(line.title());
            }
        }
        lines
    }
}

/// `readseq 16-100: rocksdb 0.50 (0.49 to 0.52)`.
fn finding(line: &Line, cell: &Cell) -> String {
    format!("{}: {} {}", line.title(), cell.engine.name(), ratio_text(cell))
}

/// How ratios are to be read.
fn ratios_text(rounds: usize) -> String {
    format!(
        "Ratios are the engine's time as a multiple of Lodestore's: above 1 it takes longer. In \
         brackets the interval of the median, which covers {:.1} % with {rounds} rounds.",
        coverage_of(rounds) * 100.0
    )
}

/// `3.12 (3.05 to 3.20)`.
fn ratio_text(cell: &Cell) -> String {
    let text = |ratio: crate::statistics::Estimate| {
        format!("{:.2} ({:.2} to {:.2})", ratio.median, ratio.low, ratio.high)
    };
    cell.ratio.map_or(String::new(), text)
}

/// What a verdict is called in tables.
fn mark(verdict: Option<Verdict>) -> &'static str {
    match verdict {
        Some(Verdict::Loss) => "LOSS",
        Some(Verdict::Even) => "even",
        Some(Verdict::Noisy) => "noisy",
        Some(Verdict::Win) | None => "",
    }
}

/// Headings of [`columns`].
const HEADINGS: [&str; 10] = [
    "us/op",
    "ratio",
    "",
    "cpu us/op",
    "cpu ratio",
    "p99.9 us",
    "write amp.",
    "read B/op",
    "on disk",
    "peak RSS",
];

/// The texts of a cell.
fn columns(cell: &Cell) -> [String; 10] {
    let bytes = |bytes: f64| lode_bench::bytes_text(bytes as u64);
    let maybe = |figure: Option<f64>, digits: usize| {
        figure.map_or(String::new(), |figure| format!("{figure:.digits$}"))
    };
    [
        format!("{:.3}", cell.micros),
        ratio_text(cell),
        mark(cell.verdict).to_string(),
        format!("{:.3}", cell.cpu_micros),
        maybe(cell.cpu_ratio, 2),
        maybe(cell.p99_9_micros, 1),
        maybe(cell.write_amplification, 2),
        format!("{:.0}", cell.read_bytes),
        bytes(cell.directory_bytes),
        bytes(cell.peak_rss_bytes),
    ]
}

#[cfg(test)]
mod tests;
