//! Databases of every format that was ever frozen, and of today's, are read as they were
//! written.

use lodestore::adopt::roll_back;
use lodestore::inspect::LogFile;
use lodestore::{Db, Error, Family, KeyOrder, ReadOptions};
use std::collections::BTreeSet;
use std::path::Path;
use testkit::files::Files;
use testkit::golden::{self, ADOPTED, FORMAT, VERSIONED};

use super::kept::{self, DIRECTORY, Kept, disk, kept, read};

/// What readers see of each directory, both ways and key by key; reading only changes no
/// byte, and writing goes on.
#[test]
fn golden_directories_are_read_in_full() {
    assert!(kept::formats().contains(&FORMAT.to_string()), "no golden files of {FORMAT}");
    for (format, name) in kept::all() {
        let what = format!("{format}/{name}");
        let Kept { files, expected, .. } = kept(&format, &name);
        let (fs, options) = disk(&files);
        let db = Db::open_read_only(DIRECTORY, options.clone());
        assert_holds(&db.unwrap_or_else(|error| panic!("{what}: {error}")), &expected, &what);
        assert!(read(&fs) == files, "{what}: opening read-only changed a file");
        let db = Db::open(DIRECTORY, options).unwrap_or_else(|error| panic!("{what}: {error}"));
        assert_holds(&db, &expected, &what);
        for name in db.family_names() {
            let family = db.family(&name).expect("it was listed");
            family.compact_range(None, None).expect("its tables can be compacted");
            family.rewrite_range(None, None).expect("its tables can be rewritten");
        }
        assert_holds(&db, &expected, &what);
    }
}

/// All that the files say, also what no reader of the database sees: sequence numbers,
/// times, counts, bounds, and versions that only snapshots could see.
#[test]
fn golden_files_say_what_they_said() {
    for (format, name) in kept::all() {
        let Kept { files, described, .. } = kept(&format, &name);
        let (fs, options) = disk(&files);
        let found = golden::described(&fs, Path::new(DIRECTORY), &options);
        let found = found.unwrap_or_else(|error| panic!("{format}/{name}: {error}"));
        for (nth, (then, now)) in described.lines().zip(found.lines()).enumerate() {
            assert_eq!(then, now, "{format}/{name}.described, line {}", nth + 1);
        }
        assert!(described == found, "{format}/{name}.described goes on or ends early");
    }
}

/// A database that was adopted is LevelDB's again if that is wanted, to the byte.
#[test]
fn adopted_golden_directories_lead_back() {
    for format in kept::formats() {
        let (name, mut original) = (ADOPTED, golden::original());
        let (fs, options) = disk(&kept(&format, name).files);
        roll_back(DIRECTORY, &options).unwrap_or_else(|error| panic!("{format}/{name}: {error}"));
        let mut found = read(&fs);
        for of_either in [&mut original, &mut found] {
            // Locks, and what LevelDB told people.
            of_either.retain(|name, _| !name.starts_with("LO"));
        }
        assert!(original == found, "{format}/{name} is not as LevelDB left it");
    }
}

/// Both ways, key by key, and by what keys begin with.
pub fn assert_holds(db: &Db, expected: &str, what: &str) {
    db.verify().unwrap_or_else(|error| panic!("{what}: {error}"));
    let found = golden::contents(db).unwrap_or_else(|error| panic!("{what}: {error}"));
    assert!(found == expected, "{what} holds something else:\n{found}");
    for name in db.family_names() {
        let family = db.family(&name).expect("it was listed");
        let forward: Vec<(Vec<u8>, Vec<u8>)> = family
            .range(..)
            .map(|entry| entry.map(|(key, value)| (key.to_vec(), value.to_vec())))
            .collect::<Result<_, _>>()
            .expect("it was read before");
        let mut cursor = family.cursor();
        cursor.last();
        for (key, value) in forward.iter().rev() {
            assert_eq!((cursor.key(), cursor.value()), (&key[..], &value[..]), "{what}");
            assert_eq!(family.get(key).expect("it is sound").as_deref(), Some(&value[..]));
            cursor.prev();
        }
        assert!(!cursor.valid() && cursor.status().is_ok(), "{what}: more backward in {name}");
        assert_has_prefixes(&family, &forward, what);
    }
}

/// Filters hide no key from who asks for those with some beginning.
fn assert_has_prefixes(family: &Family, entries: &[(Vec<u8>, Vec<u8>)], what: &str) {
    if family.family_options().order.name() != KeyOrder::Bytewise.name() {
        return;
    }
    let beginnings = |key: &'_ [u8]| (1..=key.len().min(8)).map(|n| key[..n].to_vec()).collect();
    let prefixes: BTreeSet<Vec<u8>> =
        entries.iter().flat_map(|(key, _)| -> Vec<Vec<u8>> { beginnings(key) }).collect();
    for prefix in prefixes {
        let expected = entries.iter().filter(|(key, _)| key.starts_with(&prefix)).count();
        let with_prefix = ReadOptions { prefix: Some(prefix.clone()), ..ReadOptions::default() };
        let found = family.range_with(&with_prefix, ..).filter(|entry| entry.is_ok()).count();
        assert_eq!(found, expected, "{what}: keys with {}", prefix.escape_ascii());
    }
}

/// A short record that was made by the page of the format is read, with the numbers behind
/// those of the batch before it.
#[test]
fn short_records_are_what_their_page_says() {
    let (log, mut files) = ("000048.wal", kept(FORMAT, "database").files);
    let (fs, options) = disk(&files);
    let last = Db::open_read_only(DIRECTORY, options).expect("it is sound").latest_sequence();
    let path = Path::new(DIRECTORY).join(log);
    let end = LogFile::open(&fs, &path).and_then(LogFile::end).expect("it is sound").offset;
    // Two puts, and a delete of the first of them.
    let records = b"\x01\x05short\x04gone\x01\x06short2\x04here\x00\x05short";
    let bytes = files.get_mut(log).expect("it is there");
    golden::sealing::append_short_to_log(bytes, end, 3, records);
    let (_, options) = disk(&files);
    let db = Db::open(DIRECTORY, options).expect("a short record is no damage");
    assert!(db.get(b"short").expect("it can be read").is_none());
    assert_eq!(db.get(b"short2").expect("it can be read").as_deref(), Some(&b"here"[..]));
    assert_eq!(db.latest_sequence(), last + 3);
}

/// What a later build wrote, or one of before the freeze, is refused as such, and not a
/// byte of it changes.
#[test]
fn other_versions_are_refused_and_left_alone() {
    let files: Files = kept(FORMAT, "database").files;
    let (older, newer) = ("an older build wrote it", "a newer build wrote it");
    let versions = |kind: &str| {
        let next = if kind == ".wal" { 0x0102 } else { 0x0101 };
        [(3, older), (next, newer), (0x0200, newer)]
    };
    let of_all_kinds = VERSIONED.iter().flat_map(|kind| versions(kind).map(|other| (kind, other)));
    for (kind, (version, who)) in of_all_kinds {
        let other = golden::of_version(&files, kind, version);
        assert!(other != files, "no file {kind}");
        let (fs, options) = disk(&other);
        for read_only in [true, false] {
            let opened = match read_only {
                true => Db::open_read_only(DIRECTORY, options.clone()),
                false => Db::open(DIRECTORY, options.clone()),
            };
            let refused = opened.and_then(|db| db.verify());
            let error = refused.expect_err("another version was read");
            let is_told = error.to_string().contains(who);
            assert!(matches!(error, Error::Incompatible { .. }) && is_told, "{kind}: {error}");
            assert!(read(&fs) == other, "{kind}: a database of another version was changed");
        }
    }
}
