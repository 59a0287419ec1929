//! How many bytes of tables are mapped at once.

use crate::sync::Arc;
use crate::sync::atomic::{AtomicU64, Ordering};

/// What may be mapped, and what is.
#[derive(Debug)]
pub(super) struct MappedBytes {
    bytes_max: u64,
    bytes: AtomicU64,
}

impl MappedBytes {
    /// Nothing is mapped yet, and never more than `bytes_max`.
    pub(super) fn new(bytes_max: u64) -> Arc<MappedBytes> {
        Arc::new(MappedBytes { bytes_max, bytes: AtomicU64::new(0) })
    }

    /// Room for a table of so many bytes, if there is any.
    pub(super) fn take(self: &Arc<Self>, bytes: u64) -> Option<MappedShare> {
        let with_it = |held: u64| held.checked_add(bytes).filter(|sum| *sum <= self.bytes_max);
        self.bytes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, with_it).ok()?;
        Some(MappedShare { of: Arc::clone(self), bytes })
    }

    /// Bytes of the tables that are mapped.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }
}

/// The room of one table; dropping it gives it back.
#[derive(Debug)]
pub(super) struct MappedShare {
    of: Arc<MappedBytes>,
    bytes: u64,
}

impl Drop for MappedShare {
    fn drop(&mut self) {
        self.of.bytes.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}
