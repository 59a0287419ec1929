//! Verification: every byte is read again from the file, and everything that
//! the table says of itself is compared with its entries.

use crate::cache::BlockKind;
use crate::error::{Error, Result, Undecodable};
use crate::key::{InternalKey, KeyOrder, Kind, Trailer, hash, kind_of, sequence_of};
use crate::leveldb::filter::Filters;
use crate::prefix::prefix_hash;

use super::Checked;
use super::block::Block;
use super::block_builder::is_tombstone;
use super::codec::{self, stored_checksum};
use super::directory::Directory;
use super::filter::{self, Filter};
use super::format::{self, Footer, HEADER_BYTES, Witness, tag};
use super::layout::{SLACK_BYTES, flag};
use super::locator::Locator;
use super::properties::Properties;
use super::readahead::{Direction, Readahead};
use super::reader::{BlockRef, Origin, ReadContext, Table, check_header};

/// Fill is read in pieces of this length.
const FILL_READ_BYTES: u64 = 64 << 10;

/// What a verified table holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct TableCounts {
    pub(crate) blocks: u64,
    pub(crate) entries: u64,
    pub(crate) tombstones: u64,
    /// Operands among the entries.
    pub(crate) merges: u64,
    /// Filters, or parts of one, of a kind that is not known: nobody asks them.
    pub(crate) unknown_filters: u64,
    /// Length of the file.
    pub(crate) bytes: u64,
}

impl Table {
    /// Reads every byte of the file, past the cache, and checks all checksums,
    /// the order of entries, index, filter and counts.
    pub(crate) fn verify(&self, context: &ReadContext) -> Result<TableCounts> {
        let bytes = self.file.length().map_err(|e| Error::io(&self.path, "read length of", e))?;
        let (mut witness, mut walk) = (Witness::new(), Walk::default());
        match &self.origin {
            Origin::Native { footer, .. } => {
                check_header(&*self.file, self.id, &self.path)?;
                if Footer::read(&*self.file, bytes, &self.path)? != *footer {
                    return Err(self.wrong(footer.offset, "the footer has changed since opening"));
                }
                self.verify_blocks(&mut walk, &mut witness, context)?;
                self.verify_partitions(&mut walk, &mut witness)?;
                self.verify_sections(footer, &mut walk, &mut witness)?;
                if witness.value() != footer.witness {
                    return Err(self.wrong(footer.offset, "the file's checksum is wrong"));
                }
                self.verify_counts(footer, &walk)?;
            }
            Origin::LevelDb => {
                self.verify_blocks(&mut walk, &mut witness, context)?;
                self.verify_bounds(&walk)?;
            }
        }
        let Properties { blocks, entries, tombstones, .. } = walk.found;
        let Walk { merges, unknown_filters, .. } = walk;
        Ok(TableCounts { blocks, entries, tombstones, merges, unknown_filters, bytes })
    }

    fn verify_blocks(
        &self,
        walk: &mut Walk,
        witness: &mut Witness,
        context: &ReadContext,
    ) -> Result<()> {
        let (mut readahead, mut locator) = (Readahead::default(), Locator::default());
        for index in 0..self.blocks() {
            let wanted = locator.locate(self, index, context)?;
            let stored = readahead.take(self, &locator, wanted, Direction::Forward, context)?;
            witness.add(stored_checksum(stored).unwrap_or(0));
            let block = self.decode_block(wanted, stored)?;
            self.verify_block(wanted, &block, walk, context)?;
        }
        Ok(())
    }

    /// Checks that what was walked lies within what the manifest says.
    fn verify_bounds(&self, walk: &Walk) -> Result<()> {
        let (stated, found) = (&self.properties, &walk.found);
        let largest = InternalKey::behind(&walk.last_key, walk.last_trailer, &self.order);
        let numbers = stated.sequence_min..=stated.sequence_max;
        let is_within =
            numbers.contains(&found.sequence_min) && numbers.contains(&found.sequence_max);
        if (&found.smallest, &largest) == (&stated.smallest, &stated.largest) && is_within {
            return Ok(());
        }
        let what = format!(
            "entries from {:?} to {largest:?}, but the manifest has {:?} to {:?}",
            found.smallest, stated.smallest, stated.largest
        );
        Err(self.wrong(0, &what))
    }

    fn wrong(&self, offset: u64, what: &str) -> Error {
        Error::corruption(&self.path, offset, what)
    }

    fn verify_block(
        &self,
        wanted: BlockRef,
        block: &Block,
        walk: &mut Walk,
        context: &ReadContext,
    ) -> Result<()> {
        let (layout, bytes) = (block.layout(), &block.bytes()[..]);
        let wrong = |what| self.wrong(wanted.place.offset, what);
        let (mut unique, mut no_tombstones) = (true, true);
        for i in 0..layout.count {
            walk.key.clear();
            layout.append_key(bytes, i, &mut walk.key);
            let trailer = layout.trailer(bytes, i);
            if walk.locator.find(self, &walk.key, trailer, context)? != Some(wanted.index) {
                return Err(wrong("an entry that the index does not find"));
            }
            if self.denies(wanted, walk, context)? {
                return Err(wrong("an entry that the filter denies"));
            }
            let same_key =
                walk.step(trailer, layout.value(bytes, i), &self.order).map_err(wrong)?;
            unique &= i == 0 || !same_key;
            no_tombstones &= !is_tombstone(trailer);
        }
        walk.found.blocks += 1;
        let claims_unique = layout.flags & flag::UNIQUE_KEYS != 0;
        let claims_no_tombstones = layout.flags & flag::NO_TOMBSTONES != 0;
        if claims_unique != unique || claims_no_tombstones != no_tombstones {
            return Err(wrong("a block whose flags are not true"));
        }
        Ok(())
    }

    /// True if the filter for block `block` denies the key of the walk, or its
    /// prefix.
    fn denies(&self, block: BlockRef, walk: &mut Walk, context: &ReadContext) -> Result<bool> {
        let prefix = self.prefix_extractor.prefix_of(&walk.key).map(prefix_hash);
        let mut hashes = [hash(&walk.key)].into_iter().chain(prefix);
        let partitions = match &self.directory {
            Directory::Resident { filter, .. } => {
                let denied = |filter: &Filter| hashes.any(|hash| !filter.may_contain(hash));
                return Ok(filter.as_ref().is_some_and(denied));
            }
            Directory::Foreign { filters, .. } => {
                let denied = |of: &Filters| !of.may_contain(block.place.offset, &walk.key);
                return Ok(filters.as_ref().is_some_and(denied));
            }
            Directory::Partitioned(partitions) => partitions,
        };
        let Some(wanted) = partitions.filter_ref(partitions.of_block(block.index)) else {
            return Ok(false);
        };
        if walk.filter.as_ref().is_none_or(|filter| filter.index() != wanted.index) {
            walk.filter = Some(self.read_block(wanted, context)?);
        }
        let filter = walk.filter.as_ref().expect("it was read");
        Ok(hashes.any(|hash| !filter::may_contain(filter.bytes(), hash)))
    }

    /// Reads every partition of filter and index again, and doubts it.
    fn verify_partitions(&self, walk: &mut Walk, witness: &mut Witness) -> Result<()> {
        let Directory::Partitioned(partitions) = &self.directory else { return Ok(()) };
        let filters = (0..partitions.count()).filter_map(|p| partitions.filter_ref(p));
        let indexes = (0..partitions.count()).map(|p| partitions.index_ref(p));
        for wanted in filters.chain(indexes) {
            let offset = wanted.place.offset;
            let mut stored = vec![0; wanted.place.stored_bytes];
            format::read_at(&*self.file, offset, &mut stored, &self.path)?;
            witness.add(codec::stored_checksum(&stored).unwrap_or(0));
            let at = |undecodable: Undecodable| undecodable.at(&self.path, offset);
            let bytes = self.opened_block(wanted, &stored).map_err(at)?;
            match wanted.kind {
                BlockKind::Filter => {
                    self.verify_filter(offset, &bytes[..bytes.len() - SLACK_BYTES], walk)?
                }
                _ => drop(self.validated(wanted, bytes).map_err(at)?),
            }
        }
        Ok(())
    }

    /// Checks that the sections' checksums are right and that nothing but zeros
    /// lies between blocks, sections and footer.
    fn verify_sections(
        &self,
        footer: &Footer,
        walk: &mut Walk,
        witness: &mut Witness,
    ) -> Result<()> {
        let mut end = self.directory.end().max(HEADER_BYTES as u64);
        for section in &footer.sections {
            self.verify_fill(end, section.offset)?;
            end = section.offset + section.length;
            witness.add(section.checksum);
            let bytes = format::read_section(&*self.file, section, self.id, &self.path)?;
            if section.tag == tag::FILTER {
                self.verify_filter(section.offset, &bytes, walk)?;
            }
        }
        self.verify_fill(end, footer.offset)
    }

    /// Checks what lies between two parts of the table.
    fn verify_fill(&self, start: u64, end: u64) -> Result<()> {
        let mut at = start;
        while at < end {
            let mut bytes = vec![0; (end - at).min(FILL_READ_BYTES) as usize];
            format::read_at(&*self.file, at, &mut bytes, &self.path)?;
            if let Some(place) = bytes.iter().position(|&byte| byte != 0) {
                let what = "bytes that belong to no part of the table";
                return Err(self.wrong(at + place as u64, what));
            }
            at += bytes.len() as u64;
        }
        match start > end {
            true => Err(self.wrong(end, "parts of the table that overlap")),
            false => Ok(()),
        }
    }

    /// Checks a filter; one of an unknown kind is counted.
    fn verify_filter(&self, offset: u64, bytes: &[u8], walk: &mut Walk) -> Result<()> {
        match filter::check(bytes) {
            Err(Undecodable::Corrupt(what)) => Err(self.wrong(offset, &what)),
            Err(Undecodable::Unknown(_)) => {
                walk.unknown_filters += 1;
                Ok(())
            }
            Ok(()) => Ok(()),
        }
    }

    fn verify_counts(&self, footer: &Footer, walk: &Walk) -> Result<()> {
        let stated = &self.properties;
        let mut found = Properties {
            order_name: stated.order_name.clone(),
            block_bytes: stated.block_bytes,
            codec: stated.codec,
            prefix_extractor: stated.prefix_extractor.clone(),
            family: stated.family.clone(),
            largest: InternalKey::behind(&walk.last_key, walk.last_trailer, &self.order),
            ..walk.found.clone()
        };
        if found.entries == 0 && !self.range_deletes().is_empty() {
            found.sequence_min = u64::MAX;
        }
        found.add_range_deletes(self.range_deletes(), &self.order);
        if self.sequence_override.is_some() {
            // What is in an ingested table has another number than it states.
            found.sequence_min = stated.sequence_min;
            found.sequence_max = stated.sequence_max;
            found.smallest.trailer = stated.smallest.trailer;
            found.largest.trailer = stated.largest.trailer;
        }
        if found == *stated {
            return Ok(());
        }
        let what = format!("entries give {found:?}, but the table states {stated:?}");
        Err(self.wrong(footer.offset, &what))
    }
}

/// What the entries so far amount to.
#[derive(Default)]
struct Walk {
    key: Vec<u8>,
    last_key: Vec<u8>,
    last_trailer: Trailer,
    found: Properties,
    merges: u64,
    unknown_filters: u64,
    /// Where the index is asked for every entry.
    locator: Locator,
    /// The part of the filter that knows the block here.
    filter: Option<Block>,
}

impl Walk {
    /// Counts the entry whose key is in `key`; true if its user key is that
    /// of the one before.
    fn step(&mut self, trailer: Trailer, value: &[u8], order: &KeyOrder) -> Checked<bool> {
        let found = &mut self.found;
        let sequence = sequence_of(trailer);
        let mut same_key = false;
        if found.entries == 0 {
            found.smallest = InternalKey::before(&self.key, trailer, order);
            (found.sequence_min, found.sequence_max) = (sequence, sequence);
        } else {
            let by_key = order.compare(&self.last_key, &self.key);
            same_key = by_key.is_eq();
            if by_key.then_with(|| trailer.cmp(&self.last_trailer)).is_ge() {
                return Err("entries out of order");
            }
        }
        found.entries += 1;
        found.tombstones += u64::from(is_tombstone(trailer));
        self.merges += u64::from(kind_of(trailer) == Some(Kind::Merge));
        found.key_bytes += self.key.len() as u64;
        found.value_bytes += value.len() as u64;
        found.sequence_min = found.sequence_min.min(sequence);
        found.sequence_max = found.sequence_max.max(sequence);
        std::mem::swap(&mut self.key, &mut self.last_key);
        self.last_trailer = trailer;
        Ok(same_key)
    }
}
