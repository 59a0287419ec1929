//! A table: header, blocks, sections, footer (docs/format/table.md).

use lodestore::FileId;
use lodestore::internals::bytes::{TableProbe, context, crc32c};

use super::{id_at, put, seal_at, u32_at, u64_at};

const HEADER_BYTES: usize = 32;
const TAIL_BYTES: usize = 20;
const SECTION_BYTES: usize = 28;

/// What becomes of the checksum over all checksums.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Witness {
    /// It is made right: the table is sound by itself.
    Renewed,
    /// It stays what a manifest knows; only verification misses it.
    Kept,
}

/// Seals a table.
pub fn table(bytes: &mut [u8], witness: Witness) {
    let Some(id) = id_at(bytes, 12) else { return };
    seal_at(bytes, 0..HEADER_BYTES - 4);
    let Some(footer) = footer(bytes) else { return };
    let sections = sections(bytes, footer);
    for section in &sections {
        seal_section(bytes, section, id);
    }
    seal_footer(bytes);
    // First what says where blocks are, then those; each time all that is found.
    let mut blocks = Vec::new();
    for _ in 0..2 {
        blocks = TableProbe::open(bytes).map(|probe| probe.stored_blocks()).unwrap_or_default();
        for &(start, end) in &blocks {
            seal_block(bytes, start, end, id);
        }
    }
    if witness == Witness::Renewed {
        let checksums =
            blocks.iter().filter_map(|&(_, end)| u32_at(bytes, (end as usize).checked_sub(4)?));
        let sections = sections.iter().filter_map(|section| u32_at(bytes, section.entry + 24));
        let all: Vec<u8> = checksums.chain(sections).flat_map(u32::to_le_bytes).collect();
        put(bytes, footer + 40, crc32c(&all));
    }
    seal_footer(bytes);
}

/// Tag and bytes of each section of a sound table.
pub fn sections_of(bytes: &[u8]) -> Vec<(u8, &[u8])> {
    let Some(footer) = footer(bytes) else { return Vec::new() };
    let part = |section: Section| {
        let (start, length) = (section.offset as usize, section.length as usize);
        Some((*bytes.get(section.entry)?, bytes.get(start..start.checked_add(length)?)?))
    };
    sections(bytes, footer).into_iter().filter_map(part).collect()
}

struct Section {
    /// Where the footer speaks of it.
    entry: usize,
    offset: u64,
    length: u64,
}

/// Where the footer's body begins.
fn footer(bytes: &[u8]) -> Option<usize> {
    let tail = bytes.len().checked_sub(TAIL_BYTES)?;
    tail.checked_sub(u32_at(bytes, tail)? as usize)
}

fn sections(bytes: &[u8], footer: usize) -> Vec<Section> {
    let count = bytes.get(footer + 50..).and_then(|rest| rest.first_chunk());
    let count = count.map_or(0, |count| u16::from_le_bytes(*count));
    let entries = (0..usize::from(count)).map(|i| footer + 52 + i * SECTION_BYTES);
    let section = |entry| {
        let (offset, length) = (u64_at(bytes, entry + 8)?, u64_at(bytes, entry + 16)?);
        Some(Section { entry, offset, length })
    };
    entries.map_while(section).collect()
}

fn seal_section(bytes: &mut [u8], section: &Section, id: FileId) {
    let Section { entry, offset, length } = *section;
    let end = offset.saturating_add(length).min(usize::MAX as u64) as usize;
    let Some(checksum) = bytes.get(offset as usize..end).map(crc32c) else { return };
    put(bytes, entry + 24, checksum ^ context(id, offset));
}

fn seal_footer(bytes: &mut [u8]) {
    if let Some(start) = footer(bytes) {
        let end = bytes.len() - TAIL_BYTES + 8;
        seal_at(bytes, start..end);
    }
}

fn seal_block(bytes: &mut [u8], start: u64, end: u64, id: FileId) {
    let Some(covered) = (end as usize).checked_sub(4) else { return };
    let Some(checksum) = bytes.get(start as usize..covered).map(crc32c) else { return };
    put(bytes, covered, checksum ^ context(id, start));
}
