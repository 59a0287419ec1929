//! Options that change while the database is open: each does what it says, at
//! the moment that it says, and a change that is refused changes nothing.

use lodestore::fs::{Fault, FaultFs, Operation};
use lodestore::{
    Budget, Cache, Counter, Db, Error, FamilyOptions, MemFs, Options, RateLimiter, Scheduler,
    WriteOptions,
};
use std::io::ErrorKind;
use std::sync::Arc;
use std::time::{Duration, Instant};

const ROOT: &str = "/live";
const NOW: WriteOptions = WriteOptions { sync: false, no_slowdown: true, deadline: None };

fn options() -> Options {
    Options { create_if_missing: true, fs: Arc::new(MemFs::new()), ..Options::default() }
}

fn count(db: &Db, counter: Counter) -> u64 {
    db.statistics().get(counter)
}

fn key(i: u32) -> Vec<u8> {
    format!("key{i:08}").into_bytes()
}

/// Writes keys `from..to`, with values that do not compress.
fn fill(db: &Db, from: u32, to: u32) -> Result<(), Error> {
    (from..to).try_for_each(|i| db.put(&key(i), &testkit::random::bytes(100, u64::from(i))))
}

fn scan(db: &Db) -> usize {
    let entries: Result<Vec<_>, Error> = db.range(..).collect();
    entries.expect("every entry is readable").len()
}

/// What `lodestore.tables` says of the codec of every table, after all were
/// opened.
fn codecs(db: &Db) -> Vec<String> {
    let _ = scan(db);
    let text = db.property("lodestore.tables").expect("the property is known");
    let of_line = |line: &str| {
        let (level, codec) = (line.split(' ').nth(1), line.split(" codec ").nth(1));
        let codec = codec.and_then(|rest| rest.split(' ').next());
        format!("{}:{}", level.expect("a level"), codec.expect("a codec"))
    };
    text.lines().map(of_line).collect()
}

/// A change that is refused names the option and changes nothing, however many
/// others came with it.
#[test]
fn a_change_is_made_as_a_whole_or_refused_by_name() -> Result<(), Error> {
    let db = Db::open(ROOT, options())?;
    let before = db.options().to_text();
    let of_family = [
        (&[("memtable_bytes", "1MiB"), ("blok_bytes", "1KiB")][..], "did you mean block_bytes?"),
        (&[("memtable_bytes", "1MiB"), ("order", "leveldb.BytewiseComparator")], "order is fixed"),
        (&[("memtable_bytes", "1MiB"), ("cache_bytes", "1MiB")], "cache_bytes is an option of the"),
        (
            &[("memtable_bytes", "1MiB"), ("memtable_bytes", "2MiB")],
            "memtable_bytes is given twice",
        ),
        (&[("memtable_bytes", "1MiB"), ("table_bytes", "1")], "table_bytes is 1; it must be"),
        (&[("memtable_bytes", "1MiB"), ("block_bytes", "much")], "block_bytes: \"much\" is not"),
        (&[("level0_stop_files", "10")], "level0_slowdown_files <= level0_stop_files"),
    ];
    for (changes, expected) in of_family {
        let error = db.set_family_options(changes).expect_err(expected).to_string();
        assert!(error.contains(expected), "{error}");
        assert_eq!(db.options().to_text(), before, "{expected}");
    }
    let of_database = [
        (&[("cache_bytes", "1MiB"), ("logging", "no")][..], "logging is fixed while"),
        (&[("cache_bytes", "1MiB"), ("memtable_bytes", "1MiB")], "is an option of families"),
        (&[("cache_bytes", "1MiB"), ("open_files_max", "0")], "open_files_max is 0"),
    ];
    for (changes, expected) in of_database {
        let error = db.set_options(changes).expect_err(expected).to_string();
        assert!(error.contains(expected), "{error}");
        assert_eq!(db.options().to_text(), before, "{expected}");
    }
    db.set_family_options(&[("level0_slowdown_files", "9"), ("level0_stop_files", "10")])?;
    assert_eq!(db.family_options().level0_stop_files, 10, "together they make sense");
    Ok(())
}

/// What was given in code decides, and says so, instead of a name that would
/// have no effect.
#[test]
fn what_is_shared_is_not_set_by_name() -> Result<(), Error> {
    let budget = Budget::new(1 << 20);
    let scheduler = Scheduler::new(1);
    let limiter = RateLimiter::new(&scheduler, 1 << 20);
    let cases = [
        (Options { memory_bytes: Some(1 << 20), ..options() }, "cache_bytes", "memory_bytes"),
        (Options { budget: Some(budget), ..options() }, "cache_bytes", "budget"),
        (Options { cache: Some(Cache::new(1 << 20)), ..options() }, "cache_bytes", "a cache"),
        (
            Options { rate_limiter: Some(limiter), ..options() },
            "background_bytes_per_second",
            "rate_limiter",
        ),
    ];
    for (options, name, decides) in cases {
        let db = Db::open(ROOT, options)?;
        let error = db.set_options(&[(name, "1MiB")]).unwrap_err().to_string();
        assert!(error.contains(name) && error.contains(decides), "{error}");
    }
    Ok(())
}

/// A smaller memtable is full at the next write.
#[test]
fn memtable_bytes_hold_from_the_next_write_on() -> Result<(), Error> {
    let db = Db::open(ROOT, options())?;
    fill(&db, 0, 5000)?;
    assert_eq!(count(&db, Counter::Flushes), 0);
    db.set_family_options(&[("memtable_bytes", "64KiB")])?;
    fill(&db, 5000, 5002)?;
    db.wait_for_background()?;
    assert_eq!(count(&db, Counter::Flushes), 1);
    fill(&db, 0, 5000)?;
    db.wait_for_background()?;
    assert!(count(&db, Counter::Flushes) >= 5, "the next ones are smaller too");
    Ok(())
}

/// A family that holds an old log segment back is flushed once the log may not
/// be so long.
#[test]
fn log_bytes_max_holds_from_the_next_write_on() -> Result<(), Error> {
    let db = Db::open(ROOT, options())?;
    let idle = db.create_family("idle", FamilyOptions::default())?;
    idle.put(b"a", b"b")?;
    fill(&db, 0, 3000)?;
    db.flush()?;
    assert_eq!(count(&db, Counter::Flushes), 1);
    db.set_options(&[("log_bytes_max", "10KiB")])?;
    fill(&db, 0, 300)?;
    db.wait_for_background()?;
    assert_eq!(idle.stats().memtable_entries, 0, "it was in the way");
    Ok(())
}

/// Writers that wait for a flush go on as soon as more memtables may wait, or
/// level 0 may be longer, or compactions may owe more.
#[test]
fn limits_of_writers_hold_at_once() -> Result<(), Error> {
    let blocked = |fs: &FaultFs| {
        // What compactions read fails: nothing of what they owe is paid.
        fs.inject(Fault::new(Operation::Read, 1, ErrorKind::Other).on(".table").forever());
        Options { fs: Arc::new(fs.clone()), ..options() }
    };
    let round = |db: &Db| fill(db, 0, 50).and_then(|()| db.flush());
    let fs = FaultFs::new(Arc::new(MemFs::new()));
    let db = Db::open(ROOT, blocked(&fs))?;
    let small = [
        ("level0_compaction_files", "2"),
        ("level0_slowdown_files", "3"),
        ("level0_stop_files", "3"),
    ];
    db.set_family_options(&small)?;
    while db.stats().levels[0].files < 3 {
        round(&db)?;
    }
    assert!(matches!(db.put_with(&NOW, b"a", b"b"), Err(Error::Stalled { .. })));
    db.set_family_options(&[("level0_slowdown_files", "10"), ("level0_stop_files", "20")])?;
    db.put_with(&NOW, b"a", b"b")?;
    db.set_family_options(&[("debt_slowdown_bytes", "1"), ("debt_stop_bytes", "2")])?;
    assert!(matches!(db.put_with(&NOW, b"a", b"b"), Err(Error::Stalled { .. })));
    db.set_family_options(&[("debt_slowdown_bytes", "1GiB"), ("debt_stop_bytes", "2GiB")])?;
    db.put_with(&NOW, b"a", b"b")?;

    let fs = FaultFs::new(Arc::new(MemFs::new()));
    let db = Db::open(ROOT, blocked(&fs))?;
    db.set_family_options(&[("memtable_bytes", "64KiB"), ("sealed_memtables_max", "1")])?;
    // No table can be begun: sealed memtables wait.
    fs.inject(Fault::new(Operation::Create, 1, ErrorKind::StorageFull).on(".table").forever());
    let mut next = 0;
    let mut stalled = |db: &Db| {
        let until = next + 3000;
        while next < until {
            next += 1;
            let value = testkit::random::bytes(100, 1);
            match db.put_with(&NOW, &key(next), &value) {
                Err(Error::Stalled { .. }) => return true,
                result => result.expect("nothing else is wrong"),
            }
        }
        false
    };
    assert!(stalled(&db));
    let sealed = || db.property("lodestore.num-immutable-mem-table");
    assert_eq!(sealed().as_deref(), Some("1"));
    db.set_family_options(&[("sealed_memtables_max", "3")])?;
    assert!(stalled(&db), "there is an end to it again");
    assert_eq!(sealed().as_deref(), Some("3"));
    fs.heal();
    Ok(())
}

/// A writer that is asleep in the line of its family wakes when the limit that
/// stopped it is lifted.
#[test]
fn a_waiting_writer_is_let_go() -> Result<(), Error> {
    let mut options = options();
    options.family.set("level0_compaction_files", "100")?;
    options.family.set("level0_slowdown_files", "100")?;
    options.family.set("level0_stop_files", "100")?;
    let db = Db::open(ROOT, options)?;
    // What flushes write is charged: compactions wait until it is paid for.
    db.set_options(&[("background_bytes_per_second", "1")])?;
    for _ in 0..3 {
        fill(&db, 0, 50)?;
        db.flush()?;
    }
    let stop = ["level0_compaction_files", "level0_slowdown_files", "level0_stop_files"];
    db.set_family_options(&stop.map(|name| (name, "3")))?;
    let patient = WriteOptions { deadline: Some(Duration::from_secs(60)), ..NOW };
    let patient = WriteOptions { no_slowdown: false, ..patient };
    let writer = {
        let db = db.clone();
        std::thread::spawn(move || db.put_with(&patient, b"a", b"b"))
    };
    std::thread::sleep(Duration::from_millis(200));
    assert!(!writer.is_finished(), "it waits");
    let begin = Instant::now();
    db.set_family_options(&stop.map(|name| (name, "100")))?;
    writer.join().expect("it does not panic")?;
    assert!(begin.elapsed() < Duration::from_secs(20));
    db.set_options(&[("background_bytes_per_second", "0")])
}

/// Blocks, filters, partitions, codecs and sizes hold for tables that are
/// begun from then on; those that are there stay as they are.
#[test]
fn tables_are_written_by_the_options_of_their_moment() -> Result<(), Error> {
    let mut options = Options { cache_bytes: 0, ..options() };
    options.family.level0_compaction_files = 100;
    (options.family.level0_slowdown_files, options.family.level0_stop_files) = (200, 300);
    options.family.compression = lodestore::Compression::None;
    let db = Db::open(ROOT, options)?;
    let blocks = |counter: Counter| {
        let before = count(&db, counter);
        assert_eq!(scan(&db), 2000);
        count(&db, counter) - before
    };
    let rewrite = |changes: &[(&str, &str)]| {
        db.set_family_options(changes)?;
        fill(&db, 0, 2000)?;
        db.compact_range(None, None)
    };
    rewrite(&[])?;
    let (large, memory) = (blocks(Counter::CacheMisses), db.stats().table_memory_bytes);
    db.set_family_options(&[("block_bytes", "1KiB")])?;
    assert_eq!(blocks(Counter::CacheMisses), large, "a table stays as it was written");
    rewrite(&[])?;
    let small = blocks(Counter::CacheMisses);
    assert!(small > 3 * large, "{small} blocks, {large} before");
    rewrite(&[("block_bytes", "4KiB"), ("filter_bits_per_key", "0")])?;
    assert_eq!(blocks(Counter::CacheMisses), large);
    let without = db.stats().table_memory_bytes;
    assert!(without + 2000 < memory, "{without} bytes without a filter, {memory} with");
    assert_eq!(blocks(Counter::CacheIndexMisses), 0);
    rewrite(&[("partition_bytes", "128")])?;
    assert!(blocks(Counter::CacheIndexMisses) > 5);
    rewrite(&[("compression", "zstd:1")])?;
    assert_eq!(codecs(&db), ["6:zstd"]);
    db.set_family_options(&[("compression", "lz4")])?;
    fill(&db, 0, 10)?;
    db.flush()?;
    assert_eq!(codecs(&db), ["0:lz4", "6:zstd"]);
    assert_eq!(db.stats().files(), 2);
    rewrite(&[("table_bytes", "32KiB")])?;
    assert!(db.stats().files() > 4, "{} tables", db.stats().files());
    db.verify().map(drop)
}

/// A codec for each level: of level 0, of those between, of the deepest.
#[test]
fn levels_have_codecs_of_their_own() -> Result<(), Error> {
    let text = "[family]
        compression = lz4
        compression_by_level = none, none
        compression_bottommost = zstd:1
        memtable_bytes = 32KiB
        table_bytes = 16KiB
        level1_bytes = 16KiB
        level_multiplier = 2
        level0_compaction_files = 2";
    let mut options = options();
    options.apply_text(text)?;
    let db = Db::open(ROOT, options)?;
    // More and more data, so that more and more levels come into use.
    let mut seen = std::collections::BTreeSet::new();
    for round in 0..60 {
        for i in 0..400 {
            let number = (round * 400 + i) * 7919 % 100_000;
            db.put(&key(number), format!("{i:0100}").as_bytes())?;
        }
        db.flush()?;
        db.wait_for_background()?;
        seen.extend(codecs(&db));
    }
    let has = |codec: &str| seen.iter().any(|seen| seen == codec);
    assert!(has("6:zstd") && has("5:none"), "the base was 6 and 5 at first: {seen:?}");
    assert!(has("5:lz4"), "then 5 was between: {seen:?}");
    assert!(!seen.iter().any(|seen| seen.ends_with(":snappy")), "{seen:?}");
    db.set_family_options(&[("level0_compaction_files", "20")])?;
    fill(&db, 0, 1)?;
    db.flush()?;
    assert_eq!(codecs(&db)[0], "0:none");
    db.compact_range(None, None)?;
    assert!(codecs(&db).iter().all(|codec| codec == "6:zstd"), "all is in the deepest");
    db.verify().map(drop)
}

/// Dictionaries can be turned on: records of one form take less from the next
/// compaction on, and their values come back.
#[test]
fn dictionaries_make_small_records_smaller() -> Result<(), Error> {
    let mut options = options();
    options.family.set("compression", "zstd:3")?;
    options.family.set("block_bytes", "1KiB")?;
    let db = Db::open(ROOT, options)?;
    let record = |i: u32| {
        let amount = u64::from(i) * 7919 % 100_000;
        format!(
            "{{\"debit\":\"cash:{}\",\"credit\":\"sales:{}\",\"amount\":{amount},\
                 \"currency\":\"EUR\",\"memo\":\"invoice {i}\"}}",
            i % 91,
            i % 17
        )
    };
    let rewrite = || {
        (0..8000).try_for_each(|i| db.put(&key(i), record(i).as_bytes()))?;
        db.compact_range(None, None)?;
        Ok::<u64, Error>(db.stats().table_bytes())
    };
    let without = rewrite()?;
    assert_eq!(codecs(&db), ["6:zstd"]);
    db.set_family_options(&[
        ("dictionary_bytes", "16KiB"),
        ("dictionary_training_bytes", "256KiB"),
    ])?;
    let with = rewrite()?;
    assert_eq!(codecs(&db), ["6:zstd+dictionary"]);
    println!("{with} bytes with dictionaries, {without} without");
    assert!(with * 10 < without * 8, "{with} bytes with dictionaries, {without} without");
    for i in [0, 1, 4000, 7999] {
        assert_eq!(db.get(&key(i))?.as_deref(), Some(record(i).as_bytes()));
    }
    db.verify()?;
    // A flush is not worth one, and a compaction by later options has none.
    db.put(&key(0), b"new")?;
    db.flush()?;
    assert_eq!(codecs(&db), ["0:zstd", "6:zstd+dictionary"]);
    db.set_family_options(&[("dictionary_bytes", "0")])?;
    rewrite()?;
    assert_eq!(codecs(&db), ["6:zstd"]);
    Ok(())
}

/// What starts a compaction is looked at again when it changes: nobody has to
/// write first.
#[test]
fn compactions_start_by_the_new_limits() -> Result<(), Error> {
    let mut options = options();
    options.family.set("level0_compaction_files", "100")?;
    options.family.set("level0_slowdown_files", "200")?;
    options.family.set("level0_stop_files", "300")?;
    options.family.set("tombstone_percent", "0")?;
    options.family.set("tombstone_age_seconds", "0")?;
    options.family.set("table_bytes", "32KiB")?;
    let db = Db::open(ROOT, options)?;
    for _ in 0..5 {
        fill(&db, 0, 3000)?;
        db.flush()?;
    }
    db.wait_for_background()?;
    assert_eq!(db.stats().levels[0].files, 5);
    db.set_family_options(&[("level0_compaction_files", "4")])?;
    db.wait_for_background()?;
    assert_eq!(db.stats().levels[0].files, 0);
    let in_use = || db.stats().levels[1..].iter().filter(|level| level.files > 0).count();
    assert_eq!(in_use(), 1, "all fits into one level");
    // Smaller levels, of which there are more then: the next data shows it.
    db.set_family_options(&[("level1_bytes", "8KiB"), ("level0_compaction_files", "1")])?;
    fill(&db, 0, 200)?;
    db.flush()?;
    db.wait_for_background()?;
    assert_eq!(in_use(), 2);
    db.set_family_options(&[("level_multiplier", "2")])?;
    fill(&db, 0, 200)?;
    db.flush()?;
    db.wait_for_background()?;
    assert!(in_use() >= 3, "{:?}", db.stats().levels);
    Ok(())
}

/// Tombstones that were left alone are collected once there is a limit on
/// their number, or on their age.
#[test]
fn limits_on_tombstones_hold_from_the_next_pick_on() -> Result<(), Error> {
    for change in [("tombstone_percent", "10"), ("tombstone_age_seconds", "1s")] {
        let mut options = options();
        options.family.set("tombstone_percent", "0")?;
        options.family.set("tombstone_age_seconds", "0")?;
        let db = Db::open(ROOT, options)?;
        fill(&db, 0, 500)?;
        db.compact_range(None, None)?;
        (0..400).try_for_each(|i| db.delete(&key(i)))?;
        db.flush()?;
        if change.0 == "tombstone_age_seconds" {
            std::thread::sleep(Duration::from_millis(2100)); // ages are whole seconds
        }
        db.wait_for_background()?;
        let entries = || db.stats().levels.iter().map(|level| level.entries).sum::<u64>();
        assert_eq!(entries(), 900, "nobody minds");
        db.set_family_options(&[change])?;
        db.wait_for_background()?;
        assert_eq!(entries(), 100, "{change:?}");
    }
    Ok(())
}

/// A rate limits compactions that begin from then on, and taking it away lets
/// go what it held back.
#[test]
fn the_rate_of_the_background_can_change() -> Result<(), Error> {
    let mut options = options();
    options.family.set("compression", "none")?;
    let db = Db::open(ROOT, options)?;
    fill(&db, 0, 8000)?;
    db.set_options(&[("background_bytes_per_second", "8MiB")])?;
    let begin = Instant::now();
    db.compact_range(None, None)?;
    fill(&db, 0, 8000)?;
    db.compact_range(None, None)?;
    let limited = begin.elapsed();
    assert!(limited > Duration::from_millis(300), "two megabytes in {limited:?}");
    // At this rate it would take minutes.
    db.set_options(&[("background_bytes_per_second", "1KiB")])?;
    fill(&db, 0, 8000)?;
    let compaction = {
        let db = db.clone();
        std::thread::spawn(move || db.compact_range(None, None))
    };
    std::thread::sleep(Duration::from_millis(200));
    assert!(!compaction.is_finished(), "it is held back");
    db.set_options(&[("background_bytes_per_second", "0")])?;
    compaction.join().expect("it does not panic")?;
    Ok(())
}

/// Cache and open files shrink at once.
#[test]
fn cache_and_open_files_shrink_at_once() -> Result<(), Error> {
    let mut options = options();
    options.family.set("table_bytes", "16KiB")?;
    options.family.set("compression", "none")?;
    let db = Db::open(ROOT, options)?;
    for _ in 0..2 {
        fill(&db, 0, 3000)?;
        db.flush()?;
    }
    db.compact_range(None, None)?;
    assert_eq!(scan(&db), 3000);
    let capacity = || db.property("lodestore.block-cache-capacity").expect("it is known");
    assert!(db.stats().cache_bytes > 200_000, "{}", db.stats().cache_bytes);
    db.set_options(&[("cache_bytes", "16KiB")])?;
    assert_eq!(capacity(), (16 << 10).to_string());
    assert!(db.stats().cache_bytes <= 16 << 10, "{}", db.stats().cache_bytes);
    assert_eq!(count(&db, Counter::FilesClosed), 0);
    db.set_options(&[("open_files_max", "3")])?;
    let closed = count(&db, Counter::FilesClosed);
    assert!(closed as usize >= db.stats().files() - 3, "{closed} files were closed");
    assert_eq!(scan(&db), 3000);
    assert!(count(&db, Counter::FilesClosed) > closed, "they stay few");
    db.set_options(&[("open_files_max", "default")])?;
    scan(&db);
    let closed = count(&db, Counter::FilesClosed);
    assert_eq!((scan(&db), count(&db, Counter::FilesClosed)), (3000, closed));
    Ok(())
}
