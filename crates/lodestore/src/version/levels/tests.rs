use super::*;
use crate::key::{Comparator, InternalKey, Kind, TRAILER_NEWEST, trailer};

fn meta(number: u64, first: &[u8], last: &[u8]) -> TableMeta {
    TableMeta {
        number,
        bytes: 10,
        entries: 3,
        smallest: InternalKey::new(first, trailer(number, Kind::Put)),
        largest: InternalKey::new(last, trailer(number, Kind::Put)),
        sequence_min: number,
        sequence_max: number,
        ..TableMeta::default()
    }
}

fn make(meta: &TableMeta) -> Arc<TableFile> {
    crate::tables::test_slot(meta)
}

fn version(order: KeyOrder, tables: &[(usize, TableMeta)]) -> Result<Version, String> {
    let edit = VersionEdit {
        tables_added: tables.iter().map(|(level, meta)| (0, *level, meta.clone())).collect(),
        ..VersionEdit::default()
    };
    Version::empty(order).apply(0, &edit, &make)
}

fn numbers(tables: &[Arc<TableFile>]) -> Vec<u64> {
    tables.iter().map(|t| t.meta.number).collect()
}

struct Backwards;

impl Comparator for Backwards {
    fn name(&self) -> &str {
        "backwards"
    }
    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        b.cmp(a)
    }
}

/// A reader of level 0 meets the newest table first, whatever its number: an
/// ingested table counts by the sequence number that it was given.
#[test]
fn level_0_is_newest_first() {
    let mut ingested = meta(9, b"a", b"z");
    ingested.sequence_override = Some(2);
    let mut late_number = meta(8, b"a", b"z");
    late_number.sequence_max = 3;
    let tables =
        [(0, meta(1, b"a", b"b")), (0, ingested), (0, meta(3, b"a", b"z")), (0, late_number)];
    let version = version(KeyOrder::Bytewise, &tables).unwrap();
    assert_eq!(numbers(version.level(0).tables()), [8, 3, 9, 1]);
}

/// Tables that share a user key are corruption below level 0, also when only
/// its versions are split; a bound that is no entry may touch the next table.
#[test]
fn overlapping_tables_are_refused_below_level_0() {
    let overlap = |level, a: TableMeta, b: TableMeta| {
        version(KeyOrder::Bytewise, &[(level, a), (level, b)]).is_err()
    };
    assert!(!overlap(0, meta(1, b"a", b"m"), meta(2, b"m", b"z")));
    assert!(overlap(1, meta(1, b"a", b"m"), meta(2, b"m", b"z")));
    assert!(overlap(6, meta(1, b"a", b"z"), meta(2, b"m", b"n")));
    assert!(!overlap(1, meta(1, b"a", b"l"), meta(2, b"m", b"z")));
    let mut bounded = meta(1, b"a", b"m");
    bounded.largest.trailer = TRAILER_NEWEST;
    assert!(!overlap(1, bounded.clone(), meta(2, b"m", b"z")));
    let both = version(KeyOrder::Bytewise, &[(1, bounded), (1, meta(2, b"m", b"z"))]).unwrap();
    let found = both.level(1).find(both.order(), b"m").unwrap();
    assert_eq!(found.meta.number, 2);
    assert!(version(KeyOrder::Bytewise, &[(1, meta(1, b"b", b"a"))]).is_err());
}

/// Lookup by heads finds what comparing every table finds: keys shorter than
/// the common prefix, beyond either end, and equal in their first eight bytes.
#[test]
fn finding_a_table_agrees_with_looking_at_all() {
    let keys: Vec<Vec<u8>> = (0..400u32)
        .map(|i| match i % 4 {
            0 => format!("prefix-00000000{:04}", i * 7919 % 400).into_bytes(),
            1 => format!("prefix-{:08}", i * 104_729 % 1_000_000).into_bytes(),
            2 => format!("prefix-00000000{:04}x", i * 31 % 400).into_bytes(),
            _ => format!("prefix-{}", char::from(b'0' + (i % 10) as u8)).into_bytes(),
        })
        .collect();
    for order in [KeyOrder::Bytewise, KeyOrder::Custom(Arc::new(Backwards))] {
        let mut sorted = keys.clone();
        sorted.sort_by(|a, b| order.compare(a, b));
        sorted.dedup();
        let tables: Vec<_> = sorted
            .chunks_exact(3)
            .zip(1..)
            .map(|(chunk, number)| (1, meta(number, &chunk[0], &chunk[1])))
            .collect();
        let version = version(order, &tables).unwrap();
        let level = version.level(1);
        let asked: [&[u8]; 8] =
            [b"", b"p", b"prefix-", b"prefiw", b"prefiy", b"q", b"prefix-99999999", b"\xff"];
        for key in keys.iter().map(|k| &k[..]).chain(asked) {
            let holds = |t: &&Arc<TableFile>| {
                table_overlaps(version.order(), &t.meta, Some(key), Some(key))
            };
            let expected = level.tables().iter().find(holds).map(|t| t.meta.number);
            let found = level.find(version.order(), key).map(|t| t.meta.number);
            assert_eq!(found, expected, "{}", key.escape_ascii());
        }
    }
}

/// Ranges are inclusive at both ends; a missing end is open.
#[test]
fn overlap_is_inclusive_and_ends_may_be_open() {
    for level in [0, 3] {
        let tables = [(level, meta(1, b"b", b"d")), (level, meta(2, b"f", b"h"))];
        let version = version(KeyOrder::Bytewise, &tables).unwrap();
        let overlap = |first: Option<&[u8]>, last: Option<&[u8]>| {
            let mut found = numbers(&version.overlapping(level, first, last));
            assert_eq!(version.overlaps(level, first, last), !found.is_empty());
            found.sort_unstable();
            found
        };
        assert_eq!(overlap(None, None), [1, 2]);
        assert_eq!(overlap(None, Some(b"a")), [0; 0]);
        assert_eq!(overlap(None, Some(b"b")), [1]);
        assert_eq!(overlap(Some(b"d"), Some(b"f")), [1, 2]);
        assert_eq!(overlap(Some(b"e"), Some(b"e")), [0; 0]);
        assert_eq!(overlap(Some(b"h"), None), [2]);
        assert_eq!(overlap(Some(b"i"), None), [0; 0]);
    }
}

/// An edit changes only its family and its levels; a table that moves keeps
/// its slot, so that it stays open.
#[test]
fn applying_an_edit_shares_what_did_not_change() {
    let tables = [(0, meta(1, b"a", b"c")), (2, meta(2, b"a", b"c")), (6, meta(3, b"a", b"z"))];
    let before = version(KeyOrder::Bytewise, &tables).unwrap();
    let edit = VersionEdit {
        tables_deleted: vec![(0, 2, 2), (5, 6, 3)],
        tables_added: vec![(0, 4, meta(2, b"a", b"c")), (5, 6, meta(9, b"a", b"z"))],
        ..VersionEdit::default()
    };
    let after = before.apply(0, &edit, &make).unwrap();
    assert!(Arc::ptr_eq(before.level(6), after.level(6)));
    assert!(Arc::ptr_eq(&before.level(2).tables()[0], &after.level(4).tables()[0]));
    assert!(after.level(2).is_empty());
    assert_eq!(after.table_count(), 3);
    assert_eq!((after.bytes(), after.entries()), (30, 9));
    assert!(after.apply(0, &edit, &make).is_err(), "table 2 is no longer at level 2");
    let deep = VersionEdit { tables_deleted: vec![(0, LEVELS, 1)], ..VersionEdit::default() };
    assert!(after.apply(0, &deep, &make).is_err());
}

/// A tombstone may go only where no deeper level holds its key.
#[test]
fn below_answers_for_ascending_keys() {
    let tables = [
        (1, meta(1, b"a", b"z")),
        (2, meta(2, b"b", b"c")),
        (2, meta(3, b"f", b"g")),
        (5, meta(4, b"h", b"h")),
    ];
    let version = version(KeyOrder::Bytewise, &tables).unwrap();
    let mut below = version.below(1);
    let absent: Vec<bool> =
        [&b"a"[..], b"b", b"c", b"d", b"d", b"g", b"h", b"i"].map(|k| below.is_absent(k)).into();
    assert_eq!(absent, [true, false, false, true, true, false, false, true]);
    assert!(version.below(LEVELS - 1).is_absent(b"a"));
}
