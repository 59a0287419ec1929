//! Readers beside flushes and compactions that remove what they look at.

use crate::recorded::{DIRECTORY, options};
use lodestore::{Counter, Db, Fs, MemFs, ReadOptions};
use shuttle::sync::atomic::{AtomicU64, Ordering};
use shuttle::thread;
use std::path::Path;
use std::sync::Arc;
use testkit::explore::{Reached, explore};
use testkit::random::Random;

const KEYS: u8 = 3;
const ROUNDS: u64 = 4;

/// All keys get the number of the round, one after the other.
struct Writing {
    db: Db,
    /// The last round that was written whole.
    round: AtomicU64,
}

fn write(writing: &Writing, rounds: std::ops::RangeInclusive<u64>) {
    for round in rounds {
        for key in 0..KEYS {
            writing.db.put(&[key], &round.to_le_bytes()).expect("memory takes it");
        }
        writing.round.store(round, Ordering::SeqCst);
    }
}

fn compact(writing: &Writing, mut random: Random) {
    for _ in 0..3 {
        match random.below(3) {
            0 => writing.db.compact_range(None, None),
            _ => writing.db.flush(),
        }
        .expect("memory takes it");
    }
}

fn number(value: &[u8]) -> u64 {
    u64::from_le_bytes(value.try_into().expect("eight bytes"))
}

/// The round of each key, by a cursor.
fn walk(writing: &Writing, at: ReadOptions) -> Vec<u64> {
    let mut cursor = writing.db.cursor_with(at);
    let mut rounds = Vec::new();
    cursor.first();
    while cursor.valid() {
        assert_eq!(cursor.key(), [rounds.len() as u8]);
        rounds.push(number(cursor.value()));
        cursor.next();
    }
    cursor.status().expect("what a cursor looks at can be read");
    rounds
}

/// Keys are written in order, so that no later one is of a later round, and none
/// is a round behind.
fn check(rounds: &[u64], least: u64) {
    assert!(rounds.len() == usize::from(KEYS) || least == 0, "{rounds:?} after {least}");
    assert!(rounds.iter().all(|round| *round >= least), "{rounds:?} after {least}");
    assert!(rounds.is_sorted_by(|a, b| a >= b), "{rounds:?}");
    assert!(rounds.first().zip(rounds.last()).is_none_or(|(a, b)| a - b <= 1), "{rounds:?}");
}

fn read(writing: &Writing, mut random: Random) {
    let mut newest = vec![0; usize::from(KEYS)];
    // Held while all that it sees is written over, flushed and compacted.
    let held = ReadOptions::at(&writing.db.snapshot());
    let shown = walk(writing, held.clone());
    for _ in 0..3 {
        let least = writing.round.load(Ordering::SeqCst);
        match random.below(3) {
            0 => {
                let key = random.below(usize::from(KEYS));
                let found = writing.db.get(&[key as u8]).expect("memory can be read");
                let found = found.map_or(0, |value| number(&value));
                assert!(found >= newest[key].max(least), "{found} after {newest:?}, {least}");
                newest[key] = found;
            }
            1 => check(&walk(writing, ReadOptions::default()), least),
            _ => {
                let at = ReadOptions::at(&writing.db.snapshot());
                let first = walk(writing, at.clone());
                check(&first, least);
                assert_eq!(walk(writing, at), first, "a snapshot changes");
            }
        }
    }
    assert_eq!(walk(writing, held), shown, "a snapshot changes");
}

fn table_files(fs: &MemFs) -> usize {
    let names = fs.list(Path::new(DIRECTORY)).expect("memory can be listed");
    names.iter().filter(|name| name.ends_with(".table")).count()
}

/// Cursors, gets and snapshots go on seeing what they must while it is flushed,
/// compacted and removed, with few files open and rows remembered; and when all
/// of them are gone, only the files of live tables are left.
#[test]
fn readers_keep_what_they_look_at() {
    let compacted = Reached::default();
    let count = compacted.clone();
    explore("views, files and rows", move |seed| {
        let mut random = Random::new(seed);
        let fs = MemFs::new();
        let mut options = options(&fs, seed);
        options.open_files_max = Some(1);
        options.row_cache_bytes = random.below(2) * 4096;
        options.family.level0_compaction_files = 2;
        let db = Db::open(DIRECTORY, options).expect("memory opens");
        let writing = Arc::new(Writing { db: db.clone(), round: AtomicU64::new(0) });
        write(&writing, 1..=1);
        let beside = |work: fn(&Writing, Random), number: u64| {
            let (writing, random) = (Arc::clone(&writing), Random::new(seed << 8 | number));
            thread::spawn(move || work(&writing, random))
        };
        let threads = [
            beside(|writing, _| write(writing, 2..=ROUNDS), 1),
            beside(compact, 2),
            beside(read, 3),
        ];
        threads.into_iter().for_each(|thread| thread.join().expect("nobody panics"));
        check(&walk(&writing, ReadOptions::default()), ROUNDS);
        count.note(db.statistics().get(Counter::Compactions) > 0);
        db.wait_for_background().expect("nothing fails here");
        // Removal is in the background, too; one that never comes never ends.
        while table_files(&fs) > db.stats().files() {
            thread::yield_now();
        }
        assert_eq!(table_files(&fs), db.stats().files());
    });
    compacted.check("compactions beside readers");
}

/// A key that is written over and flushed is found at every moment, by each way
/// of reading, and never in an older state than before. That asks for the view
/// first and the visible number after it.
#[test]
fn a_key_that_is_written_over_is_always_found() {
    explore("views, one key", |seed| {
        let db = Db::open(DIRECTORY, options(&MemFs::new(), seed)).expect("memory opens");
        db.put(b"key", &1u64.to_le_bytes()).expect("memory takes it");
        let reader = {
            let db = db.clone();
            thread::spawn(move || {
                let mut newest = 1;
                for _ in 0..3 {
                    let found = read_key(&db, seed / 3 % 3);
                    assert!(found.is_some_and(|n| n >= newest), "{found:?} after {newest}");
                    newest = found.unwrap_or_default();
                }
            })
        };
        for round in 2..=3u64 {
            db.put(b"key", &round.to_le_bytes()).expect("memory takes it");
            db.flush().expect("memory takes it");
        }
        reader.join().expect("nobody panics");
    });
}

fn read_key(db: &Db, way: u64) -> Option<u64> {
    match way {
        0 => db.get(b"key").expect("memory can be read").map(|value| number(&value)),
        1 => {
            let found = db.multi_get(&[&b"key"[..], b"other"]).swap_remove(0);
            found.expect("memory can be read").map(|value| number(&value))
        }
        _ => {
            let mut cursor = db.cursor();
            cursor.first();
            cursor.valid().then(|| number(cursor.value()))
        }
    }
}
