//! The new directory: tables taken over or rewritten and one segment of the log, or all
//! of these merged; a first manifest.

use std::collections::BTreeMap;
use std::path::Path;

use crate::batch::{FamilyId, WriteBatch};
use crate::budget::{Account, Charge, Item};
use crate::coding::COUNTER_MAX;
use crate::compact::pick::BOTTOM;
use crate::compact::retain::{Below, Retain};
use crate::compact::run::{Grandparents, NewTable, Outputs, write_tables};
use crate::cursor::Cursor;
use crate::db;
use crate::error::{Error, Result};
use crate::filename;
use crate::inspect::TableFile;
use crate::key::{FileId, Kind, SequenceNumber, Trailer, trailer};
use crate::memtable::Memtable;
use crate::merge::{MergeCursor, Source};
use crate::options::{LevelPlace, Options};
use crate::range_deletes::Fragments;
use crate::record::Failure;
use crate::scheduler::{system_random_u128, system_unix_seconds};
use crate::sync::Arc;
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::table::meta::TableMeta;
use crate::table::{TableBuilder, TableFamily, TableSettings, salvage};
use crate::version::state::State;
use crate::version::{FamilyDescriptor, Manifest, ManifestIdentity};
use crate::wal::{DurableLog, Room, SegmentHeader, SegmentWriter};

use super::order_of;
use super::ours::Ours;
use super::tables::FoundTable;

/// A batch of the new log is ended at this size.
const BATCH_BYTES: usize = 1 << 20;

/// Writes all that can be read of a database to the empty directory `target`.
pub(super) fn write(
    damaged: &Ours,
    files: &[(String, u64)],
    options: &Options,
    target: &Path,
) -> Result<()> {
    let mut state = damaged.guide.state.clone();
    state.clear_tables();
    let next = files.iter().filter_map(|(name, _)| filename::number_of(name)).max();
    let next = state.next_file_number.max(next.unwrap_or(0) + 1);
    let tables = &damaged.tables.list;
    let newest = tables.iter().map(|table| table.meta.newest_sequence()).max().unwrap_or(0);
    state.last_sequence = state.last_sequence.max(newest).max(damaged.log.last_sequence);
    let previous = damaged.guide.identity.unwrap_or_else(|| ManifestIdentity {
        database_id: FileId(system_random_u128()),
        ..ManifestIdentity::default()
    });
    let identity = ManifestIdentity {
        number: next,
        id: FileId(system_random_u128()),
        predecessor: previous.id,
        created_unix_seconds: system_unix_seconds(),
        // The log may know of edits that no manifest has any more.
        edit: previous.edit.max(damaged.log.manifest_edit.min(COUNTER_MAX)),
        ..previous
    };
    let next_number = AtomicU64::new(next + 1);
    let rebuild = Rebuild { damaged, target, options, next_number };
    let log_number = rebuild.number();
    state.families.values_mut().for_each(|family| family.log_number = log_number);
    state.durable_log = DurableLog::default();
    match damaged.guide.is_exact() {
        true => {
            rebuild.take_over(&mut state)?;
            rebuild.write_log(log_number, &mut state, &identity)?;
        }
        false => rebuild.merge(&mut state)?,
    }
    state.next_file_number = rebuild.number();
    let fs = &options.fs;
    let synced = fs.sync_directory(target);
    synced.map_err(|error| Error::io(target, "sync directory", error))?;
    Manifest::create(fs, target, identity, &state).map(|_| ())
}

struct Rebuild<'a> {
    damaged: &'a Ours,
    target: &'a Path,
    options: &'a Options,
    next_number: AtomicU64,
}

impl Rebuild<'_> {
    /// A number that no file has.
    fn number(&self) -> u64 {
        self.next_number.fetch_add(1, Ordering::Relaxed)
    }

    /// Puts every table where the manifest has it.
    fn take_over(&self, state: &mut State) -> Result<()> {
        for table in &self.damaged.tables.list {
            let family = state.families.get_mut(&table.family).expect("tables are of families");
            let meta = match table.is_sound {
                true => {
                    let to = filename::table_path(self.target, table.meta.number);
                    db::link_or_copy(&*self.options.fs, &table.path, &to)?;
                    table.meta.clone()
                }
                false => self.rewrite(table, &family.descriptor)?,
            };
            family.tables.insert(meta.number, (table.level, meta));
        }
        Ok(())
    }

    /// Writes what can be read of a damaged table to a new one.
    fn rewrite(&self, table: &FoundTable, family: &FamilyDescriptor) -> Result<TableMeta> {
        let FoundTable { path, file, order, meta, level, .. } = table;
        let mut new = self.begin_table(family, *level)?;
        let mut add =
            |key: &[u8], trailer: Trailer, value: &[u8]| new.builder.add(key, trailer, value);
        let found = salvage(&**file, path, meta, order, &mut add)?;
        new.builder.set_range_deletes(found.range_deletes.unwrap_or_default());
        new.with_tombstones_from(meta.tombstones_unix_seconds).finish()
    }

    fn begin_table(&self, family: &FamilyDescriptor, level: usize) -> Result<NewTable> {
        let number = self.number();
        let path = filename::table_path(self.target, number);
        let file = self.options.fs.create(&path);
        let file = file.map_err(|error| Error::io(&path, "create", error))?;
        let options = self.options.family_options(&family.name);
        let buffers = Charge::new(&Account::unlimited(), Item::Compactions);
        let place = LevelPlace { level, base: level.max(1), covers_older: false };
        let settings = TableSettings {
            order: order_of(&family.name, &family.comparator, self.options)?,
            family: Some(TableFamily { id: family.id, name: family.name.clone() }),
            ..options.table_settings(place, false, buffers)
        };
        let builder = TableBuilder::new(file, &path, FileId(system_random_u128()), settings)?;
        Ok(NewTable::begin(number, system_unix_seconds(), builder))
    }

    /// Merges all tables of each family, and what the log has, into one level: their
    /// order is not known, but that of their entries is. What the log has may be in
    /// tables already.
    fn merge(&self, state: &mut State) -> Result<()> {
        let logged = self.logged(state)?;
        for (&id, family) in &mut state.families {
            let descriptor = family.descriptor.clone();
            let of_family = self.damaged.tables.list.iter().filter(|table| table.family == id);
            let mut sources = Vec::new();
            let mut temporary = Vec::new();
            for table in of_family {
                let (path, meta) = match table.is_sound {
                    true => (table.path.clone(), table.meta.clone()),
                    false => {
                        let meta = self.rewrite(table, &descriptor)?;
                        let path = filename::table_path(self.target, meta.number);
                        temporary.push(path.clone());
                        (path, meta)
                    }
                };
                sources.push(self.open(&path, &meta, &descriptor)?);
            }
            for meta in self.merge_family(&sources, logged.get(&id), &descriptor)? {
                family.tables.insert(meta.number, (BOTTOM, meta));
            }
            for path in temporary {
                let removed = self.options.fs.remove(&path);
                removed.map_err(|error| Error::io(&path, "remove", error))?;
            }
        }
        Ok(())
    }

    /// What the log has of each family.
    fn logged(&self, state: &State) -> Result<BTreeMap<u32, Arc<Memtable>>> {
        let (mut logged, mut writers) = (BTreeMap::new(), BTreeMap::new());
        for FamilyId(id) in &self.damaged.log.families {
            let FamilyDescriptor { name, comparator, .. } = &state.families[id].descriptor;
            let order = order_of(name, comparator, self.options)?;
            let (memtable, writer) = Memtable::new(order, &Account::unlimited());
            logged.insert(*id, memtable);
            writers.insert(*id, writer);
        }
        self.damaged.log.visit(
            &mut |sequence, family, kind, key, value| {
                let writer = writers.get_mut(&family.0).expect("its families were counted");
                match kind {
                    Kind::RangeDelete => writer.delete_range(key, value, sequence),
                    _ => writer.insert(key, trailer(sequence, kind), value),
                }
                Ok(())
            },
            &mut |_| {},
        )?;
        Ok(logged)
    }

    fn open(&self, path: &Path, meta: &TableMeta, family: &FamilyDescriptor) -> Result<TableFile> {
        let file = self.options.fs.open(path).map_err(|error| Error::io(path, "open", error))?;
        TableFile::of(file, path, meta, order_of(&family.name, &family.comparator, self.options)?)
    }

    fn merge_family(
        &self,
        tables: &[TableFile],
        logged: Option<&Arc<Memtable>>,
        family: &FamilyDescriptor,
    ) -> Result<Vec<TableMeta>> {
        let order = order_of(&family.name, &family.comparator, self.options)?;
        let deletes = tables.iter().flat_map(|table| table.fragments().deletes());
        let deletes = deletes.chain(logged.iter().flat_map(|log| log.range_deletes().deletes()));
        let deletes = Fragments::build(&order, deletes, &[]);
        let cursors = tables.iter().map(|table| Source::Table(Box::new(table.cursor())));
        let cursors = cursors.chain(logged.iter().map(|log| Source::Memtable(log.cursor())));
        let merged = MergeCursor::new(cursors.collect(), order.clone());
        let begin = || self.begin_table(family, BOTTOM);
        let options = self.options.family_options(&family.name);
        let outputs = Outputs::new(&begin, options.table_bytes, Grandparents::default(), order);
        // Nothing lies below that could be deleted; yet what is found is kept.
        let mut retain = Retain::new(Vec::new(), Below::Unknown, deletes);
        let mut cursor = Distinct { cursor: merged, key: Vec::new() };
        let (tables, _) = write_tables(&mut cursor, &mut retain, None, outputs)?;
        Ok(tables)
    }

    /// Writes the entries of the log that no table holds to one new segment.
    fn write_log(&self, number: u64, state: &mut State, identity: &ManifestIdentity) -> Result<()> {
        if self.damaged.log.entries == 0 {
            return Ok(());
        }
        let header = SegmentHeader {
            number,
            id: FileId(system_random_u128()),
            database: identity.database_id,
            manifest_id: identity.id,
            manifest_edit: identity.edit,
            first_sequence: 0,
            predecessor: None,
            short_records: true,
        };
        let path = filename::log_path(self.target, number);
        let fs = &self.options.fs;
        let writer = SegmentWriter::create(fs, &path, &header, None, Room::AsNeeded)?;
        let mut batches = Batches { writer, batch: WriteBatch::new(), next: 0 };
        self.damaged.log.visit(
            &mut |sequence, family, kind, key, value| {
                batches.add(sequence, family, kind, key, value)
            },
            &mut |_| {},
        )?;
        batches.end()?;
        batches.writer.sync().map_err(Failure::into_error)?;
        state.durable_log = batches.writer.durable();
        Ok(())
    }
}

/// Entries on their way to the log, each with the number that it had.
struct Batches {
    writer: SegmentWriter,
    batch: WriteBatch,
    /// The number of the next entry of the batch.
    next: SequenceNumber,
}

impl Batches {
    fn add(
        &mut self,
        sequence: SequenceNumber,
        family: FamilyId,
        kind: Kind,
        key: &[u8],
        value: &[u8],
    ) -> Result<()> {
        if sequence != self.next || self.batch.bytes() > BATCH_BYTES {
            self.end()?;
        }
        if self.batch.is_empty() {
            self.batch.set_sequence(sequence);
        }
        match kind {
            Kind::Put => self.batch.put_in(family, key, value),
            Kind::Merge => self.batch.merge_in(family, key, value),
            Kind::Delete => self.batch.delete_in(family, key),
            Kind::SingleDelete => self.batch.single_delete_in(family, key),
            Kind::RangeDelete => self.batch.delete_range_in(family, key, value),
        }
        self.next = sequence + 1;
        Ok(())
    }

    fn end(&mut self) -> Result<()> {
        if !self.batch.is_empty() {
            self.batch.check()?;
            self.writer.append(self.batch.as_bytes()).map_err(Failure::into_error)?;
            self.batch.clear();
        }
        Ok(())
    }
}

/// A merged cursor without what several sources hold: a table and the one that
/// it was compacted into may both be there, and so may a table and its log. Forwards
/// only.
struct Distinct {
    cursor: MergeCursor,
    key: Vec<u8>,
}

impl Cursor for Distinct {
    fn valid(&self) -> bool {
        self.cursor.valid()
    }
    fn seek_to_first(&mut self) {
        self.cursor.seek_to_first();
    }
    fn seek_to_last(&mut self) {
        self.cursor.seek_to_last();
    }
    fn seek(&mut self, user_key: &[u8], trailer: Trailer) {
        self.cursor.seek(user_key, trailer);
    }
    fn seek_for_prev(&mut self, user_key: &[u8], trailer: Trailer) {
        self.cursor.seek_for_prev(user_key, trailer);
    }
    fn next(&mut self) {
        let trailer = self.cursor.trailer();
        self.key.clear();
        self.key.extend_from_slice(self.cursor.user_key());
        loop {
            self.cursor.next();
            let is_same = self.cursor.valid()
                && self.cursor.trailer() == trailer
                && self.cursor.user_key() == self.key;
            if !is_same {
                return;
            }
        }
    }
    fn prev(&mut self) {
        self.cursor.prev();
    }
    fn user_key(&self) -> &[u8] {
        self.cursor.user_key()
    }
    fn trailer(&self) -> Trailer {
        self.cursor.trailer()
    }
    fn value(&self) -> &[u8] {
        self.cursor.value()
    }
    fn status(&self) -> Result<()> {
        self.cursor.status()
    }
}
