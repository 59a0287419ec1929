//! How fast the machine's memory is while a child runs.
//!
//! On a machine that is shared with others a cache miss can take twice as long from
//! one minute to the next, while arithmetic takes what it took before. What a walk
//! through memory takes beside each child shows whether that made Lodestore differ
//! from itself.

use std::hint::black_box;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use lode_bench::random::SplitMix;
use lode_bench::system;

use crate::statistics::median;

/// Bytes that are walked through: more than caches hold.
pub const GAUGE_BYTES: usize = 128 << 20;
/// Steps of a walk: 15 to 50 ms, so that a child loses less than a hundredth of
/// one processor.
const STEPS: usize = 100_000;
/// From the end of a walk to the next.
const PAUSE: Duration = Duration::from_secs(5);

/// A line of the processor's cache, and which one comes after it.
#[repr(align(64))]
struct Line {
    next: u32,
}

/// A way through memory on which each step waits for the one before.
pub struct Gauge {
    lines: Vec<Line>,
}

impl Gauge {
    /// A way through [`GAUGE_BYTES`].
    pub fn new() -> Gauge {
        Gauge::of(GAUGE_BYTES / size_of::<Line>())
    }

    /// A way through `count` lines, in random order and back to the first.
    fn of(count: usize) -> Gauge {
        let mut lines: Vec<Line> = (0..count as u32).map(|next| Line { next }).collect();
        let mut random = SplitMix::new(1);
        // Each swapped with one before it: that leaves one circle, not several
        // (Sattolo, 1986).
        for at in (1..count).rev() {
            lines.swap(at, random.below(at as u64) as usize);
        }
        Gauge { lines }
    }

    /// Does `work`, and returns beside its result what a step took meanwhile, in
    /// nanoseconds of processor time: the median of walks, the first at once.
    pub fn beside<T>(&self, work: impl FnOnce() -> T) -> (T, f64) {
        thread::scope(|scope| {
            let (working, end) = mpsc::channel();
            let walks = scope.spawn(move || self.walks(&end));
            let result = work();
            drop(working);
            let walks = walks.join().expect("a walk stays within its lines");
            (result, median(&walks).expect("the first walk is made whatever happens"))
        })
    }

    /// Walks until nobody can send to `end` any more.
    fn walks(&self, end: &Receiver<()>) -> Vec<f64> {
        let mut at = 0;
        let mut walks = vec![self.walk(&mut at)];
        while end.recv_timeout(PAUSE) == Err(RecvTimeoutError::Timeout) {
            walks.push(self.walk(&mut at));
        }
        walks
    }

    /// Goes on from `at`; returns the nanoseconds of a step.
    fn walk(&self, at: &mut usize) -> f64 {
        let start = system::thread_cpu_time();
        for _ in 0..STEPS {
            *at = self.lines[*at].next as usize;
        }
        black_box(*at);
        (system::thread_cpu_time() - start).as_nanos() as f64 / STEPS as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The way comes by every line before it is back, so that no cache can hold it.
    #[test]
    fn the_way_goes_through_all_lines() {
        for count in [1, 2, 3, 1_000] {
            let gauge = Gauge::of(count);
            let mut at = 0;
            let mut steps = 0;
            loop {
                at = gauge.lines[at].next as usize;
                steps += 1;
                if at == 0 {
                    break;
                }
            }
            assert_eq!(steps, count);
        }
    }

    /// The result is the work's, and even short work has a figure beside it.
    #[test]
    fn short_work_has_a_figure() {
        let (result, nanos) = Gauge::of(1_000).beside(|| 7);
        assert_eq!(result, 7);
        assert!(nanos > 0.0, "{nanos}");
    }
}
