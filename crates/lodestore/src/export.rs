//! Moving out: what a family holds as a LevelDB database.
//!
//! Newest values only, one entry a key, in tables of one level, as after a
//! compaction of everything; no log. LevelDB opens it as its own.
//!
//! ```no_run
//! # use lodestore::{Db, Options, ReadOptions, export};
//! let db = Db::open("chaindata", Options::default())?;
//! let exported = export::to_leveldb(&db, &ReadOptions::default(), "for-leveldb")?;
//! println!("{} entries in {} tables", exported.entries, exported.tables);
//! # Ok::<(), lodestore::Error>(())
//! ```

use std::path::{Path, PathBuf};

use crate::db::{self, DbCursor, Family, ReadOptions};
use crate::error::{Error, Result};
use crate::filename;
use crate::fs::Fs;
use crate::key::{Kind, trailer};
use crate::leveldb::edit::{Edit, LEVELS, LevelDbTable};
use crate::leveldb::table::{Layout, StoredKeys, TableImage};
use crate::leveldb::{join_key, log, names};
use crate::table::Compression;

/// LevelDB's default for its tables.
const TABLE_BYTES: u64 = 2 << 20;
/// LevelDB lets level 1 have so much, and each deeper one ten times as much.
const LEVEL1_BYTES: u64 = 10 << 20;
/// The manifest's number; tables follow.
const MANIFEST_NUMBER: u64 = 1;

/// What was written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Exported {
    /// Keys.
    pub entries: u64,
    /// Files of entries.
    pub tables: u64,
    /// Bytes of these files.
    pub bytes: u64,
}

/// Writes what `family` holds, of the snapshot of `options` if there is one, to
/// the new directory `directory` as a LevelDB database, durably. The order of
/// keys keeps its name; tables have filters if the family's have, and Snappy unless the
/// family's are not compressed.
///
/// # Errors
/// `InvalidArgument` if `directory` is not empty; what reading and writing give.
/// Nothing is left in `directory` then.
pub fn to_leveldb(
    family: &Family,
    options: &ReadOptions,
    directory: impl AsRef<Path>,
) -> Result<Exported> {
    let (fs, directory) = (family.fs(), directory.as_ref());
    let was_there = db::prepare_directory(&**fs, directory)?;
    let cursor = family.cursor_with(options.clone());
    let mut export = Export::new(&**fs, directory, family);
    let done = export.write(cursor).and_then(|()| export.finish(family));
    if done.is_err() {
        export.remove(was_there);
    }
    done.map(|()| export.done)
}

struct Export<'a> {
    fs: &'a dyn Fs,
    directory: &'a Path,
    snappy: bool,
    filter_bits_per_key: u8,
    tables: Vec<LevelDbTable>,
    /// What was made, to be removed after a failure.
    files: Vec<PathBuf>,
    done: Exported,
}

impl<'a> Export<'a> {
    fn new(fs: &'a dyn Fs, directory: &'a Path, family: &Family) -> Export<'a> {
        let options = family.family_options();
        // A filter goes by bytes, and would deny a key that is only equal.
        let may_filter = family.order().equal_means_identical();
        Export {
            fs,
            directory,
            snappy: options.compression != Compression::None,
            filter_bits_per_key: if may_filter { options.filter_bits_per_key } else { 0 },
            tables: Vec::new(),
            files: Vec::new(),
            done: Exported::default(),
        }
    }

    fn write(&mut self, mut cursor: DbCursor) -> Result<()> {
        cursor.first();
        while cursor.valid() {
            let keys = StoredKeys::new(self.filter_bits_per_key);
            let layout = Layout { snappy: self.snappy, ..Layout::default() };
            let mut table = TableImage::new(keys, layout);
            let (mut smallest, mut largest) = (Vec::new(), Vec::new());
            while cursor.valid() && table.bytes_by_now() < TABLE_BYTES {
                self.done.entries += 1;
                let key = join_key(cursor.key(), trailer(self.done.entries, Kind::Put));
                table.add(&key, cursor.value());
                if smallest.is_empty() {
                    smallest.clone_from(&key);
                }
                largest = key;
                cursor.next();
            }
            cursor.status()?;
            self.write_table(table, smallest, largest)?;
        }
        cursor.status()
    }

    fn write_table(
        &mut self,
        mut table: TableImage<StoredKeys>,
        smallest: Vec<u8>,
        largest: Vec<u8>,
    ) -> Result<()> {
        let number = MANIFEST_NUMBER + 1 + self.tables.len() as u64;
        table.finish();
        let file = table.take();
        let bytes = file.len() as u64;
        self.write_file(&names::table(number), &file)?;
        self.tables.push(LevelDbTable { number, bytes, smallest, largest });
        self.done.tables += 1;
        self.done.bytes += bytes;
        Ok(())
    }

    /// Writes the manifest, and names it once all else is durable.
    fn finish(&mut self, family: &Family) -> Result<()> {
        let level = level_of(self.done.bytes);
        let tables = std::mem::take(&mut self.tables);
        let next_number = MANIFEST_NUMBER + 1 + tables.len() as u64;
        let edit = Edit {
            comparator: Some(family.order().name().as_bytes().to_vec()),
            // No log has this number, nor any above it.
            log_number: Some(next_number),
            previous_log_number: Some(0),
            next_file_number: Some(next_number + 1),
            last_sequence: Some(self.done.entries),
            added: tables.into_iter().map(|table| (level, table)).collect(),
            ..Edit::default()
        };
        let mut manifest = Vec::new();
        log::append(&mut manifest, &edit.encode());
        let name = filename::manifest_name(MANIFEST_NUMBER);
        self.write_file(&name, &manifest)?;
        self.sync_directory()?;
        self.write_file(filename::CURRENT, format!("{name}\n").as_bytes())?;
        self.sync_directory()
    }

    fn write_file(&mut self, name: &str, bytes: &[u8]) -> Result<()> {
        let path = self.directory.join(name);
        self.files.push(path.clone());
        let failed = |during: &'static str| {
            let path = path.clone();
            move |error| Error::io(&path, during, error)
        };
        let mut file = self.fs.create(&path).map_err(failed("create"))?;
        file.append(bytes).map_err(failed("append to"))?;
        file.sync().map_err(failed("sync"))?;
        file.close().map_err(failed("close"))
    }

    fn sync_directory(&self) -> Result<()> {
        let synced = self.fs.sync_directory(self.directory);
        synced.map_err(|error| Error::io(self.directory, "sync directory", error))
    }

    /// Removes what was made: the failure itself is what the caller hears of.
    fn remove(&self, was_there: bool) {
        for path in &self.files {
            let _ = self.fs.remove(path);
        }
        if !was_there {
            let _ = self.fs.remove_directory(self.directory);
        }
    }
}

/// The first level below 1 that takes so many bytes without being too large.
fn level_of(bytes: u64) -> usize {
    let fits = |level: &usize| bytes <= LEVEL1_BYTES * 10u64.pow(*level as u32 - 1);
    (2..LEVELS - 1).find(fits).unwrap_or(LEVELS - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Tables of one size lie where LevelDB would have brought them.
    #[test]
    fn the_level_follows_from_the_size() {
        assert_eq!(level_of(0), 2);
        assert_eq!(level_of(100 << 20), 2);
        assert_eq!(level_of((100 << 20) + 1), 3);
        assert_eq!(level_of(1 << 50), 6);
    }
}
