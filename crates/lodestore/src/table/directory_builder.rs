//! Gathers index and filter while a table is built, and writes them: as two
//! sections, or, if they exceed a partition, as partitions and their top.
//!
//! A partition of the index and one of the filter are closed together, at the
//! end of a block, and know the same blocks. They are written behind the last
//! block of entries: filters first, then indexes.

use crate::key::Trailer;

use super::block_builder::BlockBuilder;
use super::block_end::BlockEnd;
use super::codec::Compressor;
use super::filter::FilterBuilder;
use super::index_builder::IndexBuilder;
use super::partitions::{self, PLACE_BYTES, encode_place};
use super::{Compression, TableSettings};

/// Index and filter of a table that is being built.
#[derive(Debug)]
pub(super) struct DirectoryBuilder {
    /// A partition is closed at this size; `usize::MAX`: there are none.
    partition_bytes: usize,
    divides_keys: bool,
    filter_bits_per_key: Option<u8>,
    /// Of the open partition, or of all.
    index: IndexBuilder,
    filter: Option<FilterBuilder>,
    /// The hashes of the last key and the last prefix in that filter.
    last_key: Option<u64>,
    last_prefix: Option<u64>,
    closed: Vec<Partition>,
    closed_bytes: usize,
    blocks: u32,
}

/// A partition that is not written yet.
#[derive(Debug)]
struct Partition {
    first_block: u32,
    separator: Vec<u8>,
    straddler: Option<Trailer>,
    index: Vec<u8>,
    filter: Option<Vec<u8>>,
}

/// What follows the last block of entries.
pub(super) enum Finished {
    /// The sections of filter and index.
    Resident { filter: Option<Vec<u8>>, index: Vec<u8> },
    /// The section of the partitions that were written.
    Partitioned(Vec<u8>),
}

impl DirectoryBuilder {
    pub(super) fn new(settings: &TableSettings) -> DirectoryBuilder {
        let bits = settings.filter_bits_per_key;
        let has_filter = bits > 0 && settings.order.equal_means_identical();
        DirectoryBuilder {
            partition_bytes: settings.partition_bytes,
            divides_keys: settings.order.is_bytewise(),
            filter_bits_per_key: has_filter.then_some(bits),
            index: IndexBuilder::default(),
            filter: has_filter.then(|| FilterBuilder::new(bits)),
            last_key: None,
            last_prefix: None,
            closed: Vec::new(),
            closed_bytes: 0,
            blocks: 0,
        }
    }

    /// True if hashes of keys are of use.
    pub(super) fn has_filter(&self) -> bool {
        self.filter.is_some()
    }

    /// Adds the block that lies from `offset` to `end`.
    pub(super) fn add_block(&mut self, block: &BlockEnd, (offset, end): (u64, u64)) {
        let BlockEnd { separator, straddler, is_last, hashes } = block;
        self.index.add(separator, *straddler, offset);
        self.blocks += 1;
        if let Some(filter) = &mut self.filter {
            // What goes on from the block before is there already.
            for (hashes, last) in
                [(&hashes.keys, &mut self.last_key), (&hashes.prefixes, &mut self.last_prefix)]
            {
                let new = hashes.iter().filter(|hash| last.replace(**hash) != Some(**hash));
                new.for_each(|&hash| filter.add(hash));
            }
        }
        let filter_bytes = self.filter.as_ref().map_or(0, FilterBuilder::bytes);
        let is_full = self.index.bytes().max(filter_bytes) >= self.partition_bytes;
        if is_full && !is_last || *is_last && !self.closed.is_empty() {
            self.close(end);
        }
    }

    /// Closes the open partition, whose blocks end at `end`.
    fn close(&mut self, end: u64) {
        let index = std::mem::take(&mut self.index);
        let first_block = self.blocks - index.blocks() as u32;
        let filter = self.filter.take().map(FilterBuilder::finish);
        self.filter = self.filter_bits_per_key.map(FilterBuilder::new);
        (self.last_key, self.last_prefix) = (None, None);
        let (separator, straddler) = index.last();
        let partition = Partition {
            first_block,
            separator: separator.to_vec(),
            straddler,
            index: index_block(&index, end, self.divides_keys),
            filter,
        };
        let filter_bytes = partition.filter.as_ref().map_or(0, Vec::len);
        self.closed_bytes += partition.index.len() + filter_bytes;
        self.closed.push(partition);
    }

    /// Blocks so far.
    pub(super) fn blocks(&self) -> u32 {
        self.blocks
    }

    /// About how long what is to be written will be.
    pub(super) fn bytes(&self) -> usize {
        self.closed_bytes
            + self.index.bytes()
            + self.filter.as_ref().map_or(0, FilterBuilder::bytes)
    }

    /// About how much memory it takes.
    pub(super) fn memory_bytes(&self) -> usize {
        self.closed_bytes
            + 2 * self.index.bytes()
            + self.filter.as_ref().map_or(0, FilterBuilder::memory_bytes)
    }

    /// Writes partitions through `put`, which seals a block and gives where it
    /// starts and ends. `data_end` is where the last block of entries ends.
    pub(super) fn finish<E>(
        self,
        data_end: u64,
        compressor: &mut Compressor,
        mut put: impl FnMut(&[u8], &mut Compressor) -> Result<(u64, u64), E>,
    ) -> Result<Finished, E> {
        if self.closed.is_empty() {
            let filter = self.filter.map(FilterBuilder::finish);
            let index = self.index.finish(data_end, self.divides_keys);
            return Ok(Finished::Resident { filter, index });
        }
        let mut end = data_end;
        let mut filter_offsets = self.filter_bits_per_key.map(|_| Vec::new());
        if let Some(offsets) = &mut filter_offsets {
            // Filters have no pattern that a codec could use.
            let mut raw = Compressor::new(Compression::None).expect("no codec needs nothing");
            for partition in &self.closed {
                let filter = partition.filter.as_deref().unwrap_or_default();
                let (start, filter_end) = put(filter, &mut raw)?;
                offsets.push(start);
                end = filter_end;
            }
            offsets.push(end);
        }
        let mut top = IndexBuilder::default();
        for partition in &self.closed {
            let (start, index_end) = put(&partition.index, compressor)?;
            top.add(&partition.separator, partition.straddler, start);
            end = index_end;
        }
        let mut first_blocks: Vec<u32> = self.closed.iter().map(|p| p.first_block).collect();
        first_blocks.push(self.blocks);
        let top = top.finish(end, self.divides_keys);
        let section = partitions::encode(&first_blocks, filter_offsets.as_deref(), &top);
        Ok(Finished::Partitioned(section))
    }
}

/// A partition of the index as a block: places under separators.
fn index_block(index: &IndexBuilder, end: u64, divides_keys: bool) -> Vec<u8> {
    let mut builder = BlockBuilder::new(divides_keys);
    let mut last: Option<&[u8]> = None;
    for (separator, trailer, offset, block_end) in index.entries(end) {
        let place: [u8; PLACE_BYTES] = encode_place(offset, block_end);
        builder.add(separator, trailer, &place, last == Some(separator));
        last = Some(separator);
    }
    let mut block = Vec::new();
    builder.finish(&mut block);
    block
}
