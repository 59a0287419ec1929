//! `lode db` and `lode gen` as a user meets them: what is printed, and the exit
//! codes that scripts rely on.

mod lode;

use lode::{Place, lode, text};

/// A value that was stored is printed as it is; an absent key has exit code 1.
#[test]
fn stored_values_are_found_by_a_later_process() {
    let place = Place::new();
    place.db(&["put", "--create", "fruit", "apple"]).expect(0);
    assert_eq!(place.db(&["get", "fruit"]).expect(0).text(), "apple\n");
    let absent = place.db(&["get", "stone"]).expect(1);
    assert_eq!((absent.text(), absent.err.as_str()), ("", "lode: there is no key 'stone'\n"));
    place.db(&["delete", "--sync", "fruit"]).expect(0);
    place.db(&["get", "fruit"]).expect(1);
    place.db(&["delete", "fruit"]).expect(0);
}

/// A range is removed up to its end; one that ends before it begins is an
/// error, and removes nothing.
#[test]
fn a_range_of_keys_is_removed() {
    let place = Place::new();
    for key in ["a", "b", "c", "d"] {
        place.db(&["put", "--create", key, "1"]).expect(0);
    }
    place.db(&["delete-range", "b", "d"]).expect(0);
    assert_eq!(place.db(&["scan", "--keys-only"]).expect(0).text(), "a\nd\n");
    assert_ne!(place.db(&["delete-range", "d", "a"]).code, 0);
    assert_eq!(place.db(&["scan", "--keys-only"]).expect(0).text(), "a\nd\n");
}

/// `--options` opens with the options of a file, also where that creates; what
/// is wrong with the file is told with its line.
#[test]
fn options_come_from_a_file() {
    let place = Place::new();
    let file = place.path("tuned");
    let path = text(&file);
    std::fs::write(&file, "[family]\nmemtable_bytes = 3MiB\n").unwrap();
    place.db(&["put", "--create", "a", "1", "--options", path]).expect(0);
    let property = ["property", "lodestore.options", "--options", path];
    let shown = place.db(&property).expect(0);
    assert!(shown.text().contains("memtable_bytes = 3MiB"), "{}", shown.text());
    // Such a file may be what a program leaves that tells how it is doing.
    std::fs::write(&file, "[database]\nstatus_interval = 1s\n").unwrap();
    assert_eq!(place.db(&["get", "a", "--options", path]).expect(0).text(), "1\n");
    place.db(&["space", "--options", path]).expect(0);
    std::fs::write(&file, "[family]\nmemtable_byte = 3MiB\n").unwrap();
    let refused = place.db(&["put", "b", "1", "--options", path]).expect(3);
    let expected = "line 2: there is no option memtable_byte; did you mean memtable_bytes?";
    assert!(refused.err.contains(expected), "{}", refused.err);
    place.db(&["get", "b"]).expect(1);
}

/// A mistyped path makes no new database, and one line says what to do.
#[test]
fn absent_database_is_an_error_with_advice() {
    let place = Place::new();
    for verb in [&["get", "a"][..], &["put", "a", "b"], &["scan"], &["verify"], &["load"]] {
        let ran = place.db(verb).expect(3);
        assert!(ran.err.starts_with("lode: ") && ran.err.contains("--create"), "{}", ran.err);
        assert_eq!(ran.err.lines().count(), 1);
    }
    assert!(!place.path("db").exists());
}

/// Wrong command lines have exit code 2, whatever is wrong.
#[test]
fn wrong_command_lines_have_exit_code_2() {
    let place = Place::new();
    lode(&["db", "get", "a"]).expect(2);
    lode(&["nonsense"]).expect(2);
    place.db(&["get"]).expect(2);
    place.db(&["--hex", "put", "--create", "0", "00"]).expect(2);
    place.db(&["load", "--format", "text", "--line-keys", "--create"]).expect(2);
    place.db(&["scan", "--format", "length-prefixed", "--json"]).expect(2);
    assert!(!place.path("db").exists());
    assert_eq!(lode(&["db", "--help"]).expect(0).err, "");
}

/// Binary keys and values go in and out as hexadecimal digits.
#[test]
fn hexadecimal_goes_in_and_out() {
    let place = Place::new();
    place.db(&["--hex", "put", "--create", "00ff", "0x0A"]).expect(0);
    assert_eq!(place.db(&["--hex", "get", "00FF"]).expect(0).text(), "0a\n");
    assert_eq!(place.db(&["scan", "--hex"]).expect(0).text(), "00ff\t0a\n");
    assert_eq!(place.db(&["scan"]).expect(0).text(), "\\x00\\xff\t\\n\n");
}

/// JSON tells text from bytes, and found from absent.
#[test]
fn json_is_one_object_a_line() {
    let place = Place::new();
    place.db(&["put", "--create", "a", "ä\t"]).expect(0);
    place.db(&["put", "--hex", "ff", ""]).expect(0);
    assert_eq!(
        place.db(&["--json", "scan"]).expect(0).text(),
        "{\"key\":\"a\",\"value\":\"ä\\t\"}\n{\"key_hex\":\"ff\",\"value\":\"\"}\n"
    );
    assert_eq!(place.db(&["--json", "get", "b"]).expect(1).json()["found"], false);
    assert_eq!(place.db(&["--json", "get", "a"]).expect(0).json()["value"], "ä\t");
    assert_eq!(place.db(&["--json", "families"]).expect(0).json()["families"][0], "default");
    assert_eq!(place.db(&["--json", "verify"]).expect(0).json()["sound"], true);
    assert!(place.db(&["--json", "levels"]).expect(0).json()["levels"].is_array());
    assert!(place.db(&["--json", "stats"]).expect(0).json()["table_bytes"].is_u64());
}

/// Bounds, prefix, limit and direction work together.
#[test]
fn scans_are_bounded() {
    let place = Place::new();
    let lines = b"a\t1\nab\t2\nb\t3\nba\t4\nc\t5\n";
    place.db_with_input(&["load", "--create"], lines).expect(0);
    let scan = |arguments: &[&str]| {
        let mut all = vec!["scan", "--keys-only"];
        all.extend_from_slice(arguments);
        place.db(&all).expect(0).text().replace('\n', " ")
    };
    assert_eq!(scan(&[]), "a ab b ba c ");
    assert_eq!(scan(&["--reverse"]), "c ba b ab a ");
    assert_eq!(scan(&["--from", "ab", "--to", "c"]), "ab b ba ");
    assert_eq!(scan(&["--from", "ab", "--to", "c", "--reverse", "--limit", "2"]), "ba b ");
    assert_eq!(scan(&["--prefix", "b"]), "b ba ");
    assert_eq!(scan(&["--prefix", "b", "--reverse", "--limit", "1"]), "ba ");
    assert_eq!(scan(&["--limit", "0"]), "");
    assert_eq!(scan(&["--from", "x"]), "");
}

/// Each format of `load` stores what its table says.
#[test]
fn loads_read_every_format() {
    let place = Place::new();
    let load = |arguments: &[&str], input: &[u8]| {
        let mut all = vec!["load", "--create", "--family"];
        all.extend_from_slice(arguments);
        place.db_with_input(&all, input).expect(0);
        place.db(&["scan", "--family", arguments[0]]).expect(0).text().to_string()
    };
    assert_eq!(load(&["lines"], b"k\tv\tw\nk\tx"), "k\tx\n");
    assert_eq!(load(&["keys", "--line-keys", "--sync"], b"two\none\n"), "one\t\ntwo\t\n");
    let corpus = load(&["text", "--format", "text"], b"It was\n\na night.");
    assert_eq!(
        corpus,
        "0000000000000001\tIt was\n0000000000000002\t\n0000000000000003\ta night.\n"
    );
    let records = b"\x01\0\0\0k\x02\0\0\0vv";
    assert_eq!(load(&["binary", "--format", "length-prefixed"], records), "k\tvv\n");
    let families = place.db(&["families"]).expect(0);
    assert_eq!(families.text(), "default\nlines\nkeys\ntext\nbinary\n");
    let unknown = place.db(&["get", "--family", "linse", "k"]).expect(3);
    assert!(unknown.err.contains("no family 'linse'") && unknown.err.contains("lines"));
}

/// A bad record ends a load; what came before it stays, and is counted.
#[test]
fn bad_records_are_named_and_nothing_before_them_is_lost() {
    let place = Place::new();
    let ran = place.db_with_input(&["load", "--create"], b"a\t1\nb\t2\nc3\n").expect(3);
    assert!(ran.err.contains("line 3") && ran.err.contains("2 records before it"), "{}", ran.err);
    assert_eq!(place.db(&["scan"]).expect(0).text(), "a\t1\nb\t2\n");
}

/// Made records go through a pipe into the database and compare equal after
/// compaction and as a checkpoint; every kind of difference is counted.
#[test]
fn ledger_records_survive_and_differences_are_counted() {
    let place = Place::new();
    let made = lode(&["gen", "blocks", "--count", "20K", "--seed", "9"]).expect(0).out;
    let file = place.path("records");
    lode(&["gen", "blocks", "--count=20000", "--seed=9", "--out", text(&file)]).expect(0);
    assert_eq!(std::fs::read(&file).expect("it was written"), made);

    let compare = ["compare", "--lookups", "--format", "length-prefixed", text(&file)];
    let loaded = place
        .db_with_input(&["load", "--create", "--json", "--format", "length-prefixed", "-"], &made);
    assert_eq!(loaded.expect(0).json()["records"], 20_000);
    let equal = place.db(&compare).expect(0);
    assert_eq!(equal.text(), "20,000 records: 20,000 same, 0 missing, 0 different, 0 extra\n");
    place.db(&["compact"]).expect(0);
    place.db(&compare).expect(0);
    place.db(&["checkpoint", text(&place.path("copy"))]).expect(0);

    place.db(&["put", "--hex", "00000000", "77"]).expect(0);
    place.db(&["delete", "--hex", "00000001"]).expect(0);
    place.db(&["put", "new", "1"]).expect(0);
    let ran = place.db(&["--json", "compare", compare[2], compare[3], compare[4]]).expect(1);
    let counts = ran.json();
    for (name, expected) in [("same", 19_998), ("missing", 1), ("different", 1), ("extra", 1)] {
        assert_eq!(counts[name], expected, "{counts}");
    }
    assert_eq!(counts["equal"], false);
    let copy = place.path("copy");
    let of_copy = ["db", "--db", text(&copy), compare[0], compare[2], compare[3], compare[4]];
    lode(&of_copy).expect(0);
}

/// What `scan` writes with lengths can be loaded again, bytes of any kind.
#[test]
fn scanned_records_can_be_loaded_again() {
    let place = Place::new();
    let records = b"\x02\0\0\0\t\n\x03\0\0\0\0\xff\\\0\0\0\0\0\0\0\0";
    place.db_with_input(&["load", "--create", "--format", "length-prefixed"], records).expect(0);
    let scanned = place.db(&["scan", "--format", "length-prefixed"]).expect(0).out;
    let other = Place::new();
    other.db_with_input(&["load", "--create", "--format", "length-prefixed"], &scanned).expect(0);
    assert_eq!(other.db(&["scan"]).expect(0).text(), place.db(&["scan"]).expect(0).text());
}

/// What `scan --hex` prints can be loaded and compared, and differences are
/// shown in the same digits; other formats have no hexadecimal digits.
#[test]
fn hexadecimal_lines_can_be_loaded_and_compared() {
    let place = Place::new();
    let lines = b"00ff09\t0a\n61\t\n";
    place.db_with_input(&["load", "--create", "--hex"], lines).expect(0);
    assert_eq!(place.db(&["scan", "--hex"]).expect(0).out, lines);
    assert_eq!(place.db(&["get", "a"]).expect(0).text(), "\n");
    place.db_with_input(&["compare", "--hex", "--lookups", "-"], lines).expect(0);
    let ran = place.db_with_input(&["compare", "--hex", "-"], b"00ff09\t0b\n61\t\n").expect(1);
    assert!(ran.text().contains("different: 00ff09\n"), "{}", ran.text());
    let wrong = place.db_with_input(&["load", "--hex"], b"61\t00\n6x\t00\n").expect(3);
    assert!(wrong.err.contains("line 2") && wrong.err.contains("'6x'"), "{}", wrong.err);
    place.db_with_input(&["load", "--hex", "--format", "text"], b"61\n").expect(2);
    let absent = place.db(&["get", "--hex", "ff"]).expect(1);
    assert_eq!(absent.err, "lode: there is no key 'ff'\n");
}

/// A flag that a verb could not obey is refused, so that nobody takes what it
/// prints for something else.
#[test]
fn flags_without_a_use_are_refused() {
    let place = Place::new();
    place.db(&["put", "--create", "a", "1"]).expect(0);
    place.db(&["compact"]).expect(0);
    let table = largest_table(&place.path("db"));
    let (file, copy) = (text(&table), place.path("copy"));
    for (verb, flag) in [
        (&["families"][..], "--family"),
        (&["families"], "--options"),
        (&["verify"], "--family"),
        (&["checkpoint", text(&copy)], "--family"),
        (&["find", "a"], "--options"),
        (&["dump-table", file], "--family"),
        (&["dump-manifest"], "--options"),
    ] {
        let ran = place.db(&[verb, &[flag, "default"]].concat()).expect(2);
        assert!(ran.err.contains(flag), "{}", ran.err);
        place.db(verb).expect(0);
    }
    assert!(place.db(&["space", "--family", "none"]).expect(3).err.contains("there are: default"));
    let name = table.file_name().and_then(|name| name.to_str()).expect("it has a name");
    assert!(place.db(&["dump-table", name]).expect(0).text().contains("put\ta\t1"));
}

/// A table is written with the options that were named.
#[test]
fn tables_are_exported_with_the_options_of_a_file() {
    let place = Place::new();
    place.db(&["put", "--create", "a", "1"]).expect(0);
    let (options, table) = (place.path("options"), place.path("out.table"));
    std::fs::write(&options, "[family]\ncompression = zstd:3\n").expect("it can be written");
    place.db(&["export-table", text(&table), "--options", text(&options)]).expect(0);
    let dumped = lode(&["db", "--json", "dump-table", text(&table), "--limit", "0"]).expect(0);
    assert!(dumped.text().contains("\"compression\":\"zstd\""), "{}", dumped.text());
}

/// `lode db scan | head` ends quietly.
#[test]
fn closed_pipe_is_no_error() {
    let place = Place::new();
    let input: String = (0..200_000).map(|n| format!("key {n}\t{n}\n")).collect();
    place.db_with_input(&["load", "--create"], input.as_bytes()).expect(0);
    let mut child = std::process::Command::new(env!("CARGO_BIN_EXE_lode"))
        .args(["db", "--db", text(&place.path("db")), "scan"])
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .expect("lode starts");
    drop(child.stdout.take());
    let output = child.wait_with_output().expect("lode ends");
    assert_eq!((output.status.code(), &output.stderr[..]), (Some(0), &b""[..]));
}

/// Properties are printed by name; an unknown name has exit code 1.
#[test]
fn properties_are_found_by_name() {
    let place = Place::new();
    place.db(&["put", "--create", "a", "1"]).expect(0);
    assert!(!place.db(&["property", "lodestore.stats"]).expect(0).out.is_empty());
    assert!(place.db(&["property", "lodestore.colour"]).expect(1).err.contains("no property"));
}

/// A byte that changed on disk is told with its file and offset, under an exit
/// code of its own; what is elsewhere can still be read.
#[test]
fn damage_is_told_with_its_place() {
    let place = Place::new();
    let input: String = (0..20_000).map(|n| format!("key {n:05}\tvalue {n}\n")).collect();
    place.db_with_input(&["load", "--create"], input.as_bytes()).expect(0);
    place.db(&["compact"]).expect(0);
    place.db(&["verify"]).expect(0);

    let table = largest_table(&place.path("db"));
    let mut bytes = std::fs::read(&table).expect("it can be read");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 0x10;
    std::fs::write(&table, &bytes).expect("it can be written");

    let ran = place.db(&["verify"]).expect(4);
    let name = table.file_name().and_then(|name| name.to_str()).expect("it has a name");
    assert!(ran.err.contains(name) && ran.err.contains("offset"), "{}", ran.err);
    place.db(&["scan"]).expect(4);
    assert_eq!(place.db(&["get", "key 00000"]).expect(0).text(), "value 0\n");
}

fn largest_table(directory: &std::path::Path) -> std::path::PathBuf {
    let entries = std::fs::read_dir(directory).expect("the database is there");
    let files = entries.map(|entry| entry.expect("it can be listed").path());
    let tables = files.filter(|path| path.extension().is_some_and(|e| e == "table"));
    let length = |path: &std::path::PathBuf| std::fs::metadata(path).map_or(0, |m| m.len());
    tables.max_by_key(length).expect("there is a table")
}

/// Tables go from one database into another, all or none; what is moved is
/// gone from where it was, and a damaged table is exit code 4.
#[test]
fn tables_are_exported_and_ingested() {
    let place = Place::new();
    for key in ["a", "b", "c", "d"] {
        place.db(&["put", "--create", key, "1"]).expect(0);
    }
    let file = |name: &str| place.path(name).to_str().expect("a path is text").to_string();
    let (low, high, other) = (file("low.table"), file("high.table"), file("other"));
    place.db(&["export-table", &low, "--to", "c"]).expect(0);
    let export = place.db(&["--json", "export-table", &high, "--from", "c"]).expect(0).json();
    assert_eq!(export["entries"], 2);
    place.db(&["export-table", &high]).expect(3); // it is there
    let into = |arguments: &[&str]| lode(&[&["db", "--db", &other], arguments].concat());
    into(&["ingest", &low]).expect(3); // no database
    assert!(into(&["ingest", "--create", &low, &file("none")]).expect(3).err.contains("none"));
    assert_eq!(into(&["scan"]).expect(0).text(), "");
    let report = into(&["--json", "ingest", &low, &high, "--move"]).expect(0).json();
    assert_eq!(report["tables"][1]["entries"], 2);
    assert_eq!(report["tables"][1]["linked"], true);
    assert!(!place.path("low.table").exists());
    assert_eq!(into(&["scan"]).expect(0).text(), "a\t1\nb\t1\nc\t1\nd\t1\n");
    place.db(&["export-table", &low]).expect(0);
    let mut bytes = std::fs::read(place.path("low.table")).expect("it was written");
    bytes[40] ^= 1;
    std::fs::write(place.path("low.table"), bytes).expect("it can be written");
    into(&["ingest", &low]).expect(4);
    into(&["verify"]).expect(0);
    let text = into(&["ingest", "--no-verify", "--family", "x", "--create", &low]).expect(0);
    assert!(text.text().contains("ingested 1 tables, 4 entries"), "{}", text.text());
}
