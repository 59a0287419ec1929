//! Walks that remember what is deleted, while writers put and delete there.

use crate::machine::in_simulation;
use crate::one_stop::OneStop;
use lodestore::{
    Counter, Db, DbCursor, IngestOptions, MemFs, Options, ReadOptions, Scheduler, TableWriter,
};
use shuttle::thread;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use testkit::random::Random;

const KEYS: usize = 80;
const WALKS: usize = 6;
const SCHEDULES: usize = 1000;
/// More than making a cursor takes.
const CURSOR_STEPS: usize = 100;

fn keys() -> Vec<Vec<u8>> {
    (0..KEYS).map(|i| format!("{i:04}").into_bytes()).collect()
}

fn options() -> Options {
    let mut options = Options { create_if_missing: true, ..Options::default() };
    options.fs = Arc::new(MemFs::new());
    options.scheduler = Some(Scheduler::seeded(1, 1));
    options.family.tombstone_percent = 0;
    options
}

fn open() -> Db {
    open_with(&options())
}

fn open_with(options: &Options) -> Db {
    let db = Db::open("/gaps", options.clone()).expect("it is new");
    for key in keys() {
        db.put(&key, b"old").expect("the file system is sound");
    }
    for key in keys() {
        db.delete(&key).expect("the file system is sound");
    }
    db
}

fn write(db: &Db, seed: u64) {
    let (mut random, keys) = (Random::new(seed), keys());
    for _ in 0..4 {
        let key = random.pick(&keys).clone();
        db.put(&key, b"new").expect("the file system is sound");
        if random.one_in(4) {
            db.flush().expect("the file system is sound");
        }
        if random.one_in(2) {
            db.delete(&key).expect("the file system is sound");
        }
    }
}

fn walk(cursor: &mut DbCursor, reverse: bool) -> Vec<Vec<u8>> {
    let mut found = Vec::new();
    if reverse {
        cursor.last()
    } else {
        cursor.first()
    };
    while cursor.valid() {
        found.push(cursor.key().to_vec());
        if reverse {
            cursor.prev()
        } else {
            cursor.next()
        };
    }
    cursor.status().expect("the file system is sound");
    if reverse {
        found.reverse();
    }
    found
}

fn run() -> u64 {
    let db = open();
    let writers = [1, 2].map(|seed| {
        let db = db.clone();
        thread::spawn(move || write(&db, seed))
    });
    let walker = {
        let db = db.clone();
        thread::spawn(move || (0..WALKS).for_each(|_| drop(walk(&mut db.cursor(), false))))
    };
    for round in 0..WALKS {
        let at = ReadOptions { snapshot: Some(db.snapshot()), ..ReadOptions::default() };
        let walked = walk(&mut db.cursor_with(at.clone()), round % 2 == 1);
        let is_there = |key: &Vec<u8>| db.get_with(&at, key).expect("it is sound").is_some();
        let there: Vec<Vec<u8>> = keys().into_iter().filter(is_there).collect();
        assert_eq!(walked, there, "a walk and lookups of one snapshot differ");
    }
    writers.into_iter().for_each(|writer| writer.join().expect("a writer does not panic"));
    walker.join().expect("the walker does not panic");
    db.statistics().get(Counter::GapsPassed)
}

/// Whatever the schedule: a walk of a snapshot meets exactly the keys that
/// lookups in that snapshot find.
#[test]
fn a_walk_misses_nothing_that_was_put_into_a_gap() {
    let passed = Arc::new(std::sync::atomic::AtomicU64::new(0));
    let total = Arc::clone(&passed);
    let mut config = shuttle::Config::new();
    config.stack_size = 1 << 20;
    config.max_steps = shuttle::MaxSteps::FailAfter(20_000_000);
    let scheduler = shuttle::scheduler::RandomScheduler::new_from_seed(1, SCHEDULES);
    shuttle::Runner::new(scheduler, config).run(move || {
        total.fetch_add(run(), Ordering::Relaxed);
    });
    let passed = passed.load(Ordering::Relaxed);
    println!("{SCHEDULES} schedules, {passed} gaps passed");
    assert!(passed > 0, "no walk passed over a gap");
}

/// All keys deleted, and what comes instead, in one batch.
fn replace_all(db: &Db) {
    let mut batch = lodestore::WriteBatch::new();
    for key in keys() {
        batch.delete(&key);
    }
    batch.put(INSTEAD, b"new");
    db.write(batch).expect("the file system is sound");
}

const INSTEAD: &[u8] = b"~";
const REPLACEMENT: &str = "/replacement";

/// The same as a table, not yet ingested.
fn write_replacement(options: &Options) {
    let writer = TableWriter::create(REPLACEMENT, options, &options.family);
    let mut writer = writer.expect("the file system is sound");
    for key in keys() {
        writer.delete(&key).expect("keys ascend");
    }
    writer.put(INSTEAD, b"new").expect("keys ascend");
    writer.finish().expect("the file system is sound");
}

/// How everything is replaced while a cursor is made.
#[derive(Clone, Copy)]
enum Replacing {
    Memtables,
    Tables,
}

impl Replacing {
    fn prepare(self, db: &Db, options: &Options) {
        if let Replacing::Tables = self {
            db.flush().expect("the file system is sound");
            write_replacement(options);
        }
    }

    fn replace(self, db: &Db) {
        match self {
            Replacing::Memtables => {
                db.flush().expect("the file system is sound");
                replace_all(db);
            }
            Replacing::Tables => {
                db.ingest(&[REPLACEMENT], &IngestOptions::default()).expect("a sound table");
            }
        }
    }
}

/// Makes a cursor, beside what replaces everything at once, and a walk that
/// remembers what that deleted. `armed` is set when the making begins.
fn run_replaced(armed: &AtomicBool, how: Replacing) {
    let options = options();
    let db = open_with(&options);
    let old = keys().split_off(KEYS / 2);
    for key in &old {
        db.put(key, b"old").expect("the file system is sound");
    }
    how.prepare(&db, &options);
    let writer = {
        let db = db.clone();
        thread::spawn(move || {
            how.replace(&db);
            drop(walk(&mut db.cursor(), false));
        })
    };
    armed.store(true, Ordering::Relaxed);
    let mut cursor = db.cursor();
    writer.join().expect("the writer does not panic");
    let walked = walk(&mut cursor, false);
    let is_new = walked.contains(&INSTEAD.to_vec());
    let expected = if is_new { vec![INSTEAD.to_vec()] } else { old };
    assert_eq!(walked, expected, "half a batch");
}

/// A walk without a snapshot begins on memtables that others replace while it
/// takes its number. It sees whole batches all the same: not the keys gone, as
/// a gap says that another walk remembered, and what came instead missing.
#[test]
fn a_walk_sees_whole_batches_while_memtables_are_replaced() {
    see_whole_batches(Replacing::Memtables);
}

/// The same with a table that is ingested, which replaces no memtable.
#[test]
fn a_walk_sees_whole_tables_while_they_are_ingested() {
    see_whole_batches(Replacing::Tables);
}

fn see_whole_batches(how: Replacing) {
    for steps in 0..CURSOR_STEPS {
        let armed = Arc::new(AtomicBool::new(false));
        let scheduler = OneStop::after(steps, &armed);
        in_simulation(scheduler, move || run_replaced(&armed, how));
    }
}
