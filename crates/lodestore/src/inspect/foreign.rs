//! What LevelDB's directories and tables say, in the words of this module.

use std::path::Path;

use crate::db;
use crate::error::{Error, Result};
use crate::filename;
use crate::fs::Fs;
use crate::key::{KeyOrder, SEQUENCE_MAX};
use crate::leveldb::directory::{LevelDb, ManifestState, read_current, read_manifest};
use crate::leveldb::edit::{LEVELS, LevelDbTable};
use crate::leveldb::{names, split_key};
use crate::sync::Arc;
use crate::version::{self, Current, manifest};

use super::described::{Engine, FamilyInfo, TableInfo};
use super::survey::FamilyFiles;

/// True if `CURRENT` in `directory` is LevelDB's.
///
/// # Errors
/// `Corruption` if it is nobody's; `Io`.
pub(super) fn is_leveldb(fs: &dyn Fs, directory: &Path) -> Result<bool> {
    Ok(matches!(version::read_current(fs, directory)?, Some(Current::NameAlone { .. })))
}

/// What `manifest`, which adds up to `state`, says of the database.
pub(super) fn family(state: &ManifestState, manifest: &Path) -> Result<FamilyFiles> {
    let mut levels: Vec<Vec<TableInfo>> = vec![Vec::new(); LEVELS];
    for (level, table) in state.tables.values() {
        levels[*level].push(TableInfo::from(table));
    }
    levels[0].sort_by_key(|table| std::cmp::Reverse(table.number));
    for level in &mut levels[1..] {
        level.sort_by(|a, b| a.smallest.cmp(&b.smallest));
    }
    let info = FamilyInfo {
        id: 0,
        name: db::DEFAULT_NAME.to_string(),
        comparator: state.comparator(manifest)?,
        merge_operator: None,
        prefix_extractor: None,
    };
    Ok(FamilyFiles { info, log_number: state.log_number, levels })
}

/// The same, with the names that the tables have in the directory.
pub(super) fn family_of(database: &LevelDb) -> Result<FamilyFiles> {
    let mut family = family(&database.state, &database.manifest)?;
    for table in family.levels.iter_mut().flatten() {
        table.name = database.table_name(table.number).to_string();
        table.sequence_max = database.state.last_sequence;
    }
    Ok(family)
}

impl From<&LevelDbTable> for TableInfo {
    /// The manifest does not say what is in the table: counts are 0, and numbers
    /// are any.
    fn from(table: &LevelDbTable) -> TableInfo {
        let user_key = |stored| split_key(stored).expect("a decoded bound has a number").0.to_vec();
        TableInfo {
            engine: Engine::LevelDb,
            name: names::table(table.number),
            number: table.number,
            bytes: table.bytes,
            smallest: user_key(&table.smallest),
            largest: user_key(&table.largest),
            sequence_max: SEQUENCE_MAX,
            ..TableInfo::default()
        }
    }
}

/// The name of the order of the keys of the table `path`, as the database in
/// whose directory it lies says, LevelDB's or ours; `None` if there is no such
/// database, or it cannot be read.
fn order_around(fs: &dyn Fs, path: &Path) -> Option<String> {
    let directory = path.parent()?;
    // Basho's fork keeps tables in folders below that of the database.
    [Some(directory), directory.parent()].into_iter().flatten().find_map(|directory| {
        match version::read_current(fs, directory).ok()?? {
            Current::NameAlone { .. } => {
                let manifest = read_current(fs, directory).ok()?;
                let state = read_manifest(fs, &manifest, &mut |_, _| {}).ok()?;
                state.comparator(&manifest).ok()
            }
            Current::Ours { .. } => order_in_ours(fs, directory, path),
        }
    })
}

fn order_in_ours(fs: &dyn Fs, directory: &Path, table: &Path) -> Option<String> {
    let number = filename::number_of(table.file_name()?.to_str()?)?;
    let path = manifest::current_path(fs, directory).ok()?;
    let file = Arc::clone(&fs.open(&path).ok()?);
    let state = manifest::read_manifest(&file, &path, &mut |_, _| {}).ok()?.state;
    let family = state.families.into_values().find(|f| f.tables.contains_key(&number))?;
    Some(family.descriptor.comparator)
}

/// The order of the keys of the table `path`, for who gives `given`.
///
/// # Errors
/// `InvalidArgument` if the database around it has another order.
pub(super) fn order_for(fs: &dyn Fs, path: &Path, given: KeyOrder) -> Result<KeyOrder> {
    let Some(stored) = order_around(fs, path) else { return Ok(given) };
    given.for_stored(&stored).ok_or_else(|| {
        let what = format!("{} is in the order {stored}, not {}", path.display(), given.name());
        Error::invalid(what)
    })
}
