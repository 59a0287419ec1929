//! Threads that work off a queue of jobs.

use std::collections::VecDeque;

use super::Job;
use crate::sync::thread::{self, JoinHandle};
use crate::sync::{Arc, Condvar, Mutex};

/// Threads and the jobs that wait for them.
pub(super) struct Pool {
    shared: Arc<PoolShared>,
    threads: Vec<JoinHandle<()>>,
}

struct PoolShared {
    queue: Mutex<PoolQueue>,
    changed: Condvar,
    /// No job waits or runs.
    idle: Condvar,
}

#[derive(Default)]
struct PoolQueue {
    first: VecDeque<Job>,
    then: VecDeque<Job>,
    /// Threads that have a job.
    busy: usize,
    closed: bool,
}

impl PoolQueue {
    fn is_idle(&self) -> bool {
        self.busy == 0 && self.first.is_empty() && self.then.is_empty()
    }
}

/// A thread that has a job, until this is dropped.
struct Busy<'a>(&'a PoolShared);

impl Drop for Busy<'_> {
    fn drop(&mut self) {
        let mut queue = self.0.queue.lock();
        queue.busy -= 1;
        if queue.is_idle() {
            self.0.idle.notify_all();
        }
    }
}

/// Which queue of a pool a job joins.
pub(super) enum Order {
    First,
    Then,
}

impl Pool {
    pub(super) fn start(name: &str, threads: usize) -> Pool {
        let queue = Mutex::new(PoolQueue::default());
        let shared = Arc::new(PoolShared { queue, changed: Condvar::new(), idle: Condvar::new() });
        let threads = (0..threads)
            .map(|_| {
                let shared = Arc::clone(&shared);
                thread::spawn(name, move || work(&shared))
            })
            .collect();
        Pool { shared, threads }
    }

    pub(super) fn submit(&self, job: Job, order: Order) {
        let mut queue = self.shared.queue.lock();
        match order {
            Order::First => queue.first.push_back(job),
            Order::Then => queue.then.push_back(job),
        }
        drop(queue);
        self.shared.changed.notify_one();
    }

    /// Whether the caller is one of its threads.
    pub(super) fn is_current(&self) -> bool {
        self.threads.iter().any(|thread| thread.thread().id() == thread::current_id())
    }

    /// Waits until no job waits or runs.
    pub(super) fn drain(&self) {
        let mut queue = self.shared.queue.lock();
        while !queue.is_idle() {
            queue = self.shared.idle.wait(queue);
        }
    }
}

/// Takes jobs until the pool is closed and its queue empty.
fn work(shared: &PoolShared) {
    loop {
        let mut queue = shared.queue.lock();
        let job = loop {
            let next = queue.first.pop_front();
            if let Some(job) = next.or_else(|| queue.then.pop_front()) {
                break job;
            }
            if queue.closed {
                return;
            }
            queue = shared.changed.wait(queue);
        };
        queue.busy += 1;
        drop(queue);
        let busy = Busy(shared);
        job();
        drop(busy);
    }
}

impl Drop for Pool {
    /// Finishes the queued jobs. A job may hold the last reference to the
    /// scheduler itself; a thread does not wait for its own end then.
    fn drop(&mut self) {
        self.shared.queue.lock().closed = true;
        self.shared.changed.notify_all();
        for thread in self.threads.drain(..) {
            if thread.thread().id() != thread::current_id() {
                // A panic in a job was reported by the thread already.
                let _ = thread.join();
            }
        }
    }
}
