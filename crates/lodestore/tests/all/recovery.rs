//! Recovery from files that were cut or changed: the batches that are whole
//! are there, or a clear error; never anything else.

use lodestore::fs::{Fault, FaultFs, Operation};
use lodestore::inspect::LogFile;
use lodestore::{Db, Error, FamilyOptions, Fs, MemFs, Options, OsFs, WriteOptions};
use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;
use testkit::files::{self, Files};
use testkit::load::{Contents, Expected, Families, Writer, contents, with_families};
use testkit::temp_dir::TempDir;

const DIRECTORY: &str = "/recovery";
const BATCHES: u64 = 12;
const WRITER: Writer = Writer { seed: 7, id: 1, value_bytes_max: 40 };

fn options(fs: &MemFs) -> Options {
    let fs: Arc<dyn Fs> = Arc::new(fs.clone());
    let options = Options { create_if_missing: true, fs, ..Options::default() };
    with_families(options)
}

/// The files of a small database as a killed process leaves them: twelve
/// batches, the first few in tables, the others in the log only.
fn small_database(flush_after: u64) -> Result<Files, Error> {
    let fs = MemFs::new();
    let options = options(&fs);
    let db = Db::open(DIRECTORY, options.clone())?;
    let families = Families::of(&db, &options)?;
    for index in 1..=BATCHES {
        db.write_with(&WriteOptions::default(), &mut WRITER.batch(index, &families))?;
        if index == flush_after {
            db.flush_all()?;
        }
    }
    db.wait_for_background()?;
    let files = files::read(&fs, Path::new(DIRECTORY)).expect("memory can be read");
    drop((families, db));
    Ok(files)
}

/// Opens a database of these files; the file system beside it, to look at.
fn open(files: &Files) -> (MemFs, Result<Contents, Error>) {
    let fs = MemFs::new();
    files::write(&fs, Path::new(DIRECTORY), files).expect("memory can be written");
    let found = Db::open(DIRECTORY, options(&fs)).and_then(|db| contents(&db));
    (fs, found)
}

/// How many whole batches there are; panics if there is anything else.
#[track_caller]
fn whole_batches(found: &Contents) -> u64 {
    let mut expected = Expected::default();
    let kept = WRITER.batches_in(found);
    (1..=kept).for_each(|index| expected.apply(&WRITER, index));
    assert_eq!(expected.difference(found), None, "with {kept} batches");
    kept
}

fn the_log(files: &Files) -> String {
    let logs: Vec<&String> = files.keys().filter(|name| name.ends_with(".wal")).collect();
    let longest = logs.into_iter().max_by_key(|name| files[*name].len());
    longest.expect("there is a log").clone()
}

fn the_manifest(files: &Files) -> String {
    files.keys().find(|name| name.starts_with("MANIFEST-")).expect("there is one").clone()
}

/// A log that ends anywhere gives the batches that are whole in it, and loses
/// no more of them the longer it is.
#[test]
fn a_log_cut_anywhere_gives_its_whole_batches() -> Result<(), Error> {
    for flush_after in [0, 5] {
        let files = small_database(flush_after)?;
        let log = the_log(&files);
        let whole = files[&log].clone();
        let (mut kept_before, mut steps) = (0, 0);
        for length in 0..=whole.len() {
            let mut cut = files.clone();
            cut.insert(log.clone(), whole[..length].to_vec());
            let (_, found) = open(&cut);
            let found = match found {
                Ok(found) => found,
                // Within the segment's header nothing tells a cut from rot.
                Err(Error::Corruption { .. }) if kept_before == flush_after => continue,
                Err(error) => panic!("cut at {length} of {}: {error}", whole.len()),
            };
            let kept = whole_batches(&found);
            assert!(kept >= kept_before.max(flush_after), "cut at {length}: {kept} batches");
            steps += u64::from(kept > kept_before);
            kept_before = kept;
        }
        assert_eq!(kept_before, BATCHES, "the uncut log gives everything");
        assert!(steps >= BATCHES - flush_after - 1, "batches appear one by one, not {steps}");
    }
    Ok(())
}

/// A changed byte in the log is found: what opens is a state that was.
#[test]
fn a_changed_byte_in_the_log_never_gives_another_state() -> Result<(), Error> {
    let files = small_database(0)?;
    let log = the_log(&files);
    let mut opened = 0;
    for at in 0..files[&log].len() {
        let mut changed = files.clone();
        changed.get_mut(&log).expect("it is there")[at] ^= 1 << (at % 8);
        match open(&changed).1 {
            Ok(found) => {
                whole_batches(&found);
                opened += 1;
            }
            Err(Error::Corruption { .. } | Error::Incompatible { .. }) => {}
            Err(error) => panic!("byte {at}: {error}"),
        }
    }
    println!("{opened} of {} changed bytes were taken for a torn end", files[&log].len());
    Ok(())
}

/// A manifest that ends anywhere opens with everything or not at all; and
/// where it does not open, nothing is created, changed or deleted.
#[test]
fn a_manifest_cut_anywhere_loses_nothing_silently() -> Result<(), Error> {
    let files = small_database(5)?;
    let manifest = the_manifest(&files);
    let whole = files[&manifest].clone();
    for length in 0..=whole.len() {
        let mut cut = files.clone();
        cut.insert(manifest.clone(), whole[..length].to_vec());
        check_all_or_nothing(&cut, &format!("manifest cut at {length} of {}", whole.len()));
    }
    Ok(())
}

/// The same for a changed byte in the manifest, and in CURRENT.
#[test]
fn a_changed_byte_in_the_manifest_loses_nothing_silently() -> Result<(), Error> {
    let files = small_database(5)?;
    for name in [the_manifest(&files), "CURRENT".to_string()] {
        for at in 0..files[&name].len() {
            let mut changed = files.clone();
            changed.get_mut(&name).expect("it is there")[at] ^= 1 << (at % 8);
            check_all_or_nothing(&changed, &format!("byte {at} of {name}"));
        }
    }
    Ok(())
}

#[track_caller]
fn check_all_or_nothing(files: &Files, what: &str) {
    let (fs, found) = open(files);
    match found {
        Ok(found) => assert_eq!(whole_batches(&found), BATCHES, "{what}"),
        Err(Error::Corruption { .. } | Error::Incompatible { .. } | Error::Missing { .. }) => {
            let left = files::read(&fs, Path::new(DIRECTORY)).expect("memory can be read");
            let (left, before) = (files::without_locks(&left), files::without_locks(files));
            assert!(left == before, "{what}: a refused open changed the directory");
        }
        Err(error) => panic!("{what}: {error}"),
    }
}

/// A changed byte in a table is found when it is read; nothing wrong is shown,
/// and a key is never reported absent because of it.
#[test]
fn a_changed_byte_in_a_table_is_never_shown() -> Result<(), Error> {
    let files = small_database(BATCHES)?;
    let (_, sound) = open(&files);
    let sound = sound?;
    let tables: Vec<&String> = files.keys().filter(|name| name.ends_with(".table")).collect();
    assert!(tables.len() >= 2, "every family was flushed");
    let mut found_out = 0;
    for name in tables {
        for at in 0..files[name].len() {
            let mut changed = files.clone();
            changed.get_mut(name).expect("it is there")[at] ^= 1 << (at % 8);
            found_out +=
                u64::from(check_readable(&changed, &sound, &format!("byte {at} of {name}")));
        }
    }
    assert!(found_out > 0, "changed bytes are noticed");
    Ok(())
}

/// True if something was refused.
#[track_caller]
fn check_readable(files: &Files, sound: &Contents, what: &str) -> bool {
    let fs = MemFs::new();
    files::write(&fs, Path::new(DIRECTORY), files).expect("memory can be written");
    let db = match Db::open(DIRECTORY, options(&fs)) {
        Ok(db) => db,
        Err(Error::Corruption { .. } | Error::Incompatible { .. }) => return true,
        Err(error) => panic!("{what}: {error}"),
    };
    let mut refused = db.verify().is_err();
    for (name, entries) in sound {
        let family = db.family(name).expect("families are in the manifest");
        for (key, value) in entries {
            match family.get(key) {
                Ok(found) => assert_eq!(found.as_deref(), Some(&value[..]), "{what}, {name}"),
                Err(Error::Corruption { .. } | Error::Incompatible { .. }) => refused = true,
                Err(error) => panic!("{what}: {error}"),
            }
        }
    }
    refused
}

/// A file that the manifest names and that is gone is named in the error.
#[test]
fn a_missing_table_is_reported_by_name() -> Result<(), Error> {
    let files = small_database(BATCHES)?;
    let table = files.keys().find(|name| name.ends_with(".table")).expect("there is one").clone();
    let mut without = files.clone();
    without.remove(&table);
    match open(&without).1 {
        Ok(_) => panic!("a missing table was not noticed"),
        Err(error) => assert!(error.to_string().contains(&table), "{error}"),
    }
    Ok(())
}

/// Two tables that have changed names are noticed: each has its own identity.
#[test]
fn swapped_tables_are_noticed() -> Result<(), Error> {
    let files = small_database(BATCHES)?;
    let names: Vec<String> = files.keys().filter(|n| n.ends_with(".table")).cloned().collect();
    let mut swapped = files.clone();
    swapped.insert(names[0].clone(), files[&names[1]].clone());
    swapped.insert(names[1].clone(), files[&names[0]].clone());
    match open(&swapped).1 {
        Ok(_) => panic!("swapped tables were not noticed"),
        Err(error) => assert!(error.is_corruption(), "{error}"),
    }
    Ok(())
}

/// Files of others in the directory are left alone.
#[test]
fn foreign_files_are_left_alone() -> Result<(), Error> {
    let mut files = small_database(5)?;
    for name in ["notes.txt", "000001.ldb", "table", "000009.table.bak", ".hidden"] {
        files.insert(name.to_string(), b"not ours".to_vec());
    }
    let (fs, found) = open(&files);
    assert_eq!(whole_batches(&found?), BATCHES);
    let left = files::read(&fs, Path::new(DIRECTORY)).expect("memory can be read");
    for (name, bytes) in files.iter().filter(|(_, bytes)| *bytes == b"not ours") {
        assert_eq!(left.get(name), Some(bytes), "{name}");
    }
    Ok(())
}

fn logs(directory: &TempDir) -> Vec<String> {
    let names = OsFs::new().list(directory.path()).expect("it is there");
    names.into_iter().filter(|name| name.ends_with(".wal")).collect()
}

/// Whoever only reads leaves no segment behind, and none that was empty is kept.
#[test]
fn a_database_that_nobody_writes_to_has_no_log() -> Result<(), Error> {
    let directory = TempDir::new("no-log");
    let options = Options { create_if_missing: true, ..Options::default() };
    drop(Db::open(directory.path(), options.clone())?);
    assert!(logs(&directory).is_empty());
    Db::open(directory.path(), options.clone())?.put(b"key", b"value")?;
    assert_eq!(logs(&directory).len(), 1);
    for _ in 0..2 {
        let db = Db::open(directory.path(), options.clone())?;
        assert_eq!(db.get(b"key")?.as_deref(), Some(&b"value"[..]));
        assert!(logs(&directory).is_empty(), "what it held is in a table");
    }
    Ok(())
}

/// A database whose log is empty, with the names of its files.
fn settled() -> Result<Files, Error> {
    let fs = MemFs::new();
    Db::open(DIRECTORY, options(&fs))?.put(b"key", b"value")?;
    drop(Db::open(DIRECTORY, options(&fs))?);
    Ok(files::read(&fs, Path::new(DIRECTORY)).expect("memory can be read"))
}

#[test]
fn opening_what_needs_no_change_changes_nothing() -> Result<(), Error> {
    let before = settled()?;
    let fs = MemFs::new();
    files::write(&fs, Path::new(DIRECTORY), &before).expect("memory can be written");
    let read = || files::read(&fs, Path::new(DIRECTORY)).expect("memory can be read");
    for _ in 0..2 {
        let db = Db::open(DIRECTORY, options(&fs))?;
        assert_eq!(db.get(b"key")?.as_deref(), Some(&b"value"[..]));
        assert_eq!(read(), before);
        drop(db);
        assert_eq!(read(), before);
    }
    // What a crash has left is removed, by the way that a crash may cut short.
    files::write(&fs, Path::new(DIRECTORY), &Files::from([("000900.tmp".into(), vec![1])]))
        .expect("memory can be written");
    drop(Db::open(DIRECTORY, options(&fs))?);
    assert!(!read().contains_key("000900.tmp") && read()["CURRENT"] != before["CURRENT"]);
    Ok(())
}

/// Behind each edit the manifest tells that it was synced. A process that was killed before
/// leaves one that power loss may still take: whoever has seen it writes it anew.
#[test]
fn an_edit_that_may_not_be_durable_is_written_again() -> Result<(), Error> {
    let before = settled()?;
    let manifest = before.keys().find(|name| name.starts_with("MANIFEST")).expect("it is there");
    for cut in 1..=64 {
        let mut files = before.clone();
        let bytes = files.get_mut(manifest).expect("it is there");
        bytes.truncate(bytes.len() - cut);
        let fs = MemFs::new();
        files::write(&fs, Path::new(DIRECTORY), &files).expect("memory can be written");
        let db = Db::open(DIRECTORY, options(&fs))?;
        assert_eq!(db.get(b"key")?.as_deref(), Some(&b"value"[..]));
        let after = files::read(&fs, Path::new(DIRECTORY)).expect("memory can be read");
        assert!(after["CURRENT"] != before["CURRENT"], "{cut} bytes cut off");
    }
    Ok(())
}

/// On a full disk each failed write would take some of what is left.
#[test]
fn a_manifest_that_cannot_be_begun_leaves_no_file() -> Result<(), Error> {
    let before = settled()?;
    for on in ["MANIFEST", ".tmp"] {
        for operation in [Operation::Append, Operation::Sync] {
            let memory = MemFs::new();
            files::write(&memory, Path::new(DIRECTORY), &before).expect("memory can be written");
            let fs = FaultFs::new(Arc::new(memory.clone()));
            let db = Db::open(DIRECTORY, Options { fs: Arc::new(fs.clone()), ..options(&memory) })?;
            fs.inject(Fault::new(operation, 1, ErrorKind::StorageFull).on(on).forever());
            for _ in 0..3 {
                assert!(db.put(b"key", b"new").is_err(), "{operation:?} of {on}");
            }
            assert!(fs.struck() > 0);
            let after = files::read(&memory, Path::new(DIRECTORY)).expect("memory can be read");
            assert!(after == before, "{operation:?} of {on}: {:?}", after.keys());
        }
    }
    Ok(())
}

/// A family that is made while there is no log needs none of those before.
#[test]
fn families_can_be_made_while_logging_is_off() -> Result<(), Error> {
    let fs = MemFs::new();
    let unlogged = || Options { logging: false, ..options(&fs) };
    Db::open(DIRECTORY, options(&fs))?.put(b"key", b"value")?;
    let db = Db::open(DIRECTORY, unlogged())?;
    db.create_family("more", FamilyOptions::default())?.put(b"key", b"more")?;
    drop(db);
    for options in [unlogged(), options(&fs), unlogged()] {
        let db = Db::open(DIRECTORY, options)?;
        assert_eq!(db.get(b"key")?.as_deref(), Some(&b"value"[..]));
        let more = db.family("more").expect("it was made");
        assert_eq!(more.get(b"key")?.as_deref(), Some(&b"more"[..]));
    }
    Ok(())
}

/// Nothing was written since, so the manifests of both are the same at first.
#[test]
fn a_log_of_a_copy_is_refused() -> Result<(), Error> {
    let settled = settled()?;
    let written = |value: &[u8]| -> Result<Files, Error> {
        let fs = MemFs::new();
        files::write(&fs, Path::new(DIRECTORY), &settled).expect("memory can be written");
        Db::open(DIRECTORY, options(&fs))?.put(b"key", value)?;
        Ok(files::read(&fs, Path::new(DIRECTORY)).expect("memory can be read"))
    };
    let (mut one, other) = (written(b"one")?, written(b"two")?);
    assert!(open(&one).1.is_ok());
    let log = the_log(&one);
    one.insert(log.clone(), other[&log].clone());
    assert!(open(&one).1.is_err_and(|error| error.is_corruption()));
    Ok(())
}

/// Whoever opens it next need not look through the room that was asked for ahead.
#[test]
fn the_log_of_a_closed_database_ends_where_its_last_record_does() -> Result<(), Error> {
    let directory = TempDir::new("closed-log");
    let options = Options { create_if_missing: true, ..Options::default() };
    Db::open(directory.path(), options)?.put(b"key", b"value")?;
    let (fs, path) = (OsFs::new(), directory.path().join(&logs(&directory)[0]));
    let end = LogFile::open(&fs, &path)?.end()?.offset;
    assert_eq!(fs.length(&path).expect("it is there"), end);
    let db = Db::open(directory.path(), Options::default())?;
    assert_eq!(db.get(b"key")?.as_deref(), Some(&b"value"[..]));
    Ok(())
}

/// Beside a process that opens the database, writes, flushes and closes it again and
/// again, a reader finds one of its states each time.
#[test]
fn a_reader_beside_a_writer_finds_a_whole_state() -> Result<(), Error> {
    const ROUNDS: u32 = 300;
    let disk = MemFs::new();
    let options = Options { fs: Arc::new(disk), create_if_missing: true, ..Options::default() };
    Db::open("/db", options.clone())?.put(b"round", &0u32.to_be_bytes())?;
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| -> Result<(), Error> {
            for round in 1..=ROUNDS {
                let db = Db::open("/db", options.clone())?;
                db.put(b"round", &round.to_be_bytes())?;
                if round % 2 == 0 {
                    db.flush()?;
                }
            }
            Ok(())
        });
        let mut last = 0;
        while last < ROUNDS && !writer.is_finished() {
            let db = Db::open_read_only("/db", options.clone())?;
            let Ok(found) = db.get(b"round") else {
                continue; // its table is compacted away by now
            };
            let round =
                u32::from_be_bytes(found.expect("it is always there")[..].try_into().unwrap());
            assert!(round >= last, "{round} after {last}");
            last = round;
        }
        writer.join().unwrap()
    })
}
