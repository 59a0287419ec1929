//! A table written outside of a database, for [`Db::ingest`](crate::Db).
//!
//! entries in order -> `TableBuilder` -> a file, synced with its name
//!
//! Invariant: everything in the file has the sequence number [`WRITTEN`], and
//! no key is there twice, so that ingesting can give all of it one number.

use std::path::{Path, PathBuf};

use crate::budget::{Account, Charge, Item};
use crate::compact::pick::BOTTOM;
use crate::error::{Error, Result};
use crate::fs::Fs;
use crate::key::{FileId, KeyOrder, Kind, SequenceNumber, too_long, trailer};
use crate::options::{FamilyOptions, LevelPlace, Options};
use crate::range_deletes::{Fragments, RangeDelete};
use crate::scheduler::system_random_u128;
use crate::sync::Arc;
use crate::table::TableBuilder;
use crate::table::meta::TableMeta;

/// The number that everything in such a table has until it is ingested. Not
/// zero: a range delete with that would be none.
const WRITTEN: SequenceNumber = 1;

/// Writes a table that [`Db::ingest`](crate::Db) takes: the fastest way to
/// bring many entries into a database, which need not be open, nor be there.
///
/// Keys are added in the family's order, each once. Range deletes may come at
/// any time, in any order; they remove what the database held before, never
/// what the table itself holds. A writer that is dropped unfinished removes its
/// file.
///
/// ```
/// # use lodestore::{Db, MemFs, Options, TableWriter};
/// # let fs = std::sync::Arc::new(MemFs::new());
/// let options = Options { create_if_missing: true, ..Options::default() };
/// # let options = Options { fs, ..options };
/// let mut writer = TableWriter::create("new.table", &options, &options.family)?;
/// writer.put(b"apple", b"red")?;
/// writer.put(b"plum", b"blue")?;
/// assert_eq!(writer.finish()?.entries, 2);
///
/// let db = Db::open("db", options)?;
/// db.ingest(&["new.table"], &Default::default())?;
/// assert_eq!(db.get(b"plum")?.as_deref(), Some(&b"blue"[..]));
/// # Ok::<(), lodestore::Error>(())
/// ```
pub struct TableWriter {
    fs: Arc<dyn Fs>,
    path: PathBuf,
    order: KeyOrder,
    /// True if operands can be merged.
    merges: bool,
    /// `None` once it is finished, or has failed.
    builder: Option<TableBuilder>,
    /// The key that was added last.
    last: Option<Vec<u8>>,
    range_deletes: Vec<RangeDelete>,
}

/// A table that was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableInfo {
    /// The file.
    pub path: PathBuf,
    /// Puts, deletes and operands.
    pub entries: u64,
    /// Range deletes, after those that overlap were joined.
    pub range_deletes: u64,
    /// The first key that the table says something of.
    pub smallest: Vec<u8>,
    /// The last one; where a range delete ends the table, its end.
    pub largest: Vec<u8>,
    /// Length of the file.
    pub bytes: u64,
}

impl std::fmt::Debug for TableWriter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TableWriter").field("path", &self.path).finish_non_exhaustive()
    }
}

impl TableWriter {
    /// Begins a table in the new file `path`, on the file system of `options`,
    /// in the order and with the block size, filter and codec of `family`.
    ///
    /// # Errors
    /// `InvalidArgument` if there is such a file, or if the options are no
    /// options of a family; `Io` if it cannot be created.
    pub fn create(
        path: impl AsRef<Path>,
        options: &Options,
        family: &FamilyOptions,
    ) -> Result<TableWriter> {
        family.validate()?;
        let path = path.as_ref();
        match options.fs.length(path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => return Err(Error::io(path, "read length of", error)),
            Ok(_) => {
                let what = format!("{} exists already: give a new name", path.display());
                return Err(Error::invalid(what));
            }
        }
        let id = match &options.scheduler {
            Some(scheduler) => FileId(scheduler.random_u128()),
            None => FileId(system_random_u128()),
        };
        let has_memory_limit = options.memory_bytes.is_some() || options.budget.is_some();
        let buffers = Charge::new(&Account::unlimited(), Item::Compactions);
        // Tables from outside go as deep as they can.
        let place = LevelPlace { level: BOTTOM, base: BOTTOM, covers_older: false };
        let settings = family.table_settings(place, has_memory_limit, buffers);
        let file = options.fs.create(path).map_err(|error| Error::io(path, "create", error))?;
        let mut writer = TableWriter {
            fs: Arc::clone(&options.fs),
            path: path.to_path_buf(),
            order: family.order.clone(),
            merges: family.merge_operator.is_some(),
            builder: None,
            last: None,
            range_deletes: Vec::new(),
        };
        // From here on the file goes with the writer.
        writer.builder = Some(TableBuilder::new(file, path, id, settings)?);
        Ok(writer)
    }

    /// Adds `key` with `value`.
    ///
    /// # Errors
    /// `InvalidArgument` if `key` does not come after the last one, or is over
    /// the limits: the writer goes on without it. `Io` if the file could not be
    /// written: the table is lost.
    pub fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.add(Kind::Put, key, value)
    }

    /// Adds that `key` is absent. Errors as [`TableWriter::put`].
    pub fn delete(&mut self, key: &[u8]) -> Result<()> {
        self.add(Kind::Delete, key, b"")
    }

    /// Adds that `key`, which was put once, is absent: see
    /// [`Family::single_delete`](crate::Family::single_delete). Errors as
    /// [`TableWriter::put`].
    pub fn single_delete(&mut self, key: &[u8]) -> Result<()> {
        self.add(Kind::SingleDelete, key, b"")
    }

    /// Adds an operand for the value of `key`: one a key.
    ///
    /// # Errors
    /// `InvalidArgument` if the family has no merge operator, besides those of
    /// [`TableWriter::put`].
    pub fn merge(&mut self, key: &[u8], operand: &[u8]) -> Result<()> {
        if !self.merges {
            return Err(Error::invalid("these options have no merge operator"));
        }
        self.add(Kind::Merge, key, operand)
    }

    /// Adds that all keys from `begin`, inclusive, up to `end`, exclusive, that
    /// are older than this table are absent. Range deletes are kept in memory
    /// until the table is finished.
    ///
    /// # Errors
    /// `InvalidArgument` if `end` comes before `begin`, or a key is over the
    /// limit. If they are equal, nothing is added.
    pub fn delete_range(&mut self, begin: &[u8], end: &[u8]) -> Result<()> {
        self.check_going()?;
        if let Some(what) = too_long(begin.len().max(end.len()), 0) {
            return Err(Error::invalid(what));
        }
        if self.order.compare(begin, end).is_gt() {
            return Err(Error::invalid("a range that is to be deleted ends before it begins"));
        }
        let delete = RangeDelete { start: begin.into(), end: end.into(), sequence: WRITTEN };
        self.range_deletes.push(delete);
        Ok(())
    }

    /// About how long the file would be if it were finished now, without range
    /// deletes.
    pub fn estimated_bytes(&self) -> u64 {
        self.builder.as_ref().map_or(0, TableBuilder::estimated_bytes)
    }

    /// Writes what is left and makes the file and its name durable.
    ///
    /// # Errors
    /// `InvalidArgument` if nothing was added, `Io` if the file could not be
    /// written: there is no file then.
    pub fn finish(mut self) -> Result<TableInfo> {
        self.check_going()?;
        let meta = self.finish_file()?;
        Ok(TableInfo {
            path: std::mem::take(&mut self.path),
            entries: meta.entries,
            range_deletes: meta.range_tombstones,
            smallest: meta.smallest.user_key,
            largest: meta.largest.user_key,
            bytes: meta.bytes,
        })
    }

    fn finish_file(&mut self) -> Result<TableMeta> {
        let deletes = std::mem::take(&mut self.range_deletes);
        let deletes = Fragments::build(&self.order, deletes, &[]);
        if self.last.is_none() && deletes.is_empty() {
            return Err(Error::invalid("a table needs an entry or a range delete"));
        }
        let mut builder = self.builder.take().expect("it was checked");
        builder.set_range_deletes(deletes);
        let written = builder.finish().and_then(|meta| {
            let directory = self.path.parent().unwrap_or(Path::new(""));
            let synced = self.fs.sync_directory(directory);
            synced.map_err(|error| Error::io(directory, "sync directory", error))?;
            Ok(meta)
        });
        written.inspect_err(|_| self.remove())
    }

    fn add(&mut self, kind: Kind, key: &[u8], value: &[u8]) -> Result<()> {
        self.check_going()?;
        if let Some(what) = too_long(key.len(), value.len()) {
            return Err(Error::invalid(what));
        }
        if let Some(last) = &self.last
            && self.order.compare(last, key).is_ge()
        {
            return Err(Error::invalid(format!(
                "key \"{}\" does not come after \"{}\": a table takes keys in order, each once",
                key.escape_ascii(),
                last.escape_ascii()
            )));
        }
        let builder = self.builder.as_mut().expect("it was checked");
        if let Err(error) = builder.add(key, trailer(WRITTEN, kind), value) {
            self.builder = None;
            self.remove();
            return Err(error);
        }
        let last = self.last.get_or_insert_default();
        last.clear();
        last.extend_from_slice(key);
        Ok(())
    }

    fn check_going(&self) -> Result<()> {
        match self.builder {
            Some(_) => Ok(()),
            None => Err(Error::invalid("the table could not be written: begin another one")),
        }
    }

    /// Removes the file; what cannot be removed stays, and is no table.
    fn remove(&self) {
        let _ = self.fs.remove(&self.path);
    }
}

impl Drop for TableWriter {
    fn drop(&mut self) {
        if self.builder.take().is_some() {
            self.remove();
        }
    }
}
