//! The live tables of one family, arranged by level for readers. Immutable: a
//! change makes a new [`Version`] that shares the levels that did not change.
//!
//! What holds:
//! - Level 0 is ordered newest first: by highest sequence number, then file
//!   number. Its tables may overlap.
//! - The tables of every deeper level are ordered by key, and no user key is
//!   in two of them: outputs are cut between user keys. So the versions of a
//!   user key in one level are always in one table.
//! - An entry is newer than every entry of the same user key in a deeper level.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;

use crate::key::KeyOrder;
use crate::table::meta::TableMeta;
use crate::tables::TableFile;
use crate::version::edit::VersionEdit;
use crate::version::level::{Level, check_apart, ends_before, in_order, table_overlaps};
use crate::version::state::FamilyState;

/// Levels of a family: 0 to 6.
pub(crate) const LEVELS: usize = 7;
const _: () = assert!(LEVELS == crate::stats::LEVELS_COUNTED);

/// Makes the open-table slot for a table that was added.
pub(crate) type MakeTable<'a> = &'a dyn Fn(&TableMeta) -> Arc<TableFile>;

/// All live tables of one family.
#[derive(Clone, Debug)]
pub(crate) struct Version {
    order: KeyOrder,
    levels: [Arc<Level>; LEVELS],
}

impl Version {
    /// A version without tables.
    pub(crate) fn empty(order: KeyOrder) -> Version {
        Version { order, levels: Default::default() }
    }

    /// The version that a recovered family has.
    ///
    /// # Errors
    /// Says what contradicts the invariants, for example overlapping tables.
    pub(crate) fn from_state(
        order: KeyOrder,
        state: &FamilyState,
        make: MakeTable<'_>,
    ) -> Result<Version, String> {
        let mut tables: [Vec<Arc<TableFile>>; LEVELS] = Default::default();
        for (level, meta) in state.tables.values() {
            check_bounds(&order, meta)?;
            tables[*level].push(make(meta));
        }
        let mut version = Version::empty(order);
        for (level, tables) in tables.into_iter().enumerate() {
            version.set_level(level, tables)?;
        }
        Ok(version)
    }

    /// Checks, without a table's file, what [`Version::from_state`] does.
    ///
    /// # Errors
    /// The same.
    pub(crate) fn check_state(order: &KeyOrder, state: &FamilyState) -> Result<(), String> {
        let mut levels: [Vec<&TableMeta>; LEVELS] = Default::default();
        for (level, meta) in state.tables.values() {
            check_bounds(order, meta)?;
            levels[*level].push(meta);
        }
        for (level, tables) in levels.iter_mut().enumerate().skip(1) {
            tables.sort_by(|a, b| in_order(order, a, b));
            let checked = check_apart(order, tables.iter().copied());
            checked.map_err(|e| format!("level {level}: {e}"))?;
        }
        Ok(())
    }

    /// The version after those parts of `edit` that concern `family`.
    ///
    /// # Errors
    /// Says what contradicts this version; nothing was changed.
    pub(crate) fn apply(
        &self,
        family: u32,
        edit: &VersionEdit,
        make: MakeTable<'_>,
    ) -> Result<Version, String> {
        let deleted = edit.tables_deleted.iter().filter(|&&(of, ..)| of == family);
        let added = edit.tables_added.iter().filter(|&&(of, ..)| of == family);
        let mut change = Change::default();
        for &(_, level, number) in deleted {
            change.delete(self, level, number)?;
        }
        for (_, level, meta) in added {
            check_bounds(&self.order, meta)?;
            change.add(self, *level, meta, make)?;
        }
        let mut next = self.clone();
        for (level, tables) in change.levels.into_iter().enumerate() {
            if let Some(tables) = tables {
                next.set_level(level, tables.into_values().collect())?;
            }
        }
        Ok(next)
    }

    fn set_level(&mut self, level: usize, tables: Vec<Arc<TableFile>>) -> Result<(), String> {
        let made = match level {
            0 => Level::level0(tables),
            _ => Level::sorted(&self.order, tables).map_err(|e| format!("level {level}: {e}"))?,
        };
        self.levels[level] = Arc::new(made);
        Ok(())
    }

    /// The order of the family's keys.
    #[inline]
    pub(crate) fn order(&self) -> &KeyOrder {
        &self.order
    }

    /// Level `level`.
    #[inline]
    pub(crate) fn level(&self, level: usize) -> &Arc<Level> {
        &self.levels[level]
    }

    /// All levels, from 0 on.
    pub(crate) fn levels(&self) -> &[Arc<Level>; LEVELS] {
        &self.levels
    }

    /// Every table, level 0 first.
    pub(crate) fn tables(&self) -> impl Iterator<Item = &Arc<TableFile>> {
        self.levels.iter().flat_map(|level| level.tables().iter())
    }

    /// How many tables there are.
    #[cfg(test)]
    pub(crate) fn table_count(&self) -> usize {
        self.levels.iter().map(|level| level.tables().len()).sum()
    }

    /// Length of all tables.
    pub(crate) fn bytes(&self) -> u64 {
        self.levels.iter().map(|level| level.bytes()).fold(0, u64::saturating_add)
    }

    /// Entries in all tables: an estimate of the count of keys, from above.
    pub(crate) fn entries(&self) -> u64 {
        self.tables().map(|table| table.meta.entries).fold(0, u64::saturating_add)
    }

    /// The tables of a level that hold keys from `first` to `last`, both
    /// inclusive (`None`: open end), in the level's order.
    pub(crate) fn overlapping(
        &self,
        level: usize,
        first: Option<&[u8]>,
        last: Option<&[u8]>,
    ) -> Vec<Arc<TableFile>> {
        let tables = self.levels[level].tables();
        if level > 0 {
            return tables[self.levels[level].overlapping(&self.order, first, last)].to_vec();
        }
        let overlaps = |t: &&Arc<TableFile>| table_overlaps(&self.order, &t.meta, first, last);
        tables.iter().filter(overlaps).cloned().collect()
    }

    /// True if some table of a level holds keys from `first` to `last`, both
    /// inclusive (`None`: open end).
    pub(crate) fn overlaps(&self, level: usize, first: Option<&[u8]>, last: Option<&[u8]>) -> bool {
        let level_tables = &self.levels[level];
        if level > 0 {
            return !level_tables.overlapping(&self.order, first, last).is_empty();
        }
        level_tables.tables().iter().any(|t| table_overlaps(&self.order, &t.meta, first, last))
    }

    /// What lies in the levels deeper than `level`.
    pub(crate) fn below(&self, level: usize) -> Below {
        let levels = self.levels[level + 1..].iter().filter(|level| !level.is_empty());
        Below {
            order: self.order.clone(),
            levels: levels.map(|level| (Arc::clone(level), 0)).collect(),
        }
    }
}

/// The levels that an edit changes, while it is applied.
#[derive(Default)]
struct Change {
    levels: [Option<BTreeMap<u64, Arc<TableFile>>>; LEVELS],
    removed: BTreeMap<u64, Arc<TableFile>>,
}

impl Change {
    fn delete(&mut self, version: &Version, level: usize, number: u64) -> Result<(), String> {
        let removed = self.level(version, level)?.remove(&number);
        let table = removed.ok_or_else(|| format!("table {number} is not at level {level}"))?;
        self.removed.insert(number, table);
        Ok(())
    }

    fn add(
        &mut self,
        version: &Version,
        level: usize,
        meta: &TableMeta,
        make: MakeTable<'_>,
    ) -> Result<(), String> {
        // A table that only moves keeps its slot, and so stays open.
        let slot = self.removed.get(&meta.number).filter(|slot| slot.meta == *meta);
        let table = slot.map_or_else(|| make(meta), Arc::clone);
        match self.level(version, level)?.insert(meta.number, table) {
            None => Ok(()),
            Some(_) => Err(format!("table {} is added twice", meta.number)),
        }
    }

    /// The tables of a level by number, to be changed.
    fn level(
        &mut self,
        version: &Version,
        level: usize,
    ) -> Result<&mut BTreeMap<u64, Arc<TableFile>>, String> {
        let slot =
            self.levels.get_mut(level).ok_or_else(|| format!("there is no level {level}"))?;
        Ok(slot.get_or_insert_with(|| {
            let tables = version.levels[level].tables().iter();
            tables.map(|table| (table.meta.number, Arc::clone(table))).collect()
        }))
    }
}

fn check_bounds(order: &KeyOrder, meta: &TableMeta) -> Result<(), String> {
    let (first, last) = (&meta.smallest, &meta.largest);
    let ends = (&last.user_key[..], last.trailer);
    if order.compare_entries((&first.user_key, first.trailer), ends) == Ordering::Greater {
        return Err(format!("table {} ends before it starts", meta.number));
    }
    Ok(())
}

/// Answers whether the deeper levels may hold a key, for keys that are asked
/// for in ascending order: a compaction asks it for each tombstone.
#[derive(Debug)]
pub(crate) struct Below {
    order: KeyOrder,
    /// Each level with the first table that does not end before the last key.
    levels: Vec<(Arc<Level>, usize)>,
}

impl Below {
    /// True if no deeper level can hold `user_key`. Keys must not descend from
    /// one call to the next.
    pub(crate) fn is_absent(&mut self, user_key: &[u8]) -> bool {
        let order = &self.order;
        self.levels.iter_mut().all(|(level, at)| {
            while level.tables().get(*at).is_some_and(|t| ends_before(order, &t.meta, user_key)) {
                *at += 1;
            }
            let starts = level.tables().get(*at).map(|table| &table.meta.smallest.user_key);
            starts.is_none_or(|key| order.compare(key, user_key) == Ordering::Greater)
        })
    }

    /// True if no deeper level can hold a key from `first` to `last`, both
    /// inclusive.
    pub(crate) fn is_range_absent(&self, first: &[u8], last: &[u8]) -> bool {
        let overlapping =
            |level: &Level| level.overlapping(&self.order, Some(first), Some(last)).len();
        self.levels.iter().all(|(level, _)| overlapping(level) == 0)
    }
}

#[cfg(test)]
mod tests;
