//! The doors that the formats leave open for later builds, tried with whole databases:
//! what need not be understood changes nothing, and what must is refused by all who
//! read, before a byte has changed.
//!
//! More of them, with databases made for the purpose: `repair/newer_tests.rs`.

mod changes;

use lodestore::repair::Repair;
use lodestore::{Db, Error, MemFs, Options, Result};
use testkit::files::Files;
use testkit::golden::{FORMAT, sealing};

use super::kept::{DIRECTORY, Kept, disk, kept, read};
use super::reading::assert_holds;
use changes::{Change, NEWEST_TABLE, OLD_TABLE};

/// A database that a later build has changed by `change`.
fn changed(change: &Change) -> (Files, MemFs, Options) {
    let mut files = kept(FORMAT, "database").files;
    (change.make)(&mut files);
    let (fs, options) = disk(&files);
    (files, fs, options)
}

/// What may be skipped is: by who reads, writes, compacts, verifies and repairs.
#[test]
fn optional_things_of_later_builds_are_skipped() {
    let Kept { expected, .. } = kept(FORMAT, "database");
    for change in changes::skipped() {
        let what = change.what;
        let (files, fs, options) = changed(&change);
        let opened = Db::open_read_only(DIRECTORY, options.clone());
        assert_holds(&opened.unwrap_or_else(|error| panic!("{what}: {error}")), &expected, what);
        let repair = Repair::read(DIRECTORY, &options).unwrap_or_else(|e| panic!("{what}: {e}"));
        assert_eq!(repair.report().losses, [], "{what}");
        repair.write_to("/repaired").unwrap_or_else(|error| panic!("{what}: {error}"));
        let repaired = Db::open_read_only("/repaired", options.clone());
        assert_holds(&repaired.unwrap_or_else(|error| panic!("{what}: {error}")), &expected, what);
        assert!(read(&fs) == files, "{what}: reading changed a file");
        let db = Db::open(DIRECTORY, options).unwrap_or_else(|error| panic!("{what}: {error}"));
        db.compact_range(None, None).unwrap_or_else(|error| panic!("{what}: {error}"));
        assert_holds(&db, &expected, what);
    }
}

/// What must be understood is refused by name, and no byte changes: things of the whole
/// database, and of the table that opening looks at.
#[test]
fn mandatory_things_of_later_builds_are_refused() {
    for change in changes::refused().into_iter().chain(changes::of_table(NEWEST_TABLE)) {
        let (files, fs, options) = changed(&change);
        for (reader, outcome) in outcomes(&options) {
            assert_incompatible(&outcome, &format!("{}: {reader}", change.what));
        }
        assert!(read(&fs) == files, "{}: a file has changed", change.what);
    }
}

/// The same of a table that opening does not look at: who reads it refuses, repair refuses,
/// and its bytes stay. That it is met before anything else changes is what the manifest's
/// features are for.
#[test]
fn mandatory_things_of_an_older_table_are_refused() {
    for change in changes::of_table(OLD_TABLE).into_iter().chain([changes::of_block()]) {
        let (files, fs, options) = changed(&change);
        for (reader, outcome) in outcomes(&options) {
            assert_incompatible(&outcome, &format!("{}: {reader}", change.what));
        }
        assert!(read(&fs)[OLD_TABLE] == files[OLD_TABLE], "{}: it has changed", change.what);
    }
    let (mut files, ..) = changed(&changes::of_table(OLD_TABLE)[0]);
    let manifest = changes::manifest(&mut files);
    sealing::set_manifest_byte(manifest, changes::MANIFEST_INCOMPATIBLE_AT, 1);
    let (fs, options) = disk(&files);
    for (reader, outcome) in outcomes(&options) {
        assert_incompatible(&outcome, reader);
    }
    assert!(read(&fs) == files, "a feature that the manifest names was met too late");
}

/// What must be understood by writers alone can be read, and is not written to.
#[test]
fn features_that_forbid_writing_leave_reading() {
    let Kept { expected, .. } = kept(FORMAT, "database");
    let (files, fs, options) = changed(&changes::read_compatible_log());
    let db = Db::open_read_only(DIRECTORY, options.clone()).expect("it can be read");
    assert_holds(&db, &expected, "a log that can only be read");
    drop(db);
    assert_incompatible(&Db::open(DIRECTORY, options.clone()).map(drop), "writing");
    assert!(read(&fs) == files, "a database that can only be read was changed");

    let (files, fs, options) = changed(&changes::read_compatible_table());
    let db = Db::open(DIRECTORY, options).expect("other tables can be written");
    assert_holds(&db, &expected, "a table that can only be read");
    assert_incompatible(&db.rewrite_range(None, None), "rewriting the table");
    drop(db);
    assert!(read(&fs)[OLD_TABLE] == files[OLD_TABLE], "it was rewritten");
}

/// What comes of reading, of repair, and, last, of writing.
fn outcomes(options: &Options) -> [(&'static str, Result<()>); 3] {
    let read_only = || Db::open_read_only(DIRECTORY, options.clone())?.verify().map(drop);
    let repair = || Repair::read(DIRECTORY, options).map(drop);
    let write = || Db::open(DIRECTORY, options.clone())?.verify().map(drop);
    [("reading", read_only()), ("repair", repair()), ("writing", write())]
}

fn assert_incompatible(outcome: &Result<()>, what: &str) {
    assert!(matches!(outcome, Err(Error::Incompatible { .. })), "{what}: {outcome:?}");
}
