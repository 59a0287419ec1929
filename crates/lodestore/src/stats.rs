//! Counters, by kind and by level: what the engine did, nearly free to keep.
//! The latencies beside them are in `latency`.
//!
//! A counter is a number in each of some stripes. A thread has a stripe to itself
//! for as long as it lives, and adds there without a locked instruction; threads
//! that find none left share some. These are the standard library's atomics in
//! every build, not the `sync` seam's: nothing may ever be decided by a counter, so
//! no interleaving of them matters.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::latency::{Histograms, Latency, Operation};

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
    /// Bytes of the batches that callers wrote: keys, values, and what tells them apart.
    UserBytesWritten => "write.user-bytes",
    /// Records (puts, deletes, merges) that callers wrote.
    RecordsWritten => "write.records",
    /// Commit groups: each is one append to the log.
    CommitGroups => "write.groups",
    /// Bytes by which the log grew: records with their headers and what fills them up.
    LogBytes => "log.bytes",
    /// Times that the log was made durable.
    LogSyncs => "log.syncs",
    /// Log segments that reused an older file.
    LogSegmentsRecycled => "log.segments-recycled",
    /// Segments of the log of which something was replayed at opening.
    SegmentsReplayed => "recovery.segments",
    /// Records that were replayed.
    RecordsReplayed => "recovery.records",
    /// Point lookups.
    Gets => "read.gets",
    /// Point lookups that found a value.
    GetsFound => "read.gets-found",
    /// Cursor seeks.
    Seeks => "read.seeks",
    /// Tables that a cursor did not look into: none of their keys has its prefix.
    PrefixTablesSkipped => "read.prefix-tables-skipped",
    /// Entries that cursors passed over one by one, as they were deleted,
    /// overwritten or too new, where there were many in a row.
    EntriesPassed => "read.entries-passed",
    /// Stretches of deleted keys that cursors passed over at once.
    GapsPassed => "read.gaps-passed",
    /// Such stretches that were remembered, or found to be longer.
    GapsRemembered => "read.gaps-remembered",
    /// Blocks of entries found in the cache.
    CacheHits => "cache.hits",
    /// Blocks of entries that had to be read.
    CacheMisses => "cache.misses",
    /// Parts of indexes found in the cache.
    CacheIndexHits => "cache.index-hits",
    /// Parts of indexes that had to be read.
    CacheIndexMisses => "cache.index-misses",
    /// Rows found in the row cache.
    RowHits => "cache.row-hits",
    /// Rows that were not there.
    RowMisses => "cache.row-misses",
    /// Parts of filters found in the cache.
    CacheFilterHits => "cache.filter-hits",
    /// Parts of filters that had to be read.
    CacheFilterMisses => "cache.filter-misses",
    /// Reads of tables' files for lookups and cursors; one may bring many blocks.
    BlockReads => "read.block-reads",
    /// Bytes that these brought.
    BlockBytesRead => "read.block-bytes",
    /// Tables passed over because the filter said that the key is absent.
    FilterUseful => "filter.useful",
    /// Tables looked into because the filter said that the key may be there.
    FilterPassed => "filter.passed",
    /// Those of them where the key then was absent.
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
    /// Tables that were ingested.
    TablesIngested => "ingest.tables",
    /// Their bytes.
    IngestBytes => "ingest.bytes",
    /// Those of them that were linked, not copied.
    TablesLinked => "ingest.tables-linked",
}

/// A bit for each stripe in the word that says which are owned.
const STRIPES: usize = 64;

#[derive(Debug)]
#[repr(align(128))]
struct Stripe([AtomicU64; Counter::ALL.len()]);

/// What flushes and compactions did with one level, over all families.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LevelTraffic {
    /// Bytes of its tables that compactions read.
    pub bytes_read: u64,
    /// Bytes of tables written to it, by flushes or compactions.
    pub bytes_written: u64,
    /// Bytes of tables that came from the level above without being rewritten.
    pub bytes_moved: u64,
}

/// Levels that are counted: as many as there are.
pub(crate) const LEVELS_COUNTED: usize = 7;

#[derive(Debug, Default)]
struct LevelCounters {
    bytes_read: AtomicU64,
    bytes_written: AtomicU64,
    bytes_moved: AtomicU64,
}

/// A set of counters and latencies. Several databases may share one.
#[derive(Debug)]
pub struct Statistics {
    stripes: [Stripe; STRIPES],
    levels: [LevelCounters; LEVELS_COUNTED],
    histograms: Histograms,
}

impl Default for Statistics {
    fn default() -> Statistics {
        let stripe = || Stripe(std::array::from_fn(|_| AtomicU64::new(0)));
        Statistics {
            stripes: std::array::from_fn(|_| stripe()),
            levels: Default::default(),
            histograms: Histograms::default(),
        }
    }
}

impl Statistics {
    /// Adds `amount` to `counter`.
    #[inline]
    pub(crate) fn add(&self, counter: Counter, amount: u64) {
        let count = |stripe: usize| &self.stripes[stripe].0[counter as usize];
        match stripe::own() {
            Some(own) => {
                // Nobody else writes here: a locked instruction would only wait for the
                // stores before it.
                let sum = count(own).load(Ordering::Relaxed).wrapping_add(amount);
                count(own).store(sum, Ordering::Relaxed);
            }
            None => {
                count(stripe::any()).fetch_add(amount, Ordering::Relaxed);
            }
        }
    }

    /// The counter's value now.
    pub fn get(&self, counter: Counter) -> u64 {
        self.stripes.iter().map(|s| s.0[counter as usize].load(Ordering::Relaxed)).sum()
    }

    /// Adds to what was done with a level.
    pub(crate) fn add_traffic(&self, level: usize, traffic: LevelTraffic) {
        let counters = &self.levels[level];
        counters.bytes_read.fetch_add(traffic.bytes_read, Ordering::Relaxed);
        counters.bytes_written.fetch_add(traffic.bytes_written, Ordering::Relaxed);
        counters.bytes_moved.fetch_add(traffic.bytes_moved, Ordering::Relaxed);
    }

    /// What was done with each level, from level 0 down.
    pub fn traffic(&self) -> Vec<LevelTraffic> {
        let now = |counters: &LevelCounters| LevelTraffic {
            bytes_read: counters.bytes_read.load(Ordering::Relaxed),
            bytes_written: counters.bytes_written.load(Ordering::Relaxed),
            bytes_moved: counters.bytes_moved.load(Ordering::Relaxed),
        };
        self.levels.iter().map(now).collect()
    }

    /// Adds to the latencies what began at `begin` and ends now.
    pub(crate) fn time_since(&self, operation: Operation, begin: Instant) {
        self.time(operation, begin.elapsed());
    }

    /// Adds to the latencies.
    pub(crate) fn time(&self, operation: Operation, time: Duration) {
        self.histograms.add(operation, stripe::any(), time);
    }

    /// How long operations of a kind have taken; see
    /// [`Operation::is_sampled`] for which of them count.
    pub fn latency(&self, operation: Operation) -> Latency {
        self.histograms.get(operation)
    }

    /// Everything at this moment, to take the difference to a later one.
    pub fn snapshot(&self) -> StatisticsSnapshot {
        StatisticsSnapshot {
            counters: Counter::ALL.iter().map(|&counter| self.get(counter)).collect(),
            traffic: self.traffic(),
            latencies: Operation::ALL.iter().map(|&of| self.latency(of)).collect(),
        }
    }
}

/// [`Statistics`] at one moment, or between two.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatisticsSnapshot {
    counters: Vec<u64>,
    traffic: Vec<LevelTraffic>,
    latencies: Vec<Latency>,
}

impl StatisticsSnapshot {
    /// A counter's value.
    pub fn get(&self, counter: Counter) -> u64 {
        self.counters[counter as usize]
    }

    /// What was done with each level, from level 0 down.
    pub fn traffic(&self) -> &[LevelTraffic] {
        &self.traffic
    }

    /// How long operations took.
    pub fn latency(&self, operation: Operation) -> &Latency {
        &self.latencies[operation as usize]
    }

    /// What came since `earlier`, a snapshot of the same statistics.
    #[must_use]
    pub fn since(&self, earlier: &StatisticsSnapshot) -> StatisticsSnapshot {
        let counters = self.counters.iter().zip(&earlier.counters);
        let traffic = self.traffic.iter().zip(&earlier.traffic);
        let latencies = self.latencies.iter().zip(&earlier.latencies);
        StatisticsSnapshot {
            counters: counters.map(|(now, before)| now.saturating_sub(*before)).collect(),
            traffic: traffic.map(|(now, before)| now.since(before)).collect(),
            latencies: latencies.map(|(now, before)| now.since(before)).collect(),
        }
    }
}

impl LevelTraffic {
    fn since(&self, earlier: &LevelTraffic) -> LevelTraffic {
        LevelTraffic {
            bytes_read: self.bytes_read.saturating_sub(earlier.bytes_read),
            bytes_written: self.bytes_written.saturating_sub(earlier.bytes_written),
            bytes_moved: self.bytes_moved.saturating_sub(earlier.bytes_moved),
        }
    }
}

/// Which stripe a thread adds to.
mod stripe {
    use std::cell::Cell;
    use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

    use super::STRIPES;

    /// The first stripes belong to all threads that own none.
    const SHARED: usize = 8;
    /// One of these: that of a thread which is not known yet, or not any more.
    const UNKNOWN: usize = 0;

    /// A bit for each stripe that a thread owns, and for the shared ones.
    static TAKEN: AtomicU64 = AtomicU64::new((1 << SHARED) - 1);

    thread_local! {
        /// The thread's stripe.
        static STRIPE: Cell<usize> = const { Cell::new(UNKNOWN) };
        /// Keeps it until the thread ends.
        static HOME: Home = Home::take();
    }

    /// The stripe that the calling thread has to itself.
    #[inline]
    pub(super) fn own() -> Option<usize> {
        let stripe = STRIPE.get();
        (stripe >= SHARED).then_some(stripe % STRIPES)
    }

    /// The stripe of the calling thread, which may be one of its own from now on.
    #[inline]
    pub(super) fn any() -> usize {
        match STRIPE.get() {
            UNKNOWN => settle(),
            stripe => stripe,
        }
    }

    #[cold]
    fn settle() -> usize {
        // A thread that ends may count when its home is gone.
        let stripe = HOME.try_with(|home| home.0).unwrap_or(UNKNOWN);
        STRIPE.set(stripe);
        stripe
    }

    struct Home(usize);

    impl Home {
        fn take() -> Home {
            let taken = TAKEN.fetch_update(Ordering::Acquire, Ordering::Relaxed, |taken| {
                let free = taken.trailing_ones() as usize;
                (free < STRIPES).then(|| taken | 1 << free)
            });
            Home(taken.map_or_else(|_| shared(), |before| before.trailing_ones() as usize))
        }
    }

    impl Drop for Home {
        fn drop(&mut self) {
            STRIPE.set(UNKNOWN);
            if self.0 >= SHARED {
                // Released, for the next owner to see what was added.
                TAKEN.fetch_and(!(1 << self.0), Ordering::Release);
            }
        }
    }

    /// One of the shared stripes, in turn.
    fn shared() -> usize {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        UNKNOWN + 1 + NEXT.fetch_add(1, Ordering::Relaxed) % (SHARED - UNKNOWN - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Counts from many threads add up, of those that own a stripe, of those that own one
    /// after others, and of those that found none left.
    #[test]
    fn counts_from_all_threads_add_up() {
        const THREADS: usize = STRIPES + 16;
        const ROUNDS: usize = 3;
        let statistics = Statistics::default();
        for _ in 0..ROUNDS {
            let all_there = std::sync::Barrier::new(THREADS);
            let count = || {
                statistics.add(Counter::Gets, 1);
                all_there.wait();
                (0..100).for_each(|_| statistics.add(Counter::Gets, 2));
            };
            std::thread::scope(|scope| (0..THREADS).for_each(|_| drop(scope.spawn(count))));
        }
        assert_eq!(statistics.get(Counter::Gets), (ROUNDS * THREADS * 201) as u64);
        assert_eq!(statistics.get(Counter::Seeks), 0);
    }
}
