//! The verbs that look inside: `dump-table`, `dump-log`, `dump-manifest`,
//! `find`, `explain`, `space`, `properties`.

#[allow(dead_code, reason = "other tests use more of it")]
mod lode;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use lode::{Place, Ran, lode, text};
use lodestore::{Comparator, Db, FamilyOptions, KeyOrder, Options};
use serde_json::Value;

const KEYS: usize = 5_000;

/// A database in which only what a test asks for is compacted.
fn open(place: &Place) -> Db {
    let family = FamilyOptions { tombstone_percent: 0, ..FamilyOptions::default() };
    let options = Options { create_if_missing: true, family, ..Options::default() };
    Db::open(place.path("db"), options).expect("it opens")
}

/// 5,000 keys in a table of the last level; then one overwritten and one
/// deleted, in a table of level 0; then one put in the log.
fn filled() -> Place {
    let place = Place::new();
    let db = open(&place);
    for n in 0..KEYS {
        let (key, value) = (format!("key {n:05}"), format!("value {n}"));
        db.put(key.as_bytes(), value.as_bytes()).expect("it is put");
    }
    db.compact_range(None, None).expect("it is compacted");
    db.put(b"key 00007", b"new").expect("it is put");
    db.delete(b"key 00008").expect("it is deleted");
    db.flush().expect("it is flushed");
    db.put(b"logged", b"1").expect("it is put");
    place
}

/// Paths of the database's files with this extension, or that begin so.
fn files(place: &Place, part: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(place.path("db")).expect("the database is there");
    let names = entries.map(|entry| entry.expect("it can be listed").path());
    let is_one =
        |path: &PathBuf| path.file_name().is_some_and(|name| text(name.as_ref()).contains(part));
    let mut paths: Vec<PathBuf> = names.filter(is_one).collect();
    paths.sort();
    paths
}

fn largest(paths: Vec<PathBuf>) -> PathBuf {
    let length = |path: &PathBuf| std::fs::metadata(path).map_or(0, |m| m.len());
    paths.into_iter().max_by_key(length).expect("there is one")
}

fn damage(path: &Path) {
    let mut bytes = std::fs::read(path).expect("it can be read");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 0x10;
    std::fs::write(path, &bytes).expect("it can be written");
}

/// Each line of the output as JSON.
fn objects(ran: &Ran) -> Vec<Value> {
    let parse = |line: &str| serde_json::from_str(line).expect("each line is an object");
    ran.text().lines().map(parse).collect()
}

/// A table is shown by its file alone, in text, JSON and hexadecimal.
#[test]
fn a_table_is_dumped() {
    let place = filled();
    let table = place.path("alone");
    std::fs::copy(largest(files(&place, ".table")), &table).expect("it can be copied");
    let dump = |more: &[&str]| {
        let mut all = vec!["db", "dump-table", text(&table)];
        all.extend_from_slice(more);
        lode(&all)
    };
    let ran = dump(&["--blocks"]).expect(0);
    assert!(ran.text().contains("sound           yes"), "{}", ran.text());
    assert!(ran.text().contains("put\tkey 00003\tvalue 3\n"), "{}", ran.text());
    assert!(ran.text().contains("smallest        key 00000"));

    let ran = dump(&["--json", "--limit", "2"]).expect(0);
    let lines = objects(&ran);
    assert_eq!(
        (&lines[0]["entries"], &lines[1]["sound"]),
        (&Value::from(KEYS), &Value::from(true))
    );
    assert_eq!(
        (lines.len(), &lines[3]["key"], &lines[3]["kind"]),
        (4, &"key 00001".into(), &"put".into())
    );

    let ran = dump(&["--hex", "--limit", "1", "--keys-only"]).expect(0);
    assert!(ran.text().ends_with("put\t6b6579203030303030\n"), "{}", ran.text());
    assert_eq!(lode(&["db", "dump-table", "/nowhere/1.table"]).expect(3).text(), "");
}

/// A damaged table is shown up to the damage; then the error and its exit code.
#[test]
fn a_damaged_table_is_dumped_as_far_as_it_goes() {
    let place = filled();
    let table = largest(files(&place, ".table"));
    damage(&table);
    let ran = lode(&["db", "dump-table", text(&table)]).expect(4);
    assert!(ran.text().contains("sound           no: Corruption"), "{}", ran.text());
    assert!(ran.text().contains("put\tkey 00000\t"), "{}", ran.text());
    assert!(!ran.text().contains("key 04999\t"));
    assert!(ran.err.contains("offset"), "{}", ran.err);
    let ran = lode(&["db", "--json", "dump-table", text(&table), "--no-verify"]).expect(4);
    assert!(objects(&ran).len() > 10);
    std::fs::write(&table, b"no table at all").expect("it can be written");
    lode(&["db", "dump-table", text(&table)]).expect(4);
}

#[derive(Debug)]
struct Backwards;

impl Comparator for Backwards {
    fn name(&self) -> &str {
        "test.Backwards"
    }

    fn compare(&self, a: &[u8], b: &[u8]) -> std::cmp::Ordering {
        b.cmp(a)
    }
}

/// Where the order of keys is a program's own, a table cannot be read without
/// it, and the error says so and names it; log and manifest can be dumped.
#[test]
fn tables_in_an_order_of_a_programs_own_are_refused_by_its_name() {
    let place = Place::new();
    let order = KeyOrder::Custom(Arc::new(Backwards));
    let family = FamilyOptions { order, ..FamilyOptions::default() };
    let options = Options { create_if_missing: true, family, ..Options::default() };
    let db = Db::open(place.path("db"), options).expect("it opens");
    db.put(b"a", b"1").expect("it is put");
    db.put(b"b", b"2").expect("it is put");
    db.flush().expect("it is flushed");
    db.put(b"logged", b"3").expect("it is put");
    drop(db);
    let table = largest(files(&place, ".table"));
    for ran in [lode(&["db", "dump-table", text(&table)]), place.db(&["find", "a"])] {
        let said = &ran.expect(3).err;
        for part in ["test.Backwards", "lode knows the orders of the library only"] {
            assert!(said.contains(part), "{said}");
        }
    }
    let log = largest(files(&place, ".wal"));
    let ran = lode(&["db", "dump-log", text(&log)]).expect(0);
    assert!(ran.text().contains("put\tlogged\t3\n"), "{}", ran.text());
    let ran = place.db(&["dump-manifest"]).expect(0);
    assert!(ran.text().contains("ordered by test.Backwards"), "{}", ran.text());
}

/// A segment of the log shows its records; lost ones are told.
#[test]
fn a_log_is_dumped() {
    let place = filled();
    let log = largest(files(&place, ".wal"));
    let ran = lode(&["db", "dump-log", text(&log)]).expect(0);
    assert!(ran.text().contains("put\tlogged\t1\n"), "{}", ran.text());
    assert!(ran.text().contains("1 batches, 1 entries"), "{}", ran.text());
    let lines = objects(&lode(&["db", "dump-log", "--json", text(&log)]).expect(0));
    assert_eq!((&lines[1]["key"], &lines[1]["kind"]), (&"logged".into(), &"put".into()));
    assert_eq!(lines[2]["entries"], 1);
    std::fs::write(&log, [7; 9000]).expect("it can be written");
    assert!(lode(&["db", "dump-log", text(&log)]).expect(4).err.contains("no log"));
}

/// A manifest shows its changes, by its own name and by its directory's.
#[test]
fn a_manifest_is_dumped() {
    let place = filled();
    let directory = place.path("db");
    let ran = lode(&["db", "dump-manifest", text(&directory)]).expect(0);
    assert!(ran.text().contains("family 0 created: \"default\""), "{}", ran.text());
    assert!(ran.text().contains("family 0 level 6: + table"), "{}", ran.text());
    let [manifest] = &files(&place, "MANIFEST")[..] else { panic!("there is one manifest") };
    let by_name = lode(&["db", "dump-manifest", text(manifest)]).expect(0);
    assert_eq!(
        (by_name.text(), place.db(&["dump-manifest"]).expect(0).text()),
        (ran.text(), ran.text())
    );
    let lines = objects(&lode(&["db", "--json", "dump-manifest", text(manifest)]).expect(0));
    assert_eq!(lines[1]["checkpoint"], true);
    assert_eq!(lines.last().expect("there are lines")["families"], 1);
    lode(&["db", "dump-manifest"]).expect(2);
    std::fs::write(manifest, b"LODEMANI").expect("it can be written");
    lode(&["db", "dump-manifest", text(manifest)]).expect(4);
}

/// A key is found in every file that has it, with numbers and kinds.
#[test]
fn a_key_is_found() {
    let place = filled();
    let ran = place.db(&["find", "key 00007"]).expect(0);
    let lines: Vec<&str> = ran.text().lines().collect();
    assert_eq!(lines.len(), 2, "{}", ran.text());
    assert!(lines[0].starts_with("level 0, table ") && lines[0].ends_with("put\tkey 00007\tnew"));
    assert!(lines[1].starts_with("level 6, table ") && lines[1].ends_with("\tvalue 7"));
    let deleted = objects(&place.db(&["--json", "find", "key 00008"]).expect(0));
    assert_eq!((&deleted[0]["kind"], &deleted[0]["level"]), (&"delete".into(), &0.into()));
    let logged = place.db(&["--hex", "find", "6c6f67676564"]).expect(0);
    assert!(
        logged.text().starts_with("log ") && logged.text().ends_with("put\t6c6f67676564\t31\n")
    );
    assert!(place.db(&["find", "nowhere"]).expect(1).err.contains("no file has the key"));
    place.db(&["find", "--family", "none", "a"]).expect(3);
}

/// A lookup is explained, with the exit code of what came of it.
#[test]
fn a_lookup_is_explained() {
    let place = filled();
    let found = place.db(&["explain", "key 00009"]).expect(0);
    for part in
        ["key key 00009 in family default", "level 6, table", "from the file", "found: 7 bytes"]
    {
        assert!(found.text().contains(part), "{part:?} is not in {}", found.text());
    }
    let deleted = place.db(&["--json", "explain", "key 00008"]).expect(1).json();
    assert_eq!(deleted["outcome"]["deleted_by"], "delete");
    assert_eq!(
        (&deleted["key"], &deleted["places"][0]["memtable"]),
        (&"key 00008".into(), &"active".into())
    );
    assert!(place.db(&["explain", "--hex", "ff"]).expect(1).text().starts_with("key ff "));
    damage(&largest(files(&place, ".table")));
    let outcomes =
        (0..KEYS).step_by(50).map(|n| place.db(&["explain", &format!("key {n:05}")]).code);
    assert!(outcomes.into_iter().any(|code| code == 4), "half of the table is damaged somewhere");
}

/// Space is told by level; of what was written twice, the older half is dead.
#[test]
fn dead_space_is_estimated() {
    let place = filled();
    let object = place.db(&["--json", "space"]).expect(0).json();
    let level = |object: &Value, level: usize, name: &str| {
        let levels =
            object["families"][0]["levels"].as_array().cloned().expect("levels are listed");
        let found = levels.into_iter().find(|l| l["level"] == level);
        found.map(|found| found[name].as_f64().expect("it is a number"))
    };
    let bottom = level(&object, 6, "bytes").expect("level 6 has tables");
    let dead = level(&object, 6, "dead_bytes_estimated").expect("it is estimated");
    assert!(dead <= bottom * 0.05, "{object}");

    let db = open(&place);
    for n in 0..KEYS {
        db.put(format!("key {n:05}").as_bytes(), b"again").expect("it is put");
    }
    db.flush().expect("it is flushed");
    drop(db);
    std::fs::write(place.path("db/notes"), b"mine").expect("it can be written");
    let object = place.db(&["--json", "space"]).expect(0).json();
    let bottom = level(&object, 6, "bytes").expect("level 6 has tables");
    let dead = level(&object, 6, "dead_bytes_estimated").expect("it is estimated");
    assert!(dead >= bottom * 0.95, "{object}");
    assert!(level(&object, 6, "entries_sampled") >= Some(290.0), "{object}");
    // Keys of 9 bytes, values of 7 to 10.
    let unpacked = level(&object, 6, "unpacked_bytes").expect("it is known");
    assert!((16.0..19.0).contains(&(unpacked / KEYS as f64)), "{object}");
    assert!(place.db(&["space"]).expect(0).text().contains(" lz4 "), "the codec is told");
    assert_eq!(object["files"]["foreign"]["files"], 1);
    assert!(object["files"]["tables"]["bytes"].as_u64().is_some_and(|bytes| bytes > 0));

    let ran = place.db(&["space", "--samples", "0"]).expect(0);
    assert!(ran.text().contains("family default") && ran.text().contains("unreferenced"));
}

/// Every property is listed with a value.
#[test]
fn properties_are_listed() {
    let place = filled();
    let object = place.db(&["--json", "properties"]).expect(0).json();
    let listed = object.as_object().expect("it is an object");
    assert!(listed.len() > 20);
    assert_eq!(object["lodestore.num-files-at-level6"], "1");
    for name in listed.keys() {
        place.db(&["property", name]).expect(0);
    }
    let ran = place.db(&["properties"]).expect(0);
    assert!(ran.text().contains("lodestore.estimate-num-keys"));
    // Who looks from outside must not take zeros for what a program does.
    assert!(ran.text().contains("are of this process") && ran.text().contains("lode top"));
    assert!(!place.db(&["stats"]).expect(0).text().contains("hit rate"), "nothing was read");
}

/// A database that another process has open can be looked into, and nothing in
/// its directory changes by that.
#[test]
fn an_open_database_can_be_looked_into() {
    let place = Place::new();
    let db = open(&place);
    db.put(b"a", b"1").expect("it is put");
    db.flush().expect("it is flushed");
    db.put(b"a", b"2").expect("it is put");

    let listed = || {
        let entries = std::fs::read_dir(place.path("db")).expect("it is there");
        let mut files: Vec<_> = entries
            .map(|entry| {
                let path = entry.expect("it can be listed").path();
                (std::fs::read(&path).expect("it can be read"), path)
            })
            .collect();
        files.sort();
        files
    };
    let before = listed();
    assert_eq!(place.db(&["find", "a"]).expect(0).text().lines().count(), 2);
    assert!(place.db(&["explain", "a"]).expect(0).text().contains("found: 1 bytes"));
    let table = largest(files(&place, ".table"));
    assert!(lode(&["db", "dump-table", text(&table)]).expect(0).text().contains("put\ta\t1"));
    let log = largest(files(&place, ".wal"));
    assert!(lode(&["db", "dump-log", text(&log)]).expect(0).text().contains("put\ta\t2"));
    place.db(&["dump-manifest"]).expect(0);
    place.db(&["space"]).expect(0);
    place.db(&["properties"]).expect(0);
    assert!(listed() == before, "looking has changed something");
    drop(db);
}

/// Options reach tables that no compaction would touch, if that is asked for.
#[test]
fn tables_are_rewritten_with_other_options() {
    let place = filled();
    place.db(&["compact"]).expect(0);
    let options = place.path("options");
    std::fs::write(&options, "[family]\ncompression = none\n").expect("it can be written");
    let codec = |flags: &[&str]| {
        place.db(&[&["compact", "--options", text(&options)], flags].concat()).expect(0);
        let object = place.db(&["--json", "space"]).expect(0).json();
        object["families"][0]["levels"][0]["compression"].clone()
    };
    assert_eq!(codec(&[]), serde_json::json!(["lz4"]));
    assert_eq!(codec(&["--rewrite"]), serde_json::json!(["none"]));
}

/// What a damaged database has lost is said, the rest is built elsewhere, and
/// the damaged directory stays as it is.
#[test]
fn a_damaged_database_is_repaired_into_another() {
    let place = filled();
    assert!(place.db(&["repair"]).expect(0).text().contains("lost      nothing"));
    let table = largest(files(&place, ".table"));
    damage(&table);
    let damaged = std::fs::read(&table).expect("it can be read");
    let ran = place.db(&["repair"]).expect(4);
    let name = text(table.file_name().expect("it has a name").as_ref());
    assert!(ran.text().contains(&format!("lost      {name}: blocks cannot be read")), "{ran:?}");
    assert!(ran.err.contains("--to"), "{ran:?}");

    let repaired = place.path("repaired");
    let ran = place.db(&["repair", "--to", text(&repaired), "--json"]).expect(0);
    let report = ran.json();
    assert_eq!((&report["written"], &report["manifest_sound"]), (&true.into(), &true.into()));
    let [loss] = &report["losses"].as_array().expect("it is a list")[..] else { panic!("{ran:?}") };
    let bound = |name: &str| loss[name].as_str().expect("keys are text").to_string();
    let (from, to) = (bound("from"), bound("to"));
    assert_eq!(std::fs::read(&table).expect("it can be read"), damaged);
    assert_eq!(place.db(&["repair", "--to", text(&repaired)]).code, 3, "it is there already");

    let options = Options { create_if_missing: false, ..Options::default() };
    let db = Db::open(&repaired, options).expect("it is a database");
    db.verify().expect("it is sound");
    let mut missing = 0;
    for n in (0..KEYS).filter(|n| ![7, 8].contains(n)) {
        let key = format!("key {n:05}");
        match db.get(key.as_bytes()).expect("it is sound") {
            Some(value) => assert_eq!(&value[..], format!("value {n}").as_bytes()),
            None => {
                assert!(from <= key && key <= to, "{key} is not from {from} to {to}");
                missing += 1;
            }
        }
    }
    assert!((1..1_000).contains(&missing), "{missing} keys");
    assert_eq!(db.get(b"key 00007").expect("it is sound").as_deref(), Some(&b"new"[..]));
    assert_eq!(db.get(b"logged").expect("it is sound").as_deref(), Some(&b"1"[..]));
}
