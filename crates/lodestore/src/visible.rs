//! What a reader at one sequence number sees of all entries: the newest
//! version of each key, with tombstones applied and operands merged.
//!
//! `MergeCursor` -> [`VisibleCursor`] -> the public cursor
//!
//! Forward, the newest visible version is met first, so key and value are
//! passed through without a copy. In reverse it is met last, so it is kept
//! aside until the entry before it shows that no newer one follows.
//!
//! What a range delete hides is passed over: step by step at first, then by a
//! seek of the older sources to its end. Long stretches without a key that
//! exists are remembered (`passing`).

use std::cmp::Ordering;

use crate::coverage::Coverage;
use crate::cursor::Cursor;
use crate::error::{Error, Result};
use crate::gaps::{Direction, Remember};
use crate::key::{KeyOrder, Kind, SequenceNumber, TRAILER_NEWEST, Trailer, kind_of, sequence_of};
use crate::merge::MergeCursor;
use crate::merge_operator::SharedMergeOperator;
use crate::sync::Arc;

mod passing;
mod reverse;

use passing::{LongRun, Run};

/// Hidden entries, or keys in reverse, that are stepped over before the sources
/// seek: a seek costs as much as some dozen steps.
const HIDDEN_STEPS_MAX: usize = 16;

/// The smallest and the first excluded key of a walk.
#[derive(Clone, Debug, Default)]
pub(crate) struct Bounds {
    /// Inclusive.
    pub(crate) lower: Option<Vec<u8>>,
    /// Exclusive.
    pub(crate) upper: Option<Vec<u8>>,
}

/// Where the cursor is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// Nowhere.
    None,
    /// At the entry that the inner cursor is at.
    Inner,
    /// At `key` and `value`; the inner cursor is past this key's versions in
    /// the direction of travel.
    Kept(Direction),
}

/// Walks the keys that exist at one sequence number.
pub(crate) struct VisibleCursor {
    inner: MergeCursor,
    /// `None` if there are no range deletes.
    coverage: Option<Coverage>,
    sequence: SequenceNumber,
    order: KeyOrder,
    merge_operator: Option<SharedMergeOperator>,
    bounds: Bounds,
    memory: Arc<dyn Remember>,
    long_run: LongRun,
    /// Where the last jump over hidden entries began, since the last seek or turn.
    jumped: Option<(Vec<u8>, Trailer)>,
    place: Place,
    /// The key at `Place::Kept`; also the key being skipped going forward.
    key: Vec<u8>,
    value: Vec<u8>,
    error: Option<Error>,
}

impl VisibleCursor {
    /// `coverage` has the range deletes of the sources of `inner`, at
    /// `sequence`; `memory` knows gaps of the same family.
    pub(crate) fn new(
        (inner, coverage): (MergeCursor, Coverage),
        sequence: SequenceNumber,
        order: KeyOrder,
        merge_operator: Option<SharedMergeOperator>,
        bounds: Bounds,
        memory: Arc<dyn Remember>,
    ) -> VisibleCursor {
        VisibleCursor {
            inner,
            coverage: (!coverage.is_empty()).then_some(coverage),
            sequence,
            order,
            merge_operator,
            bounds,
            memory,
            long_run: LongRun::default(),
            jumped: None,
            place: Place::None,
            key: Vec::new(),
            value: Vec::new(),
            error: None,
        }
    }

    #[inline]
    pub(crate) fn valid(&self) -> bool {
        self.place != Place::None
    }

    #[inline]
    pub(crate) fn key(&self) -> &[u8] {
        match self.place {
            Place::Inner => self.inner.user_key(),
            Place::Kept(_) => &self.key,
            Place::None => panic!("key() of a cursor that is not valid"),
        }
    }

    #[inline]
    pub(crate) fn value(&self) -> &[u8] {
        match self.place {
            Place::Inner => self.inner.value(),
            Place::Kept(_) => &self.value,
            Place::None => panic!("value() of a cursor that is not valid"),
        }
    }

    /// The error that ended the walk, if one did.
    pub(crate) fn status(&self) -> Result<()> {
        match &self.error {
            Some(error) => Err(error.clone()),
            None => self.inner.status(),
        }
    }

    pub(crate) fn first(&mut self) {
        self.begin();
        match &self.bounds.lower {
            Some(lower) => self.inner.seek(lower, TRAILER_NEWEST),
            None => self.inner.seek_to_first(),
        }
        self.settle_forward(false);
    }

    pub(crate) fn last(&mut self) {
        self.begin();
        match &self.bounds.upper {
            // The newest entry there would be is after all smaller keys and
            // before the bound's own versions.
            Some(upper) => self.inner.seek_for_prev(upper, TRAILER_NEWEST),
            None => self.inner.seek_to_last(),
        }
        self.settle_reverse();
    }

    pub(crate) fn seek(&mut self, key: &[u8]) {
        match &self.bounds.lower {
            Some(lower) if self.order.compare(key, lower).is_lt() => return self.first(),
            _ => {}
        }
        self.begin();
        self.inner.seek(key, TRAILER_NEWEST);
        self.settle_forward(false);
    }

    pub(crate) fn seek_for_prev(&mut self, key: &[u8]) {
        match &self.bounds.upper {
            Some(upper) if self.order.compare(key, upper).is_ge() => return self.last(),
            _ => {}
        }
        self.begin();
        // Trailer 0 is the last that a version of the key can have.
        self.inner.seek_for_prev(key, 0);
        self.settle_reverse();
    }

    #[inline]
    pub(crate) fn next(&mut self) {
        match self.place {
            Place::None => panic!("next() of a cursor that is not valid"),
            Place::Inner => {
                self.key.clear();
                self.key.extend_from_slice(self.inner.user_key());
                self.inner.next();
                self.settle_forward(true);
            }
            Place::Kept(Direction::Forward) => self.settle_forward(true),
            Place::Kept(Direction::Reverse) => {
                self.begin();
                self.inner.seek(&self.key, TRAILER_NEWEST);
                self.settle_forward(true);
            }
        }
    }

    #[inline]
    pub(crate) fn prev(&mut self) {
        match self.place {
            Place::None => panic!("prev() of a cursor that is not valid"),
            Place::Kept(Direction::Reverse) => {}
            Place::Inner => {
                self.begin();
                self.key.clear();
                self.key.extend_from_slice(self.inner.user_key());
                self.inner.seek_for_prev(&self.key, TRAILER_NEWEST);
            }
            Place::Kept(Direction::Forward) => {
                self.begin();
                self.inner.seek_for_prev(&self.key, TRAILER_NEWEST);
            }
        }
        self.settle_reverse();
    }

    /// Forgets what is known of the walk before.
    fn begin(&mut self) {
        self.error = None;
        self.jumped = None;
    }

    fn stop(&mut self) {
        self.place = Place::None;
    }

    fn fail(&mut self, error: Error) {
        self.error = Some(error);
        self.stop();
    }

    /// From where the inner cursor is, finds the next key that exists. With
    /// `skipping`, versions of `self.key` are passed over.
    #[inline]
    fn settle_forward(&mut self, skipping: bool) {
        let mut run = Run::new();
        self.walk_forward(skipping, &mut run);
        if let Some(steps) = run.long() {
            self.end_run(steps, Direction::Forward);
        }
    }

    #[inline]
    fn walk_forward(&mut self, mut skipping: bool, run: &mut Run) {
        let mut hidden = 0_usize;
        while self.inner.valid() {
            if skipping && self.is_at_key() {
                self.pass_forward(run, true);
                continue;
            }
            // Before anything is passed over: sources may lack what is past the bound, so that
            // nothing found absent there may be remembered.
            if self.is_past_upper() {
                return self.stop();
            }
            let trailer = self.inner.trailer();
            if sequence_of(trailer) > self.sequence {
                self.pass_forward(run, false);
                continue;
            }
            match self.is_hidden() {
                Ok(false) => {}
                Ok(true) => {
                    hidden += 1;
                    self.pass_forward(run, false);
                    if hidden.is_multiple_of(HIDDEN_STEPS_MAX)
                        && !self.pass_hidden(Direction::Forward)
                    {
                        return;
                    }
                    continue;
                }
                Err(error) => return self.fail(error),
            }
            match kind_of(trailer) {
                Some(Kind::Put) => {
                    self.place = Place::Inner;
                    return;
                }
                Some(Kind::Delete | Kind::SingleDelete) => {
                    self.key.clear();
                    self.key.extend_from_slice(self.inner.user_key());
                    skipping = true;
                    self.pass_forward(run, false);
                }
                Some(Kind::Merge) => return self.merge_forward(),
                _ => return self.fail(unreadable_kind(trailer)),
            }
        }
        self.stop();
    }

    /// True if a range delete hides the entry that the inner cursor is at.
    #[inline]
    fn is_hidden(&mut self) -> Result<bool> {
        match &mut self.coverage {
            None => Ok(false),
            Some(coverage) => coverage.hides(self.inner.user_key(), self.inner.trailer()),
        }
    }

    /// [`VisibleCursor::jump`], seldom. False if the walk has failed.
    #[cold]
    #[inline(never)]
    fn pass_hidden(&mut self, direction: Direction) -> bool {
        self.jump(direction).map_err(|error| self.fail(error)).is_ok()
    }

    /// Brings the older sources to the end of the range that is deleted here, if one is.
    ///
    /// # Errors
    /// `InvalidArgument` if the walk has come back to where it jumped before: no table is
    /// searched for entries out of order, and seeks in such a one may go in circles.
    fn jump(&mut self, direction: Direction) -> Result<()> {
        let Some(coverage) = self.coverage.as_ref().filter(|_| self.inner.valid()) else {
            return Ok(());
        };
        let here = (self.inner.user_key(), self.inner.trailer());
        let Some(gap) = coverage.gap(here.0) else { return Ok(()) };
        if let Some((key, trailer)) = &self.jumped {
            let ahead = match direction {
                Direction::Forward => Ordering::Less,
                Direction::Reverse => Ordering::Greater,
            };
            if self.order.compare_entries((key, *trailer), here) != ahead {
                return Err(Error::invalid(
                    "a walk comes back to where it was: entries of a table are out of order. \
                     Verification tells of which",
                ));
            }
        }
        let (key, trailer) = self.jumped.get_or_insert_default();
        key.clear();
        key.extend_from_slice(here.0);
        *trailer = here.1;
        match direction {
            Direction::Forward => self.inner.pass_forward(gap.older_from, gap.end),
            Direction::Reverse => self.inner.pass_reverse(gap.older_from, gap.start),
        }
        Ok(())
    }

    /// True if the inner cursor is at a version of `self.key`: in some orders different
    /// bytes may be the same key.
    #[inline]
    fn is_at_key(&self) -> bool {
        let here = self.inner.user_key();
        here == &self.key[..]
            || !self.order.is_bytewise() && self.order.compare(here, &self.key).is_eq()
    }

    #[inline]
    fn is_past_upper(&self) -> bool {
        match &self.bounds.upper {
            Some(upper) => self.order.compare(self.inner.user_key(), upper).is_ge(),
            None => false,
        }
    }

    /// At an operand: collects this key's operands down to a base value,
    /// merges them, and leaves the inner cursor past what was collected.
    fn merge_forward(&mut self) {
        self.key.clear();
        self.key.extend_from_slice(self.inner.user_key());
        let mut operands = Vec::new();
        let mut base = None;
        while self.inner.valid() && self.is_at_key() {
            match self.is_hidden() {
                Ok(false) => {}
                Ok(true) => break,
                Err(error) => return self.fail(error),
            }
            match kind_of(self.inner.trailer()) {
                Some(Kind::Merge) => operands.push(self.inner.value().to_vec()),
                Some(Kind::Put) => {
                    base = Some(self.inner.value().to_vec());
                    break;
                }
                Some(Kind::Delete | Kind::SingleDelete) => break,
                _ => return self.fail(unreadable_kind(self.inner.trailer())),
            }
            self.inner.next();
        }
        if self.inner.status().is_err() {
            return self.stop();
        }
        operands.reverse();
        self.keep_merged(base, &operands, Direction::Forward);
    }

    /// Makes the merge of `operands`, oldest first, the value here.
    fn keep_merged(&mut self, base: Option<Vec<u8>>, operands: &[Vec<u8>], direction: Direction) {
        match merge_all(&self.merge_operator, &self.key, base.as_deref(), operands) {
            Ok(value) => {
                self.value = value;
                self.place = Place::Kept(direction);
            }
            Err(error) => self.fail(error),
        }
    }
}

/// The value of `key` after `operands`, oldest first, were merged into `base`.
pub(crate) fn merge_all<T: AsRef<[u8]>>(
    operator: &Option<SharedMergeOperator>,
    key: &[u8],
    base: Option<&[u8]>,
    operands: &[T],
) -> Result<Vec<u8>> {
    let Some(operator) = operator else {
        return Err(Error::invalid("the family has merged values but no merge operator is given"));
    };
    let operands: Vec<&[u8]> = operands.iter().map(AsRef::as_ref).collect();
    operator.full_merge(key, base, &operands).ok_or_else(|| Error::MergeFailed {
        operator: operator.name().to_string(),
        key: Arc::from(key),
    })
}

/// The error for an entry of a kind that neither memtables nor blocks have.
pub(crate) fn unreadable_kind(trailer: u64) -> Error {
    let sequence = sequence_of(trailer);
    Error::invalid(format!(
        "the entry with sequence number {sequence} is of kind {:#04x}, which reads do not support",
        trailer as u8
    ))
}
