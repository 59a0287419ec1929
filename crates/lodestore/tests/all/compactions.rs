//! Compactions that fail, that are cut into parts, that are held back: what
//! goes on meanwhile, and what is left.

use lodestore::fs::{Fault, FaultFs, Operation};
use lodestore::inspect::Survey;
use lodestore::{
    Compression, Counter, Db, Error, FilterAnswer, Fs, MemFs, Options, RateLimiter, ReadOptions,
    Scheduler, WriteOptions,
};
use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

const ROOT: &str = "/compactions";
const NOW: WriteOptions = WriteOptions { sync: false, no_slowdown: true, deadline: None };

fn options(fs: Arc<dyn Fs>) -> Options {
    let mut options = Options { create_if_missing: true, fs, ..Options::default() };
    options.family.level0_compaction_files = 2;
    options.family.level0_slowdown_files = 6;
    options.family.level0_stop_files = 7;
    options
}

/// Writes every key and flushes.
fn round(db: &Db, round: u8) -> Result<(), Error> {
    for key in 0..50u8 {
        db.put(&[key], &[round; 100])?;
    }
    db.flush()
}

/// Writes until compactions are behind by as many tables as stop writers.
fn fill_level_0(db: &Db, from: u8) -> Result<u8, Error> {
    let mut last = from;
    while db.stats().levels[0].files < 7 {
        last += 1;
        round(db, last)?;
    }
    Ok(last)
}

fn table_files(fs: &dyn Fs) -> usize {
    let names = fs.list(Path::new(ROOT)).expect("the directory is there");
    names.iter().filter(|name| name.ends_with(".table")).count()
}

/// A table that cannot be read ends compactions and nothing else: writes,
/// flushes and reads go on until level 0 is full, and then say why they stop.
/// `resume` starts compactions again, and nothing is lost.
#[test]
fn an_unreadable_table_stops_compactions_only() -> Result<(), Error> {
    let failing = FaultFs::new(Arc::new(MemFs::new()));
    let db = Db::open(ROOT, options(Arc::new(failing.clone())))?;
    failing.inject(Fault::new(Operation::Read, 1, ErrorKind::Other).on(".table").forever());
    round(&db, 1)?;
    round(&db, 2)?;
    assert!(matches!(db.wait_for_background(), Err(Error::Io { .. })));
    let cause = db.property("lodestore.background-error").expect("it is known");
    assert!(cause.contains("compactions stopped: IO error") && cause.contains(".table"), "{cause}");
    assert_eq!(db.property("lodestore.background-errors").as_deref(), Some("1"));
    let last = fill_level_0(&db, 2)?;
    assert!(matches!(db.put(b"x", b"y"), Err(Error::Io { .. })), "told, and not left waiting");
    assert!(matches!(db.put_with(&NOW, b"x", b"y"), Err(Error::Stalled { .. })));
    failing.heal();
    assert_eq!(db.get(&[7])?.as_deref(), Some(&[last; 100][..]));
    db.resume()?;
    db.wait_for_background()?;
    assert_eq!(db.property("lodestore.background-error").as_deref(), Some(""));
    assert_eq!(db.stats().files(), 1, "all was compacted");
    db.put(b"x", b"y")?;
    db.verify().map(drop)
}

/// The same for a table whose bytes have rotted. Its file stays as it is.
#[test]
fn a_rotten_table_stops_compactions_only() -> Result<(), Error> {
    let disk = MemFs::new();
    let db = Db::open(ROOT, options(Arc::new(disk.clone())))?;
    round(&db, 1)?;
    let names = disk.list(Path::new(ROOT)).expect("the directory is there");
    let table = names.iter().find(|name| name.ends_with(".table")).expect("one was flushed");
    let path = Path::new(ROOT).join(table);
    let mut bytes = lodestore::fs::read_all(&disk, &path).expect("it can be read");
    bytes[100] ^= 1;
    let mut file = disk.create(&path).expect("it can be written");
    file.append(&bytes).expect("memory has room");
    round(&db, 2)?;
    assert!(db.wait_for_background().expect_err("it is rotten").is_corruption());
    fill_level_0(&db, 2)?;
    assert!(db.put(b"x", b"y").expect_err("level 0 is full").is_corruption());
    db.resume()?;
    assert!(db.wait_for_background().expect_err("it still is").is_corruption());
    assert!(disk.list(Path::new(ROOT)).expect("it is there").contains(table), "inputs are kept");
    assert!(db.get(&[7])?.is_some(), "newer tables hold the key");
    Ok(())
}

fn parts_options(fs: Arc<dyn Fs>, threads: usize) -> Options {
    let mut options = Options { background_threads: threads, ..options(fs) };
    options.family.table_bytes = 4 << 10;
    options.family.level1_bytes = 16 << 10;
    options.family.block_bytes = 256;
    options.family.level0_compaction_files = 6;
    options
}

fn put_all(db: &Db, value: u64) -> Result<(), Error> {
    for key in 0..2000u32 {
        db.put(&key.wrapping_mul(7919).to_be_bytes(), &testkit::random::bytes(50, value))?;
    }
    db.flush()
}

fn check_all(db: &Db, value: u64) -> Result<(), Error> {
    let expected = testkit::random::bytes(50, value);
    for key in 0..2000u32 {
        let found = db.get(&key.wrapping_mul(7919).to_be_bytes())?;
        assert_eq!(found.as_deref(), Some(&expected[..]), "{key}");
    }
    assert_eq!(db.range(..).count(), 2000);
    db.verify().map(drop)
}

/// A large compaction is cut into parts, which together come to what it would
/// have come to in one; with one thread it is not cut.
#[test]
fn compactions_are_cut_into_parts_that_come_to_the_same() -> Result<(), Error> {
    for threads in [1, 3] {
        let disk = MemFs::new();
        let db = Db::open(ROOT, parts_options(Arc::new(disk.clone()), threads))?;
        for value in 0..3 {
            put_all(&db, value)?;
            db.compact_range(None, None)?;
            check_all(&db, value)?;
        }
        let parts = db.statistics().get(Counter::CompactionParts);
        assert_eq!(parts > 1, threads > 1, "{parts} parts with {threads} threads");
        db.wait_for_background()?;
        assert_eq!(table_files(&disk), db.stats().files(), "nothing else is left");
    }
    Ok(())
}

/// When one part fails nothing of the others is installed or left behind.
#[test]
fn a_failed_part_leaves_nothing_of_the_others() -> Result<(), Error> {
    for nth in [1, 5, 12] {
        let failing = FaultFs::new(Arc::new(MemFs::new()));
        let mut options = parts_options(Arc::new(failing.clone()), 3);
        options.family.level1_bytes = 1 << 20; // level 0 waits for the caller
        let db = Db::open(ROOT, options)?;
        put_all(&db, 1)?;
        db.compact_range(None, None)?;
        put_all(&db, 2)?;
        db.wait_for_background()?;
        let before = db.stats().files();
        failing.inject(Fault::new(Operation::Sync, nth, ErrorKind::Other).on(".table"));
        assert!(matches!(db.compact_range(None, None), Err(Error::Io { .. })), "part {nth}");
        assert_eq!(failing.struck(), 1);
        db.wait_for_background()?;
        assert_eq!(table_files(&failing), db.stats().files());
        assert!(db.stats().files() >= before, "inputs are kept");
        check_all(&db, 2)?;
        db.compact_range(None, None)?;
        check_all(&db, 2)?;
    }
    Ok(())
}

/// Who closes a database need not wait for a compaction: it gives up, leaves no file,
/// and begins anew at the next open.
#[test]
fn closing_gives_up_a_running_compaction() -> Result<(), Error> {
    for threads in [1, 3] {
        let disk = MemFs::new();
        // No compaction of more than this comes to an end by itself.
        let slow =
            Options { background_bytes_per_second: 1 << 10, ..options(Arc::new(disk.clone())) };
        let mut slow = Options { background_threads: threads, ..slow };
        slow.family.table_bytes = 256 << 10;
        let db = Db::open(ROOT, slow.clone())?;
        for value in 0..2 {
            for key in 0..4000u32 {
                db.put(&key.to_be_bytes(), &testkit::random::bytes(1000, value))?;
            }
            db.flush()?;
        }
        while db.property("lodestore.num-running-compactions").as_deref() != Some("1") {
            std::thread::yield_now();
        }
        let flushed = db.stats().files();
        drop(db);
        assert_eq!((flushed, table_files(&disk)), (2, 2), "only what was flushed is left");
        let read = Db::open_read_only(ROOT, slow.clone())?;
        assert_eq!(read.stats().levels[0].files, 2, "nothing was compacted");
        drop(read);
        let db = Db::open(ROOT, Options { background_bytes_per_second: 0, ..slow })?;
        db.wait_for_background()?;
        assert_eq!(db.stats().levels[0].files, 0);
        assert_eq!(db.range(..).count(), 4000);
        assert_eq!(table_files(&disk), db.stats().files());
    }
    Ok(())
}

/// Who opens a database for a moment does not have it compacted; who keeps it open does.
#[test]
fn compactions_that_are_due_wait_until_a_database_is_open_for_a_while() -> Result<(), Error> {
    let disk = MemFs::new();
    let mut many = options(Arc::new(disk.clone()));
    many.family.level0_slowdown_files = 20;
    many.family.level0_stop_files = 20;
    many.family.level0_compaction_files = 20;
    let db = Db::open(ROOT, many)?;
    for value in 2..5 {
        round(&db, value)?;
    }
    drop(db);
    let due = options(Arc::new(disk));
    // No time passes by itself for a seeded scheduler.
    let moment = Options { scheduler: Some(Scheduler::seeded(2, 1)), ..due.clone() };
    for _ in 0..20 {
        let db = Db::open(ROOT, moment.clone())?;
        assert_eq!(db.get(&[7])?.as_deref(), Some(&[4; 100][..]));
        assert_eq!(db.stats().levels[0].files, 3);
    }
    let db = Db::open(ROOT, due)?;
    while db.stats().levels[0].files > 0 {
        std::thread::yield_now();
    }
    db.verify().map(drop)
}

/// Two databases write no faster together than their limiter says, by the
/// scheduler's clock, and flushes do not wait for it.
#[test]
fn databases_share_a_rate_limiter() -> Result<(), Error> {
    const RATE: u64 = 100_000;
    let scheduler = Scheduler::seeded(2, 1);
    let limiter = RateLimiter::with_floor(&scheduler, RATE, RATE);
    let mut written = 0;
    for _ in 0..2 {
        let options = Options {
            scheduler: Some(Arc::clone(&scheduler)),
            rate_limiter: Some(Arc::clone(&limiter)),
            ..parts_options(Arc::new(MemFs::new()), 1)
        };
        let db = Db::open(ROOT, options)?;
        for value in 0..3 {
            put_all(&db, value)?;
            db.compact_range(None, None)?;
        }
        check_all(&db, 2)?;
        written += db.stats().compaction_bytes_written;
    }
    let least = Duration::from_secs_f64(written as f64 / RATE as f64 * 0.8);
    assert!(written > RATE && limiter.waited() >= least, "{written} in {:?}", limiter.waited());
    Ok(())
}

/// A checkpoint that fails leaves nothing: the next one may have the name.
#[test]
fn a_failed_checkpoint_leaves_nothing() -> Result<(), Error> {
    let failing = FaultFs::new(Arc::new(MemFs::new()));
    let db = Db::open(ROOT, options(Arc::new(failing.clone())))?;
    round(&db, 1)?;
    for fault in [
        Fault::new(Operation::Append, 1, ErrorKind::Other).on("/copy/MANIFEST"),
        Fault::new(Operation::Sync, 1, ErrorKind::Other).on("/copy/"),
        Fault::new(Operation::Rename, 1, ErrorKind::Other),
    ] {
        failing.inject(fault);
        assert!(matches!(db.checkpoint("/copy"), Err(Error::Io { .. })));
        failing.heal();
        let left = failing.list(Path::new("/copy"));
        assert!(left.is_err_and(|error| error.kind() == ErrorKind::NotFound), "it is gone");
    }
    db.checkpoint("/copy")?;
    let copy = Db::open("/copy", options(Arc::new(failing)))?;
    assert_eq!(copy.get(&[7])?.as_deref(), Some(&[1; 100][..]));
    Ok(())
}

/// Tables that are where they belong keep what they were written with through
/// any compaction; rewriting gives them the options of now, and changes nothing
/// else.
#[test]
fn rewriting_applies_the_options_of_now() -> Result<(), Error> {
    let fs: Arc<dyn Fs> = Arc::new(MemFs::new());
    let mut options = Options { create_if_missing: true, fs, ..Options::default() };
    options.family.compression = Compression::None;
    options.family.filter_bits_per_key = 0;
    let db = Db::open(ROOT, options)?;
    for n in 0..2_000u32 {
        db.put(&n.to_be_bytes(), &[7; 100])?;
    }
    let snapshot = db.snapshot();
    db.put(&7u32.to_be_bytes(), b"new")?;
    db.compact_range(None, None)?;
    let bytes = db.stats().table_bytes();
    db.set_family_options(&[("compression", "zstd:3"), ("filter_bits_per_key", "10")])?;
    db.compact_range(Some(&100u32.to_be_bytes()), None)?;
    db.rewrite_range(Some(b"zzzz"), None)?;
    let kept = db.stats().table_bytes();
    assert!(kept > bytes / 2, "{kept} of {bytes}: nothing asked for a rewrite");
    db.rewrite_range(None, None)?;
    let rewritten = db.stats().table_bytes();
    assert!(rewritten < bytes / 4, "{rewritten} of {bytes}");
    assert!(db.property("lodestore.tables").is_some_and(|tables| !tables.contains("codec none")));
    let told = db.explain(&ReadOptions::default(), &[0, 0, 0, 50, 1])?;
    assert!(told.places.iter().any(|place| place.filter == FilterAnswer::Denied), "{told}");
    let (key, then) = (7u32.to_be_bytes(), ReadOptions::at(&snapshot));
    assert_eq!(db.get(&key)?.as_deref(), Some(&b"new"[..]));
    assert_eq!(db.get_with(&then, &key)?.as_deref(), Some(&[7; 100][..]));
    assert_eq!(db.range(..).count(), 2_000);
    db.verify().map(drop)
}

/// A database with three tables in level 0, which merging them now would not be
/// worth while for, and more below.
fn unmerged(fs: MemFs) -> Result<Db, Error> {
    let mut options = options(Arc::new(fs));
    options.family.level0_compaction_files = 6;
    let db = Db::open(ROOT, options)?;
    for key in 0..200u8 {
        db.put(&[key], &[0; 100])?;
    }
    db.flush()?;
    db.compact_range(None, None)?;
    (1..4).try_for_each(|n| round(&db, n))?;
    assert_eq!(db.stats().levels[0].files, 3);
    Ok(db)
}

/// Whoever waits until nothing is left to do has level 0 merged for readers,
/// though its limit is not reached; and nothing is done twice.
#[test]
fn waiting_for_the_background_merges_level_0() -> Result<(), Error> {
    let db = unmerged(MemFs::new())?;
    db.wait_for_background()?;
    assert_eq!((db.stats().levels[0].files, db.stats().files()), (0, 1));
    let compactions = db.statistics().get(Counter::Compactions);
    db.wait_for_background()?;
    assert_eq!(db.statistics().get(Counter::Compactions), compactions);
    assert_eq!(db.get(&[7])?.as_deref(), Some(&[3; 100][..]));
    assert_eq!(db.get(&[77])?.as_deref(), Some(&[0; 100][..]));
    Ok(())
}

/// The same happens by itself once nothing was flushed for a few seconds.
#[test]
fn a_database_at_rest_merges_level_0() -> Result<(), Error> {
    let db = unmerged(MemFs::new())?;
    let begin = std::time::Instant::now();
    while db.stats().levels[0].files > 0 {
        assert!(begin.elapsed() < Duration::from_secs(60), "it is at rest long since");
        std::thread::sleep(Duration::from_millis(50));
    }
    Ok(())
}

/// A compaction writes a new file with old deletes: how old these are is not
/// forgotten, and where there are none, nothing is said.
#[test]
fn deletes_keep_their_age_in_new_files() -> Result<(), Error> {
    let fs: Arc<dyn Fs> = Arc::new(MemFs::new());
    let db = Db::open(ROOT, options(Arc::clone(&fs)))?;
    let times = || -> Result<(u64, u64), Error> {
        let survey = Survey::read(&fs, Path::new(ROOT))?;
        let tables: Vec<_> = survey.families[0].levels.concat();
        let [table] = &tables[..] else { panic!("there is one table") };
        Ok((table.created_unix_seconds, table.tombstones_unix_seconds))
    };
    db.put(b"k", b"v")?;
    let _kept_for = db.snapshot();
    db.flush()?;
    assert_eq!(times()?.1, 0, "nothing is deleted");
    db.delete(b"k")?;
    db.compact_range(None, None)?;
    let (created, tombstones) = times()?;
    assert!(created > 0 && tombstones > 0);
    std::thread::sleep(Duration::from_millis(1100));
    db.rewrite_range(None, None)?;
    let (later, same) = times()?;
    assert!(later > created, "the file is another");
    assert_eq!(same, tombstones);
    Ok(())
}
