//! `lode pulse --demo`: a small database, every mode on it, and what it means.

use std::fmt::Write as _;
use std::io::IsTerminal;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::Outcome;
use crate::directory::Directory;
use crate::error::BenchError;
use crate::numbers::{bytes_text, grouped, seconds_text};
use crate::printer::Printer;
use crate::printer::Voice;
use crate::pulse::entry::bytes_of_entries;
use crate::pulse::flags::{DemoFlags, LoadFlags, RunFlags, Surroundings};
use crate::pulse::load::{Loaded, load_stream};
use crate::pulse::output_of;
use crate::pulse::reads::Mode;
use crate::pulse::report::Report;
use crate::pulse::run::run_rounds;
use crate::pulse::stream::{Shape, Stream};

/// Small enough for some seconds, large enough that a read meets several levels.
const ENTRIES: u64 = 3_000_000;
const ROUNDS: u64 = 3;
/// A twentieth of the whole pulse, because the database is that much smaller.
const STREAM: Stream = Stream {
    shape: Shape::Utxo,
    seed: 1,
    entries: ENTRIES,
    reads: 9_000,
    adds: 21_000,
    deletes: 9_000,
};
const MODES: [(Mode, u8); 3] = [(Mode::Sort, 1), (Mode::Mread, 8), (Mode::Batch, 1)];

/// Runs the demo. Its files are gone at the end, however it ends.
pub fn demo(flags: &DemoFlags, stop: &AtomicBool) -> Result<Outcome, BenchError> {
    let base = flags.dir.clone().unwrap_or_else(std::env::temp_dir);
    let scratch = Directory::temporary_in(&base)?;
    let db = scratch.path().join("db");
    let surroundings = Surroundings {
        db,
        memory_limit: None,
        options: None,
        cache_size: None,
        direct: false,
        status: false,
        json: false,
        quiet: true,
    };
    let output = Voice { progress: std::io::stderr().is_terminal(), ..output_of(&surroundings) };
    let mut printer = Printer::new(output);
    printer.line(&opening(scratch.path()))?;

    let stream = scratch.path().join("stream");
    STREAM.create_file(&stream)?;
    let load = LoadFlags { stream, surroundings: surroundings.clone(), compact: false };
    let loaded = load_stream(&STREAM, &load, output, stop)?;
    printer.line(&loading(&loaded))?;

    let mut reports = Vec::new();
    for (mode, threads) in MODES {
        if stop.load(Ordering::Relaxed) {
            return Ok(Outcome::Stopped);
        }
        printer.line(&format!("{}\n", what_is_read(mode)))?;
        let (report, _) = run_rounds(&rounds(&surroundings, mode, threads), output, stop)?;
        printer.line("\n")?;
        reports.push(report);
    }
    if reports.iter().any(|report| !report.complete) {
        return Ok(Outcome::Stopped);
    }
    printer.line(&meaning(&reports))?;
    Ok(Outcome::Complete)
}

fn rounds(surroundings: &Surroundings, mode: Mode, threads: u8) -> RunFlags {
    RunFlags {
        surroundings: surroundings.clone(),
        mode,
        threads: Some(threads),
        batch_keys: None,
        rounds: ROUNDS,
        interval: 0,
        read_only: false,
        sync: false,
        drop_caches: true,
        no_wait: false,
        histogram: false,
        html: None,
    }
}

fn opening(place: &Path) -> String {
    let Stream { entries, reads, adds, .. } = STREAM;
    format!(
        "A node of a block chain keeps its unspent outputs in a database. With each block it\n\
         reads the outputs that are spent, deletes them, and adds new ones: a pulse of work.\n\
         This is a small one: {} outputs ({} of keys and values), and rounds of\n\
         {} reads, {} additions and {} deletions. Before each round the\n\
         database is taken out of the page cache, so that reads need the device.\n\n\
         Files are in {} and removed at the end.\n\n",
        grouped(entries),
        bytes_text(bytes_of_entries(entries)),
        grouped(reads),
        grouped(adds),
        grouped(reads),
        place.display()
    )
}

fn loading(loaded: &Loaded) -> String {
    format!(
        "loaded {} entries in {}; compaction was quiet {} later\n\n",
        grouped(loaded.entries),
        seconds_text(loaded.write_seconds),
        seconds_text(loaded.settle_seconds)
    )
}

fn what_is_read(mode: Mode) -> &'static str {
    match mode {
        Mode::Sort => "sort: one thread reads key after key, in sorted order",
        Mode::Mread => "mread: eight threads read a part of the sorted keys each",
        Mode::Batch => "batch: one thread asks for 1,024 keys with each call (multi_get)",
    }
}

/// What the figures mean, in sentences.
fn meaning(reports: &[Report]) -> String {
    let mut text = String::from("What this means\n");
    let medians: Vec<(Mode, f64)> = reports
        .iter()
        .filter_map(|report| Some((report.choices.mode, report.read_seconds()?.median)))
        .collect();
    for (mode, seconds) in &medians {
        let micros = seconds * 1e6 / STREAM.reads as f64;
        let _ = writeln!(
            text,
            "- {}: {} for {} reads, {micros:.1} us each.",
            mode.name(),
            seconds_text(*seconds),
            grouped(STREAM.reads)
        );
    }
    let ascending = |a: &&(Mode, f64), b: &&(Mode, f64)| a.1.total_cmp(&b.1);
    if let (Some(best), Some(worst)) =
        (medians.iter().min_by(ascending), medians.iter().max_by(ascending))
    {
        let times = worst.1 / best.1.max(1e-9);
        let why = match best.0 {
            Mode::Sort => "",
            Mode::Mread | Mode::Batch => ": a device is fast when it has many requests at once",
        };
        let (best, worst) = (best.0.name(), worst.0.name());
        let _ = writeln!(text, "- {best} was fastest, {times:.1} times as fast as {worst}{why}.");
    }
    text.push_str(&device_sentence(reports));
    if let Some(seconds) = reports.last().and_then(Report::write_seconds) {
        let _ = writeln!(
            text,
            "- writing a round took {}: one batch, to the log and to memory; tables are made in \
             the background.",
            seconds_text(seconds.median)
        );
    }
    text.push_str(
        "- every value was compared with the one that was written.\n\n\
         Next, at full size: lode pulse gen --shape utxo --size 10G --out utxo.pulse\n\
         \x20                   lode pulse load --stream utxo.pulse --db utxo.db\n\
         \x20                   lode pulse run --db utxo.db --interval 0 --memory-limit 1G\n",
    );
    text
}

fn device_sentence(reports: &[Report]) -> String {
    let lines = || reports.iter().flat_map(|report| &report.rounds);
    let keys: u64 = lines().map(|line| line.reads).sum();
    let per_key = |count: u64| count as f64 / keys.max(1) as f64;
    let blocks = per_key(lines().map(|line| line.blocks_read).sum());
    let bytes: Option<u64> = lines().map(|line| line.device_bytes).sum();
    let device = match bytes {
        None => "this system does not tell what came from devices".to_string(),
        Some(0) => "nothing came from a device: the files are in memory, or on a file system \
                    that keeps them there; try --dir on a disk"
            .to_string(),
        Some(bytes) => format!("{:.1} KiB a key came from the device", per_key(bytes) / 1024.0),
    };
    format!("- a read looked at {blocks:.2} blocks that were not cached; {device}.\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pulse::report::tests::report;

    /// The demo's own stream is a valid one.
    #[test]
    fn stream_of_the_demo_is_valid() {
        assert!(STREAM.check().is_ok());
    }

    /// The explanation compares the modes, and names the winner.
    #[test]
    fn modes_are_compared() {
        let mut fast = report();
        fast.choices.mode = Mode::Batch;
        fast.rounds.iter_mut().for_each(|round| round.read_seconds = 0.5);
        let text = meaning(&[report(), fast]);
        assert!(text.contains("batch was fastest, 4.0 times as fast as sort"), "{text}");
        assert!(text.contains("1.10 blocks that were not cached; 4.0 KiB a key came"), "{text}");
    }
}
