//! `lode pulse load`: makes the database of a stream, entry by entry in the
//! order of their numbers, in flat memory.
//!
//! There is no log: a batch notes how many entries are loaded with it, and
//! flushes are atomic, so that a load that was stopped goes on where it was.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use lodestore::WriteBatch;
use serde::Serialize;

use crate::Outcome;
use crate::counts::Counts;
use crate::error::BenchError;
use crate::numbers::{bytes_text, grouped, seconds_text};
use crate::printer::Printer;
use crate::printer::Voice;
use crate::progress::{Goal, INTERVAL, Progress};
use crate::pulse::entry::bytes_of_entries;
use crate::pulse::flags::LoadFlags;
use crate::pulse::open::{Access, Opened, open};
use crate::pulse::output_of;
use crate::pulse::state::{State, is_there};
use crate::pulse::status::Status;
use crate::pulse::stream::Stream;
use crate::pulse::watch::{Peaks, Watch};

/// Entries of a batch: some 200 KB, so that the cost of a write is shared by many.
const BATCH_ENTRIES: u64 = 2_000;

/// What a load came to, and the document of `--json`.
#[derive(Debug, Serialize)]
pub struct Loaded {
    /// The stream.
    pub stream: Stream,
    /// Entries of the database.
    pub entries: u64,
    /// Those that were there before.
    pub entries_before: u64,
    /// Until the last entry was written.
    pub write_seconds: f64,
    /// From then until everything was flushed and compacted.
    pub settle_seconds: f64,
    /// Bytes of the tables.
    pub table_bytes: u64,
    /// Bytes into tables for each byte written; `None` if nothing was.
    pub write_amplification: Option<f64>,
    /// The most that was used.
    pub peaks: Peaks,
    /// The most memory of the control group, page cache included.
    pub group_peak_bytes: Option<u64>,
    /// False if the user stopped it.
    pub complete: bool,
}

/// Loads, and prints what it came to.
pub fn load(flags: &LoadFlags, stop: &AtomicBool) -> Result<Outcome, BenchError> {
    let output = output_of(&flags.surroundings);
    let loaded = load_stream(&Stream::read_file(&flags.stream)?, flags, output, stop)?;
    let mut printer = Printer::new(output);
    printer.line(&loaded.text(flags))?;
    if output.json {
        let text = serde_json::to_string_pretty(&loaded);
        printer.document(&text.expect("plain fields serialize"))?;
    }
    Ok(if loaded.complete { Outcome::Complete } else { Outcome::Stopped })
}

/// Loads what is not loaded yet.
pub fn load_stream(
    stream: &Stream,
    flags: &LoadFlags,
    output: Voice,
    stop: &AtomicBool,
) -> Result<Loaded, BenchError> {
    let exists = is_there(&flags.surroundings.db)?;
    let watch = Watch::start()?;
    let opened = open(&flags.surroundings, Access::Load)?;
    let engine = |during: &str| BenchError::engine(during.to_string());
    let mut state = match exists {
        true => State::read(&opened.db)?,
        false => State::create(&opened.db, stream).map_err(engine("creating the database"))?,
    };
    check(&state, stream, flags)?;
    let entries_before = state.loaded;
    if entries_before > 0 {
        let (there, left) = (grouped(entries_before), grouped(stream.entries - entries_before));
        Printer::new(output).prose(&format!("{there} entries are there, {left} are left\n"))?;
    }
    let start = Instant::now();
    let goal = Goal::Ops(stream.entries - entries_before);
    let progress = output.progress.then(|| Progress::new("load", goal));
    write(&opened, &mut state, progress, stop).map_err(engine("loading"))?;
    let written = start.elapsed();
    let status = Status::new(output, "flushing, and waiting until compaction is quiet");
    settle(&opened, &state, flags).map_err(engine("after the load"))?;
    drop(status);
    Ok(Loaded {
        stream: stream.clone(),
        entries: state.loaded,
        entries_before,
        write_seconds: written.as_secs_f64(),
        settle_seconds: (start.elapsed() - written).as_secs_f64(),
        table_bytes: opened.db.stats().table_bytes(),
        write_amplification: Counts::now(&opened.statistics).write_amplification(),
        peaks: watch.take(),
        group_peak_bytes: opened.limit.as_ref().and_then(|limit| limit.peak_bytes()),
        complete: state.is_loaded(),
    })
}

fn check(state: &State, stream: &Stream, flags: &LoadFlags) -> Result<(), BenchError> {
    let path = flags.surroundings.db.display();
    if state.stream != *stream {
        return Err(BenchError::Usage(format!(
            "{path} is made of another stream ({}); name another directory",
            summary(&state.stream)
        )));
    }
    if state.is_loaded() {
        return Err(BenchError::Usage(format!(
            "{path} is loaded already, and {} rounds were run on it; go on with \
             lode pulse run --db {path}",
            state.rounds
        )));
    }
    Ok(())
}

fn write(
    opened: &Opened,
    state: &mut State,
    mut progress: Option<Progress>,
    stop: &AtomicBool,
) -> lodestore::Result<()> {
    let (entries, goal) = (state.stream.entries(), state.stream.entries);
    let (first, mut drawn) = (state.loaded, Instant::now());
    let (mut batch, mut value) = (WriteBatch::new(), Vec::new());
    while !state.is_loaded() && !stop.load(Ordering::Relaxed) {
        let end = goal.min(state.loaded + BATCH_ENTRIES);
        batch.clear();
        for number in state.loaded..end {
            entries.value(number, &mut value);
            batch.put(&entries.key(number), &value);
        }
        state.set_loaded(end, &mut batch);
        opened.db.write_with(&Default::default(), &mut batch)?;
        if drawn.elapsed() >= INTERVAL {
            drawn = Instant::now();
            if let Some(progress) = &mut progress {
                progress.draw(end - first);
            }
        }
    }
    Ok(())
}

/// Flushes, and waits until nothing is left to compact, unless the user
/// stopped the load.
fn settle(opened: &Opened, state: &State, flags: &LoadFlags) -> lodestore::Result<()> {
    opened.db.flush_all()?;
    if !state.is_loaded() {
        return Ok(());
    }
    if flags.compact {
        opened.db.compact_range(None, None)?;
    }
    opened.db.wait_for_background()
}

/// A stream in a few words.
pub fn summary(stream: &Stream) -> String {
    format!(
        "{}, seed {}, {} entries, about {}",
        stream.shape.name(),
        stream.seed,
        grouped(stream.entries),
        bytes_text(bytes_of_entries(stream.entries))
    )
}

impl Loaded {
    fn text(&self, flags: &LoadFlags) -> String {
        let new = self.entries - self.entries_before;
        let rate = grouped((new as f64 / self.write_seconds.max(1e-9)) as u64);
        let mut text = format!(
            "loaded {} entries in {} ({rate} a second), {} more until compaction was quiet\n\
             tables {}",
            grouped(new),
            seconds_text(self.write_seconds),
            seconds_text(self.settle_seconds),
            bytes_text(self.table_bytes),
        );
        if let Some(amplification) = self.write_amplification {
            let _ = write!(text, ", write amplification {amplification:.2}");
        }
        let _ = write!(text, ", peak memory {} resident", bytes_text(self.peaks.rss_bytes));
        if let Some(bytes) = self.group_peak_bytes {
            let _ = write!(text, ", {} of the limit with page cache", bytes_text(bytes));
        }
        let db = flags.surroundings.db.display();
        let _ = match self.complete {
            true => write!(text, "\nnext: lode pulse run --db {db}\n"),
            false => write!(
                text,
                "\nstopped at {} of {} entries; the same command goes on from there\n",
                grouped(self.entries),
                grouped(self.stream.entries)
            ),
        };
        text
    }
}
