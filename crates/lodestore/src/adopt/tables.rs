//! LevelDB's tables as our manifest describes them.
//!
//! What LevelDB's manifest does not say is read or bounded: sequence numbers of
//! level 0 are read, since the order there follows from them; a deeper table
//! may have any that is older than the logs.

use std::path::{Path, PathBuf};

use crate::compact::pick::BOTTOM;
use crate::cursor::Cursor;
use crate::error::{Error, Result};
use crate::fs::Fs;
use crate::inspect::TableFile;
use crate::key::{KeyOrder, SequenceNumber, sequence_of};
use crate::leveldb::directory::LevelDb;
use crate::leveldb::edit::LevelDbTable;
use crate::table::leveldb_meta;
use crate::table::meta::TableMeta;
use crate::version::ends_before;

use super::logs;

/// A LevelDB table that was opened and found usable.
pub(super) struct Foreign {
    pub(super) path: PathBuf,
    /// Where it goes.
    pub(super) level: usize,
    pub(super) meta: TableMeta,
    pub(super) table: TableFile,
}

/// Which level a table goes to. Those of level 0 stay there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Placing {
    /// LevelDB's deepest level with tables becomes our deepest.
    FromTheBottom,
    /// Each stays where LevelDB has it, which serves reading alone: compactions
    /// would find our sizes of levels broken.
    AsLevelDb,
}

/// What is to become of the tables of a LevelDB database.
#[derive(Default)]
pub(super) struct Tables {
    /// Linked as they are.
    pub(super) kept: Vec<Foreign>,
    /// Rewritten: each group into tables of one level.
    pub(super) rewritten: Vec<Vec<Foreign>>,
}

impl Tables {
    /// Opens every live table.
    ///
    /// # Errors
    /// `Corruption` if one is damaged, as far as opening it tells, or if they
    /// contradict each other.
    pub(super) fn read(
        fs: &dyn Fs,
        directory: &Path,
        database: &LevelDb,
        order: &KeyOrder,
        placing: Placing,
    ) -> Result<Tables> {
        let mut levels: Vec<Vec<Foreign>> = (0..=BOTTOM).map(|_| Vec::new()).collect();
        let down = match placing {
            Placing::FromTheBottom => BOTTOM - database.deepest(),
            Placing::AsLevelDb => 0,
        };
        let newest = logs::newest_in_tables(fs, database)?;
        for (level, table) in database.state.tables.values() {
            let path = directory.join(database.table_name(table.number));
            let level = if *level == 0 { 0 } else { level + down };
            let foreign = open(fs, path, level, table, newest, order)?;
            levels[level].push(foreign);
        }
        let mut tables = Tables::default();
        let level0 = levels.remove(0);
        match interleave(&level0, order) {
            true => tables.rewritten.push(level0),
            false => tables.kept.extend(level0),
        }
        levels.into_iter().for_each(|level| tables.divide(level, order));
        Ok(tables)
    }

    /// Tables of a deeper level that share a user key with another are rewritten
    /// together, and those between them.
    fn divide(&mut self, mut level: Vec<Foreign>, order: &KeyOrder) {
        let key = |of: &Foreign| (of.meta.smallest.clone(), of.meta.number);
        level.sort_by(|a, b| {
            let (a, b) = (key(a), key(b));
            let by_key =
                order.compare_entries((&a.0.user_key, a.0.trailer), (&b.0.user_key, b.0.trailer));
            by_key.then(a.1.cmp(&b.1))
        });
        let mut run: Vec<Foreign> = Vec::new();
        // The table of the run that ends last, which need not be the last one.
        let mut reach = 0;
        for table in level {
            let is_apart = run.get(reach).is_none_or(|before| {
                ends_before(order, &before.meta, &table.meta.smallest.user_key)
            });
            if is_apart {
                self.settle(std::mem::take(&mut run));
                reach = 0;
            }
            run.push(table);
            let end =
                |of: usize| (&run[of].meta.largest.user_key[..], run[of].meta.largest.trailer);
            let last = run.len() - 1;
            if order.compare_entries(end(reach), end(last)).is_lt() {
                reach = last;
            }
        }
        self.settle(run);
    }

    fn settle(&mut self, run: Vec<Foreign>) {
        match run.len() {
            0 | 1 => self.kept.extend(run),
            _ => self.rewritten.push(run),
        }
    }
}

/// True if tables of level 0 cannot be put into an order of age: LevelDB's
/// repair puts all tables there.
fn interleave(level0: &[Foreign], order: &KeyOrder) -> bool {
    let overlap = |a: &TableMeta, b: &TableMeta| {
        order.compare(&a.smallest.user_key, &b.largest.user_key).is_le()
            && order.compare(&b.smallest.user_key, &a.largest.user_key).is_le()
    };
    let mixed = |a: &TableMeta, b: &TableMeta| {
        a.sequence_min <= b.sequence_max && b.sequence_min <= a.sequence_max
    };
    level0.iter().enumerate().any(|(i, a)| {
        level0[i + 1..].iter().any(|b| overlap(&a.meta, &b.meta) && mixed(&a.meta, &b.meta))
    })
}

fn open(
    fs: &dyn Fs,
    path: PathBuf,
    level: usize,
    table: &LevelDbTable,
    newest: SequenceNumber,
    order: &KeyOrder,
) -> Result<Foreign> {
    let wrong = |what| Error::corruption(&path, 0, what);
    let mut meta = leveldb_meta(table, newest, order).map_err(wrong)?;
    let file = fs.open(&path).map_err(|error| Error::io(&path, "open", error))?;
    let opened = TableFile::of(file, &path, &meta, order.clone())?;
    match level {
        0 => count(&opened, &mut meta)?,
        _ => meta.entries = opened.estimated_entries()?,
    }
    // Of a deeper table only verification looks at all of them.
    if meta.sequence_max > newest {
        return Err(wrong("it has an entry that is newer than the manifest or the logs say"));
    }
    Ok(Foreign { path, level, meta, table: opened })
}

/// Reads a table through, for what its entries amount to.
fn count(table: &TableFile, meta: &mut TableMeta) -> Result<()> {
    let mut cursor = table.cursor();
    let (mut lowest, mut highest) = (SequenceNumber::MAX, 0);
    cursor.seek_to_first();
    while cursor.valid() {
        let sequence = sequence_of(cursor.trailer());
        (lowest, highest) = (lowest.min(sequence), highest.max(sequence));
        meta.entries += 1;
        cursor.next();
    }
    cursor.status()?;
    (meta.sequence_min, meta.sequence_max) = (lowest.min(highest), highest);
    Ok(())
}
