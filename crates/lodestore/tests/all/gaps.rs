//! Long stretches of deleted keys: a walk passes over them once, later ones
//! know of them, and what is put there since is found all the same.

use lodestore::{
    Counter, Db, DbCursor, IngestOptions, MemFs, Options, PrefixExtractor, Range, ReadOptions,
    Result, TableWriter,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

const KEYS: u32 = 3_000;

fn options() -> Options {
    let mut options =
        Options { create_if_missing: true, fs: Arc::new(MemFs::new()), ..Options::default() };
    // What is deleted stays, so that there is something to pass over: neither
    // tombstones nor the second table start a compaction.
    options.family.tombstone_percent = 0;
    options.family.level0_compaction_files = 10;
    options
}

fn key(i: u32) -> Vec<u8> {
    format!("{i:08}").into_bytes()
}

fn numbers(keys: &[Vec<u8>]) -> Vec<u32> {
    keys.iter().map(|key| String::from_utf8_lossy(key).parse().unwrap()).collect()
}

/// A database of which the keys from 100 to 2,900 are deleted one by one.
fn hollow(options: &Options) -> Db {
    let db = Db::open("/gaps", options.clone()).unwrap();
    (0..KEYS).for_each(|i| db.put(&key(i), b"value").unwrap());
    db.flush().unwrap();
    (100..2_900).for_each(|i| db.delete(&key(i)).unwrap());
    db
}

fn forward(cursor: &mut DbCursor) -> Vec<u32> {
    let mut keys = Vec::new();
    cursor.first();
    while cursor.valid() {
        keys.push(cursor.key().to_vec());
        cursor.next();
    }
    cursor.status().unwrap();
    numbers(&keys)
}

fn backward(cursor: &mut DbCursor) -> Vec<u32> {
    let mut keys = Vec::new();
    cursor.last();
    while cursor.valid() {
        keys.push(cursor.key().to_vec());
        cursor.prev();
    }
    cursor.status().unwrap();
    keys.reverse();
    numbers(&keys)
}

/// The entries that `work` passed over one by one.
fn passed(db: &Db, work: impl FnOnce()) -> u64 {
    let before = db.statistics().get(Counter::EntriesPassed);
    work();
    db.statistics().get(Counter::EntriesPassed) - before
}

fn expected() -> Vec<u32> {
    (0..100).chain(2_900..KEYS).collect()
}

/// Where tombstones are in memory and where they are in a table; whichever way
/// the first walk goes, and whichever way the second.
#[test]
fn a_walk_passes_over_what_an_earlier_one_found_deleted() {
    type Walk = fn(&mut DbCursor) -> Vec<u32>;
    for flushed in [false, true] {
        for (first, second) in [
            (forward as Walk, forward as Walk),
            (forward, backward),
            (backward, forward),
            (backward, backward),
        ] {
            let db = hollow(&options());
            if flushed {
                db.flush().unwrap();
            }
            let steps = passed(&db, || assert_eq!(first(&mut db.cursor()), expected()));
            assert!(steps >= 2_800, "the first walk passed over {steps}");
            let steps = passed(&db, || assert_eq!(second(&mut db.cursor()), expected()));
            assert!(steps < 100, "the second walk passed over {steps}");
            // The second may have made it longer.
            assert!((1..=2).contains(&db.statistics().get(Counter::GapsRemembered)));
            let steps = passed(&db, || {
                let mut cursor = db.cursor();
                for i in (150..2_850).step_by(50) {
                    cursor.seek(&key(i));
                    assert_eq!(cursor.key(), key(2_900));
                    cursor.seek_for_prev(&key(i));
                    assert_eq!(cursor.key(), key(99));
                }
            });
            assert!(steps <= 2 * 54 * 33, "108 seeks passed over {steps}");
        }
    }
}

/// As a queue is used: what comes is put at the end, what is done is deleted at
/// the beginning, and the first one left is looked for each time.
#[test]
fn the_head_of_a_queue_is_found_in_few_steps() {
    let db = Db::open("/gaps", options()).unwrap();
    (0..100).for_each(|i| db.put(&key(i), b"job").unwrap());
    let steps = passed(&db, || {
        for done in 0..KEYS {
            let mut cursor = db.cursor();
            cursor.first();
            assert_eq!(cursor.key(), key(done));
            db.delete(&key(done)).unwrap();
            db.put(&key(done + 100), b"job").unwrap();
            if done % 1_000 == 999 {
                db.flush().unwrap();
            }
        }
    });
    assert!(steps < u64::from(40 * KEYS), "{KEYS} seeks passed over {steps}");
}

/// Wherever in the gap, in whichever way it is looked for, now and after a
/// flush and an opening.
#[test]
fn what_is_put_into_a_gap_is_found() {
    let options = options();
    let db = hollow(&options);
    let mut expected = expected();
    for new in [100, 2_899, 1_500, 1_499, 1_501, 700, 2_000] {
        assert_eq!(forward(&mut db.cursor()), expected);
        assert_eq!(backward(&mut db.cursor()), expected);
        db.put(&key(new), b"back").unwrap();
        expected.push(new);
        expected.sort_unstable();
        let mut cursor = db.cursor();
        cursor.seek(&key(new));
        assert_eq!(cursor.key(), key(new));
        cursor.seek_for_prev(&key(new));
        assert_eq!(cursor.key(), key(new));
    }
    db.flush().unwrap();
    assert_eq!(forward(&mut db.cursor()), expected);
    drop(db);
    let db = Db::open("/gaps", options).unwrap();
    assert_eq!(forward(&mut db.cursor()), expected);
    assert_eq!(backward(&mut db.cursor()), expected);
}

/// A cursor that does not see what was put since it was made must not make
/// others blind to it: whether that is in its memtable, in one that was empty
/// when it was made, in a later one, or in a range that was deleted.
#[test]
fn a_cursor_of_the_past_hides_nothing_from_later_ones() {
    let put = |db: &Db| db.put(&key(1_500), b"new").unwrap();
    let prepare: [fn(&Db); 3] =
        [|_| {}, |db| db.flush().unwrap(), |db| db.delete_range(&key(1_000), &key(2_000)).unwrap()];
    let changes: [&dyn Fn(&Db); 3] = [
        &put,
        &|db| {
            db.flush().unwrap();
            put(db);
        },
        &|db| {
            put(db);
            db.flush().unwrap();
        },
    ];
    for prepare in prepare {
        for change in changes {
            for walk in [forward, backward] {
                let db = hollow(&options());
                prepare(&db);
                let mut old = db.cursor();
                change(&db);
                assert_eq!(walk(&mut old), expected());
                let mut with = expected();
                with.insert(100, 1_500);
                assert_eq!(forward(&mut db.cursor()), with);
                assert_eq!(backward(&mut db.cursor()), with);
                assert_eq!(walk(&mut old), expected());
            }
        }
    }
}

/// What is put where a source of the cursor has already been, while the cursor
/// as a whole is still to come there.
#[test]
fn what_is_put_behind_a_cursor_is_found_by_later_ones() {
    for reverse in [false, true] {
        let db = hollow(&options());
        db.flush().unwrap();
        for there in [5, 2_995] {
            db.put(&key(there), b"in memory").unwrap();
        }
        let mut old = db.cursor();
        let goes = |cursor: &mut DbCursor| match reverse {
            false => cursor.next(),
            true => cursor.prev(),
        };
        old.seek(&key(if reverse { 2_950 } else { 50 }));
        goes(&mut old);
        db.put(&key(1_500), b"new").unwrap();
        while old.valid() {
            goes(&mut old);
        }
        let mut with = expected();
        with.insert(100, 1_500);
        assert_eq!(forward(&mut db.cursor()), with);
        assert_eq!(backward(&mut db.cursor()), with);
    }
}

/// A walk passes over them as it does over what is deleted.
#[test]
fn versions_of_a_key_that_is_there_are_no_gap() {
    let db = hollow(&options());
    (0..200).for_each(|_| db.put(&key(1_500), b"again").unwrap());
    let mut with = expected();
    with.insert(100, 1_500);
    for walk in [forward, backward, forward, backward] {
        assert_eq!(walk(&mut db.cursor()), with);
    }
}

/// However many versions of a key are too new for a walk, it ends.
#[test]
fn a_walk_gets_past_many_versions_that_it_does_not_see() {
    let db = hollow(&options());
    let at = ReadOptions { snapshot: Some(db.snapshot()), ..ReadOptions::default() };
    for i in [1_500, 2_950] {
        for _ in 0..200 {
            db.put(&key(i), b"new").unwrap();
            db.delete(&key(i)).unwrap();
        }
        db.put(&key(i), b"new").unwrap();
    }
    let mut with = expected();
    with.insert(100, 1_500);
    for walk in [forward, backward, forward, backward] {
        assert_eq!(walk(&mut db.cursor_with(at.clone())), expected());
        assert_eq!(walk(&mut db.cursor()), with);
    }
}

/// What a cursor was at before does not count where it comes to it anew.
#[test]
fn a_key_that_is_come_to_again_is_there() {
    let db = Db::open("/gaps", options()).unwrap();
    db.put(&key(2_000), b"old").unwrap();
    let at = ReadOptions { snapshot: Some(db.snapshot()), ..ReadOptions::default() };
    db.delete(&key(2_000)).unwrap();
    let mut cursor = db.cursor_with(at);
    for new in 0..100 {
        db.put(&key(1_900 + new), b"new").unwrap();
        cursor.seek(&key(2_000));
        assert_eq!(cursor.key(), key(2_000));
        cursor.seek(&key(1_900));
        assert!(cursor.valid(), "after {new} newer keys");
        assert_eq!(cursor.key(), key(2_000));
    }
}

/// A snapshot that is older than the deletes sees what they deleted, whatever
/// others remember.
#[test]
fn an_older_snapshot_sees_what_was_deleted_since() {
    let db = Db::open("/gaps", options()).unwrap();
    (0..KEYS).for_each(|i| db.put(&key(i), b"value").unwrap());
    let snapshot = db.snapshot();
    (100..2_900).for_each(|i| db.delete(&key(i)).unwrap());
    assert_eq!(forward(&mut db.cursor()), expected());
    let at = ReadOptions { snapshot: Some(snapshot), ..ReadOptions::default() };
    let all: Vec<u32> = (0..KEYS).collect();
    assert_eq!(forward(&mut db.cursor_with(at.clone())), all);
    assert_eq!(backward(&mut db.cursor_with(at)), all);
}

/// Also by a cursor that was made before the table came.
#[test]
fn what_is_ingested_into_a_gap_is_found() {
    let options = options();
    let db = hollow(&options);
    assert_eq!(forward(&mut db.cursor()), expected());
    let mut old = db.cursor();
    let mut writer = TableWriter::create("/table", &options, &options.family).unwrap();
    writer.put(&key(1_500), b"from outside").unwrap();
    writer.finish().unwrap();
    let family = db.family("default").unwrap();
    family.ingest(&["/table"], &IngestOptions::default()).unwrap();
    let mut with = expected();
    with.insert(100, 1_500);
    assert_eq!(forward(&mut db.cursor()), with);
    assert_eq!(forward(&mut old), expected());
    assert_eq!(forward(&mut db.cursor()), with);
    assert_eq!(backward(&mut db.cursor()), with);
}

/// Bounds do not make a gap longer than what was looked at.
#[test]
fn a_walk_within_bounds_remembers_no_more_than_it_saw() {
    let db = hollow(&options());
    db.delete_range(&key(100), &key(2_900)).unwrap();
    for i in [90, 600, 2_950] {
        db.put(&key(i), b"here").unwrap();
    }
    let with = {
        let mut with = expected();
        with.insert(100, 600);
        with
    };
    let within = |lower: u32, upper: u32| ReadOptions {
        lower_bound: Some(key(lower)),
        upper_bound: Some(key(upper)),
        ..ReadOptions::default()
    };
    for (lower, upper) in [(200, 500), (700, 1_000), (590, 601), (100, 2_900), (1_000, 9_000)] {
        let range = |i: &u32| (lower..upper).contains(i);
        let inside: Vec<u32> = with.iter().copied().filter(range).collect();
        assert_eq!(forward(&mut db.cursor_with(within(lower, upper))), inside);
        assert_eq!(backward(&mut db.cursor_with(within(lower, upper))), inside);
        assert_eq!(forward(&mut db.cursor()), with);
        assert_eq!(backward(&mut db.cursor()), with);
    }
}

/// A range up to and with its last key looks at nothing behind that key.
#[test]
fn a_range_that_includes_its_end_does_not_look_behind_it() {
    let db = hollow(&options());
    let found = |range: Range| -> Vec<u32> {
        let keys: Vec<Vec<u8>> = range.map(|entry| entry.unwrap().0).collect();
        numbers(&keys)
    };
    let count = passed(&db, || {
        assert_eq!(found(db.range(key(97)..=key(99))), [97, 98, 99]);
        assert_eq!(found(db.range(key(99)..=key(99))), [99]);
    });
    assert_eq!(count, 0, "there is nothing between the keys of the range");
    let mut longer = key(99);
    longer.push(0);
    db.put(&longer, b"is above its prefix").unwrap();
    assert_eq!(found(db.range(key(98)..=key(99))), [98, 99]);
    let both_ends = db.range(key(98)..=key(99)).rev().map(|entry| entry.unwrap().0);
    assert_eq!(numbers(&both_ends.collect::<Vec<_>>()), [99, 98]);
}

/// A cursor for one prefix leaves out tables that have no key with it: what it does not
/// meet past its bound may be there.
#[test]
fn a_walk_of_a_prefix_remembers_nothing_past_it() -> Result<()> {
    let mut options = options();
    options.family.prefix_extractor = Some(PrefixExtractor::Fixed(4));
    let db = Db::open("/gaps", options)?;
    db.put(b"first", b"value")?;
    let at = db.snapshot();
    db.put(b"later", b"value")?;
    db.flush()?;
    // All of this is past the prefix, and too new for the snapshot.
    (0..100).try_for_each(|i| db.delete(format!("kept{i:03}").as_bytes()))?;
    db.put(b"zero", b"value")?;
    let of_prefix = ReadOptions {
        snapshot: Some(at),
        prefix: Some(b"here".to_vec()),
        ..ReadOptions::default()
    };
    let mut cursor = db.cursor_with(of_prefix);
    cursor.first();
    assert!(!cursor.valid());
    assert_eq!(db.statistics().get(Counter::PrefixTablesSkipped), 1);
    assert_eq!(db.statistics().get(Counter::EntriesPassed), 0, "there is nothing before the bound");
    let keys: Vec<Vec<u8>> =
        db.range(..).map(|entry| entry.map(|(key, _)| key)).collect::<Result<_>>()?;
    assert_eq!(keys, [&b"first"[..], b"later", b"zero"]);
    Ok(())
}

/// Writers put and delete in a range that readers walk through all the time:
/// a walk of a snapshot meets what point lookups of the same snapshot find.
#[test]
fn walks_and_lookups_agree_while_others_write() -> Result<()> {
    let mut options = options();
    options.family.memtable_bytes = 128 << 10;
    let db = Db::open("/gaps", options)?;
    let over = AtomicBool::new(false);
    let keys: Vec<Vec<u8>> = (0..400).map(key).collect();
    std::thread::scope(|scope| {
        for seed in 1..=2 {
            let (db, over, keys) = (&db, &over, &keys);
            scope.spawn(move || {
                let mut random = testkit::random::Random::new(seed);
                for _ in 0..20_000 {
                    if over.load(Ordering::Relaxed) {
                        return;
                    }
                    let at = random.between(0, keys.len() - 1);
                    for key in keys.iter().skip(at).take(random.between(0, 100)) {
                        db.delete(key).unwrap();
                    }
                    db.put(random.pick::<Vec<u8>>(keys), b"here").unwrap();
                }
            });
        }
        let met = || [Counter::GapsRemembered, Counter::GapsPassed].map(|c| db.statistics().get(c));
        // The writers may be fast and the reader slow, or the other way round.
        for round in (0..20_000).take_while(|round| *round < 200 || met().contains(&0)) {
            let snapshot = Some(db.snapshot());
            let at = ReadOptions { snapshot, ..ReadOptions::default() };
            let mut cursor = db.cursor_with(at.clone());
            let walked = if round % 2 == 0 { forward(&mut cursor) } else { backward(&mut cursor) };
            let found = db.multi_get_with(&at, &keys);
            let there = (0..).zip(found).filter(|(_, value)| value.as_ref().unwrap().is_some());
            assert_eq!(walked, there.map(|(i, _)| i).collect::<Vec<u32>>());
        }
        over.store(true, Ordering::Relaxed);
    });
    let count = |counter| db.statistics().get(counter);
    assert!(count(Counter::GapsRemembered) > 0 && count(Counter::GapsPassed) > 0);
    Ok(())
}
