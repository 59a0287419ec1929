//! Locks, atomics and threads: the only door to concurrency in this crate.
//!
//! An ordinary build gets the standard library's. A build with
//! `--cfg simulation` gets shuttle's, which runs one thread at a time and
//! lets a seed choose the next one at every lock, atomic access and wait. The
//! engine's source is the same in both.
//!
//! Locks here do not return poison errors: a thread that panicked inside a
//! critical section may have left half a change behind, so the next one to
//! come panics too instead of working on it.

#[cfg(simulation)]
use shuttle::sync as imp;
#[cfg(not(simulation))]
use std::sync as imp;

pub(crate) use std::sync::{Arc, OnceLock, Weak};

/// Atomic integers and pointers.
pub(crate) mod atomic {
    #[cfg(simulation)]
    pub(crate) use shuttle::sync::atomic::*;
    #[cfg(not(simulation))]
    pub(crate) use std::sync::atomic::*;
}

/// Threads.
pub(crate) mod thread {
    #[cfg(simulation)]
    use shuttle::thread as imp;
    #[cfg(not(simulation))]
    use std::thread as imp;

    pub(crate) use imp::{JoinHandle, scope, sleep, yield_now};

    /// The calling thread's id.
    pub(crate) fn current_id() -> imp::ThreadId {
        imp::current().id()
    }

    /// What a panic carries.
    pub(crate) type Panic = Box<dyn std::any::Any + Send>;

    /// Calls `work`, and gives its panic instead of passing it on, so that
    /// others who wait for the caller can be told. In a simulation a panic
    /// goes through: it must end the run.
    pub(crate) fn catch_panic<T>(work: impl FnOnce() -> T) -> Result<T, Panic> {
        #[cfg(simulation)]
        return Ok(work());
        #[cfg(not(simulation))]
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(work))
    }

    /// Starts a thread that the system shows as `name`.
    ///
    /// # Panics
    /// If the system has no thread to give.
    pub(crate) fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> JoinHandle<()> {
        imp::Builder::new().name(name.to_string()).spawn(work).expect("the system starts a thread")
    }
}

const POISONED: &str = "another thread panicked while it held this lock";

/// Mutual exclusion.
#[derive(Debug, Default)]
pub(crate) struct Mutex<T>(imp::Mutex<T>);

/// The lock, held.
pub(crate) type MutexGuard<'a, T> = imp::MutexGuard<'a, T>;

impl<T> Mutex<T> {
    pub(crate) fn new(value: T) -> Mutex<T> {
        Mutex(imp::Mutex::new(value))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().expect(POISONED)
    }

    /// The lock, unless some thread holds it.
    pub(crate) fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        self.0.try_lock().ok()
    }

    /// The lock, unless a thread panicked while it held it.
    pub(crate) fn lock_if_sound(&self) -> Option<MutexGuard<'_, T>> {
        self.0.lock().ok()
    }
}

/// An atomic word that is no moment at which a simulation changes threads, for bits
/// that nothing is published by.
pub(crate) use std::sync::atomic::AtomicU64 as StepAtomicU64;

/// A lock that is no moment at which a simulation changes threads, for simulated
/// devices whose calls are one step each. Its holder must not wait for anything.
#[derive(Debug, Default)]
pub(crate) struct StepMutex<T>(std::sync::Mutex<T>);

/// The lock of a step, held.
pub(crate) type StepGuard<'a, T> = std::sync::MutexGuard<'a, T>;

impl<T> StepMutex<T> {
    pub(crate) const fn new(value: T) -> StepMutex<T> {
        StepMutex(std::sync::Mutex::new(value))
    }

    pub(crate) fn lock(&self) -> StepGuard<'_, T> {
        self.0.lock().expect(POISONED)
    }
}

/// Waiting for a condition that a [`Mutex`] guards.
#[derive(Debug, Default)]
pub(crate) struct Condvar(imp::Condvar);

impl Condvar {
    pub(crate) fn new() -> Condvar {
        Condvar(imp::Condvar::new())
    }

    /// Releases the lock, waits for a notification, takes the lock again.
    /// May return without a notification: call it in a loop.
    pub(crate) fn wait<'a, T>(&self, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
        self.0.wait(guard).expect(POISONED)
    }

    /// [`Condvar::wait`] for at most `duration` of real time. The simulation
    /// has no such time: see `Scheduler::wait_on`, which is the caller.
    #[cfg(not(simulation))]
    pub(crate) fn wait_for<'a, T>(
        &self,
        guard: MutexGuard<'a, T>,
        duration: std::time::Duration,
    ) -> MutexGuard<'a, T> {
        self.0.wait_timeout(guard, duration).expect(POISONED).0
    }

    pub(crate) fn notify_one(&self) {
        self.0.notify_one();
    }

    pub(crate) fn notify_all(&self) {
        self.0.notify_all();
    }
}

/// A value that many threads read without waiting, while one replaces it.
///
/// Readers touch no counter that another reader touches; a long read never
/// keeps the writer waiting.
#[derive(Debug)]
pub(crate) struct Published<T>(arc_swap::ArcSwap<T>);

impl<T> Published<T> {
    pub(crate) fn new(value: Arc<T>) -> Published<T> {
        Published(arc_swap::ArcSwap::new(value))
    }

    /// The value now, for a short read.
    pub(crate) fn load(&self) -> arc_swap::Guard<Arc<T>> {
        self.yield_in_simulation();
        self.0.load()
    }

    /// The value now, to keep.
    pub(crate) fn load_full(&self) -> Arc<T> {
        self.yield_in_simulation();
        self.0.load_full()
    }

    /// Replaces the value. Readers that hold the old one keep it.
    pub(crate) fn store(&self, value: Arc<T>) {
        self.yield_in_simulation();
        self.0.store(value);
    }

    #[inline]
    fn yield_in_simulation(&self) {
        #[cfg(simulation)]
        thread::yield_now();
    }
}
