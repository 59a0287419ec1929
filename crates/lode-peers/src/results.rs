//! From what the children measured to lines: one for each workload, a cell for
//! each engine. Pure.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::engine::Result;
use crate::engines::EngineKind;
use crate::failure::Failure;
use crate::protocol::Measured;
use crate::statistics::{self, Estimate, Verdict, median};
use crate::stream::Shape;
use crate::workload::{Group, Workload};

/// A workload at one size of entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Case {
    /// How large keys and values are.
    pub shape: Shape,
    /// What is done.
    pub workload: Workload,
}

impl Case {
    /// Bytes of keys and values, as text. Some workloads have sizes of their own.
    pub fn sizes(&self) -> &'static str {
        match self.workload.group() {
            Group::Large => "100k",
            Group::Pulse => "40-66",
            _ => self.shape.name(),
        }
    }
}

/// One measurement of a run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Sample {
    /// 0, 1, ...
    pub round: usize,
    /// Whose it is.
    pub engine: EngineKind,
    /// How large keys and values were.
    pub shape: Shape,
    /// What was measured.
    pub measured: Measured,
}

impl Sample {
    fn case(&self) -> Case {
        Case { shape: self.shape, workload: self.measured.workload }
    }
}

/// An engine that cannot do a workload.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Gap {
    /// Which one.
    pub engine: EngineKind,
    /// What it cannot do.
    pub workload: Workload,
    /// Why.
    pub reason: String,
}

/// What memory took beside one child.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Walk {
    /// 0, 1, ...
    pub round: usize,
    /// Whose child it was.
    pub engine: EngineKind,
    /// What it did.
    pub group: Group,
    /// How large keys and values were.
    pub shape: Shape,
    /// Nanoseconds of a step of the `gauge`.
    pub nanos: f64,
}

/// Until when a line counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Span {
    /// Until the last call returned.
    Calls,
    /// Until background work was over.
    Quiet,
}

/// A line of the table.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Line {
    /// What was done.
    pub case: Case,
    /// Until when.
    pub span: Span,
    /// Why nothing is claimed, if so.
    pub noise: Option<String>,
    /// Ours first.
    pub cells: Vec<Cell>,
}

impl Line {
    /// What the line is called.
    pub fn name(&self) -> String {
        let quiet = if self.span == Span::Quiet { "+quiet" } else { "" };
        format!("{}{quiet}", self.case.workload.name())
    }

    /// That and its sizes: `readseq 16-100`.
    pub fn title(&self) -> String {
        format!("{} {}", self.name(), self.case.sizes())
    }

    /// What `engine` came to; `None` if it was not measured.
    pub fn cell(&self, engine: EngineKind) -> Option<&Cell> {
        self.cells.iter().find(|cell| cell.engine == engine)
    }
}

/// What one engine came to, as medians over rounds.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Cell {
    /// Whose it is.
    pub engine: EngineKind,
    /// Microseconds an operation.
    pub micros: f64,
    /// Processor microseconds an operation.
    pub cpu_micros: f64,
    /// Its time as a multiple of ours; `None` for ours.
    pub ratio: Option<Estimate>,
    /// Its processor time as a multiple of ours; `None` for ours.
    pub cpu_ratio: Option<f64>,
    /// What that says.
    pub verdict: Option<Verdict>,
    /// Bytes that were written for each byte of keys and values; for writes.
    pub write_amplification: Option<f64>,
    /// Bytes read from devices for each operation.
    pub read_bytes: f64,
    /// Size of the directory.
    pub directory_bytes: f64,
    /// The most memory that was resident.
    pub peak_rss_bytes: f64,
    /// 999 of 1,000 calls took no longer, in microseconds.
    pub p99_9_micros: Option<f64>,
    /// Puts a second beside the readers.
    pub puts_beside: Option<f64>,
}

/// Checks that in `round` all engines found the same so far.
/// # Errors: `Disagreement` names two that did not.
pub fn check_agreement(samples: &[Sample], round: usize) -> Result<()> {
    let mut first: BTreeMap<Case, &Sample> = BTreeMap::new();
    for sample in samples.iter().filter(|sample| sample.round == round) {
        let other = *first.entry(sample.case()).or_insert(sample);
        let (a, b) = (&other.measured, &sample.measured);
        if (a.operations, a.found, &a.digest) == (b.operations, b.found, &b.digest) {
            continue;
        }
        let told = |sample: &Sample| {
            let Measured { operations, found, digest, .. } = &sample.measured;
            format!(
                "{} found {} in {operations} operations, digest {}",
                sample.engine.name(),
                found.map_or("nothing to count".to_string(), |found| found.to_string()),
                digest.as_deref().unwrap_or("none"),
            )
        };
        return Err(Failure::Disagreement(format!(
            "{} at {}, round {}: {}, but {}; one of them is wrong",
            sample.measured.workload.name(),
            sample.case().sizes(),
            round + 1,
            told(other),
            told(sample),
        )));
    }
    Ok(())
}

/// All lines, in the order of shapes and workloads.
pub fn lines(samples: &[Sample], rounds: usize) -> Vec<Line> {
    let mut cases: BTreeMap<Case, BTreeMap<EngineKind, Vec<Option<&Measured>>>> = BTreeMap::new();
    for sample in samples {
        let engines = cases.entry(sample.case()).or_default();
        let rows = engines.entry(sample.engine).or_insert_with(|| vec![None; rounds]);
        rows[sample.round] = Some(&sample.measured);
    }
    let of_case = |(case, engines): (&Case, &BTreeMap<_, _>)| {
        let spans: &[Span] = match case.workload.is_write() {
            true => &[Span::Calls, Span::Quiet],
            false => &[Span::Calls],
        };
        spans.iter().map(|&span| line(*case, span, engines, rounds)).collect::<Vec<Line>>()
    };
    cases.iter().flat_map(of_case).collect()
}

fn line(
    case: Case,
    span: Span,
    engines: &BTreeMap<EngineKind, Vec<Option<&Measured>>>,
    rounds: usize,
) -> Line {
    let ours = engines.get(&EngineKind::Lodestore).map(|rows| times(rows, span));
    let itself = engines.get(&EngineKind::LodestoreAgain).map(|rows| times(rows, span));
    let ratio = |theirs: &Times| statistics::ratio(&ours.as_ref()?.wall, &theirs.wall);
    let noise = statistics::noise(itself.as_ref().and_then(ratio).as_ref(), rounds);
    let cell = |(&engine, rows): (&EngineKind, &Vec<Option<&Measured>>)| {
        let theirs = times(rows, span);
        let is_ours = engine == EngineKind::Lodestore;
        let ratio = (!is_ours).then(|| ratio(&theirs)).flatten();
        let cpu = |ours: &Times| statistics::ratio(&ours.cpu, &theirs.cpu);
        let cpu_ratio = ours.as_ref().filter(|_| !is_ours).and_then(cpu);
        let of = |figure: &dyn Fn(&Measured) -> Option<f64>| {
            let figures = rows.iter().flatten().filter_map(|measured| figure(measured));
            median(&figures.collect::<Vec<f64>>())
        };
        let amplification = |m: &Measured| {
            // A log that is mapped and dirty already costs no page that the
            // system would count; the engine knows better then.
            let written = m.written_bytes.max(m.engine_written_bytes.unwrap_or(0));
            (m.user_bytes > 0).then(|| written as f64 / m.user_bytes as f64)
        };
        let per_operation = |amount: f64, m: &Measured| amount / m.operations.max(1) as f64;
        Cell {
            engine,
            micros: of(&|m| Some(per_operation(wall(m, span) * 1e6, m))).unwrap_or(0.0),
            cpu_micros: of(&|m| Some(per_operation(cpu_seconds(m, span) * 1e6, m))).unwrap_or(0.0),
            ratio,
            cpu_ratio: cpu_ratio.map(|ratio| ratio.median),
            verdict: ratio.map(|ratio| statistics::verdict(&ratio, noise.is_some())),
            write_amplification: of(&amplification),
            read_bytes: of(&|m| Some(per_operation(m.read_bytes as f64, m))).unwrap_or(0.0),
            directory_bytes: of(&|m| Some(m.directory_bytes as f64)).unwrap_or(0.0),
            peak_rss_bytes: of(&|m| Some(m.peak_rss_bytes as f64)).unwrap_or(0.0),
            p99_9_micros: of(&|m| Some(m.latency.as_ref()?.p99_9_micros)),
            puts_beside: of(&|m| Some(m.puts_beside? as f64 / m.seconds)),
        }
    };
    let cells = engines.iter().map(cell).collect();
    Line { case, span, noise, cells }
}

/// Times of each round.
struct Times {
    wall: Vec<Option<f64>>,
    cpu: Vec<Option<f64>>,
}

fn times(rows: &[Option<&Measured>], span: Span) -> Times {
    Times {
        wall: rows.iter().map(|row| row.map(|m| wall(m, span))).collect(),
        cpu: rows.iter().map(|row| row.map(|m| cpu_seconds(m, span))).collect(),
    }
}

fn wall(measured: &Measured, span: Span) -> f64 {
    let quiet = measured.quiet.filter(|_| span == Span::Quiet);
    // An engine may be quiet before the last look, never before its last call.
    quiet.map_or(measured.seconds, |quiet| quiet.seconds.max(measured.seconds))
}

fn cpu_seconds(measured: &Measured, span: Span) -> f64 {
    let quiet = measured.quiet.filter(|_| span == Span::Quiet);
    quiet.map_or(measured.cpu_seconds, |quiet| quiet.cpu_seconds.max(measured.cpu_seconds))
}

#[cfg(test)]
pub mod tests;
