//! A stored block: its bytes, perhaps compressed, then its type and checksum.
//!
//! | offset | size | meaning |
//! |---|---|---|
//! | 0 | n | type 0: the block; else its length as a varint, then the codec's bytes |
//! | n | 1 | type: 0 none, 1 Snappy, 4 LZ4, 7 Zstd (RocksDB's numbers), with the table's
//! | | | dictionary if it has one |
//! | n + 1 | 4 | CRC-32C of bytes 0 to n, xor context(file id, offset of the block) |
//!
//! Hostile bytes: a claimed length is compared with a cap before anything is
//! allocated; the writer keeps to the same cap by storing such blocks raw.

use std::cell::RefCell;

use zstd::zstd_safe::{self, CCtx, CDict, DCtx};

use crate::checksum::{Crc32c, context, crc32c};
use crate::coding::{Reader, put_varint};
use crate::cursor::StoredBlock;
use crate::error::Undecodable;
use crate::key::FileId;
use crate::lz4;
use crate::snappy;
use crate::sync::Arc;
use crate::unpack;

use super::dictionary::Dictionary;
use super::layout::SLACK_BYTES;
use super::{Checked, Compression};

/// Type byte and checksum.
pub(super) const TRAILER_BYTES: usize = 5;

pub(super) const TYPE_NONE: u8 = 0;
const TYPE_SNAPPY: u8 = 1;
const TYPE_LZ4: u8 = 4;
const TYPE_ZSTD: u8 = 7;

/// A compressed block is at most this long when decompressed...
const DECOMPRESSED_BYTES_MAX: u64 = 64 << 20;
/// ...and, beyond this length,
const DECOMPRESSED_BYTES_FREE: u64 = 1 << 20;
/// ...at most so many times longer than what is stored.
const RATIO_MAX: u64 = 1024;

/// True if a block of `stored` bytes may claim to decompress to `raw` bytes.
fn ratio_is_allowed(raw: u64, stored: u64) -> bool {
    raw <= DECOMPRESSED_BYTES_MAX
        && raw <= DECOMPRESSED_BYTES_FREE.max(stored.saturating_mul(RATIO_MAX))
}

/// Compresses blocks, keeping the codec's tables between them.
pub(super) struct Compressor {
    codec: Codec,
    scratch: Vec<u8>,
    head: Vec<u8>,
}

/// A stored block, in the pieces that it is written in.
pub(super) struct Sealed<'a> {
    /// The length of the block before compression, if it is compressed.
    head: &'a [u8],
    pub(super) payload: &'a [u8],
    type_byte: u8,
    pub(super) checksum: u32,
}

impl<'a> Sealed<'a> {
    /// A block of another table as the stored block at `offset` of file `id`.
    pub(super) fn again(stored: StoredBlock<'a>, id: FileId, offset: u64) -> Sealed<'a> {
        let StoredBlock { payload, type_byte, crc32c, .. } = stored;
        Sealed { head: &[], payload, type_byte, checksum: crc32c ^ context(id, offset) }
    }

    /// True if no codec has made it shorter.
    pub(super) fn is_raw(&self) -> bool {
        self.type_byte == TYPE_NONE
    }

    /// What precedes the payload.
    pub(super) fn put_head(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.head);
    }

    /// What follows it: type byte and checksum.
    pub(super) fn put_tail(&self, out: &mut Vec<u8>) {
        out.push(self.type_byte);
        out.extend_from_slice(&self.checksum.to_le_bytes());
    }

    #[cfg(test)]
    fn to_vec(&self) -> Vec<u8> {
        let mut out = self.head.to_vec();
        out.extend_from_slice(self.payload);
        self.put_tail(&mut out);
        out
    }
}

enum Codec {
    None,
    Snappy(snappy::Encoder),
    Lz4(lz4_flex::block::CompressTable),
    Zstd(Zstd),
}

struct Zstd {
    context: CCtx<'static>,
    level: i32,
    dictionary: Option<CDict<'static>>,
}

impl std::fmt::Debug for Compressor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Compressor").field("type_byte", &self.type_byte()).finish()
    }
}

impl Compressor {
    pub(super) fn new(compression: Compression) -> std::io::Result<Compressor> {
        let codec = match compression {
            Compression::None => Codec::None,
            Compression::Snappy => Codec::Snappy(snappy::Encoder::new()),
            Compression::Lz4 => Codec::Lz4(lz4_flex::block::CompressTable::default()),
            Compression::Zstd { level } => {
                let range = zstd::compression_level_range();
                let level = level.clamp(*range.start(), *range.end());
                let context = CCtx::try_create().ok_or(std::io::ErrorKind::OutOfMemory)?;
                Codec::Zstd(Zstd { context, level, dictionary: None })
            }
        };
        Ok(Compressor { codec, scratch: Vec::new(), head: Vec::new() })
    }

    /// The type byte of blocks that shrink enough.
    pub(super) fn type_byte(&self) -> u8 {
        match self.codec {
            Codec::None => TYPE_NONE,
            Codec::Snappy(_) => TYPE_SNAPPY,
            Codec::Lz4(_) => TYPE_LZ4,
            Codec::Zstd(_) => TYPE_ZSTD,
        }
    }

    /// Compresses with a dictionary from here on; `None` if it cannot, as every
    /// codec but Zstandard.
    pub(super) fn set_dictionary(&mut self, dictionary: &[u8]) -> Option<()> {
        let Codec::Zstd(zstd) = &mut self.codec else { return None };
        zstd.dictionary = Some(CDict::try_create(dictionary, zstd.level)?);
        Some(())
    }

    /// How long `raw` is as a stored block, but for its trailer.
    pub(super) fn stored_bytes(&mut self, raw: &[u8]) -> usize {
        self.compress(raw).unwrap_or(raw.len())
    }

    /// `raw` as the stored block at `offset` of file `id`.
    pub(super) fn seal<'a>(&'a mut self, raw: &'a [u8], id: FileId, offset: u64) -> Sealed<'a> {
        self.head.clear();
        let (payload, type_byte) = match self.compress(raw) {
            Some(length) => {
                put_varint(&mut self.head, raw.len() as u64);
                (&self.scratch[..length], self.type_byte())
            }
            None => (raw, TYPE_NONE),
        };
        let mut checksum = Crc32c::new();
        [&self.head, payload, &[type_byte]].into_iter().for_each(|part| checksum.update(part));
        let checksum = checksum.value() ^ context(id, offset);
        Sealed { head: &self.head, payload, type_byte, checksum }
    }

    /// Compresses into the scratch buffer: to how many bytes. `None` if the
    /// block is to be stored raw. A codec that fails on sound input costs
    /// space, never the block.
    fn compress(&mut self, raw: &[u8]) -> Option<usize> {
        if raw.len() as u64 > DECOMPRESSED_BYTES_MAX || matches!(self.codec, Codec::None) {
            return None;
        }
        let bound = match &self.codec {
            Codec::None => 0,
            Codec::Snappy(_) => snappy::encoded_bytes_max(raw.len()),
            Codec::Lz4(_) => lz4_flex::block::get_maximum_output_size(raw.len()),
            Codec::Zstd(_) => zstd_safe::compress_bound(raw.len()),
        };
        if self.scratch.len() < bound {
            self.scratch.resize(bound, 0);
        }
        let out = &mut self.scratch[..];
        let length = match &mut self.codec {
            Codec::None => None,
            Codec::Snappy(encoder) => Some(encoder.encode(raw, out)),
            Codec::Lz4(table) => lz4_flex::block::compress_into_with_table(raw, out, table).ok(),
            Codec::Zstd(Zstd { context, level, dictionary }) => match dictionary {
                Some(dictionary) => context.compress_using_cdict(out, raw, dictionary).ok(),
                None => context.compress(out, raw, *level).ok(),
            },
        }?;
        let worth_it = length < raw.len() - raw.len() / 8;
        let allowed = ratio_is_allowed(raw.len() as u64, length as u64);
        (worth_it && allowed).then_some(length)
    }
}

/// The name of the codec that a type byte stands for.
pub(super) fn name(kind: u8) -> &'static str {
    match kind {
        TYPE_NONE => "none",
        TYPE_SNAPPY => "snappy",
        TYPE_LZ4 => "lz4",
        TYPE_ZSTD => "zstd",
        _ => "unknown",
    }
}

/// The pieces of a block that was stored at `offset` of file `id` of a table
/// with this codec, and that was found sound; `None` if other tables could not
/// read it, or if its codec has levels: who sets another one expects it used.
pub(super) fn portable(
    stored: &[u8],
    table_codec: u8,
    id: FileId,
    offset: u64,
) -> Option<StoredBlock<'_>> {
    let (covered, checksum) = stored.split_last_chunk::<4>()?;
    let (&type_byte, payload) = covered.split_last()?;
    let crc32c = u32::from_le_bytes(*checksum) ^ context(id, offset);
    let has_levels = type_byte == TYPE_ZSTD || table_codec == TYPE_ZSTD;
    (!has_levels).then_some(StoredBlock { payload, type_byte, table_codec, crc32c })
}

/// The checksum stored with a block, for the file's witness.
pub(super) fn stored_checksum(stored: &[u8]) -> Option<u32> {
    stored.last_chunk::<4>().map(|bytes| u32::from_le_bytes(*bytes))
}

/// Checks and decompresses a stored block of a table with this `dictionary`.
/// The result has [`SLACK_BYTES`] bytes of no meaning after the block. `Err`
/// says what is wrong.
pub(super) fn open(
    stored: &[u8],
    id: FileId,
    offset: u64,
    dictionary: Option<&Dictionary>,
) -> Checked<Arc<[u8]>, Undecodable> {
    let payload = check(stored, id, offset)?;
    match stored[payload.len()] {
        TYPE_NONE => Ok(with_slack(payload)),
        kind => decompress(kind, payload, dictionary),
    }
}

/// As [`open`], for a buffer that was read with the slack behind it: if the
/// block is stored raw, the buffer becomes the block without a copy.
pub(super) fn open_in_place(
    buffer: Arc<[u8]>,
    id: FileId,
    offset: u64,
    dictionary: Option<&Dictionary>,
) -> Checked<Arc<[u8]>, Undecodable> {
    let stored = &buffer[..buffer.len() - (SLACK_BYTES - TRAILER_BYTES)];
    let payload = check(stored, id, offset)?;
    match stored[payload.len()] {
        TYPE_NONE => Ok(buffer),
        kind => decompress(kind, payload, dictionary),
    }
}

/// What is stored as the checksum of `covered`, payload and type byte, at
/// `offset` of file `id`.
#[cfg(feature = "internals")]
pub(super) fn checksum(covered: &[u8], id: FileId, offset: u64) -> u32 {
    crc32c(covered) ^ context(id, offset)
}

/// The payload of a stored block whose checksum is right.
fn check(stored: &[u8], id: FileId, offset: u64) -> Checked<&[u8], Undecodable> {
    let (covered, checksum) = stored.split_last_chunk::<4>().ok_or("block too short")?;
    let payload = covered.split_last().ok_or("block too short")?.1;
    if crc32c(covered) ^ context(id, offset) != u32::from_le_bytes(*checksum) {
        return Err("wrong checksum of a block".into());
    }
    Ok(payload)
}

fn with_slack(payload: &[u8]) -> Arc<[u8]> {
    let copied = unpack::shared(payload.len(), |mut room| {
        room.literal(payload, payload.len())?;
        Some(room)
    });
    copied.expect("there is room for as much")
}

/// A shared slice of zeros, made without a second copy.
pub(super) fn zeroed(length: usize) -> Arc<[u8]> {
    // The standard library fills the allocation in place for such iterators.
    std::iter::repeat_n(0, length).collect()
}

fn decompress(
    kind: u8,
    payload: &[u8],
    dictionary: Option<&Dictionary>,
) -> Checked<Arc<[u8]>, Undecodable> {
    if !matches!(kind, TYPE_SNAPPY | TYPE_LZ4 | TYPE_ZSTD) {
        return Err(Undecodable::Unknown(format!("a block compressed with codec {kind}")));
    }
    let mut reader = Reader::new(payload);
    let raw_bytes = reader.varint().ok_or("compressed block without a length")?;
    let compressed = reader.rest();
    if !ratio_is_allowed(raw_bytes, compressed.len() as u64) {
        let what = format!("{} bytes claim to be {raw_bytes} decompressed", compressed.len());
        return Err(what.into());
    }
    let raw_bytes = raw_bytes as usize;
    let does_not = || "block does not decompress".into();
    match kind {
        TYPE_SNAPPY => {
            let claim = snappy::content_bytes(compressed).ok_or_else(does_not)?;
            if claim.0 != raw_bytes {
                return Err(
                    format!("block of {} bytes, but {raw_bytes} were claimed", claim.0).into()
                );
            }
            unpack::shared(raw_bytes, |room| snappy::decode(claim.1, room)).ok_or_else(does_not)
        }
        TYPE_LZ4 => {
            unpack::shared(raw_bytes, |room| lz4::decode(compressed, room)).ok_or_else(does_not)
        }
        _ => decompress_zstd(compressed, raw_bytes, dictionary),
    }
}

fn decompress_zstd(
    compressed: &[u8],
    raw_bytes: usize,
    dictionary: Option<&Dictionary>,
) -> Checked<Arc<[u8]>, Undecodable> {
    let mut block = zeroed(raw_bytes + SLACK_BYTES);
    let bytes = Arc::get_mut(&mut block).expect("a new Arc has one owner");
    let out = &mut bytes[..raw_bytes];
    let length = ZSTD.with_borrow_mut(|slot| {
        let context = match slot {
            Some(context) => context,
            None => slot.insert(DCtx::try_create().ok_or("no memory to decompress a block")?),
        };
        let length = match dictionary {
            Some(dictionary) => {
                context.decompress_using_ddict(out, compressed, dictionary.digested())
            }
            None => context.decompress(out, compressed),
        };
        length.map_err(|code| {
            format!("block does not decompress: {}", zstd_safe::get_error_name(code))
        })
    })?;
    if length != raw_bytes {
        return Err(format!("block of {length} bytes, but {raw_bytes} were claimed").into());
    }
    Ok(block)
}

thread_local! {
    // A Zstd context is 150 KB and takes longer to make than a block to read.
    static ZSTD: RefCell<Option<DCtx<'static>>> = const { RefCell::new(None) };
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: FileId = FileId(77);

    fn codecs() -> [Compression; 4] {
        [Compression::None, Compression::Snappy, Compression::Lz4, Compression::Zstd { level: 1 }]
    }

    /// What is sealed opens to the same bytes, with every codec and length.
    #[test]
    fn sealed_blocks_open_again() {
        for compression in codecs() {
            let mut compressor = Compressor::new(compression).unwrap();
            for length in [0, 1, 100, 4096, 70_000, 3 << 20] {
                let raw: Vec<u8> = (0..length).map(|i| (i / 7 % 11) as u8).collect();
                let out = compressor.seal(&raw, ID, 32).to_vec();
                let block = open(&out, ID, 32, None).unwrap();
                assert_eq!(&block[..block.len() - SLACK_BYTES], &raw[..], "{compression:?}");
                let mut buffer = out.clone();
                buffer.extend_from_slice(&[0xee; SLACK_BYTES - TRAILER_BYTES]);
                let block = open_in_place(buffer.into(), ID, 32, None).unwrap();
                assert_eq!(&block[..block.len() - SLACK_BYTES], &raw[..], "{compression:?}");
            }
        }
    }

    /// A block read from another place or file is refused.
    #[test]
    fn blocks_are_bound_to_their_place() {
        let out = Compressor::new(Compression::None).unwrap().seal(b"block", ID, 32).to_vec();
        assert!(open(&out, ID, 37, None).is_err());
        assert!(open(&out, FileId(78), 32, None).is_err());
    }

    /// A small block that claims to be large allocates nothing.
    #[test]
    fn decompression_bombs_are_refused() {
        for kind in [TYPE_SNAPPY, TYPE_LZ4, TYPE_ZSTD] {
            let mut payload = Vec::new();
            put_varint(&mut payload, u64::MAX / 2);
            payload.extend_from_slice(&[0; 100]);
            let refused = decompress(kind, &payload, None).unwrap_err();
            assert!(refused.into_text().contains("claim"));
        }
        assert!(ratio_is_allowed(DECOMPRESSED_BYTES_MAX, DECOMPRESSED_BYTES_MAX / RATIO_MAX));
        assert!(!ratio_is_allowed(DECOMPRESSED_BYTES_MAX + 1, DECOMPRESSED_BYTES_MAX));
        assert!(ratio_is_allowed(DECOMPRESSED_BYTES_FREE, 1));
        assert!(!ratio_is_allowed(DECOMPRESSED_BYTES_FREE + 1, 1));
    }

    /// Values too large or too regular for the cap are stored raw, not lost.
    #[test]
    fn extremely_regular_blocks_stay_readable() {
        let raw = vec![0; 8 << 20];
        let zstd = Compression::Zstd { level: 1 };
        let out = Compressor::new(zstd).unwrap().seal(&raw, ID, 0).to_vec();
        assert_eq!(open(&out, ID, 0, None).unwrap().len(), raw.len() + SLACK_BYTES);
    }

    /// Bytes that no codec made are refused, not trusted.
    #[test]
    fn garbage_is_refused() {
        for kind in [TYPE_SNAPPY, TYPE_LZ4, TYPE_ZSTD] {
            for garbage in [&[100, 0xff, 0xff, 0xff, 0xff, 3, 2, 1][..], &[]] {
                let refused = decompress(kind, garbage, None);
                assert!(matches!(refused, Err(Undecodable::Corrupt(_))), "{refused:?}");
            }
        }
        assert!(open(&[], ID, 0, None).is_err());
        assert!(open(&[1, 2, 3, 4], ID, 0, None).is_err());
    }

    /// A codec that is not known need not have a length before its bytes.
    #[test]
    fn a_later_codec_is_no_damage() {
        for kind in [2, 8, 255] {
            let refused = decompress(kind, &[], None).unwrap_err();
            let what = format!("a block compressed with codec {kind}");
            assert_eq!(refused, Undecodable::Unknown(what));
        }
    }
}
