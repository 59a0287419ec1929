//! Record framing: how the write-ahead log and the manifest keep records of
//! any length in a file, and how their reader knows where the file ends.
//!
//! Every record starts at a multiple of 8 bytes:
//!
//! | OFFSET | SIZE | MEANING |
//! |---|---|---|
//! | 0 | 4 | CRC-32C of bytes 4 to 24, xor the context of file id and offset |
//! | 4 | 4 | tag: CRC-32C of the file's id |
//! | 8 | 4 | length of the payload |
//! | 12 | 4 | CRC-32C of payload and fill |
//! | 16 | 1 | kind |
//! | 17 | 1 | flags, must be 0 |
//! | 18 | 6 | watermark: the file's bytes below this offset were durable before the record was written |
//! | 24 | .. | payload, then zeros up to a multiple of 8 |
//!
//! The header has a checksum of its own, so that a scan for a later watermark
//! looks at each place once, whatever lengths a hostile file claims. Tag and
//! context tie a record to its file and place: in a recycled file, the records
//! of the former life don't count.
//!
//! In the log, behind such a record, there may be short ones in the same block
//! (see `short`): most records of small batches are.

mod short;
mod window;

mod reader;
mod scan;
mod writer;

pub(crate) use reader::{End, Next, RecordReader};
pub(crate) use scan::{Scan, find_short, scan};
pub(crate) use writer::{Failure, RecordWriter};

use crate::checksum::{Crc32c, context, crc32c};
use crate::key::FileId;

/// Bytes before a record's payload.
pub(crate) const HEADER_BYTES: usize = 24;
/// Records start at multiples of this.
pub(crate) const ALIGNMENT: usize = 8;
/// What is durable ends at a multiple of this, so that no later write touches
/// a block that holds acknowledged bytes.
pub(crate) const BLOCK_BYTES: u64 = 4096;
/// Watermarks have 48 bits.
const OFFSET_MAX: u64 = (1 << 48) - 1;

/// What a record is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Kind {
    /// What the file is kept for.
    Payload = 1,
    /// Fills the rest of a block.
    Skip = 2,
    /// All bytes of the file before this one (by the header of this one) were
    /// durable before the record was written.
    PredecessorDurable = 3,
    /// The manifest had come to the edit of this number (8 bytes), durably.
    ManifestEdit = 4,
}

/// Kinds from here on may be skipped by a reader that does not know them;
/// below, it must refuse the file.
const KIND_SKIPPABLE: u8 = 0x80;

impl Kind {
    /// The known kind stored as `byte`.
    fn from_byte(byte: u8) -> Option<Kind> {
        match byte {
            1 => Some(Kind::Payload),
            2 => Some(Kind::Skip),
            3 => Some(Kind::PredecessorDurable),
            4 => Some(Kind::ManifestEdit),
            _ => None,
        }
    }
}

/// A file's id, and the tag that follows from it.
#[derive(Clone, Copy, Debug)]
struct Owner {
    id: FileId,
    tag: u32,
}

impl Owner {
    fn new(id: FileId) -> Owner {
        Owner { id, tag: crc32c(&id.0.to_le_bytes()) }
    }
}

/// A header that passed its check.
#[derive(Clone, Copy, Debug)]
struct Header {
    /// As stored: what [`Chain`] is made of.
    checksum: u32,
    payload_bytes: u32,
    payload_checksum: u32,
    kind: u8,
    flags: u8,
    watermark: u64,
}

impl Header {
    /// The header at `offset` of the file of `owner`; `None` if the bytes are
    /// none, damaged or another file's or place's.
    #[inline]
    fn decode(bytes: &[u8; HEADER_BYTES], owner: Owner, offset: u64) -> Option<Header> {
        let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("4 bytes"));
        if word(4) != owner.tag {
            return None;
        }
        let checksum = word(0);
        if checksum != crc32c(&bytes[4..]) ^ context(owner.id, offset) {
            return None;
        }
        let last = u64::from_le_bytes(bytes[16..24].try_into().expect("8 bytes"));
        Some(Header {
            checksum,
            payload_bytes: word(8),
            payload_checksum: word(12),
            kind: bytes[16],
            flags: bytes[17],
            watermark: last >> 16,
        })
    }

    /// Bytes of the payload with the zeros that follow it.
    fn filled_bytes(&self) -> u64 {
        u64::from(self.payload_bytes).next_multiple_of(ALIGNMENT as u64)
    }
}

/// Appends to `out` a record that will stand at `offset` of its file. Returns
/// the header's checksum.
fn encode(
    out: &mut Vec<u8>,
    owner: Owner,
    offset: u64,
    kind: Kind,
    watermark: u64,
    payload: &[u8],
) -> u32 {
    let start = out.len();
    let filled = payload.len().next_multiple_of(ALIGNMENT);
    out.reserve(HEADER_BYTES + filled + ALIGNMENT);
    out.extend_from_slice(&[0; HEADER_BYTES]);
    out.extend_from_slice(payload);
    // A fixed number of zeros, of which some go again, is one store.
    out.extend_from_slice(&[0; ALIGNMENT]);
    out.truncate(start + HEADER_BYTES + filled);
    let payload_checksum = crc32c(&out[start + HEADER_BYTES..]);
    let length = payload.len();
    let (header, checksum) = header(owner, offset, kind, watermark, length, payload_checksum);
    out[start..start + HEADER_BYTES].copy_from_slice(&header);
    checksum
}

/// As [`encode`], of a record whose payload stays where it is: appends what
/// stands before it and behind it. Also returns where in `out` it belongs.
#[cold]
fn encode_around(
    out: &mut Vec<u8>,
    owner: Owner,
    offset: u64,
    kind: Kind,
    watermark: u64,
    payload: &[u8],
) -> (u32, usize) {
    let length = payload.len();
    let zeros = &[0; ALIGNMENT][..length.next_multiple_of(ALIGNMENT) - length];
    let mut payload_checksum = Crc32c::new();
    payload_checksum.update(payload);
    payload_checksum.update(zeros);
    let payload_checksum = payload_checksum.value();
    let (header, checksum) = header(owner, offset, kind, watermark, length, payload_checksum);
    out.extend_from_slice(&header);
    let place = out.len();
    out.extend_from_slice(zeros);
    (checksum, place)
}

/// A record's header, and its checksum.
#[inline(always)]
fn header(
    owner: Owner,
    offset: u64,
    kind: Kind,
    watermark: u64,
    payload_bytes: usize,
    payload_checksum: u32,
) -> ([u8; HEADER_BYTES], u32) {
    debug_assert!(offset.is_multiple_of(ALIGNMENT as u64));
    assert!(watermark <= offset && offset <= OFFSET_MAX, "a log file passes 2^48 bytes");
    let length = u32::try_from(payload_bytes).expect("a payload has at most 4 GiB");
    let mut header = [0; HEADER_BYTES];
    header[4..8].copy_from_slice(&owner.tag.to_le_bytes());
    header[8..12].copy_from_slice(&length.to_le_bytes());
    header[12..16].copy_from_slice(&payload_checksum.to_le_bytes());
    header[16..24].copy_from_slice(&(watermark << 16 | kind as u64).to_le_bytes());
    let checksum = crc32c(&header[4..]) ^ context(owner.id, offset);
    header[..4].copy_from_slice(&checksum.to_le_bytes());
    (header, checksum)
}

/// The checksum of a whole file: a mix of the headers' checksums in order, each
/// of which covers its payload's. No CRC: that would cost a call for each
/// record, and the records are checked already; this tells apart sound records.
/// Every step is a bijection, so that one changed record always shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Chain(u32);

impl Chain {
    #[inline]
    fn add(&mut self, header_checksum: u32) {
        self.0 = (self.0.rotate_left(7) ^ header_checksum).wrapping_mul(0x9e37_79b1);
    }
}

#[cfg(all(test, not(simulation)))]
mod tests;
