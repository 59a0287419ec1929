//! Damaged tables: the right value or `Corruption`, never anything else.

use std::ops::ControlFlow;

use crate::cursor::Cursor;
use crate::error::{Error, Result};
use crate::key::{FileId, KeyOrder, Kind, TRAILER_NEWEST, trailer};
use crate::prefix::PrefixExtractor;
use crate::sync::Arc;

use super::directory::Directory;
use super::layout::{BLOCK_HEADER_BYTES, Layout, SLACK_BYTES, flag};
use super::meta::TableMeta;
use super::testing::*;
use super::{Compression, LookupKey, Need, Table, TableSettings};

const ORDER: KeyOrder = KeyOrder::Bytewise;

/// A small table of several blocks, with short keys, versions over blocks and
/// a filter.
fn small_table(compression: Compression) -> (Vec<Entry>, Vec<u8>, TableMeta) {
    small_table_of(&settings(200, compression))
}

fn small_table_of(settings: &TableSettings) -> (Vec<Entry>, Vec<u8>, TableMeta) {
    let mut entries = entries(Shape::Nested, 60, 11, &ORDER);
    entries.extend(
        (0..20u64)
            .rev()
            .map(|i| (b"versions".to_vec(), trailer(i, Kind::Put), i.to_le_bytes().repeat(3))),
    );
    let (bytes, meta) = build(&entries, settings);
    (entries, bytes, meta)
}

fn lookup(table: &Table, entry: &Entry) -> Result<Option<Vec<u8>>> {
    let key = LookupKey::new(&entry.0, entry.1);
    let context = context();
    let (mut found, mut held, mut need) = (None, None, table.begin(&key));
    while let (Need::Block(wanted), None) = (need, &found) {
        let block = table.read_block(wanted, &context)?;
        need = table.supply(wanted, &block, &key, &mut held, |t, value| {
            found = (t == entry.1).then(|| value.to_vec());
            ControlFlow::Break(())
        });
    }
    Ok(found)
}

/// Reads everything; panics at a wrong answer, counts the errors.
fn read_everything(table: &Arc<Table>, entries: &[Entry]) -> usize {
    let mut errors = 0;
    let mut check = |result: Result<bool>| match result {
        Ok(right) => assert!(right, "a wrong answer"),
        Err(error) => {
            assert!(error.is_corruption(), "{error}");
            errors += 1;
        }
    };
    for entry in entries {
        check(lookup(table, entry).map(|value| value.as_ref() == Some(&entry.2)));
        let mut cursor = table.cursor(context());
        cursor.seek(&entry.0, entry.1);
        let right = cursor.valid() && cursor.user_key() == entry.0 && cursor.value() == entry.2;
        check(cursor.status().map(|()| right));
    }
    let mut cursor = table.cursor(context());
    cursor.seek_to_first();
    let mut walked = 0;
    while cursor.valid() {
        assert_eq!(
            (cursor.user_key(), cursor.trailer()),
            (&entries[walked].0[..], entries[walked].1)
        );
        walked += 1;
        cursor.next();
    }
    check(cursor.status().map(|()| walked == entries.len()));
    cursor.seek_to_last();
    while cursor.valid() {
        cursor.prev();
    }
    check(cursor.status().map(|()| true));
    errors
}

/// Any one byte changed: each read gives the right value or `Corruption`, and
/// `verify` always sees it.
#[test]
fn every_flipped_byte_is_harmless_and_seen() {
    let partitioned = TableSettings {
        partition_bytes: 60,
        prefix_extractor: PrefixExtractor::Capped(2),
        ..settings(200, Compression::None)
    };
    let resident = [Compression::None, Compression::Lz4].map(|codec| settings(200, codec));
    for settings in resident.into_iter().chain([partitioned]) {
        let (entries, bytes, meta) = small_table_of(&settings);
        for position in 0..bytes.len() {
            for mask in [0x01, 0x80, 0xff] {
                let mut damaged = bytes.clone();
                damaged[position] ^= mask;
                match open(damaged, &meta, &ORDER) {
                    Err(error) => assert!(error.is_corruption(), "byte {position}: {error}"),
                    Ok(table) => {
                        let seen = table.verify(&context()).unwrap_err();
                        assert!(seen.is_corruption(), "byte {position}: {seen}");
                        if mask == 0x01 {
                            read_everything(&table, &entries);
                        }
                    }
                }
            }
        }
    }
}

/// Damage in one block leaves the keys of the others readable.
#[test]
fn other_blocks_stay_readable() {
    let (entries, mut bytes, meta) = small_table(Compression::None);
    bytes[40] ^= 4;
    let table = open(bytes, &meta, &ORDER).unwrap();
    let failed = entries.iter().filter(|entry| lookup(&table, entry).is_err()).count();
    assert!(failed > 0 && failed < entries.len() / 4, "{failed} of {}", entries.len());
}

/// A damaged filter denies no key: it is left out.
#[test]
fn a_damaged_filter_denies_nothing() {
    let (entries, mut bytes, meta) = small_table(Compression::None);
    let table = open(bytes.clone(), &meta, &ORDER).unwrap();
    let filter = footer(&table).section(super::format::tag::FILTER).unwrap().offset as usize;
    bytes[filter + 20] = 0;
    bytes[filter + 21] = 0;
    let table = open(bytes, &meta, &ORDER).unwrap();
    assert!(matches!(&table.directory, Directory::Resident { filter: None, .. }));
    assert_eq!(read_everything(&table, &entries), 0);
    assert!(table.verify(&context()).is_err());
}

/// A table cut anywhere, or longer than recorded, is refused, also when the
/// manifest expects that length.
#[test]
fn truncated_tables_are_refused() {
    let (_, bytes, mut meta) = small_table(Compression::Lz4);
    for length in 0..bytes.len() {
        let error = open(bytes[..length].to_vec(), &meta, &ORDER).unwrap_err();
        assert!(error.is_corruption());
    }
    let longer = [&bytes[..], b"x"].concat();
    assert!(open(longer, &meta, &ORDER).unwrap_err().is_corruption());
    for length in 0..bytes.len() {
        meta.bytes = length as u64;
        let error = open(bytes[..length].to_vec(), &meta, &ORDER).unwrap_err();
        assert!(error.is_corruption());
    }
}

/// Two blocks of equal length that changed places are both refused.
#[test]
fn swapped_blocks_are_caught() {
    let entries: Vec<Entry> = (0..40u64)
        .map(|i| (i.to_be_bytes().to_vec(), trailer(1, Kind::Put), vec![i as u8; 40]))
        .collect();
    let (mut bytes, meta) = build(&entries, &settings(200, Compression::None));
    let table = open(bytes.clone(), &meta, &ORDER).unwrap();
    let refs = [0, 1, 2].map(|i| block_ref(&table, i));
    let (a, b) = (refs[1].place, refs[2].place);
    assert_eq!(a.stored_bytes, b.stored_bytes);
    for i in 0..a.stored_bytes {
        bytes.swap(a.offset as usize + i, b.offset as usize + i);
    }
    let table = open(bytes, &meta, &ORDER).unwrap();
    assert!(table.read_block(refs[0], &context()).is_ok());
    assert!(table.read_block(refs[1], &context()).unwrap_err().is_corruption());
    assert!(table.read_block(refs[2], &context()).unwrap_err().is_corruption());
}

/// A sound table in another's place is refused, by its id or its witness.
#[test]
fn another_table_is_refused() {
    let (entries, bytes, meta) = small_table(Compression::None);
    let other_id = TableMeta { id: FileId(5), ..meta.clone() };
    let other_witness = TableMeta { checksum: meta.checksum ^ 1, ..meta.clone() };
    for wrong in [other_id, other_witness] {
        assert!(open(bytes.clone(), &wrong, &ORDER).unwrap_err().is_corruption());
    }
    let mut changed = entries;
    changed[3].2 = b"another value, of another length".to_vec();
    let (other, _) = build(&changed, &settings(200, Compression::None));
    assert!(open(other, &meta, &ORDER).unwrap_err().is_corruption());
}

/// A table of a later version, or with a feature or section that must be
/// understood, is incompatible, not corrupt.
#[test]
fn later_formats_are_incompatible() {
    let (_, bytes, meta) = small_table(Compression::None);
    let end = bytes.len();
    let reseal = |mut bytes: Vec<u8>| {
        let body = u32::from_le_bytes(bytes[end - 20..end - 16].try_into().unwrap()) as usize;
        let checksum = crate::checksum::crc32c(&bytes[end - 20 - body..end - 12]);
        bytes[end - 12..end - 8].copy_from_slice(&checksum.to_le_bytes());
        bytes
    };
    let body = u32::from_le_bytes(bytes[end - 20..end - 16].try_into().unwrap()) as usize;
    let start = end - 20 - body;
    let with = |position: usize, byte: u8| {
        let mut bytes = bytes.clone();
        bytes[position] = byte;
        open(reseal(bytes), &meta, &ORDER)
    };
    let incompatible = |result: Result<Arc<Table>>| {
        assert!(matches!(result, Err(Error::Incompatible { .. })), "{result:?}");
    };
    incompatible(with(end - 16, bytes[end - 16] + 1)); // version
    incompatible(with(start + 32, 1)); // incompatible feature
    incompatible(with(start + 44, 1)); // encryption key id
    incompatible(with(start + 48, 12)); // nonce length
    incompatible(with(start + 52 + 28 + 1, 9)); // tag of a section that must be understood
    assert!(with(start + 16, 1).is_ok()); // compatible feature
    assert!(with(start + 52 + 1, 9).is_ok()); // tag of the filter, which need not be
    let table = with(start + 24, 1).unwrap(); // read-compatible feature
    assert!(matches!(table.check_rewritable(), Err(Error::Incompatible { .. })));
    assert!(open(bytes.clone(), &meta, &ORDER).unwrap().check_rewritable().is_ok());
}

/// Another order than the table's is the caller's mistake.
#[test]
fn another_order_is_refused() {
    struct Other;
    impl crate::key::Comparator for Other {
        fn name(&self) -> &str {
            "test.Other"
        }
        fn compare(&self, a: &[u8], b: &[u8]) -> std::cmp::Ordering {
            a.cmp(b)
        }
    }
    let (_, bytes, meta) = small_table(Compression::None);
    let result = open(bytes, &meta, &KeyOrder::Custom(Arc::new(Other)));
    assert!(matches!(result, Err(Error::InvalidArgument { .. })));
}

/// Random bytes as a block, with a right checksum, never panic.
#[test]
fn hostile_blocks_are_refused_or_harmless() {
    let mut random = Random::new(99);
    let (entries, _, _) = small_table(Compression::None);
    let mut builder = super::block_builder::BlockBuilder::new(true);
    let mut sound = Vec::new();
    for (key, trailer, value) in &entries {
        let repeated = !builder.is_empty() && builder.last().0 == key;
        builder.add(key, *trailer, value, repeated);
    }
    builder.finish(&mut sound);
    for round in 0..40_000 {
        let mut bytes = sound.clone();
        for _ in 0..1 + random.below(4) {
            let reach = if round % 2 == 0 { 28 } else { bytes.len() };
            let position = random.below(reach);
            bytes[position] = random.next() as u8;
        }
        if round % 5 == 0 {
            bytes.truncate(random.below(bytes.len()));
        }
        bytes.extend_from_slice(&[0; super::layout::SLACK_BYTES]);
        let Ok(block) = super::Block::new(0, bytes.into(), &ORDER, None) else {
            continue;
        };
        let layout = block.layout();
        for i in 0..layout.count {
            let mut key = Vec::new();
            layout.append_key(block.bytes(), i, &mut key);
            let _ = (layout.trailer(block.bytes(), i), layout.value(block.bytes(), i));
        }
        let key = LookupKey::new(&entries[random.below(entries.len())].0, TRAILER_NEWEST);
        block.search(&key, &ORDER, |_, _| ControlFlow::Continue(()));
    }
}

/// Lengths whose product goes a little above 32 bits are not taken for what is
/// left of it.
#[test]
fn lengths_that_wrap_around_fill_no_block() {
    let (count, length) = (65_537u32, 65_536u32);
    let wrapped = count.wrapping_mul(length);
    let block = |suffix_bytes: u32, value_bytes: u32, content_bytes: u32| {
        let flags = flag::SUFFIXES_FIXED | flag::VALUES_FIXED | flag::ONE_KIND;
        let mut bytes = count.to_le_bytes().to_vec();
        bytes.extend([0, 0, flags, Kind::Put as u8]);
        bytes.extend([0; 8 + 4]);
        bytes.extend([suffix_bytes.to_le_bytes(), value_bytes.to_le_bytes()].concat());
        bytes.resize(BLOCK_HEADER_BYTES + content_bytes as usize + SLACK_BYTES, 0);
        Layout::parse(&bytes)
    };
    assert!(block(1, 1, 2 * count).is_some(), "without the wrap this is a block");
    assert!(block(length, 1, wrapped + count).is_none(), "suffixes");
    assert!(block(1, length, count + wrapped).is_none(), "values");
}

/// Random changes to an index with a right checksum never panic.
#[test]
fn hostile_indexes_are_refused_or_harmless() {
    let mut random = Random::new(98);
    let mut builder = super::index_builder::IndexBuilder::default();
    for i in 0..50u64 {
        let key =
            if i % 2 == 0 { i.to_be_bytes().repeat(2) } else { i.to_be_bytes()[..8].to_vec() };
        builder.add(&key, (i % 7 == 0).then_some(i), 32 + i * 10);
    }
    let sound = builder.finish(1000, true);
    for round in 0..40_000 {
        let mut bytes = sound.clone();
        let position = random.below(if round % 2 == 0 { 16 } else { bytes.len() });
        bytes[position] = random.next() as u8;
        let Ok(index) = super::index::Index::decode(&bytes, &ORDER) else {
            continue;
        };
        for i in 0..60u64 {
            index.find(&i.to_be_bytes().repeat(2), i, &ORDER);
        }
    }
}

/// Random changes to a list of partitions with a right checksum are refused or
/// lead to places inside of the table.
#[test]
fn hostile_lists_of_partitions_are_refused_or_harmless() {
    let mut random = Random::new(99);
    let top_of = |offset: &dyn Fn(u64) -> u64| {
        let mut top = super::index_builder::IndexBuilder::default();
        (0..20u64).for_each(|i| top.add(&i.to_be_bytes(), None, offset(i)));
        top
    };
    let top = top_of(&|i| 5000 + i * 100);
    let firsts: Vec<u32> = (0..21).map(|i| i * 3).collect();
    let filters: Vec<u64> = (0..21).map(|i| 3000 + i * 100).collect();
    let sound = super::partitions::encode(&firsts, Some(&filters), &top.finish(7000, true));
    let decode = |bytes: &[u8]| super::partitions::Partitions::decode(bytes, &ORDER, 7000);
    assert!(decode(&sound).is_ok());
    let mut filters_at_one_place = filters.clone();
    filters_at_one_place[7] = filters_at_one_place[6];
    let top_again = top_of(&|i| 5000 + i * 100).finish(7000, true);
    let bytes = super::partitions::encode(&firsts, Some(&filters_at_one_place), &top_again);
    assert!(decode(&bytes).is_err(), "an empty partition of the filter");
    let top_again = top_of(&|i| 5000 + i / 2 * 200).finish(7000, true);
    let bytes = super::partitions::encode(&firsts, Some(&filters), &top_again);
    assert!(decode(&bytes).is_err(), "an empty partition of the index");
    for length in 0..sound.len() {
        assert!(decode(&sound[..length]).is_err());
    }
    for round in 0..40_000 {
        let mut bytes = sound.clone();
        let position = random.below(if round % 2 == 0 { 8 } else { bytes.len() });
        bytes[position] = random.next() as u8;
        let Ok(partitions) = decode(&bytes) else { continue };
        for i in 0..partitions.count() {
            let filter = partitions.filter_ref(i).expect("flags were not changed to none");
            for wanted in [partitions.index_ref(i), filter] {
                assert!(wanted.place.offset + wanted.place.stored_bytes as u64 <= 7000);
            }
        }
        for block in 0..partitions.blocks().min(100) {
            assert!(partitions.of_block(block) < partitions.count());
        }
    }
}
