//! Jobs of several submitters, and the end of the scheduler.

use super::{Lane, Scheduler};
use crate::sync::atomic::{AtomicUsize, Ordering};
use crate::sync::{Arc, Mutex, thread};
use testkit::explore::explore;

const SUBMITTERS: usize = 2;
const JOBS: usize = 3;

/// Every job that was accepted runs once, also when the scheduler goes while
/// they wait, and also if the last who holds it is one of them.
#[test]
fn every_accepted_job_runs_once() {
    explore("scheduler", |seed| {
        let scheduler = Scheduler::seeded(1 + (seed % 2) as usize, seed);
        let (done, ended) = (Arc::new(Mutex::new(Vec::new())), Arc::new(AtomicUsize::new(0)));
        let submitters: Vec<_> = (0..SUBMITTERS)
            .map(|submitter| {
                let (scheduler, done) = (Arc::clone(&scheduler), Arc::clone(&done));
                let ended = Arc::clone(&ended);
                thread::spawn("submits", move || {
                    for job in 0..JOBS {
                        let lane = [Lane::Urgent, Lane::Soon, Lane::Steady][job];
                        let (done, ended) = (Arc::clone(&done), Arc::clone(&ended));
                        let held = (job == submitter).then(|| Arc::clone(&scheduler));
                        scheduler.submit(lane, move || {
                            done.lock().push((submitter, job));
                            drop(held);
                            ended.fetch_add(1, Ordering::SeqCst);
                        });
                    }
                })
            })
            .collect();
        drop(scheduler);
        submitters.into_iter().for_each(|submitter| submitter.join().unwrap());
        while ended.load(Ordering::SeqCst) < SUBMITTERS * JOBS {
            thread::yield_now();
        }
        let mut done = std::mem::take(&mut *done.lock());
        done.sort_unstable();
        let all = (0..SUBMITTERS).flat_map(|s| (0..JOBS).map(move |job| (s, job)));
        assert!(done.iter().copied().eq(all), "{done:?}");
    });
}

/// While a thread is free, no job waits for another to end: neither one for the
/// same threads nor a flush.
#[test]
fn jobs_do_not_wait_while_a_thread_is_free() {
    for (name, threads, lane) in
        [("scheduler, two threads", 2, Lane::Steady), ("scheduler, a flush", 1, Lane::Urgent)]
    {
        explore(name, move |seed| {
            let scheduler = Scheduler::seeded(threads, seed);
            let came = Arc::new(AtomicUsize::new(0));
            let awaited = Arc::clone(&came);
            scheduler.submit(Lane::Steady, move || {
                while awaited.load(Ordering::SeqCst) == 0 {
                    thread::yield_now();
                }
            });
            let coming = Arc::clone(&came);
            scheduler.submit(lane, move || {
                coming.fetch_add(1, Ordering::SeqCst);
            });
            // The end of the scheduler would wake all threads.
            while came.load(Ordering::SeqCst) == 0 {
                thread::yield_now();
            }
        });
    }
}
