//! Few file descriptors: everything works with 64, and where there are none at
//! all a call says so, loses nothing, and works when there are some again.
//!
//! A limit is a process's: each test runs its part in a child.

use lodestore::{Db, Error, Family, FamilyOptions, Options, ReadOptions};
use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;
use testkit::temp_dir::TempDir;

const DIRECTORY: &str = "LODESTORE_TEST_DIRECTORY";
const KEYS: u32 = 3000;
const FAMILIES: usize = 12;

/// Runs the ignored test `name` with `limit` descriptors, soft and hard.
fn run_child(name: &str, limit: u32, directory: &Path) {
    let output = Command::new("sh")
        .arg("-c")
        .arg(format!("ulimit -n {limit} && exec \"$0\" \"$@\""))
        .arg(std::env::current_exe().expect("this test has a path"))
        .args(["--exact", &format!("descriptors::{name}"), "--ignored", "--nocapture"])
        .env(DIRECTORY, directory)
        .output()
        .expect("a shell starts");
    let (out, err) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{name} with {limit} descriptors:\n{out}\n{err}");
    assert!(out.contains("1 passed"), "the child ran no test:\n{out}");
}

fn directory() -> PathBuf {
    std::env::var_os(DIRECTORY).expect("the parent names it").into()
}

/// Tables of few entries, so that there are hundreds of them.
fn options() -> Options {
    let family = FamilyOptions {
        memtable_bytes: 32 << 10,
        table_bytes: 4 << 10,
        block_bytes: 512,
        level1_bytes: 64 << 10,
        ..FamilyOptions::default()
    };
    Options { create_if_missing: true, cache_bytes: 0, family, ..Options::default() }
}

fn key(i: u32) -> Vec<u8> {
    format!("key{i:08}").into_bytes()
}

/// A value that tells key and round.
fn value(i: u32, round: u32) -> Vec<u8> {
    testkit::random::bytes(100, u64::from(i) << 8 | u64::from(round))
}

fn load(family: &Family, round: u32) -> Result<(), Error> {
    (0..KEYS).try_for_each(|i| family.put(&key(i * 7 % KEYS), &value(i * 7 % KEYS, round)))
}

fn check(family: &Family, round: u32) -> Result<(), Error> {
    let expected: BTreeMap<_, _> = (0..KEYS).map(|i| (key(i), value(i, round))).collect();
    let found: Result<BTreeMap<_, _>, Error> = family.range(..).collect();
    assert!(found? == expected, "a scan gives every entry");
    for i in (0..KEYS).step_by(7) {
        assert!(family.get(&key(i))?.as_deref() == Some(&value(i, round)[..]));
    }
    let keys: Vec<_> = (0..KEYS).step_by(5).map(key).collect();
    for (i, found) in family.multi_get(&keys).into_iter().enumerate() {
        assert!(found?.as_deref() == Some(&value(i as u32 * 5, round)[..]));
    }
    Ok(())
}

#[track_caller]
fn is_out_of_descriptors(error: &Error) -> bool {
    match error {
        Error::Io { source, .. } => {
            assert_eq!(source.raw_os_error(), Some(24), "{error}");
            true
        }
        other => panic!("missing descriptors look like {other}"),
    }
}

/// Load, compactions, scans both ways, families, a checkpoint, verification
/// and reopening, with hundreds of tables and 64 descriptors.
#[test]
fn everything_works_with_64_descriptors() {
    let directory = TempDir::new("descriptors");
    run_child("child_with_64", 64, directory.path());
}

#[test]
#[ignore = "run by the test above, in a process of its own"]
fn child_with_64() {
    full_function(&directory()).expect("every call succeeds");
}

fn full_function(directory: &Path) -> Result<(), Error> {
    let db = Db::open(directory.join("db"), options())?;
    let families: Result<Vec<Family>, Error> =
        (0..FAMILIES).map(|i| db.create_family(&format!("f{i}"), options().family)).collect();
    let families = families?;
    load(&db, 0)?;
    let early = db.snapshot();
    load(&db, 1)?;
    for (i, family) in families.iter().enumerate() {
        family.put(b"only", format!("{i}").as_bytes())?;
        family.flush()?;
    }
    db.wait_for_background()?;
    let files = db.stats().files();
    assert!(files > 100, "only {files} tables");
    check(&db, 1)?;
    // Cursors that stay, each in other tables.
    let mut cursors: Vec<_> = (0..40).map(|_| db.cursor()).collect();
    for (i, cursor) in cursors.iter_mut().enumerate() {
        cursor.seek(&key(i as u32 * KEYS / 40));
    }
    for _ in 0..20 {
        for cursor in &mut cursors {
            cursor.next();
            cursor.status()?;
        }
    }
    let old = ReadOptions { snapshot: Some(early), ..ReadOptions::default() };
    assert!(db.get_with(&old, &key(5))?.as_deref() == Some(&value(5, 0)[..]));
    db.compact_range(None, None)?;
    db.verify()?;
    let copy = directory.join("copy");
    db.checkpoint(&copy)?;
    let closed = db.statistics().get(lodestore::Counter::FilesClosed);
    assert!(closed > 0, "the cap was never reached");
    drop((cursors, families, db));
    for path in [directory.join("db"), copy] {
        let db = Db::open(path, Options { create_if_missing: false, ..options() })?;
        check(&db, 1)?;
        for i in 0..FAMILIES {
            let family = db.family(&format!("f{i}")).expect("it was created");
            assert!(family.get(b"only")?.as_deref() == Some(format!("{i}").as_bytes()));
        }
    }
    Ok(())
}

/// However few descriptors are left of 20, an open or a write succeeds or says
/// that there are none; nothing acknowledged is lost, and when there are more
/// again all goes on, without reopening or resuming.
#[test]
fn missing_descriptors_are_told_and_pass() {
    let directory = TempDir::new("descriptors");
    run_child("child_with_20", 20, directory.path());
    let db = Db::open(directory.path().join("db"), options()).expect("it opens with more");
    check(&db, 3).expect("nothing is lost");
}

#[test]
#[ignore = "run by the test above, in a process of its own"]
fn child_with_20() {
    let path = directory().join("db");
    let opened = (0..14).filter(|&left| opens_or_tells(&path, left)).count();
    assert!(0 < opened && opened < 14, "{opened} of 14 opens succeeded");
    let db = Db::open(&path, options()).expect("with all descriptors it opens");
    load(&db, 3).expect("and takes writes");
    drop(db);
    let lefts = [0, 1, 3, 6];
    let written = lefts.iter().filter(|&&left| writes_or_tells(&directory(), left)).count();
    assert!(written < lefts.len(), "no write ever failed");
}

/// Takes all descriptors but `left`.
fn take_descriptors(left: usize) -> Vec<File> {
    let mut taken: Vec<File> = std::iter::from_fn(|| File::open("/dev/null").ok()).collect();
    taken.truncate(taken.len().saturating_sub(left));
    taken
}

fn opens_or_tells(path: &Path, left: usize) -> bool {
    let taken = take_descriptors(left);
    let result = Db::open(path, options());
    drop(taken);
    match result {
        Ok(_) => true,
        Err(error) => !is_out_of_descriptors(&error),
    }
}

/// Writes to a new database, which has no table that it could close.
fn writes_or_tells(directory: &Path, left: usize) -> bool {
    let path = directory.join(format!("left{left}"));
    let db = Db::open(path, options()).expect("with all descriptors it opens");
    let taken = take_descriptors(left);
    let mut told = None;
    for i in 0..KEYS {
        if let Err(error) = db.put(&key(i), &value(i, 1)) {
            is_out_of_descriptors(&error);
            told = Some(i);
            break;
        }
    }
    drop(taken);
    for i in 0..KEYS {
        let expected = told.is_none_or(|end| i < end).then(|| value(i, 1));
        assert!(db.get(&key(i)).expect("reads go on").as_deref() == expected.as_deref());
    }
    let mut tries = 0;
    while let Err(error) = load(&db, 2) {
        // A flush that failed is tried again after a pause.
        assert!(is_out_of_descriptors(&error) && tries < 100, "writes go on by themselves");
        std::thread::sleep(std::time::Duration::from_millis(50));
        tries += 1;
    }
    db.wait_for_background().expect("and so does the background");
    check(&db, 2).expect("all is there");
    told.is_none()
}
