//! Compacting a range of keys on request: level by level, from level 0 to the
//! deepest level that has tables in the range.
//!
//! The walk advances with each plan that it gives and never goes back, so that
//! it ends although writes go on. At the deepest level, tables with tombstones
//! are rewritten in place: nothing else would ever drop these. So are, on
//! request, all others that are older than the walk: nothing else would ever
//! give them the options that hold now.

use std::cmp::Ordering;
use std::sync::Arc;

use super::tombstones::has_tombstones;
use super::{BOTTOM, Limits, Picker, Plan, Reason, Running, Targets, total_bytes};
use crate::key::{InternalKey, TRAILER_NEWEST};
use crate::tables::TableFile;
use crate::version::Version;

/// What a walk asks for next.
#[derive(Debug)]
pub(crate) enum RangeStep {
    /// Carry this out, then ask again.
    Run(Plan),
    /// Something at work is in the way: ask again when it is done.
    Wait,
    /// The range is compacted.
    Done,
}

/// The compaction of the keys from `first` to `last`, both inclusive; `None`
/// is an open end.
#[derive(Clone, Debug)]
pub(crate) struct RangeWalk {
    first: Option<Vec<u8>>,
    last: Option<Vec<u8>>,
    level: usize,
    /// Tables with a lower number are rewritten also where nothing asks for it.
    rewritten_below: u64,
    /// How far this level was seen to.
    done_to: Option<InternalKey>,
}

impl RangeWalk {
    pub(crate) fn new(first: Option<&[u8]>, last: Option<&[u8]>) -> RangeWalk {
        let (first, last) = (first.map(<[u8]>::to_vec), last.map(<[u8]>::to_vec));
        RangeWalk { first, last, level: 0, rewritten_below: 0, done_to: None }
    }

    /// The same, and every table of a number below `number` is rewritten. With a
    /// number that the next table gets, none is rewritten twice at one level.
    pub(crate) fn rewriting(self, number: u64) -> RangeWalk {
        RangeWalk { rewritten_below: number, ..self }
    }

    /// The next plan. It is taken for carried out when this is called again.
    pub(crate) fn next(
        &mut self,
        version: &Version,
        limits: &Limits,
        running: &Running,
    ) -> RangeStep {
        let picker = Picker { version, limits, running, targets: Targets::of(version, limits) };
        while self.level <= BOTTOM {
            let tables = self.next_tables(&picker);
            if tables.is_empty() {
                self.level += 1;
                self.done_to = None;
                continue;
            }
            // Below level 0 they are in the order of keys.
            let last = tables.last().map(|table| table.meta.largest.clone());
            let Some(plan) = self.plan(&picker, tables) else {
                return RangeStep::Wait;
            };
            self.done_to = last;
            if self.level == 0 {
                // Tables that are flushed from now on are not waited for.
                self.level = 1;
                self.done_to = None;
            }
            return RangeStep::Run(plan);
        }
        RangeStep::Done
    }

    fn plan(&self, picker: &Picker<'_>, tables: Vec<Arc<TableFile>>) -> Option<Plan> {
        let (version, level) = (picker.version, self.level);
        if self.is_deepest(version) {
            let inputs = [tables, Vec::new()];
            let plan = Plan::new(version, (level, level), inputs, Reason::Range);
            return picker.running.allows(version.order(), &plan).then_some(plan);
        }
        let level_to = if level == 0 { picker.targets.level0_into(version) } else { level + 1 };
        let mut plan = picker.plan(level, level_to, tables, Reason::Range)?;
        let has_tombstones = plan.tables().any(|table| has_tombstones(table));
        plan.trivial_move = plan.inputs[1].is_empty()
            && (level > 0 || plan.inputs[0].len() == 1)
            && !has_tombstones
            && total_bytes(&plan.grandparents) <= picker.limits.grandparent_bytes_max();
        Some(plan)
    }

    /// True if nothing in the range is deeper, and this level needs no merging.
    fn is_deepest(&self, version: &Version) -> bool {
        let (first, last) = (self.first.as_deref(), self.last.as_deref());
        let mut deeper = self.level + 1..=BOTTOM;
        self.level > 0 && deeper.all(|level| !version.overlaps(level, first, last))
    }

    /// The tables of the level that come next: at level 0 all, below as many
    /// as one compaction should take.
    fn next_tables(&self, picker: &Picker<'_>) -> Vec<Arc<TableFile>> {
        let (first, last) = (self.first.as_deref(), self.last.as_deref());
        let overlapping = picker.version.overlapping(self.level, first, last);
        if self.level == 0 {
            return self.with_their_groups(picker, &overlapping);
        }
        let in_place = self.is_deepest(picker.version);
        let is_old = |table: &TableFile| table.meta.number < self.rewritten_below;
        let wanted = overlapping
            .into_iter()
            .filter(|table| self.is_ahead(picker, table))
            .filter(|table| !in_place || has_tombstones(table) || is_old(table));
        let mut bytes = 0u64;
        let mut tables = Vec::new();
        for table in wanted {
            bytes = bytes.saturating_add(table.meta.bytes);
            // Tables rewritten in place need not be neighbours: one at a time.
            let enough = bytes > picker.limits.grandparent_bytes_max() || in_place;
            if enough && !tables.is_empty() {
                break;
            }
            tables.push(table);
        }
        tables
    }

    fn is_ahead(&self, picker: &Picker<'_>, table: &TableFile) -> bool {
        let order = picker.version.order();
        let starts = &table.meta.smallest.user_key;
        // The end of a range delete is a bound: the next table may begin there.
        self.done_to.as_ref().is_none_or(|done| match order.compare(starts, &done.user_key) {
            Ordering::Greater => true,
            Ordering::Equal => done.trailer == TRAILER_NEWEST,
            Ordering::Less => false,
        })
    }

    /// All tables of level 0 whose groups have one of `tables`, newest first.
    fn with_their_groups(
        &self,
        picker: &Picker<'_>,
        tables: &[Arc<TableFile>],
    ) -> Vec<Arc<TableFile>> {
        let mut all: Vec<Arc<TableFile>> = picker
            .level0_groups()
            .into_iter()
            .filter(|group| group.iter().any(|t| tables.iter().any(|o| Arc::ptr_eq(o, t))))
            .flatten()
            .collect();
        let level = picker.version.level(0).tables();
        all.sort_by_key(|table| level.iter().position(|other| Arc::ptr_eq(other, table)));
        all
    }
}
