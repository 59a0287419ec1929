//! The index: for each block its place, and a separator that is not before
//! the block's last entry and before the next block's first. Resident.
//!
//! A separator stands for all versions of its key, unless the versions of one
//! user key go on in the next block; then it carries the last entry's trailer
//! (a straddler), so that an old snapshot finds its block at once.
//!
//! | offset | size | meaning |
//! |---|---|---|
//! | 0 | 4 | blocks `n` |
//! | 4 | 1 | flags: 1 short heads, 2 suffixes, 4 wide block offsets, 8 wide suffix offsets, 16 no heads |
//! | 5 | 3 | reserved |
//! | 8 | 4 | length of the prefix that all separators share, `p` |
//! | 12 | 4 | straddlers `s` |
//! | 16 | p | prefix |
//! | | 8 n | unless flag 16: heads, as little-endian numbers |
//! | | n | flag 1: how many bytes of each head are the separator's |
//! | | (4 or 8) (n + 1) | where each block starts, and where the last one ends |
//! | | (4 or 8) (n + 1) | flag 2: where each suffix starts, and where the last one ends |
//! | | | flag 2: suffixes |
//! | | 12 s | straddlers: block number 4, trailer 8 |
//!
//! A search counts smaller heads in groups of sixteen, down a tree whose every
//! level holds each sixteenth head of the level below, so that it waits for
//! memory once a level; only equal heads cost more.

use std::cmp::Ordering;

use crate::coding::Reader;
use crate::error::Undecodable;
use crate::key::{KeyOrder, Trailer, head};

use super::Checked;
use super::layout::{HEAD_BYTES_MAX, lowest_bits, partition};

pub(super) const SHORT_HEADS: u8 = 1;
pub(super) const SUFFIXES: u8 = 2;
pub(super) const WIDE_BLOCKS: u8 = 4;
pub(super) const WIDE_SUFFIXES: u8 = 8;
pub(super) const NO_HEADS: u8 = 16;
const KNOWN: u8 = 31;

/// Heads that are compared at once: two cache lines.
const GROUP: usize = 16;

/// Ascending offsets, as narrow as they can be.
#[derive(Debug)]
enum Offsets {
    Narrow(Box<[u32]>),
    Wide(Box<[u64]>),
}

impl Offsets {
    /// Reads `count` offsets; `None` if they are not there or do not ascend.
    fn decode(reader: &mut Reader<'_>, count: usize, wide: bool) -> Option<Offsets> {
        let bytes = reader.bytes(count.checked_mul(if wide { 8 } else { 4 })?)?;
        let offsets = if wide {
            let chunks = bytes.as_chunks::<8>().0;
            Offsets::Wide(chunks.iter().map(|chunk| u64::from_le_bytes(*chunk)).collect())
        } else {
            let chunks = bytes.as_chunks::<4>().0;
            Offsets::Narrow(chunks.iter().map(|chunk| u32::from_le_bytes(*chunk)).collect())
        };
        let ascending = match &offsets {
            Offsets::Narrow(offsets) => offsets.is_sorted(),
            Offsets::Wide(offsets) => offsets.is_sorted(),
        };
        ascending.then_some(offsets)
    }

    #[inline]
    fn get(&self, i: usize) -> u64 {
        match self {
            Offsets::Narrow(offsets) => u64::from(offsets[i]),
            Offsets::Wide(offsets) => offsets[i],
        }
    }

    fn bytes(&self) -> usize {
        match self {
            Offsets::Narrow(offsets) => 4 * offsets.len(),
            Offsets::Wide(offsets) => 8 * offsets.len(),
        }
    }
}

/// The index of an open table.
#[derive(Debug)]
pub(super) struct Index {
    blocks: usize,
    prefix: Box<[u8]>,
    /// Empty if the order is not bytewise.
    heads: Box<[u64]>,
    /// The last head of each full [`GROUP`] of the level below; `heads` are
    /// below the first level, and the last level is short.
    levels: Vec<Box<[u64]>>,
    /// Empty if all heads are full.
    head_lengths: Box<[u8]>,
    head_bytes: usize,
    block_offsets: Offsets,
    /// `None` if there are no suffixes.
    suffix_offsets: Option<Offsets>,
    suffixes: Box<[u8]>,
    straddlers: Box<[(u32, Trailer)]>,
}

impl Index {
    /// Decodes and validates a section. Says what is wrong.
    pub(super) fn decode(section: &[u8], order: &KeyOrder) -> Checked<Index, Undecodable> {
        let unknown = section.get(4).map_or(0, |flags| flags & !KNOWN);
        if unknown != 0 {
            return Err(Undecodable::Unknown(format!("an index with flags {unknown:#04x}")));
        }
        let index = Index::decode_parts(section).ok_or("the index's parts do not fit")?;
        if order.is_bytewise() == (index.head_bytes == 0) {
            return Err("the index is for another kind of order".into());
        }
        index.validate()?;
        Ok(index)
    }

    fn decode_parts(section: &[u8]) -> Option<Index> {
        let mut reader = Reader::new(section);
        let blocks = reader.u32()? as usize;
        let flags = reader.u8()?;
        let _reserved = reader.bytes(3)?;
        let prefix_bytes = reader.u32()? as usize;
        let straddlers = reader.u32()? as usize;
        let prefix = reader.bytes(prefix_bytes)?.into();
        let head_bytes = if flags & NO_HEADS != 0 { 0 } else { HEAD_BYTES_MAX };
        let head_chunks = reader.bytes(blocks.checked_mul(head_bytes)?)?.as_chunks::<8>().0;
        let heads: Box<[u64]> = head_chunks.iter().map(|c| u64::from_le_bytes(*c)).collect();
        let lengths = if flags & SHORT_HEADS != 0 { blocks } else { 0 };
        let head_lengths = reader.bytes(lengths)?.into();
        let block_offsets = Offsets::decode(&mut reader, blocks + 1, flags & WIDE_BLOCKS != 0)?;
        let (mut suffix_offsets, mut suffixes) = (None, &[][..]);
        if flags & SUFFIXES != 0 {
            let offsets = Offsets::decode(&mut reader, blocks + 1, flags & WIDE_SUFFIXES != 0)?;
            suffixes = reader.bytes(usize::try_from(offsets.get(blocks)).ok()?)?;
            suffix_offsets = Some(offsets);
        }
        let entries = reader.bytes(straddlers.checked_mul(12)?)?;
        let straddlers = entries.as_chunks::<12>().0.iter().map(decode_straddler).collect();
        reader.is_empty().then_some(Index {
            blocks,
            prefix,
            levels: levels(&heads),
            heads,
            head_lengths,
            head_bytes,
            block_offsets,
            suffix_offsets,
            suffixes: suffixes.into(),
            straddlers,
        })
    }

    fn validate(&self) -> Checked<()> {
        if !self.heads.is_sorted() {
            return Err("heads in the index do not ascend");
        }
        // The cache knows blocks by where they start.
        if !(0..self.blocks).all(|i| self.block_offset(i) < self.block_offset(i + 1)) {
            return Err("a block in the index is empty");
        }
        for i in 0..self.head_lengths.len() {
            let length = self.head_lengths[i] as usize;
            if length > self.head_bytes || (length < self.head_bytes && !self.suffix(i).is_empty())
            {
                return Err("a separator in the index goes on after its end");
            }
            if self.heads[i] & lowest_bits(8 * (self.head_bytes - length)) != 0 {
                return Err("a short separator in the index is not filled up with zeros");
            }
        }
        let ascending = self.straddlers.windows(2).all(|pair| pair[0].0 < pair[1].0);
        let inside = self.straddlers.last().is_none_or(|last| (last.0 as usize) < self.blocks);
        (ascending && inside).then_some(()).ok_or("straddlers in the index out of order")
    }

    pub(super) fn blocks(&self) -> usize {
        self.blocks
    }

    /// Where block `i` starts; for `blocks()`, where the last one ends.
    #[inline]
    pub(super) fn block_offset(&self, i: usize) -> u64 {
        self.block_offsets.get(i)
    }

    /// True if versions of one user key go on from one block to the next.
    pub(super) fn has_straddlers(&self) -> bool {
        !self.straddlers.is_empty()
    }

    /// True if the last user key of block `i` goes on in block `i + 1`.
    pub(super) fn straddles(&self, i: usize) -> bool {
        self.trailer(i) != 0
    }

    /// Memory that the index takes.
    pub(super) fn memory_bytes(&self) -> usize {
        8 * (self.heads.len() + self.levels.iter().map(|level| level.len()).sum::<usize>())
            + self.head_lengths.len()
            + self.block_offsets.bytes()
            + self.suffix_offsets.as_ref().map_or(0, Offsets::bytes)
            + self.suffixes.len()
            + self.prefix.len()
            + 16 * self.straddlers.len()
    }

    /// The trailer of separator `i`: 0, so that all versions of its key are
    /// not after it, unless it is a straddler.
    #[inline]
    fn trailer(&self, i: usize) -> Trailer {
        match self.straddlers.binary_search_by_key(&(i as u32), |straddler| straddler.0) {
            Ok(position) => self.straddlers[position].1,
            Err(_) => 0,
        }
    }

    #[inline]
    fn suffix(&self, i: usize) -> &[u8] {
        match &self.suffix_offsets {
            None => &[],
            Some(offsets) => &self.suffixes[offsets.get(i) as usize..offsets.get(i + 1) as usize],
        }
    }

    /// The user key of separator `i`.
    #[cfg(test)]
    pub(super) fn separator(&self, i: usize) -> Vec<u8> {
        let mut key = self.prefix.to_vec();
        if self.head_bytes > 0 {
            key.extend_from_slice(&self.heads[i].to_be_bytes()[..self.head_length(i)]);
        }
        key.extend_from_slice(self.suffix(i));
        key
    }

    #[inline]
    fn head_length(&self, i: usize) -> usize {
        self.head_lengths.get(i).map_or(self.head_bytes, |&length| length as usize)
    }

    /// The first block whose separator is not before `(user_key, trailer)`,
    /// that is, the only one that can hold the first entry that is not before
    /// it; `None` if all blocks are before.
    #[inline]
    pub(super) fn find(&self, key: &[u8], trailer: Trailer, order: &KeyOrder) -> Option<usize> {
        let found = match order {
            KeyOrder::Bytewise => self.find_bytewise(key, trailer),
            KeyOrder::Custom(comparator) => partition(0, self.blocks, |i| {
                let by_key = comparator.compare(self.suffix(i), key);
                by_key.then_with(|| trailer.cmp(&self.trailer(i))).is_lt()
            }),
        };
        (found < self.blocks).then_some(found)
    }

    #[inline]
    fn find_bytewise(&self, key: &[u8], trailer: Trailer) -> usize {
        let Some(rest) = key.strip_prefix(&*self.prefix) else {
            return if key < &*self.prefix { 0 } else { self.blocks };
        };
        let head = head(rest);
        let low = self.first_head_not_below(head);
        let mut high = low;
        while high < self.blocks && self.heads[high] == head {
            high += 1;
            if high - low == 8 {
                high = partition(high, self.blocks, |i| self.heads[i] <= head);
                break;
            }
        }
        partition(low, high, |i| {
            let by_key = self.compare_tied(i, rest);
            by_key.then_with(|| trailer.cmp(&self.trailer(i))).is_lt()
        })
    }

    /// The first block whose separator's head is at least `head`.
    #[inline]
    fn first_head_not_below(&self, head: u64) -> usize {
        let mut found = 0;
        for level in self.levels.iter().rev() {
            found = first_in_group(level, found, head);
        }
        first_in_group(&self.heads, found, head)
    }

    /// Compares separator `i`, less the prefix, with `rest`, whose head is
    /// equal.
    fn compare_tied(&self, i: usize, rest: &[u8]) -> Ordering {
        let head_length = self.head_length(i);
        if head_length < HEAD_BYTES_MAX || rest.len() < HEAD_BYTES_MAX {
            // The shorter one is a prefix of the other.
            return (head_length + self.suffix(i).len()).cmp(&rest.len());
        }
        self.suffix(i).cmp(&rest[HEAD_BYTES_MAX..])
    }
}

/// The levels above `heads`.
fn levels(heads: &[u64]) -> Vec<Box<[u64]>> {
    let mut levels: Vec<Box<[u64]>> = Vec::new();
    loop {
        let below = levels.last().map_or(heads, |level| level);
        if below.len() < GROUP {
            return levels;
        }
        let above = below.chunks_exact(GROUP).map(|group| group[GROUP - 1]).collect();
        levels.push(above);
    }
}

/// The first head of `level` that is not below `head`, given that it is in
/// this group or the first of the next.
#[inline]
fn first_in_group(level: &[u64], group: usize, head: u64) -> usize {
    let start = group * GROUP;
    match level[start..].first_chunk::<GROUP>() {
        Some(full) => {
            // Four steps without a branch that depends on the keys.
            let mut found = 0;
            for half in [GROUP / 2, GROUP / 4, GROUP / 8, GROUP / 16] {
                let below = full[found + half - 1] < head;
                found = std::hint::select_unpredictable(below, found + half, found);
            }
            start + found + usize::from(full[found] < head)
        }
        None => start + level[start..].iter().filter(|&&other| other < head).count(),
    }
}

fn decode_straddler(bytes: &[u8; 12]) -> (u32, Trailer) {
    let (block, trailer) = bytes.split_at(4);
    let block = u32::from_le_bytes(block.try_into().expect("four bytes"));
    (block, u64::from_le_bytes(trailer.try_into().expect("eight bytes")))
}

#[cfg(test)]
mod tests {
    use super::super::index_builder::IndexBuilder;
    use super::*;
    use crate::key::TRAILER_NEWEST;

    fn index(separators: &[(&[u8], Option<Trailer>)]) -> Index {
        let mut builder = IndexBuilder::default();
        for (i, (key, straddler)) in separators.iter().enumerate() {
            builder.add(key, *straddler, 32 + 100 * i as u64);
        }
        let section = builder.finish(32 + 100 * separators.len() as u64, true);
        Index::decode(&section, &KeyOrder::Bytewise).unwrap()
    }

    /// Every key finds the first separator that is not before it.
    #[test]
    fn search_agrees_with_a_linear_one() {
        for count in [0, 1, 2, 15, 16, 17, 33, 300] {
            let keys: Vec<Vec<u8>> = (0..count)
                .map(|i: usize| match i % 3 {
                    0 => format!("p{:05}", i / 3 * 3).into_bytes(),
                    1 => format!("p{:05}-and-a-long-rest", i / 3 * 3).into_bytes(),
                    _ => format!("p{:05}-and-a-long-tail", i / 3 * 3).into_bytes(),
                })
                .collect();
            let separators: Vec<_> = keys.iter().map(|key| (&key[..], None)).collect();
            let index = index(&separators);
            let mut probes: Vec<Vec<u8>> = keys.clone();
            probes.extend(keys.iter().map(|key| key[..key.len() - 1].to_vec()));
            probes.extend(keys.iter().map(|key| [key, &b"\0"[..]].concat()));
            probes.extend([b"".to_vec(), b"p".to_vec(), b"o".to_vec(), b"q".to_vec()]);
            for probe in probes {
                let expected = keys.iter().position(|key| *key >= probe);
                for trailer in [0, TRAILER_NEWEST] {
                    assert_eq!(index.find(&probe, trailer, &KeyOrder::Bytewise), expected);
                }
            }
            assert!((0..count).all(|i| index.separator(i) == keys[i]));
        }
    }

    /// A snapshot finds the block of its version among many of one key.
    #[test]
    fn straddling_versions_are_told_apart() {
        let separators: Vec<_> = (0..40u64).map(|i| (&b"key"[..], Some(100 - i))).collect();
        let index = index(&separators);
        let find = |trailer| index.find(b"key", trailer, &KeyOrder::Bytewise);
        assert_eq!(find(TRAILER_NEWEST), Some(0));
        assert_eq!(find(100), Some(0));
        assert_eq!(find(99), Some(1));
        assert_eq!(find(61), Some(39));
        assert_eq!(find(60), None);
        assert!(index.straddles(3) && index.has_straddlers());
    }

    /// Any prefix of a section, or a section with a byte more, is refused.
    #[test]
    fn truncated_sections_are_refused() {
        let mut builder = IndexBuilder::default();
        builder.add(b"abcdefghijkl", Some(7), 32);
        builder.add(b"abd", None, 100);
        let section = builder.finish(150, true);
        for length in 0..section.len() {
            assert!(Index::decode(&section[..length], &KeyOrder::Bytewise).is_err());
        }
        let longer = [&section[..], &[0]].concat();
        assert!(Index::decode(&longer, &KeyOrder::Bytewise).is_err());
    }

    /// Flags that are not known may be anything; reserved bytes mean nothing yet.
    #[test]
    fn unknown_flags_are_no_damage() {
        let mut builder = IndexBuilder::default();
        builder.add(b"key", None, 32);
        let mut section = builder.finish(150, true);
        section[7] = 9;
        assert!(Index::decode(&section, &KeyOrder::Bytewise).is_ok());
        section[4] |= 0x40;
        let refused = Index::decode(&section, &KeyOrder::Bytewise).unwrap_err();
        assert_eq!(refused, Undecodable::Unknown("an index with flags 0x40".to_string()));
    }

    /// Blocks cost no more memory than the goal for fixed keys.
    #[test]
    fn index_is_compact() {
        let keys: Vec<Vec<u8>> = (0..16_000u32).map(|i| i.to_be_bytes().to_vec()).collect();
        let separators: Vec<_> = keys.iter().map(|key| (&key[..], None)).collect();
        assert!(index(&separators).memory_bytes() <= 14 * 16_000);
    }
}
