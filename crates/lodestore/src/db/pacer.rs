//! Writers in line before a family whose background work is behind.
//!
//! They go in the order in which they came and pay for their bytes, each
//! family having a line of its own: families that are not behind go on. No
//! lock that anybody else needs is held while a writer waits.

use std::collections::VecDeque;
use std::time::Duration;

use crate::bucket::Bucket;
use crate::error::StallCause;
use crate::options::FamilyOptions;
use crate::sync::atomic::{AtomicBool, Ordering};
use crate::sync::{Condvar, Mutex, MutexGuard};

use super::pressure::{self, Load, Meters, Pace};

/// One family's line of writers.
#[derive(Debug, Default)]
pub(crate) struct Pacer {
    is_pressed: AtomicBool,
    pub(crate) line: Mutex<Line>,
    pub(crate) changed: Condvar,
}

#[derive(Debug)]
pub(crate) struct Line {
    load: Load,
    meters: Meters,
    bucket: Bucket,
    waiting: VecDeque<u64>,
    next: u64,
}

/// A writer's answer when it asks whether it may go.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Turn {
    /// It was paid for: go.
    Go,
    /// Ask again after this time. The limit is a hard one, or a rate.
    Wait { cause: StallCause, time: Duration, is_stop: bool },
}

/// How long a writer waits at most before it looks again: the active memtable
/// fills and rates change without anybody's telling.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// Writers may be ahead of their rate by what it allows in this time. Without, each
/// waits for the debt of the one before: a sleep of some 60 us, however short it
/// was to be, for one of forty writes. With it one of a thousand and more waits.
const CREDIT: Duration = Duration::from_millis(5);

impl Default for Line {
    fn default() -> Line {
        Line {
            load: Load::default(),
            meters: Meters::default(),
            bucket: Bucket::with_credit(CREDIT),
            waiting: VecDeque::new(),
            next: 0,
        }
    }
}

impl Pacer {
    /// True if writers must ask before they write.
    #[inline]
    pub(crate) fn is_pressed(&self) -> bool {
        self.is_pressed.load(Ordering::Acquire)
    }

    /// Takes in how things stand, and wakes writers to look. True if writers
    /// must ask.
    pub(crate) fn update(&self, load: Load, options: &FamilyOptions, meters: &Meters) -> bool {
        let is_pressed = pressure::may_hold_back(&load, options);
        {
            let mut line = self.lock();
            line.load = load;
            line.meters = *meters;
        }
        self.is_pressed.store(is_pressed, Ordering::Release);
        self.wake();
        is_pressed
    }

    pub(crate) fn wake(&self) {
        self.changed.notify_all();
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Line> {
        self.line.lock()
    }
}

impl Line {
    /// Puts a writer at the end; gives its number.
    pub(crate) fn join(&mut self) -> u64 {
        self.next += 1;
        self.waiting.push_back(self.next);
        self.next
    }

    /// Takes a writer out, wherever it is.
    pub(crate) fn leave(&mut self, number: u64) {
        self.waiting.retain(|&other| other != number);
    }

    /// How things stood when the background last told, with `active_fill` now.
    pub(crate) fn load(&self, active_fill: f64) -> Load {
        Load { active_fill, ..self.load }
    }

    /// Lets a writer that has just come pay for `bytes`, if nobody waits and it
    /// need not either.
    pub(crate) fn pass(
        &mut self,
        now: Duration,
        active_fill: f64,
        options: &FamilyOptions,
        bytes: u64,
    ) -> bool {
        self.waiting.is_empty() && self.turn(true, now, active_fill, options, bytes) == Turn::Go
    }

    /// Lets the writer `number` pay for `bytes`, if it is its turn.
    pub(crate) fn ask(
        &mut self,
        number: u64,
        now: Duration,
        active_fill: f64,
        options: &FamilyOptions,
        bytes: u64,
    ) -> Turn {
        let is_first = self.waiting.front() == Some(&number);
        self.turn(is_first, now, active_fill, options, bytes)
    }

    fn turn(
        &mut self,
        is_first: bool,
        now: Duration,
        active_fill: f64,
        options: &FamilyOptions,
        bytes: u64,
    ) -> Turn {
        let pace = pressure::pace(&self.load(active_fill), options, &self.meters.rates());
        match pace {
            Pace::Free => Turn::Go,
            Pace::Stopped { cause } => Turn::Wait { cause, time: LOOK_AGAIN, is_stop: true },
            Pace::Limited { cause, bytes_per_second } => {
                let wait = |time| Turn::Wait { cause, time, is_stop: false };
                if !is_first {
                    return wait(LOOK_AGAIN);
                }
                match self.bucket.take(now, bytes_per_second, bytes) {
                    Ok(()) => Turn::Go,
                    Err(time) => wait(time.min(LOOK_AGAIN)),
                }
            }
        }
    }
}
