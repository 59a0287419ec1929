//! Short records: of a payload of less than 64 KiB whose writer needs no witness
//! of its own, because one with a whole header stands before it in the same block.
//!
//! | OFFSET | SIZE | MEANING |
//! |---|---|---|
//! | 0 | 4 | CRC-32C of bytes 4 to the end, xor the context of file id and offset |
//! | 4 | 2 | the lower half of the file's tag, inverted |
//! | 6 | 2 | length of the payload, not 0 |
//! | 8 | .. | payload, then zeros up to a multiple of 8 |
//!
//! Reading stops at the first place where no record is, so that one place in a
//! file may pass for a short record by chance, once in 2^48 files. A scan never
//! looks for them: there are as many such places as a file has bytes.

use super::{ALIGNMENT, Owner};
use crate::checksum::{context, crc32c};

/// Bytes before a short record's payload.
pub(super) const SHORT_HEADER_BYTES: usize = 8;
/// The longest payload of a short record.
pub(super) const SHORT_PAYLOAD_BYTES_MAX: usize = u16::MAX as usize;

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
        let word = u64::from_le_bytes(bytes);
        let (checksum, tag, payload_bytes) = (word as u32, (word >> 32) as u16, word >> 48);
        let is_one = tag == short_tag(owner) && payload_bytes > 0;
        is_one.then_some(ShortHeader { checksum, payload_bytes: payload_bytes as usize })
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

/// Appends to `out` a short record that will stand at `offset` of its file, with `parts`
/// as its payload. Returns its checksum.
///
/// # Panics
/// If the payload is empty or too long.
#[inline]
pub(super) fn encode(out: &mut Vec<u8>, owner: Owner, offset: u64, parts: [&[u8]; 2]) -> u32 {
    debug_assert!(offset.is_multiple_of(ALIGNMENT as u64));
    let payload_bytes = parts[0].len() + parts[1].len();
    assert!((1..=SHORT_PAYLOAD_BYTES_MAX).contains(&payload_bytes));
    let (start, whole) = (out.len(), record_bytes(payload_bytes));
    out.reserve(whole + ALIGNMENT);
    let header = u64::from(short_tag(owner)) << 32 | (payload_bytes as u64) << 48;
    out.extend_from_slice(&header.to_le_bytes());
    parts.iter().for_each(|part| out.extend_from_slice(part));
    // A fixed number of zeros, of which some go again, is one store.
    out.extend_from_slice(&[0; ALIGNMENT]);
    out.truncate(start + whole);
    let checksum = crc32c(&out[start + 4..]) ^ context(owner.id, offset);
    out[start..start + 4].copy_from_slice(&checksum.to_le_bytes());
    checksum
}

/// No header of the long form has it where this stands.
fn short_tag(owner: Owner) -> u16 {
    !owner.tag as u16
}

fn record_bytes(payload_bytes: usize) -> usize {
    SHORT_HEADER_BYTES + payload_bytes.next_multiple_of(ALIGNMENT)
}
