//! An open table: immutable, shared by all readers.
//!
//! A [`BlockRef`] says which stored block is wanted: of entries, or a part of
//! a partitioned index or filter. `cached_block` looks for it in the cache,
//! `request` and `accept` are for those who read many at once, `read_block`
//! does cache and I/O for those who simply wait.

use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::{fmt, io};

use crate::budget::Charge;
use crate::cache::{BlockKind, Cache};
use crate::cursor::StoredBlock;
use crate::error::{Error, Result, Undecodable};
use crate::fs::{ReadRequest, ReadableFile};
use crate::key::{FileId, KeyOrder, SequenceNumber, TRAILER_NEWEST};
use crate::prefix::PrefixExtractor;
use crate::range_deletes::Fragments;
use crate::rows::RowCache;
use crate::stats::{Counter, Statistics};
use crate::sync::Arc;

use super::Checked;
use super::block::Block;
use super::codec::{self, TRAILER_BYTES};
use super::cursor::TableCursor;
use super::describe;
use super::dictionary::Dictionary;
use super::directory::{Directory, Source};
use super::filter;
use super::foreign;
use super::format::{self, Footer, HEADER_BYTES, tag};
use super::index::Index;
use super::layout::SLACK_BYTES;
use super::locator::Locator;
use super::meta::{TableFormat, TableMeta};
use super::properties::Properties;
use super::range_section;

/// The number of a block in its table, from 0.
pub(crate) type BlockIndex = u32;

/// Where a stored block is in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BlockPlace {
    pub(crate) offset: u64,
    pub(crate) stored_bytes: usize,
}

/// A stored block of a table: what it is, its number among its kind, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BlockRef {
    pub(crate) kind: BlockKind,
    pub(crate) index: BlockIndex,
    pub(crate) place: BlockPlace,
}

impl BlockRef {
    #[inline]
    pub(super) fn new(kind: BlockKind, index: BlockIndex, offset: u64, end: u64) -> BlockRef {
        let place = BlockPlace { offset, stored_bytes: (end - offset) as usize };
        BlockRef { kind, index, place }
    }

    /// A block of entries that a resident index knows.
    #[inline]
    pub(super) fn resident(index: &Index, block: usize) -> BlockRef {
        let (offset, end) = (index.block_offset(block), index.block_offset(block + 1));
        BlockRef::new(BlockKind::Data, block as BlockIndex, offset, end)
    }
}

/// How blocks are read, for lookups and cursors.
#[derive(Clone)]
pub(crate) struct ReadContext {
    pub(crate) cache: Arc<Cache>,
    /// Whether blocks that had to be read are kept in the cache.
    pub(crate) fill_cache: bool,
    /// Rows of tables, where they may be cached.
    pub(crate) rows: Option<Arc<RowCache>>,
    pub(crate) statistics: Arc<Statistics>,
    /// What buffers for reading ahead are charged to.
    pub(crate) buffers: Charge,
    /// Files are read past the page cache: each read waits for a device.
    pub(crate) waits_for_device: bool,
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
    pub(super) origin: Origin,
    /// Of a foreign table: what its manifest says and its index amounts to.
    pub(super) properties: Properties,
    pub(super) directory: Directory,
    range_deletes: Fragments,
    /// Whose prefixes the filter knows.
    pub(super) prefix_extractor: PrefixExtractor,
}

/// What an open table has that depends on who wrote it.
pub(super) enum Origin {
    Native { footer: Footer, dictionary: Option<Dictionary> },
    LevelDb,
}

impl fmt::Debug for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Table").field("path", &self.path).field("id", &self.id).finish()
    }
}

impl Table {
    /// Opens the table that `meta` describes; a file that is not exactly that
    /// one is refused. Index and filter are loaded, or what stays resident of
    /// them. A damaged filter is left out: lookups are slower then, and
    /// `verify` reports it.
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
        match meta.format {
            TableFormat::Native => Table::open_native(file, path, meta, order, cache_file),
            TableFormat::LevelDb => Table::open_leveldb(file, path, meta, order, cache_file),
        }
    }

    fn open_native(
        file: Arc<dyn ReadableFile>,
        path: PathBuf,
        meta: &TableMeta,
        order: KeyOrder,
        cache_file: u64,
    ) -> Result<Table> {
        let length = meta.bytes;
        let footer = Footer::read(&*file, length, &path)?;
        check_header(&*file, meta.id, &path)?;
        if footer.id != meta.id || footer.witness != meta.checksum {
            let what = "another table: id or checksum differ from the manifest's";
            return Err(Error::corruption(&path, footer.offset, what));
        }
        let source = Source { file: &*file, path: &path, id: meta.id, footer: &footer };
        let section = source.section(tag::PROPERTIES)?;
        let properties = Properties::decode(&source.read(section)?, section.offset, &path)?;
        if properties.order_name != order.name() {
            let (stored, given) = (&properties.order_name, order.name());
            let what = format!("{} is in the order {stored}, not {given}", path.display());
            return Err(Error::invalid(what));
        }
        if !is_described_by(meta, describe::meta(&footer, length, &properties)) {
            let what =
                "the manifest has other bounds or counts of this table than it states itself";
            return Err(Error::corruption(&path, section.offset, what));
        }
        let directory = Directory::load(&source, &properties, meta, &order)?;
        let range_deletes = load_range_deletes(&source, meta, &order)?;
        let dictionary = load_dictionary(&source)?;
        // Of a name that is not known the prefixes are not asked for.
        let extractor = properties.prefix_extractor.as_ref().and_then(|name| name.parse().ok());
        let prefix_extractor = extractor.filter(|_| order.is_bytewise()).unwrap_or_default();
        let sequence_override = meta.sequence_override;
        let id = meta.id;
        Ok(Table {
            file,
            path,
            id,
            order,
            cache_file,
            sequence_override,
            origin: Origin::Native { footer, dictionary },
            properties,
            directory,
            range_deletes,
            prefix_extractor,
        })
    }

    /// A LevelDB table says nothing of itself that could be compared with what
    /// the manifest says, but for its length.
    fn open_leveldb(
        file: Arc<dyn ReadableFile>,
        path: PathBuf,
        meta: &TableMeta,
        order: KeyOrder,
        cache_file: u64,
    ) -> Result<Table> {
        let directory = foreign::load(&*file, &path, &order, &meta.largest.user_key)?;
        Ok(Table {
            file,
            path,
            id: meta.id,
            cache_file,
            sequence_override: meta.sequence_override,
            origin: Origin::LevelDb,
            properties: foreign::properties(meta, &order, directory.blocks()),
            directory,
            range_deletes: Fragments::default(),
            prefix_extractor: PrefixExtractor::None,
            order,
        })
    }

    /// An error if this build may read the table but must not rewrite it.
    pub(crate) fn check_rewritable(&self) -> Result<()> {
        match &self.origin {
            Origin::Native { footer, .. } => footer.features.check_writable(&self.path),
            Origin::LevelDb => Ok(()),
        }
    }

    /// The range deletes. They hide older entries, of this table too.
    #[inline]
    pub(crate) fn range_deletes(&self) -> &Fragments {
        &self.range_deletes
    }

    /// Memory that index and filter take, as far as they are resident, and the
    /// range deletes and the dictionary.
    pub(crate) fn memory_bytes(&self) -> usize {
        let own = match &self.origin {
            Origin::Native { dictionary, .. } => {
                dictionary.as_ref().map_or(0, Dictionary::memory_bytes)
            }
            Origin::LevelDb => 0,
        };
        self.directory.memory_bytes() + self.range_deletes.memory_bytes() + own
    }

    /// How its blocks are stored, in words.
    pub(crate) fn codec_text(&self) -> String {
        let has_dictionary = matches!(&self.origin, Origin::Native { dictionary: Some(_), .. });
        format!("{}{}", self.codec_name(), if has_dictionary { "+dictionary" } else { "" })
    }

    /// What its blocks are compressed with; a foreign table's may differ.
    pub(super) fn codec_name(&self) -> &'static str {
        match &self.origin {
            Origin::Native { .. } => codec::name(self.properties.codec),
            Origin::LevelDb => "leveldb",
        }
    }

    /// True if [`Table::begin`] asks the filter: one is there, and in memory.
    #[inline]
    pub(crate) fn has_resident_filter(&self) -> bool {
        matches!(&self.directory, Directory::Resident { filter: Some(_), .. })
    }

    /// Number of blocks of entries.
    #[inline]
    pub(crate) fn blocks(&self) -> BlockIndex {
        self.directory.blocks()
    }

    /// Checks, decompresses and validates what was read for `wanted`. A
    /// damaged part of a filter is given as one that denies nothing.
    pub(super) fn decode_block(&self, wanted: BlockRef, stored: &[u8]) -> Result<Block> {
        self.validate(wanted, self.opened_block(wanted, stored))
    }

    /// A stored block behind the codec, not validated.
    pub(super) fn opened_block(
        &self,
        wanted: BlockRef,
        stored: &[u8],
    ) -> Checked<Arc<[u8]>, Undecodable> {
        match &self.origin {
            Origin::Native { dictionary, .. } => {
                codec::open(stored, self.id, wanted.place.offset, dictionary.as_ref())
            }
            Origin::LevelDb => Ok(foreign::open_block(stored, &self.order)?),
        }
    }

    fn validate(&self, wanted: BlockRef, bytes: Checked<Arc<[u8]>, Undecodable>) -> Result<Block> {
        match bytes.and_then(|bytes| self.validated(wanted, bytes)) {
            Err(_) if wanted.kind == BlockKind::Filter => {
                Ok(Block::from_cache(wanted.index, Arc::from([])))
            }
            Err(undecodable) => Err(undecodable.at(&self.path, wanted.place.offset)),
            Ok(block) => Ok(block),
        }
    }

    /// [`Table::decode_block`] behind the codec, strict with filters too.
    pub(super) fn validated(
        &self,
        wanted: BlockRef,
        bytes: Arc<[u8]>,
    ) -> Checked<Block, Undecodable> {
        let BlockRef { kind, index, .. } = wanted;
        match (kind, &self.directory) {
            (BlockKind::Data, _) => Block::new(index, bytes, &self.order, self.sequence_override),
            (BlockKind::Filter, _) => {
                filter::check(&bytes[..bytes.len() - SLACK_BYTES])?;
                Ok(Block::from_cache(index, bytes))
            }
            (BlockKind::Index, Directory::Partitioned(partitions)) => {
                let block = Block::new(index, bytes, &self.order, None)?;
                let may_straddle = self.sequence_override.is_none();
                partitions.check(index, &block, may_straddle)?;
                Ok(block)
            }
            (BlockKind::Index, Directory::Resident { .. } | Directory::Foreign { .. }) => {
                unreachable!("a resident index has no partitions")
            }
        }
    }

    /// What is stored at `place`, found sound before, for another table to take
    /// over, if that table's readers would see what readers of this one see.
    pub(super) fn portable<'s>(
        &self,
        stored: &'s [u8],
        place: BlockPlace,
    ) -> Option<StoredBlock<'s>> {
        match &self.origin {
            Origin::Native { .. } if self.sequence_override.is_none() => {
                codec::portable(stored, self.properties.codec, self.id, place.offset)
            }
            _ => None,
        }
    }

    /// The number under which this table is known to caches.
    pub(crate) fn cache_file(&self) -> u64 {
        self.cache_file
    }

    /// The block from the cache, or else from the file.
    #[inline]
    pub(crate) fn read_block(&self, wanted: BlockRef, context: &ReadContext) -> Result<Block> {
        match self.cached_block(wanted, context) {
            Some(block) => Ok(block),
            None => self.load_block(wanted, context),
        }
    }

    #[inline]
    pub(crate) fn cached_block(&self, wanted: BlockRef, context: &ReadContext) -> Option<Block> {
        let bytes = context.cache.get(self.cache_file, wanted.place.offset)?;
        context.statistics.add(hits_of(wanted.kind), 1);
        Some(Block::from_cache(wanted.index, bytes))
    }

    /// Counts a block that was not in the cache, and keeps it there if wanted.
    pub(super) fn keep_block(&self, wanted: BlockRef, block: &Block, context: &ReadContext) {
        context.statistics.add(misses_of(wanted.kind), 1);
        if context.fill_cache {
            let bytes = Arc::clone(block.bytes());
            context.cache.insert(self.cache_file, wanted.place.offset, wanted.kind, bytes);
        }
    }

    /// What has to be read to have a block.
    pub(crate) fn request(&self, wanted: BlockRef) -> ReadRequest {
        let BlockPlace { offset, stored_bytes } = wanted.place;
        ReadRequest { file: Arc::clone(&self.file), offset, length: stored_bytes }
    }

    /// Turns what [`Table::request`] led to into the block.
    pub(crate) fn accept(
        &self,
        wanted: BlockRef,
        read: io::Result<&[u8]>,
        context: &ReadContext,
    ) -> Result<Block> {
        let stored = read.map_err(|error| Error::io(&self.path, "read", error))?;
        let block = self.decode_block(wanted, stored)?;
        context.statistics.add(Counter::BlockReads, 1);
        context.statistics.add(Counter::BlockBytesRead, stored.len() as u64);
        self.keep_block(wanted, &block, context);
        Ok(block)
    }

    /// The block from the file.
    pub(crate) fn load_block(&self, wanted: BlockRef, context: &ReadContext) -> Result<Block> {
        let is_raw = self.properties.codec == codec::TYPE_NONE || wanted.kind == BlockKind::Filter;
        let block = match &self.origin {
            Origin::Native { dictionary, .. } if is_raw => {
                self.load_in_place(wanted, dictionary.as_ref())
            }
            _ => self.load_through_scratch(wanted),
        }?;
        context.statistics.add(Counter::BlockReads, 1);
        context.statistics.add(Counter::BlockBytesRead, wanted.place.stored_bytes as u64);
        self.keep_block(wanted, &block, context);
        Ok(block)
    }

    /// Reads into the buffer that becomes the block, if it is stored raw.
    fn load_in_place(&self, wanted: BlockRef, dictionary: Option<&Dictionary>) -> Result<Block> {
        let BlockPlace { offset, stored_bytes } = wanted.place;
        let mut buffer = codec::zeroed(stored_bytes + SLACK_BYTES - TRAILER_BYTES);
        let bytes = Arc::get_mut(&mut buffer).expect("a new Arc has one owner");
        format::read_at(&*self.file, offset, &mut bytes[..stored_bytes], &self.path)?;
        self.validate(wanted, codec::open_in_place(buffer, self.id, offset, dictionary))
    }

    /// Reads into a buffer that the thread keeps, and decompresses from there.
    /// The buffer is taken out meanwhile: reading may let others run.
    fn load_through_scratch(&self, wanted: BlockRef) -> Result<Block> {
        let BlockPlace { offset, stored_bytes } = wanted.place;
        let mut scratch = SCRATCH.take();
        if scratch.len() < stored_bytes {
            scratch.resize(stored_bytes, 0);
        }
        let stored = &mut scratch[..stored_bytes];
        format::read_at(&*self.file, offset, stored, &self.path)?;
        let block = self.decode_block(wanted, stored);
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
    pub(crate) fn approximate_offset(&self, user_key: &[u8], context: &ReadContext) -> Result<u64> {
        let mut locator = Locator::default();
        match locator.find(self, user_key, TRAILER_NEWEST, context)? {
            None => Ok(self.directory.data_end()),
            Some(block) => Ok(locator.locate(self, block, context)?.place.offset),
        }
    }
}

/// True if `meta` is what a manifest has to say of a table that says `own` of
/// itself. Lookups go by the manifest: with other bounds they would miss keys.
fn is_described_by(meta: &TableMeta, own: TableMeta) -> bool {
    let own = match meta.sequence_override {
        Some(sequence) => own.with_sequence(sequence),
        None => own,
    };
    let bounds = |of: &TableMeta| (of.smallest.clone(), of.largest.clone());
    let counts = |of: &TableMeta| (of.sequence_min, of.sequence_max, of.range_tombstones);
    bounds(meta) == bounds(&own) && counts(meta) == counts(&own)
}

fn hits_of(kind: BlockKind) -> Counter {
    match kind {
        BlockKind::Data => Counter::CacheHits,
        BlockKind::Index => Counter::CacheIndexHits,
        BlockKind::Filter => Counter::CacheFilterHits,
    }
}

fn misses_of(kind: BlockKind) -> Counter {
    match kind {
        BlockKind::Data => Counter::CacheMisses,
        BlockKind::Index => Counter::CacheIndexMisses,
        BlockKind::Filter => Counter::CacheFilterMisses,
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

fn load_dictionary(source: &Source<'_>) -> Result<Option<Dictionary>> {
    let Some(section) = source.footer.section(tag::DICTIONARY) else { return Ok(None) };
    let dictionary = Dictionary::decode(&source.read(section)?);
    dictionary.map(Some).map_err(|what| Error::corruption(source.path, section.offset, what))
}

/// The range deletes, as many as the manifest says, with the number that they
/// count as having.
fn load_range_deletes(
    source: &Source<'_>,
    meta: &TableMeta,
    order: &KeyOrder,
) -> Result<Fragments> {
    let (deletes, offset) = match source.footer.section(tag::RANGE_DELETES) {
        None => (Fragments::default(), source.footer.offset),
        Some(section) => {
            let corrupt = |what| Error::corruption(source.path, section.offset, what);
            let deletes = range_section::decode(&source.read(section)?, order);
            (deletes.map_err(corrupt)?, section.offset)
        }
    };
    if deletes.count() != meta.range_tombstones {
        let (found, stated) = (deletes.count(), meta.range_tombstones);
        let what = format!("{found} range deletes, but the manifest expects {stated}");
        return Err(Error::corruption(source.path, offset, what));
    }
    let Some(sequence) = meta.sequence_override else { return Ok(deletes) };
    deletes.with_sequence(sequence).ok_or_else(|| {
        let what = "a table with one sequence number has two range deletes of one key";
        Error::corruption(source.path, offset, what)
    })
}
