//! How far a family's flush is: writers for whom only the active memtable is left
//! are paced so that it is full when the flush is done.
//!
//! flush -> [`FlushProgress`] -> [`Draining`] -> `pressure`

use std::time::Duration;

use crate::sync::atomic::{AtomicU64, Ordering};

/// Written by the one flush of a family, read by writers. The two numbers need
/// not be of one moment: they are an estimate.
#[derive(Debug, Default)]
pub(crate) struct FlushProgress {
    /// Bytes of memory yet to be written; 0 while nothing is flushed.
    left_bytes: AtomicU64,
    /// By the scheduler's clock.
    begin_nanos: AtomicU64,
}

/// A flush at one moment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Draining {
    /// Bytes of memory yet to be written.
    pub(crate) left_bytes: u64,
    /// Since it began.
    pub(crate) elapsed: Duration,
}

impl FlushProgress {
    pub(crate) fn begin(&self, now: Duration, bytes: u64) {
        self.begin_nanos.store(now.as_nanos() as u64, Ordering::Relaxed);
        self.set_left(bytes);
    }

    /// There is more to do after the last byte (a sync, the manifest): the flush
    /// goes on until it ends.
    pub(crate) fn set_left(&self, bytes: u64) {
        self.left_bytes.store(bytes.max(1), Ordering::Relaxed);
    }

    pub(crate) fn end(&self) {
        self.left_bytes.store(0, Ordering::Relaxed);
    }

    /// The flush at `now`, if there is one.
    pub(crate) fn draining(&self, now: Duration) -> Option<Draining> {
        let left_bytes = self.left_bytes.load(Ordering::Relaxed);
        let begin = Duration::from_nanos(self.begin_nanos.load(Ordering::Relaxed));
        (left_bytes > 0).then(|| Draining { left_bytes, elapsed: now.saturating_sub(begin) })
    }
}

/// The end of a flush is not known to the second: at least this part of the time
/// that it has taken is still to come.
const REST: f64 = 1.0 / 8.0;

impl Draining {
    /// How long it will yet take, where `drain` bytes are written in a second.
    pub(crate) fn seconds_left(&self, drain: f64) -> f64 {
        (self.left_bytes as f64 / drain).max(self.elapsed.as_secs_f64() * REST)
    }
}
