//! Compactions in the background and on request.
//! `pick` (pure) -> `run` -> `VersionEdit` -> `Versions::apply`

use crate::batch::FamilyId;
use crate::compact::pick::{self, Limits, Plan, RangeStep, RangeWalk, TombstoneLimits};
use crate::compact::retain::{Below, Retain};
use crate::compact::run::{Grandparents, NewTable, Outputs, write_tables};
use crate::cursor::Cursor;
use crate::error::{Error, Result};
use crate::key::SEQUENCE_MAX;
use crate::merge::{LevelCursor, MergeCursor, Source};
use crate::range_deletes::Fragments;
use crate::stats::Counter;
use crate::sync::{Arc, Mutex};
use crate::table::meta::TableMeta;
use crate::tables::TableFile;
use crate::version::VersionEdit;

use super::background::BackgroundState;
use super::engine::Engine;
use super::family::FamilyCore;
use super::view::View;

/// A planned compaction of one family.
pub(crate) struct Job {
    family: Arc<FamilyCore>,
    /// The view whose version the plan was made for.
    view: Arc<View>,
    plan: Plan,
}

impl Job {
    pub(crate) fn family(&self) -> FamilyId {
        self.family.id
    }

    pub(crate) fn plan(&self) -> &Plan {
        &self.plan
    }
}

/// What `pick` needs to know of a family's options, and of the moment.
fn limits(family: &FamilyCore) -> Limits {
    let tombstones = TombstoneLimits {
        percent: u64::from(family.options.tombstone_percent),
        age_seconds: family.options.tombstone_age_seconds,
        unix_seconds: family.shared.scheduler.unix_seconds(),
        oldest_snapshot: family.shared.snapshots.oldest().unwrap_or(SEQUENCE_MAX),
    };
    Limits {
        tombstones,
        level0_files: family.options.level0_compaction_files,
        level1_bytes: family.options.level1_bytes,
        multiplier: family.options.level_multiplier,
        table_bytes: family.options.table_bytes,
    }
}

impl Engine {
    /// A compaction of the family with the most to do, that does not touch a
    /// running one.
    pub(crate) fn pick_compaction(&self, state: &BackgroundState) -> Option<Job> {
        // A caller who compacts by hand works alone, but not at the price of
        // writers that stop until he is done.
        if state.manual > 0 && !self.pressure.is_high() {
            return None;
        }
        let families = self.families.load();
        let jobs = families.all().filter_map(|family| {
            let view = family.views.keep();
            let limits = limits(family);
            // `pick` judges range deletes by what they cover. A table that does
            // not open fails the compaction that needs it.
            let deleting = view.version.levels().iter().flat_map(|level| level.deleting());
            deleting.for_each(|file| drop(file.table()));
            let plan = pick::pick(&view.version, &limits, &state.running_of(family.id))?;
            let debt_bytes = pick::debt_bytes(&view.version, &limits);
            Some((debt_bytes, Job { family: Arc::clone(family), view, plan }))
        });
        jobs.max_by_key(|(debt_bytes, _)| *debt_bytes).map(|(_, job)| job)
    }

    /// Does what the plan says and installs the result.
    pub(crate) fn run_compaction(&self, job: &Job) -> Result<()> {
        if job.plan.trivial_move {
            return self.move_tables(job);
        }
        let created = Mutex::new(Vec::new());
        let added = self.rewrite(job, &created);
        let added = added.inspect_err(|_| self.remove_tables(&created.lock()))?;
        let mut edit = removal(job);
        let place = |meta| (job.family().0, job.plan.level_to, meta);
        edit.tables_added = added.into_iter().map(place).collect();
        self.install(job, edit)
    }

    fn move_tables(&self, job: &Job) -> Result<()> {
        let mut edit = removal(job);
        let moved = job.plan.tables();
        let place =
            |table: &Arc<TableFile>| (job.family().0, job.plan.level_to, table.meta.clone());
        edit.tables_added = moved.map(place).collect();
        self.shared.statistics.add(Counter::TrivialMoves, edit.tables_added.len() as u64);
        self.install(job, edit)
    }

    fn install(&self, job: &Job, edit: VersionEdit) -> Result<()> {
        self.versions.apply(edit, |_, version| {
            job.family.views.install(Arc::clone(version), None);
        })?;
        self.update_pressure();
        Ok(())
    }

    fn rewrite(&self, job: &Job, created: &Mutex<Vec<u64>>) -> Result<Vec<TableMeta>> {
        let (family, plan) = (&job.family, &job.plan);
        let order = family.order();
        let mut retain = self.retain(job)?;
        let created_unix_seconds = tombstones_from(plan);
        let begin = || {
            let table = self.begin_table(family, created)?;
            let created_unix_seconds = created_unix_seconds.unwrap_or(table.created_unix_seconds);
            Ok(NewTable { created_unix_seconds, ..table })
        };
        let table_bytes = family.options.table_bytes;
        let overlap_bytes_max = limits(family).grandparent_bytes_max();
        let grandparents = Grandparents::new(plan.grandparents.clone(), overlap_bytes_max);
        let outputs = Outputs::new(&begin, table_bytes, grandparents, order.clone());
        let operator = family.options.merge_operator.as_ref();
        // What a range delete covers as a whole is not even opened.
        let inputs = plan.inputs.each_ref().map(|tables| {
            let is_read = |table: &&Arc<TableFile>| !retain.drops_table(&table.meta);
            tables.iter().filter(is_read).cloned().collect::<Vec<_>>()
        });
        for table in inputs.iter().flatten() {
            table.table()?.check_rewritable()?;
        }
        let mut cursor = self.input_cursor(job, &inputs)?;
        let (tables, entries_in) = write_tables(&mut cursor, &mut retain, operator, outputs)?;
        self.count(job, &inputs, &tables, entries_in);
        Ok(tables)
    }

    /// What the compaction keeps, with the range deletes of all inputs.
    fn retain(&self, job: &Job) -> Result<Retain> {
        let snapshots = self.shared.snapshots.sequences();
        let mut deletes = Vec::new();
        for file in job.plan.tables().filter(|file| file.meta.range_tombstones > 0) {
            deletes.extend(file.table()?.range_deletes().deletes());
        }
        let deletes = Fragments::build(job.family.order(), deletes, &snapshots);
        let below = Below::outputs(&job.view.version, &job.plan);
        Ok(Retain::new(snapshots, below, deletes))
    }

    fn input_cursor(&self, job: &Job, inputs: &[Vec<Arc<TableFile>>; 2]) -> Result<impl Cursor> {
        let order = job.family.order();
        let context = job.family.context(false);
        let mut sources = Vec::new();
        for (side, tables) in inputs.iter().enumerate() {
            let level = if side == 0 { job.plan.level_from } else { job.plan.level_to };
            if level == 0 {
                for file in tables {
                    let cursor = file.table()?.cursor(context.clone());
                    sources.push(Source::Table(Box::new(cursor)));
                }
            } else if !tables.is_empty() {
                let tables: Arc<[_]> = tables.clone().into();
                let cursor = LevelCursor::new(tables, order.clone(), context.clone());
                sources.push(Source::Level(Box::new(cursor)));
            }
        }
        Ok(MergeCursor::new(sources, order.clone()))
    }

    fn count(
        &self,
        job: &Job,
        read: &[Vec<Arc<TableFile>>; 2],
        outputs: &[TableMeta],
        entries_in: u64,
    ) {
        let read: Vec<_> = read.iter().flatten().collect();
        let bytes_read = read.iter().map(|table| table.meta.bytes).sum();
        let tables_dropped = job.plan.tables().count() - read.len();
        let written: u64 = outputs.iter().map(|table| table.bytes).sum();
        let entries_out: u64 = outputs.iter().map(|table| table.entries).sum();
        let statistics = &self.shared.statistics;
        statistics.add(Counter::Compactions, 1);
        statistics.add(Counter::CompactionBytesRead, bytes_read);
        statistics.add(Counter::TablesDropped, tables_dropped as u64);
        statistics.add(Counter::CompactionBytesWritten, written);
        statistics.add(Counter::CompactionEntriesDropped, entries_in - entries_out.min(entries_in));
    }

    /// Drops the tables of a family that lie wholly in a range: how many.
    pub(crate) fn delete_files_in_range(
        self: &Arc<Self>,
        family: &Arc<FamilyCore>,
        begin: Option<&[u8]>,
        end: Option<&[u8]>,
    ) -> Result<u64> {
        self.health.check()?;
        if self.read_only {
            let cause = Box::new(Error::invalid("the database was opened for reading only"));
            return Err(Error::ReadOnly { cause });
        }
        // Held throughout, so that no compaction takes the tables meanwhile.
        let state = self.background.lock();
        if self.families.load().get(family.id).is_none() {
            return Err(Error::missing(format!("family {:?}", family.name)));
        }
        let version = Arc::clone(&family.views.keep().version);
        let dropped = pick::tables_inside(&version, begin, end, &state.running_of(family.id));
        if dropped.is_empty() {
            return Ok(0);
        }
        let numbers = dropped.iter().map(|(level, table)| (family.id.0, *level, table.meta.number));
        let edit = VersionEdit { tables_deleted: numbers.collect(), ..VersionEdit::default() };
        let installed = self.versions.apply(edit, |_, version| {
            family.views.install(Arc::clone(version), None);
        });
        drop(state);
        installed.inspect_err(|error| self.health.take(error))?;
        self.shared.statistics.add(Counter::TablesDeletedInRange, dropped.len() as u64);
        self.update_pressure();
        Ok(dropped.len() as u64)
    }

    /// Compacts a range of keys, level by level, to the deepest that has any.
    pub(crate) fn compact_range(
        self: &Arc<Self>,
        family: &Arc<FamilyCore>,
        from: Option<&[u8]>,
        to: Option<&[u8]>,
    ) -> Result<()> {
        self.flush(&[family.id])?;
        if self.families.load().get(family.id).is_none() {
            return Err(Error::missing(format!("family {:?}", family.name)));
        }
        self.background.lock().manual += 1;
        let result = self.compact_levels(family, from, to);
        self.background.lock().manual -= 1;
        self.background.notify();
        self.start_compactions();
        result
    }

    /// Background compactions are not started meanwhile unless level 0 gets too
    /// long; those that run may be in the way, and are waited for.
    fn compact_levels(
        self: &Arc<Self>,
        family: &Arc<FamilyCore>,
        from: Option<&[u8]>,
        to: Option<&[u8]>,
    ) -> Result<()> {
        let mut walk = RangeWalk::new(from, to);
        loop {
            let job = {
                let mut state = self.background.lock();
                loop {
                    self.health.check()?;
                    let view = family.views.keep();
                    let running = state.running_of(family.id);
                    match walk.next(&view.version, &limits(family), &running) {
                        RangeStep::Done => return Ok(()),
                        RangeStep::Wait => state = self.background.wait(state),
                        RangeStep::Run(plan) => {
                            let job = Job { family: Arc::clone(family), view, plan };
                            state.begin(&job);
                            break job;
                        }
                    }
                }
            };
            let result = self.run_compaction(&job);
            self.background.lock().end(&job);
            self.background.notify();
            result.inspect_err(|error| self.health.take(error))?;
        }
    }
}

/// When the oldest of the inputs with tombstones was created: how old a
/// tombstone is, is not forgotten when it moves down. `None` without any.
fn tombstones_from(plan: &Plan) -> Option<u64> {
    let tables = plan.tables().map(|table| &table.meta);
    let with_tombstones = tables.filter(|meta| meta.tombstones > 0 || meta.range_tombstones > 0);
    with_tombstones.map(|meta| meta.created_unix_seconds).min()
}

/// An edit that takes the plan's inputs out of their levels.
fn removal(job: &Job) -> VersionEdit {
    let mut edit = VersionEdit::default();
    for (side, tables) in job.plan.inputs.iter().enumerate() {
        let level = if side == 0 { job.plan.level_from } else { job.plan.level_to };
        let numbers = tables.iter().map(|table| (job.family().0, level, table.meta.number));
        edit.tables_deleted.extend(numbers);
    }
    edit
}
