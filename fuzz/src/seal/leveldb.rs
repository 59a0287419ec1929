//! LevelDB's files: records of logs and manifests, blocks of tables.

use lodestore::internals::bytes::crc32c;

use super::put;

const BLOCK_BYTES: usize = 32 << 10;
/// Checksum, length and type of a fragment.
const HEAD_BYTES: usize = 7;
const FOOTER_BYTES: usize = 48;
/// Of a table whose index is not compressed, so many blocks are followed.
const BLOCKS_MAX: usize = 256;

/// The fragments of a log or manifest, as far as their lengths lead.
pub fn log(bytes: &mut [u8]) {
    let mut at = 0;
    while let Some(head) = bytes.get(at..at + HEAD_BYTES) {
        let left = BLOCK_BYTES - at % BLOCK_BYTES;
        let length = usize::from(u16::from_le_bytes([head[4], head[5]]));
        if left < HEAD_BYTES || HEAD_BYTES + length > left {
            at += left;
            continue;
        }
        seal(bytes, at + 6, 1 + length, at);
        at += HEAD_BYTES + length;
    }
}

/// The blocks that the footer names, and those that these name.
pub fn table(bytes: &mut [u8]) {
    let Some(footer_at) = bytes.len().checked_sub(FOOTER_BYTES) else { return };
    let mut footer = &bytes[footer_at..];
    let named = [handle(&mut footer), handle(&mut footer)];
    for handle in named.into_iter().flatten() {
        let inner = handles_in(bytes, handle);
        seal_block(bytes, handle);
        inner.into_iter().for_each(|handle| seal_block(bytes, handle));
    }
}

/// Where a block is, and how long without type and checksum.
type Handle = (usize, usize);

fn handle(bytes: &mut &[u8]) -> Option<Handle> {
    Some((varint(bytes)?, varint(bytes)?))
}

fn varint(bytes: &mut &[u8]) -> Option<usize> {
    let mut value = 0usize;
    for shift in (0..63).step_by(7) {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= usize::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}

/// The values of a block's entries that are handles, if it is stored plain.
fn handles_in(bytes: &[u8], (offset, length): Handle) -> Vec<Handle> {
    let mut handles = Vec::new();
    let end = offset.checked_add(length);
    let Some(mut rest) = end.and_then(|end| bytes.get(offset..end)) else { return handles };
    while handles.len() < BLOCKS_MAX {
        let lengths = (varint(&mut rest), varint(&mut rest), varint(&mut rest));
        let (Some(_), Some(own), Some(value_bytes)) = lengths else { break };
        let (Some(value_end), Some(value)) =
            (own.checked_add(value_bytes), rest.get(own..own.saturating_add(value_bytes)))
        else {
            break;
        };
        handles.extend(handle(&mut &*value));
        rest = &rest[value_end..];
    }
    handles
}

fn seal_block(bytes: &mut [u8], (offset, length): Handle) {
    let type_at = offset.checked_add(length).filter(|at| *at < bytes.len());
    if let Some(type_at) = type_at {
        seal(bytes, offset, length + 1, type_at + 1);
    }
}

/// Puts the masked checksum of `length` bytes from `offset` on at `at`.
fn seal(bytes: &mut [u8], offset: usize, length: usize, at: usize) {
    let end = offset.checked_add(length);
    let Some(covered) = end.and_then(|end| bytes.get(offset..end)) else { return };
    let masked = crc32c(covered).rotate_right(15).wrapping_add(0xa282_ead8);
    put(bytes, at, masked);
}
