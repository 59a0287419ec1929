//! A rate that the threads of a benchmark share: `--benchmark_write_rate_limit`
//! and what is like it.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Time that was not used can be made up for, but not more than this: sleeping
/// too long must not lower the rate, idling must not allow a burst.
const ARREARS_MAX: Duration = Duration::from_millis(100);
/// A sleeping thread looks this often whether the run is to end.
const NAP_MAX: Duration = Duration::from_millis(100);

/// Holds threads back so that together they keep to a rate.
#[derive(Debug)]
pub struct Pace {
    start: Instant,
    /// Units a second, as the bits of an `f64`.
    rate: AtomicU64,
    /// When everything that was asked for so far is paid, in nanoseconds after
    /// `start`.
    paid: AtomicU64,
}

impl Pace {
    /// `rate` units a second, more than zero, from now on.
    pub fn new(rate: f64) -> Pace {
        let rate = AtomicU64::new(rate.to_bits());
        Pace { start: Instant::now(), rate, paid: AtomicU64::new(0) }
    }

    /// Changes the rate; it must be more than zero.
    pub fn set_rate(&self, rate: f64) {
        self.rate.store(rate.to_bits(), Ordering::Relaxed);
    }

    /// Waits until all that was asked for before is paid, then owes `units`
    /// more. Returns at once when `stop` is set.
    pub fn wait(&self, units: u64, stop: &AtomicBool) {
        let due = self.book(units, self.start.elapsed());
        while !stop.load(Ordering::Relaxed) {
            let Some(left) = due.checked_sub(self.start.elapsed()).filter(|l| !l.is_zero()) else {
                return;
            };
            std::thread::sleep(left.min(NAP_MAX));
        }
    }

    /// Books `units` at the time `now` and says when they may be used.
    fn book(&self, units: u64, now: Duration) -> Duration {
        let rate = f64::from_bits(self.rate.load(Ordering::Relaxed));
        let cost = (units as f64 / rate * 1e9) as u64;
        let earliest = now.saturating_sub(ARREARS_MAX).as_nanos() as u64;
        let begin = |paid: u64| paid.max(earliest);
        let pay = |paid: u64| Some(begin(paid).saturating_add(cost));
        let paid = self.paid.fetch_update(Ordering::Relaxed, Ordering::Relaxed, pay);
        Duration::from_nanos(begin(paid.unwrap_or_else(|paid| paid)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ten threads that ask in turn get no more than the rate together.
    #[test]
    fn bookings_follow_each_other() {
        let pace = Pace::new(1_000.0);
        let due: Vec<_> = (0..5).map(|_| pace.book(100, Duration::ZERO)).collect();
        assert_eq!(due, [0, 100, 200, 300, 400].map(Duration::from_millis));
        pace.set_rate(10_000.0);
        assert_eq!(pace.book(100, Duration::ZERO), Duration::from_millis(500));
        assert_eq!(pace.book(100, Duration::ZERO), Duration::from_millis(510));
    }

    /// After an idle second, only a tenth of it is made up for.
    #[test]
    fn idle_time_is_not_saved_up() {
        let pace = Pace::new(1_000.0);
        let now = Duration::from_secs(1);
        let at_once = (0..1_000).filter(|_| pace.book(1, now) <= now).count();
        assert_eq!(at_once, 101);
    }

    /// A stopped run does not wait for a slow rate.
    #[test]
    fn stopping_ends_the_wait() {
        let (pace, stop) = (Pace::new(1e-6), AtomicBool::new(true));
        pace.wait(1, &stop);
        let start = Instant::now();
        pace.wait(1, &stop);
        assert!(start.elapsed() < Duration::from_secs(5));
    }
}
