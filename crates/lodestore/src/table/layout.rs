//! The inside of a decoded block: a header, then one array for each thing
//! that entries have, so that entry `i` is found without reading another.
//!
//! | offset | size | meaning |
//! |---|---|---|
//! | 0 | 4 | entries `n`, at least 1 |
//! | 4 | 1 | head bytes `h`, 0 to 8 |
//! | 5 | 1 | sequence bytes `w`, 0 to 7 |
//! | 6 | 1 | flags |
//! | 7 | 1 | kind of all entries, if flag 8 is set; else 0 |
//! | 8 | 8 | lowest sequence number |
//! | 16 | 4 | length of the prefix that all user keys share, `p` |
//! | 20 | 4 | length of every suffix, if flag 2 is set; else 0 |
//! | 24 | 4 | length of every value, if flag 4 is set; else 0 |
//! | 28 | p | prefix |
//! | | n h | heads: the first `h` key bytes after the prefix, filled up with zeros |
//! | | n | flag 1: how many bytes of each head are the key's |
//! | | n w | sequence number less the lowest |
//! | | n | unless flag 8: kinds |
//! | | (n + 1) o | unless flag 2: where suffix i starts; `o` is 4 with flag 64, else 2 |
//! | | (n + 1) o | unless flag 4: where value i starts |
//! | | | suffixes: what follows the heads |
//! | | | values, up to the end |
//!
//! Flags: 1 short heads, 2 suffixes of one length, 4 values of one length,
//! 8 one kind, 16 no user key twice, 32 no tombstone, 64 wide offsets.
//!
//! In memory a block has [`SLACK_BYTES`] bytes of no meaning behind it, so
//! that eight bytes can be loaded from any position within, and decoders may
//! write a step too much.

use std::cmp::Ordering;

use crate::error::Undecodable;
use crate::key::{KeyOrder, Kind, SEQUENCE_MAX, SequenceNumber, Trailer, head};
use crate::unpack;

use super::Checked;

pub(super) const BLOCK_HEADER_BYTES: usize = 28;
pub(super) const SLACK_BYTES: usize = unpack::SLACK_BYTES;
pub(super) const HEAD_BYTES_MAX: usize = 8;
/// Fewer zeros than this may stand behind the values.
const FILL_BYTES_END: usize = 4096;

pub(super) mod flag {
    pub(in crate::table) const SHORT_HEADS: u8 = 1;
    pub(in crate::table) const SUFFIXES_FIXED: u8 = 2;
    pub(in crate::table) const VALUES_FIXED: u8 = 4;
    pub(in crate::table) const ONE_KIND: u8 = 8;
    pub(in crate::table) const UNIQUE_KEYS: u8 = 16;
    pub(in crate::table) const NO_TOMBSTONES: u8 = 32;
    pub(in crate::table) const WIDE: u8 = 64;
    pub(in crate::table) const KNOWN: u8 = 127;
}

/// Where each part of one block lies. The methods take the block's bytes,
/// slack included; entries are numbered from 0.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Layout {
    pub(super) count: usize,
    pub(super) flags: u8,
    kind: u8,
    pub(super) head_bytes: usize,
    pub(super) sequence_bytes: usize,
    sequence_min: SequenceNumber,
    pub(super) prefix_bytes: usize,
    suffix_bytes: usize,
    value_bytes: usize,
    heads_at: usize,
    short_heads_at: usize,
    sequences_at: usize,
    kinds_at: usize,
    suffix_offsets_at: usize,
    value_offsets_at: usize,
    suffixes_at: usize,
    values_at: usize,
}

#[inline(always)]
fn load_u64(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

#[inline(always)]
fn load_u32(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

impl Layout {
    /// The layout that the header of `bytes` describes. For a block that was
    /// [validated](Layout::validate) this is all there is to check.
    #[inline]
    pub(super) fn parse(bytes: &[u8]) -> Option<Layout> {
        let raw_bytes = bytes.len().checked_sub(SLACK_BYTES)?;
        let header: &[u8; BLOCK_HEADER_BYTES] = bytes[..raw_bytes].first_chunk()?;
        let count = load_u32(header, 0) as usize;
        let (head_bytes, sequence_bytes) = (header[4] as usize, header[5] as usize);
        let flags = header[6];
        if count == 0 || head_bytes > 8 || sequence_bytes > 7 || flags & !flag::KNOWN != 0 {
            return None;
        }
        // Entries that differ have bytes of their own; four billion that take
        // none would keep a reader busy for ever.
        if count > raw_bytes {
            return None;
        }
        let mut layout = Layout {
            count,
            flags,
            kind: header[7],
            head_bytes,
            sequence_bytes,
            sequence_min: load_u64(header, 8),
            prefix_bytes: load_u32(header, 16) as usize,
            suffix_bytes: load_u32(header, 20) as usize,
            value_bytes: load_u32(header, 24) as usize,
            ..Layout::default()
        };
        layout.place(bytes, raw_bytes).then_some(layout)
    }

    /// Computes where the parts lie; false if they don't come to the block's length.
    #[inline]
    fn place(&mut self, bytes: &[u8], raw_bytes: usize) -> bool {
        let count = self.count;
        let has = |flag: u8| usize::from(self.flags & flag != 0);
        let lacks = |flag: u8| 1 - has(flag);
        let offsets_bytes = (count + 1) * (2 + 2 * has(flag::WIDE));
        // Lengths are 32 bits and widths at most 8: no sum here overflows.
        let mut at = BLOCK_HEADER_BYTES + self.prefix_bytes;
        self.heads_at = at;
        at += count * self.head_bytes;
        self.short_heads_at = at;
        at += has(flag::SHORT_HEADS) * count;
        self.sequences_at = at;
        at += count * self.sequence_bytes;
        self.kinds_at = at;
        at += lacks(flag::ONE_KIND) * count;
        self.suffix_offsets_at = at;
        at += lacks(flag::SUFFIXES_FIXED) * offsets_bytes;
        self.value_offsets_at = at;
        at += lacks(flag::VALUES_FIXED) * offsets_bytes;
        self.suffixes_at = at;
        if at > raw_bytes {
            return false;
        }
        let suffixes_bytes = if self.flags & flag::SUFFIXES_FIXED != 0 {
            count.checked_mul(self.suffix_bytes)
        } else {
            Some(self.offset(bytes, self.suffix_offsets_at, count))
        };
        let Some(values_at) = suffixes_bytes.and_then(|length| at.checked_add(length)) else {
            return false;
        };
        self.values_at = values_at;
        let Some(end) = self.values_end(bytes) else { return false };
        raw_bytes.wrapping_sub(end) < FILL_BYTES_END
    }

    /// Where the values end and the zeros begin; `None` if nowhere.
    #[inline(always)]
    fn values_end(&self, bytes: &[u8]) -> Option<usize> {
        let values_bytes = if self.flags & flag::VALUES_FIXED != 0 {
            self.count.checked_mul(self.value_bytes)
        } else {
            Some(self.offset(bytes, self.value_offsets_at, self.count))
        };
        self.values_at.checked_add(values_bytes?)
    }

    /// Why [`Layout::parse`] gives nothing for `bytes`.
    #[cold]
    pub(super) fn refusal(bytes: &[u8]) -> Undecodable {
        let raw = &bytes[..bytes.len() - SLACK_BYTES];
        let flags = raw.first_chunk().map_or(0, |header: &[u8; BLOCK_HEADER_BYTES]| header[6]);
        match flags & !flag::KNOWN {
            0 => "a block whose parts do not fit".into(),
            unknown => Undecodable::Unknown(format!("a block with flags {unknown:#04x}")),
        }
    }

    /// Checks what `parse` does not: every entry. Says what is wrong.
    pub(super) fn validate(&self, bytes: &[u8], order: &KeyOrder) -> Checked<(), Undecodable> {
        if !order.is_bytewise() && (self.head_bytes != 0 || self.prefix_bytes != 0) {
            return Err("a block with divided keys under an order that is not bytewise".into());
        }
        let offsets = [
            (flag::SUFFIXES_FIXED, self.suffix_offsets_at),
            (flag::VALUES_FIXED, self.value_offsets_at),
        ];
        for (fixed, at) in offsets {
            if self.flags & fixed == 0 && !self.offsets_ascend(bytes, at) {
                return Err("offsets in a block that do not ascend".into());
            }
        }
        let end = self.values_end(bytes).expect("it was computed before");
        if bytes[end..bytes.len() - SLACK_BYTES].iter().any(|&byte| byte != 0) {
            return Err("a block that is filled up with something".into());
        }
        self.validate_short_heads(bytes)?;
        self.validate_trailers(bytes)
    }

    fn offsets_ascend(&self, bytes: &[u8], at: usize) -> bool {
        let mut sound = self.offset(bytes, at, 0) == 0;
        if self.flags & flag::WIDE != 0 {
            let offsets = bytes[at..at + 4 * (self.count + 1)].as_chunks::<4>().0;
            for pair in offsets.windows(2) {
                sound &= u32::from_le_bytes(pair[0]) <= u32::from_le_bytes(pair[1]);
            }
        } else {
            let offsets = bytes[at..at + 2 * (self.count + 1)].as_chunks::<2>().0;
            for pair in offsets.windows(2) {
                sound &= u16::from_le_bytes(pair[0]) <= u16::from_le_bytes(pair[1]);
            }
        }
        sound
    }

    fn validate_short_heads(&self, bytes: &[u8]) -> Checked<()> {
        if self.flags & flag::SHORT_HEADS == 0 {
            return Ok(());
        }
        for i in 0..self.count {
            let length = self.head_length(bytes, i);
            let has_suffix = !self.suffix(bytes, i).is_empty();
            if length > self.head_bytes || (length < self.head_bytes && has_suffix) {
                return Err("a key in a block that goes on after its end");
            }
            // Searches compare whole heads.
            if self.head(bytes, i) & lowest_bits(8 * (self.head_bytes - length)) != 0 {
                return Err("a short key in a block that is not filled up with zeros");
            }
        }
        Ok(())
    }

    fn validate_trailers(&self, bytes: &[u8]) -> Checked<(), Undecodable> {
        let is_known =
            |kind: u8| Kind::from_byte(kind).is_some_and(|kind| kind != Kind::RangeDelete);
        let kinds = match self.flags & flag::ONE_KIND {
            0 => &bytes[self.kinds_at..self.kinds_at + self.count],
            _ => std::slice::from_ref(&self.kind),
        };
        if let Some(&kind) = kinds.iter().find(|kind| !is_known(**kind)) {
            return Err(match Kind::from_byte(kind) {
                Some(_) => "a range delete among entries: these have a section".into(),
                None => Undecodable::Unknown(format!("an entry of kind {kind:#04x}")),
            });
        }
        // The largest delta is below 2^56, so that no sum overflows.
        let largest = match self.sequence_bytes {
            0 => 0,
            _ => (0..self.count).map(|i| self.sequence_delta(bytes, i)).max().unwrap_or(0),
        };
        let in_range = self.sequence_min <= SEQUENCE_MAX - largest;
        Ok(in_range.then_some(()).ok_or("a sequence number out of range")?)
    }

    /// Makes `sequence` the sequence number of every entry.
    pub(super) fn override_sequences(&self, bytes: &mut [u8], sequence: SequenceNumber) {
        bytes[8..16].copy_from_slice(&sequence.to_le_bytes());
        bytes[self.sequences_at..self.kinds_at].fill(0);
    }

    #[inline(always)]
    fn offset(&self, bytes: &[u8], at: usize, i: usize) -> usize {
        if self.flags & flag::WIDE != 0 {
            load_u32(bytes, at + 4 * i) as usize
        } else {
            usize::from(load_u32(bytes, at + 2 * i) as u16)
        }
    }

    /// Offsets `i` and `i + 1`.
    #[inline(always)]
    fn offset_pair(&self, bytes: &[u8], at: usize, i: usize) -> (usize, usize) {
        if self.flags & flag::WIDE != 0 {
            let both = load_u64(bytes, at + 4 * i);
            (both as u32 as usize, (both >> 32) as usize)
        } else {
            let both = load_u32(bytes, at + 2 * i);
            (both as u16 as usize, (both >> 16) as usize)
        }
    }

    /// What all user keys of the block start with.
    #[inline]
    pub(super) fn prefix<'b>(&self, bytes: &'b [u8]) -> &'b [u8] {
        &bytes[BLOCK_HEADER_BYTES..self.heads_at]
    }

    /// Eight bytes of which the first `head_bytes` are the head of entry `i`.
    #[inline(always)]
    pub(super) fn head_and_more(&self, bytes: &[u8], i: usize) -> [u8; 8] {
        let at = self.heads_at + i * self.head_bytes;
        bytes[at..at + 8].try_into().expect("eight bytes")
    }

    /// The head of entry `i` as a number that compares as the bytes do.
    #[inline(always)]
    fn head(&self, bytes: &[u8], i: usize) -> u64 {
        self.narrow(u64::from_be_bytes(self.head_and_more(bytes, i)))
    }

    /// Of an eight-byte head, what a head of this block has of it.
    #[inline(always)]
    fn narrow(&self, head: u64) -> u64 {
        head.unbounded_shr(64 - 8 * self.head_bytes as u32)
    }

    /// How many bytes of the head of entry `i` are its key's.
    #[inline(always)]
    pub(super) fn head_length(&self, bytes: &[u8], i: usize) -> usize {
        if self.flags & flag::SHORT_HEADS != 0 {
            bytes[self.short_heads_at + i] as usize
        } else {
            self.head_bytes
        }
    }

    /// What follows the head in the key of entry `i`.
    #[inline(always)]
    pub(super) fn suffix<'b>(&self, bytes: &'b [u8], i: usize) -> &'b [u8] {
        if self.flags & flag::SUFFIXES_FIXED != 0 {
            let at = self.suffixes_at + i * self.suffix_bytes;
            return &bytes[at..at + self.suffix_bytes];
        }
        let (start, end) = self.offset_pair(bytes, self.suffix_offsets_at, i);
        &bytes[self.suffixes_at + start..self.suffixes_at + end]
    }

    /// The value of entry `i`.
    #[inline(always)]
    pub(super) fn value<'b>(&self, bytes: &'b [u8], i: usize) -> &'b [u8] {
        if self.flags & flag::VALUES_FIXED != 0 {
            let at = self.values_at + i * self.value_bytes;
            return &bytes[at..at + self.value_bytes];
        }
        let (start, end) = self.offset_pair(bytes, self.value_offsets_at, i);
        &bytes[self.values_at + start..self.values_at + end]
    }

    #[inline(always)]
    fn sequence_delta(&self, bytes: &[u8], i: usize) -> u64 {
        let mask = (1 << (8 * self.sequence_bytes)) - 1;
        load_u64(bytes, self.sequences_at + i * self.sequence_bytes) & mask
    }

    /// Sequence number and kind of entry `i`.
    #[inline(always)]
    pub(super) fn trailer(&self, bytes: &[u8], i: usize) -> Trailer {
        let kind = match self.flags & flag::ONE_KIND {
            0 => bytes[self.kinds_at + i],
            _ => self.kind,
        };
        (self.sequence_min + self.sequence_delta(bytes, i)) << 8 | u64::from(kind)
    }

    /// The first entry that is not before `(user_key, trailer)`, `count` if
    /// all are; and whether it is a version of `user_key`.
    #[inline]
    pub(super) fn find(
        &self,
        bytes: &[u8],
        user_key: &[u8],
        trailer: Trailer,
        order: &KeyOrder,
    ) -> (usize, bool) {
        match order {
            KeyOrder::Bytewise => self.find_bytewise(bytes, user_key, trailer),
            KeyOrder::Custom(comparator) => {
                let compare = |i| comparator.compare(self.suffix(bytes, i), user_key);
                let found = partition(0, self.count, |i| {
                    compare(i).then_with(|| trailer.cmp(&self.trailer(bytes, i))).is_lt()
                });
                (found, found < self.count && compare(found).is_eq())
            }
        }
    }

    #[inline]
    fn find_bytewise(&self, bytes: &[u8], user_key: &[u8], trailer: Trailer) -> (usize, bool) {
        let prefix = self.prefix(bytes);
        let Some(rest) = user_key.strip_prefix(prefix) else {
            return (if user_key < prefix { 0 } else { self.count }, false);
        };
        let head = self.narrow(head(rest));
        let low = self.first_head_not_below(bytes, head);
        let tied = |i: usize| i < self.count && self.head(bytes, i) == head;
        if !tied(low) {
            return (low, false);
        }
        if !tied(low + 1) {
            // Nearly always: one comparison says all.
            let by_key = self.compare_tied(bytes, low, rest);
            let is_before = by_key.then_with(|| trailer.cmp(&self.trailer(bytes, low))).is_lt();
            return (low + usize::from(is_before), by_key.is_eq() && !is_before);
        }
        let high = partition(low + 2, self.count, |i| self.head(bytes, i) <= head);
        let low = partition(low, high, |i| self.is_tied_before(bytes, i, rest, trailer));
        (low, tied(low) && self.compare_tied(bytes, low, rest).is_eq())
    }

    /// The first entry whose head is at least `head`, without branches that
    /// depend on the keys.
    #[inline]
    fn first_head_not_below(&self, bytes: &[u8], head: u64) -> usize {
        let (mut base, mut size) = (0, self.count);
        while size > 1 {
            let half = size / 2;
            let below = self.head(bytes, base + half - 1) < head;
            base = std::hint::select_unpredictable(below, base + half, base);
            size -= half;
        }
        base + usize::from(self.head(bytes, base) < head)
    }

    /// True if entry `i`, whose head is that of `rest`, is before the target.
    #[inline]
    fn is_tied_before(&self, bytes: &[u8], i: usize, rest: &[u8], trailer: Trailer) -> bool {
        let by_key = self.compare_tied(bytes, i, rest);
        by_key.then_with(|| trailer.cmp(&self.trailer(bytes, i))).is_lt()
    }

    /// Compares the key of entry `i`, less the prefix, with `rest`, whose head
    /// is equal.
    #[inline]
    fn compare_tied(&self, bytes: &[u8], i: usize, rest: &[u8]) -> Ordering {
        let head_length = self.head_length(bytes, i);
        if head_length < self.head_bytes || rest.len() < self.head_bytes {
            // The shorter one goes on with zeros in its head: it is a prefix
            // of the other.
            let length = head_length + self.suffix(bytes, i).len();
            return length.cmp(&rest.len());
        }
        self.suffix(bytes, i).cmp(&rest[self.head_bytes..])
    }

    /// Appends the user key of entry `i` to `out`.
    pub(super) fn append_key(&self, bytes: &[u8], i: usize, out: &mut Vec<u8>) {
        out.extend_from_slice(self.prefix(bytes));
        out.extend_from_slice(&self.head_and_more(bytes, i)[..self.head_length(bytes, i)]);
        out.extend_from_slice(self.suffix(bytes, i));
    }

    /// True if entry `i + 1` has the user key of entry `i`.
    pub(super) fn same_key_follows(&self, bytes: &[u8], i: usize, order: &KeyOrder) -> bool {
        if let KeyOrder::Custom(comparator) = order {
            return comparator.compare(self.suffix(bytes, i), self.suffix(bytes, i + 1)).is_eq();
        }
        self.head(bytes, i) == self.head(bytes, i + 1)
            && self.head_length(bytes, i) == self.head_length(bytes, i + 1)
            && self.suffix(bytes, i) == self.suffix(bytes, i + 1)
    }
}

/// A number with so many of its lowest bits set, at most 64.
pub(super) fn lowest_bits(bits: usize) -> u64 {
    1u64.unbounded_shl(bits as u32).wrapping_sub(1)
}

/// The first of `low..high` for which `is_before` is false; it is true for
/// all before that one, and for none after.
#[inline]
pub(super) fn partition(
    mut low: usize,
    mut high: usize,
    mut is_before: impl FnMut(usize) -> bool,
) -> usize {
    while low < high {
        let middle = low + (high - low) / 2;
        if is_before(middle) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    low
}
