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
//! | `tables` | which tables there are, whose they are, which are sound |
//! | `log` | the records that can be read, and where some are missing |
//! | `rebuild` | the new directory |

mod report;
mod guide;
mod tables;
mod log;
mod rebuild;

use std::path::{Path, PathBuf};

use crate::db;
use crate::error::{Error, Result};
use crate::filename::{self, FileKind};
use crate::fs::Fs;
use crate::options::Options;

pub use report::{Loss, Report};

use guide::Guide;
use log::Log;
use tables::Tables;

/// A damaged database, as far as it can be read.
pub struct Repair {
    options: Options,
    directory: PathBuf,
    /// Names and lengths of its files when it was read.
    files: Vec<(String, u64)>,
    guide: Guide,
    tables: Tables,
    log: Log,
}

impl std::fmt::Debug for Repair {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Repair").field("directory", &self.directory).finish_non_exhaustive()
    }
}

impl Repair {
    /// Reads all of the database in `directory`; writes nothing. `options` give
    /// the file system, the orders of keys that are not bytewise, and how new
    /// tables are written.
    ///
    /// # Errors
    /// `Missing` if there are no files of a database; `InvalidArgument` if a
    /// family has an order of keys that `options` do not give; `Incompatible` if
    /// a newer build wrote it; `Io`. Damage is no error.
    pub fn read(directory: impl AsRef<Path>, options: &Options) -> Result<Repair> {
        let (fs, directory) = (&options.fs, directory.as_ref());
        let files = list(&**fs, directory)?;
        let is_data = |(name, _): &(String, u64)| {
            let kind = filename::parse(name);
            matches!(kind, Some(FileKind::Manifest(_) | FileKind::Table(_) | FileKind::Log(_)))
        };
        if !files.iter().any(is_data) {
            return Err(Error::missing(format!("no database in {}", directory.display())));
        }
        let mut guide = Guide::read(fs, directory, &files)?;
        let mut log = Log::find(&**fs, directory, &files, &guide)?;
        guide.compare_with_log(&log);
        let tables = Tables::read(&**fs, directory, &files, &mut guide, options)?;
        guide.complete();
        log.read(&mut guide, &tables)?;
        let (options, directory) = (options.clone(), directory.to_path_buf());
        Ok(Repair { options, directory, files, guide, tables, log })
    }

    /// Builds a database in the new directory `target` of all that could be
    /// read, durably. Sound tables are linked where the file system can, else
    /// copied.
    ///
    /// # Errors
    /// `InvalidArgument` if `target` is not empty, or if the damaged database
    /// has changed since it was read; `Io`. Nothing is left in `target` then.
    pub fn write_to(&self, target: impl AsRef<Path>) -> Result<()> {
        let (fs, target) = (&*self.options.fs, target.as_ref());
        let was_there = db::prepare_directory(fs, target)?;
        let written = self.check_unchanged().and_then(|()| rebuild::write(self, target));
        let written = written.and_then(|()| self.check_unchanged());
        written.inspect_err(|_| db::remove_copy(fs, target, was_there))
    }

    /// What it holds, and what it has lost.
    pub fn report(&self) -> Report {
        let mut report = Report {
            manifest: self.guide.damage.clone(),
            tables: self.tables.sound() as u64,
            tables_rewritten: self.tables.rewritten() as u64,
            log_entries: self.log.entries,
            ..Report::default()
        };
        let families = self.guide.state.families.values();
        report.families = families.map(|family| family.descriptor.name.clone()).collect();
        report.losses.extend(self.tables.losses.iter().chain(&self.log.losses).cloned());
        report.notes.extend(self.guide.notes.iter().chain(&self.tables.notes).cloned());
        report
    }

    /// # Errors
    /// `InvalidArgument` if files have come, gone or grown: what was read is
    /// then not of one moment.
    fn check_unchanged(&self) -> Result<()> {
        if list(&*self.options.fs, &self.directory)? == self.files {
            return Ok(());
        }
        let what = "changed while it was read: close the database first";
        Err(Error::invalid(format!("{} {what}", self.directory.display())))
    }
}

/// Names and lengths of the files that are ours, in the order of their names.
fn list(fs: &dyn Fs, directory: &Path) -> Result<Vec<(String, u64)>> {
    let names = fs.list(directory).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => {
            Error::missing(format!("no database in {}", directory.display()))
        }
        _ => Error::io(directory, "list", error),
    })?;
    let mut files = Vec::new();
    for name in names.into_iter().filter(|name| filename::parse(name).is_some()) {
        let path = directory.join(&name);
        let bytes = fs.length(&path).map_err(|error| Error::io(&path, "get length of", error))?;
        files.push((name, bytes));
    }
    files.sort();
    Ok(files)
}
