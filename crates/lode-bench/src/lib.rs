//! Workloads that measure Lodestore: db_bench's benchmarks, histograms, reports.
//!
//! The path of a run, and the order of the modules: what is typed (`flags`),
//! checked (`settings`), looked up (`catalogue`), done by every thread
//! (`worker`, `workloads`), watched meanwhile (`watch`), counted and told
//! (`line`, `summary`, `document`, `report`).

mod error;
mod numbers;
pub mod system;
mod printer;
mod events;

// What benchmarks are made of.
pub mod random;
pub mod keys;
pub mod values;
pub mod histogram;
pub mod ledger;
pub mod permutation;
pub mod popularity;
pub mod pace;
mod shapes;
mod distributions;
mod comparisons;
mod counts;
mod worker;
mod workloads;
mod workload;
mod catalogue;

// What the user says.
mod foreign;
mod selection;
mod flags;
mod settings;

// What the user sees.
mod directory;
mod timeline;
mod line;
mod repeats;
mod progress;
mod rates;
mod header;
mod summary;
mod document;
pub mod report;

// Doing it.
mod watch;
mod threads;
mod runner;
pub mod pulse;
mod help;

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

pub use error::BenchError;
pub use flags::Flags;
pub use foreign::flag as foreign_flag_reason;
pub use help::benchmarks as benchmarks_help;
pub use numbers::{bytes_text, date_text, grouped, parse_bytes, parse_count, seconds_text};

use crate::directory::Directory;
use crate::document::Told;
use crate::printer::Printer;
use crate::runner::Runner;
use crate::settings::Settings;
use crate::summary::Summary;

/// How often a run tells `lode top` how it is doing, if it does.
const STATUS_INTERVAL: Duration = Duration::from_secs(1);

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
    let mut printer = Printer::new(settings.output.voice());
    printer.prose(&header::text(&settings, &directory))?;

    let mut runner = Runner::new(&settings, &directory, stop)?;
    let results = runner.run(&mut printer)?;

    let stopped = stop.load(Ordering::Relaxed);
    let counts = runner.counts();
    let tables = runner.db().map_or(0, table_bytes);
    let lines = &results.lines;
    let summary = Summary::new(lines, &counts, tables, stopped, system::peak_rss_bytes());
    printer.prose(&summary.text(lines))?;
    if settings.output.counters {
        printer.line(&counters_text(&counts))?;
    }
    let told = Told {
        settings: &settings,
        directory: directory.path(),
        lines,
        averages: &results.averages,
        summary: &summary,
        counts: &counts,
    };
    if let Some(path) = &settings.output.page {
        std::fs::write(path, report::page(&told)).map_err(BenchError::io(path))?;
        printer.prose(&format!("\nReport: {}\n", path.display()))?;
    }
    if settings.output.json {
        printer.document(&document::text(&told))?;
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
