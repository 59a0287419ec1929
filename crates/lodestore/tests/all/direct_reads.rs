//! Reading past the page cache finds the same, however it is asked, and is refused
//! where it can't be done.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::ops::Bound;
use std::sync::Arc;

use lodestore::fs::{Fault, FaultFs, Operation};
use lodestore::{Compression, Db, DbCursor, Error, FamilyOptions, MemFs, Options};
use testkit::temp_dir::TempDir;
use testkit::trace_fs::TraceFs;

const KEYS: u32 = 20_000;

fn options() -> Options {
    let family = FamilyOptions {
        memtable_bytes: 256 << 10,
        table_bytes: 128 << 10,
        level1_bytes: 512 << 10,
        compression: Compression::None,
        ..FamilyOptions::default()
    };
    // So few files open that most are opened again and again.
    let open_files_max = Some(6);
    Options {
        create_if_missing: true,
        direct_reads: true,
        cache_bytes: 64 << 10,
        open_files_max,
        family,
        ..Options::default()
    }
}

fn key(i: u32) -> [u8; 4] {
    (i * 2).to_be_bytes()
}

fn value(i: u32) -> Vec<u8> {
    testkit::random::bytes(80 + i as usize % 60, u64::from(i))
}

/// A database of many tables, one large value among them; `None` where the
/// directory can't be read directly.
fn database(directory: &TempDir) -> Result<Option<Db>, Error> {
    let db = match Db::open(directory.path(), options()) {
        Err(Error::InvalidArgument { what, .. }) if what.contains("direct_reads") => {
            println!("not tested: {what}");
            return Ok(None);
        }
        opened => opened?,
    };
    for i in (0..KEYS).map(|i| i * 7919 % KEYS) {
        db.put(&key(i), &value(i))?;
    }
    db.put(b"large", &testkit::random::bytes(3 << 20, 1))?;
    db.flush()?;
    db.compact_range(None, None)?;
    Ok(Some(db))
}

#[test]
fn what_is_read_directly_is_what_was_written() -> Result<(), Error> {
    let directory = TempDir::new("direct");
    let Some(db) = database(&directory)? else { return Ok(()) };
    for i in (0..KEYS).step_by(97) {
        assert_eq!(db.get(&key(i))?.as_deref(), Some(&value(i)[..]));
    }
    // More keys than are looked up together, every third not there.
    let wanted: Vec<Vec<u8>> = (0..15_000)
        .map(|i| if i % 3 == 0 { (i * 2 + 1u32).to_be_bytes().to_vec() } else { key(i).to_vec() })
        .collect();
    let found = db.multi_get(&wanted);
    assert_eq!(found.len(), wanted.len());
    for (i, found) in (0..).zip(found) {
        let expected = (i % 3 != 0).then(|| value(i));
        assert_eq!(found?.as_deref(), expected.as_deref(), "key {i}");
    }
    assert_eq!(db.get(b"large")?.map(|value| value.len()), Some(3 << 20));
    let walked = (0..KEYS).zip(db.range(..&b"large"[..]));
    for (i, entry) in walked {
        let (found, bytes) = entry?;
        assert_eq!((&found[..], &bytes[..]), (&key(i)[..], &value(i)[..]));
    }
    assert_eq!(db.range(..).count(), KEYS as usize + 1);
    db.verify()?;
    drop(db);
    let reader = Db::open_read_only(directory.path(), options())?;
    assert_eq!(reader.get(&key(5))?.as_deref(), Some(&value(5)[..]));
    Ok(())
}

/// Keys and values.
type Held = BTreeMap<Vec<u8>, Vec<u8>>;

/// A database of four runs that is read past the page cache, without a cache of its own,
/// and what is in it: keys that several runs have, and some that are deleted.
fn runs(fs: &TraceFs) -> Result<(Db, Held), Error> {
    let family = FamilyOptions { level0_compaction_files: 20, ..options().family };
    let fs = Arc::new(fs.clone());
    // Half of the files may be read at once.
    let open_files_max = Some(8);
    let db = Db::open("db", Options { fs, cache_bytes: 0, open_files_max, family, ..options() })?;
    let mut held = Held::new();
    for run in 0..4 {
        for i in (run..2_000).step_by(3) {
            db.put(&key(i), &value(i + run))?;
            held.insert(key(i).to_vec(), value(i + run));
            if i % 7 == run {
                db.delete(&key(i))?;
                held.remove(&key(i)[..]);
            }
        }
        db.flush()?;
    }
    Ok((db, held))
}

/// Each run would wait for the device by itself.
#[test]
fn a_seek_reads_the_blocks_of_all_runs_at_once() -> Result<(), Error> {
    let fs = TraceFs::new(Arc::new(MemFs::new()));
    let (db, _) = runs(&fs)?;
    let mut cursor = db.cursor();
    for seek in [DbCursor::seek, DbCursor::seek_for_prev] {
        fs.reads_at_once();
        seek(&mut cursor, &key(1_000));
        assert!(cursor.valid());
        assert_eq!(fs.reads_at_once(), 4);
        // It stands in these blocks already.
        seek(&mut cursor, &key(1_001));
        assert_eq!(fs.reads_at_once(), 0);
        seek(&mut cursor, &key(10));
    }
    Ok(())
}

#[test]
fn seeks_find_what_was_written_both_ways() -> Result<(), Error> {
    let fs = TraceFs::new(Arc::new(MemFs::new()));
    let (db, held) = runs(&fs)?;
    db.compact_range(None, Some(&key(700)))?;
    let mut cursor = db.cursor();
    // From before the first to behind the last, keys between two also.
    for i in (0..4_100u32).map(|i| i * 1_237 % 4_100) {
        let target = i.to_be_bytes().to_vec();
        let (before, from) = (held.range(..=target.clone()), held.range(target.clone()..));
        cursor.seek(&target);
        assert_eq!(here(&cursor), owned(from.clone().next()), "from {i} on");
        cursor.seek_for_prev(&target);
        assert_eq!(here(&cursor), owned(before.clone().next_back()), "up to {i}");
        if cursor.valid() {
            cursor.next();
            let above = (Bound::Excluded(target), Bound::Unbounded);
            assert_eq!(here(&cursor), owned(held.range(above).next()), "after {i}");
        }
    }
    cursor.status()
}

/// A seek says so, of either kind of read; the next one that can read finds the key.
#[test]
fn a_block_that_cannot_be_read_fails_the_seek() -> Result<(), Error> {
    let faults = FaultFs::new(Arc::new(MemFs::new()));
    let (db, held) = runs(&TraceFs::new(Arc::new(faults.clone())))?;
    let mut cursor = db.cursor();
    faults.inject(Fault::new(Operation::Read, 1, ErrorKind::Other).forever());
    cursor.seek(&key(1_000));
    assert!(!cursor.valid());
    assert!(matches!(cursor.status(), Err(Error::Io { .. })), "{:?}", cursor.status());
    faults.heal();
    cursor.seek(&key(1_000));
    assert_eq!(here(&cursor), owned(held.range(key(1_000).to_vec()..).next()));
    cursor.status()
}

fn here(cursor: &DbCursor) -> Option<(Vec<u8>, Vec<u8>)> {
    cursor.valid().then(|| (cursor.key().to_vec(), cursor.value().to_vec()))
}

fn owned(entry: Option<(&Vec<u8>, &Vec<u8>)>) -> Option<(Vec<u8>, Vec<u8>)> {
    entry.map(|(key, value)| (key.clone(), value.clone()))
}

/// Without being able to, it is an error that says so, and nothing is left behind
/// that would be in the way of an opening without the option.
#[test]
fn a_file_system_that_reads_through_the_page_cache_only_is_refused() -> Result<(), Error> {
    let fs = Arc::new(MemFs::new());
    let refused = Db::open("db", Options { fs: fs.clone(), ..options() });
    let Err(Error::InvalidArgument { what, .. }) = refused else { panic!("{refused:?}") };
    assert!(what.contains("direct_reads"), "{what}");
    let db = Db::open("db", Options { direct_reads: false, fs, ..options() })?;
    db.put(b"a", b"1")
}
