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
use crate::range_deletes::RangeDelete;
use crate::stats::Statistics;
use crate::sync::Arc;
use crate::table::meta::TableMeta;
use crate::table::{ReadContext, Table, TableBuilder, TableSettings};
use crate::tables::test_slot;
use crate::version::VersionEdit;

type Entry = (Vec<u8>, Trailer, Vec<u8>);

fn range_delete(start: u32, end: u32, sequence: SequenceNumber) -> RangeDelete {
    let key = |key: u32| key.to_be_bytes()[..].into();
    RangeDelete { start: key(start), end: key(end), sequence }
}

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
    compact_with((entries, Vec::new()), snapshots, below, operator).0
}

/// What a compaction makes of entries and range deletes.
fn compact_with(
    (entries, deletes): (Vec<Entry>, Vec<RangeDelete>),
    snapshots: &[SequenceNumber],
    below: Below,
    operator: Option<&SharedMergeOperator>,
) -> (Vec<Entry>, Vec<RangeDelete>) {
    let (fs, path) = (MemFs::new(), Path::new("output"));
    let begin = || {
        let buffers = Charge::new(&Account::unlimited(), Item::Compactions);
        let settings = TableSettings { filter_bits_per_key: 0, ..TableSettings::plain(buffers) };
        let file = fs.create(path).unwrap();
        let builder = TableBuilder::new(file, path, FileId(1), settings)?;
        Ok(NewTable::begin(1, 0, builder))
    };
    let outputs = Outputs::new(&begin, u64::MAX, Grandparents::default(), KeyOrder::Bytewise);
    let deletes = Fragments::build(&KeyOrder::Bytewise, deletes, snapshots);
    let mut retain = Retain::new(snapshots.to_vec(), below, deletes);
    let mut cursor = Entries { entries, at: 0 };
    let (tables, read) = write_tables(&mut cursor, &mut retain, operator, outputs).unwrap();
    assert_eq!(read, cursor.entries.len() as u64, "every entry is counted");
    let Some(meta) = tables.first() else { return Default::default() };
    let file = fs.open(path).unwrap();
    let table = Table::open(file, path.into(), meta, KeyOrder::Bytewise, 1).unwrap();
    let context = ReadContext {
        cache: Cache::new(0),
        fill_cache: false,
        rows: None,
        statistics: Arc::new(Statistics::default()),
        buffers: Charge::new(&Account::unlimited(), Item::Cursors),
        waits_for_device: false,
    };
    let (table, mut kept) = (Arc::new(table), Vec::new());
    let mut cursor = table.cursor(context.clone());
    cursor.seek_to_first();
    while cursor.valid() {
        kept.push((cursor.user_key().to_vec(), cursor.trailer(), cursor.value().to_vec()));
        cursor.next();
    }
    cursor.status().unwrap();
    table.verify(&context).unwrap();
    (kept, table.range_deletes().deletes().collect())
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

/// What a reader at `snapshot` sees of one key, of which what is older than
/// `deleted_at` is deleted; `Err` with all parts if they make no sense together.
fn look_up<'a>(
    versions: impl Iterator<Item = &'a Entry>,
    deleted_at: SequenceNumber,
    snapshot: SequenceNumber,
    operator: Option<&SharedMergeOperator>,
) -> std::result::Result<Option<Vec<u8>>, Vec<u8>> {
    let (mut parts, mut has_base, mut has_operands) = (Vec::new(), false, false);
    for (_, trailer, value) in versions.filter(|entry| sequence_of(entry.1) <= snapshot) {
        match kind_of(*trailer) {
            _ if sequence_of(*trailer) < deleted_at => break,
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

/// A history of each key, in which single deletes stand only where they may.
/// From `first_below` on, keys have an older put in a deeper level.
fn random_entries(
    random: &mut Random,
    (keys, first_below): (u32, u32),
    newest: SequenceNumber,
    deletes: &[RangeDelete],
) -> Vec<Entry> {
    let mut entries = Vec::new();
    for key in 0..keys {
        let user_key = key.to_be_bytes();
        let (mut puts, mut mixed) = (u32::from(key >= first_below), false);
        let mut versions = Vec::new();
        for sequence in 1..=newest {
            let holds = |d: &&RangeDelete| d.start[..] <= user_key[..] && user_key[..] < d.end[..];
            if deletes.iter().any(|d| d.sequence == sequence) {
                if deletes.iter().filter(holds).any(|d| d.sequence == sequence) {
                    (puts, mixed) = (0, false);
                }
                continue;
            }
            let kind = match random.below(12) {
                0..=2 => Kind::Put,
                3 => Kind::Delete,
                4..=5 if puts <= 1 && !mixed => Kind::SingleDelete,
                6..=8 => Kind::Merge,
                _ => continue,
            };
            match kind {
                Kind::Put => puts += 1,
                Kind::SingleDelete => puts = 0,
                _ => mixed = true,
            }
            let value = match (kind, random.below(12)) {
                (Kind::Delete | Kind::SingleDelete, _) => Vec::new(),
                (_, 0) => b"!".to_vec(),
                _ => sequence.to_le_bytes().to_vec(),
            };
            versions.push((user_key.to_vec(), trailer(sequence, kind), value));
        }
        entries.extend(versions.into_iter().rev());
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
        // From this key on there may be older versions below.
        let (below, first_below) = match round / 4 % 3 {
            0 => (Below::Bottom, KEYS),
            1 => (Below::Unknown, 0),
            _ => (levels_with(KEYS / 2), KEYS / 2),
        };
        let mut bound = || random.below(u64::from(KEYS) + 1) as u32;
        let deletes = (0..newest).step_by(5).map(|s| range_delete(bound(), bound(), s + 1));
        let deletes: Vec<RangeDelete> = deletes.skip(round % 2).collect();
        let entries = random_entries(&mut random, (KEYS, first_below), newest, &deletes);
        let mut snapshots: Vec<_> =
            (0..random.below(4)).map(|_| random.below(newest + 3)).collect();
        snapshots.sort_unstable();
        let input = (entries.clone(), deletes.clone());
        let (kept, kept_deletes) = compact_with(input, &snapshots, below, operator);
        assert!(kept.is_sorted_by(|a, b| (&a.0, b.1) < (&b.0, a.1)));
        // Or their table would be compacted again and again.
        let oldest = snapshots.first().copied().unwrap_or(SEQUENCE_MAX);
        let hides_nothing = |entry: &&Entry| {
            let is_tombstone = matches!(kind_of(entry.1), Some(Kind::Delete | Kind::SingleDelete));
            is_tombstone && first_below == KEYS && sequence_of(entry.1) <= oldest
        };
        assert_eq!(kept.iter().find(hides_nothing), None, "a tombstone with nothing below");
        for key in 0..KEYS {
            let user_key = key.to_be_bytes();
            let deeper = (user_key.to_vec(), trailer(0, Kind::Put), 99u64.to_le_bytes().to_vec());
            let deeper = (key >= first_below).then_some(deeper);
            for &snapshot in snapshots.iter().chain([&SEQUENCE_MAX]) {
                let seen = |entries: &[Entry], deletes: &[RangeDelete]| {
                    let here = entries.iter().filter(|entry| entry.0 == user_key);
                    let all: Vec<Entry> = here.chain(&deeper).cloned().collect();
                    let order = &KeyOrder::Bytewise;
                    let deletes = Fragments::build(order, deletes.to_vec(), &snapshots);
                    let deleted_at = deletes.covering(&user_key, snapshot);
                    look_up(all.iter(), deleted_at, snapshot, operator)
                };
                let (before, after) = (seen(&entries, &deletes), seen(&kept, &kept_deletes));
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
    let kind = Kind::Delete;
    let versions = [(9, kind, &b""[..]), (5, Kind::Put, b"old")];
    assert_eq!(kept(&[], Below::Unknown, &versions), [(9, kind)]);
    for kind in [Kind::Delete, Kind::SingleDelete] {
        let versions = [(9, kind, &b""[..]), (5, Kind::Put, b"old")];
        assert_eq!(kept(&[], Below::Bottom, &versions), []);
        assert_eq!(kept(&[5], Below::Bottom, &versions), [(9, kind), (0, Kind::Put)]);
        assert_eq!(kept(&[], Below::Unknown, &versions[..1]), [(9, kind)]);
        assert_eq!(kept(&[], Below::Bottom, &versions[..1]), []);
    }
}

/// A single delete and the put that it cancels go together, wherever they meet,
/// but not across a snapshot; and one that has not met its put stays, also
/// under a newer put.
#[test]
fn a_single_delete_goes_with_its_put() {
    let (put, single) = (Kind::Put, Kind::SingleDelete);
    let pair = [(9, single, &b""[..]), (5, put, b"old")];
    assert_eq!(kept(&[], Below::Unknown, &pair), []);
    assert_eq!(kept(&[9], Below::Unknown, &pair), []);
    assert_eq!(kept(&[5], Below::Unknown, &pair), [(9, single), (5, put)]);
    let again = [(12, put, &b"new"[..]), (9, single, b""), (5, put, b"old")];
    assert_eq!(kept(&[], Below::Unknown, &again), [(12, put)]);
    assert_eq!(kept(&[], Below::Unknown, &again[..2]), [(12, put), (9, single)]);
    assert_eq!(kept(&[], Below::Bottom, &again[..2]), [(0, put)]);
}

/// A range delete drops what is older in its stratum, stays while something
/// may be below, and cuts operands off from what it deletes.
#[test]
fn a_range_delete_drops_what_everybody_sees_deleted() {
    let entry = |key: u32, sequence, kind| {
        (key.to_be_bytes().to_vec(), trailer(sequence, kind), b"v".to_vec())
    };
    let (put, merge) = (Kind::Put, Kind::Merge);
    let entries = vec![entry(1, 4, put), entry(2, 9, merge), entry(2, 4, put), entry(3, 4, put)];
    let deletes = vec![range_delete(1, 3, 6)];
    let operator: SharedMergeOperator = Arc::new(Append::default());
    let run = |snapshots: &[u64], below| {
        let input = (entries.clone(), deletes.clone());
        compact_with(input, snapshots, below, Some(&operator))
    };
    let (kept, ranges) = run(&[], Below::Unknown);
    assert_eq!(kept, [entry(2, 9, put), entry(3, 4, put)]);
    assert_eq!(ranges, deletes);
    let (kept, ranges) = run(&[], Below::Bottom);
    assert_eq!(kept, [entry(2, 0, put), entry(3, 0, put)]);
    assert_eq!(ranges, []);
    // Nothing is below where it deletes.
    assert_eq!(run(&[], levels_with(4)).1, []);
    assert_eq!(run(&[], levels_with(2)).1, deletes);
    let (kept, ranges) = run(&[5], Below::Bottom);
    assert_eq!(kept.len(), 4);
    assert_eq!(ranges, deletes);
}

/// A table is dropped unread only if newer range deletes that everybody sees
/// cover all of it.
#[test]
fn a_table_goes_as_a_whole_only_where_nobody_can_see_it() {
    let key = |key: u32, trailer| InternalKey::new(&key.to_be_bytes(), trailer);
    let meta = |first, last, newest| TableMeta {
        smallest: key(first, trailer(1, Kind::Put)),
        largest: last,
        sequence_min: 1,
        sequence_max: newest,
        ..TableMeta::default()
    };
    let drops = |snapshots: &[u64], meta| {
        let deletes = [range_delete(10, 20, 8), range_delete(20, 30, 9)];
        let deletes = Fragments::build(&KeyOrder::Bytewise, deletes, snapshots);
        Retain::new(snapshots.to_vec(), Below::Unknown, deletes).drops_table(&meta)
    };
    let entry = |at| key(at, trailer(1, Kind::Put));
    assert!(drops(&[], meta(10, entry(29), 7)));
    assert!(drops(&[9], meta(10, entry(29), 7)));
    assert!(!drops(&[8], meta(10, entry(29), 7)), "a snapshot sees the second half");
    assert!(drops(&[8], meta(10, entry(19), 7)));
    assert!(!drops(&[], meta(10, entry(29), 8)), "something is newer");
    assert!(!drops(&[], meta(9, entry(29), 7)));
    assert!(!drops(&[], meta(10, entry(30), 7)));
    assert!(drops(&[], meta(10, key(30, TRAILER_NEWEST), 7)), "the end is no key of it");
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
