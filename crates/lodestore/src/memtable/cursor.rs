//! A cursor over a memtable: a place in the tree, and the entry there.

use super::Memtable;
use super::entry::Entry;
use super::tree::{Position, Tree};
use crate::cursor::Cursor;
use crate::error::Result;
use crate::key::Trailer;
use crate::sync::Arc;

/// See [`Memtable::cursor`]. Entries that were there when the cursor was made
/// are met in order, each exactly once, however much is inserted meanwhile;
/// later ones may or may not be met.
pub(crate) struct MemtableCursor {
    /// What `place` points into; they never get out of this struct apart.
    memtable: Arc<Memtable>,
    place: Option<(Position<'static>, Entry<'static>)>,
}

// SAFETY: `place` points into the memtable that the cursor holds, which may be
// used from any thread; nothing in it belongs to the thread that made it.
unsafe impl Send for MemtableCursor {}

impl MemtableCursor {
    pub(super) fn new(memtable: Arc<Memtable>) -> MemtableCursor {
        MemtableCursor { memtable, place: None }
    }

    /// Goes where `find` says.
    #[inline]
    fn go(&mut self, find: impl FnOnce(&'static Tree) -> Option<Position<'static>>) {
        let tree: *const Tree = &raw const self.memtable.tree;
        // SAFETY: the tree lives at this address as long as the Arc that
        // `self` holds, and `place` is not handed out for longer than `self`
        // is borrowed.
        let tree: &'static Tree = unsafe { &*tree };
        self.place = find(tree).map(|at| (at, tree.entry(at)));
    }

    #[inline]
    fn place(&self) -> &(Position<'static>, Entry<'static>) {
        self.place.as_ref().expect("a cursor is asked only where it is valid")
    }
}

impl Cursor for MemtableCursor {
    #[inline]
    fn valid(&self) -> bool {
        self.place.is_some()
    }

    fn seek_to_first(&mut self) {
        self.go(Tree::first);
    }

    fn seek_to_last(&mut self) {
        self.go(Tree::last);
    }

    fn seek(&mut self, user_key: &[u8], trailer: Trailer) {
        self.go(|tree| tree.seek(user_key, trailer));
    }

    fn seek_for_prev(&mut self, user_key: &[u8], trailer: Trailer) {
        self.go(|tree| tree.seek_for_prev(user_key, trailer));
    }

    #[inline]
    fn next(&mut self) {
        let at = self.place().0;
        self.go(|tree| tree.next(at));
    }

    #[inline]
    fn prev(&mut self) {
        let at = self.place().0;
        self.go(|tree| tree.prev(at));
    }

    #[inline]
    fn user_key(&self) -> &[u8] {
        self.place().1.key
    }

    #[inline]
    fn trailer(&self) -> Trailer {
        self.place().1.trailer
    }

    #[inline]
    fn value(&self) -> &[u8] {
        self.place().1.value
    }

    fn status(&self) -> Result<()> {
        Ok(())
    }
}
