//! The tables of a damaged LevelDB database, each read through.

use std::path::{Path, PathBuf};

use crate::db;
use crate::error::{Error, Result};
use crate::fs::{self, Fs};
use crate::inspect::TableFile;
use crate::key::{KeyOrder, SequenceNumber};
use crate::leveldb::directory::TableNames;
use crate::leveldb::edit::LevelDbTable;
use crate::leveldb::names::{self, LevelDbFile};
use crate::leveldb::salvage::{Gap, Salvaged, salvage};
use crate::leveldb::split_key;
use crate::table::leveldb_meta;

use super::Loss;
use super::guide::Guide;

/// The tables that count.
#[derive(Default)]
pub(super) struct Tables {
    pub(super) list: Vec<FoundTable>,
    pub(super) losses: Vec<Loss>,
    pub(super) notes: Vec<String>,
}

/// A table of which something can be read.
pub(super) struct FoundTable {
    pub(super) name: String,
    pub(super) path: PathBuf,
    /// Where the manifest has it.
    pub(super) level: usize,
    /// Its number, and what was found: bounds of the entries that can be read.
    pub(super) table: LevelDbTable,
    pub(super) sequence_max: SequenceNumber,
    /// The file itself is whole.
    pub(super) is_sound: bool,
}

impl FoundTable {
    /// The table, if it is sound.
    pub(super) fn open(&self, fs: &dyn Fs, order: &KeyOrder) -> Result<TableFile> {
        open(fs, &self.path, &self.table, self.sequence_max, order)
    }
}

/// Opens the table that `table` describes.
pub(super) fn open(
    fs: &dyn Fs,
    path: &Path,
    table: &LevelDbTable,
    sequence_max: SequenceNumber,
    order: &KeyOrder,
) -> Result<TableFile> {
    let meta = leveldb_meta(table, sequence_max, order);
    let meta = meta.map_err(|what| Error::corruption(path, 0, what))?;
    let file = fs.open(path).map_err(|error| Error::io(path, "open", error))?;
    TableFile::of(file, path, &meta, order.clone())
}

impl Tables {
    pub(super) fn read(
        fs: &dyn Fs,
        directory: &Path,
        files: &[(String, LevelDbFile)],
        guide: &Guide,
        order: &KeyOrder,
    ) -> Result<Tables> {
        let mut reading = Reading { fs, directory, order, tables: Tables::default() };
        match guide.is_exact() {
            true => reading.named(files, guide)?,
            false => reading.unnamed(files, guide)?,
        }
        Ok(reading.tables)
    }

    pub(super) fn sound(&self) -> u64 {
        self.list.iter().filter(|table| table.is_sound).count() as u64
    }

    /// The newest number of an entry; 0 if there is none.
    pub(super) fn newest(&self) -> SequenceNumber {
        self.list.iter().map(|table| table.sequence_max).max().unwrap_or(0)
    }

    /// Notes that entries of a table may be missing: within `gap`, as far as it has
    /// ends, and within the bounds that the manifest states.
    fn lose(&mut self, name: &str, what: &str, gap: Gap, stated: Option<&LevelDbTable>) {
        let bound = |stored: &[u8]| split_key(stored).ok().map(|(key, _)| key.to_vec());
        self.losses.push(Loss {
            file: name.to_string(),
            what: what.to_string(),
            family: Some(db::DEFAULT_NAME.to_string()),
            from: gap.after.or_else(|| bound(&stated?.smallest)),
            to: gap.before.or_else(|| bound(&stated?.largest)),
            deletes: true,
            ..Loss::default()
        });
    }
}

struct Reading<'a> {
    fs: &'a dyn Fs,
    directory: &'a Path,
    order: &'a KeyOrder,
    tables: Tables,
}

impl Reading<'_> {
    /// The tables that the manifest names.
    fn named(&mut self, files: &[(String, LevelDbFile)], guide: &Guide) -> Result<()> {
        let names = TableNames::among(files);
        for (&number, (level, stated)) in &guide.state.tables {
            match names.of(number, *level) {
                Some(name) => self.examine(name, number, Some((*level, stated)))?,
                None => {
                    let (name, gap) = (names::table(number), Gap::default());
                    self.tables.lose(&name, "it is missing", gap, Some(stated));
                }
            }
        }
        Ok(())
    }

    /// All tables but those that are known to be out of use.
    fn unnamed(&mut self, files: &[(String, LevelDbFile)], guide: &Guide) -> Result<()> {
        for (name, kind) in files {
            if let LevelDbFile::Table(number) = kind
                && !guide.is_deleted(*number)
            {
                self.examine(name, *number, None)?;
            }
        }
        let doubt = "which tables were in use is not known for sure: deleted keys may be back, if \
                     tables that were compacted already are among those found";
        self.tables.notes.push(doubt.to_string());
        Ok(())
    }

    /// Reads all of a table, and keeps it if there is something in it. `stated` is what
    /// the manifest says of it.
    fn examine(
        &mut self,
        name: &str,
        number: u64,
        stated: Option<(usize, &LevelDbTable)>,
    ) -> Result<()> {
        let path = self.directory.join(name);
        let file = fs::read_all(self.fs, &path).map_err(|error| Error::io(&path, "read", error))?;
        let found = salvage(&file, self.order, &mut |_, _| Ok(()))?;
        let Salvaged { bounds, sequence_max, gaps, .. } = found;
        let is_whole = gaps.is_empty();
        for gap in gaps {
            self.tables.lose(name, "blocks cannot be read", gap, stated.map(|(_, table)| table));
        }
        let Some((smallest, largest)) = bounds else { return Ok(()) };
        let table = LevelDbTable { number, bytes: file.len() as u64, smallest, largest };
        let name = name.to_string();
        let level = stated.map_or(0, |(level, _)| level);
        let mut found = FoundTable { name, path, level, table, sequence_max, is_sound: false };
        // Index and filters may be damaged where all entries can be read.
        let verified = found.open(self.fs, self.order).and_then(|table| table.verify());
        match verified {
            Ok(()) => found.is_sound = is_whole,
            Err(error) if error.is_corruption() => self.tables.notes.push(error.to_string()),
            Err(error) => return Err(error),
        }
        self.tables.list.push(found);
        Ok(())
    }
}
