//! Lookups that are begun now and awaited later.
//!
//! caller: memory and cache -> (something must be read:) its family's line ->
//! a reading thread takes all that wait -> looks them up as `multi_get` does -> each
//! waiter's slot
//! Invariants: what a lookup sees was settled when it began, because it waits with
//! its view and its number; each slot is filled once, whatever happens to the
//! reading thread's work.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use crate::error::{Error, Result};
use crate::key::SequenceNumber;
use crate::latency::Operation;
use crate::scheduler::Lane;
use crate::stats::Counter;
use crate::sync::thread::catch_panic;
use crate::sync::{Arc, Condvar, Mutex};

use super::family::FamilyCore;
use super::lookup::{Lookup, Step};
use super::many::{Outcome, UNDER_WAY_MAX, advance_in_memory};
use super::read::ReadOptions;
use super::value::Value;
use super::view::View;

/// A lookup that [`Family::get_later`](super::Family::get_later) has begun: a
/// future of what `get` would have given then, for any executor, or to be waited
/// for. Dropping it gives the lookup up.
#[derive(Debug)]
#[must_use = "the value comes out of it"]
pub struct PendingGet(Inner);

#[derive(Debug)]
enum Inner {
    /// It was in memory. `None` once it was taken.
    Known(Option<Outcome>),
    Waiting(Arc<Slot>),
}

/// Where a lookup's outcome is put.
#[derive(Debug, Default)]
struct Slot {
    state: Mutex<SlotState>,
    filled: Condvar,
}

#[derive(Debug, Default)]
struct SlotState {
    outcome: Option<Outcome>,
    waker: Option<Waker>,
}

impl Slot {
    fn fill(&self, outcome: Outcome) {
        let mut state = self.state.lock();
        state.outcome = Some(outcome);
        let waker = state.waker.take();
        self.filled.notify_all();
        drop(state);
        waker.into_iter().for_each(Waker::wake);
    }
}

impl PendingGet {
    fn known(outcome: Outcome) -> PendingGet {
        PendingGet(Inner::Known(Some(outcome)))
    }

    /// True if the value is there: it was in memory, or has been read by now.
    pub fn is_ready(&self) -> bool {
        match &self.0 {
            Inner::Known(_) => true,
            Inner::Waiting(slot) => slot.state.lock().outcome.is_some(),
        }
    }

    /// Waits for the value.
    ///
    /// # Errors
    /// As `get`.
    ///
    /// # Panics
    /// If it was polled to its end before.
    pub fn wait(self) -> Result<Option<Value>> {
        let slot = match self.0 {
            Inner::Known(outcome) => return outcome.expect(POLLED_AGAIN),
            Inner::Waiting(slot) => slot,
        };
        let mut state = slot.state.lock();
        loop {
            match state.outcome.take() {
                Some(outcome) => return outcome,
                None => state = slot.filled.wait(state),
            }
        }
    }
}

const POLLED_AGAIN: &str = "a lookup gives its value once";

impl Future for PendingGet {
    type Output = Result<Option<Value>>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Outcome> {
        let outcome = match &mut self.0 {
            Inner::Known(outcome) => return Poll::Ready(outcome.take().expect(POLLED_AGAIN)),
            Inner::Waiting(slot) => {
                let mut state = slot.state.lock();
                if state.outcome.is_none() {
                    state.waker = Some(context.waker().clone());
                }
                state.outcome.take()
            }
        };
        match outcome {
            None => Poll::Pending,
            Some(outcome) => {
                self.0 = Inner::Known(None);
                Poll::Ready(outcome)
            }
        }
    }
}

/// Lookups of a family that wait for a reading thread.
#[derive(Default)]
pub(crate) struct Pending {
    line: Mutex<Line>,
}

#[derive(Default)]
struct Line {
    waiting: Vec<Waiting>,
    /// True while a reading thread has been told.
    is_served: bool,
}

/// A lookup with all that it needs to begin anew.
struct Waiting {
    key: Vec<u8>,
    view: Arc<View>,
    sequence: SequenceNumber,
    fill_cache: bool,
    slot: Arc<Slot>,
}

impl Drop for Waiting {
    /// Whoever waits for what nobody will read any more must know.
    fn drop(&mut self) {
        let is_empty = self.slot.state.lock().outcome.is_none();
        if is_empty && Arc::strong_count(&self.slot) > 1 {
            self.slot.fill(Err(Error::invalid("the lookup was given up: a comparator panicked")));
        }
    }
}

impl FamilyCore {
    /// Begins a lookup: see [`Family::get_later`](super::Family::get_later).
    pub(crate) fn get_later(self: &Arc<Self>, options: &ReadOptions, key: &[u8]) -> PendingGet {
        let view = self.views.load();
        let sequence = match self.read_sequence(options) {
            Ok(sequence) => sequence,
            Err(error) => return PendingGet::known(Err(error)),
        };
        self.shared.statistics.add(Counter::Gets, 1);
        let context = self.context(options.fill_cache);
        let mut lookup = Lookup::start(&view, self.order(), context, key, sequence);
        if matches!(advance_in_memory(&mut lookup, context), Step::Done) {
            let outcome = lookup.finish(&self.merge_operator);
            self.count_found(std::slice::from_ref(&outcome));
            return PendingGet::known(outcome);
        }
        drop(lookup);
        let slot = Arc::<Slot>::default();
        let waiting = Waiting {
            key: key.to_vec(),
            view: Arc::clone(&view),
            sequence,
            fill_cache: options.fill_cache,
            slot: Arc::clone(&slot),
        };
        self.join_line(waiting);
        PendingGet(Inner::Waiting(slot))
    }

    fn join_line(self: &Arc<Self>, waiting: Waiting) {
        let mut line = self.pending.line.lock();
        line.waiting.push(waiting);
        if !std::mem::replace(&mut line.is_served, true) {
            drop(line);
            let family = Arc::clone(self);
            self.shared.scheduler.submit(Lane::Reads, move || family.serve_line());
        }
    }

    /// Serves the line until it is empty. A lookup that panics takes those with it
    /// that are served together.
    fn serve_line(&self) {
        loop {
            let mut line = self.pending.line.lock();
            if line.waiting.is_empty() {
                line.is_served = false;
                return;
            }
            let count = line.waiting.len().min(UNDER_WAY_MAX);
            let together: Vec<Waiting> = line.waiting.drain(..count).collect();
            drop(line);
            let _ = catch_panic(|| self.serve(together));
        }
    }

    fn serve(&self, together: Vec<Waiting>) {
        let (filling, passing): (Vec<_>, Vec<_>) =
            together.into_iter().partition(|waiting| waiting.fill_cache);
        for waiting in [filling, passing] {
            let Some(first) = waiting.first() else { continue };
            let context = self.context(first.fill_cache);
            let lookups = waiting
                .iter()
                .map(|w| Lookup::start(&w.view, self.order(), context, &w.key, w.sequence));
            let mut fill = |number: usize, outcome: Outcome| {
                self.count_found(std::slice::from_ref(&outcome));
                waiting[number].slot.fill(outcome);
            };
            self.shared.timed(Operation::MultiGet, || {
                self.finish_together(lookups, context, &mut fill);
            });
        }
    }
}
