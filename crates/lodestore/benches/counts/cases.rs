//! The steps that are counted. Each case prepares, then hands what is counted
//! to its argument, with how many operations that is.

use lodestore::internals::{Cached, Found, Log, Memory, Sorted};
use lodestore::{Db, MemFs, Options, WriteBatch};
use std::hint::black_box;
use std::sync::Arc;

/// Counts `u64` operations done by the closure.
type Counter<'a> = &'a mut dyn FnMut(u64, &mut dyn FnMut());
type Case = fn(Counter<'_>);

pub const CASES: [(&str, Case); 13] = [
    ("batch_put", batch_put),
    ("log_encode", log_encode),
    ("memtable_insert", memtable_insert),
    ("memtable_get", memtable_get),
    ("filter_absent", filter_absent),
    ("index_search", index_search),
    ("cache_hit", cache_hit),
    ("block_search", block_search),
    ("merge_step_2", |counter| merge_step(2, counter)),
    ("merge_step_8", |counter| merge_step(8, counter)),
    ("db_put", db_put),
    ("db_get", db_get),
    ("db_next", db_next),
];

const ENTRIES: usize = 10_000;
const VALUE: [u8; 100] = [b'v'; 100];

/// Sixteen decimal digits, as in db_bench.
fn key(number: usize) -> Vec<u8> {
    format!("{number:016}").into_bytes()
}

/// All keys, in an order without pattern: 7919 and the count have no divisor
/// in common.
fn shuffled() -> Vec<Vec<u8>> {
    (0..ENTRIES).map(|i| key(i * 7919 % ENTRIES)).collect()
}

fn ordered(first: usize, step: usize) -> Vec<Vec<u8>> {
    (first..ENTRIES).step_by(step).map(key).collect()
}

fn entries(keys: &[Vec<u8>]) -> impl Iterator<Item = (&[u8], &[u8])> {
    keys.iter().map(|key| (&key[..], &VALUE[..]))
}

fn batch_put(counter: Counter<'_>) {
    let keys = shuffled();
    let mut batch = WriteBatch::new();
    counter(ENTRIES as u64, &mut || keys.iter().for_each(|key| batch.put(key, &VALUE)));
}

fn log_encode(counter: Counter<'_>) {
    let mut log = Log::default();
    let mut batch = Log::batch::<131>();
    counter(ENTRIES as u64, &mut || (0..ENTRIES).for_each(|_| log.append(black_box(&mut batch))));
}

fn memtable_insert(counter: Counter<'_>) {
    let keys = shuffled();
    let mut memory = Memory::default();
    counter(ENTRIES as u64, &mut || keys.iter().for_each(|key| memory.insert(key, &VALUE)));
}

fn memtable_get(counter: Counter<'_>) {
    let keys = shuffled();
    let mut memory = Memory::default();
    keys.iter().for_each(|key| memory.insert(key, &VALUE));
    let mut found = 0;
    counter(ENTRIES as u64, &mut || {
        found = keys.iter().filter(|key| memory.get(key).is_some()).count();
    });
    assert_eq!(found, ENTRIES);
}

fn filter_absent(counter: Counter<'_>) {
    let table = Sorted::build(entries(&ordered(0, 2)));
    let absent = ordered(1, 2);
    let mut passed = 0;
    counter(absent.len() as u64, &mut || {
        passed = absent.iter().filter(|key| table.may_have(key)).count();
    });
    assert!(passed * 30 < absent.len(), "the filter denies most");
}

fn index_search(counter: Counter<'_>) {
    let table = Sorted::build_unfiltered(entries(&ordered(0, 1)));
    let keys = shuffled();
    let mut found = 0;
    counter(ENTRIES as u64, &mut || {
        found = keys.iter().filter(|key| table.may_have(key)).count();
    });
    assert_eq!(found, ENTRIES);
}

fn cache_hit(counter: Counter<'_>) {
    let cached = Cached::default();
    counter(ENTRIES as u64, &mut || assert!((0..ENTRIES).all(|_| black_box(cached.hit()))));
}

fn block_search(counter: Counter<'_>) {
    let table = Sorted::build(entries(&ordered(0, 1)));
    let keys = shuffled();
    let blocks: Vec<Found> =
        keys.iter().map(|key| table.block_of(key).expect("the key is there")).collect();
    let mut found = 0;
    counter(ENTRIES as u64, &mut || {
        let pairs = keys.iter().zip(&blocks);
        found = pairs.filter(|(key, block)| table.search(block, key).is_some()).count();
    });
    assert_eq!(found, ENTRIES);
}

/// Keys that alternate between `ways` tables.
fn merge_step(ways: usize, counter: Counter<'_>) {
    let tables: Vec<Sorted> =
        (0..ways).map(|first| Sorted::build(entries(&ordered(first, ways)))).collect();
    assert_eq!(Sorted::walk_merged(&tables), ENTRIES, "and all blocks are cached");
    counter(ENTRIES as u64, &mut || assert_eq!(Sorted::walk_merged(&tables), ENTRIES));
}

fn empty_db() -> Db {
    let fs = Arc::new(MemFs::new());
    let options = Options { create_if_missing: true, fs, ..Options::default() };
    Db::open("/counts", options).expect("it is new")
}

/// A database with all keys in tables, their blocks cached.
fn full_db() -> Db {
    let db = empty_db();
    shuffled().iter().for_each(|key| db.put(key, &VALUE).expect("the files are in memory"));
    db.flush().expect("the files are in memory");
    db.wait_for_background().expect("nothing fails");
    assert_eq!(db.range(..).count(), ENTRIES);
    db
}

fn db_put(counter: Counter<'_>) {
    let (db, keys) = (empty_db(), shuffled());
    counter(ENTRIES as u64, &mut || {
        keys.iter().for_each(|key| db.put(key, &VALUE).expect("the files are in memory"));
    });
}

fn db_get(counter: Counter<'_>) {
    let (db, keys) = (full_db(), shuffled());
    let mut found = 0;
    counter(ENTRIES as u64, &mut || {
        found = keys.iter().filter(|key| db.get(key).expect("nothing fails").is_some()).count();
    });
    assert_eq!(found, ENTRIES);
}

fn db_next(counter: Counter<'_>) {
    let db = full_db();
    let mut walked = 0;
    counter(ENTRIES as u64, &mut || {
        let mut cursor = db.cursor();
        cursor.first();
        while cursor.valid() {
            walked += black_box(cursor.value()).len() / VALUE.len();
            cursor.next();
        }
    });
    assert_eq!(walked, ENTRIES);
}
