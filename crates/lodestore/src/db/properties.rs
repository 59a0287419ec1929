//! What a database says of itself: numbers for programs, tables for people.

use std::fmt::Write;

use crate::budget::Item;
use crate::cache::BlockKind;
use crate::error::Result;
use crate::stats::Counter;
use crate::sync::Arc;

use super::engine::Engine;
use super::family::FamilyCore;
use super::stalls;

/// One level of a family.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LevelStats {
    /// Tables.
    pub files: usize,
    /// Their bytes on disk.
    pub bytes: u64,
    /// Entries in them, tombstones and older versions included.
    pub entries: u64,
}

/// What a database holds in memory, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryStats {
    /// The limit that it shares in, if there is one.
    pub bytes_max: Option<u64>,
    /// Memtables that take new entries.
    pub memtables: u64,
    /// Memtables that wait for their flush, or that cursors still need.
    pub sealed_memtables: u64,
    /// Indexes and filters of open tables, as far as they are not cached.
    pub tables: u64,
    /// Buffers of cursors.
    pub cursors: u64,
    /// Buffers of flushes and compactions.
    pub compactions: u64,
    /// Blocks of entries in the cache, of all databases that share it.
    pub cached_data: u64,
    /// Parts of indexes in the cache.
    pub cached_indexes: u64,
    /// Parts of filters in the cache.
    pub cached_filters: u64,
    /// What all databases hold that share the limit.
    pub shared: u64,
}

impl MemoryStats {
    /// All that this database and its cache hold.
    pub fn total(&self) -> u64 {
        self.items().iter().map(|(_, bytes)| bytes).sum()
    }

    fn items(&self) -> [(&'static str, u64); 8] {
        [
            ("memtables", self.memtables),
            ("sealed memtables", self.sealed_memtables),
            ("tables", self.tables),
            ("cursors", self.cursors),
            ("compactions", self.compactions),
            ("cached data", self.cached_data),
            ("cached indexes", self.cached_indexes),
            ("cached filters", self.cached_filters),
        ]
    }
}

/// Sizes and counts of a family, and what its database has done so far.
#[derive(Clone, Debug, Default)]
pub struct Stats {
    /// From level 0 down.
    pub levels: Vec<LevelStats>,
    /// Memory of the memtables.
    pub memtable_bytes: u64,
    /// Entries in the memtables.
    pub memtable_entries: u64,
    /// Memory of the indexes and filters of the tables that are open.
    pub table_memory_bytes: u64,
    /// Bytes of blocks in the cache, of all databases that share it.
    pub cache_bytes: u64,
    /// What the whole database holds in memory, itemised.
    pub memory: MemoryStats,
    /// Keys and values that callers wrote.
    pub user_bytes_written: u64,
    /// Appended to the log.
    pub log_bytes_written: u64,
    /// Tables that flushes wrote.
    pub flush_bytes_written: u64,
    /// Tables that compactions wrote.
    pub compaction_bytes_written: u64,
    /// Tables that compactions read.
    pub compaction_bytes_read: u64,
    /// Blocks found in the cache, and blocks that were read.
    pub cache_hits: u64,
    /// See `cache_hits`.
    pub cache_misses: u64,
    /// How long writers were held back, in microseconds.
    pub stall_micros: u64,
    /// Writes that were paced because background work was behind.
    pub slowdowns: u64,
    /// Writes that waited because background work was at a hard limit.
    pub stops: u64,
}

impl Stats {
    /// Bytes written to tables for each byte that callers wrote.
    pub fn write_amplification(&self) -> f64 {
        let written = self.flush_bytes_written + self.compaction_bytes_written;
        written as f64 / self.user_bytes_written.max(1) as f64
    }

    /// The part of block look-ups that the cache served.
    pub fn cache_hit_rate(&self) -> f64 {
        self.cache_hits as f64 / (self.cache_hits + self.cache_misses).max(1) as f64
    }

    /// Tables of all levels.
    pub fn files(&self) -> usize {
        self.levels.iter().map(|level| level.files).sum()
    }

    /// Bytes of the tables of all levels.
    pub fn table_bytes(&self) -> u64 {
        self.levels.iter().map(|level| level.bytes).sum()
    }
}

impl Engine {
    pub(crate) fn stats(&self, family: &FamilyCore) -> Stats {
        let view = family.views.keep();
        let levels = view.version.levels().iter().map(|level| LevelStats {
            files: level.tables().len(),
            bytes: level.tables().iter().map(|table| table.meta.bytes).sum(),
            entries: level.tables().iter().map(|table| table.meta.entries).sum(),
        });
        let memtables = || std::iter::once(&view.active).chain(&view.sealed);
        let count = |counter| self.shared.statistics.get(counter);
        let sum = |counters: &[Counter]| counters.iter().map(|&counter| count(counter)).sum();
        Stats {
            levels: levels.collect(),
            memtable_bytes: memtables().map(|table| table.memory_bytes() as u64).sum(),
            memtable_entries: memtables().map(|table| table.entries()).sum(),
            table_memory_bytes: view
                .version
                .tables()
                .filter_map(|file| Some(file.opened()?.memory_bytes() as u64))
                .sum(),
            cache_bytes: self.shared.cache.used_bytes() as u64,
            memory: self.memory_stats(),
            user_bytes_written: count(Counter::UserBytesWritten),
            log_bytes_written: count(Counter::LogBytes),
            flush_bytes_written: count(Counter::FlushBytes),
            compaction_bytes_written: count(Counter::CompactionBytesWritten),
            compaction_bytes_read: count(Counter::CompactionBytesRead),
            cache_hits: count(Counter::CacheHits),
            cache_misses: count(Counter::CacheMisses),
            stall_micros: sum(&[
                Counter::StallLevel0Micros,
                Counter::StallMemtableMicros,
                Counter::StallDebtMicros,
                Counter::StallMemoryMicros,
            ]),
            slowdowns: sum(&[
                Counter::SlowdownsLevel0,
                Counter::SlowdownsMemtable,
                Counter::SlowdownsDebt,
            ]),
            stops: sum(&[
                Counter::StopsLevel0,
                Counter::StopsMemtable,
                Counter::StopsDebt,
                Counter::StopsMemory,
            ]),
        }
    }

    fn memory_stats(&self) -> MemoryStats {
        let (memory, cache) = (&self.shared.memory, &self.shared.cache);
        let used = |item| memory.used(item) as u64;
        let cached = |kind| cache.used_bytes_of(kind) as u64;
        MemoryStats {
            bytes_max: memory.budget().bytes_max().map(|bytes| bytes as u64),
            memtables: used(Item::Memtables),
            sealed_memtables: used(Item::SealedMemtables),
            tables: used(Item::Tables),
            cursors: used(Item::Cursors),
            compactions: used(Item::Compactions),
            cached_data: cached(BlockKind::Data),
            cached_indexes: cached(BlockKind::Index),
            cached_filters: cached(BlockKind::Filter),
            shared: memory.budget().used_bytes() as u64,
        }
    }

    /// The property `name`, which may begin with `lodestore.`, or with
    /// `leveldb.` or `rocksdb.` where those have one of the same meaning.
    pub(crate) fn property(&self, family: &Arc<FamilyCore>, name: &str) -> Option<String> {
        let prefixes = ["lodestore.", "leveldb.", "rocksdb."];
        let name = prefixes.iter().find_map(|prefix| name.strip_prefix(prefix))?;
        let stats = self.stats(family);
        if let Some(level) = name.strip_prefix("num-files-at-level") {
            let level: usize = level.parse().ok()?;
            return stats.levels.get(level).map(|l| l.files.to_string());
        }
        let view = family.views.keep();
        let text = match name {
            "stats" => self.stats_text(&stats),
            "levels" | "levelstats" => levels_text(&stats),
            "sstables" | "tables" => tables_text(family),
            "memory" => memory_text(&stats.memory),
            "approximate-memory-usage" => stats.memory.total().to_string(),
            "cur-size-all-mem-tables" => stats.memtable_bytes.to_string(),
            "block-cache-usage" => stats.cache_bytes.to_string(),
            "block-cache-capacity" => self.shared.cache.capacity_bytes().to_string(),
            "estimate-num-keys" => (view.version.entries() + stats.memtable_entries).to_string(),
            "total-sst-files-size" | "table-bytes" => view.version.bytes().to_string(),
            "estimate-table-readers-mem" => stats.table_memory_bytes.to_string(),
            "num-immutable-mem-table" => view.sealed.len().to_string(),
            "recovery" => self.recovery.join("\n"),
            "options" => self.current_options().to_text(),
            "options-failure" => self.options_files.lock().failure(),
            "num-snapshots" => self.shared.snapshots.count().to_string(),
            "num-running-compactions" => self.background.lock().compactions.to_string(),
            "background-errors" => self.background_errors().len().to_string(),
            "background-error" => self.background_errors().join("\n"),
            "stalls" => stalls::table(&self.shared.statistics),
            "long-waits" => self.stalls.text(),
            "write-amplification" => format!("{:.2}", stats.write_amplification()),
            _ => return None,
        };
        Some(text)
    }

    /// What keeps writes or compactions from going on, in words.
    fn background_errors(&self) -> Vec<String> {
        let writing = self.health.check().err().map(|error| error.to_string());
        let state = self.background.lock();
        let flushes = state.retrying_flush.as_ref().map(|e| format!("flushes wait: {e}"));
        let compactions = state.compaction_failure().map(|e| format!("compactions stopped: {e}"));
        [writing, flushes, compactions].into_iter().flatten().collect()
    }

    fn stats_text(&self, stats: &Stats) -> String {
        let mut text = levels_text(stats);
        let line = |text: &mut String, name: &str, value: String| {
            writeln!(text, "{name:<28} {value}").expect("a string takes what is written");
        };
        line(&mut text, "write amplification", format!("{:.2}", stats.write_amplification()));
        line(&mut text, "cache hit rate", format!("{:.1} %", 100.0 * stats.cache_hit_rate()));
        for &counter in Counter::ALL {
            let value = self.shared.statistics.get(counter);
            if value > 0 {
                line(&mut text, counter.name(), value.to_string());
            }
        }
        text
    }
}

fn levels_text(stats: &Stats) -> String {
    let mut text = String::from("level     files           bytes         entries\n");
    for (number, level) in stats.levels.iter().enumerate() {
        let LevelStats { files, bytes, entries } = level;
        writeln!(text, "{number:>5} {files:>9} {bytes:>15} {entries:>15}")
            .expect("a string takes what is written");
    }
    text
}

fn memory_text(memory: &MemoryStats) -> String {
    let mut text = String::new();
    let mut line = |name: &str, bytes: u64| {
        writeln!(text, "{name:<18} {bytes:>15}").expect("a string takes what is written");
    };
    memory.items().into_iter().for_each(|(name, bytes)| line(name, bytes));
    line("total", memory.total());
    if let Some(bytes_max) = memory.bytes_max {
        line("limit", bytes_max);
        line("used of the limit", memory.shared);
    }
    text
}

fn tables_text(family: &FamilyCore) -> String {
    let mut text = String::new();
    for (number, level) in family.views.keep().version.levels().iter().enumerate() {
        for table in level.tables().iter() {
            let meta = &table.meta;
            // What is known of an open table only is not worth opening one.
            let codec = table.opened().map_or("-".to_string(), |table| table.codec_text());
            writeln!(
                text,
                "level {number} table {} bytes {} entries {} tombstones {} range-deletes {} \
                 codec {codec} [{:?} .. {:?}]",
                meta.number,
                meta.bytes,
                meta.entries,
                meta.tombstones,
                meta.range_tombstones,
                meta.smallest,
                meta.largest
            )
            .expect("a string takes what is written");
        }
    }
    text
}

impl FamilyCore {
    pub(crate) fn approximate_sizes(&self, ranges: &[(&[u8], &[u8])]) -> Result<Vec<u64>> {
        let view = self.views.keep();
        let context = self.context(true);
        let mut sizes = Vec::with_capacity(ranges.len());
        for (from, to) in ranges {
            let mut bytes = 0;
            for level in view.version.levels() {
                for file in level.tables().iter() {
                    let (smallest, largest) = (&file.meta.smallest, &file.meta.largest);
                    let is_outside = self.order().compare(&largest.user_key, from).is_lt()
                        || self.order().compare(&smallest.user_key, to).is_ge();
                    if !is_outside {
                        let table = file.table()?;
                        let start = table.approximate_offset(from, context)?;
                        bytes += table.approximate_offset(to, context)?.saturating_sub(start);
                    }
                }
            }
            sizes.push(bytes);
        }
        Ok(sizes)
    }
}
