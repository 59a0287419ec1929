//! A stored block: its bytes, perhaps compressed, a type byte and a checksum.
//!
//! | type | codec |
//! |---|---|
//! | 0 | none |
//! | 1 | Snappy |
//! | 2 | Zstandard; or zlib, in Minecraft's fork; or LZ4 behind its length, in Basho's: their first bytes differ |
//! | 4 | deflate without a header, in Minecraft's fork |

use std::io::Read;

use crate::lz4;
use crate::snappy;
use crate::unpack;

use super::{Checked, masked_crc32c};

const ZSTD_MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
/// A block may be so long when decompressed, whatever is stored,
const RAW_BYTES_FREE: usize = 64 << 20;
/// or else so many times as long as what is stored.
const RATIO_MAX: usize = 64;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Codec {
    None,
    Snappy,
    Zstd,
    Zlib,
    Deflate,
    Lz4,
}

/// How `stored`, a whole stored block, is compressed; `None` if that is not known.
pub(crate) fn codec_name(stored: &[u8]) -> Option<&'static str> {
    let (covered, _) = stored.split_last_chunk::<4>()?;
    let (&type_byte, payload) = covered.split_last()?;
    Some(match codec(type_byte, payload)? {
        Codec::None => "none",
        Codec::Snappy => "snappy",
        Codec::Zstd => "zstd",
        Codec::Zlib => "zlib",
        Codec::Deflate => "deflate",
        Codec::Lz4 => "lz4",
    })
}

/// Checks `stored`, type byte and checksum included, and replaces what is in
/// `raw` by what it holds.
pub(crate) fn open(stored: &[u8], raw: &mut Vec<u8>) -> Checked<()> {
    let (covered, checksum) = stored.split_last_chunk::<4>().ok_or("a block too short")?;
    if masked_crc32c(covered) != u32::from_le_bytes(*checksum) {
        return Err("wrong checksum of a block");
    }
    open_unchecked(stored, raw)
}

/// [`open`], whatever the checksum.
pub(crate) fn open_unchecked(stored: &[u8], raw: &mut Vec<u8>) -> Checked<()> {
    let (covered, _) = stored.split_last_chunk::<4>().ok_or("a block too short")?;
    let (&type_byte, payload) = covered.split_last().ok_or("a block too short")?;
    let codec = codec(type_byte, payload).ok_or("a block of an unknown compression type")?;
    raw.clear();
    let bytes_max = RAW_BYTES_FREE.max(payload.len().saturating_mul(RATIO_MAX));
    match codec {
        Codec::None => raw.extend_from_slice(payload),
        Codec::Snappy => decode_snappy(payload, raw, bytes_max)?,
        Codec::Zstd => read(zstd::stream::read::Decoder::new(payload).ok(), raw, bytes_max)?,
        Codec::Zlib => zlib_or_lz4(payload, raw, bytes_max)?,
        Codec::Lz4 => decode_lz4(payload, raw, bytes_max)?,
        Codec::Deflate => read(Some(flate2::read::DeflateDecoder::new(payload)), raw, bytes_max)?,
    }
    Ok(())
}

/// Appends `raw` as a stored block: with Snappy if asked and an eighth is saved, as
/// LevelDB does.
pub(crate) fn put(out: &mut Vec<u8>, raw: &[u8], compress: bool) -> u64 {
    let packed = (compress && raw.len() <= u32::MAX as usize)
        .then(|| snappy::Encoder::new().encode_to_vec(raw));
    let packed = packed.filter(|packed| packed.len() < raw.len() - raw.len() / 8);
    let (payload, type_byte) = packed.as_deref().map_or((raw, 0), |packed| (packed, 1));
    let start = out.len();
    out.extend_from_slice(payload);
    out.push(type_byte);
    let checksum = masked_crc32c(&out[start..]);
    out.extend_from_slice(&checksum.to_le_bytes());
    payload.len() as u64
}

fn codec(type_byte: u8, payload: &[u8]) -> Option<Codec> {
    Some(match type_byte {
        0 => Codec::None,
        1 => Codec::Snappy,
        2 if payload.starts_with(&ZSTD_MAGIC) => Codec::Zstd,
        2 if is_zlib(payload) => Codec::Zlib,
        2 => Codec::Lz4,
        4 => Codec::Deflate,
        _ => return None,
    })
}

/// A header of zlib (RFC 1950): deflate, and a check of the first two bytes.
fn is_zlib(payload: &[u8]) -> bool {
    let Some(header) = payload.first_chunk::<2>() else { return false };
    header[0] & 0xf == 8 && u16::from_be_bytes(*header).is_multiple_of(31)
}

/// A length may look like a header of zlib: what has one and is none is LZ4.
fn zlib_or_lz4(payload: &[u8], raw: &mut Vec<u8>, bytes_max: usize) -> Checked<()> {
    let found = read(Some(flate2::read::ZlibDecoder::new(payload)), raw, bytes_max);
    if found.is_err() {
        raw.clear();
        return decode_lz4(payload, raw, bytes_max).or(found);
    }
    found
}

fn decode_lz4(payload: &[u8], raw: &mut Vec<u8>, bytes_max: usize) -> Checked<()> {
    let wrong = "a block that LZ4 cannot decompress";
    let (length, packed) = payload.split_first_chunk().ok_or(wrong)?;
    let length = u32::from_le_bytes(*length) as usize;
    if length > bytes_max {
        return Err("a block that claims to be far longer than what is stored");
    }
    unpack::owned(length, raw, |room| lz4::decode(packed, room)).ok_or(wrong)
}

fn decode_snappy(payload: &[u8], raw: &mut Vec<u8>, bytes_max: usize) -> Checked<()> {
    let wrong = "a block that Snappy cannot decompress";
    let (length, elements) = snappy::content_bytes(payload).ok_or(wrong)?;
    if length > bytes_max {
        return Err("a block that claims to be far longer than what is stored");
    }
    unpack::owned(length, raw, |room| snappy::decode(elements, room)).ok_or(wrong)
}

/// Reads `decoder` to its end, but no further than `bytes_max`.
fn read(decoder: Option<impl Read>, raw: &mut Vec<u8>, bytes_max: usize) -> Checked<()> {
    let decoder = decoder.ok_or("no memory to decompress a block")?;
    let read = decoder.take(bytes_max as u64 + 1).read_to_end(raw);
    read.map_err(|_| "a block that does not decompress")?;
    if raw.len() > bytes_max {
        return Err("a block far longer than what is stored");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn stored(payload: Vec<u8>, type_byte: u8) -> Vec<u8> {
        let mut stored = payload;
        stored.push(type_byte);
        let checksum = masked_crc32c(&stored);
        stored.extend_from_slice(&checksum.to_le_bytes());
        stored
    }

    /// What is put is opened; what does not shrink is stored as it is.
    #[test]
    fn what_is_put_is_opened() {
        let text = b"the same again and again, the same again and again";
        let noise: Vec<u8> =
            (0..200u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
        for (raw, type_byte) in [(&text[..], 1), (&noise[..], 0), (&[][..], 0)] {
            let mut out = b"before".to_vec();
            let bytes = put(&mut out, raw, true) as usize;
            assert_eq!((out.len(), out[6 + bytes]), (6 + bytes + 5, type_byte));
            let mut found = Vec::new();
            open(&out[6..], &mut found).unwrap();
            assert_eq!(found, raw);
        }
    }

    fn packed(raw: &[u8]) -> Vec<Vec<u8>> {
        let level = flate2::Compression::fast();
        let mut zlib = flate2::write::ZlibEncoder::new(Vec::new(), level);
        zlib.write_all(raw).unwrap();
        let mut deflate = flate2::write::DeflateEncoder::new(Vec::new(), level);
        deflate.write_all(raw).unwrap();
        vec![
            stored(raw.to_vec(), 0),
            stored(snap::raw::Encoder::new().compress_vec(raw).unwrap(), 1),
            stored(zstd::bulk::compress(raw, 1).unwrap(), 2),
            stored(zlib.finish().unwrap(), 2),
            stored(deflate.finish().unwrap(), 4),
            stored(packed_lz4(raw), 2),
        ]
    }

    fn packed_lz4(raw: &[u8]) -> Vec<u8> {
        [&(raw.len() as u32).to_le_bytes()[..], &lz4_flex::block::compress(raw)].concat()
    }

    /// A block of 40,056 bytes is one whose length begins as zlib does.
    #[test]
    fn a_length_that_looks_like_zlib_is_a_length() {
        let raw: Vec<u8> = (0..0x9c78_u32).map(|i| (i / 3) as u8).collect();
        let payload = packed_lz4(&raw);
        assert!(is_zlib(&payload));
        let mut found = Vec::new();
        open(&stored(payload, 2), &mut found).unwrap();
        assert!(found == raw);
    }

    /// All codecs of LevelDB and its dialects, also where one type byte stands
    /// for two of them.
    #[test]
    fn every_codec_gives_the_block_back() {
        for length in [0, 1, 4096, 3 << 20] {
            let raw: Vec<u8> = (0..length).map(|i| (i / 5 % 251) as u8).collect();
            for (i, stored) in packed(&raw).iter().enumerate() {
                let mut found = vec![7; 3];
                open(stored, &mut found).unwrap();
                assert!(found == raw, "codec {i}, {length} bytes");
                let names = ["none", "snappy", "zstd", "zlib", "deflate", "lz4"];
                assert_eq!(codec_name(stored), Some(names[i]));
            }
        }
    }

    #[test]
    fn a_byte_that_changed_is_noticed() {
        let raw = vec![b'x'; 300];
        for stored in packed(&raw) {
            for at in 0..stored.len() {
                let mut damaged = stored.clone();
                damaged[at] ^= 0x10;
                assert!(open(&damaged, &mut Vec::new()).is_err());
            }
            assert!(open(&stored[1..], &mut Vec::new()).is_err());
        }
        assert!(open(&stored(vec![1, 2, 3], 3), &mut Vec::new()).is_err());
        assert!(open(&[0; 4], &mut Vec::new()).is_err());
    }

    /// What claims to be huge, or is, is refused before it fills memory.
    #[test]
    fn decompression_bombs_are_refused() {
        let claims = stored(vec![0xff, 0xff, 0xff, 0xff, 0x0f, 0, 0], 1);
        assert!(open(&claims, &mut Vec::new()).is_err());
        let zeros = vec![0; RAW_BYTES_FREE + 1];
        let bomb = stored(zstd::bulk::compress(&zeros, 1).unwrap(), 2);
        let mut raw = Vec::new();
        assert!(open(&bomb, &mut raw).is_err());
        assert!(raw.capacity() <= 4 * RAW_BYTES_FREE);
    }
}
