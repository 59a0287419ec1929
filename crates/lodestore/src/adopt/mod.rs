//! Moving in: a LevelDB directory becomes a database of ours in place, and goes
//! back if asked.
//!
//! | part | job |
//! |---|---|
//! | `source` | what LevelDB's manifest says |
//! | `tables` | its tables as our manifest has them |
//! | `logs` | what is in its logs only |
//! | `build` | our manifest, links and new tables |
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
mod source;
mod tables;

use std::path::Path;

use crate::db::{self, Db};
use crate::error::{Error, Result};
use crate::key::KeyOrder;
use crate::options::Options;
use crate::version::{self, Current};

use place::{Original, Owner, Place};
use source::LevelDb;
use tables::Tables;

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
/// already, or has an order of keys that `options` do not give; `Corruption`
/// with file and offset; `Busy` if it is open. Nothing was changed then.
pub fn adopt(directory: impl AsRef<Path>, options: &Options) -> Result<Adopted> {
    options.validate()?;
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
    let options = &with_order(&database, options)?;
    let order = options.family_options(db::DEFAULT_NAME).order.clone();
    let tables = Tables::read(&**fs, directory, &database, &order)?;
    let logs = database.logs.iter().map(|path| logs::read(&**fs, path));
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

/// Gives up LevelDB's files: there is no way back after this.
///
/// # Errors
/// `InvalidArgument` if nothing is adopted there; `Busy`; `Io`.
pub fn commit(directory: impl AsRef<Path>, options: &Options) -> Result<()> {
    let place = Place::lock(&options.fs, directory.as_ref())?;
    match (place.owner()?, place.original()?) {
        (Owner::Ours, Original::Whole | Original::Remains) => {
            place.remove_leveldb_files()?;
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
    let mut options = options.clone();
    let mut family = options.family_options(db::DEFAULT_NAME).clone();
    let stored = &database.comparator;
    family.order = match KeyOrder::built_in(stored) {
        _ if family.order.name() == stored => return Ok(options),
        Some(order) if family.order.is_bytewise() => order,
        Some(KeyOrder::Bytewise) => {
            let given = family.order.name();
            let what = format!("its keys are in bytewise order, not in the order {given}");
            return Err(Error::invalid(what));
        }
        _ => {
            let what = format!("its keys are in the order {stored}, which must be given");
            return Err(Error::invalid(what));
        }
    };
    options.families.insert(db::DEFAULT_NAME.to_string(), family);
    Ok(options)
}
