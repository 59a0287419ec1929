//! Stretches of keys that are not there. A walk that had to pass over many
//! deleted entries remembers where they were, and later walks pass over all of
//! them at once.
//!
//! `visible` claims, finds and uses gaps; whoever commits cuts them.
//!
//! What makes a gap true:
//! - A walk may see an older state. It takes a value that is too new for it for
//!   the end of a gap, so that what it found is absent in the newest state too.
//!   Only for that one and later ones: of states between these two, compactions
//!   may have left nothing.
//! - A put cuts the gaps around its key when it is in its memtable, before its
//!   number is published.
//! - A walk *claims* a stretch before it looks at it, and between two commits.
//!   What was put before that, the walk meets; what is put later cuts the claim.
//!   So no put falls between a walk and what is remembered of it.
//!
//! Gaps do not overlap and are few: of those that nobody uses the oldest go.

use std::cmp::Ordering as Order;

use crate::key::{KeyOrder, SequenceNumber, TRAILER_NEWEST, Trailer};
use crate::stats::{Counter, Statistics};
use crate::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use crate::sync::{Arc, Mutex};

#[cfg(all(test, simulation))]
mod simulation;
#[cfg(test)]
mod tests;

/// Gaps that are remembered at a time, in one family.
const GAPS_MAX: usize = 64;

/// Walks that may claim at a time.
const CLAIMS_MAX: usize = 8;

/// What begins or ends at a longer key is not remembered.
const KEY_BYTES_MAX: usize = 1024;

/// A gap of fewer entries is no gain, unless it makes another one longer.
const STEPS_MIN: usize = 32;

/// A place between keys: just before or just after one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Edge {
    pub(crate) key: Vec<u8>,
    after: bool,
}

impl Edge {
    pub(crate) fn before(key: &[u8]) -> Edge {
        Edge { key: key.to_vec(), after: false }
    }

    pub(crate) fn after(key: &[u8]) -> Edge {
        Edge { key: key.to_vec(), after: true }
    }

    pub(crate) fn move_before(&mut self, key: &[u8]) {
        self.after = false;
        self.key.clear();
        self.key.extend_from_slice(key);
    }

    pub(crate) fn move_after(&mut self, key: &[u8]) {
        self.move_before(key);
        self.after = true;
    }

    /// With the key: no entry is between this place and there, and all versions
    /// of the key are on one side of it.
    pub(crate) fn trailer(&self) -> Trailer {
        if self.after { 0 } else { TRAILER_NEWEST }
    }

    fn compare(&self, order: &KeyOrder, other: &Edge) -> Order {
        order.compare(&self.key, &other.key).then(self.after.cmp(&other.after))
    }

    /// Where this place is, seen from a key: never equal.
    fn compare_key(&self, order: &KeyOrder, key: &[u8]) -> Order {
        let side = if self.after { Order::Greater } else { Order::Less };
        order.compare(&self.key, key).then(side)
    }
}

/// The way in which a walk goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    Forward,
    Reverse,
}

/// What a walk has to do with gaps.
pub(crate) trait Remember: Send + Sync {
    /// Those of the family that is walked over.
    fn gaps(&self) -> &Gaps;

    /// See [`Gaps::claim`]. `None` also if there are commits just now, or if the
    /// walk might not meet all that was put before.
    fn claim(&self, begin: &Edge, direction: Direction) -> Option<Claim>;
}

#[derive(Clone, Debug)]
struct Gap {
    from: Edge,
    to: Edge,
    /// Readers at this number or a later one see nothing here.
    sequence: SequenceNumber,
    /// When it was last of use, in uses.
    used: u64,
}

/// What a walk is about to look at.
struct Claimed {
    id: u64,
    /// Where the walk began, and how far it may be believed, if not to its end.
    begin: Edge,
    limit: Option<Edge>,
    direction: Direction,
    sequence: SequenceNumber,
}

#[derive(Default)]
struct State {
    /// Ascending; they neither overlap nor touch.
    gaps: Vec<Gap>,
    claims: Vec<Claimed>,
    claims_made: u64,
    uses: u64,
}

/// The gaps of one family.
pub(crate) struct Gaps {
    order: KeyOrder,
    statistics: Arc<Statistics>,
    /// False if a put has nothing to cut. Written under the lock of `state`. Relaxed
    /// is enough for puts: claims are made under the commit lock, which they hold,
    /// and what is remembered was claimed before.
    any: AtomicBool,
    /// How often all was forgotten.
    generation: AtomicU64,
    state: Mutex<State>,
}

/// A stretch that a walk has claimed. When it is dropped, what was seen of it
/// is remembered.
pub(crate) struct Claim {
    gaps: Arc<Gaps>,
    id: u64,
    /// Where it ends, and the entries that were passed over up to there.
    seen: Option<(Edge, usize)>,
}

impl Gaps {
    pub(crate) fn new(order: KeyOrder, statistics: &Arc<Statistics>) -> Arc<Gaps> {
        Arc::new(Gaps {
            order,
            statistics: Arc::clone(statistics),
            any: AtomicBool::new(false),
            generation: AtomicU64::new(0),
            state: Mutex::default(),
        })
    }

    /// The far end, in the direction of travel, of the gap that `key` is in, for
    /// a reader at `sequence`.
    pub(crate) fn end_around(
        &self,
        key: &[u8],
        sequence: SequenceNumber,
        direction: Direction,
    ) -> Option<Edge> {
        if !self.any.load(Ordering::Relaxed) {
            return None;
        }
        let mut state = self.state.lock();
        let place = state.place(&self.order, key)?;
        state.uses += 1;
        let used = state.uses;
        let gap = &mut state.gaps[place];
        if gap.sequence > sequence {
            return None;
        }
        gap.used = used;
        let end = if direction == Direction::Forward { &gap.to } else { &gap.from };
        let end = end.clone();
        drop(state);
        self.statistics.add(Counter::GapsPassed, 1);
        Some(end)
    }

    /// Claims what a walk that goes on from `begin` will look at. Call it between
    /// two commits, the former of which was `sequence`. `None` if it would not be
    /// remembered.
    pub(crate) fn claim(
        self: &Arc<Gaps>,
        begin: &Edge,
        direction: Direction,
        sequence: SequenceNumber,
    ) -> Option<Claim> {
        let mut state = self.state.lock();
        if state.claims.len() >= CLAIMS_MAX || begin.key.len() > KEY_BYTES_MAX {
            return None;
        }
        state.claims_made += 1;
        let id = state.claims_made;
        let begin = begin.clone();
        state.claims.push(Claimed { id, begin, limit: None, direction, sequence });
        self.any.store(true, Ordering::Relaxed);
        Some(Claim { gaps: Arc::clone(self), id, seen: None })
    }

    /// To be called for each value or operand that is put, when readers could
    /// find it and before any may see it. Only under the commit lock.
    #[inline]
    pub(crate) fn cut(&self, key: &[u8]) {
        if self.any.load(Ordering::Relaxed) {
            self.cut_at(key);
        }
    }

    #[cold]
    fn cut_at(&self, key: &[u8]) {
        let mut state = self.state.lock();
        for claim in &mut state.claims {
            claim.cut(&self.order, key);
        }
        if let Some(place) = state.place(&self.order, key) {
            let gap = &mut state.gaps[place];
            let is_kept = key.len() <= KEY_BYTES_MAX && {
                gap.to = Edge::before(key);
                gap.from.compare(&self.order, &gap.to).is_lt()
            };
            if !is_kept {
                state.gaps.remove(place);
            }
        }
        self.note_any(&state);
    }

    /// Forgets all gaps and claims, and those that walks over what was there
    /// before might make. Only under the commit lock.
    pub(crate) fn forget(&self) {
        let mut state = self.state.lock();
        self.generation.fetch_add(1, Ordering::Release);
        state.gaps.clear();
        state.claims.clear();
        self.note_any(&state);
    }

    /// Counts entries that a walk passed over one by one.
    pub(crate) fn count_passed(&self, steps: usize) {
        self.statistics.add(Counter::EntriesPassed, steps as u64);
    }

    /// Another number after each [`Gaps::forget`].
    pub(crate) fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    fn note_any(&self, state: &State) {
        let any = !state.gaps.is_empty() || !state.claims.is_empty();
        self.any.store(any, Ordering::Relaxed);
    }

    /// Ends a claim. What was seen of it is remembered, as far as nothing was put
    /// there.
    fn settle(&self, id: u64, seen: Option<(Edge, usize)>) {
        let mut state = self.state.lock();
        if let Some(place) = state.claims.iter().position(|claim| claim.id == id) {
            let claim = state.claims.swap_remove(place);
            let gap = seen.and_then(|(end, steps)| Some((claim.gap(&self.order, end)?, steps)));
            if let Some((gap, steps)) = gap {
                let is_kept = state.remember(&self.order, gap, steps);
                self.statistics.add(Counter::GapsRemembered, u64::from(is_kept));
            }
        }
        self.note_any(&state);
    }
}

impl State {
    /// The gap that `key` is in.
    fn place(&self, order: &KeyOrder, key: &[u8]) -> Option<usize> {
        let after = self.gaps.partition_point(|gap| gap.from.compare_key(order, key).is_lt());
        let place = after.checked_sub(1)?;
        self.gaps[place].to.compare_key(order, key).is_gt().then_some(place)
    }

    /// Adds a gap that a walk of `steps` entries found, joined with those that
    /// it overlaps or touches. False if it is too small to be kept.
    fn remember(&mut self, order: &KeyOrder, mut gap: Gap, steps: usize) -> bool {
        let first = self.gaps.partition_point(|other| other.to.compare(order, &gap.from).is_lt());
        let end = self.gaps.partition_point(|other| other.from.compare(order, &gap.to).is_le());
        if first >= end && steps < STEPS_MIN {
            return false;
        }
        self.uses += 1;
        gap.used = self.uses;
        for other in self.gaps.splice(first..end.max(first), []) {
            gap.sequence = gap.sequence.max(other.sequence);
            if other.from.compare(order, &gap.from).is_lt() {
                gap.from = other.from;
            }
            if other.to.compare(order, &gap.to).is_gt() {
                gap.to = other.to;
            }
        }
        self.gaps.insert(first, gap);
        if self.gaps.len() > GAPS_MAX {
            let oldest = (0..self.gaps.len()).min_by_key(|&place| self.gaps[place].used);
            oldest.map(|place| self.gaps.remove(place));
        }
        true
    }
}

impl Claimed {
    /// Ends the claim before `key`, seen from where it begins.
    fn cut(&mut self, order: &KeyOrder, key: &[u8]) {
        let (limit, ahead) = match self.direction {
            Direction::Forward => (Edge::before(key), Order::Less),
            Direction::Reverse => (Edge::after(key), Order::Greater),
        };
        let is_nearer = |old: &Edge| limit.compare(order, old) == ahead;
        if self.begin.compare_key(order, key) == ahead && self.limit.as_ref().is_none_or(is_nearer)
        {
            self.limit = Some(limit);
        }
    }

    /// What was claimed, up to `end`; `None` if nothing is left of it.
    fn gap(self, order: &KeyOrder, end: Edge) -> Option<Gap> {
        let ahead = match self.direction {
            Direction::Forward => Order::Less,
            Direction::Reverse => Order::Greater,
        };
        let limit = self.limit.filter(|limit| limit.compare(order, &end) == ahead);
        let end = limit.unwrap_or(end);
        if self.begin.compare(order, &end) != ahead || end.key.len() > KEY_BYTES_MAX {
            return None;
        }
        let (from, to) = match self.direction {
            Direction::Forward => (self.begin, end),
            Direction::Reverse => (end, self.begin),
        };
        Some(Gap { from, to, sequence: self.sequence, used: 0 })
    }
}

impl Claim {
    /// The walk has looked at all up to `end`, at `steps` entries, and seen
    /// nothing there.
    pub(crate) fn end(mut self, end: Edge, steps: usize) {
        self.seen = Some((end, steps));
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        self.gaps.settle(self.id, self.seen.take());
    }
}
