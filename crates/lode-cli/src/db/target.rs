//! Which database and family a verb is about, and how its keys and values are
//! written on the command line.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use lodestore::inspect::{Engine, ManifestFile};
use lodestore::{Db, Family, Fs, Options, OsFs, adopt};

use crate::failure::Failure;
use crate::output::{Output, Style};
use crate::text::from_hex;

const FAMILY_DEFAULT: &str = "default";

/// A flag of every verb that some verbs have no use for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Useless {
    /// `--family`: the verb is about the whole database, or about one file.
    Family,
    /// `--options`: it opens no database.
    Options,
}

/// Flags of every verb, before or after its name.
#[derive(Debug, Args)]
pub struct Target {
    /// Directory of the database
    #[arg(long, global = true, value_name = "DIR")]
    db: Option<PathBuf>,
    /// The family whose keys are meant [default: default]
    #[arg(long, global = true, value_name = "NAME")]
    family: Option<String>,
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

/// There is no family of this name, but there are others.
pub fn no_family(name: &str, names: &[String]) -> Failure {
    Failure::Error(format!("there is no family '{name}'; there are: {}", names.join(", ")))
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

    /// # Errors: `Usage` if a flag was given that the verb has no use for: who
    /// gave it expects something of it.
    pub fn refuse(&self, useless: &[Useless]) -> Result<(), Failure> {
        for flag in useless {
            let (given, name, why) = match flag {
                Useless::Family => {
                    (self.family.is_some(), "--family", "it is about no single family")
                }
                Useless::Options => (self.options.is_some(), "--options", "it opens no database"),
            };
            if given {
                return Err(Failure::Usage(format!("this verb has no use for {name}: {why}")));
            }
        }
        Ok(())
    }

    /// A file to be looked into: a name without a directory is one in that of
    /// the database, if that was named.
    pub fn file(&self, path: &Path) -> PathBuf {
        match &self.db {
            Some(db) if path.parent() == Some(Path::new("")) => db.join(path),
            _ => path.to_path_buf(),
        }
    }

    /// The options of the file that was named, or the defaults.
    pub fn options(&self) -> Result<Options, Failure> {
        Ok(self.options.as_deref().map(Options::load).transpose()?.unwrap_or_default())
    }

    /// The same, for an opening that writes nothing: it tells nobody how it is.
    /// (The file may be the one that the database keeps of a program that does.)
    pub fn options_for_reading(&self) -> Result<Options, Failure> {
        Ok(Options { status_interval: None, ..self.options()? })
    }

    /// Opens the database, ours or LevelDB's, for reading only: nothing in it
    /// changes.
    pub fn open_for_reading(&self) -> Result<(Db, Family), Failure> {
        let db = adopt::open_read_only(self.path()?, self.options_for_reading()?)?;
        let family = db.family(self.family()).ok_or_else(|| self.no_family(&db))?;
        Ok((db, family))
    }

    /// Opens the database for writing.
    pub fn open_for_writing(&self, absent: Absent) -> Result<(Db, Family), Failure> {
        let create_if_missing = absent == Absent::Create;
        let options = Options { create_if_missing, error_if_exists: false, ..self.options()? };
        let of_family = options.family_options(self.family()).clone();
        self.refuse_leveldb("this verb writes to it")?;
        let db = Db::open(self.path()?, options)?;
        let family = match (db.family(self.family()), absent) {
            (Some(family), _) => family,
            (None, Absent::Create) => db.create_family(self.family(), of_family)?,
            (None, Absent::Refuse) => return Err(self.no_family(&db)),
        };
        Ok((db, family))
    }

    /// # Errors: `Error` if the database is LevelDB's; `why` says what is in the
    /// way.
    pub fn refuse_leveldb(&self, why: &str) -> Result<(), Failure> {
        let directory = self.path()?;
        let manifest = ManifestFile::open_current(&*self.fs(), directory);
        // Whatever is wrong with the manifest is told when it is needed.
        if manifest.is_ok_and(|manifest| manifest.header().engine == Engine::LevelDb) {
            let directory = directory.display();
            return Err(Failure::Error(format!(
                "{directory} is a database of LevelDB, and {why}; `lode adopt {directory}` makes \
                 it ours, in place, and can be undone"
            )));
        }
        Ok(())
    }

    /// The name of the family.
    pub fn family(&self) -> &str {
        self.family.as_deref().unwrap_or(FAMILY_DEFAULT)
    }

    /// The same, if one was named.
    pub fn family_if_any(&self) -> Option<&str> {
        self.family.as_deref()
    }

    fn no_family(&self, db: &Db) -> Failure {
        no_family(self.family(), &db.family_names())
    }

    /// True if keys and values are hexadecimal digits.
    pub fn is_hex(&self) -> bool {
        self.hex
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
