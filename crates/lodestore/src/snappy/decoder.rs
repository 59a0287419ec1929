//! Reading the format. A block may be anything: each element is checked.

use std::hint::select_unpredictable;

use crate::coding::Reader;
use crate::unpack::Room;

use super::{COPY_1, COPY_4, LITERAL, LITERAL_BYTES_IN_TAG};

/// What `block` says how long its content is, and the elements behind; `None` if it says
/// nothing. Whether that is true, [`decode`] finds out.
pub(crate) fn content_bytes(block: &[u8]) -> Option<(usize, &[u8])> {
    let mut reader = Reader::new(block);
    let length = u32::try_from(reader.varint()?).ok()?;
    Some((length as usize, reader.rest()))
}

/// Adds what `elements` hold to `room`; `None` if they are none, or hold more.
///
/// Which of two short elements comes next, nobody can foresee: both are worked out, and one
/// is taken.
#[inline]
pub(crate) fn decode<'r>(mut elements: &[u8], mut room: Room<'r>) -> Option<Room<'r>> {
    while let Some((&tag, rest)) = elements.split_first() {
        let size = usize::from(tag >> 2);
        let word = first_word(rest) as usize;
        let behind = match tag & 3 {
            LITERAL => {
                let length_bytes = (size + 1).saturating_sub(LITERAL_BYTES_IN_TAG);
                let behind_tag = word as u64 & ((1 << (8 * length_bytes)) - 1);
                let length = select_unpredictable(length_bytes == 0, size, behind_tag as usize);
                let length = length.checked_add(1)?;
                room.literal(rest.get(length_bytes..)?, length)?;
                length_bytes + length
            }
            COPY_4 => {
                room.copy(word, size + 1)?;
                4
            }
            kind => {
                let is_short = kind == COPY_1;
                let short = (size >> 3 << 8 | word & 0xff, 4 + (size & 7));
                let (distance, count) =
                    select_unpredictable(is_short, short, (word & 0xffff, size + 1));
                room.copy(distance, count)?;
                usize::from(kind)
            }
        };
        elements = rest.get(behind..)?;
    }
    Some(room)
}

/// The first four bytes as a number; what is not there is zero.
#[inline(always)]
fn first_word(bytes: &[u8]) -> u32 {
    match bytes.first_chunk() {
        Some(word) => u32::from_le_bytes(*word),
        None => bytes.iter().rev().fold(0, |word, byte| word << 8 | u32::from(*byte)),
    }
}

#[cfg(test)]
mod tests {
    use testkit::random::Random;

    use crate::snappy::Encoder;
    use crate::unpack::{self, testing};

    use super::*;

    fn decoded(block: &[u8]) -> Option<Vec<u8>> {
        let (bytes, elements) = content_bytes(block).filter(|found| found.0 <= 1 << 20)?;
        let mut out = Vec::new();
        unpack::owned(bytes, &mut out, |room| decode(elements, room))?;
        Some(out)
    }

    /// What the library or our encoder has written is read, of any content; and damaged, it
    /// is what the library reads, or refused as it does.
    #[test]
    fn blocks_are_read_as_by_the_library() {
        let mut random = Random::new(2);
        let (mut encoder, mut library) = (Encoder::new(), snap::raw::Encoder::new());
        let (mut read, mut refused) = (0, 0);
        for round in 0..3_000 {
            let most = if round % 100 == 0 { 200_000 } else { 3_000 };
            let content = testing::repetitive(&mut random, most);
            let theirs = library.compress_vec(&content).unwrap();
            for mut block in [encoder.encode_to_vec(&content), theirs] {
                assert!(decoded(&block).as_deref() == Some(&content[..]), "{round}");
                testing::damage(&mut random, &mut block);
                let bytes = content_bytes(&block).map_or(0, |found| found.0);
                if bytes > 1 << 20 {
                    continue;
                }
                let expected = snap::raw::Decoder::new().decompress_vec(&block).ok();
                assert!(decoded(&block) == expected, "damaged {round}");
                *if expected.is_some() { &mut read } else { &mut refused } += 1;
            }
        }
        assert!(read > 100 && refused > 100, "{read} read, {refused} refused");
    }

    /// Elements that no encoder here writes: copies with four bytes of distance, literals
    /// with lengths of three and four, copies that repeat one to seven bytes.
    #[test]
    fn every_element_is_read() {
        let literal = |length_bytes: usize, bytes: &[u8]| {
            let tag = ((LITERAL_BYTES_IN_TAG + length_bytes - 1) as u8) << 2 | LITERAL;
            let length = (bytes.len() as u32 - 1).to_le_bytes();
            [&[tag][..], &length[..length_bytes], bytes].concat()
        };
        for length_bytes in 1..=4 {
            for distance in 1..=9u8 {
                for count in 1..=64u8 {
                    let start = b"abcdefghi";
                    let far = [(count - 1) << 2 | 3, distance, 0, 0, 0];
                    let elements = [&literal(length_bytes, start)[..], &far].concat();
                    let block = [&[start.len() as u8 + count][..], &elements].concat();
                    let expected = snap::raw::Decoder::new().decompress_vec(&block).unwrap();
                    assert_eq!(decoded(&block), Some(expected));
                }
            }
        }
    }
}
