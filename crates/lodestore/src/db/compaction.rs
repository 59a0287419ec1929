//! Compactions in the background and on request.
//! `pick` (pure) -> `run` -> `VersionEdit` -> `Versions::apply`

use std::time::Duration;

use crate::batch::FamilyId;
use crate::budget::{Charge, Item};
use crate::compact::pick::{
    self, BOTTOM, Limits, Plan, RangeStep, RangeWalk, Running, Targets, TombstoneLimits,
};
use crate::compact::retain::{Below, Retain};
use crate::compact::run::{Grandparents, Outputs, Part, write_tables};
use crate::cursor::Cursor;
use crate::error::{Error, Result};
use crate::events::Event;
use crate::key::{SEQUENCE_MAX, SequenceNumber};
use crate::latency::Operation;
use crate::limiter::Purpose;
use crate::merge::{LevelCursor, MergeCursor, Source};
use crate::options::{FamilyOptions, LevelPlace};
use crate::range_deletes::Fragments;
use crate::stats::{Counter, LevelTraffic, Statistics};
use crate::sync::Arc;
use crate::table::ReadContext;
use crate::table::meta::TableMeta;
use crate::tables::TableFile;
use crate::version::{Version, VersionEdit};

use super::background::BackgroundState;
use super::engine::Engine;
use super::family::FamilyCore;
use super::parts::Parts;

/// A planned compaction of one family.
#[derive(Clone)]
pub(crate) struct Job {
    family: Arc<FamilyCore>,
    /// What the plan was made for; not the whole view, whose memtables may be
    /// flushed and freed meanwhile.
    version: Arc<Version>,
    plan: Plan,
    /// What it has read so far; apart from what lookups and cursors read.
    reads: Arc<Statistics>,
}

impl Job {
    pub(crate) fn family(&self) -> FamilyId {
        self.family.id
    }

    pub(crate) fn new(family: &Arc<FamilyCore>, version: Arc<Version>, plan: Plan) -> Job {
        Job { family: Arc::clone(family), version, plan, reads: Arc::default() }
    }

    pub(crate) fn plan(&self) -> &Plan {
        &self.plan
    }

    pub(crate) fn reads(&self) -> &Arc<Statistics> {
        &self.reads
    }

    /// A table is in one plan at a time: its first input names a job.
    pub(crate) fn number(&self) -> u64 {
        self.plan.tables().next().expect("a plan has inputs").meta.number
    }

    /// Bytes that writers wrote and that leave level 0.
    pub(crate) fn user_bytes(&self) -> u64 {
        let leaving = if self.plan.level_from == 0 { &self.plan.inputs[0][..] } else { &[] };
        leaving.iter().map(|t| t.meta.key_bytes.saturating_add(t.meta.value_bytes)).sum()
    }
}

/// How far a compaction had come when it failed.
pub(crate) enum Failed {
    /// Nothing has changed: its inputs are what they were, its outputs gone.
    BeforeInstalling(Error),
    /// It is not known whether its edit is durable.
    Installing(Error),
}

/// What comes of a compaction.
pub(crate) type Outcome = std::result::Result<(), Failed>;

/// What `pick` needs to know of a family's options, and of the moment.
pub(crate) fn limits(family: &FamilyCore) -> Limits {
    let options = family.options();
    let tombstones = TombstoneLimits {
        percent: u64::from(options.tombstone_percent),
        age_seconds: options.tombstone_age_seconds,
        unix_seconds: family.shared.scheduler.unix_seconds(),
        oldest_snapshot: family.shared.snapshots.oldest().unwrap_or(SEQUENCE_MAX),
    };
    Limits {
        tombstones,
        level0_files: options.level0_compaction_files,
        level0_urgent_files: options.level0_slowdown_files.midpoint(options.level0_stop_files),
        level1_bytes: level1_bytes(&options),
        multiplier: options.level_multiplier,
        table_bytes: options.table_bytes,
        at_rest: false,
    }
}

/// What the sizes of levels grow from: no more than what level 0 gathers before it
/// is compacted. A larger unit would have each compaction rewrite many times what
/// it takes down.
fn level1_bytes(options: &FamilyOptions) -> u64 {
    let gathered = options.memtable_bytes.saturating_mul(options.level0_compaction_files);
    options.level1_bytes.min(gathered as u64)
}

impl Engine {
    /// A compaction of the family with the most to do, that does not touch a
    /// running one.
    pub(crate) fn pick_compaction(&self, state: &BackgroundState) -> Option<Job> {
        self.pick_by(state, pick::pick)
    }

    fn pick_by(
        &self,
        state: &BackgroundState,
        pick: impl Fn(&Version, &Limits, &Running) -> Option<Plan>,
    ) -> Option<Job> {
        // A caller who compacts by hand works alone, but not at the price of
        // writers that stop until he is done.
        if state.manual > 0 && !state.compactions_are_behind {
            return None;
        }
        let families = self.families.load();
        let jobs = families.all().filter_map(|family| {
            let version = Arc::clone(&family.views.load().version);
            let limits = Limits { at_rest: state.is_at_rest, ..limits(family) };
            // `pick` judges range deletes by what they cover. A table that does
            // not open fails the compaction that needs it.
            let deleting = version.levels().iter().flat_map(|level| level.deleting());
            deleting.for_each(|file| drop(file.table()));
            let plan = pick(&version, &limits, &state.running_of(family.id))?;
            let debt_bytes = pick::debt_bytes(&version, &limits);
            Some((debt_bytes, Job::new(family, version, plan)))
        });
        jobs.max_by_key(|(debt_bytes, _)| *debt_bytes).map(|(_, job)| job)
    }

    /// Does what the plan says and installs the result.
    pub(crate) fn run_compaction(self: &Arc<Self>, job: &Job) -> Outcome {
        // It may have waited behind those of other databases.
        self.check_open().map_err(Failed::BeforeInstalling)?;
        if job.plan.trivial_move {
            return self.move_tables(job);
        }
        let added = self.rewrite_all(job).map_err(Failed::BeforeInstalling)?;
        let mut edit = removal(job);
        let place = |meta| (job.family().0, job.plan.level_to, meta);
        edit.tables_added = added.into_iter().map(place).collect();
        self.install(job, edit)
    }

    /// Between two tables of a compaction of a deeper level: if level 0 is due
    /// and all threads are taken, this one sees to it first.
    fn let_level0_go_first(self: &Arc<Self>, job: &Job) {
        if job.plan.level_from == 0 {
            return;
        }
        let first = {
            let mut state = self.background.lock();
            let has_thread = state.threads_taken() < self.shared.scheduler.steady_threads();
            if has_thread || !self.may_compact(&state) {
                return;
            }
            let Some(first) = self.pick_by(&state, pick::pick_level0) else { return };
            state.begin(&first, self.shared.scheduler.now());
            first
        };
        let result = self.run_compaction(&first);
        self.finish_compaction(first, result);
    }

    fn move_tables(&self, job: &Job) -> Outcome {
        let mut edit = removal(job);
        let moved = job.plan.tables();
        let place =
            |table: &Arc<TableFile>| (job.family().0, job.plan.level_to, table.meta.clone());
        edit.tables_added = moved.map(place).collect();
        let statistics = &self.shared.statistics;
        statistics.add(Counter::TrivialMoves, edit.tables_added.len() as u64);
        let bytes_moved = job.plan.bytes();
        let moved = LevelTraffic { bytes_moved, ..LevelTraffic::default() };
        statistics.add_traffic(job.plan.level_to, moved);
        self.install(job, edit)
    }

    fn install(&self, job: &Job, edit: VersionEdit) -> Outcome {
        let tables_out = edit.tables_added.len();
        let bytes_out = edit.tables_added.iter().map(|(_, _, meta)| meta.bytes).sum();
        let installed = self.versions.apply(edit, |_, version| {
            job.family.views.install(Arc::clone(version), &[]);
        });
        installed.map_err(Failed::Installing)?;
        let end = self.shared.scheduler.now();
        let begin = self.background.lock().measure(job, end);
        let time = begin.map_or(Duration::ZERO, |begin| end.saturating_sub(begin));
        if !job.plan.trivial_move && begin.is_some() {
            self.shared.count_time(Operation::Compaction, time);
        }
        self.update_pressure();
        job.family.preload_tables();
        let (family, plan) = (&job.family.name[..], &job.plan);
        let levels = (plan.level_from, plan.level_to);
        self.shared.events.tell(match plan.trivial_move {
            true => Event::Moved { family, levels, tables: tables_out, bytes: bytes_out },
            false => Event::Compacted {
                family,
                levels,
                tables_in: plan.tables().count(),
                bytes_in: plan.bytes(),
                tables_out,
                bytes_out,
                time,
            },
        });
        Ok(())
    }

    /// Rewrites the inputs, in parts if that pays and threads are free. After
    /// a failure nothing of it is left.
    fn rewrite_all(self: &Arc<Self>, job: &Job) -> Result<Vec<TableMeta>> {
        let basis = Basis::of(job, self.shared.snapshots.sequences())?;
        for table in basis.read.iter().flatten() {
            table.table()?.check_rewritable()?;
        }
        let (order, table_bytes) = (job.family.order(), job.family.options().table_bytes);
        let cuts = |parts| pick::cuts(&job.plan, order, parts, table_bytes);
        let helpers = self.take_helpers(cuts(self.shared.scheduler.steady_threads()).len());
        let parts = Parts::new(job.clone(), basis, cuts(helpers + 1));
        if helpers > 0 {
            self.shared.statistics.add(Counter::CompactionParts, parts.count() as u64);
        }
        let written = self.do_parts(&parts, helpers);
        let (tables, entries_in) = written.inspect_err(|_| {
            self.remove_tables(&parts.created.lock());
        })?;
        self.count(job, &parts.basis.read, &tables, entries_in);
        Ok(tables)
    }

    /// Rewrites one part; gives its tables and the number of entries read.
    pub(crate) fn rewrite(
        self: &Arc<Self>,
        parts: &Parts,
        part: &Part,
    ) -> Result<(Vec<TableMeta>, u64)> {
        let Parts { job, basis, created, .. } = parts;
        let (family, plan) = (&job.family, &job.plan);
        let below = Below::outputs(&job.version, plan);
        let mut retain = Retain::new(basis.snapshots.clone(), below, basis.deletes.clone());
        let tombstones_from = tombstones_from(plan);
        let begin = || {
            self.let_level0_go_first(job);
            let base = Targets::of(&job.version, &limits(family)).base;
            let covers_older = plan.level_to < BOTTOM;
            let place = LevelPlace { level: plan.level_to, base, covers_older };
            let table = self.begin_table(family, created, Purpose::Compaction, place)?;
            Ok(match tombstones_from {
                Some(from) => table.with_tombstones_from(from),
                None => table,
            })
        };
        let table_bytes = family.options().table_bytes;
        let overlap_bytes_max = limits(family).grandparent_bytes_max();
        let grandparents = Grandparents::new(plan.grandparents.clone(), overlap_bytes_max);
        let go_on = || {
            parts.check()?;
            self.check_open()
        };
        let outputs = Outputs::new(&begin, table_bytes, grandparents, family.order().clone());
        let outputs = outputs.while_allowed(&go_on).within(part.clone());
        let operator = family.merge_operator.as_ref();
        let mut cursor = self.input_cursor(job, &basis.read)?;
        write_tables(&mut cursor, &mut retain, operator, outputs)
    }

    fn input_cursor(&self, job: &Job, inputs: &[Vec<Arc<TableFile>>; 2]) -> Result<impl Cursor> {
        let order = job.family.order();
        let buffers = Charge::new(&self.shared.memory, Item::Compactions);
        let statistics = Arc::clone(&job.reads);
        let context = ReadContext { buffers, statistics, ..job.family.context(false).clone() };
        let mut sources = Vec::new();
        for (side, tables) in inputs.iter().enumerate() {
            let level = if side == 0 { job.plan.level_from } else { job.plan.level_to };
            if level == 0 {
                // All of them are walked side by side, of another level one at a time.
                let buffers = context.buffers.clone().divided(tables.len());
                let context = ReadContext { buffers, ..context.clone() };
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
        let statistics = &self.shared.statistics;
        for (level, tables) in [job.plan.level_from, job.plan.level_to].into_iter().zip(read) {
            let bytes_read = tables.iter().map(|table| table.meta.bytes).sum();
            statistics.add_traffic(level, LevelTraffic { bytes_read, ..LevelTraffic::default() });
        }
        let bytes_written = outputs.iter().map(|table| table.bytes).sum();
        let written = LevelTraffic { bytes_written, ..LevelTraffic::default() };
        statistics.add_traffic(job.plan.level_to, written);
        let read: Vec<_> = read.iter().flatten().collect();
        let bytes_read = read.iter().map(|table| table.meta.bytes).sum();
        let tables_dropped = job.plan.tables().count() - read.len();
        let entries_out: u64 = outputs.iter().map(|table| table.entries).sum();
        statistics.add(Counter::Compactions, 1);
        statistics.add(Counter::CompactionBytesRead, bytes_read);
        statistics.add(Counter::TablesDropped, tables_dropped as u64);
        statistics.add(Counter::CompactionBytesWritten, bytes_written);
        statistics.add(Counter::CompactionEntriesDropped, entries_in - entries_out.min(entries_in));
    }

    /// Drops the tables of a family that lie wholly in a range: how many.
    pub(crate) fn delete_files_in_range(
        self: &Arc<Self>,
        family: &Arc<FamilyCore>,
        begin: Option<&[u8]>,
        end: Option<&[u8]>,
    ) -> Result<u64> {
        self.check_writable()?;
        // Held throughout, so that no compaction takes the tables meanwhile.
        let state = self.background.lock();
        if self.families.load().get(family.id).is_none() {
            return Err(Error::missing(format!("family {:?}", family.name)));
        }
        let version = Arc::clone(&family.views.load().version);
        let dropped = pick::tables_inside(&version, begin, end, &state.running_of(family.id));
        if dropped.is_empty() {
            return Ok(0);
        }
        let numbers = dropped.iter().map(|(level, table)| (family.id.0, *level, table.meta.number));
        let edit = VersionEdit { tables_deleted: numbers.collect(), ..VersionEdit::default() };
        let installed = self.versions.apply(edit, |_, version| {
            family.views.install(Arc::clone(version), &[]);
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
        self.walk_range(family, RangeWalk::new(from, to))
    }

    pub(crate) fn rewrite_range(
        self: &Arc<Self>,
        family: &Arc<FamilyCore>,
        from: Option<&[u8]>,
        to: Option<&[u8]>,
    ) -> Result<()> {
        // What is flushed for it counts as new: it has the options of now.
        let number = self.versions.new_file_number();
        self.walk_range(family, RangeWalk::new(from, to).rewriting(number))
    }

    fn walk_range(self: &Arc<Self>, family: &Arc<FamilyCore>, walk: RangeWalk) -> Result<()> {
        self.flush(&[family.id])?;
        if self.families.load().get(family.id).is_none() {
            return Err(Error::missing(format!("family {:?}", family.name)));
        }
        self.background.lock().manual += 1;
        let result = self.compact_levels(family, walk);
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
        mut walk: RangeWalk,
    ) -> Result<()> {
        loop {
            let job = {
                let mut state = self.background.lock();
                loop {
                    self.health.check()?;
                    let version = Arc::clone(&family.views.load().version);
                    let running = state.running_of(family.id);
                    match walk.next(&version, &limits(family), &running) {
                        RangeStep::Done => return Ok(()),
                        RangeStep::Wait => state = self.background.wait(state),
                        RangeStep::Run(plan) => {
                            let job = Job::new(family, version, plan);
                            state.begin(&job, self.shared.scheduler.now());
                            break job;
                        }
                    }
                }
            };
            let result = self.run_compaction(&job);
            self.background.lock().end(job);
            self.background.notify();
            match result {
                Ok(()) => {}
                Err(Failed::BeforeInstalling(error)) => return Err(error),
                Err(Failed::Installing(error)) => {
                    self.health.take(&error);
                    return Err(error);
                }
            }
        }
    }
}

/// What a compaction reads and must respect: the same for all its parts.
pub(crate) struct Basis {
    /// Ascending.
    snapshots: Vec<SequenceNumber>,
    /// The range deletes of all inputs.
    deletes: Fragments,
    /// The inputs, without those that a range delete covers as a whole: they
    /// are not even opened.
    read: [Vec<Arc<TableFile>>; 2],
}

impl Basis {
    fn of(job: &Job, snapshots: Vec<SequenceNumber>) -> Result<Basis> {
        let mut deletes = Vec::new();
        for file in job.plan.tables().filter(|file| file.meta.range_tombstones > 0) {
            deletes.extend(file.table()?.range_deletes().deletes());
        }
        let deletes = Fragments::build(job.family.order(), deletes, &snapshots);
        let retain = Retain::new(snapshots.clone(), Below::Unknown, deletes.clone());
        let read = job.plan.inputs.each_ref().map(|tables| {
            let is_read = |table: &&Arc<TableFile>| !retain.drops_table(&table.meta);
            tables.iter().filter(is_read).cloned().collect()
        });
        Ok(Basis { snapshots, deletes, read })
    }
}

/// From when the oldest tombstone of the inputs may be: how old it is, is not
/// forgotten when it moves down. `None` without any.
fn tombstones_from(plan: &Plan) -> Option<u64> {
    let with_tombstones = plan.tables().filter(|table| table.meta.has_tombstones());
    with_tombstones.map(|table| table.meta.tombstones_unix_seconds).min()
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
