//! Tables written outside of a database, and ingested: all of them or none.

use lodestore::fs::{Capabilities, Fault, FaultFs, Fs, Operation, read_all};
use lodestore::{
    AddU64, Cache, Db, Error, Family, FamilyOptions, IngestOptions, MemFs, Options, ReadOptions,
    Result, TableInfo, TableWriter, WriteBatch, WriteOptions,
};
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use testkit::orders::Order;

const MOVED: IngestOptions = IngestOptions { move_files: true, verify: true };

fn options(fs: &MemFs) -> Options {
    let mut options =
        Options { create_if_missing: true, fs: Arc::new(fs.clone()), ..Options::default() };
    options.family.block_bytes = 256;
    // Tables stay where they were ingested.
    options.family.level0_compaction_files = 10;
    options
}

fn copied() -> IngestOptions {
    IngestOptions::default()
}

/// A table at `path` with what `fill` adds.
fn table(
    path: &str,
    options: &Options,
    fill: impl FnOnce(&mut TableWriter) -> Result<()>,
) -> TableInfo {
    let mut writer = TableWriter::create(path, options, &options.family).unwrap();
    fill(&mut writer).unwrap();
    writer.finish().unwrap()
}

/// A table that puts `value` under every number of `keys`.
fn puts(path: &str, options: &Options, keys: std::ops::Range<u32>, value: &str) -> TableInfo {
    table(path, options, |writer| {
        keys.into_iter().try_for_each(|i| writer.put(&key(i), value.as_bytes()))
    })
}

fn key(i: u32) -> Vec<u8> {
    format!("{i:05}").into_bytes()
}

#[track_caller]
fn get(family: &Family, i: u32) -> Option<String> {
    let value = family.get(&key(i)).unwrap();
    value.map(|value| String::from_utf8(value.to_vec()).unwrap())
}

/// Names of the files in the directory that end in `.table`.
fn tables_in(fs: &MemFs, directory: &str) -> usize {
    let names = fs.list(Path::new(directory)).unwrap();
    names.iter().filter(|name| name.ends_with(".table")).count()
}

fn levels(db: &Db) -> Vec<u64> {
    db.stats().levels.iter().map(|level| level.files as u64).collect()
}

fn refused(result: Result<impl std::fmt::Debug>) -> String {
    match result.unwrap_err() {
        Error::InvalidArgument { what } => what,
        other => panic!("{other}"),
    }
}

/// A key that does not come after the last one is refused, with both named,
/// and the table goes on without it.
#[test]
fn a_table_takes_keys_in_order_each_once() {
    let fs = MemFs::new();
    let options = options(&fs);
    let mut writer = TableWriter::create("t", &options, &options.family).unwrap();
    writer.put(b"b", b"1").unwrap();
    for key in [b"b", b"a"] {
        let what = refused(writer.put(key, b"2"));
        let named = format!("\"{}\" does not come after \"b\"", key.escape_ascii());
        assert!(what.contains(&named), "{what}");
    }
    assert!(refused(writer.merge(b"c", b"1")).contains("merge operator"));
    assert!(refused(writer.delete_range(b"z", b"y")).contains("ends before"));
    writer.delete(b"c").unwrap();
    writer.delete_range(b"x", b"x").unwrap();
    writer.delete_range(b"m", b"p").unwrap();
    writer.delete_range(b"a", b"n").unwrap();
    let info = writer.finish().unwrap();
    assert_eq!((info.entries, info.range_deletes), (2, 1));
    assert_eq!((&info.smallest[..], &info.largest[..]), (&b"a"[..], &b"p"[..]));
    assert_eq!(info.bytes, fs.length(Path::new("t")).unwrap());
}

/// A table that is not finished leaves no file; one that is there is not
/// written over; one that says nothing is none.
#[test]
fn a_table_is_a_file_once_it_is_finished() {
    let fs = MemFs::new();
    let options = options(&fs);
    let mut writer = TableWriter::create("t", &options, &options.family).unwrap();
    writer.put(b"a", b"1").unwrap();
    drop(writer);
    let writer = TableWriter::create("t", &options, &options.family).unwrap();
    assert!(refused(writer.finish()).contains("needs an entry"));
    assert!(fs.length(Path::new("t")).is_err());
    puts("t", &options, 0..9, "1");
    let before = read_all(&fs, Path::new("t")).unwrap();
    assert!(refused(TableWriter::create("t", &options, &options.family)).contains("exists"));
    assert_eq!(read_all(&fs, Path::new("t")).unwrap(), before);
}

/// With and without a log, before and after reopening: an ingested table is
/// newer than what is in memory and in tables, range deletes included, and
/// older than what is written next.
#[test]
fn ingested_tables_are_newer_than_what_was_before() {
    for logging in [true, false] {
        let fs = MemFs::new();
        let options = Options { logging, ..options(&fs) };
        let db = Db::open("db", options.clone()).unwrap();
        let fill = |value: &[u8]| (0..40).for_each(|i| db.put(&key(i), value).unwrap());
        fill(b"table");
        db.flush().unwrap();
        (10..40).for_each(|i| db.put(&key(i), b"memory").unwrap());
        db.delete_range(&key(15), &key(30)).unwrap();
        let before = db.latest_sequence();
        puts("new", &options, 5..25, "new");
        let report = db.ingest(&["new"], &copied()).unwrap();
        assert_eq!(report.tables[0].sequence, before + 1);
        assert_eq!(db.latest_sequence(), before + 1);
        db.put(&key(7), b"newest").unwrap();
        let check = |db: &Db| {
            for i in 0..40 {
                let expected = match i {
                    7 => Some("newest"),
                    5..25 => Some("new"),
                    25..30 => None,
                    0..5 => Some("table"),
                    _ => Some("memory"),
                };
                assert_eq!(get(db, i).as_deref(), expected, "{i}, logging: {logging}");
            }
            assert_eq!(db.range(..).count(), 35);
            db.verify().unwrap();
        };
        check(&db);
        db.compact_range(None, None).unwrap();
        check(&db);
        drop(db);
        let db = Db::open("db", options).unwrap();
        check(&db);
        assert_eq!(db.latest_sequence(), before + 2);
    }
}

/// What is ingested is newer than range deletes that are in memory only,
/// however little of it they cover.
#[test]
fn range_deletes_in_memory_hide_nothing_that_is_ingested_after_them() {
    for (start, end) in [(3, 6), (0, 1), (9, 10), (0, 10), (0, 99)] {
        let fs = MemFs::new();
        let options = options(&fs);
        let db = Db::open("db", options.clone()).unwrap();
        db.delete_range(&key(start), &key(end)).unwrap();
        puts("t", &options, 0..10, "new");
        db.ingest(&["t"], &copied()).unwrap();
        for i in 0..10 {
            assert_eq!(get(&db, i).as_deref(), Some("new"), "{i} after {start}..{end}");
        }
        assert_eq!(db.range(..).count(), 10);
    }
}

/// What a snapshot and a cursor see stays as it was, through compactions too.
#[test]
fn snapshots_and_cursors_do_not_see_what_is_ingested_later() {
    let fs = MemFs::new();
    let options = options(&fs);
    let db = Db::open("db", options.clone()).unwrap();
    (0..30).for_each(|i| db.put(&key(i), b"old").unwrap());
    let snapshot = db.snapshot();
    let mut cursor = db.cursor();
    table("new", &options, |writer| {
        writer.delete_range(&key(0), &key(10))?;
        (10..20).try_for_each(|i| writer.put(&key(i), b"new"))?;
        (20..25).try_for_each(|i| writer.delete(&key(i)))
    });
    db.ingest(&["new"], &copied()).unwrap();
    for compacted in [false, true] {
        if compacted {
            db.compact_range(None, None).unwrap();
        }
        let at = ReadOptions { snapshot: Some(snapshot.clone()), ..ReadOptions::default() };
        let mut old = db.cursor_with(at.clone());
        for cursor in [&mut old, &mut cursor] {
            cursor.first();
            let mut count = 0;
            while cursor.valid() {
                assert_eq!(cursor.value(), b"old");
                count += 1;
                cursor.next();
            }
            assert_eq!(count, 30);
        }
        assert_eq!(db.get_with(&at, &key(3)).unwrap().as_deref(), Some(&b"old"[..]));
        assert_eq!(get(&db, 3), None);
        assert_eq!(get(&db, 13).as_deref(), Some("new"));
        assert_eq!(get(&db, 23), None);
        assert_eq!(db.range(..).count(), 15);
    }
}

/// Range deletes of a table remove what was there before, not what the table
/// itself holds, also once they were compacted into one table with it.
#[test]
fn range_deletes_of_a_table_spare_its_own_entries() {
    let fs = MemFs::new();
    let mut options = options(&fs);
    options.family.merge_operator = Some(Arc::new(AddU64));
    let db = Db::open("db", options.clone()).unwrap();
    let one = 1u64.to_le_bytes();
    (0..20).for_each(|i| db.put(&key(i), &one).unwrap());
    db.flush().unwrap();
    let snapshot = db.snapshot(); // keeps the range delete through compactions
    table("new", &options, |writer| {
        writer.put(&key(4), &one)?;
        writer.merge(&key(6), &one)?;
        writer.single_delete(&key(19))?;
        writer.delete_range(&key(2), &key(10))
    });
    db.ingest(&["new"], &copied()).unwrap();
    for _ in 0..2 {
        let keys: Vec<Vec<u8>> = db.range(..).map(|entry| entry.unwrap().0).collect();
        let expected = [0, 1, 4, 6].into_iter().chain(10..19).map(key);
        assert_eq!(keys, expected.collect::<Vec<_>>());
        // Merged into nothing: the old value is deleted.
        assert_eq!(db.get(&key(6)).unwrap().as_deref(), Some(&one[..]));
        let mut cursor = db.cursor();
        cursor.seek_for_prev(&key(9));
        assert_eq!((cursor.key(), cursor.value()), (&key(6)[..], &one[..]));
        db.compact_range(None, None).unwrap();
    }
    drop(snapshot);
}

/// A table goes to the deepest level where nothing overlaps it there or above;
/// of tables of one call that overlap, the later one is the newer.
#[test]
fn tables_go_as_deep_as_nothing_overlaps_them() {
    let fs = MemFs::new();
    let options = options(&fs);
    let db = Db::open("db", options.clone()).unwrap();
    puts("a", &options, 0..10, "a");
    puts("b", &options, 20..30, "b");
    puts("c", &options, 5..8, "c");
    puts("d", &options, 6..25, "d");
    let level = |path: &str| db.ingest(&[path], &copied()).unwrap().tables[0].level;
    assert_eq!((level("a"), level("b"), level("c")), (6, 6, 0));
    let report = db.ingest(&["d", "c"], &copied()).unwrap();
    let placed: Vec<usize> = report.tables.iter().map(|table| table.level).collect();
    assert_eq!(placed, [0, 0]);
    let numbers: Vec<u64> = report.tables.iter().map(|table| table.sequence).collect();
    assert_eq!(numbers, [4, 5]);
    let values = |is| (0..30).filter(|&i| get(&db, i).as_deref() == Some(is)).collect::<Vec<_>>();
    assert_eq!(values("c"), [5, 6, 7]);
    assert_eq!(values("d"), (8..25).collect::<Vec<_>>());
    assert_eq!(levels(&db)[0], 3);
    db.compact_range(None, None).unwrap();
    assert_eq!(values("d"), (8..25).collect::<Vec<_>>());
}

/// Several families in one call: all of it appears, or, if one file is bad,
/// nothing, and no file is left or gone.
#[test]
fn tables_of_several_families_come_together_or_not_at_all() {
    let fs = MemFs::new();
    let options = options(&fs);
    let db = Db::open("db", options.clone()).unwrap();
    let other = db.create_family("other", options.family.clone()).unwrap();
    puts("a", &options, 0..10, "a");
    puts("b", &options, 0..10, "b");
    let whole = read_all(&fs, Path::new("b")).unwrap();
    let mut writer = fs.create(Path::new("cut")).unwrap();
    writer.append(&whole[..whole.len() - 9]).unwrap();
    for bad in ["cut", "missing"] {
        let tables: [(&Family, &str); 3] = [(&db, "a"), (&other, "b"), (&other, bad)];
        let error = db.ingest_together(&tables, &MOVED).unwrap_err();
        assert_eq!(error.is_corruption(), bad == "cut", "{error}");
        assert_eq!(matches!(error, Error::Missing { .. }), bad == "missing", "{error}");
        assert!(error.to_string().contains(bad), "{error}");
        assert_eq!((get(&db, 3), get(&other, 3), db.latest_sequence()), (None, None, 0));
        assert_eq!(tables_in(&fs, "db"), 0);
    }
    assert_eq!(read_all(&fs, Path::new("b")).unwrap(), whole);
    let before = db.snapshot();
    db.ingest_together(&[(&*db, "a"), (&other, "b")], &copied()).unwrap();
    assert_eq!((get(&db, 3).as_deref(), get(&other, 3).as_deref()), (Some("a"), Some("b")));
    let at = ReadOptions { snapshot: Some(before), ..ReadOptions::default() };
    assert!(other.get_with(&at, &key(3)).unwrap().is_none());
    assert_eq!(db.ingest::<&str>(&[], &copied()).unwrap().tables, []);
}

/// What does not fit the family is refused in words, and changes nothing.
#[test]
fn what_does_not_fit_is_refused() {
    let fs = MemFs::new();
    let options = options(&fs);
    let db = Db::open("db", options.clone()).unwrap();
    let with = |name: &str, family: FamilyOptions, fill: fn(&mut TableWriter) -> Result<()>| {
        table(name, &Options { family, ..options.clone() }, fill)
    };
    let order = Order::Reverse.key_order();
    with("backwards", FamilyOptions { order, ..options.family.clone() }, |writer| {
        writer.put(b"b", b"1")?;
        writer.put(b"a", b"1")
    });
    let merge_operator: lodestore::SharedMergeOperator = Arc::new(AddU64);
    let merging = FamilyOptions { merge_operator: Some(merge_operator), ..options.family.clone() };
    with("operands", merging, |writer| writer.merge(b"a", &[0; 8]));
    let mut file = fs.create(Path::new("text")).unwrap();
    file.append(&[b'x'; 500]).unwrap();
    let refuse = |path: &str| refused(db.ingest(&[path], &copied()));
    assert!(refuse("backwards").contains("backwards is in the order testkit.Reverse"));
    assert!(refuse("operands").contains("\"default\" cannot merge"));
    assert!(db.ingest(&["text"], &copied()).unwrap_err().is_corruption());

    // A database's own table, whose entries have ages.
    db.put(b"a", b"1").unwrap();
    db.put(b"b", b"1").unwrap();
    db.flush().unwrap();
    let own = fs.list(Path::new("db")).unwrap().into_iter().find(|n| n.ends_with(".table"));
    assert!(refuse(&format!("db/{}", own.unwrap())).contains("different ages"));

    let dropped = db.create_family("dropped", options.family.clone()).unwrap();
    db.drop_family("dropped").unwrap();
    puts("good", &options, 0..3, "1");
    assert!(matches!(dropped.ingest(&["good"], &copied()), Err(Error::Missing { .. })));
    let elsewhere = Db::open("elsewhere", options.clone()).unwrap();
    let foreign = db.ingest_together(&[(&*elsewhere, "good")], &copied());
    assert!(refused(foreign).contains("another database"));
    assert_eq!((db.latest_sequence(), tables_in(&fs, "db")), (2, 1));
    drop(db);
    let reader = Db::open_read_only("db", options).unwrap();
    let read_only = reader.ingest(&["good"], &copied());
    assert!(matches!(read_only, Err(Error::ReadOnly { .. })));
}

/// Every damaged byte of a table's blocks is found before it is ingested;
/// without verification, when it is read.
#[test]
fn damage_is_found_before_a_table_is_ingested() {
    let fs = MemFs::new();
    let options = options(&fs);
    puts("t", &options, 0..300, "some value");
    let whole = read_all(&fs, Path::new("t")).unwrap();
    let db = Db::open("db", options.clone()).unwrap();
    for place in (0..whole.len()).step_by(97) {
        let mut bytes = whole.clone();
        bytes[place] ^= 0x20;
        fs.create(Path::new("bad")).unwrap().append(&bytes).unwrap();
        let error = db.ingest(&["bad"], &copied()).unwrap_err();
        let told = error.is_corruption() || matches!(error, Error::Incompatible { .. });
        assert!(told && error.to_string().contains("bad"), "byte {place}: {error}");
        assert_eq!(tables_in(&fs, "db"), 0, "byte {place}");
    }
    let mut bytes = whole;
    bytes[100] ^= 1;
    fs.create(Path::new("bad")).unwrap().append(&bytes).unwrap();
    db.ingest(&["bad"], &IngestOptions { verify: false, ..copied() }).unwrap();
    assert!(db.get(&key(0)).unwrap_err().is_corruption());
    assert_eq!(get(&db, 299).as_deref(), Some("some value"));
}

/// Moving takes the file's old name away and keeps its bytes; where files
/// cannot be linked they are copied; a table that the database has already is
/// not taken from itself.
#[test]
fn moving_takes_the_file_and_copying_leaves_it() {
    let append_only = MemFs::with_capabilities(Capabilities::default());
    for (fs, links) in [(MemFs::new(), true), (append_only, false)] {
        let options = options(&fs);
        let db = Db::open("db", options.clone()).unwrap();
        puts("kept", &options, 0..10, "1");
        let kept = db.ingest(&["kept"], &copied()).unwrap();
        assert!(!kept.tables[0].linked && fs.length(Path::new("kept")).is_ok());
        let again = refused(db.ingest(&["kept"], &MOVED));
        assert!(again.contains("is a table of this database already"), "{again}");
        assert!(fs.length(Path::new("kept")).is_ok());
        puts("moved", &options, 0..10, "2");
        // Twice in one call is the same file both times.
        let moved = db.ingest(&["moved", "moved"], &MOVED).unwrap();
        assert_eq!(moved.tables[1].linked, links);
        assert_eq!(moved.sources_left, [""; 0].map(std::path::PathBuf::from));
        assert!(fs.length(Path::new("moved")).is_err());
        assert_eq!(get(&db, 9).as_deref(), Some("2"));
        assert_eq!(tables_in(&fs, "db"), 3);
        drop(db);
        assert_eq!(get(&Db::open("db", options).unwrap(), 9).as_deref(), Some("2"));
    }
}

/// A file that cannot be removed after it was moved is named, and its table is
/// in the database all the same.
#[test]
fn a_moved_file_that_stays_is_named() {
    let memory = MemFs::new();
    let failing = FaultFs::new(Arc::new(memory.clone()));
    let options = Options { fs: Arc::new(failing.clone()), ..options(&memory) };
    let db = Db::open("db", options.clone()).unwrap();
    puts("stays", &options, 0..10, "1");
    failing.inject(Fault::new(Operation::Remove, 1, ErrorKind::PermissionDenied).on("stays"));
    let report = db.ingest(&["stays"], &MOVED).unwrap();
    assert_eq!(report.sources_left, [Path::new("stays")]);
    assert_eq!(get(&db, 9).as_deref(), Some("1"));
    assert!(memory.length(Path::new("stays")).is_ok());
}

/// One file, ingested twice and into two databases with one cache: each time
/// it counts as written then, whatever was read of it elsewhere.
#[test]
fn a_table_can_be_ingested_again() {
    let fs = MemFs::new();
    let options = Options { cache: Some(Cache::new(1 << 20)), ..options(&fs) };
    let (a, b) = (Db::open("a", options.clone()).unwrap(), Db::open("b", options.clone()).unwrap());
    puts("t", &options, 0..50, "table");
    for db in [&a, &b] {
        (0..50).for_each(|i| db.put(&key(i), b"before").unwrap());
        db.ingest(&["t"], &copied()).unwrap();
        assert_eq!(get(db, 9).as_deref(), Some("table"));
        let between = db.snapshot();
        (0..50).for_each(|i| db.put(&key(i), b"between").unwrap());
        let later = db.snapshot();
        db.ingest(&["t"], &copied()).unwrap();
        for (snapshot, expected) in [(between, "table"), (later, "between")] {
            let at = ReadOptions { snapshot: Some(snapshot), ..ReadOptions::default() };
            let value = db.get_with(&at, &key(9)).unwrap().unwrap();
            assert_eq!(&value[..], expected.as_bytes());
        }
        assert_eq!(get(db, 9).as_deref(), Some("table"));
    }
}

/// The log does not hold what is ingested: whoever follows it is told, at the
/// place where it is.
#[test]
fn the_log_as_a_source_tells_of_ingested_tables() {
    let fs = MemFs::new();
    let options = options(&fs);
    let db = Db::open("db", options.clone()).unwrap();
    let _pin = db.pin_log(1);
    db.put(b"a", b"1").unwrap();
    puts("t", &options, 0..10, "1");
    db.ingest(&["t", "t"], &copied()).unwrap();
    let is_gap = |error: &Error| {
        let Error::Missing { what } = error else { panic!("{error}") };
        what.contains("sequence numbers 2 to 3")
    };
    for is_last in [true, false] {
        if !is_last {
            db.put(b"b", b"1").unwrap();
        }
        for from in 0..=3 {
            let found: Vec<_> = db.updates_since(from).unwrap().collect();
            let (end, before) = found.split_last().unwrap();
            assert!(is_gap(end.as_ref().unwrap_err()), "from {from}");
            assert_eq!(before.len(), usize::from(from < 2), "from {from}");
        }
        let found: Vec<u64> = db.updates_since(4).unwrap().map(|item| item.unwrap().0).collect();
        assert_eq!(found, if is_last { vec![] } else { vec![4] });
    }
}

/// The same where nothing was written since opening: there is no segment then.
#[test]
fn a_database_without_a_log_tells_of_ingested_tables() {
    let fs = MemFs::new();
    let options = options(&fs);
    Db::open("db", options.clone()).unwrap().put(b"a", b"1").unwrap();
    let db = Db::open("db", options.clone()).unwrap();
    let _pin = db.pin_log(1);
    let since = |sequence| match db.updates_since(sequence) {
        Ok(mut updates) => updates.next().map(|update| update.map(|(first, _)| first)),
        Err(error) => Some(Err(error)),
    };
    assert!(since(2).is_none(), "there is nothing new");
    puts("t", &options, 0..10, "1");
    db.ingest(&["t"], &copied()).unwrap();
    assert!(matches!(since(1), Some(Err(Error::Missing { .. }))), "it is in a table");
    assert!(matches!(since(2), Some(Err(Error::Missing { .. }))), "that was ingested");
    assert!(since(3).is_none());
    db.put(b"b", b"1").unwrap();
    assert!(matches!(since(2), Some(Err(Error::Missing { .. }))), "that was ingested");
    assert!(matches!(since(3), Some(Ok(3))));
}

/// A checkpoint has what was ingested, and goes on being written to.
#[test]
fn a_checkpoint_has_ingested_tables() {
    let fs = MemFs::new();
    let options = options(&fs);
    let db = Db::open("db", options.clone()).unwrap();
    db.put(&key(3), b"before").unwrap();
    puts("t", &options, 0..10, "1");
    db.ingest(&["t"], &copied()).unwrap();
    db.checkpoint("copy").unwrap();
    drop(db);
    let copy = Db::open("copy", options.clone()).unwrap();
    assert_eq!(get(&copy, 3).as_deref(), Some("1"));
    copy.put(&key(3), b"after").unwrap();
    copy.ingest(&["t"], &copied()).unwrap();
    assert_eq!(get(&copy, 3).as_deref(), Some("1"));
    copy.compact_range(None, None).unwrap();
    copy.verify().unwrap();
}

/// Writers that write the same keys all the time do not keep a table out; what
/// is read is what has the highest number; and readers see each call as a
/// whole, in both families, also while compactions work on what was ingested.
#[test]
fn tables_come_in_under_load() {
    const CALLS: u32 = 25;
    let fs = MemFs::new();
    let mut options = options(&fs);
    options.family.memtable_bytes = 16 << 10;
    options.family.table_bytes = 8 << 10;
    options.family.level0_compaction_files = 2;
    options.family.level1_bytes = 32 << 10;
    let db = Db::open("db", options.clone()).unwrap();
    let other = db.create_family("other", options.family.clone()).unwrap();
    let done = AtomicBool::new(false);
    // What was written under one key of the tables, by sequence number.
    let (written, mut seen) = (Mutex::new(BTreeMap::new()), Vec::new());
    std::thread::scope(|scope| {
        for id in 0..2u32 {
            let (db, other, done, written) = (&db, &other, &done, &written);
            scope.spawn(move || {
                let mut i = id;
                while !done.load(Ordering::Relaxed) {
                    let mut batch = WriteBatch::new();
                    // Between the keys of the tables: all of them overlap.
                    let noise = [key(i % 500), b"/noise".to_vec()].concat();
                    let value = format!("written {i}");
                    batch.put(&noise, &[7; 200]);
                    batch.put_in(other, &noise, &[7; 200]);
                    batch.put(&key(100), value.as_bytes());
                    let sequence = db.write_with(&WriteOptions::default(), &mut batch).unwrap();
                    written.lock().unwrap().insert(sequence, value);
                    i += 2;
                }
            });
        }
        let (db, other, done, options) = (&db, &other, &done, &options);
        scope.spawn(move || {
            let mut seen = 0;
            while !done.load(Ordering::Relaxed) {
                let snapshot = db.snapshot();
                let at = ReadOptions { snapshot: Some(snapshot), ..ReadOptions::default() };
                let mut numbers = Vec::new();
                for round in 0..2 {
                    for family in [other, &**db] {
                        for i in [0, 250, 499] {
                            let value = family.get_with(&at, &key(i)).unwrap();
                            let number = value.map_or(0, |v| {
                                std::str::from_utf8(&v).unwrap().parse::<u32>().unwrap()
                            });
                            numbers.push(number);
                        }
                    }
                    if round == 0 {
                        std::thread::yield_now();
                    }
                }
                assert!(numbers.iter().all(|n| *n == numbers[0]), "{numbers:?}");
                assert!(numbers[0] >= seen);
                seen = numbers[0];
            }
        });
        for call in 1..=CALLS {
            let paths = [format!("a{call}"), format!("b{call}")];
            for path in &paths {
                puts(path, options, 0..500, &call.to_string());
            }
            let tables = [(&**db, &paths[0]), (other, &paths[1])];
            let ingested = db.ingest_together(&tables, &MOVED);
            if ingested.is_err() {
                done.store(true, Ordering::Relaxed);
            }
            let sequence = ingested.unwrap().tables[0].sequence;
            written.lock().unwrap().insert(sequence, call.to_string());
            let snapshot = db.snapshot();
            let at = ReadOptions { snapshot: Some(snapshot.clone()), ..ReadOptions::default() };
            let value = db.get_with(&at, &key(100)).unwrap().unwrap();
            seen.push((snapshot.sequence(), String::from_utf8(value.to_vec()).unwrap()));
        }
        done.store(true, Ordering::Relaxed);
    });
    let written = written.into_inner().unwrap();
    for (sequence, value) in seen {
        let newest = written.range(..=sequence).next_back().unwrap();
        assert_eq!(newest.1, &value, "at {sequence}, written at {}", newest.0);
    }
    db.wait_for_background().unwrap();
    for family in [&*db, &other] {
        let keys = (0..500).filter(|&i| i != 100);
        keys.for_each(|i| assert_eq!(get(family, i), Some(CALLS.to_string()), "{i}"));
    }
    db.verify().unwrap();
}

/// An ingest whose outcome is unknown has failed, and may have come in after a
/// kill; what is written after it is newer in any case.
#[test]
fn what_follows_an_ingest_that_failed_is_newer_than_it() {
    const NO_DESCRIPTOR: i32 = 24;
    const FULL: i32 = 28;
    let mut failed = 0;
    for nth in 1.. {
        let disk = MemFs::new();
        let failing = FaultFs::new(Arc::new(disk.clone()));
        let options = Options { fs: Arc::new(failing.clone()), ..options(&disk) };
        let db = Db::open("db", options.clone()).unwrap();
        db.put(b"a", b"1").unwrap();
        puts("t", &options, 0..1, "table");
        // The next edit begins a new manifest.
        failing.inject(Fault::os(Operation::Append, 1, FULL).on("MANIFEST"));
        db.ingest(&["t"], &copied()).unwrap_err();
        failing.inject(Fault::os(Operation::SyncDirectory, nth, NO_DESCRIPTOR).forever());
        let ingested = db.ingest(&["t", "t", "t"], &copied());
        failing.heal();
        db.put(&key(0), b"put").unwrap();
        let killed = Options { fs: Arc::new(disk.fork()), ..options };
        let reopened = Db::open("db", killed).unwrap();
        reopened.compact_range(None, None).unwrap();
        for db in [&db, &reopened] {
            assert_eq!(get(db, 0).as_deref(), Some("put"), "call {nth}");
        }
        if ingested.is_ok() {
            break;
        }
        failed += 1;
    }
    assert!(failed >= 3, "only {failed} failed: of the new manifest, CURRENT and the tables");
}
