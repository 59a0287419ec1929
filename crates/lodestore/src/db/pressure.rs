//! How fast writers may go while background work is behind: a pure decision.
//!
//! `Load` (how far behind) + options + `Rates` (what the background absorbs)
//! -> `Pace`. `pacer` makes writers keep it.
//!
//! Each cause has a fullness: 0 where it begins to matter, 1 at its hard
//! limit. Writers get `drain * (1 - fullness) / fullness` bytes a second: any
//! speed at 0, what the background absorbs half way, and less and less towards
//! the limit, without a step anywhere. A wrong estimate of the drain only
//! moves the point where writers and background are in balance.

use std::time::Duration;

use crate::error::StallCause;
use crate::options::FamilyOptions;

/// What is still to become a table holds nobody back by more than this.
const FULLNESS_MAX: f64 = 0.999;

/// A memtable that is filled so far holds nobody back: a burst that ends soon need
/// not wait for a flush.
const FREE_FILL: f64 = 0.5;

/// How far a family's background work is behind, at one moment.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Load {
    /// Memtables that wait for their flush.
    pub(crate) sealed_memtables: usize,
    /// How full the active memtable, or the log segment being written, is: 1
    /// when it is to be sealed.
    pub(crate) active_fill: f64,
    pub(crate) level0_tables: usize,
    /// Bytes that compactions have yet to read and write.
    pub(crate) debt_bytes: u64,
}

/// What the background takes off writers' hands, in bytes that they wrote per
/// second of its work.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rates {
    /// By flushes.
    pub(crate) flush: f64,
    /// By compactions of level 0, for each second of theirs.
    pub(crate) level0: f64,
    /// The same, for each second of any compaction.
    pub(crate) compaction: f64,
}

/// What a writer may do.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Pace {
    /// Go.
    Free,
    /// Go, at this rate.
    Limited { cause: StallCause, bytes_per_second: f64 },
    /// Wait until something was done about the cause.
    Stopped { cause: StallCause },
}

/// The slowest pace that any cause asks for.
pub(crate) fn pace(load: &Load, options: &FamilyOptions, rates: &Rates) -> Pace {
    // One line a cause: its fullness, and the drain that works against it.
    let causes = [
        (StallCause::Flush, memory_fullness(load, options), rates.flush),
        (StallCause::Level0, level0_fullness(load, options), rates.level0),
        (StallCause::Debt, debt_fullness(load, options), rates.compaction),
    ];
    let paces = causes.map(|(cause, fullness, drain)| pace_of(cause, fullness, drain));
    paces.into_iter().fold(Pace::Free, slower)
}

/// True if `pace` could hold writers back, however full the active memtable
/// gets: only then must they ask.
pub(crate) fn may_hold_back(load: &Load, options: &FamilyOptions) -> bool {
    let load = &Load { active_fill: 1.0, ..*load };
    load.sealed_memtables >= options.sealed_memtables_max || compactions_are_behind(load, options)
}

/// True if writers are held back until compactions get on.
pub(crate) fn compactions_are_behind(load: &Load, options: &FamilyOptions) -> bool {
    level0_fullness(load, options) > 0.0 || debt_fullness(load, options) > 0.0
}

/// How urgent background work is, from 0 (nothing to do) to 1 (writers are, or
/// are about to be, held back).
pub(crate) fn urgency(load: &Load, options: &FamilyOptions) -> f64 {
    let begin = options.level0_compaction_files as f64;
    let level0 = fullness(load.level0_tables as f64, begin, options.level0_slowdown_files as f64);
    let debt = fullness(load.debt_bytes as f64, 0.0, options.debt_slowdown_bytes as f64);
    let waiting = load.sealed_memtables as f64 / options.sealed_memtables_max as f64;
    level0.max(debt).max(waiting).min(1.0)
}

/// There is room in the active memtable only, once as many others wait as may.
fn memory_fullness(load: &Load, options: &FamilyOptions) -> f64 {
    match load.sealed_memtables >= options.sealed_memtables_max {
        true => fullness(load.active_fill, FREE_FILL, 1.0),
        false => 0.0,
    }
}

/// Memtables count as the tables that they will be, the active one as the part
/// that is full: else each new table would be a step. But they never stop
/// anybody, because no compaction could end that.
fn level0_fullness(load: &Load, options: &FamilyOptions) -> f64 {
    let (slow, stop) = (options.level0_slowdown_files, options.level0_stop_files);
    if load.level0_tables >= stop || slow == stop {
        return f64::from(load.level0_tables >= stop);
    }
    let coming = load.sealed_memtables as f64 + load.active_fill.min(1.0);
    fullness(load.level0_tables as f64 + coming, slow as f64, stop as f64).min(FULLNESS_MAX)
}

fn debt_fullness(load: &Load, options: &FamilyOptions) -> f64 {
    let (slow, stop) = (options.debt_slowdown_bytes, options.debt_stop_bytes);
    fullness(load.debt_bytes as f64, slow as f64, stop as f64)
}

/// Where `value` is between `begin` (0) and `end` (1).
fn fullness(value: f64, begin: f64, end: f64) -> f64 {
    if value >= end {
        return 1.0;
    }
    ((value - begin) / (end - begin)).max(0.0)
}

fn pace_of(cause: StallCause, fullness: f64, drain: f64) -> Pace {
    if fullness <= 0.0 {
        return Pace::Free;
    }
    if fullness >= 1.0 {
        return Pace::Stopped { cause };
    }
    Pace::Limited { cause, bytes_per_second: drain * (1.0 - fullness) / fullness }
}

fn slower(a: Pace, b: Pace) -> Pace {
    let rate = |pace: &Pace| match pace {
        Pace::Free => f64::INFINITY,
        Pace::Limited { bytes_per_second, .. } => *bytes_per_second,
        Pace::Stopped { .. } => -1.0,
    };
    if rate(&b) < rate(&a) { b } else { a }
}

/// Work of this many seconds is remembered.
const REMEMBERED_SECONDS: f64 = 20.0;
/// What is assumed before anything was measured, and for how many seconds of
/// work the assumption counts.
const ASSUMED: (f64, f64) = (256.0 * 1024.0 * 1024.0, 0.05);

/// Bytes per second of work, where jobs may overlap.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Meter {
    bytes: f64,
    seconds: f64,
    /// The end of the latest job: work before it is counted already.
    until: Duration,
}

impl Default for Meter {
    fn default() -> Meter {
        let (rate, seconds) = ASSUMED;
        Meter { bytes: rate * seconds, seconds, until: Duration::ZERO }
    }
}

impl Meter {
    /// Counts a job that took `bytes` off writers' hands. None weighs more than
    /// all that is remembered: one that a sleeping machine interrupted must not
    /// make writers crawl for as long as it slept.
    pub(crate) fn add(&mut self, begin: Duration, end: Duration, bytes: u64) {
        let seconds = end.saturating_sub(begin.max(self.until)).as_secs_f64();
        let weight = (REMEMBERED_SECONDS / seconds).min(1.0);
        self.until = self.until.max(end);
        self.seconds += seconds * weight;
        self.bytes += bytes as f64 * weight;
        if self.seconds > REMEMBERED_SECONDS {
            self.seconds /= 2.0;
            self.bytes /= 2.0;
        }
    }

    pub(crate) fn bytes_per_second(&self) -> f64 {
        self.bytes / self.seconds
    }
}

/// The meters that [`Rates`] are read from.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Meters {
    pub(crate) flush: Meter,
    pub(crate) level0: Meter,
    pub(crate) compaction: Meter,
}

impl Meters {
    pub(crate) fn rates(&self) -> Rates {
        Rates {
            flush: self.flush.bytes_per_second(),
            level0: self.level0.bytes_per_second(),
            compaction: self.compaction.bytes_per_second(),
        }
    }
}

#[cfg(test)]
mod tests;
