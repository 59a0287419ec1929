//! The memtable under shuttle: a writer and two readers in random schedules.
//! Nodes are small there, so that a few entries split leaves and inner nodes.

use std::ops::ControlFlow;

use super::{Memtable, MemtableCursor, MemtableWriter};
use crate::budget::{Account, Item};
use crate::cursor::Cursor;
use crate::key::{KeyOrder, SEQUENCE_MAX, TRAILER_NEWEST, Trailer, hash};
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::sync::{Arc, thread};
use testkit::explore::explore;
use testkit::random::Random;

/// Entries that are inserted while others read.
const BESIDE: u64 = 5;

/// Entries before that, at most: enough for three levels of nodes.
const BEFORE_MAX: usize = 44;

/// The key of the `i`-th entry, whose trailer is `i + 1`.
type KeyOf = fn(u64) -> u64;

fn key(number: u64) -> Vec<u8> {
    format!("{number:04}").into_bytes()
}

/// Whatever the schedule, a reader meets every entry that was published before
/// it began, in order, exactly once, both ways, and can get it: keys in any
/// order.
#[test]
fn readers_see_what_was_published() {
    explore("memtable, keys in any order", |seed| run(seed, |i| (i * 29) % 64));
}

/// The same for keys that ascend, which take the short cut of the writer.
#[test]
fn readers_see_ascending_keys() {
    explore("memtable, ascending keys", |seed| run(seed, |i| i));
}

/// The same for keys that descend, which split leaves at their first place.
#[test]
fn readers_see_descending_keys() {
    explore("memtable, descending keys", |seed| run(seed, |i| 63 - i));
}

/// The same for versions of one key, among neighbours.
#[test]
fn readers_see_versions_of_one_key() {
    explore("memtable, versions of one key", |seed| run(seed, |i| if i % 5 == 1 { i } else { 7 }));
}

/// A memtable with `entries`, and its writer.
fn filled(account: &Arc<Account>, entries: u64, key_of: KeyOf) -> (Arc<Memtable>, MemtableWriter) {
    let (memtable, mut writer) = Memtable::new(KeyOrder::Bytewise, account);
    for i in 0..entries {
        writer.insert(&key(key_of(i)), i + 1, &i.to_le_bytes());
    }
    (memtable, writer)
}

fn run(seed: u64, key_of: KeyOf) {
    let mut random = Random::new(seed);
    let (account, before) = (Account::unlimited(), random.below(BEFORE_MAX + 1) as u64);
    let (memtable, mut writer) = filled(&account, before, key_of);
    let published = Arc::new(AtomicU64::new(before));
    let readers: Vec<_> = (0..2)
        .map(|_| {
            let (memtable, published) = (Arc::clone(&memtable), Arc::clone(&published));
            let mut random = Random::new(random.word());
            thread::spawn("reader", move || {
                for _ in 0..2 {
                    let visible = published.load(Ordering::Acquire);
                    Reader { memtable: &memtable, visible, key_of }.read(&mut random);
                }
            })
        })
        .collect();
    for i in before..before + BESIDE {
        writer.insert(&key(key_of(i)), i + 1, &i.to_le_bytes());
        published.store(i + 1, Ordering::Release);
    }
    readers.into_iter().for_each(|reader| reader.join().unwrap());
}

/// A reader of what is published up to `visible`.
struct Reader<'a> {
    memtable: &'a Arc<Memtable>,
    visible: Trailer,
    key_of: KeyOf,
}

/// A key, and of several versions the newest first.
type Place = (Vec<u8>, std::cmp::Reverse<Trailer>);

impl Reader<'_> {
    fn read(&self, random: &mut Random) {
        let (from, steps) = (key(random.below(64) as u64), random.between(1, 8));
        match random.below(6) {
            0 => self.check(self.walk(|c| c.seek_to_first(), true, usize::MAX), None, true),
            1 => self.check(self.walk(|c| c.seek_to_last(), false, usize::MAX), None, false),
            2 => {
                let met = self.walk(|c| c.seek(&from, TRAILER_NEWEST), true, steps);
                self.check(met, Some(from), true);
            }
            3 => {
                let met = self.walk(|c| c.seek_for_prev(&from, 0), false, steps);
                self.check(met, Some(from), false);
            }
            4 => self.there_and_back(&from, steps),
            _ => self.get((self.key_of)(random.below(64) as u64)),
        }
    }

    /// What is met from where `seek` goes, in at most so many steps, and whether
    /// that is all up to the end.
    fn walk(
        &self,
        seek: impl FnOnce(&mut MemtableCursor),
        forward: bool,
        steps: usize,
    ) -> (Vec<Place>, bool) {
        let (mut cursor, mut met) = (self.memtable.cursor(), Vec::new());
        seek(&mut cursor);
        while cursor.valid() && met.len() < steps {
            met.push(place(&cursor));
            if forward { cursor.next() } else { cursor.prev() }
        }
        (met, !cursor.valid())
    }

    /// Each once, in order, and all that was published between `from` and where
    /// the walk has ended.
    fn check(&self, (met, to_end): (Vec<Place>, bool), from: Option<Vec<u8>>, forward: bool) {
        let is_ahead = |a: &Place, b: &Place| if forward { a < b } else { a > b };
        assert!(met.is_sorted_by(is_ahead), "in order, each once: {met:?}");
        let last = met.last().filter(|_| !to_end);
        let mut expected: Vec<Place> = (0..self.visible)
            .map(|i| (key((self.key_of)(i)), std::cmp::Reverse(i + 1)))
            .filter(|place| match (&from, forward) {
                (None, _) => true,
                (Some(from), true) => place.0 >= *from,
                (Some(from), false) => place.0 <= *from,
            })
            .filter(|place| last.is_none_or(|last| !is_ahead(last, place)))
            .collect();
        expected.sort();
        let mut found: Vec<Place> = met.into_iter().filter(|p| p.1.0 <= self.visible).collect();
        found.sort();
        assert_eq!(found, expected, "all that was published up to {}", self.visible);
    }

    /// A walk that turns round meets again what it has met.
    fn there_and_back(&self, from: &[u8], steps: usize) {
        let (mut cursor, mut met) = (self.memtable.cursor(), Vec::new());
        cursor.seek(from, TRAILER_NEWEST);
        while cursor.valid() && met.len() < steps {
            met.push(place(&cursor));
            cursor.next();
        }
        let Some(last) = met.last().cloned() else { return };
        cursor.seek(&last.0, last.1.0);
        let mut again = Vec::new();
        while cursor.valid() && place(&cursor) >= met[0] {
            again.push(place(&cursor));
            cursor.prev();
        }
        again.reverse();
        assert!(met.iter().all(|place| again.contains(place)), "{met:?}, back: {again:?}");
        assert!(again.is_sorted_by(|a, b| a < b), "{again:?}");
    }

    /// All published versions of a key, newest first.
    fn get(&self, number: u64) {
        let mut found = Vec::new();
        let key = key(number);
        self.memtable.get((&key, hash(&key)), TRAILER_NEWEST, |trailer, value| {
            assert_eq!(value, (trailer - 1).to_le_bytes());
            found.push(trailer);
            ControlFlow::Continue(())
        });
        assert!(found.is_sorted_by(|a, b| a > b), "newest first: {found:?}");
        let expected = (0..self.visible).rev().filter(|&i| (self.key_of)(i) == number);
        let published = found.into_iter().filter(|&trailer| trailer <= self.visible);
        assert!(published.eq(expected.map(|i| i + 1)), "of {number} up to {}", self.visible);
    }
}

fn place(cursor: &MemtableCursor) -> Place {
    (cursor.user_key().to_vec(), std::cmp::Reverse(cursor.trailer()))
}

/// Who knows a number sees all range deletes up to it, and whether anything was
/// put into a deleted range since; later ones do no harm.
#[test]
fn readers_see_published_range_deletes() {
    explore("memtable, range deletes", |seed| {
        let mut random = Random::new(seed);
        // Number `i + 1` deletes a range of keys, or puts one.
        let history: Vec<(bool, u64, u64)> = (0..6)
            .map(|_| (random.one_in(2), random.below(4) as u64, random.between(4, 6) as u64))
            .collect();
        let history = Arc::new(history);
        let (memtable, mut writer) = Memtable::new(KeyOrder::Bytewise, &Account::unlimited());
        let published = Arc::new(AtomicU64::new(0));
        let readers: Vec<_> = (0..2)
            .map(|_| {
                let (memtable, published) = (Arc::clone(&memtable), Arc::clone(&published));
                let history = Arc::clone(&history);
                thread::spawn("reader", move || {
                    for _ in 0..3 {
                        check_ranges(&memtable, published.load(Ordering::Acquire), &history);
                    }
                })
            })
            .collect();
        for (number, &(deletes, from, to)) in (1..).zip(history.iter()) {
            match deletes {
                true => writer.delete_range(&key(from), &key(to), number),
                false => writer.insert(&key(from), number, b""),
            }
            published.store(number, Ordering::Release);
        }
        readers.into_iter().for_each(|reader| reader.join().unwrap());
        assert!(memtable.range_deleted(&key(3), SEQUENCE_MAX) <= 6);
    });
}

fn check_ranges(memtable: &Memtable, visible: u64, history: &[(bool, u64, u64)]) {
    let covering = |number: u64, up_to: u64| {
        let known = (1..=up_to).zip(history);
        let covers = known.filter(|(_, (deletes, a, b))| *deletes && (*a..*b).contains(&number));
        covers.last().map_or(0, |(sequence, _)| sequence)
    };
    for number in 0..6 {
        assert_eq!(memtable.range_deleted(&key(number), visible), covering(number, visible));
    }
    let mut puts = (1..=visible).zip(history).filter(|(_, (deletes, ..))| !deletes);
    if puts.any(|(sequence, (_, from, _))| covering(*from, sequence - 1) > 0) {
        assert!(!memtable.deleted_ranges_are_empty(), "a range was refilled up to {visible}");
    }
}

/// The memory of a memtable is counted once while it takes entries, once while
/// it waits for its flush, and no more when its last reader is gone.
#[test]
fn memory_is_counted_until_the_last_reader_goes() {
    explore("memtable, memory", |_| {
        let account = Account::unlimited();
        let (memtable, mut writer) = filled(&account, 3, |i| i);
        let bytes = memtable.memory_bytes();
        let reader = {
            let (memtable, account) = (Arc::clone(&memtable), Arc::clone(&account));
            thread::spawn("reader", move || {
                let cursor = memtable.cursor();
                drop(memtable);
                let used = account.used(Item::Memtables) + account.used(Item::SealedMemtables);
                assert!(used <= 2 * bytes, "{used} of {bytes}");
                drop(cursor);
            })
        };
        writer.insert(&key(9), 4, b"");
        drop(writer);
        assert_eq!(account.used(Item::Memtables), 0);
        assert_eq!(account.used(Item::SealedMemtables), memtable.memory_bytes());
        drop(memtable);
        reader.join().unwrap();
        assert_eq!(account.used(Item::SealedMemtables), 0);
    });
}
