//! `lode pulse run`: rounds of reads, additions and deletions on a loaded
//! database. Each round is one write batch, which also notes that the round is
//! done: a later run goes on with the next one.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use lodestore::{WriteBatch, WriteOptions};

use crate::Outcome;
use crate::counts::Counts;
use crate::error::BenchError;
use crate::histogram::Histogram;
use crate::numbers::seconds_text;
use crate::printer::Printer;
use crate::printer::Voice;
use crate::progress::INTERVAL;
use crate::pulse::cgroup::DeviceReads;
use crate::pulse::entry::Entries;
use crate::pulse::flags::RunFlags;
use crate::pulse::open::{Access, Opened, open};
use crate::pulse::output_of;
use crate::pulse::page;
use crate::pulse::pages::drop_cached;
use crate::pulse::plan::{Planner, Round};
use crate::pulse::reads::{Mode, Reader, wanted};
use crate::pulse::report::{Choices, Report, RoundLine, Writes};
use crate::pulse::state::{State, is_there};
use crate::pulse::status::Status;
use crate::pulse::watch::Watch;
use crate::system;

/// Threads of the mode mread, if nothing is said: what the original used.
const MREAD_THREADS: u8 = 8;

/// Keys of one call in the mode batch, if nothing is said.
const BATCH_KEYS: u64 = 1_024;

/// Runs the rounds and prints what they came to.
pub fn run(flags: &RunFlags, stop: &AtomicBool) -> Result<Outcome, BenchError> {
    let output = output_of(&flags.surroundings);
    let mut printer = Printer::new(output);
    let (report, histogram) = run_rounds(flags, output, stop)?;
    printer.prose(&report.summary_text())?;
    if flags.histogram {
        printer.line(&format!("\nMicroseconds per {}:\n{}", report.call(), histogram.text()))?;
    }
    if let Some(path) = &flags.html {
        std::fs::write(path, page::html(&report)).map_err(BenchError::io(path))?;
    }
    if output.json {
        printer.document(&report.json())?;
    }
    Ok(if report.complete { Outcome::Complete } else { Outcome::Stopped })
}

/// Runs the rounds and prints a line for each.
pub fn run_rounds(
    flags: &RunFlags,
    output: Voice,
    stop: &AtomicBool,
) -> Result<(Report, Histogram), BenchError> {
    let threads = threads(flags)?;
    if !is_there(&flags.surroundings.db)? {
        return Err(BenchError::Usage(format!(
            "there is no database in {}; lode pulse load makes one",
            flags.surroundings.db.display()
        )));
    }
    let access = if flags.read_only { Access::Read } else { Access::Write };
    let opened = open(&flags.surroundings, access)?;
    let mut run = Run::start(flags, threads, output, &opened, stop)?;
    if let Some(path) = &flags.html {
        // A path that cannot be written is better known before the rounds.
        std::fs::File::create(path).map_err(BenchError::io(path))?;
    }
    let mut printer = Printer::new(output);
    let settle_seconds = run.settle()?;
    let mut report = run.report(settle_seconds)?;
    printer.prose(&report.header_text())?;

    let mut histogram = Histogram::default();
    let start = Instant::now();
    for pass in 0..flags.rounds {
        let due = Duration::from_secs(flags.interval.saturating_mul(pass));
        run.wait_until(start, due);
        let Some(line) = run.round(pass, &mut histogram)? else {
            break;
        };
        printer.line(&line.text())?;
        report.rounds.push(line);
    }
    report.complete = report.rounds.len() as u64 == flags.rounds;
    report.latency = histogram.latency();
    report.table_bytes = opened.db.stats().table_bytes();
    report.group_peak_bytes = opened.limit.as_ref().and_then(|limit| limit.peak_bytes());
    Ok((report, histogram))
}

fn threads(flags: &RunFlags) -> Result<u8, BenchError> {
    if flags.rounds == 0 || flags.batch_keys == Some(0) {
        return Err(BenchError::Usage("--rounds and --batch-keys must be at least 1".to_string()));
    }
    if flags.batch_keys.is_some() && flags.mode != Mode::Batch {
        return Err(BenchError::Usage("--batch-keys is for --mode batch".to_string()));
    }
    match (flags.mode, flags.threads) {
        (Mode::Sort, Some(threads)) if threads > 1 => Err(BenchError::Usage(format!(
            "--mode sort reads with one thread; --mode mread or batch takes --threads {threads}"
        ))),
        (_, Some(threads)) => Ok(threads),
        (Mode::Mread, None) => Ok(MREAD_THREADS),
        (Mode::Sort | Mode::Batch, None) => Ok(1),
    }
}

fn batch_keys(flags: &RunFlags) -> u64 {
    flags.batch_keys.unwrap_or(BATCH_KEYS)
}

/// A run in progress.
struct Run<'a> {
    flags: &'a RunFlags,
    threads: u8,
    output: Voice,
    opened: &'a Opened,
    stop: &'a AtomicBool,
    state: State,
    planner: Planner,
    entries: Entries,
    watch: Watch,
    batch: WriteBatch,
}

impl<'a> Run<'a> {
    fn start(
        flags: &'a RunFlags,
        threads: u8,
        output: Voice,
        opened: &'a Opened,
        stop: &'a AtomicBool,
    ) -> Result<Run<'a>, BenchError> {
        let state = State::read(&opened.db)?;
        if !state.is_loaded() {
            return Err(BenchError::Usage(format!(
                "{} is loaded in part only; lode pulse load with the same flags goes on with it",
                flags.surroundings.db.display()
            )));
        }
        let mut planner = Planner::new(&state.stream);
        planner.skip_to(state.rounds)?;
        let (entries, batch) = (state.stream.entries(), WriteBatch::new());
        let watch = Watch::start()?;
        Ok(Run { flags, threads, output, opened, stop, state, planner, entries, watch, batch })
    }

    /// Waits until nothing is left to compact, and says how long that took.
    fn settle(&self) -> Result<f64, BenchError> {
        let start = Instant::now();
        if !self.flags.no_wait {
            let text = "waiting until compaction is quiet (--no-wait begins at once)";
            let _status = Status::new(self.output, text);
            let waited = self.opened.db.wait_for_background();
            waited.map_err(BenchError::engine("waiting for compactions"))?;
        }
        Ok(start.elapsed().as_secs_f64())
    }

    fn report(&self, settle_seconds: f64) -> Result<Report, BenchError> {
        let flags = self.flags;
        let path = &flags.surroundings.db;
        let choices = Choices {
            mode: flags.mode,
            threads: self.threads,
            batch_keys: (flags.mode == Mode::Batch).then(|| batch_keys(flags)),
            interval_seconds: flags.interval,
            read_only: flags.read_only,
            sync: flags.sync,
            drop_caches: flags.drop_caches,
            memory_limit_bytes: flags.surroundings.memory_limit,
            cache_bytes: flags.surroundings.cache_size,
            options_file: flags.surroundings.options.clone(),
        };
        let mut report = Report::new(&self.state.stream, path, choices);
        report.rounds_before = self.state.rounds;
        report.entries = self.planner.live();
        report.settle_seconds = settle_seconds;
        report.disk_bytes = system::directory_bytes(path).map_err(BenchError::io(path))?;
        Ok(report)
    }

    /// Waits until `due` after `start`, or until the user stops the run.
    fn wait_until(&self, start: Instant, due: Duration) {
        let left = || due.saturating_sub(start.elapsed());
        let text = || {
            let time = seconds_text(left().as_secs_f64());
            format!("next round in {time} (--interval 0 does not wait)")
        };
        let status = Status::new(self.output, "");
        while !left().is_zero() && !self.stop.load(Ordering::Relaxed) {
            status.draw(&text());
            std::thread::sleep(INTERVAL.min(left()));
        }
    }

    /// One round; `None` if the user stopped it.
    fn round(
        &mut self,
        pass: u64,
        histogram: &mut Histogram,
    ) -> Result<Option<RoundLine>, BenchError> {
        if self.stop.load(Ordering::Relaxed) {
            return Ok(None);
        }
        if self.flags.drop_caches {
            drop_cached(&self.flags.surroundings.db)?;
        }
        if self.flags.read_only {
            let reads = self.planner.reads_only(pass)?;
            return self.reads(pass + 1, &reads, histogram);
        }
        let round = self.planner.next_round()?;
        let Some(mut line) = self.reads(round.number, &round.reads, histogram)? else {
            return Ok(None);
        };
        line.writes = Some(self.writes(&round)?);
        line.peaks = line.peaks.max(self.watch.take());
        Ok(Some(line))
    }

    fn reads(
        &mut self,
        number: u64,
        reads: &[u64],
        histogram: &mut Histogram,
    ) -> Result<Option<RoundLine>, BenchError> {
        let during = format!("reads of round {number}");
        let mut wanted = wanted(&self.entries, reads);
        let reader = Reader {
            db: &self.opened.db,
            mode: self.flags.mode,
            threads: usize::from(self.threads),
            batch_keys: usize::try_from(batch_keys(self.flags)).unwrap_or(usize::MAX),
            stop: self.stop,
        };
        // What was used to prepare the round is not part of it.
        self.watch.take();
        let before = Before::now(self.opened);
        let done = reader.read(&mut wanted, &during)?;
        if !done.complete {
            return Ok(None);
        }
        histogram.merge(&done.histogram);
        let mut line = before.line(self.opened);
        line.round = number;
        line.reads = reads.len() as u64;
        line.read_seconds = done.elapsed.as_secs_f64();
        line.latency = done.histogram.latency();
        line.peaks = self.watch.take();
        Ok(Some(line))
    }

    /// Writes the round as one batch. The clock runs from the batch's being
    /// ready to its being written.
    fn writes(&mut self, round: &Round) -> Result<Writes, BenchError> {
        self.batch.clear();
        let mut value = Vec::new();
        for number in round.adds.clone() {
            self.entries.value(number, &mut value);
            self.batch.put(&self.entries.key(number), &value);
        }
        for &number in &round.deletes {
            self.batch.delete(&self.entries.key(number));
        }
        self.state.set_rounds(round.number, &mut self.batch);
        let before = Counts::now(&self.opened.statistics);
        let start = Instant::now();
        let options = WriteOptions { sync: self.flags.sync, ..WriteOptions::default() };
        let written = self.opened.db.write_with(&options, &mut self.batch);
        let seconds = start.elapsed().as_secs_f64();
        written.map_err(BenchError::engine(format!("writes of round {}", round.number)))?;
        Ok(Writes {
            adds: round.adds.end - round.adds.start,
            deletes: round.deletes.len() as u64,
            seconds,
            stall_seconds: Counts::now(&self.opened.statistics).since(&before).stall_seconds(),
        })
    }
}

/// Counts at the start of a round's reads.
struct Before {
    counts: Counts,
    cpu: Duration,
    device_bytes: Option<u64>,
    group: Option<DeviceReads>,
}

impl Before {
    fn now(opened: &Opened) -> Before {
        Before {
            counts: Counts::now(&opened.statistics),
            cpu: system::cpu_time(),
            device_bytes: system::device_read_bytes(),
            group: opened.limit.as_ref().and_then(|limit| limit.device_reads()),
        }
    }

    /// What happened since.
    fn line(&self, opened: &Opened) -> RoundLine {
        let now = Before::now(opened);
        let counts = now.counts.since(&self.counts);
        let between = |before: Option<u64>, now: Option<u64>| Some(now?.saturating_sub(before?));
        RoundLine {
            cpu_seconds: (now.cpu - self.cpu).as_secs_f64(),
            device_bytes: between(self.device_bytes, now.device_bytes),
            device_reads: between(self.group.map(|g| g.count), now.group.map(|g| g.count)),
            blocks_read: counts.get(lodestore::Counter::CacheMisses),
            cache_hit_rate: counts.cache_hit_rate(),
            ..RoundLine::default()
        }
    }
}
