//! A decoded block: shared bytes whose structure was validated.

use std::ops::ControlFlow;

use crate::key::{KeyOrder, SequenceNumber, Trailer};
use crate::sync::Arc;

use super::{Checked, LookupKey};
use super::layout::{Layout, flag};

/// A decoded block. A clone is one more reference: a value is kept alive by
/// keeping its block.
#[derive(Clone, Debug)]
pub(crate) struct Block(Arc<[u8]>);

impl Block {
    /// Validates decoded bytes, slack included. Says what is wrong.
    pub(super) fn new(
        mut bytes: Arc<[u8]>,
        order: &KeyOrder,
        sequence_override: Option<SequenceNumber>,
    ) -> Checked<Block> {
        let layout = Layout::parse(&bytes).ok_or("a block whose parts do not fit")?;
        layout.validate(&bytes, order)?;
        if let Some(sequence) = sequence_override {
            if layout.flags & flag::UNIQUE_KEYS == 0 {
                return Err("a table with one sequence number has a key twice");
            }
            let own = Arc::get_mut(&mut bytes).expect("a decoded block is not shared yet");
            layout.override_sequences(own, sequence);
        }
        Ok(Block(bytes))
    }

    /// A block from the cache, which holds only what [`Block::bytes`] gave.
    #[inline]
    pub(super) fn from_cache(bytes: Arc<[u8]>) -> Block {
        Block(bytes)
    }

    /// The decoded bytes, which keep their values' places for good.
    #[inline]
    pub(crate) fn bytes(&self) -> &Arc<[u8]> {
        &self.0
    }

    #[inline]
    pub(super) fn layout(&self) -> Layout {
        Layout::parse(&self.0).expect("a block is validated when it is made")
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
        let bytes = &self.0[..];
        let mut i = layout.lower_bound(bytes, key.user_key, key.trailer_max, order);
        if i == layout.count || !layout.key_is(bytes, i, key.user_key, order) {
            return false;
        }
        loop {
            let (trailer, value) = (layout.trailer(bytes, i), layout.value(bytes, i));
            if visit(trailer, value).is_break() {
                return false;
            }
            i += 1;
            if i == layout.count {
                return true;
            }
            if layout.flags & flag::UNIQUE_KEYS != 0
                || !layout.key_is(bytes, i, key.user_key, order)
            {
                return false;
            }
        }
    }
}
