//! What a LevelDB directory says of itself: names, `CURRENT` and manifest, read
//! in whole before anything else is looked at.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::coding::COUNTER_MAX;
use crate::error::{Error, Result};
use crate::filename;
use crate::fs::{self, Fs};

use super::edit::{Edit, LevelDbTable};
use super::log::{Damage, Records};
use super::names::{self, LevelDbFile, manifest_of, parse};

/// More than any database has files.
const NUMBERS_LEFT_MIN: u64 = 1 << 32;

/// A LevelDB database, as its manifest describes it.
#[derive(Clone, Debug)]
pub(crate) struct LevelDb {
    /// LevelDB's files, by name. Basho's fork has tables in folders: the folder is
    /// part of the name.
    pub(crate) files: Vec<(String, LevelDbFile)>,
    /// The names of its live tables, by number.
    table_names: BTreeMap<u64, String>,
    /// The manifest in use.
    pub(crate) manifest: PathBuf,
    pub(crate) state: ManifestState,
    /// The name of the order of its keys.
    pub(crate) comparator: String,
    /// Numbers and paths of the logs that are not in tables yet, oldest first.
    pub(crate) logs: Vec<(u64, PathBuf)>,
    /// File numbers from here on are free.
    pub(crate) next_file_number: u64,
}

impl LevelDb {
    /// Reads names, `CURRENT` and manifest.
    ///
    /// # Errors
    /// `Missing` if there is no LevelDB database; `Corruption` if it contradicts
    /// itself or files are missing; `Incompatible` if it is of another engine.
    pub(crate) fn read(fs: &dyn Fs, directory: &Path) -> Result<LevelDb> {
        let (mut manifest, mut state) = read_state(fs, directory)?;
        let mut files = list(fs, directory)?;
        let table_names = loop {
            let missing = match table_names(&state, &files) {
                Ok(names) => break names,
                Err(missing) => missing,
            };
            let (manifest_now, state_now) = read_state(fs, directory)?;
            if (&manifest, &state) == (&manifest_now, &state_now) {
                let what = "the table is missing; the manifest names it";
                return Err(Error::corruption(&directory.join(missing), 0, what));
            }
            // LevelDB has it open, and has removed the table after a compaction.
            (manifest, state) = (manifest_now, state_now);
            files = list(fs, directory)?;
        };
        state.refuse_expiry(directory)?;
        let highest = files.iter().filter_map(|(_, kind)| kind.number()?.checked_add(1)).max();
        Ok(LevelDb {
            comparator: state.comparator(&manifest)?,
            logs: state.live_logs(directory, &files),
            next_file_number: state.next_file_number.max(highest.unwrap_or(0)),
            manifest,
            state,
            files,
            table_names,
        })
    }

    /// True if `other` was read of the same database, and it had not changed.
    pub(crate) fn is_same(&self, other: &LevelDb) -> bool {
        (&self.manifest, &self.state) == (&other.manifest, &other.state)
    }

    /// The paths of its live tables and logs.
    pub(crate) fn files_in_use(&self, directory: &Path) -> impl Iterator<Item = PathBuf> {
        let tables = self.state.tables.keys();
        let tables = tables.map(move |number| directory.join(self.table_name(*number)));
        tables.chain(self.logs.iter().map(|(_, path)| path.clone()))
    }

    /// The file of a live table, below the directory.
    pub(crate) fn table_name(&self, number: u64) -> &str {
        &self.table_names[&number]
    }

    /// # Errors
    /// `InvalidArgument` if behind its file numbers none are left for ours.
    pub(crate) fn check_numbers_left(&self) -> Result<()> {
        let is_too_high = |number: u64| number > COUNTER_MAX - NUMBERS_LEFT_MIN;
        let of_file = |kind: &LevelDbFile| kind.number().is_some_and(is_too_high);
        if let Some((name, _)) = self.files.iter().find(|(_, kind)| of_file(kind)) {
            let what =
                "has a number behind which none are left: move it away if it is not LevelDB's";
            return Err(Error::invalid(format!("the file {name} {what}")));
        }
        if is_too_high(self.state.next_file_number) {
            let what = "says that no file numbers are left";
            return Err(Error::invalid(format!("{} {what}", self.manifest.display())));
        }
        Ok(())
    }

    /// The deepest level that has tables.
    pub(crate) fn deepest(&self) -> usize {
        self.state.tables.values().map(|(level, _)| *level).max().unwrap_or(0)
    }
}

/// The manifest in use, and what it adds up to.
fn read_state(fs: &dyn Fs, directory: &Path) -> Result<(PathBuf, ManifestState)> {
    let manifest = read_current(fs, directory)?;
    let state = read_manifest(fs, &manifest, &mut |_, _| {})?;
    Ok((manifest, state))
}

/// The names of the live tables among `files`, or of one that is not among them.
fn table_names(
    state: &ManifestState,
    files: &[(String, LevelDbFile)],
) -> std::result::Result<BTreeMap<u64, String>, String> {
    let names = TableNames::among(files);
    let name_of = |(&number, (level, _)): (&u64, &(usize, LevelDbTable))| {
        let name = names.of(number, *level).ok_or_else(|| names::table(number))?;
        Ok((number, name.to_string()))
    };
    state.tables.iter().map(name_of).collect()
}

/// Which names tables have, by number.
pub(crate) struct TableNames<'f>(BTreeMap<u64, Vec<&'f str>>);

impl<'f> TableNames<'f> {
    pub(crate) fn among(files: &'f [(String, LevelDbFile)]) -> TableNames<'f> {
        let mut found: BTreeMap<u64, Vec<&str>> = BTreeMap::new();
        for (name, kind) in files {
            if let LevelDbFile::Table(number) = kind {
                found.entry(*number).or_default().push(name);
            }
        }
        TableNames(found)
    }

    /// The name of a table of `level`, if it is there. One that was moved may still be
    /// in the folder of another level, too.
    pub(crate) fn of(&self, number: u64, level: usize) -> Option<&'f str> {
        let (names, folder) = (self.0.get(&number)?, names::level_folder(level) + "/");
        Some(names.iter().find(|name| name.starts_with(&folder)).unwrap_or(&names[0]))
    }

    pub(crate) fn numbers(&self) -> impl Iterator<Item = u64> {
        self.0.keys().copied()
    }
}

/// LevelDB's files in `directory`, in the order of their names, with the tables in
/// folders of levels.
pub(crate) fn list(fs: &dyn Fs, directory: &Path) -> Result<Vec<(String, LevelDbFile)>> {
    let mut files = Vec::new();
    for name in names(fs, directory)? {
        if names::is_level_folder(&name) {
            files.extend(tables_in(fs, directory, &name)?);
        } else if let Some(kind) = parse(&name) {
            files.push((name, kind));
        }
    }
    files.sort_by(|a, b| a.0.cmp(&b.0));
    Ok(files)
}

/// The tables in the folder of a level.
pub(crate) fn tables_in(
    fs: &dyn Fs,
    directory: &Path,
    folder: &str,
) -> Result<Vec<(String, LevelDbFile)>> {
    let kinds = names(fs, &directory.join(folder))?.into_iter().filter_map(|name| {
        let kind = parse(&name).filter(|kind| matches!(kind, LevelDbFile::Table(_)))?;
        Some((format!("{folder}/{name}"), kind))
    });
    Ok(kinds.collect())
}

/// Names of everything in `directory`.
///
/// # Errors
/// `Missing` if it is not there; `Io`.
pub(crate) fn names(fs: &dyn Fs, directory: &Path) -> Result<Vec<String>> {
    fs.list(directory).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => {
            Error::missing(format!("no database in {}", directory.display()))
        }
        _ => Error::io(directory, "list", error),
    })
}

/// The path of the manifest in use.
///
/// # Errors
/// `Missing` if there is no `CURRENT`; `Corruption` if it names no manifest; `Io`.
pub(crate) fn read_current(fs: &dyn Fs, directory: &Path) -> Result<PathBuf> {
    let path = filename::current_path(directory);
    let bytes = fs::read_all(fs, &path).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => {
            Error::missing(format!("no LevelDB database in {}", directory.display()))
        }
        _ => Error::io(&path, "read", error),
    })?;
    let name = manifest_of(&bytes);
    let wrong = || Error::corruption(&path, 0, "it does not name a manifest of LevelDB");
    name.map(|name| directory.join(name)).ok_or_else(wrong)
}

/// What the changes of a manifest amount to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ManifestState {
    comparator: Option<Vec<u8>>,
    pub(crate) log_number: u64,
    pub(crate) previous_log_number: u64,
    pub(crate) next_file_number: u64,
    pub(crate) last_sequence: u64,
    /// Level and the rest of every live table, by number.
    pub(crate) tables: BTreeMap<u64, (usize, LevelDbTable)>,
    /// A table was added that has entries that expire.
    expires: bool,
    /// Where a crash cut the file off in the middle of a record, if one did.
    pub(crate) torn_at: Option<u64>,
}

/// Reads a manifest; `visit` is given each change and where its record begins.
///
/// # Errors
/// `Corruption` if it is damaged, contradicts itself or is not whole; `Io`.
pub(crate) fn read_manifest(
    fs: &dyn Fs,
    path: &Path,
    visit: &mut dyn FnMut(u64, &Edit),
) -> Result<ManifestState> {
    let bytes = fs::read_all(fs, path).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => {
            Error::corruption(path, 0, "the manifest that CURRENT names is missing")
        }
        _ => Error::io(path, "read", error),
    })?;
    decode_manifest(&bytes, path, visit)
}

/// [`read_manifest`] of a file whose bytes are given.
///
/// # Errors
/// `Corruption`, as there; `path` is named.
pub(crate) fn decode_manifest(
    bytes: &[u8],
    path: &Path,
    visit: &mut dyn FnMut(u64, &Edit),
) -> Result<ManifestState> {
    let (mut state, mut records) = (ManifestState::default(), Records::new(bytes));
    let mut has_log_number = false;
    loop {
        let next = records.next();
        let damaged = |damage: Damage| Error::corruption(path, damage.offset, damage.what.text());
        let Some((record, offset)) = next.map_err(damaged)? else { break };
        let corrupt = |what: &str| Error::corruption(path, offset, what);
        let edit = Edit::decode(record).map_err(corrupt)?;
        state.apply(&edit).map_err(|what| corrupt(&what))?;
        has_log_number |= edit.log_number.is_some();
        visit(offset, &edit);
    }
    state.torn_at = records.torn_at();
    let complete = has_log_number && state.next_file_number > 0;
    let what = "the manifest lacks a log number, or a next file number";
    if complete { Ok(state) } else { Err(Error::corruption(path, bytes.len() as u64, what)) }
}

impl ManifestState {
    fn apply(&mut self, edit: &Edit) -> std::result::Result<(), String> {
        for &(level, number) in &edit.deleted {
            match self.tables.remove(&number) {
                Some((of, _)) if of == level => {}
                _ => return Err(format!("table {number}, which is not at level {level}, goes")),
            }
        }
        for (level, table) in &edit.added {
            let number = table.number;
            if self.tables.insert(number, (*level, table.clone())).is_some() {
                return Err(format!("table {number} is added twice"));
            }
        }
        self.expires |= edit.expires;
        self.comparator = edit.comparator.clone().or(self.comparator.take());
        self.log_number = edit.log_number.unwrap_or(self.log_number);
        self.previous_log_number = edit.previous_log_number.unwrap_or(self.previous_log_number);
        self.next_file_number = edit.next_file_number.unwrap_or(self.next_file_number);
        self.last_sequence = edit.last_sequence.unwrap_or(self.last_sequence);
        Ok(())
    }

    /// # Errors
    /// `Incompatible` if entries expire, of which the rules are not known here.
    pub(crate) fn refuse_expiry(&self, directory: &Path) -> Result<()> {
        let what = "it has entries that expire, as Basho's fork of LevelDB has them";
        if self.expires { Err(Error::incompatible(directory, what)) } else { Ok(()) }
    }

    /// The name of the order of the keys; `manifest` is named in errors.
    pub(crate) fn comparator(&self, manifest: &Path) -> Result<String> {
        let name = self.comparator.as_ref().and_then(|name| std::str::from_utf8(name).ok());
        let wrong = || Error::corruption(manifest, 0, "it names no comparator");
        name.map(str::to_string).ok_or_else(wrong)
    }

    /// True for a log that LevelDB would replay: those from its log number on,
    /// and the previous one.
    pub(crate) fn needs_log(&self, number: u64) -> bool {
        number >= self.log_number || number == self.previous_log_number
    }

    fn live_logs(&self, directory: &Path, files: &[(String, LevelDbFile)]) -> Vec<(u64, PathBuf)> {
        let live = files.iter().filter_map(|(name, kind)| match kind {
            LevelDbFile::Log(number) if self.needs_log(*number) => {
                Some((*number, directory.join(name)))
            }
            _ => None,
        });
        let mut logs: Vec<_> = live.collect();
        logs.sort();
        logs
    }
}
