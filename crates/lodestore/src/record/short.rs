//! Short records: of a payload of less than 4 KiB that needs no witness of its own,
//! because one with a whole header stands before it in the same block.
//!
//! | OFFSET | SIZE | MEANING |
//! |---|---|---|
//! | 0 | 4 | CRC-32C of bytes 4 to the end, xor the context of file id and offset |
//! | 4 | 4 | bits 0 to 19: those of the file's tag, inverted; bits 20 to 31: length of the payload, not 0 |
//! | 8 | .. | payload, then zeros up to a multiple of 8 |
//!
//! Reading stops at the first place where no record is: what stands there by chance,
//! a recycled file's former content, passes for a short record once in 2^52 times and
//! for a torn one once in 2^20. A scan for witnesses goes past them.

use super::{ALIGNMENT, Owner};
use crate::checksum::{context, crc32c};

/// Bytes before a short record's payload.
pub(super) const SHORT_HEADER_BYTES: usize = 8;
/// Bits of the tag that a short record has.
const TAG_BITS: u32 = 20;
/// The longest payload of a short record.
pub(super) const SHORT_PAYLOAD_BYTES_MAX: usize = (1 << (u32::BITS - TAG_BITS)) - 1;
/// The longest short record.
pub(super) const SHORT_RECORD_BYTES_MAX: usize = record_bytes(SHORT_PAYLOAD_BYTES_MAX);

/// What stands at the beginning of a short record, not checked yet.
#[derive(Clone, Copy, Debug)]
pub(super) struct ShortHeader {
    /// As stored: part of the file's checksum.
    pub(super) checksum: u32,
    pub(super) payload_bytes: usize,
}

impl ShortHeader {
    /// The header in `bytes`, if they may be one of a file of `owner`.
    #[inline]
    pub(super) fn decode(bytes: [u8; SHORT_HEADER_BYTES], owner: Owner) -> Option<ShortHeader> {
        let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("4 bytes"));
        let payload_bytes = (word(4) >> TAG_BITS) as usize;
        let is_one = payload_bytes > 0 && word(4) == tag_and_length(owner, payload_bytes);
        is_one.then_some(ShortHeader { checksum: word(0), payload_bytes })
    }

    /// Bytes of the whole record.
    pub(super) fn record_bytes(self) -> usize {
        record_bytes(self.payload_bytes)
    }

    /// True if `record`, all of it at `offset` of its file, is as it was written.
    pub(super) fn is_sound(self, record: &[u8], owner: Owner, offset: u64) -> bool {
        self.checksum == crc32c(&record[4..]) ^ context(owner.id, offset)
    }
}

/// Appends to `out` a short record that will stand at `offset` of its file, with `first`
/// and `rest`, which is not too long, as its payload. Returns its checksum.
#[inline]
pub(super) fn encode(out: &mut Vec<u8>, owner: Owner, offset: u64, first: u8, rest: &[u8]) -> u32 {
    debug_assert!(offset.is_multiple_of(ALIGNMENT as u64));
    let payload_bytes = 1 + rest.len();
    debug_assert!(payload_bytes <= SHORT_PAYLOAD_BYTES_MAX);
    let (start, whole) = (out.len(), record_bytes(payload_bytes));
    out.reserve(whole + ALIGNMENT);
    let header = u64::from(tag_and_length(owner, payload_bytes)) << 32;
    out.extend_from_slice(&header.to_le_bytes());
    out.push(first);
    out.extend_from_slice(rest);
    // A fixed number of zeros, of which some go again, is one store.
    out.extend_from_slice(&[0; ALIGNMENT]);
    out.truncate(start + whole);
    let checksum = crc32c(&out[start + 4..]) ^ context(owner.id, offset);
    out[start..start + 4].copy_from_slice(&checksum.to_le_bytes());
    checksum
}

/// Never a tag: that is what a whole header has at its place.
fn tag_and_length(owner: Owner, payload_bytes: usize) -> u32 {
    !owner.tag & ((1 << TAG_BITS) - 1) | (payload_bytes as u32) << TAG_BITS
}

const fn record_bytes(payload_bytes: usize) -> usize {
    SHORT_HEADER_BYTES + payload_bytes.next_multiple_of(ALIGNMENT)
}
