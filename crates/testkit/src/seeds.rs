//! The same work for many seeds, on all cores.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

/// Calls `work` with each of `seeds`, in order, as many at once as there are
/// cores. When one panics, none is begun any more.
///
/// # Panics
/// If `work` does.
pub fn on_all_cores(seeds: Range<u64>, work: impl Fn(u64) + Sync) {
    let next = AtomicU64::new(seeds.start);
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..cores {
            scope.spawn(|| {
                let _stop = StopIfPanicking { next: &next, end: seeds.end };
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= seeds.end {
                        return;
                    }
                    work(seed);
                }
            });
        }
    });
}

struct StopIfPanicking<'a> {
    next: &'a AtomicU64,
    end: u64,
}

impl Drop for StopIfPanicking<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.next.store(self.end, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::Mutex;

    /// Every seed has its turn, once.
    #[test]
    fn every_seed_has_its_turn() {
        let seen = Mutex::new(Vec::new());
        on_all_cores(5..105, |seed| seen.lock().unwrap().push(seed));
        let mut seen = seen.into_inner().unwrap();
        seen.sort_unstable();
        assert!(seen.into_iter().eq(5..105));
    }

    /// A panic reaches the caller, and ends the work.
    #[test]
    fn a_panic_ends_the_work() {
        const SEEDS: u64 = 10_000;
        let begun = AtomicU64::new(0);
        let all = || {
            on_all_cores(0..SEEDS, |seed| {
                begun.fetch_add(1, Ordering::Relaxed);
                assert_ne!(seed, 10, "the eleventh");
                std::thread::sleep(std::time::Duration::from_millis(1));
            });
        };
        assert!(catch_unwind(AssertUnwindSafe(all)).is_err());
        assert!((11..SEEDS).contains(&begun.into_inner()));
    }
}
