//! Many sorted sources as one: the cursor that compactions and scans walk.
//!
//! `Source` (a memtable, a table, a level) -> [`MergeCursor`] -> `visible`
//!
//! A heap holds one entry for each source that has a position: the first sixteen
//! bytes of its key as a number, and the source's index. In bytewise order
//! most comparisons are decided by the numbers alone; eight bytes would tell
//! nothing of decimal keys, which begin with zeros. Entries are unique, so
//! sources never tie.

use std::cmp::Ordering;
use std::io;

use crate::cursor::{Cursor, StoredBlock};
use crate::error::Result;
use crate::fs::{Fs, ReadRequest};
use crate::key::{KeyOrder, TRAILER_NEWEST, Trailer, long_head};
use crate::memtable::MemtableCursor;
use crate::sync::Arc;
use crate::table::TableCursor;

mod level;
mod together;

pub(crate) use level::LevelCursor;
use together::read_together;

/// One of the places that entries come from.
pub(crate) enum Source {
    Memtable(MemtableCursor),
    Table(Box<TableCursor>),
    Level(Box<LevelCursor>),
}

macro_rules! each {
    ($self:expr, $cursor:ident => $call:expr) => {
        match $self {
            Source::Memtable($cursor) => $call,
            Source::Table($cursor) => $call,
            Source::Level($cursor) => $call,
        }
    };
}

impl Source {
    /// See [`TableCursor::foresee`].
    fn foresee(&mut self, user_key: &[u8], trailer: Trailer) -> Option<ReadRequest> {
        match self {
            Source::Memtable(_) => None,
            Source::Table(cursor) => cursor.foresee(user_key, trailer),
            Source::Level(cursor) => cursor.foresee(user_key, trailer),
        }
    }

    /// The same for a seek to the last entry not after the target.
    fn foresee_for_prev(&mut self, user_key: &[u8], trailer: Trailer) -> Option<ReadRequest> {
        match self {
            Source::Level(cursor) => cursor.foresee_for_prev(user_key, trailer),
            source => source.foresee(user_key, trailer),
        }
    }

    fn supply(&mut self, read: io::Result<&[u8]>) {
        match self {
            Source::Memtable(_) => unreachable!("a memtable asks for nothing"),
            Source::Table(cursor) => cursor.supply(read),
            Source::Level(cursor) => cursor.supply(read),
        }
    }
}

impl Cursor for Source {
    #[inline]
    fn valid(&self) -> bool {
        each!(self, c => c.valid())
    }
    fn seek_to_first(&mut self) {
        each!(self, c => c.seek_to_first())
    }
    fn seek_to_last(&mut self) {
        each!(self, c => c.seek_to_last())
    }
    fn seek(&mut self, user_key: &[u8], trailer: Trailer) {
        each!(self, c => c.seek(user_key, trailer))
    }
    fn seek_for_prev(&mut self, user_key: &[u8], trailer: Trailer) {
        each!(self, c => c.seek_for_prev(user_key, trailer))
    }
    #[inline]
    fn next(&mut self) {
        each!(self, c => c.next())
    }
    #[inline]
    fn prev(&mut self) {
        each!(self, c => c.prev())
    }
    #[inline]
    fn user_key(&self) -> &[u8] {
        each!(self, c => c.user_key())
    }
    #[inline]
    fn trailer(&self) -> Trailer {
        each!(self, c => c.trailer())
    }
    #[inline]
    fn value(&self) -> &[u8] {
        each!(self, c => c.value())
    }
    fn stored(&self) -> Option<StoredBlock<'_>> {
        each!(self, c => c.stored())
    }
    fn status(&self) -> Result<()> {
        each!(self, c => c.status())
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Direction {
    Forward,
    Reverse,
}

/// A source that has a position, in the heap.
#[derive(Clone, Copy)]
struct Standing {
    /// The long head of the key there; 0 where the order is not bytewise.
    head: u128,
    source: u32,
}

/// The entries of all sources in one order.
pub(crate) struct MergeCursor {
    sources: Vec<Source>,
    /// A binary heap: its first element is where the cursor is.
    heap: Vec<Standing>,
    direction: Direction,
    order: KeyOrder,
    failed: bool,
    /// What a seek reads all its blocks with at once; `None`: each source reads its own.
    reads_together: Option<Arc<dyn Fs>>,
}

impl MergeCursor {
    pub(crate) fn new(sources: Vec<Source>, order: KeyOrder) -> MergeCursor {
        let heap = Vec::with_capacity(sources.len());
        let direction = Direction::Forward;
        MergeCursor { sources, heap, direction, order, failed: false, reads_together: None }
    }

    /// For sources of which each read waits for a device: seeks read what all of them
    /// need at once.
    pub(crate) fn reading_together(self, fs: &Arc<dyn Fs>) -> MergeCursor {
        let reads = |source: &&Source| !matches!(source, Source::Memtable(_));
        let is_worth_it = self.sources.iter().filter(reads).count() > 1;
        MergeCursor { reads_together: is_worth_it.then(|| Arc::clone(fs)), ..self }
    }

    /// Puts every source that has a position into the heap.
    fn rebuild(&mut self, direction: Direction) {
        self.direction = direction;
        self.heap.clear();
        self.failed = false;
        for index in 0..self.sources.len() {
            let source = &self.sources[index];
            if source.valid() {
                let standing = self.standing(index as u32);
                self.heap.push(standing);
            } else {
                self.failed |= source.status().is_err();
            }
        }
        for position in (0..self.heap.len() / 2).rev() {
            self.sift_down(position);
        }
        self.stop_if_failed();
    }

    /// A source that failed hides entries: going on without it would be wrong.
    fn stop_if_failed(&mut self) {
        if self.failed {
            self.heap.clear();
        }
    }

    #[inline]
    fn standing(&self, source: u32) -> Standing {
        let head = match self.order {
            KeyOrder::Bytewise => long_head(self.sources[source as usize].user_key()),
            KeyOrder::Custom(_) => 0,
        };
        Standing { head, source }
    }

    /// True if `a` comes before `b` in the direction of travel.
    #[inline]
    fn precedes(&self, a: Standing, b: Standing) -> bool {
        let by_head = a.head.cmp(&b.head);
        let ordering = if by_head != Ordering::Equal { by_head } else { self.compare(a, b) };
        match self.direction {
            Direction::Forward => ordering == Ordering::Less,
            Direction::Reverse => ordering == Ordering::Greater,
        }
    }

    #[inline]
    fn compare(&self, a: Standing, b: Standing) -> Ordering {
        let (a, b) = (&self.sources[a.source as usize], &self.sources[b.source as usize]);
        let by_key = self.order.compare(a.user_key(), b.user_key());
        // Newest first. Two sources seldom stand at the same key.
        by_key.then_with(|| b.trailer().cmp(&a.trailer()))
    }

    #[inline]
    fn sift_down(&mut self, mut position: usize) {
        loop {
            let (left, right) = (2 * position + 1, 2 * position + 2);
            if left >= self.heap.len() {
                return;
            }
            let mut child = left;
            if right < self.heap.len() && self.precedes(self.heap[right], self.heap[left]) {
                child = right;
            }
            if !self.precedes(self.heap[child], self.heap[position]) {
                return;
            }
            self.heap.swap(position, child);
            position = child;
        }
    }

    /// Restores the heap after its first source has moved.
    #[inline]
    fn first_moved(&mut self) {
        let source = self.heap[0].source;
        if !self.sources[source as usize].valid() {
            self.failed |= self.sources[source as usize].status().is_err();
            self.heap.swap_remove(0);
            self.stop_if_failed();
        } else if self.heap.len() > 1 {
            self.heap[0] = self.standing(source);
        }
        // A source alone is compared with nothing: its head may be an old one.
        if self.heap.len() > 1 {
            self.sift_down(0);
        }
    }

    #[inline]
    fn current(&self) -> &Source {
        &self.sources[self.heap[0].source as usize]
    }

    /// How many sources there are.
    pub(crate) fn source_count(&self) -> usize {
        self.sources.len()
    }

    /// Which source the entry here is of.
    pub(crate) fn source(&self) -> usize {
        self.heap[0].source as usize
    }

    /// Going forward: passes over what the sources from `first` on have before
    /// `end`. The cursor may stand elsewhere then, or nowhere.
    pub(crate) fn pass_forward(&mut self, first: usize, end: &[u8]) {
        debug_assert!(self.direction == Direction::Forward);
        let order = &self.order;
        for source in self.sources.iter_mut().skip(first) {
            if source.valid() && order.compare(source.user_key(), end).is_lt() {
                source.seek(end, TRAILER_NEWEST);
            }
        }
        self.rebuild(Direction::Forward);
    }

    /// Going in reverse: passes over what the sources from `first` on have from
    /// `start` on. The cursor may stand elsewhere then, or nowhere.
    pub(crate) fn pass_reverse(&mut self, first: usize, start: &[u8]) {
        debug_assert!(self.direction == Direction::Reverse);
        let order = &self.order;
        for source in self.sources.iter_mut().skip(first) {
            if source.valid() && order.compare(source.user_key(), start).is_ge() {
                source.seek_for_prev(start, TRAILER_NEWEST);
            }
        }
        self.rebuild(Direction::Reverse);
    }

    /// Brings all other sources to the other side of the entry here.
    fn turn(&mut self, direction: Direction) {
        let here = self.heap[0].source as usize;
        let user_key = self.user_key().to_vec();
        let trailer = self.trailer();
        for (index, source) in self.sources.iter_mut().enumerate() {
            if index == here {
                continue;
            }
            match direction {
                Direction::Forward => source.seek(&user_key, trailer),
                Direction::Reverse => source.seek_for_prev(&user_key, trailer),
            }
        }
        self.rebuild(direction);
    }
}

impl Cursor for MergeCursor {
    #[inline]
    fn valid(&self) -> bool {
        !self.heap.is_empty()
    }

    fn seek_to_first(&mut self) {
        self.sources.iter_mut().for_each(Source::seek_to_first);
        self.rebuild(Direction::Forward);
    }

    fn seek_to_last(&mut self) {
        self.sources.iter_mut().for_each(Source::seek_to_last);
        self.rebuild(Direction::Reverse);
    }

    fn seek(&mut self, user_key: &[u8], trailer: Trailer) {
        if let Some(fs) = &self.reads_together {
            read_together(&**fs, &mut self.sources, |s| s.foresee(user_key, trailer));
        }
        self.sources.iter_mut().for_each(|s| s.seek(user_key, trailer));
        self.rebuild(Direction::Forward);
    }

    fn seek_for_prev(&mut self, user_key: &[u8], trailer: Trailer) {
        if let Some(fs) = &self.reads_together {
            read_together(&**fs, &mut self.sources, |s| s.foresee_for_prev(user_key, trailer));
        }
        self.sources.iter_mut().for_each(|s| s.seek_for_prev(user_key, trailer));
        self.rebuild(Direction::Reverse);
    }

    #[inline]
    fn next(&mut self) {
        if self.direction == Direction::Reverse {
            self.turn(Direction::Forward);
            if !self.valid() {
                return;
            }
        }
        let source = self.heap[0].source as usize;
        self.sources[source].next();
        self.first_moved();
    }

    #[inline]
    fn prev(&mut self) {
        if self.direction == Direction::Forward {
            self.turn(Direction::Reverse);
            if !self.valid() {
                return;
            }
        }
        let source = self.heap[0].source as usize;
        self.sources[source].prev();
        self.first_moved();
    }

    #[inline]
    fn user_key(&self) -> &[u8] {
        self.current().user_key()
    }

    #[inline]
    fn trailer(&self) -> Trailer {
        self.current().trailer()
    }

    #[inline]
    fn value(&self) -> &[u8] {
        self.current().value()
    }

    fn stored(&self) -> Option<StoredBlock<'_>> {
        self.current().stored()
    }

    fn status(&self) -> Result<()> {
        if self.failed { self.sources.iter().try_for_each(Source::status) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests;
