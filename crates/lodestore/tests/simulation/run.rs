//! One simulated run: writers, a reader, a crash, a recovery, a judgement.

use crate::tables;
use lodestore::{Db, Error, MemFs, Options, ReadOptions, Result, Scheduler, WriteOptions};
use shuttle::scheduler::RandomScheduler;
use shuttle::thread;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use testkit::load::{Contents, Expected, Families, Writer, contents, with_families};
use testkit::random::Random;
use testkit::trace_fs::TraceFs;

const WRITERS: u8 = 3;
const BATCHES: u64 = 14;
const DIRECTORY: &str = "/simulation";

/// How a run ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Crash {
    /// The files stay as they were written.
    Kill,
    /// Unsynced bytes and names may be lost.
    PowerLoss,
}

/// What came of runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Hash of all calls to the file system.
    pub trace: u64,
    /// Runs that were stopped before their end.
    pub crashed: u64,
    /// Batches acknowledged.
    pub acknowledged: u64,
    /// Batches found after recovery.
    pub kept: u64,
    /// Consistent states that the reader saw.
    pub states_read: u64,
    /// Calls that ingested tables and were acknowledged.
    pub ingested: u64,
}

impl Outcome {
    /// Adds another run's numbers.
    pub fn add(&mut self, other: &Outcome) {
        self.trace ^= other.trace;
        self.crashed += other.crashed;
        self.acknowledged += other.acknowledged;
        self.kept += other.kept;
        self.states_read += other.states_read;
        self.ingested += other.ingested;
    }
}

/// One acknowledged batch.
#[derive(Clone, Copy, Debug)]
struct Acknowledged {
    writer: u8,
    index: u64,
    sequence: u64,
    synced: bool,
}

/// Plays the run of `seed`.
///
/// # Panics
/// If what is left after the crash is not what it must be.
pub fn simulate(seed: u64, crash: Crash) -> Outcome {
    let outcome = Arc::new(Mutex::new(Outcome::default()));
    let result = Arc::clone(&outcome);
    let mut config = shuttle::Config::new();
    config.stack_size = 1 << 20;
    config.failure_persistence = shuttle::FailurePersistence::None;
    config.max_steps = shuttle::MaxSteps::FailAfter(20_000_000);
    let runner = shuttle::Runner::new(RandomScheduler::new_from_seed(seed, 1), config);
    runner.run(move || {
        let outcome = run(seed, crash);
        *result.lock().expect("one run at a time") = outcome;
    });
    let outcome = outcome.lock().expect("the run is over").clone();
    outcome
}

fn writer(seed: u64, id: u8) -> Writer {
    Writer { seed, id, value_bytes_max: 500 }
}

fn options(random: &mut Random, seed: u64) -> Options {
    let mut options = Options { create_if_missing: true, ..Options::default() };
    options.scheduler = Some(Scheduler::seeded(random.between(1, 3), seed));
    options.background_bytes_per_second = *random.pick(&[0, 0, 1 << 20]);
    options.cache_bytes = random.between(0, 64 << 10);
    options.log_bytes_max = 8 << 10;
    options.family.memtable_bytes = random.between(2, 6) << 10;
    options.family.table_bytes = 2 << 10;
    options.family.block_bytes = 256;
    options.family.level0_compaction_files = 2;
    options.family.level0_slowdown_files = 6;
    options.family.level0_stop_files = 10;
    options.family.level1_bytes = 4 << 10;
    options.family.level_multiplier = 2;
    with_families(options)
}

fn run(seed: u64, crash: Crash) -> Outcome {
    let mut random = Random::new(seed);
    let disk = MemFs::new();
    disk.stop_after(random.between(1, 400) as u64);
    let fs = TraceFs::new(Arc::new(disk.clone()));
    let mut options = options(&mut random, seed);
    options.fs = Arc::new(fs.clone());
    let acknowledged = Arc::new(Mutex::new(Vec::new()));
    let ingested = tables::Log::default();
    // The run ends in an error when the file system stops; that is its point.
    let states_read = work(seed, options, &acknowledged, &ingested).unwrap_or(0);
    let crashed = u64::from(disk.is_stopped());
    let left = match crash {
        Crash::Kill => disk.kill(),
        Crash::PowerLoss => disk.crash(random.word()),
    };
    let acknowledged = std::mem::take(&mut *acknowledged.lock().expect("no writer is left"));
    let ingested = std::mem::take(&mut *ingested.lock().expect("no thread is left"));
    let kept = recover(seed, crash, &left, &acknowledged, &ingested);
    let (acknowledged, ingested) = (acknowledged.len() as u64, ingested.len() as u64);
    Outcome { trace: fs.trace(), crashed, acknowledged, kept, states_read, ingested }
}

type Log = Arc<Mutex<Vec<Acknowledged>>>;

fn work(seed: u64, options: Options, acknowledged: &Log, ingested: &tables::Log) -> Result<u64> {
    let db = Db::open(DIRECTORY, options.clone())?;
    let families = Arc::new(Families::of(&db, &options)?);
    let pair = tables::Pair::of(&db, &options)?;
    let ingester = {
        let (db, pair, log) = (db.clone(), pair.clone(), Arc::clone(ingested));
        thread::spawn(move || tables::ingest(&db, &pair, &options, &log))
    };
    let writers: Vec<_> = (0..WRITERS)
        .map(|id| {
            let (db, families) = (db.clone(), Arc::clone(&families));
            let log = Arc::clone(acknowledged);
            thread::spawn(move || write(&db, &families, seed, id, &log))
        })
        .collect();
    let reader = {
        let db = db.clone();
        thread::spawn(move || read(&db, &pair))
    };
    for writer in writers {
        let _ = writer.join().expect("a writer does not panic"); // its error is the crash
    }
    let _ = ingester.join().expect("ingesting does not panic");
    reader.join().expect("the reader does not panic")
}

fn write(db: &Db, families: &Families, seed: u64, id: u8, log: &Log) -> Result<()> {
    let mut random = Random::new(seed ^ u64::from(id));
    let writer = writer(seed, id);
    for index in 1..=BATCHES {
        let synced = random.one_in(5);
        let patient = WriteOptions { sync: synced, ..WriteOptions::default() };
        let mut batch = writer.batch(index, families);
        // What is refused must leave nothing: the same batch is written again.
        let sequence = match db.write_with(&impatient(&mut random, patient), &mut batch) {
            Err(Error::Stalled { .. }) => db.write_with(&patient, &mut batch)?,
            result => result?,
        };
        let record = Acknowledged { writer: id, index, sequence, synced };
        log.lock().expect("no writer panics").push(record);
        if random.one_in(10) {
            db.flush_all()?;
        }
    }
    Ok(())
}

/// Now and then a write that may not wait, or not for long.
fn impatient(random: &mut Random, patient: WriteOptions) -> WriteOptions {
    let deadline = Duration::from_millis(random.between(0, 3) as u64);
    match random.below(4) {
        0 => WriteOptions { no_slowdown: true, ..patient },
        1 => WriteOptions { deadline: Some(deadline), ..patient },
        _ => patient,
    }
}

/// At every snapshot the shared counter is the sum of the writers' markers:
/// batches are seen whole, in all families, and in one order.
fn read(db: &Db, pair: &tables::Pair) -> Result<u64> {
    for _ in 0..8 {
        let at = ReadOptions { snapshot: Some(db.snapshot()), ..ReadOptions::default() };
        let number = |bytes: Option<lodestore::Value>| {
            bytes.map_or(0, |b| u64::from_le_bytes(b[..].try_into().expect("eight bytes")))
        };
        let count = db.family(testkit::load::COUNT).expect("it was created");
        let counted = number(count.get_with(&at, testkit::load::COUNT_KEY)?);
        let mut sum = 0;
        for id in 0..WRITERS {
            sum += number(db.get_with(&at, writer(0, id).marker().as_bytes())?);
        }
        assert_eq!(counted, sum, "a snapshot shows half a batch");
        let call = pair.call_at(&at)?;
        // The same after a while, when compactions may have moved what it sees.
        for _ in 0..4 {
            (0..25).for_each(|_| thread::yield_now());
            assert_eq!(pair.call_at(&at)?, call, "what a snapshot sees has changed");
        }
        thread::yield_now();
    }
    Ok(8)
}

/// Opens what is left and judges it; how many batches there are.
fn recover(
    seed: u64,
    crash: Crash,
    disk: &MemFs,
    acknowledged: &[Acknowledged],
    ingested: &[tables::Ingested],
) -> u64 {
    let mut options = options(&mut Random::new(!seed), !seed);
    options.fs = Arc::new(disk.clone());
    let db = Db::open(DIRECTORY, options).expect("what a crash leaves opens");
    let found = contents(&db).expect("what a crash leaves can be read");
    db.verify().expect("what a crash leaves is sound");
    let kept = judge(seed, &found);
    let is_kept = |a: &&Acknowledged| a.index <= kept[usize::from(a.writer)];
    for lost in acknowledged.iter().filter(|a| !is_kept(a)) {
        assert!(!lost.synced, "synced and lost: {lost:?}");
        assert!(crash == Crash::PowerLoss, "acknowledged and lost by a kill: {lost:?}");
    }
    let last_kept = acknowledged.iter().filter(is_kept).map(|a| a.sequence).max();
    let first_lost = acknowledged.iter().filter(|a| !is_kept(a)).map(|a| a.sequence).min();
    if let (Some(kept), Some(lost)) = (last_kept, first_lost) {
        assert!(kept < lost, "batch {lost} is lost although {kept}, after it, is there");
    }
    tables::judge(&found, ingested);
    let last_ingested = ingested.last().map(|ingested| ingested.sequence);
    if let (Some(ingested), Some(lost)) = (last_ingested, first_lost) {
        assert!(ingested < lost, "batch {lost} is lost, tables ingested at {ingested} are not");
    }
    kept.iter().sum()
}

/// Batches of each writer that are there; everything must be what they give.
fn judge(seed: u64, found: &Contents) -> Vec<u64> {
    let mut expected = Expected::default();
    let mut kept = Vec::new();
    for id in 0..WRITERS {
        let writer = writer(seed, id);
        let batches = writer.batches_in(found);
        assert!(batches <= BATCHES);
        (1..=batches).for_each(|index| expected.apply(&writer, index));
        kept.push(batches);
    }
    assert_eq!(expected.difference(found), None, "with {kept:?} batches of the writers");
    kept
}
