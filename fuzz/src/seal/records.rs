//! The frames of records (docs/format/record.md).

use lodestore::FileId;
use lodestore::internals::bytes::{context, crc32c};

use super::{put, u32_at};

const HEADER_BYTES: usize = 24;

/// Seals the records that stand one behind the other from `at` on. Where a tag
/// is not that of `id` they end: that is the end of a file, or a mutation that
/// is wanted.
pub fn seal(bytes: &mut [u8], mut at: usize, id: FileId) {
    let tag = crc32c(&id.0.to_le_bytes());
    while u32_at(bytes, at + 4) == Some(tag) && at + HEADER_BYTES <= bytes.len() {
        let length = u32_at(bytes, at + 8).unwrap_or(0) as usize;
        let next = at + HEADER_BYTES + length.next_multiple_of(8);
        if let Some(filled) = bytes.get(at + HEADER_BYTES..next) {
            let checksum = crc32c(filled);
            put(bytes, at + 12, checksum);
        }
        let checksum = crc32c(&bytes[at + 4..at + HEADER_BYTES]) ^ context(id, at as u64);
        put(bytes, at, checksum);
        at = next;
    }
}
