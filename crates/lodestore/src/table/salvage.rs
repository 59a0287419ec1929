//! What can still be read of a damaged table: for repair.
//!
//! The index says where blocks are. Where it is damaged, a block begins where
//! the one before it ends, and it ends where its checksum is right, which is
//! bound to the file's id and the block's place.

use std::collections::BTreeMap;
use std::path::Path;

use crate::checksum::{Crc32c, context};
use crate::error::{Error, Result, Undecodable};
use crate::fs::ReadableFile;
use crate::key::{FileId, KeyOrder, SequenceNumber, Trailer, sequence_of};
use crate::leveldb::salvage::{self as leveldb, Gap};
use crate::leveldb::split_key;
use crate::range_deletes::Fragments;
use crate::sync::Arc;

use super::Checked;
use super::block::Block;
use super::codec;
use super::dictionary::Dictionary;
use super::format::{self, Footer, HEADER_BYTES, tag};
use super::index::Index;
use super::meta::{TableFormat, TableMeta};
use super::partitions::Partitions;
use super::range_section;
use super::reader::BlockIndex;

/// The end of a block that no index knows is looked for in so many bytes.
const PROBED_BYTES_MAX: u64 = 4 << 20;
/// So many of them are read at first, then four times as many, and so on: most
/// blocks are short, and a table has many.
const PROBED_BYTES_FIRST: u64 = 16 << 10;

/// What was found besides the entries.
#[derive(Debug, Default)]
pub(crate) struct Salvaged {
    pub(crate) entries: u64,
    /// Where blocks could not be read.
    pub(crate) gaps: Vec<Gap>,
    /// `None` if they cannot be read.
    pub(crate) range_deletes: Option<Fragments>,
}

/// Who is given an entry: user key, trailer, value.
pub(crate) type Visit<'a> = dyn FnMut(&[u8], Trailer, &[u8]) -> Result<()> + 'a;

/// The id that a file states in its header or, if that is damaged, in its
/// footer; `None` if it states none.
pub(crate) fn stated_id(file: &dyn ReadableFile, path: &Path) -> Option<FileId> {
    let mut header = [0; HEADER_BYTES];
    let read = format::read_at(file, 0, &mut header, path).ok();
    read.and_then(|()| format::header_id(&header)).or_else(|| {
        let length = file.length().ok()?;
        Footer::read(file, length, path).ok().map(|footer| footer.id)
    })
}

/// Gives every entry of a sound block of the table that `meta` describes to
/// `visit`, in order.
///
/// # Errors
/// `Io`; `Incompatible` for what only a later build can read; what `visit`
/// returns. Damage is no error.
pub(crate) fn salvage(
    file: &dyn ReadableFile,
    path: &Path,
    meta: &TableMeta,
    order: &KeyOrder,
    visit: &mut Visit<'_>,
) -> Result<Salvaged> {
    let length = file.length().map_err(|error| Error::io(path, "read length of", error))?;
    if meta.format == TableFormat::LevelDb {
        let mut bytes = vec![0; length as usize];
        format::read_at(file, 0, &mut bytes, path)?;
        return salvage_leveldb(&bytes, order, visit);
    }
    let footer = readable(Footer::read(file, length, path))?;
    let footer = footer.filter(|footer| footer.id == meta.id);
    let source = Source { file, path, id: meta.id, order, footer };
    let (places, end) = source.places(length)?;
    let mut walk = Walk { meta, visit, last: None, found: Salvaged::default(), open_gap: false };
    let dictionary = source.dictionary()?;
    let mut at = HEADER_BYTES as u64;
    while at < end {
        let known = places.get(&at).copied();
        let next = match known {
            Some(next) => Some(next),
            None => source.probe(at, end)?,
        };
        let block = match next {
            Some(next) => {
                let bytes = match source.decoded(at, next, dictionary.as_ref()) {
                    // Of so many places as are probed, one may have a right
                    // checksum by chance: then any codec.
                    Err(Error::Incompatible { .. }) if known.is_none() => None,
                    bytes => bytes?,
                };
                source.block(0, at, bytes, meta.sequence_override)?
            }
            None => None,
        };
        match block {
            Some(block) if walk.follows(&block, order) => walk.take(&block)?,
            // Behind the entries lie other blocks, which no index told apart.
            Some(_) if known.is_none() => break,
            _ => walk.open_gap = true,
        }
        let following = || places.range(at + 1..).next().map(|(&start, _)| start);
        at = match (next, walk.open_gap && known.is_none()) {
            (Some(next), false) => next,
            _ => following().unwrap_or(end),
        };
    }
    walk.end_gap(None);
    let Walk { mut found, .. } = walk;
    found.range_deletes = source.range_deletes(meta)?;
    if found.entries == meta.entries {
        found.gaps.clear();
    }
    Ok(found)
}

/// [`salvage`] of a table of LevelDB's, whose bytes are `file`.
fn salvage_leveldb(file: &[u8], order: &KeyOrder, visit: &mut Visit<'_>) -> Result<Salvaged> {
    let found = leveldb::salvage(file, order, &mut |key, value| {
        let (user_key, trailer) = split_key(key).expect("only entries are given");
        visit(user_key, trailer, value)
    })?;
    let leveldb::Salvaged { entries, gaps, .. } = found;
    Ok(Salvaged { entries, gaps, range_deletes: Some(Fragments::default()) })
}

/// What was read; `None` if it is damaged.
fn readable<T>(read: Result<T>) -> Result<Option<T>> {
    match read {
        Ok(read) => Ok(Some(read)),
        Err(error) if error.is_corruption() => Ok(None),
        Err(error) => Err(error),
    }
}

/// A table's file, as far as its frame can be read.
struct Source<'a> {
    file: &'a dyn ReadableFile,
    path: &'a Path,
    id: FileId,
    order: &'a KeyOrder,
    footer: Option<Footer>,
}

impl Source<'_> {
    /// Where a section is, and its bytes; `None` if it is not there or damaged.
    fn section(&self, tag: u32) -> Result<Option<(u64, Vec<u8>)>> {
        let section = self.footer.as_ref().and_then(|footer| footer.section(tag));
        let Some(section) = section else { return Ok(None) };
        let bytes = readable(format::read_section(self.file, section, self.id, self.path))?;
        Ok(bytes.map(|bytes| (section.offset, bytes)))
    }

    /// Where blocks of entries begin and end, as far as the index says it; and
    /// where the last one ends, or something behind it.
    fn places(&self, length: u64) -> Result<(BTreeMap<u64, u64>, u64)> {
        let (mut places, end) = self.stated_places(length)?;
        // A place without bytes holds no block, and leads nowhere.
        places.retain(|start, end| start < end);
        Ok((places, end))
    }

    fn stated_places(&self, length: u64) -> Result<(BTreeMap<u64, u64>, u64)> {
        let sections = self.footer.iter().flat_map(|footer| &footer.sections);
        let end = sections.map(|section| section.offset).min().unwrap_or(length);
        if let Some((at, bytes)) = self.section(tag::PARTITIONS)? {
            let partitions = Partitions::decode(&bytes, self.order, end);
            let Some(partitions) = self.sound(partitions, at)? else {
                return Ok((BTreeMap::new(), end));
            };
            return Ok((self.places_in(&partitions)?, partitions.data_end()));
        }
        let Some((at, bytes)) = self.section(tag::INDEX)? else {
            return Ok((BTreeMap::new(), end));
        };
        let Some(index) = self.sound(Index::decode(&bytes, self.order), at)? else {
            return Ok((BTreeMap::new(), end));
        };
        let place = |i| (index.block_offset(i), index.block_offset(i + 1));
        let last = index.block_offset(index.blocks()).min(end);
        Ok(((0..index.blocks()).map(place).filter(|place| place.1 <= end).collect(), last))
    }

    fn places_in(&self, partitions: &Partitions) -> Result<BTreeMap<u64, u64>> {
        let dictionary = self.dictionary()?;
        let mut places = BTreeMap::new();
        for partition in 0..partitions.count() {
            let place = partitions.index_ref(partition).place;
            let end = place.offset + place.stored_bytes as u64;
            let bytes = self.decoded(place.offset, end, dictionary.as_ref())?;
            let block = self.block(partition, place.offset, bytes, None)?;
            let sound = block.filter(|b| partitions.check(partition, b, true).is_ok());
            let Some(block) = sound else { continue };
            let layout = block.layout();
            for i in 0..layout.count {
                let place = partitions.data_ref(&block, &layout, i).place;
                places.insert(place.offset, place.offset + place.stored_bytes as u64);
            }
        }
        Ok(places)
    }

    fn dictionary(&self) -> Result<Option<Dictionary>> {
        let section = self.section(tag::DICTIONARY)?;
        Ok(section.and_then(|(_, bytes)| Dictionary::decode(&bytes).ok()))
    }

    /// `None` if they are damaged, or fewer than there were.
    fn range_deletes(&self, meta: &TableMeta) -> Result<Option<Fragments>> {
        if meta.range_tombstones == 0 {
            return Ok(Some(Fragments::default()));
        }
        let section = self.section(tag::RANGE_DELETES)?;
        let deletes = section.and_then(|(_, bytes)| range_section::decode(&bytes, self.order).ok());
        let deletes = deletes.filter(|deletes| deletes.count() == meta.range_tombstones);
        let deletes = match meta.sequence_override {
            Some(sequence) => deletes.and_then(|deletes| deletes.with_sequence(sequence)),
            None => deletes,
        };
        let are_known =
            |deletes: &Fragments| deletes.deletes().all(|delete| has_number(meta, delete.sequence));
        Ok(deletes.filter(are_known))
    }

    /// The end of the block at `at`: where its checksum is right.
    fn probe(&self, at: u64, end: u64) -> Result<Option<u64>> {
        let bytes_max = (end - at).min(PROBED_BYTES_MAX);
        let (mut crc, context) = (Crc32c::new(), context(self.id, at));
        let (mut bytes, mut covered, mut wanted) = (Vec::new(), 0, PROBED_BYTES_FIRST);
        while (bytes.len() as u64) < bytes_max {
            let read = bytes.len();
            bytes.resize(wanted.min(bytes_max) as usize, 0);
            format::read_at(self.file, at + read as u64, &mut bytes[read..], self.path)?;
            while let Some(stored) = bytes.get(covered + 1..).and_then(|rest| rest.first_chunk()) {
                crc.update(&bytes[covered..covered + 1]);
                covered += 1;
                if crc.value() ^ context == u32::from_le_bytes(*stored) {
                    return Ok(Some(at + covered as u64 + 4));
                }
            }
            wanted *= 4;
        }
        Ok(None)
    }

    fn decoded(
        &self,
        at: u64,
        end: u64,
        dictionary: Option<&Dictionary>,
    ) -> Result<Option<Arc<[u8]>>> {
        let mut stored = vec![0; (end - at) as usize];
        if readable(format::read_at(self.file, at, &mut stored, self.path))?.is_none() {
            return Ok(None);
        }
        self.sound(codec::open(&stored, self.id, at, dictionary), at)
    }

    /// The block whose decoded bytes these are; `None` if it is damaged, or none.
    fn block(
        &self,
        index: BlockIndex,
        at: u64,
        bytes: Option<Arc<[u8]>>,
        sequence_override: Option<SequenceNumber>,
    ) -> Result<Option<Block>> {
        let Some(bytes) = bytes else { return Ok(None) };
        self.sound(Block::new(index, bytes, self.order, sequence_override), at)
    }

    /// What was decoded at `at`; `None` if it is damaged.
    ///
    /// # Errors
    /// `Incompatible` if only a later build knows it.
    fn sound<T>(&self, decoded: Checked<T, Undecodable>, at: u64) -> Result<Option<T>> {
        readable(decoded.map_err(|undecodable| undecodable.at(self.path, at)))
    }
}

fn has_number(meta: &TableMeta, sequence: SequenceNumber) -> bool {
    (meta.sequence_min..=meta.sequence_max).contains(&sequence)
}

/// The way through the entries.
struct Walk<'a, 'v> {
    meta: &'a TableMeta,
    visit: &'a mut Visit<'v>,
    /// The last entry that was given.
    last: Option<(Vec<u8>, Trailer)>,
    found: Salvaged,
    /// Blocks were missing since that.
    open_gap: bool,
}

impl Walk<'_, '_> {
    /// True if the block's entries come after those before, are in order, and
    /// have numbers that the table is known to have: lookups in level 0 go by
    /// these.
    fn follows(&self, block: &Block, order: &KeyOrder) -> bool {
        let (layout, bytes) = (block.layout(), &block.bytes()[..]);
        let mut last = self.last.clone();
        (0..layout.count).all(|i| {
            let (mut key, trailer) = (Vec::new(), layout.trailer(bytes, i));
            layout.append_key(bytes, i, &mut key);
            let follows = last.as_ref().is_none_or(|(last, before)| {
                order.compare_entries((last, *before), (&key, trailer)).is_lt()
            });
            last = Some((key, trailer));
            follows && has_number(self.meta, sequence_of(trailer))
        })
    }

    fn take(&mut self, block: &Block) -> Result<()> {
        let (layout, bytes) = (block.layout(), &block.bytes()[..]);
        for i in 0..layout.count {
            let (mut key, trailer) = (Vec::new(), layout.trailer(bytes, i));
            layout.append_key(bytes, i, &mut key);
            if i == 0 {
                self.end_gap(Some(&key));
            }
            (self.visit)(&key, trailer, layout.value(bytes, i))?;
            self.last = Some((key, trailer));
        }
        self.found.entries += layout.count as u64;
        Ok(())
    }

    /// Notes blocks that were missing before `next`, the next readable key.
    fn end_gap(&mut self, next: Option<&[u8]>) {
        if !std::mem::take(&mut self.open_gap) {
            // Nothing may be known of the end.
            let is_short = next.is_none() && self.found.entries < self.meta.entries;
            if !is_short || !self.found.gaps.is_empty() {
                return;
            }
        }
        let after = self.last.as_ref().map(|(key, _)| key.clone());
        self.found.gaps.push(Gap { after, before: next.map(<[u8]>::to_vec) });
    }
}
