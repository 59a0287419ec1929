//! Jobs that wait for their time, on one thread.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use crate::sync::thread::{self, JoinHandle};
use crate::sync::{Arc, Condvar, Mutex};

use super::Job;

/// Runs jobs at their time. Dropping it forgets those that still wait.
pub(super) struct Timer {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Shared {
    waiting: Mutex<Waiting>,
    changed: Condvar,
}

#[derive(Default)]
struct Waiting {
    /// By their time; those of one time in the order in which they came.
    jobs: BTreeMap<(Instant, u64), Job>,
    submitted: u64,
    is_running: bool,
    closed: bool,
}

/// The job that runs, until this is dropped.
struct Running<'a>(&'a Shared);

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.waiting.lock().is_running = false;
        self.0.changed.notify_all();
    }
}

impl Timer {
    pub(super) fn start() -> Timer {
        let shared = Arc::new(Shared::default());
        let on_thread = Arc::clone(&shared);
        let thread = thread::spawn("lode-timer", move || work(&on_thread));
        Timer { shared, thread: Some(thread) }
    }

    /// Runs `job`, which must be short, after `delay`.
    pub(super) fn submit(&self, delay: Duration, job: Job) {
        let mut waiting = self.shared.waiting.lock();
        let place = (Instant::now() + delay, waiting.submitted);
        waiting.submitted += 1;
        waiting.jobs.insert(place, job);
        drop(waiting);
        // `drain` may be waiting besides.
        self.shared.changed.notify_all();
    }

    /// Whether the caller is its thread.
    pub(super) fn is_current(&self) -> bool {
        self.thread.as_ref().is_some_and(|of| of.thread().id() == thread::current_id())
    }

    /// Waits until no job runs.
    pub(super) fn drain(&self) {
        let mut waiting = self.shared.waiting.lock();
        while waiting.is_running {
            waiting = self.shared.changed.wait(waiting);
        }
    }
}

fn work(shared: &Shared) {
    let mut waiting = shared.waiting.lock();
    while !waiting.closed {
        let Some(first) = waiting.jobs.first_entry() else {
            waiting = shared.changed.wait(waiting);
            continue;
        };
        let left = first.key().0.saturating_duration_since(Instant::now());
        if !left.is_zero() {
            waiting = shared.changed.wait_for(waiting, left);
            continue;
        }
        let job = first.remove();
        waiting.is_running = true;
        drop(waiting);
        let running = Running(shared);
        job();
        drop(running);
        waiting = shared.waiting.lock();
    }
}

impl Drop for Timer {
    /// A job may hold the last reference to the scheduler itself; the thread
    /// does not wait for its own end then.
    fn drop(&mut self) {
        let mut waiting = self.shared.waiting.lock();
        waiting.closed = true;
        let forgotten = std::mem::take(&mut waiting.jobs);
        drop(waiting);
        drop(forgotten);
        self.shared.changed.notify_all();
        let thread = self.thread.take().expect("it is dropped once");
        if thread.thread().id() != thread::current_id() {
            // A panic in a job was reported by the thread already.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Jobs run in the order of their times, whatever the order they came in;
    /// one whose time has not come when the timer goes is forgotten.
    #[test]
    fn jobs_run_when_their_time_has_come() {
        let done = Arc::new((Mutex::new(Vec::new()), Condvar::new()));
        let timer = Timer::start();
        let note = |name: &'static str| {
            let done = Arc::clone(&done);
            Box::new(move || {
                done.0.lock().push(name);
                done.1.notify_all();
            })
        };
        timer.submit(Duration::from_secs(3600), note("never"));
        timer.submit(Duration::from_millis(40), note("second"));
        timer.submit(Duration::from_millis(1), note("first"));
        let mut seen = done.0.lock();
        while seen.len() < 2 {
            seen = done.1.wait(seen);
        }
        drop(seen);
        drop(timer);
        assert_eq!(*done.0.lock(), ["first", "second"]);
    }
}
