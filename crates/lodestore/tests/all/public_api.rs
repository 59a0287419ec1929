//! How the library is used, by example. What these say, the scripts in
//! `testdata` say for every surface; here are the shapes of the Rust API.

use lodestore::{
    AddU64, Cache, Db, Error, FamilyOptions, MemFs, Options, Range, ReadOptions, Scheduler,
    Statistics, WriteBatch, WriteOptions,
};
use std::ops::Bound;
use std::sync::Arc;
use testkit::temp_dir::TempDir;

fn in_memory() -> Options {
    Options { create_if_missing: true, fs: Arc::new(MemFs::new()), ..Options::default() }
}

/// The first minute: open, put, get, walk, close.
#[test]
fn a_database_is_opened_written_and_read() -> Result<(), Error> {
    let directory = TempDir::new("api");
    let options = Options { create_if_missing: true, ..Options::default() };
    let db = Db::open(directory.path().join("db"), options.clone())?;
    db.put(b"apple", b"red")?;
    db.put(b"banana", b"yellow")?;
    assert_eq!(db.get(b"apple")?.as_deref(), Some(&b"red"[..]));
    assert!(db.get(b"cherry")?.is_none());
    let entries: Vec<(Vec<u8>, Vec<u8>)> = db.range(..).collect::<Result<_, _>>()?;
    assert_eq!(entries.len(), 2);
    drop(db);
    let db = Db::open(directory.path().join("db"), options)?;
    assert_eq!(db.get(b"banana")?.as_deref(), Some(&b"yellow"[..]));
    Ok(())
}

/// Opening makes a database, or refuses to, as it was told; a refusal changes
/// nothing and says which option would have let it.
#[test]
fn opening_makes_a_database_only_if_asked() -> Result<(), Error> {
    let options = in_memory();
    let careful = Options { create_if_missing: false, ..options.clone() };
    let refused = Db::open("/api", careful.clone()).expect_err("there is none");
    assert!(matches!(refused, Error::Missing { .. }));
    assert!(refused.to_string().contains("create_if_missing"), "{refused}");
    assert!(!options.fs.list("/api".as_ref()).is_ok_and(|names| !names.is_empty()));
    let new = Options { error_if_exists: true, ..options.clone() };
    Db::open("/api", new.clone())?.put(b"k", b"v")?;
    let refused = Db::open("/api", new).expect_err("there is one");
    assert!(refused.to_string().contains("error_if_exists"), "{refused}");
    assert!(Db::open("/api", careful)?.get(b"k")?.is_some());
    Ok(())
}

/// A batch is atomic across families, and can be used again.
#[test]
fn a_batch_is_filled_written_and_used_again() -> Result<(), Error> {
    let db = Db::open("/api", in_memory())?;
    let counts = db.create_family(
        "counts",
        FamilyOptions { merge_operator: Some(Arc::new(AddU64)), ..FamilyOptions::default() },
    )?;
    let mut batch = WriteBatch::new();
    batch.put(b"user/1", b"Ada");
    batch.merge_in(&counts, b"users", &1u64.to_le_bytes());
    let last = db.write_with(&WriteOptions::SYNCED, &mut batch)?;
    assert_eq!(last, db.latest_sequence());
    batch.clear();
    assert!(batch.is_empty());
    batch.put(b"user/2", b"Grace");
    batch.merge_in(&counts, b"users", &1u64.to_le_bytes());
    db.write(batch)?;
    assert_eq!(counts.get(b"users")?.as_deref(), Some(&2u64.to_le_bytes()[..]));
    Ok(())
}

/// A value stays readable after its key was deleted and the database closed.
#[test]
fn a_value_outlives_what_it_was_read_from() -> Result<(), Error> {
    let db = Db::open("/api", in_memory())?;
    db.put(b"memory", b"from the memtable")?;
    let in_memory = db.get(b"memory")?.expect("it was put");
    db.put(b"table", b"from a block")?;
    db.flush()?;
    let in_table = db.get(b"table")?.expect("it was put");
    db.delete(b"table")?;
    db.compact_range(None, None)?;
    drop(db);
    assert_eq!(&*in_memory, b"from the memtable");
    assert_eq!(in_table.to_vec(), b"from a block");
    Ok(())
}

/// A cursor shows the state of its creation, whatever is written meanwhile,
/// and may move to another thread.
#[test]
fn a_cursor_stays_in_its_own_time() -> Result<(), Error> {
    let db = Db::open("/api", in_memory())?;
    for i in 0..100u32 {
        db.put(format!("{i:03}").as_bytes(), b"old")?;
    }
    let mut cursor = db.cursor();
    cursor.first();
    for i in 0..100u32 {
        db.put(format!("{i:03}").as_bytes(), b"new")?;
    }
    db.flush()?;
    db.compact_range(None, None)?;
    let walk = std::thread::spawn(move || {
        let mut count = 0;
        while cursor.valid() {
            assert_eq!(cursor.value(), b"old");
            count += 1;
            cursor.next();
        }
        cursor.status().map(|()| count)
    });
    assert_eq!(walk.join().expect("the walk ends")?, 100);
    Ok(())
}

/// A snapshot, its clone, and reads through them.
#[test]
fn a_snapshot_is_read_through_its_clone() -> Result<(), Error> {
    let db = Db::open("/api", in_memory())?;
    db.put(b"k", b"1")?;
    let snapshot = db.snapshot();
    let at = ReadOptions { snapshot: Some(snapshot.clone()), ..ReadOptions::default() };
    drop(snapshot);
    db.put(b"k", b"2")?;
    assert_eq!(db.get_with(&at, b"k")?.as_deref(), Some(&b"1"[..]));
    let found = db.multi_get_with(&at, &[b"k", b"x"]);
    assert_eq!(found.len(), 2);
    let mut cursor = db.cursor_with(at);
    cursor.seek(b"k");
    assert_eq!(cursor.value(), b"1");
    Ok(())
}

/// Every form of a range means what it means elsewhere, whatever its keys are
/// made of; both ends, and from both ends.
#[test]
fn ranges_are_given_as_they_are_elsewhere() -> Result<(), Error> {
    let db = Db::open("/api", in_memory())?;
    for key in ["a", "b", "c", "d"] {
        db.put(key.as_bytes(), b"1")?;
    }
    let keys = |range: Range| -> String {
        range.map(|entry| String::from_utf8(entry.expect("it is read").0).expect("text")).collect()
    };
    assert_eq!(keys(db.range(..)), "abcd");
    assert_eq!(keys(db.range("b"..)), "bcd");
    assert_eq!(keys(db.range(.."c")), "ab");
    assert_eq!(keys(db.range(..=b"c")), "abc");
    assert_eq!(keys(db.range(b"b".to_vec()..b"d".to_vec())), "bc");
    assert_eq!(keys(db.range(&b"b"[..]..=&b"d"[..])), "bcd");
    assert_eq!(keys(db.range((Bound::Excluded("b"), Bound::Unbounded))), "cd");
    let back: Result<Vec<_>, Error> = db.range("b".."d").rev().collect();
    assert_eq!(back?.first().map(|(key, _)| &key[..]), Some(&b"c"[..]));
    Ok(())
}

/// A range with options is of the snapshot's state, and within bounds and
/// prefix of the options where these are narrower.
#[test]
fn a_range_keeps_to_its_options() -> Result<(), Error> {
    let db = Db::open("/api", in_memory())?;
    for key in ["a/1", "a/2", "b/1"] {
        db.put(key.as_bytes(), b"old")?;
    }
    let then = ReadOptions::at(&db.snapshot());
    db.put(b"a/3", b"new")?;
    db.delete(b"a/1")?;
    let count = |options: &ReadOptions| db.range_with(options, ..).count();
    assert_eq!((count(&then), count(&ReadOptions::default())), (3, 3));
    let prefix = ReadOptions { prefix: Some(b"a/".to_vec()), ..then.clone() };
    assert_eq!((count(&prefix), db.range_with(&prefix, "a/2"..).count()), (2, 1));
    let bounds = ReadOptions {
        lower_bound: Some(b"a/2".to_vec()),
        upper_bound: Some(b"b".to_vec()),
        ..then
    };
    assert_eq!((count(&bounds), db.range_with(&bounds, "a".."z").count()), (1, 1));
    assert_eq!(db.range_with(&bounds, "a/21"..).count(), 0);
    Ok(())
}

/// A program that does not know whether it runs for the first time gets its
/// family, made with the options that it opened the database with.
#[test]
fn a_family_is_found_or_created() -> Result<(), Error> {
    let adding = FamilyOptions { merge_operator: Some(Arc::new(AddU64)), ..Default::default() };
    let families = [("counts".to_string(), adding)].into();
    let options = Options { families, ..in_memory() };
    for run in 1..=3u64 {
        let db = Db::open("/api", options.clone())?;
        let counts = db.family_or_create("counts")?;
        counts.merge(b"runs", &1u64.to_le_bytes())?;
        assert_eq!(counts.get(b"runs")?.as_deref(), Some(&run.to_le_bytes()[..]));
        assert!(db.family_or_create("").is_err());
        let told = db.merge(b"runs", b"1").expect_err("the default family has no operator");
        assert!(told.to_string().contains("\"default\""), "{told}");
    }
    Ok(())
}

/// Several databases share a cache, threads and counters.
#[test]
fn databases_share_what_they_are_given() -> Result<(), Error> {
    let statistics = Arc::new(Statistics::default());
    let options = Options {
        cache: Some(Cache::new(1 << 20)),
        scheduler: Some(Scheduler::new(2)),
        statistics: Some(Arc::clone(&statistics)),
        ..in_memory()
    };
    let (a, b) = (Db::open("/a", options.clone())?, Db::open("/b", options)?);
    a.put(b"k", b"a")?;
    b.put(b"k", b"b")?;
    a.flush()?;
    b.flush()?;
    drop(a);
    assert_eq!(b.get(b"k")?.as_deref(), Some(&b"b"[..]));
    assert_eq!(statistics.get(lodestore::Counter::Flushes), 2);
    assert_eq!(statistics.get(lodestore::Counter::RecordsWritten), 2);
    Ok(())
}

/// What was written can be read again from the log, in order, by a replica,
/// which applies it under the same sequence numbers.
#[test]
fn a_replica_follows_the_log() -> Result<(), Error> {
    let (leader, follower) = (Db::open("/leader", in_memory())?, Db::open("/f", in_memory())?);
    let pin = leader.pin_log(1);
    leader.put(b"a", b"1")?;
    let mut batch = WriteBatch::new();
    batch.put(b"b", b"2");
    batch.delete(b"a");
    leader.write(batch)?;
    leader.flush()?;
    leader.put(b"c", b"3")?;
    for update in leader.updates_since(1)? {
        let (first, mut batch) = update?;
        follower.apply_at(first, &mut batch)?;
    }
    drop(pin);
    assert_eq!(follower.latest_sequence(), leader.latest_sequence());
    let all = |db: &Db| db.range(..).collect::<Result<Vec<_>, _>>();
    assert_eq!(all(&follower)?, all(&leader)?);
    assert_eq!(all(&leader)?.len(), 2);
    Ok(())
}

/// Who only reads a database has no log of it to follow: that is told, and is not an end.
#[test]
fn a_database_that_is_only_read_cannot_be_followed() -> Result<(), Error> {
    let options = in_memory();
    Db::open("/unfollowed", options.clone())?.put(b"a", b"1")?;
    let db = Db::open_read_only("/unfollowed", options)?;
    assert!(matches!(db.updates_since(1), Err(Error::Missing { .. })));
    assert_eq!(db.updates_since(2)?.count(), 0, "there is nothing new");
    Ok(())
}

/// Numbers for people and dashboards are there, under all three prefixes.
#[test]
fn a_database_describes_itself() -> Result<(), Error> {
    let db = Db::open("/api", in_memory())?;
    for i in 0..1000u32 {
        db.put(&i.to_be_bytes(), &[7; 100])?;
    }
    db.flush()?;
    for prefix in ["lodestore", "leveldb", "rocksdb"] {
        let files = db.property(&format!("{prefix}.num-files-at-level0"));
        assert_eq!(files.as_deref(), Some("1"), "{prefix}");
        assert!(db.property(&format!("{prefix}.stats")).is_some_and(|text| !text.is_empty()));
    }
    assert_eq!(db.property("lodestore.nothing"), None);
    let sizes = db.approximate_sizes(&[(b"", b"\xff"), (b"\xfe", b"\xff")])?;
    assert!(sizes[0] > 1000 && sizes[1] < sizes[0] / 10, "{sizes:?}");
    let stats = db.stats();
    assert_eq!(stats.levels[0].files, 1);
    assert!(stats.levels[0].bytes > 1000);
    let report = db.verify()?;
    assert_eq!((report.tables, report.entries), (1, 1000));
    Ok(())
}

/// Handles are clones of one database: it closes with the last of them.
#[test]
fn the_last_handle_closes() -> Result<(), Error> {
    let options = in_memory();
    let db = Db::open("/api", options.clone())?;
    let family = db.create_family("f", FamilyOptions::default())?;
    drop(db);
    family.put(b"still", b"open")?;
    assert!(matches!(Db::open("/api", options.clone()), Err(Error::Busy { .. })));
    drop(family);
    let db = Db::open("/api", options)?;
    let family = db.family("f").expect("it was created");
    assert_eq!(family.get(b"still")?.as_deref(), Some(&b"open"[..]));
    Ok(())
}

/// An order in which upper and lower case are the same.
struct CaseBlind;

impl lodestore::Comparator for CaseBlind {
    fn name(&self) -> &str {
        "test.CaseBlind"
    }
    fn compare(&self, a: &[u8], b: &[u8]) -> std::cmp::Ordering {
        a.to_ascii_lowercase().cmp(&b.to_ascii_lowercase())
    }
}

/// Keys that compare equal are one key, although their bytes differ: the
/// newest bytes are shown, whichever way one goes and wherever they lie.
#[test]
fn equal_keys_of_other_bytes_are_one_key() -> Result<(), Error> {
    let mut options =
        Options { create_if_missing: true, fs: Arc::new(MemFs::new()), ..Options::default() };
    options.family.order = lodestore::KeyOrder::Custom(Arc::new(CaseBlind));
    let db = Db::open("/case", options)?;
    let check = |newest: &[u8], value: &[u8]| -> Result<(), Error> {
        assert_eq!(db.get(b"kEY")?.as_deref(), Some(value));
        let mut cursor = db.cursor();
        cursor.first();
        assert_eq!((cursor.key(), cursor.value()), (newest, value));
        cursor.next();
        assert_eq!(cursor.key(), b"z");
        cursor.prev();
        assert_eq!((cursor.key(), cursor.value()), (newest, value));
        assert_eq!(db.range(..).count(), 2);
        Ok(())
    };
    db.put(b"z", b"")?;
    db.put(b"KEY", b"1")?;
    check(b"KEY", b"1")?;
    db.flush()?;
    db.put(b"key", b"2")?;
    check(b"key", b"2")?;
    db.flush()?;
    check(b"key", b"2")?;
    db.delete(b"Key")?;
    db.put(b"Key", b"3")?;
    check(b"Key", b"3")?;
    db.compact_range(None, None)?;
    check(b"Key", b"3")
}

/// Segments of the log that are no longer needed are closed, also if no write
/// is ever synced: descriptors do not run out.
#[cfg(target_os = "linux")]
#[test]
fn retired_logs_are_closed() -> Result<(), Error> {
    let directory = TempDir::new("descriptors");
    let path = directory.path().join("db");
    let options = Options { create_if_missing: true, ..Options::default() };
    let db = Db::open(&path, options)?;
    for _ in 0..30 {
        db.put(b"key", b"value")?;
        db.flush()?;
    }
    db.wait_for_background()?;
    let logs = std::fs::read_dir("/proc/self/fd").expect("a list").flatten().filter(|entry| {
        let target = std::fs::read_link(entry.path()).unwrap_or_default();
        target.starts_with(&path) && target.to_string_lossy().contains(".wal")
    });
    assert!(logs.count() <= 4);
    Ok(())
}

/// A checkpoint has what was written before it, also without a log.
#[test]
fn a_checkpoint_without_a_log_has_everything() -> Result<(), Error> {
    let options = Options { logging: false, ..in_memory() };
    let db = Db::open("/unlogged", options.clone())?;
    db.put(b"key", b"value")?;
    db.checkpoint("/copy")?;
    let copy = Db::open("/copy", Options { create_if_missing: false, ..options })?;
    assert_eq!(copy.get(b"key")?.as_deref(), Some(&b"value"[..]));
    Ok(())
}

/// A call for very many keys, in any order, some of them absent or asked for
/// twice, gives what single lookups give; what it gave stays readable.
#[test]
fn a_call_for_many_keys_gives_what_single_lookups_give() -> Result<(), Error> {
    let db = Db::open("many", in_memory())?;
    for key in 0..4_000u32 {
        db.put(&key.to_be_bytes(), &vec![key as u8; 1 + key as usize % 3_000])?;
    }
    db.flush()?;
    let keys: Vec<[u8; 4]> = (0..9_000u32).map(|i| (i * 7 % 5_000).to_be_bytes()).collect();
    let found = db.multi_get(&keys);
    db.delete_range(&[0], &[0xff])?;
    db.compact_range(None, None)?;
    assert_eq!(found.len(), keys.len());
    for (key, value) in keys.iter().zip(found) {
        let number = u32::from_be_bytes(*key);
        let expected = (number < 4_000).then(|| vec![number as u8; 1 + number as usize % 3_000]);
        assert_eq!(value?.as_deref(), expected.as_deref(), "key {number}");
    }
    Ok(())
}
