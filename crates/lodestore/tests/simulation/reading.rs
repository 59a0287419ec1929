//! A thread that reads at snapshots, each of which says by the writers'
//! markers what all of it must be.

use crate::crew::Crew;
use crate::promise::{State, WRITERS, writer};
use crate::tables::Pair;
use lodestore::{Db, DbCursor, Family, ReadOptions, Result};
use shuttle::thread;
use std::collections::BTreeMap;
use std::ops::Bound;
use testkit::load::{APPEND, COUNT, difference_in};
use testkit::random::Random;

/// Steps of one walk to and fro.
const WALK_STEPS: u64 = 48;

type Entries = BTreeMap<Vec<u8>, Vec<u8>>;

/// Reads `rounds` snapshots.
pub fn read(crew: &Crew, db: &Db, pair: &Pair, rounds: usize, mut random: Random) {
    let mut state = crew.start.clone();
    for _ in 0..rounds {
        match read_snapshot(crew, db, pair, &mut state, &mut random) {
            Ok(()) => crew.count(|report| report.snapshots_compared += 1),
            Err(error) => crew.excuse(&error),
        }
        if crew.disk.is_stopped() {
            return;
        }
        thread::yield_now();
    }
}

fn read_snapshot(
    crew: &Crew,
    db: &Db,
    pair: &Pair,
    state: &mut State,
    random: &mut Random,
) -> Result<()> {
    let at = ReadOptions { snapshot: Some(db.snapshot()), ..ReadOptions::default() };
    let mut kept = [0; WRITERS as usize];
    for id in 0..WRITERS {
        let marker = db.get_with(&at, writer(crew.seed, id).marker().as_bytes())?;
        kept[usize::from(id)] =
            marker.map_or(0, |n| u64::from_le_bytes(n[..].try_into().expect("eight bytes")));
    }
    state.go_on_to(crew.seed, kept);
    let call = pair.call_at(&at)?;
    // Again after a while, when flushes and compactions may have moved it.
    for look in 0..4 {
        let name = *random.pick(&["default", APPEND, COUNT]);
        let family = db.family(name).expect("it was created");
        let none = Entries::new();
        let expected = state.entries(name).unwrap_or(&none);
        let steps = match random.below(3) {
            0 => scan(&family, name, &at, expected, random.one_in(2))?,
            1 => look_up(&family, &at, expected, random)?,
            _ => walk(&family, &at, expected, random)?,
        };
        crew.count(|report| report.operations += steps);
        assert_eq!(pair.call_at(&at)?, call, "what a snapshot sees has changed, look {look}");
        (0..25).for_each(|_| thread::yield_now());
    }
    Ok(())
}

/// Reads all of a family.
fn scan(
    family: &Family,
    name: &str,
    at: &ReadOptions,
    expected: &Entries,
    backwards: bool,
) -> Result<u64> {
    let mut found = Entries::new();
    let mut cursor = family.cursor_with(at.clone());
    if backwards {
        cursor.last()
    } else {
        cursor.first()
    }
    while cursor.valid() {
        let before = found.insert(cursor.key().to_vec(), cursor.value().to_vec());
        assert!(before.is_none(), "a cursor met a key twice in {name}");
        if backwards { cursor.prev() } else { cursor.next() }
    }
    cursor.status()?;
    assert_eq!(difference_in(name, expected, &found), None, "backwards: {backwards}");
    Ok(found.len() as u64 + 1)
}

fn any_key(random: &mut Random) -> Vec<u8> {
    let key = format!("{:02}/{:03}", random.below(usize::from(WRITERS)), random.below(50));
    key.into_bytes()
}

/// Looks some keys up, one by one and together.
fn look_up(
    family: &Family,
    at: &ReadOptions,
    expected: &Entries,
    random: &mut Random,
) -> Result<u64> {
    let keys: Vec<Vec<u8>> = (0..8).map(|_| any_key(random)).collect();
    let together = family.multi_get_with(at, &keys);
    for (key, value) in keys.iter().zip(together) {
        let right = expected.get(key).map(|v| &v[..]);
        assert_eq!(value?.as_deref(), right, "multi_get of {}", key.escape_ascii());
        let alone = family.get_with(at, key)?;
        assert_eq!(alone.as_deref(), right, "get of {}", key.escape_ascii());
    }
    Ok(2 * keys.len() as u64)
}

/// Goes to and fro with a cursor.
fn walk(family: &Family, at: &ReadOptions, expected: &Entries, random: &mut Random) -> Result<u64> {
    let mut cursor = family.cursor_with(at.clone());
    let mut place: Option<&Vec<u8>> = None;
    for _ in 0..WALK_STEPS {
        place = match (random.below(4), place) {
            (0, Some(key)) | (1, Some(key)) => {
                cursor.next();
                expected.range::<[u8], _>((Bound::Excluded(&key[..]), Bound::Unbounded)).next()
            }
            (2, Some(key)) => {
                cursor.prev();
                expected.range::<[u8], _>((Bound::Unbounded, Bound::Excluded(&key[..]))).next_back()
            }
            (choice, _) => {
                let key = any_key(random);
                if choice % 2 == 0 {
                    cursor.seek(&key);
                    expected.range(key..).next()
                } else {
                    cursor.seek_for_prev(&key);
                    expected.range(..=key).next_back()
                }
            }
        }
        .map(|(key, _)| key);
        cursor.status()?;
        check_place(&cursor, place, expected);
    }
    Ok(WALK_STEPS)
}

fn check_place(cursor: &DbCursor, place: Option<&Vec<u8>>, expected: &Entries) {
    let found = cursor.valid().then(|| (cursor.key().to_vec(), cursor.value().to_vec()));
    let right = place.map(|key| (key.clone(), expected[key].clone()));
    assert_eq!(found, right, "where a cursor came to");
}
