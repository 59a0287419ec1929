//! Blocks that go from table to table as they are stored: the new table is the
//! one that building it anew would have made, and only those go over that its
//! readers can read.

use std::path::Path;

use crate::cursor::Cursor;
use crate::key::{FileId, KeyOrder, Kind, trailer};
use crate::sync::Arc;

use super::meta::TableMeta;
use super::testing::*;
use super::{Compression, Table, TableBuilder, TableSettings};

const ORDER: KeyOrder = KeyOrder::Bytewise;
const BLOCK_BYTES: usize = 1024;

/// Values long and short, those that a codec shrinks and those that it does
/// not, and keys with several versions.
fn mixed(count: u64) -> Vec<Entry> {
    let mut random = Random::new(11);
    let mut entries = Vec::new();
    for i in 0..count {
        let letters = [2, 256][random.below(2)];
        for version in 0..1 + random.below(2) as u64 {
            let length = [random.below(100), 1020 + random.below(10), 5000][random.below(3)];
            let value = random.bytes(length, letters);
            entries.push((i.to_be_bytes().to_vec(), trailer(9 - version, Kind::Put), value));
        }
    }
    entries
}

/// Another table of the entries of `from`: its bytes, and how many blocks were
/// taken over.
fn rewrite(from: &Arc<Table>, settings: &TableSettings, id: FileId) -> (Vec<u8>, TableMeta, usize) {
    let sink = BytesSink::default();
    let file = Box::new(sink.clone());
    let mut builder = TableBuilder::new(file, Path::new("t"), id, settings.clone()).unwrap();
    let mut cursor = from.cursor(context());
    let mut taken_over = 0;
    cursor.seek_to_first();
    while cursor.valid() {
        let (key, trailer, value) = (cursor.user_key(), cursor.trailer(), cursor.value());
        match cursor.stored().filter(|stored| builder.may_take_over(stored)) {
            Some(stored) if value.len() >= builder.block_bytes() => {
                builder.take_over(key, trailer, value.len(), stored).unwrap();
                taken_over += 1;
            }
            _ => builder.add(key, trailer, value).unwrap(),
        }
        cursor.next();
    }
    cursor.status().unwrap();
    let meta = builder.finish().unwrap();
    let bytes = std::mem::take(&mut *sink.bytes.lock());
    (bytes, meta, taken_over)
}

/// A table with blocks that were taken over is, to the byte, the table that is
/// made of its entries, with any codec, and with its index in parts.
#[test]
fn a_table_is_the_same_whether_blocks_are_taken_over_or_made() {
    let entries = mixed(400);
    for compression in [Compression::None, Compression::Snappy, Compression::Lz4] {
        for partition_bytes in [usize::MAX, 512] {
            let settings = TableSettings { partition_bytes, ..settings(BLOCK_BYTES, compression) };
            let (bytes, meta) = build(&entries, &settings);
            let from = open(bytes, &meta, &ORDER).unwrap();
            let (bytes, meta, taken_over) = rewrite(&from, &settings, FileId(7));
            assert!(taken_over > 200, "{taken_over} blocks with {compression:?}");
            assert_eq!(
                (bytes.clone(), meta.clone()),
                build_with_id(&entries, &settings, FileId(7))
            );
            let table = open(bytes, &meta, &ORDER).unwrap();
            table.verify(&context()).unwrap();
            assert_eq!(all_entries(&table), entries);
        }
    }
}

/// Nothing is taken over that the new table's readers would take for something
/// else, or that whoever chose its codec or level did not want.
#[test]
fn blocks_of_another_kind_are_made_anew() {
    let entries = mixed(60);
    let taken_over = |compression, wanted| {
        let (bytes, meta) = build(&entries, &settings(BLOCK_BYTES, compression));
        let from = open(bytes, &meta, &ORDER).unwrap();
        rewrite(&from, &settings(BLOCK_BYTES, wanted), FileId(7)).2
    };
    let (none, snappy, lz4) = (Compression::None, Compression::Snappy, Compression::Lz4);
    let zstd = |level| Compression::Zstd { level };
    assert!(taken_over(snappy, snappy) > 0);
    for (compression, wanted) in [(snappy, lz4), (snappy, none), (none, snappy), (zstd(1), zstd(9))]
    {
        assert_eq!(taken_over(compression, wanted), 0, "{compression:?} to {wanted:?}");
    }
}

/// A table that was ingested has its sequence number from the manifest, not in
/// its blocks.
#[test]
fn blocks_of_a_table_with_one_sequence_number_are_made_anew() {
    let entries: Vec<Entry> = (0..20u64)
        .map(|i| (i.to_be_bytes().to_vec(), trailer(0, Kind::Put), vec![1; 2 * BLOCK_BYTES]))
        .collect();
    let settings = settings(BLOCK_BYTES, Compression::Snappy);
    let (bytes, meta) = build(&entries, &settings);
    let ingested = meta.clone().with_sequence(77);
    let from = open(bytes.clone(), &ingested, &ORDER).unwrap();
    let (rewritten, meta_of_it, taken_over) = rewrite(&from, &settings, FileId(7));
    assert_eq!(taken_over, 0);
    let table = open(rewritten, &meta_of_it, &ORDER).unwrap();
    assert!(all_entries(&table).iter().all(|entry| entry.1 == trailer(77, Kind::Put)));
    let from = open(bytes, &meta, &ORDER).unwrap();
    assert!(rewrite(&from, &settings, FileId(7)).2 > 0);
}
