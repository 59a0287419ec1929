//! Which tables can be dropped as they are, because all of their keys are in a
//! range that nobody wants any more.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::{BOTTOM, Running};
use crate::key::{KeyOrder, TRAILER_NEWEST};
use crate::table::meta::TableMeta;
use crate::tables::TableFile;
use crate::version::{KeyRange, Version};

/// The tables that lie wholly from `begin`, inclusive, to `end`, exclusive
/// (`None`: open), with their levels. One over an older table that stays is
/// left too: without it, what it deleted or overwrote there would come back.
pub(crate) fn tables_inside(
    version: &Version,
    begin: Option<&[u8]>,
    end: Option<&[u8]>,
    running: &Running,
) -> Vec<(usize, Arc<TableFile>)> {
    let order = version.order();
    let mut dropped = Vec::new();
    let mut numbers = BTreeSet::new();
    for level in (0..=BOTTOM).rev() {
        // Level 0 from its oldest table on; in other levels the order is as good as any.
        for (at, table) in version.level(level).tables().iter().enumerate().rev() {
            if !is_inside(order, &table.meta, begin, end) || running.has_any([table]) {
                continue;
            }
            let range = KeyRange::covering(order, [table]).expect("one table");
            let (first, last) = (Some(&range.first[..]), Some(&range.last[..]));
            let deeper = level + 1..=BOTTOM;
            let mut older = deeper.flat_map(|level| version.overlapping(level, first, last));
            let older_here = || {
                let behind = version.level(0).tables()[at + 1..].iter();
                behind.filter(|t| {
                    KeyRange::covering(order, [*t]).is_some_and(|r| r.overlaps(order, &range))
                })
            };
            let all_go = older.all(|t| numbers.contains(&t.meta.number))
                && (level > 0 || older_here().all(|t| numbers.contains(&t.meta.number)));
            if all_go {
                numbers.insert(table.meta.number);
                dropped.push((level, Arc::clone(table)));
            }
        }
    }
    dropped
}

fn is_inside(order: &KeyOrder, meta: &TableMeta, begin: Option<&[u8]>, end: Option<&[u8]>) -> bool {
    let ends_before = |end: &[u8]| {
        let largest = order.compare(&meta.largest.user_key, end);
        largest.is_lt() || largest.is_eq() && meta.largest.trailer == TRAILER_NEWEST
    };
    begin.is_none_or(|begin| order.compare(begin, &meta.smallest.user_key).is_le())
        && end.is_none_or(ends_before)
}
