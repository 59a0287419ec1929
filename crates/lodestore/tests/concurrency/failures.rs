//! Commits whose log fails, and commits before a crash.

use crate::recorded::{Acknowledged, DIRECTORY, Recorded, key, options};
use lodestore::fs::{Fault, FaultFs, Operation};
use lodestore::{Counter, Db, MemFs, Options, WriteOptions};
use shuttle::thread;
use std::io::ErrorKind;
use std::sync::{Arc, Mutex};
use testkit::explore::{Reached, explore};
use testkit::random::Random;

const WRITERS: usize = 3;
const WRITES: u64 = 2;

type Attempts = Arc<Mutex<Vec<(usize, u64, bool)>>>;

fn writers(
    db: &Db,
    recorded: &Arc<Recorded>,
    seed: u64,
    attempts: &Attempts,
) -> Vec<thread::JoinHandle<()>> {
    let write = |writer: usize| {
        let (db, recorded, attempts) = (db.clone(), Arc::clone(recorded), Arc::clone(attempts));
        let mut random = Random::new(seed << 8 | writer as u64);
        move || {
            for index in 1..=WRITES {
                let options = WriteOptions { sync: random.one_in(2), ..WriteOptions::default() };
                let outcome = recorded.write(&db, &options, (writer, index));
                attempts.lock().expect("nobody panics").push((writer, index, outcome.is_ok()));
                if random.one_in(8) {
                    let _ = db.flush(); // may fail as the writes do
                }
            }
        }
    };
    (0..WRITERS).map(|writer| thread::spawn(write(writer))).collect()
}

/// If the log takes a group badly, everybody in it is told and nobody's write is
/// seen; those acknowledged before and after stay, also for the next process.
#[test]
fn a_group_fails_as_a_whole() {
    let together = Reached::default();
    let count = together.clone();
    explore("commit queue, failing log", move |seed| {
        let mut random = Random::new(seed);
        let disk = MemFs::new();
        let fs = FaultFs::new(Arc::new(disk.clone()));
        let options = Options { fs: Arc::new(fs.clone()), ..options(&disk, seed) };
        let db = Db::open(DIRECTORY, options).expect("memory opens");
        let operation = *random.pick(&[Operation::Append, Operation::Append, Operation::Sync]);
        let kind = *random.pick(&[ErrorKind::StorageFull, ErrorKind::Other]);
        let nth = random.between(1, 4) as u64;
        fs.inject(Fault::new(operation, nth, kind).on(".wal"));
        let (recorded, attempts) = (Arc::default(), Attempts::default());
        let threads = writers(&db, &recorded, seed, &attempts);
        threads.into_iter().for_each(|thread| thread.join().expect("nobody panics"));
        let attempts = std::mem::take(&mut *attempts.lock().expect("nobody panics"));
        let failed = attempts.iter().filter(|(.., is_written)| !is_written).count();
        count.note(failed > 1 && db.resume().is_ok());
        recorded.sorted();
        for &(writer, index, is_written) in &attempts {
            let found = db.get(&key(writer, index)).expect("memory can be read").is_some();
            assert_eq!(found, is_written, "write {index} of {writer}");
        }
        drop(db);
        let db = reopen(&disk.kill(), seed);
        for &(writer, index, is_written) in &attempts {
            let found = db.get(&key(writer, index)).expect("memory can be read").is_some();
            assert!(found || !is_written, "write {index} of {writer} is lost");
        }
    });
    together.check("several writers that one failure concerns");
}

fn reopen(disk: &MemFs, seed: u64) -> Db {
    Db::open(DIRECTORY, options(disk, seed)).expect("what is left opens")
}

/// Whatever segments are begun, sealed, synced and written over beside the
/// writers: after a loss of power what is left is all up to some write, with
/// every synced one.
#[test]
fn what_was_synced_survives_with_all_before_it() {
    let (recycled, lost) = (Reached::default(), Reached::default());
    let counts = (recycled.clone(), lost.clone());
    explore("log, power lost", move |seed| {
        let mut random = Random::new(seed);
        let disk = MemFs::new();
        let mut options = options(&disk, seed);
        options.family.memtable_bytes = 1024; // full with the first entry
        let db = Db::open(DIRECTORY, options).expect("memory opens");
        disk.stop_after(disk.operations() + random.between(1, 90) as u64);
        let (recorded, attempts) = (Arc::default(), Attempts::default());
        let threads = writers(&db, &recorded, seed, &attempts);
        threads.into_iter().for_each(|thread| thread.join().expect("nobody panics"));
        counts.0.note(db.statistics().get(Counter::LogSegmentsRecycled) > 0);
        let left = match random.one_in(3) {
            true => disk.kill(),
            false => disk.crash(random.word()),
        };
        drop(db);
        let db = reopen(&left, !seed);
        let sorted = recorded.sorted();
        let is_left = |done: &&Acknowledged| {
            db.get(&key(done.writer, done.index)).expect("memory can be read").is_some()
        };
        let kept = sorted.iter().take_while(is_left).count();
        assert!(!sorted[kept..].iter().any(|done| is_left(&done)), "{kept} of {sorted:?}");
        assert!(!sorted[kept..].iter().any(|done| done.synced), "{kept} of {sorted:?}");
        counts.1.note(kept < sorted.len());
    });
    recycled.check("segments over the files of others");
    lost.check("writes that were lost, as they may be");
}
