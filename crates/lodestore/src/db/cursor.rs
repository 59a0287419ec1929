//! Cursors over a family, and iterators over a range of keys.

use std::ops::Bound;

use crate::budget::{Charge, Item, Reservation};
use crate::error::{Error, Result};
use crate::gaps::{Claim, Direction, Edge, Gaps, Remember};
use crate::key::{SequenceNumber, common_prefix_bytes, prefix_end};
use crate::latency::Operation;
use crate::memtable::Memtable;
use crate::prefix::PrefixExtractor;
use crate::stats::Counter;
use crate::sync::Arc;
use crate::visible::{Bounds, VisibleCursor};

use super::family::FamilyCore;
use super::handle::Handle;
use super::key_range::KeyRange;
use super::read::ReadOptions;
use super::view::View;

/// A position in a family's keys, at one state of the database.
///
/// A new cursor has no position. Walking off either end, or an error, leaves
/// none: look at [`DbCursor::status`] when [`DbCursor::valid`] turns false.
///
/// ```
/// # use lodestore::{Db, MemFs, Options};
/// # let fs = std::sync::Arc::new(MemFs::new());
/// # let options = Options { create_if_missing: true, fs, ..Options::default() };
/// let db = Db::open("db", options)?;
/// db.put(b"a", b"1")?;
/// db.put(b"b", b"2")?;
/// let mut cursor = db.cursor();
/// cursor.seek(b"aa");
/// assert!(cursor.valid() && cursor.key() == b"b");
/// cursor.prev();
/// assert_eq!(cursor.value(), b"1");
/// # Ok::<(), lodestore::Error>(())
/// ```
pub struct DbCursor {
    state: State,
    /// For the blocks that it stands on.
    _memory: Reservation,
    source: Arc<WalkSource>,
}

/// What a cursor walks over.
struct WalkSource {
    family: Arc<FamilyCore>,
    /// Keeps the tables and memtables.
    view: Arc<View>,
    /// What must not have changed for the cursor to meet all that was put since
    /// it was made.
    state: MeetingState,
    /// Keeps the database open. Dropped last: see [`Handle`].
    handle: Arc<Handle>,
}

/// See [`WalkSource`]: a cursor leaves an empty memtable out, and passes over
/// what a memtable deleted as a range, unless something was put there again.
#[derive(PartialEq, Eq)]
struct MeetingState {
    forgotten: u64,
    memtable_is_empty: bool,
    deleted_ranges_are_empty: bool,
}

impl MeetingState {
    fn of(family: &FamilyCore, active: &Memtable) -> MeetingState {
        MeetingState {
            forgotten: family.gaps.generation(),
            memtable_is_empty: active.entries() == 0,
            deleted_ranges_are_empty: active.deleted_ranges_are_empty(),
        }
    }
}

impl WalkSource {
    fn new(handle: &Arc<Handle>, family: &Arc<FamilyCore>) -> WalkSource {
        let (handle, family) = (Arc::clone(handle), Arc::clone(family));
        let forgotten = family.gaps.generation();
        let view = family.views.keep();
        let state = MeetingState { forgotten, ..MeetingState::of(&family, &view.active) };
        WalkSource { handle, family, view, state }
    }

    /// What to walk over, and the number up to which entries are seen.
    ///
    /// The view holds everything up to that number, not just all that a reader
    /// may be content with: gaps speak of the state at the number, and a walk
    /// that lacks a new memtable, or tables that were ingested, must not pass over
    /// what only these deleted. An ingest forgets all gaps before it is seen.
    fn begin(
        handle: &Arc<Handle>,
        family: &Arc<FamilyCore>,
        options: &ReadOptions,
    ) -> (Arc<WalkSource>, Result<SequenceNumber>) {
        loop {
            let source = WalkSource::new(handle, family);
            let sequence = family.read_sequence(options);
            let is_whole = Arc::ptr_eq(&family.views.load().active, &source.view.active)
                && source.state.forgotten == family.gaps.generation();
            // A snapshot is older than the view in any case.
            if is_whole || options.snapshot.is_some() {
                return (Arc::new(source), sequence);
            }
        }
    }
}

impl Remember for WalkSource {
    fn gaps(&self) -> &Gaps {
        &self.family.gaps
    }

    fn claim(&self, begin: &Edge, direction: Direction) -> Option<Claim> {
        // With this lock, nobody is between a memtable and `Gaps::cut`.
        let commit = self.handle.engine.commit.try_lock()?;
        let active = &self.view.active;
        let meets_all = Arc::ptr_eq(&self.family.views.load().active, active)
            && self.state == MeetingState::of(&self.family, active);
        if !meets_all {
            return None;
        }
        self.family.gaps.claim(begin, direction, commit.last_sequence)
    }
}

/// What a source of a cursor takes beside the block that it stands on.
const SOURCE_BYTES: usize = 512;

enum State {
    Walking(Box<VisibleCursor>),
    /// The cursor could not be made; every call reports why.
    Failed(Error),
}

impl std::fmt::Debug for DbCursor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let key = self.valid().then(|| self.key().escape_ascii().to_string());
        f.debug_struct("DbCursor").field("key", &key).finish()
    }
}

impl DbCursor {
    pub(crate) fn new(
        handle: &Arc<Handle>,
        family: &Arc<FamilyCore>,
        options: &ReadOptions,
    ) -> DbCursor {
        let (source, sequence) = WalkSource::begin(handle, family, options);
        let state = match sequence.and_then(|sequence| walk(&source, sequence, options)) {
            Ok(cursor) => State::Walking(Box::new(cursor)),
            Err(error) => State::Failed(error),
        };
        let view = &source.view;
        let sources = view.version.levels().iter().map(|level| level.tables().len().min(1));
        let sources = sources.sum::<usize>() + view.version.level(0).tables().len();
        let bytes = sources * (family.options().block_bytes + SOURCE_BYTES);
        let memory = Charge::new(&family.shared.memory, Item::Cursors).reserve(bytes);
        DbCursor { state, _memory: memory, source }
    }

    /// True while the cursor is at a key.
    #[inline]
    pub fn valid(&self) -> bool {
        match &self.state {
            State::Walking(cursor) => cursor.valid(),
            State::Failed(_) => false,
        }
    }

    /// Goes to the first key.
    pub fn first(&mut self) {
        self.seeking(|cursor| cursor.first());
    }

    /// Goes to the last key.
    pub fn last(&mut self) {
        self.seeking(|cursor| cursor.last());
    }

    /// Goes to the first key that is not before `key`.
    pub fn seek(&mut self, key: &[u8]) {
        self.seeking(|cursor| cursor.seek(key));
    }

    /// Goes to the last key that is not after `key`.
    pub fn seek_for_prev(&mut self, key: &[u8]) {
        self.seeking(|cursor| cursor.seek_for_prev(key));
    }

    /// Goes to the next key.
    ///
    /// # Panics
    /// If the cursor is not valid.
    #[inline]
    pub fn next(&mut self) {
        self.walking_mut().next();
    }

    /// Goes to the key before.
    ///
    /// # Panics
    /// If the cursor is not valid.
    #[inline]
    pub fn prev(&mut self) {
        self.walking_mut().prev();
    }

    /// The key here.
    ///
    /// # Panics
    /// If the cursor is not valid.
    #[inline]
    pub fn key(&self) -> &[u8] {
        self.walking().key()
    }

    /// The value here.
    ///
    /// # Panics
    /// If the cursor is not valid.
    #[inline]
    pub fn value(&self) -> &[u8] {
        self.walking().value()
    }

    /// The error that took the position away; `Ok` if the cursor is valid or
    /// simply walked off an end.
    pub fn status(&self) -> Result<()> {
        match &self.state {
            State::Walking(cursor) => cursor.status(),
            State::Failed(error) => Err(error.clone()),
        }
    }

    fn seeking(&mut self, seek: impl FnOnce(&mut VisibleCursor)) {
        let shared = &self.source.family.shared;
        shared.statistics.add(Counter::Seeks, 1);
        if let State::Walking(cursor) = &mut self.state {
            shared.timed(Operation::Seek, || seek(cursor));
        }
    }

    #[inline]
    fn walking(&self) -> &VisibleCursor {
        match &self.state {
            State::Walking(cursor) => cursor,
            State::Failed(_) => panic!("the cursor is not valid"),
        }
    }

    #[inline]
    fn walking_mut(&mut self) -> &mut VisibleCursor {
        match &mut self.state {
            State::Walking(cursor) => cursor,
            State::Failed(_) => panic!("the cursor is not valid"),
        }
    }
}

fn walk(
    source: &Arc<WalkSource>,
    sequence: SequenceNumber,
    options: &ReadOptions,
) -> Result<VisibleCursor> {
    let family = &source.family;
    let bounds = bounds(family, options)?;
    let context = family.context(options.fill_cache);
    let start = common_start(family, options, &bounds);
    let entries = family.entries(&source.view, sequence, start.as_deref(), context)?;
    let (order, operator) = (family.order().clone(), family.merge_operator.clone());
    let memory: Arc<dyn Remember> = Arc::<WalkSource>::clone(source);
    Ok(VisibleCursor::new(entries, sequence, order, operator, bounds, memory))
}

/// What all keys begin with that a cursor may see, as far as is known and of
/// use.
fn common_start(family: &FamilyCore, options: &ReadOptions, bounds: &Bounds) -> Option<Vec<u8>> {
    if family.options().prefix_extractor.unwrap_or_default() == PrefixExtractor::None {
        return None;
    }
    let Bounds { lower: Some(lower), upper } = bounds else { return None };
    let upper = upper.as_ref().filter(|_| family.order().is_bytewise());
    let common = upper.map(|upper| &lower[..common_prefix_bytes(lower, upper)]);
    let longest = common.into_iter().chain(options.prefix.as_deref()).max_by_key(|s| s.len());
    longest.filter(|start| !start.is_empty()).map(<[u8]>::to_vec)
}

/// The bounds in `options`, narrowed to the prefix.
fn bounds(family: &FamilyCore, options: &ReadOptions) -> Result<Bounds> {
    let mut bounds =
        Bounds { lower: options.lower_bound.clone(), upper: options.upper_bound.clone() };
    if let Some(prefix) = &options.prefix {
        if !family.order().is_bytewise() {
            return Err(Error::invalid("a prefix is a range of keys only in bytewise order"));
        }
        if bounds.lower.as_ref().is_none_or(|lower| lower < prefix) {
            bounds.lower = Some(prefix.clone());
        }
        if let Some(end) = prefix_end(prefix)
            && bounds.upper.as_ref().is_none_or(|upper| *upper > end)
        {
            bounds.upper = Some(end);
        }
    }
    Ok(bounds)
}

/// The keys and values of a range, from either end: what [`Family::range`]
/// gives.
///
/// An error ends the iteration: it is the last item.
///
/// [`Family::range`]: super::Family::range
#[derive(Debug)]
pub struct Range {
    front: Side,
    back: Side,
    /// The two bounds that a cursor's own bounds (first included, last
    /// excluded) do not express.
    start_excluded: Option<Vec<u8>>,
    end_included: Option<Vec<u8>>,
    family: Arc<FamilyCore>,
    done: bool,
}

/// One end of a [`Range`]: a cursor that stands on the next item to give.
#[derive(Debug)]
struct Side {
    cursor: DbCursor,
    started: bool,
}

impl Range {
    pub(crate) fn new(
        handle: &Arc<Handle>,
        family: &Arc<FamilyCore>,
        range: &impl KeyRange,
        options: &ReadOptions,
    ) -> Range {
        let mut options = options.clone();
        let (start, end) = range.bounds();
        if let Bound::Included(key) | Bound::Excluded(key) = start {
            narrow(&mut options.lower_bound, key, |bound| {
                family.order().compare(bound, key).is_lt()
            });
        }
        // In other orders nobody knows what comes right after an included end.
        let after = match end {
            Bound::Excluded(key) => Some(key.to_vec()),
            Bound::Included(key) if family.order().is_bytewise() => Some([key, &[0]].concat()),
            _ => None,
        };
        if let Some(key) = after {
            narrow(&mut options.upper_bound, &key, |bound| {
                family.order().compare(bound, &key).is_gt()
            });
        }
        // Both ends must see the same state.
        if options.snapshot.is_none() {
            options.snapshot = Some(family.shared.snapshot());
        }
        let side = || Side { cursor: DbCursor::new(handle, family, &options), started: false };
        let (front, back) = (side(), side());
        let start_excluded = match start {
            Bound::Excluded(key) => Some(key.to_vec()),
            _ => None,
        };
        let end_included = match end {
            Bound::Included(key) => Some(key.to_vec()),
            _ => None,
        };
        Range { front, back, start_excluded, end_included, family: Arc::clone(family), done: false }
    }
}

/// Puts `key` in the place of a bound that lets more be seen, or of none.
fn narrow(bound: &mut Option<Vec<u8>>, key: &[u8], is_wider: impl FnOnce(&[u8]) -> bool) {
    if bound.as_deref().is_none_or(is_wider) {
        *bound = Some(key.to_vec());
    }
}

impl Side {
    /// What is there: an item, an error once, or the end.
    fn item(&self) -> Option<Result<(Vec<u8>, Vec<u8>)>> {
        if self.cursor.valid() {
            return Some(Ok((self.cursor.key().to_vec(), self.cursor.value().to_vec())));
        }
        self.cursor.status().err().map(Err)
    }
}

impl Iterator for Range {
    type Item = Result<(Vec<u8>, Vec<u8>)>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.done {
            return None;
        }
        let cursor = &mut self.front.cursor;
        if self.front.started {
            cursor.next();
        } else {
            cursor.first();
            let equals = |key: &Vec<u8>| self.family.order().compare(cursor.key(), key).is_eq();
            if cursor.valid() && self.start_excluded.as_ref().is_some_and(equals) {
                cursor.next();
            }
        }
        self.front.started = true;
        self.finish_step(true)
    }
}

impl DoubleEndedIterator for Range {
    fn next_back(&mut self) -> Option<Self::Item> {
        if self.done {
            return None;
        }
        let cursor = &mut self.back.cursor;
        match (&self.end_included, self.back.started) {
            (_, true) => cursor.prev(),
            (Some(end), false) => cursor.seek_for_prev(end),
            (None, false) => cursor.last(),
        }
        self.back.started = true;
        self.finish_step(false)
    }
}

impl Range {
    /// The item of the end that just moved; the iteration is over when it has
    /// none, or when it reached what the other end has given already.
    fn finish_step(&mut self, is_front: bool) -> Option<Result<(Vec<u8>, Vec<u8>)>> {
        let side = if is_front { &self.front } else { &self.back };
        let over = side.cursor.valid() && (self.is_met() || self.is_outside(side.cursor.key()));
        let item = if over { None } else { side.item() };
        self.done = !matches!(item, Some(Ok(_)));
        item
    }

    /// True if `key` is beyond a bound that the cursors do not know of.
    fn is_outside(&self, key: &[u8]) -> bool {
        let order = self.family.order();
        self.start_excluded.as_ref().is_some_and(|start| order.compare(key, start).is_le())
            || self.end_included.as_ref().is_some_and(|end| order.compare(key, end).is_gt())
    }

    /// True if the two ends have met.
    fn is_met(&self) -> bool {
        let (front, back) = (&self.front, &self.back);
        front.started
            && back.started
            && front.cursor.valid()
            && back.cursor.valid()
            && self.family.order().compare(front.cursor.key(), back.cursor.key()).is_ge()
    }
}
