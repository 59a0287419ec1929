//! The limit on memory, the row cache and the telling of the status, changed
//! while the database is open: up and down, on and off.

use lodestore::fs::{Fault, FaultFs, Operation};
use lodestore::inspect::Status;
use lodestore::{Budget, Cache, Counter, Db, Error, Family, MemFs, Options};
use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

const ROOT: &str = "/live";
const MIB: usize = 1 << 20;

fn options() -> Options {
    let mut options =
        Options { create_if_missing: true, fs: Arc::new(MemFs::new()), ..Options::default() };
    options.family.table_bytes = 256 << 10;
    options
}

fn key(i: u32) -> Vec<u8> {
    format!("key{i:08}").into_bytes()
}

fn value(i: u32) -> Vec<u8> {
    testkit::random::bytes(200, u64::from(i))
}

fn fill(family: &Family, keys: std::ops::Range<u32>) -> Result<(), Error> {
    keys.into_iter().try_for_each(|i| family.put(&key(i), &value(i)))
}

fn scan(family: &Family) -> usize {
    let mut found = 0;
    for entry in family.range(..) {
        entry.expect("every entry is readable");
        found += 1;
    }
    found
}

fn refusal(db: &Db, changes: &[(&str, &str)]) -> String {
    let before = db.options().to_text();
    let memory = db.stats().memory;
    let refused = db.set_options(changes).expect_err("it is refused");
    assert!(matches!(refused, Error::InvalidArgument { .. }), "{refused}");
    assert_eq!(db.options().to_text(), before, "{refused}");
    let after = db.stats().memory;
    assert_eq!((after.bytes_max, after.rows), (memory.bytes_max, memory.rows), "{refused}");
    refused.to_string()
}

/// A lower limit holds at once for caches, and as soon as flushes are done for
/// memtables, with nobody writing; a higher one, or none, gives room again.
#[test]
fn the_limit_on_memory_can_change() -> Result<(), Error> {
    let db = Db::open(ROOT, Options { memory_bytes: Some(64 * MIB), ..options() })?;
    let families: Result<Vec<Family>, Error> =
        (0..3).map(|i| db.create_family(&format!("f{i}"), options().family)).collect();
    let families = families?;
    fill(&db, 0..20_000)?;
    db.compact_range(None, None)?;
    assert_eq!(scan(&db), 20_000);
    for family in &families {
        fill(family, 0..8_000)?;
    }
    let memory = || db.stats().memory;
    let flushes = || db.statistics().get(Counter::EarlyFlushes);
    assert!(memory().cached_data > 2 * MIB as u64, "{:?}", memory());
    assert!(memory().memtables > 4 * MIB as u64 && flushes() == 0, "{:?}", memory());

    db.set_options(&[("memory_bytes", "4MiB")])?;
    assert_eq!(memory().bytes_max, Some(4 * MIB as u64));
    assert!(flushes() > 0, "memtables are flushed, though nobody writes");
    db.wait_for_background()?;
    assert!(memory().shared <= 4 * MIB as u64, "{:?}", memory());
    assert!(memory().memtables < MIB as u64, "{:?}", memory());
    for family in &families {
        fill(family, 8_000..12_000)?;
        assert!(memory().shared <= 4 * MIB as u64, "{:?}", memory());
    }
    assert_eq!((scan(&db), scan(&families[2])), (20_000, 12_000));
    assert!(memory().shared <= 4 * MIB as u64, "{:?}", memory());

    for (limit, bytes_max) in [("64MiB", Some(64 * MIB as u64)), ("default", None)] {
        db.set_options(&[("memory_bytes", limit)])?;
        assert_eq!(memory().bytes_max, bytes_max);
        db.flush_all()?;
        let before = flushes();
        fill(&families[0], 0..12_000)?;
        assert_eq!(scan(&db), 20_000);
        assert_eq!(flushes(), before, "there is room for all of it");
        assert!(memory().cached_data > 2 * MIB as u64, "{:?}", memory());
    }
    db.verify().map(drop)
}

/// A database that was opened without a limit can get one and lose it again:
/// `cache_bytes` decides meanwhile, and tables are divided as they are under a
/// limit from the next one on.
#[test]
fn a_limit_on_memory_can_come_and_go() -> Result<(), Error> {
    let mut without = Options { cache_bytes: 3 * MIB, ..options() };
    without.family.table_bytes = 64 << 20;
    let db = Db::open(ROOT, without)?;
    let capacity = || db.property("lodestore.block-cache-capacity").expect("it is known");
    fill(&db, 0..20_000)?;
    db.compact_range(None, None)?;
    scan(&db);
    assert_eq!(capacity(), (3 * MIB).to_string());
    assert!(db.stats().cache_bytes > 2 * MIB as u64);
    let whole = db.stats().table_memory_bytes;

    assert!(
        refusal(&db, &[("memory_bytes", "2MiB"), ("cache_bytes", "1MiB")])
            .contains("cache_bytes cannot be set: memory_bytes decides")
    );
    db.set_options(&[("memory_bytes", "2MiB")])?;
    let memory = db.stats().memory;
    assert!(memory.shared <= 2 * MIB as u64 && memory.shared == memory.total(), "{memory:?}");
    assert!(refusal(&db, &[("cache_bytes", "1MiB")]).contains("memory_bytes decides"));
    fill(&db, 0..20_000)?;
    db.compact_range(None, None)?;
    scan(&db);
    assert!(db.stats().table_memory_bytes * 4 < whole, "indexes and filters are in partitions");
    assert!(db.stats().memory.shared <= 2 * MIB as u64, "{:?}", db.stats().memory);

    db.set_options(&[("memory_bytes", "default"), ("cache_bytes", "1MiB")])?;
    assert_eq!(capacity(), MIB.to_string());
    assert!(db.stats().cache_bytes <= MIB as u64);
    scan(&db);
    assert!(db.stats().cache_bytes > 800_000);
    db.set_options(&[("cache_bytes", "3MiB")])?;
    assert_eq!(capacity(), (3 * MIB).to_string());
    Ok(())
}

/// A writer that failed for want of memory writes on under a higher limit.
#[test]
fn a_higher_limit_lets_writers_go_on() -> Result<(), Error> {
    let fs = FaultFs::new(Arc::new(MemFs::new()));
    let mut limited = Options { memory_bytes: Some(MIB), fs: Arc::new(fs.clone()), ..options() };
    // It is memory that they wait for.
    limited.family.sealed_memtables_max = 1000;
    let db = Db::open(ROOT, limited)?;
    // Nothing can be flushed.
    fs.inject(Fault::new(Operation::Create, 1, ErrorKind::StorageFull).on(".table").forever());
    let failed = fill(&db, 0..20_000).expect_err("memtables may take less than a half");
    assert!(matches!(failed, Error::Io { .. }), "{failed}");
    assert!(db.put(&key(0), b"1").is_err());
    db.set_options(&[("memory_bytes", "16MiB")])?;
    fill(&db, 0..8_000)?;
    fs.heal();
    // Until the flush is tried again, the failure is what it tells.
    while db.flush().is_err() {
        std::thread::sleep(Duration::from_millis(5));
    }
    db.set_options(&[("memory_bytes", "1MiB")])?;
    assert_eq!(scan(&db), 8_000);
    Ok(())
}

/// What opening would refuse is refused, by name, and nothing changes.
#[test]
fn limits_that_cannot_hold_are_refused() -> Result<(), Error> {
    let limited = Options { memory_bytes: Some(MIB), row_cache_bytes: 400 << 10, ..options() };
    let db = Db::open(ROOT, limited)?;
    let cases = [
        (&[("memory_bytes", "1KiB")][..], "memory_bytes is 1024; it must be at least 65536"),
        (
            &[("memory_bytes", "512KiB")],
            "row_cache_bytes is 409600; it may be half of memory_bytes, 524288, at most",
        ),
        (
            &[("row_cache_bytes", "800KiB")],
            "row_cache_bytes is 819200; it may be half of memory_bytes, 1048576, at most",
        ),
        (&[("row_cache_bytes", "1KiB"), ("memory_bytes", "7")], "memory_bytes is 7;"),
        (&[("row_cache_bytes", "1KiB"), ("logging", "no")], "logging is fixed"),
        (&[("status_interval", "9ms"), ("memory_bytes", "2MiB")], "status_interval is 9ms"),
    ];
    for (changes, expected) in cases {
        let refused = refusal(&db, changes);
        assert!(refused.contains(expected), "{refused}");
    }
    db.set_options(&[("memory_bytes", "512KiB"), ("row_cache_bytes", "200KiB")])?;
    assert_eq!(db.stats().memory.rows, 200 << 10);

    let budget = Budget::new(MIB);
    let shared = Db::open(ROOT, Options { budget: Some(Arc::clone(&budget)), ..options() })?;
    for value in ["2MiB", "default"] {
        let refused = refusal(&shared, &[("memory_bytes", value)]);
        assert!(refused.contains("memory_bytes") && refused.contains("budget"), "{refused}");
    }
    assert_eq!(budget.bytes_max(), Some(MIB));
    let cached = Db::open(ROOT, Options { cache: Some(Cache::new(MIB)), ..options() })?;
    let refused = refusal(&cached, &[("memory_bytes", "2MiB")]);
    assert!(refused.contains("memory_bytes makes a cache of its own"), "{refused}");
    Ok(())
}

/// Who opens for reading only can flush nothing: a limit that the log would
/// not have been read under is refused.
#[test]
fn a_reader_keeps_the_memory_that_its_log_takes() -> Result<(), Error> {
    let all = options();
    let db = Db::open(ROOT, all.clone())?;
    fill(&db, 0..8_000)?;
    let reader = Db::open_read_only(ROOT, Options { memory_bytes: Some(16 * MIB), ..all })?;
    let refused = refusal(&reader, &[("memory_bytes", "1MiB")]);
    assert!(refused.contains("memory_bytes is 1048576"), "{refused}");
    let refused = refusal(&reader, &[("status_interval", "1s")]);
    assert!(refused.contains("status_interval"), "{refused}");
    reader.set_options(&[("memory_bytes", "8MiB"), ("row_cache_bytes", "1MiB")])?;
    assert_eq!(scan(&reader), 8_000);
    Ok(())
}

/// The row cache can be turned on, made smaller and turned off: what it has set
/// aside follows, and what is read is right all the time.
#[test]
fn the_row_cache_can_change() -> Result<(), Error> {
    const HOT: u32 = 500;
    let db = Db::open(ROOT, Options { cache_bytes: 0, ..options() })?;
    fill(&db, 0..5_000)?;
    db.flush()?;
    let hits = || {
        let before = db.statistics().get(Counter::RowHits);
        for i in (0..HOT).chain(0..HOT) {
            let found = db.get(&key(i)).expect("it can be read");
            assert_eq!(found.as_deref(), Some(&value(i)[..]));
        }
        db.statistics().get(Counter::RowHits) - before
    };
    assert_eq!(hits(), 0);
    db.set_options(&[("row_cache_bytes", "1MiB")])?;
    assert_eq!((hits(), db.stats().memory.rows), (u64::from(HOT), MIB as u64));
    assert_eq!(hits(), 2 * u64::from(HOT), "all of them are there");
    db.set_options(&[("row_cache_bytes", "16KiB")])?;
    assert_eq!(db.stats().memory.rows, 16 << 10);
    assert!(hits() < u64::from(HOT) / 2, "most fell out");
    db.set_options(&[("row_cache_bytes", "0")])?;
    assert_eq!((hits(), db.stats().memory.rows), (0, 0));
    let misses = db.statistics().get(Counter::RowMisses);
    assert_eq!((hits(), db.statistics().get(Counter::RowMisses)), (0, misses), "nobody looks");
    db.set_options(&[("row_cache_bytes", "2MiB")])?;
    assert!(hits() >= u64::from(HOT) / 2);
    Ok(())
}

/// The status can be told, told more often and no more, while the database is
/// open; the time since it was opened goes on.
#[test]
fn the_telling_of_the_status_can_change() -> Result<(), Error> {
    let options = options();
    let fs = Arc::clone(&options.fs);
    let db = Db::open(ROOT, options)?;
    let status = || Status::read(&*fs, Path::new(ROOT)).expect("it can be read");
    let told_after = |interval, uptime| {
        for _ in 0..2_000 {
            let is_wanted = |s: &Status| s.interval == interval && s.uptime > uptime;
            if let Some(status) = status().filter(is_wanted) {
                return status;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        panic!("no status every {interval:?} after {uptime:?}");
    };
    assert_eq!(status(), None);
    std::thread::sleep(Duration::from_millis(30));
    // A long one does not make the next change wait for it.
    for (text, interval) in [("60min", 3_600_000), ("10ms", 10), ("20ms", 20)] {
        db.set_options(&[("status_interval", text)])?;
        // Since the database was opened, not since it tells.
        let status = told_after(Duration::from_millis(interval), Duration::from_millis(30));
        if interval < 1000 {
            told_after(status.interval, status.uptime);
        }
    }
    db.set_options(&[("status_interval", "default")])?;
    assert_eq!(status(), None);
    std::thread::sleep(Duration::from_millis(50));
    assert_eq!(status(), None, "nobody tells anything any more");
    db.set_options(&[("status_interval", "10ms")])?;
    told_after(Duration::from_millis(10), Duration::ZERO);
    drop(db);
    assert!(!fs.list(Path::new(ROOT)).unwrap().iter().any(|name| name.starts_with("STATUS")));
    Ok(())
}

/// Readers and writers go on while everything changes again and again: every
/// answer is right, and in the end every byte is accounted for.
#[test]
fn changes_under_load_lose_nothing() -> Result<(), Error> {
    let db = Db::open(ROOT, options())?;
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for id in 0..2u32 {
            let (db, done) = (&db, &done);
            scope.spawn(move || {
                for i in 0..30_000 {
                    let i = 2 * i + id;
                    db.put(&key(i), &value(i)).expect("it is written");
                    let earlier = 2 * (i.wrapping_mul(7919) % (i / 2 + 1)) + id;
                    let found = db.get(&key(earlier)).expect("it is read");
                    assert_eq!(found.as_deref(), Some(&value(earlier)[..]), "{earlier} of {i}");
                }
                done.store(true, Ordering::Relaxed);
            });
        }
        let mut round = 0;
        while !done.load(Ordering::Relaxed) {
            let rows = ["0", "256KiB", "16KiB"][round % 3];
            let limit = ["2MiB", "default", "1MiB", "8MiB"][round % 4];
            let interval = ["default", "10ms", "20ms"][round % 3];
            let changes =
                [("memory_bytes", limit), ("row_cache_bytes", rows), ("status_interval", interval)];
            db.set_options(&changes).expect("they fit");
            round += 1;
            std::thread::sleep(Duration::from_millis(3));
        }
        assert!(round > 12, "{round} changes");
    });
    db.set_options(&[("memory_bytes", "2MiB"), ("row_cache_bytes", "0")])?;
    db.wait_for_background()?;
    assert_eq!(scan(&db), 60_000);
    let memory = db.stats().memory;
    assert!(memory.total() <= 2 * MIB as u64 && memory.total() == memory.shared, "{memory:?}");
    db.verify().map(drop)
}
