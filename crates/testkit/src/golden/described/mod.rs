//! What the files of a directory say, as text: everything that
//! `lodestore::inspect` can tell, also what no reader of the database sees.
//!
//! Every field is written by its name, here and not by `Debug`, and no sentence of
//! `inspect` is repeated: what it learns to tell, or tells in other words, must not
//! change texts of formats that are frozen.

mod log;
mod manifest;
mod table;

use std::path::Path;
use std::sync::Arc;

use lodestore::inspect::{FileUse, Found, FoundIn, Survey, TableFile, TableInfo, find};
use lodestore::{Fs, KeyOrder, MemFs, Options, Result};

use super::shown::shown;

/// The longest key or value that is written out.
const WHOLE_BYTES_MAX: usize = 48;

/// All that the files in `directory` say: which files there are, then of each manifest,
/// segment and table all it holds. `options` have the families' orders of keys. LevelDB's
/// own files beside the database are named only.
///
/// # Errors
/// What reading gives.
pub fn described(fs: &MemFs, directory: &Path, options: &Options) -> Result<String> {
    let fs: Arc<dyn Fs> = Arc::new(fs.clone());
    let survey = Survey::read(&fs, directory)?;
    let in_use = survey.manifest.file_name().expect("a manifest has a name").display();
    let mut text = format!("manifest in use: {in_use}\n");
    // Whoever opens a database may leave locks.
    for file in survey.files.iter().filter(|file| !file.name.starts_with("LOCK")) {
        text += &format!("{}: {} bytes, {}\n", file.name, file.bytes, usage(file.usage));
    }
    for file in &survey.files {
        let path = directory.join(&file.name);
        let begin = format!("\n{}\n", file.name);
        if file.name.starts_with("MANIFEST-") {
            text += &(begin + &manifest::described(&*fs, &path)?);
        } else if file.name.ends_with(".wal") {
            text += &(begin + &log::described(&*fs, &path)?);
        } else if file.name.ends_with(".table") {
            let (_, order) = owner(&survey, &file.name, options);
            text += &(begin + &table::described(&*fs, &path, order)?);
        }
    }
    Ok(text + &overridden(&fs, directory, &survey, options)?)
}

fn usage(of: FileUse) -> &'static str {
    match of {
        FileUse::Table => "table",
        FileUse::Log => "log",
        FileUse::Administration => "administration",
        FileUse::Unreferenced => "unreferenced",
        FileUse::Adopted => "adopted",
        FileUse::Foreign => "foreign",
        other => panic!("this text lacks {other:?}"),
    }
}

/// The family that a table belongs to, and its order; bytewise order if it belongs to
/// none.
fn owner(survey: &Survey, table: &str, options: &Options) -> (Option<String>, KeyOrder) {
    let has = |tables: &Vec<TableInfo>| tables.iter().any(|of| of.file_name() == table);
    let family = survey.families.iter().find(|family| family.levels.iter().any(has));
    let name = family.map(|family| family.info.name.clone());
    let order = name.as_ref().map(|name| options.family_options(name).order.clone());
    (name, order.unwrap_or_default())
}

/// The entries of tables with a number of their own, as they count.
fn overridden(
    fs: &Arc<dyn Fs>,
    directory: &Path,
    survey: &Survey,
    options: &Options,
) -> Result<String> {
    let mut text = String::new();
    for table in survey.families.iter().flat_map(|family| family.levels.iter().flatten()) {
        if table.sequence_override.is_none() {
            continue;
        }
        let name = table.file_name();
        text += &format!("\n{name} as it counts\n");
        let (family, order) = owner(survey, &name, options);
        let family = family.expect("its family names it");
        let file = TableFile::open(&**fs, &directory.join(&name), order.clone())?;
        for entry in file.entries() {
            let found = find(fs, directory, &family, &order, &entry?.key)?;
            let is_here = |found: &&Found| matches!(found.place, FoundIn::Table { number, .. } if number == table.number);
            for Found { entry, .. } in found.iter().filter(is_here) {
                text += &table::entry(entry);
            }
        }
    }
    Ok(text)
}

/// A key or value in these texts.
fn brief(bytes: &[u8]) -> String {
    shown(bytes, WHOLE_BYTES_MAX)
}

/// A key with its sequence number and the number of its kind.
fn bound(key: &[u8], trailer: u64) -> String {
    format!("{} @{} kind {:#04x}", brief(key), trailer >> 8, trailer & 0xff)
}
