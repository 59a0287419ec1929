//! Databases that are always made of the same bytes: with them, files of a
//! format can be kept, and compared with what is written later.
//!
//! | part | what |
//! |---|---|
//! | `options` | how all of them are opened |
//! | `plain`, `odd`, `unlogged`, `adopted` | the sets |
//! | `contents`, `described` | the two texts of a set: what readers see, what files say |
//! | [`sealing`] | files as a later build would write them |
//!
//! Ids and times come from a seeded scheduler, and what a call does in the
//! background is waited for before the next one.

mod adopted;
mod any_case;
mod contents;
mod described;
mod odd;
mod options;
mod plain;
pub mod sealing;
mod shown;
mod unlogged;

use std::path::Path;

use lodestore::{Db, Family, MemFs, Options, Result};

use crate::files::{self, Files};

pub use adopted::{ADOPTED, original};
pub use contents::contents;
pub use described::described;
pub use options::options;
pub use sealing::{VERSIONED, of_version};

/// The directory below `testdata/golden` for what is written today.
pub const FORMAT: &str = "v1-short-records";

/// A directory of files, and what a database in it holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Golden {
    /// The name of the directory.
    pub name: &'static str,
    /// Its files, without locks; those of folders as `FOLDER/NAME`.
    pub files: Files,
    /// What [`contents`] gives for it.
    pub expected: String,
    /// What [`described`] gives for it.
    pub described: String,
}

impl Golden {
    /// The directory of `db` as it is now.
    fn of(name: &'static str, db: &Db, fs: &MemFs, options: &Options) -> Result<Golden> {
        let files = files::read_with_folders(fs, db.path()).expect("memory can be read");
        let described = described(fs, db.path(), options)?;
        Ok(Golden { name, files: files::without_locks(&files), expected: contents(db)?, described })
    }
}

/// Makes all sets.
///
/// # Errors
/// None, unless the engine is at fault.
pub fn make() -> Result<Vec<Golden>> {
    let mut made = Vec::from(plain::make()?);
    made.push(odd::make()?);
    made.push(unlogged::make()?);
    made.push(adopted::make()?);
    Ok(made)
}

/// Waits until the files are gone of tables that nothing refers to; nothing
/// else is left to be done when calls have returned. Waiting by the database
/// itself would move the seeded clock, by how long it takes.
///
/// # Panics
/// If they do not go.
pub fn settle(db: &Db, fs: &MemFs) {
    assert_eq!(files::stray_tables_left(db, fs, files::pause), Ok(0), "stray tables");
}

/// The family of that name.
///
/// # Panics
/// If there is none.
fn family(db: &Db, name: &str) -> Family {
    db.family(name).expect("it was created")
}

/// The directory of a set while it is made.
fn directory(name: &str) -> String {
    Path::new("/").join(name).display().to_string()
}
