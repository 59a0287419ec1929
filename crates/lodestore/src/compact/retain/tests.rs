use super::*;
use crate::merge_operator::{AddU64, Append, MergeOperator};
use std::sync::Arc;

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
        let refuses = |part: &&[u8]| part.contains(&b'!');
        let parts: Vec<&[u8]> = existing.into_iter().chain(all.iter().copied()).collect();
        (!parts.iter().any(refuses)).then(|| parts.concat())
    }
    fn partial_merge(&self, _: &[u8], older: &[u8], newer: &[u8]) -> Option<Vec<u8>> {
        let fits = !older.contains(&b'!') && !newer.contains(&b'!') && older.len() % 2 == 1;
        fits.then(|| [older, newer].concat())
    }
}

fn entry(sequence: SequenceNumber, kind: Kind, value: &[u8]) -> Entry<'static> {
    Entry {
        trailer: trailer(sequence, kind),
        value: Cow::Owned(value.to_vec()),
    }
}

/// What a reader at `snapshot` sees: `Err` if the operands make no sense.
fn look_up(
    versions: &[Entry<'_>],
    below: &[Entry<'_>],
    snapshot: SequenceNumber,
    operator: Option<&SharedMergeOperator>,
) -> Result<Option<Vec<u8>>, Vec<Vec<u8>>> {
    let mut operands: Vec<&[u8]> = Vec::new();
    let mut base = None;
    for entry in versions.iter().chain(below) {
        if sequence_of(entry.trailer) > snapshot {
            continue;
        }
        match kind_of(entry.trailer) {
            Some(Kind::Merge) => operands.push(&entry.value),
            Some(Kind::Put) => {
                base = Some(&entry.value[..]);
                break;
            }
            Some(Kind::Delete | Kind::SingleDelete) => break,
            _ => {}
        }
    }
    operands.reverse();
    if operands.is_empty() {
        return Ok(base.map(<[u8]>::to_vec));
    }
    let merged = operator.and_then(|o| o.full_merge(b"k", base, &operands));
    let parts = || {
        base.into_iter()
            .chain(operands.iter().copied())
            .map(<[u8]>::to_vec)
            .collect()
    };
    merged.map(Some).ok_or_else(parts)
}

fn random_versions(random: &mut Random, newest: SequenceNumber) -> Vec<Entry<'static>> {
    let mut versions = Vec::new();
    for sequence in (1..=newest).rev() {
        let kind = match random.below(12) {
            0..=2 => Kind::Put,
            3..=4 => Kind::Delete,
            5 => Kind::SingleDelete,
            6..=8 => Kind::Merge,
            _ => continue,
        };
        let value: Vec<u8> = match (kind, random.below(12)) {
            (Kind::Delete | Kind::SingleDelete, _) => Vec::new(),
            (_, 0) => b"!".to_vec(),
            _ => sequence.to_le_bytes().to_vec(),
        };
        versions.push(entry(sequence, kind, &value));
    }
    versions
}

/// Whatever is dropped, combined or renumbered: every snapshot and the latest
/// reader see what they saw before, with and without older data below.
#[test]
fn readers_see_the_same_before_and_after() {
    let operators: [Option<SharedMergeOperator>; 4] = [
        None,
        Some(Arc::new(AddU64)),
        Some(Arc::new(Append::default())),
        Some(Arc::new(Picky)),
    ];
    let mut random = Random(7);
    for round in 0..60_000 {
        let operator = &operators[round % 4];
        let newest = 1 + random.below(14);
        let mut versions = random_versions(&mut random, newest);
        let mut snapshots: Vec<_> = (0..random.below(4))
            .map(|_| random.below(newest + 3))
            .collect();
        snapshots.sort_unstable();
        let absent = random.below(2) == 0;
        let bottommost = absent && random.below(2) == 0;
        // What is below is older than everything here.
        let below = match absent || versions.is_empty() {
            true => vec![],
            false => vec![entry(0, Kind::Put, &99u64.to_le_bytes())],
        };
        let before = versions.clone();
        let mut retain = Retain::new(&snapshots, bottommost, operator.clone(), |_| absent);
        if versions.is_empty() {
            continue;
        }
        retain.versions_of_key(b"k", &mut versions);
        assert_eq!(retain.dropped(), (before.len() - versions.len()) as u64);
        assert!(
            versions.is_sorted_by(|a, b| a.trailer > b.trailer),
            "{before:?} {versions:?}"
        );
        for &snapshot in snapshots.iter().chain([&SEQUENCE_MAX]) {
            let expected = look_up(&before, &below, snapshot, operator.as_ref());
            let found = look_up(&versions, &below, snapshot, operator.as_ref());
            // Operands that cannot be merged may be combined among themselves.
            let same = match (&found, &expected) {
                (Err(found), Err(expected)) => {
                    found.concat() == expected.concat() || {
                        operator.as_ref().is_some_and(|o| o.name() == AddU64.name())
                    }
                }
                _ => found == expected,
            };
            assert!(
                same,
                "{before:?} -> {versions:?} at {snapshot} of {snapshots:?}"
            );
        }
    }
}

fn kept(
    snapshots: &[SequenceNumber],
    absent: bool,
    bottommost: bool,
    versions: &[Entry<'static>],
) -> Vec<(SequenceNumber, Kind)> {
    let operator: SharedMergeOperator = Arc::new(Append::with_delimiter(b","));
    let mut retain = Retain::new(snapshots, bottommost, Some(operator), |_| absent);
    let mut versions = versions.to_vec();
    retain.versions_of_key(b"k", &mut versions);
    versions
        .iter()
        .map(|e| (sequence_of(e.trailer), kind_of(e.trailer).unwrap()))
        .collect()
}

/// A snapshot exactly at a version's number sees it; one less does not.
#[test]
fn a_version_is_kept_for_the_snapshot_at_its_number() {
    let versions = [entry(9, Kind::Put, b"new"), entry(5, Kind::Put, b"old")];
    assert_eq!(kept(&[], false, false, &versions), [(9, Kind::Put)]);
    assert_eq!(kept(&[4], false, false, &versions), [(9, Kind::Put)]);
    for snapshot in [5, 8] {
        let both = [(9, Kind::Put), (5, Kind::Put)];
        assert_eq!(kept(&[snapshot], false, false, &versions), both);
    }
    assert_eq!(kept(&[9], false, false, &versions), [(9, Kind::Put)]);
}

/// A tombstone goes only where nothing older is left: not while a deeper level
/// may hold the key, nor while a snapshot keeps an older version here.
#[test]
fn a_tombstone_stays_while_something_older_is_left() {
    for kind in [Kind::Delete, Kind::SingleDelete] {
        let versions = [entry(9, kind, b""), entry(5, Kind::Put, b"old")];
        assert_eq!(kept(&[], false, false, &versions), [(9, kind)]);
        assert_eq!(kept(&[], true, false, &versions), []);
        assert_eq!(
            kept(&[5], true, false, &versions),
            [(9, kind), (5, Kind::Put)]
        );
        assert_eq!(kept(&[], false, false, &versions[..1]), [(9, kind)]);
        assert_eq!(kept(&[], true, false, &versions[..1]), []);
    }
}

/// Number zero is for puts that no snapshot tells from their absence, where
/// nothing is deeper.
#[test]
fn numbers_become_zero_only_at_the_bottom_and_below_snapshots() {
    let put = [entry(9, Kind::Put, b"v")];
    assert_eq!(kept(&[], true, true, &put), [(0, Kind::Put)]);
    assert_eq!(kept(&[9], true, true, &put), [(0, Kind::Put)]);
    assert_eq!(kept(&[8], true, true, &put), [(9, Kind::Put)]);
    assert_eq!(kept(&[0], true, true, &put), [(9, Kind::Put)]);
    assert_eq!(kept(&[], true, false, &put), [(9, Kind::Put)]);
    let retain = Retain::new(&[8], true, None, |_| true);
    assert_eq!(
        retain.single_put(trailer(8, Kind::Put)),
        trailer(0, Kind::Put)
    );
    assert_eq!(
        retain.single_put(trailer(9, Kind::Put)),
        trailer(9, Kind::Put)
    );
}

/// Operands become a put on a put, on a delete and at the beginning of the
/// key, and one operand otherwise; never across a snapshot.
#[test]
fn operands_are_combined_within_their_stratum() {
    let (put, merge) = (Kind::Put, Kind::Merge);
    let operands = [entry(9, merge, b"c"), entry(8, merge, b"b")];
    let with = |kind| [&operands[..], &[entry(5, kind, b"a")]].concat();
    assert_eq!(kept(&[], false, false, &with(put)), [(9, put)]);
    assert_eq!(kept(&[], false, false, &with(Kind::Delete)), [(9, put)]);
    assert_eq!(kept(&[], false, false, &operands), [(9, merge)]);
    assert_eq!(kept(&[], true, false, &operands), [(9, put)]);
    assert_eq!(kept(&[], true, true, &operands), [(0, put)]);
    assert_eq!(kept(&[6], true, true, &with(put)), [(9, merge), (0, put)]);
    assert_eq!(kept(&[8], false, false, &with(put)), [(9, merge), (8, put)]);
    assert_eq!(kept(&[6], true, true, &with(Kind::Delete)), [(9, put)]);
}

/// Kinds that are not understood are kept, also below a put, and operands are
/// not combined across them.
#[test]
fn what_is_not_understood_is_kept() {
    let (put, merge) = (Kind::Put, Kind::Merge);
    for kind in [Kind::RangeDelete, Kind::ValueReference] {
        let versions = [
            entry(9, merge, b"c"),
            entry(8, merge, b"b"),
            entry(7, kind, b"x"),
            entry(6, merge, b"a"),
            entry(5, put, b""),
            entry(4, kind, b"x"),
            entry(3, put, b""),
        ];
        let expected = [(9, merge), (7, kind), (6, put), (4, kind)];
        assert_eq!(kept(&[], true, true, &versions), expected);
    }
    let unknown = Entry {
        trailer: 7 << 8 | 0x55,
        value: Cow::Borrowed(b"x"),
    };
    let mut versions = vec![entry(9, Kind::Delete, b""), unknown.clone()];
    Retain::new(&[], true, None, |_| true).versions_of_key(b"k", &mut versions);
    assert_eq!(versions, [entry(9, Kind::Delete, b""), unknown]);
}

/// Without an operator, or where it refuses, operands stay as they are.
#[test]
fn operands_that_cannot_be_merged_are_kept() {
    let versions = [
        entry(9, Kind::Merge, b"!"),
        entry(8, Kind::Merge, b"b"),
        entry(5, Kind::Put, b"a"),
    ];
    for operator in [None, Some(Arc::new(Picky) as SharedMergeOperator)] {
        let mut after = versions.to_vec();
        Retain::new(&[], false, operator, |_| false).versions_of_key(b"k", &mut after);
        assert_eq!(after, versions);
    }
}
