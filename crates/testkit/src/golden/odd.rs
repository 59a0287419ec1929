//! The set `odd`: orders of keys that are not bytewise, versions that snapshots
//! keep, operands that stay, forms of tables that few databases have, and a
//! segment of the log that was written over another one.

use std::sync::Arc;

use lodestore::{Append, Db, Family, MemFs, Options, Result, Snapshot, WriteBatch, WriteOptions};

use super::{Golden, directory, family, options, settle};

const NAME: &str = "odd";
/// Its families beside `default`.
const FAMILIES: [&str; 9] = [
    "any-case",
    "indexed-db",
    "versions",
    "capped",
    "unfiltered",
    "divided",
    "pages",
    "tombstones",
    "ranges",
];

/// Makes the set.
///
/// # Errors
/// None, unless the engine is at fault.
pub(super) fn make() -> Result<Golden> {
    let fs = MemFs::new();
    let mut options = options(&fs);
    let default = options.families.get_mut("default").expect("it has options");
    // Whoever opens it without one is given this one, by its name.
    default.merge_operator = Some(Arc::new(Append::with_delimiter(b",")));
    create(&fs, &options)?;
    // Opened again, the manifest begins anew, and is short.
    let db = Db::open(directory(NAME), options.clone())?;
    for round in 0..2 {
        let snapshots = keep_versions(&db, &family(&db, "versions"), round)?;
        drop(snapshots);
        settle(&db, &fs);
    }
    let snapshots = delete(&db)?;
    drop(snapshots);
    db.drop_family("gone")?;
    recycle_log(&db)?;
    settle(&db, &fs);
    Golden::of(NAME, &db, &fs, &options)
}

/// A table of each family, at the deepest level but for some.
fn create(fs: &MemFs, options: &Options) -> Result<()> {
    let db = Db::open(directory(NAME), options.clone())?;
    for name in FAMILIES.into_iter().chain(["gone"]) {
        let family = db.family_or_create(name)?;
        let mut batch = WriteBatch::new();
        for n in 0..entries(name) {
            batch.put_in(&family, &key(name, n), &value(name, n));
        }
        db.write(batch)?;
        family.flush()?;
        // Dictionaries are for tables that compactions write.
        if ["any-case", "divided", "tombstones", "ranges"].contains(&name) {
            family.rewrite_range(None, None)?;
        }
        settle(&db, fs);
    }
    Ok(())
}

/// How many entries a family begins with.
fn entries(family: &str) -> u64 {
    match family {
        // Three blocks.
        "pages" => 120,
        // More index than a partition takes.
        "unfiltered" | "divided" => 160,
        "gone" => 1,
        _ => 48,
    }
}

fn key(family: &str, n: u64) -> Vec<u8> {
    match family {
        "any-case" => format!("Key {n:04}").into_bytes(),
        "indexed-db" => indexed_db_key(n),
        // Some are shorter than a prefix.
        "capped" => format!("{:01$}", n * 7, (n % 10) as usize).into_bytes(),
        _ => format!("key {n:04}").into_bytes(),
    }
}

/// Database, object store and index 1; then a number, or text behind all numbers.
fn indexed_db_key(n: u64) -> Vec<u8> {
    let ids = [0, 1, 1, 1];
    match n % 2 {
        // A double, low byte first: bytewise they would come in another order.
        0 => [&ids[..], &[3], &(n as f64 * 1000.5).to_le_bytes()].concat(),
        _ => [&ids[..], &[1, 2, 0, b'a' + (n / 26) as u8, 0, b'a' + (n % 26) as u8]].concat(),
    }
}

fn value(family: &str, n: u64) -> Vec<u8> {
    let mixed = (n + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    match family {
        "divided" => format!("{{\"town\":\"Town {}\",\"number\":{mixed}}}", n % 13).into_bytes(),
        "pages" => format!("{mixed:016x}").repeat(5).into_bytes(),
        _ => format!("value {n} {:04x}", mixed >> 48).into_bytes(),
    }
}

/// Versions of keys, each for a snapshot of its own, in a table of level 0 or, in
/// the second round, of the deepest level. Gives the snapshots, which are not
/// needed any longer.
fn keep_versions(db: &Db, family: &Family, round: u64) -> Result<Vec<Snapshot>> {
    let mut snapshots = Vec::new();
    // More of a key than a block takes.
    for version in 0..24 {
        family.put(&key("versions", 10), format!("round {round}, {version:020}").as_bytes())?;
        snapshots.push(db.snapshot());
    }
    operands(db, family, &mut snapshots)?;
    if round == 0 {
        spend_numbers(db)?;
    }
    for n in [12, 13, 14] {
        family.put(&key("versions", n), b"once more")?;
        snapshots.push(db.snapshot());
        family.delete(&key("versions", n))?;
        snapshots.push(db.snapshot());
    }
    family.put(&key("versions", 900), b"once")?;
    snapshots.push(db.snapshot());
    family.single_delete(&key("versions", 900))?;
    family.flush()?;
    if round == 1 {
        family.rewrite_range(None, None)?;
    }
    Ok(snapshots)
}

/// Operands above a value and above nothing, which only snapshots keep apart.
fn operands(db: &Db, family: &Family, snapshots: &mut Vec<Snapshot>) -> Result<()> {
    for n in [11, 800] {
        for operand in [&b"first"[..], b"", b"third"] {
            family.merge(&key("versions", n), operand)?;
            snapshots.push(db.snapshot());
        }
    }
    Ok(())
}

/// So many sequence numbers that what comes behind is more than a byte away.
fn spend_numbers(db: &Db) -> Result<()> {
    let mut batch = WriteBatch::new();
    (0..300).for_each(|_| batch.put(b"spent", b""));
    db.write(batch)
}

/// A table of deletes alone, and one of range deletes alone, of which several hold
/// in one place. Gives the snapshots that keep them apart.
fn delete(db: &Db) -> Result<Vec<Snapshot>> {
    let tombstones = family(db, "tombstones");
    for n in 0..entries("tombstones") {
        match n % 3 {
            0 => tombstones.single_delete(&key("tombstones", n))?,
            _ => tombstones.delete(&key("tombstones", n))?,
        }
    }
    tombstones.flush()?;
    let ranges = family(db, "ranges");
    let mut snapshots = Vec::new();
    for (first, end) in [(5, 20), (10, 30), (12, 15), (30, 31)] {
        ranges.delete_range(&key("ranges", first), &key("ranges", end))?;
        snapshots.push(db.snapshot());
    }
    ranges.flush()?;
    Ok(snapshots)
}

/// What only the log holds, in a file that has records of its former life behind
/// its end: files are used again once somebody has asked for a sync.
fn recycle_log(db: &Db) -> Result<()> {
    let write = |count: u64, options: &WriteOptions| {
        let mut batch = WriteBatch::new();
        for name in FAMILIES {
            let family = family(db, name);
            for n in 40..40 + count {
                batch.put_in(&family, &key(name, n), &value(name, 1000 + n));
            }
        }
        db.write_with(options, &mut batch)
    };
    write(8, &WriteOptions::SYNCED)?;
    write(8, &WriteOptions::SYNCED)?;
    db.flush_all()?;
    // The first begins a new file, as none was given up yet.
    write(1, &WriteOptions::default())?;
    db.flush_all()?;
    write(2, &WriteOptions::default())?;
    family(db, "versions").merge(&key("versions", 11), b"in the log")?;
    family(db, "any-case").put(b"KEY 0005", b"the same key")?;
    family(db, "any-case").delete(b"kEY 0003")?;
    let mut batch = WriteBatch::new();
    batch.merge(b"spent", b"operand of the default family");
    batch.single_delete_in(&family(db, "ranges"), &key("ranges", 35));
    batch.delete_range_in(&family(db, "ranges"), &key("ranges", 1), &key("ranges", 3));
    db.write(batch)
}
