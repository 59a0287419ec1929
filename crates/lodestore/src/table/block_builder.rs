//! Gathers the entries of one block and lays them out.

use crate::coding::{put_u32, put_u64};
use crate::key::{Kind, Trailer, kind_of, sequence_of};

use super::layout::{BLOCK_HEADER_BYTES, HEAD_BYTES_MAX, flag};

/// A key of a block of its own that is longer is moved, not copied.
const LONG_KEY_BYTES: usize = 1 << 20;

/// A block under construction. Reused from block to block.
#[derive(Debug)]
pub(super) struct BlockBuilder {
    /// Whether keys may be divided into prefix, head and suffix: only if their
    /// order is bytewise.
    divides_keys: bool,
    keys: Vec<u8>,
    key_ends: Vec<usize>,
    values: Vec<u8>,
    value_ends: Vec<usize>,
    trailers: Vec<Trailer>,
    /// Length of what all keys start with.
    prefix_bytes: usize,
    sequence_min: u64,
    sequence_max: u64,
    keys_alike: bool,
    values_alike: bool,
    unique_keys: bool,
}

impl BlockBuilder {
    pub(super) fn new(divides_keys: bool) -> BlockBuilder {
        BlockBuilder {
            divides_keys,
            keys: Vec::new(),
            key_ends: Vec::new(),
            values: Vec::new(),
            value_ends: Vec::new(),
            trailers: Vec::new(),
            prefix_bytes: 0,
            sequence_min: u64::MAX,
            sequence_max: 0,
            keys_alike: true,
            values_alike: true,
            unique_keys: true,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.trailers.is_empty()
    }

    pub(super) fn entries(&self) -> usize {
        self.trailers.len()
    }

    /// The newest entry. The block must not be empty.
    pub(super) fn last(&self) -> (&[u8], Trailer) {
        let last = self.trailers.len() - 1;
        (self.key(last), self.trailers[last])
    }

    fn key(&self, i: usize) -> &[u8] {
        let start = if i == 0 { 0 } else { self.key_ends[i - 1] };
        &self.keys[start..self.key_ends[i]]
    }

    fn value_length(&self, i: usize) -> usize {
        let start = if i == 0 { 0 } else { self.value_ends[i - 1] };
        self.value_ends[i] - start
    }

    /// About how long the block is with an entry of these lengths added.
    pub(super) fn bytes_with(&self, key_bytes: usize, value_bytes: usize) -> usize {
        let count = self.trailers.len();
        let sequence_bytes = bytes_of(self.sequence_max.saturating_sub(self.sequence_min));
        let entry = sequence_bytes
            + if self.keys_alike { 0 } else { 2 }
            + if self.values_alike { 0 } else { 2 };
        let shared = self.prefix_bytes * count.saturating_sub(1);
        BLOCK_HEADER_BYTES + self.keys.len() - shared
            + self.values.len()
            + count * entry
            + (key_bytes - self.prefix_bytes.min(key_bytes))
            + value_bytes
            + entry
    }

    /// Adds an entry after all others. `key_is_last` says that its user key is
    /// that of the last entry.
    pub(super) fn add(&mut self, key: &[u8], trailer: Trailer, value: &[u8], key_is_last: bool) {
        let count = self.trailers.len();
        if count == 0 {
            self.prefix_bytes = if self.divides_keys { key.len() } else { 0 };
        } else {
            let first = &self.keys[..self.prefix_bytes];
            if !key.starts_with(first) {
                self.prefix_bytes = crate::key::common_prefix_bytes(first, key);
            }
            self.keys_alike &= key.len() == self.key_ends[0];
            self.values_alike &= value.len() == self.value_ends[0];
            self.unique_keys &= !key_is_last;
        }
        let sequence = sequence_of(trailer);
        self.sequence_min = self.sequence_min.min(sequence);
        self.sequence_max = self.sequence_max.max(sequence);
        self.keys.extend_from_slice(key);
        self.key_ends.push(self.keys.len());
        self.values.extend_from_slice(value);
        self.value_ends.push(self.values.len());
        self.trailers.push(trailer);
    }

    /// Writes the block into `out`, replacing what is there, and starts anew.
    pub(super) fn finish(&mut self, out: &mut Vec<u8>) {
        let shape = self.shape();
        out.clear();
        self.write_header(&shape, out);
        if self.trailers.len() == 1 && self.prefix_bytes > LONG_KEY_BYTES {
            // Header, key, value: and the key is too long to be in memory twice.
            let header = std::mem::replace(out, std::mem::take(&mut self.keys));
            out.splice(..0, header);
        } else {
            out.extend_from_slice(&self.keys[..self.prefix_bytes]);
            self.write_heads(&shape, out);
            self.write_trailers(&shape, out);
            self.write_offsets(&shape, out);
            self.write_suffixes(&shape, out);
        }
        out.extend_from_slice(&self.values);
        self.clear();
    }

    /// Forgets all entries.
    pub(super) fn clear(&mut self) {
        self.keys.clear();
        self.key_ends.clear();
        self.values.clear();
        self.value_ends.clear();
        self.trailers.clear();
        self.sequence_min = u64::MAX;
        self.sequence_max = 0;
        self.keys_alike = true;
        self.values_alike = true;
        self.unique_keys = true;
    }

    fn shape(&self) -> Shape {
        let count = self.trailers.len();
        let rest_bytes = |i: usize| self.key(i).len() - self.prefix_bytes;
        let (mut rest_min, mut rest_max) = (rest_bytes(0), rest_bytes(0));
        if !self.keys_alike {
            for i in 1..count {
                rest_min = rest_min.min(rest_bytes(i));
                rest_max = rest_max.max(rest_bytes(i));
            }
        }
        let head_bytes = if self.divides_keys { rest_max.min(HEAD_BYTES_MAX) } else { 0 };
        let suffixes_alike = rest_min.saturating_sub(head_bytes) == rest_max - head_bytes;
        let mut flags = 0;
        let mut set = |condition: bool, flag: u8| flags |= if condition { flag } else { 0 };
        set(rest_min < head_bytes, flag::SHORT_HEADS);
        set(suffixes_alike, flag::SUFFIXES_FIXED);
        set(self.values_alike, flag::VALUES_FIXED);
        set(self.unique_keys, flag::UNIQUE_KEYS);
        let kind = self.trailers[0] as u8;
        set(self.trailers.iter().all(|&trailer| trailer as u8 == kind), flag::ONE_KIND);
        set(!self.trailers.iter().any(|&trailer| is_tombstone(trailer)), flag::NO_TOMBSTONES);
        set(self.keys.len().max(self.values.len()) > usize::from(u16::MAX), flag::WIDE);
        Shape {
            flags,
            head_bytes,
            sequence_bytes: bytes_of(self.sequence_max - self.sequence_min),
            suffix_bytes: if suffixes_alike { rest_max - head_bytes } else { 0 },
        }
    }

    fn write_header(&self, shape: &Shape, out: &mut Vec<u8>) {
        let kind = if shape.has(flag::ONE_KIND) { self.trailers[0] as u8 } else { 0 };
        let value_bytes = if self.values_alike { self.value_length(0) } else { 0 };
        put_u32(out, self.trailers.len() as u32);
        out.extend([shape.head_bytes as u8, shape.sequence_bytes as u8, shape.flags, kind]);
        put_u64(out, self.sequence_min);
        put_u32(out, self.prefix_bytes as u32);
        put_u32(out, shape.suffix_bytes as u32);
        put_u32(out, value_bytes as u32);
        debug_assert_eq!(out.len(), BLOCK_HEADER_BYTES);
    }

    /// What follows the prefix in key `i`.
    fn rest(&self, i: usize) -> &[u8] {
        &self.key(i)[self.prefix_bytes..]
    }

    fn write_heads(&self, shape: &Shape, out: &mut Vec<u8>) {
        for i in 0..self.trailers.len() {
            let rest = self.rest(i);
            let length = rest.len().min(shape.head_bytes);
            out.extend_from_slice(&rest[..length]);
            out.resize(out.len() + shape.head_bytes - length, 0);
        }
        if shape.has(flag::SHORT_HEADS) {
            let lengths = (0..self.trailers.len()).map(|i| self.rest(i).len());
            out.extend(lengths.map(|length| length.min(shape.head_bytes) as u8));
        }
    }

    fn write_trailers(&self, shape: &Shape, out: &mut Vec<u8>) {
        if shape.sequence_bytes > 0 {
            for &trailer in &self.trailers {
                let delta = sequence_of(trailer) - self.sequence_min;
                out.extend_from_slice(&delta.to_le_bytes()[..shape.sequence_bytes]);
            }
        }
        if !shape.has(flag::ONE_KIND) {
            out.extend(self.trailers.iter().map(|&trailer| trailer as u8));
        }
    }

    fn write_offsets(&self, shape: &Shape, out: &mut Vec<u8>) {
        let wide = shape.has(flag::WIDE);
        let mut put = |offset: usize| match wide {
            true => out.extend_from_slice(&(offset as u32).to_le_bytes()),
            false => out.extend_from_slice(&(offset as u16).to_le_bytes()),
        };
        if !shape.has(flag::SUFFIXES_FIXED) {
            let mut offset = 0;
            put(offset);
            for i in 0..self.trailers.len() {
                offset += self.rest(i).len().saturating_sub(shape.head_bytes);
                put(offset);
            }
        }
        if !self.values_alike {
            put(0);
            self.value_ends.iter().for_each(|&end| put(end));
        }
    }

    fn write_suffixes(&self, shape: &Shape, out: &mut Vec<u8>) {
        if shape.has(flag::SUFFIXES_FIXED) && shape.suffix_bytes == 0 {
            return;
        }
        for i in 0..self.trailers.len() {
            let rest = self.rest(i);
            out.extend_from_slice(&rest[shape.head_bytes.min(rest.len())..]);
        }
    }
}

/// The choices that the entries of a block leave open.
struct Shape {
    flags: u8,
    head_bytes: usize,
    sequence_bytes: usize,
    suffix_bytes: usize,
}

impl Shape {
    fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }
}

/// True for entries that say that keys are absent.
pub(super) fn is_tombstone(trailer: Trailer) -> bool {
    matches!(kind_of(trailer), Some(Kind::Delete | Kind::SingleDelete | Kind::RangeDelete))
}

/// Bytes that a number takes; none for 0.
fn bytes_of(number: u64) -> usize {
    (64 - number.leading_zeros() as usize).div_ceil(8)
}
