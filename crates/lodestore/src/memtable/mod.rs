//! The memtable: where an entry lives from the moment it is written until a
//! table holds it.
//!
//! One writer, any number of readers that never wait for it. Memory is given
//! back when the last reference goes.

mod arena;
mod cursor;
mod skiplist;

#[cfg(all(test, simulation))]
mod simulation;
#[cfg(all(test, not(simulation)))]
mod tests;

use std::cmp::Ordering;
use std::ops::ControlFlow;

use self::skiplist::Skiplist;
use crate::key::{KeyOrder, Trailer};
use crate::sync::Arc;

pub(crate) use self::cursor::MemtableCursor;

/// Sorted entries in memory: the side that reads.
pub(crate) struct Memtable {
    list: Skiplist,
}

/// The side that writes. There is one for each memtable.
pub(crate) struct MemtableWriter {
    memtable: Arc<Memtable>,
    random: u64,
}

impl Memtable {
    /// An empty memtable and its writer.
    pub(crate) fn new(order: KeyOrder) -> (Arc<Memtable>, MemtableWriter) {
        let memtable = Arc::new(Memtable {
            list: Skiplist::new(order),
        });
        let writer = MemtableWriter {
            memtable: Arc::clone(&memtable),
            random: 0x9e37_79b9_7f4a_7c15,
        };
        (memtable, writer)
    }

    /// Visits versions of `user_key`, newest first, from the first whose
    /// trailer is at most `trailer_max`, until `visit` breaks.
    pub(crate) fn get<'a>(
        &'a self,
        user_key: &[u8],
        trailer_max: Trailer,
        mut visit: impl FnMut(Trailer, &'a [u8]) -> ControlFlow<()>,
    ) {
        let mut at = self.list.first_from(user_key, trailer_max);
        while let Some(node) = at {
            if self.list.order().compare(node.key(), user_key) != Ordering::Equal
                || visit(node.trailer(), node.value()).is_break()
            {
                return;
            }
            at = self.list.after(node);
        }
    }

    /// Bytes taken from the allocator.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.list.memory_bytes()
    }

    /// Entries inserted so far.
    pub(crate) fn entries(&self) -> u64 {
        self.list.entries()
    }

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
    pub(crate) fn insert(&mut self, user_key: &[u8], trailer: Trailer, value: &[u8]) {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        // SAFETY: this is the only writer, and it is borrowed mutably.
        unsafe {
            self.memtable
                .list
                .insert(self.random, user_key, trailer, value)
        };
    }
}
