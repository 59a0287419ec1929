//! A scheduler under which one thread stands still once, at a chosen step, until
//! nobody else can go on: for windows so narrow that chance seldom meets them.

use shuttle::scheduler::{Schedule, Scheduler, Task, TaskId};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Chooses threads for one execution. The first thread goes before all others,
/// but for the one time that it stands still.
#[derive(Debug)]
pub struct OneStop {
    has_begun: bool,
    /// Steps of the first thread are counted from when this is set.
    armed: Arc<AtomicBool>,
    steps_left: usize,
    stands: bool,
}

impl OneStop {
    /// The first thread stands still `steps` steps after `armed` was set.
    pub fn after(steps: usize, armed: &Arc<AtomicBool>) -> OneStop {
        let armed = Arc::clone(armed);
        OneStop { has_begun: false, armed, steps_left: steps, stands: false }
    }
}

impl Scheduler for OneStop {
    fn new_execution(&mut self) -> Option<Schedule> {
        let is_first = !std::mem::replace(&mut self.has_begun, true);
        is_first.then(|| Schedule::new(0))
    }

    fn next_task(
        &mut self,
        runnable: &[&Task],
        _current: Option<TaskId>,
        _is_yielding: bool,
    ) -> Option<TaskId> {
        let first = runnable.iter().map(|task| task.id()).find(|id| usize::from(*id) == 0);
        let other = runnable.iter().map(|task| task.id()).find(|id| usize::from(*id) != 0);
        if first.is_some() && self.armed.load(Ordering::Relaxed) && !self.stands {
            match self.steps_left.checked_sub(1) {
                Some(left) => self.steps_left = left,
                None => {
                    self.armed.store(false, Ordering::Relaxed);
                    self.stands = true;
                }
            }
        }
        self.stands &= other.is_some();
        if self.stands { other } else { first.or(other) }
    }

    fn next_u64(&mut self) -> u64 {
        0
    }
}
