//! Counters: what the engine did, nearly free to keep.
//!
//! A counter is an atomic of its own stripe for each of a few groups of
//! threads, so that threads seldom touch the same cache line. These are the
//! standard library's atomics in every build, not the `sync` seam's: nothing
//! may ever be decided by a counter, so no interleaving of them matters.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident => $text:literal,)+) => {
        /// What is counted.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(usize)]
        #[non_exhaustive]
        pub enum Counter { $($(#[$doc])* $name,)+ }

        impl Counter {
            /// Every counter, in the order of reports.
            pub const ALL: &'static [Counter] = &[$(Counter::$name,)+];

            /// The name in reports, as in `"cache.hits"`.
            pub fn name(self) -> &'static str {
                match self { $(Counter::$name => $text,)+ }
            }
        }
    };
}

counters! {
    /// Bytes of keys and values that callers wrote.
    UserBytesWritten => "write.user-bytes",
    /// Records (puts, deletes, merges) that callers wrote.
    RecordsWritten => "write.records",
    /// Commit groups: each is one append to the log.
    CommitGroups => "write.groups",
    /// Bytes appended to the log.
    LogBytes => "log.bytes",
    /// Times that the log was made durable.
    LogSyncs => "log.syncs",
    /// Log segments that reused an older file.
    LogSegmentsRecycled => "log.segments-recycled",
    /// Point lookups.
    Gets => "read.gets",
    /// Point lookups that found a value.
    GetsFound => "read.gets-found",
    /// Cursor seeks.
    Seeks => "read.seeks",
    /// Tables that a cursor did not look into: none of their keys has its prefix.
    PrefixTablesSkipped => "read.prefix-tables-skipped",
    /// Blocks of entries found in the cache.
    CacheHits => "cache.hits",
    /// Blocks of entries that had to be read.
    CacheMisses => "cache.misses",
    /// Parts of indexes found in the cache.
    CacheIndexHits => "cache.index-hits",
    /// Parts of indexes that had to be read.
    CacheIndexMisses => "cache.index-misses",
    /// Parts of filters found in the cache.
    CacheFilterHits => "cache.filter-hits",
    /// Parts of filters that had to be read.
    CacheFilterMisses => "cache.filter-misses",
    /// Bytes read from tables for lookups and cursors.
    BlockBytesRead => "read.block-bytes",
    /// Tables passed over because the filter said that the key is absent.
    FilterUseful => "filter.useful",
    /// Tables looked into although the filter was asked.
    FilterPassed => "filter.passed",
    /// Tables looked into where the key then was absent.
    FilterFalsePositive => "filter.false-positive",
    /// Flushes done.
    Flushes => "flush.count",
    /// Bytes of tables that flushes wrote.
    FlushBytes => "flush.bytes",
    /// Compactions done by rewriting.
    Compactions => "compaction.count",
    /// Parts of compactions that were cut to run on several threads.
    CompactionParts => "compaction.parts",
    /// Tables moved down without rewriting.
    TrivialMoves => "compaction.trivial-moves",
    /// Bytes of tables that compactions read.
    CompactionBytesRead => "compaction.bytes-read",
    /// Bytes of tables that compactions wrote.
    CompactionBytesWritten => "compaction.bytes-written",
    /// Entries that compactions dropped.
    CompactionEntriesDropped => "compaction.entries-dropped",
    /// Tables that compactions dropped unread, as a range delete covered them.
    TablesDropped => "compaction.tables-dropped",
    /// Tables that `delete_files_in_range` dropped.
    TablesDeletedInRange => "delete-files.tables",
    /// Microseconds that writers were held back because level 0 was long.
    StallLevel0Micros => "stall.level0-micros",
    /// Microseconds that writers were held back because flushes lagged.
    StallMemtableMicros => "stall.memtable-micros",
    /// Files closed because too many were open.
    FilesClosed => "files.closed",
    /// Memtables flushed before they were full, for want of memory.
    EarlyFlushes => "flush.early",
    /// Microseconds that writers were held back for want of memory.
    StallMemoryMicros => "stall.memory-micros",
    /// Writes that waited for want of memory.
    StopsMemory => "stall.memory-stops",
    /// Microseconds that writers were held back because of compaction debt.
    StallDebtMicros => "stall.debt-micros",
    /// Writes that were paced because level 0 was long.
    SlowdownsLevel0 => "stall.level0-slowdowns",
    /// Writes that were paced because flushes lagged.
    SlowdownsMemtable => "stall.memtable-slowdowns",
    /// Writes that were paced because of compaction debt.
    SlowdownsDebt => "stall.debt-slowdowns",
    /// Writes that waited at the limit of level 0.
    StopsLevel0 => "stall.level0-stops",
    /// Writes that waited because all memtables were full.
    StopsMemtable => "stall.memtable-stops",
    /// Writes that waited at the limit of compaction debt.
    StopsDebt => "stall.debt-stops",
    /// Writes that failed because they would have had to wait.
    WritesRefused => "stall.refused",
    /// Manifest records written.
    ManifestEdits => "manifest.edits",
    /// Manifests begun anew.
    ManifestRotations => "manifest.rotations",
}

const STRIPES: usize = 8;

#[derive(Debug)]
#[repr(align(128))]
struct Stripe([AtomicU64; Counter::ALL.len()]);

/// A set of counters. Several databases may share one.
#[derive(Debug)]
pub struct Statistics {
    stripes: [Stripe; STRIPES],
}

impl Default for Statistics {
    fn default() -> Statistics {
        let stripe = || Stripe(std::array::from_fn(|_| AtomicU64::new(0)));
        Statistics { stripes: std::array::from_fn(|_| stripe()) }
    }
}

impl Statistics {
    /// Adds `amount` to `counter`.
    #[inline]
    pub(crate) fn add(&self, counter: Counter, amount: u64) {
        self.stripes[stripe()].0[counter as usize].fetch_add(amount, Ordering::Relaxed);
    }

    /// The counter's value now.
    pub fn get(&self, counter: Counter) -> u64 {
        self.stripes.iter().map(|s| s.0[counter as usize].load(Ordering::Relaxed)).sum()
    }
}

/// The stripe of the calling thread.
#[inline]
fn stripe() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static STRIPE: usize = NEXT.fetch_add(1, Ordering::Relaxed) % STRIPES;
    }
    STRIPE.with(|&s| s)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Counts from many threads add up.
    #[test]
    fn counts_from_all_threads_add_up() {
        let statistics = Statistics::default();
        std::thread::scope(|scope| {
            for _ in 0..16 {
                scope.spawn(|| (0..100).for_each(|_| statistics.add(Counter::Gets, 2)));
            }
        });
        assert_eq!(statistics.get(Counter::Gets), 3200);
        assert_eq!(statistics.get(Counter::Seeks), 0);
    }
}
