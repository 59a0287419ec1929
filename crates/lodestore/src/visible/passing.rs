//! Passing over many entries in a row that show nothing: by a gap that is known,
//! else one by one, and then what was found absent is remembered.

use crate::cursor::Cursor;
use crate::gaps::Claim;
use crate::gaps::{Direction, Edge};
use crate::key::{Kind, Trailer, kind_of, sequence_of};

use super::VisibleCursor;

/// After so many entries, or keys in reverse, a known gap is looked for.
const FIND_STEPS: usize = 16;

/// After so many, what follows is claimed.
const CLAIM_STEPS: usize = 32;

/// What was passed over since the last key that exists.
pub(super) struct Run {
    /// Entries; keys in reverse.
    steps: usize,
    /// At so many steps, more is to be done than to go on.
    look_at: usize,
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

impl Default for Run {
    #[inline]
    fn default() -> Run {
        Run {
            steps: 0,
            look_at: FIND_STEPS,
            find_at: FIND_STEPS,
            passed: None,
            claimed: None,
            begun: None,
            saw_newer_value: false,
        }
    }
}

impl Run {
    /// True if its end matters.
    #[inline]
    pub(super) fn is_long(&self) -> bool {
        self.steps >= FIND_STEPS
    }

    /// Remembers what was claimed, up to `end`; to where was seen, without one.
    fn end_claim(&mut self, end: Option<Edge>) {
        if let Some(Claimed { claim, steps_before, seen }) = self.claimed.take() {
            claim.end(end.unwrap_or(seen), self.steps - steps_before);
        }
    }

    fn note_passed(&mut self, end: Edge) {
        if let Some(claimed) = &mut self.claimed {
            claimed.seen = end.clone();
        }
        self.passed = Some(end);
        self.find_at = self.steps + 1;
    }

    /// Decides when to look again.
    fn plan(&mut self) {
        self.look_at = if self.claimed.is_some() { self.steps + 1 } else { self.find_at };
    }
}

impl VisibleCursor {
    /// Goes on from an entry that shows nothing. With `skipping`, so does every
    /// version of `self.key`.
    #[inline]
    pub(super) fn pass_forward(&mut self, run: &mut Run, skipping: bool) {
        run.steps += 1;
        if run.steps < run.look_at {
            self.inner.next();
        } else {
            self.look_forward(run, skipping);
        }
    }

    #[cold]
    fn look_forward(&mut self, run: &mut Run, skipping: bool) {
        if self.is_newer_value(self.inner.trailer()) {
            run.end_claim(Some(Edge::before(self.inner.user_key())));
        }
        // That key may be there: it was returned before.
        let is_looked_at = skipping && self.is_at_key();
        if !self.leap(run, Direction::Forward, is_looked_at) {
            if let Some(claimed) = &mut run.claimed {
                claimed.seen.move_after(self.inner.user_key());
            }
            self.inner.next();
        }
        run.plan();
    }

    /// Goes on after a key that does not exist, `self.key`.
    #[inline]
    pub(super) fn pass_reverse(&mut self, run: &mut Run) {
        run.steps += 1;
        if run.steps >= run.look_at {
            self.look_reverse(run);
        }
    }

    #[cold]
    fn look_reverse(&mut self, run: &mut Run) {
        if run.saw_newer_value {
            run.end_claim(Some(Edge::after(&self.key)));
        }
        if let Some(claimed) = &mut run.claimed {
            claimed.seen.move_before(&self.key);
        }
        if self.inner.valid() {
            self.leap(run, Direction::Reverse, false);
        }
        run.plan();
    }

    /// If a gap is known here, goes to its end; if the run is long, claims what
    /// follows, without the key here if it `is_looked_at`, and looks at it anew.
    /// False if the inner cursor has not moved.
    fn leap(&mut self, run: &mut Run, direction: Direction, is_looked_at: bool) -> bool {
        if run.steps < run.find_at {
            return false;
        }
        run.find_at = run.steps + FIND_STEPS;
        let key = self.inner.user_key();
        if let Some(end) = self.memory.gaps().end_around(key, self.sequence, direction) {
            self.go_to(&end, direction);
            run.note_passed(end);
            return true;
        }
        let passed = run.passed.take();
        if run.claimed.is_some() || passed.is_none() && run.steps < CLAIM_STEPS {
            return false;
        }
        let begin = passed.unwrap_or_else(|| match (direction, is_looked_at) {
            (Direction::Forward, false) | (Direction::Reverse, true) => Edge::before(key),
            (Direction::Forward, true) | (Direction::Reverse, false) => Edge::after(key),
        });
        if run.begun.as_ref() == Some(&begin) {
            return false;
        }
        let Some(claim) = self.memory.claim(&begin, direction) else { return false };
        self.go_to(&begin, direction);
        run.begun = Some(begin.clone());
        run.claimed = Some(Claimed { claim, steps_before: run.steps, seen: begin });
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

    /// Remembers what the run has passed over, if it was claimed.
    #[cold]
    pub(super) fn end_run_forward(&mut self, mut run: Run) {
        self.memory.gaps().count_passed(run.steps);
        if self.status().is_err() {
            return;
        }
        run.end_claim(match (self.valid(), &self.bounds.upper) {
            (true, _) => Some(Edge::before(self.key())),
            (false, Some(upper)) => Some(Edge::before(upper)),
            (false, None) => None,
        });
    }

    /// Remembers what the run has passed over, if it was claimed.
    #[cold]
    pub(super) fn end_run_reverse(&mut self, mut run: Run) {
        self.memory.gaps().count_passed(run.steps);
        if self.status().is_err() {
            return;
        }
        run.end_claim(match (self.valid(), &self.bounds.lower) {
            (true, _) => Some(Edge::after(self.key())),
            (false, Some(lower)) => Some(Edge::before(lower)),
            (false, None) => None,
        });
    }
}
