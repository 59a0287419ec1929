//! How long level 0 is, in terms of what writers must do about it.

use std::time::Duration;

use crate::options::FamilyOptions;
use crate::sync::atomic::{AtomicU32, Ordering};

/// What writers do at most before they must stop.
const DELAY_MAX: Duration = Duration::from_millis(1);
const STOP: u32 = u32::MAX;

/// The delay of each commit in microseconds, 0 for none, [`STOP`] for ever.
#[derive(Debug, Default)]
pub(crate) struct Pressure(AtomicU32);

impl Pressure {
    /// Takes in the number of level-0 tables of each family.
    pub(crate) fn update<'a>(&self, families: impl Iterator<Item = (usize, &'a FamilyOptions)>) {
        let worst = families.map(|(tables, options)| delay_micros(tables, options)).max();
        self.0.store(worst.unwrap_or(0), Ordering::Release);
    }

    #[inline]
    pub(crate) fn is_high(&self) -> bool {
        self.0.load(Ordering::Acquire) != 0
    }

    pub(crate) fn must_stop(&self) -> bool {
        self.0.load(Ordering::Acquire) == STOP
    }

    /// How long a commit waits; nothing if it must stop.
    pub(crate) fn delay(&self) -> Duration {
        match self.0.load(Ordering::Acquire) {
            STOP => Duration::ZERO,
            micros => Duration::from_micros(u64::from(micros)),
        }
    }
}

/// From nothing at the slowdown limit up to [`DELAY_MAX`] at the stop limit.
fn delay_micros(tables: usize, options: &FamilyOptions) -> u32 {
    let (slow, stop) = (options.level0_slowdown_files, options.level0_stop_files);
    if tables >= stop {
        return STOP;
    }
    if tables < slow {
        return 0;
    }
    let step = DELAY_MAX.as_micros() as usize / (stop - slow);
    ((tables - slow + 1) * step) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Delays begin at the slowdown limit, grow, and end in a stop.
    #[test]
    fn delays_grow_from_slowdown_to_stop() {
        let options = FamilyOptions::default();
        let delays: Vec<u32> = (0..40).map(|tables| delay_micros(tables, &options)).collect();
        assert!(delays[..20].iter().all(|&d| d == 0));
        assert!(delays[20] > 0 && delays.is_sorted());
        assert!(delays[35] != STOP && delays[36] == STOP);
    }
}
