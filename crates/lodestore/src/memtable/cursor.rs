//! A cursor over a memtable.

use std::cmp::Ordering;
use std::ptr;

use super::Memtable;
use super::skiplist::Node;
use crate::cursor::Cursor;
use crate::error::Result;
use crate::key::Trailer;
use crate::sync::Arc;

/// See [`Memtable::cursor`]. What is inserted after a seek may or may not be
/// met; what was there before is met exactly once.
pub(crate) struct MemtableCursor {
    memtable: Arc<Memtable>,
    node: *const Node,
}

// SAFETY: `node` is null or lives as long as `memtable`, which is Send + Sync.
unsafe impl Send for MemtableCursor {}

impl MemtableCursor {
    pub(super) fn new(memtable: Arc<Memtable>) -> MemtableCursor {
        MemtableCursor {
            memtable,
            node: ptr::null(),
        }
    }

    #[inline]
    fn node(&self) -> &Node {
        assert!(!self.node.is_null(), "the cursor has a position");
        // SAFETY: not null, and it lives as long as `memtable`.
        unsafe { &*self.node }
    }
}

fn raw(node: Option<&Node>) -> *const Node {
    node.map_or(ptr::null(), ptr::from_ref)
}

impl Cursor for MemtableCursor {
    fn valid(&self) -> bool {
        !self.node.is_null()
    }

    fn seek_to_first(&mut self) {
        self.node = raw(self.memtable.list.first());
    }

    fn seek_to_last(&mut self) {
        self.node = raw(self.memtable.list.last());
    }

    fn seek(&mut self, user_key: &[u8], trailer: Trailer) {
        self.node = raw(self.memtable.list.first_from(user_key, trailer));
    }

    fn seek_for_prev(&mut self, user_key: &[u8], trailer: Trailer) {
        let list = &self.memtable.list;
        let at = list.first_from(user_key, trailer).filter(|node| {
            node.trailer() == trailer
                && list.order().compare(node.key(), user_key) == Ordering::Equal
        });
        self.node = raw(at.or_else(|| list.last_before(user_key, trailer)));
    }

    fn next(&mut self) {
        self.node = raw(self.memtable.list.after(self.node()));
    }

    fn prev(&mut self) {
        let node = self.node();
        self.node = raw(self.memtable.list.last_before(node.key(), node.trailer()));
    }

    fn user_key(&self) -> &[u8] {
        self.node().key()
    }

    fn trailer(&self) -> Trailer {
        self.node().trailer()
    }

    fn value(&self) -> &[u8] {
        self.node().value()
    }

    fn status(&self) -> Result<()> {
        Ok(())
    }
}
