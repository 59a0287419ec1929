//! `lode db` on directories of LevelDB: everything that reads works, nothing in
//! them changes, and what writes says how to adopt them.

#[allow(dead_code, reason = "other tests use more of it")]
mod lode;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::SystemTime;

use lode::{Place, Ran, lode, text};
use lodestore::{Fs, OsFs};
use serde_json::Value;

/// A copy of a database that LevelDB has made, in `db` of a place.
fn made(name: &str) -> Place {
    let place = Place::new();
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/leveldb").join(name);
    std::fs::create_dir(place.path("db")).expect("a new place");
    for entry in std::fs::read_dir(from).expect("it is in testdata") {
        let from = entry.expect("it can be listed").path();
        let to = place.path("db").join(from.file_name().expect("it has a name"));
        std::fs::copy(from, to).expect("it can be copied");
    }
    place
}

/// Every byte of every file, and when each was written, the directory's own too.
fn bytes(place: &Place) -> BTreeMap<PathBuf, (SystemTime, Vec<u8>)> {
    let entries = std::fs::read_dir(place.path("db")).expect("it is there");
    let written = |path: &Path| path.metadata().and_then(|of| of.modified()).expect("it is told");
    let read = |path: PathBuf| {
        let bytes = std::fs::read(&path).expect("it can be read");
        (path.clone(), (written(&path), bytes))
    };
    let files = entries.map(|entry| read(entry.expect("it can be listed").path()));
    let directory = place.path("db");
    let own = (directory.clone(), (written(&directory), Vec::new()));
    files.chain([own]).collect()
}

/// Runs `lode db` and sees to it that the directory stays as it is.
fn untouched(place: &Place, arguments: &[&str]) -> Ran {
    let before = bytes(place);
    let ran = place.db(arguments);
    assert!(bytes(place) == before, "{arguments:?} has changed something: {ran:?}");
    ran
}

fn file(place: &Place, name: &str) -> String {
    text(&place.path("db").join(name)).to_string()
}

const NEWEST: &str = "\
account/000001\tvalue 7;value 7;value 7;value 7;value 7;value 7;value 7;value 7;
account/000002\tvalue 14;value 14;value 14;value 14;value 14;value 14;value 14;
";

/// Keys that are in a table, in the log, in both, and deleted in the log: read one
/// by one and in order.
#[test]
fn entries_of_tables_and_logs_are_read() {
    let place = made("small");
    let ran = untouched(&place, &["get", "account/000001"]).expect(0);
    assert_eq!(ran.text(), NEWEST.lines().next().expect("a line")[15..].to_string() + "\n");
    let ran = untouched(&place, &["get", "account/000010"]).expect(0);
    assert!(ran.text().starts_with("value 71;"), "{}", ran.text());
    for absent in ["nowhere", "account/000000"] {
        assert!(untouched(&place, &["get", absent]).expect(1).err.contains("there is no key"));
    }
    assert_eq!(untouched(&place, &["scan", "--limit", "2"]).expect(0).text(), NEWEST);
    let back =
        untouched(&place, &["scan", "--reverse", "--keys-only", "--prefix", "account/00000"]);
    let keys: Vec<String> = (0..10).rev().map(|n| format!("account/{n:06}")).collect();
    assert_eq!(
        back.expect(0).text().lines().filter(|key| !keys.iter().any(|k| k == key)).count(),
        0
    );
    for (name, expected) in
        [("empty", 0), ("filters", 2788), ("log", 300), ("raw", 103), ("versions", 266)]
    {
        let place = made(name);
        let ran = untouched(&place, &["scan", "--keys-only"]).expect(0);
        assert_eq!(ran.text().lines().count(), expected, "{name}");
        untouched(&place, &["verify"]).expect(0);
    }
}

/// What is there is listed, level by level as LevelDB has it, and found.
#[test]
fn files_and_levels_are_told() {
    let place = made("small");
    let expected = "       905 B  000004.log               log
     1.9 KiB  000005.ldb               table, default level 2, format of LevelDB
        16 B  CURRENT                  administration
         0 B  LOCK                     administration
       463 B  LOG                      administration
       116 B  MANIFEST-000002          administration
";
    assert_eq!(untouched(&place, &["list"]).expect(0).text(), expected);
    assert_eq!(untouched(&place, &["families"]).expect(0).text(), "default\n");
    let expected = "\
level   tables        entries         size
    0        0              0          0 B
    1        0              0          0 B
    2        1             26      1.9 KiB
    3        0              0          0 B
    4        0              0          0 B
    5        0              0          0 B
    6        0              0          0 B
  all        1             26      1.9 KiB
Entries of tables in LevelDB's format are estimated.
";
    assert_eq!(untouched(&place, &["levels"]).expect(0).text(), expected);
    let space = untouched(&place, &["--json", "space"]).expect(0).json();
    let level = &space["families"][0]["levels"][0];
    assert_eq!((&level["level"], &level["bytes"]), (&2.into(), &1959.into()));
    assert_eq!((&level["tombstones"], &level["compression"][0]), (&Value::Null, &"none".into()));
    assert_eq!(space["files"]["logs"]["bytes"], 905);
    let sizes = untouched(&place, &["--json", "sizes", "a", "c"]).expect(0).json();
    assert!(sizes["bytes"].as_u64().is_some_and(|bytes| (1_500..1_960).contains(&bytes)));
    let properties = untouched(&place, &["--json", "properties"]).expect(0).json();
    assert_eq!(properties["lodestore.num-files-at-level2"], "1");
    untouched(&place, &["property", "leveldb.stats"]).expect(0);
    untouched(&place, &["stats"]).expect(0);
}

/// `find` names the files that have a key, `explain` the way of a lookup.
#[test]
fn a_key_is_found_and_explained() {
    let place = made("small");
    let ran = untouched(&place, &["find", "account/000010", "--hex"]);
    ran.expect(2);
    let ran = untouched(&place, &["find", "account/000010"]).expect(0);
    let value = |n: u32| format!("value {n};").repeat(8);
    let expected = format!(
        "log 4 at offset 0\t@21 put\taccount/000010\t{}\n\
         level 2, table 5\t@11 put\taccount/000010\t{}\n",
        value(71),
        value(70)
    );
    assert_eq!(ran.text(), expected);
    untouched(&place, &["find", "nowhere"]).expect(1);
    let told = untouched(&place, &["explain", "account/000001"]).expect(0);
    for part in
        ["active memtable: no version", "level 2, table 5: opened, 1 version", "found: 64 bytes"]
    {
        assert!(told.text().contains(part), "{}", told.text());
    }
    let logged = untouched(&place, &["--json", "explain", "account/000010"]).expect(0).json();
    assert_eq!(logged["places"][0]["memtable"], "active");
    untouched(&place, &["explain", "nowhere"]).expect(1);
}

/// Each kind of file is dumped, under both names of the verbs.
#[test]
fn files_are_dumped() {
    let place = made("small");
    let expected = "\
manifest 2 of LevelDB
checkpoint of edit 1 at offset 0
  family 0 created: \"default\", ordered by leveldb.BytewiseComparator
edit 2 at offset 35
  next file 4
  last sequence number 0
  family 0 needs logs from 3
  no previous log
edit 3 at offset 50
  next file 6
  last sequence number 20
  family 0 needs logs from 4
  no previous log
  family 0 level 2: + table 5, 1.9 KiB, account/000000 to account/000019
up to edit 3: 1 families, 1 tables, 1.9 KiB, last sequence number 20, next file 6
";
    assert_eq!(untouched(&place, &["dump-manifest"]).expect(0).text(), expected);
    for path in [file(&place, ""), file(&place, "MANIFEST-000002")] {
        assert_eq!(lode(&["manifest", &path]).expect(0).text(), expected);
    }

    let table = file(&place, "000005.ldb");
    let expected = "\
format          LevelDB
order           leveldb.BytewiseComparator
entries         20
tombstones      0
sequence        1 to 20
smallest        account/000000
largest         account/000019
blocks          2
compression     none
data            1.7 KiB
keys, values    280 B, 1.4 KiB
index, filter   whole, 94 B in memory
sound           yes

blocks: offset, bytes stored, bytes, entries, first key
           0     1085     1009     13  account/000000
        1085      672      633      7  account/000013

entries
@1 put\taccount/000000
@2 put\taccount/000001
";
    let flags = ["--blocks", "--limit", "2", "--keys-only"];
    let ran = lode(&[&["sst", &table], &flags[..]].concat()).expect(0);
    assert_eq!(ran.text(), expected);
    assert_eq!(
        untouched(&place, &[&["dump-table", "000005.ldb"], &flags[..]].concat()).text(),
        expected
    );
    let quick = lode(&["sst", &table, "--no-verify", "--limit", "0", "--json"]).expect(0).json();
    assert_eq!((&quick["entries"], &quick["counted"]), (&26.into(), &false.into()));
    assert_eq!(
        (&quick["tombstones"], &quick["smallest"]),
        (&Value::Null, &"account/000000".into())
    );

    let log = file(&place, "000004.log");
    let any = |name, flags: &[&str]| untouched(&place, &[&["dump", name], flags].concat());
    assert_eq!(any("000005.ldb", &[]).text(), lode(&["sst", &table]).text());
    assert_eq!(any("000004.log", &[]).text(), lode(&["wal", &log]).text());
    let manifest = file(&place, "MANIFEST-000002");
    assert_eq!(any("MANIFEST-000002", &[]).text(), lode(&["manifest", &manifest]).text());
    any("MANIFEST-000002", &["--limit", "1"]).expect(2);
    assert!(any("LOG", &[]).expect(2).err.contains("dump-log"));
    let ran = lode(&["wal", &log, "--limit", "2", "--keys-only"]).expect(0);
    let expected = "\
log 4 of LevelDB, from sequence number 21
0\tfamily 0\t@21 put\taccount/000010
108\tfamily 0\t@22 put\taccount/000011
10 batches, 10 entries, to offset 905
";
    assert_eq!(ran.text(), expected);
    lode(&["wal", &log, "--family", "default"]).expect(2);
    // A copy under another name is known by what it begins with.
    let copy = place.path("copy");
    std::fs::copy(&log, &copy).expect("it can be copied");
    assert!(lode(&["wal", text(&copy)]).expect(0).text().starts_with("log 0 of LevelDB"));
}

/// Damage is told with its place, and what comes before it is shown; a log that a
/// crash cut off is none.
#[test]
fn damage_is_told() {
    let place = made("small");
    let (table, log) = (file(&place, "000005.ldb"), file(&place, "000004.log"));
    let mut bytes = std::fs::read(&table).expect("it can be read");
    bytes[1200] ^= 1;
    std::fs::write(&table, &bytes).expect("it can be written");
    let ran = lode(&["sst", &table]).expect(4);
    assert!(ran.text().contains("sound           no: Corruption"), "{}", ran.text());
    assert!(
        ran.text().contains("put\taccount/000012\t") && !ran.text().contains("account/000013\t")
    );
    assert!(ran.err.contains("000005.ldb at offset 1085"), "{}", ran.err);
    let told = untouched(&place, &["verify"]).expect(4).err;
    assert!(told.contains("000005.ldb at offset 1085"), "{told}");
    untouched(&place, &["get", "account/000015"]).expect(4);
    untouched(&place, &["get", "account/000002"]).expect(0);

    let mut bytes = std::fs::read(&log).expect("it can be read");
    std::fs::write(&log, &bytes[..900]).expect("it can be written");
    let ran = lode(&["wal", &log, "--limit", "0"]).expect(0);
    assert!(ran.text().contains("9 batches, 9 entries") && ran.text().contains("then: a record"));
    bytes[120] ^= 1;
    std::fs::write(&log, &bytes).expect("it can be written");
    let ran = lode(&["wal", &log]).expect(4);
    assert!(ran.text().contains("account/000010") && ran.err.contains("at offset 108"), "{ran:?}");
    untouched(&place, &["get", "account/000002"]).expect(4);
}

/// What writes refuses, and says which command makes the database ours.
#[test]
fn what_writes_names_the_command_that_adopts() {
    let place = made("small");
    let (other, records) = (place.path("other"), place.path("records"));
    std::fs::write(&records, "a\tb\n").expect("it can be written");
    let writing: [&[&str]; 7] = [
        &["put", "a", "b"],
        &["delete", "a"],
        &["delete-range", "a", "b"],
        &["load", "--create", text(&records)],
        &["compact"],
        &["ingest", "nothing.table"],
        &["checkpoint", text(&other)],
    ];
    for arguments in writing {
        let said = untouched(&place, arguments).expect(3).err;
        assert!(said.contains("database of LevelDB") && said.contains("lode adopt "), "{said}");
        assert!(!other.exists());
    }
}

/// `lode top` shows levels; how many entries they have is not known.
#[test]
fn it_is_watched() {
    let place = made("small");
    let (directory, before) = (place.path("db"), bytes(&place));
    let told = lode(&["top", "--once", "--json", text(&directory)]).expect(0).json();
    let level = &told["levels"][2];
    assert_eq!(
        (&level["tables"], &level["bytes"], &level["entries"]),
        (&1.into(), &1959.into(), &Value::Null)
    );
    assert!(lode(&["top", "--once", text(&directory)]).expect(0).text().contains("1.9 KiB"));
    assert!(bytes(&place) == before);
}

/// A database that LevelDB has open is read without its lock.
#[test]
fn a_locked_database_is_read() {
    let place = made("filters");
    let held = OsFs::new().lock(&place.path("db/LOCK")).expect("it is free");
    untouched(&place, &["scan", "--limit", "1"]).expect(0);
    untouched(&place, &["find", "account/000001"]).expect(0);
    untouched(&place, &["dump-manifest"]).expect(0);
    drop(held);
}

/// With fewer descriptors than tables a database is read and adopted all the same.
#[test]
fn few_descriptors_do() {
    let place = made("filters");
    let (directory, before) = (place.path("db"), bytes(&place));
    let limited = |arguments: &[&str]| {
        let line = "ulimit -n 12 && exec \"$0\" \"$@\"";
        let mut command = Command::new("sh");
        command.args(["-c", line, env!("CARGO_BIN_EXE_lode")]).args(arguments);
        let ran = command.output().expect("a shell starts");
        assert!(ran.status.success(), "{arguments:?}: {ran:?}");
    };
    for verb in ["verify", "scan", "space"] {
        limited(&["db", "--db", text(&directory), verb]);
    }
    assert!(bytes(&place) == before);
    limited(&["adopt", text(&directory)]);
    limited(&["db", "--db", text(&directory), "verify"]);
}

/// An order of keys that is not known is named by every verb that needs it.
#[test]
fn an_unknown_order_is_named() {
    let place = made("backwards");
    let table = file(&place, "000005.ldb");
    for arguments in [&["get", "a"][..], &["find", "a"], &["levels"], &["dump-table", &table]] {
        let said = untouched(&place, arguments).expect(3).err;
        assert!(said.contains("test.Backwards"), "{said}");
    }
    untouched(&place, &["list"]).expect(0);
    let ran = untouched(&place, &["dump-manifest"]).expect(0);
    assert!(ran.text().contains("ordered by test.Backwards"));
    untouched(&place, &["dump-log", "000008.log"]).expect(0);
}

/// Of an adopted database the tables that are still LevelDB's are shown as such,
/// and so is what is kept for the way back.
#[test]
fn an_adopted_database_is_looked_into() {
    let place = made("filters");
    let directory = place.path("db");
    lode(&["adopt", text(&directory)]).expect(0);
    let listed = place.db(&["list"]).expect(0);
    let lines = listed.text().lines();
    assert_eq!(
        lines.clone().filter(|line| line.ends_with("level 6, format of LevelDB")).count(),
        8
    );
    assert_eq!(
        lines.clone().filter(|line| line.ends_with("level 0, format of Lodestore")).count(),
        1
    );
    assert_eq!(lines.filter(|line| line.ends_with(" adopted")).count(), 17);
    let space = place.db(&["--json", "space"]).expect(0).json();
    assert_eq!(
        (&space["files"]["adopted"]["files"], &space["files"]["foreign"]["files"]),
        (&17.into(), &0.into())
    );
    let found = place.db(&["find", "account/000001"]).expect(0);
    assert!(found.text().starts_with("level 6, table 5\t@2 put\t"), "{}", found.text());
    assert!(place.db(&["levels"]).expect(0).text().contains("are estimated"));
    assert!(place.db(&["verify"]).expect(0).text().starts_with("sound: 12 tables"));
    let shown = |name: &str| lode(&["sst", &file(&place, name)]).expect(0).out;
    assert!(shown("000005.table") == shown("adopted/000005.ldb"));
    assert!(
        lode(&["manifest", &file(&place, "adopted")]).expect(0).text().contains("up to edit 13")
    );
    assert!(place.db(&["dump-manifest"]).expect(0).text().contains("about 504 entries"));
    place.db(&["compact", "--rewrite"]).expect(0);
    assert!(!place.db(&["levels"]).expect(0).text().contains("are estimated"));
}

/// A database of LevelDB is exported from where it is.
#[test]
fn a_database_is_exported_without_being_adopted() {
    let place = made("filters");
    let (from, to) = (place.path("db"), place.path("out"));
    let before = bytes(&place);
    lode(&["export", "--db", text(&from), "--to", "leveldb", text(&to)]).expect(0);
    assert!(bytes(&place) == before);
    let scan = |of: &Path| lode(&["db", "--db", text(of), "scan"]).expect(0).out;
    assert!(scan(&from) == scan(&to) && !scan(&to).is_empty());
}

/// Repair writes a database of LevelDB's again, of all that can be read.
#[test]
fn a_damaged_database_of_leveldb_is_repaired_into_another() {
    let place = made("filters");
    let table = place.path("db").join("000005.ldb");
    let mut bytes = std::fs::read(&table).expect("it can be read");
    bytes[10] ^= 1;
    std::fs::write(&table, &bytes).expect("it can be written");
    let said = untouched(&place, &["repair"]).expect(4);
    assert!(said.text().contains("lost      000005.ldb: blocks cannot be read"), "{said:?}");
    let repaired = place.path("repaired");
    untouched(&place, &["repair", "--to", text(&repaired)]).expect(0);
    let keys = |db: &Path| lode(&["db", "--db", text(db), "scan", "--keys-only"]).expect(0);
    let before = keys(&repaired).text().lines().count();
    assert!((2700..2788).contains(&before), "{before}");
    lode(&["adopt", text(&repaired)]).expect(0);
    assert_eq!(keys(&repaired).text().lines().count(), before);
}
