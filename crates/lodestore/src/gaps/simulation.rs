//! Gaps beside puts, deletes and walks of an ordered map that is as simple as
//! can be: the rules of `gaps` and nothing else.

use super::{Direction, Edge, Gaps};
use crate::key::{KeyOrder, SequenceNumber};
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::sync::{Arc, Mutex, thread};
use testkit::explore::{Reached, explore};
use testkit::random::Random;

const KEYS: u8 = 5;

/// Enough for a gap to be kept.
const STEPS: usize = super::STEPS_MIN;

#[derive(Clone, Copy)]
struct Entry {
    key: u8,
    sequence: SequenceNumber,
    is_value: bool,
}

/// Commits go as in `db::write`: into the memtable, gaps cut, published.
struct Map {
    gaps: Arc<Gaps>,
    commit: Mutex<SequenceNumber>,
    entries: Mutex<Vec<Entry>>,
    visible: AtomicU64,
    /// Keys that were found to be in a gap.
    passed: Reached,
}

impl Map {
    fn commit(&self, key: u8, is_value: bool) {
        let mut last = self.commit.lock();
        *last += 1;
        self.entries.lock().push(Entry { key, sequence: *last, is_value });
        if is_value {
            self.gaps.cut(&[key]);
        }
        self.visible.store(*last, Ordering::Release);
    }

    fn versions(&self, key: u8) -> Vec<Entry> {
        self.entries.lock().iter().filter(|entry| entry.key == key).copied().collect()
    }

    /// True if a reader at `sequence` finds a value, or meets one that is too
    /// new for it.
    fn ends_gap(&self, key: u8, sequence: SequenceNumber) -> bool {
        let versions = self.versions(key);
        let newest = versions.iter().rfind(|entry| entry.sequence <= sequence);
        newest.is_some_and(|entry| entry.is_value)
            || versions.iter().any(|entry| entry.sequence > sequence && entry.is_value)
    }

    fn is_present(&self, key: u8, sequence: SequenceNumber) -> bool {
        let versions = self.versions(key);
        versions.iter().rfind(|entry| entry.sequence <= sequence).is_some_and(|e| e.is_value)
    }

    /// Walks from `from` on, at `sequence`, and has remembered what is absent.
    fn walk(&self, from: u8, sequence: SequenceNumber, direction: Direction) {
        let keys: Vec<u8> = match direction {
            Direction::Forward => (from..KEYS).collect(),
            Direction::Reverse => (0..=from).rev().collect(),
        };
        let begin = match direction {
            Direction::Forward => Edge::before(&[from]),
            Direction::Reverse => Edge::after(&[from]),
        };
        let claim =
            self.commit.try_lock().and_then(|last| self.gaps.claim(&begin, direction, *last));
        let mut end = begin;
        for key in keys {
            if self.ends_gap(key, sequence) {
                break;
            }
            match direction {
                Direction::Forward => end.move_after(&[key]),
                Direction::Reverse => end.move_before(&[key]),
            }
        }
        if let Some(claim) = claim {
            claim.end(end, STEPS);
        }
    }

    /// All that a gap around `key` is said to hold must be absent.
    fn check(&self, key: u8, sequence: SequenceNumber, direction: Direction) {
        let Some(end) = self.gaps.end_around(&[key], sequence, direction) else { return };
        self.passed.note(true);
        let is_inside = |other: &u8| {
            let beyond = end.compare_key(&KeyOrder::Bytewise, &[*other]);
            match direction {
                Direction::Forward => *other >= key && beyond.is_gt(),
                Direction::Reverse => *other <= key && beyond.is_lt(),
            }
        };
        for inside in (0..KEYS).filter(is_inside) {
            assert!(!self.is_present(inside, sequence), "{inside} is there at {sequence}: {end:?}");
        }
    }
}

/// Whatever is put, deleted and walked over at the same time: what a gap tells a
/// reader to pass over is absent for that reader.
#[test]
fn no_gap_holds_a_key_that_its_reader_sees() {
    let passed = Reached::default();
    let count = passed.clone();
    explore("gaps", move |seed| {
        let map = Arc::new(Map {
            gaps: Gaps::new(KeyOrder::Bytewise, &Arc::default()),
            commit: Mutex::new(0),
            entries: Mutex::default(),
            visible: AtomicU64::new(0),
            passed: count.clone(),
        });
        let mut random = Random::new(seed);
        (0..KEYS).filter(|_| random.one_in(2)).for_each(|key| map.commit(key, false));
        let threads: Vec<_> = (0..3)
            .map(|number| {
                let (map, random) = (Arc::clone(&map), Random::new(random.word()));
                thread::spawn("gaps", move || match number {
                    0 => write(&map, random),
                    _ => read(&map, random),
                })
            })
            .collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        let sequence = map.visible.load(Ordering::Acquire);
        for key in 0..KEYS {
            map.check(key, sequence, Direction::Forward);
            map.check(key, sequence, Direction::Reverse);
        }
    });
    passed.check("gaps that are of use");
}

fn write(map: &Map, mut random: Random) {
    for _ in 0..4 {
        map.commit(random.below(usize::from(KEYS)) as u8, random.one_in(2));
    }
}

fn read(map: &Map, mut random: Random) {
    for _ in 0..2 {
        let direction = *random.pick(&[Direction::Forward, Direction::Reverse]);
        let (from, key) = (random.below(usize::from(KEYS)) as u8, random.below(5) as u8);
        let sequence = map.visible.load(Ordering::Acquire);
        map.walk(from, sequence, direction);
        map.check(key, sequence, direction);
        map.check(key, map.visible.load(Ordering::Acquire), direction);
    }
}
