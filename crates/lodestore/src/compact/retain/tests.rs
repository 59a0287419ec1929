//! Driven through `run::write_tables`, which combines a key's operands.

use std::path::Path;

use super::*;
use crate::budget::{Account, Charge, Item};
use crate::cache::Cache;
use crate::compact::run::{Grandparents, NewTable, Outputs, write_tables};
use crate::cursor::Cursor;
use crate::error::Result;
use crate::fs::{Fs, MemFs};
use crate::key::{FileId, InternalKey, KeyOrder, SEQUENCE_MAX};
use crate::merge_operator::{AddU64, Append, MergeOperator, SharedMergeOperator};
use crate::stats::Statistics;
use crate::sync::Arc;
use crate::table::meta::TableMeta;
use crate::table::{Compression, ReadContext, Table, TableBuilder, TableSettings};
use crate::tables::test_slot;
use crate::version::VersionEdit;

type Entry = (Vec<u8>, Trailer, Vec<u8>);

/// Walks entries that a test has made; only forward.
struct Entries {
    entries: Vec<Entry>,
    at: usize,
}

impl Cursor for Entries {
    fn valid(&self) -> bool {
        self.at < self.entries.len()
    }
    fn seek_to_first(&mut self) {
        self.at = 0;
    }
    fn next(&mut self) {
        self.at += 1;
    }
    fn user_key(&self) -> &[u8] {
        &self.entries[self.at].0
    }
    fn trailer(&self) -> Trailer {
        self.entries[self.at].1
    }
    fn value(&self) -> &[u8] {
        &self.entries[self.at].2
    }
    fn status(&self) -> Result<()> {
        Ok(())
    }
    fn seek_to_last(&mut self) {
        unreachable!("a compaction only goes forward")
    }
    fn seek(&mut self, _: &[u8], _: Trailer) {
        unreachable!("a compaction only goes forward")
    }
    fn seek_for_prev(&mut self, _: &[u8], _: Trailer) {
        unreachable!("a compaction only goes forward")
    }
    fn prev(&mut self) {
        unreachable!("a compaction only goes forward")
    }
}

/// What a compaction makes of `entries`.
fn compact(
    entries: Vec<Entry>,
    snapshots: &[SequenceNumber],
    below: Below,
    operator: Option<&SharedMergeOperator>,
) -> Vec<Entry> {
    let (fs, path) = (MemFs::new(), Path::new("output"));
    let begin = || {
        let settings = TableSettings {
            block_bytes: 4096,
            filter_bits_per_key: 0,
            compression: Compression::None,
            order: KeyOrder::Bytewise,
            partition_bytes: usize::MAX,
            buffers: Charge::new(&Account::unlimited(), Item::Compactions),
        };
        let file = fs.create(path).unwrap();
        let builder = TableBuilder::new(file, path, FileId(1), settings)?;
        Ok(NewTable { number: 1, created_unix_seconds: 0, builder })
    };
    let outputs = Outputs::new(&begin, u64::MAX, Grandparents::default(), KeyOrder::Bytewise);
    let mut retain = Retain::new(snapshots.to_vec(), below);
    let mut cursor = Entries { entries, at: 0 };
    let (tables, read) = write_tables(&mut cursor, &mut retain, operator, outputs).unwrap();
    assert_eq!(read, cursor.entries.len() as u64, "every entry is counted");
    let Some(meta) = tables.first() else { return Vec::new() };
    let file = fs.open(path).unwrap();
    let table = Table::open(file, path.into(), meta, KeyOrder::Bytewise, 1).unwrap();
    let context = ReadContext {
        cache: Cache::new(0),
        fill_cache: false,
        statistics: Arc::new(Statistics::default()),
        buffers: Charge::new(&Account::unlimited(), Item::Cursors),
    };
    let (table, mut kept) = (Arc::new(table), Vec::new());
    let mut cursor = table.cursor(context);
    cursor.seek_to_first();
    while cursor.valid() {
        kept.push((cursor.user_key().to_vec(), cursor.trailer(), cursor.value().to_vec()));
        cursor.next();
    }
    cursor.status().unwrap();
    kept
}

/// Numbers that follow from a seed (SplitMix64).
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ z >> 31) % bound
    }
}

/// Refuses some operands: what cannot be combined must be kept.
struct Picky;

impl MergeOperator for Picky {
    fn name(&self) -> &str {
        "picky"
    }
    fn full_merge(&self, _: &[u8], existing: Option<&[u8]>, all: &[&[u8]]) -> Option<Vec<u8>> {
        let parts: Vec<&[u8]> = existing.into_iter().chain(all.iter().copied()).collect();
        (!parts.iter().any(|part| part.contains(&b'!'))).then(|| parts.concat())
    }
    fn partial_merge(&self, _: &[u8], older: &[u8], newer: &[u8]) -> Option<Vec<u8>> {
        let fits =
            !older.contains(&b'!') && !newer.contains(&b'!') && newer.len().is_multiple_of(2);
        fits.then(|| [older, newer].concat())
    }
}

/// What a reader at `snapshot` sees of one key; `Err` with all parts if they
/// make no sense together.
fn look_up<'a>(
    versions: impl Iterator<Item = &'a Entry>,
    snapshot: SequenceNumber,
    operator: Option<&SharedMergeOperator>,
) -> std::result::Result<Option<Vec<u8>>, Vec<u8>> {
    let (mut parts, mut has_base, mut has_operands) = (Vec::new(), false, false);
    for (_, trailer, value) in versions.filter(|entry| sequence_of(entry.1) <= snapshot) {
        match kind_of(*trailer) {
            Some(Kind::Delete | Kind::SingleDelete) => break,
            Some(Kind::Put) => {
                has_base = true;
                parts.push(&value[..]);
                break;
            }
            Some(Kind::Merge) => {
                has_operands = true;
                parts.push(value);
            }
            _ => {}
        }
    }
    parts.reverse();
    if !has_operands {
        return Ok(parts.first().map(|value| value.to_vec()));
    }
    let (base, operands) = parts.split_at(usize::from(has_base));
    let merged = operator.and_then(|o| o.full_merge(b"k", base.first().copied(), operands));
    merged.map(Some).ok_or_else(|| parts.concat())
}

fn random_entries(random: &mut Random, keys: u32, newest: SequenceNumber) -> Vec<Entry> {
    let mut entries = Vec::new();
    for key in 0..keys {
        for sequence in (1..=newest).rev() {
            let kind = match random.below(12) {
                0..=2 => Kind::Put,
                3..=4 => Kind::Delete,
                5 => Kind::SingleDelete,
                6..=8 => Kind::Merge,
                _ => continue,
            };
            let value = match (kind, random.below(12)) {
                (Kind::Delete | Kind::SingleDelete, _) => Vec::new(),
                (_, 0) => b"!".to_vec(),
                _ => sequence.to_le_bytes().to_vec(),
            };
            entries.push((key.to_be_bytes().to_vec(), trailer(sequence, kind), value));
        }
    }
    entries
}

/// Deeper levels with one table, which holds the keys from `first` on.
fn levels_with(first: u32) -> Below {
    let place = |key: u32| InternalKey::new(&key.to_be_bytes(), trailer(0, Kind::Put));
    let meta = TableMeta {
        number: 1,
        smallest: place(first),
        largest: place(u32::MAX),
        ..TableMeta::default()
    };
    let edit = VersionEdit { tables_added: vec![(0, 6, meta)], ..VersionEdit::default() };
    let empty = Version::empty(KeyOrder::Bytewise);
    Below::Levels(empty.apply(0, &edit, &|meta| test_slot(meta)).unwrap().below(3))
}

/// Whatever is dropped, combined or renumbered: every snapshot and the latest
/// reader see what they saw before, with and without older data below.
#[test]
fn readers_see_the_same_before_and_after() {
    const KEYS: u32 = 60;
    let operators: [Option<SharedMergeOperator>; 4] =
        [None, Some(Arc::new(AddU64)), Some(Arc::new(Append::default())), Some(Arc::new(Picky))];
    let mut random = Random(7);
    for round in 0..600 {
        let operator = operators[round % 4].as_ref();
        let newest = 1 + random.below(14);
        let entries = random_entries(&mut random, KEYS, newest);
        let mut snapshots: Vec<_> =
            (0..random.below(4)).map(|_| random.below(newest + 3)).collect();
        snapshots.sort_unstable();
        // From this key on there may be older versions below.
        let (below, first_below) = match round / 4 % 3 {
            0 => (Below::Bottom, KEYS),
            1 => (Below::Unknown, 0),
            _ => (levels_with(KEYS / 2), KEYS / 2),
        };
        let kept = compact(entries.clone(), &snapshots, below, operator);
        assert!(kept.is_sorted_by(|a, b| (&a.0, b.1) < (&b.0, a.1)));
        for key in 0..KEYS {
            let user_key = key.to_be_bytes();
            let deeper = (user_key.to_vec(), trailer(0, Kind::Put), 99u64.to_le_bytes().to_vec());
            let deeper = (key >= first_below).then_some(deeper);
            for &snapshot in snapshots.iter().chain([&SEQUENCE_MAX]) {
                let seen = |entries: &[Entry]| {
                    let here = entries.iter().filter(|entry| entry.0 == user_key);
                    let all: Vec<Entry> = here.chain(&deeper).cloned().collect();
                    look_up(all.iter(), snapshot, operator)
                };
                let (before, after) = (seen(&entries), seen(&kept));
                // Adding operands up before an error is no change of it.
                let is_sum = operator.is_some_and(|o| o.name() == AddU64.name());
                let same = before == after || (is_sum && before.is_err() && after.is_err());
                assert!(same, "key {key} at {snapshot} of {snapshots:?}: {before:?} {after:?}");
            }
        }
    }
}

/// What is kept of one key's versions, as sequence numbers and kinds.
fn kept(
    snapshots: &[SequenceNumber],
    below: Below,
    versions: &[(SequenceNumber, Kind, &[u8])],
) -> Vec<(SequenceNumber, Kind)> {
    let entry = |&(sequence, kind, value): &(_, _, &[u8])| {
        (b"k".to_vec(), trailer(sequence, kind), value.to_vec())
    };
    let operator: SharedMergeOperator = Arc::new(Append::with_delimiter(b","));
    let entries = versions.iter().map(entry).collect();
    let kept = compact(entries, snapshots, below, Some(&operator));
    kept.iter().map(|e| (sequence_of(e.1), kind_of(e.1).unwrap())).collect()
}

/// A snapshot exactly at a version's number sees it; one less does not.
#[test]
fn a_version_is_kept_for_the_snapshot_at_its_number() {
    let versions = [(9, Kind::Put, &b"new"[..]), (5, Kind::Put, b"old")];
    for snapshots in [&[][..], &[4], &[9]] {
        assert_eq!(kept(snapshots, Below::Unknown, &versions), [(9, Kind::Put)]);
    }
    for snapshot in [5, 8] {
        let both = [(9, Kind::Put), (5, Kind::Put)];
        assert_eq!(kept(&[snapshot], Below::Unknown, &versions), both);
    }
}

/// A tombstone goes only where nothing older is left: not while a deeper level
/// may hold the key, nor while a snapshot keeps an older version here.
#[test]
fn a_tombstone_stays_while_something_older_is_left() {
    for kind in [Kind::Delete, Kind::SingleDelete] {
        let versions = [(9, kind, &b""[..]), (5, Kind::Put, b"old")];
        assert_eq!(kept(&[], Below::Unknown, &versions), [(9, kind)]);
        assert_eq!(kept(&[], Below::Bottom, &versions), []);
        assert_eq!(kept(&[5], Below::Bottom, &versions), [(9, kind), (0, Kind::Put)]);
        assert_eq!(kept(&[], Below::Unknown, &versions[..1]), [(9, kind)]);
        assert_eq!(kept(&[], Below::Bottom, &versions[..1]), []);
    }
}

/// Number zero is for puts that no snapshot tells from their absence, where
/// nothing is deeper.
#[test]
fn numbers_become_zero_only_at_the_bottom_and_below_snapshots() {
    let put = [(9, Kind::Put, &b"v"[..])];
    assert_eq!(kept(&[], Below::Bottom, &put), [(0, Kind::Put)]);
    assert_eq!(kept(&[9], Below::Bottom, &put), [(0, Kind::Put)]);
    assert_eq!(kept(&[8], Below::Bottom, &put), [(9, Kind::Put)]);
    assert_eq!(kept(&[0], Below::Bottom, &put), [(9, Kind::Put)]);
    assert_eq!(kept(&[], Below::Unknown, &put), [(9, Kind::Put)]);
    assert_eq!(kept(&[], levels_with(0), &put), [(9, Kind::Put)]);
}

/// Operands become a put on a put, on a delete and at the beginning of the
/// key, and one operand otherwise; never across a snapshot.
#[test]
fn operands_are_combined_within_their_stratum() {
    let (put, merge) = (Kind::Put, Kind::Merge);
    let operands = [(9, merge, &b"c"[..]), (8, merge, b"b")];
    let on = |kind| [&operands[..], &[(5, kind, &b"a"[..])]].concat();
    assert_eq!(kept(&[], Below::Unknown, &on(put)), [(9, put)]);
    assert_eq!(kept(&[], Below::Unknown, &on(Kind::Delete)), [(9, put)]);
    assert_eq!(kept(&[], Below::Unknown, &operands), [(9, merge)]);
    assert_eq!(kept(&[], Below::Bottom, &operands), [(0, put)]);
    assert_eq!(kept(&[6], Below::Bottom, &on(put)), [(9, merge), (0, put)]);
    assert_eq!(kept(&[8], Below::Unknown, &on(put)), [(9, merge), (8, put)]);
}

/// A kind that is not understood is kept where readers can see it, and nothing
/// older is dropped because of it, nor combined across it.
#[test]
fn what_is_not_understood_is_kept() {
    let (put, kind) = (Kind::Put, Kind::ValueReference);
    let versions = [(9, kind, &b"x"[..]), (7, kind, b"x"), (6, put, b"b"), (4, put, b"a")];
    let expected = [(9, kind), (7, kind), (6, put)];
    assert_eq!(kept(&[], Below::Unknown, &versions), expected);
    assert_eq!(kept(&[8], Below::Unknown, &versions), expected);
    let operands = [(9, Kind::Merge, &b"b"[..]), (7, kind, b"x"), (6, Kind::Merge, b"a")];
    let expected = [(9, Kind::Merge), (7, kind), (6, Kind::Merge)];
    assert_eq!(kept(&[], Below::Unknown, &operands), expected);
}
