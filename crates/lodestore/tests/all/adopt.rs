//! Moving in from LevelDB, with databases that LevelDB itself has made
//! (testdata/leveldb): everything is there, and the way back leads to the same
//! bytes, whatever happens on the way.

use lodestore::adopt::{adopt, commit, open, open_read_only, roll_back};
use lodestore::fs::{Fs, read_all};
use lodestore::{
    Comparator, Db, Error, FamilyOptions, KeyOrder, MemFs, Options, ReadOptions, export,
};
use std::cmp::Ordering;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use testkit::files::{self, Files};

pub const ROOT: &str = "/leveldb";
pub const NAMES: [&str; 8] =
    ["backwards", "empty", "filters", "log", "raw", "small", "small-snappy", "versions"];

struct Backwards;

impl Comparator for Backwards {
    fn name(&self) -> &str {
        "test.Backwards"
    }
    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        b.cmp(a)
    }
}

fn made(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/leveldb").join(name)
}

/// The files of a database as LevelDB left them.
pub fn original(name: &str) -> Files {
    let listed = std::fs::read_dir(made(name)).expect("it is in testdata");
    let read = |entry: std::io::Result<std::fs::DirEntry>| {
        let path = entry.expect("it can be listed").path();
        let name = path.file_name().and_then(|name| name.to_str()).expect("names are text");
        (name.to_string(), std::fs::read(&path).expect("it can be read"))
    };
    listed.map(read).collect()
}

/// A disk that has the database in [`ROOT`].
pub fn disk(files: &Files) -> MemFs {
    let fs = MemFs::new();
    files::write(&fs, Path::new(ROOT), files).expect("memory takes files");
    fs.sync_directory(Path::new("/")).expect("memory is sound");
    fs
}

pub fn options(fs: &MemFs, name: &str) -> Options {
    let order = match name {
        "backwards" => KeyOrder::Custom(Arc::new(Backwards)),
        _ => KeyOrder::Bytewise,
    };
    let family = FamilyOptions { order, ..FamilyOptions::default() };
    Options { fs: Arc::new(fs.clone()), family, ..Options::default() }
}

/// Every file in [`ROOT`], and the names of folders.
pub fn found(fs: &MemFs) -> Files {
    let root = Path::new(ROOT);
    let names = fs.list(root).expect("it is there");
    let read = |name: String| {
        let bytes = read_all(fs, &root.join(&name)).unwrap_or_else(|_| b"a folder".to_vec());
        (name, bytes)
    };
    names.into_iter().map(read).collect()
}

fn crc32c(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc: u32, _| crc >> 1 ^ (0x82f6_3b78 * (crc & 1)))
    })
}

/// How many entries there are, and a checksum over them, as `make.cc` has it.
fn digest<'e>(entries: impl Iterator<Item = (&'e [u8], &'e [u8])>) -> String {
    let (mut count, mut all) = (0, Vec::new());
    for (key, value) in entries {
        for part in [key, value] {
            all.extend_from_slice(&(part.len() as u32).to_le_bytes());
            all.extend_from_slice(part);
        }
        count += 1;
    }
    format!("{count} {}\n", crc32c(&all))
}

/// Compares all that `db` holds with what LevelDB held, in every way of reading.
pub fn compare(db: &Db, name: &str) {
    let entries: Entries = db.range(..).collect::<Result<_, _>>().expect("it can be walked");
    let expected = std::fs::read_to_string(made(name).with_extension("expected"));
    let expected = expected.expect("it is in testdata");
    let slices = |(key, value): &'_ (Vec<u8>, Vec<u8>)| (key.clone(), value.clone());
    let copied: Vec<_> = entries.iter().map(slices).collect();
    assert_eq!(digest(copied.iter().map(|(k, v)| (&k[..], &v[..]))), expected, "{name}");
    let mut cursor = db.cursor();
    cursor.last();
    for (key, value) in entries.iter().rev() {
        assert_eq!((cursor.key(), cursor.value()), (&key[..], &value[..]), "{name}");
        cursor.prev();
    }
    assert!(!cursor.valid() && cursor.status().is_ok());
    let keys: Vec<&[u8]> = entries.iter().map(|(key, _)| &key[..]).collect();
    for ((key, value), found) in entries.iter().zip(db.multi_get(&keys)) {
        assert_eq!(found.expect("read").as_deref(), Some(&value[..]), "{name}");
        assert_eq!(db.get(key).expect("read").as_deref(), Some(&value[..]), "{name}");
    }
    for i in 0..3_200 {
        let key = format!("account/{i:06}").into_bytes();
        let expected = entries.iter().find(|(at, _)| *at == key).map(|(_, value)| &value[..]);
        assert_eq!(db.get(&key).expect("read").as_deref(), expected, "{name}: {i}");
        assert!(db.get(&[&key[..], b"x"].concat()).expect("read").is_none());
    }
}

/// What LevelDB had is all there: adopted, compacted into tables of our own,
/// and opened again.
#[test]
fn everything_that_leveldb_had_is_there() {
    for name in NAMES {
        let fs = disk(&original(name));
        let options = options(&fs, name);
        let adopted = adopt(ROOT, &options).expect(name);
        assert_eq!(adopted.tables_linked == 0, ["empty", "log"].contains(&name), "{name}");
        // Nothing is compacted behind this one's back.
        let before = Db::open_read_only(ROOT, options.clone()).expect(name);
        let foreign = before.property("lodestore.foreign-tables");
        assert_eq!(foreign, Some(adopted.tables_linked.to_string()), "{name}");
        drop(before);
        let db = Db::open(ROOT, options.clone()).expect(name);
        assert_eq!(db.latest_sequence(), adopted.last_sequence);
        compare(&db, name);
        db.verify().expect(name);
        db.put(b"new", b"entry").expect("it is ours now");
        db.delete(b"new").expect("it is ours now");
        db.compact_range(None, None).expect(name);
        compare(&db, name);
        db.verify().expect(name);
        drop(db);
        let db = Db::open(ROOT, options.clone()).expect(name);
        compare(&db, name);
        drop(db);
        commit(ROOT, &options).expect(name);
        assert!(matches!(roll_back(ROOT, &options), Err(Error::InvalidArgument { .. })));
        let db = Db::open(ROOT, options).expect(name);
        compare(&db, name);
        db.rewrite_range(None, None).expect(name);
        assert_eq!(db.property("lodestore.foreign-tables").as_deref(), Some("0"));
        compare(&db, name);
    }
}

/// A LevelDB database is read where it is, in every way of reading, and no call
/// changes anything on the disk; what is ours is read the same way.
#[test]
fn a_leveldb_database_is_read_in_place() {
    for name in NAMES {
        let files = original(name);
        let fs = disk(&files);
        let (options, operations) = (options(&fs, name), fs.operations());
        let db = open_read_only(ROOT, options.clone()).expect(name);
        compare(&db, name);
        db.verify().expect(name);
        assert!(db.put(b"key", b"value").is_err(), "{name}");
        drop(db);
        assert!(fs.operations() == operations && found(&fs) == files, "{name}");
        adopt(ROOT, &options).expect(name);
        compare(&open_read_only(ROOT, options).expect(name), name);
    }
}

/// Keys and values, in order.
type Entries = Vec<(Vec<u8>, Vec<u8>)>;

/// All that there is to read in place, or why not.
fn read_in_place(fs: &MemFs) -> Result<Entries, Error> {
    let db = open_read_only(ROOT, options(fs, "small"))?;
    let entries = db.range(..).collect::<Result<_, _>>()?;
    db.verify()?;
    Ok(entries)
}

/// Whatever byte is wrong, reading in place gives what was written or says which file
/// is damaged, and changes nothing. Only of log and manifest may the end be missing: a
/// length that leads behind it looks as after a crash.
#[test]
fn a_wrong_byte_is_told_when_reading_in_place() {
    let files = original("small");
    let whole = read_in_place(&disk(&files)).expect("it is sound");
    let is_record = |name: &str| name.ends_with(".log") || name.starts_with("MANIFEST");
    // What a file of records says if its end is missing.
    let torn = |name: &String| -> Vec<Entries> {
        let mut torn = files.clone();
        let states = (0..files[name].len()).rev().filter_map(|length| {
            torn.get_mut(name).expect("it is there").truncate(length);
            read_in_place(&disk(&torn)).ok()
        });
        states.collect()
    };
    let mut told = 0;
    for (name, bytes) in files.iter().filter(|(name, _)| *name != "LOG") {
        let states = if is_record(name) { torn(name) } else { Vec::new() };
        for at in 0..bytes.len() {
            let mut damaged = files.clone();
            damaged.get_mut(name).expect("it is there")[at] ^= 0x41;
            let fs = disk(&damaged);
            match read_in_place(&fs) {
                Ok(entries) => {
                    assert!(entries == whole || states.contains(&entries), "{name} {at}");
                }
                Err(error) => {
                    assert!(error.is_corruption(), "{name} {at}: {error}");
                    let is_named = error.to_string().contains(name.as_str());
                    assert!(is_named || name == "CURRENT", "{name} {at}: {error}");
                    told += 1;
                }
            }
            assert!(found(&fs) == damaged, "{name} {at}");
        }
    }
    assert!(told > 2_000, "{told}");
}

/// Whoever asks for it when opening gets the database, whoever made it.
#[test]
fn opening_adopts_if_asked() {
    let fs = disk(&original("small"));
    let options = options(&fs, "small");
    for key in [&b"first"[..], b"second"] {
        let db = open(ROOT, options.clone()).expect("LevelDB's, then ours");
        db.put(key, b"1").expect("written");
        db.delete(key).expect("written");
        compare(&db, "small");
    }
    let none = MemFs::new();
    let created = Options { fs: Arc::new(none), create_if_missing: true, ..options };
    open(ROOT, created).expect("there was none").put(b"key", b"value").expect("written");
}

/// Going back gives the same bytes, also after reading, after compactions, and
/// when it is done twice.
#[test]
fn going_back_gives_the_same_bytes() {
    for name in NAMES {
        let files = original(name);
        let fs = disk(&files);
        let options = options(&fs, name);
        for round in 0..3 {
            adopt(ROOT, &options).expect(name);
            assert_ne!(found(&fs), files);
            if round > 0 {
                let db = Db::open(ROOT, options.clone()).expect(name);
                compare(&db, name);
                if round > 1 {
                    db.compact_range(None, None).expect(name);
                }
            }
            roll_back(ROOT, &options).expect(name);
            assert!(found(&fs) == files, "{name}, round {round}");
        }
        assert!(matches!(roll_back(ROOT, &options), Err(Error::InvalidArgument { .. })));
        assert!(found(&fs) == files, "{name}: a refusal changes nothing");
    }
}

/// Something that was written since is not thrown away by going back.
#[test]
fn there_is_no_way_back_over_what_was_written() {
    let fs = disk(&original("filters"));
    let options = options(&fs, "filters");
    adopt(ROOT, &options).expect("adopted");
    Db::open(ROOT, options.clone()).expect("ours").put(b"new", b"1").expect("written");
    let refused = roll_back(ROOT, &options).expect_err("an entry would be lost");
    assert!(refused.to_string().contains("1 entries were written"), "{refused}");
    let db = Db::open(ROOT, options).expect("still ours");
    assert_eq!(db.get(b"new").expect("read").as_deref(), Some(&b"1"[..]));
}

/// Without being asked we leave LevelDB's directory as it is, and say which
/// command adopts it; an order of keys that is not given is asked for by name.
#[test]
fn nothing_is_adopted_unasked_or_in_the_wrong_order() {
    let files = original("backwards");
    let fs = disk(&files);
    let bytewise = options(&fs, "filters");
    let refused = Db::open(ROOT, bytewise.clone()).expect_err("it is LevelDB's");
    assert!(refused.to_string().contains("lode adopt"), "{refused}");
    let refused = adopt(ROOT, &bytewise).expect_err("another order");
    assert!(refused.to_string().contains("test.Backwards"), "{refused}");
    assert!(found(&fs) == files);
    let fs = disk(&original("filters"));
    let refused = adopt(ROOT, &options(&fs, "backwards")).expect_err("another order");
    assert!(refused.to_string().contains("bytewise"), "{refused}");
}

/// What was adopted can be exported again, adopted again, and is the same; values
/// that were written since are there too.
#[test]
fn what_is_exported_can_be_adopted() {
    for name in NAMES {
        let fs = disk(&original(name));
        let options = options(&fs, name);
        let db = open(ROOT, options.clone()).expect(name);
        let exported = export::to_leveldb(&db, &ReadOptions::default(), "/out").expect(name);
        let count = db.range(..).count() as u64;
        assert_eq!((exported.entries, exported.tables), (count, count.min(1)), "{name}");
        let again = export::to_leveldb(&db, &ReadOptions::default(), "/out");
        assert!(matches!(again, Err(Error::InvalidArgument { .. })), "it is not empty");
        let adopted = adopt("/out", &options).expect(name);
        assert_eq!((adopted.tables_linked, adopted.last_sequence), (count.min(1), count), "{name}");
        let other = Db::open("/out", options.clone()).expect(name);
        compare(&other, name);
        other.verify().expect(name);
    }
}

/// Many tables, with and without filters and compression.
#[test]
fn an_export_of_many_tables_is_whole() {
    let fs = MemFs::new();
    let created = Options { create_if_missing: true, ..options(&fs, "log") };
    let db = Db::open("/db", created.clone()).expect("it is new");
    let value: Vec<u8> = (0..2_000u32).map(|i| (i * i) as u8).collect();
    (0..3_000u32).for_each(|i| db.put(&i.to_be_bytes(), &value).expect("written"));
    db.delete(&7u32.to_be_bytes()).expect("written");
    for (nth, changes) in [("compression", "none"), ("filter_bits_per_key", "0")].iter().enumerate()
    {
        db.set_family_options(&[*changes]).expect("it can change");
        let out = format!("/out{nth}");
        let exported = export::to_leveldb(&db, &ReadOptions::default(), &out).expect("written");
        assert_eq!(exported.entries, 2_999);
        assert!(exported.tables > 2, "{exported:?}");
        let other = open(&out, created.clone()).expect("adopted");
        other.verify().expect("sound");
        assert!(other.range(..).map(Result::unwrap).eq(db.range(..).map(Result::unwrap)));
        assert!(other.get(&7u32.to_be_bytes()).expect("read").is_none());
    }
}

/// Damage is found before anything is touched, and told with file and place.
#[test]
fn a_damaged_database_is_refused_and_left_alone() {
    let files = original("filters");
    let table = files.keys().find(|name| name.ends_with(".ldb")).expect("a table").clone();
    let manifest = files.keys().find(|name| name.starts_with("MANIFEST")).expect("one").clone();
    let log = files.keys().find(|name| name.ends_with(".log")).expect("one").clone();
    let end = files[&table].len();
    let cases = [
        (&table, Some(end - 1), "not a LevelDB table"),
        (&table, Some(end - 60), "checksum"),
        (&table, None, "missing"),
        (&manifest, Some(10), "checksum"),
        (&manifest, None, "missing"),
        (&log, Some(20), "checksum"),
    ];
    for (name, at, what) in cases {
        let mut damaged = files.clone();
        match at {
            Some(at) => damaged.get_mut(name).expect("it is there")[at] ^= 0x55,
            None => drop(damaged.remove(name)),
        }
        let fs = disk(&damaged);
        let error = adopt(ROOT, &options(&fs, "filters")).expect_err(what);
        assert!(error.is_corruption(), "{error}");
        assert!(error.to_string().contains(name) && error.to_string().contains(what), "{error}");
        assert!(found(&fs) == damaged, "{name}, {what}");
    }
}

/// Whenever the power fails, the directory is LevelDB's as it was or ours with
/// everything in it, and the command that was cut short can be given again.
#[test]
fn adoption_and_return_survive_a_crash_at_every_step() {
    let files = original("filters");
    let total = |work: &dyn Fn(&MemFs)| {
        let fs = disk(&files);
        let before = fs.operations();
        work(&fs);
        fs.operations() - before
    };
    let there = |fs: &MemFs| drop(adopt(ROOT, &options(fs, "filters")));
    let steps = total(&there);
    for step in 0..steps {
        for seed in 0..4 {
            let fs = disk(&files);
            fs.stop_after(fs.operations() + step);
            there(&fs);
            let fs = if seed == 0 { fs.kill() } else { fs.crash(step * 8 + seed) };
            settle(&fs, &files, step);
        }
    }
    let back = |fs: &MemFs| drop(roll_back(ROOT, &options(fs, "filters")));
    let both = total(&|fs| {
        there(fs);
        back(fs);
    });
    for step in steps..both {
        for seed in 0..4 {
            let fs = disk(&files);
            fs.stop_after(fs.operations() + step);
            there(&fs);
            back(&fs);
            let fs = if seed == 0 { fs.kill() } else { fs.crash(step * 8 + seed) };
            settle(&fs, &files, step);
        }
    }
}

/// Goes on after a crash: all is there, and the way back is open.
fn settle(fs: &MemFs, files: &Files, step: u64) {
    let options = options(fs, "filters");
    match Db::open(ROOT, options.clone()) {
        Ok(db) => compare(&db, "filters"),
        Err(Error::Incompatible { .. }) => {
            // LevelDB's: its files are all there, whatever else is.
            let now = found(fs);
            let is_kept = |(name, bytes): (&String, &Vec<u8>)| now.get(name) == Some(bytes);
            assert!(files.iter().all(is_kept), "step {step}");
            adopt(ROOT, &options).unwrap_or_else(|error| panic!("step {step}: {error}"));
            let db = Db::open(ROOT, options.clone()).expect("adopted");
            compare(&db, "filters");
        }
        Err(error) => panic!("step {step}: {error}"),
    }
    roll_back(ROOT, &options).unwrap_or_else(|error| panic!("step {step}: {error}"));
    assert!(found(fs) == *files, "step {step}: {:?}", found(fs).keys());
}

/// Chrome's IndexedDB: the library has its order, so nobody need give it.
#[test]
fn a_database_in_the_order_of_indexed_db_is_adopted_in_that_order() -> Result<(), Error> {
    let fs = MemFs::new();
    let order = KeyOrder::built_in("idb_cmp1").expect("it is built in");
    let family = FamilyOptions { order, ..FamilyOptions::default() };
    let options = Options { create_if_missing: true, family, ..options(&fs, "") };
    let source = Db::open("/source", options)?;
    // Values of one object store under numbers, which bytewise order has otherwise.
    let key = |number: f64| [&[0, 1, 1, 1, 3][..], &number.to_le_bytes()].concat();
    let numbers: Vec<f64> = (-500..500).map(|i| f64::from(i) * 1.25).collect();
    for number in numbers.iter().rev() {
        source.put(&key(*number), number.to_string().as_bytes())?;
    }
    export::to_leveldb(&source, &ReadOptions::default(), ROOT)?;
    let bytewise = self::options(&fs, "");
    adopt(ROOT, &bytewise)?;
    let adopted = Db::open(ROOT, bytewise.clone())?;
    assert_eq!(adopted.family_options().order.name(), "idb_cmp1");
    let found = adopted.range(..).map(|entry| Ok(entry?.0.to_vec()));
    let found = found.collect::<Result<Vec<_>, Error>>()?;
    assert_eq!(found, numbers.iter().map(|number| key(*number)).collect::<Vec<_>>());
    drop(adopted);
    roll_back(ROOT, &bytewise)
}
