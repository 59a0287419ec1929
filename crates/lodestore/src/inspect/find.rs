//! In which files a key is.

use std::io::ErrorKind;
use std::path::Path;

use crate::batch::{FamilyId, Record};
use crate::error::{Error, Result};
use crate::filename::{self, FileKind};
use crate::fs::{Fs, ReadableFile};
use crate::key::{KeyOrder, Kind};
use crate::leveldb::directory::LevelDb;
use crate::sync::Arc;
use crate::tables;
use crate::version::State;
use crate::version::manifest::{self, Recovered};

use super::described::{Entry, FamilyInfo};
use super::foreign;
use super::log::LogFile;
use super::settled::settled;
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

/// Everything that the files of the database in `directory`, ours or LevelDB's, say
/// of `key` in a family whose keys are in `order`: logs first, newest first, then
/// tables by level.
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
    let wanted = Wanted { fs: &**fs, directory, family, order: order.clone(), key };
    if foreign::is_leveldb(&**fs, directory)? {
        let read = || LevelDb::read(&**fs, directory);
        return settled(directory, &read, LevelDb::is_same, &|database| {
            wanted.in_leveldb(database)
        });
    }
    let read = || manifest::recover(fs, directory);
    let is_same = |a: &Recovered, b: &Recovered| a.identity == b.identity;
    settled(directory, &read, is_same, &|recovered| wanted.in_ours(&recovered.state))
}

/// A key that is looked for.
#[derive(Clone)]
struct Wanted<'a> {
    fs: &'a dyn Fs,
    directory: &'a Path,
    family: &'a str,
    /// As given; then that of the family.
    order: KeyOrder,
    key: &'a [u8],
}

impl Wanted<'_> {
    fn in_leveldb(&self, database: &LevelDb) -> Result<Vec<Found>> {
        let family = foreign::family_of(database)?;
        let (wanted, _) = self.in_family([&family.info].into_iter())?;
        let mut found = Vec::new();
        for (number, path) in database.logs.iter().rev() {
            wanted.in_log(path, *number, FamilyId::DEFAULT.0, true, &mut found)?;
        }
        for (level, tables) in family.levels.iter().enumerate() {
            for table in tables.iter().filter(|of| wanted.is_within(&of.smallest, &of.largest)) {
                let path = self.directory.join(table.file_name());
                let open = |file| TableFile::open_leveldb(file, &path, wanted.order.clone());
                wanted.in_table(&path, level, table.number, open, &mut found)?;
            }
        }
        Ok(found)
    }

    fn in_ours(&self, state: &State) -> Result<Vec<Found>> {
        let infos: Vec<_> =
            state.families.values().map(|family| FamilyInfo::from(&family.descriptor)).collect();
        let (wanted, id) = self.in_family(infos.iter())?;
        let family = &state.families[&id];
        let mut found = Vec::new();
        for number in self.live_logs(state.oldest_log_number().unwrap_or(0))? {
            let path = filename::log_path(self.directory, number);
            wanted.in_log(&path, number, id, number >= family.log_number, &mut found)?;
        }
        let mut tables: Vec<_> = family.tables.values().collect();
        tables.sort_by_key(|(level, meta)| (*level, std::cmp::Reverse(meta.number)));
        for (level, meta) in tables {
            if wanted.is_within(&meta.smallest.user_key, &meta.largest.user_key) {
                let path = filename::table_path(self.directory, meta.number);
                let open = |file| TableFile::of(file, &path, meta, wanted.order.clone());
                wanted.in_table(&path, *level, meta.number, open, &mut found)?;
            }
        }
        Ok(found)
    }

    /// The same with the family's order, and the family's id.
    ///
    /// # Errors
    /// `Missing` if there is none of the name; `InvalidArgument` if it has another
    /// order.
    fn in_family<'f>(
        &self,
        families: impl Iterator<Item = &'f FamilyInfo> + Clone,
    ) -> Result<(Self, u32)> {
        let name = self.family;
        let Some(family) = families.clone().find(|family| family.name == name) else {
            let names: Vec<_> = families.map(|family| &family.name[..]).collect();
            let names = names.join(", ");
            return Err(Error::missing(format!("there is no family '{name}'; there are: {names}")));
        };
        let (stored, given) = (&family.comparator, self.order.name());
        let Some(order) = self.order.for_stored(stored) else {
            let what = format!("family {name:?} is ordered by {stored:?}, not by {given:?}");
            return Err(Error::invalid(what));
        };
        Ok((Wanted { order, ..self.clone() }, family.id))
    }

    fn is_within(&self, first: &[u8], last: &[u8]) -> bool {
        self.order.compare(self.key, first).is_ge() && self.order.compare(self.key, last).is_le()
    }

    /// Numbers of our segments that some family needs, newest first.
    fn live_logs(&self, first_live: u64) -> Result<Vec<u64>> {
        let names = self.fs.list(self.directory);
        let names = names.map_err(|error| Error::io(self.directory, "list", error))?;
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
        &self,
        path: &Path,
        number: u64,
        family: u32,
        needed: bool,
        found: &mut Vec<Found>,
    ) -> Result<()> {
        let mut log = match LogFile::open(self.fs, path) {
            Ok(log) if log.header().number == number => log,
            // Begun by a recycled file's name, without a header of its own yet; or
            // gone, as its entries are in tables.
            Ok(_) => return Ok(()),
            Err(Error::Io { source, .. }) if source.kind() == ErrorKind::NotFound => {
                return Ok(());
            }
            Err(error) => return Err(error),
        };
        let begin = found.len();
        while let Some(batch) = log.next_batch()? {
            let place = FoundIn::Log { number, offset: batch.offset, needed };
            for (sequence, record) in batch.records() {
                let Record::Entry { family: id, kind, key: of, value } = record else { continue };
                let entry = Entry { key: of.to_vec(), sequence, kind, value: value.to_vec() };
                let is_wanted = match kind {
                    Kind::RangeDelete => covers(&self.order, &entry, self.key),
                    _ => self.order.compare(of, self.key).is_eq(),
                };
                if id.0 == family && is_wanted {
                    found.push(Found { place, entry });
                }
            }
        }
        found[begin..].reverse(); // the newest first
        Ok(())
    }

    fn in_table(
        &self,
        path: &Path,
        level: usize,
        number: u64,
        open: impl FnOnce(Arc<dyn ReadableFile>) -> Result<TableFile>,
        found: &mut Vec<Found>,
    ) -> Result<()> {
        let file = self.fs.open(path).map_err(|error| match error.kind() {
            ErrorKind::NotFound => tables::missing(path),
            _ => Error::io(path, "open", error),
        })?;
        let place = FoundIn::Table { level, number };
        let versions = open(file)?.versions(self.key)?;
        found.extend(versions.into_iter().map(|entry| Found { place, entry }));
        Ok(())
    }
}
