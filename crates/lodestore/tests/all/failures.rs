//! Failures at one chosen place, and what must still hold after them: for
//! sequences that failing each call in turn does not reach.

use lodestore::fs::{Fault, FaultFs, Fs, Operation};
use lodestore::{Db, Family, IngestOptions, MemFs, Options, TableWriter, WriteOptions};
use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

const EMFILE: i32 = 24;
const ENOSPC: i32 = 28;
const ROOT: &str = "/failures";

struct Disk {
    memory: MemFs,
    failing: FaultFs,
}

impl Disk {
    fn new() -> Disk {
        let memory = MemFs::new();
        let failing = FaultFs::new(Arc::new(memory.clone()));
        Disk { memory, failing }
    }

    fn options(&self) -> Options {
        let fs = Arc::new(self.failing.clone());
        Options { create_if_missing: true, fs, ..Options::default() }
    }

    fn open(&self) -> Db {
        Db::open(ROOT, self.options()).expect("it opens")
    }

    /// What a process finds that starts after this one was killed now.
    fn reopen_after_kill(&self) -> lodestore::Result<Db> {
        let fs = Arc::new(self.memory.kill());
        Db::open(ROOT, Options { fs, ..Options::default() })
    }

    /// How long the file is of the log's newest segment.
    fn newest_log_bytes(&self) -> u64 {
        let names = self.memory.list(Path::new(ROOT)).expect("listed");
        let newest = names.iter().filter(|name| name.ends_with(".wal")).max().expect("a log");
        self.memory.length(&Path::new(ROOT).join(newest)).expect("it is there")
    }
}

const SYNCED: WriteOptions = WriteOptions::SYNCED;

/// The manifest's sync fails, but its bytes are there: the table that they
/// name must be too, although the flush has failed.
#[test]
fn a_table_stays_while_the_manifest_may_name_it() {
    let disk = Disk::new();
    let db = disk.open();
    db.put(b"key", b"value").expect("written");
    disk.failing.inject(Fault::new(Operation::Sync, 1, ErrorKind::Other).on("MANIFEST"));
    disk.failing.inject(Fault::new(Operation::Truncate, 1, ErrorKind::Other).on("MANIFEST"));
    assert!(db.flush().is_err());
    let again = disk.reopen_after_kill().expect("it opens");
    assert_eq!(again.get(b"key").expect("read").as_deref(), Some(&b"value"[..]));
    again.verify().expect("all tables are there");
}

/// The disk is full for the manifest and not for the log: a log that is begun
/// meanwhile must not claim to follow edits that no manifest has.
#[test]
fn logs_begun_while_the_manifest_fails_are_replayed() {
    let disk = Disk::new();
    let mut options = disk.options();
    options.family.memtable_bytes = 64 << 10;
    options.family.sealed_memtables_max = 3;
    let db = Db::open(ROOT, options).expect("it opens");
    disk.failing.inject(Fault::os(Operation::Append, 1, ENOSPC).on("MANIFEST").forever());
    let put = |key: u32| db.put(&key.to_be_bytes(), &[1; 512]);
    let mut written = 0;
    while disk.failing.struck() == 0 {
        put(written).expect("the log has room");
        written += 1;
        std::thread::sleep(std::time::Duration::from_micros(100));
    }
    // Each further try begins a new manifest, in vain.
    let tries = disk.failing.struck() + 3;
    while disk.failing.struck() < tries {
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    let begun = || disk.failing.calls(Operation::Preallocate);
    let before = begun();
    while put(written).is_ok() {
        written += 1;
    }
    assert!(begun() > before, "another log was begun");
    let again = disk.reopen_after_kill().expect("it opens");
    for key in 0..written {
        assert!(again.get(&key.to_be_bytes()).expect("read").is_some(), "{key}");
    }
}

/// After a segment could not be begun, a checkpoint has the one before whole.
#[test]
fn a_checkpoint_after_a_failed_rotation_has_everything() {
    let disk = Disk::new();
    let db = disk.open();
    db.put(b"key", b"value").expect("written");
    disk.failing.inject(Fault::os(Operation::Preallocate, 1, ENOSPC));
    assert!(db.flush().is_err(), "no new log, so no flush");
    db.checkpoint("/copy").expect("a checkpoint");
    let options = Options { create_if_missing: false, ..disk.options() };
    let copy = Db::open("/copy", options).expect("the copy opens");
    assert_eq!(copy.get(b"key").expect("read").as_deref(), Some(&b"value"[..]));
}

/// A database that was opened for reading writes nothing, whatever is asked.
#[test]
fn a_read_only_database_never_compacts() {
    let disk = Disk::new();
    let mut options = disk.options();
    options.family.level0_compaction_files = 30;
    options.family.level0_slowdown_files = 30;
    options.family.level0_stop_files = 30;
    let db = Db::open(ROOT, options).expect("it opens");
    for round in 0..8u8 {
        db.put(b"key", &[round]).expect("written");
        db.flush().expect("flushed");
    }
    drop(db);
    let before = disk.memory.operations();
    let db = Db::open_read_only(ROOT, disk.options()).expect("it opens");
    db.wait_for_background().expect("there is nothing to wait for");
    assert!(db.checkpoint("/copy").is_err());
    drop(db);
    assert_eq!(disk.memory.operations(), before);
}

/// A full disk, or quota, is told to who flushes; when space returns, the flush
/// is done without anybody's help, and what was written in vain is gone. Other
/// databases' flushes go on meanwhile.
#[test]
fn a_flush_to_a_full_disk_says_so_and_keeps_no_one_waiting() {
    for reason in [ErrorKind::StorageFull, ErrorKind::QuotaExceeded] {
        let (full, fine) = (Disk::new(), Disk::new());
        let scheduler = Some(lodestore::Scheduler::new(1));
        let open = |disk: &Disk| {
            let options = Options { scheduler: scheduler.clone(), ..disk.options() };
            Db::open(ROOT, options).expect("opens")
        };
        let (db, other) = (open(&full), open(&fine));
        db.put(b"key", b"value").expect("written");
        other.put(b"key", b"value").expect("written");
        full.failing.inject(Fault::new(Operation::Append, 1, reason).on(".table").forever());
        assert!(db.flush().is_err());
        other.flush().expect("its disk has room");
        full.failing.heal();
        db.wait_for_background().expect("space returned");
        assert_eq!(db.stats().files(), 1);
        let names = full.memory.list(Path::new(ROOT)).expect("listed");
        let tables = names.iter().filter(|name| name.ends_with(".table")).count();
        assert_eq!(tables, 1, "what the failed flush had written is gone: {names:?}");
        db.put(b"key", b"value").expect("written without a resume");
    }
}

/// A flush that finds no room gets what the log has asked for ahead. What is written
/// afterwards is there, and when space returns all goes on.
#[test]
fn a_full_disk_gets_the_room_that_the_log_does_not_use() {
    let disk = Disk::new();
    let db = disk.open();
    db.put(b"before", b"1").expect("written");
    let ahead = disk.newest_log_bytes();
    disk.failing.inject(Fault::os(Operation::Append, 1, ENOSPC).on(".table").forever());
    assert!(db.flush().is_err());
    let deadline = Instant::now() + Duration::from_secs(10);
    while disk.newest_log_bytes() >= ahead {
        assert!(Instant::now() < deadline, "the new segment keeps its room");
        std::thread::sleep(Duration::from_millis(5));
    }
    db.put_with(&SYNCED, b"synced", b"2").expect("the log has room");
    db.put(b"after", b"3").expect("the log has room");
    disk.failing.heal();
    db.wait_for_background().expect("space returned");
    assert_eq!(db.stats().files(), 1);
    let again = disk.reopen_after_kill().expect("it opens");
    for key in [&b"before"[..], b"synced", b"after"] {
        assert!(again.get(key).expect("read").is_some(), "{key:?}");
    }
}

/// The log that `resume` begins leaves its room to the tables that must come first:
/// otherwise each try would take away what the next one needs.
#[test]
fn resuming_on_a_full_disk_leaves_the_room_to_tables() {
    let disk = Disk::new();
    let db = disk.open();
    db.put(b"key", b"1").expect("written");
    let ahead = disk.newest_log_bytes();
    disk.failing.inject(Fault::new(Operation::Sync, 1, ErrorKind::Other).on(".wal"));
    assert!(db.sync_log().is_err());
    disk.failing.inject(Fault::os(Operation::Append, 1, ENOSPC).on(".table").forever());
    assert!(db.resume().is_err());
    assert!(disk.newest_log_bytes() < ahead, "the new segment keeps its room");
    disk.failing.heal();
    db.resume().expect("space returned");
    db.put_with(&SYNCED, b"key", b"2").expect("written");
    let again = disk.reopen_after_kill().expect("it opens");
    assert_eq!(again.get(b"key").expect("read").as_deref(), Some(&b"2"[..]));
}

/// The disk is full when a new segment notes that the ones before it are
/// durable: that write fails, and writing goes on when space returns.
#[test]
fn a_synced_write_to_a_full_disk_fails_alone() {
    let disk = Disk::new();
    let db = disk.open();
    let other = db.create_family("other", Default::default()).expect("created");
    other.put(b"old", b"1").expect("written");
    db.put(b"old", b"1").expect("written");
    db.flush().expect("flushed; the other family still needs the old log");
    disk.failing.inject(Fault::os(Operation::Append, 1, ENOSPC).on(".wal").forever());
    assert!(db.put_with(&SYNCED, b"key", b"1").is_err());
    assert!(db.sync_log().is_err());
    assert!(db.create_family("third", Default::default()).is_ok());
    disk.failing.heal();
    db.put_with(&SYNCED, b"key", b"2").expect("space returned");
    assert_eq!(db.get(b"key").expect("read").as_deref(), Some(&b"2"[..]));
}

/// The very first synced write fails, so that nothing is in memory: after
/// `resume` synced writes work, and need not the log that failed.
#[test]
fn synced_writes_work_after_resuming_with_nothing_in_memory() {
    let disk = Disk::new();
    let db = disk.open();
    disk.failing.inject(Fault::new(Operation::Sync, 1, ErrorKind::Other).on(".wal"));
    assert!(db.put_with(&SYNCED, b"key", b"1").is_err());
    assert!(db.put(b"key", b"2").is_err(), "read-only");
    db.resume().expect("resumed");
    db.put_with(&SYNCED, b"key", b"3").expect("written");
    let again = disk.reopen_after_kill().expect("it opens");
    assert_eq!(again.get(b"key").expect("read").as_deref(), Some(&b"3"[..]));
}

/// Without file descriptors, a database is not taken for missing.
#[test]
fn a_directory_that_cannot_be_listed_is_no_missing_database() {
    let disk = Disk::new();
    disk.open().put(b"key", b"value").expect("written");
    let options = Options { create_if_missing: false, ..disk.options() };
    let fail = || disk.failing.inject(Fault::os(Operation::List, 1, EMFILE));
    fail();
    assert!(matches!(Db::open(ROOT, options.clone()), Err(lodestore::Error::Io { .. })));
    fail();
    assert!(Db::destroy(ROOT, &options).is_err());
    let db = Db::open(ROOT, options).expect("it opens");
    assert!(db.get(b"key").expect("read").is_some());
}

/// The log fails while memtables wait for a flush that the full disk delays.
/// Going on writes all of it to tables, and asks nothing of that log.
#[test]
fn going_on_does_not_need_the_log_that_failed() {
    let disk = Disk::new();
    let db = Db::open(ROOT, Options { log_mapped: false, ..disk.options() }).expect("it opens");
    let waits = db.create_family("waits", Default::default()).expect("created");
    disk.failing.inject(Fault::os(Operation::Create, 1, ENOSPC).on(".table").forever());
    // Enough that its flush is not done before the rest is sealed.
    let value = testkit::random::bytes(16 << 20, 1);
    waits.put(b"key", &value).expect("the log has room");
    assert!(waits.flush().is_err(), "there is no room for tables");
    db.put(b"key", b"unsynced").expect("the log has room");
    // The first is of the segment before.
    disk.failing.inject(Fault::new(Operation::Sync, 2, ErrorKind::Other).on(".wal"));
    assert!(db.put_with(&SYNCED, b"key", b"value").is_err());
    disk.failing.heal();
    db.resume().expect("it goes on");
    assert!(waits.get(b"key").expect("read").as_deref() == Some(&value[..]));
    db.put_with(&SYNCED, b"key", b"value").expect("it takes writes again");
}

/// The first synced write of a segment also tells the manifest of it. Where
/// that fails the write is durable all the same: it is acknowledged, and what
/// is written next has other numbers.
#[test]
fn a_synced_write_counts_although_the_manifest_has_no_room_to_say_so() {
    let disk = Disk::new();
    let db = disk.open();
    disk.failing.inject(Fault::os(Operation::Append, 1, ENOSPC).on("MANIFEST").forever());
    for key in [b"a", b"b"] {
        let mut batch = lodestore::WriteBatch::new();
        batch.put(key, b"value");
        db.write_with(&SYNCED, &mut batch).expect("the log has room");
    }
    assert!(disk.failing.struck() >= 2, "each sync tries to tell the manifest");
    let again = disk.reopen_after_kill().expect("it opens");
    for key in [b"a", b"b"] {
        assert_eq!(again.get(key).expect("read").as_deref(), Some(&b"value"[..]));
    }
}

/// Closing may be the only moment at which a file system tells of lost bytes: a
/// table that could not be closed is none, whoever wrote it.
#[test]
fn a_failed_close_of_a_table_is_told() {
    let disk = Disk::new();
    let db = disk.open();
    let fail =
        || disk.failing.inject(Fault::new(Operation::Close, 1, ErrorKind::Other).on("table"));
    let told = |failed: lodestore::Error| assert!(failed.to_string().contains("close"), "{failed}");
    db.put(b"key", b"value").expect("written");
    fail();
    told(db.flush().unwrap_err());
    db.resume().expect("it goes on");
    db.flush().expect("flushed");
    fail();
    told(db.rewrite_range(None, None).unwrap_err());
    db.resume().expect("it goes on");
    assert_eq!(db.get(b"key").expect("reads work").as_deref(), Some(&b"value"[..]));
    let options = disk.options();
    let mut writer =
        lodestore::TableWriter::create("/table", &options, &options.family).expect("it begins");
    writer.put(b"key", b"value").expect("it takes an entry");
    fail();
    told(writer.finish().unwrap_err());
}

/// A flush of one family makes durable what the same batches did to others,
/// whatever that was.
#[test]
fn a_flush_of_one_family_splits_no_batch() {
    type Change = fn(&mut lodestore::WriteBatch, &Family);
    let changes: [(&str, Change); 3] = [
        ("put", |batch, other| batch.put_in(other, b"k", b"2")),
        ("delete", |batch, other| batch.delete_in(other, b"k")),
        ("range delete", |batch, other| batch.delete_range_in(other, b"a", b"z")),
    ];
    for (name, change) in changes {
        let disk = Disk::new();
        let db = disk.open();
        let other = db.family_or_create("other").expect("created");
        other.put(b"k", b"1").expect("written");
        db.flush_all().expect("flushed");
        let mut batch = lodestore::WriteBatch::new();
        batch.put(b"a", b"1");
        change(&mut batch, &other);
        db.write(batch).expect("written");
        db.flush().expect("flushed");
        for seed in 0..8 {
            let left = disk.memory.fork().crash(seed);
            let options = Options { fs: Arc::new(left), ..Options::default() };
            let again = Db::open(ROOT, options).expect("it opens");
            let other = again.family("other").expect("it was created");
            assert!(again.get(b"a").expect("reads work").is_some(), "{name}: the flush is lost");
            let value = other.get(b"k").expect("reads work");
            assert_ne!(value.as_deref(), Some(&b"1"[..]), "{name}: half a batch");
        }
    }
}

/// Flushes that were waiting when the failure came counted on the log for what
/// the same batches wrote to other families. After it, all of them come at once:
/// power that goes in the middle of `resume` leaves batches whole.
#[test]
fn power_loss_during_resume_splits_no_batch() {
    let mut recovered = 0;
    for calls in 1.. {
        let disk = Disk::new();
        let db = disk.open();
        let other = db.family_or_create("other").expect("created");
        db.flush_all().expect("flushed");
        let mut batch = lodestore::WriteBatch::new();
        batch.put(b"a", b"1");
        batch.put_in(&other, b"b", b"1");
        db.write(batch).expect("written");
        disk.failing.inject(Fault::new(Operation::Sync, 1, ErrorKind::Other).on(".table"));
        assert!(db.flush().is_err());
        disk.memory.stop_after(disk.memory.operations() + calls);
        let resumed = db.resume().is_ok();
        for seed in 0..4 {
            let left = disk.memory.fork().crash(seed);
            let options = Options { fs: Arc::new(left), ..Options::default() };
            let again = Db::open(ROOT, options).expect("it opens");
            let other = again.family("other").expect("it was created");
            let halves = [again.get(b"a"), other.get(b"b")].map(|half| half.unwrap().is_some());
            assert_eq!(halves[0], halves[1], "half a batch, after {calls} calls of resume");
            assert!(halves[0] || !resumed, "resume makes durable what is in memory");
            recovered += 1;
        }
        if resumed {
            break;
        }
    }
    assert!(recovered > 40, "resume makes few calls: {recovered}");
}

/// There was no descriptor for the directory when it was to be synced. Nothing
/// was tried then that could not be tried again: flushes and synced writes go on
/// by themselves, and all is there that was acknowledged.
#[test]
fn a_directory_that_could_not_be_opened_is_synced_later() {
    for nth in 1..=3 {
        let disk = Disk::new();
        let db = disk.open();
        let other = db.create_family("other", Default::default()).expect("created");
        let fail = || disk.failing.inject(Fault::os(Operation::SyncDirectory, nth, EMFILE));
        // The flush of one family makes durable what the log has of the other.
        db.put(b"key", b"1").expect("written");
        other.put(b"key", b"1").expect("written");
        fail();
        let mut tries = 0;
        while let Err(error) = db.flush() {
            assert!(tries < 500, "the flush does not go on by itself: {error}");
            tries += 1;
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        disk.failing.heal();

        fail();
        let mut value = b"1".to_vec();
        for round in 2..6u8 {
            match db.put_with(&SYNCED, b"key", &[round]) {
                Ok(()) => value = vec![round],
                Err(error) => assert!(error.to_string().contains("os error 24"), "{error}"),
            }
            assert_eq!(db.get(b"key").expect("read").as_deref(), Some(&value[..]), "failure {nth}");
        }
        disk.failing.heal();
        db.put_with(&SYNCED, b"key", b"last").expect("there are descriptors again");
        other.put_with(&SYNCED, b"key", b"last").expect("and there");
        db.flush_all().expect("flushed");
        let again = disk.reopen_after_kill().expect("it opens");
        assert_eq!(again.get(b"key").expect("read").as_deref(), Some(&b"last"[..]));
        again.verify().expect("all is sound");
    }
}

/// The disk is full for the manifest when a segment's first synced write is to
/// be witnessed there: a write that failed never comes back, and one that was
/// acknowledged is there.
#[test]
fn a_synced_write_is_there_after_a_crash_only_if_it_was_acknowledged() {
    for (nth, goes_on) in [(1, false), (1, true), (2, true)] {
        let disk = Disk::new();
        let db = disk.open();
        disk.failing.inject(Fault::os(Operation::Append, nth, ENOSPC).on("MANIFEST").forever());
        let mut is_acknowledged = |key: u8| db.put_with(&SYNCED, &[key], b"value").is_ok();
        let mut acknowledged: Vec<bool> = (0..5).map(&mut is_acknowledged).collect();
        assert!(disk.failing.struck() > 0, "the manifest was asked to witness");
        if goes_on {
            disk.failing.heal();
            acknowledged.push(is_acknowledged(5));
            assert!(acknowledged[5], "space returned");
        }
        let check = |db: &Db, when: &str| {
            for (key, &acknowledged) in acknowledged.iter().enumerate() {
                let is_there = db.get(&[key as u8]).expect("read").is_some();
                assert_eq!(is_there, acknowledged, "key {key}, {when}, failure {nth}");
            }
        };
        check(&db, "now");
        check(&disk.reopen_after_kill().expect("it opens"), "after a crash");
    }
}

/// A creation that is killed after any call, and then an opening that loses power
/// after any call, leave a database or none; nothing that is refused.
#[test]
fn a_creation_that_is_cut_short_twice_can_be_done_again() {
    let options = |disk: &MemFs| Options {
        create_if_missing: true,
        fs: Arc::new(disk.clone()),
        ..Options::default()
    };
    let mut opened = 0;
    for killed_after in 1.. {
        let created = MemFs::new();
        created.stop_after(killed_after);
        let is_whole = Db::open(ROOT, options(&created)).is_ok();
        for calls in 1.. {
            let disk = created.kill();
            disk.stop_after(calls);
            let is_open = Db::open(ROOT, options(&disk)).is_ok();
            for seed in 0..4 {
                let left = options(&disk.fork().crash(seed));
                let again = Db::open(ROOT, left).map(drop);
                again.unwrap_or_else(|e| panic!("{killed_after}, then {calls} calls: {e}"));
                opened += 1;
            }
            if is_open {
                break;
            }
        }
        if is_whole {
            break;
        }
    }
    assert!(opened > 500, "opening makes few calls: {opened}");
}

/// Whoever made the directory, and those above it, may have been killed before their
/// names were durable: they must be before a write there is called so.
#[test]
fn a_synced_write_lasts_wherever_an_earlier_opening_was_killed() {
    const DEEP: &str = "/above/between/database";
    let options = |disk: &MemFs| Options {
        create_if_missing: true,
        fs: Arc::new(disk.clone()),
        ..Options::default()
    };
    for killed_after in 0.. {
        let created = MemFs::new();
        created.stop_after(killed_after);
        let is_whole = Db::open(DEEP, options(&created)).is_ok();
        let disk = created.kill();
        let db = Db::open(DEEP, options(&disk)).expect("it opens");
        db.put_with(&SYNCED, b"k", b"1").expect("written");
        for seed in 0..4 {
            let left = Arc::new(disk.fork().crash(seed));
            let again = Db::open(DEEP, Options { fs: left, ..Options::default() });
            let again = again.unwrap_or_else(|error| panic!("{killed_after} calls: {error}"));
            assert_eq!(again.get(b"k").expect("reads work").as_deref(), Some(&b"1"[..]));
        }
        if is_whole {
            break;
        }
    }
}

/// A directory that somebody else made may be below one that may not be read, so that
/// nothing can be synced there. One that had to be made is not called durable then.
#[test]
fn a_directory_below_one_that_may_not_be_read_can_be_used_if_it_is_there() {
    for is_there in [true, false] {
        let disk = Disk::new();
        if is_there {
            disk.memory.create_directory(Path::new(ROOT)).expect("created");
        }
        disk.failing.inject(Fault::new(Operation::SyncDirectory, 1, ErrorKind::PermissionDenied));
        let opened = Db::open(ROOT, disk.options());
        assert_eq!(opened.is_ok(), is_there, "{:?}", opened.err());
    }
}

/// An ingest whose manifest was installed, though not durably, has failed. A process that
/// starts after this one was killed then may find it all the same: what was written since
/// is newer.
#[test]
fn what_is_deleted_after_a_failed_ingest_stays_deleted() {
    let mut found = 0;
    for nth in 1..=3 {
        let disk = Disk::new();
        let db = disk.open();
        let options = disk.options();
        let mut table = TableWriter::create("/table", &options, &options.family).expect("begun");
        ["deleted", "left"].iter().for_each(|key| table.put(key.as_bytes(), b"1").expect("put"));
        table.finish().expect("written");
        db.put(b"before", b"1").and_then(|()| db.flush()).expect("flushed");
        db.put_with(&SYNCED, b"before", b"2").expect("the log is known to be durable then");
        // The next edit begins a manifest.
        disk.failing.inject(Fault::os(Operation::Append, 1, ENOSPC).on("MANIFEST"));
        db.create_family("none", Default::default()).expect_err("the manifest has no room");
        disk.failing.inject(Fault::os(Operation::SyncDirectory, nth, EMFILE).forever());
        let ingested = db.ingest(&["/table"], &IngestOptions::default());
        db.delete(b"deleted").expect("the log goes on");
        let again = disk.reopen_after_kill().expect("it opens");
        let keys: Vec<_> = again.range(..).map(|entry| entry.expect("read").0.to_vec()).collect();
        assert!(!keys.contains(&b"deleted".to_vec()), "failure {nth}");
        found += usize::from(ingested.is_err() && keys.contains(&b"left".to_vec()));
    }
    assert!(found > 0, "no ingest that failed was found");
}
