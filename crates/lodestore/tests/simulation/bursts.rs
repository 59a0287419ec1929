//! A scheduler that lets a thread run for a while before it takes another: now
//! for one step, now for hundreds.
//!
//! Where every step may be another thread's, the chance that one stands still
//! in a window of a few steps while another does all of its work is next to
//! nothing. Here it is a few percent.

use shuttle::scheduler::{Schedule, Scheduler, Task, TaskId};
use testkit::random::Random;

/// Runs of up to so many steps, as a power of two.
const STEPS_LOG2_MAX: usize = 9;

/// Chooses threads for one execution.
#[derive(Debug)]
pub struct Bursts {
    seed: u64,
    random: Random,
    has_begun: bool,
    /// Steps left to the thread that runs.
    left: usize,
}

impl Bursts {
    /// The choices that follow from `seed`.
    pub fn new(seed: u64) -> Bursts {
        Bursts { seed, random: Random::new(seed), has_begun: false, left: 0 }
    }
}

impl Scheduler for Bursts {
    fn new_execution(&mut self) -> Option<Schedule> {
        let is_first = !std::mem::replace(&mut self.has_begun, true);
        is_first.then(|| Schedule::new(self.seed))
    }

    fn next_task(
        &mut self,
        runnable: &[&Task],
        current: Option<TaskId>,
        _is_yielding: bool,
    ) -> Option<TaskId> {
        let current = current.filter(|current| runnable.iter().any(|task| task.id() == *current));
        if let Some(current) = current.filter(|_| self.left > 0) {
            self.left -= 1;
            return Some(current);
        }
        let log2 = self.random.below(STEPS_LOG2_MAX + 1);
        self.left = self.random.below(1 << log2);
        Some(self.random.pick(runnable).id())
    }

    fn next_u64(&mut self) -> u64 {
        self.random.word()
    }
}
