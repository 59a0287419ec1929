//! The row cache: point reads that come back are served without a block, and
//! every read still gives what it should.

use lodestore::{Counter, Db, MemFs, Options, ReadOptions, Statistics};
use std::sync::Arc;

const KEYS: u32 = 2_000;

fn options(statistics: &Arc<Statistics>) -> Options {
    Options {
        create_if_missing: true,
        fs: Arc::new(MemFs::new()),
        cache_bytes: 0,
        row_cache_bytes: 1 << 20,
        statistics: Some(Arc::clone(statistics)),
        ..Options::default()
    }
}

fn full(options: Options) -> Db {
    let db = Db::open("/rows", options).expect("it opens");
    (0..KEYS).for_each(|i| db.put(&i.to_be_bytes(), &[1; 50]).expect("written"));
    db.flush().expect("flushed");
    db
}

fn first_byte(db: &Db, options: &ReadOptions, key: u32) -> Option<u8> {
    db.get_with(options, &key.to_be_bytes()).expect("read").map(|value| value[0])
}

/// The second read of a key reads no block; the first one does.
#[test]
fn a_row_that_was_read_is_read_from_memory() {
    let statistics = Arc::new(Statistics::default());
    let db = full(options(&statistics));
    let hot: Vec<u32> = (0..KEYS).step_by(40).collect();
    for round in 0..3 {
        for &key in &hot {
            assert_eq!(first_byte(&db, &ReadOptions::default(), key), Some(1));
        }
        let count = hot.len() as u64;
        assert_eq!(statistics.get(Counter::CacheMisses), count, "blocks that were read");
        assert_eq!(statistics.get(Counter::RowHits), count * round);
    }
    // Many keys at once meet the same rows.
    let keys: Vec<[u8; 4]> = hot.iter().map(|key| key.to_be_bytes()).collect();
    assert!(db.multi_get(&keys).into_iter().all(|value| value.expect("read").is_some()));
    assert_eq!(statistics.get(Counter::CacheMisses), hot.len() as u64);
    let explained = db.explain(&ReadOptions::default(), &0u32.to_be_bytes()).expect("explained");
    assert!(explained.places.iter().any(|place| place.from_row_cache));
    assert!(explained.to_string().contains("row cache"), "{explained}");
}

/// Overwritten, deleted and merged keys, older snapshots and reads that are to
/// leave no trace: the cache changes none of them.
#[test]
fn cached_rows_are_never_out_of_date() {
    let statistics = Arc::new(Statistics::default());
    let db = full(options(&statistics));
    let newest = ReadOptions::default();
    let passing = ReadOptions { fill_cache: false, ..ReadOptions::default() };
    assert_eq!(first_byte(&db, &passing, 7), Some(1));
    assert_eq!(first_byte(&db, &passing, 7), Some(1));
    assert_eq!(statistics.get(Counter::RowHits), 0, "nothing was kept");

    (0..KEYS).for_each(|key| assert_eq!(first_byte(&db, &newest, key), Some(1)));
    let then = ReadOptions { snapshot: Some(db.snapshot()), ..ReadOptions::default() };
    db.put(&1u32.to_be_bytes(), &[2]).expect("written");
    db.delete(&2u32.to_be_bytes()).expect("written");
    db.delete_range(&3u32.to_be_bytes(), &10u32.to_be_bytes()).expect("written");
    for stage in ["in memory", "flushed", "compacted"] {
        match stage {
            "flushed" => db.flush().expect("flushed"),
            "compacted" => db.compact_range(None, None).expect("compacted"),
            _ => {}
        }
        for _ in 0..2 {
            let found: Vec<_> = (0..12).map(|key| first_byte(&db, &newest, key)).collect();
            let expected: Vec<_> = (0..12)
                .map(|key| match key {
                    1 => Some(2),
                    2..10 => None,
                    _ => Some(1),
                })
                .collect();
            assert_eq!(found, expected, "{stage}");
            let old: Vec<_> = (0..12).map(|key| first_byte(&db, &then, key)).collect();
            assert_eq!(old, [Some(1); 12], "{stage}");
        }
    }
    assert!(statistics.get(Counter::RowHits) > 0);
}

/// The row cache is part of the limit on memory, and may be half of it.
#[test]
fn the_row_cache_is_part_of_the_limit() {
    let statistics = Arc::new(Statistics::default());
    let limit = 4 << 20;
    let with = |row_cache_bytes| Options {
        memory_bytes: Some(limit),
        row_cache_bytes,
        ..options(&statistics)
    };
    let refused = Db::open("/rows", with(limit / 2 + 1)).expect_err("it is too large");
    assert!(refused.to_string().contains("row_cache_bytes"), "{refused}");
    let db = full(with(1 << 20));
    assert_eq!(db.stats().memory.rows, 1 << 20);
    (0..KEYS).for_each(|key| assert!(first_byte(&db, &ReadOptions::default(), key).is_some()));
    assert!(db.stats().memory.total() <= limit as u64);
}
