//! Tables with other sections and properties, and the manifest that names them.

use crate::files::Files;

use super::manifest::change_manifest_field;
use super::{context, crc32c, id_at, seal, seal_table, u32_at};

/// An entry of the footer's list of sections.
const ENTRY_BYTES: usize = 28;
const PROPERTIES: u32 = 3;

/// Sets a byte of the footer, counted from where that begins.
pub fn set_footer_byte(table: &mut [u8], at: usize, to: u8) {
    let footer = footer_at(table);
    table[footer + at] = to;
    seal_table(table);
}

/// Gives the section `tag` another tag and flags.
///
/// # Panics
/// If the table has no such section.
pub fn change_section_tag(table: &mut [u8], tag: u32, to: u32, flags: u32) {
    let entry = entry_of(table, tag);
    table[entry..entry + 4].copy_from_slice(&to.to_le_bytes());
    table[entry + 4..entry + 8].copy_from_slice(&flags.to_le_bytes());
    seal_table(table);
}

/// Changes the first `from` in the properties of the table `name` to `to`, which is as
/// long, and what the manifest says of the table's checksum. `blocks` are the table's,
/// each from where to where, without those of partitions, which it must not have.
///
/// # Panics
/// If the properties do not have it.
pub fn change_property(
    files: &mut Files,
    name: &str,
    blocks: &[(usize, usize)],
    from: &[u8],
    to: &[u8],
) {
    let table = files.get_mut(name).expect("it is there");
    let entry = entry_of(table, PROPERTIES);
    let start = u32_at(table, entry + 8) as usize;
    let section = start..start + u32_at(table, entry + 16) as usize;
    let found = table[section.clone()].windows(from.len()).position(|part| part == from);
    let at = start + found.expect("the table has the property");
    table[at..at + to.len()].copy_from_slice(to);
    let id = id_at(table, 12);
    seal(table, section, entry + 24, context(id, start as u64));
    let witnesses = set_witness(table, blocks);
    name_witness(files, witnesses);
}

/// Changes what the manifest says of a table's checksum.
fn name_witness(files: &mut Files, (before, now): (u32, u32)) {
    let manifest = files.iter_mut().find(|(name, _)| name.starts_with("MANIFEST-"));
    let (_, manifest) = manifest.expect("it is there");
    // Field 4, of 4 bytes.
    let field = |witness: u32| [&[9, 4], &witness.to_le_bytes()[..]].concat();
    change_manifest_field(manifest, &field(before), &field(now));
}

/// Gives the first block of the table `name` the type byte `to`, and makes the footer and
/// the manifest right. `blocks` as in [`change_property`].
pub fn change_block_type(files: &mut Files, name: &str, blocks: &[(usize, usize)], to: u8) {
    let table = files.get_mut(name).expect("it is there");
    let (id, (start, end)) = (id_at(table, 12), blocks[0]);
    table[end - 5] = to;
    seal(table, start..end - 4, end - 4, context(id, start as u64));
    let witnesses = set_witness(table, blocks);
    name_witness(files, witnesses);
}

/// Makes the footer right. Gives the checksum over all checksums that was in it, and
/// the one that is.
fn set_witness(table: &mut [u8], blocks: &[(usize, usize)]) -> (u32, u32) {
    let mut checksums = Vec::new();
    for (_, end) in blocks {
        checksums.extend(&table[end - 4..*end]);
    }
    for entry in entries(table) {
        checksums.extend(&table[entry + 24..entry + 28]);
    }
    let at = footer_at(table) + 40;
    let (before, now) = (u32_at(table, at), crc32c(&checksums));
    table[at..at + 4].copy_from_slice(&now.to_le_bytes());
    seal_table(table);
    (before, now)
}

fn footer_at(table: &[u8]) -> usize {
    let tail = table.len() - 20;
    tail - u32_at(table, tail) as usize
}

/// Where the entries of the list of sections are.
fn entries(table: &[u8]) -> impl Iterator<Item = usize> + use<> {
    let footer = footer_at(table);
    let count = usize::from(u16::from_le_bytes([table[footer + 50], table[footer + 51]]));
    (0..count).map(move |nth| footer + 52 + ENTRY_BYTES * nth)
}

fn entry_of(table: &[u8], tag: u32) -> usize {
    let entry = entries(table).find(|entry| u32_at(table, *entry) == tag);
    entry.unwrap_or_else(|| panic!("the table has no section {tag}"))
}
