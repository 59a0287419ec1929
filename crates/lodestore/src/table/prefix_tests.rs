//! Prefixes in filters: no table that has a key is denied, and most that have
//! none are.

use crate::key::{KeyOrder, Kind, trailer};
use crate::prefix::PrefixExtractor;

use super::testing::*;
use super::{Compression, TableSettings};

const ORDER: KeyOrder = KeyOrder::Bytewise;

const EXTRACTORS: [PrefixExtractor; 4] = [
    PrefixExtractor::Fixed(3),
    PrefixExtractor::Capped(2),
    PrefixExtractor::Capped(5),
    PrefixExtractor::Delimiter(2),
];

fn with_prefixes(extractor: PrefixExtractor, partition_bytes: usize) -> TableSettings {
    let settings = settings(256, Compression::None);
    TableSettings { prefix_extractor: extractor, partition_bytes, ..settings }
}

/// Whatever the keys, the extractor and the partitions: a table that has a key
/// that begins so is never denied, and many that have none are.
#[test]
fn only_tables_without_such_keys_are_denied() {
    let mut denied = [0; EXTRACTORS.len()];
    for seed in 0..12 {
        for (place, extractor) in EXTRACTORS.into_iter().enumerate() {
            let shape = [Shape::Nested, Shape::Wild][seed as usize % 2];
            let entries = entries(shape, 150, seed, &ORDER);
            let partition_bytes = [usize::MAX, 64, 300][seed as usize % 3];
            let (bytes, meta) = build(&entries, &with_prefixes(extractor, partition_bytes));
            let table = open(bytes, &meta, &ORDER).unwrap();
            table.verify(&context()).unwrap();
            let mut random = Random::new(seed + 100);
            let mut starts: Vec<Vec<u8>> = entries.iter().map(|e| e.0.clone()).collect();
            starts.extend((0..200).map(|_| {
                let length = random.below(7);
                random.bytes(length, 4)
            }));
            for key in starts {
                for length in 0..key.len().min(8) {
                    let start = &key[..length];
                    let has = entries.iter().any(|entry| entry.0.starts_with(start));
                    let may = table.may_have_start(start, &context());
                    assert!(may || !has, "{extractor}, seed {seed}: {start:?}");
                    denied[place] += usize::from(!may);
                }
            }
        }
    }
    assert!(denied.iter().all(|&denied| denied > 100), "{denied:?}");
}

/// Of 1000 prefixes that are not there, at most 30 pass a filter of ten bits.
#[test]
fn few_absent_prefixes_pass() {
    let entries: Vec<Entry> = (0..2000u64)
        .map(|i| {
            (format!("{:04}/{i:04}", 2 * (i / 4)).into_bytes(), trailer(1, Kind::Put), vec![1])
        })
        .collect();
    for partition_bytes in [usize::MAX, 128] {
        let settings = with_prefixes(PrefixExtractor::Delimiter(b'/'), partition_bytes);
        let (bytes, meta) = build(&entries, &settings);
        let table = open(bytes, &meta, &ORDER).unwrap();
        let passes = |i: u64| table.may_have_start(format!("{i:04}/1").as_bytes(), &context());
        assert!((0..500).all(|i| passes(2 * i)));
        let passed = (0..500).filter(|i| passes(2 * i + 1)).count();
        assert!(passed < 15, "{passed} of 500 pass");
    }
}

/// A table that names another extractor, or none, is asked by that: what it
/// does not know it does not deny.
#[test]
fn tables_are_asked_by_their_own_extractor() {
    let entries: Vec<Entry> = vec![(b"abc/1".to_vec(), trailer(1, Kind::Put), vec![1])];
    let cases = [
        (PrefixExtractor::None, &[][..]),
        (PrefixExtractor::Fixed(2), &[&b"xx"[..], b"xxx/"]),
        (PrefixExtractor::Fixed(4), &[b"xxx/"]),
        (PrefixExtractor::Delimiter(b'/'), &[b"xxx/"]),
        (PrefixExtractor::Delimiter(b'#'), &[]),
    ];
    for (extractor, denied) in cases {
        let (bytes, meta) = build(&entries, &with_prefixes(extractor, usize::MAX));
        let table = open(bytes, &meta, &ORDER).unwrap();
        for start in [&b"x"[..], b"xx", b"xxx/", b"abc", b"abc/", b"abc/1"] {
            let may = table.may_have_start(start, &context());
            assert_eq!(may, !denied.contains(&start), "{extractor} {start:?}");
        }
    }
}

/// Without a filter there are no prefixes: the table names no extractor.
#[test]
fn no_filter_knows_no_prefixes() {
    let settings = with_prefixes(PrefixExtractor::Fixed(1), usize::MAX);
    let settings = TableSettings { filter_bits_per_key: 0, ..settings };
    let (bytes, meta) = build(&entries(Shape::Decimal, 10, 1, &ORDER), &settings);
    let table = open(bytes, &meta, &ORDER).unwrap();
    assert_eq!(table.properties.prefix_extractor, None);
    assert!(table.may_have_start(b"x", &context()));
}
