//! A limit on what the background writes to tables, shared by as many
//! databases as their owner likes.
//!
//! Compactions wait for their turn. Flushes never do, because writers may be
//! waiting for them: what they write is charged, and compactions wait the
//! longer. The rate follows from how urgent the work is, from the floor when
//! there is hardly any up to the ceiling before writers would be held back.

use std::collections::BTreeMap;
use std::io;
use std::time::Duration;

use crate::bucket::Bucket;
use crate::fs::WritableFile;
use crate::scheduler::Scheduler;
use crate::sync::atomic::{AtomicBool, Ordering};
use crate::sync::{Arc, Mutex};

/// The floor is the ceiling divided by this, unless it is given.
const FLOOR_DIVISOR: u64 = 8;

/// A wait looks up after this: the rate may have changed.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// Bytes per second that flushes and compactions may write. Databases that
/// share one should share its scheduler as well.
#[derive(Debug)]
pub struct RateLimiter {
    scheduler: Arc<Scheduler>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    floor: u64,
    /// `u64::MAX`: nobody waits.
    ceiling: u64,
    bucket: Bucket,
    /// How urgent each database's work is, from 0 to 1.
    urgencies: BTreeMap<u64, f64>,
    next: u64,
    waited: Duration,
}

impl State {
    fn with_rates(floor: u64, ceiling: u64) -> State {
        let ceiling = ceiling.max(1);
        State { floor: floor.clamp(1, ceiling), ceiling, ..State::default() }
    }
}

impl RateLimiter {
    /// At most `bytes_per_second`, at least an eighth of it, as urgent as the
    /// work is. Time is the scheduler's.
    pub fn new(scheduler: &Arc<Scheduler>, bytes_per_second: u64) -> Arc<RateLimiter> {
        Self::with_floor(scheduler, bytes_per_second / FLOOR_DIVISOR, bytes_per_second)
    }

    /// [`RateLimiter::new`], with a least rate. Equal to `bytes_per_second`, it
    /// makes the rate a fixed one. A rate of nothing counts as one byte.
    pub fn with_floor(
        scheduler: &Arc<Scheduler>,
        floor: u64,
        bytes_per_second: u64,
    ) -> Arc<RateLimiter> {
        let state = State::with_rates(floor, bytes_per_second);
        Arc::new(RateLimiter { scheduler: Arc::clone(scheduler), state: Mutex::new(state) })
    }

    /// Holds nobody back until it is given a rate.
    pub(crate) fn unlimited(scheduler: &Arc<Scheduler>) -> Arc<RateLimiter> {
        Self::with_floor(scheduler, u64::MAX, u64::MAX)
    }

    /// At most `bytes_per_second` from here on, at least an eighth of it. Those
    /// who wait notice soon.
    pub fn set_bytes_per_second(&self, bytes_per_second: u64) {
        let rates = State::with_rates(bytes_per_second / FLOOR_DIVISOR, bytes_per_second);
        let mut state = self.state.lock();
        (state.floor, state.ceiling) = (rates.floor, rates.ceiling);
    }

    /// True if it holds nobody back.
    pub(crate) fn is_unlimited(&self) -> bool {
        self.state.lock().ceiling == u64::MAX
    }

    /// The rate that holds now.
    pub fn bytes_per_second(&self) -> u64 {
        self.rate(&self.state.lock()) as u64
    }

    /// How long compactions have waited so far, in all.
    pub fn waited(&self) -> Duration {
        self.state.lock().waited
    }

    fn rate(&self, state: &State) -> f64 {
        let urgency = state.urgencies.values().fold(0.0, |a: f64, &b| a.max(b));
        let (floor, ceiling) = (state.floor as f64, state.ceiling as f64);
        floor + (ceiling - floor) * urgency
    }

    /// A share in this limiter, for one database.
    pub(crate) fn join(self: &Arc<Self>) -> Arc<Tenant> {
        let mut state = self.state.lock();
        state.next += 1;
        let number = state.next;
        state.urgencies.insert(number, 0.0);
        Arc::new(Tenant { limiter: Arc::clone(self), number, in_a_hurry: AtomicBool::new(false) })
    }
}

/// What is written, which decides who waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// Writers may be waiting: charged, never held back.
    Flush,
    /// Held back to the rate.
    Compaction,
}

/// One database's share in a limiter.
#[derive(Debug)]
pub(crate) struct Tenant {
    limiter: Arc<RateLimiter>,
    number: u64,
    in_a_hurry: AtomicBool,
}

impl Tenant {
    pub(crate) fn limiter(&self) -> &RateLimiter {
        &self.limiter
    }

    /// Says how urgent this database's work is, from 0 to 1.
    pub(crate) fn set_urgency(&self, urgency: f64) {
        let mut state = self.limiter.state.lock();
        state.urgencies.insert(self.number, urgency.clamp(0.0, 1.0));
    }

    /// From now on nothing of this database is held back: it is being closed,
    /// and its owner waits for what runs.
    pub(crate) fn hurry(&self) {
        self.in_a_hurry.store(true, Ordering::Release);
    }

    /// `file`, whose appends are paid for before they are made.
    pub(crate) fn limit(
        self: &Arc<Self>,
        file: Box<dyn WritableFile>,
        purpose: Purpose,
    ) -> Box<dyn WritableFile> {
        Box::new(LimitedFile { file, tenant: Arc::clone(self), purpose })
    }

    fn pay(&self, bytes: u64, purpose: Purpose) {
        let limiter = &self.limiter;
        let begin = limiter.scheduler.now();
        loop {
            let now = limiter.scheduler.now();
            let mut state = limiter.state.lock();
            if state.ceiling == u64::MAX {
                return;
            }
            let rate = limiter.rate(&state);
            if purpose == Purpose::Flush || self.in_a_hurry.load(Ordering::Acquire) {
                state.bucket.charge(now, rate, bytes);
                return;
            }
            match state.bucket.take(now, rate, bytes) {
                Ok(()) => {
                    state.waited += now.saturating_sub(begin);
                    return;
                }
                Err(wait) => {
                    drop(state);
                    limiter.scheduler.sleep(wait.min(LOOK_AGAIN));
                }
            }
        }
    }
}

impl Drop for Tenant {
    fn drop(&mut self) {
        self.limiter.state.lock().urgencies.remove(&self.number);
    }
}

/// A file that pays before it appends.
#[derive(Debug)]
struct LimitedFile {
    file: Box<dyn WritableFile>,
    tenant: Arc<Tenant>,
    purpose: Purpose,
}

impl WritableFile for LimitedFile {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.tenant.pay(bytes.len() as u64, self.purpose);
        self.file.append(bytes)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.file.sync()
    }

    fn preallocate(&mut self, length: u64) -> io::Result<()> {
        self.file.preallocate(length)
    }

    fn write_back(&mut self, offset: u64, length: u64) {
        self.file.write_back(offset, length);
    }

    fn truncate(&mut self, length: u64) -> io::Result<()> {
        self.file.truncate(length)
    }

    fn close(self: Box<Self>) -> io::Result<()> {
        self.file.close()
    }
}

#[cfg(all(test, simulation))]
mod simulation;
#[cfg(all(test, not(simulation)))]
mod tests {
    use super::*;
    use crate::fs::{Fs, MemFs};

    fn write(tenant: &Arc<Tenant>, purpose: Purpose, pieces: usize) {
        let file = MemFs::new().create("/file".as_ref()).expect("memory has room");
        let mut file = tenant.limit(file, purpose);
        (0..pieces).for_each(|_| file.append(&[0; 1000]).expect("memory has room"));
    }

    /// Compactions of two databases keep the rate together, by the scheduler's
    /// clock; flushes take their part of it without waiting.
    #[test]
    fn all_tenants_keep_the_rate_together() {
        let scheduler = Scheduler::seeded(1, 7);
        let limiter = RateLimiter::with_floor(&scheduler, 1_000_000, 1_000_000);
        let (a, b) = (limiter.join(), limiter.join());
        let begin = scheduler.now();
        for _ in 0..10 {
            write(&a, Purpose::Compaction, 50);
            write(&b, Purpose::Compaction, 50);
        }
        let half = scheduler.now() - begin;
        assert!((0.95..1.1).contains(&half.as_secs_f64()), "a megabyte in {half:?}");
        let before = scheduler.now();
        write(&a, Purpose::Flush, 1000);
        let flush = scheduler.now() - before;
        assert!(flush < Duration::from_millis(50), "a flush waits for nobody: {flush:?}");
        write(&b, Purpose::Compaction, 1);
        let after = scheduler.now() - before;
        assert!(after > Duration::from_millis(950), "compactions wait for both: {after:?}");
        assert!(limiter.waited() > Duration::from_millis(1800));
    }

    /// The rate follows the most urgent tenant, and forgets those that left.
    #[test]
    fn the_rate_follows_the_most_urgent_tenant() {
        let limiter = RateLimiter::new(&Scheduler::seeded(1, 7), 8000);
        let (a, b) = (limiter.join(), limiter.join());
        assert_eq!(limiter.bytes_per_second(), 1000);
        a.set_urgency(0.5);
        b.set_urgency(1.0);
        assert_eq!(limiter.bytes_per_second(), 8000);
        drop(b);
        assert_eq!(limiter.bytes_per_second(), 4500);
    }

    /// A limiter that gets a rate holds back those who share in it already, and
    /// one whose rate is taken away lets them go.
    #[test]
    fn the_rate_can_change() {
        let scheduler = Scheduler::seeded(1, 7);
        let limiter = RateLimiter::unlimited(&scheduler);
        let tenant = limiter.join();
        tenant.set_urgency(1.0);
        write(&tenant, Purpose::Compaction, 1000);
        assert!(scheduler.now() < Duration::from_millis(50));
        limiter.set_bytes_per_second(100_000);
        let begin = scheduler.now();
        write(&tenant, Purpose::Compaction, 101);
        assert!(scheduler.now() - begin > Duration::from_millis(950));
        limiter.set_bytes_per_second(u64::MAX);
        let begin = scheduler.now();
        write(&tenant, Purpose::Compaction, 1000);
        assert!(scheduler.now() - begin < Duration::from_millis(50));
    }

    /// A database that is being closed waits no more.
    #[test]
    fn closing_lifts_the_limit() {
        let scheduler = Scheduler::seeded(1, 7);
        let tenant = RateLimiter::new(&scheduler, 100).join();
        tenant.hurry();
        write(&tenant, Purpose::Compaction, 100);
        assert!(scheduler.now() < Duration::from_millis(50));
    }
}
