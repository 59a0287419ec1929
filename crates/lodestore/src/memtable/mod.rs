//! The memtable: where an entry lives from the moment it is written until a
//! table holds it.
//!
//! write: `MemtableWriter::insert` -> `entry` (bytes in the `arena`) -> `tree`
//! read: `Memtable::get` or `cursor` -> `tree` -> `node` -> `entry`
//! Invariants: one writer, enforced by there being one [`MemtableWriter`];
//! any number of readers, which never wait for it nor for each other; memory
//! is given back when the last reference goes, and never before.

mod arena;
mod cursor;
mod entry;
mod node;
mod tree;

#[cfg(all(test, simulation))]
mod simulation;
#[cfg(all(test, not(simulation)))]
mod tests;

use std::ops::ControlFlow;

use self::tree::{Hand, Tree};
use crate::budget::{Account, Charge, Item};
use crate::key::{KeyOrder, Trailer};
use crate::sync::Arc;

pub(crate) use self::cursor::MemtableCursor;

/// Sorted entries in memory: the side that reads.
pub(crate) struct Memtable {
    tree: Tree,
}

/// The side that writes. There is one for each memtable.
pub(crate) struct MemtableWriter {
    memtable: Arc<Memtable>,
    hand: Hand,
}

impl Memtable {
    /// An empty memtable and its writer. Its memory is charged to `account`.
    pub(crate) fn new(order: KeyOrder, account: &Arc<Account>) -> (Arc<Memtable>, MemtableWriter) {
        let memory = Charge::new(account, Item::Memtables);
        let memtable = Arc::new(Memtable { tree: Tree::new(order, &memory) });
        let writer = MemtableWriter { memtable: Arc::clone(&memtable), hand: Hand::default() };
        (memtable, writer)
    }

    /// Visits versions of `user_key`, newest first, from the first whose
    /// trailer is at most `trailer_max`, until `visit` breaks.
    #[inline]
    pub(crate) fn get<'a>(
        &'a self,
        user_key: &[u8],
        trailer_max: Trailer,
        mut visit: impl FnMut(Trailer, &'a [u8]) -> ControlFlow<()>,
    ) {
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

    /// Bytes taken from the allocator.
    #[inline]
    pub(crate) fn memory_bytes(&self) -> usize {
        self.tree.bytes()
    }

    /// Entries inserted so far.
    #[inline]
    pub(crate) fn entries(&self) -> u64 {
        self.tree.count()
    }

    /// True if nothing was inserted yet.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.entries() == 0
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
        // SAFETY: this is the only writer, and it is borrowed mutably.
        unsafe { self.memtable.tree.insert(&mut self.hand, user_key, trailer, value) };
    }
}

impl Drop for MemtableWriter {
    /// Nothing is added any more: what the memtable holds waits for its flush.
    fn drop(&mut self) {
        // SAFETY: this is the only writer, and it is borrowed mutably.
        unsafe { self.memtable.tree.seal() };
    }
}

/// Asks the processor to have the cache line at `address` at hand soon. Any
/// address will do.
#[inline]
fn prefetch(address: *const u8) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch reads nothing that the program can see, and every
    // x86-64 processor has the instruction.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(address.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = address;
}
