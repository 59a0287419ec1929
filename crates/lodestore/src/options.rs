//! Every knob, its default and its validation. Only the modules below this one
//! see these types; those above take the few values that they need.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::budget::{BUDGET_BYTES_MIN, Budget, Charge};
use crate::cache::Cache;
use crate::error::{Error, Result};
use crate::fs::{Fs, OsFs};
use crate::key::KeyOrder;
use crate::limiter::RateLimiter;
use crate::merge_operator::SharedMergeOperator;
use crate::scheduler::Scheduler;
use crate::stats::Statistics;
use crate::sync::Arc;
use crate::table::{Compression, TableSettings};

/// How a database is opened.
#[derive(Clone, Debug)]
pub struct Options {
    /// Create the database if there is none. Default: false, so that a
    /// mistyped path is an error and not an empty database.
    pub create_if_missing: bool,
    /// Refuse to open a database that exists.
    pub error_if_exists: bool,
    /// The file system. Default: the operating system's.
    pub fs: Arc<dyn Fs>,
    /// Files that may be open for reading at once; those not read for a while
    /// are closed and opened again when they are needed. Logs and files being
    /// written come on top. At least 1. Default: what the process may open (the
    /// soft limit is raised first, where that is allowed), less a reserve.
    pub open_files_max: Option<usize>,
    /// Threads, time and randomness; share one between databases to share
    /// their threads. Default: one of its own.
    pub scheduler: Option<Arc<Scheduler>>,
    /// Threads for compactions, if no scheduler is given.
    pub background_threads: usize,
    /// One limit on memtables, block cache, indexes, filters, cursors and
    /// buffers together, in bytes. The cache gets what the others leave;
    /// memtables are flushed early when they exceed their share, a half less a
    /// little, and writers wait then. At least 64 KiB. Default: none.
    pub memory_bytes: Option<usize>,
    /// Such a limit, shared between databases, in place of `memory_bytes`.
    pub budget: Option<Arc<Budget>>,
    /// What flushes and compactions may write to tables together, in bytes a
    /// second, if no limiter is given; 0 for as much as they can. It is the
    /// ceiling: where little is to be done, less is used.
    pub background_bytes_per_second: u64,
    /// The limit of background writes; share one between databases.
    pub rate_limiter: Option<Arc<RateLimiter>>,
    /// Block cache; share one between databases. Default: one of its own.
    /// Together with `budget` it must be [`Cache::within`] that.
    pub cache: Option<Arc<Cache>>,
    /// Size of the block cache, if none is given and there is no limit on memory.
    pub cache_bytes: usize,
    /// Size of a cache of single rows, for point reads that come back to keys
    /// whose neighbours are not read. Under a limit on memory it is taken out of
    /// that, and may be half of it at most. Default: 0, none.
    pub row_cache_bytes: usize,
    /// Counters; share them between databases to add them up.
    pub statistics: Option<Arc<Statistics>>,
    /// Time operations, see [`Operation`](crate::Operation). Costs a fraction of
    /// a percent; with `false` there are no latencies in the statistics.
    pub latencies: bool,
    /// Write what [`inspect::Status`](crate::inspect::Status) reads to a file in
    /// the directory so often, for `lode top` and the like: a thread and one
    /// small file, never synced. At least 10 ms. Default: never.
    pub status_interval: Option<Duration>,
    /// Keep a write-ahead log. Without one, a crash loses what was written
    /// since the last flush; flushes are then atomic across families.
    pub logging: bool,
    /// Write the log by copying into a shared mapping, where the file system
    /// is known never to fail that; a record then costs no system call. It
    /// outlives a killed process all the same. With `false`, one `write(2)` a
    /// commit group.
    pub log_mapped: bool,
    /// Flush families that hold old log segments back once the segments
    /// together, the one being written included, exceed this.
    pub log_bytes_max: u64,
    /// Options of every family that `families` does not name.
    pub family: FamilyOptions,
    /// Options of single families, by name.
    pub families: BTreeMap<String, FamilyOptions>,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            create_if_missing: false,
            error_if_exists: false,
            fs: Arc::new(OsFs::new()),
            open_files_max: None,
            scheduler: None,
            background_threads: 2,
            memory_bytes: None,
            budget: None,
            background_bytes_per_second: 0,
            rate_limiter: None,
            cache: None,
            cache_bytes: 32 << 20,
            row_cache_bytes: 0,
            statistics: None,
            latencies: true,
            status_interval: None,
            logging: true,
            log_mapped: true,
            log_bytes_max: 1 << 30,
            family: FamilyOptions::default(),
            families: BTreeMap::new(),
        }
    }
}

impl Options {
    /// The options of the family `name`.
    pub fn family_options(&self, name: &str) -> &FamilyOptions {
        self.families.get(name).unwrap_or(&self.family)
    }

    pub(crate) fn validate(&self) -> Result<()> {
        if self.open_files_max == Some(0) {
            return Err(Error::invalid("open_files_max is 0; it must be at least 1"));
        }
        if let Some(interval) = self.status_interval.filter(|i| *i < STATUS_INTERVAL_MIN) {
            let what = format!("status_interval is {interval:?}; it must be at least 10 ms");
            return Err(Error::invalid(what));
        }
        self.validate_memory()?;
        self.family.validate()?;
        self.families.values().try_for_each(FamilyOptions::validate)
    }

    fn validate_memory(&self) -> Result<()> {
        let limit = self.budget.as_ref().and_then(|budget| budget.bytes_max());
        let rows = self.row_cache_bytes;
        if let Some(limit) = limit.or(self.memory_bytes).filter(|&limit| rows > limit / 2) {
            return Err(Error::invalid(format!(
                "row_cache_bytes is {rows}; it may be half of the limit on memory, {limit}, at most"
            )));
        }
        let conflict = match (self.memory_bytes, &self.budget, &self.cache) {
            (Some(bytes), ..) if bytes < BUDGET_BYTES_MIN => {
                let what = format!("memory_bytes is {bytes}; it must be at least 65536");
                return Err(Error::invalid(what));
            }
            (Some(_), Some(_), _) => "memory_bytes and budget are two limits: give one",
            (Some(_), _, Some(_)) => {
                "memory_bytes makes a cache of its own: to share one, give budget and cache"
            }
            (None, Some(budget), Some(cache)) if !cache.is_within(budget) => {
                "cache is not within budget: make it by Cache::within"
            }
            _ => return Ok(()),
        };
        Err(Error::invalid(conflict))
    }
}

/// Less tells people nothing more.
const STATUS_INTERVAL_MIN: Duration = Duration::from_millis(10);

/// A memtable's arena holds 16 GiB; one batch may add 10 GiB to a full one.
const MEMTABLE_BYTES_MAX: usize = 4 << 30;

/// How one family keeps its entries.
#[derive(Clone, Debug)]
pub struct FamilyOptions {
    /// The order of keys. Must be the one that the family was created with.
    pub order: KeyOrder,
    /// How merged operands become values. Built-in operators are found by the
    /// stored name; one of your own must be given at every open.
    pub merge_operator: Option<SharedMergeOperator>,
    /// A memtable of this size is sealed and flushed. At most 4 GiB.
    pub memtable_bytes: usize,
    /// Sealed memtables of this family that may wait for their flush. While as
    /// many wait, its writers are paced by the room left in the active one.
    pub sealed_memtables_max: usize,
    /// Data blocks are closed at this size, before compression.
    pub block_bytes: usize,
    /// How data blocks are compressed.
    pub compression: Compression,
    /// Filter bits for each key; 0 for no filter.
    pub filter_bits_per_key: u8,
    /// Divide the index and the filter of a new table into partitions of this
    /// size, which are read and cached like blocks, if they are larger; only a
    /// small top stays in memory then. Default: 4096 under a limit on memory,
    /// else none are.
    pub partition_bytes: Option<usize>,
    /// Compaction closes a table at this size.
    pub table_bytes: u64,
    /// Level-0 tables that start a compaction.
    pub level0_compaction_files: usize,
    /// Level-0 tables beyond which writers are paced, slower with each.
    pub level0_slowdown_files: usize,
    /// Level-0 tables at which writers wait.
    pub level0_stop_files: usize,
    /// Bytes that compactions have yet to read and write beyond which writers
    /// are paced.
    pub debt_slowdown_bytes: u64,
    /// The same, at which writers wait.
    pub debt_stop_bytes: u64,
    /// Target size of the first level below level 0.
    pub level1_bytes: u64,
    /// How many times larger each further level is.
    pub level_multiplier: u32,
    /// Tables of which this part of the entries is tombstones are compacted
    /// also where no level is too large; so are tables with range deletes that
    /// would free much. 0 turns both off; at most 100.
    pub tombstone_percent: u8,
    /// Tables with tombstones that may be this many seconds old are compacted
    /// down to where tombstones go, at the next flush, compaction or open.
    /// 0: never because of their age.
    pub tombstone_age_seconds: u64,
}

impl Default for FamilyOptions {
    fn default() -> FamilyOptions {
        FamilyOptions {
            order: KeyOrder::Bytewise,
            merge_operator: None,
            memtable_bytes: 64 << 20,
            sealed_memtables_max: 2,
            block_bytes: 4096,
            compression: Compression::Lz4,
            filter_bits_per_key: 10,
            partition_bytes: None,
            table_bytes: 64 << 20,
            level0_compaction_files: 4,
            level0_slowdown_files: 20,
            level0_stop_files: 36,
            debt_slowdown_bytes: 64 << 30,
            debt_stop_bytes: 256 << 30,
            level1_bytes: 256 << 20,
            level_multiplier: 10,
            tombstone_percent: 50,
            tombstone_age_seconds: 7 * 24 * 60 * 60,
        }
    }
}

/// A partition is read where a block is: about as large as one.
const PARTITION_BYTES: usize = 4096;

impl FamilyOptions {
    /// How new tables of the family are built; `buffers` is what the builder's
    /// are charged to.
    pub(crate) fn table_settings(&self, has_memory_limit: bool, buffers: Charge) -> TableSettings {
        // With memory enough for everything, partitions only cost a lookup more.
        let default = if has_memory_limit { PARTITION_BYTES } else { usize::MAX };
        TableSettings {
            block_bytes: self.block_bytes,
            filter_bits_per_key: self.filter_bits_per_key,
            compression: self.compression,
            partition_bytes: self.partition_bytes.unwrap_or(default),
            order: self.order.clone(),
            buffers,
        }
    }

    pub(crate) fn validate(&self) -> Result<()> {
        let at_least = |name: &str, value: u64, least: u64| {
            if value >= least {
                return Ok(());
            }
            Err(Error::invalid(format!("{name} is {value}; it must be at least {least}")))
        };
        at_least("memtable_bytes", self.memtable_bytes as u64, 1 << 10)?;
        if self.memtable_bytes > MEMTABLE_BYTES_MAX {
            let bytes = self.memtable_bytes;
            let what = format!("memtable_bytes is {bytes}; at most {MEMTABLE_BYTES_MAX} work");
            return Err(Error::invalid(what));
        }
        at_least("sealed_memtables_max", self.sealed_memtables_max as u64, 1)?;
        at_least("block_bytes", self.block_bytes as u64, 64)?;
        at_least("partition_bytes", self.partition_bytes.map_or(64, |b| b as u64), 64)?;
        at_least("table_bytes", self.table_bytes, 1 << 10)?;
        at_least("level1_bytes", self.level1_bytes, 1 << 10)?;
        at_least("level_multiplier", u64::from(self.level_multiplier), 2)?;
        at_least("level0_compaction_files", self.level0_compaction_files as u64, 1)?;
        if self.tombstone_percent > 100 {
            let what = format!("tombstone_percent is {}; at most 100 work", self.tombstone_percent);
            return Err(Error::invalid(what));
        }
        let files =
            [self.level0_compaction_files, self.level0_slowdown_files, self.level0_stop_files];
        if !files.is_sorted() {
            return Err(Error::invalid(format!(
                "level0_compaction_files <= level0_slowdown_files <= level0_stop_files \
                 must hold; they are {files:?}"
            )));
        }
        let debts = [self.debt_slowdown_bytes, self.debt_stop_bytes];
        if !debts.is_sorted() {
            return Err(Error::invalid(format!(
                "debt_slowdown_bytes <= debt_stop_bytes must hold; they are {debts:?}"
            )));
        }
        Ok(())
    }
}

/// How a write is done.
#[derive(Clone, Copy, Debug, Default)]
pub struct WriteOptions {
    /// Return only when the write survives power loss. Without it, a write
    /// survives the end of the process, but power loss may take back the
    /// newest ones.
    pub sync: bool,
    /// Where background work is behind and the write would be held back, fail
    /// at once with [`Error::Stalled`] instead. Nothing is written then.
    pub no_slowdown: bool,
    /// How long the write may be held back, or wait for writers before it.
    /// Then it fails with [`Error::Stalled`], and nothing is written. Once its
    /// turn to be logged has come it goes through, however slow the log is.
    pub deadline: Option<Duration>,
}

impl WriteOptions {
    /// A write that survives power loss, and waits as long as it takes.
    pub const SYNCED: WriteOptions =
        WriteOptions { sync: true, no_slowdown: false, deadline: None };
}

/// How tables are ingested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IngestOptions {
    /// Take the files away from where they are: they are linked into the
    /// database where the file system can do that, else copied, and their old
    /// names are removed in the end. Nobody may write to them any more, and no
    /// other database may have them. Default: false; they are copied.
    pub move_files: bool,
    /// Read all of each table first, and check every checksum, the order of the
    /// entries and the counts. Default: true. Without it, damage is found when
    /// it is read.
    pub verify: bool,
}

impl Default for IngestOptions {
    fn default() -> IngestOptions {
        IngestOptions { move_files: false, verify: true }
    }
}
