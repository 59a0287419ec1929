//! Workloads that measure Lodestore: db_bench's benchmarks, histograms, reports.
//!
//! The path of a run, and the order of the modules: what is typed (`flags`),
//! checked (`settings`), looked up (`workload`), done by every thread
//! (`worker`, `workloads`), counted and told (`line`, `summary`, `document`).

mod error;
mod numbers;
mod system;

// What benchmarks are made of.
pub mod random;
pub mod keys;
pub mod values;
pub mod histogram;
pub mod ledger;
mod comparisons;
mod counts;
mod worker;
mod workloads;
mod workload;

// What the user says.
mod flags;
mod settings;

// What the user sees.
mod directory;
mod line;
mod progress;
mod printer;
mod header;
mod summary;
mod document;

// Doing it.
mod runner;
pub mod pulse;

use std::sync::atomic::{AtomicBool, Ordering};

pub use error::BenchError;
pub use flags::Flags;
pub use numbers::{bytes_text, grouped, parse_bytes, parse_count, seconds_text};
pub use workload::help as benchmarks_help;

use crate::directory::Directory;
use crate::printer::Printer;
use crate::runner::Runner;
use crate::settings::Settings;
use crate::summary::Summary;

/// How a run ended that did not fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Every benchmark ran.
    Complete,
    /// `stop` was set; what was done until then is reported.
    Stopped,
}

/// Runs the benchmarks that `flags` name and prints what they reached. Setting
/// `stop` ends the run early, its temporary directory being removed as usual.
pub fn run(flags: &Flags, stop: &AtomicBool) -> Result<Outcome, BenchError> {
    let settings = Settings::new(flags)?;
    let directory = Directory::new(settings.directory.as_deref(), settings.keep)?;
    let mut printer = Printer::new(settings.output);
    printer.prose(&header::text(&settings, &directory))?;

    let mut runner = Runner::new(&settings, &directory, stop)?;
    let lines = runner.run(&mut printer)?;

    let stopped = stop.load(Ordering::Relaxed);
    let counts = runner.counts();
    let tables = runner.db().map_or(0, table_bytes);
    let summary = Summary::new(&lines, &counts, tables, stopped, system::peak_rss_bytes());
    printer.prose(&summary.text(&lines))?;
    if settings.output.counters {
        printer.line(&counters_text(&counts))?;
    }
    if settings.output.json {
        let path = directory.path();
        printer.document(&document::text(&settings, path, &lines, &summary, &counts))?;
    }
    Ok(if stopped { Outcome::Stopped } else { Outcome::Complete })
}

fn table_bytes(db: &lodestore::Db) -> u64 {
    db.stats().table_bytes()
}

fn counters_text(counts: &counts::Counts) -> String {
    let rows = counts.named().map(|(name, value)| format!("{name:<28} {value}\n"));
    format!("\nCounters\n{}", rows.collect::<String>())
}
