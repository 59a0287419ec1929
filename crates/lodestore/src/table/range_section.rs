//! The range deletes of a table: its own section, loaded when it is opened.
//!
//! | part | meaning |
//! |---|---|
//! | varint | fragments, at least 1 |
//! | each: slice, slice | first key; end key, exclusive. They ascend and do not overlap |
//! | varint | sequence numbers that hold there, at least 1 |
//! | varint each | the highest, then how much lower each next one is than the one before |

use std::sync::Arc;

use crate::coding::{Reader, put_slice, put_varint};
use crate::key::{KeyOrder, SequenceNumber};
use crate::range_deletes::{Fragment, Fragments};

use super::Checked;

/// The section's bytes.
pub(super) fn encode(deletes: &Fragments) -> Vec<u8> {
    let mut out = Vec::new();
    put_varint(&mut out, deletes.iter().count() as u64);
    for fragment in deletes.iter() {
        put_slice(&mut out, &fragment.start);
        put_slice(&mut out, &fragment.end);
        put_varint(&mut out, fragment.sequences.len() as u64);
        let mut above = 0;
        for (i, &sequence) in fragment.sequences.iter().enumerate() {
            put_varint(&mut out, if i == 0 { sequence } else { above - sequence });
            above = sequence;
        }
    }
    out
}

/// The range deletes that a section holds. Says what is wrong with it.
pub(super) fn decode(bytes: &[u8], order: &KeyOrder) -> Checked<Fragments> {
    let mut reader = Reader::new(bytes);
    let fragments = decode_all(&mut reader).filter(|_| reader.is_empty());
    let fragments = fragments.ok_or("the range deletes' parts do not fit")?;
    if fragments.is_empty() {
        return Err("a section for range deletes without any");
    }
    Fragments::from_sorted(order, fragments).ok_or("the range deletes are out of order")
}

fn decode_all(reader: &mut Reader<'_>) -> Option<Vec<Fragment>> {
    let count = reader.varint()?;
    let mut fragments = Vec::new(); // grows with the bytes that are there
    for _ in 0..count {
        let (start, end): (Arc<[u8]>, Arc<[u8]>) = (reader.slice()?.into(), reader.slice()?.into());
        fragments.push(Fragment { start, end, sequences: decode_sequences(reader)? });
    }
    Some(fragments)
}

fn decode_sequences(reader: &mut Reader<'_>) -> Option<Box<[SequenceNumber]>> {
    let count = reader.varint()?;
    let mut sequences = Vec::new();
    let mut above = None;
    for _ in 0..count {
        let number = reader.varint()?;
        let sequence = above.map_or(Some(number), |above: u64| above.checked_sub(number))?;
        above = Some(sequence);
        sequences.push(sequence);
    }
    Some(sequences.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fragment(start: &[u8], end: &[u8], sequences: &[SequenceNumber]) -> Fragment {
        Fragment { start: start.into(), end: end.into(), sequences: sequences.into() }
    }

    fn example() -> Fragments {
        let fragments = vec![
            fragment(b"", b"a", &[7]),
            fragment(b"a", b"b\0", &[1 << 55, 300, 2]),
            fragment(b"x", &[b'y'; 300], &[1]),
        ];
        Fragments::from_sorted(&KeyOrder::Bytewise, fragments).expect("they are sound")
    }

    /// What is written is what is read; cut anywhere, it is refused.
    #[test]
    fn range_deletes_survive_and_are_refused_when_cut() {
        let bytes = encode(&example());
        let found = decode(&bytes, &KeyOrder::Bytewise).expect("it is whole");
        assert!(found.iter().eq(example().iter()));
        for end in 0..bytes.len() {
            assert!(decode(&bytes[..end], &KeyOrder::Bytewise).is_err(), "{end}");
        }
        assert!(decode(&[&bytes[..], &[0]].concat(), &KeyOrder::Bytewise).is_err());
        assert!(decode(&[0], &KeyOrder::Bytewise).is_err());
    }

    /// Changed bytes give an error or sound range deletes, never a panic or an
    /// allocation that a length field asks for.
    #[test]
    fn changed_bytes_never_panic() {
        let bytes = encode(&example());
        for place in 0..bytes.len() {
            for flip in [1, 0x40, 0x80, 0xff] {
                let mut changed = bytes.clone();
                changed[place] ^= flip;
                let _ = decode(&changed, &KeyOrder::Bytewise);
            }
        }
        assert!(decode(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1], &KeyOrder::Bytewise).is_err());
    }
}
