//! Single steps of the engine's paths: log encoding, memtable, block building
//! and search, cache hit, merge step; and what walks over tombstones take.
//!
//! `cargo bench -p lodestore --features internals`

use divan::counter::ItemsCount;
use divan::{Bencher, black_box};
use lodestore::internals::{Cached, Log, Memory, Sorted};
use lodestore::{Db, MemFs, Options, WriteBatch};
use std::sync::Arc;

const ENTRIES: usize = 100_000;
const VALUE: [u8; 100] = [b'v'; 100];

fn main() {
    divan::main();
}

/// Sixteen decimal digits, as in db_bench.
fn key(number: usize) -> Vec<u8> {
    format!("{number:016}").into_bytes()
}

/// The numbers below `count` in an order without pattern.
fn shuffled(count: usize) -> Vec<Vec<u8>> {
    let mut order: Vec<usize> = (0..count).collect();
    let mut state = 1u64;
    for i in (1..count).rev() {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        order.swap(i, (state >> 33) as usize % (i + 1));
    }
    order.into_iter().map(key).collect()
}

fn sorted(first: usize, step: usize) -> Sorted {
    let keys: Vec<Vec<u8>> = (first..ENTRIES).step_by(step).map(key).collect();
    Sorted::build(keys.iter().map(|key| (&key[..], &VALUE[..])))
}

#[divan::bench]
fn batch_put(bencher: Bencher<'_, '_>) {
    let mut batch = WriteBatch::new();
    let key = key(7);
    bencher.bench_local(|| {
        batch.clear();
        batch.put(black_box(&key), black_box(&VALUE));
        batch.bytes()
    });
}

#[divan::bench]
fn log_append_in_memory(bencher: Bencher<'_, '_>) {
    let mut log = Log::default();
    let mut batch = Log::batch::<131>();
    bencher.bench_local(|| log.append(black_box(&mut batch)));
}

#[divan::bench(args = ["sequential", "random"], sample_count = 10)]
fn memtable_insert(bencher: Bencher<'_, '_>, order: &str) {
    let keys = match order {
        "random" => shuffled(ENTRIES),
        _ => (0..ENTRIES).map(key).collect(),
    };
    bencher.counter(ItemsCount::new(ENTRIES)).with_inputs(Memory::default).bench_local_values(
        |mut memory| {
            keys.iter().for_each(|key| memory.insert(key, &VALUE));
            memory
        },
    );
}

#[divan::bench(sample_count = 10)]
fn memtable_get(bencher: Bencher<'_, '_>) {
    let keys = shuffled(ENTRIES);
    let mut memory = Memory::default();
    keys.iter().for_each(|key| memory.insert(key, &VALUE));
    bencher
        .counter(ItemsCount::new(ENTRIES))
        .bench_local(|| keys.iter().filter_map(|key| memory.get(key)).sum::<usize>());
}

#[divan::bench(sample_count = 10)]
fn table_build(bencher: Bencher<'_, '_>) {
    bencher.counter(ItemsCount::new(ENTRIES)).bench_local(|| sorted(0, 1));
}

#[divan::bench(sample_count = 10)]
fn table_get_cached(bencher: Bencher<'_, '_>) {
    let (keys, table) = (shuffled(ENTRIES), sorted(0, 1));
    bencher
        .counter(ItemsCount::new(ENTRIES))
        .bench_local(|| keys.iter().filter_map(|key| table.get(key)).sum::<usize>());
}

#[divan::bench(sample_count = 10)]
fn table_get_cached_partitioned(bencher: Bencher<'_, '_>) {
    let (keys, ordered) = (shuffled(ENTRIES), (0..ENTRIES).map(key).collect::<Vec<_>>());
    let entries = ordered.iter().map(|key| (&key[..], &VALUE[..]));
    let table = Sorted::build_in_partitions(entries, 4096);
    bencher
        .counter(ItemsCount::new(ENTRIES))
        .bench_local(|| keys.iter().filter_map(|key| table.get(key)).sum::<usize>());
}

#[divan::bench]
fn cache_hit(bencher: Bencher<'_, '_>) {
    let cached = Cached::default();
    bencher.bench_local(|| black_box(cached.hit()));
}

#[divan::bench(args = [1, 2, 4, 8], sample_count = 10)]
fn merge_step(bencher: Bencher<'_, '_>, ways: usize) {
    let tables: Vec<Sorted> = (0..ways).map(|first| sorted(first, ways)).collect();
    bencher.counter(ItemsCount::new(ENTRIES)).bench_local(|| Sorted::walk_merged(&tables));
}

/// A database whose first `ENTRIES` keys are deleted, in memory alone.
fn deleted() -> Db {
    let fs = Arc::new(MemFs::new());
    let options = Options { create_if_missing: true, fs, ..Options::default() };
    let db = Db::open("/bench", options).expect("it is new");
    (0..=ENTRIES).for_each(|i| db.put(&key(i), &VALUE).expect("the files are in memory"));
    (0..ENTRIES).for_each(|i| db.delete(&key(i)).expect("the files are in memory"));
    db
}

fn seek_first(db: &Db) -> bool {
    let mut cursor = db.cursor();
    cursor.first();
    cursor.valid()
}

/// Nobody has walked there since the last put.
#[divan::bench(sample_count = 10)]
fn first_key_after_tombstones(bencher: Bencher<'_, '_>) {
    bencher.with_inputs(deleted).bench_local_values(|db| {
        assert!(seek_first(&db));
        db
    });
}

#[divan::bench]
fn first_key_after_tombstones_again(bencher: Bencher<'_, '_>) {
    let db = deleted();
    assert!(seek_first(&db));
    bencher.bench_local(|| black_box(seek_first(&db)));
}
