//! A table's description ([`TableMeta`]) as tagged fields.
//!
//! | tag | must be understood | body |
//! |---|---|---|
//! | 1 | yes | number: varint |
//! | 2 | yes | id: 16 bytes |
//! | 3 | yes | length of the file: varint |
//! | 4 | yes | checksum: 4 bytes |
//! | 5 | yes | format: varint, 0 if absent (native) |
//! | 7 | yes | smallest entry: trailer (8 bytes), user key |
//! | 8 | yes | largest entry: the same |
//! | 9 | yes | lowest sequence number: varint, 0 if absent |
//! | 10 | yes | highest sequence number: varint, 0 if absent |
//! | 11 | yes | sequence number of every entry and range delete: varint, only for ingested tables |
//! | 12 | no | seconds since 1970 when the file was written: varint |
//! | 13 | no | entries: varint |
//! | 14 | no | deletes among them: varint |
//! | 15 | yes | range tombstones: varint, 0 if absent |
//! | 16 | no | bytes of keys: varint |
//! | 17 | no | bytes of values: varint |
//! | 19 | no | seconds since 1970 from which the oldest tombstone may be: varint |

use crate::coding::{Reader, put_u64};
use crate::error::Undecodable;
use crate::key::{FileId, InternalKey, SEQUENCE_MAX};
use crate::table::meta::{TableFormat, TableMeta};
use crate::version::field::{
    Fields, corrupt, keep_unknown, number, optional, put_bytes, put_number, required, set_once,
};

const NUMBER: u64 = required(1);
const ID: u64 = required(2);
const BYTES: u64 = required(3);
const CHECKSUM: u64 = required(4);
const FORMAT: u64 = required(5);
const SMALLEST: u64 = required(7);
const LARGEST: u64 = required(8);
const SEQUENCE_LOWEST: u64 = required(9);
const SEQUENCE_HIGHEST: u64 = required(10);
const SEQUENCE_OVERRIDE: u64 = required(11);
const CREATED: u64 = optional(12);
const ENTRIES: u64 = optional(13);
const TOMBSTONES: u64 = optional(14);
const RANGE_TOMBSTONES: u64 = required(15);
const KEY_BYTES: u64 = optional(16);
const VALUE_BYTES: u64 = optional(17);
const TOMBSTONES_FROM: u64 = optional(19);

/// Appends the fields of `meta`. Numbers that are zero are left out.
pub(crate) fn encode(meta: &TableMeta, out: &mut Vec<u8>) {
    put_number(out, NUMBER, meta.number);
    put_bytes(out, ID, &meta.id.0.to_le_bytes());
    put_number(out, BYTES, meta.bytes);
    put_bytes(out, CHECKSUM, &meta.checksum.to_le_bytes());
    put_bytes(out, SMALLEST, &entry_bytes(&meta.smallest));
    put_bytes(out, LARGEST, &entry_bytes(&meta.largest));
    if let Some(sequence) = meta.sequence_override {
        put_number(out, SEQUENCE_OVERRIDE, sequence);
    }
    for (tag, value) in [
        (FORMAT, meta.format as u64),
        (SEQUENCE_LOWEST, meta.sequence_min),
        (SEQUENCE_HIGHEST, meta.sequence_max),
        (CREATED, meta.created_unix_seconds),
        (ENTRIES, meta.entries),
        (TOMBSTONES, meta.tombstones),
        (RANGE_TOMBSTONES, meta.range_tombstones),
        (KEY_BYTES, meta.key_bytes),
        (VALUE_BYTES, meta.value_bytes),
        (TOMBSTONES_FROM, meta.tombstones_unix_seconds),
    ] {
        if value != 0 {
            put_number(out, tag, value);
        }
    }
    out.extend_from_slice(&meta.unknown);
}

/// The table that `bytes` describe.
pub(crate) fn decode(bytes: &[u8]) -> Result<TableMeta, Undecodable> {
    let mut meta = TableMeta::default();
    let mut identity = Identity::default();
    for field in Fields::new(bytes) {
        let (tag, body) = field?;
        match tag {
            NUMBER => set_once(&mut identity.number, number(body, "a table's number")?, "number")?,
            ID => set_once(&mut identity.id, id(body)?, "a table's id")?,
            BYTES => set_once(&mut identity.bytes, number(body, "a table's length")?, "length")?,
            CHECKSUM => set_once(&mut identity.checksum, checksum(body)?, "a table's checksum")?,
            SMALLEST => set_once(&mut identity.smallest, entry(body)?, "smallest entry")?,
            LARGEST => set_once(&mut identity.largest, entry(body)?, "largest entry")?,
            FORMAT => meta.format = format(body)?,
            SEQUENCE_LOWEST => meta.sequence_min = sequence(body)?,
            SEQUENCE_HIGHEST => meta.sequence_max = sequence(body)?,
            SEQUENCE_OVERRIDE => meta.sequence_override = Some(sequence(body)?),
            CREATED => meta.created_unix_seconds = number(body, "a table's creation time")?,
            ENTRIES => meta.entries = number(body, "a count of entries")?,
            TOMBSTONES => meta.tombstones = number(body, "a count of tombstones")?,
            RANGE_TOMBSTONES => meta.range_tombstones = number(body, "range tombstones")?,
            KEY_BYTES => meta.key_bytes = number(body, "a table's key bytes")?,
            VALUE_BYTES => meta.value_bytes = number(body, "a table's value bytes")?,
            TOMBSTONES_FROM => {
                meta.tombstones_unix_seconds = number(body, "the time of a tombstone")?;
            }
            unknown => keep_unknown(unknown, body, "a table", &mut meta.unknown)?,
        }
    }
    identity.complete(meta)
}

/// The fields that every table must have.
#[derive(Default)]
struct Identity {
    number: Option<u64>,
    id: Option<FileId>,
    bytes: Option<u64>,
    checksum: Option<u32>,
    smallest: Option<InternalKey>,
    largest: Option<InternalKey>,
}

impl Identity {
    fn complete(self, mut meta: TableMeta) -> Result<TableMeta, Undecodable> {
        let missing = |what| move || corrupt(format!("a table without {what}"));
        meta.number = self.number.ok_or_else(missing("number"))?;
        meta.id = self.id.ok_or_else(missing("id"))?;
        meta.bytes = self.bytes.ok_or_else(missing("length"))?;
        meta.checksum = self.checksum.ok_or_else(missing("checksum"))?;
        meta.smallest = self.smallest.ok_or_else(missing("smallest entry"))?;
        meta.largest = self.largest.ok_or_else(missing("largest entry"))?;
        Ok(meta)
    }
}

fn entry_bytes(key: &InternalKey) -> Vec<u8> {
    let mut body = Vec::with_capacity(8 + key.user_key.len());
    put_u64(&mut body, key.trailer);
    body.extend_from_slice(&key.user_key);
    body
}

/// An entry's place: trailer, then user key.
fn entry(body: &[u8]) -> Result<InternalKey, Undecodable> {
    let mut reader = Reader::new(body);
    let trailer = reader.u64().ok_or_else(|| corrupt("a key without a trailer"))?;
    Ok(InternalKey::new(reader.rest(), trailer))
}

fn id(body: &[u8]) -> Result<FileId, Undecodable> {
    let bytes = body.try_into().map_err(|_| corrupt("a table's id is not 16 bytes"))?;
    Ok(FileId(u128::from_le_bytes(bytes)))
}

fn checksum(body: &[u8]) -> Result<u32, Undecodable> {
    let bytes = body.try_into().map_err(|_| corrupt("a table's checksum is not 4 bytes"))?;
    Ok(u32::from_le_bytes(bytes))
}

fn format(body: &[u8]) -> Result<TableFormat, Undecodable> {
    match number(body, "a table's format")? {
        0 => Ok(TableFormat::Native),
        1 => Ok(TableFormat::LevelDb),
        other => Err(Undecodable::Unknown(format!("table format {other}"))),
    }
}

/// A sequence number in its bounds.
pub(crate) fn sequence(body: &[u8]) -> Result<u64, Undecodable> {
    let sequence = number(body, "a sequence number")?;
    if sequence > SEQUENCE_MAX {
        return Err(corrupt(format!("sequence number {sequence} is above 56 bits")));
    }
    Ok(sequence)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::coding::put_varint;
    use crate::key::{Kind, trailer};

    fn full() -> TableMeta {
        let mut unknown = Vec::new();
        put_bytes(&mut unknown, optional(98), b"of a later build");
        put_number(&mut unknown, optional(99), 7);
        TableMeta {
            number: 1_000,
            id: FileId(u128::MAX - 5),
            bytes: u64::MAX,
            checksum: 0xdead_beef,
            format: TableFormat::LevelDb,
            smallest: InternalKey::new(b"", trailer(SEQUENCE_MAX, Kind::Put)),
            largest: InternalKey::new(&[0xff; 300], u64::MAX),
            sequence_min: 1,
            sequence_max: SEQUENCE_MAX,
            sequence_override: Some(0),
            created_unix_seconds: 1_700_000_000,
            tombstones_unix_seconds: 1_600_000_000,
            entries: 5,
            tombstones: 2,
            range_tombstones: 1,
            key_bytes: 77,
            value_bytes: 88,
            unknown,
        }
    }

    /// Everything that is known of a table survives, extremes included.
    #[test]
    fn every_field_of_a_table_survives() {
        for meta in [full(), TableMeta::default()] {
            let mut bytes = Vec::new();
            encode(&meta, &mut bytes);
            assert_eq!(decode(&bytes), Ok(meta));
        }
    }

    /// A description that ends early is never taken for a smaller table.
    #[test]
    fn a_cut_description_without_identity_is_corrupt() {
        let mut bytes = Vec::new();
        encode(&TableMeta::default(), &mut bytes);
        for end in 0..bytes.len() {
            assert!(matches!(decode(&bytes[..end]), Err(Undecodable::Corrupt(_))), "{end}");
        }
    }

    /// A table that needs what this build has not is never opened without it.
    #[test]
    fn reserved_fields_and_formats_are_unknown() {
        for (tag, value) in [(required(6), 1), (required(18), 1), (FORMAT, 2)] {
            let mut bytes = Vec::new();
            encode(&TableMeta::default(), &mut bytes);
            put_number(&mut bytes, tag, value);
            assert!(matches!(decode(&bytes), Err(Undecodable::Unknown(_))), "{}", tag >> 1);
        }
    }

    /// A sequence number of 57 bits is refused; one of 56 bits is not.
    #[test]
    fn sequence_numbers_have_56_bits() {
        let mut bytes = Vec::new();
        put_varint(&mut bytes, SEQUENCE_MAX);
        assert_eq!(sequence(&bytes), Ok(SEQUENCE_MAX));
        bytes.clear();
        put_varint(&mut bytes, SEQUENCE_MAX + 1);
        assert!(sequence(&bytes).is_err());
    }
}
