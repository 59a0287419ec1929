//! Repair of LevelDB's databases: whatever happens to their files, what is missing in
//! the new database, or back, is what the report said could be.

use crate::adopt::{NAMES, ROOT, compare, disk, found, options, original};
use lodestore::adopt::{adopt, open_read_only};
use lodestore::fs::{Fault, FaultFs, Operation, read_all};
use lodestore::inspect::LogFile;
use lodestore::repair::{Repair, Report};
use lodestore::{Db, Error, Fs, MemFs, Options, Record};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use testkit::files::Files;
use testkit::random::Random;

const REPAIRED: &str = "/repaired";
/// A bit is flipped in each piece of this size.
const PIECE_BYTES: usize = 64;

type Entries = BTreeMap<Vec<u8>, Vec<u8>>;

fn entries(db: &Db) -> Entries {
    db.range(..).map(|entry| entry.expect("it can be walked")).collect()
}

/// Of an adopted database, whose tables are LevelDB's, repair keeps what it keeps of
/// LevelDB's: a damaged block costs its entries, and a manifest that is lost costs none.
#[test]
fn of_an_adopted_table_only_the_damaged_block_is_lost() {
    let sample = Sample::new("raw");
    let repaired = |change: &dyn Fn(&MemFs, &Path)| {
        let fs = disk(&sample.files);
        adopt(ROOT, &options(&fs, "raw")).expect("it is sound");
        let tables = found(&fs).into_iter().filter(|(name, _)| name.ends_with(".table"));
        let (largest, _) = tables.max_by_key(|(_, bytes)| bytes.len()).expect("it has tables");
        change(&fs, &Path::new(ROOT).join(largest));
        let repair = Repair::read(ROOT, &options(&fs, "raw")).expect("it can be read");
        repair.write_to(REPAIRED).expect("it can be written");
        let db = Db::open(REPAIRED, options(&fs, "raw")).expect("it is sound");
        db.verify().expect("it is sound");
        entries(&db)
    };
    let some = repaired(&|fs, table| {
        let mut bytes = read_all(fs, table).expect("it is there");
        bytes[100] ^= 1;
        fs.remove(table).expect("it is there");
        fs.create(table).expect("memory").append(&bytes).expect("memory");
    });
    let lost = sample.entries.iter().filter(|(key, value)| some.get(*key) != Some(value)).count();
    assert!(lost > 0 && lost < sample.entries.len() / 4, "{lost} of {}", sample.entries.len());
    let all = repaired(&|fs, _| {
        for name in found(fs).keys().filter(|name| name.starts_with("MANIFEST")) {
            fs.remove(&Path::new(ROOT).join(name)).expect("it is there");
        }
    });
    assert!(all == sample.entries);
}

/// A database as LevelDB left it, and what it holds.
struct Sample {
    name: &'static str,
    files: Files,
    entries: Entries,
    /// Keys that are in its logs.
    in_logs: BTreeSet<Vec<u8>>,
}

impl Sample {
    fn new(name: &'static str) -> Sample {
        let files = original(name);
        let fs = disk(&files);
        let entries = entries(&open_read_only(ROOT, options(&fs, name)).expect("sound"));
        let mut in_logs = BTreeSet::new();
        for log in files.keys().filter(|name| name.ends_with(".log")) {
            let mut log = LogFile::open(&fs, &Path::new(ROOT).join(log)).expect("sound");
            while let Some(batch) = log.next_batch().expect("sound") {
                in_logs.extend(batch.records().filter_map(|(_, record)| match record {
                    Record::Entry { key, .. } => Some(key.to_vec()),
                    _ => None,
                }));
            }
        }
        Sample { name, files, entries, in_logs }
    }

    fn names<'s>(&'s self, part: &'s str) -> impl Iterator<Item = &'s String> {
        self.files.keys().filter(move |name| name.contains(part))
    }

    fn with(&self, name: &str, change: impl FnOnce(&mut Vec<u8>)) -> Files {
        let mut files = self.files.clone();
        change(files.get_mut(name).expect("it is there"));
        files
    }

    fn without(&self, names: &[&String]) -> Files {
        let mut files = self.files.clone();
        files.retain(|name, _| !names.contains(&name));
        files
    }

    /// Repairs the damaged `files`, and gives how many keys differ, each of which was
    /// told of, and what the report said.
    fn check(&self, files: &Files, what: &str) -> (usize, Report) {
        let fs = disk(files);
        let repair = Repair::read(ROOT, &options(&fs, self.name));
        let repair = repair.unwrap_or_else(|error| panic!("{what}: {error}"));
        let report = repair.report();
        repair.write_to(REPAIRED).unwrap_or_else(|error| panic!("{what}: {error}"));
        assert!(found(&fs) == *files, "{what}: repair changed the damaged directory");
        let db = open_read_only(REPAIRED, options(&fs, self.name));
        let db = db.unwrap_or_else(|error| panic!("{what}: {error}: {report:?}"));
        db.verify().unwrap_or_else(|error| panic!("{what}: {error}"));
        let is = entries(&db);
        let keys: BTreeSet<&Vec<u8>> = self.entries.keys().chain(is.keys()).collect();
        let differ: Vec<_> =
            keys.into_iter().filter(|&key| is.get(key) != self.entries.get(key)).collect();
        for key in &differ {
            assert!(self.is_told(key, &report), "{what}: {}: {report:?}", key.escape_ascii());
        }
        (differ.len(), report)
    }

    fn is_told(&self, key: &[u8], report: &Report) -> bool {
        let of_log = |text: &str| text.contains(".log");
        let is_cut = report.notes.iter().any(|note| of_log(note) && note.contains("crash"));
        let in_log = is_cut || report.losses.iter().any(|loss| of_log(&loss.file));
        let orders = options(&MemFs::new(), self.name);
        let order = &orders.family.order;
        in_log && self.in_logs.contains(key)
            || report.losses.iter().filter(|loss| !of_log(&loss.file)).any(|loss| {
                let is_after = |from: &Vec<u8>| order.compare(from, key).is_le();
                let is_before = |to: &Vec<u8>| order.compare(key, to).is_le();
                loss.from.as_ref().is_none_or(is_after) && loss.to.as_ref().is_none_or(is_before)
            })
    }
}

/// A bit flipped in every piece of a file.
fn flips(sample: &Sample, name: &str) -> Vec<(String, Files)> {
    let mut random = Random::new(7);
    let length = sample.files[name].len();
    let starts = (0..length).step_by(PIECE_BYTES);
    let flip = |start| {
        let (at, bit) = (start + random.below(PIECE_BYTES.min(length - start)), random.below(8));
        let what = format!("{}: bit {bit} of byte {at} of {length} of {name}", sample.name);
        (what, sample.with(name, |bytes| bytes[at] ^= 1 << bit))
    };
    starts.map(flip).collect()
}

/// Nothing is lost of a sound database, tables stay as they are, and LevelDB's own
/// database is what comes out: it can be adopted.
#[test]
fn of_a_sound_database_nothing_is_lost() {
    for name in NAMES {
        let sample = Sample::new(name);
        let (differ, report) = sample.check(&sample.files, name);
        assert_eq!((differ, &report.losses, &report.manifest), (0, &vec![], &None), "{name}");
        let tables = sample.names(".ldb").count() as u64;
        assert_eq!((report.tables, report.tables_rewritten), (tables, 0), "{name}");
        let fs = disk(&sample.files);
        let repair = Repair::read(ROOT, &options(&fs, name)).expect("sound");
        repair.write_to(REPAIRED).expect("there is room");
        let db = lodestore::adopt::open(REPAIRED, options(&fs, name)).expect("it is LevelDB's");
        compare(&db, name);
    }
}

/// At most a block is lost, and less where index, filters or footer are hit.
#[test]
fn a_flipped_bit_in_a_table_costs_a_block_at_most() {
    let (mut whole, mut told) = (0, 0);
    for name in ["small", "versions", "backwards"] {
        let sample = Sample::new(name);
        for table in sample.names(".ldb") {
            for (what, files) in flips(&sample, table) {
                let (differ, report) = sample.check(&files, &what);
                assert!(report.losses.len() <= 1, "{what}: {report:?}");
                *(if differ == 0 { &mut whole } else { &mut told }) += 1;
            }
        }
    }
    assert!(whole > 0 && told > whole, "{whole} {told}");
}

/// Most damages cost one record. One of `log` has nearly all entries, and is longer than
/// a block.
#[test]
fn a_damaged_log_is_read_record_by_record() {
    for (name, lost_max) in [("small", 3), ("filters", 3), ("log", 302)] {
        let sample = Sample::new(name);
        let (mut cases, mut lost) = (0, 0);
        for log in sample.names(".log") {
            for (what, files) in flips(&sample, log) {
                lost += sample.check(&files, &what).0;
                cases += 1;
            }
        }
        assert!(lost > 0 && lost <= cases * lost_max, "{name}: {lost} entries in {cases} cases");
    }
}

/// What tables and logs hold does not depend on `CURRENT` and manifest, which LevelDB's
/// own files say nothing of; but for what was deleted and is still there.
#[test]
fn a_lost_manifest_costs_nothing() {
    for name in NAMES {
        let sample = Sample::new(name);
        let manifests: Vec<_> = sample.names("MANIFEST").chain(sample.names("CURRENT")).collect();
        let mut cases: Vec<_> = manifests.iter().flat_map(|file| flips(&sample, file)).collect();
        cases.push((format!("{name}: neither"), sample.without(&manifests)));
        for file in &manifests {
            cases.push((format!("{name}: without {file}"), sample.without(&[file])));
            cases.push((format!("{name}: {file} is empty"), sample.with(file, Vec::clear)));
        }
        if sample.files.keys().all(|file| !file.ends_with(".ldb") && !file.ends_with(".log")) {
            continue;
        }
        for (what, files) in cases {
            assert_eq!(sample.check(&files, &what).0, 0, "{what}");
        }
    }
}

#[test]
fn lost_and_cut_tables_are_told() {
    for name in ["filters", "versions"] {
        let sample = Sample::new(name);
        let mut lost = 0;
        for table in sample.names(".ldb") {
            let (differ, report) = sample.check(&sample.without(&[table]), table);
            assert_eq!(report.losses.len(), 1, "{table}: {report:?}");
            lost += differ;
            let half = sample.files[table].len() / 2;
            let cut = sample.with(table, |bytes| bytes.truncate(half));
            sample.check(&cut, table);
            let zeros = sample.with(table, |bytes| bytes.fill(0));
            sample.check(&zeros, table);
        }
        assert!(lost > 0);
    }
}

/// An older manifest does not know the newer tables: all that are there are taken.
#[test]
fn a_manifest_that_lost_its_end_is_not_believed() {
    let sample = Sample::new("filters");
    let manifest = sample.names("MANIFEST").next().expect("one").clone();
    let mut doubted = 0;
    for length in 0..sample.files[&manifest].len() {
        let files = sample.with(&manifest, |bytes| bytes.truncate(length));
        let (differ, report) = sample.check(&files, &format!("{length}"));
        assert!(differ == 0 || report.manifest.is_none(), "{length}: {report:?}");
        doubted += usize::from(report.manifest.is_some());
    }
    assert!(doubted > 0);
}

/// The same engine's files under RocksDB's roof are left alone.
#[test]
fn a_database_of_rocksdb_is_refused() {
    let mut files = original("small");
    files.insert("IDENTITY".to_string(), b"7c1b".to_vec());
    let fs = disk(&files);
    let refused = Repair::read(ROOT, &options(&fs, "small"));
    assert!(matches!(refused, Err(Error::Incompatible { .. })));
    assert!(found(&fs) == files);
}

/// Where something cannot be written nothing is left.
#[test]
fn a_repair_that_fails_leaves_nothing() {
    let changing =
        [Operation::Create, Operation::Append, Operation::Sync, Operation::SyncDirectory];
    for (name, lost) in [("filters", "nothing"), ("versions", "MANIFEST"), ("log", "MANIFEST")] {
        let mut files = original(name);
        files.retain(|file, _| !file.contains(lost));
        for operation in changing {
            let mut nth = 0;
            loop {
                let fs = disk(&files);
                let faulty = FaultFs::new(Arc::new(fs.clone()));
                let options = Options { fs: Arc::new(faulty.clone()), ..options(&fs, name) };
                let repair = Repair::read(ROOT, &options).expect("readable");
                faulty.inject(Fault::new(operation, nth, std::io::ErrorKind::StorageFull));
                let written = repair.write_to(REPAIRED);
                if faulty.struck() == 0 {
                    written.expect("nothing failed");
                    break;
                }
                assert!(matches!(written, Err(Error::Io { .. })), "{written:?}");
                let left = fs.list(Path::new(REPAIRED)).unwrap_or_default();
                assert!(left.is_empty(), "{name}, {operation:?} {nth}: {left:?}");
                nth += 1;
            }
            assert!(nth > 0, "{name}: {operation:?} is not used");
        }
    }
}
