//! The tables of a damaged database: which there are, whose they are, and what
//! of them can be read.
//!
//! A table is known by its id, whatever its file is called.

use std::path::{Path, PathBuf};

use crate::db::DEFAULT_NAME;
use crate::error::{Error, Result};
use crate::filename::{self, FileKind};
use crate::fs::{Fs, ReadableFile, read_full_at};
use crate::inspect::TableFile;
use crate::key::{FileId, KeyOrder, SequenceNumber};
use crate::leveldb::edit::LevelDbTable;
use crate::leveldb::salvage as leveldb;
use crate::options::Options;
use crate::sync::Arc;
use crate::table::meta::TableMeta;
use crate::table::{
    Description, Salvaged, TableFamily, describe, is_leveldb, leveldb_meta, salvage, stated_id,
};
use crate::version::FamilyDescriptor;

use super::guide::Guide;
use super::numbers::Numbers;
use super::order_of;
use super::report::Loss;

/// The tables that count.
#[derive(Default)]
pub(super) struct Tables {
    pub(super) list: Vec<FoundTable>,
    pub(super) losses: Vec<Loss>,
    pub(super) notes: Vec<String>,
}

/// A table of which something can be read.
pub(super) struct FoundTable {
    pub(super) path: PathBuf,
    pub(super) file: Arc<dyn ReadableFile>,
    pub(super) family: u32,
    /// Where the manifest has it.
    pub(super) level: usize,
    pub(super) order: KeyOrder,
    pub(super) meta: TableMeta,
    pub(super) is_sound: bool,
}

/// A file that is called a table.
struct Candidate {
    number: u64,
    path: PathBuf,
    file: Arc<dyn ReadableFile>,
    id: Option<FileId>,
}

impl Candidate {
    /// A table that no manifest names: as new as any.
    fn table(&self, family: u32, order: KeyOrder, meta: TableMeta) -> FoundTable {
        let (path, file) = (self.path.clone(), Arc::clone(&self.file));
        let meta = TableMeta { number: self.number, ..meta };
        FoundTable { path, file, family, level: 0, order, meta, is_sound: true }
    }
}

impl Tables {
    pub(super) fn read(
        fs: &dyn Fs,
        directory: &Path,
        files: &[(String, u64)],
        guide: &mut Guide,
        options: &Options,
    ) -> Result<Tables> {
        let mut candidates = Vec::new();
        for (name, _) in files {
            let Some(FileKind::Table(number)) = filename::parse(name) else { continue };
            let path = directory.join(name);
            let file = fs.open(&path).map_err(|error| Error::io(&path, "open", error))?;
            let id = stated_id(&*file, &path);
            candidates.push(Candidate { number, path, file, id });
        }
        let mut tables = Tables::default();
        let taken = tables.take_named(directory, &candidates, guide, options)?;
        if !guide.is_exact() {
            for candidate in
                candidates.iter().filter(|candidate| !taken.contains(&candidate.number))
            {
                tables.take_unnamed(candidate, guide, options)?;
            }
            tables.notes.push(
                "which tables were in use is not known for sure: deleted keys may be back, and \
                 merged values may count an operand twice, if tables that were compacted already \
                 are among those found"
                    .to_string(),
            );
        }
        Ok(tables)
    }

    pub(super) fn sound(&self) -> usize {
        self.list.iter().filter(|table| table.is_sound).count()
    }

    pub(super) fn rewritten(&self) -> usize {
        self.list.len() - self.sound()
    }

    /// All entries of the family up to this number are in tables: it is the newest
    /// of them that was in a memtable. A compaction gives the numbers of tables that
    /// were ingested to those that it makes, so that the log must know it.
    pub(super) fn flushed_up_to(&self, family: u32, logged: &Numbers) -> SequenceNumber {
        let tables = self.list.iter().filter(|table| table.family == family);
        let flushed = tables.filter(|table| table.meta.sequence_override.is_none());
        let numbers = flushed.map(|table| table.meta.sequence_max);
        numbers.filter(|&number| logged.was_logged(number)).max().unwrap_or(0)
    }

    /// Takes the tables that the manifest names. Gives the numbers of the files
    /// that they are in.
    fn take_named(
        &mut self,
        directory: &Path,
        candidates: &[Candidate],
        guide: &Guide,
        options: &Options,
    ) -> Result<Vec<u64>> {
        let mut taken = Vec::new();
        for (number, (family, level, meta)) in guide.named() {
            let descriptor = &guide.state.families[&family].descriptor;
            let order = order_of(&descriptor.name, &descriptor.comparator, options)?;
            let has_id = |id: Option<FileId>| {
                let mut found = candidates.iter().filter(move |candidate| candidate.id == id);
                found.clone().find(|candidate| candidate.number == number).or_else(|| {
                    // Without an id only the name tells.
                    id.and_then(|_| found.next())
                })
            };
            let Some(found) = has_id(Some(meta.id)).or_else(|| has_id(None)) else {
                let what = match guide.is_exact() {
                    true => "it is missing",
                    false => "it is missing, or was compacted into others later",
                };
                let name = filename::table_path(directory, number);
                self.lose(&name, what, &descriptor.name, &meta);
                continue;
            };
            taken.push(found.number);
            let Candidate { path, file, .. } = found;
            let (path, file) = (path.clone(), Arc::clone(file));
            let table = FoundTable { path, file, family, level, order, meta, is_sound: true };
            self.examine(table, &descriptor.name)?;
        }
        Ok(taken)
    }

    /// Takes a table that no manifest names, by what it says of itself.
    fn take_unnamed(
        &mut self,
        candidate: &Candidate,
        guide: &mut Guide,
        options: &Options,
    ) -> Result<()> {
        let Candidate { number, path, file, .. } = candidate;
        if guide.is_deleted(*number) {
            return Ok(());
        }
        if is_leveldb(&**file, path)? {
            return self.take_unnamed_leveldb(candidate, guide, options);
        }
        let described = match describe(&**file, path) {
            Err(error) if error.is_corruption() => {
                self.losses.push(Loss {
                    file: file_name(path),
                    what: format!("whose it is cannot be read: {error}"),
                    deletes: true,
                    ..Loss::default()
                });
                return Ok(());
            }
            described => described?,
        };
        // What no manifest names is merged.
        described.check_rewritable(path)?;
        let Description { meta, order_name, family, prefix_extractor, .. } = described;
        let Some(TableFamily { id, name }) = family else {
            let mut loss = loss_of(path, "", "", &meta);
            loss.family = None;
            loss.what = "it was ingested: neither its family nor its number is in it; it can be \
                         ingested again"
                .to_string();
            self.losses.push(loss);
            return Ok(());
        };
        guide.add_family(FamilyDescriptor {
            id,
            name,
            comparator: order_name,
            prefix_extractor,
            ..FamilyDescriptor::default()
        });
        let descriptor = &guide.state.families[&id].descriptor;
        let order = order_of(&descriptor.name, &descriptor.comparator, options)?;
        self.examine(candidate.table(id, order, meta), &descriptor.name)
    }

    /// Takes a table that was adopted, and that no manifest names: those of LevelDB are
    /// of the default family.
    fn take_unnamed_leveldb(
        &mut self,
        candidate: &Candidate,
        guide: &mut Guide,
        options: &Options,
    ) -> Result<()> {
        let Candidate { number, path, file, .. } = candidate;
        let order = options.family_options(DEFAULT_NAME).order.clone();
        guide.add_family(FamilyDescriptor {
            name: DEFAULT_NAME.to_string(),
            comparator: order.name().to_string(),
            ..FamilyDescriptor::default()
        });
        let length = file.length().map_err(|error| Error::io(path, "read length of", error))?;
        let mut bytes = vec![0; length as usize];
        read_full_at(&**file, 0, &mut bytes).map_err(|error| Error::io(path, "read", error))?;
        let found = leveldb::salvage(&bytes, &order, &mut |_, _| Ok(()))?;
        let Some((smallest, largest)) = found.bounds else {
            self.lose(path, "nothing of it can be read", DEFAULT_NAME, &TableMeta::default());
            return Ok(());
        };
        let stated = LevelDbTable { number: *number, bytes: length, smallest, largest };
        let meta = leveldb_meta(&stated, found.sequence_max, &order);
        let meta = meta.expect("the keys that were found are in order");
        self.examine(candidate.table(0, order, meta), DEFAULT_NAME)
    }

    /// Reads all of a table, and keeps it if there is something in it.
    fn examine(&mut self, mut table: FoundTable, family: &str) -> Result<()> {
        let FoundTable { path, file, meta, order, .. } = &table;
        let opened = TableFile::of(Arc::clone(file), path, meta, order.clone());
        match opened.and_then(|opened| opened.verify()) {
            Ok(()) => {
                self.list.push(table);
                return Ok(());
            }
            Err(error) if error.is_corruption() => self.notes.push(error.to_string()),
            Err(error) => return Err(error),
        }
        let found = salvage(&**file, path, meta, order, &mut |_, _, _| Ok(()))?;
        let Salvaged { entries, gaps, range_deletes } = found;
        for gap in gaps {
            let mut loss = loss_of(path, "blocks cannot be read", family, meta);
            loss.from = gap.after.or(loss.from);
            loss.to = gap.before.or(loss.to);
            self.losses.push(loss);
        }
        if range_deletes.is_none() {
            self.lose(path, "its range deletes cannot be read", family, meta);
        }
        let has_deletes = range_deletes.is_some_and(|deletes| !deletes.is_empty());
        if entries > 0 || has_deletes {
            table.is_sound = false;
            self.list.push(table);
        }
        Ok(())
    }

    fn lose(&mut self, path: &Path, what: &str, family: &str, meta: &TableMeta) {
        self.losses.push(loss_of(path, what, family, meta));
    }
}

fn loss_of(path: &Path, what: &str, family: &str, meta: &TableMeta) -> Loss {
    Loss {
        file: file_name(path),
        what: what.to_string(),
        family: Some(family.to_string()),
        from: Some(meta.smallest.user_key.clone()),
        to: Some(meta.largest.user_key.clone()),
        sequences: None,
        deletes: meta.tombstones > 0 || meta.range_tombstones > 0,
    }
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}
