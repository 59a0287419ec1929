//! One runnable thread at a time.

use crate::bursts::Bursts;
use shuttle::scheduler::{RandomScheduler, Scheduler};
use std::sync::{Arc, Mutex};
use testkit::random::Random;

/// Runs `work` with its threads scheduled by `scheduler`; what it gives.
pub fn in_simulation<T: Send + 'static>(
    scheduler: impl Scheduler + 'static,
    work: impl FnOnce() -> T + Send + 'static,
) -> T {
    let mut config = shuttle::Config::new();
    config.stack_size = 1 << 20;
    config.failure_persistence = shuttle::FailurePersistence::None;
    config.max_steps = shuttle::MaxSteps::FailAfter(200_000_000);
    let result = Arc::new(Mutex::new(None));
    let (gives, work) = (Arc::clone(&result), Mutex::new(Some(work)));
    shuttle::Runner::new(scheduler, config).run(move || {
        let work = work.lock().expect("one run").take().expect("one run");
        let done = work();
        *gives.lock().expect("one run") = Some(done);
    });
    let done = result.lock().expect("the run is over").take();
    done.expect("the run came to its end")
}

/// The same, with a scheduler that follows from `seed`: every step may be
/// another thread's, or threads run for a while.
pub fn in_seeded_simulation<T: Send + 'static>(
    seed: u64,
    work: impl FnOnce() -> T + Send + 'static,
) -> T {
    match Random::new(seed).one_in(2) {
        true => in_simulation(Bursts::new(seed), work),
        false => in_simulation(RandomScheduler::new_from_seed(seed, 1), work),
    }
}
