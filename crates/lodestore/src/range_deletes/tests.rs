use std::cmp::Ordering;

use super::*;
use crate::key::Comparator;

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

struct Backwards;

impl Comparator for Backwards {
    fn name(&self) -> &str {
        "backwards"
    }
    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        b.cmp(a)
    }
}

fn delete(start: u8, end: u8, sequence: SequenceNumber) -> RangeDelete {
    RangeDelete { start: [start].into(), end: [end].into(), sequence }
}

fn random_deletes(random: &mut Random, count: u64) -> Vec<RangeDelete> {
    // Some reversed, some empty, many nested and touching.
    (1..=count).map(|s| delete(random.below(24) as u8, random.below(24) as u8, 2 * s)).collect()
}

/// What the words say, without any cleverness.
fn plainly(
    order: &KeyOrder,
    deletes: &[RangeDelete],
    key: &[u8],
    visible: SequenceNumber,
) -> SequenceNumber {
    let holds = |d: &&RangeDelete| {
        order.compare(&d.start, key).is_le()
            && order.compare(key, &d.end).is_lt()
            && d.sequence <= visible
    };
    deletes.iter().filter(holds).map(|d| d.sequence).max().unwrap_or(0)
}

fn orders() -> [KeyOrder; 2] {
    [KeyOrder::Bytewise, KeyOrder::Custom(Arc::new(Backwards))]
}

/// However range deletes overlap, a reader at any number finds the newest that
/// it may see at each key; and within a window it is the same one.
#[test]
fn a_history_answers_at_every_number() {
    let mut random = Random(1);
    for round in 0..60 {
        let order = &orders()[round % 2];
        let count = random.below(20);
        let deletes = random_deletes(&mut random, count);
        let mut history = History::default();
        for delete in &deletes {
            history = history.with(order, delete.clone()).0;
        }
        let is_range = |d: &&RangeDelete| order.compare(&d.start, &d.end).is_lt();
        let ranges = deletes.iter().filter(is_range).cloned();
        assert_eq!(history.deletes(), ranges.collect::<Vec<_>>());
        for visible in 0..2 * deletes.len() as u64 + 2 {
            for key in 0..25u8 {
                let expected = plainly(order, &deletes, &[key], visible);
                assert_eq!(history.covering(&[key], visible), expected);
                let window = history.around(order, &[key], visible);
                assert_eq!(window.sequence, expected);
                for other in 0..25u8 {
                    let within = window.start.is_none_or(|s| order.compare(s, &[other]).is_le())
                        && window.end.is_none_or(|e| order.compare(&[other], e).is_lt());
                    assert!(within || other != key, "a window holds its key");
                    if within {
                        assert_eq!(plainly(order, &deletes, &[other], visible), expected);
                    }
                }
            }
        }
    }
}

/// Fragments keep what the latest reader and every snapshot see, in order and
/// without overlaps, also when they are clipped.
#[test]
fn fragments_answer_at_every_snapshot() {
    let mut random = Random(2);
    for round in 0..200 {
        let order = &orders()[round % 2];
        let count = random.below(30);
        let deletes = random_deletes(&mut random, count);
        let mut snapshots: Vec<_> = (0..random.below(4)).map(|_| random.below(62)).collect();
        snapshots.sort_unstable();
        let fragments = Fragments::build(order, deletes.clone(), &snapshots);
        let stored: Vec<Fragment> = fragments.iter().cloned().collect();
        let stored = Fragments::from_sorted(order, stored).expect("what is built is sound");
        let (mut from, mut to) = ([random.below(24) as u8], [random.below(24) as u8]);
        if order.compare(&from, &to).is_gt() {
            std::mem::swap(&mut from, &mut to);
        }
        let clipped = fragments.clipped(Some(&from), Some(&to));
        assert!(Fragments::from_sorted(order, clipped.iter().cloned().collect()).is_some());
        for &visible in snapshots.iter().chain([&SEQUENCE_MAX]) {
            for key in 0..25u8 {
                let expected = plainly(order, &deletes, &[key], visible);
                assert_eq!(stored.covering(&[key], visible), expected, "{key} at {visible}");
                let inside =
                    order.compare(&from, &[key]).is_le() && order.compare(&[key], &to).is_lt();
                let expected = if inside { expected } else { 0 };
                assert_eq!(clipped.covering(&[key], visible), expected);
            }
        }
        let (a, b) = (random.below(24) as u8, random.below(24) as u8);
        let (first, last) = (a.min(b), a.max(b));
        let floor = random.below(40);
        let all =
            (first..=last).all(|key| plainly(&KeyOrder::Bytewise, &deletes, &[key], 50) > floor);
        if round % 2 == 0 && snapshots.contains(&50) {
            assert_eq!(fragments.cover((&[first], &[last]), false, floor, 50), all);
        }
    }
}

/// A range is covered only if no key of it is left out, and its end counts
/// unless it is a bound.
#[test]
fn a_cover_has_no_gap() {
    let order = KeyOrder::Bytewise;
    let fragments =
        Fragments::build(&order, [delete(2, 5, 9), delete(5, 7, 4), delete(8, 9, 9)], &[]);
    assert!(fragments.cover((&[2], &[4]), false, 3, SEQUENCE_MAX));
    assert!(fragments.cover((&[2], &[6]), false, 3, SEQUENCE_MAX));
    assert!(!fragments.cover((&[2], &[6]), false, 4, SEQUENCE_MAX));
    assert!(!fragments.cover((&[2], &[7]), false, 3, SEQUENCE_MAX));
    assert!(fragments.cover((&[2], &[7]), true, 3, SEQUENCE_MAX));
    assert!(!fragments.cover((&[2], &[8]), false, 3, SEQUENCE_MAX));
    assert!(!fragments.cover((&[1], &[4]), false, 3, SEQUENCE_MAX));
    assert!(!fragments.cover((&[2], &[4]), false, 3, 8));
}

/// Ten thousand range deletes, each of which holds all earlier ones, stay
/// small: a program that again and again deletes what is older than now
/// writes just these.
#[test]
fn nested_range_deletes_stay_small() {
    let order = KeyOrder::Bytewise;
    let (mut history, mut bytes) = (History::default(), 0);
    for sequence in 1..=10_000u64 {
        let end = Arc::from(&sequence.to_be_bytes()[..]);
        let (longer, more) = history.with(&order, RangeDelete { start: [].into(), end, sequence });
        (history, bytes) = (longer, bytes + more);
    }
    assert!(bytes < 30 << 20, "{bytes} bytes");
    assert_eq!(history.covering(&5_000u64.to_be_bytes(), SEQUENCE_MAX), 10_000);
    assert_eq!(history.covering(&5_000u64.to_be_bytes(), 5_001), 5_001);
    assert_eq!(history.covering(&5_000u64.to_be_bytes(), 5_000), 0);
    let flushed = Fragments::build(&order, history.deletes(), &[4_000]);
    assert_eq!(flushed.count(), 3, "newest of both strata, and one where the older has ended");
}

/// Stored fragments that overlap, are reversed or have numbers out of order
/// are refused.
#[test]
fn unsound_fragments_are_refused() {
    let fragment = |start: u8, end: u8, sequences: &[SequenceNumber]| Fragment {
        start: [start].into(),
        end: [end].into(),
        sequences: sequences.into(),
    };
    let order = KeyOrder::Bytewise;
    let sound = |fragments: Vec<Fragment>| Fragments::from_sorted(&order, fragments).is_some();
    assert!(sound(vec![fragment(1, 2, &[5, 3]), fragment(2, 3, &[1])]));
    assert!(!sound(vec![fragment(1, 3, &[5]), fragment(2, 4, &[1])]));
    assert!(!sound(vec![fragment(2, 2, &[5])]));
    assert!(!sound(vec![fragment(1, 2, &[])]));
    assert!(!sound(vec![fragment(1, 2, &[3, 5])]));
    assert!(!sound(vec![fragment(1, 2, &[0])]));
    assert!(!sound(vec![fragment(1, 2, &[SEQUENCE_MAX + 1])]));
}
