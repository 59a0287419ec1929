//! The builder: entries in order become a file.
//!
//! Blocks are appended in large writes as they fill; filter, index, range
//! deletes, dictionary and properties follow, then the footer. The file is
//! synced before its `TableMeta` is given away, so that a manifest never names
//! bytes that power loss can take.

use std::cmp::Ordering;
use std::path::{Path, PathBuf};

use crate::budget::Reservation;
use crate::compatibility::Features;
use crate::error::{Error, Result};
use crate::fs::WritableFile;
use crate::key::{FileId, InternalKey, Kind, Trailer, kind_of, sequence_of};
use crate::prefix::PrefixExtractor;
use crate::range_deletes::Fragments;

use super::block_builder::{BlockBuilder, is_tombstone};
use super::block_end::{BlockEnd, BlockHashes};
use super::codec::{Compressor, Sealed};
use super::dictionary::{HeldBlock, Samples, TRAINING_BYTES};
use super::directory_builder::{DirectoryBuilder, Finished};
use super::format::{Footer, MUST_UNDERSTAND, Section, Witness, encode_header, tag};
use super::meta::{TableFormat, TableMeta};
use super::pages::Pages;
use super::properties::Properties;
use super::range_section;
use super::{Compression, TableSettings};

mod take_over;

/// Bytes gathered before they are appended to the file, if memory allows.
const WRITE_BYTES: usize = 256 << 10;
/// Larger blocks than this are not asked for: offsets in a block of several
/// entries are 32 bits.
const BLOCK_BYTES_MAX: usize = 64 << 20;

/// Writes one table. Dropping it unfinished leaves a file that is no table.
#[derive(Debug)]
pub(crate) struct TableBuilder {
    out: Output,
    id: FileId,
    settings: TableSettings,
    block: BlockBuilder,
    pages: Pages,
    raw: Vec<u8>,
    compressor: Compressor,
    directory: DirectoryBuilder,
    witness: Witness,
    properties: Properties,
    memory: Reservation,
    range_deletes: Fragments,
    /// What the filter is to know of the block that is open.
    hashes: BlockHashes,
    /// Where the block that is open has been written already.
    taken_over: Option<(u64, u64)>,
    /// Blocks that wait until there is a dictionary.
    samples: Option<Samples>,
    dictionary: Option<Vec<u8>>,
}

impl TableBuilder {
    /// Starts a table in `file`, which must be empty; `path` is named in errors.
    pub(crate) fn new(
        file: Box<dyn WritableFile>,
        path: &Path,
        id: FileId,
        mut settings: TableSettings,
    ) -> Result<TableBuilder> {
        settings.block_bytes = settings.block_bytes.min(BLOCK_BYTES_MAX);
        let compressor = Compressor::new(settings.compression)
            .map_err(|error| Error::io(path, "prepare compression of", error))?;
        let mut out = Output {
            file,
            path: path.to_path_buf(),
            buffer: Vec::new(),
            buffer_bytes_max: settings.buffers.buffer_bytes(WRITE_BYTES),
            written: 0,
            begun: 0,
        };
        out.buffer.extend_from_slice(&encode_header(id));
        let directory = DirectoryBuilder::new(&settings);
        let extractor = settings.prefix_extractor;
        let knows_prefixes = directory.has_filter() && extractor != PrefixExtractor::None;
        let memory = settings.buffers.reserve(out.buffer_bytes_max);
        Ok(TableBuilder {
            out,
            id,
            block: BlockBuilder::new(settings.order.is_bytewise()),
            pages: Pages::new(settings.block_bytes, settings.compression == Compression::None),
            raw: Vec::new(),
            directory,
            witness: Witness::new(),
            properties: Properties {
                order_name: settings.order.name().to_string(),
                block_bytes: settings.block_bytes as u64,
                codec: compressor.type_byte(),
                sequence_min: u64::MAX,
                prefix_extractor: knows_prefixes.then(|| extractor.to_string()),
                family: settings.family.clone(),
                ..Properties::default()
            },
            compressor,
            memory,
            samples: samples(&settings),
            settings,
            range_deletes: Fragments::default(),
            hashes: BlockHashes::default(),
            taken_over: None,
            dictionary: None,
        })
    }

    /// Gives the table its range deletes, all of them, at any time before it
    /// is finished. A table may have these only.
    pub(crate) fn set_range_deletes(&mut self, deletes: Fragments) {
        self.range_deletes = deletes;
    }

    /// Adds an entry, which must come after all others. After an error the
    /// file is lost: drop the builder and remove it.
    ///
    /// # Errors
    /// `Corruption` if it does not; `Io`.
    pub(crate) fn add(&mut self, user_key: &[u8], trailer: Trailer, value: &[u8]) -> Result<()> {
        let key_is_last = self.admit(user_key, trailer, value.len())?;
        self.block.add(user_key, trailer, value, key_is_last);
        Ok(())
    }

    /// Checks that an entry may come next, ends the block that has no room for
    /// it, and counts it. True if its user key is that of the last entry.
    fn admit(&mut self, user_key: &[u8], trailer: Trailer, value_bytes: usize) -> Result<bool> {
        let kind = kind_of(trailer).expect("entries have a kind that is known");
        if kind == Kind::RangeDelete {
            return Err(Error::invalid("a table's blocks hold no range deletes"));
        }
        let mut key_is_last = false;
        if self.properties.entries == 0 {
            self.properties.smallest = InternalKey::before(user_key, trailer, &self.settings.order);
        } else if !self.block.is_empty() {
            let last = self.block.last();
            let by_key = self.settings.order.compare(last.0, user_key);
            if by_key.then_with(|| trailer.cmp(&last.1)) != Ordering::Less {
                return Err(self.out_of_order());
            }
            key_is_last = by_key.is_eq();
            let bytes = self.block.bytes_with(user_key.len(), value_bytes);
            let bytes_max = self.pages.block_bytes_max(self.out.offset());
            if self.taken_over.is_some() || bytes > bytes_max {
                self.finish_block(Some(user_key))?;
            }
        }
        if self.directory.has_filter() {
            self.hashes.add(user_key, key_is_last, self.settings.prefix_extractor);
        }
        self.count(user_key, trailer, value_bytes);
        Ok(key_is_last)
    }

    /// Blocks that are read are not searched for keys out of order, which would
    /// cost every reader; what they hold is not handed on.
    #[cold]
    fn out_of_order(&self) -> Error {
        let what = "the entries for this table come out of order: one of those that it is made \
                    of is damaged, and its verification says which";
        Error::corruption(&self.out.path, self.out.offset(), what)
    }

    fn count(&mut self, user_key: &[u8], trailer: Trailer, value_bytes: usize) {
        let properties = &mut self.properties;
        properties.entries += 1;
        properties.tombstones += u64::from(is_tombstone(trailer));
        properties.key_bytes += user_key.len() as u64;
        properties.value_bytes += value_bytes as u64;
        properties.sequence_min = properties.sequence_min.min(sequence_of(trailer));
        properties.sequence_max = properties.sequence_max.max(sequence_of(trailer));
    }

    /// About how long the file would be if it were finished now.
    pub(crate) fn estimated_bytes(&self) -> u64 {
        let held = self.samples.as_ref().map_or(0, Samples::bytes);
        self.out.offset() + (held + self.block.bytes_with(0, 0) + self.directory.bytes()) as u64
    }

    /// True if a table that ends here and one that begins with `next`, which
    /// comes after all entries, have bounds that don't overlap.
    pub(crate) fn may_end_before(&self, next: &[u8]) -> bool {
        let order = &self.settings.order;
        self.block.is_empty() || order.floor(self.block.last().0) != order.floor(next)
    }

    /// True until the first entry.
    pub(crate) fn is_empty(&self) -> bool {
        self.properties.entries == 0
    }

    /// Writes the block that is open; `next` is the key that follows it.
    fn finish_block(&mut self, next: Option<&[u8]>) -> Result<()> {
        let (last, trailer) = self.block.last();
        let order = &self.settings.order;
        let (separator, straddler) = match next {
            Some(next) if order.compare(last, next).is_eq() => (last.to_vec(), Some(trailer)),
            Some(next) => (order.separator(last, next), None),
            None => {
                self.properties.largest = InternalKey::behind(last, trailer, order);
                (self.properties.largest.user_key.clone(), None)
            }
        };
        let (is_last, hashes) = (next.is_none(), std::mem::take(&mut self.hashes));
        let end = BlockEnd { separator, straddler, is_last, hashes };
        if let Some(place) = self.taken_over.take() {
            self.block.clear();
            self.settle(end, place);
            return Ok(());
        }
        let entries = self.block.entries();
        self.block.finish(&mut self.raw);
        let mut raw = std::mem::take(&mut self.raw);
        let Some(samples) = &mut self.samples else {
            let fill = self.pages.fill(self.out.offset(), raw.len());
            raw.resize(raw.len() + fill, 0);
            let is_raw = self.write_block(&raw, end)?;
            self.pages.note(is_raw, raw.len(), entries);
            self.raw = raw;
            return Ok(());
        };
        samples.hold(raw, end);
        if is_last || samples.are_enough() {
            return self.end_sampling();
        }
        self.memory.resize(self.memory_bytes());
        Ok(())
    }

    /// Makes a dictionary of the blocks that were held back, if one pays, and
    /// writes them.
    fn end_sampling(&mut self) -> Result<()> {
        let Some(samples) = self.samples.take() else { return Ok(()) };
        let training = self.settings.buffers.reserve(TRAINING_BYTES + samples.bytes());
        self.dictionary = samples.train();
        drop(training);
        if let Some(dictionary) = &self.dictionary
            && self.compressor.set_dictionary(dictionary).is_none()
        {
            self.dictionary = None; // no memory: that costs space, not the table
        }
        for HeldBlock { raw, end } in samples.blocks {
            self.write_block(&raw, end)?;
        }
        Ok(())
    }

    /// True if the block is stored without a codec.
    fn write_block(&mut self, raw: &[u8], end: BlockEnd) -> Result<bool> {
        let offset = self.out.offset();
        let sealed = self.compressor.seal(raw, self.id, offset);
        let is_raw = sealed.is_raw();
        self.witness.add(sealed.checksum);
        self.out.put(&sealed)?;
        self.settle(end, (offset, self.out.offset()));
        Ok(is_raw)
    }

    /// Tells index and filter of a block that was written from one offset to
    /// the other.
    fn settle(&mut self, mut end: BlockEnd, place: (u64, u64)) {
        self.directory.add_block(&end, place);
        if self.hashes.count() == 0 {
            end.hashes.clear();
            self.hashes = end.hashes; // for its allocation
        }
        if self.out.buffer.is_empty() {
            self.memory.resize(self.memory_bytes());
        }
    }

    /// About what the builder holds.
    fn memory_bytes(&self) -> usize {
        let held = self.samples.as_ref().map_or(0, Samples::bytes);
        let blocks = 3 * self.settings.block_bytes + held;
        self.out.buffer_bytes_max + blocks + self.directory.memory_bytes()
    }

    /// Writes what is left, syncs and closes the file. The caller sets the
    /// number and the creation time in what is returned.
    pub(crate) fn finish(mut self) -> Result<TableMeta> {
        if !self.is_empty() {
            self.finish_block(None)?;
        }
        self.properties.add_range_deletes(&self.range_deletes, &self.settings.order);
        if self.is_empty() && self.range_deletes.is_empty() {
            self.properties.sequence_min = 0;
        }
        let data_end = self.out.offset();
        self.properties.blocks = u64::from(self.directory.blocks());
        let mut sections = self.put_directory(data_end)?;
        if !self.range_deletes.is_empty() {
            let deletes = range_section::encode(&self.range_deletes);
            sections.push(self.put_section(tag::RANGE_DELETES, MUST_UNDERSTAND, &deletes)?);
        }
        if let Some(dictionary) = self.dictionary.take() {
            sections.push(self.put_section(tag::DICTIONARY, MUST_UNDERSTAND, &dictionary)?);
        }
        let properties = self.properties.encode();
        sections.push(self.put_section(tag::PROPERTIES, MUST_UNDERSTAND, &properties)?);

        let offset = self.out.offset();
        let witness = self.witness.value();
        let footer =
            Footer { id: self.id, features: Features::default(), witness, sections, offset };
        self.out.buffer.extend_from_slice(&footer.encode());
        let bytes = self.out.offset();
        self.out.close()?;
        let properties = self.properties;
        Ok(TableMeta {
            id: self.id,
            bytes,
            checksum: witness,
            format: TableFormat::Native,
            smallest: properties.smallest,
            largest: properties.largest,
            sequence_min: properties.sequence_min,
            sequence_max: properties.sequence_max,
            entries: properties.entries,
            tombstones: properties.tombstones,
            range_tombstones: properties.range_deletes,
            key_bytes: properties.key_bytes,
            value_bytes: properties.value_bytes,
            ..TableMeta::default()
        })
    }

    /// Writes index and filter; gives their sections.
    fn put_directory(&mut self, data_end: u64) -> Result<Vec<Section>> {
        let empty = DirectoryBuilder::new(&self.settings);
        let directory = std::mem::replace(&mut self.directory, empty);
        let (out, witness, id) = (&mut self.out, &mut self.witness, self.id);
        let put = |raw: &[u8], compressor: &mut Compressor| {
            let offset = out.offset();
            let sealed = compressor.seal(raw, id, offset);
            witness.add(sealed.checksum);
            out.put(&sealed).map(|()| (offset, out.offset()))
        };
        let mut sections = Vec::new();
        match directory.finish(data_end, &mut self.compressor, put)? {
            Finished::Resident { filter, index } => {
                if let Some(filter) = filter {
                    sections.push(self.put_section(tag::FILTER, 0, &filter)?);
                }
                sections.push(self.put_section(tag::INDEX, MUST_UNDERSTAND, &index)?);
            }
            Finished::Partitioned(list) => {
                sections.push(self.put_section(tag::PARTITIONS, MUST_UNDERSTAND, &list)?);
            }
        }
        Ok(sections)
    }

    fn put_section(&mut self, tag: u32, flags: u32, bytes: &[u8]) -> Result<Section> {
        let section = Section::of(tag, flags, self.out.offset(), bytes, self.id);
        self.witness.add(section.checksum);
        self.out.buffer.extend_from_slice(bytes);
        self.out.write_if_full()?;
        Ok(section)
    }
}

/// Samples for a dictionary, if there is to be one: making it must not take
/// much of a small budget.
fn samples(settings: &TableSettings) -> Option<Samples> {
    let TableSettings { compression, dictionary_bytes, buffers, .. } = settings;
    let is_wanted = matches!(compression, Compression::Zstd { .. }) && *dictionary_bytes > 0;
    (is_wanted && buffers.has_room_for(TRAINING_BYTES)).then(|| {
        let bytes_max = buffers.buffer_bytes(settings.dictionary_training_bytes);
        Samples::new(*compression, *dictionary_bytes, bytes_max)
    })
}

/// The file, and what is not appended to it yet.
#[derive(Debug)]
struct Output {
    file: Box<dyn WritableFile>,
    path: PathBuf,
    buffer: Vec<u8>,
    /// The buffer is appended to the file when it has this many.
    buffer_bytes_max: usize,
    written: u64,
    /// Up to here the device was told to begin.
    begun: u64,
}

/// So much is appended before the device is told to begin with it.
const WRITE_BACK_BYTES: u64 = 1 << 20;

impl Output {
    /// Where the next byte goes.
    fn offset(&self) -> u64 {
        self.written + self.buffer.len() as u64
    }

    fn put(&mut self, block: &Sealed<'_>) -> Result<()> {
        block.put_head(&mut self.buffer);
        if block.payload.len() < self.buffer_bytes_max {
            self.buffer.extend_from_slice(block.payload);
        } else {
            // A long block is not copied once more.
            self.write()?;
            self.append(block.payload)?;
        }
        block.put_tail(&mut self.buffer);
        self.write_if_full()
    }

    fn write_if_full(&mut self) -> Result<()> {
        if self.buffer.len() >= self.buffer_bytes_max { self.write() } else { Ok(()) }
    }

    fn write(&mut self) -> Result<()> {
        let mut buffer = std::mem::take(&mut self.buffer);
        self.append(&buffer)?;
        buffer.clear();
        self.buffer = buffer;
        Ok(())
    }

    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        let appended = self.file.append(bytes);
        appended.map_err(|error| Error::io(&self.path, "append to", error))?;
        self.written += bytes.len() as u64;
        let waiting = self.written - self.begun;
        if waiting >= WRITE_BACK_BYTES {
            self.file.write_back(self.begun, waiting);
            self.begun = self.written;
        }
        Ok(())
    }

    fn close(mut self) -> Result<()> {
        self.write()?;
        self.file.sync().map_err(|error| Error::io(&self.path, "sync", error))?;
        self.file.close().map_err(|error| Error::io(&self.path, "close", error))
    }
}
