//! Repair: a new database out of what a damaged directory still holds.
//!
//! directory -> `Guide` (what the manifest says, or what can be known without it)
//! -> tables and log read -> a [`Report`] of what is lost -> the rest written to
//! another directory
//!
//! ```
//! # use lodestore::{Db, MemFs, Options, repair::Repair};
//! # let fs = std::sync::Arc::new(MemFs::new());
//! # let options = Options { create_if_missing: true, fs, ..Options::default() };
//! # Db::open("damaged", options.clone())?.put(b"apple", b"red")?;
//! let repair = Repair::read("damaged", &options)?;
//! for loss in &repair.report().losses {
//!     println!("{}: {}", loss.file, loss.what);
//! }
//! repair.write_to("repaired")?;
//! assert_eq!(Db::open("repaired", options)?.get(b"apple")?.as_deref(), Some(&b"red"[..]));
//! # Ok::<(), lodestore::Error>(())
//! ```
//!
//! Invariant: nothing in the damaged directory is ever written, renamed or
//! removed, and no lock is taken there: it may be all that there is. The
//! database must not be open meanwhile.
//!
//! | part | job |
//! |---|---|
//! | `report` | what came of it, for people and programs |
//! | `guide` | the manifest, as far as it can be read |
//! | `numbers` | which numbers of entries the log has |
//! | `tables` | which tables there are, whose they are, which are sound |
//! | `log` | the records that can be read, and where some are missing |
//! | `rebuild` | the new directory |
//! | `ours` | all of these, for a database of ours |
//! | `leveldb` | the same for one of LevelDB's |

mod report;
mod guide;
mod numbers;
mod tables;
mod log;
mod ours;
mod rebuild;
mod leveldb;

#[cfg(test)]
mod newer_tests;

use std::path::{Path, PathBuf};

use crate::db;
use crate::error::{Error, Result};
use crate::filename;
use crate::fs::Fs;
use crate::key::KeyOrder;
use crate::leveldb::{directory, new_database};
use crate::options::Options;

pub use report::{Loss, Report};

use leveldb::LevelDbRepair;
use ours::Ours;

/// A damaged database, as far as it can be read.
pub struct Repair {
    options: Options,
    directory: PathBuf,
    /// Names and lengths of its files when it was read.
    files: Vec<(String, u64)>,
    found: Found,
}

/// Whose it is, and what it still holds.
enum Found {
    Ours(Box<Ours>),
    LevelDb(Box<LevelDbRepair>),
}

impl std::fmt::Debug for Repair {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Repair").field("directory", &self.directory).finish_non_exhaustive()
    }
}

impl Repair {
    /// Reads all of the database in `directory`, ours or LevelDB's; writes nothing.
    /// `options` give the file system, the orders of keys that are not bytewise, and
    /// how new tables are written.
    ///
    /// # Errors
    /// `Missing` if there are no files of a database; `InvalidArgument` if a
    /// family has an order of keys that `options` do not give; `Incompatible` if
    /// a newer build wrote it, or another engine; `Io`. Damage is no error.
    pub fn read(directory: impl AsRef<Path>, options: &Options) -> Result<Repair> {
        let (fs, directory) = (&*options.fs, directory.as_ref());
        let is_leveldb = leveldb::is_leveldb(fs, directory)?;
        let files = list(fs, directory, is_leveldb)?;
        let found = match is_leveldb {
            true => Found::LevelDb(Box::new(LevelDbRepair::read(directory, options)?)),
            false => Found::Ours(Box::new(Ours::read(directory, &files, options)?)),
        };
        let (options, directory) = (options.clone(), directory.to_path_buf());
        Ok(Repair { options, directory, files, found })
    }

    /// Builds a database in the new directory `target` of all that could be
    /// read, durably: ours, or LevelDB's if the damaged one is. Sound tables are
    /// linked where the file system can, else copied.
    ///
    /// # Errors
    /// `InvalidArgument` if `target` is not empty, or if the damaged database
    /// has changed since it was read; `Io`. Nothing is left in `target` then.
    pub fn write_to(&self, target: impl AsRef<Path>) -> Result<()> {
        let (fs, target) = (&*self.options.fs, target.as_ref());
        let was_there = db::prepare_directory(fs, target)?;
        let written = self.check_unchanged().and_then(|()| match &self.found {
            Found::Ours(ours) => rebuild::write(ours, &self.files, &self.options, target),
            Found::LevelDb(damaged) => damaged.write_to(target, &self.options),
        });
        let written = written.and_then(|()| self.check_unchanged());
        written.inspect_err(|_| match &self.found {
            Found::Ours(_) => db::remove_copy(fs, target, was_there),
            Found::LevelDb(_) => new_database::remove(fs, target, was_there),
        })
    }

    /// What it holds, and what it has lost.
    pub fn report(&self) -> Report {
        match &self.found {
            Found::Ours(ours) => ours.report(),
            Found::LevelDb(damaged) => damaged.report(),
        }
    }

    /// # Errors
    /// `InvalidArgument` if files have come, gone or grown: what was read is
    /// then not of one moment.
    fn check_unchanged(&self) -> Result<()> {
        let is_leveldb = matches!(self.found, Found::LevelDb(_));
        if list(&*self.options.fs, &self.directory, is_leveldb)? == self.files {
            return Ok(());
        }
        let what = "changed while it was read: close the database first";
        Err(Error::invalid(format!("{} {what}", self.directory.display())))
    }
}

/// Names and lengths of the database's files, in the order of their names.
fn list(fs: &dyn Fs, directory: &Path, is_leveldb: bool) -> Result<Vec<(String, u64)>> {
    let names: Vec<String> = match is_leveldb {
        true => directory::list(fs, directory)?.into_iter().map(|(name, _)| name).collect(),
        false => directory::names(fs, directory)?
            .into_iter()
            .filter(|name| filename::parse(name).is_some())
            .collect(),
    };
    let mut files = Vec::new();
    for name in names {
        let path = directory.join(&name);
        let bytes = fs.length(&path).map_err(|error| Error::io(&path, "get length of", error))?;
        files.push((name, bytes));
    }
    files.sort();
    Ok(files)
}

/// The order of keys `comparator` of a family.
///
/// # Errors
/// `InvalidArgument` if the library does not have it and `options` do not give it.
fn order_of(family: &str, comparator: &str, options: &Options) -> Result<KeyOrder> {
    let given = &options.family_options(family).order;
    let order = given.for_stored(comparator).or_else(|| KeyOrder::built_in(comparator));
    order.ok_or_else(|| {
        Error::invalid(format!(
            "family {family:?} is ordered by {comparator:?}: give that order in its options"
        ))
    })
}
