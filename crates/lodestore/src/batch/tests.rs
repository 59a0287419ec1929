use super::*;
use crate::error::Undecodable;
use crate::key::{KEY_BYTES_MAX, VALUE_BYTES_MAX};

fn entry<'a>(family: u32, kind: Kind, key: &'a [u8], value: &'a [u8]) -> Record<'a> {
    Record::Entry { family: FamilyId(family), kind, key, value }
}

fn stored(first: u64, count: u32, records: &[u8]) -> Vec<u8> {
    let mut bytes = first.to_le_bytes().to_vec();
    bytes.extend_from_slice(&count.to_le_bytes());
    bytes.extend_from_slice(records);
    bytes
}

/// Records come back in order, as they were added, also through their bytes.
#[test]
fn records_come_back_as_they_were_added() {
    let long = vec![7; 300];
    let mut batch = WriteBatch::new();
    batch.put(b"a", b"1");
    batch.delete(b"");
    batch.merge(b"m", &long);
    batch.opaque(b"note");
    batch.put_in(FamilyId(300), b"", b"");
    batch.delete_in(FamilyId(u32::MAX), &long);
    batch.merge_in(FamilyId(1), b"k", b"+1");
    batch.put_in(FamilyId::DEFAULT, b"d", b"default");
    batch.single_delete(b"s");
    batch.single_delete_in(FamilyId(5), b"s");
    batch.delete_range(b"a", b"b");
    batch.delete_range_in(FamilyId(5), b"a", b"b");
    batch.set_sequence(41);
    let expected = [
        entry(0, Kind::Put, b"a", b"1"),
        entry(0, Kind::Delete, b"", b""),
        entry(0, Kind::Merge, b"m", &long),
        Record::Opaque(b"note"),
        entry(300, Kind::Put, b"", b""),
        entry(u32::MAX, Kind::Delete, &long, b""),
        entry(1, Kind::Merge, b"k", b"+1"),
        entry(0, Kind::Put, b"d", b"default"),
        entry(0, Kind::SingleDelete, b"s", b""),
        entry(5, Kind::SingleDelete, b"s", b""),
        entry(0, Kind::RangeDelete, b"a", b"b"),
        entry(5, Kind::RangeDelete, b"a", b"b"),
    ];
    assert_eq!(batch.iter().collect::<Result<Vec<_>>>().unwrap(), expected);
    assert_eq!((batch.len(), batch.sequence_count()), (12, 11), "opaque bytes take no number");

    let again = WriteBatch::from_bytes(batch.as_bytes().to_vec()).unwrap();
    assert_eq!(again.records().collect::<Vec<_>>(), expected);
    assert_eq!((again.len(), again.sequence(), again.sequence_count()), (12, 41, 11));
    assert_eq!(again.bytes(), batch.as_bytes().len());
}

/// A put of the default family is stored byte for byte as LevelDB stores it.
#[test]
fn plain_records_are_stored_as_leveldb_stores_them() {
    let mut batch = WriteBatch::new();
    batch.put(b"foo", b"bar");
    batch.delete(b"box");
    batch.set_sequence(100);
    assert_eq!(batch.as_bytes(), stored(100, 2, b"\x01\x03foo\x03bar\x00\x03box"));
}

/// A cleared batch is empty and can be used again.
#[test]
fn cleared_batch_is_as_new() {
    let mut batch = WriteBatch::new();
    assert!(batch.is_empty());
    batch.opaque(b"x");
    batch.set_sequence(9);
    assert!(!batch.is_empty(), "opaque bytes are worth writing");
    batch.refuse("too long".to_string());
    batch.clear();
    batch.check().unwrap();
    assert!(batch.is_empty());
    assert_eq!(batch.as_bytes(), WriteBatch::new().as_bytes());
}

/// Appending keeps the order, the counts, and a refusal of either part.
#[test]
fn appended_records_follow() {
    let (mut a, mut b) = (WriteBatch::new(), WriteBatch::new());
    a.put(b"1", b"");
    b.opaque(b"o");
    b.delete(b"2");
    b.set_sequence(77);
    a.append(&b);
    let expected =
        [entry(0, Kind::Put, b"1", b""), Record::Opaque(b"o"), entry(0, Kind::Delete, b"2", b"")];
    assert_eq!(a.records().collect::<Vec<_>>(), expected);
    assert_eq!((a.len(), a.sequence_count(), a.sequence()), (3, 2, 0));
    BatchRef::decode(a.as_bytes()).unwrap();
    b.refuse("too long".to_string());
    a.append(&b);
    assert!(matches!(a.check(), Err(Error::InvalidArgument { .. })));
}

/// The longest key, value and batch are taken, one byte more is refused.
#[test]
fn limits_hold_at_the_limit_and_one_past_it() {
    assert_eq!(refusal(BATCH_HEADER_BYTES, KEY_BYTES_MAX, 0), None);
    assert_eq!(refusal(BATCH_HEADER_BYTES, 0, VALUE_BYTES_MAX), None);
    assert!(refusal(BATCH_HEADER_BYTES, KEY_BYTES_MAX + 1, 0).unwrap().starts_with("a key"));
    assert!(refusal(BATCH_HEADER_BYTES, 0, VALUE_BYTES_MAX + 1).unwrap().starts_with("a value"));
    assert!(refusal(BATCH_HEADER_BYTES, KEY_BYTES_MAX, VALUE_BYTES_MAX).is_some());
    let room = BATCH_BYTES_MAX - 16 - 100;
    assert_eq!(refusal(room, 60, 40), None);
    assert!(refusal(room, 60, 41).unwrap().starts_with("a batch"));
    assert!(refusal(BATCH_BYTES_MAX, 0, 0).is_some());
}

/// A refused record makes the batch fail as a whole when it is written, and
/// says so to whoever looks at its records.
#[test]
fn refused_record_is_told_when_written() {
    let mut batch = WriteBatch::new();
    batch.put(b"a", b"");
    batch.refuse("a key is too long".to_string());
    batch.refuse("a second reason".to_string());
    batch.put(b"b", b"");
    let error = batch.check().unwrap_err();
    assert_eq!(error.to_string(), "Invalid argument: a key is too long");
    assert!(batch.iter().last().unwrap().is_err());
}

/// What is no batch is refused with a reason.
#[test]
fn invalid_bytes_are_refused() {
    for (bytes, reason) in [
        (vec![0; 11], "no header"),
        (stored(1, 1, b""), "a batch of 1 entries has 0"),
        (stored(1, 0, b"\x00\x00"), "a batch of 0 entries has 1"),
        (stored(1, 1, b"\x01\x05key"), "ends early, at byte 12"),
        (stored(1, 1, b"\x05\xff\xff\xff\xff\x10\x00\x00"), "passes 32 bits"),
        (stored(1, 0, b"\x80\x02x"), "ends early, at byte 12"),
        (stored(SEQUENCE_MAX, 2, b"\x00\x00\x00\x00"), "pass 56 bits"),
        (stored(SEQUENCE_MAX + 1, 0, b""), "pass 56 bits"),
    ] {
        match WriteBatch::from_bytes(bytes) {
            Err(Undecodable::Corrupt(what)) => assert!(what.contains(reason), "{what}"),
            other => panic!("{other:?}"),
        }
    }
}

/// A tag that only a later build knows is named as such: it may be anything.
#[test]
fn unknown_tags_are_no_damage() {
    for tag in [0x09, 0x0a, 0x0d, 0x10, 0x11, 0x15, 0x16, 0x7f] {
        let refused = WriteBatch::from_bytes(stored(1, 1, &[0, 1, b'k', tag])).unwrap_err();
        let expected = format!("a record with tag {tag:#04x} at byte 15 of a batch");
        assert_eq!(refused, Undecodable::Unknown(expected));
    }
}

/// The upper half of the tags is for hints: they take no number, and stay where
/// they are when the batch goes on to another log.
#[test]
fn hints_are_kept_and_mean_nothing() {
    let bytes = stored(7, 1, b"\x80\x02ab\x00\x01k\xff\x00");
    let batch = WriteBatch::from_bytes(bytes.clone()).unwrap();
    let hint = |tag, bytes| Record::Hint { tag, bytes };
    let expected = [hint(0x80, b"ab"), entry(0, Kind::Delete, b"k", b""), hint(0xff, b"")];
    assert_eq!(batch.records().collect::<Vec<_>>(), expected);
    assert_eq!((batch.len(), batch.sequence_count()), (3, 1));
    let mut other = WriteBatch::new();
    other.append(&batch);
    other.set_sequence(7);
    assert_eq!(other.as_bytes(), bytes);
}

/// A stored batch that was damaged in any way is refused or still a batch:
/// never a panic.
#[test]
fn damaged_bytes_never_panic() {
    let mut seed = 1u64;
    let mut random = move || {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) as usize
    };
    let mut batch = WriteBatch::new();
    (0..8u8).for_each(|i| batch.put_in(FamilyId(u32::from(i % 3)), &[i; 5], &[i; 20]));
    batch.opaque(b"opaque");
    let mut accepted = 0;
    for round in 0..200_000 {
        let mut bytes = if round % 2 == 0 {
            batch.as_bytes().to_vec()
        } else {
            // A right count every now and then, so that some pass.
            let records: Vec<u8> = (0..random() % 12).map(|_| (random() % 0x18) as u8).collect();
            stored(random() as u64, (random() % 3) as u32, &records)
        };
        if round % 4 == 0 {
            bytes.truncate(random() % (bytes.len() + 1));
        }
        for _ in 0..random() % 3 {
            if let Some(byte) = bytes.len().checked_sub(1).map(|last| random() % (last + 1)) {
                bytes[byte] = random() as u8;
            }
        }
        if let Ok(valid) = BatchRef::decode(&bytes) {
            accepted += 1;
            assert_eq!(valid.records().count(), valid.record_count() as usize);
        }
    }
    assert!(accepted > 1000, "only {accepted} inputs reached past the check");
}

/// The entries of a batch by key are those of a stable sort by key, the newest of
/// a key first: with keys in common, keys that are beginnings of others, nothing in
/// common, and bytes in between that are no entries.
#[test]
fn by_key_is_by_key_and_then_newest_first() {
    let mut word = 88_172_645_463_325_252_u64;
    let mut below = |n: u64| {
        word ^= word << 13;
        word ^= word >> 7;
        word ^= word << 17;
        word % n
    };
    for common in [0, 3, 8, 40] {
        let mut batch = WriteBatch::new();
        let mut expected = Vec::new();
        for nth in 0..3000 {
            let mut key = vec![0xfe; common];
            for _ in 0..below(11) {
                key.push([0, 1, 0xff][below(3) as usize]);
            }
            let value = nth.to_string().into_bytes();
            match below(3) {
                0 => {
                    batch.delete(&key);
                    expected.push((key, nth, Kind::Delete, Vec::new()));
                }
                _ => {
                    batch.put(&key, &value);
                    expected.push((key, nth, Kind::Put, value));
                }
            }
            if below(50) == 0 {
                batch.opaque(b"no entry");
            }
        }
        expected.sort_by(|a, b| a.0.cmp(&b.0).then(b.1.cmp(&a.1)));
        let found = batch.by_key().map(|e| (e.key.to_vec(), e.nth, e.kind, e.value.to_vec()));
        assert_eq!(found.collect::<Vec<_>>(), expected, "{common} bytes in common");
    }
    assert_eq!(WriteBatch::new().by_key().count(), 0);
}
