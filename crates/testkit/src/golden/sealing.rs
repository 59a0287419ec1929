//! Files of a database as a later build would write them: bytes that are not
//! known, under checksums that are right. Written from docs/format alone.

use std::ops::Range;

use crate::files::Files;

mod manifest;
mod record;
mod table;

pub use manifest::{append_to_manifest, change_manifest_field, set_manifest_byte};
pub use record::{Frame, append_short_to_log, append_to_log};
pub use table::{change_block_type, change_property, change_section_tag, set_footer_byte};

/// The kinds of file that have a version: see [`of_version`].
pub const VERSIONED: [&str; 3] = [".table", "MANIFEST-", ".wal"];

/// `files` as a build of another version would write those of one kind: with
/// that number, and sound.
///
/// # Panics
/// If `kind` is none of [`VERSIONED`].
pub fn of_version(files: &Files, kind: &str, version: u32) -> Files {
    let mut files = files.clone();
    for (name, bytes) in &mut files {
        if !(name.ends_with(kind) || name.starts_with(kind)) {
            continue;
        }
        match kind {
            ".table" => {
                let tail = bytes.len() - 20;
                put(bytes, 8, version);
                put(bytes, tail + 4, version);
                seal_table(bytes);
            }
            "MANIFEST-" => {
                put(bytes, 8, version);
                seal_manifest_header(bytes);
            }
            ".wal" => {
                put(bytes, 8, version);
                put(bytes, 2048 + 8, version);
                seal_log_header(bytes);
            }
            _ => panic!("files {kind} have no version"),
        }
    }
    files
}

/// Sets a byte of both headers of a segment, and makes their checksums right.
pub fn set_log_header_byte(bytes: &mut [u8], at: usize, to: u8) {
    bytes[at] = to;
    bytes[2048 + at] = to;
    seal_log_header(bytes);
}

fn seal_log_header(bytes: &mut [u8]) {
    seal(bytes, 0..252, 252, 0);
    seal(bytes, 2048..2048 + 252, 2048 + 252, 0);
}

fn seal_manifest_header(bytes: &mut [u8]) {
    seal(bytes, 0..124, 124, 0);
}

/// Makes the checksums of a table's header and footer right.
fn seal_table(bytes: &mut [u8]) {
    seal(bytes, 0..28, 28, 0);
    let tail = bytes.len() - 20;
    seal(bytes, tail - u32_at(bytes, tail) as usize..tail + 8, tail + 8, 0);
}

/// Puts a number at `at`.
fn put(bytes: &mut [u8], at: usize, number: u32) {
    bytes[at..at + 4].copy_from_slice(&number.to_le_bytes());
}

/// Puts the checksum of `covered`, xor `mask`, at `at`.
fn seal(bytes: &mut [u8], covered: Range<usize>, at: usize, mask: u32) {
    let checksum = crc32c(&bytes[covered]) ^ mask;
    put(bytes, at, checksum);
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(*bytes[at..].first_chunk().expect("four bytes"))
}

fn id_at(bytes: &[u8], at: usize) -> u128 {
    u128::from_le_bytes(*bytes[at..].first_chunk().expect("sixteen bytes"))
}

/// What binds a checksum to a place in the file `id`.
fn context(id: u128, offset: u64) -> u32 {
    let (low, high) = (id as u64, (id >> 64) as u64);
    let mixed = low ^ high.rotate_left(29) ^ offset.rotate_left(32);
    (mixed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as u32 ^ offset as u32
}

/// CRC-32C bit by bit: slow, and not the engine's.
pub(super) fn crc32c(bytes: &[u8]) -> u32 {
    let step = |crc: u32, _| if crc & 1 == 1 { crc >> 1 ^ 0x82f6_3b78 } else { crc >> 1 };
    let byte = |crc: u32, byte: &u8| (0..8).fold(crc ^ u32::from(*byte), step);
    !bytes.iter().fold(!0, byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The check value of the CRC catalogue.
    #[test]
    fn crc32c_matches_the_published_check_value() {
        assert_eq!(crc32c(b"123456789"), 0xe306_9283);
    }

    /// The example of docs/format/basics.md.
    #[test]
    fn context_matches_the_documented_example() {
        assert_eq!(context(0x9fbd_9635_9554_aa53_dc33_20bb_97ca_63be, 32), 0x6f0a_5166);
    }
}
