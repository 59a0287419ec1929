//! How long operations take: histograms that are nearly free to keep.
//!
//! Short operations are timed at random, one in sixteen on average, so that two
//! readings of the clock are not paid for each `get`; long ones are timed every
//! time. A histogram is fixed memory: eight buckets for each doubling, from one
//! nanosecond to half an hour, striped like the counters, and made at its first
//! use.
//!
//! The clock, the atomics and the choice of what is timed are outside of the
//! seams in every build: nothing may ever be decided by them.

use std::cell::Cell;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// What is timed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
#[non_exhaustive]
pub enum Operation {
    /// A point lookup. Sampled.
    Get,
    /// A write, from the call to its end: with waits, and the sync if asked
    /// for. Sampled.
    Write,
    /// A cursor's move to a key, to the first or to the last one. Sampled.
    /// Steps from there are not timed: the clock costs as much as one.
    Seek,
    /// A lookup of many keys together. Sampled.
    MultiGet,
    /// Memtables written to tables and installed.
    Flush,
    /// A compaction that rewrites tables, with the installing.
    Compaction,
}

impl Operation {
    /// Every operation, in the order of reports.
    pub const ALL: [Operation; OPERATIONS] = [
        Operation::Get,
        Operation::Write,
        Operation::Seek,
        Operation::MultiGet,
        Operation::Flush,
        Operation::Compaction,
    ];

    /// The name in reports, as in `"multi-get"`.
    pub fn name(self) -> &'static str {
        match self {
            Operation::Get => "get",
            Operation::Write => "write",
            Operation::Seek => "seek",
            Operation::MultiGet => "multi-get",
            Operation::Flush => "flush",
            Operation::Compaction => "compaction",
        }
    }

    /// True if only some are timed, chosen at random; then counts are of
    /// samples, not of operations.
    pub fn is_sampled(self) -> bool {
        (self as usize) < SAMPLED
    }
}

const OPERATIONS: usize = 6;
/// How many of them are sampled: the first ones.
const SAMPLED: usize = 4;
/// One in so many is timed, on average.
const SAMPLE_EVERY: u64 = 16;

/// Threads that time the same operation seldom meet in a cache line.
const STRIPES: usize = 4;

/// Buckets of a doubling, as a power of two: each is at most an eighth of its
/// lower end wide.
const PRECISION_BITS: u32 = 3;
const PARTS: usize = 1 << PRECISION_BITS;
/// 2^41 ns, more than half an hour; what takes longer is in the last bucket.
const EXPONENT_MAX: u32 = 40;
const BUCKETS: usize = (EXPONENT_MAX - PRECISION_BITS + 2) as usize * PARTS;

/// The bucket of a duration.
#[inline]
fn bucket_of(nanos: u64) -> usize {
    if nanos < PARTS as u64 {
        return nanos as usize;
    }
    let exponent = nanos.ilog2();
    let part = (nanos >> (exponent - PRECISION_BITS)) as usize & (PARTS - 1);
    let bucket = (exponent - PRECISION_BITS + 1) as usize * PARTS + part;
    bucket.min(BUCKETS - 1)
}

/// The shortest duration in a bucket, in nanoseconds.
fn lower_end(bucket: usize) -> u64 {
    match bucket.checked_sub(PARTS) {
        None => bucket as u64,
        Some(above) => ((PARTS + above % PARTS) as u64) << (above / PARTS),
    }
}

/// The histograms of one set of statistics.
#[derive(Debug, Default)]
pub(crate) struct Histograms {
    of: [[OnceLock<Box<Histogram>>; STRIPES]; OPERATIONS],
}

#[derive(Debug)]
struct Histogram {
    counts: [AtomicU64; BUCKETS],
    nanos: AtomicU64,
    nanos_max: AtomicU64,
}

impl Histogram {
    fn new() -> Box<Histogram> {
        Box::new(Histogram {
            counts: std::array::from_fn(|_| AtomicU64::new(0)),
            nanos: AtomicU64::new(0),
            nanos_max: AtomicU64::new(0),
        })
    }
}

impl Histograms {
    /// Adds one duration. `stripe` is the calling thread's.
    pub(crate) fn add(&self, operation: Operation, stripe: usize, time: Duration) {
        let histogram = self.of[operation as usize][stripe % STRIPES].get_or_init(Histogram::new);
        let nanos = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        histogram.counts[bucket_of(nanos)].fetch_add(1, Ordering::Relaxed);
        histogram.nanos.fetch_add(nanos, Ordering::Relaxed);
        histogram.nanos_max.fetch_max(nanos, Ordering::Relaxed);
    }

    /// What was added so far.
    pub(crate) fn get(&self, operation: Operation) -> Latency {
        let mut sum = Latency::default();
        for histogram in self.of[operation as usize].iter().filter_map(OnceLock::get) {
            sum.counts.resize(BUCKETS, 0);
            for (count, of) in sum.counts.iter_mut().zip(&histogram.counts) {
                *count += of.load(Ordering::Relaxed);
            }
            sum.nanos += u128::from(histogram.nanos.load(Ordering::Relaxed));
            sum.nanos_max = sum.nanos_max.max(histogram.nanos_max.load(Ordering::Relaxed));
        }
        sum
    }
}

/// When the operation that begins now began, if it is one to be timed.
#[inline]
pub(crate) fn begin(operation: Operation) -> Option<Instant> {
    (!operation.is_sampled() || is_due(operation)).then(Instant::now)
}

/// True once in [`SAMPLE_EVERY`] calls of a thread on average. The distance is
/// random, so that no rhythm of the caller is in step with it.
#[inline]
fn is_due(operation: Operation) -> bool {
    thread_local! {
        static LEFT: [Cell<u32>; SAMPLED] = const { [const { Cell::new(0) }; SAMPLED] };
    }
    LEFT.with(|left| {
        let left = &left[operation as usize];
        match left.get().checked_sub(1) {
            Some(less) => {
                left.set(less);
                false
            }
            None => {
                left.set(random_distance());
                true
            }
        }
    })
}

/// From 0 to twice the average, less two: evenly.
#[cold]
fn random_distance() -> u32 {
    thread_local! {
        static STATE: Cell<u64> = const { Cell::new(0x9e37_79b9_7f4a_7c15) };
    }
    STATE.with(|state| {
        // xorshift64 (Marsaglia 2003)
        let mut x = state.get();
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        state.set(x);
        ((x >> 32) % (2 * SAMPLE_EVERY - 1)) as u32
    })
}

/// How long one kind of operation has taken: a histogram at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Latency {
    /// By bucket; empty if there are none.
    counts: Vec<u64>,
    nanos: u128,
    nanos_max: u64,
}

impl Latency {
    /// Operations that were timed.
    pub fn samples(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// The mean; zero without samples.
    pub fn mean(&self) -> Duration {
        let nanos = self.nanos / u128::from(self.samples().max(1));
        Duration::from_nanos(nanos as u64)
    }

    /// The longest that was timed.
    pub fn max(&self) -> Duration {
        Duration::from_nanos(self.nanos_max)
    }

    /// The time within which `percent` of the samples were done, at most a
    /// sixteenth off; zero without samples.
    ///
    /// # Panics
    /// If `percent` is not from 0 to 100.
    pub fn percentile(&self, percent: f64) -> Duration {
        assert!((0.0..=100.0).contains(&percent), "{percent} is no percentage");
        let samples = self.samples();
        let rank = ((samples as f64 * percent / 100.0).ceil() as u64).clamp(1, samples.max(1));
        let mut seen = 0;
        for (bucket, count) in self.counts.iter().enumerate() {
            seen += count;
            if seen >= rank {
                let middle = lower_end(bucket).midpoint(lower_end(bucket + 1).saturating_sub(1));
                return Duration::from_nanos(middle.min(self.nanos_max));
            }
        }
        Duration::ZERO
    }

    /// What came since `earlier`, which is an earlier state of the same. The
    /// longest is that of all times: a histogram does not keep when it was.
    #[must_use]
    pub fn since(&self, earlier: &Latency) -> Latency {
        let before = earlier.counts.iter().copied().chain(std::iter::repeat(0));
        Latency {
            counts: self.counts.iter().zip(before).map(|(n, b)| n.saturating_sub(b)).collect(),
            nanos: self.nanos.saturating_sub(earlier.nanos),
            nanos_max: self.nanos_max,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Buckets follow each other without a gap and are narrow.
    #[test]
    fn every_duration_has_its_bucket() {
        for bucket in 0..BUCKETS - 1 {
            let (low, next) = (lower_end(bucket), lower_end(bucket + 1));
            assert_eq!((bucket_of(low), bucket_of(next - 1)), (bucket, bucket), "{low}..{next}");
            assert!(next - low <= (low / PARTS as u64).max(1));
        }
        assert_eq!(bucket_of(u64::MAX), BUCKETS - 1);
    }

    /// Percentiles are what sorting all durations would give, to a sixteenth.
    #[test]
    fn percentiles_are_near_the_exact_ones() {
        let histograms = Histograms::default();
        let mut exact: Vec<u64> = Vec::new();
        let mut x = 1u64;
        for i in 0..20_000usize {
            x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let nanos = 100 + (x >> 40) % (1 << (i % 24));
            exact.push(nanos);
            histograms.add(Operation::Get, i, Duration::from_nanos(nanos));
        }
        exact.sort_unstable();
        let latency = histograms.get(Operation::Get);
        assert_eq!(latency.samples(), 20_000);
        for percent in [0.0, 1.0, 50.0, 90.0, 99.0, 99.9, 100.0] {
            let rank = ((20_000.0 * percent / 100.0) as usize).clamp(1, 20_000);
            let (right, told) =
                (exact[rank - 1] as f64, latency.percentile(percent).as_nanos() as f64);
            assert!((told - right).abs() <= right / 16.0 + 1.0, "p{percent}: {told}, not {right}");
        }
        let mean = exact.iter().sum::<u64>() / 20_000;
        assert_eq!(latency.mean().as_nanos() as u64, mean);
        assert_eq!(latency.max().as_nanos() as u64, exact[19_999]);
        assert_eq!(histograms.get(Operation::Write).percentile(99.0), Duration::ZERO);
    }

    /// A difference of two states holds what came between them.
    #[test]
    fn differences_hold_what_came_between() {
        let histograms = Histograms::default();
        let earliest = histograms.get(Operation::Seek);
        (0..100).for_each(|_| histograms.add(Operation::Seek, 0, Duration::from_millis(1)));
        let before = histograms.get(Operation::Seek);
        (0..10).for_each(|_| histograms.add(Operation::Seek, 1, Duration::from_micros(1)));
        let since = histograms.get(Operation::Seek).since(&before);
        assert_eq!((since.samples(), since.mean()), (10, Duration::from_micros(1)));
        assert_eq!(before.since(&earliest), before);
    }

    /// One in sixteen, and not in step with the caller.
    #[test]
    fn one_in_sixteen_is_timed() {
        std::thread::scope(|scope| {
            let calls = || (0..160_000).filter(|_| begin(Operation::Get).is_some()).count();
            let timed = scope.spawn(calls).join().expect("it does not panic");
            assert!((9_000..11_000).contains(&timed), "{timed} of 160,000");
            let even = || {
                let due = (0..160_000).filter(|i| begin(Operation::Get).is_some() && i % 16 == 0);
                due.count()
            };
            let timed = scope.spawn(even).join().expect("it does not panic");
            assert!((400..900).contains(&timed), "{timed} of 10,000 that come each 16 calls");
        });
        assert!(begin(Operation::Flush).is_some());
    }
}
