//! Files of a database, read one by one.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use testkit::orders::Order;

use lodestore::inspect::{
    Change, FileUse, FoundIn, LogFile, ManifestFile, Survey, TableFile, find,
};
use lodestore::{
    Compression, Db, Error, FamilyOptions, Fs, KeyOrder, Kind, MemFs, Options, Record, WriteBatch,
};

const DIRECTORY: &str = "db";

struct Place {
    fs: Arc<dyn Fs>,
}

impl Place {
    fn new() -> Place {
        Place { fs: Arc::new(MemFs::new()) }
    }

    fn open(&self) -> Db {
        let family = FamilyOptions {
            block_bytes: 512,
            compression: Compression::None,
            // Compactions come when a test asks for one.
            level0_compaction_files: 100,
            level0_slowdown_files: 100,
            level0_stop_files: 100,
            tombstone_percent: 0,
            ..FamilyOptions::default()
        };
        let fs = Arc::clone(&self.fs);
        let options = Options { create_if_missing: true, fs, family, ..Options::default() };
        Db::open(DIRECTORY, options).expect("it opens")
    }

    fn survey(&self) -> Survey {
        Survey::read(&self.fs, Path::new(DIRECTORY)).expect("it can be surveyed")
    }

    /// Paths of the files of one use.
    fn files(&self, usage: FileUse) -> Vec<PathBuf> {
        let files = self.survey().files.into_iter().filter(|file| file.usage == usage);
        files.map(|file| Path::new(DIRECTORY).join(file.name)).collect()
    }

    fn table(&self) -> PathBuf {
        let [path] = &self.files(FileUse::Table)[..] else { panic!("there is one table") };
        path.clone()
    }

    fn bytes(&self, path: &Path) -> Vec<u8> {
        lodestore::fs::read_all(&*self.fs, path).expect("it can be read")
    }

    fn write(&self, path: &Path, bytes: &[u8]) {
        let mut file = self.fs.create(path).expect("it can be created");
        file.append(bytes).expect("it can be written");
        file.close().expect("it can be closed");
    }
}

fn key(i: u32) -> Vec<u8> {
    format!("key {i:05}").into_bytes()
}

/// One table of 400 puts, a delete and a range delete.
fn with_a_table() -> Place {
    let place = Place::new();
    let db = place.open();
    for i in 0..400 {
        db.put(&key(i), format!("value {i}").as_bytes()).unwrap();
    }
    db.delete(&key(400)).unwrap();
    db.delete_range(b"x", b"z").unwrap();
    db.flush().unwrap();
    place
}

/// A table shows its properties, blocks, entries and range deletes, and can be
/// verified, without its database.
#[test]
fn a_table_is_read_by_itself() {
    let place = with_a_table();
    let elsewhere = Path::new("elsewhere");
    place.write(elsewhere, &place.bytes(&place.table()));
    let table = TableFile::open(&*place.fs, elsewhere, KeyOrder::Bytewise).unwrap();
    table.verify().unwrap();

    let stated = table.properties();
    assert_eq!((stated.entries, stated.tombstones, stated.range_deletes), (401, 1, 1));
    assert_eq!((&stated.smallest[..], &stated.largest[..]), (&key(0)[..], &b"z"[..]));
    assert_eq!((stated.compression, stated.partitioned), ("none", false));
    let blocks: Vec<_> = table.blocks().map(|block| block.unwrap()).collect();
    assert_eq!(blocks.len() as u64, stated.blocks);
    assert_eq!(blocks.iter().map(|block| block.entries).sum::<u64>(), 401);
    assert_eq!(blocks.iter().map(|block| block.stored_bytes).sum::<u64>(), stated.data_bytes);
    assert_eq!(blocks[0].first_key, key(0));

    let entries: Vec<_> = table.entries().map(|entry| entry.unwrap()).collect();
    assert_eq!(
        (entries.len(), &entries[7].key, &entries[7].value[..]),
        (401, &key(7), &b"value 7"[..])
    );
    assert_eq!((entries[400].kind, entries[400].sequence), (Kind::Delete, 401));
    let deletes: Vec<_> = table.range_deletes().collect();
    assert_eq!((&deletes[0].key[..], &deletes[0].value[..]), (&b"x"[..], &b"z"[..]));
    assert_eq!(table.versions(b"y").unwrap(), deletes);
    assert_eq!(table.versions(&key(9)).unwrap().len(), 1);
}

/// Of a damaged table, what stands before the damage is shown, then an error
/// that names the place, and nothing more.
#[test]
fn a_damaged_table_is_read_as_far_as_it_goes() {
    let place = with_a_table();
    let path = place.table();
    let table = TableFile::open(&*place.fs, &path, KeyOrder::Bytewise).unwrap();
    let third = table.blocks().nth(2).unwrap().unwrap();
    let before: u64 = table.blocks().take(2).map(|block| block.unwrap().entries).sum();
    let mut bytes = place.bytes(&path);
    bytes[third.offset as usize + 3] ^= 0x40;
    place.write(&path, &bytes);

    let table = TableFile::open(&*place.fs, &path, KeyOrder::Bytewise).unwrap();
    let shown: Vec<_> = table.entries().collect();
    assert_eq!(shown.iter().filter(|entry| entry.is_ok()).count() as u64, before);
    assert_eq!(shown.len() as u64, before + 1);
    let is_there = |error: &Error| {
        matches!(error, Error::Corruption { path: p, offset, .. }
        if *p == path && *offset == third.offset)
    };
    assert!(is_there(shown.last().unwrap().as_ref().unwrap_err()));
    let blocks: Vec<_> = table.blocks().collect();
    assert_eq!(blocks.len(), 3);
    assert!(is_there(blocks[2].as_ref().unwrap_err()));
    assert!(is_there(&table.verify().unwrap_err()));
}

/// Whatever one byte of a file is changed to, reading it gives entries or an
/// error, and never a panic; so does a file that was cut.
#[test]
fn changed_bytes_never_panic() {
    let place = with_a_table();
    let db = place.open();
    db.put(b"last", b"words").unwrap();
    let table = place.table();
    let [log] = &place.files(FileUse::Log)[..] else { panic!("there is one log") };
    let manifest = place.survey().manifest;
    let read_table = |path: &Path| {
        let Ok(table) = TableFile::open(&*place.fs, path, KeyOrder::Bytewise) else { return };
        let _ = (table.properties(), table.verify(), table.versions(&key(3)));
        assert!(table.entries().count() < 10_000 && table.blocks().count() < 10_000);
    };
    let read_log = |path: &Path| {
        let Ok(mut log) = LogFile::open(&*place.fs, path) else { return };
        while let Ok(Some(batch)) = log.next_batch() {
            assert!(batch.records().count() < 10_000);
        }
        let _ = log.end();
    };
    let read_manifest = |path: &Path| {
        if let Ok(manifest) = ManifestFile::open(&*place.fs, path) {
            let _ = manifest.read(&mut |edit| assert!(edit.changes.len() < 10_000));
        }
    };
    type Reader<'a> = (&'a Path, &'a dyn Fn(&Path));
    let readers: [Reader<'_>; 3] =
        [(&table, &read_table), (log, &read_log), (&manifest, &read_manifest)];
    for (path, read) in readers {
        let whole = place.bytes(path);
        let changed = Path::new("changed");
        // The end of a preallocated log is zeros.
        let end = whole.iter().rposition(|&byte| byte != 0).unwrap() + 1;
        let step = (end / 1500).max(1);
        for at in (0..end).step_by(step) {
            for flip in [0x01, 0x80, 0xff] {
                let mut bytes = whole.clone();
                bytes[at] ^= flip;
                place.write(changed, &bytes);
                read(changed);
            }
            place.write(changed, &whole[..at]);
            read(changed);
        }
    }
}

/// A log shows its batches with the numbers of their records, and how it ends.
#[test]
fn a_log_is_read_by_itself() {
    let place = Place::new();
    let db = place.open();
    let other = db.create_family("other", FamilyOptions::default()).unwrap();
    db.put(b"a", b"1").unwrap();
    let mut batch = WriteBatch::new();
    batch.delete(b"a");
    batch.opaque(b"note");
    batch.put_in(&other, b"b", b"2");
    db.write(batch).unwrap();
    db.sync_log().unwrap();

    let [path] = &place.files(FileUse::Log)[..] else { panic!("there is one log") };
    let mut log = LogFile::open(&*place.fs, path).unwrap();
    assert_eq!(log.header().first_sequence, 1);
    let mut shown = Vec::new();
    while let Some(batch) = log.next_batch().unwrap() {
        for (sequence, record) in batch.records() {
            shown.push(match record {
                Record::Entry { family, kind, key, value } => {
                    let (key, value) = (key.escape_ascii(), value.escape_ascii());
                    format!("{sequence} {} {} {key} {value}", family.0, kind.name())
                }
                other => format!("{sequence} {other:?}"),
            });
        }
    }
    assert_eq!(
        shown,
        ["1 0 put a 1", "2 0 delete a ", "0 Opaque([110, 111, 116, 101])", "3 1 put b 2"]
    );
    let end = log.end().unwrap();
    assert!(end.offset > 4096 && end.next.is_none(), "{end:?}");

    // A record in the middle that was durable: what comes before is shown, the
    // loss is told.
    drop((db, other));
    let mut bytes = place.bytes(path);
    bytes[4096 + 30] ^= 1;
    place.write(path, &bytes);
    let mut log = LogFile::open(&*place.fs, path).unwrap();
    assert!(log.next_batch().unwrap().is_none());
    let lost = log.end();
    assert!(
        lost.as_ref().is_err_and(Error::is_corruption)
            || lost.as_ref().is_ok_and(|end| end.next.is_some_and(|next| next > end.offset)),
        "{lost:?}"
    );
}

/// A manifest shows every change, and what they add up to; a damaged one shows
/// the changes before the damage.
#[test]
fn a_manifest_is_read_by_itself() {
    let place = with_a_table();
    let db = place.open();
    db.create_family("second", FamilyOptions::default()).unwrap();
    db.put(b"a", b"1").unwrap();
    db.flush().unwrap();

    let manifest = ManifestFile::open_current(&*place.fs, Path::new(DIRECTORY)).unwrap();
    assert_eq!(manifest.path(), place.survey().manifest);
    let mut edits = Vec::new();
    let sum = manifest.read(&mut |edit| edits.push(edit.clone())).unwrap();
    assert!(edits[0].checkpoint && !edits.last().unwrap().checkpoint);
    let changes = || edits.iter().flat_map(|edit| &edit.changes);
    let created: Vec<&str> = changes()
        .filter_map(|change| match change {
            Change::FamilyCreated(family) => Some(&family.name[..]),
            _ => None,
        })
        .collect();
    assert_eq!(created, ["default", "second"]);
    assert_eq!(changes().filter(|c| matches!(c, Change::TableAdded { level: 0, .. })).count(), 2);
    assert_eq!(sum.families[0].levels[0].len(), 2);
    assert_eq!((sum.edit, sum.torn), (edits.last().unwrap().number, None));

    let last = edits.last().unwrap().offset as usize;
    let mut bytes = place.bytes(manifest.path());
    bytes[last + 40] ^= 1;
    let damaged = Path::new("damaged");
    place.write(damaged, &bytes);
    let mut count = 0;
    let read = ManifestFile::open(&*place.fs, damaged).unwrap().read(&mut |_| count += 1);
    assert!(read.is_err_and(|error| error.is_corruption()), "durable edits are missing");
    assert_eq!(count, edits.iter().filter(|edit| (edit.offset as usize) < last).count());
}

/// Every file of a directory has its use; what is not ours is told apart.
#[test]
fn a_survey_tells_what_each_file_is_for() {
    let place = with_a_table();
    let db = place.open();
    db.put(b"key", b"value").unwrap();
    place.write(&Path::new(DIRECTORY).join("999999.table"), b"leftover");
    place.write(&Path::new(DIRECTORY).join("notes.txt"), b"mine");
    let survey = place.survey();
    let usage = |name: &str| survey.files.iter().find(|f| f.name == name).map(|f| f.usage);
    assert_eq!(usage("999999.table"), Some(FileUse::Unreferenced));
    assert_eq!(usage("notes.txt"), Some(FileUse::Foreign));
    assert_eq!(usage("CURRENT"), Some(FileUse::Administration));
    let mut options = survey.files.iter().filter(|file| file.name.starts_with("OPTIONS"));
    assert!(options.all(|file| file.usage == FileUse::Administration));
    let table = &survey.family("default").unwrap().levels[0][0];
    assert_eq!(usage(&table.file_name()), Some(FileUse::Table));
    let bytes = survey.files.iter().find(|f| f.name == table.file_name()).unwrap().bytes;
    assert_eq!((bytes, table.entries), (table.bytes, 401));
    assert_eq!(survey.files.iter().filter(|f| f.usage == FileUse::Log).count(), 1);
    drop(db);
}

/// A key is found in every file that says something of it, also while the
/// database is open, and with range deletes that cover it.
#[test]
fn a_key_is_found_in_every_file() {
    let place = Place::new();
    let db = place.open();
    let other = db.create_family("other", FamilyOptions::default()).unwrap();
    db.put(b"k", b"1").unwrap();
    other.put(b"k", b"not this").unwrap();
    db.flush_all().unwrap();
    db.compact_range(None, None).unwrap();
    db.delete_range(b"j", b"l").unwrap();
    db.flush_all().unwrap();
    db.put(b"k", b"2").unwrap();
    db.delete(b"k").unwrap();

    let found = |key: &[u8]| {
        let directory = Path::new(DIRECTORY);
        find(&place.fs, directory, "default", &KeyOrder::Bytewise, key).unwrap()
    };
    let shown: Vec<_> = found(b"k").iter().map(|f| (f.entry.kind, f.entry.sequence)).collect();
    let expected = [(Kind::Delete, 5), (Kind::Put, 4), (Kind::RangeDelete, 3), (Kind::Put, 0)];
    assert_eq!(shown.len(), 4, "{shown:?}");
    assert_eq!(shown[..3], expected[..3]);
    assert_eq!(shown[3].0, Kind::Put);
    let places: Vec<_> = found(b"k").iter().map(|f| f.place).collect();
    assert!(matches!(places[0], FoundIn::Log { needed: true, .. }), "{places:?}");
    assert!(matches!(places[2], FoundIn::Table { level: 0, .. }));
    assert!(matches!(places[3], FoundIn::Table { level: 6, .. }));
    assert_eq!(found(b"j").len(), 1);
    assert!(found(b"nowhere").is_empty());
    let backwards = Order::Reverse.key_order();
    let other_order = find(&place.fs, Path::new(DIRECTORY), "default", &backwards, b"k");
    assert!(matches!(other_order, Err(Error::InvalidArgument { .. })));
    let missing = find(&place.fs, Path::new(DIRECTORY), "x", &KeyOrder::Bytewise, b"k");
    assert!(matches!(missing, Err(Error::Missing { .. })));
}
