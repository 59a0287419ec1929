//! What a table says of itself: counts, ranges, and how it was built.
//!
//! Tagged fields: varint `number << 1 | must-understand`, then a value with
//! its length before it. A field that is unknown is skipped, unless it must be
//! understood: then the table is incompatible.

use std::path::Path;

use crate::coding::{Reader, put_slice, put_varint};
use crate::error::{Error, Result};
use crate::key::{InternalKey, SequenceNumber, Trailer};

/// The properties section.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Properties {
    pub(super) order_name: String,
    pub(super) block_bytes: u64,
    /// Type byte of the codec that was asked for.
    pub(super) codec: u8,
    pub(super) blocks: u64,
    pub(super) entries: u64,
    pub(super) tombstones: u64,
    pub(super) key_bytes: u64,
    pub(super) value_bytes: u64,
    pub(super) sequence_min: SequenceNumber,
    pub(super) sequence_max: SequenceNumber,
    pub(super) smallest: InternalKey,
    pub(super) largest: InternalKey,
}

mod field {
    pub(super) const ORDER_NAME: u64 = 1 << 1 | 1;
    pub(super) const SMALLEST: u64 = 2 << 1 | 1;
    pub(super) const LARGEST: u64 = 3 << 1 | 1;
    /// The numbers, from here on, in the order of `Properties::numbers`.
    pub(super) const NUMBERS: u64 = 4;
}

impl Properties {
    fn numbers(&mut self) -> [&mut u64; 8] {
        [
            &mut self.block_bytes,
            &mut self.blocks,
            &mut self.entries,
            &mut self.tombstones,
            &mut self.key_bytes,
            &mut self.value_bytes,
            &mut self.sequence_min,
            &mut self.sequence_max,
        ]
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(256);
        put_varint(&mut out, field::ORDER_NAME);
        put_slice(&mut out, self.order_name.as_bytes());
        for (tag, key) in [(field::SMALLEST, &self.smallest), (field::LARGEST, &self.largest)] {
            let mut bytes = key.trailer.to_le_bytes().to_vec();
            bytes.extend_from_slice(&key.user_key);
            put_varint(&mut out, tag);
            put_slice(&mut out, &bytes);
        }
        for (i, number) in self.clone().numbers().into_iter().enumerate() {
            put_varint(&mut out, (field::NUMBERS + i as u64) << 1);
            put_slice(&mut out, &number.to_le_bytes());
        }
        put_varint(&mut out, (field::NUMBERS + 8) << 1);
        put_slice(&mut out, &[self.codec]);
        out
    }

    pub(super) fn decode(bytes: &[u8], offset: u64, path: &Path) -> Result<Properties> {
        let mut properties = Properties::default();
        let mut reader = Reader::new(bytes);
        while !reader.is_empty() {
            let decoded = properties.decode_field(&mut reader);
            let unknown =
                decoded.ok_or_else(|| Error::corruption(path, offset, "bad properties"))?;
            if let Some(number) = unknown {
                let what = format!("table with an unknown property {number}");
                return Err(Error::incompatible(path, what));
            }
        }
        Ok(properties)
    }

    /// Decodes one field; gives its number if it is one that must be
    /// understood and is not.
    fn decode_field(&mut self, reader: &mut Reader<'_>) -> Option<Option<u64>> {
        let tag = reader.varint()?;
        let value = reader.slice()?;
        match tag {
            field::ORDER_NAME => self.order_name = str::from_utf8(value).ok()?.to_string(),
            field::SMALLEST => self.smallest = decode_key(value)?,
            field::LARGEST => self.largest = decode_key(value)?,
            _ if tag & 1 != 0 => return Some(Some(tag >> 1)),
            _ => match (tag >> 1).checked_sub(field::NUMBERS) {
                Some(8) => self.codec = *value.first()?,
                Some(i @ 0..8) => {
                    *self.numbers()[i as usize] = u64::from_le_bytes(value.try_into().ok()?);
                }
                _ => {} // of a later build, and harmless
            },
        }
        Some(None)
    }
}

fn decode_key(bytes: &[u8]) -> Option<InternalKey> {
    let (trailer, user_key) = bytes.split_first_chunk::<8>()?;
    Some(InternalKey::new(user_key, Trailer::from_le_bytes(*trailer)))
}
