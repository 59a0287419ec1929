//! Snapshots: sequence numbers that readers still look at, so that flushes and
//! compactions keep what they see.

use std::collections::BTreeMap;

use crate::key::SequenceNumber;
use crate::sync::{Arc, Mutex};

/// The sequence numbers of all live snapshots of a database.
#[derive(Debug, Default)]
pub(crate) struct SnapshotList {
    /// Sequence number -> how many snapshots have it.
    live: Mutex<BTreeMap<SequenceNumber, usize>>,
}

impl SnapshotList {
    /// Registers a snapshot at what `visible` gives. It is read under the
    /// list's lock, so that no compaction that misses this snapshot can have
    /// seen newer entries.
    pub(crate) fn take(self: &Arc<Self>, visible: impl FnOnce() -> SequenceNumber) -> Snapshot {
        let mut live = self.live.lock();
        let sequence = visible();
        *live.entry(sequence).or_default() += 1;
        Snapshot { held: Arc::new(Held { list: Arc::clone(self), sequence }) }
    }

    /// Does `work` while no snapshot begins and nobody learns which ones there
    /// are. To both, what it installs and the number that it publishes are one
    /// step: no snapshot of the number before sees what a compaction has made
    /// of the tables after, without that compaction knowing of it.
    pub(crate) fn hold_still<T>(&self, work: impl FnOnce() -> T) -> T {
        let _live = self.live.lock();
        work()
    }

    /// All live sequence numbers, ascending.
    pub(crate) fn sequences(&self) -> Vec<SequenceNumber> {
        self.live.lock().keys().copied().collect()
    }

    /// The lowest live sequence number.
    pub(crate) fn oldest(&self) -> Option<SequenceNumber> {
        self.live.lock().keys().next().copied()
    }

    /// Live snapshots.
    pub(crate) fn count(&self) -> usize {
        self.live.lock().values().sum()
    }
}

/// A state of the whole database that stays readable, with
/// [`ReadOptions::at`](super::ReadOptions::at). Clones are the same snapshot; it
/// is released when the last one goes. Until then nothing that it sees is thrown
/// away: one that is kept for long makes the database grow.
#[derive(Clone, Debug)]
pub struct Snapshot {
    held: Arc<Held>,
}

#[derive(Debug)]
struct Held {
    list: Arc<SnapshotList>,
    sequence: SequenceNumber,
}

impl Snapshot {
    /// The sequence number of the last record that the snapshot contains.
    pub fn sequence(&self) -> SequenceNumber {
        self.held.sequence
    }

    /// True if the snapshot was taken of the database with this list.
    pub(crate) fn is_of(&self, list: &Arc<SnapshotList>) -> bool {
        Arc::ptr_eq(&self.held.list, list)
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let mut live = self.list.live.lock();
        let count = live.get_mut(&self.sequence).expect("a held snapshot is listed");
        *count -= 1;
        if *count == 0 {
            live.remove(&self.sequence);
        }
    }
}

#[cfg(all(test, simulation))]
mod simulation;
