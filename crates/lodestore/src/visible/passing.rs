//! Passing over many entries in a row that show nothing: by a gap that is known,
//! else one by one, and then what was found absent is remembered.

use crate::cursor::Cursor;
use crate::gaps::{Claim, Direction, Edge};
use crate::key::{Kind, Trailer, kind_of, sequence_of};

use super::VisibleCursor;

/// After so many entries, or keys in reverse, a known gap is looked for.
const FIND_STEPS: usize = 16;

/// After so many, what follows is claimed.
const CLAIM_STEPS: usize = 32;

/// What was passed over since the last key that exists. Each step makes one, so
/// that what only long runs need is elsewhere.
#[derive(Clone, Copy)]
pub(super) struct Run {
    /// Entries; keys in reverse.
    steps: usize,
    /// At so many steps, more is to be done than to go on.
    look_at: usize,
}

impl Run {
    #[inline]
    pub(super) fn new() -> Run {
        Run { steps: 0, look_at: FIND_STEPS }
    }

    /// How many steps it had, if its end matters.
    #[inline]
    pub(super) fn long(self) -> Option<usize> {
        (self.steps >= FIND_STEPS).then_some(self.steps)
    }
}

/// What is known of a run that became long.
#[derive(Default)]
pub(super) struct LongRun {
    /// At so many steps, a gap is looked for again.
    find_at: usize,
    /// Where a gap ended that was passed over, if nothing was looked at since.
    passed: Option<Edge>,
    claimed: Option<Claimed>,
    /// Where a claim began last. A second one there would look at the same
    /// versions of a key for ever.
    begun: Option<Edge>,
    /// In reverse: the key that was looked at last has a value that is too new
    /// for this walk.
    pub(super) saw_newer_value: bool,
}

struct Claimed {
    claim: Claim,
    /// The steps before it.
    steps_before: usize,
    /// Everything up to here was looked at.
    seen: Edge,
}

impl LongRun {
    /// Forgets an earlier run, which may have ended in a panic of a comparator.
    fn begin(&mut self) {
        let saw_newer_value = self.saw_newer_value;
        *self = LongRun { saw_newer_value, ..LongRun::default() };
    }

    /// Remembers what was claimed, up to `end`; to where was seen, without one.
    fn end_claim(&mut self, steps: usize, end: Option<Edge>) {
        if let Some(Claimed { claim, steps_before, seen }) = self.claimed.take() {
            claim.end(end.unwrap_or(seen), steps - steps_before);
        }
    }

    fn note_passed(&mut self, steps: usize, end: Edge) {
        if let Some(claimed) = &mut self.claimed {
            claimed.seen = end.clone();
        }
        (self.passed, self.find_at) = (Some(end), steps + 1);
    }

    /// The steps at which to look again.
    fn look_at(&self, steps: usize) -> usize {
        if self.claimed.is_some() { steps + 1 } else { self.find_at }
    }
}

impl VisibleCursor {
    /// Goes on from an entry that shows nothing; if it `is_version`, because a newer
    /// one of its key, `self.key`, was looked at.
    #[inline]
    pub(super) fn pass_forward(&mut self, run: &mut Run, is_version: bool) {
        run.steps += 1;
        if run.steps < run.look_at {
            self.inner.next();
        } else {
            run.look_at = self.look_forward(run.steps, is_version);
        }
    }

    /// The same after so many steps; when to look again.
    #[cold]
    fn look_forward(&mut self, steps: usize, is_version: bool) -> usize {
        if steps == FIND_STEPS {
            self.long_run.begin();
        }
        if self.is_newer_value(self.inner.trailer()) {
            self.long_run.end_claim(steps, Some(Edge::before(self.inner.user_key())));
        }
        if !self.leap(steps, Direction::Forward, is_version) {
            // All versions of a key are on one side of what was seen.
            if !is_version && let Some(claimed) = &mut self.long_run.claimed {
                claimed.seen.move_after(self.inner.user_key());
            }
            self.inner.next();
        }
        self.long_run.look_at(steps)
    }

    /// Goes on after a key that does not exist, `self.key`.
    #[inline]
    pub(super) fn pass_reverse(&mut self, run: &mut Run) {
        run.steps += 1;
        if run.steps >= run.look_at {
            run.look_at = self.look_reverse(run.steps);
        }
    }

    #[cold]
    fn look_reverse(&mut self, steps: usize) -> usize {
        if steps == FIND_STEPS {
            self.long_run.begin();
        }
        if self.long_run.saw_newer_value {
            self.long_run.end_claim(steps, Some(Edge::after(&self.key)));
        }
        if let Some(claimed) = &mut self.long_run.claimed {
            claimed.seen.move_before(&self.key);
        }
        if self.inner.valid() {
            self.leap(steps, Direction::Reverse, false);
        }
        self.long_run.look_at(steps)
    }

    /// If a gap is known here, goes to its end; if the run is long, claims what
    /// follows, without the key here if it `is_looked_at`, and looks at it anew.
    /// False if the inner cursor has not moved.
    fn leap(&mut self, steps: usize, direction: Direction, is_looked_at: bool) -> bool {
        if steps < self.long_run.find_at {
            return false;
        }
        self.long_run.find_at = steps + FIND_STEPS;
        let key = self.inner.user_key();
        if let Some(end) = self.memory.gaps().end_around(key, self.sequence, direction) {
            self.go_to(&end, direction);
            self.long_run.note_passed(steps, end);
            return true;
        }
        let long = &mut self.long_run;
        let passed = long.passed.take();
        if long.claimed.is_some() || passed.is_none() && steps < CLAIM_STEPS {
            return false;
        }
        let begin = passed.unwrap_or_else(|| match (direction, is_looked_at) {
            (Direction::Forward, false) | (Direction::Reverse, true) => Edge::before(key),
            (Direction::Forward, true) | (Direction::Reverse, false) => Edge::after(key),
        });
        if long.begun.as_ref() == Some(&begin) {
            return false;
        }
        let Some(claim) = self.memory.claim(&begin, direction) else { return false };
        long.begun = Some(begin.clone());
        long.claimed = Some(Claimed { claim, steps_before: steps, seen: begin.clone() });
        self.go_to(&begin, direction);
        true
    }

    fn go_to(&mut self, edge: &Edge, direction: Direction) {
        match direction {
            Direction::Forward => self.inner.seek(&edge.key, edge.trailer()),
            Direction::Reverse => self.inner.seek_for_prev(&edge.key, edge.trailer()),
        }
    }

    /// True for what readers at a later number could see.
    #[inline]
    pub(super) fn is_newer_value(&self, trailer: Trailer) -> bool {
        sequence_of(trailer) > self.sequence && kind_of(trailer).is_none_or(Kind::is_value)
    }

    /// Ends a long run: remembers what it has passed over, if that was claimed.
    #[cold]
    pub(super) fn end_run(&mut self, steps: usize, direction: Direction) {
        let mut run = std::mem::take(&mut self.long_run);
        self.memory.gaps().count_passed(steps);
        if self.status().is_err() {
            return;
        }
        let bound = match direction {
            Direction::Forward => &self.bounds.upper,
            Direction::Reverse => &self.bounds.lower,
        };
        let end = match direction {
            _ if !self.valid() => bound.as_deref().map(Edge::before),
            Direction::Forward => Some(Edge::before(self.key())),
            Direction::Reverse => Some(Edge::after(self.key())),
        };
        run.end_claim(steps, end);
    }
}
