//! Tables that are mapped are read as others are; no more are mapped than was
//! allowed, and reading them past the page cache as well is refused.

use lodestore::{Compression, Db, Error, FamilyOptions, Options};
use testkit::temp_dir::TempDir;

const KEYS: u32 = 20_000;
const MAPPED_BYTES_MAX: u64 = 512 << 10;

fn options(mapped_bytes_max: u64) -> Options {
    let family = FamilyOptions {
        memtable_bytes: 256 << 10,
        table_bytes: 128 << 10,
        level1_bytes: 512 << 10,
        compression: Compression::None,
        ..FamilyOptions::default()
    };
    Options {
        create_if_missing: true,
        mapped_bytes_max,
        cache_bytes: 64 << 10,
        family,
        ..Options::default()
    }
}

fn key(i: u32) -> [u8; 4] {
    i.to_be_bytes()
}

fn value(i: u32) -> Vec<u8> {
    testkit::random::bytes(80 + i as usize % 60, u64::from(i))
}

/// A database of many tables, and one value that is longer than what is copied.
fn database(directory: &TempDir, options: Options) -> Result<Db, Error> {
    let db = Db::open(directory.path(), options)?;
    for i in (0..KEYS).map(|i| i * 7919 % KEYS) {
        db.put(&key(i), &value(i))?;
    }
    db.put(b"large", &testkit::random::bytes(1 << 20, 1))?;
    db.flush()?;
    db.compact_range(None, None)?;
    Ok(db)
}

fn mapped_bytes(db: &Db) -> u64 {
    db.property("lodestore.mapped-bytes").expect("it is a property").parse().expect("a number")
}

/// Everything in all the ways, compared with what was written.
fn compare(db: &Db) -> Result<(), Error> {
    for i in 0..KEYS {
        assert_eq!(db.get(&key(i))?.as_deref(), Some(&value(i)[..]), "key {i}");
    }
    let large = db.get(b"large")?.expect("it was written");
    assert_eq!(&large[..], &testkit::random::bytes(1 << 20, 1)[..]);
    let wanted: Vec<_> = (0..KEYS + 10).map(key).collect();
    for (i, found) in (0..).zip(db.multi_get(&wanted)) {
        assert_eq!(found?.as_deref(), (i < KEYS).then(|| value(i)).as_deref(), "key {i}");
    }
    let mut found = 0;
    for (i, entry) in (0..KEYS).zip(db.range(..&b"large"[..])) {
        assert_eq!(&entry?.1[..], &value(i)[..], "key {i}");
        found += 1;
    }
    assert_eq!(found, KEYS);
    Ok(())
}

#[test]
fn what_is_read_from_a_mapping_is_what_was_written() -> Result<(), Error> {
    let directory = TempDir::new("mapped");
    let db = database(&directory, options(u64::MAX))?;
    compare(&db)?;
    db.wait_for_background()?; // until tables that were compacted are gone
    let bytes = db.property("lodestore.table-bytes").and_then(|bytes| bytes.parse().ok());
    assert_eq!(Some(mapped_bytes(&db)), bytes, "all tables are mapped");
    Ok(())
}

#[test]
fn no_more_is_mapped_than_was_allowed_and_tables_that_go_make_room() -> Result<(), Error> {
    let directory = TempDir::new("mapped");
    let db = database(&directory, options(MAPPED_BYTES_MAX))?;
    compare(&db)?;
    let bytes = mapped_bytes(&db);
    assert!(bytes > 0 && bytes <= MAPPED_BYTES_MAX, "{bytes}");
    db.delete_range(&key(0), b"z")?;
    db.flush()?;
    db.compact_range(None, None)?;
    db.wait_for_background()?;
    assert_eq!(mapped_bytes(&db), 0, "all tables are gone");
    Ok(())
}

#[test]
fn nothing_is_mapped_where_nobody_asked_for_it() -> Result<(), Error> {
    let directory = TempDir::new("mapped");
    let db = database(&directory, options(0))?;
    compare(&db)?;
    assert_eq!(mapped_bytes(&db), 0);
    Ok(())
}

#[test]
fn few_open_files_are_enough_for_mapped_tables() -> Result<(), Error> {
    let directory = TempDir::new("mapped");
    let few = Options { open_files_max: Some(6), ..options(u64::MAX) };
    compare(&database(&directory, few)?)
}

#[test]
fn mapping_tables_and_reading_past_the_page_cache_are_refused_together() {
    let directory = TempDir::new("mapped");
    let both = Options { direct_reads: true, ..options(1) };
    let error = Db::open(directory.path(), both).expect_err("they contradict each other");
    assert!(error.to_string().contains("direct_reads and mapped_bytes_max"), "{error}");
}
