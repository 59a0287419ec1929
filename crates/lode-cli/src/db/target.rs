//! Which database and family a verb is about, and how its keys and values are
//! written on the command line.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use lodestore::{Db, Family, Fs, Options, OsFs};

use crate::failure::Failure;
use crate::output::{Output, Style};
use crate::text::from_hex;

const FAMILY_DEFAULT: &str = "default";

/// Flags of every verb, before or after its name.
#[derive(Debug, Args)]
pub struct Target {
    /// Directory of the database
    #[arg(long, global = true, value_name = "DIR")]
    db: Option<PathBuf>,
    /// The family whose keys are meant
    #[arg(long, global = true, value_name = "NAME", default_value = FAMILY_DEFAULT)]
    family: String,
    /// Keys and values are hexadecimal digits, on the command line and in the output
    #[arg(long, global = true)]
    hex: bool,
    /// Open the database with the options in this file
    #[arg(long, global = true, value_name = "FILE")]
    options: Option<PathBuf>,
    /// Print JSON, an object a line
    #[arg(long, global = true)]
    json: bool,
}

/// What a verb may do when there is no database or family of the name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Absent {
    /// Fail.
    Refuse,
    /// Create it.
    Create,
}

impl Target {
    /// The directory that was named.
    pub fn path(&self) -> Result<&Path, Failure> {
        let path = self.db.as_deref();
        path.ok_or_else(|| Failure::Usage("say which database: --db DIR".to_string()))
    }

    /// The file system that databases are on.
    pub fn fs(&self) -> Arc<dyn Fs> {
        Arc::new(OsFs::new())
    }

    /// The options of the file that was named, or the defaults.
    pub fn options(&self) -> Result<Options, Failure> {
        Ok(self.options.as_deref().map(Options::load).transpose()?.unwrap_or_default())
    }

    /// Opens the database for reading only: nothing in it changes.
    pub fn open_for_reading(&self) -> Result<(Db, Family), Failure> {
        let db = Db::open_read_only(self.path()?, self.options()?)?;
        let family = db.family(&self.family).ok_or_else(|| self.no_family(&db))?;
        Ok((db, family))
    }

    /// Opens the database for writing.
    pub fn open_for_writing(&self, absent: Absent) -> Result<(Db, Family), Failure> {
        let create_if_missing = absent == Absent::Create;
        let options = Options { create_if_missing, error_if_exists: false, ..self.options()? };
        let of_family = options.family_options(&self.family).clone();
        let db = Db::open(self.path()?, options)?;
        let family = match (db.family(&self.family), absent) {
            (Some(family), _) => family,
            (None, Absent::Create) => db.create_family(&self.family, of_family)?,
            (None, Absent::Refuse) => return Err(self.no_family(&db)),
        };
        Ok((db, family))
    }

    /// The name of the family.
    pub fn family(&self) -> &str {
        &self.family
    }

    fn no_family(&self, db: &Db) -> Failure {
        Failure::Error(format!(
            "there is no family '{}'; there are: {}",
            self.family,
            db.family_names().join(", ")
        ))
    }

    /// A key or value as it was typed.
    pub fn bytes(&self, typed: &OsStr) -> Result<Vec<u8>, Failure> {
        match self.hex {
            true => from_hex(typed.as_encoded_bytes()).map_err(Failure::Usage),
            false => Ok(typed.as_encoded_bytes().to_vec()),
        }
    }

    /// [`Target::bytes`] of a flag that may be absent.
    pub fn bytes_if_any(&self, typed: Option<&OsStr>) -> Result<Option<Vec<u8>>, Failure> {
        typed.map(|typed| self.bytes(typed)).transpose()
    }

    /// Standard output in the style that was asked for.
    pub fn output(&self) -> Output {
        Output::new(Style { json: self.json, hex: self.hex })
    }
}
