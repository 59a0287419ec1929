//! A value that was read: pinned where it lies, not copied, where possible.

use std::fmt;
use std::ops::{Deref, Range};

use crate::memtable::Memtable;
use crate::sync::Arc;
use crate::table::Block;

/// The value of a key. It stays readable for as long as it is kept, whatever
/// happens to the database; keeping it keeps the block or memtable around it.
#[derive(Clone)]
pub struct Value(Home);

/// A value of this part of its block or less is copied out where many are kept.
const DETACHED_PART: usize = 4;

#[derive(Clone)]
enum Home {
    Owned(Vec<u8>),
    Block { block: Block, range: Range<usize> },
    Row { bytes: Arc<[u8]>, start: usize },
    Memtable { _table: Arc<Memtable>, start: *const u8, length: usize },
}

// SAFETY: the pointer leads into the memtable, which is Send and Sync, is held
// by the same value and never changes a stored entry.
unsafe impl Send for Value {}
// SAFETY: as above; nothing is written through the pointer.
unsafe impl Sync for Value {}

impl Value {
    pub(crate) fn owned(bytes: Vec<u8>) -> Value {
        Value(Home::Owned(bytes))
    }

    /// The value at `range` of `block`.
    pub(crate) fn in_block(block: Block, range: Range<usize>) -> Value {
        Value(Home::Block { block, range })
    }

    /// The end of a cached row, from `start` on.
    pub(crate) fn in_row(bytes: Arc<[u8]>, start: usize) -> Value {
        Value(Home::Row { bytes, start })
    }

    /// The same value; no longer in its block, if it is a small part of that.
    pub(crate) fn detached(self) -> Value {
        match &self.0 {
            Home::Block { block, range } if DETACHED_PART * range.len() < block.bytes().len() => {
                Value::owned(self.to_vec())
            }
            _ => self,
        }
    }

    /// A value that `table` gave out.
    pub(crate) fn in_memtable(table: &Arc<Memtable>, value: &[u8]) -> Value {
        let (start, length) = (value.as_ptr(), value.len());
        Value(Home::Memtable { _table: Arc::clone(table), start, length })
    }
}

impl Deref for Value {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        match &self.0 {
            Home::Owned(bytes) => bytes,
            Home::Block { block, range } => &block.bytes()[range.clone()],
            Home::Row { bytes, start } => &bytes[*start..],
            // SAFETY: `Memtable::get` gave this slice for the life of the
            // memtable, which is held beside it.
            Home::Memtable { start, length, .. } => unsafe {
                std::slice::from_raw_parts(*start, *length)
            },
        }
    }
}

impl AsRef<[u8]> for Value {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl<T: AsRef<[u8]> + ?Sized> PartialEq<T> for Value {
    fn eq(&self, other: &T) -> bool {
        **self == *other.as_ref()
    }
}

impl fmt::Debug for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "b\"{}\"", self.escape_ascii())
    }
}
