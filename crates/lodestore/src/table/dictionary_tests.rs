//! Dictionaries: tables of small records of one form get smaller, and nothing
//! else changes; damage is named.

use crate::error::Error;
use crate::key::{KeyOrder, Kind, trailer};

use super::dictionary::Dictionary;
use super::format::tag;
use super::testing::*;
use super::{Compression, DICTIONARY_BYTES_MAX, TableSettings};

const ORDER: KeyOrder = KeyOrder::Bytewise;
const ZSTD: Compression = Compression::Zstd { level: 3 };

/// Records as a program writes them: one form, small differences.
fn records(count: u64) -> Vec<Entry> {
    let mut random = Random::new(5);
    let mut record = |i: u64| {
        let (amount, state) = (random.below(100_000), random.below(3));
        let state = ["open", "settled", "disputed"][state];
        format!(
            "{{\"account\":\"ACCT-{:08}\",\"amount\":{amount},\"currency\":\"EUR\",\
             \"state\":\"{state}\",\"updated_by\":\"ledger-writer\",\"sequence\":{i}}}",
            random.below(1_000_000)
        )
    };
    (0..count)
        .map(|i| (i.to_be_bytes().to_vec(), trailer(i, Kind::Put), record(i).into()))
        .collect()
}

fn with_dictionary(block_bytes: usize, training: usize) -> TableSettings {
    TableSettings {
        dictionary_bytes: 8 << 10,
        dictionary_training_bytes: training,
        ..settings(block_bytes, ZSTD)
    }
}

/// Small blocks of records of one form take much less with a dictionary; all
/// of it is read back, also from partitions, and `verify` finds it sound.
#[test]
fn records_of_one_form_get_smaller() {
    let entries = records(6000);
    let (plain, plain_meta) = build(&entries, &settings(1024, ZSTD));
    for training in [64 << 10, 16 << 20] {
        let settings = with_dictionary(1024, training);
        let (bytes, meta) = build(&entries, &settings);
        println!("{} bytes with a dictionary, {} without", bytes.len(), plain.len());
        assert!(bytes.len() * 10 < plain.len() * 8, "{} of {}", bytes.len(), plain.len());
        for partition_bytes in [usize::MAX, 512] {
            let settings = TableSettings { partition_bytes, ..settings.clone() };
            let (bytes, meta) = build(&entries, &settings);
            let table = open(bytes, &meta, &ORDER).unwrap();
            assert_eq!(table.codec_text(), "zstd+dictionary");
            assert_eq!(table.verify(&context()).unwrap().entries, 6000);
            let found: Vec<Entry> = all_entries(&table);
            assert_eq!(found, entries);
        }
        let table = open(bytes, &meta, &ORDER).unwrap();
        let without = open(plain.clone(), &plain_meta, &ORDER).unwrap();
        let more = table.memory_bytes() - without.memory_bytes();
        assert!(more > 8 << 10, "the dictionary is counted: {more} bytes");
    }
}

/// Where a dictionary would not pay, there is none: values without anything in
/// common, a table too small, another codec.
#[test]
fn a_dictionary_that_does_not_pay_is_left_out() {
    let mut random = Random::new(9);
    let noise: Vec<Entry> = (0..500u64)
        .map(|i| (i.to_be_bytes().to_vec(), trailer(i, Kind::Put), random.bytes(100, 256)))
        .collect();
    let lz4 = TableSettings { compression: Compression::Lz4, ..with_dictionary(1024, 64 << 10) };
    let cases = [
        (noise, with_dictionary(1024, 64 << 10)),
        (records(3), with_dictionary(1024, 64 << 10)),
        (records(2000), lz4),
        (Vec::new(), with_dictionary(1024, 64 << 10)),
    ];
    for (entries, settings) in cases {
        let (bytes, meta) = build(&entries, &settings);
        let table = open(bytes, &meta, &ORDER).unwrap();
        assert!(footer(&table).section(tag::DICTIONARY).is_none(), "{settings:?}");
        assert_eq!(all_entries(&table), entries);
        table.verify(&context()).unwrap();
    }
}

/// A table whose dictionary is damaged does not open: the error names the file
/// and where the dictionary is.
#[test]
fn a_damaged_dictionary_is_named() {
    let (bytes, meta) = build(&records(1000), &with_dictionary(512, 64 << 10));
    let section =
        *footer(&open(bytes.clone(), &meta, &ORDER).unwrap()).section(tag::DICTIONARY).unwrap();
    for place in (0..section.length).step_by(13) {
        let mut damaged = bytes.clone();
        damaged[(section.offset + place) as usize] ^= 0x10;
        match open(damaged, &meta, &ORDER) {
            Err(Error::Corruption { path, offset, .. }) => {
                assert_eq!((path.to_str(), offset), (Some("t"), section.offset));
            }
            other => panic!("byte {place} gave {other:?}"),
        }
    }
}

/// Bytes from outside that claim to be a dictionary are refused or harmless.
#[test]
fn hostile_dictionaries_are_refused() {
    assert!(Dictionary::decode(&[]).is_err());
    assert!(Dictionary::decode(&vec![1; DICTIONARY_BYTES_MAX + 1]).is_err());
    let mut random = Random::new(3);
    let mut refused = 0;
    for length in [8, 9, 100, 1000] {
        for _ in 0..200 {
            // Zstandard's magic number, and tables of nonsense.
            let mut bytes = vec![0x37, 0xa4, 0x30, 0xec];
            bytes.extend(random.bytes(length - 4, 256));
            refused += usize::from(Dictionary::decode(&bytes).is_err());
        }
    }
    assert_eq!(refused, 800);
    // Without the magic number they are what blocks may have in common.
    assert!(Dictionary::decode(b"nothing special").is_ok());
}
