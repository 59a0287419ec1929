//! Options as text: what is written is read, what is wrong is named, the guide
//! tells of all of them, and an open database keeps a file of its own.

use lodestore::fs::{Fault, FaultFs, Operation};
use lodestore::{
    AddU64, Append, Compression, Db, Error, FamilyOptions, Fs, MemFs, OptionInfo, Options, OsFs,
};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;
use testkit::orders::Order;
use testkit::temp_dir::TempDir;

const ROOT: &str = "/options";

/// A value that is not the default, for every option.
fn other_value(name: &str) -> &'static str {
    match name {
        "create_if_missing" | "error_if_exists" | "direct_reads" | "preload_tables" => "yes",
        "logging" | "log_mapped" | "latencies" => "no",
        "row_cache_bytes" => "3MiB",
        "status_interval" => "250ms",
        "open_files_max" | "background_threads" | "sealed_memtables_max" => "7",
        "memory_bytes" | "log_bytes_max" | "debt_slowdown_bytes" => "5GiB",
        "background_bytes_per_second"
        | "cache_bytes"
        | "mapped_bytes_max"
        | "table_bytes"
        | "level1_bytes" => "3MiB",
        "order" => "leveldb.BytewiseComparator",
        "merge_operator" => "UInt64AddOperator",
        "prefix_extractor" => "delimiter:0x2f",
        "memtable_bytes" => "1000001",
        "block_bytes" | "partition_bytes" => "8KiB",
        "compression" | "compression_bottommost" => "zstd:-3",
        "compression_by_level" => "none, snappy, zstd:3",
        "dictionary_bytes" => "16KiB",
        "dictionary_training_bytes" => "2MiB",
        "filter_bits_per_key"
        | "filter_bits_per_key_bottommost"
        | "tombstone_percent"
        | "level_multiplier" => "12",
        "level0_compaction_files" => "5",
        "level0_slowdown_files" => "21",
        "level0_stop_files" => "37",
        "debt_stop_bytes" => "1TiB",
        "tombstone_age_seconds" => "90min",
        name => panic!("say another value of {name}, so that it is tested"),
    }
}

/// The lines of a text, by section and name.
fn lines(text: &str) -> BTreeMap<(String, String), String> {
    let (mut section, mut found) = (String::new(), BTreeMap::new());
    for line in text.lines().filter(|line| !line.is_empty()) {
        match line.split_once('=') {
            _ if line.starts_with('[') => section = line.to_string(),
            Some((name, value)) => {
                let key = (section.clone(), name.trim().to_string());
                assert!(found.insert(key, value.trim().to_string()).is_none(), "{line} twice");
            }
            None => panic!("{line:?}"),
        }
    }
    found
}

/// Every option has a name by which it can be set, and is printed as it was
/// set; what was printed is read again and comes out the same.
#[test]
fn every_option_is_read_and_printed() -> Result<(), Error> {
    let mut text = String::from("[database]\n");
    let put = |text: &mut String, info: &OptionInfo| {
        writeln!(text, "{} = {}", info.name, other_value(info.name)).unwrap();
    };
    Options::catalogue().iter().for_each(|info| put(&mut text, info));
    for section in ["[family]", "[family \"a \\\"b\\\\\"]"] {
        writeln!(text, "\n{section}").unwrap();
        FamilyOptions::catalogue().iter().for_each(|info| put(&mut text, info));
    }
    let options = Options::from_text(&text)?;
    assert_eq!(options.families.keys().collect::<Vec<_>>(), ["a \"b\\"]);
    assert_eq!(options.memory_bytes, Some(5 << 30));
    assert_eq!(options.family.compression, Compression::Zstd { level: -3 });
    assert_eq!(options.family.tombstone_age_seconds, 5400);
    let (written, default) = (lines(&options.to_text()), lines(&Options::default().to_text()));
    assert_eq!(written.len(), Options::catalogue().len() + FamilyOptions::catalogue().len());
    for (key, value) in &written {
        assert_eq!(value, other_value(&key.1), "{key:?}");
        assert!(default[key] != *value || key.1 == "order", "{key:?} is the default");
    }
    let again = Options::from_text(&options.to_text())?;
    assert_eq!(again.to_text(), options.to_text());
    let (default, read) = (Options::default(), Options::from_text("")?);
    assert_eq!(read.to_text(), default.to_text(), "an empty text changes nothing");
    Ok(())
}

/// A family's section begins with what `[family]` says, wherever that stands,
/// and prints only what differs.
#[test]
fn families_begin_with_what_all_families_have() -> Result<(), Error> {
    let text = "
        [family \"index\"]      # comes first
        compression = lz4       # as by default
        [family]
        compression = zstd:5
        memtable_bytes = 8 MiB
    ";
    let options = Options::from_text(text)?;
    let index = options.family_options("index");
    assert_eq!(index.compression, Compression::Lz4);
    assert_eq!(index.memtable_bytes, 8 << 20);
    assert_eq!(options.family_options("other").compression, Compression::Zstd { level: 5 });
    assert!(options.to_text().ends_with("[family \"index\"]\ncompression = lz4\n"));
    Ok(())
}

/// What cannot be text is said so, and a text leaves it as it is.
#[test]
fn what_is_given_in_code_stays() -> Result<(), Error> {
    let mut options = Options::default();
    options.family.order = Order::Reverse.key_order();
    options.family.merge_operator = Some(Arc::new(AddU64));
    let text = options.to_text();
    assert!(text.contains("# order is given in code\nmerge_operator = UInt64AddOperator\n"));
    options.apply_text("[family]\nblock_bytes = 1KiB")?;
    assert_eq!(
        (options.family.order.name(), options.family.block_bytes),
        ("testkit.Reverse", 1024)
    );
    Ok(())
}

/// What is wrong is named with its line, and the name that was meant; a text
/// that is wrong anywhere changes nothing.
#[test]
fn mistakes_are_named() {
    let cases = [
        (
            "[database]\n\ncache_byte = 1",
            "line 3: there is no option cache_byte; did you mean cache_bytes?",
        ),
        ("[database]\nwhatever_it_may_be = 1", "line 2: there is no option whatever_it_may_be"),
        ("[database]\nmemtable_bytes = 1", "line 2: memtable_bytes is an option of families"),
        ("[family]\ncache_bytes = 1", "line 2: cache_bytes is an option of the database"),
        (
            "[family]\nblock_bytes = 1KiB\n\nblock_bytes = 2KiB",
            "line 4: block_bytes was given before, in line 2",
        ),
        ("[family]\n[family]", "line 2: a second section [family]"),
        ("[family \"a\"]\n[family \"a\"] # again", "line 2: a second section"),
        ("[families]", "line 1: \"[families]\" is none of the sections"),
        ("[family \"a]", "none of the sections"),
        ("[family \"a\"] x", "none of the sections"),
        ("cache_bytes = 1", "line 1: an option before the first section"),
        ("[family]\nblock_bytes 1", "line 2: \"block_bytes 1\" is not of the form NAME = VALUE"),
        ("[family]\nblock_bytes = 64MB", "line 2: block_bytes: \"64MB\" is not a size"),
        ("[family]\nfilter_bits_per_key = 256", "filter_bits_per_key: \"256\" is too large"),
        (
            "[family]\ncompression = lzma",
            "line 2: compression: \"lzma\" is none of none, snappy, lz4",
        ),
        ("[family]\ncompression = zstd:23", "compression: \"zstd:23\" is none of"),
        ("[family]\nmerge_operator = Mine", "merge_operator: \"Mine\" is no built-in"),
        ("[family]\nprefix_extractor = fixed:0", "prefix_extractor: \"fixed:0\" is none of"),
        ("[database]\nlogging = maybe", "logging: \"maybe\" is neither yes nor no"),
        ("[family]\nlevel0_stop_files = 2", "level0_slowdown_files <= level0_stop_files"),
        ("[family]\ndebt_stop_bytes = 1", "debt_slowdown_bytes <= debt_stop_bytes"),
        ("[family]\ndebt_slowdown_bytes = 0\ndebt_stop_bytes = 0", "debt_stop_bytes"),
        (
            "[family]\ndictionary_bytes = 1MiB\ndictionary_training_bytes = 1KiB",
            "dictionary_training_bytes is 1024; from dictionary_bytes, which is 1048576",
        ),
        (
            "[family]\ncompression = lz4\ndictionary_bytes = 1KiB",
            "dictionary_bytes is 1024, but none of compression, compression_by_level and",
        ),
        (
            "[family]\nprefix_extractor = fixed:4\nfilter_bits_per_key = 0",
            "prefix_extractor is fixed:4, but filter_bits_per_key is 0",
        ),
        ("[family]\ndictionary_bytes = 100", "dictionary_bytes is 100; 0, or from 256"),
        (
            "[family]\ncompression_by_level = none,none,none,none,none,none,none,none",
            "compression_by_level names 8 codecs; at most 7",
        ),
        (
            "[family \"x\"]\nblock_bytes = 1",
            "family \"x\": block_bytes is 1; it must be at least 64",
        ),
        ("[database]\nmemory_bytes = 1KiB", "memory_bytes is 1024; it must be at least"),
    ];
    for (text, expected) in cases {
        let mut options = Options::default();
        let error = options.apply_text(text).expect_err(text).to_string();
        assert!(error.contains(expected), "{text:?} gave {error:?}, not {expected:?}");
        assert_eq!(options.to_text(), Options::default().to_text(), "{text:?} changed something");
    }
}

/// A prefix needs neighbours: in another order than bytewise there are none.
#[test]
fn prefixes_need_the_bytewise_order() {
    let mut options = Options { fs: Arc::new(MemFs::new()), ..Options::default() };
    options.create_if_missing = true;
    options.family.order = Order::Reverse.key_order();
    options.family.set("prefix_extractor", "fixed:3").unwrap();
    let error = Db::open(ROOT, options).unwrap_err().to_string();
    assert!(
        error.contains("prefix_extractor") && error.contains("order is testkit.Reverse"),
        "{error}"
    );
}

/// A file of options is read from the disk; what is wrong with it names it.
#[test]
fn files_of_options_are_read() -> Result<(), Error> {
    let directory = TempDir::new("options");
    let path = directory.path().join("my.options");
    assert!(matches!(Options::load(&path), Err(Error::Io { .. })));
    std::fs::write(&path, "[family]\ntable_bytes = 2MiB\n").unwrap();
    assert_eq!(Options::load(&path)?.family.table_bytes, 2 << 20);
    std::fs::write(&path, "[family]\ntable_byte = 2MiB\n").unwrap();
    let error = Options::load(&path).unwrap_err().to_string();
    assert!(error.contains("my.options: line 2: there is no option table_byte"), "{error}");
    std::fs::write(&path, b"\xff\xff").unwrap();
    assert!(Options::load(&path).unwrap_err().to_string().contains("no file of options"));
    Ok(())
}

fn options_files(fs: &dyn Fs, directory: &Path) -> Vec<String> {
    let mut names = fs.list(directory).expect("the directory is there");
    names.retain(|name| name.starts_with("OPTIONS-"));
    names.sort();
    names
}

/// An open database keeps the options that hold, of all families, in a file
/// that opens it so again; the newest two are kept.
#[test]
fn the_options_that_hold_are_in_a_file() -> Result<(), Error> {
    let directory = TempDir::new("options-file");
    let root = directory.path().join("db");
    let open = |bytes: usize| {
        let mut options = Options { create_if_missing: true, ..Options::default() };
        options.family.memtable_bytes = bytes;
        Db::open(&root, options)
    };
    let newest = || {
        let names = options_files(&OsFs::new(), &root);
        assert!(names.len() <= 2, "{names:?}");
        Options::load(root.join(names.last().expect("there is one")))
    };
    let db = open(1 << 20)?;
    assert_eq!(newest()?.family.memtable_bytes, 1 << 20);
    assert!(!newest()?.create_if_missing, "that was about one opening");
    let mut options = FamilyOptions::default();
    options.set("prefix_extractor", "capped:4")?;
    db.create_family("other", options)?;
    let kept = newest()?;
    assert_eq!(kept.to_text(), Options { create_if_missing: false, ..db.options() }.to_text());
    assert!(kept.to_text().contains("prefix_extractor = capped:4"), "{}", kept.to_text());
    drop(db);
    for bytes in [2 << 20, 3 << 20] {
        drop(open(bytes)?);
        assert_eq!(newest()?.family.memtable_bytes, bytes);
    }
    assert_eq!(options_files(&OsFs::new(), &root).len(), 2);
    let db = Db::open(&root, newest()?)?;
    assert_eq!(db.family_options().memtable_bytes, 3 << 20);
    assert_eq!(db.property("lodestore.options-failure").as_deref(), Some(""));
    // Readers leave no trace.
    let before = options_files(&OsFs::new(), &root);
    Db::open_read_only(&root, Options::default())?.set_options(&[("cache_bytes", "0")])?;
    assert_eq!(options_files(&OsFs::new(), &root), before);
    drop(db);
    Db::destroy(&root, &Options::default())?;
    assert!(!root.exists(), "the files of options go with the database");
    Ok(())
}

#[test]
fn options_that_are_in_a_file_already_are_not_written_again() -> Result<(), Error> {
    let (disk, root) = (MemFs::new(), Path::new(ROOT));
    let open = |create_if_missing, log_bytes_max| {
        let fs = Arc::new(disk.clone());
        Db::open(root, Options { create_if_missing, log_bytes_max, fs, ..Options::default() })
    };
    drop(open(true, 1 << 30)?);
    let written = options_files(&disk, root);
    assert_eq!(written.len(), 1);
    drop(open(false, 1 << 30)?);
    assert_eq!(options_files(&disk, root), written);
    drop(open(false, 1 << 29)?);
    assert_eq!(options_files(&disk, root).len(), 2);
    Ok(())
}

/// Nothing depends on the file: a database opens where it cannot be written,
/// says so, and opens where all of them are gone or wrong.
#[test]
fn a_file_of_options_that_cannot_be_written_does_no_harm() -> Result<(), Error> {
    let (disk, root) = (MemFs::new(), Path::new(ROOT));
    let options = |fs: Arc<dyn Fs>| Options { create_if_missing: true, fs, ..Options::default() };
    let operations = [Operation::Create, Operation::Append, Operation::Sync, Operation::Rename];
    for (operation, size) in operations.into_iter().zip(["2GiB", "3GiB", "4GiB", "5GiB"]) {
        let failing = FaultFs::new(Arc::new(disk.clone()));
        let db = Db::open(root, options(Arc::new(failing.clone())))?;
        let before = options_files(&disk, root);
        failing.inject(Fault::new(operation, 1, ErrorKind::Other).on(".tmp").forever());
        db.set_options(&[("log_bytes_max", size)])?;
        assert!(failing.struck() > 0, "{operation:?}");
        let failure = db.property("lodestore.options-failure").expect("it is known");
        assert!(failure.contains(".tmp") || failure.contains("OPTIONS-"), "{failure}");
        assert_eq!(options_files(&disk, root), before, "what was there stays");
        failing.heal();
        db.put(b"a", b"b")?;
        db.set_options(&[("log_bytes_max", size)])?;
        assert_eq!(db.property("lodestore.options-failure").as_deref(), Some(""));
    }
    for name in options_files(&disk, root) {
        let mut file = disk.create(&root.join(name)).expect("memory has room");
        file.append(b"no options").expect("memory has room");
    }
    let db = Db::open(root, options(Arc::new(disk.clone())))?;
    assert_eq!(db.get(b"a")?.as_deref(), Some(&b"b"[..]));
    drop(db);
    for name in options_files(&disk, root) {
        disk.remove(&root.join(name)).expect("it is there");
    }
    Db::open(root, options(Arc::new(disk)))?.verify().map(drop)
}

/// The guide's tables, made of the list that everything else goes by.
fn guide_tables() -> String {
    let mut text = String::new();
    for (title, infos) in
        [("The database", Options::catalogue()), ("Families", FamilyOptions::catalogue())]
    {
        writeln!(text, "### {title}\n").unwrap();
        writeln!(text, "| option | default | unit | change takes effect | what it does |").unwrap();
        writeln!(text, "|---|---|---|---|---|").unwrap();
        for OptionInfo { name, unit, default, live, about, .. } in infos {
            let live = live.unwrap_or("-");
            writeln!(text, "| `{name}` | {default} | {unit} | {live} | {about} |").unwrap();
        }
        text.push('\n');
    }
    text
}

/// The guide lists every option as the engine has it. `WRITE_GUIDE=1` brings
/// it up to date.
#[test]
fn the_guide_lists_every_option() {
    const BEGIN: &str = "<!-- options: begin -->\n";
    const END: &str = "<!-- options: end -->";
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guide/options.md");
    let guide = std::fs::read_to_string(&path).expect("the guide is in the repository");
    let (before, rest) = guide.split_once(BEGIN).expect("the tables begin somewhere");
    let (found, after) = rest.split_once(END).expect("the tables end somewhere");
    let expected = guide_tables();
    if crate::environment::number("WRITE_GUIDE", 0) == 1 {
        let guide = format!("{before}{BEGIN}{expected}{END}{after}");
        std::fs::write(&path, guide).expect("the guide can be written");
    } else {
        assert_eq!(found, expected, "run this test with WRITE_GUIDE=1 and read the difference");
    }
}

/// What stands between appended values is part of the operator's name: who opens
/// without naming one goes on with it, and another one is refused.
#[test]
fn an_append_operator_keeps_its_delimiter() {
    let fs = MemFs::new();
    let open = |delimiter: Option<&[u8]>| {
        let append = |delimiter| Arc::new(Append::with_delimiter(delimiter)) as _;
        let family =
            FamilyOptions { merge_operator: delimiter.map(append), ..FamilyOptions::default() };
        let fs: Arc<dyn Fs> = Arc::new(fs.clone());
        Db::open(ROOT, Options { create_if_missing: true, fs, family, ..Options::default() })
    };
    let db = open(Some(b"; ")).expect("it is created");
    db.merge(b"k", b"a").expect("memory takes it");
    drop(db);
    for other in [&b","[..], b"", b";"] {
        let refused = open(Some(other)).map(|_| ()).unwrap_err();
        assert!(matches!(refused, Error::InvalidArgument { .. }), "{refused}");
        assert!(refused.to_string().contains("\"StringAppendOperator:0x3b20\""), "{refused}");
    }
    let db = open(None).expect("its operator is built in");
    db.merge(b"k", b"b").expect("memory takes it");
    assert_eq!(db.get(b"k").expect("it is there").as_deref(), Some(&b"a; b"[..]));
    let mut options = Options::default();
    options.apply_text(&db.options().to_text()).expect("the text names it");
    let named = options.family_options("default").merge_operator.as_ref().expect("it has one");
    assert_eq!(named.name(), "StringAppendOperator:0x3b20");
}
