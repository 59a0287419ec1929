//! The header of a log segment.
//!
//! It fills a block of 4 KiB, twice: bit rot in one copy, or a power loss that
//! tore the block of a recycled file, leaves the other.
//!
//! | OFFSET | SIZE | MEANING |
//! |---|---|---|
//! | 0 | 8 | magic |
//! | 8 | 4 | version: 0x0101, which is 1.1; in 1.0 no record is short |
//! | 12 | 4 | reserved |
//! | 16 | 8 | compatible features: unknown bits are ignored |
//! | 24 | 8 | read-compatible features: unknown bits forbid writing |
//! | 32 | 8 | incompatible features: unknown bits forbid reading |
//! | 40 | 8 | number of the segment, as in the file's name |
//! | 48 | 16 | id of the file |
//! | 64 | 16 | id of the database that it was written for (its origin) |
//! | 80 | 16 | id of the manifest in use when it was created |
//! | 96 | 8 | number of that manifest's last edit then |
//! | 104 | 8 | lowest sequence number that a record here may have |
//! | 112 | 8 | predecessor: number; 0: there is none |
//! | 120 | 16 | predecessor: id |
//! | 136 | 8 | predecessor: length when it was sealed |
//! | 144 | 8 | predecessor: bytes that were durable then |
//! | 152 | 4 | predecessor: checksum of its records |
//! | 156 | 4 | reserved |
//! | 160 | 16 | encryption key's id; 0: not encrypted |
//! | 176 | 2 | nonce bytes in each record |
//! | 178 | 2 | trailer bytes after each record |
//! | 180 | 72 | reserved |
//! | 252 | 4 | CRC-32C of bytes 0 to 252, in this and all later versions |
//!
//! The second copy is at offset 2048; everything else in the block
//! is reserved: written as 0, and ignored.

use std::ops::RangeInclusive;
use std::path::Path;

use crate::checksum::crc32c;
use crate::coding::{COUNTER_MAX, Reader, put_u16, put_u32, put_u64, put_u128};
use crate::compatibility::{FIRST_VERSION, Features, check_version};
use crate::error::{Error, Result};
use crate::fs::ReadableFile;
use crate::key::{FileId, SEQUENCE_MAX, SequenceNumber};
use crate::record::BLOCK_BYTES;

/// Where the first record starts.
pub(crate) const HEADER_BLOCK_BYTES: u64 = BLOCK_BYTES;
const HEADER_BYTES: usize = 256;
const COPIES_AT: [usize; 2] = [0, 2048];
const MAGIC: [u8; 8] = *b"lodewal\n";
/// What segments are written in: from here on, records may be short.
const VERSION: u32 = FIRST_VERSION + 1;
/// Segments of other versions are refused.
const KNOWN_VERSIONS: RangeInclusive<u32> = FIRST_VERSION..=VERSION;

/// What a segment says of itself before its first record.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SegmentHeader {
    /// As in the file's name; not 0.
    pub(crate) number: u64,
    /// The file's own id, new each time that a file is recycled.
    pub(crate) id: FileId,
    /// The database that it was written for; another one may have adopted it.
    pub(crate) database: FileId,
    /// The manifest in use when the segment was created.
    pub(crate) manifest_id: FileId,
    /// The number of that manifest's last edit then: a manifest that has not
    /// come as far is an older one, restored.
    pub(crate) manifest_edit: u64,
    /// No record here has a lower sequence number.
    pub(crate) first_sequence: SequenceNumber,
    /// The segment before this one; `None` if the database's log starts here.
    pub(crate) predecessor: Option<Predecessor>,
    /// Records may be short; false makes a segment of version 1.0.
    pub(crate) short_records: bool,
}

/// A sealed segment, as its successor knows it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Predecessor {
    pub(crate) number: u64,
    pub(crate) id: FileId,
    /// Where its last record ends.
    pub(crate) bytes: u64,
    /// It was durable up to here when the header was written.
    pub(crate) watermark: u64,
    /// The checksum of its records.
    pub(crate) checksum: u32,
}

/// What a file is opened for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    /// Features that forbid writing do not matter.
    ReadOnly,
    /// The database will be written to.
    ReadWrite,
}

/// What is at the start of a file.
#[derive(Debug)]
pub(super) enum Found {
    /// The header of the segment that was asked for.
    Header(Box<SegmentHeader>),
    /// The header of another segment.
    Other {
        /// That one's number.
        number: u64,
    },
    /// No whole header.
    Nothing,
}

impl SegmentHeader {
    /// The block that the file starts with.
    pub(super) fn encode(&self) -> Vec<u8> {
        assert!(self.number != 0 && self.first_sequence <= SEQUENCE_MAX);
        let predecessor = self.predecessor.unwrap_or_default();
        assert!(self.predecessor.is_none() || predecessor.number != 0);
        let mut one = Vec::with_capacity(HEADER_BYTES);
        one.extend_from_slice(&MAGIC);
        put_u32(&mut one, if self.short_records { VERSION } else { FIRST_VERSION });
        put_u32(&mut one, 0);
        Features::default().encode(&mut one);
        put_u64(&mut one, self.number);
        put_u128(&mut one, self.id.0);
        put_u128(&mut one, self.database.0);
        put_u128(&mut one, self.manifest_id.0);
        put_u64(&mut one, self.manifest_edit);
        put_u64(&mut one, self.first_sequence);
        put_u64(&mut one, predecessor.number);
        put_u128(&mut one, predecessor.id.0);
        put_u64(&mut one, predecessor.bytes);
        put_u64(&mut one, predecessor.watermark);
        put_u32(&mut one, predecessor.checksum);
        put_u32(&mut one, 0);
        // Not encrypted: no key, no nonce, no trailer.
        put_u128(&mut one, 0);
        put_u16(&mut one, 0);
        put_u16(&mut one, 0);
        one.resize(HEADER_BYTES - 4, 0);
        let checksum = crc32c(&one);
        put_u32(&mut one, checksum);

        let mut block = vec![0; HEADER_BLOCK_BYTES as usize];
        for at in COPIES_AT {
            block[at..at + HEADER_BYTES].copy_from_slice(&one);
        }
        block
    }

    /// The header in `bytes`; `None` if there is none or it is damaged.
    fn decode(bytes: &[u8], path: &Path, access: Access) -> Result<Option<SegmentHeader>> {
        let Some((covered, checksum)) =
            bytes.get(..HEADER_BYTES).and_then(|b| b.split_last_chunk::<4>())
        else {
            return Ok(None);
        };
        if covered[..8] != MAGIC || crc32c(covered) != u32::from_le_bytes(*checksum) {
            return Ok(None);
        }
        refuse_unknown(covered, path, access)?;
        let header = Self::decode_fields(covered);
        header
            .map(Some)
            .ok_or_else(|| Error::corruption(path, 0, "a log's header has invalid fields"))
    }

    fn decode_fields(covered: &[u8]) -> Option<SegmentHeader> {
        let version = Reader::new(&covered[8..]).u32()?;
        let mut reader = Reader::new(&covered[40..]);
        let number = reader.u64()?;
        let id = FileId(reader.u128()?);
        let database = FileId(reader.u128()?);
        let manifest_id = FileId(reader.u128()?);
        let (manifest_edit, first_sequence) = (reader.u64()?, reader.u64()?);
        let predecessor = Predecessor {
            number: reader.u64()?,
            id: FileId(reader.u128()?),
            bytes: reader.u64()?,
            watermark: reader.u64()?,
            checksum: reader.u32()?,
        };
        // Going back from segment to segment must come to an end.
        let valid = first_sequence <= SEQUENCE_MAX
            && predecessor.number < number
            && number.max(manifest_edit) <= COUNTER_MAX;
        let predecessor = (predecessor.number != 0).then_some(predecessor);
        let header = SegmentHeader {
            number,
            id,
            database,
            manifest_id,
            manifest_edit,
            first_sequence,
            predecessor,
            short_records: version >= VERSION,
        };
        valid.then_some(header)
    }
}

/// # Errors
/// `Incompatible` if the header asks for more than this build knows.
fn refuse_unknown(covered: &[u8], path: &Path, access: Access) -> Result<()> {
    let mut reader = Reader::new(&covered[8..]);
    let version = reader.u32().expect("the header is longer");
    check_version(path, version, &KNOWN_VERSIONS)?;
    let features = Features::decode(&mut Reader::new(&covered[16..]));
    let features = features.expect("the header is longer");
    features.check_readable(path)?;
    if access == Access::ReadWrite {
        features.check_writable(path)?;
    }
    if covered[160..180].iter().any(|&byte| byte != 0) {
        return Err(Error::newer(path, "log is encrypted"));
    }
    Ok(())
}

/// Reads the header of segment `number` from the start of `file`.
///
/// # Errors
/// `Io`; `Incompatible`; `Corruption` for a header that is whole but makes no
/// sense.
pub(super) fn read(
    file: &dyn ReadableFile,
    path: &Path,
    number: u64,
    access: Access,
) -> Result<Found> {
    let mut found = Found::Nothing;
    for header in read_copies(file, path, access)? {
        match header.number == number {
            true => return Ok(Found::Header(Box::new(header))),
            // The block of a recycled file may be half the old one.
            false => found = Found::Other { number: header.number },
        }
    }
    Ok(found)
}

/// Reads the header of whatever segment `file` is: of two, the newer one.
///
/// # Errors
/// As [`read`]; `Corruption` if there is no whole header.
pub(crate) fn read_any(file: &dyn ReadableFile, path: &Path) -> Result<SegmentHeader> {
    let copies = read_copies(file, path, Access::ReadOnly)?;
    let newest = copies.into_iter().max_by_key(|header| header.number);
    newest.ok_or_else(|| Error::corruption(path, 0, "this is no log, or its header is damaged"))
}

/// The copies of the header that are whole.
fn read_copies(file: &dyn ReadableFile, path: &Path, access: Access) -> Result<Vec<SegmentHeader>> {
    let mut block = vec![0; HEADER_BLOCK_BYTES as usize];
    let length = file.length().map_err(|error| Error::io(path, "get length of", error))?;
    block.truncate(length.min(HEADER_BLOCK_BYTES) as usize);
    crate::fs::read_full_at(file, 0, &mut block).map_err(|error| Error::io(path, "read", error))?;
    let copies = COPIES_AT.iter().map(|&at| block.get(at..).unwrap_or_default());
    copies.filter_map(|copy| SegmentHeader::decode(copy, path, access).transpose()).collect()
}
