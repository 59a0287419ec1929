//! Reading LZ4's block format (lz4/lz4, lz4_Block_format.md). The library writes it.
//!
//! A block is a row of sequences, each of
//!
//! | size | meaning |
//! |---|---|
//! | 1 | token: length of the literal (high four bits), and of the copy less 4 (low ones) |
//! | | length of the literal, if its bits are 15: bytes to add, up to one below 255 |
//! | | literal |
//! | 2 | distance of the copy |
//! | | length of the copy, if its bits are 15, in the same way |
//!
//! The last one ends behind its literal.

use crate::unpack::Room;

const COPY_BYTES_MIN: usize = 4;
/// Of four bits: the length goes on in bytes of its own.
const GOES_ON: usize = 15;

/// Adds what `block` holds to `room`; `None` if it is no block, or holds more.
#[inline]
pub(crate) fn decode<'r>(mut block: &[u8], mut room: Room<'r>) -> Option<Room<'r>> {
    loop {
        let (&token, mut rest) = block.split_first()?;
        let mut literal = usize::from(token >> 4);
        if literal == GOES_ON {
            (literal, rest) = longer(literal, rest)?;
        }
        room.literal(rest, literal)?;
        rest = rest.get(literal..)?;
        let Some((distance, mut rest)) = rest.split_first_chunk() else {
            return rest.is_empty().then_some(room);
        };
        let distance = usize::from(u16::from_le_bytes(*distance));
        let mut copy = usize::from(token & 15);
        if copy == GOES_ON {
            (copy, rest) = longer(copy, rest)?;
        }
        room.copy(distance, copy + COPY_BYTES_MIN)?;
        block = rest;
    }
}

/// A length that goes on in `rest`, and what is behind it.
#[inline(always)]
fn longer(length: usize, rest: &[u8]) -> Option<(usize, &[u8])> {
    match rest.split_first()? {
        (&u8::MAX, _) => much_longer(length, rest),
        (&more, rest) => Some((length + usize::from(more), rest)),
    }
}

#[cold]
#[inline(never)]
fn much_longer(mut length: usize, mut rest: &[u8]) -> Option<(usize, &[u8])> {
    loop {
        let (&more, behind) = rest.split_first()?;
        length += usize::from(more); // a block has fewer bytes than make this overflow
        rest = behind;
        if more < u8::MAX {
            return Some((length, rest));
        }
    }
}

#[cfg(test)]
mod tests;
