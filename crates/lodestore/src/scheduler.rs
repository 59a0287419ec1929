//! Background work, time and randomness: one object that several databases
//! may share.
//!
//! Flushes, which writers may be waiting for, have threads of their own, so
//! that they are never queued behind anything else. Compactions and deletions
//! share the others: what is short or holds writers back goes first.
//! A seeded scheduler takes time from a counter and randomness from its seed,
//! so that a simulated run can be repeated.

mod pool;
#[cfg(not(simulation))]
mod timer;

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::sync::atomic::{AtomicU64, Ordering};
use crate::sync::thread;
use crate::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock};

use pool::{Order, Pool};
#[cfg(not(simulation))]
use timer::Timer;

/// A wait with a limit advances the clock of a seeded scheduler in steps of
/// this, so that others can end it before the limit.
const SEEDED_STEP: Duration = Duration::from_millis(1);

/// Threads for lookups: each has many in flight.
const READ_THREADS: usize = 2;

/// Which threads a job may use, and what goes before what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lane {
    /// Someone may be waiting: flushes.
    Urgent,
    /// Compactions of level 0, parts of compactions, deletions: on the threads
    /// of `Steady`, before what waits there.
    Soon,
    /// Compactions of deeper levels.
    Steady,
    /// Lookups that someone waits for.
    Reads,
}

type Job = Box<dyn FnOnce() + Send>;

/// Threads for background work, a clock and a source of randomness.
pub struct Scheduler {
    urgent: Pool,
    steady: Pool,
    /// Started when it is first needed.
    reads: OnceLock<Pool>,
    /// Likewise.
    #[cfg(not(simulation))]
    timer: OnceLock<Timer>,
    steady_threads: usize,
    source: Source,
}

enum Source {
    System { start: Instant },
    Seeded { random: Mutex<u64>, nanos: AtomicU64, calendar_seconds: AtomicU64 },
}

impl std::fmt::Debug for Scheduler {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Scheduler").field("steady_threads", &self.steady_threads).finish()
    }
}

impl Scheduler {
    /// A scheduler with `threads` threads for compactions and one for flushes.
    pub fn new(threads: usize) -> Arc<Scheduler> {
        Self::with_source(threads, Source::System { start: Instant::now() })
    }

    /// A scheduler whose time and randomness follow from `seed` alone. Its
    /// clock moves by a microsecond each time that it is read.
    pub fn seeded(threads: usize, seed: u64) -> Arc<Scheduler> {
        let source = Source::Seeded {
            random: Mutex::new(seed),
            nanos: AtomicU64::new(0),
            calendar_seconds: AtomicU64::new(1_700_000_000),
        };
        Self::with_source(threads, source)
    }

    fn with_source(threads: usize, source: Source) -> Arc<Scheduler> {
        let steady_threads = threads.max(1);
        Arc::new(Scheduler {
            urgent: Pool::start("lode-flush", 1),
            steady: Pool::start("lode-compact", steady_threads),
            reads: OnceLock::new(),
            #[cfg(not(simulation))]
            timer: OnceLock::new(),
            steady_threads,
            source,
        })
    }

    /// Lets the clock of a seeded scheduler jump: time passes as while a machine
    /// sleeps, and the calendar, which may go back too, is set to
    /// `unix_seconds`. The system's clock takes no orders: no effect there.
    pub fn jump(&self, passed: Duration, unix_seconds: u64) {
        if let Source::Seeded { nanos, calendar_seconds, .. } = &self.source {
            nanos.fetch_add(passed.as_nanos() as u64, Ordering::Relaxed);
            calendar_seconds.store(unix_seconds, Ordering::Relaxed);
        }
    }

    /// Threads that compactions may use at the same time.
    pub(crate) fn steady_threads(&self) -> usize {
        self.steady_threads
    }

    /// Runs `job` on a thread of `lane`, after the jobs queued there before.
    pub(crate) fn submit(&self, lane: Lane, job: impl FnOnce() + Send + 'static) {
        match lane {
            Lane::Urgent => self.urgent.submit(Box::new(job), Order::First),
            Lane::Soon => self.steady.submit(Box::new(job), Order::First),
            Lane::Steady => self.steady.submit(Box::new(job), Order::Then),
            Lane::Reads => {
                let reads = self.reads.get_or_init(|| Pool::start("lode-read", READ_THREADS));
                reads.submit(Box::new(job), Order::First);
            }
        }
    }

    /// Runs `job`, which must be short, after `delay`. Forgotten if the scheduler
    /// ends before, and by a seeded one, where no time passes by itself.
    pub(crate) fn submit_after(&self, delay: Duration, job: impl FnOnce() + Send + 'static) {
        match &self.source {
            #[cfg(not(simulation))]
            Source::System { .. } => {
                self.timer.get_or_init(Timer::start).submit(delay, Box::new(job));
            }
            _ => drop((delay, job)),
        }
    }

    /// Time since some fixed moment; never goes back.
    pub(crate) fn now(&self) -> Duration {
        match &self.source {
            Source::System { start } => start.elapsed(),
            Source::Seeded { nanos, .. } => {
                Duration::from_nanos(nanos.fetch_add(1_000, Ordering::Relaxed))
            }
        }
    }

    /// Waits until all threads are idle, with nothing that a job had. No effect on
    /// a thread of its own, which would wait for itself.
    fn drain(&self) {
        // What an earlier one of these drops may become a job of a later one.
        let pools = [self.reads.get(), Some(&self.urgent), Some(&self.steady)];
        let is_ours = pools.iter().flatten().any(|pool| pool.is_current());
        #[cfg(not(simulation))]
        if let Some(timer) = self.timer.get().filter(|timer| !is_ours && !timer.is_current()) {
            timer.drain();
        }
        #[cfg(not(simulation))]
        let is_ours = is_ours || self.timer.get().is_some_and(Timer::is_current);
        if !is_ours {
            pools.into_iter().flatten().for_each(Pool::drain);
        }
    }

    /// Waits; in a seeded scheduler only the clock moves on, and others get
    /// their turn.
    pub(crate) fn sleep(&self, duration: Duration) {
        match &self.source {
            Source::System { .. } => thread::sleep(duration),
            Source::Seeded { nanos, .. } => {
                nanos.fetch_add(duration.as_nanos() as u64, Ordering::Relaxed);
                thread::yield_now();
            }
        }
    }

    /// Releases the lock that `guard` holds on `mutex`, waits for a
    /// notification of `condvar`, at most `duration`, and takes it again. May
    /// return early without either: call it in a loop. In a seeded scheduler
    /// the clock moves on a little and others get their turn.
    pub(crate) fn wait_on<'a, T>(
        &self,
        condvar: &Condvar,
        mutex: &'a Mutex<T>,
        guard: MutexGuard<'a, T>,
        duration: Duration,
    ) -> MutexGuard<'a, T> {
        match &self.source {
            #[cfg(not(simulation))]
            Source::System { .. } => condvar.wait_for(guard, duration),
            _ => {
                let _ = condvar;
                drop(guard);
                self.sleep(duration.min(SEEDED_STEP));
                mutex.lock()
            }
        }
    }

    /// Seconds since 1970, for the record only: nothing may depend on its order.
    pub(crate) fn unix_seconds(&self) -> u64 {
        match &self.source {
            Source::System { .. } => system_unix_seconds(),
            Source::Seeded { calendar_seconds, .. } => {
                calendar_seconds.load(Ordering::Relaxed) + self.now().as_secs()
            }
        }
    }

    /// 128 random bits, for the identity of a file.
    pub(crate) fn random_u128(&self) -> u128 {
        match &self.source {
            Source::System { .. } => system_random_u128(),
            Source::Seeded { random, .. } => {
                let mut state = random.lock();
                u128::from(split_mix(&mut state)) << 64 | u128::from(split_mix(&mut state))
            }
        }
    }
}

/// The threads of one database alone. Dropping this waits until they have let go of
/// all that was the database's: its files, and what its owner gave it.
pub(crate) struct OwnThreads(Option<Arc<Scheduler>>);

impl OwnThreads {
    /// `scheduler`, unless it is `shared` with others, who keep it busy.
    pub(crate) fn of(scheduler: &Arc<Scheduler>, shared: Option<&Arc<Scheduler>>) -> OwnThreads {
        OwnThreads(shared.is_none().then(|| Arc::clone(scheduler)))
    }
}

impl Drop for OwnThreads {
    fn drop(&mut self) {
        if let Some(scheduler) = &self.0 {
            scheduler.drain();
        }
    }
}

/// Seconds since 1970 by the system's clock, for those who have no scheduler.
pub(crate) fn system_unix_seconds() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs())
}

/// 128 bits from the operating system's generator, for those who have no
/// scheduler.
pub(crate) fn system_random_u128() -> u128 {
    use std::hash::{BuildHasher, RandomState};
    // The standard library keys each thread's hasher from the system's
    // generator and changes the key at every use.
    let part = || u128::from(RandomState::new().hash_one((Instant::now(), std::process::id())));
    part() << 64 | part()
}

/// The next number of the SplitMix64 generator (Steele, Lea, Flood 2014).
fn split_mix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ z >> 31
}

#[cfg(all(test, simulation))]
mod simulation;
#[cfg(all(test, not(simulation)))]
mod tests {
    use super::*;
    use crate::sync::atomic::AtomicUsize;

    /// Every job that was accepted runs, also when the scheduler goes away.
    #[test]
    fn dropping_the_scheduler_finishes_accepted_jobs() {
        let done = Arc::new(AtomicUsize::new(0));
        let scheduler = Scheduler::new(2);
        for i in 0..100 {
            let done = Arc::clone(&done);
            let lane = if i % 2 == 0 { Lane::Urgent } else { Lane::Steady };
            scheduler.submit(lane, move || {
                done.fetch_add(1, Ordering::Relaxed);
            });
        }
        drop(scheduler);
        assert_eq!(done.load(Ordering::Relaxed), 100);
    }

    /// What holds writers back goes before what waited longer; each lane keeps
    /// its order.
    #[test]
    fn jobs_of_level_0_go_before_deeper_ones() {
        let (done, gate) = (Arc::new(Mutex::new(Vec::new())), Arc::new(Mutex::new(())));
        let scheduler = Scheduler::new(1);
        let closed = gate.lock();
        let waits = Arc::clone(&gate);
        scheduler.submit(Lane::Soon, move || drop(waits.lock()));
        for (name, lane) in [(1, Lane::Steady), (2, Lane::Steady), (3, Lane::Soon), (4, Lane::Soon)]
        {
            let done = Arc::clone(&done);
            scheduler.submit(lane, move || done.lock().push(name));
        }
        drop(closed);
        drop(scheduler);
        assert_eq!(*done.lock(), [3, 4, 1, 2]);
    }

    /// Whoever drops a database's own threads finds all that their jobs had dropped,
    /// also what a job of one lane left to another.
    #[test]
    fn own_threads_let_go_of_everything() {
        for _ in 0..200 {
            let scheduler = Scheduler::new(2);
            let held = Arc::new(());
            for lane in [Lane::Reads, Lane::Urgent, Lane::Soon] {
                let (held, later) = (Arc::clone(&held), Arc::downgrade(&scheduler));
                scheduler.submit(lane, move || {
                    let later = later.upgrade().expect("the test holds it");
                    later.submit(Lane::Soon, move || drop(held));
                });
            }
            let timed = Arc::clone(&held);
            scheduler.submit_after(Duration::ZERO, move || drop(timed));
            scheduler.submit_after(Duration::from_micros(50), || {});
            while Arc::strong_count(&held) == 5 {
                thread::yield_now();
            }
            drop(OwnThreads::of(&scheduler, None));
            // The timer forgets what has not begun.
            assert!(Arc::strong_count(&held) <= 2, "{}", Arc::strong_count(&held));
            drop(scheduler);
            assert_eq!(Arc::strong_count(&held), 1);
        }
    }

    /// The same seed gives the same identities and the same clock.
    #[test]
    fn seeded_schedulers_repeat_themselves() {
        let (a, b) = (Scheduler::seeded(1, 42), Scheduler::seeded(1, 42));
        assert_eq!(a.random_u128(), b.random_u128());
        assert_eq!(a.now(), b.now());
        assert_ne!(a.random_u128(), Scheduler::seeded(1, 43).random_u128());
    }
}
