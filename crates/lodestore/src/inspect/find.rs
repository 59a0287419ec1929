//! In which files a key is.

use std::io::ErrorKind;
use std::path::Path;

use crate::batch::Record;
use crate::error::{Error, Result};
use crate::filename::{self, FileKind};
use crate::fs::Fs;
use crate::key::{KeyOrder, Kind};
use crate::sync::Arc;
use crate::tables;
use crate::version::manifest;
use crate::version::state::{FamilyState, State};

use super::described::Entry;
use super::log::LogFile;
use super::table::{TableFile, covers};

/// Something that a file says of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Found {
    /// The file, and where in it.
    pub place: FoundIn,
    /// What it says: a version of the key, or a range delete that covers it.
    pub entry: Entry,
}

/// A place in a database's files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FoundIn {
    /// A segment of the log.
    Log {
        /// The segment's number.
        number: u64,
        /// Where the record begins.
        offset: u64,
        /// True if the family still needs the segment; false if its tables hold
        /// what is here, and only other families keep the segment.
        needed: bool,
    },
    /// A table.
    Table {
        /// Its level.
        level: usize,
        /// Its number.
        number: u64,
    },
}

/// How often an open database may change its files while they are read.
const TRIES: usize = 20;

/// Everything that the files of the database in `directory` say of `key` in a
/// family whose keys are in `order`: logs first, newest first, then tables by
/// level.
///
/// # Errors
/// `Missing` if there is no such database or family; `InvalidArgument` if the
/// family is in another order; `Corruption`, `Incompatible`, `Io`.
pub fn find(
    fs: &Arc<dyn Fs>,
    directory: &Path,
    family: &str,
    order: &KeyOrder,
    key: &[u8],
) -> Result<Vec<Found>> {
    let mut recovered = manifest::recover(fs, directory)?;
    for _ in 0..TRIES {
        let found = in_state(fs, directory, &recovered.state, family, order, key);
        // A flush or a compaction may have moved what was looked for from a file
        // not read yet to one that the manifest did not name yet.
        let after = manifest::recover(fs, directory)?;
        if after.identity == recovered.identity {
            return found;
        }
        recovered = after;
    }
    let what = "its tables change faster than they can be read";
    Err(Error::invalid(format!("{}: {what}; try again", directory.display())))
}

fn in_state(
    fs: &Arc<dyn Fs>,
    directory: &Path,
    state: &State,
    family: &str,
    order: &KeyOrder,
    key: &[u8],
) -> Result<Vec<Found>> {
    let found = state.families.values().find(|state| state.descriptor.name == family);
    let family = found.ok_or_else(|| {
        let names = state.families.values().map(|family| &family.descriptor.name[..]);
        let names = names.collect::<Vec<_>>().join(", ");
        Error::missing(format!("there is no family '{family}'; there are: {names}"))
    })?;
    if family.descriptor.comparator != order.name() {
        let (stored, given) = (&family.descriptor.comparator, order.name());
        let name = &family.descriptor.name;
        let what = format!("family {name:?} is ordered by {stored:?}, not by {given:?}");
        return Err(Error::invalid(what));
    }
    let mut found = Vec::new();
    let first_live = state.oldest_log_number().unwrap_or(0);
    for number in live_logs(&**fs, directory, first_live)? {
        in_log(&**fs, directory, number, family, order, key, &mut found)?;
    }
    let mut tables: Vec<_> = family.tables.values().collect();
    tables.sort_by_key(|(level, meta)| (*level, std::cmp::Reverse(meta.number)));
    for (level, meta) in tables {
        let (first, last) = (&meta.smallest.user_key, &meta.largest.user_key);
        if order.compare(key, first).is_lt() || order.compare(key, last).is_gt() {
            continue;
        }
        let path = filename::table_path(directory, meta.number);
        let file = fs.open(&path).map_err(|error| match error.kind() {
            ErrorKind::NotFound => tables::missing(&path),
            _ => Error::io(&path, "open", error),
        })?;
        let place = FoundIn::Table { level: *level, number: meta.number };
        let versions = TableFile::of(file, &path, meta, order.clone())?.versions(key)?;
        found.extend(versions.into_iter().map(|entry| Found { place, entry }));
    }
    Ok(found)
}

/// Numbers of the segments that some family needs, newest first.
fn live_logs(fs: &dyn Fs, directory: &Path, first_live: u64) -> Result<Vec<u64>> {
    let names = fs.list(directory).map_err(|error| Error::io(directory, "list", error))?;
    let mut numbers: Vec<u64> = names
        .iter()
        .filter_map(|name| match filename::parse(name) {
            Some(FileKind::Log(number)) if number >= first_live => Some(number),
            _ => None,
        })
        .collect();
    numbers.sort_by_key(|&number| std::cmp::Reverse(number));
    Ok(numbers)
}

fn in_log(
    fs: &dyn Fs,
    directory: &Path,
    number: u64,
    family: &FamilyState,
    order: &KeyOrder,
    key: &[u8],
    found: &mut Vec<Found>,
) -> Result<()> {
    let path = filename::log_path(directory, number);
    let mut log = match LogFile::open(fs, &path) {
        Ok(log) if log.header().number == number => log,
        // Begun by a recycled file's name, without a header of its own yet; or
        // gone, as its entries are in tables.
        Ok(_) => return Ok(()),
        Err(Error::Io { source, .. }) if source.kind() == ErrorKind::NotFound => {
            return Ok(());
        }
        Err(error) => return Err(error),
    };
    let needed = number >= family.log_number;
    let begin = found.len();
    while let Some(batch) = log.next_batch()? {
        let place = FoundIn::Log { number, offset: batch.offset, needed };
        for (sequence, record) in batch.records() {
            let Record::Entry { family: id, kind, key: of, value } = record else { continue };
            let entry = Entry { key: of.to_vec(), sequence, kind, value: value.to_vec() };
            let is_wanted = match kind {
                Kind::RangeDelete => covers(order, &entry, key),
                _ => order.compare(of, key).is_eq(),
            };
            if id.0 == family.descriptor.id && is_wanted {
                found.push(Found { place, entry });
            }
        }
    }
    found[begin..].reverse(); // the newest first
    Ok(())
}
