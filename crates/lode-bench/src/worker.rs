//! What one thread of a benchmark has: its random numbers, its keys and
//! values, and the meter that counts what it did.
//!
//! `workloads` work with it; `runner` makes one for each thread and adds them
//! up. What a flag tells only some benchmarks is in `shapes`.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use lodestore::{Db, WriteOptions};

use crate::histogram::Histogram;
use crate::keys::KeyShape;
use crate::pace::Pace;
use crate::permutation::Permutation;
use crate::popularity::Popularity;
use crate::random::Random;
use crate::shapes::Shapes;
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
    /// What single benchmarks are told by their flags.
    pub shapes: &'a Shapes,
    /// What lookups of random keys draw from.
    pub lookups: Popularity,
    /// The order of `filluniquerandom`.
    pub permutation: Permutation,
    /// Bytes a second that may be written, if that is limited.
    pub write_pace: Option<Pace>,
    /// Reads a second that may be made, if that is limited.
    pub read_pace: Option<Pace>,
    /// True if every operation is timed.
    pub timed: bool,
    /// Set when the user wants the run to end.
    pub stop: &'a AtomicBool,
    /// Operations done by all threads, for the progress line.
    pub done: AtomicU64,
    /// Threads whose part is not over.
    pub running: AtomicUsize,
    /// The time of `timeseries`: entries written so far.
    pub clock: AtomicU64,
    /// Set when the first thread's part is over.
    pub led: AtomicBool,
}

impl Plan<'_> {
    /// True while threads other than the calling one have something to do.
    pub fn others_run(&self) -> bool {
        self.running.load(Ordering::Relaxed) > 1 && !self.stop.load(Ordering::Relaxed)
    }

    /// True while the first thread has something to do.
    pub fn leader_runs(&self) -> bool {
        !self.led.load(Ordering::Relaxed) && !self.stop.load(Ordering::Relaxed)
    }
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
    parts: Option<Parts>,
    remark: Option<String>,
    beside: bool,
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

/// What a benchmark of several kinds of operations did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Parts {
    /// Lookups.
    pub reads: u64,
    /// Writes.
    pub writes: u64,
    /// Seeks, each perhaps with a scan.
    pub seeks: u64,
    /// Lookups and seeks that found their key.
    pub found: u64,
    /// Bytes of the values written.
    pub value_bytes: u64,
    /// Entries that were scanned after seeks.
    pub scanned: u64,
}

impl Parts {
    fn add(&mut self, other: Parts) {
        self.reads += other.reads;
        self.writes += other.writes;
        self.seeks += other.seeks;
        self.found += other.found;
        self.value_bytes += other.value_bytes;
        self.scanned += other.scanned;
    }
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
            parts: None,
            remark: None,
            beside: false,
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

    /// `on`, for a thread that goes on until others end; tells the progress line
    /// what was done meanwhile.
    #[inline]
    pub fn more_while(&mut self, on: bool) -> bool {
        if self.done >= self.next_check {
            self.report();
            self.next_check = self.done + CHECK_OPS;
        }
        on
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

    /// Tells how many of `total` lookups, which are not the operations, found
    /// something.
    pub fn set_found_of(&mut self, found: u64, total: u64) {
        self.found = Some(Found { found, total });
    }

    /// Tells what the operations were.
    pub fn set_parts(&mut self, parts: Parts) {
        self.parts = Some(parts);
    }

    /// Adds a remark to the line.
    pub fn set_remark(&mut self, remark: String) {
        self.remark = Some(remark);
    }

    /// Makes this a thread beside those that are measured: its operations are
    /// told apart, its time is not in the figures.
    pub fn set_beside(&mut self) {
        self.beside = true;
    }

    /// Waits until `bytes` more may be written, if that is limited. The wait is
    /// in nobody's latency.
    #[inline]
    pub fn hold_writes(&mut self, bytes: usize) {
        if let Some(pace) = &self.plan.write_pace {
            pace.wait(bytes as u64, self.plan.stop);
            self.last = Instant::now();
        }
    }

    /// Waits until `ops` more reads may be made, if that is limited.
    #[inline]
    pub fn hold_reads(&mut self, ops: u64) {
        if let Some(pace) = &self.plan.read_pace {
            pace.wait(ops, self.plan.stop);
            self.last = Instant::now();
        }
    }

    /// Time since the clock was started.
    pub fn elapsed(&self) -> Duration {
        self.start.elapsed()
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
        if !self.beside {
            self.plan.done.fetch_add(self.done - self.reported, Ordering::Relaxed);
        }
        self.reported = self.done;
    }
}

/// What the threads of a benchmark did together.
#[derive(Clone, Debug, Default)]
pub struct Total {
    /// Operations.
    pub ops: u64,
    /// Bytes of keys and values.
    pub bytes: u64,
    /// Lookups that found their key.
    pub found: Option<Found>,
    /// What the operations were, where there are several kinds.
    pub parts: Option<Parts>,
    /// A remark of one of the threads.
    pub remark: Option<String>,
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
        let mut total = Total::default();
        let (beside, measured): (Vec<_>, Vec<_>) = meters.into_iter().partition(|m| m.beside);
        if !beside.is_empty() {
            total.beside = Some(beside.iter().map(|m| m.done).sum());
        }
        let start = measured.iter().map(|m| m.start).min();
        let finish = measured.iter().map(|m| m.finish).max();
        if let (Some(start), Some(finish)) = (start, finish) {
            total.elapsed = finish - start;
        }
        for meter in measured {
            total.add(meter);
        }
        total
    }

    fn add(&mut self, meter: Meter<'_>) {
        self.ops += meter.done;
        self.bytes += meter.bytes;
        self.thread_time += meter.finish - meter.start;
        if let Some(found) = meter.found {
            let sum = self.found.get_or_insert(Found { found: 0, total: 0 });
            sum.found += found.found;
            sum.total += found.total;
        }
        if let Some(parts) = meter.parts {
            self.parts.get_or_insert_default().add(parts);
        }
        // As in LevelDB, one thread speaks for all.
        self.remark = self.remark.take().or(meter.remark);
        match (&mut self.histogram, meter.histogram) {
            (Some(sum), Some(part)) => sum.merge(&part),
            (sum @ None, part) => *sum = part,
            (Some(_), None) => {}
        }
    }
}
