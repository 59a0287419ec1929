//! Reading past the page cache finds the same, however it is asked, and is refused
//! where it can't be done.

use std::sync::Arc;

use lodestore::{Compression, Db, Error, FamilyOptions, MemFs, Options};
use testkit::temp_dir::TempDir;

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
