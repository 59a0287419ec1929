//! A table as LevelDB writes it (`table/table_builder.cc`): blocks of entries, a
//! filter block, the meta index, the index, the footer.

use super::block::BlockWriter;
use super::filter::{FILTER_NAME, FilterWriter};
use super::footer::{BLOCK_TRAILER_BYTES, Footer, Handle};
use super::{split_key, stored};

/// LevelDB's defaults.
const BLOCK_BYTES: usize = 4 << 10;
const RESTART_INTERVAL: usize = 16;

/// A table in memory that is being written.
#[derive(Debug)]
pub(crate) struct TableImage {
    bytes: Vec<u8>,
    block: BlockWriter,
    index: BlockWriter,
    filters: Option<FilterWriter>,
    snappy: bool,
}

impl TableImage {
    /// No filters if they have no bits.
    pub(crate) fn new(snappy: bool, filter_bits_per_key: u8) -> TableImage {
        let bits = usize::from(filter_bits_per_key);
        TableImage {
            bytes: Vec::new(),
            block: BlockWriter::new(RESTART_INTERVAL),
            index: BlockWriter::new(1),
            filters: (bits > 0).then(|| FilterWriter::new(bits)),
            snappy,
        }
    }

    /// About how long it is by now.
    pub(crate) fn len(&self) -> usize {
        self.bytes.len() + if self.block.is_empty() { 0 } else { self.block.len() }
    }

    /// Adds a stored key that comes after all before it.
    pub(crate) fn add(&mut self, key: &[u8], value: &[u8]) {
        if self.block.is_empty() {
            let offset = self.bytes.len() as u64;
            self.filters.iter_mut().for_each(|filters| filters.begin_block(offset));
        }
        if let (Some(filters), Ok((user_key, _))) = (&mut self.filters, split_key(key)) {
            filters.add(user_key);
        }
        self.block.add(key, value);
        if self.block.len() >= BLOCK_BYTES {
            self.end_block();
        }
    }

    fn end_block(&mut self) {
        // The last key itself parts this block from the next one in any order
        // of keys.
        let separator = self.block.last().to_vec();
        let raw = self.block.finish();
        let handle = self.put(&raw, self.snappy);
        let mut value = Vec::new();
        handle.put(&mut value);
        self.index.add(&separator, &value);
    }

    fn put(&mut self, raw: &[u8], snappy: bool) -> Handle {
        let offset = self.bytes.len() as u64;
        let bytes = stored::put(&mut self.bytes, raw, snappy);
        debug_assert_eq!(self.bytes.len() as u64, offset + bytes + BLOCK_TRAILER_BYTES);
        Handle { offset, bytes }
    }

    /// All of the file.
    pub(crate) fn finish(mut self) -> Vec<u8> {
        if !self.block.is_empty() {
            self.end_block();
        }
        let mut meta_index = BlockWriter::new(1);
        if let Some(filters) = self.filters.take() {
            let raw = filters.finish();
            let handle = self.put(&raw, false);
            let mut value = Vec::new();
            handle.put(&mut value);
            meta_index.add(FILTER_NAME, &value);
        }
        let meta_index = self.put(&meta_index.finish(), self.snappy);
        let raw = self.index.finish();
        let index = self.put(&raw, self.snappy);
        let footer = Footer { meta_index, index }.encode();
        self.bytes.extend_from_slice(&footer);
        self.bytes
    }
}
