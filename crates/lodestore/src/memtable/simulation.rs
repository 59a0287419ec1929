//! The memtable under shuttle: a writer and two readers in random schedules.

use std::ops::ControlFlow;

use super::{Memtable, MemtableCursor};
use crate::cursor::Cursor;
use crate::key::{KeyOrder, TRAILER_NEWEST, Trailer};
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::sync::{Arc, thread};

const SCHEDULES: usize = 300;

/// Whatever the schedule, a reader meets every entry that was published
/// before it began, in order, exactly once, both ways, and can get it.
#[test]
fn readers_see_what_was_published() {
    shuttle::check_random(|| run(48, |i| key((i * 29) % 48)), SCHEDULES);
}

/// The same for keys that ascend, which take the short cut of the writer.
#[test]
fn readers_see_ascending_keys() {
    shuttle::check_random(|| run(48, key), SCHEDULES);
}

/// The same for versions of one key.
#[test]
fn readers_see_versions_of_one_key() {
    shuttle::check_random(|| run(48, |_| key(7)), SCHEDULES);
}

fn key(i: u64) -> Vec<u8> {
    format!("{i:08}").into_bytes()
}

/// Inserts `key_of(i)` with trailer `i + 1` and publishes `i + 1`.
fn run(entries: u64, key_of: fn(u64) -> Vec<u8>) {
    let (memtable, mut writer) =
        Memtable::new(KeyOrder::Bytewise, &crate::budget::Account::unlimited());
    let published = Arc::new(AtomicU64::new(0));
    let readers: Vec<_> = (0..2)
        .map(|which| {
            let (memtable, published) = (Arc::clone(&memtable), Arc::clone(&published));
            thread::spawn("reader", move || {
                loop {
                    let visible = published.load(Ordering::Acquire);
                    check(&memtable, visible, key_of, which == 0);
                    if visible == entries {
                        return;
                    }
                    thread::yield_now();
                }
            })
        })
        .collect();
    for i in 0..entries {
        writer.insert(&key_of(i), i + 1, &i.to_le_bytes());
        published.store(i + 1, Ordering::Release);
    }
    for reader in readers {
        reader.join().unwrap();
    }
}

fn check(memtable: &Arc<Memtable>, visible: Trailer, key_of: fn(u64) -> Vec<u8>, forward: bool) {
    let mut cursor = memtable.cursor();
    let mut met = walk(&mut cursor, forward);
    if !forward {
        met.reverse();
    }
    assert!(met.is_sorted_by(|a, b| (&a.0, b.1) < (&b.0, a.1)), "in order, each once: {met:?}");
    let mut trailers: Vec<_> = met.iter().map(|e| e.1).filter(|&t| t <= visible).collect();
    trailers.sort_unstable();
    assert!(trailers.iter().copied().eq(1..=visible), "all that was published: {trailers:?}");
    if visible > 0 {
        let i = visible * 7 % visible.max(1);
        let mut newest = 0;
        memtable.get(&key_of(i), TRAILER_NEWEST, |trailer, _| {
            newest = trailer;
            ControlFlow::Break(())
        });
        assert!(newest > i, "the version that was published, or a newer one");
    }
}

fn walk(cursor: &mut MemtableCursor, forward: bool) -> Vec<(Vec<u8>, Trailer)> {
    let mut met = Vec::new();
    if forward {
        cursor.seek_to_first()
    } else {
        cursor.seek_to_last()
    }
    while cursor.valid() {
        met.push((cursor.user_key().to_vec(), cursor.trailer()));
        if forward { cursor.next() } else { cursor.prev() }
    }
    met
}
