//! Where a table goes that comes from outside and is newer than everything.

use crate::version::{KeyRange, Version};

use super::{BOTTOM, Limits, Running, Targets};

/// The deepest level that such a table with the keys of `range` can be put at:
/// nothing that it overlaps may be there or above, nor be written there. Level
/// 0 takes any table. `placed` are tables that come with it and are older: the
/// level and keys of each.
pub(crate) fn level_for(
    version: &Version,
    limits: &Limits,
    running: &Running,
    placed: &[(usize, KeyRange)],
    range: &KeyRange,
) -> usize {
    let order = version.order();
    let is_free = |level: &usize| {
        let placed_there = placed.iter().filter(|(at, _)| at == level);
        !version.overlaps(*level, Some(&range.first), Some(&range.last))
            && !placed_there.into_iter().any(|(_, other)| other.overlaps(order, range))
            && !running.writes(order, *level, range)
    };
    let deepest = (0..=BOTTOM).take_while(is_free).last().unwrap_or(0);
    // Levels above the base are to be empty.
    let base = Targets::of(version, limits).level0_into(version);
    if deepest >= base { deepest } else { 0 }
}
