//! The memory budget: what is held keeps to it, whatever is written and read.

use lodestore::OsFs;
use lodestore::{Budget, Cache, Counter, Db, Error, Family, FamilyOptions, MemFs, Options};
use std::sync::Arc;
use testkit::temp_dir::TempDir;

use crate::environment::number;

const LIMIT: usize = 8 << 20;

fn options() -> Options {
    let family =
        FamilyOptions { table_bytes: 512 << 10, level1_bytes: 2 << 20, ..FamilyOptions::default() };
    let fs = Arc::new(MemFs::new());
    Options { create_if_missing: true, fs, family, ..Options::default() }
}

fn key(i: u32) -> Vec<u8> {
    format!("{:08}", i.wrapping_mul(2_654_435_761) % 100_000_000).into_bytes()
}

fn value(i: u32) -> Vec<u8> {
    testkit::random::bytes(200, u64::from(i))
}

/// Fails unless everything that shares the limit keeps to it.
#[track_caller]
fn check_held(family: &Family) {
    let memory = family.stats().memory;
    assert!(memory.shared <= LIMIT as u64, "{}", memory.shared);
}

/// Several families, default memtables of 64 MiB each, and a limit of 8 MiB:
/// it is kept while five times as much is written, and everything is there.
#[test]
fn writes_and_reads_keep_to_the_limit() -> Result<(), Error> {
    let db = Db::open("memory", Options { memory_bytes: Some(LIMIT), ..options() })?;
    let families: Result<Vec<Family>, Error> =
        (0..3).map(|i| db.create_family(&format!("f{i}"), options().family)).collect();
    let families = families?;
    for i in 0..60_000 {
        families[i as usize % 3].put(&key(i), &value(i))?;
        if i % 100 == 0 {
            check_held(&db);
        }
    }
    db.wait_for_background()?;
    for i in (0..60_000).step_by(3) {
        let family = &families[i as usize % 3];
        assert!(family.get(&key(i))?.as_deref() == Some(&value(i)[..]));
        if i % 99 == 0 {
            check_held(&db);
        }
    }
    let memory = families[0].stats().memory;
    assert!(memory.cached_data > 0 && memory.cached_indexes > 0 && memory.cached_filters > 0);
    let entries: usize = families.iter().map(|family| family.range(..).count()).sum();
    assert_eq!(entries, 60_000);
    check_held(&db);
    let statistics = db.statistics();
    assert!(statistics.get(Counter::EarlyFlushes) > 0);
    for counter in [Counter::CacheIndexMisses, Counter::CacheFilterHits, Counter::CacheHits] {
        assert!(statistics.get(counter) > 0, "{counter:?}");
    }
    let memory = families[0].stats().memory;
    assert_eq!(memory.total(), memory.shared, "one database: all of it is its own");
    let text = families[0].property("lodestore.memory").expect("it is known");
    assert!(text.contains("cached filters") && text.contains(&LIMIT.to_string()), "{text}");
    Ok(())
}

/// Two databases share a limit: one that is idle gives its memtable up when
/// the other needs the memory, and loses nothing.
#[test]
fn an_idle_database_gives_its_memory_to_a_busy_one() -> Result<(), Error> {
    let budget = Budget::new(LIMIT);
    let cache = Cache::within(&budget);
    let shared = |options| Options {
        budget: Some(Arc::clone(&budget)),
        cache: Some(Arc::clone(&cache)),
        ..options
    };
    let (idle, busy) = (Db::open("a", shared(options()))?, Db::open("b", shared(options()))?);
    for i in 0..7_000 {
        idle.put(&key(i), &value(i))?;
    }
    let before = idle.stats().memory.memtables;
    assert!(before > 500_000, "{before}");
    for i in 0..40_000 {
        busy.put(&key(i), &value(i))?;
        if i % 100 == 0 {
            check_held(&busy);
        }
    }
    busy.wait_for_background()?;
    idle.wait_for_background()?;
    assert!(idle.stats().memory.memtables < before / 4, "it was asked to flush");
    for i in 0..7_000 {
        assert!(idle.get(&key(i))?.as_deref() == Some(&value(i)[..]));
    }
    drop((idle, busy, cache));
    // A background thread may be about to let go of the last of it.
    let mut waits = 0;
    while budget.used_bytes() > 0 && waits < 500 {
        std::thread::sleep(std::time::Duration::from_millis(10));
        waits += 1;
    }
    assert_eq!(budget.used_bytes(), 0, "everything is given back");
    Ok(())
}

/// A cursor that is kept keeps its memtables: that is counted, and does not
/// stop the writer, who may be the one that keeps it.
#[test]
fn a_kept_cursor_does_not_stop_writers() -> Result<(), Error> {
    let db = Db::open("memory", Options { memory_bytes: Some(1 << 20), ..options() })?;
    let mut cursors = Vec::new();
    for i in 0..6_000 {
        db.put(&key(i), &value(i))?;
        if i % 300 == 0 {
            cursors.push(db.cursor());
        }
    }
    assert!(db.stats().memory.sealed_memtables > 0);
    for cursor in &mut cursors {
        cursor.first();
        cursor.status()?;
    }
    drop(cursors);
    db.flush()?;
    db.wait_for_background()?;
    assert_eq!(db.stats().memory.sealed_memtables, 0);
    assert_eq!(db.range(..).count(), 6_000);
    Ok(())
}

/// A log that does not fit is refused by a reader, and replayed in pieces by a
/// writer.
#[test]
fn a_long_log_is_replayed_within_the_limit() -> Result<(), Error> {
    let all = options();
    let db = Db::open("memory", all.clone())?;
    (0..20_000).try_for_each(|i| db.put(&key(i), &value(i)))?;
    assert_eq!(db.stats().files(), 0, "all of it is in the log");
    let copy = |fs: &Arc<dyn lodestore::Fs>| Options { fs: Arc::clone(fs), ..all.clone() };
    let small = Options { memory_bytes: Some(1 << 20), ..copy(&all.fs) };
    match Db::open_read_only("memory", small.clone()) {
        Err(Error::InvalidArgument { what }) => assert!(what.contains("memory"), "{what}"),
        other => panic!("{other:?}"),
    }
    let large = Options { memory_bytes: Some(64 << 20), ..copy(&all.fs) };
    assert_eq!(Db::open_read_only("memory", large)?.range(..).count(), 20_000);
    drop(db);
    let db = Db::open("memory", small)?;
    assert!(db.stats().files() > 5, "it was written in pieces");
    assert_eq!(db.range(..).count(), 20_000);
    Ok(())
}

/// Limits that contradict each other are refused by name.
#[test]
fn contradicting_limits_are_refused() {
    let budget = Budget::new(LIMIT);
    let wrong = [
        (Options { memory_bytes: Some(100), ..options() }, "memory_bytes"),
        (
            Options { memory_bytes: Some(LIMIT), budget: Some(Arc::clone(&budget)), ..options() },
            "two limits",
        ),
        (
            Options { memory_bytes: Some(LIMIT), cache: Some(Cache::new(1)), ..options() },
            "give budget and cache",
        ),
        (Options { budget: Some(budget), cache: Some(Cache::new(1)), ..options() }, "within"),
        (Options { open_files_max: Some(0), ..options() }, "open_files_max"),
    ];
    for (options, word) in wrong {
        match Db::open("memory", options) {
            Err(Error::InvalidArgument { what }) => assert!(what.contains(word), "{what}"),
            other => panic!("{word}: {other:?}"),
        }
    }
}

/// Memory of this process that is neither a file's nor a program's, in bytes.
fn resident_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux says it");
    let field = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name)).expect("the field");
        line.trim().trim_end_matches(" kB").parse::<u64>().expect("a number")
    };
    1024 * (field("RssAnon:") + field("RssShmem:"))
}

/// What the process takes beside the limit: threads, their scratch buffers,
/// the manifest's list of tables, the test itself.
const CONSTANT_BYTES: u64 = 16 << 20;

/// `MEMORY_ENTRIES` entries (16 + 100 bytes) are written in an order without
/// pattern, overwritten by half and read, under a limit of `MEMORY_MIB`. The
/// resident set stays within 1.05 times that and a constant.
#[test]
#[ignore = "minutes; needs a process of its own: scripts/memory-test runs it"]
fn the_resident_set_keeps_to_the_limit() -> Result<(), Error> {
    let (entries, limit) = (number("MEMORY_ENTRIES", 1_000_000), number("MEMORY_MIB", 32) << 20);
    let allowed = limit + limit / 20 + CONSTANT_BYTES;
    let directory = TempDir::new("memory");
    let fs = Arc::new(OsFs::new());
    let memory_bytes = Some(limit as usize);
    let family = FamilyOptions::default();
    let db =
        Db::open(directory.path().join("db"), Options { memory_bytes, fs, family, ..options() })?;
    // An odd step and a power of two: each number comes once.
    let range = entries.next_power_of_two();
    let key = |i: u64| format!("{:016}", i.wrapping_mul(0x9e37_79b9_7f4a_7c15) % range);
    let mut peak = 0;
    let mut watch = |i: u64, db: &Db| {
        if i.is_multiple_of(50_000) {
            peak = peak.max(resident_bytes());
            assert!(peak <= allowed, "{peak} resident at {i}:\n{}", {
                db.property("lodestore.memory").unwrap_or_default()
            });
        }
    };
    for i in 0..entries + entries / 2 {
        db.put(key(i % entries).as_bytes(), &testkit::random::bytes(100, i))?;
        watch(i, &db);
    }
    for i in (0..entries).step_by(7) {
        let newest = if i < entries / 2 { i + entries } else { i };
        let expected = testkit::random::bytes(100, newest);
        assert!(db.get(key(i).as_bytes())?.as_deref() == Some(&expected[..]), "entry {i}");
        watch(i, &db);
    }
    let mut cursor = db.cursor();
    cursor.first();
    let mut found = 0;
    while cursor.valid() {
        watch(found, &db);
        found += 1;
        cursor.next();
    }
    cursor.status()?;
    assert_eq!(found, entries);
    println!(
        "{entries} entries, limit {} MiB: at most {:.1} MiB resident, {} allowed\n{}",
        limit >> 20,
        peak as f64 / f64::from(1 << 20),
        allowed >> 20,
        db.property("lodestore.memory").unwrap_or_default(),
    );
    Ok(())
}
