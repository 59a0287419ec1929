//! Sealed log segments that may not be durable yet: whoever needs them durable
//! makes them so, a synced write or a flush.
//!
//! Invariant: a segment becomes durable only after those before it, because
//! everybody goes through the list from its oldest on.

use crate::error::Result;
use crate::sync::{Arc, Mutex};
use crate::wal::{DurableLog, Sealed};

/// The segments, oldest first.
#[derive(Default)]
pub(crate) struct SealedSegments {
    list: Mutex<Vec<Entry>>,
    /// The newest that was made durable here.
    durable: Mutex<DurableLog>,
}

#[derive(Clone)]
struct Entry {
    number: u64,
    /// Held while it is being synced, so that who comes next waits for that.
    segment: Arc<Mutex<Sealed>>,
}

impl SealedSegments {
    /// Adds the newest.
    pub(crate) fn push(&self, segment: Sealed) {
        let number = segment.as_predecessor().number;
        self.list.lock().push(Entry { number, segment: Arc::new(Mutex::new(segment)) });
    }

    /// True if none may be less than durable.
    pub(crate) fn is_empty(&self) -> bool {
        self.list.lock().is_empty()
    }

    /// Closes segments below `number`, which do not matter any more.
    pub(crate) fn forget_below(&self, number: u64) {
        self.list.lock().retain(|entry| entry.number >= number);
    }

    /// Makes the segments below `number` survive power loss. Gives the newest
    /// of those that do.
    ///
    /// # Errors
    /// `Io`, and the same one at each further call: after a failed sync nothing
    /// may be assumed of the file.
    pub(crate) fn sync_below(&self, number: u64) -> Result<DurableLog> {
        let entries = self.list.lock().clone();
        for entry in entries.into_iter().filter(|entry| entry.number < number) {
            let durable = {
                let mut segment = entry.segment.lock();
                segment.sync()?;
                segment.durable()
            };
            let mut newest = self.durable.lock();
            *newest = durable.max(*newest);
        }
        self.forget_below(number);
        Ok(*self.durable.lock())
    }

    /// Makes the oldest durable, all but the newest `count`.
    pub(crate) fn sync_all_but(&self, count: usize) -> Result<()> {
        let first_kept = {
            let list = self.list.lock();
            list.len().checked_sub(count).and_then(|at| list.get(at)).map(|entry| entry.number)
        };
        first_kept.map_or(Ok(()), |number| self.sync_below(number).map(|_| ()))
    }
}

#[cfg(all(test, simulation))]
mod simulation;
