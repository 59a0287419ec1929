//! At each limit it works; one past it is `InvalidArgument`, and nothing
//! was changed.

use lodestore::{
    Db, Error, Family, FamilyOptions, Fs, KEY_BYTES_MAX, MemFs, Options, VALUE_BYTES_MAX,
    WriteBatch, WriteOptions,
};
use std::path::Path;
use std::sync::Arc;

fn open() -> Db {
    open_on(&MemFs::new())
}

fn open_on(disk: &MemFs) -> Db {
    let options =
        Options { create_if_missing: true, fs: Arc::new(disk.clone()), ..Options::default() };
    Db::open("/limits", options).expect("a database in memory opens")
}

#[track_caller]
fn is_refused<T>(result: Result<T, Error>) {
    match result {
        Err(Error::InvalidArgument { .. }) => {}
        Err(other) => panic!("refused, but with {other}"),
        Ok(_) => panic!("was not refused"),
    }
}

/// One byte too long. The pages of such a slice are never touched, so it costs
/// address space only; an engine that copied it before checking would show.
fn one_too_long(limit: usize) -> Vec<u8> {
    vec![0; limit + 1]
}

/// A key or value past the limit is refused by every call that takes one.
#[test]
fn too_long_keys_and_values_change_nothing() -> Result<(), Error> {
    let db = open();
    db.put(b"k", b"before")?;
    let sequence = db.latest_sequence();
    let (key, value) = (one_too_long(KEY_BYTES_MAX), one_too_long(VALUE_BYTES_MAX));
    is_refused(db.put(&key, b""));
    is_refused(db.put(b"k", &value));
    is_refused(db.delete(&key));
    let mut batch = WriteBatch::new();
    batch.put(b"k", b"within");
    batch.put(b"k", &value);
    is_refused(db.write_with(&WriteOptions::default(), &mut batch));
    batch.clear();
    batch.put(b"after", b"clearing");
    db.write(batch)?;
    assert_eq!(db.latest_sequence(), sequence + 1);
    assert_eq!(db.get(b"k")?.as_deref(), Some(&b"before"[..]));
    Ok(())
}

/// The longest key and the longest value are kept: in the log, in memory, in
/// a table and through a compaction; and come back after a reopening.
#[test]
#[ignore = "takes much memory and disk; run by scripts/test-limits"]
fn the_longest_key_and_value_are_kept() -> Result<(), Error> {
    let bytes = |limit: usize| match std::env::var("LIMIT_BYTES") {
        Ok(less) => less.parse().expect("LIMIT_BYTES is a number of bytes"),
        Err(_) => limit,
    };
    let directory = testkit::temp_dir::TempDir::new("limits");
    let open = || {
        let options = Options { create_if_missing: true, cache_bytes: 0, ..Options::default() };
        Db::open(directory.path(), options)
    };
    // One byte that differs at each end, so that neither a cut nor a shift
    // goes unnoticed.
    let long = |limit: usize| {
        let mut long = vec![b'.'; bytes(limit)];
        *long.first_mut().expect("it is long") = b'<';
        *long.last_mut().expect("it is long") = b'>';
        long
    };
    for in_key in [true, false] {
        // Made anew for each use: the engine needs the memory.
        let entry = || match in_key {
            true => (long(KEY_BYTES_MAX), b"v".to_vec()),
            false => (b"k".to_vec(), long(VALUE_BYTES_MAX)),
        };
        let is_found = |db: &Db| {
            let (key, value) = entry();
            Ok::<bool, Error>(db.get(&key)?.as_deref() == Some(&value[..]))
        };
        let db = open()?;
        {
            let (key, value) = entry();
            db.put(&key, &value)?;
        }
        assert!(is_found(&db)?, "from memory");
        drop(db);
        let db = open()?;
        assert!(is_found(&db)?, "replayed into a table");
        db.put(b"", b"something to compact with")?;
        db.compact_range(None, None)?;
        {
            let mut cursor = db.cursor();
            cursor.last();
            let (key, value) = entry();
            assert!(cursor.valid() && cursor.key() == key && cursor.value() == value, "compacted");
        }
        db.delete(&entry().0)?;
        assert!(!is_found(&db)?);
        db.compact_range(None, None)?;
    }
    Ok(())
}

/// Long keys and values work wherever they lie.
#[test]
fn long_keys_and_values_are_kept() -> Result<(), Error> {
    let disk = MemFs::new();
    let db = open_on(&disk);
    let key = testkit::random::bytes(1 << 20, 1);
    let value = testkit::random::bytes(20 << 20, 2);
    db.put(&key, b"long key")?;
    db.put(b"long value", &value)?;
    let check = |db: &Db| -> Result<(), Error> {
        assert_eq!(db.get(&key)?.as_deref(), Some(&b"long key"[..]));
        assert!(db.get(b"long value")?.as_deref() == Some(&value[..]));
        let mut cursor = db.cursor();
        cursor.seek(&key);
        assert!(cursor.valid() && cursor.key() == key);
        cursor.status()
    };
    check(&db)?;
    db.flush()?;
    check(&db)?;
    db.compact_range(None, None)?;
    check(&db)?;
    let names = disk.list("/limits".as_ref()).expect("the directory is there");
    let manifest = names.iter().find(|name| name.starts_with("MANIFEST")).expect("there is one");
    let bytes = disk.length(&Path::new("/limits").join(manifest)).expect("it is there");
    assert!(bytes < key.len() as u64, "bounds of tables are short");
    Ok(())
}

/// Keys that are longer than the bounds of tables may be, also those that
/// differ behind such a bound only, are told apart in every level, with range
/// deletes that begin and end among them.
#[test]
fn keys_longer_than_bounds_are_told_apart() -> Result<(), Error> {
    let disk = Arc::new(MemFs::new());
    let open = || {
        let mut options =
            Options { create_if_missing: true, fs: Arc::clone(&disk) as _, ..Options::default() };
        options.family.table_bytes = 256 << 10;
        options.family.level1_bytes = 512 << 10;
        Db::open("/limits", options)
    };
    let alike = |i: u8| [&[b'p'; 70_000][..], &[i]].concat();
    let apart = |i: u8| vec![i; 70_000];
    let mut db = open()?;
    let mut expected = std::collections::BTreeMap::new();
    let mut put = |db: &Db, key: Vec<u8>, value: u8| {
        db.put(&key, &[value])?;
        expected.insert(key, value);
        Ok::<(), Error>(())
    };
    for round in 0..3 {
        for i in (round..250).step_by(5) {
            put(&db, alike(i), round)?;
            put(&db, apart(i), round)?;
        }
        db.flush()?;
    }
    for (from, to) in [(alike(20), alike(30)), (apart(40), alike(7)), (apart(0xfe), apart(0xff))] {
        db.delete_range(&from, &to)?;
        expected.retain(|key, _| *key < from || *key >= to);
    }
    for stage in ["in memory", "in level 0", "compacted", "reopened"] {
        match stage {
            "in level 0" => db.flush()?,
            "compacted" => db.compact_range(None, None)?,
            "reopened" => {
                drop(db);
                db = open()?;
            }
            _ => {}
        }
        let found = |key: &Vec<u8>| db.get(key).map(|value| value.map(|value| value[0]));
        for key in (0..=0xff).flat_map(|i| [alike(i), apart(i)]) {
            assert_eq!(found(&key)?, expected.get(&key).copied(), "{stage}");
        }
        let all: Result<Vec<_>, Error> = db.range(..).collect();
        let all = all?.into_iter().map(|(key, value)| (key.to_vec(), value[0]));
        assert!(all.eq(expected.clone()), "{stage}");
        db.verify()?;
    }
    Ok(())
}

/// An option at its least value works; one below it is refused at opening, and
/// nothing is created.
#[test]
fn options_below_their_least_value_are_refused() -> Result<(), Error> {
    type Set = fn(&mut FamilyOptions, i64);
    let knobs: [(&str, i64, Set); 6] = [
        ("memtable_bytes", 1024, |f, by| f.memtable_bytes = (1024 + by) as usize),
        ("sealed_memtables_max", 1, |f, by| f.sealed_memtables_max = (1 + by) as usize),
        ("block_bytes", 64, |f, by| f.block_bytes = (64 + by) as usize),
        ("table_bytes", 1024, |f, by| f.table_bytes = (1024 + by) as u64),
        ("level1_bytes", 1024, |f, by| f.level1_bytes = (1024 + by) as u64),
        ("level_multiplier", 2, |f, by| f.level_multiplier = (2 + by) as u32),
    ];
    for (name, least, set) in knobs {
        let fs = Arc::new(MemFs::new());
        let mut options = Options { create_if_missing: true, fs, ..Options::default() };
        set(&mut options.family, -1);
        is_refused(Db::open("/limits", options.clone()));
        options.create_if_missing = false;
        set(&mut options.family, 0);
        let missing = Db::open("/limits", options.clone());
        assert!(matches!(missing, Err(Error::Missing { .. })), "{name} {least}");
        options.create_if_missing = true;
        let db = Db::open("/limits", options)?;
        fill(&db)?;
    }
    Ok(())
}

fn fill(family: &Family) -> Result<(), Error> {
    for i in 0..60u32 {
        family.put(&i.to_be_bytes(), &testkit::random::bytes(100, u64::from(i)))?;
    }
    family.flush()?;
    family.compact_range(None, None)?;
    for i in 0..60u32 {
        let expected = testkit::random::bytes(100, u64::from(i));
        assert_eq!(family.get(&i.to_be_bytes())?.as_deref(), Some(&expected[..]));
    }
    Ok(())
}

/// A family's name may not be empty; nor may it be taken.
#[test]
fn a_family_needs_a_name_of_its_own() -> Result<(), Error> {
    let db = open();
    is_refused(db.create_family("", FamilyOptions::default()));
    is_refused(db.create_family("default", FamilyOptions::default()));
    db.create_family("f", FamilyOptions::default())?;
    is_refused(db.create_family("f", FamilyOptions::default()));
    is_refused(db.drop_family("default"));
    assert!(matches!(db.drop_family("g"), Err(Error::Missing { .. })));
    assert_eq!(db.family_names(), ["default", "f"]);
    Ok(())
}

/// A handle of a dropped family writes nothing, also if the name is used again.
#[test]
fn a_dropped_family_takes_no_writes() -> Result<(), Error> {
    let db = open();
    let old = db.create_family("f", FamilyOptions::default())?;
    old.put(b"k", b"old")?;
    db.drop_family("f")?;
    let new = db.create_family("f", FamilyOptions::default())?;
    assert!(old.put(b"k", b"late").is_err());
    let mut batch = WriteBatch::new();
    batch.put(b"other", b"record");
    batch.put_in(&old, b"k", b"late");
    assert!(db.write(batch).is_err());
    assert!(new.get(b"k")?.is_none());
    assert!(db.get(b"other")?.is_none());
    Ok(())
}

/// The largest sequence number can be given out; nothing after it, and the
/// database stays of use.
#[test]
fn sequence_numbers_end_at_their_limit() -> Result<(), Error> {
    let last = (1 << 56) - 1;
    let db = open();
    let mut batch = WriteBatch::new();
    batch.put(b"a", b"1");
    batch.put(b"b", b"2");
    for first in [last, last + 1, u64::MAX - 1, u64::MAX] {
        is_refused(db.apply_at(first, &mut batch));
    }
    assert_eq!(db.latest_sequence(), 0);
    db.apply_at(last - 1, &mut batch)?;
    assert_eq!(db.latest_sequence(), last);
    is_refused(db.put(b"c", b"3"));
    db.flush()?;
    assert_eq!(db.get(b"b")?.as_deref(), Some(&b"2"[..]));
    is_refused(db.put(b"c", b"3"));
    assert_eq!(db.get(b"c")?, None);
    Ok(())
}

/// A handle of a dropped family goes on reading all that it held, wherever
/// that lies, and never a part of it.
#[test]
fn a_dropped_family_can_still_be_read() -> Result<(), Error> {
    let db = open();
    let options = FamilyOptions {
        merge_operator: Some(Arc::new(lodestore::Append::with_delimiter(b","))),
        ..FamilyOptions::default()
    };
    let family = db.create_family("f", options)?;
    family.put(b"table", b"1")?;
    family.put(b"both", b"1")?;
    family.flush()?;
    family.merge(b"both", b"2")?;
    db.drop_family("f")?;
    db.put(b"k", b"v")?;
    db.flush()?;
    db.wait_for_background()?;
    assert_eq!(family.get(b"table")?.as_deref(), Some(&b"1"[..]));
    assert_eq!(family.get(b"both")?.as_deref(), Some(&b"1,2"[..]));
    assert_eq!(family.range(..).count(), 2);
    Ok(())
}

/// A memtable may be as large as its arena allows beside the largest batch.
#[test]
fn memtables_have_a_largest_size() {
    let mut options =
        Options { create_if_missing: true, fs: Arc::new(MemFs::new()), ..Options::default() };
    options.family.memtable_bytes = (4 << 30) + 1;
    is_refused(Db::open("/limits", options.clone()));
    options.family.memtable_bytes = 4 << 30;
    Db::open("/limits", options).expect("it opens");
}

/// Families that are never full do not let the log grow without bound.
#[test]
fn many_small_families_do_not_keep_the_log_for_ever() -> Result<(), Error> {
    let statistics = std::sync::Arc::new(lodestore::Statistics::default());
    let disk = MemFs::new();
    let options = Options {
        create_if_missing: true,
        fs: std::sync::Arc::new(disk.clone()),
        log_bytes_max: 64 << 10,
        statistics: Some(std::sync::Arc::clone(&statistics)),
        ..Options::default()
    };
    let db = Db::open("limits", options)?;
    let families: Result<Vec<Family>, Error> =
        (0..20).map(|i| db.create_family(&format!("f{i}"), Default::default())).collect();
    for (i, family) in families?.iter().cycle().take(2000).enumerate() {
        family.put(format!("{i}").as_bytes(), &[7; 1000])?;
    }
    db.wait_for_background()?;
    // 2 MB were written, in memtables of 64 MiB.
    assert!(statistics.get(lodestore::Counter::Flushes) >= 20, "families were flushed");
    let names = lodestore::Fs::list(&disk, "limits".as_ref()).expect("the directory is there");
    let logs = names.iter().filter(|name| name.ends_with(".wal")).count();
    assert!(logs < 20, "{logs} segments are left");
    Ok(())
}
