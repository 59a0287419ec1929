//! With `preload_tables` tables are open before anybody asks for a key.

use lodestore::{Db, Error, FamilyOptions, Options};
use testkit::temp_dir::TempDir;

fn options(preload_tables: bool) -> Options {
    let family =
        FamilyOptions { memtable_bytes: 64 << 10, table_bytes: 32 << 10, ..Default::default() };
    Options { create_if_missing: true, preload_tables, family, ..Options::default() }
}

/// Tables, and how many of them are open: only of these the codec is known.
fn tables(db: &Db) -> (usize, usize) {
    let text = db.property("lodestore.tables").expect("it is a property");
    (text.lines().count(), text.lines().filter(|line| !line.contains("codec - ")).count())
}

#[test]
fn tables_are_open_before_they_are_asked() -> Result<(), Error> {
    let directory = TempDir::new("preload");
    let db = Db::open(directory.path(), options(true))?;
    for i in 0..4_000u32 {
        db.put(&i.to_be_bytes(), &testkit::random::bytes(100, u64::from(i)))?;
    }
    db.flush()?;
    db.wait_for_background()?;
    let (all, open) = tables(&db);
    assert!(all > 3 && open == all, "{open} of {all} tables are open after flushes");
    db.compact_range(None, None)?;
    let (all, open) = tables(&db);
    assert!(all > 3 && open == all, "{open} of {all} tables are open after a compaction");
    drop(db);
    for (preload, expected) in [(true, all), (false, 0)] {
        let db = Db::open_read_only(directory.path(), options(preload))?;
        assert_eq!(tables(&db), (all, expected), "opened for reading, {preload}");
        drop(db);
        let db = Db::open(directory.path(), options(preload))?;
        assert_eq!(tables(&db), (all, expected), "opened for writing, {preload}");
    }
    Ok(())
}

/// A table that cannot be opened is for lookups to tell, and opening goes on.
#[test]
fn a_damaged_table_does_not_keep_a_database_from_opening() -> Result<(), Error> {
    let directory = TempDir::new("preload damage");
    let db = Db::open(directory.path(), options(true))?;
    db.put(b"key", b"value")?;
    db.flush()?;
    drop(db);
    let entries = std::fs::read_dir(directory.path()).expect("it is there");
    let mut paths = entries.map(|entry| entry.expect("it can be listed").path());
    let path = paths.find(|path| path.extension().is_some_and(|name| name == "table"));
    let path = path.expect("a table was flushed");
    let mut bytes = std::fs::read(&path).expect("it can be read");
    let half = bytes.len() / 2;
    bytes[half..].fill(0xee);
    std::fs::write(&path, bytes).expect("it can be written");
    let db = Db::open_read_only(directory.path(), options(true))?;
    assert!(matches!(db.get(b"key"), Err(Error::Corruption { .. })));
    Ok(())
}
