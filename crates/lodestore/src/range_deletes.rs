//! Range deletes as sorted fragments: what is hidden at a key, and how far.
//!
//! A range delete hides every entry from its first key up to its end key,
//! exclusive, whose sequence number is lower than its own. Any number of them,
//! overlapping at will, becomes [`Fragments`]: ranges that do not overlap, each
//! with the numbers that hide something there. One binary search then answers
//! for a key, however many range deletes there were.
//!
//! Memtables keep a [`History`], which grows; a table keeps one [`Fragments`].
//! Nothing here does I/O.

mod history;

#[cfg(test)]
mod tests;

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;

use crate::key::{KeyOrder, SEQUENCE_MAX, SequenceNumber};

pub(crate) use history::History;

/// One range delete, as it was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RangeDelete {
    /// The first key that is deleted.
    pub(crate) start: Arc<[u8]>,
    /// The first key after it that is not.
    pub(crate) end: Arc<[u8]>,
    pub(crate) sequence: SequenceNumber,
}

/// A part of the key space in which the same range deletes hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fragment {
    pub(crate) start: Arc<[u8]>,
    pub(crate) end: Arc<[u8]>,
    /// Descending; at least one.
    pub(crate) sequences: Box<[SequenceNumber]>,
}

impl Fragment {
    /// The highest number of this fragment that a reader at `visible` sees; 0
    /// if there is none.
    #[inline]
    fn newest_at(&self, visible: SequenceNumber) -> SequenceNumber {
        self.sequences.iter().copied().find(|&s| s <= visible).unwrap_or(0)
    }
}

/// Fragments in the order of keys; they do not overlap.
#[derive(Clone, Debug, Default)]
pub(crate) struct Fragments {
    order: KeyOrder,
    fragments: Vec<Fragment>,
}

/// A part of the key space in which the newest range delete that a reader sees
/// is the same everywhere.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Window<'a> {
    /// Inclusive; `None`: from the beginning.
    pub(crate) start: Option<&'a [u8]>,
    /// Exclusive; `None`: to the end.
    pub(crate) end: Option<&'a [u8]>,
    /// The range delete's number; 0 if there is none.
    pub(crate) sequence: SequenceNumber,
}

impl<'a> Window<'a> {
    /// What holds where both windows are: the newest range delete of either.
    pub(crate) fn and(self, other: Window<'a>, order: &KeyOrder) -> Window<'a> {
        let later = |a: &'a [u8], b: &'a [u8]| if order.compare(a, b).is_ge() { a } else { b };
        let earlier = |a: &'a [u8], b: &'a [u8]| if order.compare(a, b).is_le() { a } else { b };
        Window {
            start: either(self.start, other.start, later),
            end: either(self.end, other.end, earlier),
            sequence: self.sequence.max(other.sequence),
        }
    }
}

/// One of two bounds that may be missing, or of both the one that `choose` says.
fn either<'a>(
    a: Option<&'a [u8]>,
    b: Option<&'a [u8]>,
    choose: impl Fn(&'a [u8], &'a [u8]) -> &'a [u8],
) -> Option<&'a [u8]> {
    match (a, b) {
        (Some(a), Some(b)) => Some(choose(a, b)),
        (one, other) => one.or(other),
    }
}

impl Fragments {
    /// The fragments of `deletes`, which may overlap and be in any order. Of
    /// those between two neighbouring `snapshots` (ascending) only the newest
    /// is kept at each key, as no reader can tell the others from it. Range
    /// deletes that end where they begin, or before, delete nothing.
    ///
    /// Takes O(n log n) for n range deletes, times the strata.
    pub(crate) fn build(
        order: &KeyOrder,
        deletes: impl IntoIterator<Item = RangeDelete>,
        snapshots: &[SequenceNumber],
    ) -> Fragments {
        let is_range = |d: &RangeDelete| order.compare(&d.start, &d.end) == Ordering::Less;
        let mut by_start: Vec<RangeDelete> = deletes.into_iter().filter(is_range).collect();
        by_start.sort_by(|a, b| order.compare(&a.start, &b.start));
        let mut by_end: Vec<(Arc<[u8]>, SequenceNumber)> =
            by_start.iter().map(|d| (Arc::clone(&d.end), d.sequence)).collect();
        by_end.sort_by(|a, b| order.compare(&a.0, &b.0));
        let mut sweep = Sweep::new(order, snapshots);
        let mut starts = by_start.into_iter().peekable();
        for (end, sequence) in by_end {
            while let Some(start) = starts.next_if(|s| order.compare(&s.start, &end).is_lt()) {
                sweep.go_to(&start.start);
                sweep.enter(start.sequence);
            }
            sweep.go_to(&end);
            sweep.leave(sequence);
        }
        Fragments { order: order.clone(), fragments: sweep.fragments }
    }

    /// Fragments that were stored. `None` if they are not in order.
    pub(crate) fn from_sorted(order: &KeyOrder, fragments: Vec<Fragment>) -> Option<Fragments> {
        let is_sound = |f: &Fragment| {
            order.compare(&f.start, &f.end).is_lt()
                && f.sequences.first().is_some_and(|&newest| newest <= SEQUENCE_MAX)
                && f.sequences.is_sorted_by(|a, b| a > b)
                && f.sequences.last() != Some(&0)
        };
        let follows = |a: &Fragment, b: &Fragment| order.compare(&a.end, &b.start).is_le();
        let sound = fragments.iter().all(is_sound) && fragments.is_sorted_by(follows);
        sound.then(|| Fragments { order: order.clone(), fragments })
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.fragments.is_empty()
    }

    /// The fragments, in the order of keys.
    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = &Fragment> {
        self.fragments.iter()
    }

    /// How many range deletes they stand for: one for each number of each.
    pub(crate) fn count(&self) -> u64 {
        self.fragments.iter().map(|f| f.sequences.len() as u64).sum()
    }

    /// The range deletes that they stand for.
    pub(crate) fn deletes(&self) -> impl Iterator<Item = RangeDelete> {
        self.fragments.iter().flat_map(|f| {
            f.sequences.iter().map(|&sequence| RangeDelete {
                start: Arc::clone(&f.start),
                end: Arc::clone(&f.end),
                sequence,
            })
        })
    }

    /// Memory that they take, keys included.
    pub(crate) fn memory_bytes(&self) -> usize {
        let one = |f: &Fragment| {
            size_of::<Fragment>() + f.start.len() + f.end.len() + 8 * f.sequences.len()
        };
        self.fragments.iter().map(one).sum()
    }

    /// How many fragments end at or before `key`: the next one is the only one
    /// that may hold it.
    #[inline]
    fn after(&self, key: &[u8]) -> usize {
        self.fragments.partition_point(|f| self.order.compare(&f.end, key).is_le())
    }

    /// The newest range delete at `key` that a reader at `visible` sees: its
    /// number, or 0.
    #[inline]
    pub(crate) fn covering(&self, key: &[u8], visible: SequenceNumber) -> SequenceNumber {
        match self.fragments.get(self.after(key)) {
            Some(f) if self.order.compare(&f.start, key).is_le() => f.newest_at(visible),
            _ => 0,
        }
    }

    /// [`Fragments::covering`] for keys that ascend: `at` is kept between the
    /// calls, 0 at first, so that each takes a step or two.
    #[inline]
    pub(crate) fn covering_next(
        &self,
        at: &mut usize,
        key: &[u8],
        visible: SequenceNumber,
    ) -> SequenceNumber {
        while self.fragments.get(*at).is_some_and(|f| self.order.compare(&f.end, key).is_le()) {
            *at += 1;
        }
        match self.fragments.get(*at) {
            Some(f) if self.order.compare(&f.start, key).is_le() => f.newest_at(visible),
            _ => 0,
        }
    }

    /// The window around `key`.
    pub(crate) fn around(&self, key: &[u8], visible: SequenceNumber) -> Window<'_> {
        let at = self.after(key);
        match self.fragments.get(at) {
            Some(f) if self.order.compare(&f.start, key).is_le() => {
                Window { start: Some(&f.start), end: Some(&f.end), sequence: f.newest_at(visible) }
            }
            behind => Window {
                start: at.checked_sub(1).map(|before| &*self.fragments[before].end),
                end: behind.map(|f| &*f.start),
                sequence: 0,
            },
        }
    }

    /// True if every key from `first` to `last` (both inclusive, or `last`
    /// exclusive) has a range delete with a number above `floor` and at most
    /// `visible`.
    pub(crate) fn cover(
        &self,
        (first, last): (&[u8], &[u8]),
        last_is_bound: bool,
        floor: SequenceNumber,
        visible: SequenceNumber,
    ) -> bool {
        let mut covered_to = first;
        for f in &self.fragments[self.after(first)..] {
            let gap = self.order.compare(&f.start, covered_to).is_gt();
            if gap || f.newest_at(visible) <= floor {
                return false;
            }
            covered_to = &f.end;
            let reached = self.order.compare(covered_to, last);
            if reached.is_gt() || last_is_bound && reached.is_eq() {
                return true;
            }
        }
        false
    }

    /// The parts that lie from `from`, inclusive, up to `to`, exclusive;
    /// `None` is an open end.
    pub(crate) fn clipped(&self, from: Option<&[u8]>, to: Option<&[u8]>) -> Fragments {
        let first = from.map_or(0, |key| self.after(key));
        let starts_within =
            |f: &&Fragment| to.is_none_or(|to| self.order.compare(&f.start, to).is_lt());
        let within = self.fragments[first..].iter().take_while(starts_within);
        let mut fragments: Vec<Fragment> = within.cloned().collect();
        if let (Some(from), Some(f)) = (from, fragments.first_mut())
            && self.order.compare(&f.start, from).is_lt()
        {
            f.start = from.into();
        }
        if let (Some(to), Some(f)) = (to, fragments.last_mut())
            && self.order.compare(&f.end, to).is_gt()
        {
            f.end = to.into();
        }
        fragments.retain(|f| self.order.compare(&f.start, &f.end).is_lt());
        Fragments { order: self.order.clone(), fragments }
    }

    /// The same ranges with `sequence` as their only number. `None` if range
    /// deletes of different numbers would become one.
    pub(crate) fn with_sequence(mut self, sequence: SequenceNumber) -> Option<Fragments> {
        for f in &mut self.fragments {
            if f.sequences.len() != 1 {
                return None;
            }
            f.sequences = [sequence].into();
        }
        Some(self)
    }

    /// Keeps those numbers of each fragment that `keep` wants; fragments
    /// without any go.
    pub(crate) fn retain(&mut self, mut keep: impl FnMut(&Fragment, SequenceNumber) -> bool) {
        self.fragments.retain_mut(|f| {
            let kept: Box<[_]> = f.sequences.iter().copied().filter(|&s| keep(f, s)).collect();
            f.sequences = kept;
            !f.sequences.is_empty()
        });
    }
}

/// Goes over the key space and notes what holds between its stops.
struct Sweep<'a> {
    order: &'a KeyOrder,
    snapshots: &'a [SequenceNumber],
    /// Range deletes that have begun and not ended: number -> how many.
    active: BTreeMap<SequenceNumber, usize>,
    here: Option<Arc<[u8]>>,
    fragments: Vec<Fragment>,
}

impl<'a> Sweep<'a> {
    fn new(order: &'a KeyOrder, snapshots: &'a [SequenceNumber]) -> Sweep<'a> {
        Sweep { order, snapshots, active: BTreeMap::new(), here: None, fragments: Vec::new() }
    }

    fn enter(&mut self, sequence: SequenceNumber) {
        *self.active.entry(sequence).or_default() += 1;
    }

    fn leave(&mut self, sequence: SequenceNumber) {
        let count = self.active.get_mut(&sequence).expect("what leaves has entered");
        *count -= 1;
        if *count == 0 {
            self.active.remove(&sequence);
        }
    }

    /// Notes what held from the last stop to `key`.
    fn go_to(&mut self, key: &Arc<[u8]>) {
        let from = self.here.replace(Arc::clone(key));
        let Some(start) = from.filter(|from| self.order.compare(from, key).is_lt()) else {
            return;
        };
        let sequences = self.visible_sequences();
        if sequences.is_empty() {
            return;
        }
        match self.fragments.last_mut() {
            Some(last)
                if last.sequences == sequences && self.order.compare(&last.end, &start).is_eq() =>
            {
                last.end = Arc::clone(key);
            }
            _ => self.fragments.push(Fragment { start, end: Arc::clone(key), sequences }),
        }
    }

    /// The newest active number of each stratum, descending.
    fn visible_sequences(&self) -> Box<[SequenceNumber]> {
        let mut sequences = Vec::new();
        let mut upper = SEQUENCE_MAX;
        while let Some((&newest, _)) = self.active.range(..=upper).next_back() {
            sequences.push(newest);
            let below = self.snapshots.partition_point(|&snapshot| snapshot < newest);
            let Some(next) = below.checked_sub(1) else { break };
            upper = self.snapshots[next];
        }
        sequences.into()
    }
}
