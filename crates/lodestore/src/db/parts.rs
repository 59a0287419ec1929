//! A compaction in parts, on as many threads as are free.
//!
//! The thread that has the compaction works on parts until none is left; other
//! threads help, and one that comes too late finds nothing to do, so that
//! nobody waits for a thread. Invariant: the parts are installed together or
//! not at all.

use crate::compact::run::Part;
use crate::error::{Error, Result};
use crate::scheduler::Lane;
use crate::sync::thread::catch_panic;
use crate::sync::{Arc, Condvar, Mutex};
use crate::table::meta::TableMeta;

use super::background::panic_error;
use super::compaction::{Basis, Job};
use super::engine::Engine;

/// A compaction's parts, and what has come of them.
pub(crate) struct Parts {
    pub(crate) job: Job,
    pub(crate) basis: Basis,
    /// Numbers of all tables begun.
    pub(crate) created: Mutex<Vec<u64>>,
    ranges: Vec<Part>,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    next: usize,
    working: usize,
    /// By part: its tables.
    done: Vec<Vec<TableMeta>>,
    entries_in: u64,
    failed: Option<Error>,
}

impl Parts {
    /// The parts of `job` that are cut at `cuts`, which ascend.
    pub(crate) fn new(job: Job, basis: Basis, cuts: Vec<Vec<u8>>) -> Arc<Parts> {
        let froms = std::iter::once(None).chain(cuts.iter().cloned().map(Some));
        let tos = cuts.iter().cloned().map(Some).chain([None]);
        let ranges: Vec<Part> = froms.zip(tos).map(|(from, to)| Part { from, to }).collect();
        let state = State { done: vec![Vec::new(); ranges.len()], ..State::default() };
        Arc::new(Parts {
            job,
            basis,
            created: Mutex::default(),
            ranges,
            state: Mutex::new(state),
            changed: Condvar::new(),
        })
    }

    pub(crate) fn count(&self) -> usize {
        self.ranges.len()
    }

    /// # Errors
    /// If some part has failed: the others need not go on.
    pub(crate) fn check(&self) -> Result<()> {
        self.state.lock().failed.clone().map_or(Ok(()), Err)
    }

    fn take(&self) -> Option<usize> {
        let mut state = self.state.lock();
        let index = state.next;
        if index == self.ranges.len() || state.failed.is_some() {
            return None;
        }
        state.next += 1;
        state.working += 1;
        Some(index)
    }

    fn finish(&self, index: usize, result: Result<(Vec<TableMeta>, u64)>) {
        let mut state = self.state.lock();
        state.working -= 1;
        match result {
            Ok((tables, entries_in)) => {
                state.done[index] = tables;
                state.entries_in += entries_in;
            }
            Err(error) => drop(state.failed.get_or_insert(error)),
        }
        self.changed.notify_all();
    }

    /// Waits for the parts that others work on. The tables of all, in order.
    fn wait(&self) -> Result<(Vec<TableMeta>, u64)> {
        let mut state = self.state.lock();
        while state.working > 0 {
            state = self.changed.wait(state);
        }
        match &state.failed {
            Some(error) => Err(error.clone()),
            None => Ok((state.done.drain(..).flatten().collect(), state.entries_in)),
        }
    }
}

impl Engine {
    /// Does all parts, with `helpers` threads that were set aside for it.
    pub(crate) fn do_parts(
        self: &Arc<Self>,
        parts: &Arc<Parts>,
        helpers: usize,
    ) -> Result<(Vec<TableMeta>, u64)> {
        for _ in 0..helpers {
            let (engine, parts) = (Arc::clone(self), Arc::clone(parts));
            self.shared.scheduler.submit(Lane::Soon, move || {
                engine.work_on(&parts);
                drop(parts);
                engine.give_back_helper();
            });
        }
        self.work_on(parts);
        parts.wait()
    }

    fn work_on(self: &Arc<Self>, parts: &Arc<Parts>) {
        while let Some(index) = parts.take() {
            let result = catch_panic(|| self.rewrite(parts, &parts.ranges[index]));
            let result = result.unwrap_or_else(|panic| Err(panic_error(panic, "compaction")));
            parts.finish(index, result);
        }
    }

    /// Sets up to `wanted` idle threads aside; how many it got.
    pub(crate) fn take_helpers(&self, wanted: usize) -> usize {
        let mut state = self.background.lock();
        let idle = self.shared.scheduler.steady_threads().saturating_sub(state.threads_taken());
        let helpers = wanted.min(idle);
        state.helpers += helpers;
        helpers
    }

    fn give_back_helper(self: &Arc<Self>) {
        self.background.lock().helpers -= 1;
        self.background.notify();
        self.start_compactions();
    }
}
