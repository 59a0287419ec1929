//! A table as LevelDB writes it (`table/table_builder.cc`): blocks of entries, a
//! filter block, the meta index, the index, the footer.

use super::block::BlockWriter;
use super::filter::{BloomKeys, FILTER_NAME, FilterWriter};
use super::footer::{BLOCK_TRAILER_BYTES, Footer, Handle};
use super::{split_key, stored};

/// How the blocks of a table are cut and stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// A block ends once it is so long.
    pub block_bytes: usize,
    /// Every so many keys one stands whole; at least 1.
    pub restart_interval: usize,
    /// Whether blocks are compressed, where that saves an eighth.
    pub snappy: bool,
}

impl Default for Layout {
    /// LevelDB's defaults.
    fn default() -> Layout {
        Layout { block_bytes: 4 << 10, restart_interval: 16, snappy: true }
    }
}

/// What a table's keys are to whoever writes it: their order and their filters.
pub trait Keys {
    /// May make `last`, the last key of a block, a shorter one that is not before it
    /// and before `next`, the first key of the next block.
    fn separate(&mut self, last: &mut Vec<u8>, next: &[u8]) {
        let _ = (last, next);
    }

    /// May make `last`, the last key of the table, a shorter one not before it.
    fn shorten(&mut self, last: &mut Vec<u8>) {
        let _ = last;
    }

    /// The name of the table's filters in its meta index; `None` for no filters.
    fn filter_name(&self) -> Option<&[u8]>;

    /// `key` is to be in the next filter.
    fn add_to_filter(&mut self, key: &[u8]);

    /// Appends to `out` the filter of the keys added since the last one.
    fn make_filter(&mut self, out: &mut Vec<u8>);
}

/// A table that is being written: its bytes can be taken away as they are made.
#[derive(Debug)]
pub struct TableImage<K> {
    keys: K,
    layout: Layout,
    bytes: Vec<u8>,
    /// So many bytes before these were taken.
    taken: u64,
    block: BlockWriter,
    index: BlockWriter,
    filters: Option<FilterWriter>,
    last: Vec<u8>,
    /// The block that ended last, which the index gets once the next key is known:
    /// it may allow a shorter separator.
    ended: Option<Handle>,
}

impl<K: Keys> TableImage<K> {
    /// A table without entries.
    pub fn new(keys: K, layout: Layout) -> TableImage<K> {
        let filters = keys.filter_name().map(|_| FilterWriter::default());
        TableImage {
            keys,
            layout,
            bytes: Vec::new(),
            taken: 0,
            block: BlockWriter::new(layout.restart_interval),
            index: BlockWriter::new(1),
            filters,
            last: Vec::new(),
            ended: None,
        }
    }

    /// What is written from now on is laid out so.
    pub fn set_layout(&mut self, layout: Layout) {
        self.layout = layout;
        self.block.set_interval(layout.restart_interval);
    }

    /// About how long it is by now.
    pub(crate) fn bytes_by_now(&self) -> u64 {
        self.offset() + if self.block.is_empty() { 0 } else { self.block.len() as u64 }
    }

    /// Where the next block begins.
    fn offset(&self) -> u64 {
        self.taken + self.bytes.len() as u64
    }

    /// The bytes that were made since this was asked last, to be written behind those.
    pub fn take(&mut self) -> Vec<u8> {
        self.taken = self.offset();
        std::mem::take(&mut self.bytes)
    }

    /// Adds a key that comes after all before it.
    pub fn add(&mut self, key: &[u8], value: &[u8]) {
        if let Some(handle) = self.ended.take() {
            self.keys.separate(&mut self.last, key);
            self.add_to_index(handle);
        }
        if let Some(filters) = &mut self.filters {
            self.keys.add_to_filter(key);
            filters.add();
        }
        self.last.clear();
        self.last.extend_from_slice(key);
        self.block.add(key, value);
        if self.block.len() >= self.layout.block_bytes {
            self.end_block();
        }
    }

    /// The next key begins a block of its own.
    pub fn end_block(&mut self) {
        if self.block.is_empty() {
            return;
        }
        let raw = self.block.finish();
        self.ended = Some(self.put(&raw, self.layout.snappy));
        let offset = self.offset();
        if let Some(filters) = &mut self.filters {
            filters.begin_block(offset, |out| self.keys.make_filter(out));
        }
    }

    fn add_to_index(&mut self, handle: Handle) {
        let mut value = Vec::new();
        handle.put(&mut value);
        self.index.add(&self.last, &value);
    }

    fn put(&mut self, raw: &[u8], snappy: bool) -> Handle {
        let offset = self.offset();
        let bytes = stored::put(&mut self.bytes, raw, snappy);
        debug_assert_eq!(self.offset(), offset + bytes + BLOCK_TRAILER_BYTES);
        Handle { offset, bytes }
    }

    /// Makes the end of the table, behind which nothing can be added.
    pub fn finish(&mut self) {
        self.end_block();
        let mut meta_index = BlockWriter::new(self.layout.restart_interval);
        if let Some(filters) = self.filters.take() {
            let raw = filters.finish(|out| self.keys.make_filter(out));
            let handle = self.put(&raw, false);
            let mut value = Vec::new();
            handle.put(&mut value);
            meta_index.add(self.keys.filter_name().unwrap_or_default(), &value);
        }
        let meta_index = self.put(&meta_index.finish(), self.layout.snappy);
        if let Some(handle) = self.ended.take() {
            self.keys.shorten(&mut self.last);
            self.add_to_index(handle);
        }
        let raw = self.index.finish();
        let index = self.put(&raw, self.layout.snappy);
        let footer = Footer { meta_index, index }.encode();
        self.bytes.extend_from_slice(&footer);
    }
}

/// The keys of a database's tables: the user's, and a trailer. Separators stay whole,
/// which is right in any order of keys. The filters are Bloom filters.
#[derive(Debug)]
pub(crate) struct StoredKeys(Option<BloomKeys>);

impl StoredKeys {
    /// No filters if they have no bits.
    pub(crate) fn new(filter_bits_per_key: u8) -> StoredKeys {
        let bits = usize::from(filter_bits_per_key);
        StoredKeys((bits > 0).then(|| BloomKeys::new(bits)))
    }
}

impl Keys for StoredKeys {
    fn filter_name(&self) -> Option<&[u8]> {
        self.0.as_ref().map(|_| FILTER_NAME)
    }

    fn add_to_filter(&mut self, key: &[u8]) {
        if let (Some(bloom), Ok((user_key, _))) = (&mut self.0, split_key(key)) {
            bloom.add(user_key);
        }
    }

    fn make_filter(&mut self, out: &mut Vec<u8>) {
        if let Some(bloom) = &mut self.0 {
            bloom.make(out);
        }
    }
}
