//! Tables as a later build may write them: what need not be understood is left
//! aside, the rest is refused by name.

use crate::error::{Error, Result};
use crate::key::KeyOrder;

use super::codec::stored_checksum;
use super::directory::Directory;
use super::format::{Footer, Section, Witness, tag};
use super::meta::TableMeta;
use super::testing::*;
use super::verify::TableCounts;
use super::{Compression, TableSettings};

const ORDER: KeyOrder = KeyOrder::Bytewise;

/// A section, and what lies before it.
struct Part {
    tag: u32,
    flags: u32,
    bytes: Vec<u8>,
    fill: Vec<u8>,
}

fn part(parts: &mut [Part], tag: u32) -> &mut Part {
    parts.iter_mut().find(|part| part.tag == tag).unwrap()
}

/// A small table with other sections, and checksums that are right; verified.
fn verify_with(
    settings: &TableSettings,
    change: impl FnOnce(&mut Vec<Part>),
) -> Result<TableCounts> {
    let (bytes, meta) = build(&entries(Shape::Nested, 60, 11, &ORDER), settings);
    let table = open(bytes.clone(), &meta, &ORDER).unwrap();
    let own = footer(&table);
    let bytes_of = |s: &Section| bytes[s.offset as usize..(s.offset + s.length) as usize].to_vec();
    let part = |s: &Section| Part { tag: s.tag, flags: s.flags, bytes: bytes_of(s), fill: vec![] };
    let mut parts: Vec<Part> = own.sections.iter().map(part).collect();
    change(&mut parts);

    let mut witness = Witness::new();
    for block in 0..table.blocks() {
        let place = block_ref(&table, block).place;
        let end = place.offset as usize + place.stored_bytes;
        witness.add(stored_checksum(&bytes[..end]).unwrap());
    }
    let mut changed = bytes[..own.sections[0].offset as usize].to_vec();
    let mut sections = Vec::new();
    for Part { tag, flags, bytes, fill } in parts {
        changed.extend(fill);
        let section = Section::of(tag, flags, changed.len() as u64, &bytes, meta.id);
        witness.add(section.checksum);
        changed.extend(bytes);
        sections.push(section);
    }
    let (witness, offset) = (witness.value(), changed.len() as u64);
    changed.extend(Footer { witness, sections, offset, ..own.clone() }.encode());
    let meta = TableMeta { bytes: changed.len() as u64, checksum: witness, ..meta };
    open(changed, &meta, &ORDER)?.verify(&context())
}

fn verify_changed(change: impl FnOnce(&mut Vec<Part>)) -> Result<TableCounts> {
    verify_with(&settings(200, Compression::None), change)
}

fn assert_unknown(verified: Result<TableCounts>, expected: &str) {
    match verified {
        Err(Error::Incompatible { what, .. }) => assert!(what.contains(expected), "{what}"),
        other => panic!("{expected}: {other:?}"),
    }
}

/// A filter of another kind is no damage: nobody asks it, and `verify` counts it.
#[test]
fn filters_of_a_later_kind_are_left_out() {
    let plain = verify_changed(|_| {}).unwrap();
    assert_eq!(plain.unknown_filters, 0);
    let counts = verify_changed(|parts| part(parts, tag::FILTER).bytes[0] = 2).unwrap();
    assert_eq!((counts.unknown_filters, counts.entries), (1, plain.entries));
    let broken = verify_changed(|parts| part(parts, tag::FILTER).bytes[1] = 0);
    assert!(broken.unwrap_err().is_corruption(), "a filter of this kind is no filter");
}

/// The lower half of a section's flags says what its reader must know.
#[test]
fn section_flags_are_refused_or_ignored_by_their_half() {
    for tag in [tag::INDEX, tag::FILTER, tag::PROPERTIES] {
        let with = |flags| verify_changed(|parts| part(parts, tag).flags |= flags);
        assert_unknown(with(2), &format!("section {tag} of a table with flags 0x2"));
        assert_unknown(with(1 << 15), "flags 0x8000");
        with(0xffff << 16).unwrap();
    }
    let with_new = |flags| {
        let new = Part { tag: 99, flags, bytes: b"parity".to_vec(), fill: vec![] };
        verify_changed(|parts| parts.push(new))
    };
    assert_unknown(with_new(1), "section 99");
    with_new(2).expect("who skips a section need not know its flags");
}

/// Parts may begin where the writer likes; what lies between them is zeros.
#[test]
fn fill_between_parts_is_zeros() {
    let filled = |with: u8| {
        verify_changed(|parts| {
            for (i, part) in parts.iter_mut().enumerate() {
                part.fill = vec![0; 5000 * i + 100];
            }
            *parts.last_mut().unwrap().fill.last_mut().unwrap() = with;
        })
    };
    assert_eq!(filled(0).unwrap().entries, verify_changed(|_| {}).unwrap().entries);
    let refused = filled(1).unwrap_err();
    assert!(refused.is_corruption() && refused.to_string().contains("no part"), "{refused}");
}

/// The same of a table in partitions, whose list has flags of its own.
#[test]
fn lists_of_partitions_are_refused_by_unknown_flags() {
    let settings = TableSettings { partition_bytes: 60, ..settings(200, Compression::None) };
    let (bytes, meta) = build(&entries(Shape::Nested, 60, 11, &ORDER), &settings);
    let table = open(bytes, &meta, &ORDER).unwrap();
    assert!(matches!(table.directory, Directory::Partitioned(_)));
    let changed =
        |at: usize| verify_with(&settings, |parts| part(parts, tag::PARTITIONS).bytes[at] |= 0x40);
    assert_unknown(changed(4), "partitions with flags 0x40");
}
