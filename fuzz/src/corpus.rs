//! Inputs to begin with: files of small databases that the engine itself made,
//! with various options, and the parts of these files.

use std::collections::BTreeMap;
use std::path::Path;

use lodestore::inspect::{LogFile, Status};
use lodestore::internals::bytes::{TableProbe, batch_of, status_text};
use lodestore::{
    Compression, Db, FamilyId, FamilyOptions, Kind, MemFs, Options, OsFs, PrefixExtractor, Record,
    Result, Scheduler, WriteBatch, WriteOptions,
};
use testkit::files::Files;
use testkit::golden;

use crate::files::{self, DIRECTORY};
use crate::{archive, targets};

/// Target -> name of an input -> its bytes.
pub type Corpora = BTreeMap<&'static str, Files>;

const OTHER: &str = "other";

/// How a database is made.
struct Recipe {
    name: &'static str,
    entries: u64,
    /// Batches of its log at the end.
    small_batches: u64,
    change: fn(&mut FamilyOptions),
}

const RECIPES: &[Recipe] = &[
    Recipe { name: "plain", entries: 24, small_batches: 12, change: |_| {} },
    Recipe {
        name: "lz4-prefix",
        entries: 30,
        small_batches: 0,
        change: |o| {
            o.compression = Compression::Lz4;
            o.prefix_extractor = Some(PrefixExtractor::Fixed(4));
        },
    },
    Recipe {
        name: "snappy-partitions",
        entries: 56,
        small_batches: 0,
        change: |o| {
            o.compression = Compression::Snappy;
            o.partition_bytes = Some(64);
            o.block_bytes = 96;
        },
    },
    Recipe {
        name: "zstd-dictionary",
        entries: 150,
        small_batches: 0,
        change: |o| {
            o.compression = Compression::Zstd { level: 3 };
            o.dictionary_bytes = 256;
            o.dictionary_training_bytes = 32 << 10;
            o.block_bytes = 512;
            o.prefix_extractor = Some(PrefixExtractor::Delimiter(b'/'));
        },
    },
    Recipe {
        name: "partitions-no-filter",
        entries: 60,
        small_batches: 0,
        change: |o| {
            o.partition_bytes = Some(64);
            o.block_bytes = 64;
            o.filter_bits_per_key = 0;
        },
    },
];

/// All of them.
///
/// # Panics
/// If a sound database cannot be made.
pub fn make() -> Corpora {
    let mut corpora: Corpora =
        targets::TARGETS.iter().map(|target| (target.name, Files::new())).collect();
    for recipe in RECIPES {
        let files = recipe.make().expect("memory fails nowhere");
        let name = recipe.name;
        let packed = archive::pack(&files);
        let target = targets::named("database").expect("it is there");
        assert!(packed.len() <= target.bytes_max, "{name} has {} bytes", packed.len());
        put(&mut corpora, "database", name, &packed);
        put(&mut corpora, "repair", name, &packed);
        // Without a manifest and a log.
        let mut tables = files.clone();
        tables.retain(|name, _| name.ends_with(".table"));
        put(&mut corpora, "repair", &format!("{name}-tables"), &archive::pack(&tables));
        for (file, bytes) in &files {
            add_file(&mut corpora, &format!("{name}-{file}"), file, bytes);
        }
        // Of the four tables the second is compacted, and the third of level 0.
        for (file, bytes) in tables.iter().skip(1).take(2) {
            add_parts(&mut corpora, &format!("{name}-{file}"), bytes);
        }
    }
    add_leveldb(&mut corpora);
    add_texts(&mut corpora);
    corpora
}

/// Databases that LevelDB made: the small ones of testdata.
fn add_leveldb(corpora: &mut Corpora) {
    let made = Path::new(env!("CARGO_MANIFEST_DIR")).join("../testdata/leveldb");
    for name in ["empty", "small", "small-snappy"] {
        let read = testkit::files::read(&OsFs::new(), &made.join(name));
        let mut files = testkit::files::without_locks(&read.expect("it is in testdata"));
        files.remove("LOG");
        let packed = archive::pack(&files);
        let bytes_max = targets::named("leveldb").expect("it is there").bytes_max;
        assert!(packed.len() <= bytes_max, "{name} has {} bytes", packed.len());
        put(corpora, "leveldb", name, &packed);
    }
}

fn put(corpora: &mut Corpora, target: &'static str, name: &str, bytes: &[u8]) {
    let inputs = corpora.get_mut(target).expect("it is a target");
    // Once is enough.
    if inputs.values().all(|other| other != bytes) {
        inputs.insert(name.to_string(), bytes.to_vec());
    }
}

fn add_file(corpora: &mut Corpora, name: &str, file: &str, bytes: &[u8]) {
    if file.ends_with(".table") {
        put(corpora, "table", name, bytes);
    } else if file.ends_with(".wal") {
        put(corpora, "log", name, &archive::squeeze(bytes));
        add_batches(corpora, name, bytes);
    } else if file.starts_with("MANIFEST-") {
        put(corpora, "manifest", name, &[&[1], &archive::squeeze(bytes)[..]].concat());
        // The edits of the checkpoint: behind the prefix of 9 bytes, each with
        // its length before it.
        let edits = &bytes[128 + 24 + 9..];
        let edit = [&[0], &edits[1..=usize::from(edits[0])]].concat();
        put(corpora, "manifest", &format!("{name}-edit"), &edit);
    } else if file == "CURRENT" {
        put(corpora, "current", name, bytes);
    } else if file.starts_with("OPTIONS-") {
        put(corpora, "options", name, bytes);
    }
}

/// A block of each codec of a table, and each kind of section.
fn add_parts(corpora: &mut Corpora, name: &str, table: &[u8]) {
    let probe = TableProbe::open(table).expect("it is sound");
    let blocks = probe.stored_blocks();
    // The first of the entries, and the last: of the index, if it is divided.
    for (nth, &(start, end)) in
        blocks.iter().enumerate().filter(|(nth, _)| *nth == 0 || nth + 1 == blocks.len())
    {
        let stored = &table[start as usize..end as usize - 4];
        let (codec, payload) = stored.split_last().expect("a block has a type");
        put(corpora, "block", &format!("{name}-{nth}"), &[&[*codec], payload].concat());
    }
    for (tag, section) in crate::seal::sections_of(table) {
        put(corpora, "section", &format!("{name}-{tag}"), &[&[tag], section].concat());
    }
}

fn add_batches(corpora: &mut Corpora, name: &str, segment: &[u8]) {
    let path = std::path::Path::new("000001.wal");
    let mut log = LogFile::open(&files::one(path, segment), path).expect("it is sound");
    let mut nth = 0;
    while let Some(batch) = log.next_batch().expect("it is sound") {
        let records: Vec<Record<'_>> = batch.records().map(|(_, record)| record).collect();
        let bytes = batch_of(batch.sequence, &records).expect("it was written");
        put(corpora, "batch", &format!("{name}-{nth}"), &bytes);
        nth += 1;
    }
}

fn add_texts(corpora: &mut Corpora) {
    let options = Options {
        families: BTreeMap::from([(
            "a \"b\"".to_string(),
            FamilyOptions {
                compression_by_level: vec![Compression::None, Compression::Zstd { level: -3 }],
                ..FamilyOptions::default()
            },
        )]),
        ..Options::default()
    };
    put(corpora, "options", "all", options.to_text().as_bytes());
    put(corpora, "options", "short", b"[family] # all\nblock_bytes = 4KiB\n[database]\n");
    put(corpora, "options", "one", b"compression = zstd:3");
    put(corpora, "options", "prefix", b"delimiter:0x2f");
    put(corpora, "current", "leveldb", b"MANIFEST-000005\n");
    put(corpora, "status", "empty", status_text(&Status::default()).as_bytes());
    let full = "lodestore-status 1\nprocess 77 1700000000\ntimes 1000000 1000123 5\nmemory 1\n\
        memory-max 2\ncache 3 4\nflushing 5\nsnapshots 2 6\nerror IO error: no space\n\
        compaction 0 5 6 7 8 9\nfamily 10 11 a name\nlevel 0 1 2 3 1250\nlevel 1 1 2 3 1001\n\
        counter 12 1 read.gets\nlatency 5 1 2 3 4 5 get\nweather 7 fine\n";
    put(corpora, "status", "full", full.as_bytes());
    let entry = |kind, key, value| Record::Entry { family: FamilyId(300), kind, key, value };
    let records = [
        entry(Kind::Put, b"key", b"value"),
        entry(Kind::SingleDelete, b"", b""),
        entry(Kind::RangeDelete, b"a", b"b"),
        Record::Opaque(b"bytes"),
    ];
    let batch = batch_of(1 << 55, &records).expect("they can be written");
    put(corpora, "batch", "kinds", &batch);
    // What is not written now: hints, and what is unknown behind one.
    for (name, records) in [("hints", &b"\x80\x02ab\xff\x00"[..]), ("later", b"\x80\x00\x09")] {
        put(corpora, "batch", name, &[&[0; 12], records].concat());
    }
}

impl Recipe {
    fn options(&self, fs: &MemFs) -> Options {
        let mut family = FamilyOptions {
            block_bytes: 128,
            compression: Compression::None,
            level0_compaction_files: 20,
            ..files::family_options()
        };
        (self.change)(&mut family);
        Options {
            create_if_missing: true,
            scheduler: Some(Scheduler::seeded(1, 7)),
            family,
            ..files::options(fs)
        }
    }

    fn make(&self) -> Result<Files> {
        let fs = MemFs::new();
        let db = Db::open(DIRECTORY, self.options(&fs))?;
        let other = db.family_or_create(OTHER)?;
        // From a sync on, the files of old segments are used again.
        db.sync_log()?;
        for part in 0..2 {
            let mut batch = WriteBatch::new();
            for n in (part..self.entries).step_by(2) {
                let (key, value) = (key(n), value(n));
                batch.put(&key, &value);
                if n % 8 == 0 {
                    batch.put_in(&other, &key, &value);
                    batch.merge_in(&other, &key, b"more");
                }
            }
            batch.delete(&key(part + 3));
            batch.single_delete(&key(part + 6));
            batch.delete_range(&key(10 + part), &key(14 + part));
            db.write(batch)?;
            db.flush_all()?;
            if part == 0 {
                other.compact_range(None, None)?;
                golden::settle(&db, &fs);
                db.compact_range(None, None)?;
                golden::settle(&db, &fs);
            }
        }
        for n in 0..4 {
            let mut batch = WriteBatch::new();
            batch.put(&key(n), b"newest");
            batch.merge_in(&other, &key(n), b"logged");
            batch.opaque(b"ignored");
            let options = WriteOptions { sync: n == 2, ..WriteOptions::default() };
            db.write_with(&options, &mut batch)?;
            if n == 1 {
                // A second segment.
                other.flush()?;
            }
        }
        add_small_batches(&db, self.small_batches)?;
        golden::settle(&db, &fs);
        drop(db);
        Ok(files::read(&fs, DIRECTORY))
    }
}

/// Short records of the log, but for one of more entries than these may have.
fn add_small_batches(db: &Db, count: u64) -> Result<()> {
    for n in 0..count {
        let mut batch = WriteBatch::new();
        match n {
            4 => batch.opaque(b"no number"),
            8 => (0..300).for_each(|_| batch.delete(b"d")),
            _ => batch.put(&key(n), &value(n)),
        }
        db.write(batch)?;
    }
    Ok(())
}

fn key(n: u64) -> Vec<u8> {
    format!("k{:02}/{n:04}", n / 8).into_bytes()
}

fn value(n: u64) -> Vec<u8> {
    let mixed = n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
    format!("{{\"city\":\"Town {}\",\"number\":{mixed}}}", n % 7).into_bytes()
}
