//! A damaged LevelDB database: what can be read of it becomes a LevelDB database
//! again, which may then be adopted.
//!
//! | part | job |
//! |---|---|
//! | `guide` | the manifest, as far as it can be read |
//! | `tables` | which tables there are, and which are sound |
//! | `logs` | the records that can be read, and where some are missing |
//! | `rebuild` | the new directory |

mod guide;
mod logs;
mod rebuild;
mod tables;
#[cfg(test)]
mod tests;

use std::path::Path;

use crate::db;
use crate::error::{Error, Result};
use crate::filename;
use crate::fs::Fs;
use crate::key::{KeyOrder, SequenceNumber};
use crate::leveldb::directory;
use crate::leveldb::names::LevelDbFile;
use crate::options::Options;
use crate::version::{self, Current, manifest};

use super::order_of;
use super::report::{Loss, Report};

use guide::Guide;
use logs::Logs;
use tables::Tables;

/// A file that RocksDB keeps and LevelDB does not.
const ROCKSDB_IDENTITY: &str = "IDENTITY";

/// What a directory of LevelDB's still holds.
pub(super) struct LevelDbRepair {
    order: KeyOrder,
    /// File numbers from here on are free.
    next_number: u64,
    guide: Guide,
    tables: Tables,
    logs: Logs,
}

/// True if the database in `directory` is LevelDB's: `CURRENT` says so or, if it is
/// damaged, the files.
pub(super) fn is_leveldb(fs: &dyn Fs, directory: &Path) -> Result<bool> {
    let is_ours = |name: &str| manifest::is_ours(fs, &directory.join(name));
    match version::read_current(fs, directory) {
        Ok(Some(Current::NameAlone { number })) => {
            return Ok(!is_ours(&filename::manifest_name(number)));
        }
        Ok(Some(Current::Ours { .. })) => return Ok(false),
        Err(error) if !error.is_corruption() => return Err(error),
        Ok(None) | Err(_) => {}
    }
    let is_data = |kind| matches!(kind, LevelDbFile::Table(_) | LevelDbFile::Log(_));
    let is_manifest = |kind| matches!(kind, LevelDbFile::Manifest(_));
    let files = directory::list(fs, directory)?;
    Ok(files.iter().any(|(_, kind)| is_data(*kind))
        && !files.iter().any(|(name, kind)| is_manifest(*kind) && is_ours(name)))
}

impl LevelDbRepair {
    /// Reads all of it; writes nothing.
    ///
    /// # Errors
    /// `InvalidArgument` for an order of keys that `options` do not give;
    /// `Incompatible` if it is RocksDB's, or entries expire; `Io`. Damage is no error.
    pub(super) fn read(directory: &Path, options: &Options) -> Result<LevelDbRepair> {
        let fs = &*options.fs;
        if directory::names(fs, directory)?.iter().any(|name| name == ROCKSDB_IDENTITY) {
            let what = "this is a database of RocksDB, which repair does not know";
            return Err(Error::incompatible(&directory.join(ROCKSDB_IDENTITY), what));
        }
        let files = directory::list(fs, directory)?;
        let mut guide = Guide::read(fs, directory, &files)?;
        let order = guide.order(options)?;
        let mut tables = Tables::read(fs, directory, &files, &guide, &order)?;
        let mut logs = Logs::read(fs, directory, &files, &guide)?;
        let newest = tables.newest();
        let is_older = logs.first_sequence.is_some_and(|first| first <= newest);
        if guide.is_exact() && (newest > guide.state.last_sequence || is_older) {
            guide.doubt("tables have entries that are newer than it says".to_string());
            tables = Tables::read(fs, directory, &files, &guide, &order)?;
            logs = Logs::read(fs, directory, &files, &guide)?;
        }
        let highest = files.iter().filter_map(|(_, kind)| kind.number()?.checked_add(1)).max();
        let next_number = guide.state.next_file_number.max(highest.unwrap_or(1));
        Ok(LevelDbRepair { order, next_number, guide, tables, logs })
    }

    /// Builds a LevelDB database in the empty directory `target`.
    pub(super) fn write_to(&self, target: &Path, options: &Options) -> Result<()> {
        rebuild::write(self, target, options)
    }

    /// The newest number of an entry, as far as that is known.
    fn last_sequence(&self) -> SequenceNumber {
        self.guide.state.last_sequence.max(self.tables.newest()).max(self.logs.last_sequence)
    }

    pub(super) fn report(&self) -> Report {
        let kind = "it is LevelDB's, and so is what is written: `lode adopt` makes it ours";
        let notes = self.guide.notes.iter().chain(&self.tables.notes).chain(&self.logs.notes);
        Report {
            manifest: self.guide.damage.clone(),
            families: vec![db::DEFAULT_NAME.to_string()],
            tables: self.tables.sound(),
            tables_rewritten: self.tables.list.len() as u64 - self.tables.sound(),
            log_entries: self.logs.entries,
            losses: self.tables.losses.iter().chain(&self.logs.losses).cloned().collect(),
            notes: std::iter::once(kind.to_string()).chain(notes.cloned()).collect(),
        }
    }
}
