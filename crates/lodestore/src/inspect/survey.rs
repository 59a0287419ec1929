//! The files of a directory, and what each is for.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};
use crate::filename::{self, FileKind};
use crate::fs::Fs;
use crate::leveldb::directory::{self, LevelDb};
use crate::leveldb::names::{self, LevelDbFile};
use crate::sync::Arc;
use crate::version::manifest;
use crate::version::state::{FamilyState, State};
use crate::version::{LEVELS, ManifestIdentity};

use super::described::{Engine, FamilyInfo, TableInfo};
use super::foreign;

/// What a database's directory holds, by its manifest: one of ours, or of LevelDB.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Survey {
    /// Whose database it is.
    pub engine: Engine,
    /// The manifest in use.
    pub manifest: PathBuf,
    /// The families with their tables.
    pub families: Vec<FamilyFiles>,
    /// Every file of the directory, and of the folders that belong to it, by name.
    pub files: Vec<FoundFile>,
}

/// A family and its tables.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct FamilyFiles {
    /// What it is.
    pub info: FamilyInfo,
    /// The first log that it still needs.
    pub log_number: u64,
    /// Its tables by level: level 0 newest first, the others by their keys.
    pub levels: Vec<Vec<TableInfo>>,
}

/// A file of the directory.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FoundFile {
    /// Its name, below the directory.
    pub name: String,
    /// Its length.
    pub bytes: u64,
    /// What it is for.
    pub usage: FileUse,
}

/// What a file of a database's directory is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FileUse {
    /// A table that the manifest names.
    Table,
    /// A segment of the log that some family needs, or that is newer.
    Log,
    /// The manifest in use, `CURRENT`, locks, the status of an open database,
    /// the options that held.
    Administration,
    /// A file of the database that nothing refers to: in an open database a table that
    /// is being written or removed, or a log kept to be used again; in a closed
    /// one, what was left behind. The next open for writing removes it.
    Unreferenced,
    /// A file of the LevelDB database that was adopted, kept in a folder for the
    /// way back. It may share its bytes with a table that is in use.
    Adopted,
    /// Not a file of the database: it is never touched.
    Foreign,
}

impl Survey {
    /// Reads the manifest and lists the directory.
    ///
    /// # Errors
    /// `Missing` if there is no database; `Corruption`, `Incompatible`, `Io`.
    pub fn read(fs: &Arc<dyn Fs>, directory: &Path) -> Result<Survey> {
        if foreign::is_leveldb(&**fs, directory)? {
            return Survey::of_leveldb(&**fs, directory);
        }
        let recovered = manifest::recover(fs, directory)?;
        let names = fs.list(directory).map_err(|error| Error::io(directory, "list", error))?;
        let (mut files, mut adopted) = (Vec::new(), Vec::new());
        for name in names {
            if name == filename::ADOPTED {
                let folder = directory.join(&name);
                let inside = fs.list(&folder).map_err(|e| Error::io(&folder, "list", e))?;
                adopted.extend(inside.into_iter().map(|file| format!("{name}/{file}")));
                continue;
            }
            let usage = usage(&name, &recovered.state, &recovered.identity);
            files.extend(FoundFile::measure(&**fs, directory, name, usage)?);
        }
        for name in adopted {
            files.extend(FoundFile::measure(&**fs, directory, name, FileUse::Adopted)?);
        }
        files.sort_by(|a, b| a.name.cmp(&b.name));
        let families = recovered.state.families.values().map(FamilyFiles::from).collect();
        Ok(Survey { engine: Engine::Lodestore, manifest: recovered.path, families, files })
    }

    fn of_leveldb(fs: &dyn Fs, directory: &Path) -> Result<Survey> {
        let database = LevelDb::read(fs, directory)?;
        let mut files = Vec::new();
        for name in directory::names(fs, directory)? {
            let usage = leveldb_usage(&name, &database);
            files.extend(FoundFile::measure(fs, directory, name, usage)?);
        }
        files.sort_by(|a, b| a.name.cmp(&b.name));
        let families = vec![foreign::family_of(&database)?];
        Ok(Survey { engine: Engine::LevelDb, manifest: database.manifest, families, files })
    }

    /// The family of a name.
    pub fn family(&self, name: &str) -> Option<&FamilyFiles> {
        self.families.iter().find(|family| family.info.name == name)
    }
}

impl FoundFile {
    /// The file `name`; `None` if an open database has removed it meanwhile.
    fn measure(
        fs: &dyn Fs,
        directory: &Path,
        name: String,
        usage: FileUse,
    ) -> Result<Option<FoundFile>> {
        let path = directory.join(&name);
        let bytes = match fs.length(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            // A directory, say: whatever it is, it is not the database's.
            Err(_) if usage == FileUse::Foreign => 0,
            Err(error) => return Err(Error::io(&path, "get length of", error)),
        };
        Ok(Some(FoundFile { name, bytes, usage }))
    }
}

fn leveldb_usage(name: &str, database: &LevelDb) -> FileUse {
    let is_in_use = |number: &u64| {
        database.state.tables.contains_key(number) && database.table_name(*number) == name
    };
    match names::parse(name) {
        None => FileUse::Foreign,
        Some(LevelDbFile::Table(number)) if is_in_use(&number) => FileUse::Table,
        Some(LevelDbFile::Log(number)) if database.state.needs_log(number) => FileUse::Log,
        Some(LevelDbFile::Manifest(_)) if database.manifest.ends_with(name) => {
            FileUse::Administration
        }
        Some(LevelDbFile::Current | LevelDbFile::Lock | LevelDbFile::InfoLog) => {
            FileUse::Administration
        }
        Some(_) => FileUse::Unreferenced,
    }
}

fn usage(name: &str, state: &State, manifest: &ManifestIdentity) -> FileUse {
    let is_named = |number| state.families.values().any(|f| f.tables.contains_key(&number));
    let is_needed = |number| number >= state.oldest_log_number().unwrap_or(0);
    match filename::parse(name) {
        None => FileUse::Foreign,
        Some(FileKind::Table(number)) if is_named(number) => FileUse::Table,
        Some(FileKind::Log(number)) if is_needed(number) => FileUse::Log,
        Some(FileKind::Manifest(number)) if number == manifest.number => FileUse::Administration,
        Some(FileKind::Current | FileKind::Lock | FileKind::Status | FileKind::Options(_)) => {
            FileUse::Administration
        }
        Some(_) => FileUse::Unreferenced,
    }
}

impl From<&FamilyState> for FamilyFiles {
    fn from(state: &FamilyState) -> FamilyFiles {
        let mut levels: Vec<Vec<TableInfo>> = vec![Vec::new(); LEVELS];
        for (level, meta) in state.tables.values() {
            levels[*level].push(meta.into());
        }
        levels[0].sort_by_key(|table| std::cmp::Reverse((table.sequence_max, table.number)));
        for level in &mut levels[1..] {
            level.sort_by(|a, b| a.smallest.cmp(&b.smallest));
        }
        let info = FamilyInfo::from(&state.descriptor);
        FamilyFiles { info, log_number: state.log_number, levels }
    }
}
