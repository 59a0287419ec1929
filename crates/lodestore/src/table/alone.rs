//! A table without a manifest: what its file alone tells.

use crate::error::Result;
use crate::key::{FileId, SequenceNumber, Trailer};

use super::block::Block;
use super::codec::TRAILER_BYTES;
use super::directory::Directory;
use super::format::{HEADER_BYTES, Section, read_at};
use super::locator::Locator;
use super::reader::{BlockIndex, BlockPlace, Origin, ReadContext, Table};

/// What a table says of itself. A table of LevelDB says little: its entries are an
/// estimate, and what is called unknown is 0, unless they were counted.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TableProperties {
    /// The engine whose format it has.
    pub engine: Engine,
    /// True if its entries were counted, or the table knows their number itself.
    pub counted: bool,
    /// The file's random identity; 0 of a foreign table.
    pub id: FileId,
    /// Checksum over all checksums of the file; 0 of a foreign table.
    pub checksum: u32,
    /// The name of the order of its keys.
    pub order_name: String,
    /// How blocks that shrink are compressed: `"none"`, `"lz4"`, ...
    pub compression: &'static str,
    /// Where blocks were closed, in bytes before compression; 0 of a foreign table.
    pub block_bytes: u64,
    /// Blocks of entries.
    pub blocks: u64,
    /// Bytes that these take in the file.
    pub data_bytes: u64,
    /// True if index and filter are divided into parts that are read and
    /// cached like blocks.
    pub partitioned: bool,
    /// Memory that index, filter and range deletes take while it is open.
    pub resident_bytes: u64,
    /// Entries, deletes included.
    pub entries: u64,
    /// Deletes and single deletes among them.
    pub tombstones: u64,
    /// Range deletes.
    pub range_deletes: u64,
    /// Bytes of all keys, before compression.
    pub key_bytes: u64,
    /// Bytes of all values, before compression.
    pub value_bytes: u64,
    /// The lowest sequence number in it.
    pub sequence_min: SequenceNumber,
    /// The highest one.
    pub sequence_max: SequenceNumber,
    /// The first key.
    pub smallest: Vec<u8>,
    /// Sequence number and kind of the first entry, as `sequence << 8 | kind`;
    /// `u64::MAX` if its key is a bound before it.
    pub smallest_trailer: u64,
    /// The last key, or where its last range delete ends.
    pub largest: Vec<u8>,
    /// The same of the last entry; `u64::MAX` if the key is a bound behind it.
    pub largest_trailer: u64,
    /// The name of what maps keys to the prefixes that the filter has, if it does.
    pub prefix_extractor: Option<String>,
    /// Number and name of the family that it was written for, if it was for one.
    pub family: Option<(u32, String)>,
    /// What it has behind its blocks, in the order of the file; none of a foreign table.
    pub sections: Vec<TableSection>,
}

/// A section of a table of ours, as its footer names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TableSection {
    /// What it is, by docs/format/table.md.
    pub tag: u32,
    /// What must be known of it.
    pub flags: u32,
    /// Where it begins in the file.
    pub offset: u64,
    /// Its bytes.
    pub bytes: u64,
}

/// A block of entries.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BlockSummary {
    /// Where it begins in the file.
    pub offset: u64,
    /// Its bytes in the file.
    pub stored_bytes: u64,
    /// Its bytes in memory.
    pub decoded_bytes: u64,
    /// Entries in it.
    pub entries: u64,
    /// The type byte behind it: how it is compressed.
    pub stored_type: u8,
    /// Its flags, by docs/format/table.md; of a foreign table those of the same entries.
    pub flags: u8,
    /// Bytes of each sequence number in it: 0 if all have the same one.
    pub sequence_bytes: u8,
    /// Zeros behind its values.
    pub fill_bytes: u64,
    /// The first key.
    pub first_key: Vec<u8>,
}

impl From<&Section> for TableSection {
    fn from(section: &Section) -> TableSection {
        let &Section { tag, flags, offset, length: bytes, .. } = section;
        TableSection { tag, flags, offset, bytes }
    }
}

/// The engine that wrote a file, or whose format it has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Engine {
    /// This one.
    #[default]
    Lodestore,
    /// LevelDB, or a fork that kept its formats.
    LevelDb,
}

impl Engine {
    /// Its name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Engine::Lodestore => "Lodestore",
            Engine::LevelDb => "LevelDB",
        }
    }
}

/// A prime that is large beside the entries of a block.
const SAMPLE_STEP: usize = 1_000_003;

impl Table {
    /// What the table says of itself.
    pub(crate) fn summary(&self) -> TableProperties {
        let stated = &self.properties;
        TableProperties {
            engine: match &self.origin {
                Origin::Native { .. } => Engine::Lodestore,
                Origin::LevelDb => Engine::LevelDb,
            },
            counted: matches!(&self.origin, Origin::Native { .. }),
            id: self.id,
            checksum: match &self.origin {
                Origin::Native { footer, .. } => footer.witness,
                Origin::LevelDb => 0,
            },
            order_name: stated.order_name.clone(),
            compression: self.codec_name(),
            block_bytes: stated.block_bytes,
            blocks: stated.blocks,
            data_bytes: match &self.origin {
                Origin::Native { .. } => self.directory.data_end() - HEADER_BYTES as u64,
                Origin::LevelDb => self.directory.data_end(),
            },
            partitioned: matches!(self.directory, Directory::Partitioned(_)),
            resident_bytes: self.memory_bytes() as u64,
            entries: stated.entries,
            tombstones: stated.tombstones,
            range_deletes: stated.range_deletes,
            key_bytes: stated.key_bytes,
            value_bytes: stated.value_bytes,
            sequence_min: stated.sequence_min,
            sequence_max: stated.sequence_max,
            smallest: stated.smallest.user_key.clone(),
            smallest_trailer: stated.smallest.trailer,
            largest: stated.largest.user_key.clone(),
            largest_trailer: stated.largest.trailer,
            prefix_extractor: stated.prefix_extractor.clone(),
            family: stated.family.as_ref().map(|family| (family.id, family.name.clone())),
            sections: match &self.origin {
                Origin::Native { footer, .. } => {
                    footer.sections.iter().map(TableSection::from).collect()
                }
                Origin::LevelDb => Vec::new(),
            },
        }
    }

    /// Each block of entries, read from the file and checked.
    pub(crate) fn summaries<'a>(
        &'a self,
        context: &'a ReadContext,
    ) -> impl Iterator<Item = Result<BlockSummary>> + 'a {
        let mut locator = Locator::default();
        (0..self.blocks()).map(move |index| self.summarize(&mut locator, index, context))
    }

    /// About `count` entries from blocks all over the table: key, trailer and
    /// length of the value.
    pub(crate) fn sample(
        &self,
        count: usize,
        context: &ReadContext,
    ) -> Result<Vec<(Vec<u8>, Trailer, usize)>> {
        let blocks = self.blocks() as usize;
        let visited = count.min(blocks);
        let of_each = count.div_ceil(visited.max(1));
        let mut locator = Locator::default();
        let mut sampled = Vec::new();
        for nth in 0..visited {
            let index = (2 * nth + 1) * blocks / (2 * visited);
            let wanted = locator.locate(self, index as BlockIndex, context)?;
            let block = self.load_block(wanted, context)?;
            let (layout, bytes) = (block.layout(), &block.bytes()[..]);
            let of_this = of_each.min(layout.count);
            for part in 0..of_this {
                // Where in the block changes from block to block.
                let first = nth * SAMPLE_STEP + part * layout.count / of_this;
                let entry = first % layout.count;
                let mut key = Vec::new();
                layout.append_key(bytes, entry, &mut key);
                sampled.push((key, layout.trailer(bytes, entry), layout.value(bytes, entry).len()));
            }
        }
        Ok(sampled)
    }

    fn summarize(
        &self,
        locator: &mut Locator,
        index: BlockIndex,
        context: &ReadContext,
    ) -> Result<BlockSummary> {
        let wanted = locator.locate(self, index, context)?;
        let block: Block = self.load_block(wanted, context)?;
        let (layout, bytes, place) = (block.layout(), block.bytes(), wanted.place);
        let mut first_key = Vec::new();
        layout.append_key(bytes, 0, &mut first_key);
        let decoded_bytes = (bytes.len() - super::layout::SLACK_BYTES) as u64;
        let values_end = block.range_of(layout.value(bytes, layout.count - 1)).end as u64;
        Ok(BlockSummary {
            offset: place.offset,
            stored_bytes: place.stored_bytes as u64,
            decoded_bytes,
            entries: layout.count as u64,
            stored_type: self.stored_type(place)?,
            flags: layout.flags,
            sequence_bytes: layout.sequence_bytes as u8,
            fill_bytes: decoded_bytes - values_end,
            first_key,
        })
    }

    /// The type byte of the block that is stored at `place`.
    fn stored_type(&self, place: BlockPlace) -> Result<u8> {
        let at = place.offset + (place.stored_bytes - TRAILER_BYTES) as u64;
        let mut byte = [0];
        read_at(&*self.file, at, &mut byte, &self.path)?;
        Ok(byte[0])
    }
}
