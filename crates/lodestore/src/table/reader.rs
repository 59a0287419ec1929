//! An open table: immutable, shared by all readers.
//!
//! A point lookup is a conversation without I/O: `may_contain` asks the
//! filter, `first_block` the index, `block_place` tells what to read,
//! `decode_block` checks what was read, and `search` gives the versions and
//! tells whether another block is needed. `read_block` does cache and I/O for
//! callers that simply wait.

use std::cell::Cell;
use std::fmt;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use crate::cache::Cache;
use crate::error::{Error, Result};
use crate::fs::{ReadRequest, ReadResult, ReadableFile};
use crate::key::{FileId, KeyOrder, SequenceNumber, TRAILER_NEWEST, Trailer};
use crate::range_deletes::Fragments;
use crate::stats::{Counter, Statistics};
use crate::sync::Arc;

use super::block::Block;
use super::codec::{self, TRAILER_BYTES};
use super::cursor::TableCursor;
use super::filter::Filter;
use super::format::{self, Footer, HEADER_BYTES, Section, tag};
use super::index::Index;
use super::layout::SLACK_BYTES;
use super::meta::TableMeta;
use super::properties::Properties;
use super::range_section;
use super::{Checked, LookupKey};

/// The number of a block in its table, from 0.
pub(crate) type BlockIndex = u32;

/// Where a stored block is in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BlockPlace {
    pub(crate) offset: u64,
    pub(crate) stored_bytes: usize,
}

/// What a lookup does after a block was searched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AfterBlock {
    /// The table has no more versions that matter.
    Finished,
    /// The versions of the key go on in this block.
    Continue(BlockIndex),
}

/// How blocks are read, for lookups and cursors.
#[derive(Clone)]
pub(crate) struct ReadContext {
    pub(crate) cache: Arc<Cache>,
    /// Whether blocks that had to be read are kept in the cache.
    pub(crate) fill_cache: bool,
    pub(crate) statistics: Arc<Statistics>,
}

/// A table that is open for reading.
pub(crate) struct Table {
    pub(super) file: Arc<dyn ReadableFile>,
    pub(super) path: PathBuf,
    pub(super) id: FileId,
    pub(super) order: KeyOrder,
    /// The file's name in the cache.
    cache_file: u64,
    pub(super) sequence_override: Option<SequenceNumber>,
    pub(super) footer: Footer,
    pub(super) properties: Properties,
    pub(super) index: Index,
    pub(super) filter: Option<Filter>,
    range_deletes: Fragments,
}

impl fmt::Debug for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Table").field("path", &self.path).field("id", &self.id).finish()
    }
}

impl Table {
    /// Opens the table that `meta` describes; a file that is not exactly that
    /// one is refused. Index and filter are loaded. A damaged filter is left
    /// out: lookups are slower then, and `verify` reports it.
    pub(crate) fn open(
        file: Arc<dyn ReadableFile>,
        path: PathBuf,
        meta: &TableMeta,
        order: KeyOrder,
        cache_file: u64,
    ) -> Result<Table> {
        let length = file.length().map_err(|error| Error::io(&path, "read length of", error))?;
        if length != meta.bytes {
            let what = format!("{length} bytes long, but the manifest expects {}", meta.bytes);
            return Err(Error::corruption(&path, length.min(meta.bytes), what));
        }
        let footer = Footer::read(&*file, length, &path)?;
        check_header(&*file, meta.id, &path)?;
        if footer.id != meta.id || footer.witness != meta.checksum {
            let what = "another table: id or checksum differ from the manifest's";
            return Err(Error::corruption(&path, footer.offset, what));
        }
        let section = |tag: u32| {
            footer.section(tag).ok_or_else(|| {
                Error::corruption(&path, footer.offset, format!("section {tag} is missing"))
            })
        };
        let properties = load_properties(&*file, section(tag::PROPERTIES)?, meta.id, &path)?;
        if properties.order_name != order.name() {
            let (stored, given) = (&properties.order_name, order.name());
            let what = format!("{} is in the order {stored}, not {given}", path.display());
            return Err(Error::invalid(what));
        }
        let place = section(tag::INDEX)?;
        let index = load_index(&*file, place, meta.id, &path, &order)?;
        check_index(&index, &footer, &properties, meta)
            .map_err(|what| Error::corruption(&path, place.offset, what))?;
        let filter = load_filter(&*file, &footer, meta.id, &path, &order)?;
        let range_deletes = load_range_deletes(&*file, &footer, meta, &path, &order)?;
        let sequence_override = meta.sequence_override;
        let id = meta.id;
        Ok(Table {
            file,
            path,
            id,
            order,
            cache_file,
            sequence_override,
            footer,
            properties,
            index,
            filter,
            range_deletes,
        })
    }

    /// An error if this build may read the table but must not rewrite it.
    pub(crate) fn check_rewritable(&self) -> Result<()> {
        self.footer.check_rewritable(&self.path)
    }

    /// The range deletes. They hide older entries, of this table too.
    #[inline]
    pub(crate) fn range_deletes(&self) -> &Fragments {
        &self.range_deletes
    }

    /// Memory that index, filter and range deletes take.
    pub(crate) fn memory_bytes(&self) -> usize {
        let filter = self.filter.as_ref().map_or(0, Filter::memory_bytes);
        self.index.memory_bytes() + filter + self.range_deletes.memory_bytes()
    }

    /// True if the table has a filter to ask.
    #[cfg(test)]
    pub(crate) fn has_filter(&self) -> bool {
        self.filter.is_some()
    }

    /// False only if the table certainly lacks the key.
    #[inline]
    pub(crate) fn may_contain(&self, key: &LookupKey<'_>) -> bool {
        self.filter.as_ref().is_none_or(|filter| filter.may_contain(key.hash))
    }

    /// The first block that can hold a version of the key that may be seen.
    #[inline]
    pub(crate) fn first_block(&self, key: &LookupKey<'_>) -> Option<BlockIndex> {
        self.find_block(key.user_key, key.trailer_max)
    }

    #[inline]
    pub(super) fn find_block(&self, user_key: &[u8], trailer: Trailer) -> Option<BlockIndex> {
        self.index.find(user_key, trailer, &self.order).map(|block| block as BlockIndex)
    }

    /// Number of blocks.
    #[inline]
    pub(crate) fn blocks(&self) -> BlockIndex {
        self.index.blocks() as BlockIndex
    }

    /// What to read to have a block.
    #[inline]
    pub(crate) fn block_place(&self, block: BlockIndex) -> BlockPlace {
        let offset = self.index.block_offset(block as usize);
        let end = self.index.block_offset(block as usize + 1);
        BlockPlace { offset, stored_bytes: (end - offset) as usize }
    }

    /// Checks, decompresses and validates what was read from `block_place`.
    pub(crate) fn decode_block(&self, block: BlockIndex, stored: &[u8]) -> Result<Block> {
        let offset = self.index.block_offset(block as usize);
        self.validate(block, codec::open(stored, self.id, offset))
    }

    fn validate(&self, index: BlockIndex, bytes: Checked<Arc<[u8]>, String>) -> Result<Block> {
        let block = bytes.and_then(|bytes| {
            Block::new(index, bytes, &self.order, self.sequence_override).map_err(str::to_string)
        });
        block.map_err(|what| {
            Error::corruption(&self.path, self.index.block_offset(index as usize), what)
        })
    }

    /// Calls `visit` for the versions of the key in `block`, newest first from
    /// `key.trailer_max()`, until it breaks.
    #[inline]
    pub(crate) fn search<'b>(
        &self,
        block: &'b Block,
        key: &LookupKey<'_>,
        visit: impl FnMut(Trailer, &'b [u8]) -> ControlFlow<()>,
    ) -> AfterBlock {
        let reached_end = block.search(key, &self.order, visit);
        let index = block.index();
        if reached_end && index + 1 < self.blocks() && self.index.straddles(index as usize) {
            return AfterBlock::Continue(index + 1);
        }
        AfterBlock::Finished
    }

    /// The block from the cache, or else from the file.
    #[inline]
    pub(crate) fn read_block(&self, block: BlockIndex, context: &ReadContext) -> Result<Block> {
        match self.cached_block(block, context) {
            Some(block) => Ok(block),
            None => self.load_block(block, context),
        }
    }

    #[inline]
    pub(crate) fn cached_block(&self, block: BlockIndex, context: &ReadContext) -> Option<Block> {
        let offset = self.index.block_offset(block as usize);
        let bytes = context.cache.get(self.cache_file, offset)?;
        context.statistics.add(Counter::CacheHits, 1);
        Some(Block::from_cache(block, bytes))
    }

    /// Counts a block that was not in the cache, and keeps it there if wanted.
    pub(super) fn keep_block(&self, block: &Block, context: &ReadContext) {
        context.statistics.add(Counter::CacheMisses, 1);
        if context.fill_cache {
            let offset = self.index.block_offset(block.index() as usize);
            context.cache.insert(self.cache_file, offset, Arc::clone(block.bytes()));
        }
    }

    /// What has to be read to have `block`.
    pub(crate) fn request(&self, block: BlockIndex) -> ReadRequest {
        let place = self.block_place(block);
        let buffer = vec![0; place.stored_bytes];
        ReadRequest { file: Arc::clone(&self.file), offset: place.offset, buffer }
    }

    /// Turns what [`Table::request`] led to into the block.
    pub(crate) fn accept(
        &self,
        index: BlockIndex,
        read: ReadResult,
        context: &ReadContext,
    ) -> Result<Block> {
        let stored = read.map_err(|error| Error::io(&self.path, "read", error))?;
        let block = self.decode_block(index, &stored)?;
        context.statistics.add(Counter::BlockBytesRead, stored.len() as u64);
        self.keep_block(&block, context);
        Ok(block)
    }

    fn load_block(&self, index: BlockIndex, context: &ReadContext) -> Result<Block> {
        let place = self.block_place(index);
        let block = if self.properties.codec == codec::TYPE_NONE {
            self.load_in_place(index, place)
        } else {
            self.load_through_scratch(index, place)
        }?;
        context.statistics.add(Counter::BlockBytesRead, place.stored_bytes as u64);
        self.keep_block(&block, context);
        Ok(block)
    }

    /// Reads into the buffer that becomes the block, if it is stored raw.
    fn load_in_place(&self, index: BlockIndex, place: BlockPlace) -> Result<Block> {
        let mut buffer = codec::zeroed(place.stored_bytes + SLACK_BYTES - TRAILER_BYTES);
        let bytes = Arc::get_mut(&mut buffer).expect("a new Arc has one owner");
        let stored = &mut bytes[..place.stored_bytes];
        format::read_at(&*self.file, place.offset, stored, &self.path)?;
        self.validate(index, codec::open_in_place(buffer, self.id, place.offset))
    }

    /// Reads into a buffer that the thread keeps, and decompresses from there.
    /// The buffer is taken out meanwhile: reading may let others run.
    fn load_through_scratch(&self, index: BlockIndex, place: BlockPlace) -> Result<Block> {
        let mut scratch = SCRATCH.take();
        if scratch.len() < place.stored_bytes {
            scratch.resize(place.stored_bytes, 0);
        }
        let stored = &mut scratch[..place.stored_bytes];
        format::read_at(&*self.file, place.offset, stored, &self.path)?;
        let block = self.decode_block(index, stored);
        if scratch.len() <= SCRATCH_BYTES_MAX {
            SCRATCH.set(scratch);
        }
        block
    }

    /// A cursor over the table's entries.
    pub(crate) fn cursor(self: &Arc<Table>, context: ReadContext) -> TableCursor {
        TableCursor::new(Arc::clone(self), context)
    }

    /// About where in the file the entries at and after `user_key` start.
    pub(crate) fn approximate_offset(&self, user_key: &[u8]) -> u64 {
        let block = self.index.find(user_key, TRAILER_NEWEST, &self.order);
        self.index.block_offset(block.unwrap_or(self.index.blocks()))
    }
}

/// A larger scratch buffer is given back after use.
const SCRATCH_BYTES_MAX: usize = 256 << 10;

thread_local! {
    // Compressed blocks are read here, to be decompressed from here.
    static SCRATCH: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

pub(super) fn check_header(file: &dyn ReadableFile, id: FileId, path: &Path) -> Result<()> {
    let mut header = [0; HEADER_BYTES];
    format::read_at(file, 0, &mut header, path)?;
    format::check_header(&header, id, path)
}

fn load_properties(
    file: &dyn ReadableFile,
    section: &Section,
    id: FileId,
    path: &Path,
) -> Result<Properties> {
    let bytes = format::read_section(file, section, id, path)?;
    Properties::decode(&bytes, section.offset, path)
}

fn load_index(
    file: &dyn ReadableFile,
    section: &Section,
    id: FileId,
    path: &Path,
    order: &KeyOrder,
) -> Result<Index> {
    let bytes = format::read_section(file, section, id, path)?;
    Index::decode(&bytes, order).map_err(|what| Error::corruption(path, section.offset, what))
}

/// The range deletes, as many as the manifest says.
fn load_range_deletes(
    file: &dyn ReadableFile,
    footer: &Footer,
    meta: &TableMeta,
    path: &Path,
    order: &KeyOrder,
) -> Result<Fragments> {
    let (deletes, offset) = match footer.section(tag::RANGE_DELETES) {
        None => (Fragments::default(), footer.offset),
        Some(section) => {
            let bytes = format::read_section(file, section, meta.id, path)?;
            let deletes = range_section::decode(&bytes, order);
            (deletes.map_err(|what| Error::corruption(path, section.offset, what))?, section.offset)
        }
    };
    if deletes.count() != meta.range_tombstones {
        let (found, stated) = (deletes.count(), meta.range_tombstones);
        let what = format!("{found} range deletes, but the manifest expects {stated}");
        return Err(Error::corruption(path, offset, what));
    }
    if !deletes.is_empty() && meta.sequence_override.is_some() {
        let what = "a table with one sequence number has range deletes";
        return Err(Error::corruption(path, offset, what));
    }
    Ok(deletes)
}

/// The filter, if there is a sound one that may be asked.
fn load_filter(
    file: &dyn ReadableFile,
    footer: &Footer,
    id: FileId,
    path: &Path,
    order: &KeyOrder,
) -> Result<Option<Filter>> {
    let Some(section) = footer.section(tag::FILTER).filter(|_| order.equal_means_identical())
    else {
        return Ok(None);
    };
    match format::read_section(file, section, id, path) {
        Ok(bytes) => Ok(Filter::decode(&bytes)),
        Err(error) if error.is_corruption() => Ok(None),
        Err(error) => Err(error),
    }
}

fn check_index(
    index: &Index,
    footer: &Footer,
    properties: &Properties,
    meta: &TableMeta,
) -> Checked<()> {
    let blocks = index.blocks();
    if index.block_offset(0) != HEADER_BYTES as u64 {
        return Err("the first block does not follow the header");
    }
    if footer.sections.iter().any(|section| index.block_offset(blocks) > section.offset) {
        return Err("the last block overlaps a section");
    }
    if blocks as u64 != properties.blocks || blocks > BlockIndex::MAX as usize - 1 {
        return Err("the index has another number of blocks than the table");
    }
    if meta.sequence_override.is_some() && index.has_straddlers() {
        return Err("a table with one sequence number has a key twice");
    }
    Ok(())
}
