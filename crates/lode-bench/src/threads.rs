//! Runs one function in many threads that start together.

use std::sync::atomic::Ordering;
use std::sync::{Barrier, mpsc};

use crate::watch::INTERVAL;
use crate::worker::{Meter, Plan, Worker};
use crate::workload::ThreadBody;

/// Runs `body` in `threads` threads that start together. While they work,
/// `look` is called with the operations that are done, every few moments.
/// # Errors: that of the first thread, by number, that failed.
pub fn run_threads<'p>(
    plan: &'p Plan<'p>,
    threads: usize,
    first_seed: u64,
    body: ThreadBody,
    look: &mut dyn FnMut(u64),
) -> lodestore::Result<Vec<Meter<'p>>> {
    let barrier = Barrier::new(threads);
    let (ended, ends) = mpsc::channel();
    std::thread::scope(|scope| {
        let handles: Vec<_> = (0..threads)
            .map(|index| {
                let (barrier, ended) = (&barrier, ended.clone());
                scope.spawn(move || {
                    // Dropped when the thread ends, however it ends.
                    let _ended: mpsc::Sender<()> = ended;
                    let _part = Part { plan, index };
                    let mut worker = Worker::new(plan, index, first_seed + index as u64);
                    barrier.wait();
                    worker.meter.start();
                    let result = body(&mut worker);
                    worker.meter.stop();
                    result.map(|()| worker.meter)
                })
            })
            .collect();
        drop(ended);
        while let Err(mpsc::RecvTimeoutError::Timeout) = ends.recv_timeout(INTERVAL) {
            look(plan.done.load(Ordering::Relaxed));
        }
        let join = |handle: std::thread::ScopedJoinHandle<'_, _>| match handle.join() {
            Ok(result) => result,
            Err(panic) => std::panic::resume_unwind(panic),
        };
        handles.into_iter().map(join).collect()
    })
}

/// A thread's part of a benchmark. When it ends, be it by a panic, those that
/// wait for it go on.
struct Part<'a> {
    plan: &'a Plan<'a>,
    index: usize,
}

impl Drop for Part<'_> {
    fn drop(&mut self) {
        if self.index == 0 {
            self.plan.led.store(true, Ordering::Relaxed);
        }
        self.plan.running.fetch_sub(1, Ordering::Relaxed);
    }
}
