//! Checksums of stored bytes: CRC-32C, bound to the place that they are for.
//!
//! A block's stored checksum is `crc32c(bytes) xor context(file id, offset)`.
//! Two blocks that change places therefore fail their check, and a block that
//! is copied verbatim gets its new checksum by two xors, without being read.

use crate::key::FileId;

/// CRC-32C (Castagnoli) of `bytes`.
#[inline]
pub fn crc32c(bytes: &[u8]) -> u32 {
    crc_fast::checksum(crc_fast::CrcAlgorithm::Crc32Iscsi, bytes) as u32
}

/// CRC-32C of several pieces in a row.
#[derive(Clone, Debug)]
pub(crate) struct Crc32c(crc_fast::Digest);

impl Crc32c {
    pub(crate) fn new() -> Crc32c {
        Crc32c(crc_fast::Digest::new(crc_fast::CrcAlgorithm::Crc32Iscsi))
    }

    pub(crate) fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    pub(crate) fn value(&self) -> u32 {
        self.0.finalize() as u32
    }
}

/// What a block's checksum is xored with: a mix of the file's id and the
/// block's offset in that file.
#[inline]
pub fn context(file: FileId, offset: u64) -> u32 {
    let (low, high) = (file.0 as u64, (file.0 >> 64) as u64);
    let id = low ^ high.rotate_left(29);
    // A multiplication by an odd constant (the golden ratio) spreads every
    // bit of the offset over the upper half.
    let mixed = (id ^ offset.rotate_left(32)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed >> 32) as u32 ^ offset as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The check value of the CRC catalogue.
    #[test]
    fn crc32c_matches_the_published_check_value() {
        assert_eq!(crc32c(b"123456789"), 0xe306_9283);
        let mut pieces = Crc32c::new();
        pieces.update(b"1234");
        pieces.update(b"56789");
        assert_eq!(pieces.value(), 0xe306_9283);
    }

    /// The same bytes at another place or in another file differ.
    #[test]
    fn context_differs_by_file_and_offset() {
        let here = context(FileId(7), 4096);
        assert_ne!(here, context(FileId(7), 8192));
        assert_ne!(here, context(FileId(8), 4096));
        assert_ne!(here, context(FileId(7 << 64), 4096));
    }
}
