//! Range deletes in the order in which they were written, readable at every
//! sequence number: what a memtable keeps.
//!
//! They form chunks of 1, 2, 4, ... range deletes, as the bits of a binary
//! counter: two chunks of one size become one, which remembers both. A chunk's
//! fragments tell of its newest range delete at each key, which is all that a
//! reader needs who sees all of the chunk; of the one chunk that a reader sees
//! in part, the halves are asked. So n range deletes cost O(n log n) memory
//! even if each holds all earlier ones, adding one costs O(log n) amortised
//! steps of merging, and a reader asks O(log n) chunks.

use std::sync::Arc;

use super::{Fragments, RangeDelete, Window};
use crate::key::{KeyOrder, SequenceNumber};

/// Immutable; a longer one shares its chunks.
#[derive(Clone, Debug, Default)]
pub(crate) struct History {
    /// Oldest and largest first.
    chunks: Vec<Arc<Chunk>>,
}

#[derive(Debug)]
struct Chunk {
    first: SequenceNumber,
    last: SequenceNumber,
    count: usize,
    /// Of each key the newest.
    fragments: Fragments,
    /// Older, newer; `None` for a single range delete.
    halves: Option<[Arc<Chunk>; 2]>,
}

impl History {
    /// This history and one range delete more, which is newer than all; and
    /// the memory that it takes beyond this one.
    pub(crate) fn with(&self, order: &KeyOrder, delete: RangeDelete) -> (History, usize) {
        let mut chunks = self.chunks.clone();
        let mut newest = Chunk::single(order, delete);
        let mut bytes = newest.memory_bytes();
        while let Some(older) = chunks.pop_if(|older| older.count == newest.count) {
            newest = Chunk::joined(order, older, Arc::new(newest));
            bytes += newest.memory_bytes();
        }
        chunks.push(Arc::new(newest));
        (History { chunks }, bytes)
    }

    /// How many range deletes there are.
    fn count(&self) -> usize {
        self.chunks.iter().map(|chunk| chunk.count).sum()
    }

    /// The newest range delete at `key` that a reader at `visible` sees: its
    /// number, or 0.
    pub(crate) fn covering(&self, key: &[u8], visible: SequenceNumber) -> SequenceNumber {
        let newest_first = self.chunks.iter().rev();
        newest_first.map(|chunk| chunk.covering(key, visible)).find(|&s| s > 0).unwrap_or(0)
    }

    /// The window around `key`.
    pub(crate) fn around(
        &self,
        order: &KeyOrder,
        key: &[u8],
        visible: SequenceNumber,
    ) -> Window<'_> {
        let windows = self.chunks.iter().map(|chunk| chunk.around(order, key, visible));
        windows.fold(Window::default(), |all, one| all.and(one, order))
    }

    /// All range deletes, oldest first.
    pub(crate) fn deletes(&self) -> Vec<RangeDelete> {
        let mut deletes = Vec::with_capacity(self.count());
        self.chunks.iter().for_each(|chunk| chunk.collect(&mut deletes));
        deletes
    }
}

impl Chunk {
    fn single(order: &KeyOrder, delete: RangeDelete) -> Chunk {
        let sequence = delete.sequence;
        let fragments = Fragments::build(order, [delete], &[]);
        Chunk { first: sequence, last: sequence, count: 1, fragments, halves: None }
    }

    fn joined(order: &KeyOrder, older: Arc<Chunk>, newer: Arc<Chunk>) -> Chunk {
        debug_assert!(older.last < newer.first, "range deletes come in their order");
        let both = older.fragments.deletes().chain(newer.fragments.deletes());
        Chunk {
            first: older.first,
            last: newer.last,
            count: older.count + newer.count,
            fragments: Fragments::build(order, both, &[]),
            halves: Some([older, newer]),
        }
    }

    fn memory_bytes(&self) -> usize {
        size_of::<Chunk>() + self.fragments.memory_bytes()
    }

    fn covering(&self, key: &[u8], visible: SequenceNumber) -> SequenceNumber {
        match &self.halves {
            _ if self.first > visible => 0,
            Some([older, newer]) if self.last > visible => match newer.covering(key, visible) {
                0 => older.covering(key, visible),
                found => found,
            },
            _ => self.fragments.covering(key, visible),
        }
    }

    fn around(&self, order: &KeyOrder, key: &[u8], visible: SequenceNumber) -> Window<'_> {
        match &self.halves {
            _ if self.first > visible => Window::default(),
            Some([older, newer]) if self.last > visible => {
                let (older, newer) =
                    (older.around(order, key, visible), newer.around(order, key, visible));
                older.and(newer, order)
            }
            _ => self.fragments.around(key, visible),
        }
    }

    fn collect(&self, into: &mut Vec<RangeDelete>) {
        match &self.halves {
            Some(halves) => halves.iter().for_each(|half| half.collect(into)),
            None => into.extend(self.fragments.deletes()),
        }
    }
}
