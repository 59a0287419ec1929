//! Collecting tombstones where no level is too large: a table that is mostly
//! tombstones, has old ones, or deletes ranges that hold much below, is taken
//! down a level, and on to the last, where tombstones go.
//!
//! What makes this end: a plan takes its tables to a deeper level, or rewrites
//! a table in which every tombstone can go, so that none is left.

use std::sync::Arc;

use super::{BOTTOM, Picker, Plan, Reason, total_bytes};
use crate::key::{SequenceNumber, TRAILER_NEWEST};
use crate::range_deletes::Fragments;
use crate::tables::TableFile;
use crate::version::KeyRange;

/// Space that a range delete frees must be at least this part of what is
/// rewritten for it.
const FREED_PART_MIN: u64 = 4;

/// Tables that are mostly tombstones are compacted once these are this part of
/// the entries below: a compaction frees half of what it rewrites, or more.
const GATHERED_PART_MIN: u64 = 3;

/// What stays of tables below that are deleted from only in part is little if it is no
/// more than this part of what goes.
const EDGES_PART: u64 = 8;

/// Tables of one level that go together.
type Group = Vec<Arc<TableFile>>;

/// When tombstones are collected before a level is too large.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct TombstoneLimits {
    /// Tables with this part of tombstones among their entries; 0: never.
    pub(crate) percent: u64,
    /// Tables whose tombstones may be this old; 0: never.
    pub(crate) age_seconds: u64,
    /// The time now.
    pub(crate) unix_seconds: u64,
    /// Tombstones up to this number are seen by everybody.
    pub(crate) oldest_snapshot: SequenceNumber,
}

impl TombstoneLimits {
    fn is_dense(&self, tombstones: u64, entries: u64) -> bool {
        self.percent > 0
            && tombstones > 0
            && tombstones.saturating_mul(100) >= entries.saturating_mul(self.percent)
    }

    fn is_aged(&self, table: &TableFile) -> bool {
        let from = table.meta.tombstones_unix_seconds;
        self.age_seconds > 0
            && from > 0
            && self.unix_seconds.saturating_sub(from) >= self.age_seconds
    }
}

impl Picker<'_> {
    /// The plan that collects tombstones, from level 0 down.
    pub(super) fn tombstones(&self) -> Option<Plan> {
        let limits = &self.limits.tombstones;
        if limits.percent == 0 && limits.age_seconds == 0 {
            return None;
        }
        self.level0_tombstones()
            .or_else(|| (1..=BOTTOM).find_map(|level| self.tombstones_of_level(level)))
    }

    /// Below level 0.
    fn tombstones_of_level(&self, level: usize) -> Option<Plan> {
        let idle = self.idle(level).filter(|table| has_tombstones(table));
        let groups = self.neighbours_joined(level, idle.map(|table| vec![Arc::clone(table)]));
        let mut due = groups.iter().filter(|group| self.is_due(level, group));
        due.find_map(|group| self.collect(level, group))
    }

    fn level0_tombstones(&self) -> Option<Plan> {
        if !self.version.level(0).tables().iter().any(|table| has_tombstones(table)) {
            return None;
        }
        let mut groups = self.level0_groups();
        groups.retain(|group| !self.running.has_any(group));
        let groups = self.neighbours_joined(0, groups);
        let due: Vec<usize> =
            (0..groups.len()).filter(|&index| self.is_due(0, &groups[index])).collect();
        let apart: Vec<_> = due.iter().map(|&index| groups[index].clone()).collect();
        // Written again above what they delete, they would only be as they are.
        let moves = self.level0_moves(&apart);
        moves.or_else(|| due.into_iter().find_map(|index| self.level0_group(&groups, index)))
    }

    /// `groups` of `level`, by key, with those as one that delete keys in their order, one
    /// going on in the table below where the other ends: apart, each would rewrite that.
    fn neighbours_joined(
        &self,
        level: usize,
        groups: impl IntoIterator<Item = Group>,
    ) -> Vec<Group> {
        let follows = |before: &Group, after: &Group| {
            let (above, below) = (self.below(level, before), self.below(level, after));
            above.last().zip(below.first()).is_some_and(|(a, b)| Arc::ptr_eq(a, b))
        };
        let deletes_in_order =
            |group: &Group| self.is_dense(group) && self.kept_at_edges(level, group).is_some();
        let mut joined: Vec<Group> = Vec::new();
        for group in groups {
            match joined.last_mut() {
                Some(before)
                    if before.len() + group.len() <= self.limits.level0_files
                        && deletes_in_order(before)
                        && deletes_in_order(&group)
                        && follows(before, &group) =>
                {
                    before.extend(group);
                    if level == 0 {
                        self.sort_newest_first(before);
                    }
                }
                _ => joined.push(group),
            }
        }
        joined
    }

    fn is_dense(&self, tables: &[Arc<TableFile>]) -> bool {
        self.limits.tombstones.is_dense(tombstones_of(tables), entries_of(tables))
    }

    /// True if it does not matter yet that tables of `level` are mostly tombstones:
    /// more will come, and together they rewrite what is below once, not once for
    /// each.
    fn may_gather(&self, level: usize, tables: &[Arc<TableFile>], tombstones: u64) -> bool {
        if self.limits.at_rest {
            return false;
        }
        let below = self.below(level, tables);
        if entries_of(&below) > tombstones.saturating_mul(GATHERED_PART_MIN) {
            return true;
        }
        let all_below =
            self.level_below(level).map_or(0, |at| self.version.level(at).tables().len());
        let may_be_followed =
            below.len() < all_below && tables.len() < self.limits.level0_files.div_ceil(2);
        let kept = self.kept_at_edges(level, tables).filter(|_| may_be_followed);
        kept.is_some_and(|kept| kept.saturating_mul(EDGES_PART) > tombstones)
    }

    /// Entries that stay of the tables below once `tables` have deleted from them; `None` if
    /// they are more than those of tables that are deleted from only in part. Deletes in
    /// the order of keys leave no others.
    fn kept_at_edges(&self, level: usize, tables: &[Arc<TableFile>]) -> Option<u64> {
        let order = self.version.order();
        let deleted = KeyRange::covering(order, tables)?;
        let is_edge = |table: &&Arc<TableFile>| {
            let (first, last) = (&table.meta.smallest.user_key, &table.meta.largest.user_key);
            order.compare(first, &deleted.first).is_lt()
                || order.compare(&deleted.last, last).is_lt()
        };
        let below = self.below(level, tables);
        let edges: u64 = below.iter().filter(is_edge).map(|table| table.meta.entries).sum();
        let kept = entries_of(&below).saturating_sub(tombstones_of(tables));
        (kept <= edges).then_some(kept)
    }

    /// True if the tombstones of `tables` should be collected.
    fn is_due(&self, level: usize, tables: &[Arc<TableFile>]) -> bool {
        let limits = &self.limits.tombstones;
        let with_tombstones = || tables.iter().filter(|table| has_tombstones(table));
        (self.is_dense(tables) && !self.may_gather(level, tables, tombstones_of(tables)))
            || with_tombstones().any(|table| limits.is_aged(table))
            || with_tombstones().any(|table| limits.percent > 0 && self.frees_much(level, table))
    }

    /// Below level 0: down a level, or in place where nothing is below.
    fn collect(&self, level: usize, tables: &[Arc<TableFile>]) -> Option<Plan> {
        let [table] = tables else {
            // They are neighbours: something is below.
            return self.plan(level, level + 1, tables.to_vec(), Reason::Tombstones);
        };
        let ends = (&table.meta.smallest.user_key[..], &table.meta.largest.user_key[..]);
        let (first, last) = (Some(ends.0), Some(ends.1));
        if (level + 1..=BOTTOM).any(|deeper| self.version.overlaps(deeper, first, last)) {
            return self.table(level, table);
        }
        if table.meta.newest_sequence() > self.limits.tombstones.oldest_snapshot {
            return None; // some would stay, and it would be due again
        }
        let inputs = [vec![Arc::clone(table)], Vec::new()];
        let plan = Plan::new(self.version, (level, level), inputs, Reason::Tombstones);
        self.running.allows(self.version.order(), &plan).then_some(plan)
    }

    /// True if the range deletes of a table free much for what their
    /// compaction rewrites.
    fn frees_much(&self, level: usize, table: &TableFile) -> bool {
        let Some(deletes) = table.opened().map(|table| table.range_deletes()) else {
            return false;
        };
        if deletes.is_empty() {
            return false;
        }
        let (smallest, largest) = (&table.meta.smallest.user_key, &table.meta.largest.user_key);
        let mut freed = 0;
        let mut rewritten = table.meta.bytes;
        for deeper in level + 1..=BOTTOM {
            let below = self.version.overlapping(deeper, Some(smallest), Some(largest));
            let freed_here: u64 = below.iter().map(|b| self.freed_bytes(deletes, b)).sum();
            if freed == 0 && rewritten == table.meta.bytes {
                // The first level with something: there it will be compacted to.
                rewritten += total_bytes(&below).saturating_sub(freed_here);
            }
            freed += freed_here;
        }
        freed > 0 && freed.saturating_mul(FREED_PART_MIN) >= rewritten
    }

    /// How much of a deeper table range deletes free, roughly: what lies at the
    /// edge of a range counts half.
    fn freed_bytes(&self, deletes: &Fragments, below: &TableFile) -> u64 {
        let (order, meta) = (self.version.order(), &below.meta);
        let visible = self.limits.tombstones.oldest_snapshot;
        let (first, last) = (&meta.smallest.user_key[..], &meta.largest.user_key[..]);
        let newest = meta.newest_sequence();
        if deletes.cover((first, last), meta.largest.trailer == TRAILER_NEWEST, newest, visible) {
            return meta.bytes;
        }
        let holds_an_end = deletes.iter().any(|fragment| {
            let within =
                |key: &[u8]| order.compare(first, key).is_le() && order.compare(key, last).is_le();
            let seen = fragment.sequences.iter().any(|&s| s <= visible && s > newest);
            seen && within(&fragment.start) != within(&fragment.end)
        });
        if holds_an_end { meta.bytes / 2 } else { 0 }
    }
}

fn entries_of(tables: &[Arc<TableFile>]) -> u64 {
    tables.iter().map(|table| table.meta.entries).sum()
}

fn tombstones_of(tables: &[Arc<TableFile>]) -> u64 {
    tables.iter().map(|table| table.meta.tombstones + table.meta.range_tombstones).sum()
}

/// True if a table has tombstones of any kind.
pub(super) fn has_tombstones(table: &TableFile) -> bool {
    table.meta.has_tombstones()
}
