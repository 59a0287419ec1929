//! A table gives back what was put into it, found every way.

use std::cmp::Ordering;
use std::ops::ControlFlow;
use std::path::Path;

use crate::budget::{Account, Charge, Item};
use crate::cache::BlockKind;
use crate::cursor::Cursor;
use crate::error::Error;
use crate::key::{
    Comparator, FileId, InternalKey, KeyOrder, Kind, TRAILER_NEWEST, Trailer, trailer,
};
use crate::range_deletes::{Fragments, RangeDelete};
use crate::stats::Counter;
use crate::sync::Arc;

use super::directory::Directory;
use super::testing::*;
use super::{
    Compression, LookupKey, Need, ReadContext, Table, TableBuilder, TableSettings, describe,
};

const CODECS: [Compression; 4] =
    [Compression::None, Compression::Snappy, Compression::Lz4, Compression::Zstd { level: 3 }];

/// Longer keys first, then bytes from their ends.
struct Backwards;

impl Comparator for Backwards {
    fn name(&self) -> &str {
        "test.Backwards"
    }

    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        b.len().cmp(&a.len()).then_with(|| a.iter().rev().cmp(b.iter().rev()))
    }
}

/// Letters without regard to case: keys of different bytes can be equal.
struct IgnoringCase;

impl Comparator for IgnoringCase {
    fn name(&self) -> &str {
        "test.IgnoringCase"
    }

    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        a.to_ascii_lowercase().cmp(&b.to_ascii_lowercase())
    }
}

fn opened(entries: &[Entry], settings: &TableSettings) -> Arc<Table> {
    let (bytes, meta) = build(entries, settings);
    let table = open(bytes, &meta, &settings.order).unwrap();
    assert_eq!(table.verify(&context()).unwrap().entries, entries.len() as u64);
    table
}

/// All versions of a key from `trailer_max` on, as a point lookup finds them.
fn versions(
    table: &Table,
    key: &[u8],
    trailer_max: Trailer,
    context: &ReadContext,
) -> Vec<(Trailer, Vec<u8>)> {
    let key = LookupKey::new(key, trailer_max);
    let (mut found, mut held, mut need) = (Vec::new(), None, table.begin(&key));
    while let Need::Block(wanted) = need {
        let block = table.read_block(wanted, context).unwrap();
        need = table.supply(wanted, &block, &key, &mut held, |trailer, value| {
            assert_eq!(&block.bytes()[block.range_of(value)], value);
            found.push((trailer, value.to_vec()));
            ControlFlow::Continue(())
        });
    }
    found
}

fn here(cursor: &impl Cursor) -> Option<Entry> {
    cursor.status().unwrap();
    cursor.valid().then(|| (cursor.user_key().to_vec(), cursor.trailer(), cursor.value().to_vec()))
}

fn check_walks(table: &Arc<Table>, entries: &[Entry]) {
    for fill_cache in [false, true] {
        let mut cursor = table.cursor(ReadContext { fill_cache, ..context() });
        assert_eq!(here(&cursor), None);
        cursor.seek_to_first();
        for entry in entries {
            assert_eq!(here(&cursor).as_ref(), Some(entry));
            cursor.next();
        }
        assert_eq!(here(&cursor), None);
        cursor.seek_to_last();
        for entry in entries.iter().rev() {
            assert_eq!(here(&cursor).as_ref(), Some(entry));
            cursor.prev();
        }
        assert_eq!(here(&cursor), None);
    }
}

fn check_probe(table: &Arc<Table>, entries: &[Entry], order: &KeyOrder, key: &[u8], t: Trailer) {
    let context = context();
    let before = |e: &Entry| order.compare_entries((&e.0, e.1), (key, t)).is_lt();
    let position = entries.partition_point(before);
    let mut cursor = table.cursor(context.clone());
    cursor.seek(key, t);
    assert_eq!(here(&cursor).as_ref(), entries.get(position), "seek {key:?} {t}");
    if cursor.valid() {
        cursor.prev();
        let previous = position.checked_sub(1).map(|i| &entries[i]);
        assert_eq!(here(&cursor).as_ref(), previous);
    }
    let not_after = |e: &Entry| order.compare_entries((&e.0, e.1), (key, t)).is_le();
    let end = entries.partition_point(not_after);
    cursor.seek_for_prev(key, t);
    let expected = end.checked_sub(1).map(|i| &entries[i]);
    assert_eq!(here(&cursor).as_ref(), expected, "seek_for_prev {key:?} {t}");
    if cursor.valid() {
        cursor.next();
        assert_eq!(here(&cursor).as_ref(), entries.get(end));
    }
    let same_key = entries[position..].iter().take_while(|e| order.compare(&e.0, key).is_eq());
    let expected: Vec<_> = same_key.map(|e| (e.1, e.2.clone())).collect();
    assert_eq!(versions(table, key, t, &context), expected, "lookup {key:?} {t}");
}

/// With a resident index, with small partitions, and with one block in each.
fn check_all(entries: &[Entry], settings: &TableSettings, shape: Shape, seed: u64) {
    for partition_bytes in [usize::MAX, 200, 1] {
        let settings = TableSettings { partition_bytes, ..settings.clone() };
        check_one(entries, &settings, shape, seed);
    }
}

fn check_one(entries: &[Entry], settings: &TableSettings, shape: Shape, seed: u64) {
    let table = opened(entries, settings);
    check_walks(&table, entries);
    let mut random = Random::new(seed + 1);
    for _ in 0..150 {
        let mut key = match random.below(3) {
            0 => shape.key(&mut random),
            _ => entries[random.below(entries.len())].0.clone(),
        };
        match random.below(5) {
            0 => drop(key.pop()),
            1 => key.push(0),
            _ => {}
        }
        let t = match random.below(3) {
            0 => TRAILER_NEWEST,
            1 => 0,
            _ => entries[random.below(entries.len())].1,
        };
        check_probe(&table, entries, &settings.order, &key, t);
    }
}

/// Every entry is found by walk, seek and lookup, whatever its key's shape,
/// the codec and the length of blocks.
#[test]
fn tables_agree_with_a_sorted_list() {
    let mut seed = 0;
    for shape in SHAPES {
        for block_bytes in [1, 100, 700, 4096] {
            seed += 1;
            let settings = settings(block_bytes, CODECS[seed as usize % 4]);
            check_all(&entries(shape, 600, seed, &settings.order), &settings, shape, seed);
        }
    }
}

/// The same under orders that are not bytewise, also when keys of different
/// bytes are equal.
#[test]
fn custom_orders_hold() {
    let orders: [Arc<dyn Comparator>; 2] = [Arc::new(Backwards), Arc::new(IgnoringCase)];
    for (i, comparator) in orders.into_iter().enumerate() {
        for (j, block_bytes) in [1, 300, 4096].into_iter().enumerate() {
            let order = KeyOrder::Custom(Arc::clone(&comparator));
            let settings = TableSettings { order, ..settings(block_bytes, Compression::Lz4) };
            let seed = 100 + (3 * i + j) as u64;
            let entries = entries(Shape::Nested, 400, seed, &settings.order);
            check_all(&entries, &settings, Shape::Nested, seed);
        }
    }
    let order = KeyOrder::Custom(Arc::new(IgnoringCase));
    let settings = TableSettings { order, ..settings(4096, Compression::None) };
    let entries = [
        (b"KEY".to_vec(), trailer(9, Kind::Put), b"new".to_vec()),
        (b"key".to_vec(), trailer(5, Kind::Put), b"old".to_vec()),
    ];
    let table = opened(&entries, &settings);
    assert!(matches!(&table.directory, Directory::Resident { filter: None, .. }));
    assert_eq!(versions(&table, b"Key", TRAILER_NEWEST, &context()).len(), 2);
}

/// Three thousand versions of one key lie in many blocks; each snapshot finds
/// its own at once.
#[test]
fn versions_over_many_blocks_are_found() {
    let version = |i: u64| (b"key".to_vec(), trailer(i, Kind::Put), i.to_le_bytes().repeat(4));
    let mut entries: Vec<Entry> = (1..=3000).rev().map(version).collect();
    entries.insert(0, (b"kex".to_vec(), trailer(7, Kind::Put), vec![]));
    entries.push((b"kez".to_vec(), trailer(7, Kind::Put), vec![]));
    let settings = settings(512, Compression::None);
    for partition_bytes in [usize::MAX, 300] {
        check_versions(&entries, &TableSettings { partition_bytes, ..settings.clone() });
    }
}

fn check_versions(entries: &[Entry], settings: &TableSettings) {
    let table = opened(entries, settings);
    check_walks(&table, entries);
    let context = context();
    for sequence in [1, 2, 1500, 2999, 3000] {
        let newest = trailer(sequence, Kind::Put);
        let found = versions(&table, b"key", newest, &context);
        assert_eq!(found.len() as u64, sequence);
        assert_eq!(found[0].0, newest);
        let key = LookupKey::new(b"key", newest);
        let (mut need, mut held, mut blocks, mut seen) = (table.begin(&key), None, 0, 0);
        while let Need::Block(wanted) = need {
            blocks += u32::from(wanted.kind == BlockKind::Data);
            let block = table.read_block(wanted, &context).unwrap();
            need = table.supply(wanted, &block, &key, &mut held, |_, _| {
                seen += 1;
                ControlFlow::Break(())
            });
        }
        assert_eq!((blocks, seen), (1, 1), "the first block holds the version");
    }
    assert!(versions(&table, b"key", 0, &context).is_empty());
    check_probe(&table, entries, &KeyOrder::Bytewise, b"key", 0);
    check_probe(&table, entries, &KeyOrder::Bytewise, b"key", trailer(77, Kind::Delete));
}

/// Values of a megabyte, long keys, empty ones and ordinary ones side by side.
#[test]
fn huge_and_empty_entries_live_side_by_side() {
    let mut random = Random::new(5);
    for compression in CODECS {
        let mut entries: Vec<Entry> = vec![
            (vec![], trailer(3, Kind::Put), vec![]),
            (vec![], trailer(2, Kind::Put), random.bytes(1 << 20, 256)),
            (vec![0], trailer(3, Kind::Put), vec![0; 3 << 20]),
            (vec![0; 70_000], trailer(3, Kind::Put), vec![]),
            (vec![0; 70_001], trailer(3, Kind::Delete), vec![]),
            (vec![0; 200_000], trailer(3, Kind::Put), vec![1; 100]),
            (vec![1], trailer(3, Kind::Put), random.bytes(1 << 20, 2)),
        ];
        entries.extend((0..100u8).map(|i| (vec![2, i], trailer(1, Kind::Put), vec![i; 30])));
        for block_bytes in [4096, 200_000, usize::MAX] {
            let table = opened(&entries, &settings(block_bytes, compression));
            check_walks(&table, &entries);
            for entry in &entries {
                check_probe(&table, &entries, &KeyOrder::Bytewise, &entry.0, entry.1);
            }
        }
    }
}

/// A table without entries opens, verifies and has nothing.
#[test]
fn an_empty_table_is_a_table() {
    let table = opened(&[], &settings(4096, Compression::Lz4));
    check_walks(&table, &[]);
    check_probe(&table, &[], &KeyOrder::Bytewise, b"key", 5);
    assert_eq!(table.approximate_offset(b"key", &context()).unwrap(), 32);
}

/// The builder tells the manifest what is in the table.
#[test]
fn meta_describes_the_table() {
    let entries = vec![
        (b"a".to_vec(), trailer(9, Kind::Put), b"12".to_vec()),
        (b"a".to_vec(), trailer(4, Kind::Delete), vec![]),
        (b"bcd".to_vec(), trailer(6, Kind::SingleDelete), vec![]),
    ];
    let (bytes, meta) = build(&entries, &settings(4096, Compression::None));
    assert_eq!(meta.bytes, bytes.len() as u64);
    assert_eq!((meta.entries, meta.tombstones), (3, 2));
    assert_eq!((meta.key_bytes, meta.value_bytes), (5, 2));
    assert_eq!((meta.sequence_min, meta.sequence_max), (4, 9));
    assert_eq!(meta.smallest.user_key, b"a");
    assert_eq!((&meta.largest.user_key[..], meta.largest.trailer), (&b"bcd"[..], entries[2].1));
}

/// The same entries make the same bytes, and another id other ones throughout.
#[test]
fn building_is_deterministic() {
    let entries = entries(Shape::Decimal, 500, 3, &KeyOrder::Bytewise);
    let settings = settings(1000, Compression::Zstd { level: 1 });
    let (bytes, meta) = build(&entries, &settings);
    assert_eq!(build(&entries, &settings), (bytes, meta.clone()));
    let (other, _) = build_with_id(&entries, &settings, FileId(1));
    assert!(open(other, &meta, &KeyOrder::Bytewise).unwrap_err().is_corruption());
}

/// A table of ingested data shows one sequence number for every entry.
#[test]
fn an_overriding_sequence_number_replaces_all() {
    let entries: Vec<Entry> =
        (0..200u64).map(|i| (i.to_be_bytes().to_vec(), trailer(i, Kind::Put), vec![7])).collect();
    let (bytes, meta) = build(&entries, &settings(400, Compression::Lz4));
    let meta = meta.with_sequence(77);
    let table = open(bytes, &meta, &KeyOrder::Bytewise).unwrap();
    table.verify(&context()).unwrap();
    let expected: Vec<Entry> = entries
        .iter()
        .map(|(key, _, value)| (key.clone(), trailer(77, Kind::Put), value.clone()))
        .collect();
    check_walks(&table, &expected);
    check_probe(&table, &expected, &KeyOrder::Bytewise, &entries[9].0, trailer(77, Kind::Put));
    check_probe(&table, &expected, &KeyOrder::Bytewise, &entries[9].0, trailer(76, Kind::Put));

    let twice = [
        (b"k".to_vec(), trailer(2, Kind::Put), vec![]),
        (b"k".to_vec(), trailer(1, Kind::Put), vec![]),
    ];
    let (bytes, meta) = build(&twice, &settings(400, Compression::Lz4));
    let meta = meta.with_sequence(77);
    let table = open(bytes, &meta, &KeyOrder::Bytewise).unwrap();
    assert!(table.read_block(block_ref(&table, 0), &context()).unwrap_err().is_corruption());
}

/// Range deletes of an ingested table take its number too, and hide nothing of
/// the table itself; a table whose range deletes have several numbers at one
/// key cannot be given one.
#[test]
fn an_overriding_sequence_number_is_that_of_range_deletes_too() {
    let order = KeyOrder::Bytewise;
    let entries = [(b"c".to_vec(), trailer(1, Kind::Put), vec![7])];
    let delete = |sequence| RangeDelete { start: b"b"[..].into(), end: b"x"[..].into(), sequence };
    let with = |deletes: &[RangeDelete], snapshots: &[u64]| {
        let fragments = Fragments::build(&order, deletes.to_vec(), snapshots);
        build_with_range_deletes(&entries, &settings(400, Compression::Lz4), fragments)
    };
    let (bytes, meta) = with(&[delete(1)], &[]);
    let meta = meta.with_sequence(77);
    assert_eq!((meta.sequence_min, meta.newest_sequence()), (77, 77));
    assert_eq!(meta.smallest, InternalKey::new(b"b", trailer(77, Kind::RangeDelete)));
    assert_eq!(meta.largest, InternalKey::new(b"x", TRAILER_NEWEST));
    let table = open(bytes, &meta, &order).unwrap();
    table.verify(&context()).unwrap();
    let deletes = table.range_deletes();
    assert_eq!((deletes.covering(b"c", 77), deletes.covering(b"c", 76)), (77, 0));
    let expected = [(b"c".to_vec(), trailer(77, Kind::Put), vec![7])];
    check_walks(&table, &expected);

    let (bytes, meta) = with(&[delete(1), delete(3)], &[2]);
    assert!(open(bytes, &meta.with_sequence(77), &order).unwrap_err().is_corruption());
}

/// A table describes itself as its builder described it.
#[test]
fn a_table_describes_itself() {
    let entries = entries(Shape::Decimal, 500, 3, &KeyOrder::Bytewise);
    let (bytes, meta) = build(&entries, &settings(1000, Compression::Lz4));
    let found = describe(&BytesFile(bytes.clone()), Path::new("t")).unwrap();
    assert_eq!(found.meta, meta);
    assert_eq!(found.order_name, KeyOrder::Bytewise.name());
    for end in [0, 10, bytes.len() / 2, bytes.len() - 1] {
        let cut = BytesFile(bytes[..end].to_vec());
        assert!(describe(&cut, Path::new("t")).unwrap_err().is_corruption(), "{end}");
    }
}

/// A block comes from the file once, then from the cache.
#[test]
fn blocks_are_cached_when_asked() {
    let entries = entries(Shape::Decimal, 500, 3, &KeyOrder::Bytewise);
    let table = opened(&entries, &settings(1000, Compression::Lz4));
    let context = context();
    let frugal = ReadContext { fill_cache: false, ..context.clone() };
    let first = block_ref(&table, 0);
    table.read_block(first, &frugal).unwrap();
    table.read_block(first, &context).unwrap();
    table.read_block(first, &context).unwrap();
    assert_eq!(context.statistics.get(Counter::CacheMisses), 2);
    assert_eq!(context.statistics.get(Counter::CacheHits), 1);
    let stored = 2 * first.place.stored_bytes as u64;
    assert_eq!(context.statistics.get(Counter::BlockBytesRead), stored);
}

/// A walk reads ahead: far fewer reads than blocks, and not every byte twice.
#[test]
fn walks_read_each_byte_about_once() {
    let entries = entries(Shape::Hash, 3000, 3, &KeyOrder::Bytewise);
    let table = opened(&entries, &settings(1000, Compression::None));
    let end = block_ref(&table, table.blocks() - 1).place;
    let context = ReadContext { fill_cache: false, ..context() };
    let mut cursor = table.cursor(context.clone());
    cursor.seek_to_first();
    while cursor.valid() {
        cursor.next();
    }
    let read = context.statistics.get(Counter::BlockBytesRead);
    assert_eq!(read, end.offset + end.stored_bytes as u64 - 32);
}

/// Many walks side by side, as a compaction of level 0 has them, hold little more for
/// reading ahead than a few do.
#[test]
fn walks_side_by_side_share_what_they_read_ahead() {
    const WALKS: usize = 32;
    let value = |at: u32| (at.wrapping_mul(0x9e37_79b9)).to_le_bytes().repeat(32);
    let key = |at: u32| at.to_be_bytes().to_vec();
    let entries: Vec<_> = (0..8000).map(|at| (key(at), trailer(1, Kind::Put), value(at))).collect();
    let table = opened(&entries, &settings(4096, Compression::None));
    let held_at_most = |buffers: Charge, account: &Account| {
        let context = ReadContext { buffers, fill_cache: false, ..context() };
        let mut walks: Vec<_> = (0..WALKS).map(|_| table.cursor(context.clone())).collect();
        walks.iter_mut().for_each(Cursor::seek_to_first);
        let mut most = 0;
        for entry in &entries {
            for walk in &mut walks {
                assert_eq!(here(walk).as_ref(), Some(entry));
                walk.next();
            }
            most = most.max(account.used(Item::Compactions));
        }
        most
    };
    let account = Account::unlimited();
    let buffers = Charge::new(&account, Item::Compactions);
    assert!(held_at_most(buffers.clone(), &account) >= WALKS * (256 << 10));
    assert!(held_at_most(buffers.divided(WALKS), &account) <= 3 << 20);
}

/// Offsets ascend with keys, from the first block to the end of the last.
#[test]
fn approximate_offsets_ascend() {
    let entries = entries(Shape::Decimal, 2000, 9, &KeyOrder::Bytewise);
    let table = opened(&entries, &settings(1000, Compression::None));
    let offset = |key: &[u8]| table.approximate_offset(key, &context()).unwrap();
    assert_eq!(offset(b""), 32);
    let end = block_ref(&table, table.blocks() - 1).place;
    assert_eq!(offset(b"\xff"), end.offset + end.stored_bytes as u64);
    let offsets: Vec<u64> = entries.iter().map(|e| offset(&e.0)).collect();
    assert!(offsets.is_sorted());
}

/// A disk that is full is an error of the builder, not a table.
#[test]
fn failed_writes_are_reported() {
    let sink = BytesSink { fails: true, ..BytesSink::default() };
    let settings = settings(4096, Compression::None);
    let path = std::path::Path::new("full");
    let mut builder = TableBuilder::new(Box::new(sink), path, ID, settings).unwrap();
    builder.add(b"k", trailer(1, Kind::Put), b"v").unwrap();
    assert!(matches!(builder.finish(), Err(Error::Io { during: "append to", .. })));
}

/// Range tombstones have no place in blocks: refused, not misplaced.
#[test]
fn range_tombstones_are_refused() {
    let settings = settings(4096, Compression::None);
    let path = std::path::Path::new("t");
    let sink = Box::new(BytesSink::default());
    let mut builder = TableBuilder::new(sink, path, ID, settings).unwrap();
    let refused = builder.add(b"k", trailer(1, Kind::RangeDelete), b"z");
    assert!(matches!(refused, Err(Error::InvalidArgument { .. })));
}

/// The estimate is near the length of the file, so that tables end in time.
#[test]
fn estimates_are_near() {
    let entries = entries(Shape::Decimal, 5000, 9, &KeyOrder::Bytewise);
    let settings = settings(4096, Compression::None);
    let sink = Box::new(BytesSink::default());
    let path = std::path::Path::new("t");
    let mut builder = TableBuilder::new(sink, path, ID, settings).unwrap();
    assert!(builder.is_empty());
    for (key, trailer, value) in &entries {
        builder.add(key, *trailer, value).unwrap();
    }
    let estimate = builder.estimated_bytes();
    let bytes = builder.finish().unwrap().bytes;
    assert!(estimate.abs_diff(bytes) < bytes / 50 + 512, "{estimate} against {bytes}");
}

/// At ten bits a key a table denies all but 1.5 % of absent keys.
#[test]
fn filters_deny_absent_keys() {
    let entries: Vec<Entry> = (0..20_000u64)
        .map(|i| (format!("{:016}", 2 * i).into_bytes(), trailer(i, Kind::Put), vec![]))
        .collect();
    let settings = settings(4096, Compression::None);
    for partition_bytes in [usize::MAX, 4096] {
        let settings = TableSettings { partition_bytes, ..settings.clone() };
        let (table, context) = (opened(&entries, &settings), context());
        for i in 0..20_000 {
            let key = format!("{:016}", 2 * i + 1);
            assert!(versions(&table, key.as_bytes(), TRAILER_NEWEST, &context).is_empty());
        }
        let count = |counter| context.statistics.get(counter);
        let passed = count(Counter::CacheHits) + count(Counter::CacheMisses);
        assert!(passed < 300, "{passed} of 20000 pass");
    }
}

/// Of a partitioned table little is resident; its parts come from the cache,
/// counted by their kind.
#[test]
fn partitions_are_read_as_blocks_are() {
    let entries: Vec<Entry> = (0..50_000u64)
        .map(|i| (format!("{i:016}").into_bytes(), trailer(i, Kind::Put), vec![7; 20]))
        .collect();
    let settings = TableSettings { partition_bytes: 2048, ..settings(1024, Compression::Lz4) };
    let table = opened(&entries, &settings);
    let resident = opened(&entries, &TableSettings { partition_bytes: usize::MAX, ..settings });
    assert!(20 * table.memory_bytes() < resident.memory_bytes());
    let context = context();
    for _ in 0..2 {
        assert_eq!(versions(&table, &entries[777].0, TRAILER_NEWEST, &context).len(), 1);
    }
    let kinds = [
        (Counter::CacheHits, Counter::CacheMisses),
        (Counter::CacheIndexHits, Counter::CacheIndexMisses),
        (Counter::CacheFilterHits, Counter::CacheFilterMisses),
    ];
    for (hits, misses) in kinds {
        assert_eq!((context.statistics.get(hits), context.statistics.get(misses)), (1, 1));
    }
    for kind in [BlockKind::Data, BlockKind::Index, BlockKind::Filter] {
        assert!(context.cache.used_bytes_of(kind) > 0, "{kind:?}");
    }
}

/// A manifest that has other bounds of a table than it states itself would make
/// lookups miss keys: the table is refused.
#[test]
fn a_table_with_other_bounds_in_the_manifest_is_refused() {
    let entries: Vec<Entry> =
        (0..20u64).map(|i| (i.to_be_bytes().to_vec(), trailer(i, Kind::Put), vec![7])).collect();
    let (bytes, meta) = build(&entries, &settings(400, Compression::None));
    assert!(open(bytes.clone(), &meta, &KeyOrder::Bytewise).is_ok());
    let mut later = meta.clone();
    later.smallest.user_key = 3u64.to_be_bytes().to_vec();
    let mut older = meta.clone();
    older.sequence_max = 5;
    for wrong in [later, older] {
        let refused = open(bytes.clone(), &wrong, &KeyOrder::Bytewise).unwrap_err();
        assert!(refused.is_corruption(), "{refused}");
    }
}
