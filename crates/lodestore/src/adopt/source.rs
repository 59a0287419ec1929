//! What a LevelDB directory says of itself: read in whole before anything is
//! touched.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};
use crate::filename;
use crate::fs::{self, Fs};
use crate::leveldb::edit::{Edit, LevelDbTable};
use crate::leveldb::log::Records;
use crate::leveldb::names::{LevelDbFile, manifest_of, parse};

/// A LevelDB database, as its manifest describes it.
#[derive(Debug)]
pub(super) struct LevelDb {
    /// LevelDB's files, by name.
    pub(super) files: Vec<(String, LevelDbFile)>,
    /// The name of the order of its keys.
    pub(super) comparator: String,
    /// Level, number and the rest of every live table.
    pub(super) tables: BTreeMap<u64, (usize, LevelDbTable)>,
    /// Paths of the logs that are not in tables yet, oldest first.
    pub(super) logs: Vec<PathBuf>,
    pub(super) last_sequence: u64,
    /// File numbers from here on are free.
    pub(super) next_file_number: u64,
}

impl LevelDb {
    /// Reads names, `CURRENT` and manifest.
    ///
    /// # Errors
    /// `Missing` if there is no LevelDB database; `Corruption` if it contradicts
    /// itself or files are missing; `Incompatible` if it is of another engine.
    pub(super) fn read(fs: &dyn Fs, directory: &Path) -> Result<LevelDb> {
        let files = list(fs, directory)?;
        let manifest = read_current(fs, directory)?;
        let mut state = ManifestState::default();
        state.read(fs, &directory.join(&manifest))?;
        let mut highest = state.next_file_number;
        for (_, kind) in &files {
            if let LevelDbFile::Manifest(number)
            | LevelDbFile::Log(number)
            | LevelDbFile::Table(number)
            | LevelDbFile::Temporary(number) = kind
            {
                highest = highest.max(number.saturating_add(1));
            }
        }
        let tables: BTreeSet<u64> = state.tables.keys().copied().collect();
        let present = |number: &u64| table_path(directory, &files, *number).is_some();
        if let Some(missing) = tables.iter().find(|number| !present(number)) {
            let path = directory.join(format!("{missing:06}.ldb"));
            return Err(Error::corruption(&path, 0, "the table is missing; the manifest names it"));
        }
        Ok(LevelDb {
            comparator: state.comparator(directory)?,
            logs: state.live_logs(directory, &files),
            tables: state.tables,
            last_sequence: state.last_sequence,
            next_file_number: highest,
            files,
        })
    }

    /// The file of a live table.
    pub(super) fn table_path(&self, directory: &Path, number: u64) -> PathBuf {
        table_path(directory, &self.files, number).expect("its presence was checked")
    }

    /// The deepest level that has tables.
    pub(super) fn deepest(&self) -> usize {
        self.tables.values().map(|(level, _)| *level).max().unwrap_or(0)
    }
}

/// LevelDB's files in `directory`, in the order of their names.
pub(super) fn list(fs: &dyn Fs, directory: &Path) -> Result<Vec<(String, LevelDbFile)>> {
    let names = fs.list(directory).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => {
            Error::missing(format!("no database in {}", directory.display()))
        }
        _ => Error::io(directory, "list", error),
    })?;
    let kinds = names.into_iter().filter_map(|name| parse(&name).map(|kind| (name, kind)));
    let mut files: Vec<_> = kinds.collect();
    files.sort_by(|a, b| a.0.cmp(&b.0));
    Ok(files)
}

fn table_path(directory: &Path, files: &[(String, LevelDbFile)], number: u64) -> Option<PathBuf> {
    let found = files.iter().find(|(_, kind)| *kind == LevelDbFile::Table(number));
    found.map(|(name, _)| directory.join(name))
}

/// The name of the manifest in use.
fn read_current(fs: &dyn Fs, directory: &Path) -> Result<String> {
    let path = filename::current_path(directory);
    let bytes = fs::read_all(fs, &path).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => {
            Error::missing(format!("no LevelDB database in {}", directory.display()))
        }
        _ => Error::io(&path, "read", error),
    })?;
    let name = manifest_of(&bytes);
    let wrong = || Error::corruption(&path, 0, "it does not name a manifest of LevelDB");
    name.map(str::to_string).ok_or_else(wrong)
}

/// What the changes of a manifest amount to.
#[derive(Debug, Default)]
struct ManifestState {
    comparator: Option<Vec<u8>>,
    log_number: Option<u64>,
    previous_log_number: u64,
    next_file_number: u64,
    last_sequence: u64,
    tables: BTreeMap<u64, (usize, LevelDbTable)>,
}

impl ManifestState {
    fn read(&mut self, fs: &dyn Fs, path: &Path) -> Result<()> {
        let bytes = fs::read_all(fs, path).map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => {
                Error::corruption(path, 0, "the manifest that CURRENT names is missing")
            }
            _ => Error::io(path, "read", error),
        })?;
        let mut records = Records::new(&bytes);
        loop {
            let next = records.next();
            let damaged = |damage: crate::leveldb::log::Damage| {
                Error::corruption(path, damage.offset, damage.what.text())
            };
            let Some((record, offset)) = next.map_err(damaged)? else { break };
            let corrupt = |what: &str| Error::corruption(path, offset, what);
            let edit = Edit::decode(record).map_err(corrupt)?;
            self.apply(edit).map_err(|what| corrupt(&what))?;
        }
        let complete = self.log_number.is_some() && self.next_file_number > 0;
        let what = "the manifest lacks a log number, or a next file number";
        if complete { Ok(()) } else { Err(Error::corruption(path, bytes.len() as u64, what)) }
    }

    fn apply(&mut self, edit: Edit) -> std::result::Result<(), String> {
        for (level, number) in edit.deleted {
            match self.tables.remove(&number) {
                Some((of, _)) if of == level => {}
                _ => return Err(format!("table {number}, which is not at level {level}, goes")),
            }
        }
        for (level, table) in edit.added {
            let number = table.number;
            if self.tables.insert(number, (level, table)).is_some() {
                return Err(format!("table {number} is added twice"));
            }
        }
        self.comparator = edit.comparator.or(self.comparator.take());
        self.log_number = edit.log_number.or(self.log_number);
        self.previous_log_number = edit.previous_log_number.unwrap_or(self.previous_log_number);
        self.next_file_number = edit.next_file_number.unwrap_or(self.next_file_number);
        self.last_sequence = edit.last_sequence.unwrap_or(self.last_sequence);
        Ok(())
    }

    fn comparator(&self, directory: &Path) -> Result<String> {
        let name = self.comparator.as_ref().and_then(|name| std::str::from_utf8(name).ok());
        let wrong = || {
            let path = filename::current_path(directory);
            Error::corruption(&path, 0, "its manifest names no comparator")
        };
        name.map(str::to_string).ok_or_else(wrong)
    }

    /// Logs that LevelDB would replay: those from its log number on, and the
    /// previous one.
    fn live_logs(&self, directory: &Path, files: &[(String, LevelDbFile)]) -> Vec<PathBuf> {
        let from = self.log_number.unwrap_or(0);
        let is_live = |number| number >= from || number == self.previous_log_number;
        let mut logs: Vec<(u64, PathBuf)> = files
            .iter()
            .filter_map(|(name, kind)| match kind {
                LevelDbFile::Log(number) if is_live(*number) => {
                    Some((*number, directory.join(name)))
                }
                _ => None,
            })
            .collect();
        logs.sort();
        logs.into_iter().map(|(_, path)| path).collect()
    }
}
