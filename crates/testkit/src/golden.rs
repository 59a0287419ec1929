//! A database that is always made of the same bytes: with it, files of a
//! format can be kept, and compared with what is written later.
//!
//! Ids and times come from a seeded scheduler, and what a call does in the
//! background is waited for before the next one.

use std::fmt::Write;
use std::path::Path;
use std::sync::Arc;

use lodestore::{
    AddU64, Append, Compression, Db, Family, FamilyOptions, Fs, MemFs, Options, PrefixExtractor,
    Result, Scheduler, TableWriter, WriteBatch, WriteOptions,
};

use crate::files::{self, Files};

/// The directory below `testdata/golden` for what is written today: the draft
/// versions of tables, manifests and segments of the log.
pub const FORMAT: &str = "table-5-manifest-3-log-2";

const DATABASE: &str = "/database";
const CHECKPOINT: &str = "/checkpoint";

/// A directory of files, and what a database in it holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Golden {
    /// The name of the directory.
    pub name: &'static str,
    /// Its files, without locks.
    pub files: Files,
    /// What [`contents`] gives for it.
    pub expected: String,
}

/// How the database is opened, and its families are created.
pub fn options(fs: &MemFs) -> Options {
    let plain = FamilyOptions {
        block_bytes: 256,
        compression: Compression::None,
        memtable_bytes: 1 << 20,
        // Compactions come when they are asked for.
        level0_compaction_files: 20,
        tombstone_percent: 0,
        tombstone_age_seconds: 0,
        ..FamilyOptions::default()
    };
    let lz4 = FamilyOptions {
        compression: Compression::Lz4,
        prefix_extractor: Some(PrefixExtractor::Fixed(4)),
        ..plain.clone()
    };
    let snappy = FamilyOptions {
        compression: Compression::Snappy,
        partition_bytes: Some(128),
        merge_operator: Some(Arc::new(Append::with_delimiter(b","))),
        ..plain.clone()
    };
    let zstd = FamilyOptions {
        block_bytes: 512,
        compression: Compression::Zstd { level: 3 },
        dictionary_bytes: 512,
        dictionary_training_bytes: 64 << 10,
        prefix_extractor: Some(PrefixExtractor::Delimiter(b'/')),
        ..plain.clone()
    };
    let counters = FamilyOptions {
        merge_operator: Some(Arc::new(AddU64)),
        filter_bits_per_key: 0,
        ..plain.clone()
    };
    let families = [("default", lz4), ("snappy", snappy), ("zstd", zstd), ("counters", counters)];
    Options {
        create_if_missing: true,
        fs: Arc::new(fs.clone()),
        scheduler: Some(Scheduler::seeded(1, 1)),
        family: plain,
        families: families.map(|(name, options)| (name.to_string(), options)).into(),
        ..Options::default()
    }
}

/// Makes the database, as a killed process leaves it, and a checkpoint of an
/// earlier moment.
///
/// # Errors
/// None, unless the engine is at fault.
pub fn make() -> Result<Vec<Golden>> {
    let fs = MemFs::new();
    let options = options(&fs);
    let db = Db::open(DATABASE, options.clone())?;
    for name in options.families.keys().chain([&"plain".to_string(), &"dropped".to_string()]) {
        db.family_or_create(name)?;
    }
    for round in 0..2 {
        for name in db.family_names() {
            fill(&db, &family(&db, &name), round)?;
            settle(&db, &fs);
        }
    }
    db.drop_family("dropped")?;
    // Opened again, the manifest begins anew, and is short.
    drop(db);
    let db = Db::open(DATABASE, options.clone())?;
    ingest(&db, &fs, &options)?;
    settle(&db, &fs);
    db.checkpoint(CHECKPOINT)?;
    log(&db, &fs)?;
    settle(&db, &fs);
    let mut made =
        vec![Golden { name: "database", files: read(&fs, DATABASE), expected: contents(&db)? }];
    drop(db);
    let files = read(&fs, CHECKPOINT);
    let checkpoint = Db::open_read_only(CHECKPOINT, options)?;
    made.push(Golden { name: "checkpoint", files, expected: contents(&checkpoint)? });
    Ok(made)
}

fn family(db: &Db, name: &str) -> Family {
    db.family(name).expect("it was created")
}

fn read(fs: &MemFs, directory: &str) -> Files {
    let files = files::read(fs, Path::new(directory)).expect("memory can be read");
    files::without_locks(&files)
}

/// Waits until the files are gone of tables that nothing refers to; nothing
/// else is left to be done when calls have returned. Waiting by the database
/// itself would move the seeded clock, by how long it takes.
///
/// # Panics
/// If they do not go.
pub fn settle(db: &Db, fs: &MemFs) {
    assert_eq!(files::stray_tables_left(db, fs, files::pause), Ok(0), "stray tables");
}

fn key(n: u64) -> Vec<u8> {
    format!("k{:02}/{n:04}", n / 16).into_bytes()
}

fn value(family: &str, n: u64, round: u64) -> Vec<u8> {
    match family {
        "counters" => (n * 3 + round).to_le_bytes().to_vec(),
        _ => {
            let mixed = (n * 31 + round).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
            let town = mixed % 13;
            format!("{{\"town\":\"Town {town}\",\"number\":{mixed},\"round\":{round}}}")
                .into_bytes()
        }
    }
}

/// Puts, and in the second round deletes of every kind and operands: first a
/// table of the deepest level, then one of level 0.
fn fill(db: &Db, family: &Family, round: u64) -> Result<()> {
    let name = family.name().to_string();
    let (step, count) = if round == 0 { (1, 96) } else { (5, 120) };
    let mut batch = WriteBatch::new();
    for n in (0..count).step_by(step) {
        batch.put_in(family, &key(n), &value(&name, n, round));
    }
    if round == 1 {
        batch.delete_in(family, &key(7));
        batch.single_delete_in(family, &key(8));
        batch.delete_range_in(family, &key(30), &key(37));
        merge(&mut batch, family, 50);
        batch.put_in(family, b"", b"under the empty key");
        batch.put_in(family, b"empty value", b"");
        batch.put_in(family, &[0xff; 20], &[0; 300]);
    }
    db.write(batch)?;
    family.flush()?;
    if round == 0 {
        family.rewrite_range(None, None)?;
    }
    Ok(())
}

fn merge(batch: &mut WriteBatch, family: &Family, n: u64) {
    match family.name() {
        "counters" => batch.merge_in(family, &key(n), &1_000u64.to_le_bytes()),
        "snappy" => batch.merge_in(family, &key(n), b"operand"),
        _ => {}
    }
}

/// A table from outside, with a number of its own.
fn ingest(db: &Db, fs: &MemFs, options: &Options) -> Result<()> {
    let path = "/ingested.table";
    let mut writer = TableWriter::create(path, options, options.family_options("default"))?;
    for n in 200..220 {
        writer.put(&key(n), &value("default", n, 2))?;
    }
    writer.delete_range(&key(90), &key(93))?;
    writer.finish()?;
    db.ingest(&[path], &Default::default())?;
    fs.remove(Path::new(path)).expect("it was copied");
    Ok(())
}

/// What only the log holds: two segments, one batch of them synced.
fn log(db: &Db, fs: &MemFs) -> Result<()> {
    for n in 0..6 {
        let mut batch = WriteBatch::new();
        for name in db.family_names() {
            let family = family(db, &name);
            batch.put_in(&family, &key(300 + n), &value(&name, n, 3));
            batch.delete_in(&family, &key(10 + n));
            merge(&mut batch, &family, 50 + n);
        }
        if n == 4 {
            batch.delete_range(&key(60), &key(64));
            batch.single_delete(&key(71));
        }
        batch.opaque(b"ignored");
        let write = WriteOptions { sync: n == 4, ..WriteOptions::default() };
        db.write_with(&write, &mut batch)?;
        if n == 2 {
            family(db, "plain").flush()?;
            settle(db, fs);
        }
    }
    Ok(())
}

/// All that a database holds, as text: a line `[FAMILY]`, then a line for each
/// key and its value, in order.
///
/// # Errors
/// What reading gives.
pub fn contents(db: &Db) -> Result<String> {
    let mut text = String::new();
    for name in db.family_names() {
        writeln!(text, "[{name}]").expect("a string takes what is written");
        for entry in family(db, &name).range(..) {
            let (key, value) = entry?;
            writeln!(text, "{} = {}", key.escape_ascii(), value.escape_ascii())
                .expect("a string takes what is written");
        }
    }
    Ok(text)
}

/// How many kinds of file have a draft version: see [`newer`].
pub const VERSIONED: [&str; 3] = [".table", "MANIFEST-", ".wal"];

/// `files` as a later build would write those of one kind: with the next draft
/// version, and sound.
///
/// # Panics
/// If `kind` is none of [`VERSIONED`].
pub fn newer(files: &Files, kind: &str) -> Files {
    let mut files = files.clone();
    for (name, bytes) in &mut files {
        if !(name.ends_with(kind) || name.starts_with(kind)) {
            continue;
        }
        match kind {
            ".table" => {
                raise(bytes, 8, 0..28);
                let tail = bytes.len() - 20;
                let body = u32::from_le_bytes(*bytes[tail..].first_chunk().expect("a tail"));
                raise(bytes, tail + 4, tail - body as usize..tail + 8);
            }
            "MANIFEST-" => raise(bytes, 8, 0..124),
            ".wal" => {
                raise(bytes, 8, 0..252);
                raise(bytes, 2048 + 8, 2048..2048 + 252);
            }
            _ => panic!("files {kind} have no draft version"),
        }
    }
    files
}

/// Raises the number at `at`, and puts the checksum of `covered` behind that.
fn raise(bytes: &mut [u8], at: usize, covered: std::ops::Range<usize>) {
    let version = u32::from_le_bytes(*bytes[at..].first_chunk().expect("four bytes")) + 1;
    bytes[at..at + 4].copy_from_slice(&version.to_le_bytes());
    let end = covered.end;
    let checksum = crc32c(&bytes[covered]);
    bytes[end..end + 4].copy_from_slice(&checksum.to_le_bytes());
}

/// CRC-32C bit by bit: slow, and not the engine's.
fn crc32c(bytes: &[u8]) -> u32 {
    let step = |crc: u32, _| if crc & 1 == 1 { crc >> 1 ^ 0x82f6_3b78 } else { crc >> 1 };
    let byte = |crc: u32, byte: &u8| (0..8).fold(crc ^ u32::from(*byte), step);
    !bytes.iter().fold(!0, byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The check value of the CRC catalogue.
    #[test]
    fn crc32c_matches_the_published_check_value() {
        assert_eq!(crc32c(b"123456789"), 0xe306_9283);
    }
}
