//! What one thread of a benchmark has: its random numbers, its keys and
//! values, and the meter that counts what it did.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use lodestore::{Db, WriteOptions};

use crate::histogram::Histogram;
use crate::keys::KeyShape;
use crate::random::Random;
use crate::values::ValuePool;

/// Operations between looks at the clock, at the stop flag and at what the
/// progress line reads.
const CHECK_OPS: u64 = 64;

/// What all threads of one benchmark share.
pub struct Plan<'a> {
    /// The database.
    pub db: &'a Db,
    /// Keys are made of the numbers below this.
    pub num: u64,
    /// Operations of each thread, if time does not end it.
    pub ops: u64,
    /// Time after which each thread ends, whatever it did.
    pub duration: Option<Duration>,
    /// How keys look.
    pub keys: KeyShape,
    /// Where values come from.
    pub values: ValuePool,
    /// Bytes of each value.
    pub value_bytes: usize,
    /// Entries written at once.
    pub batch_entries: u64,
    /// How writes are made.
    pub write_options: WriteOptions,
    /// True if every operation is timed.
    pub timed: bool,
    /// Set when the user wants the run to end.
    pub stop: &'a AtomicBool,
    /// Operations done by all threads, for the progress line.
    pub done: AtomicU64,
    /// Threads whose part is not over.
    pub running: AtomicUsize,
}

/// One thread's state.
pub struct Worker<'a> {
    /// 0, 1, ... below the number of threads.
    pub index: usize,
    /// This thread's own numbers.
    pub random: Random,
    /// What it shares with the others.
    pub plan: &'a Plan<'a>,
    /// What it did.
    pub meter: Meter<'a>,
}

impl<'a> Worker<'a> {
    /// A worker that has done nothing; its clock starts with [`Meter::start`].
    pub fn new(plan: &'a Plan<'a>, index: usize, seed: u64) -> Worker<'a> {
        Worker { index, random: Random::new(seed), plan, meter: Meter::new(plan) }
    }
}

/// Counts operations; an operation costs it an addition and a comparison.
pub struct Meter<'a> {
    plan: &'a Plan<'a>,
    done: u64,
    next_check: u64,
    reported: u64,
    bytes: u64,
    found: Option<Found>,
    beside: Option<u64>,
    histogram: Option<Histogram>,
    start: Instant,
    last: Instant,
    finish: Instant,
}

/// Lookups that found their key, of those made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Found {
    /// Lookups that found their key.
    pub found: u64,
    /// Lookups.
    pub total: u64,
}

impl<'a> Meter<'a> {
    fn new(plan: &'a Plan<'a>) -> Meter<'a> {
        let now = Instant::now();
        Meter {
            plan,
            done: 0,
            next_check: 0,
            reported: 0,
            bytes: 0,
            found: None,
            beside: None,
            histogram: plan.timed.then(Histogram::default),
            start: now,
            last: now,
            finish: now,
        }
    }

    /// Starts the clock.
    pub fn start(&mut self) {
        self.start = Instant::now();
        self.last = self.start;
    }

    /// Stops the clock.
    pub fn stop(&mut self) {
        self.finish = Instant::now();
        self.report();
    }

    /// True while there is more to do. [`Meter::finished`] must be called
    /// between two calls.
    #[inline]
    pub fn more(&mut self) -> bool {
        self.done < self.next_check || self.check()
    }

    /// Operations left before the next check: a batch is no longer than what
    /// the thread has to do.
    pub fn left(&self) -> u64 {
        self.ops_max() - self.done
    }

    /// Counts `ops` operations, done by one call, on `bytes` of keys and values.
    #[inline]
    pub fn finished(&mut self, ops: u64, bytes: usize) {
        self.done += ops;
        self.bytes += bytes as u64;
        if let Some(histogram) = &mut self.histogram {
            let now = Instant::now();
            histogram.add(now - self.last);
            self.last = now;
        }
    }

    /// Operations counted so far.
    pub fn done(&self) -> u64 {
        self.done
    }

    /// Tells how many lookups found their key.
    pub fn set_found(&mut self, found: u64) {
        self.found = Some(Found { found, total: self.done });
    }

    /// Tells of operations beside those that are measured: the thread then has
    /// no part in the times.
    pub fn set_beside(&mut self, ops: u64) {
        self.beside = Some(ops);
    }

    fn ops_max(&self) -> u64 {
        if self.plan.duration.is_some() { u64::MAX } else { self.plan.ops }
    }

    #[cold]
    fn check(&mut self) -> bool {
        self.report();
        let late = self.plan.duration.is_some_and(|limit| self.start.elapsed() >= limit);
        if late || self.done >= self.ops_max() || self.plan.stop.load(Ordering::Relaxed) {
            return false;
        }
        self.next_check = (self.done + CHECK_OPS).min(self.ops_max());
        true
    }

    fn report(&mut self) {
        self.plan.done.fetch_add(self.done - self.reported, Ordering::Relaxed);
        self.reported = self.done;
    }
}

/// What the threads of a benchmark did together.
#[derive(Clone, Debug)]
pub struct Total {
    /// Operations.
    pub ops: u64,
    /// Bytes of keys and values.
    pub bytes: u64,
    /// Lookups that found their key.
    pub found: Option<Found>,
    /// Operations of threads that are not measured.
    pub beside: Option<u64>,
    /// Sum over the threads of their time.
    pub thread_time: Duration,
    /// From the first start to the last end.
    pub elapsed: Duration,
    /// Latencies, if they were measured.
    pub histogram: Option<Histogram>,
}

impl Total {
    /// Adds up what at least one thread did.
    pub fn of(meters: Vec<Meter<'_>>) -> Total {
        let (mut start, mut finish) = (None::<Instant>, None::<Instant>);
        let mut total = Total {
            ops: 0,
            bytes: 0,
            found: None,
            beside: None,
            thread_time: Duration::ZERO,
            elapsed: Duration::ZERO,
            histogram: None,
        };
        for meter in meters {
            if let Some(ops) = meter.beside {
                *total.beside.get_or_insert(0) += ops;
                continue;
            }
            total.ops += meter.done;
            total.bytes += meter.bytes;
            total.thread_time += meter.finish - meter.start;
            start = Some(start.map_or(meter.start, |s| s.min(meter.start)));
            finish = Some(finish.map_or(meter.finish, |f| f.max(meter.finish)));
            if let Some(found) = meter.found {
                let sum = total.found.get_or_insert(Found { found: 0, total: 0 });
                sum.found += found.found;
                sum.total += found.total;
            }
            match (&mut total.histogram, meter.histogram) {
                (Some(sum), Some(part)) => sum.merge(&part),
                (sum @ None, part) => *sum = part,
                (Some(_), None) => {}
            }
        }
        if let (Some(start), Some(finish)) = (start, finish) {
            total.elapsed = finish - start;
        }
        total
    }
}
