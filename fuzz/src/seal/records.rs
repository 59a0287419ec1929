//! The frames of records (docs/format/record.md).

use lodestore::FileId;
use lodestore::internals::bytes::{context, crc32c};

use super::{put, u32_at};

const HEADER_BYTES: usize = 24;
const SHORT_HEADER_BYTES: usize = 8;

/// Seals the records that stand one behind the other from `at` on. Where a tag
/// is not that of `id` they end: that is the end of a file, or a mutation that
/// is wanted.
pub fn seal(bytes: &mut [u8], mut at: usize, id: FileId) {
    let tag = crc32c(&id.0.to_le_bytes());
    while let Some(word) = u32_at(bytes, at + 4) {
        let next = match word {
            _ if word == tag => seal_one(bytes, at, id),
            _ if word << 12 == !tag << 12 => seal_short(bytes, at, id, (word >> 20) as usize),
            _ => None,
        };
        let Some(next) = next else { return };
        at = next;
    }
}

/// Gives where the next record would be.
fn seal_one(bytes: &mut [u8], at: usize, id: FileId) -> Option<usize> {
    let length = u32_at(bytes, at + 8)? as usize;
    let next = at + HEADER_BYTES + length.next_multiple_of(8);
    if let Some(filled) = bytes.get(at + HEADER_BYTES..next) {
        let checksum = crc32c(filled);
        put(bytes, at + 12, checksum);
    }
    let checksum = crc32c(bytes.get(at + 4..at + HEADER_BYTES)?) ^ context(id, at as u64);
    put(bytes, at, checksum);
    Some(next)
}

fn seal_short(bytes: &mut [u8], at: usize, id: FileId, length: usize) -> Option<usize> {
    let next = at + SHORT_HEADER_BYTES + length.next_multiple_of(8);
    let checksum = crc32c(bytes.get(at + 4..next)?) ^ context(id, at as u64);
    put(bytes, at, checksum);
    Some(next)
}
