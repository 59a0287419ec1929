//! The memtable: where an entry lives from the moment it is written until a
//! table holds it.
//!
//! write: `MemtableWriter::insert` -> `entry` (bytes in the `arena`) -> `tree`
//! read: `Memtable::get`, past the `filter`, or `cursor` -> `tree` -> `node` -> `entry`
//! Range deletes stand beside the tree, as a [`History`] that is published
//! anew with each of them; a memtable without any costs readers one load.
//! Invariants: one writer, enforced by there being one [`MemtableWriter`];
//! any number of readers, which never wait for it nor for each other; memory
//! is given back when the last reference goes, and never before.

mod pages;
mod arena;
mod cursor;
mod entry;
mod filter;
mod node;
mod tree;

#[cfg(all(test, simulation))]
mod simulation;
#[cfg(all(test, not(simulation)))]
mod tests;

use std::ops::ControlFlow;

use self::filter::{Filter, FilterHand};
use self::tree::{Hand, Tree};
use crate::budget::{Account, Charge, Item};
use crate::cursor::Cursor;
use crate::key::{KeyOrder, SEQUENCE_MAX, SequenceNumber, TRAILER_NEWEST, Trailer, hash};
use crate::range_deletes::{History, RangeDelete};
use crate::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use crate::sync::{Arc, Published};

pub(crate) use self::cursor::MemtableCursor;
pub(crate) use self::pages::give_back_kept;

/// Sorted entries in memory: the side that reads.
pub(crate) struct Memtable {
    tree: Tree,
    /// `None` if keys may be equal and yet have different hashes.
    filter: Option<Filter>,
    order: KeyOrder,
    range_deletes: Published<History>,
    /// Memory of `range_deletes`; 0 while there are none. Relaxed, as is the next:
    /// both are stored before the number is published that readers acquire.
    range_delete_bytes: AtomicUsize,
    /// True once an entry was inserted into a range that was deleted before.
    is_refilled: AtomicBool,
}

/// The side that writes. There is one for each memtable.
pub(crate) struct MemtableWriter {
    memtable: Arc<Memtable>,
    hand: Hand,
    filter_hand: FilterHand,
}

impl Memtable {
    /// An empty memtable and its writer. Its memory is charged to `account`.
    pub(crate) fn new(order: KeyOrder, account: &Arc<Account>) -> (Arc<Memtable>, MemtableWriter) {
        let memory = Charge::new(account, Item::Memtables);
        let memtable = Arc::new(Memtable {
            tree: Tree::new(order.clone(), &memory),
            filter: order.equal_means_identical().then(|| Filter::new(&memory)),
            order,
            range_deletes: Published::new(Arc::default()),
            range_delete_bytes: AtomicUsize::new(0),
            is_refilled: AtomicBool::new(false),
        });
        let writer = MemtableWriter {
            memtable: Arc::clone(&memtable),
            hand: Hand::default(),
            filter_hand: FilterHand::default(),
        };
        (memtable, writer)
    }

    /// Visits versions of `user_key`, which [`hash`] gives `hash` for, newest
    /// first, from the first whose trailer is at most `trailer_max`, until `visit`
    /// breaks.
    #[inline]
    pub(crate) fn get<'a>(
        &'a self,
        (user_key, hash): (&[u8], u64),
        trailer_max: Trailer,
        mut visit: impl FnMut(Trailer, &'a [u8]) -> ControlFlow<()>,
    ) {
        if self.filter.as_ref().is_some_and(|filter| !filter.may_contain(hash)) {
            return;
        }
        let mut at = self.tree.seek(user_key, trailer_max);
        while let Some(here) = at {
            if !self.tree.is_version_of(here, user_key) {
                return;
            }
            let entry = self.tree.entry(here);
            if visit(entry.trailer, entry.value).is_break() {
                return;
            }
            at = self.tree.next(here);
        }
    }

    /// The number of the newest range delete of `user_key` that a reader at
    /// `visible` sees; 0 if there is none. It hides older entries.
    #[inline]
    pub(crate) fn range_deleted(&self, user_key: &[u8], visible: SequenceNumber) -> SequenceNumber {
        match self.has_range_deletes() {
            true => self.range_deletes.load().covering(user_key, visible),
            false => 0,
        }
    }

    /// True if a range was deleted: after a number was published, this tells
    /// of all range deletes up to it.
    #[inline]
    pub(crate) fn has_range_deletes(&self) -> bool {
        self.range_delete_bytes.load(Ordering::Relaxed) > 0
    }

    /// True if every entry in a deleted range, of those up to a number that was
    /// published, is older than the range delete.
    pub(crate) fn deleted_ranges_are_empty(&self) -> bool {
        !self.is_refilled.load(Ordering::Relaxed)
    }

    /// The range deletes up to now.
    pub(crate) fn range_deletes(&self) -> Arc<History> {
        self.range_deletes.load_full()
    }

    /// True if an entry or a range delete is about a key from `first` to
    /// `last`, both included.
    pub(crate) fn overlaps(self: &Arc<Self>, first: &[u8], last: &[u8]) -> bool {
        let mut cursor = self.cursor();
        cursor.seek(first, TRAILER_NEWEST);
        if cursor.valid() && self.order.compare(cursor.user_key(), last).is_le() {
            return true;
        }
        let reaches = |d: &RangeDelete| {
            self.order.compare(&d.start, last).is_le() && self.order.compare(first, &d.end).is_lt()
        };
        self.has_range_deletes() && self.range_deletes().deletes().iter().any(reaches)
    }

    /// Bytes taken from the allocator.
    #[inline]
    pub(crate) fn memory_bytes(&self) -> usize {
        let filter = self.filter.as_ref().map_or(0, Filter::bytes);
        self.tree.bytes() + filter + self.range_delete_bytes.load(Ordering::Relaxed)
    }

    /// Entries inserted so far, without range deletes.
    #[inline]
    pub(crate) fn entries(&self) -> u64 {
        self.tree.count()
    }

    /// True if nothing was inserted or deleted yet.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.entries() == 0 && !self.has_range_deletes()
    }

    /// A cursor over the entries. It keeps the memtable alive.
    pub(crate) fn cursor(self: &Arc<Self>) -> MemtableCursor {
        MemtableCursor::new(Arc::clone(self))
    }
}

impl MemtableWriter {
    /// Adds an entry. No two entries have both key and trailer the same.
    #[inline]
    pub(crate) fn insert(&mut self, user_key: &[u8], trailer: Trailer, value: &[u8]) {
        if self.memtable.has_range_deletes() {
            self.note_refill(user_key);
        }
        if let Some(filter) = &self.memtable.filter {
            filter.insert(&mut self.filter_hand, hash(user_key));
        }
        // SAFETY: this is the only writer, and it is borrowed mutably.
        unsafe { self.memtable.tree.insert(&mut self.hand, user_key, trailer, value) };
    }

    #[cold]
    fn note_refill(&self, user_key: &[u8]) {
        let memtable = &self.memtable;
        if memtable.deleted_ranges_are_empty()
            && memtable.range_deletes.load().covering(user_key, SEQUENCE_MAX) > 0
        {
            memtable.is_refilled.store(true, Ordering::Relaxed);
        }
    }

    /// Deletes the keys from `start`, inclusive, up to `end`, exclusive. Its
    /// number is above those of all range deletes before it. A range that
    /// holds no key leaves no trace.
    pub(crate) fn delete_range(&mut self, start: &[u8], end: &[u8], sequence: SequenceNumber) {
        let memtable = &self.memtable;
        if memtable.order.compare(start, end).is_ge() {
            return;
        }
        let delete = RangeDelete { start: start.into(), end: end.into(), sequence };
        let history = memtable.range_deletes.load_full();
        let (longer, bytes) = history.with(&memtable.order, delete);
        memtable.range_deletes.store(Arc::new(longer));
        memtable.range_delete_bytes.fetch_add(bytes, Ordering::Relaxed);
    }
}

impl Drop for MemtableWriter {
    /// Nothing is added any more: what the memtable holds waits for its flush.
    fn drop(&mut self) {
        // SAFETY: this is the only writer, and it is borrowed mutably.
        unsafe { self.memtable.tree.seal() };
        if let Some(filter) = &self.memtable.filter {
            filter.seal();
        }
    }
}
