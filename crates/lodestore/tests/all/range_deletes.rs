//! Deleting many keys: what is read, what is given back, and when.

use lodestore::{Compression, Counter, Db, MemFs, Options, ReadOptions};
use std::sync::Arc;
use std::time::Duration;

const KEYS: u32 = 4_000;

fn options() -> Options {
    let mut options =
        Options { create_if_missing: true, fs: Arc::new(MemFs::new()), ..Options::default() };
    options.family.table_bytes = 16 << 10;
    options.family.block_bytes = 1 << 10;
    options.family.compression = Compression::None;
    options.family.level1_bytes = 64 << 10;
    options
}

fn key(i: u32) -> Vec<u8> {
    format!("{i:08}").into_bytes()
}

fn value(i: u32) -> Vec<u8> {
    (0..25u32).flat_map(|j| (i * 25 + j).wrapping_mul(0x9e37_79b9).to_le_bytes()).collect()
}

/// A database of `KEYS` keys, all of them in tables of the last level.
fn full(options: &Options) -> Db {
    let db = Db::open("/ranges", options.clone()).unwrap();
    for i in 0..KEYS {
        db.put(&key(i), &value(i)).unwrap();
        // A load in order goes down as it is: a table of each of these.
        if i % 150 == 0 {
            db.flush().unwrap();
        }
    }
    db.compact_range(None, None).unwrap();
    db
}

fn keys(db: &Db) -> Vec<Vec<u8>> {
    db.range(..).map(|entry| entry.unwrap().0).collect()
}

fn count(db: &Db, counter: Counter) -> u64 {
    db.statistics().get(counter)
}

/// Half of the database deleted with one range delete: once that is flushed,
/// its tables go by themselves, and most of them unread.
#[test]
fn a_range_that_was_deleted_gives_its_space_back_by_itself() {
    let db = full(&options());
    let before = db.stats().table_bytes();
    db.delete_range(&key(1_000), &key(3_000)).unwrap();
    db.flush().unwrap();
    db.wait_for_background().unwrap();
    let after = db.stats().table_bytes();
    assert!(after * 100 < before * 55, "{after} of {before} bytes are left");
    let dropped = count(&db, Counter::TablesDropped);
    assert!(dropped >= 8, "{dropped} tables");
    let read = count(&db, Counter::CompactionBytesRead) as f64 / before as f64;
    assert!(read < 1.5, "{read:.2} times the database was read");
    let expected: Vec<_> = (0..1_000).chain(3_000..KEYS).map(key).collect();
    assert_eq!(keys(&db), expected);
    let text = db.property("lodestore.tables").unwrap();
    assert!(text.lines().all(|line| line.contains("range-deletes 0 ")), "{text}");
    db.verify().unwrap();
}

/// The same, key by key.
#[test]
fn keys_that_were_deleted_give_their_space_back_by_themselves() {
    let db = full(&options());
    let before = db.stats().table_bytes();
    (0..KEYS).filter(|i| i % 2 == 1).for_each(|i| db.delete(&key(i)).unwrap());
    db.flush().unwrap();
    db.wait_for_background().unwrap();
    let after = db.stats().table_bytes();
    assert!(after * 100 < before * 60, "{after} of {before} bytes are left");
    assert_eq!(keys(&db), (0..KEYS).step_by(2).map(key).collect::<Vec<_>>());
}

/// With collection turned off nothing is compacted for its tombstones; their
/// age alone is reason enough when that is on.
#[test]
fn old_tombstones_are_collected_however_few() {
    let mut options = options();
    options.family.tombstone_percent = 0;
    let db = full(&options);
    db.delete(&key(7)).unwrap();
    db.put(b"~", b"more").unwrap();
    db.flush().unwrap();
    db.wait_for_background().unwrap();
    let tombstones = |db: &Db| {
        let text = db.property("lodestore.tables").unwrap();
        text.lines().filter(|line| !line.contains(" tombstones 0 ")).count()
    };
    assert_eq!(tombstones(&db), 1, "nothing asks for it");
    drop(db);
    std::thread::sleep(Duration::from_millis(2_100));
    options.family.tombstone_age_seconds = 1;
    let db = Db::open("/ranges", options).unwrap();
    db.wait_for_background().unwrap();
    assert_eq!(tombstones(&db), 0);
    assert_eq!(db.get(&key(7)).unwrap(), None);
}

/// A scan goes past what a range delete has deleted by a seek: its blocks are
/// not read, forwards or backwards, before any compaction.
#[test]
fn a_scan_does_not_read_what_is_deleted() {
    let mut options = options();
    options.cache_bytes = 0;
    options.family.tombstone_percent = 0;
    let db = full(&options);
    let blocks_of = |work: &dyn Fn()| {
        let before = count(&db, Counter::CacheMisses);
        work();
        count(&db, Counter::CacheMisses) - before
    };
    let forwards = || assert!(db.range(..).all(|entry| entry.is_ok()));
    let backwards = || assert!(db.range(..).rev().all(|entry| entry.is_ok()));
    let all = blocks_of(&forwards);
    db.delete_range(&key(100), &key(3_900)).unwrap();
    for flushed in [false, true] {
        if flushed {
            db.flush().unwrap();
        }
        for work in [&forwards as &dyn Fn(), &backwards] {
            let read = blocks_of(work);
            assert!(read * 8 < all, "{read} of {all} blocks were read; flushed: {flushed}");
        }
        let read = blocks_of(&|| assert_eq!(db.get(&key(2_000)).unwrap(), None));
        assert_eq!(read, 0, "a deleted key needs no block");
    }
    assert_eq!(keys(&db).len(), 200);
}

/// A snapshot keeps what it sees, through flush and compaction; when it is
/// gone, so is the space.
#[test]
fn a_snapshot_keeps_a_deleted_range() {
    let db = full(&options());
    let snapshot = db.snapshot();
    db.delete_range(&key(0), &key(KEYS)).unwrap();
    db.put(&key(5), b"new").unwrap();
    db.compact_range(None, None).unwrap();
    db.wait_for_background().unwrap();
    let old = ReadOptions { snapshot: Some(snapshot), ..ReadOptions::default() };
    assert_eq!(db.get_with(&old, &key(5)).unwrap().as_deref(), Some(&value(5)[..]));
    let mut cursor = db.cursor_with(old);
    cursor.first();
    let mut seen = 0;
    while cursor.valid() {
        seen += 1;
        cursor.next();
    }
    assert_eq!(seen, KEYS);
    assert_eq!(keys(&db), [key(5)]);
    drop(cursor);
    db.compact_range(None, None).unwrap();
    assert!(db.stats().table_bytes() < 4 << 10);
    assert_eq!(keys(&db), [key(5)]);
}

/// Files that lie within a range are dropped at once; keys outside stay, and
/// none that was deleted comes back.
#[test]
fn files_in_a_range_are_dropped() {
    let mut options = options();
    options.family.tombstone_percent = 0;
    let db = full(&options);
    let before = db.stats().table_bytes();
    db.delete_range(&key(1_005), &key(2_995)).unwrap();
    let dropped = db.delete_files_in_range(Some(&key(1_005)), Some(&key(2_995))).unwrap();
    assert!(dropped >= 8, "{dropped} tables");
    assert!(db.stats().table_bytes() * 100 < before * 60);
    let expected: Vec<_> = (0..1_005).chain(2_995..KEYS).map(key).collect();
    assert_eq!(keys(&db), expected);
    // The range delete itself lies within; the tables at its edges do not.
    db.flush().unwrap();
    db.delete_files_in_range(Some(&key(1_005)), Some(&key(2_995))).unwrap();
    assert_eq!(keys(&db), expected);
    drop(db);
    let db = Db::open("/ranges", options).unwrap();
    assert_eq!(keys(&db), expected);
    db.delete_files_in_range(None, None).unwrap();
    assert_eq!(keys(&db), Vec::<Vec<u8>>::new());
}

/// A table may have range deletes and nothing else; a checkpoint takes it, and
/// so does verification.
#[test]
fn a_table_of_range_deletes_alone_is_a_table() {
    let mut options = options();
    options.family.tombstone_percent = 0;
    let db = full(&options);
    db.delete_range(&key(10), &key(20)).unwrap();
    db.flush().unwrap();
    assert_eq!(db.stats().levels[0].files, 1);
    assert_eq!(db.stats().levels[0].entries, 0);
    db.verify().unwrap();
    db.checkpoint("/copy").unwrap();
    let copy = Db::open("/copy", options).unwrap();
    assert_eq!(keys(&copy).len(), KEYS as usize - 10);
    copy.verify().unwrap();
    let sizes = copy.approximate_sizes(&[(&key(0), &key(KEYS))]).unwrap();
    assert!(sizes[0] > 0);
}

/// In memory, a scan passes over what was deleted as a range, and yet finds what
/// was written there afterwards.
#[test]
fn what_is_written_into_a_deleted_range_is_found() {
    let db = Db::open("/ranges", options()).unwrap();
    (0..2_000).for_each(|i| db.put(&key(i), b"old").unwrap());
    db.delete_range(&key(100), &key(1_900)).unwrap();
    assert_eq!(keys(&db).len(), 200);
    db.put(&key(1_500), b"new").unwrap();
    assert_eq!(keys(&db).len(), 201);
    let mut cursor = db.cursor();
    cursor.seek(&key(100));
    assert_eq!((cursor.key(), cursor.value()), (&key(1_500)[..], &b"new"[..]));
    cursor.seek_for_prev(&key(1_499));
    assert_eq!(cursor.key(), key(99));
    cursor.seek_for_prev(&key(1_899));
    assert_eq!(cursor.key(), key(1_500));
}

/// A range that ends before it begins is refused, with all of its batch; an
/// empty one deletes nothing.
#[test]
fn a_reversed_range_is_refused() {
    let db = Db::open("/ranges", options()).unwrap();
    db.put(b"b", b"1").unwrap();
    let mut batch = lodestore::WriteBatch::new();
    batch.put(b"c", b"1");
    batch.delete_range(b"b", b"a");
    assert!(matches!(db.write(batch), Err(lodestore::Error::InvalidArgument { .. })));
    db.delete_range(b"b", b"b").unwrap();
    assert_eq!(keys(&db), [b"b".to_vec()]);
}

/// A program that deletes what is older than now, again and again, writes
/// ranges of which each holds all earlier ones: memory stays small.
#[test]
fn nested_range_deletes_take_little_memory() {
    let db = Db::open("/ranges", options()).unwrap();
    for i in 0..2_000 {
        db.put(&key(i), b"event").unwrap();
        db.delete_range(b"", &key(i.saturating_sub(10))).unwrap();
        assert_eq!(db.get(&key(i / 2)).unwrap().is_some(), i < 20 || i / 2 >= i - 10);
    }
    assert!(db.stats().memtable_bytes < 2 << 20, "{}", db.stats().memtable_bytes);
    assert_eq!(keys(&db).len(), 11);
}
