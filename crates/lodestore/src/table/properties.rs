//! What a table says of itself: counts, ranges, and how it was built.
//!
//! Tagged fields: varint `number << 1 | must-understand`, then a value with
//! its length before it. A field that is unknown is skipped, unless it must be
//! understood: then the table is incompatible.

use std::path::Path;

use crate::coding::{Reader, put_slice, put_varint};
use crate::error::{Error, Result, Undecodable};
use crate::key::{
    InternalKey, KeyOrder, Kind, SEQUENCE_MAX, SequenceNumber, TRAILER_NEWEST, Trailer, trailer,
};
use crate::range_deletes::Fragments;

use super::TableFamily;

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
    pub(super) range_deletes: u64,
    pub(super) key_bytes: u64,
    pub(super) value_bytes: u64,
    pub(super) sequence_min: SequenceNumber,
    pub(super) sequence_max: SequenceNumber,
    pub(super) smallest: InternalKey,
    pub(super) largest: InternalKey,
    /// Whose prefixes the filter knows too; also a name that is not known here.
    pub(super) prefix_extractor: Option<String>,
    /// The family that it was written for, if it was for one.
    pub(super) family: Option<TableFamily>,
}

mod field {
    pub(super) const ORDER_NAME: u64 = 1 << 1 | 1;
    pub(super) const SMALLEST: u64 = 2 << 1 | 1;
    pub(super) const LARGEST: u64 = 3 << 1 | 1;
    pub(super) const CODEC: u64 = 4 << 1;
    /// The numbers, from here on, in the order of `Properties::numbers`.
    pub(super) const NUMBERS: u64 = 5;
    pub(super) const PREFIX_EXTRACTOR: u64 = 14 << 1;
    pub(super) const FAMILY: u64 = 15 << 1;
}

const NUMBERS: usize = 9;

impl Properties {
    fn numbers(&mut self) -> [&mut u64; NUMBERS] {
        [
            &mut self.block_bytes,
            &mut self.blocks,
            &mut self.entries,
            &mut self.tombstones,
            &mut self.key_bytes,
            &mut self.value_bytes,
            &mut self.sequence_min,
            &mut self.sequence_max,
            &mut self.range_deletes,
        ]
    }

    /// Takes range deletes into counts, bounds and numbers; of the entries all
    /// is taken in before. Without entries the lowest number is `u64::MAX`.
    ///
    /// The end of a range is not in it: as the table's largest place it stands
    /// with the trailer that precedes every entry of its key.
    pub(super) fn add_range_deletes(&mut self, deletes: &Fragments, order: &KeyOrder) {
        let (Some(first), Some(last)) = (deletes.iter().next(), deletes.iter().next_back()) else {
            return;
        };
        let newest = trailer(first.sequences[0], Kind::RangeDelete);
        let smallest = InternalKey::before(&first.start, newest, order);
        let largest = InternalKey::behind(&last.end, TRAILER_NEWEST, order);
        let precedes = |a: &InternalKey, b: &InternalKey| {
            order.compare_entries((&a.user_key, a.trailer), (&b.user_key, b.trailer)).is_lt()
        };
        if self.entries == 0 || precedes(&smallest, &self.smallest) {
            self.smallest = smallest;
        }
        if self.entries == 0 || precedes(&self.largest, &largest) {
            self.largest = largest;
        }
        self.range_deletes = deletes.count();
        for sequence in deletes.iter().flat_map(|fragment| &fragment.sequences) {
            self.sequence_min = self.sequence_min.min(*sequence);
            self.sequence_max = self.sequence_max.max(*sequence);
        }
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
        put_varint(&mut out, field::CODEC);
        put_slice(&mut out, &[self.codec]);
        if let Some(name) = &self.prefix_extractor {
            put_varint(&mut out, field::PREFIX_EXTRACTOR);
            put_slice(&mut out, name.as_bytes());
        }
        if let Some(TableFamily { id, name }) = &self.family {
            put_varint(&mut out, field::FAMILY);
            put_slice(&mut out, &[&id.to_le_bytes(), name.as_bytes()].concat());
        }
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
                let what = format!("property {number} of a table");
                return Err(Undecodable::Unknown(what).at(path, offset));
            }
        }
        if properties.sequence_max > SEQUENCE_MAX {
            let what = format!("properties with the sequence number {}", properties.sequence_max);
            return Err(Error::corruption(path, offset, what));
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
            field::CODEC => self.codec = *value.first()?,
            field::PREFIX_EXTRACTOR => {
                self.prefix_extractor = Some(str::from_utf8(value).ok()?.to_string());
            }
            field::FAMILY => {
                let (id, name) = value.split_first_chunk::<4>()?;
                let name = str::from_utf8(name).ok()?.to_string();
                // The last number is never given out: none could follow it.
                let id = Some(u32::from_le_bytes(*id)).filter(|id| *id != u32::MAX)?;
                self.family = Some(TableFamily { id, name });
            }
            _ if tag & 1 != 0 => return Some(Some(tag >> 1)),
            _ => match (tag >> 1).checked_sub(field::NUMBERS) {
                Some(i) if i < NUMBERS as u64 => {
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
