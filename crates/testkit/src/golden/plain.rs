//! The set `database`, as a killed process leaves it, and `checkpoint`, one of an
//! earlier moment: every codec, every kind of record, families that come and go.

use std::path::Path;

use lodestore::{Db, Family, Fs, MemFs, Options, Result, TableWriter, WriteBatch, WriteOptions};

use super::{Golden, family, options, settle};

const DATABASE: &str = "/database";
const CHECKPOINT: &str = "/checkpoint";
/// Its families beside `default`.
const FAMILIES: [&str; 5] = ["counters", "snappy", "zstd", "plain", "dropped"];

/// Makes both.
///
/// # Errors
/// None, unless the engine is at fault.
pub(super) fn make() -> Result<[Golden; 2]> {
    let fs = MemFs::new();
    let options = options(&fs);
    let db = Db::open(DATABASE, options.clone())?;
    for name in FAMILIES {
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
    let database = Golden::of("database", &db, &fs, &options)?;
    drop(db);
    let checkpoint = Db::open_read_only(CHECKPOINT, options.clone())?;
    Ok([database, Golden::of("checkpoint", &checkpoint, &fs, &options)?])
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
