//! Queues: keys come at one end and go at the other, as the blocks of a pruned chain or
//! jobs do. What lives between the ends is not rewritten for it.

use lodestore::{Counter, Db, Error, Event, Listener, MemFs, Options, ReadOptions};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

const ROOT: &str = "/queues";
/// Keys that live at any time.
const LENGTH: u64 = 20_000;

fn options(fs: &MemFs) -> Options {
    let fs = Arc::new(fs.clone());
    let mut options = Options { create_if_missing: true, fs, ..Options::default() };
    options.family.memtable_bytes = 256 << 10;
    options.family.table_bytes = 128 << 10;
    options
}

/// The most tables that one flush made.
#[derive(Debug, Default)]
struct TablesOfAFlush(AtomicUsize);

impl Listener for TablesOfAFlush {
    fn tell(&self, event: &Event<'_>) {
        if let Event::Flushed { tables, .. } = event {
            self.0.fetch_max(*tables, Ordering::Relaxed);
        }
    }
}

fn value(key: u64) -> Vec<u8> {
    testkit::random::bytes(100, key)
}

/// Puts `keys`, and deletes for each the one that has come to the head.
fn pass(db: &Db, keys: Range<u64>) -> Result<(), Error> {
    for key in keys {
        db.put(&key.to_be_bytes(), &value(key))?;
        if let Some(head) = key.checked_sub(LENGTH) {
            db.delete(&head.to_be_bytes())?;
        }
    }
    Ok(())
}

/// What lives is what was put last; forwards, backwards and one by one.
fn check(db: &Db, live: Range<u64>) -> Result<(), Error> {
    let mut expected = live.clone();
    for entry in db.range(..) {
        let (key, found) = entry?;
        let n = expected.next().expect("no more live");
        assert_eq!((&key[..], &found[..]), (&n.to_be_bytes()[..], &value(n)[..]));
    }
    assert_eq!(expected.next(), None);
    assert_eq!(db.range(..).rev().count() as u64, live.end - live.start);
    assert_eq!(db.get(&(live.start - 1).to_be_bytes())?, None);
    Ok(())
}

fn written_by_compactions(db: &Db) -> f64 {
    let [flushed, compacted] =
        [Counter::FlushBytes, Counter::CompactionBytesWritten].map(|c| db.statistics().get(c));
    compacted as f64 / flushed as f64
}

/// A queue that is never at rest: compactions write a small part of what flushes do, and
/// what is stored is not much more than what lives.
#[test]
fn a_queue_is_not_rewritten() -> Result<(), Error> {
    let db = Db::open(ROOT, options(&MemFs::new()))?;
    pass(&db, 0..LENGTH * 8)?;
    check(&db, LENGTH * 7..LENGTH * 8)?;
    let rewritten = written_by_compactions(&db);
    assert!(rewritten < 0.25, "{rewritten} bytes rewritten a byte");
    db.wait_for_background()?;
    let stored: u64 = db.stats().levels.iter().map(|level| level.bytes).sum();
    let live = LENGTH * 108;
    assert!(stored < live * 3 / 2, "{stored} bytes stored of {live}");
    check(&db, LENGTH * 7..LENGTH * 8)
}

/// A memtable of both ends becomes two tables, and nothing is lost or comes back: not under
/// a snapshot, not when what was in memory is recovered, not when all is compacted.
#[test]
fn both_ends_of_a_queue_outlive_reopening() -> Result<(), Error> {
    let (fs, most) = (MemFs::new(), Arc::new(TablesOfAFlush::default()));
    let db = Db::open(ROOT, Options { listener: Some(most.clone()), ..options(&fs) })?;
    pass(&db, 0..LENGTH * 2)?;
    let before = db.snapshot();
    pass(&db, LENGTH * 2..LENGTH * 2 + 3_000)?;
    db.flush()?;
    assert_eq!(most.0.load(Ordering::Relaxed), 2, "one table for each end");
    let key = LENGTH + 100;
    assert_eq!(db.get(&key.to_be_bytes())?, None);
    let then = ReadOptions::at(&before);
    let found = db.get_with(&then, &key.to_be_bytes())?;
    assert_eq!(found.as_deref(), Some(&value(key)[..]));
    drop(before);
    pass(&db, LENGTH * 2 + 3_000..LENGTH * 3)?;
    drop(db);
    let db = Db::open(ROOT, options(&fs))?;
    check(&db, LENGTH * 2..LENGTH * 3)?;
    db.verify()?;
    db.compact_range(None, None)?;
    check(&db, LENGTH * 2..LENGTH * 3)
}
