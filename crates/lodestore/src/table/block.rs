//! A decoded block: shared bytes whose structure was validated.

use std::ops::{ControlFlow, Range};

use crate::error::Undecodable;
use crate::key::{KeyOrder, SequenceNumber, Trailer};
use crate::sync::Arc;

use super::layout::{Layout, flag};
use super::reader::BlockIndex;
use super::{Checked, LookupKey};

/// A decoded block of a table. A clone is one more reference: a value is kept
/// alive by keeping its block.
#[derive(Clone, Debug)]
pub(crate) struct Block {
    bytes: Arc<[u8]>,
    index: BlockIndex,
}

impl Block {
    /// Validates decoded bytes, slack included. Says what is wrong.
    pub(super) fn new(
        index: BlockIndex,
        mut bytes: Arc<[u8]>,
        order: &KeyOrder,
        sequence_override: Option<SequenceNumber>,
    ) -> Checked<Block, Undecodable> {
        let layout = Layout::parse(&bytes).ok_or_else(|| Layout::refusal(&bytes))?;
        layout.validate(&bytes, order)?;
        if let Some(sequence) = sequence_override {
            if layout.flags & flag::UNIQUE_KEYS == 0 {
                return Err("a table with one sequence number has a key twice".into());
            }
            let own = Arc::get_mut(&mut bytes).expect("a decoded block is not shared yet");
            layout.override_sequences(own, sequence);
        }
        Ok(Block { bytes, index })
    }

    /// A block from the cache, which holds only what [`Block::bytes`] gave.
    #[inline]
    pub(super) fn from_cache(index: BlockIndex, bytes: Arc<[u8]>) -> Block {
        Block { bytes, index }
    }

    /// The block's number in its table.
    #[inline]
    pub(crate) fn index(&self) -> BlockIndex {
        self.index
    }

    /// The decoded bytes, which keep their values' places for good.
    #[inline]
    pub(crate) fn bytes(&self) -> &Arc<[u8]> {
        &self.bytes
    }

    /// Where in [`Block::bytes`] a value lies that the block gave out.
    #[inline]
    pub(crate) fn range_of(&self, value: &[u8]) -> Range<usize> {
        let start = (value.as_ptr() as usize).wrapping_sub(self.bytes.as_ptr() as usize);
        assert!(start <= self.bytes.len() && value.len() <= self.bytes.len() - start);
        start..start + value.len()
    }

    #[inline]
    pub(super) fn layout(&self) -> Layout {
        Layout::parse(&self.bytes).expect("a block is validated when it is made")
    }

    /// Calls `visit` for the versions of the key that are not newer than
    /// `key.trailer_max`, newest first, until it breaks. True if it did not
    /// break and the last entry of the block is a version of the key.
    #[inline]
    pub(super) fn search<'b>(
        &'b self,
        key: &LookupKey<'_>,
        order: &KeyOrder,
        mut visit: impl FnMut(Trailer, &'b [u8]) -> ControlFlow<()>,
    ) -> bool {
        let layout = self.layout();
        let bytes = &self.bytes[..];
        let (mut i, found) = layout.find(bytes, key.user_key(), key.trailer_max(), order);
        if !found {
            return false;
        }
        loop {
            let (trailer, value) = (layout.trailer(bytes, i), layout.value(bytes, i));
            if visit(trailer, value).is_break() {
                return false;
            }
            if i + 1 == layout.count {
                return true;
            }
            if layout.flags & flag::UNIQUE_KEYS != 0 || !layout.same_key_follows(bytes, i, order) {
                return false;
            }
            i += 1;
        }
    }
}
