//! The set `unlogged`, of a database without a log: keys that are too long to be
//! bounds, blocks of many bytes, and sequence numbers that are far apart.

use lodestore::{Db, Family, MemFs, Options, Result, WriteBatch};

use super::{Golden, directory, options, settle};

const NAME: &str = "unlogged";
/// Bounds have at most so many bytes.
const BOUND_BYTES_MAX: usize = 64 << 10;

/// Makes the set.
///
/// # Errors
/// None, unless the engine is at fault.
pub(super) fn make() -> Result<Golden> {
    let fs = MemFs::new();
    let options = Options { logging: false, ..options(&fs) };
    let db = Db::open(directory(NAME), options.clone())?;
    long_keys(&db.family_or_create("long")?)?;
    wide_blocks(&db.family_or_create("wide")?)?;
    distant_numbers(&db, &db.family_or_create("sequences")?)?;
    settle(&db, &fs);
    drop(db);
    // Opened again, the manifest begins anew: bounds are in it once.
    let db = Db::open(directory(NAME), options.clone())?;
    db.put(b"unlogged", b"value")?;
    db.flush_all()?;
    settle(&db, &fs);
    Golden::of(NAME, &db, &fs, &options)
}

/// Two keys whose beginnings are the bounds.
fn long_keys(family: &Family) -> Result<()> {
    for (first, value) in [(b'a', b"first"), (b'z', b"last!")] {
        let mut key = vec![first; BOUND_BYTES_MAX];
        key.extend_from_slice(b"behind the bound");
        family.put(&key, value)?;
    }
    family.put(b"middle", b"of short keys")?;
    family.flush()
}

/// A block with offsets of four bytes, and one of a single entry that no block of the
/// usual length could take.
fn wide_blocks(family: &Family) -> Result<()> {
    for n in 0..60u8 {
        family.put(&[b'k', n], &[n; 2000])?;
    }
    family.put(b"large", &vec![b'l'; 200 << 10])?;
    family.flush()
}

/// Neighbours whose numbers are more than two bytes apart.
fn distant_numbers(db: &Db, family: &Family) -> Result<()> {
    family.put(b"early", b"1")?;
    for _ in 0..70 {
        let mut batch = WriteBatch::new();
        (0..1000).for_each(|_| batch.put_in(family, b"often", b"written"));
        db.write(batch)?;
    }
    family.put(b"late", b"3")?;
    family.flush()
}
