//! The process that is killed: several writers, flushes, compactions, families
//! that come and go, tables that are ingested.

use super::acknowledged::{self, AT_POINT, IN_FLIGHT, KEEPER, acknowledge};
use super::choices::Choices;
use super::ingester;
use super::points::{InFlight, Point, PointFs, Trigger, while_dropping_family};
use crate::load::{Families, Writer};
use crate::random::Random;
use lodestore::{Db, Error, Options, OsFs, Result, WriteOptions};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Writers of a history, of which a run may have fewer.
pub const WRITERS: u8 = 3;
/// Steps between the creation of a brief family and its drop.
const KEEPER_PUTS: u64 = 6;

/// What one run does.
#[derive(Clone, Debug)]
pub struct Run {
    /// Directory of the database.
    pub database: PathBuf,
    /// File of acknowledgements.
    pub acknowledged: PathBuf,
    /// What the writers' histories follow from.
    pub history_seed: u64,
    /// What options and pauses follow from; differs from run to run.
    pub run_seed: u64,
    /// Steps done before, of each writer, of the keeper and of the ingester.
    pub done: Vec<u64>,
    /// Where to die, and at which call.
    pub point: Option<(Point, u64)>,
}

/// Where the keeper's steps are among the steps done.
pub const KEEPER_PLACE: usize = WRITERS as usize;
/// Where the ingester's are.
pub const INGESTER_PLACE: usize = KEEPER_PLACE + 1;

impl Run {
    /// Where tables are written that the database in `database` is to ingest:
    /// outside of it, on the same file system.
    pub fn outside(database: &Path) -> PathBuf {
        database.with_file_name("outside")
    }
}

/// A writer of the history that `seed` gives.
pub fn writer(seed: u64, id: u8) -> Writer {
    Writer { seed, id, value_bytes_max: 600 }
}

/// What step `step` of the keeper, counted from 1, does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeeperStep {
    /// Creates brief family number `.0`.
    Create(u64),
    /// Puts entry `.1` into it.
    Put(u64, u64),
    /// Drops it.
    Drop(u64),
}

/// The keeper's step number `step`.
pub fn keeper_step(step: u64) -> KeeperStep {
    let family = (step - 1) / (KEEPER_PUTS + 2);
    match (step - 1) % (KEEPER_PUTS + 2) {
        0 => KeeperStep::Create(family),
        put if put <= KEEPER_PUTS => KeeperStep::Put(family, put),
        _ => KeeperStep::Drop(family),
    }
}

/// The name of a brief family. Two names take turns, so that each is soon
/// used again after it was dropped.
pub fn brief_family(number: u64) -> String {
    format!("brief-{}", number % 2)
}

/// The entry that a put of the keeper writes.
pub fn brief_entry(family: u64, put: u64) -> (Vec<u8>, Vec<u8>) {
    (format!("{put:02}").into_bytes(), crate::random::bytes(300, family << 8 | put))
}

/// Works until killed. Returns only an error.
pub fn work(run: &Run) -> Error {
    acknowledged::begin(&run.acknowledged);
    let report = |point: Point| acknowledge(AT_POINT, point as u64);
    let trigger = run.point.map(|(point, nth)| Trigger::new(point, nth, report));
    let in_flight = InFlight::new(|state| acknowledge(IN_FLIGHT, state));
    let choices = Choices::of(run.run_seed);
    let fs = PointFs::new(Arc::new(OsFs::new()), trigger, in_flight);
    let options = Options { fs, ..choices.options() };
    match start(run, options, &choices) {
        Ok(never) => match never {},
        Err(error) => error,
    }
}

enum Never {}

fn start(run: &Run, options: Options, choices: &Choices) -> Result<Never> {
    let mut random = Random::new(!run.run_seed);
    let db = Db::open(&run.database, options.clone())?;
    let families = Arc::new(Families::of(&db, &options)?);
    let (failed, failures) = std::sync::mpsc::channel();
    let spawn = |work: Box<dyn FnOnce() -> Error + Send>| {
        let failed = failed.clone();
        std::thread::spawn(move || failed.send(work()));
    };
    for id in 0..choices.writers {
        let (db, families) = (db.clone(), Arc::clone(&families));
        let writer = writer(run.history_seed, id);
        let (done, seed) = (run.done[usize::from(id)], random.word());
        let one_in = choices.synced_one_in;
        spawn(Box::new(move || write(&db, &families, &writer, done, seed, one_in)));
    }
    let (of_keeper, of_ingester) = (options.clone(), options);
    let (keeper, done, seed) = (db.clone(), run.done[KEEPER_PLACE], random.word());
    spawn(Box::new(move || keep(&keeper, &of_keeper, done, seed)));
    let (taker, outside) = (db.clone(), Run::outside(&run.database));
    let (done, seed) = (run.done[INGESTER_PLACE], run.history_seed);
    spawn(Box::new(move || ingester::work(&taker, &of_ingester, &outside, seed, done)));
    let seed = random.word();
    spawn(Box::new(move || tend(&db, seed)));
    Err(failures.recv().expect("the channel is held here too"))
}

/// Writes batch after batch; one in so many is synced.
fn write(
    db: &Db,
    families: &Families,
    writer: &Writer,
    done: u64,
    seed: u64,
    synced_one_in: usize,
) -> Error {
    let mut random = Random::new(seed);
    for index in done + 1.. {
        let sync = random.one_in(synced_one_in);
        let mut batch = writer.batch(index, families);
        if let Err(error) = db.write_with(&WriteOptions { sync, ..Default::default() }, &mut batch)
        {
            return error;
        }
        acknowledge(writer.id, index);
    }
    unreachable!("numbers do not run out")
}

/// Creates families, fills them and drops them.
fn keep(db: &Db, options: &Options, done: u64, seed: u64) -> Error {
    let mut random = Random::new(seed);
    for step in done + 1.. {
        if let Err(error) = keep_one(db, options, keeper_step(step), &mut random) {
            return error;
        }
        acknowledge(KEEPER, step);
    }
    unreachable!("numbers do not run out")
}

fn keep_one(db: &Db, options: &Options, step: KeeperStep, random: &mut Random) -> Result<()> {
    match step {
        KeeperStep::Create(number) => {
            db.create_family(&brief_family(number), options.family.clone()).map(drop)
        }
        KeeperStep::Put(number, put) => {
            let name = brief_family(number);
            let Some(family) = db.family(&name) else {
                panic!("family {name} was created and is not there");
            };
            let (key, value) = brief_entry(number, put);
            family.put(&key, &value)?;
            if random.one_in(10) { family.flush() } else { Ok(()) }
        }
        KeeperStep::Drop(number) => while_dropping_family(|| db.drop_family(&brief_family(number))),
    }
}

/// Reads, flushes, compacts and syncs now and then.
fn tend(db: &Db, seed: u64) -> Error {
    let mut random = Random::new(seed);
    loop {
        let result = match random.below(40) {
            0 => db.flush_all(),
            1 => db.compact_range(None, None),
            2 => db.sync_log(),
            _ => db.range(..).take(200).try_for_each(|entry| entry.map(drop)),
        };
        if let Err(error) = result {
            return error;
        }
        std::thread::sleep(std::time::Duration::from_millis(random.below(4) as u64));
    }
}
