//! A thread that does what a keeper of the database does now and then, and what
//! the world does to it.

use crate::crew::Crew;
use crate::plan::Trouble;
use crate::promise::{Event, family_name};
use lodestore::fs::{Fault, Operation};
use lodestore::{Db, Result};
use shuttle::thread;
use std::io::ErrorKind;
use std::time::Duration;
use testkit::load::{APPEND, COUNT};
use testkit::random::Random;

/// Operations that may fail in a life with errors.
const FALLIBLE: [Operation; 12] = [
    Operation::Create,
    Operation::Overwrite,
    Operation::Open,
    Operation::Length,
    Operation::Remove,
    Operation::Rename,
    Operation::SyncDirectory,
    Operation::Read,
    Operation::Append,
    Operation::Sync,
    Operation::Truncate,
    Operation::Close,
];

/// Does `times` things.
pub fn keep(crew: &Crew, db: &Db, times: usize, mut random: Random) {
    for _ in 0..times {
        if let Err(error) = keep_once(crew, db, &mut random)
            && !crew.mend(db, &error)
        {
            return;
        }
        (0..random.below(60)).for_each(|_| thread::yield_now());
    }
}

fn keep_once(crew: &Crew, db: &Db, random: &mut Random) -> Result<()> {
    let name = *random.pick(&["default", APPEND, COUNT]);
    let family = db.family(name).expect("it was created");
    match random.below(14) {
        0 => lasting(crew, db, Db::flush_all),
        1 | 2 if crew.trouble != Trouble::NoLog => lasting(crew, db, Db::sync_log),
        3 => family.flush(),
        4 => family.compact_range(None, None),
        5 => family.rewrite_range(None, None),
        6 | 7 => family_comes_and_goes(crew, db, random),
        8 => {
            let bytes = format!("{}KiB", random.between(2, 8));
            family.set_family_options(&[("memtable_bytes", &bytes)])
        }
        9 => db.verify().map(drop),
        10 => copy(crew, db, random),
        11 => {
            let passed = Duration::from_secs(random.below(100_000) as u64);
            crew.scheduler.jump(passed, random.word() >> 32);
            crew.count(|report| report.clock_jumps += 1);
            Ok(())
        }
        _ => {
            if crew.trouble == Trouble::Errors {
                fail(crew, random);
            }
            Ok(())
        }
    }
}

/// Does what makes all acknowledged writes durable.
fn lasting(crew: &Crew, db: &Db, work: impl FnOnce(&Db) -> Result<()>) -> Result<()> {
    let sequence = db.latest_sequence();
    work(db)?;
    crew.acknowledge(Event::Lasting { sequence });
    Ok(())
}

fn family_comes_and_goes(crew: &Crew, db: &Db, random: &mut Random) -> Result<()> {
    let number = crew.new_family();
    let name = family_name(number);
    let family = db.create_family(&name, crew.options.family.clone())?;
    crew.acknowledge(Event::Created { family: number });
    for key in 0..random.below(20) {
        family.put(format!("{key:02}").as_bytes(), &[7; 300])?;
    }
    if random.one_in(2) {
        crew.acknowledge(Event::Dropping { family: number });
        db.drop_family(&name)?;
        crew.acknowledge(Event::Dropped { family: number });
    }
    Ok(())
}

/// Makes a copy, which must hold what had been acknowledged before.
fn copy(crew: &Crew, db: &Db, random: &mut Random) -> Result<()> {
    let path = format!("/copy-{}", random.word());
    let before = crew.events.lock().expect("noting does not panic").len();
    db.checkpoint(&path)?;
    let mut options = crew.options.clone();
    options.scheduler = Some(std::sync::Arc::clone(&crew.scheduler));
    let found = {
        let copy = Db::open(&path, options.clone())?;
        testkit::load::contents(&copy)?
    };
    crew.check_copy(&found, before);
    crew.count(|report| report.operations += found.values().map(|e| e.len() as u64).sum::<u64>());
    Db::destroy(&path, &options)
}

fn fail(crew: &Crew, random: &mut Random) {
    let (operation, nth) = (*random.pick(&FALLIBLE), random.between(1, 12) as u64);
    let fault = match random.below(4) {
        0 => Fault::os(operation, nth, 5),
        1 => {
            let full = Fault::new(Operation::Append, nth, ErrorKind::StorageFull);
            full.times(random.between(1, 40) as u64).after_bytes(random.below(600))
        }
        2 => Fault::new(operation, nth, ErrorKind::Other).after_bytes(random.below(600)),
        _ => Fault::new(operation, nth, ErrorKind::QuotaExceeded),
    };
    crew.faults.inject(fault);
    if random.one_in(4) {
        crew.faults.heal();
    }
}
