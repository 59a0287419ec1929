//! What the database knows of a table without opening it. The manifest stores
//! this for every live table.

use crate::key::{FileId, InternalKey, SequenceNumber, TRAILER_NEWEST};

/// Which program's format a table has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[repr(u8)]
pub(crate) enum TableFormat {
    #[default]
    Native = 0,
    LevelDb = 1,
}

/// One table, as the manifest records it.
#[derive(Clone, Debug, PartialEq, Default)]
pub(crate) struct TableMeta {
    /// The file's number; its name follows from it.
    pub(crate) number: u64,
    /// Must equal the id in the file itself.
    pub(crate) id: FileId,
    /// Length of the file; a file of another length is not this one.
    pub(crate) bytes: u64,
    /// CRC-32C over the file's block checksums in order, as the footer has it.
    pub(crate) checksum: u32,
    pub(crate) format: TableFormat,
    /// First and last entry. Range deletes count too; where one reaches behind
    /// the last entry, its end stands with `TRAILER_NEWEST`: it is a bound, and
    /// no key of the table.
    pub(crate) smallest: InternalKey,
    pub(crate) largest: InternalKey,
    /// Lowest and highest sequence number within.
    pub(crate) sequence_min: SequenceNumber,
    pub(crate) sequence_max: SequenceNumber,
    /// If set, every entry and range delete counts as having this sequence
    /// number, whatever the file says (ingested).
    pub(crate) sequence_override: Option<SequenceNumber>,
    /// When its file was written, in seconds since 1970; 0: not known.
    pub(crate) created_unix_seconds: u64,
    /// Its oldest tombstone may be from then; 0: it has none, or it is not known.
    pub(crate) tombstones_unix_seconds: u64,
    pub(crate) entries: u64,
    /// Deletes and single deletes among them.
    pub(crate) tombstones: u64,
    /// Range deletes: one for each sequence number of each fragment.
    pub(crate) range_tombstones: u64,
    /// Length of all keys and of all values, before compression.
    pub(crate) key_bytes: u64,
    pub(crate) value_bytes: u64,
    /// Fields of later builds that need not be known here, as the manifest has them.
    pub(crate) unknown: Vec<u8>,
}

impl TableMeta {
    /// The highest sequence number that something in the table counts as having.
    pub(crate) fn newest_sequence(&self) -> SequenceNumber {
        self.sequence_override.unwrap_or(self.sequence_max)
    }

    /// True if something in it deletes.
    pub(crate) fn has_tombstones(&self) -> bool {
        self.tombstones > 0 || self.range_tombstones > 0
    }

    /// The same table, written at `created`; its tombstones, if there are any, may
    /// be from `tombstones` on.
    pub(crate) fn dated(self, created: u64, tombstones: u64) -> TableMeta {
        let tombstones_unix_seconds = if self.has_tombstones() { tombstones } else { 0 };
        TableMeta { created_unix_seconds: created, tombstones_unix_seconds, ..self }
    }

    /// The same table with `sequence` as the number of everything in it.
    pub(crate) fn with_sequence(mut self, sequence: SequenceNumber) -> TableMeta {
        for bound in [&mut self.smallest, &mut self.largest] {
            if bound.trailer != TRAILER_NEWEST {
                bound.trailer = sequence << 8 | bound.trailer & 0xff;
            }
        }
        (self.sequence_min, self.sequence_max) = (sequence, sequence);
        self.sequence_override = Some(sequence);
        self
    }
}
