//! `--comparisons`: bytewise order, counted.

use std::cmp::Ordering;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering as Memory};

use lodestore::Comparator;

/// The name of bytewise order in LevelDB's and our manifests.
const BYTEWISE_NAME: &str = "leveldb.BytewiseComparator";

/// Bytewise order under its usual name, so that databases stay usable without
/// it; every comparison is counted.
pub struct CountingOrder {
    count: Arc<AtomicU64>,
}

impl CountingOrder {
    /// Counts in `count`.
    pub fn new(count: Arc<AtomicU64>) -> CountingOrder {
        CountingOrder { count }
    }
}

impl Comparator for CountingOrder {
    fn name(&self) -> &str {
        BYTEWISE_NAME
    }

    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        self.count.fetch_add(1, Memory::Relaxed);
        a.cmp(b)
    }

    fn equal_means_identical(&self) -> bool {
        true
    }
}

impl std::fmt::Debug for CountingOrder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The order is bytewise in all but the counting, so that a database made
    /// with it opens without it.
    #[test]
    fn counted_order_is_bytewise() {
        let count = Arc::<AtomicU64>::default();
        let order = CountingOrder::new(Arc::clone(&count));
        assert_eq!(order.name(), lodestore::KeyOrder::Bytewise.name());
        assert_eq!(order.compare(b"a", b"a\0"), Ordering::Less);
        assert_eq!(order.compare(b"b", b"ab"), Ordering::Greater);
        assert_eq!(count.load(Memory::Relaxed), 2);
    }
}
