//! Tables of LevelDB: their index becomes one of ours when they are opened,
//! their blocks are put into our layout when they are read. Whoever searches,
//! walks or caches sees no difference.
//!
//! LevelDB's separators are stored keys. One that was made up is above all keys
//! before it and has the newest trailer; one that is the last key of its block
//! has that key's trailer, and versions of it may go on in the next block, so
//! it is taken for a straddler: at worst one block more is looked at.

use std::cell::RefCell;
use std::path::Path;

use crate::error::{Error, Result, Undecodable};
use crate::fs::ReadableFile;
use crate::key::{
    FileId, InternalKey, KeyOrder, Kind, SEQUENCE_MAX, SequenceNumber, TRAILER_NEWEST, kind_of,
    sequence_of,
};
use crate::leveldb::block::Entries;
use crate::leveldb::edit::LevelDbTable;
use crate::leveldb::filter::{Filters, filter_place};
use crate::leveldb::footer::{self, BLOCK_TRAILER_BYTES, FOOTER_BYTES, Footer, Handle};
use crate::leveldb::{split_key, stored};
use crate::scheduler::system_random_u128;
use crate::sync::Arc;

use super::Checked;
use super::block_builder::BlockBuilder;
use super::directory::Directory;
use super::format;
use super::index::Index;
use super::index_builder::IndexBuilder;
use super::layout::SLACK_BYTES;
use super::locator::Locator;
use super::meta::{TableFormat, TableMeta};
use super::properties::Properties;
use super::reader::{BlockIndex, ReadContext, Table};

/// True if `file` ends as LevelDB's tables do.
pub(crate) fn is_leveldb(file: &dyn ReadableFile, path: &Path) -> Result<bool> {
    let length = file.length().map_err(|error| Error::io(path, "read length of", error))?;
    let Some(at) = length.checked_sub(8) else { return Ok(false) };
    let mut last = [0; 8];
    format::read_at(file, at, &mut last, path)?;
    Ok(footer::is_magic(last))
}

/// What our manifest says of a LevelDB table that one of LevelDB's describes. Nothing is
/// known of its entries but that none has a number above `sequence_max`.
///
/// # Errors
/// What is wrong with its bounds.
pub(crate) fn leveldb_meta(
    table: &LevelDbTable,
    sequence_max: SequenceNumber,
    order: &KeyOrder,
) -> Checked<TableMeta> {
    let (smallest, largest) = (split_key(&table.smallest)?, split_key(&table.largest)?);
    if order.compare_entries(smallest, largest).is_gt() {
        return Err("the manifest has it end before it begins");
    }
    Ok(TableMeta {
        number: table.number,
        id: FileId(system_random_u128()),
        bytes: table.bytes,
        format: TableFormat::LevelDb,
        smallest: InternalKey::before(smallest.0, smallest.1, order),
        largest: InternalKey::behind(largest.0, largest.1, order),
        sequence_max,
        ..TableMeta::default()
    })
}

/// As many blocks are looked at for how a table is compressed.
const CODEC_BLOCKS: BlockIndex = 16;

impl Table {
    /// How the blocks of a LevelDB table are compressed: the first ones are looked
    /// at, since blocks that do not shrink are stored plain in any table.
    pub(crate) fn leveldb_codec(&self, context: &ReadContext) -> Result<&'static str> {
        let mut locator = Locator::default();
        for index in 0..self.blocks().min(CODEC_BLOCKS) {
            let wanted = locator.locate(self, index, context)?;
            let mut bytes = vec![0; wanted.place.stored_bytes];
            format::read_at(&*self.file, wanted.place.offset, &mut bytes, &self.path)?;
            match stored::codec_name(&bytes) {
                Some("none") => {}
                codec => return Ok(codec.unwrap_or("unknown")),
            }
        }
        Ok("none")
    }
}

/// What is known of a LevelDB table of so many blocks.
pub(super) fn properties(meta: &TableMeta, order: &KeyOrder, blocks: BlockIndex) -> Properties {
    Properties {
        order_name: order.name().to_string(),
        blocks: u64::from(blocks),
        smallest: meta.smallest.clone(),
        largest: meta.largest.clone(),
        sequence_min: meta.sequence_min,
        sequence_max: meta.sequence_max,
        entries: meta.entries,
        ..Properties::default()
    }
}

/// Loads index and filters of the LevelDB table in `file`, whose last key the
/// manifest calls `largest`. Damaged filters, and those of a policy that we do not
/// know, as Basho's, are left out.
///
/// # Errors
/// `Corruption` if it is no LevelDB table or its index is damaged.
pub(super) fn load(
    file: &dyn ReadableFile,
    path: &Path,
    order: &KeyOrder,
    largest: &[u8],
) -> Result<Directory> {
    let length = file.length().map_err(|error| Error::io(path, "read length of", error))?;
    let footer_at = length.saturating_sub(FOOTER_BYTES as u64);
    let mut footer = [0; FOOTER_BYTES];
    format::read_at(file, footer_at, &mut footer, path)?;
    let corrupt = |offset, what: &str| Error::corruption(path, offset, what);
    let footer = Footer::decode(&footer, length).map_err(|what| corrupt(footer_at, what))?;
    let at_index = |what| corrupt(footer.index.offset, what);
    let raw = read_block(file, footer.index, path)?;
    let mut places = decode_index(&raw, footer_at).map_err(at_index)?;
    shorten_reach(&mut places, order, largest).map_err(at_index)?;
    let index = index_of(&places, order);
    let index = index.map_err(|undecodable| undecodable.at(path, footer.index.offset))?;
    let filters = load_filters(file, &footer, footer_at, path)?;
    Ok(Directory::Foreign { index, filters: filters.filter(|_| order.equal_means_identical()) })
}

/// The bytes of a block that is not one of entries.
fn read_block(file: &dyn ReadableFile, handle: Handle, path: &Path) -> Result<Vec<u8>> {
    let mut bytes = vec![0; (handle.bytes + BLOCK_TRAILER_BYTES) as usize];
    format::read_at(file, handle.offset, &mut bytes, path)?;
    let mut raw = Vec::new();
    let opened = stored::open(&bytes, &mut raw);
    opened.map_err(|what| Error::corruption(path, handle.offset, what))?;
    Ok(raw)
}

/// A block's separator, as it is stored, and where the block is.
type Place = (Vec<u8>, Handle);

/// The places of all blocks, which must follow each other.
fn decode_index(raw: &[u8], end: u64) -> Checked<Vec<Place>> {
    let (mut entries, mut places) = (Entries::new(raw)?, Vec::<Place>::new());
    let mut offset = 0;
    while let Some((separator, value)) = entries.next()? {
        let handle = Handle::decode(value, end)?;
        if handle.offset != offset {
            return Err("blocks that do not follow each other");
        }
        offset = handle.end().expect("it was compared with the file's length");
        places.push((separator.to_vec(), handle));
    }
    Ok(places)
}

/// Puts the last key for the last separator, which LevelDB makes as short as it
/// can: "1" for keys that begin with 0. It would be all that separators have in
/// common, and searches live on that.
fn shorten_reach(places: &mut [Place], order: &KeyOrder, largest: &[u8]) -> Checked<()> {
    let [.., (before, _), (last, _)] = places else { return Ok(()) };
    let (before, reach) = (split_key(before)?.0, split_key(last)?.0);
    if order.compare(before, largest).is_lt() && order.compare(largest, reach).is_lt() {
        *last = [largest, &TRAILER_NEWEST.to_le_bytes()].concat();
    }
    Ok(())
}

fn index_of(places: &[Place], order: &KeyOrder) -> Checked<Index, Undecodable> {
    let mut builder = IndexBuilder::default();
    let mut data_end = 0;
    for (i, (separator, handle)) in places.iter().enumerate() {
        let (user_key, trailer) = split_key(separator)?;
        let is_entry = sequence_of(trailer) < SEQUENCE_MAX && i + 1 < places.len();
        builder.add(user_key, is_entry.then_some(trailer), handle.offset);
        data_end = handle.offset + handle.bytes + BLOCK_TRAILER_BYTES;
    }
    Index::decode(&builder.finish(data_end, order.is_bytewise()), order)
}

fn load_filters(
    file: &dyn ReadableFile,
    footer: &Footer,
    end: u64,
    path: &Path,
) -> Result<Option<Filters>> {
    let filters = read_block(file, footer.meta_index, path).and_then(|raw| {
        let at = |what| Error::corruption(path, footer.meta_index.offset, what);
        let Some(handle) = filter_place(path, &raw, end).map_err(at)? else { return Ok(None) };
        let bytes = read_block(file, handle, path)?;
        Filters::decode(bytes).map(Some).map_err(at)
    });
    match filters {
        Err(error) if error.is_corruption() => Ok(None),
        filters => filters,
    }
}

/// A stored block of entries in our layout, slack included, not validated.
pub(super) fn open_block(bytes: &[u8], order: &KeyOrder) -> Checked<Arc<[u8]>> {
    SCRATCH.with_borrow_mut(|scratch| {
        let Scratch { raw, builder, block } = scratch;
        stored::open(bytes, raw)?;
        let builder = builder.entry(order.is_bytewise());
        // What an error or a panic of a comparator left there.
        builder.clear();
        copy_entries(raw, builder, order)?;
        builder.finish(block);
        block.resize(block.len() + SLACK_BYTES, 0);
        let shared = Arc::from(&block[..]);
        scratch.shrink();
        Ok(shared)
    })
}

fn copy_entries(raw: &[u8], builder: &mut BlockBuilder, order: &KeyOrder) -> Checked<()> {
    let mut entries = Entries::new(raw)?;
    while let Some((key, value)) = entries.next()? {
        let (user_key, trailer) = split_key(key)?;
        if !matches!(kind_of(trailer), Some(Kind::Put | Kind::Delete)) {
            return Err("an entry of a kind that LevelDB does not have");
        }
        let key_is_last = !builder.is_empty() && order.compare(builder.last().0, user_key).is_eq();
        builder.add(user_key, trailer, value, key_is_last);
    }
    if builder.is_empty() { Err("a block without entries") } else { Ok(()) }
}

/// Buffers that a thread keeps, so that a block costs one allocation.
#[derive(Default)]
struct Scratch {
    raw: Vec<u8>,
    builder: Builders,
    block: Vec<u8>,
}

/// For bytewise order and for others: keys of these must stay whole.
#[derive(Default)]
struct Builders([Option<BlockBuilder>; 2]);

impl Builders {
    fn entry(&mut self, divides_keys: bool) -> &mut BlockBuilder {
        let slot = &mut self.0[usize::from(divides_keys)];
        slot.get_or_insert_with(|| BlockBuilder::new(divides_keys))
    }
}

/// Longer buffers are given back after use.
const SCRATCH_BYTES_MAX: usize = 256 << 10;

impl Scratch {
    fn shrink(&mut self) {
        if self.raw.capacity().max(self.block.capacity()) > SCRATCH_BYTES_MAX {
            *self = Scratch::default();
        }
    }
}

thread_local! {
    static SCRATCH: RefCell<Scratch> = RefCell::default();
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::{Comparator, trailer};
    use crate::leveldb::block::BlockWriter;
    use crate::leveldb::join_key;
    use crate::sync::atomic::{AtomicU32, Ordering};
    use std::panic::{AssertUnwindSafe, catch_unwind};

    /// Bytewise, until it has compared that often.
    #[derive(Debug)]
    struct Tired(AtomicU32);

    impl Comparator for Tired {
        fn name(&self) -> &str {
            "Tired"
        }
        fn compare(&self, a: &[u8], b: &[u8]) -> std::cmp::Ordering {
            assert_ne!(self.0.fetch_sub(1, Ordering::Relaxed), 0, "too tired to compare");
            a.cmp(b)
        }
    }

    fn stored_block(keys: &[&[u8]]) -> Vec<u8> {
        let mut block = BlockWriter::new(16);
        for key in keys {
            block.add(&join_key(key, trailer(1, Kind::Put)), b"value");
        }
        let mut out = Vec::new();
        stored::put(&mut out, &block.finish(), false);
        out
    }

    /// A thread that survived a comparator's panic reads the next block as it is.
    #[test]
    fn a_block_has_nothing_of_one_that_a_panic_cut_short() {
        let [first, second] = [stored_block(&[b"m", b"n", b"o"]), stored_block(&[b"a", b"b"])];
        let rested = KeyOrder::Custom(Arc::new(Tired(AtomicU32::new(u32::MAX))));
        let expected = open_block(&second, &rested).expect("it is sound");
        for compared in 0..2 {
            let tired = KeyOrder::Custom(Arc::new(Tired(AtomicU32::new(compared))));
            let cut_short = catch_unwind(AssertUnwindSafe(|| open_block(&first, &tired).is_ok()));
            assert!(cut_short.is_err());
            assert_eq!(open_block(&second, &rested).expect("it is sound"), expected);
        }
    }
}
