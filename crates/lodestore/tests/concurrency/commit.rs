//! Writers in the queue: what they are told, and what readers see.

use crate::recorded::{DIRECTORY, Recorded, indices, key, last_key, options, state_at};
use lodestore::{Counter, Db, Error, MemFs, ReadOptions, WriteBatch, WriteOptions};
use shuttle::thread;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use testkit::explore::{Reached, explore};
use testkit::random::Random;

const WRITERS: usize = 3;
const WRITES: u64 = 2;

/// What a reader saw, and when it had begun.
struct Seen {
    begin: u64,
    /// `None`: the newest state, whichever that was.
    sequence: Option<u64>,
    indices: Vec<u64>,
}

/// Writes are acknowledged in an order that is also that of their numbers; a
/// writer reads what it wrote at once; readers see the writes up to some number,
/// none missing and none of a later one, with all that had been acknowledged
/// before they began.
#[test]
fn acknowledged_writes_are_seen_in_their_order() {
    let groups = Reached::default();
    let count = groups.clone();
    explore("commit queue", move |seed| {
        let db = Db::open(DIRECTORY, options(&MemFs::new(), seed)).expect("memory opens");
        let recorded = Arc::new(Recorded::default());
        let seen = Arc::new(Mutex::new(Vec::new()));
        let before = db.statistics().get(Counter::CommitGroups);
        let mut threads: Vec<_> = (0..WRITERS)
            .map(|writer| {
                let (db, recorded) = (db.clone(), Arc::clone(&recorded));
                thread::spawn(move || write(&db, &recorded, writer, seed))
            })
            .collect();
        let reader = (db.clone(), Arc::clone(&recorded), Arc::clone(&seen));
        threads.push(thread::spawn(move || read(&reader.0, &reader.1, &reader.2)));
        threads.into_iter().for_each(|thread| thread.join().expect("nobody panics"));
        let sorted = recorded.sorted();
        assert_eq!(sorted.len() as u64, WRITERS as u64 * WRITES);
        let last = sorted.last().expect("there are some").sequence;
        let possible: Vec<_> = (0..=last).map(|n| state_at(&sorted, WRITERS, n)).collect();
        for seen in seen.lock().expect("nobody panics").iter() {
            let least = recorded.acknowledged_at(seen.begin);
            match seen.sequence {
                Some(sequence) => {
                    assert_eq!(seen.indices, possible[sequence as usize], "at {sequence}");
                    assert!(sequence >= least, "{sequence}, but {least} was acknowledged");
                }
                None => assert!(possible[least as usize..].contains(&seen.indices)),
            }
        }
        let groups = db.statistics().get(Counter::CommitGroups) - before;
        count.note(groups < WRITERS as u64 * WRITES);
    });
    groups.check("writes that were committed together");
}

fn write(db: &Db, recorded: &Recorded, writer: usize, seed: u64) {
    let mut random = Random::new(seed ^ writer as u64);
    for index in 1..=WRITES {
        let options = WriteOptions { sync: random.one_in(3), ..WriteOptions::default() };
        recorded.write(db, &options, (writer, index)).expect("memory takes it");
        let own = indices(vec![db.get(&last_key(writer))]);
        assert_eq!(own, [index], "a writer does not find what it wrote");
    }
}

fn read(db: &Db, recorded: &Recorded, seen: &Mutex<Vec<Seen>>) {
    let keys: Vec<_> = (0..WRITERS).map(last_key).collect();
    for at_snapshot in [true, false, true] {
        let begin = recorded.now();
        let snapshot = at_snapshot.then(|| db.snapshot());
        let sequence = snapshot.as_ref().map(|snapshot| snapshot.sequence());
        let at = ReadOptions { snapshot, ..ReadOptions::default() };
        let indices = indices(db.multi_get_with(&at, &keys));
        seen.lock().expect("nobody panics").push(Seen { begin, sequence, indices });
    }
}

/// A writer that may not wait either has written or gets its batch back, of
/// which nothing was written; those who wait beside it get their turn.
#[test]
fn a_write_that_gives_up_leaves_nothing() {
    let (refused, written) = (Reached::default(), Reached::default());
    let counts = (refused.clone(), written.clone());
    explore("commit queue, deadlines", move |seed| {
        let db = Db::open(DIRECTORY, options(&MemFs::new(), seed)).expect("memory opens");
        let threads: Vec<_> = (0..WRITERS)
            .map(|writer| {
                let (db, counts) = (db.clone(), counts.clone());
                let random = Random::new(seed << 8 | writer as u64);
                thread::spawn(move || write_impatiently(&db, writer, random, &counts))
            })
            .collect();
        for thread in threads {
            for (key, is_written) in thread.join().expect("nobody panics") {
                let found = db.get(&key).expect("memory can be read").is_some();
                assert_eq!(found, is_written, "{}", key.escape_ascii());
            }
        }
        db.put(b"after", b"").expect("writing goes on");
    });
    refused.check("a write that gave up");
    written.check("a write in time");
}

/// The keys of its writes, and whether they were written.
fn write_impatiently(
    db: &Db,
    writer: usize,
    mut random: Random,
    (refused, written): &(Reached, Reached),
) -> Vec<(Vec<u8>, bool)> {
    let mut outcomes = Vec::new();
    for index in 1..=WRITES {
        let time = Duration::from_micros(random.below(40) as u64);
        let deadline = (writer > 0).then_some(time);
        let options = WriteOptions { sync: random.one_in(3), deadline, ..WriteOptions::default() };
        let mut batch = WriteBatch::new();
        batch.put(&key(writer, index), b"");
        let before = batch.bytes();
        let outcome = db.write_with(&options, &mut batch);
        assert_eq!(batch.bytes(), before, "the batch comes back");
        match outcome {
            Ok(_) => written.note(writer > 0),
            Err(Error::Stalled { .. }) => refused.note(true),
            Err(error) => panic!("{error}"),
        }
        outcomes.push((key(writer, index), outcome.is_ok()));
    }
    outcomes
}
