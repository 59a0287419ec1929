//! Index and filter in partitions: what stays resident of a large table, and
//! the section that describes it.
//!
//! The top says, as the index of a small table does for blocks, which
//! partition a key belongs to. A partition of the index is a block like those
//! of entries: under each separator lies the place of a block of entries. A
//! partition of the filter knows the keys of the same blocks. Both are read
//! and cached as blocks are.
//!
//! | offset | size | meaning |
//! |---|---|---|
//! | 0 | 4 | partitions `n` |
//! | 4 | 4 | flags: 1 filters |
//! | 8 | 4 (n + 1) | number of each partition's first block, then of all blocks |
//! | | 8 (n + 1) | flag 1: where each filter partition starts, then where the last ends |
//! | | | the top, as an index whose blocks are the index partitions |
//!
//! The value of an entry of an index partition:
//!
//! | offset | size | meaning |
//! |---|---|---|
//! | 0 | 8 | where the block starts |
//! | 8 | 4 | its stored length |

use crate::cache::BlockKind;
use crate::coding::{Reader, put_u32, put_u64};
use crate::error::Undecodable;
use crate::key::{KeyOrder, Trailer};

use super::Checked;
use super::block::Block;
use super::format::HEADER_BYTES;
use super::index::Index;
use super::layout::Layout;
use super::reader::{BlockIndex, BlockPlace, BlockRef};

const FILTERS: u32 = 1;
pub(super) const PLACE_BYTES: usize = 12;

/// The number of a partition in its table, from 0.
pub(super) type PartitionIndex = u32;

/// The resident part of a partitioned index and filter.
#[derive(Debug)]
pub(super) struct Partitions {
    top: Index,
    first_blocks: Box<[BlockIndex]>,
    filter_offsets: Option<Box<[u64]>>,
}

impl Partitions {
    /// Decodes and validates a section of a table whose sections start at
    /// `end`. Says what is wrong.
    pub(super) fn decode(
        section: &[u8],
        order: &KeyOrder,
        end: u64,
    ) -> Checked<Partitions, Undecodable> {
        let mut reader = Reader::new(section);
        let short = "the list of partitions ends early";
        let count = reader.u32().ok_or(short)? as usize;
        let flags = reader.u32().ok_or(short)?;
        let unknown = flags & !FILTERS;
        if unknown != 0 {
            return Err(Undecodable::Unknown(format!("partitions with flags {unknown:#x}")));
        }
        let firsts = reader.bytes(4 * (count + 1)).ok_or(short)?.as_chunks::<4>().0;
        let first_blocks = firsts.iter().map(|bytes| u32::from_le_bytes(*bytes)).collect();
        let filter_offsets = match flags & FILTERS {
            0 => None,
            _ => {
                let offsets = reader.bytes(8 * (count + 1)).ok_or(short)?.as_chunks::<8>().0;
                Some(offsets.iter().map(|bytes| u64::from_le_bytes(*bytes)).collect())
            }
        };
        if filter_offsets.is_some() && !order.equal_means_identical() {
            return Err("a filter under an order that calls different keys equal".into());
        }
        let top = Index::decode(reader.rest(), order)?;
        let partitions = Partitions { top, first_blocks, filter_offsets };
        partitions.validate(count, end)?;
        Ok(partitions)
    }

    fn validate(&self, count: usize, end: u64) -> Checked<()> {
        let ascend = self.first_blocks.windows(2).all(|pair| pair[0] < pair[1]);
        if count == 0 || self.top.blocks() != count || self.first_blocks[0] != 0 || !ascend {
            return Err("partitions that do not divide the blocks");
        }
        let starts = self.top.block_offset(0);
        if let Some(offsets) = &self.filter_offsets
            && (!offsets.is_sorted_by(|a, b| a < b) || offsets[count] != starts)
        {
            return Err("filter partitions out of place");
        }
        let inside = self.data_end() >= HEADER_BYTES as u64 && self.end() <= end;
        inside.then_some(()).ok_or("partitions overlap a section")
    }

    /// Partitions.
    pub(super) fn count(&self) -> PartitionIndex {
        self.top.blocks() as PartitionIndex
    }

    /// Blocks of entries.
    pub(super) fn blocks(&self) -> BlockIndex {
        self.first_blocks[self.first_blocks.len() - 1]
    }

    /// Where the last block of entries ends.
    pub(super) fn data_end(&self) -> u64 {
        self.filter_offsets.as_ref().map_or(self.top.block_offset(0), |offsets| offsets[0])
    }

    /// Where the last partition ends.
    pub(super) fn end(&self) -> u64 {
        self.top.block_offset(self.top.blocks())
    }

    /// True if versions of one user key go on from one partition to the next.
    pub(super) fn has_straddlers(&self) -> bool {
        self.top.has_straddlers()
    }

    /// Memory that is always taken.
    pub(super) fn memory_bytes(&self) -> usize {
        let offsets = self.filter_offsets.as_ref().map_or(0, |offsets| 8 * offsets.len());
        self.top.memory_bytes() + 4 * self.first_blocks.len() + offsets
    }

    /// The partition that says where `(user_key, trailer)` is.
    pub(super) fn find(
        &self,
        user_key: &[u8],
        trailer: Trailer,
        order: &KeyOrder,
    ) -> Option<PartitionIndex> {
        self.top.find(user_key, trailer, order).map(|found| found as PartitionIndex)
    }

    /// The partition that says where block `block` is.
    pub(super) fn of_block(&self, block: BlockIndex) -> PartitionIndex {
        let after = self.first_blocks.partition_point(|&first| first <= block);
        (after - 1) as PartitionIndex
    }

    /// Number of the first block of a partition; of all blocks for the number
    /// of partitions.
    pub(super) fn first_block(&self, partition: PartitionIndex) -> BlockIndex {
        self.first_blocks[partition as usize]
    }

    /// What to read to have a partition of the index.
    pub(super) fn index_ref(&self, partition: PartitionIndex) -> BlockRef {
        let i = partition as usize;
        let (offset, end) = (self.top.block_offset(i), self.top.block_offset(i + 1));
        BlockRef::new(BlockKind::Index, partition, offset, end)
    }

    /// What to read to have a partition of the filter, if there is a filter.
    pub(super) fn filter_ref(&self, partition: PartitionIndex) -> Option<BlockRef> {
        let offsets = self.filter_offsets.as_ref()?;
        let i = partition as usize;
        Some(BlockRef::new(BlockKind::Filter, partition, offsets[i], offsets[i + 1]))
    }

    /// Checks an index partition, whose structure as a block is sound: every
    /// place lies where entries are, one behind the other, and none is empty: the
    /// cache knows blocks by where they start.
    pub(super) fn check(
        &self,
        partition: PartitionIndex,
        block: &Block,
        may_straddle: bool,
    ) -> Checked<()> {
        let (layout, bytes) = (block.layout(), &block.bytes()[..]);
        let blocks = self.first_block(partition + 1) - self.first_block(partition);
        if layout.count != blocks as usize {
            return Err("a partition of another number of blocks");
        }
        let mut at = match partition {
            0 => Some(HEADER_BYTES as u64),
            _ => None,
        };
        for i in 0..layout.count {
            let place = place(&layout, bytes, i).ok_or("a place of another length")?;
            let end = place.offset.checked_add(place.stored_bytes as u64);
            let follows = at.is_none_or(|at| at == place.offset);
            let is_inside = end.is_some_and(|end| end <= self.data_end());
            if !follows || !is_inside || place.offset == 0 || place.stored_bytes == 0 {
                return Err("a place where no block can be");
            }
            if !may_straddle && layout.trailer(bytes, i) != 0 {
                return Err("a table with one sequence number has a key twice");
            }
            at = end;
        }
        let is_last = partition + 1 == self.count();
        (!is_last || at == Some(self.data_end())).then_some(()).ok_or("blocks that nothing finds")
    }

    /// The block of entries that entry `i` of an index partition leads to.
    pub(super) fn data_ref(&self, partition: &Block, layout: &Layout, i: usize) -> BlockRef {
        let place = place(layout, partition.bytes(), i).expect("the partition was checked");
        let index = self.first_block(partition.index()) + i as BlockIndex;
        BlockRef { kind: BlockKind::Data, index, place }
    }
}

fn place(layout: &Layout, bytes: &[u8], i: usize) -> Option<BlockPlace> {
    let (offset, length) = layout.value(bytes, i).split_first_chunk::<8>()?;
    let length: [u8; 4] = length.try_into().ok()?;
    let (offset, length) = (u64::from_le_bytes(*offset), u32::from_le_bytes(length));
    Some(BlockPlace { offset, stored_bytes: length as usize })
}

/// The value under a separator: the place of its block.
pub(super) fn encode_place(offset: u64, end: u64) -> [u8; PLACE_BYTES] {
    let length = u32::try_from(end - offset).expect("a stored block is shorter than 4 GiB");
    let mut out = [0; PLACE_BYTES];
    out[..8].copy_from_slice(&offset.to_le_bytes());
    out[8..].copy_from_slice(&length.to_le_bytes());
    out
}

/// The section: `top` is the encoded index of the partitions.
pub(super) fn encode(first_blocks: &[u32], filter_offsets: Option<&[u64]>, top: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(8 + 12 * first_blocks.len() + top.len());
    put_u32(&mut out, first_blocks.len() as u32 - 1);
    put_u32(&mut out, if filter_offsets.is_some() { FILTERS } else { 0 });
    first_blocks.iter().for_each(|&first| put_u32(&mut out, first));
    filter_offsets.into_iter().flatten().for_each(|&offset| put_u64(&mut out, offset));
    out.extend_from_slice(top);
    out
}
