//! What a database counts and times, and what it tells other processes.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use lodestore::inspect::{FileUse, Status, Survey};
use lodestore::{Counter, Db, Error, Fs, MemFs, Operation, Options, Statistics, WriteOptions};

const DIRECTORY: &str = "db";

fn options(fs: &Arc<dyn Fs>) -> Options {
    let mut options = Options { create_if_missing: true, fs: Arc::clone(fs), ..Options::default() };
    options.family.table_bytes = 64 << 10;
    options.family.level1_bytes = 128 << 10;
    options.family.memtable_bytes = 64 << 10;
    options
}

fn open(change: impl FnOnce(&mut Options)) -> (Db, Arc<dyn Fs>) {
    let fs: Arc<dyn Fs> = Arc::new(MemFs::new());
    let mut options = options(&fs);
    change(&mut options);
    (Db::open(DIRECTORY, options).expect("it opens"), fs)
}

fn load(db: &Db, keys: u32) {
    for i in 0..keys {
        db.put(&i.wrapping_mul(0x9e37_79b9).to_be_bytes(), &[i as u8; 100]).unwrap();
    }
}

/// All that a write adds to the log's file is counted: headers of records too, and what
/// fills a synced one up to a block.
#[test]
fn the_log_grows_by_what_is_counted() {
    const FILE_HEADER_BYTES: u64 = 4_096;
    let (db, fs) = open(|options| options.family.memtable_bytes = 1 << 20);
    let newest_log_bytes = || {
        let names = fs.list(Path::new(DIRECTORY)).unwrap();
        let newest = names.iter().filter(|name| name.ends_with(".wal")).max().unwrap();
        fs.length(&Path::new(DIRECTORY).join(newest)).unwrap()
    };
    let counted = || db.statistics().get(Counter::LogBytes);
    load(&db, 100);
    assert_eq!(newest_log_bytes(), FILE_HEADER_BYTES + counted());
    // A short record: 8 bytes, the count, the tag, two lengths, key and value, fill.
    assert!((100 * 120..100 * 121).contains(&counted()), "{}", counted());
    for i in 0..10u8 {
        db.put_with(&WriteOptions::SYNCED, &[i], b"synced").unwrap();
    }
    assert_eq!(newest_log_bytes(), FILE_HEADER_BYTES + counted());
    assert!(counted() > 10 * 4_096, "{}", counted());
}

/// Operations are timed: short ones in part, long ones all.
#[test]
fn operations_are_timed() {
    let (db, _) = open(|_| {});
    load(&db, 20_000);
    db.flush().unwrap();
    db.compact_range(None, None).unwrap();
    for i in 0..20_000u32 {
        db.get(&i.to_be_bytes()).unwrap();
    }
    let mut cursor = db.cursor();
    (0..2_000u32).for_each(|i| cursor.seek(&i.to_be_bytes()));
    (0..2_000).for_each(|_| drop(db.multi_get(&[b"a", b"b"])));

    let statistics = db.statistics();
    let samples = |operation| statistics.latency(operation).samples();
    assert!((800..1_800).contains(&samples(Operation::Write)), "{}", samples(Operation::Write));
    assert!((800..1_800).contains(&samples(Operation::Get)), "{}", samples(Operation::Get));
    assert!((60..250).contains(&samples(Operation::Seek)), "{}", samples(Operation::Seek));
    assert!((60..250).contains(&samples(Operation::MultiGet)), "{}", samples(Operation::MultiGet));
    assert_eq!(samples(Operation::Compaction), statistics.get(Counter::Compactions));
    assert!(samples(Operation::Flush) > 10);
    for operation in Operation::ALL {
        let of = statistics.latency(operation);
        let (p50, p99) = (of.percentile(50.0), of.percentile(99.0));
        assert!(Duration::ZERO < p50 && p50 <= p99 && p99 <= of.max(), "{operation:?}");
    }
    let text = db.property("lodestore.latencies").unwrap();
    assert!(text.lines().count() == 7 && text.contains("p99.9"), "{text}");
}

/// With the option off, nothing is timed; everything else is counted as before.
#[test]
fn latencies_can_be_turned_off() {
    let (db, _) = open(|options| options.latencies = false);
    load(&db, 2_000);
    db.flush().unwrap();
    db.compact_range(None, None).unwrap();
    (0..2_000u32).for_each(|i| drop(db.get(&i.to_be_bytes()).unwrap()));
    db.cursor().first();
    db.multi_get(&[b"a"]);
    for operation in Operation::ALL {
        assert_eq!(db.statistics().latency(operation).samples(), 0, "{operation:?}");
    }
    assert_eq!(db.statistics().get(Counter::RecordsWritten), 2_000);
}

/// What each level gets adds up to what flushes and compactions wrote, and what
/// they read to what compactions read.
#[test]
fn traffic_by_level_adds_up() {
    let (db, _) = open(|_| {});
    load(&db, 20_000);
    db.flush().unwrap();
    db.wait_for_background().unwrap();
    db.compact_range(None, None).unwrap();
    let stats = db.stats();
    let sum = |of: fn(&lodestore::LevelTraffic) -> u64| stats.traffic.iter().map(of).sum::<u64>();
    assert_eq!(stats.traffic.len(), stats.levels.len());
    assert_eq!(stats.traffic[0].bytes_written, stats.flush_bytes_written);
    let written = stats.flush_bytes_written + stats.compaction_bytes_written;
    assert_eq!(sum(|level| level.bytes_written), written);
    assert_eq!(sum(|level| level.bytes_read), stats.compaction_bytes_read);
    assert!(stats.traffic[0].bytes_read > 0 && stats.traffic[6].bytes_written > 0);
    assert_eq!(stats.scores[0], 0.0, "level 0 is empty");
    assert!(db.property("lodestore.traffic").unwrap().lines().count() == 8);
}

/// Tables that go down unread are counted as moved, by bytes.
#[test]
fn moves_are_counted_by_level() {
    let (db, _) = open(|_| {});
    for i in 0..10_000u32 {
        db.put(&i.to_be_bytes(), &[7; 100]).unwrap();
    }
    db.flush().unwrap();
    db.wait_for_background().unwrap();
    let stats = db.stats();
    let moved: u64 = stats.traffic.iter().map(|level| level.bytes_moved).sum();
    assert!(db.statistics().get(Counter::TrivialMoves) > 0);
    assert!(moved > 0 && moved <= stats.flush_bytes_written * 6);
    assert_eq!(stats.traffic[0].bytes_moved, 0);
}

/// Reads are counted by what they were for: compactions do not spoil the hit
/// rate of lookups.
#[test]
fn reads_of_compactions_are_apart() {
    let (db, _) = open(|_| {});
    load(&db, 5_000);
    db.flush().unwrap();
    db.compact_range(None, None).unwrap();
    let count = |counter| db.statistics().get(counter);
    assert!(count(Counter::CompactionBytesRead) > 0);
    assert_eq!((count(Counter::CacheMisses), count(Counter::BlockReads)), (0, 0));
    assert!(db.get(&0u32.to_be_bytes()).unwrap().is_some());
    assert_eq!((count(Counter::CacheMisses), count(Counter::BlockReads)), (1, 1));
    assert!(db.get(&0u32.to_be_bytes()).unwrap().is_some());
    assert_eq!((count(Counter::CacheMisses), count(Counter::CacheHits)), (1, 1));
}

/// The difference of two snapshots is what was done between them.
#[test]
fn snapshots_of_statistics_can_be_compared() {
    let statistics = Arc::new(Statistics::default());
    let (db, _) = open(|options| options.statistics = Some(Arc::clone(&statistics)));
    load(&db, 200);
    db.flush().unwrap();
    let before = statistics.snapshot();
    load(&db, 300);
    db.flush().unwrap();
    let since = statistics.snapshot().since(&before);
    assert_eq!((since.get(Counter::RecordsWritten), since.get(Counter::Flushes)), (300, 1));
    assert_eq!(since.latency(Operation::Flush).samples(), 1);
    assert_eq!(since.traffic()[0].bytes_written, since.get(Counter::FlushBytes));
}

/// Every name of a property has a value.
#[test]
fn properties_are_listed_with_values() {
    let (db, _) = open(|_| {});
    let names: Vec<String> = lodestore::Family::property_names().collect();
    for name in &names {
        assert!(db.property(name).is_some(), "{name}");
    }
    assert!(names.len() > 25 && db.property("lodestore.colour").is_none());
    assert_eq!(db.property("rocksdb.total-sst-files-size"), db.property("lodestore.table-bytes"));
}

/// Waits for a status that `is_wanted`.
fn status_when(fs: &dyn Fs, is_wanted: impl Fn(&Status) -> bool) -> Status {
    for _ in 0..2_000 {
        let status = Status::read(fs, Path::new(DIRECTORY)).expect("it can be read");
        if let Some(status) = status.filter(|status| is_wanted(status)) {
            return status;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    panic!("the status never told what it should");
}

fn every_10_ms(options: &mut Options) {
    options.status_interval = Some(Duration::from_millis(10));
}

/// A database that is asked to tells other processes how it is, and takes it
/// back when it is closed.
#[test]
fn a_status_is_told_and_taken_back() {
    let (db, fs) = open(every_10_ms);
    load(&db, 5_000);
    db.flush().unwrap();
    db.wait_for_background().unwrap();
    for i in 0..1_000u32 {
        db.get(&i.to_be_bytes()).unwrap();
    }
    let status = status_when(&*fs, |status| status.counter("read.gets").0 == 1_000);
    assert_eq!(status.pid, std::process::id());
    assert_eq!(status.interval, Duration::from_millis(10));
    assert_eq!(status.counter("write.records").0, 5_000);
    let tables: usize = status.families[0].levels.iter().map(|level| level.files).sum();
    assert_eq!((tables, &status.families[0].name[..]), (db.stats().files(), "default"));
    assert!(status.memory_bytes > 0 && status.cache_bytes_max > 0);

    // What was done in a window is told in one of the statuses after it.
    let reading = std::thread::spawn({
        let db = db.clone();
        move || (0..2_000_000u32).for_each(|i| drop(db.get(&i.to_be_bytes()).unwrap()))
    });
    let status = status_when(&*fs, |status| status.counter("read.gets").1 > 0);
    let latency = status.latencies.iter().find(|latency| latency.name == "get");
    assert!(latency.is_some_and(|get| get.samples > 0 && get.p50 <= get.p999), "{status:?}");
    reading.join().unwrap();

    let survey = Survey::read(&fs, Path::new(DIRECTORY)).unwrap();
    let usage = |name: &str| survey.files.iter().find(|f| f.name == name).map(|f| f.usage);
    assert_eq!(usage("STATUS"), Some(FileUse::Administration));
    db.checkpoint("copy").unwrap();
    assert!(!fs.list(Path::new("copy")).unwrap().iter().any(|name| name.starts_with("STATUS")));
    drop(db);
    assert!(!fs.list(Path::new(DIRECTORY)).unwrap().iter().any(|name| name.starts_with("STATUS")));
}

/// Nobody tells anything unless asked to, and what a process that was killed
/// left behind goes at the next open.
#[test]
fn a_stale_status_goes_at_the_next_open() {
    let (db, fs) = open(|_| {});
    db.put(b"a", b"1").unwrap();
    assert_eq!(Status::read(&*fs, Path::new(DIRECTORY)).unwrap(), None);
    drop(db);
    for name in ["STATUS", "STATUS.next"] {
        let mut file = fs.create(&Path::new(DIRECTORY).join(name)).unwrap();
        file.append(b"lodestore-status 1\nprocess 1 1\n").unwrap();
        file.close().unwrap();
    }
    let db = Db::open(DIRECTORY, options(&fs)).unwrap();
    assert_eq!(Status::read(&*fs, Path::new(DIRECTORY)).unwrap(), None);
    assert_eq!(db.get(b"a").unwrap().as_deref(), Some(&b"1"[..]));
}

/// What cannot be done is refused.
#[test]
fn wrong_intervals_are_refused() {
    let (db, fs) = open(|_| {});
    drop(db);
    let refused = |options: Options, opened: fn(Options) -> Result<Db, Error>| {
        let error = opened(options).expect_err("it is refused");
        assert!(matches!(error, Error::InvalidArgument { .. }), "{error}");
        assert!(error.to_string().contains("status_interval"), "{error}");
    };
    let with =
        |millis| Options { status_interval: Some(Duration::from_millis(millis)), ..options(&fs) };
    refused(with(9), |options| Db::open(DIRECTORY, options));
    refused(with(10), |options| Db::open_read_only(DIRECTORY, options));
}
