//! What is known of a block when its last entry is in: what the index and the
//! filter need once it has a place in the file.

use crate::key::{Trailer, hash};
use crate::prefix::{PrefixExtractor, prefix_hash};

/// The end of a block.
#[derive(Debug)]
pub(super) struct BlockEnd {
    /// Not before the last entry, and before the next block's first.
    pub(super) separator: Vec<u8>,
    /// The last entry's trailer, if its user key goes on in the next block.
    pub(super) straddler: Option<Trailer>,
    pub(super) is_last: bool,
    pub(super) hashes: BlockHashes,
}

/// What a filter is to know of a block.
#[derive(Debug, Default)]
pub(super) struct BlockHashes {
    pub(super) keys: Vec<u64>,
    /// Of prefixes, each of which is there once in a run of keys with it.
    pub(super) prefixes: Vec<u64>,
}

impl BlockHashes {
    /// Adds an entry's key; `is_repeated` if it is that of the entry before,
    /// which may be in the block before.
    #[inline]
    pub(super) fn add(&mut self, user_key: &[u8], is_repeated: bool, extractor: PrefixExtractor) {
        if is_repeated && !self.keys.is_empty() {
            return;
        }
        self.keys.push(hash(user_key));
        if let Some(prefix) = extractor.prefix_of(user_key) {
            let hash = prefix_hash(prefix);
            if self.prefixes.last() != Some(&hash) {
                self.prefixes.push(hash);
            }
        }
    }

    pub(super) fn clear(&mut self) {
        self.keys.clear();
        self.prefixes.clear();
    }

    pub(super) fn count(&self) -> usize {
        self.keys.len() + self.prefixes.len()
    }
}
