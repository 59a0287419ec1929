//! Which tables to compact next: decided from the version alone, without I/O.
//!
//! `Version` + `Limits` + what is running -> `Plan`; `run` carries it out.
//!
//! What every plan keeps true, so that an entry is never below an older one of
//! its user key:
//! - With a table of level 0 go all tables of level 0 that it overlaps,
//!   directly or through others.
//! - Level 0 goes no deeper than the first level with a table, except where it
//!   overlaps nothing on its way.
//! - Below level 0 a user key is in one table of a level, so no plan can
//!   separate its versions.
//! - No two plans at work share a table or write the same range of one level.
//! - While level 0 waits for plans on the level below it, no more of these begin.
//!
//! Reads never cause a compaction.

mod inside;
mod parts;
mod place;
mod range;
mod targets;
mod tombstones;

use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::sync::Arc;

use crate::key::KeyOrder;
use crate::tables::TableFile;
use crate::version::{KeyRange, LEVELS, Version};

pub(crate) use inside::tables_inside;
pub(crate) use parts::cuts;
pub(crate) use place::level_for;
pub(crate) use range::{RangeStep, RangeWalk};
pub(crate) use targets::{BOTTOM, Limits, Targets, debt_bytes};
pub(crate) use tombstones::TombstoneLimits;

/// Why a compaction is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reason {
    /// Level 0 has too many tables or bytes.
    Level0,
    /// A level is larger than it should be.
    LevelSize,
    /// A table has many tombstones, or old ones, or much to delete below.
    Tombstones,
    /// Someone asked for this range.
    Range,
}

/// A compaction to be done.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    /// Where the first inputs are.
    pub(crate) level_from: usize,
    /// Where the second inputs are and the outputs go. Equal to `level_from`
    /// if tables are rewritten in place to get rid of tombstones.
    pub(crate) level_to: usize,
    /// The tables of `level_from` (newest first at level 0), and of `level_to`.
    pub(crate) inputs: [Vec<Arc<TableFile>>; 2],
    /// Tables of the level after `level_to` in the range: outputs are cut so
    /// that none overlaps too many of them.
    pub(crate) grandparents: Vec<Arc<TableFile>>,
    /// The inputs can be moved as they are.
    pub(crate) trivial_move: bool,
    /// From the first to the last user key of the inputs.
    pub(crate) range: KeyRange,
    /// No deeper level has a table in the range.
    pub(crate) bottommost: bool,
    pub(crate) reason: Reason,
}

impl Plan {
    fn new(
        version: &Version,
        levels: (usize, usize),
        inputs: [Vec<Arc<TableFile>>; 2],
        reason: Reason,
    ) -> Plan {
        let (level_from, level_to) = levels;
        let range = KeyRange::covering(version.order(), inputs.iter().flatten())
            .expect("a plan has inputs");
        let (first, last) = (Some(&range.first[..]), Some(&range.last[..]));
        let mut deeper = level_to + 1..=BOTTOM;
        let bottommost = deeper.all(|level| !version.overlaps(level, first, last));
        let grandparents = match level_to {
            BOTTOM => Vec::new(),
            _ => version.overlapping(level_to + 1, first, last),
        };
        Plan {
            level_from,
            level_to,
            inputs,
            grandparents,
            trivial_move: false,
            range,
            bottommost,
            reason,
        }
    }

    /// All inputs.
    pub(crate) fn tables(&self) -> impl Iterator<Item = &Arc<TableFile>> {
        self.inputs.iter().flatten()
    }

    /// Length of all inputs.
    pub(crate) fn bytes(&self) -> u64 {
        total_bytes(self.tables())
    }
}

/// The plans at work.
#[derive(Clone, Debug, Default)]
pub(crate) struct Running {
    tables: BTreeSet<u64>,
    /// (level written, range, number of the first input).
    outputs: Vec<(usize, KeyRange, u64)>,
}

impl Running {
    /// Notes that `plan` is at work.
    pub(crate) fn add(&mut self, plan: &Plan) {
        for table in plan.tables() {
            let is_new = self.tables.insert(table.meta.number);
            assert!(is_new, "two compactions take table {}", table.meta.number);
        }
        self.outputs.push((plan.level_to, plan.range.clone(), Running::key_of(plan)));
    }

    /// Notes that `plan` is done, or was given up.
    pub(crate) fn remove(&mut self, plan: &Plan) {
        for table in plan.tables() {
            self.tables.remove(&table.meta.number);
        }
        let key = Running::key_of(plan);
        self.outputs.retain(|(.., first)| *first != key);
    }

    /// How many plans are at work.
    pub(crate) fn count(&self) -> usize {
        self.outputs.len()
    }

    /// A table is in one plan only, so that its first input names a plan.
    fn key_of(plan: &Plan) -> u64 {
        plan.tables().next().expect("a plan has inputs").meta.number
    }

    fn has_any<'a>(&self, tables: impl IntoIterator<Item = &'a Arc<TableFile>>) -> bool {
        tables.into_iter().any(|table| self.tables.contains(&table.meta.number))
    }

    fn writes(&self, order: &KeyOrder, level: usize, range: &KeyRange) -> bool {
        self.outputs.iter().any(|(at, busy, _)| *at == level && busy.overlaps(order, range))
    }

    /// True if `plan` can go beside what is at work.
    fn allows(&self, order: &KeyOrder, plan: &Plan) -> bool {
        !self.has_any(plan.tables()) && !self.writes(order, plan.level_to, &plan.range)
    }
}

/// The compaction that is needed most and can be done now; `None` if no level
/// is above its size and no tombstones are to be collected, or all that could
/// be done is being done.
pub(crate) fn pick(version: &Version, limits: &Limits, running: &Running) -> Option<Plan> {
    let picker = Picker { version, limits, running, targets: Targets::of(version, limits) };
    let mut scores: Vec<(f64, usize)> =
        (0..BOTTOM).map(|level| (picker.score(level), level)).filter(|s| s.0 >= 1.0).collect();
    if picker.base_goes_first() {
        let base = picker.targets.level0_into(version);
        scores.iter_mut().filter(|score| score.1 == base).for_each(|score| score.0 = f64::INFINITY);
    }
    scores.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    let mut level0_waits = false;
    let by_size = scores.iter().find_map(|&(_, level)| match level {
        0 => {
            let plan = picker.level0();
            level0_waits = plan.is_none();
            plan
        }
        // Level 0 is needed more and waits for work on the level below it to
        // end: more of that would keep it waiting for ever.
        _ if level0_waits && level == picker.targets.level0_into(version) => None,
        _ => picker.level(level),
    });
    by_size.or_else(|| picker.tombstones())
}

/// How full each level is, for reports: from 1 on, it should be compacted; at
/// most 100, which is that of a level that should be empty. The last one has no
/// size to keep: 0.
pub(crate) fn scores(version: &Version, limits: &Limits) -> [f64; LEVELS] {
    let targets = Targets::of(version, limits);
    std::array::from_fn(|level| {
        let here = version.level(level);
        match level {
            0 => {
                let by_count = here.tables().len() as f64 / limits.level0_files.max(1) as f64;
                by_count.max(here.bytes() as f64 / limits.level1_bytes.max(1) as f64)
            }
            BOTTOM => 0.0,
            _ => (here.bytes() as f64 / targets.bytes[level].max(1) as f64).min(100.0),
        }
    })
}

/// The compaction of level 0 that is due and can be done now.
pub(crate) fn pick_level0(version: &Version, limits: &Limits, running: &Running) -> Option<Plan> {
    let picker = Picker { version, limits, running, targets: Targets::of(version, limits) };
    if picker.score(0) >= 1.0 && !picker.base_goes_first() { picker.level0() } else { None }
}

struct Picker<'a> {
    version: &'a Version,
    limits: &'a Limits,
    running: &'a Running,
    targets: Targets,
}

impl Picker<'_> {
    /// How far a level is above its size: from 1 on, it should be compacted.
    /// What is being compacted already does not count.
    fn score(&self, level: usize) -> f64 {
        if level == 0 {
            // Squared, because a long level 0 makes readers slow and holds
            // writers back; a level that is too large does neither.
            let score = self.level0_fullness().powi(2);
            let is_cheap = || self.level0_groups().iter().any(|group| self.is_cheap(group));
            return if score < 1.0 && is_cheap() { 1.0 } else { score };
        }
        let bytes = total_bytes(self.idle(level));
        let target = self.targets.bytes[level];
        match bytes > target {
            true => bytes as f64 / target.max(1) as f64,
            false => 0.0,
        }
    }

    /// True if the level that level 0 goes into is too large, and level 0 can wait:
    /// each of its compactions would rewrite all of that again, the more the more
    /// is there. Where that never got its turn it became as large as the level after.
    fn base_goes_first(&self) -> bool {
        let can_wait = self.version.level(0).tables().len() < self.limits.level0_urgent_files;
        can_wait && self.score(self.targets.level0_into(self.version)) >= 1.0
    }

    fn idle(&self, level: usize) -> impl Iterator<Item = &Arc<TableFile>> {
        let tables = self.version.level(level).tables().iter();
        tables.filter(|table| !self.running.has_any([*table]))
    }

    /// Tables and bytes of level 0 by what they may be: the larger part.
    fn level0_fullness(&self) -> f64 {
        let (count, bytes) = (self.idle(0).count() as f64, total_bytes(self.idle(0)) as f64);
        let by_count = count / self.limits.level0_files.max(1) as f64;
        by_count.max(bytes / self.limits.level1_bytes.max(1) as f64)
    }

    /// True if a group of level 0 has little below, so that readers meet one run
    /// and not some. At work that is half of its size, and it has half of the
    /// tables that start a compaction: each such compaction makes what is below
    /// three times as large or more, so there are few. At rest it is four times its
    /// size, about what the compaction costs that would come later, and a quarter
    /// of the tables is enough.
    fn is_cheap(&self, group: &[Arc<TableFile>]) -> bool {
        let part = if self.limits.at_rest { 4 } else { 2 };
        let count_min = self.limits.level0_files.div_ceil(part).max(2);
        if group.len() < count_min || self.running.has_any(group) {
            return false;
        }
        let below = self.below(0, group);
        let below_max = match self.limits.at_rest {
            false => total_bytes(group) / 2,
            true => total_bytes(group).saturating_mul(4),
        };
        total_bytes(&below) <= below_max
    }

    /// What a compaction of `tables`, all of one level, rewrites besides.
    fn below(&self, level: usize, tables: &[Arc<TableFile>]) -> Vec<Arc<TableFile>> {
        let Some(into) = self.level_below(level) else { return Vec::new() };
        let range = KeyRange::covering(self.version.order(), tables).expect("there are some");
        self.version.overlapping(into, Some(&range.first), Some(&range.last))
    }

    /// Where `level` is compacted to.
    fn level_below(&self, level: usize) -> Option<usize> {
        match level {
            0 => Some(self.targets.level0_into(self.version)),
            BOTTOM => None,
            _ => Some(level + 1),
        }
    }

    /// Level 0: what can be moved as it is, or else the group of overlapping
    /// tables that is largest.
    fn level0(&self) -> Option<Plan> {
        let mut groups = self.level0_groups();
        groups.retain(|group| !self.running.has_any(group));
        if let Some(plan) = self.level0_moves(&groups) {
            return Some(plan);
        }
        if self.level0_fullness() < 1.0 {
            groups.retain(|group| self.is_cheap(group));
        }
        groups.sort_by_key(|group| std::cmp::Reverse((group.len(), total_bytes(group))));
        (0..groups.len()).find_map(|chosen| self.level0_group(&groups, chosen))
    }

    /// The tables of level 0 in groups: tables of different groups do not
    /// overlap. By key, each group newest first.
    fn level0_groups(&self) -> Vec<Vec<Arc<TableFile>>> {
        let order = self.version.order();
        let mut tables = self.version.level(0).tables().to_vec();
        tables.sort_by(|a, b| order.compare(&a.meta.smallest.user_key, &b.meta.smallest.user_key));
        let mut groups: Vec<(KeyRange, Vec<Arc<TableFile>>)> = Vec::new();
        for table in tables {
            let range = KeyRange::covering(order, [&table]).expect("one table");
            match groups.last_mut() {
                Some((covered, group)) if covered.overlaps(order, &range) => {
                    group.push(table);
                    if order.compare(&range.last, &covered.last) == Ordering::Greater {
                        covered.last = range.last;
                    }
                }
                _ => groups.push((range, vec![table])),
            }
        }
        let mut groups: Vec<_> = groups.into_iter().map(|(_, group)| group).collect();
        groups.iter_mut().for_each(|group| self.sort_newest_first(group));
        groups
    }

    /// Puts tables of level 0 into its order.
    fn sort_newest_first(&self, tables: &mut [Arc<TableFile>]) {
        let level0 = self.version.level(0).tables();
        tables.sort_by_key(|t| level0.iter().position(|other| Arc::ptr_eq(other, t)));
    }

    /// Moves all groups of one table that can go to the same level unread.
    /// Each goes as deep as it overlaps nothing: a load in key order goes
    /// straight to the bottom.
    fn level0_moves(&self, groups: &[Vec<Arc<TableFile>>]) -> Option<Plan> {
        let single = groups.iter().filter(|group| group.len() == 1).map(|group| &group[0]);
        let depths: Vec<_> = single.map(|t| (t, self.free_depth(0, t))).collect();
        let depth = depths.iter().filter_map(|(_, depth)| *depth).max()?;
        let movable = depths.iter().filter(|(_, d)| *d == Some(depth));
        let mut movable: Vec<Arc<TableFile>> = movable.map(|(t, _)| Arc::clone(t)).collect();
        let mut plan = Plan::new(self.version, (0, depth), [movable, Vec::new()], Reason::Level0);
        if !self.running.allows(self.version.order(), &plan) {
            // Together they span a range that is being written; one does not.
            movable = vec![plan.inputs[0].remove(0)];
            plan = Plan::new(self.version, (0, depth), [movable, Vec::new()], Reason::Level0);
        }
        plan.trivial_move = true;
        self.running.allows(self.version.order(), &plan).then_some(plan)
    }

    /// The deepest level that a table of `level` can be moved to unread:
    /// nothing that it overlaps may be on the way, nor be written there.
    fn free_depth(&self, level: usize, table: &Arc<TableFile>) -> Option<usize> {
        let order = self.version.order();
        let range = KeyRange::covering(order, [table]).expect("one table");
        let (first, last) = (Some(&range.first[..]), Some(&range.last[..]));
        let mut depth = None;
        for level in level + 1..=BOTTOM {
            let blocked = self.version.overlaps(level, first, last)
                || self.running.writes(order, level, &range);
            if blocked {
                break;
            }
            if level >= self.targets.level0_into(self.version) {
                depth = Some(level);
            }
        }
        let depth = depth?;
        let after = match depth {
            BOTTOM => 0,
            _ => total_bytes(&self.version.overlapping(depth + 1, first, last)),
        };
        // Where nothing is below, rewriting gets rid of tombstones; moving
        // would keep them for ever.
        let is_bottommost = (depth + 1..=BOTTOM).all(|l| !self.version.overlaps(l, first, last));
        let wasteful = is_bottommost && is_mostly_tombstones(table);
        (after <= self.limits.grandparent_bytes_max() && !wasteful).then_some(depth)
    }

    /// Compacts one group of level 0, with those other groups that cost
    /// nothing more because they lie within the same range below.
    fn level0_group(&self, groups: &[Vec<Arc<TableFile>>], chosen: usize) -> Option<Plan> {
        let order = self.version.order();
        let level_to = self.targets.level0_into(self.version);
        let plan = self.plan(0, level_to, groups[chosen].clone(), Reason::Level0)?;
        let range = &plan.range;
        let within = |group: &Vec<Arc<TableFile>>| {
            let covered = KeyRange::covering(order, group).expect("a group has tables");
            order.compare(&range.first, &covered.first) != Ordering::Greater
                && order.compare(&covered.last, &range.last) != Ordering::Greater
        };
        let mut together = groups[chosen].clone();
        for (index, group) in groups.iter().enumerate() {
            if index != chosen && within(group) {
                together.extend(group.iter().cloned());
            }
        }
        if together.len() == groups[chosen].len() {
            return Some(plan);
        }
        self.sort_newest_first(&mut together);
        self.plan(0, level_to, together, Reason::Level0)
    }

    /// A deeper level: the table that moves the most bytes down for the least
    /// bytes rewritten.
    fn level(&self, level: usize) -> Option<Plan> {
        let mut candidates = self.by_overlap_ratio(level);
        candidates.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
        let tables = self.version.level(level).tables();
        candidates.iter().find_map(|&(_, index)| self.table(level, &tables[index]))
    }

    /// Each idle table of a level with the bytes that it overlaps in the next
    /// level for each byte of its own. Tombstones count as the space that they
    /// will free, where they are many.
    fn by_overlap_ratio(&self, level: usize) -> Vec<(f64, usize)> {
        let (order, next) = (self.version.order(), self.version.level(level + 1));
        let tables = self.version.level(level).tables().iter().enumerate();
        let idle = tables.filter(|(_, table)| !self.running.has_any([*table]));
        idle.map(|(index, table)| {
            let meta = &table.meta;
            let (first, last) = (&meta.smallest.user_key[..], &meta.largest.user_key[..]);
            let overlap = next.overlapping(order, Some(first), Some(last));
            let below = total_bytes(&next.tables()[overlap]) as f64;
            let freed = match is_mostly_tombstones(table) {
                true => 2.0 * meta.bytes as f64,
                false => 0.0,
            };
            (below / (meta.bytes as f64 + freed).max(1.0), index)
        })
        .collect()
    }

    fn table(&self, level: usize, table: &Arc<TableFile>) -> Option<Plan> {
        let order = self.version.order();
        let tables = vec![Arc::clone(table)];
        if let Some(depth) = self.free_depth(level, table) {
            let inputs = [tables, Vec::new()];
            let mut plan = Plan::new(self.version, (level, depth), inputs, Reason::LevelSize);
            plan.trivial_move = true;
            return self.running.allows(order, &plan).then_some(plan);
        }
        self.plan(level, level + 1, tables, Reason::LevelSize)
    }

    /// The plan that compacts `tables` of one level into another; `None` if
    /// something at work is in the way.
    fn plan(
        &self,
        level_from: usize,
        level_to: usize,
        tables: Vec<Arc<TableFile>>,
        reason: Reason,
    ) -> Option<Plan> {
        let order = self.version.order();
        let range = KeyRange::covering(order, &tables)?;
        let overlapped = self.version.overlapping(level_to, Some(&range.first), Some(&range.last));
        let mut plan =
            Plan::new(self.version, (level_from, level_to), [tables, overlapped], reason);
        if level_from > 0
            && let Some(wider) = self.widened(&plan)
        {
            plan = wider;
        }
        self.running.allows(order, &plan).then_some(plan)
    }

    /// The plan with those further tables of its first level that overlap
    /// nothing more in the second.
    fn widened(&self, plan: &Plan) -> Option<Plan> {
        let overlapping = |level, range: &KeyRange| {
            self.version.overlapping(level, Some(&range.first), Some(&range.last))
        };
        let wider = overlapping(plan.level_from, &plan.range);
        if wider.len() == plan.inputs[0].len() {
            return None;
        }
        let range = KeyRange::covering(self.version.order(), &wider)?;
        let overlapped = overlapping(plan.level_to, &range);
        let inputs = [wider, overlapped];
        let bytes = total_bytes(inputs.iter().flatten());
        if inputs[1].len() != plan.inputs[1].len()
            || bytes > self.limits.widened_bytes_max()
            || self.running.has_any(inputs.iter().flatten())
        {
            return None;
        }
        Some(Plan::new(self.version, (plan.level_from, plan.level_to), inputs, plan.reason))
    }
}

/// True if a quarter of the entries or more are tombstones.
fn is_mostly_tombstones(table: &TableFile) -> bool {
    let tombstones = table.meta.tombstones.saturating_add(table.meta.range_tombstones);
    tombstones > 0 && tombstones.saturating_mul(4) >= table.meta.entries
}

fn total_bytes<'a>(tables: impl IntoIterator<Item = &'a Arc<TableFile>>) -> u64 {
    tables.into_iter().map(|table| table.meta.bytes).fold(0, u64::saturating_add)
}

#[cfg(test)]
mod tests;
