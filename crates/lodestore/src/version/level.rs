//! One level of a version: its tables in order, and how a key finds its table.
//!
//! A largest entry with the trailer [`TRAILER_NEWEST`] is a bound and no entry:
//! the table holds nothing of that user key (the end of a range tombstone).

use std::cmp::Ordering;
use std::ops::Range;
use std::sync::Arc;

use crate::key::{KeyOrder, TRAILER_NEWEST, common_prefix_bytes, head};
use crate::table::meta::TableMeta;
use crate::tables::TableFile;

/// A range of user keys, both ends inclusive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct KeyRange {
    pub(crate) first: Vec<u8>,
    pub(crate) last: Vec<u8>,
}

impl KeyRange {
    /// The smallest range that covers `tables`; `None` if there are none.
    pub(crate) fn covering<'a>(
        order: &KeyOrder,
        tables: impl IntoIterator<Item = &'a Arc<TableFile>>,
    ) -> Option<KeyRange> {
        let mut tables = tables.into_iter();
        let table = &tables.next()?.meta;
        let (mut first, mut last) = (&table.smallest.user_key, &table.largest.user_key);
        for table in tables {
            let (smallest, largest) = (&table.meta.smallest.user_key, &table.meta.largest.user_key);
            if order.compare(smallest, first) == Ordering::Less {
                first = smallest;
            }
            if order.compare(largest, last) == Ordering::Greater {
                last = largest;
            }
        }
        Some(KeyRange { first: first.clone(), last: last.clone() })
    }

    /// True if some key is in both.
    pub(crate) fn overlaps(&self, order: &KeyOrder, other: &KeyRange) -> bool {
        order.compare(&self.first, &other.last) != Ordering::Greater
            && order.compare(&other.first, &self.last) != Ordering::Greater
    }
}

/// The tables of one level.
#[derive(Debug, Default)]
pub(crate) struct Level {
    /// See the module for their order.
    tables: Arc<[Arc<TableFile>]>,
    /// Those of them that have range deletes, in the same order.
    deleting: Box<[Arc<TableFile>]>,
    /// Length of all files.
    bytes: u64,
    fences: Fences,
}

/// The order of the tables in a level below 0.
pub(super) fn in_order(order: &KeyOrder, a: &TableMeta, b: &TableMeta) -> Ordering {
    let (a, b) = (&a.smallest, &b.smallest);
    order.compare_entries((&a.user_key, a.trailer), (&b.user_key, b.trailer))
}

/// Checks that no user key is in two of `tables`, which are in their order.
///
/// # Errors
/// Says which tables overlap.
pub(super) fn check_apart<'t>(
    order: &KeyOrder,
    tables: impl Iterator<Item = &'t TableMeta>,
) -> Result<(), String> {
    let mut last: Option<&TableMeta> = None;
    for behind in tables {
        if let Some(before) = last
            && !ends_before(order, before, &behind.smallest.user_key)
        {
            return Err(format!("tables {} and {} overlap", before.number, behind.number));
        }
        last = Some(behind);
    }
    Ok(())
}

/// The largest user key of each table as a number, so that a lookup compares
/// whole keys only where these are equal. For bytewise order; empty otherwise
/// and for level 0.
#[derive(Debug, Default)]
struct Fences {
    /// What every key in the level begins with.
    prefix: Vec<u8>,
    /// The eight bytes after it of each table's largest user key.
    heads: Vec<u64>,
}

impl Fences {
    fn new(order: &KeyOrder, tables: &[Arc<TableFile>]) -> Fences {
        let (Some(first), Some(last)) = (tables.first(), tables.last()) else {
            return Fences::default();
        };
        if !order.is_bytewise() {
            return Fences::default();
        }
        let (first, last) = (&first.meta.smallest.user_key, &last.meta.largest.user_key);
        let prefix = first[..common_prefix_bytes(first, last)].to_vec();
        let heads = tables.iter().map(|t| head(&t.meta.largest.user_key[prefix.len()..])).collect();
        Fences { prefix, heads }
    }

    /// The tables among which the first that does not end before `user_key`
    /// is; the end of the range stands for itself.
    fn candidates(&self, user_key: &[u8]) -> Range<usize> {
        let count = self.heads.len();
        let shared = user_key.len().min(self.prefix.len());
        match user_key[..shared].cmp(&self.prefix[..shared]) {
            Ordering::Less => return 0..0,
            Ordering::Greater => return count..count,
            Ordering::Equal if shared < self.prefix.len() => return 0..0,
            Ordering::Equal => {}
        }
        let head = head(&user_key[shared..]);
        let start = self.heads.partition_point(|&fence| fence < head);
        let equal = self.heads[start..].partition_point(|&fence| fence == head);
        start..start + equal
    }
}

impl Level {
    /// Level 0: any tables, ordered here.
    pub(super) fn level0(mut tables: Vec<Arc<TableFile>>) -> Level {
        tables.sort_by(|a, b| {
            (b.meta.newest_sequence(), b.meta.number)
                .cmp(&(a.meta.newest_sequence(), a.meta.number))
        });
        Level::of(tables, Fences::default())
    }

    fn of(tables: Vec<Arc<TableFile>>, fences: Fences) -> Level {
        let bytes = tables.iter().map(|t| t.meta.bytes).fold(0, u64::saturating_add);
        let deleting = tables.iter().filter(|table| table.meta.range_tombstones > 0).cloned();
        Level { deleting: deleting.collect(), tables: tables.into(), bytes, fences }
    }

    /// A deeper level.
    ///
    /// # Errors
    /// Says which tables overlap, or which ends before it starts.
    pub(super) fn sorted(
        order: &KeyOrder,
        mut tables: Vec<Arc<TableFile>>,
    ) -> Result<Level, String> {
        tables.sort_by(|a, b| in_order(order, &a.meta, &b.meta));
        check_apart(order, tables.iter().map(|table| &table.meta))?;
        let fences = Fences::new(order, &tables);
        Ok(Level::of(tables, fences))
    }

    /// The tables, in the level's order.
    #[inline]
    pub(crate) fn tables(&self) -> &Arc<[Arc<TableFile>]> {
        &self.tables
    }

    /// The tables with range deletes, in the level's order.
    #[inline]
    pub(crate) fn deleting(&self) -> &[Arc<TableFile>] {
        &self.deleting
    }

    /// Of the tables with range deletes those that have a say at `user_key`:
    /// where their range deletes begin, or end, next to it. For levels from 1
    /// on.
    pub(crate) fn deleting_around(&self, order: &KeyOrder, user_key: &[u8]) -> &[Arc<TableFile>] {
        let at = self.deleting.partition_point(|t| ends_before(order, &t.meta, user_key));
        &self.deleting[at.saturating_sub(1)..(at + 2).min(self.deleting.len())]
    }

    /// Length of all files.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.tables.is_empty()
    }

    /// Where the first table is that does not end before `user_key`; the count
    /// of tables if there is none. For levels from 1 on.
    #[inline]
    pub(crate) fn lower_bound(&self, order: &KeyOrder, user_key: &[u8]) -> usize {
        let among = match self.fences.heads.is_empty() {
            true => 0..self.tables.len(),
            false => self.fences.candidates(user_key),
        };
        let before = |table: &Arc<TableFile>| ends_before(order, &table.meta, user_key);
        among.start + self.tables[among].partition_point(before)
    }

    /// The one table that may hold `user_key`. For levels from 1 on.
    #[inline]
    pub(crate) fn find(&self, order: &KeyOrder, user_key: &[u8]) -> Option<&Arc<TableFile>> {
        let table = self.tables.get(self.lower_bound(order, user_key))?;
        let starts = order.compare(&table.meta.smallest.user_key, user_key);
        (starts != Ordering::Greater).then_some(table)
    }

    /// Which tables hold keys from `first` to `last`, both inclusive; `None`
    /// is an open end. For levels from 1 on.
    pub(crate) fn overlapping(
        &self,
        order: &KeyOrder,
        first: Option<&[u8]>,
        last: Option<&[u8]>,
    ) -> Range<usize> {
        let start = first.map_or(0, |key| self.lower_bound(order, key));
        let starts_within = |table: &Arc<TableFile>| match last {
            Some(key) => order.compare(&table.meta.smallest.user_key, key) != Ordering::Greater,
            None => true,
        };
        start..start + self.tables[start..].partition_point(starts_within)
    }

    /// The table in which half of the bytes are reached: what holds more than half of
    /// them without a break holds it.
    pub(crate) fn middle(&self) -> Option<&Arc<TableFile>> {
        let mut bytes = 0u64;
        self.tables.iter().find(|table| {
            bytes = bytes.saturating_add(table.meta.bytes);
            bytes >= self.bytes.div_ceil(2)
        })
    }

    /// Length of the tables that lie behind `before` and in front of `after`. For levels
    /// from 1 on.
    pub(crate) fn bytes_between(&self, order: &KeyOrder, before: &[u8], after: &[u8]) -> u64 {
        let tables = &self.tables[self.overlapping(order, Some(before), Some(after))];
        let between = tables.iter().filter(|table| {
            let begins = order.compare(before, &table.meta.smallest.user_key);
            begins == Ordering::Less && ends_before(order, &table.meta, after)
        });
        between.map(|table| table.meta.bytes).fold(0, u64::saturating_add)
    }
}

/// True if everything in the table comes before `user_key`.
#[inline]
pub(crate) fn ends_before(order: &KeyOrder, meta: &TableMeta, user_key: &[u8]) -> bool {
    match order.compare(&meta.largest.user_key, user_key) {
        Ordering::Less => true,
        Ordering::Equal => meta.largest.trailer == TRAILER_NEWEST,
        Ordering::Greater => false,
    }
}

/// True if the table holds keys from `first` to `last`, both inclusive.
pub(crate) fn table_overlaps(
    order: &KeyOrder,
    meta: &TableMeta,
    first: Option<&[u8]>,
    last: Option<&[u8]>,
) -> bool {
    first.is_none_or(|key| !ends_before(order, meta, key))
        && last.is_none_or(|key| order.compare(&meta.smallest.user_key, key) != Ordering::Greater)
}
