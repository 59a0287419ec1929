//! What the parts of this module say of entries, tables and families.

use crate::filename;
use crate::key::{FileId, Kind, SequenceNumber};
use crate::table::meta::{TableFormat, TableMeta};
use crate::version::FamilyDescriptor;

pub use crate::table::Engine;

/// Something that is stored of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Entry {
    /// The key; for a range delete, the first one that is deleted.
    pub key: Vec<u8>,
    /// Its sequence number; 0 once no snapshot could tell it from older ones.
    pub sequence: SequenceNumber,
    /// What is said of the key.
    pub kind: Kind,
    /// The value or operand; for a range delete, the first key after it that is
    /// not deleted; empty for other deletes.
    pub value: Vec<u8>,
}

/// A table, as the manifest describes it. Of a table in LevelDB's format counts are
/// estimates where the database is ours, and 0 where it is LevelDB's; sequence
/// numbers of a level below 0 are bounds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct TableInfo {
    /// The engine whose format it has.
    pub engine: Engine,
    /// The name of its file, below the directory of the database.
    pub(super) name: String,
    /// The file's number.
    pub number: u64,
    /// The id that the file must have; 0 in a LevelDB database.
    pub id: FileId,
    /// Length of the file.
    pub bytes: u64,
    /// Checksum over all checksums of the file; 0 in LevelDB's format.
    pub checksum: u32,
    /// Entries, deletes included.
    pub entries: u64,
    /// Deletes and single deletes among them.
    pub tombstones: u64,
    /// Range deletes.
    pub range_deletes: u64,
    /// Bytes of all keys, before compression.
    pub key_bytes: u64,
    /// Bytes of all values, before compression.
    pub value_bytes: u64,
    /// The first key.
    pub smallest: Vec<u8>,
    /// Sequence number and kind of the first entry, as `sequence << 8 | kind`;
    /// `u64::MAX` if its key is a bound before it.
    pub smallest_trailer: u64,
    /// The last key, or where its last range delete ends.
    pub largest: Vec<u8>,
    /// The same of the last entry; `u64::MAX` if the key is a bound behind it.
    pub largest_trailer: u64,
    /// The lowest sequence number in it.
    pub sequence_min: SequenceNumber,
    /// The highest one.
    pub sequence_max: SequenceNumber,
    /// The number that all entries count as having, whatever is in the file.
    pub sequence_override: Option<SequenceNumber>,
    /// When its file was written, in seconds since 1970; 0: not known.
    pub created_unix_seconds: u64,
    /// Its oldest delete may be from then; 0: it has none, or it is not known.
    pub tombstones_unix_seconds: u64,
}

impl TableInfo {
    /// The name of its file, below the directory of the database. A manifest of
    /// LevelDB alone does not say whether it ends in `.ldb` or `.sst`: the newer
    /// one is given.
    pub fn file_name(&self) -> String {
        self.name.clone()
    }
}

impl From<&TableMeta> for TableInfo {
    fn from(meta: &TableMeta) -> TableInfo {
        TableInfo {
            engine: match meta.format {
                TableFormat::LevelDb => Engine::LevelDb,
                TableFormat::Native => Engine::Lodestore,
            },
            name: filename::table_name(meta.number),
            number: meta.number,
            id: meta.id,
            bytes: meta.bytes,
            checksum: meta.checksum,
            entries: meta.entries,
            tombstones: meta.tombstones,
            range_deletes: meta.range_tombstones,
            key_bytes: meta.key_bytes,
            value_bytes: meta.value_bytes,
            smallest: meta.smallest.user_key.clone(),
            smallest_trailer: meta.smallest.trailer,
            largest: meta.largest.user_key.clone(),
            largest_trailer: meta.largest.trailer,
            sequence_min: meta.sequence_min,
            sequence_max: meta.sequence_max,
            sequence_override: meta.sequence_override,
            created_unix_seconds: meta.created_unix_seconds,
            tombstones_unix_seconds: meta.tombstones_unix_seconds,
        }
    }
}

/// What the manifest says of a family for ever.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FamilyInfo {
    /// Its number in batches and logs.
    pub id: u32,
    /// Its name.
    pub name: String,
    /// The name of its order of keys.
    pub comparator: String,
    /// The name of its merge operator.
    pub merge_operator: Option<String>,
    /// The name of what maps its keys to prefixes.
    pub prefix_extractor: Option<String>,
}

impl From<&FamilyDescriptor> for FamilyInfo {
    fn from(descriptor: &FamilyDescriptor) -> FamilyInfo {
        FamilyInfo {
            id: descriptor.id,
            name: descriptor.name.clone(),
            comparator: descriptor.comparator.clone(),
            merge_operator: descriptor.merge_operator.clone(),
            prefix_extractor: descriptor.prefix_extractor.clone(),
        }
    }
}
