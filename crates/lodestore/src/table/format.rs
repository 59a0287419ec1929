//! The frame of a table file: header, footer, section table.
//!
//! ```text
//! header | block 0 | block 1 | ... | filter | index | range deletes | dictionary | properties | footer
//! header | block 0 | ... | filter partitions | index partitions | list of them | range deletes | ...
//! ```
//!
//! Header (32 bytes):
//!
//! | offset | size | meaning |
//! |---|---|---|
//! | 0 | 8 | magic "LODETBL" 0x01 |
//! | 8 | 4 | version: 0x0100, which is 1.0 |
//! | 12 | 16 | file id |
//! | 28 | 4 | CRC-32C of bytes 0 to 27 |
//!
//! Footer body (52 bytes and 28 for each section):
//!
//! | offset | size | meaning |
//! |---|---|---|
//! | 0 | 16 | file id |
//! | 16 | 8 | compatible feature bits |
//! | 24 | 8 | read-compatible feature bits |
//! | 32 | 8 | incompatible feature bits |
//! | 40 | 4 | witness: CRC-32C over all block checksums, then all section checksums |
//! | 44 | 4 | encryption key id; 0 = not encrypted |
//! | 48 | 1 | length of the nonce before each block; 0 |
//! | 49 | 1 | length of the authentication tag after each block; 0 |
//! | 50 | 2 | number of sections |
//! | 52 | 28 n | sections: tag 4, flags 4, offset 8, length 8, checksum 4 |
//!
//! Tail (20 bytes, the last of the file, the same in every later format):
//!
//! | offset | size | meaning |
//! |---|---|---|
//! | 0 | 4 | length of the footer body |
//! | 4 | 4 | version, as in the header |
//! | 8 | 4 | CRC-32C of the body and of bytes 0 to 7 of the tail |
//! | 12 | 8 | magic |

use std::ops::RangeInclusive;
use std::path::Path;

use crate::checksum::{Crc32c, context, crc32c};
use crate::coding::{Reader, put_u16, put_u32, put_u64, put_u128};
use crate::compatibility::{FIRST_VERSION, Features, check_version};
use crate::error::{Error, Result, Undecodable};
use crate::fs::{ReadableFile, read_full_at};
use crate::key::FileId;

const MAGIC: [u8; 8] = *b"LODETBL\x01";
/// What tables are written in.
const VERSION: u32 = FIRST_VERSION;
/// Tables of other versions are refused.
const KNOWN_VERSIONS: RangeInclusive<u32> = FIRST_VERSION..=VERSION;

pub(super) const HEADER_BYTES: usize = 32;
pub(super) const TAIL_BYTES: usize = 20;
const BODY_BYTES_MIN: usize = 52;
const SECTION_BYTES: usize = 28;
/// What opening reads from the end of the file at once: enough for the footer
/// of every table that this build writes.
const TAIL_READ_BYTES: usize = 1024;

/// What a section holds. Unknown tags are skipped unless flagged.
pub(super) mod tag {
    pub(in crate::table) const INDEX: u32 = 1;
    pub(in crate::table) const FILTER: u32 = 2;
    pub(in crate::table) const PROPERTIES: u32 = 3;
    pub(in crate::table) const RANGE_DELETES: u32 = 4;
    pub(in crate::table) const PARTITIONS: u32 = 5;
    pub(in crate::table) const DICTIONARY: u32 = 6;
}

/// Section flag: a reader that does not know the tag must not use the file.
pub(super) const MUST_UNDERSTAND: u32 = 1;
/// Section flags that whoever reads the section must understand; of the others
/// nobody needs to know.
const FLAGS_TO_UNDERSTAND: u32 = 0xffff;

pub(super) fn encode_header(id: FileId) -> Vec<u8> {
    let mut out = Vec::with_capacity(HEADER_BYTES);
    out.extend_from_slice(&MAGIC);
    put_u32(&mut out, VERSION);
    put_u128(&mut out, id.0);
    let checksum = crc32c(&out);
    put_u32(&mut out, checksum);
    out
}

/// Checks a header; `path` is only named in errors.
pub(super) fn check_header(header: &[u8; HEADER_BYTES], id: FileId, path: &Path) -> Result<()> {
    let mut reader = Reader::new(header);
    if reader.bytes(8) != Some(&MAGIC[..]) {
        return Err(Error::corruption(path, 0, "not a table: wrong magic in the header"));
    }
    let (version, found) = (reader.u32().unwrap_or(0), reader.u128().unwrap_or(0));
    if reader.u32() != Some(crc32c(&header[..HEADER_BYTES - 4])) {
        return Err(Error::corruption(path, 0, "wrong checksum of the table's header"));
    }
    check_version(path, version, &KNOWN_VERSIONS)?;
    if FileId(found) != id {
        return Err(Error::corruption(path, 12, wrong_id(found, id)));
    }
    Ok(())
}

/// The id in a header; `None` if it is damaged or of another format.
pub(super) fn header_id(header: &[u8; HEADER_BYTES]) -> Option<FileId> {
    let mut reader = Reader::new(header);
    reader.bytes(8).filter(|magic| *magic == MAGIC)?;
    let (version, id) = (reader.u32()?, reader.u128()?);
    let is_sound = reader.u32()? == crc32c(&header[..HEADER_BYTES - 4]);
    (is_sound && KNOWN_VERSIONS.contains(&version)).then_some(FileId(id))
}

fn wrong_id(found: u128, expected: FileId) -> String {
    format!("another table: id {:?}, but the manifest expects {expected:?}", FileId(found))
}

/// A part of the file after the blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Section {
    pub(super) tag: u32,
    pub(super) flags: u32,
    pub(super) offset: u64,
    pub(super) length: u64,
    /// CRC-32C of the section xor the context of file id and offset.
    pub(super) checksum: u32,
}

impl Section {
    /// The section that `bytes` will be at `offset` of file `id`.
    pub(super) fn of(tag: u32, flags: u32, offset: u64, bytes: &[u8], id: FileId) -> Section {
        let checksum = crc32c(bytes) ^ context(id, offset);
        Section { tag, flags, offset, length: bytes.len() as u64, checksum }
    }
}

/// The end of a table file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Footer {
    pub(super) id: FileId,
    pub(super) features: Features,
    pub(super) witness: u32,
    pub(super) sections: Vec<Section>,
    /// Where the footer starts: all sections end before.
    pub(super) offset: u64,
}

impl Footer {
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(256);
        put_u128(&mut out, self.id.0);
        self.features.encode(&mut out);
        put_u32(&mut out, self.witness);
        put_u32(&mut out, 0);
        out.extend_from_slice(&[0, 0]);
        put_u16(&mut out, self.sections.len() as u16);
        for section in &self.sections {
            put_u32(&mut out, section.tag);
            put_u32(&mut out, section.flags);
            put_u64(&mut out, section.offset);
            put_u64(&mut out, section.length);
            put_u32(&mut out, section.checksum);
        }
        let body_bytes = out.len() as u32;
        put_u32(&mut out, body_bytes);
        put_u32(&mut out, VERSION);
        let checksum = crc32c(&out);
        put_u32(&mut out, checksum);
        out.extend_from_slice(&MAGIC);
        out
    }

    /// Reads and checks the footer of a file of `file_bytes` bytes.
    pub(super) fn read(file: &dyn ReadableFile, file_bytes: u64, path: &Path) -> Result<Footer> {
        if file_bytes < (HEADER_BYTES + BODY_BYTES_MIN + TAIL_BYTES) as u64 {
            return Err(Error::corruption(path, 0, format!("{file_bytes} bytes are no table")));
        }
        let mut bytes = vec![0; TAIL_READ_BYTES.min(file_bytes as usize)];
        read_at(file, file_bytes - bytes.len() as u64, &mut bytes, path)?;
        let tail_offset = file_bytes - TAIL_BYTES as u64;
        let corrupt = |what: &str| Error::corruption(path, tail_offset, what);
        let mut tail = Reader::new(&bytes[bytes.len() - TAIL_BYTES..]);
        let body_bytes = tail.u32().unwrap_or(0) as u64;
        let version = tail.u32().unwrap_or(0);
        let checksum = tail.u32().unwrap_or(0);
        if tail.rest() != &MAGIC[..] {
            return Err(corrupt("wrong magic at the end of the table"));
        }
        let footer_bytes = body_bytes + TAIL_BYTES as u64;
        if footer_bytes > file_bytes - HEADER_BYTES as u64 {
            return Err(corrupt("the table's footer is longer than the file"));
        }
        if footer_bytes > bytes.len() as u64 {
            bytes = vec![0; footer_bytes as usize];
            read_at(file, file_bytes - footer_bytes, &mut bytes, path)?;
        }
        let footer = &bytes[bytes.len() - footer_bytes as usize..];
        if crc32c(&footer[..body_bytes as usize + 8]) != checksum {
            return Err(corrupt("wrong checksum of the table's footer"));
        }
        check_version(path, version, &KNOWN_VERSIONS)?;
        Footer::decode(&footer[..body_bytes as usize], file_bytes - footer_bytes, path)
    }

    fn decode(body: &[u8], offset: u64, path: &Path) -> Result<Footer> {
        let short = || Error::corruption(path, offset, "the table's footer ends early");
        let mut reader = Reader::new(body);
        let id = FileId(reader.u128().ok_or_else(short)?);
        let features = Features::decode(&mut reader).ok_or_else(short)?;
        features.check_readable(path)?;
        let witness = reader.u32().ok_or_else(short)?;
        let key_id = reader.u32().ok_or_else(short)?;
        let (nonce, tag) = (reader.u8().ok_or_else(short)?, reader.u8().ok_or_else(short)?);
        if key_id != 0 || nonce != 0 || tag != 0 {
            let what = format!("table encrypted under key {key_id}");
            return Err(Undecodable::Unknown(what).at(path, offset));
        }
        let count = reader.u16().ok_or_else(short)? as usize;
        if reader.rest().len() != count * SECTION_BYTES {
            return Err(short());
        }
        let mut sections = Vec::with_capacity(count);
        for _ in 0..count {
            let section = decode_section(&mut reader).ok_or_else(short)?;
            check_section(&section, offset, path)?;
            sections.push(section);
        }
        Ok(Footer { id, features, witness, sections, offset })
    }

    /// The one section of this tag, if there is one.
    pub(super) fn section(&self, tag: u32) -> Option<&Section> {
        self.sections.iter().find(|section| section.tag == tag)
    }
}

fn decode_section(reader: &mut Reader<'_>) -> Option<Section> {
    Some(Section {
        tag: reader.u32()?,
        flags: reader.u32()?,
        offset: reader.u64()?,
        length: reader.u64()?,
        checksum: reader.u32()?,
    })
}

fn check_section(section: &Section, footer_offset: u64, path: &Path) -> Result<()> {
    let Section { tag, flags, .. } = *section;
    let unknown = match (tag::INDEX..=tag::DICTIONARY).contains(&tag) {
        true => flags & FLAGS_TO_UNDERSTAND & !MUST_UNDERSTAND,
        false => flags & MUST_UNDERSTAND,
    };
    if unknown != 0 {
        let what = format!("section {tag} of a table with flags {unknown:#x}");
        return Err(Undecodable::Unknown(what).at(path, footer_offset));
    }
    let end = section.offset.checked_add(section.length);
    if section.offset < HEADER_BYTES as u64 || end.is_none_or(|end| end > footer_offset) {
        let what = format!("section {} lies outside of the table", section.tag);
        return Err(Error::corruption(path, footer_offset, what));
    }
    Ok(())
}

/// Reads a section whose bounds were checked, and checks its checksum.
pub(super) fn read_section(
    file: &dyn ReadableFile,
    section: &Section,
    id: FileId,
    path: &Path,
) -> Result<Vec<u8>> {
    let length = usize::try_from(section.length)
        .map_err(|_| Error::corruption(path, section.offset, "section too long"))?;
    let mut bytes = vec![0; length];
    read_at(file, section.offset, &mut bytes, path)?;
    if crc32c(&bytes) ^ context(id, section.offset) != section.checksum {
        let what = format!("wrong checksum of section {}", section.tag);
        return Err(Error::corruption(path, section.offset, what));
    }
    Ok(bytes)
}

/// Fills `buffer`. The file's length was checked, so that an early end means
/// that the file changed: corruption.
pub(super) fn read_at(
    file: &dyn ReadableFile,
    offset: u64,
    buffer: &mut [u8],
    path: &Path,
) -> Result<()> {
    read_full_at(file, offset, buffer).map_err(|error| match error.kind() {
        std::io::ErrorKind::UnexpectedEof => {
            Error::corruption(path, offset, "the table ends before its recorded length")
        }
        _ => Error::io(path, "read", error),
    })
}

/// The checksum of a file: over the checksums of its blocks and sections.
#[derive(Clone, Debug)]
pub(super) struct Witness(Crc32c);

impl Witness {
    pub(super) fn new() -> Witness {
        Witness(Crc32c::new())
    }

    pub(super) fn add(&mut self, checksum: u32) {
        self.0.update(&checksum.to_le_bytes());
    }

    pub(super) fn value(&self) -> u32 {
        self.0.value()
    }
}
