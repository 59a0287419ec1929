//! Every knob, its default and its validation. Only the modules below this one
//! see these types; those above take the few values that they need.

use std::collections::BTreeMap;

use crate::cache::Cache;
use crate::error::{Error, Result};
use crate::fs::{Fs, OsFs};
use crate::key::KeyOrder;
use crate::merge_operator::SharedMergeOperator;
use crate::scheduler::Scheduler;
use crate::stats::Statistics;
use crate::sync::Arc;
use crate::table::Compression;

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
    /// Threads, time and randomness; share one between databases to share
    /// their threads. Default: one of its own.
    pub scheduler: Option<Arc<Scheduler>>,
    /// Threads for compactions, if no scheduler is given.
    pub background_threads: usize,
    /// Block cache; share one between databases. Default: one of its own.
    pub cache: Option<Arc<Cache>>,
    /// Size of the block cache, if none is given.
    pub cache_bytes: usize,
    /// Counters; share them between databases to add them up.
    pub statistics: Option<Arc<Statistics>>,
    /// Keep a write-ahead log. Without one, a crash loses what was written
    /// since the last flush; flushes are then atomic across families.
    pub logging: bool,
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
            scheduler: None,
            background_threads: 2,
            cache: None,
            cache_bytes: 32 << 20,
            statistics: None,
            logging: true,
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
        self.family.validate()?;
        self.families.values().try_for_each(FamilyOptions::validate)
    }
}

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
    /// Sealed memtables that may wait for their flush before writers wait.
    pub sealed_memtables_max: usize,
    /// Data blocks are closed at this size, before compression.
    pub block_bytes: usize,
    /// How data blocks are compressed.
    pub compression: Compression,
    /// Filter bits for each key; 0 for no filter.
    pub filter_bits_per_key: u8,
    /// Compaction closes a table at this size.
    pub table_bytes: u64,
    /// Level-0 tables that start a compaction.
    pub level0_compaction_files: usize,
    /// Level-0 tables from which writers are slowed down, more with each.
    pub level0_slowdown_files: usize,
    /// Level-0 tables at which writers wait.
    pub level0_stop_files: usize,
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
            table_bytes: 64 << 20,
            level0_compaction_files: 4,
            level0_slowdown_files: 20,
            level0_stop_files: 36,
            level1_bytes: 256 << 20,
            level_multiplier: 10,
            tombstone_percent: 50,
            tombstone_age_seconds: 7 * 24 * 60 * 60,
        }
    }
}

impl FamilyOptions {
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
}
