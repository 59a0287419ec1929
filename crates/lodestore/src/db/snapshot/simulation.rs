//! The list of snapshots beside what commits publish and compactions ask.

use super::{Snapshot, SnapshotList};
use crate::key::SequenceNumber;
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::sync::{Arc, thread};
use testkit::explore::{explore, explore_all};
use testkit::random::Random;

/// What commits publish, and what ingests install with it.
#[derive(Default)]
struct Database {
    snapshots: Arc<SnapshotList>,
    visible: AtomicU64,
    installed: AtomicU64,
}

impl Database {
    fn visible(&self) -> SequenceNumber {
        self.visible.load(Ordering::Acquire)
    }
}

/// What a compaction may have read, it may throw away for all but the snapshots
/// that it knows of: a snapshot that it has missed must be of a later state.
/// In every schedule.
#[test]
fn a_compaction_knows_every_snapshot_of_what_it_has_read() {
    explore_all("snapshots, every schedule", || {
        let database = Arc::new(Database::default());
        let publishing = Arc::clone(&database);
        let publisher = thread::spawn("publisher", move || {
            (1..=2).for_each(|n| publishing.visible.store(n, Ordering::Release));
        });
        let compacting = Arc::clone(&database);
        let compaction = thread::spawn("compaction", move || {
            let read = compacting.visible();
            let known = compacting.snapshots.sequences();
            compacting.installed.store(read << 8 | known.len() as u64, Ordering::Release);
        });
        let snapshot = database.snapshots.take(|| database.visible());
        compaction.join().unwrap();
        publisher.join().unwrap();
        let compacted = database.installed.load(Ordering::Acquire);
        let (read, known) = (compacted >> 8, compacted & 0xff);
        assert!(known == 1 || snapshot.sequence() >= read, "{} < {read}", snapshot.sequence());
    });
}

/// While a snapshot lives, the oldest one is never above it, and it stays among
/// those that are listed; when all are gone, the list is empty. What an ingest
/// does holding them still, no snapshot sees a half of.
#[test]
fn living_snapshots_are_listed() {
    explore("snapshots", |seed| {
        let database = Arc::new(Database::default());
        let beside = |name: &str, work: fn(&Database, Random), number: u64| {
            let database = Arc::clone(&database);
            let random = Random::new(seed << 8 | number);
            thread::spawn(name, move || work(&database, random))
        };
        let threads = [
            beside("reader", hold_snapshots, 1),
            beside("reader", hold_snapshots, 2),
            beside("ingest", ingest, 3),
        ];
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        assert_eq!((database.snapshots.count(), database.snapshots.oldest()), (0, None));
    });
}

fn hold_snapshots(database: &Database, mut random: Random) {
    let mut held: Vec<Snapshot> = Vec::new();
    for _ in 0..4 {
        match random.below(3) {
            0 if !held.is_empty() => drop(held.swap_remove(random.below(held.len()))),
            1 if !held.is_empty() => held.push(random.pick(&held).clone()),
            _ => held.push(database.snapshots.take(|| {
                let visible = database.visible();
                let installed = database.installed.load(Ordering::Acquire);
                assert_eq!(visible, installed, "half of an ingest is seen");
                visible
            })),
        }
        let (oldest, listed) = (database.snapshots.oldest(), database.snapshots.sequences());
        for snapshot in &held {
            assert!(oldest.is_some_and(|oldest| oldest <= snapshot.sequence()));
            assert!(listed.contains(&snapshot.sequence()));
        }
    }
}

fn ingest(database: &Database, _: Random) {
    for number in 1..=3 {
        database.snapshots.hold_still(|| {
            database.installed.store(number, Ordering::Release);
            database.visible.store(number, Ordering::Release);
        });
    }
}
