//! Flush: turn sealed memtables into level-0 tables.
//! memtable -> one table, or two -> `VersionEdit` -> `Versions::apply` -> old logs go
//!
//! Invariant: a log is retired only after the manifest record that names its
//! table is synced; a crash between leaves an orphan that the next open
//! removes.

use crate::batch::FamilyId;
use crate::budget::{AwaitedFlush, Charge, Item};
use crate::compact::pick::BOTTOM;
use crate::compact::retain::{Below, Retain};
use crate::compact::run::{Grandparents, NewTable, Outputs, Part, write_tables};
use crate::cursor::Cursor;
use crate::error::{Error, Result};
use crate::events::Event;
use crate::filename;
use crate::key::{FileId, Trailer};
use crate::latency::Operation;
use crate::limiter::Purpose;
use crate::memtable::Memtable;
use crate::options::LevelPlace;
use crate::range_deletes::Fragments;
use crate::stats::{Counter, LevelTraffic};
use crate::sync::{Arc, Mutex};
use crate::table::meta::TableMeta;
use crate::table::{TableBuilder, TableFamily};
use crate::version::VersionEdit;
use crate::wal::DurableLog;

use super::engine::Engine;
use super::family::FamilyCore;

/// A memtable of less than this part of a full one is one table.
const SMALL_PART: usize = 4;

/// Memtables that were sealed at one moment and become tables together.
pub(crate) struct SealGroup {
    pub(crate) members: Vec<(Arc<FamilyCore>, Arc<Memtable>)>,
    /// The first segment whose entries are not in these memtables.
    pub(crate) log_number: u64,
    /// Other families too have entries in the segments before that one.
    pub(crate) others_in_log: bool,
    /// Families that had nothing in memory then: no earlier segment matters to
    /// them.
    pub(crate) idle: Vec<FamilyId>,
    /// Tells others of the budget that memory will come back.
    pub(crate) _awaited: Arc<AwaitedFlush>,
}

impl SealGroup {
    /// All that two groups hold, to be installed in one step; `newer` was sealed
    /// after `self`, and with it everything that was in memory.
    pub(crate) fn with(&self, newer: &SealGroup) -> SealGroup {
        SealGroup {
            members: self.members.iter().chain(&newer.members).cloned().collect(),
            log_number: newer.log_number,
            others_in_log: false,
            idle: newer.idle.clone(),
            _awaited: Arc::clone(&newer._awaited),
        }
    }

    /// True if it is flushed with this group what `other` holds.
    pub(crate) fn holds(&self, other: &SealGroup) -> bool {
        let memtable = &other.members[0].1;
        self.members.iter().any(|(_, own)| Arc::ptr_eq(own, memtable))
    }
}

impl Engine {
    /// Writes a group to tables and installs them.
    pub(crate) fn flush_group(&self, group: &SealGroup) -> Result<()> {
        let begin = self.shared.scheduler.now();
        let created = Mutex::new(Vec::new());
        let edit = self.write_group(group, &created).and_then(|edit| {
            let durable_log = self.make_rest_durable(group)?;
            Ok(VersionEdit { durable_log, ..edit })
        });
        let edit = edit.inspect_err(|_| self.remove_tables(&created.lock()))?;
        let flushed: Vec<_> =
            group.members.iter().map(|(family, _)| summary(family, &edit)).collect();
        self.versions.apply(edit, |id, version| {
            let mut members = group.members.iter().filter(|(family, _)| family.id.0 == id);
            let flushed: Vec<_> = members.clone().map(|(_, memtable)| memtable).collect();
            if let Some((family, _)) = members.next() {
                family.views.install(Arc::clone(version), &flushed);
            }
        })?;
        let bytes = group.members.iter().map(|(_, memtable)| memtable.memory_bytes() as u64).sum();
        let end = self.shared.scheduler.now();
        self.background.lock().meters.flush.add(begin, end, bytes);
        let time = end.saturating_sub(begin);
        self.shared.count_time(Operation::Flush, time);
        for (family, tables, bytes) in flushed {
            self.shared.events.tell(Event::Flushed { family, tables, bytes, time });
        }
        self.update_pressure();
        self.logs.retire(self.versions.log_number_min());
        group.members.iter().for_each(|(family, _)| family.preload_tables());
        Ok(())
    }

    /// Once the tables are durable, so must be what the same batches wrote to
    /// other families: power loss would leave parts of them otherwise. Gives how
    /// far the log is durable then, for the manifest to know.
    fn make_rest_durable(&self, group: &SealGroup) -> Result<Option<DurableLog>> {
        match group.others_in_log {
            true => self.logs.sealed.sync_below(group.log_number).map(Some),
            false => Ok(None),
        }
    }

    fn write_group(&self, group: &SealGroup, created: &Mutex<Vec<u64>>) -> Result<VersionEdit> {
        let mut edit = VersionEdit::default();
        for (family, memtable) in &group.members {
            edit.log_numbers.push((family.id.0, group.log_number));
            for meta in self.write_memtable(family, memtable, created)? {
                edit.tables_added.push((family.id.0, 0, meta));
            }
        }
        edit.log_numbers.extend(group.idle.iter().map(|family| (family.0, group.log_number)));
        edit.last_sequence = Some(self.shared.visible.get());
        Ok(edit)
    }

    /// Writes what readers can still see of a memtable to tables of level 0: one, two
    /// where it has a wide gap, none if that is nothing.
    pub(crate) fn write_memtable(
        &self,
        family: &FamilyCore,
        memtable: &Arc<Memtable>,
        created: &Mutex<Vec<u64>>,
    ) -> Result<Vec<TableMeta>> {
        let snapshots = self.shared.snapshots.sequences();
        let deletes = memtable.range_deletes().deletes();
        let deletes = Fragments::build(family.order(), deletes, &snapshots);
        let mut tables = Vec::new();
        for part in parts(family, memtable) {
            let mut retain = Retain::new(snapshots.clone(), Below::Unknown, deletes.clone());
            let covers_older = covers_older(family, memtable, &part);
            let place = LevelPlace { level: 0, base: 1, covers_older };
            let begin = || self.begin_table(family, created, Purpose::Flush, place);
            let grandparents = Grandparents::default();
            let outputs = Outputs::new(&begin, u64::MAX, grandparents, family.order().clone());
            let (operator, mut cursor) = (family.merge_operator.as_ref(), memtable.cursor());
            let outputs = outputs.within(part);
            tables.extend(write_tables(&mut cursor, &mut retain, operator, outputs)?.0);
        }
        let statistics = &self.shared.statistics;
        statistics.add(Counter::Flushes, 1);
        let bytes_written = tables.iter().map(|table| table.bytes).sum();
        statistics.add(Counter::FlushBytes, bytes_written);
        statistics.add_traffic(0, LevelTraffic { bytes_written, ..LevelTraffic::default() });
        Ok(tables)
    }

    /// Creates a table file; its number goes to `created`, so that it can be
    /// removed if what follows fails.
    pub(crate) fn begin_table(
        &self,
        family: &FamilyCore,
        created: &Mutex<Vec<u64>>,
        purpose: Purpose,
        place: LevelPlace,
    ) -> Result<NewTable> {
        let number = self.versions.new_file_number();
        let path = filename::table_path(&self.shared.directory, number);
        created.lock().push(number);
        let file = self.shared.fs.create(&path).map_err(|e| Error::io(&path, "create", e))?;
        let file = self.limiter.limit(file, purpose);
        let memory = &self.shared.memory;
        let has_memory_limit = memory.budget().bytes_max().is_some();
        let buffers = Charge::new(memory, Item::Compactions);
        let mut settings = family.options().table_settings(place, has_memory_limit, buffers);
        if purpose == Purpose::Flush {
            // Level 0 is short-lived: it is not worth a dictionary.
            settings.dictionary_bytes = 0;
        }
        settings.family = Some(TableFamily { id: family.id.0, name: family.name.clone() });
        let id = FileId(self.shared.scheduler.random_u128());
        let builder = TableBuilder::new(file, &path, id, settings)?;
        Ok(NewTable::begin(number, self.shared.scheduler.unix_seconds(), builder))
    }

    /// Removes tables that were written but never installed.
    pub(crate) fn remove_tables(&self, numbers: &[u64]) {
        for &number in numbers {
            let path = filename::table_path(&self.shared.directory, number);
            // What stays behind is removed by the next open.
            let _ = self.shared.fs.remove(&path);
        }
    }
}

/// All of a memtable, or what lies before and behind its gap. One table of a queue, which
/// gains keys at one end and loses them at the other, would overlap all that lives between
/// them, and be compacted with it; apart, neither end has much below.
fn parts(family: &FamilyCore, memtable: &Arc<Memtable>) -> Vec<Part> {
    match gap(family, memtable) {
        None => vec![Part::default()],
        Some(cut) => {
            let before = Part { from: None, to: Some(cut.clone()) };
            vec![before, Part { from: Some(cut), to: None }]
        }
    }
}

/// A border of tables in a gap between two keys of a memtable that holds more than half of
/// the largest level, and more than the memtable; `None` for one that is small, which would
/// be two smaller ones.
fn gap(family: &FamilyCore, memtable: &Arc<Memtable>) -> Option<Vec<u8>> {
    let is_small = memtable.memory_bytes() < family.options().memtable_bytes / SMALL_PART;
    if is_small || memtable.has_range_deletes() {
        return None;
    }
    let version = Arc::clone(&family.views.load().version);
    let level = (1..=BOTTOM).map(|level| version.level(level)).max_by_key(|level| level.bytes())?;
    // Whatever holds half of the bytes holds this table.
    let cut = &level.middle()?.meta.smallest.user_key;
    let [mut before, mut after] = [memtable.cursor(), memtable.cursor()];
    before.seek_for_prev(cut, Trailer::MAX);
    after.seek(cut, Trailer::MAX);
    if !before.valid() || !after.valid() {
        return None;
    }
    let bytes = level.bytes_between(family.order(), before.user_key(), after.user_key());
    let is_wide = bytes > level.bytes() / 2 && bytes >= memtable.memory_bytes() as u64;
    is_wide.then(|| cut.clone())
}

/// True if tables have keys between the first and the last of a memtable's `part`. Where
/// they have not, as in a load in order, its table may stay all there is.
fn covers_older(family: &FamilyCore, memtable: &Arc<Memtable>, part: &Part) -> bool {
    let [mut first, mut last] = [memtable.cursor(), memtable.cursor()];
    match &part.from {
        Some(from) => first.seek(from, Trailer::MAX),
        None => first.seek_to_first(),
    }
    match &part.to {
        Some(to) => last.seek_for_prev(to, Trailer::MAX),
        None => last.seek_to_last(),
    }
    if !first.valid() {
        return false;
    }
    let (first, last) = (Some(first.user_key()), Some(last.user_key()));
    let version = Arc::clone(&family.views.load().version);
    (0..=BOTTOM).any(|level| version.overlaps(level, first, last))
}

/// A family's name, how many tables `edit` adds to it, and their bytes.
fn summary<'a>(family: &'a FamilyCore, edit: &VersionEdit) -> (&'a str, usize, u64) {
    let added = edit.tables_added.iter().filter(|(id, _, _)| *id == family.id.0);
    let (count, bytes) = added.fold((0, 0), |(n, bytes), (_, _, meta)| (n + 1, bytes + meta.bytes));
    (&family.name, count, bytes)
}
