//! Moving in: a LevelDB directory becomes a database of ours in place, and goes
//! back if asked.
//!
//! | part | job |
//! |---|---|
//! | `tables` | its tables as our manifest has them |
//! | `logs` | what is in its logs only |
//! | `build` | our manifest, links and new tables |
//! | `view` | reading a LevelDB directory as it is |
//! | `place` | whose the directory is, the original's files, and the way back |
//!
//! Invariant: `CURRENT` alone says whose directory it is, and it changes only
//! when everything else of its new owner is there, durably. See
//! docs/design/0025-moving-in.md.
//!
//! ```no_run
//! # use lodestore::{Db, Options, adopt};
//! let options = Options::default();
//! let adopted = adopt::adopt("chaindata", &options)?;
//! println!("{} tables taken over as they are", adopted.tables_linked);
//! let db = Db::open("chaindata", options.clone())?; // adopt::open does both
//! # drop(db);
//! adopt::commit("chaindata", &options)?; // or roll_back, to be LevelDB's again
//! # Ok::<(), lodestore::Error>(())
//! ```

mod build;
mod logs;
mod place;
mod tables;
mod view;
#[cfg(test)]
mod tests;

use std::path::Path;

use crate::db::{self, Db};
use crate::error::{Error, Result};
use crate::key::KeyOrder;
use crate::leveldb::directory::LevelDb;
use crate::options::Options;
use crate::sync::Arc;
use crate::version::{self, Current};

use place::{Original, Owner, Place};
use tables::{Placing, Tables};

/// What came of an adoption.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Adopted {
    /// Tables that were taken over unchanged.
    pub tables_linked: u64,
    /// Tables that had to be rewritten, since our levels keep a stricter order.
    pub tables_rewritten: u64,
    /// Entries that were in the logs only.
    pub log_entries: u64,
    /// The newest sequence number.
    pub last_sequence: u64,
    /// What was noticed, in words.
    pub notes: Vec<String>,
}

/// Makes the LevelDB database in `directory` ours, in place. Its files stay in
/// the folder `adopted` there until [`commit`]; LevelDB finds no database
/// meanwhile. `options` give the file system, the order of keys if it is not
/// bytewise, and how new tables are written.
///
/// # Errors
/// `Missing` if there is no LevelDB database; `InvalidArgument` if it is ours
/// already, has an order of keys that `options` do not give, or no file numbers left; `Corruption`
/// with file and offset; `Busy` if it is open. Nothing was changed then.
pub fn adopt(directory: impl AsRef<Path>, options: &Options) -> Result<Adopted> {
    options.validate()?;
    // There may be more tables than descriptors.
    let (options, limited) = db::with_file_limit(options.clone());
    let options = &Options { fs: Arc::new(limited), ..options };
    let (fs, directory) = (&options.fs, directory.as_ref());
    let place = Place::lock(fs, directory)?;
    match place.owner()? {
        Owner::LevelDb => {}
        Owner::Ours => {
            return Err(Error::invalid(format!("{} is ours already", directory.display())));
        }
    }
    // What an adoption that was cut short has left is not LevelDB's.
    place.check_no_other_files()?;
    place.clean()?;
    let database = LevelDb::read(&**fs, directory)?;
    database.check_numbers_left()?;
    let options = &with_order(&database, options)?;
    let order = options.family_options(db::DEFAULT_NAME).order.clone();
    let tables = Tables::read(&**fs, directory, &database, &order, Placing::FromTheBottom)?;
    let mut next = 0;
    let logs = database.logs.iter().map(|(_, path)| logs::read(&**fs, path, &mut next));
    let logs = logs.collect::<Result<Vec<_>>>()?;
    let built = place
        .keep_original(&database)
        .and_then(|()| build::build(&place, directory, options, &order, &database, tables, logs));
    built.inspect_err(|_| {
        // Unless it failed behind the last step, it is LevelDB's still.
        if matches!(place.owner(), Ok(Owner::LevelDb)) {
            let _ = place.clean();
        }
    })
}

/// Opens the database in `directory`; if it is LevelDB's, it is adopted first.
///
/// # Errors
/// Those of [`Db::open`] and of [`adopt`].
pub fn open(directory: impl AsRef<Path>, options: Options) -> Result<Db> {
    let directory = directory.as_ref();
    if let Some(Current::NameAlone { .. }) = version::read_current(&*options.fs, directory)? {
        adopt(directory, &options)?;
    }
    Db::open(directory, options)
}

/// Opens the database in `directory` for reading, LevelDB's or ours. Nothing is
/// written in the directory, and nothing is locked.
///
/// Of a LevelDB database what is in its logs is held in memory, and the few tables
/// that our levels cannot take as they are (see docs/design/0025-moving-in.md), up
/// to 256 MiB of them. LevelDB may have it open meanwhile: what was written before the
/// call is there, and stays, since the tables are kept open. Only with more tables than
/// the process may have files some are opened again later; reading one that a
/// compaction has removed since gives an error then.
///
/// # Errors
/// Those of [`Db::open_read_only`]; of a LevelDB database also `InvalidArgument` for
/// an order of keys that `options` do not give, for no file numbers left, for more than
/// can be held, and if it changes faster than it can be read.
pub fn open_read_only(directory: impl AsRef<Path>, options: Options) -> Result<Db> {
    let directory = directory.as_ref();
    match version::read_current(&*options.fs, directory)? {
        Some(Current::NameAlone { .. }) => view::open(directory, options),
        _ => Db::open_read_only(directory, options),
    }
}

/// Gives up LevelDB's files: there is no way back after this.
///
/// # Errors
/// `InvalidArgument` if nothing is adopted there; `Busy`; `Io`: then there may be no way
/// back either, and another call goes on where this one ended.
pub fn commit(directory: impl AsRef<Path>, options: &Options) -> Result<()> {
    let place = Place::lock(&options.fs, directory.as_ref())?;
    match (place.owner()?, place.original()?) {
        (Owner::Ours, Original::Whole | Original::Remains) => {
            place.remove_leveldb_files()?;
            // What the record promises must all be there as long as it is.
            place.remove_record()?;
            place.remove_level_folders()?;
            place.forget_original()
        }
        _ => Err(nothing_adopted(directory.as_ref())),
    }
}

/// Makes the directory what it was before the adoption, byte for byte.
///
/// # Errors
/// `InvalidArgument` if nothing is adopted there, or if something was written
/// since; `Busy`; `Io`: then another call goes on where this one ended.
pub fn roll_back(directory: impl AsRef<Path>, options: &Options) -> Result<()> {
    let directory = directory.as_ref();
    let place = Place::lock(&options.fs, directory)?;
    match (place.owner()?, place.original()?) {
        (Owner::Ours, Original::Whole) => {
            place.check_unwritten(options)?;
            place.give_back()
        }
        (Owner::LevelDb, Original::Whole | Original::Remains) => place.clean(),
        _ => Err(nothing_adopted(directory)),
    }
}

fn nothing_adopted(directory: &Path) -> Error {
    Error::invalid(format!(
        "no database was adopted in {}, or it was committed",
        directory.display()
    ))
}

/// `options` with the order of the database's keys, which they must give unless
/// the library has it.
fn with_order(database: &LevelDb, options: &Options) -> Result<Options> {
    let mut family = options.family_options(db::DEFAULT_NAME).clone();
    let (stored, given) = (&database.comparator, family.order.name());
    let Some(order) = family.order.for_stored(stored) else {
        return Err(Error::invalid(match KeyOrder::built_in(stored) {
            Some(KeyOrder::Bytewise) => {
                format!("its keys are in bytewise order, not in the order {given}")
            }
            _ => format!("its keys are in the order {stored}, which must be given"),
        }));
    };
    family.order = order;
    let mut options = options.clone();
    options.families.insert(db::DEFAULT_NAME.to_string(), family);
    Ok(options)
}
