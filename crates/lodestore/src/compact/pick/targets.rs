//! How large each level should be, and how far it is from that.
//!
//! Sizes follow from the bottom: the deepest level is as large as the data is,
//! and each level above is smaller by one ratio, down to the size of what
//! level 0 gathers before it is compacted. As few levels are in use as keep
//! that ratio at or below [`Limits::multiplier`]; the first of them is the
//! base, into which level 0 goes. With n levels in use, an entry is rewritten
//! about n * (1 + ratio) times, so equal ratios are the cheapest, and a ratio
//! that is allowed to grow before a level is added is cheaper than one that is
//! fixed: see docs/design/0008-compaction.md.

use super::tombstones::TombstoneLimits;
use crate::version::{LEVELS, Version};

/// The deepest level.
pub(crate) const BOTTOM: usize = LEVELS - 1;

/// Tables a compaction's output may overlap in the level after: it bounds what
/// compacting that output will cost.
const GRANDPARENT_TABLES_MAX: u64 = 10;
/// Tables that inputs are widened to at most.
const WIDENED_TABLES_MAX: u64 = 25;

/// What the shape of the levels is held against.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Limits {
    /// Tables in level 0 that start a compaction.
    pub(crate) level0_files: usize,
    /// Tables in level 0 from which on it goes before all else: writers are held
    /// back by then.
    pub(crate) level0_urgent_files: usize,
    /// What level 0 may hold, and the unit that the other sizes grow from.
    pub(crate) level1_bytes: u64,
    /// The largest ratio between neighbouring levels' sizes.
    pub(crate) multiplier: u32,
    /// Length that tables are cut at.
    pub(crate) table_bytes: u64,
    /// When tombstones are collected.
    pub(crate) tombstones: TombstoneLimits,
    /// True while little is written: what readers gain may cost more then.
    pub(crate) at_rest: bool,
}

impl Limits {
    /// The most that an output table should overlap in the level after next.
    pub(crate) fn grandparent_bytes_max(&self) -> u64 {
        self.table_bytes.saturating_mul(GRANDPARENT_TABLES_MAX)
    }

    /// Inputs are not widened beyond this.
    pub(crate) fn widened_bytes_max(&self) -> u64 {
        self.table_bytes.saturating_mul(WIDENED_TABLES_MAX)
    }
}

/// The size that each level should have.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Targets {
    /// The first level in use after level 0.
    pub(crate) base: usize,
    /// By level; zero for levels that should be empty, `u64::MAX` at the
    /// bottom.
    pub(crate) bytes: [u64; LEVELS],
}

impl Targets {
    /// The sizes for what `version` holds now.
    pub(crate) fn of(version: &Version, limits: &Limits) -> Targets {
        let unit = limits.level1_bytes.max(1) as f64;
        let multiplier = f64::from(limits.multiplier.max(2));
        let largest = version.levels()[1..].iter().map(|level| level.bytes()).max();
        let growth = (largest.unwrap_or(0) as f64 / unit).max(1.0);
        let ratio_with = |levels: usize| growth.powf(1.0 / levels as f64);
        let mut levels = 1;
        while levels < BOTTOM && ratio_with(levels) > multiplier {
            levels += 1;
        }
        // A level that is in use is emptied only once the data has shrunk
        // clearly below what asked for it, so that it does not come and go.
        let keep = levels < BOTTOM && !version.level(BOTTOM - levels).is_empty();
        if keep && ratio_with(levels) > multiplier * 0.7 {
            levels += 1;
        }
        let base = BOTTOM + 1 - levels;
        let ratio = ratio_with(levels);
        let mut bytes = [0; LEVELS];
        for (step, level) in (base..BOTTOM).enumerate() {
            bytes[level] = (unit * ratio.powi(step as i32 + 1)) as u64;
        }
        bytes[0] = limits.level1_bytes;
        bytes[BOTTOM] = u64::MAX;
        Targets { base, bytes }
    }

    /// The level that level 0 is compacted into: the base, or a level above it
    /// that is not empty yet, because newer entries must not pass older ones.
    pub(crate) fn level0_into(&self, version: &Version) -> usize {
        let above = (1..self.base).find(|&level| !version.level(level).is_empty());
        above.unwrap_or(self.base)
    }
}

/// Bytes that compactions have yet to read and write until every level has its
/// size: an estimate, for pacing.
pub(crate) fn debt_bytes(version: &Version, limits: &Limits) -> u64 {
    let targets = Targets::of(version, limits);
    let level0 = version.level(0);
    let mut debt = 0.0;
    let mut arriving = 0.0;
    let is_due =
        level0.tables().len() >= limits.level0_files.max(1) || level0.bytes() > targets.bytes[0];
    if is_due {
        arriving = level0.bytes() as f64;
        debt = arriving + version.level(targets.level0_into(version)).bytes() as f64;
    }
    for level in 1..BOTTOM {
        let here = version.level(level).bytes() as f64;
        if level >= targets.base || here > 0.0 {
            let bytes = if level >= targets.base { here + arriving } else { here };
            let excess = (bytes - targets.bytes[level] as f64).max(0.0);
            let next = version.level(level + 1).bytes() as f64;
            let ratio = (next / bytes.max(1.0)).min(f64::from(limits.multiplier.max(2)));
            debt += excess * (1.0 + ratio);
            arriving = if level >= targets.base { excess } else { arriving + excess };
        }
    }
    debt as u64
}
