//! Gathers the separators of a table and writes the section that `index`
//! describes and reads.

use crate::coding::{put_u32, put_u64};
use crate::key::{Trailer, common_prefix_bytes, head};

use super::index::{NO_HEADS, SHORT_HEADS, SUFFIXES, WIDE_BLOCKS, WIDE_SUFFIXES};
use super::layout::HEAD_BYTES_MAX;

/// Gathers separators while a table is built.
#[derive(Debug, Default)]
pub(super) struct IndexBuilder {
    keys: Vec<u8>,
    key_ends: Vec<usize>,
    block_offsets: Vec<u64>,
    straddlers: Vec<(u32, Trailer)>,
}

impl IndexBuilder {
    /// Adds the block that starts at `offset`. `straddler` is the trailer of
    /// its last entry if the same user key goes on in the next block.
    pub(super) fn add(&mut self, separator: &[u8], straddler: Option<Trailer>, offset: u64) {
        if let Some(trailer) = straddler {
            self.straddlers.push((self.block_offsets.len() as u32, trailer));
        }
        self.keys.extend_from_slice(separator);
        self.key_ends.push(self.keys.len());
        self.block_offsets.push(offset);
    }

    /// Blocks so far.
    pub(super) fn blocks(&self) -> usize {
        self.block_offsets.len()
    }

    /// About how long the section will be.
    pub(super) fn bytes(&self) -> usize {
        self.keys.len() + 13 * self.blocks()
    }

    /// The separator and straddler of the newest block.
    pub(super) fn last(&self) -> (&[u8], Option<Trailer>) {
        let last = self.blocks() - 1;
        let newest = self.straddlers.last().filter(|(block, _)| *block as usize == last);
        (self.keys().last().unwrap_or_default(), newest.map(|(_, trailer)| *trailer))
    }

    /// For each block its separator, that one's trailer, and where it starts
    /// and ends; the last one ends at `end`.
    pub(super) fn entries(&self, end: u64) -> impl Iterator<Item = (&[u8], Trailer, u64, u64)> {
        let ends = self.block_offsets[1..].iter().copied().chain([end]);
        let mut straddlers = self.straddlers.iter().peekable();
        let places = self.block_offsets.iter().copied().zip(ends);
        self.keys().zip(places).enumerate().map(move |(i, (separator, (start, end)))| {
            let straddler = straddlers.next_if(|(block, _)| *block as usize == i);
            (separator, straddler.map_or(0, |(_, trailer)| *trailer), start, end)
        })
    }

    fn keys(&self) -> impl Iterator<Item = &[u8]> {
        let starts = std::iter::once(0).chain(self.key_ends.iter().copied());
        starts.zip(&self.key_ends).map(|(start, &end)| &self.keys[start..end])
    }

    /// The section; `data_end` is where the last block ends.
    pub(super) fn finish(mut self, data_end: u64, divides_keys: bool) -> Vec<u8> {
        self.block_offsets.push(data_end);
        let prefix_bytes = match (self.keys().next(), self.keys().last()) {
            (Some(first), Some(last)) if divides_keys => common_prefix_bytes(first, last),
            _ => 0,
        };
        let head_bytes = if divides_keys { HEAD_BYTES_MAX } else { 0 };
        let mut suffix_ends = vec![0u64];
        let mut suffix_end = 0;
        for key in self.keys() {
            suffix_end += (key.len() - prefix_bytes).saturating_sub(head_bytes) as u64;
            suffix_ends.push(suffix_end);
        }
        let short = self.keys().any(|key| key.len() - prefix_bytes < head_bytes);
        let wide = |offset: u64| offset > u64::from(u32::MAX);
        let flags = if short { SHORT_HEADS } else { 0 }
            | if suffix_end > 0 { SUFFIXES } else { 0 }
            | if wide(data_end) { WIDE_BLOCKS } else { 0 }
            | if wide(suffix_end) { WIDE_SUFFIXES } else { 0 }
            | if divides_keys { 0 } else { NO_HEADS };

        let mut out = Vec::with_capacity(self.bytes() + 64);
        put_u32(&mut out, self.key_ends.len() as u32);
        out.extend([flags, 0, 0, 0]);
        put_u32(&mut out, prefix_bytes as u32);
        put_u32(&mut out, self.straddlers.len() as u32);
        if let Some(first) = self.keys().next() {
            out.extend_from_slice(&first[..prefix_bytes]);
        }
        if divides_keys {
            self.keys().for_each(|key| put_u64(&mut out, head(&key[prefix_bytes..])));
        }
        if short {
            out.extend(self.keys().map(|key| (key.len() - prefix_bytes).min(8) as u8));
        }
        put_offsets(&mut out, &self.block_offsets, wide(data_end));
        if suffix_end > 0 {
            put_offsets(&mut out, &suffix_ends, wide(suffix_end));
            for key in self.keys() {
                let rest = &key[prefix_bytes..];
                out.extend_from_slice(&rest[head_bytes.min(rest.len())..]);
            }
        }
        for &(block, trailer) in &self.straddlers {
            put_u32(&mut out, block);
            put_u64(&mut out, trailer);
        }
        out
    }
}

fn put_offsets(out: &mut Vec<u8>, offsets: &[u64], wide: bool) {
    for &offset in offsets {
        match wide {
            true => put_u64(out, offset),
            false => put_u32(out, offset as u32),
        }
    }
}
