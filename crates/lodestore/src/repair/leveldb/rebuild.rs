//! The new LevelDB database.
//!
//! With a manifest that says which files count, sound tables are linked to where they
//! were. Without one, entries of all tables and logs are merged into one level: their
//! numbers say which is the newest, whatever the age of the file that it is in.

use std::path::Path;

use crate::cursor::Cursor;
use crate::db;
use crate::error::{Error, Result};
use crate::fs::{self, Fs};
use crate::inspect::TableFile;
use crate::key::{Kind, kind_of};
use crate::leveldb::edit::{Edit, LevelDbTable};
use crate::leveldb::new_database::{NewDatabase, NewTable, level_of};
use crate::leveldb::salvage::salvage;
use crate::leveldb::{join_key, names};
use crate::merge::{MergeCursor, Source};
use crate::options::Options;

use super::LevelDbRepair;
use super::logs::FoundLog;
use super::tables::{FoundTable, open};

/// Writes all that can be read of a database to the empty directory `target`.
pub(super) fn write(damaged: &LevelDbRepair, target: &Path, options: &Options) -> Result<()> {
    let fs = &*options.fs;
    let mut style = options.family_options(db::DEFAULT_NAME).leveldb_style(&damaged.order);
    if damaged.tables.list.iter().any(|table| names::is_in_level_folder(&table.path)) {
        // Basho's fork would take filters of LevelDB's for its own.
        style.filter_bits_per_key = 0;
    }
    let new = NewDatabase::new(fs, target, style);
    let mut rebuild = Rebuild { damaged, fs, target, new, next_number: damaged.next_number };
    match damaged.guide.is_exact() {
        true => rebuild.take_over(),
        false => rebuild.merge(),
    }
}

struct Rebuild<'a> {
    damaged: &'a LevelDbRepair,
    fs: &'a dyn Fs,
    target: &'a Path,
    new: NewDatabase<'a>,
    next_number: u64,
}

impl Rebuild<'_> {
    /// A number that no file has.
    fn number(&mut self) -> u64 {
        self.next_number += 1;
        self.next_number - 1
    }

    /// Puts every table where the manifest has it, and what can be read of the logs
    /// into logs of the same numbers.
    fn take_over(&mut self) -> Result<()> {
        let mut added = Vec::new();
        for found in &self.damaged.tables.list {
            let table = match found.is_sound {
                true => {
                    db::link_or_copy(self.fs, &found.path, &self.new.file(&found.name)?)?;
                    found.table.clone()
                }
                // Under its own number, which is its age in level 0.
                false => self.rewrite(found, found.table.number, &found.name)?,
            };
            added.push((found.level, table));
        }
        for log in &self.damaged.logs.list {
            let cleaned = log.cleaned(self.fs)?;
            self.new.write_file(&log.name, &cleaned)?;
        }
        let state = &self.damaged.guide.state;
        self.finish(added, state.log_number, state.previous_log_number)
    }

    /// Writes what can be read of a damaged table to a new one.
    fn rewrite(&mut self, found: &FoundTable, number: u64, name: &str) -> Result<LevelDbTable> {
        let path = &found.path;
        let file = fs::read_all(self.fs, path).map_err(|error| Error::io(path, "read", error))?;
        let mut table = self.new.begin_table();
        salvage(&file, &self.damaged.order, &mut |key, value| {
            table.add(key, value);
            Ok(())
        })?;
        self.new.write_table(number, name, table)
    }

    /// Merges all that there is.
    fn merge(&mut self) -> Result<()> {
        let (mut sources, mut temporary) = (Vec::new(), Vec::new());
        for found in &self.damaged.tables.list {
            if found.is_sound {
                sources.push(found.open(self.fs, &self.damaged.order)?);
                continue;
            }
            let number = self.number();
            let name = names::table(number);
            let table = self.rewrite(found, number, &name)?;
            sources.push(self.open(&name, &table)?);
            temporary.push(name);
        }
        for log in &self.damaged.logs.list {
            if let Some((name, table)) = self.table_of(log)? {
                sources.push(self.open(&name, &table)?);
                temporary.push(name);
            }
        }
        let tables = self.merged(&sources)?;
        drop(sources);
        temporary.iter().try_for_each(|name| self.remove(name))?;
        let level = level_of(tables.iter().map(|table| table.bytes).sum());
        let no_log = self.number();
        self.finish(tables.into_iter().map(|table| (level, table)).collect(), no_log, 0)
    }

    fn open(&self, name: &str, table: &LevelDbTable) -> Result<TableFile> {
        let (path, last) = (self.target.join(name), self.damaged.last_sequence());
        open(self.fs, &path, table, last, &self.damaged.order)
    }

    /// Writes what a log holds to a table.
    fn table_of(&mut self, log: &FoundLog) -> Result<Option<(String, LevelDbTable)>> {
        let mut entries = log.entries(self.fs)?;
        let order = &self.damaged.order;
        entries.sort_by(|a, b| order.compare_entries((&a.0, a.1), (&b.0, b.1)));
        // A number that was given twice, in a log that was damaged, has one entry.
        entries.dedup_by(|a, b| (&a.0, a.1) == (&b.0, b.1));
        if entries.is_empty() {
            return Ok(None);
        }
        let mut table = self.new.begin_table();
        for (key, trailer, value) in &entries {
            table.add(&join_key(key, *trailer), value);
        }
        let number = self.number();
        let name = names::table(number);
        let table = self.new.write_table(number, &name, table)?;
        Ok(Some((name, table)))
    }

    /// The newest entry of every key, unless it deletes, in new tables.
    fn merged(&mut self, sources: &[TableFile]) -> Result<Vec<LevelDbTable>> {
        let order = &self.damaged.order;
        let cursors = sources.iter().map(|table| Source::Table(Box::new(table.cursor())));
        let mut cursor = MergeCursor::new(cursors.collect(), order.clone());
        let (mut tables, mut table) = (Vec::new(), self.new.begin_table());
        let mut last: Option<Vec<u8>> = None;
        cursor.seek_to_first();
        while cursor.valid() {
            let key = cursor.user_key();
            if last.as_ref().is_none_or(|last| order.compare(last, key).is_lt()) {
                last = Some(key.to_vec());
                if kind_of(cursor.trailer()) == Some(Kind::Put) {
                    table.add(&join_key(key, cursor.trailer()), cursor.value());
                }
            }
            if table.is_full() {
                let full = std::mem::replace(&mut table, self.new.begin_table());
                tables.push(self.write(full)?);
            }
            cursor.next();
        }
        cursor.status()?;
        if !table.is_empty() {
            tables.push(self.write(table)?);
        }
        Ok(tables)
    }

    fn write(&mut self, table: NewTable) -> Result<LevelDbTable> {
        let number = self.number();
        self.new.write_table(number, &names::table(number), table)
    }

    fn remove(&self, name: &str) -> Result<()> {
        let path = self.target.join(name);
        self.fs.remove(&path).map_err(|error| Error::io(&path, "remove", error))
    }

    fn finish(
        &mut self,
        added: Vec<(usize, LevelDbTable)>,
        log_number: u64,
        previous_log_number: u64,
    ) -> Result<()> {
        let manifest = self.number();
        let edit = Edit {
            comparator: Some(self.damaged.order.name().as_bytes().to_vec()),
            log_number: Some(log_number),
            previous_log_number: Some(previous_log_number),
            next_file_number: Some(self.next_number),
            last_sequence: Some(self.damaged.last_sequence()),
            added,
            ..Edit::default()
        };
        self.new.finish(manifest, &edit)
    }
}
