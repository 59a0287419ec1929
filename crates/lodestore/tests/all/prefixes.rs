//! Cursors over one prefix: tables without it are not looked into, and what is
//! found is the same with every extractor, also after it changed.

use lodestore::{Counter, Db, Error, Options, PrefixExtractor, ReadOptions};
use lodestore::{Fs, MemFs};
use std::sync::Arc;

const ROOT: &str = "/prefixes";

fn options(fs: &MemFs, extractor: Option<PrefixExtractor>) -> Options {
    let fs: Arc<dyn Fs> = Arc::new(fs.clone());
    let mut options = Options { create_if_missing: true, fs, ..Options::default() };
    options.family.prefix_extractor = extractor;
    options.family.level0_compaction_files = 50;
    (options.family.level0_slowdown_files, options.family.level0_stop_files) = (60, 70);
    options.family.table_bytes = 4 << 10;
    options
}

fn key(user: u32, item: u32) -> Vec<u8> {
    format!("user{user:04}/{item:04}").into_bytes()
}

/// One table of level 0 for each round, of users `round`, `round + 10`, ...
fn fill(db: &Db) -> Result<(), Error> {
    for round in 0..10 {
        for user in (round..100).step_by(10) {
            (0..5).try_for_each(|item| db.put(&key(user, item), &[7; 50]))?;
        }
        db.flush()?;
    }
    Ok(())
}

fn found(db: &Db, read: ReadOptions) -> Result<Vec<Vec<u8>>, Error> {
    let mut cursor = db.cursor_with(read);
    let mut keys = Vec::new();
    cursor.first();
    while cursor.valid() {
        keys.push(cursor.key().to_vec());
        cursor.next();
    }
    cursor.status()?;
    let mut back = Vec::new();
    cursor.last();
    while cursor.valid() {
        back.push(cursor.key().to_vec());
        cursor.prev();
    }
    cursor.status()?;
    back.reverse();
    assert_eq!(keys, back, "both ways");
    Ok(keys)
}

fn with_prefix(prefix: &[u8]) -> ReadOptions {
    ReadOptions { prefix: Some(prefix.to_vec()), ..ReadOptions::default() }
}

/// Counts tables that were not looked into while `read` was.
fn skipped(db: &Db, read: ReadOptions) -> Result<(usize, u64), Error> {
    let counter = || db.statistics().get(Counter::PrefixTablesSkipped);
    let before = counter();
    let found = found(db, read)?.len();
    Ok((found, counter() - before))
}

/// Of ten tables in level 0 a cursor over one user looks into one; over bounds
/// that begin alike too; over what no prefix can tell, into all.
#[test]
fn tables_without_the_prefix_are_not_looked_into() -> Result<(), Error> {
    let db = Db::open(ROOT, options(&MemFs::new(), Some(PrefixExtractor::Delimiter(b'/'))))?;
    fill(&db)?;
    let (mut all, mut tables) = (0, 0);
    for user in 0..100 {
        let (found, skipped) = skipped(&db, with_prefix(&key(user, 0)[..9]))?;
        assert_eq!(found, 5);
        all += skipped;
        tables += 10;
    }
    assert!(all > tables * 85 / 100, "{all} of {tables} tables were skipped");
    let bounds = ReadOptions {
        lower_bound: Some(key(7, 1)),
        upper_bound: Some(key(7, 4)),
        ..ReadOptions::default()
    };
    let (found, by_bounds) = skipped(&db, bounds)?;
    assert!(found == 3 && by_bounds >= 8, "{found} keys, {by_bounds} tables skipped");
    let (found, absent) = skipped(&db, with_prefix(b"user0077x/"))?;
    assert!(found == 0 && absent >= 9, "{absent} tables skipped");
    for unknown in [&b""[..], b"user", b"user0007"] {
        let (found, skipped) = skipped(&db, with_prefix(unknown))?;
        assert!(found > 0 && skipped == 0, "{}", unknown.escape_ascii());
    }
    // In deeper levels there is one table to ask, or two.
    db.compact_range(None, None)?;
    assert!(db.stats().files() > 5);
    let (found, below) = skipped(&db, with_prefix(b"user0077x/"))?;
    assert!(found == 0 && below == 1, "{below} tables skipped");
    assert_eq!(skipped(&db, with_prefix(b"user0077/"))?.0, 5);
    Ok(())
}

/// Memory, tables with filters in partitions, range deletes and newer values:
/// all of it is seen as without an extractor.
#[test]
fn what_is_found_does_not_depend_on_the_extractor() -> Result<(), Error> {
    let extractors = [
        None,
        Some(PrefixExtractor::Delimiter(b'/')),
        Some(PrefixExtractor::Fixed(8)),
        Some(PrefixExtractor::Fixed(40)),
        Some(PrefixExtractor::Capped(6)),
        Some(PrefixExtractor::None),
    ];
    for partition_bytes in [None, Some(64)] {
        // One database that is opened with each in turn: its tables differ.
        let fs = MemFs::new();
        let mut skipped = 0;
        for (round, extractor) in extractors.into_iter().cycle().take(12).enumerate() {
            let mut options = options(&fs, extractor);
            options.family.partition_bytes = partition_bytes;
            let db = Db::open(ROOT, options)?;
            for user in (round as u32..100).step_by(7) {
                (0..4).try_for_each(|item| db.put(&key(user, item), &[round as u8; 50]))?;
            }
            db.delete_range(&key(round as u32 * 5, 0), &key(round as u32 * 5 + 2, 2))?;
            if round % 3 > 0 {
                db.flush()?;
            }
            if round % 5 == 4 {
                db.compact_range(None, None)?;
            }
            let all = found(&db, ReadOptions::default())?;
            for user in 0..100 {
                for length in [0, 3, 6, 7, 8, 9, 12] {
                    let prefix = &key(user, 3)[..length];
                    let expected = all.iter().filter(|key| key.starts_with(prefix));
                    let expected: Vec<Vec<u8>> = expected.cloned().collect();
                    assert_eq!(found(&db, with_prefix(prefix))?, expected, "{extractor:?}");
                }
            }
            skipped += db.statistics().get(Counter::PrefixTablesSkipped);
            db.verify()?;
        }
        assert!(skipped > 500, "{skipped} tables were skipped");
    }
    Ok(())
}

/// An extractor is kept with the family: who opens without naming one goes on
/// with it, and `none` turns it off.
#[test]
fn the_extractor_is_kept_with_the_family() -> Result<(), Error> {
    let fs = MemFs::new();
    let open = |extractor| Db::open(ROOT, options(&fs, extractor));
    let of = |db: &Db| db.family_options().prefix_extractor;
    assert_eq!(of(&open(None)?), Some(PrefixExtractor::None));
    let fixed = Some(PrefixExtractor::Fixed(3));
    assert_eq!(of(&open(fixed)?), fixed);
    assert_eq!(of(&open(None)?), fixed);
    let read_only = Db::open_read_only(ROOT, options(&fs, None))?;
    assert_eq!(of(&read_only), fixed);
    let db = open(None)?;
    let mut other = db.family_options();
    other.prefix_extractor = Some(PrefixExtractor::Capped(9));
    db.create_family("other", other)?;
    drop(db);
    let db = open(Some(PrefixExtractor::None))?;
    assert_eq!(of(&db), Some(PrefixExtractor::None));
    drop(db);
    let db = open(None)?;
    assert_eq!(of(&db), Some(PrefixExtractor::None), "turned off for good");
    Ok(())
}
