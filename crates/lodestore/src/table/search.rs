//! A point lookup in one table, without I/O: it says which stored block it
//! needs next, of the filter, the index or the entries, and whoever drives it
//! gets that from the cache or the file.
//!
//! resident: filter -> index -> `Need::Block(entries)`
//! partitioned: top -> `Block(filter)` -> `Block(index)` -> `Block(entries)`
//! LevelDB's: index -> filter of the block -> `Need::Block(entries)`

use std::ops::ControlFlow;

use crate::cache::BlockKind;
use crate::key::Trailer;
use crate::leveldb::filter::Filters;

use super::LookupKey;
use super::block::Block;
use super::directory::Directory;
use super::filter;
use super::index::Index;
use super::partitions::Partitions;
use super::reader::{BlockRef, Table};

/// What a lookup in a table needs before it can go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Need {
    /// Nothing: the table has no more versions that matter.
    Nothing,
    /// Nothing: the filter says that the table lacks the key.
    Denied,
    /// This block; then [`Table::supply`].
    Block(BlockRef),
}

/// The partition of the index that a lookup came through, and the entry there.
#[derive(Clone, Debug)]
pub(crate) struct Held {
    partition: Block,
    entry: usize,
}

impl Table {
    /// Begins a lookup of `key`.
    #[inline]
    pub(crate) fn begin(&self, key: &LookupKey<'_>) -> Need {
        match &self.directory {
            Directory::Resident { index, filter } => {
                if filter.as_ref().is_some_and(|filter| !filter.may_contain(key.hash)) {
                    return Need::Denied;
                }
                match index.find(key.user_key, key.trailer_max, &self.order) {
                    Some(block) => Need::Block(BlockRef::resident(index, block)),
                    None => Need::Nothing,
                }
            }
            _ => self.begin_elsewhere(key),
        }
    }

    /// Not inlined: a lookup in a resident directory is to stay short.
    #[inline(never)]
    fn begin_elsewhere(&self, key: &LookupKey<'_>) -> Need {
        match &self.directory {
            Directory::Partitioned(partitions) => self.begin_in(partitions, key),
            Directory::Resident { .. } => unreachable!("`begin` looks there itself"),
            Directory::Foreign { index, filters } => {
                self.begin_foreign(index, filters.as_ref(), key)
            }
        }
    }

    /// LevelDB's filters are for one block each, so the index comes first.
    fn begin_foreign(&self, index: &Index, filters: Option<&Filters>, key: &LookupKey<'_>) -> Need {
        let Some(block) = index.find(key.user_key, key.trailer_max, &self.order) else {
            return Need::Nothing;
        };
        let block = BlockRef::resident(index, block);
        match filters.is_none_or(|of| of.may_contain(block.place.offset, key.user_key)) {
            true => Need::Block(block),
            false => Need::Denied,
        }
    }

    fn begin_in(&self, partitions: &Partitions, key: &LookupKey<'_>) -> Need {
        match partitions.find(key.user_key, key.trailer_max, &self.order) {
            None => Need::Nothing,
            Some(found) => {
                let filter = partitions.filter_ref(found);
                Need::Block(filter.unwrap_or_else(|| partitions.index_ref(found)))
            }
        }
    }

    /// Goes on with the block that was asked for by `wanted`; `held` is kept
    /// between the calls of one lookup in one table. Calls `visit` for the
    /// versions of the key in a block of entries, newest first from
    /// `key.trailer_max()`, until it breaks.
    #[inline]
    pub(crate) fn supply<'b>(
        &self,
        wanted: BlockRef,
        block: &'b Block,
        key: &LookupKey<'_>,
        held: &mut Option<Held>,
        visit: impl FnMut(Trailer, &'b [u8]) -> ControlFlow<()>,
    ) -> Need {
        if wanted.kind == BlockKind::Data {
            let reached_end = block.search(key, &self.order, visit);
            return if reached_end { self.after_end(wanted, held) } else { Need::Nothing };
        }
        match &self.directory {
            Directory::Partitioned(partitions) if wanted.kind == BlockKind::Filter => {
                match filter::may_contain(block.bytes(), key.hash) {
                    true => Need::Block(partitions.index_ref(wanted.index)),
                    false => Need::Denied,
                }
            }
            Directory::Partitioned(partitions) => self.through(partitions, block, key, held),
            Directory::Resident { .. } | Directory::Foreign { .. } => {
                unreachable!("a resident index needs no partition")
            }
        }
    }

    /// The block of entries that a partition of the index leads to.
    fn through(
        &self,
        partitions: &Partitions,
        partition: &Block,
        key: &LookupKey<'_>,
        held: &mut Option<Held>,
    ) -> Need {
        let (layout, bytes) = (partition.layout(), &partition.bytes()[..]);
        let (entry, _) = layout.find(bytes, key.user_key, key.trailer_max, &self.order);
        if entry == layout.count {
            return Need::Nothing;
        }
        *held = Some(Held { partition: partition.clone(), entry });
        Need::Block(partitions.data_ref(partition, &layout, entry))
    }

    /// Where the key's versions go on after the last entry of a block.
    fn after_end(&self, wanted: BlockRef, held: &mut Option<Held>) -> Need {
        let next = wanted.index + 1;
        match &self.directory {
            Directory::Resident { index, .. } | Directory::Foreign { index, .. } => {
                let goes_on = next < self.blocks() && index.straddles(wanted.index as usize);
                let next = || Need::Block(BlockRef::resident(index, next as usize));
                if goes_on { next() } else { Need::Nothing }
            }
            Directory::Partitioned(partitions) => {
                let held = held.as_mut().expect("a partition led to the block");
                let (layout, bytes) = (held.partition.layout(), &held.partition.bytes()[..]);
                if next >= self.blocks() || layout.trailer(bytes, held.entry) == 0 {
                    return Need::Nothing;
                }
                held.entry += 1;
                if held.entry < layout.count {
                    return Need::Block(partitions.data_ref(&held.partition, &layout, held.entry));
                }
                Need::Block(partitions.index_ref(held.partition.index() + 1))
            }
        }
    }
}
