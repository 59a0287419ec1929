//! What a database says of itself: numbers for programs, tables for people.

use std::fmt::Write;

use crate::budget::Item;
use crate::cache::BlockKind;
use crate::compact::pick;
use crate::error::Result;
use crate::latency::Operation;
use crate::stats::{Counter, LevelTraffic, Statistics};
use crate::sync::Arc;
use crate::table::meta::TableFormat;
use crate::version::LEVELS;

use super::compaction::limits;
use super::engine::Engine;
use super::family::FamilyCore;
use super::stalls;
use super::view::View;

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
    /// The row cache, as large as it may become.
    pub rows: u64,
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

    fn items(&self) -> [(&'static str, u64); 9] {
        [
            ("memtables", self.memtables),
            ("sealed memtables", self.sealed_memtables),
            ("tables", self.tables),
            ("cursors", self.cursors),
            ("compactions", self.compactions),
            ("rows", self.rows),
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
    /// What flushes and compactions did with each level, from level 0 down.
    pub traffic: Vec<LevelTraffic>,
    /// How full each level of the family is, from level 0 down: from 1 on, it
    /// should be compacted. The last level is never too full: 0.
    pub scores: Vec<f64>,
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

/// What a property is computed from.
struct Asked<'a> {
    engine: &'a Engine,
    family: &'a Arc<FamilyCore>,
    stats: &'a Stats,
    view: &'a View,
}

type Property = (&'static str, fn(&Asked<'_>) -> String);

/// Every property that is not one of a level, without its prefix.
const PROPERTIES: &[Property] = &[
    ("stats", |asked| asked.engine.stats_text(asked.stats)),
    ("levels", |asked| levels_text(asked.stats)),
    ("tables", |asked| tables_text(asked.family)),
    ("traffic", |asked| traffic_text(&asked.stats.traffic)),
    ("latencies", |asked| latencies_text(&asked.engine.shared.statistics)),
    ("memory", |asked| memory_text(&asked.stats.memory)),
    ("stalls", |asked| stalls::table(&asked.engine.shared.statistics)),
    ("long-waits", |asked| asked.engine.stalls.text()),
    ("write-amplification", |asked| format!("{:.2}", asked.stats.write_amplification())),
    ("table-bytes", |asked| asked.view.version.bytes().to_string()),
    ("mapped-bytes", |asked| asked.engine.shared.home.mapped_bytes().to_string()),
    ("foreign-tables", |asked| foreign_tables(asked.view).to_string()),
    ("estimate-num-keys", |asked| {
        (asked.view.version.entries() + asked.stats.memtable_entries).to_string()
    }),
    ("approximate-memory-usage", |asked| asked.stats.memory.total().to_string()),
    ("cur-size-all-mem-tables", |asked| asked.stats.memtable_bytes.to_string()),
    ("num-immutable-mem-table", |asked| asked.view.sealed.len().to_string()),
    ("estimate-table-readers-mem", |asked| asked.stats.table_memory_bytes.to_string()),
    ("block-cache-usage", |asked| asked.stats.cache_bytes.to_string()),
    ("block-cache-capacity", |asked| asked.engine.shared.cache.capacity_bytes().to_string()),
    ("num-snapshots", |asked| asked.engine.shared.snapshots.count().to_string()),
    ("num-running-compactions", |asked| asked.engine.background.lock().compactions.to_string()),
    ("recovery", |asked| asked.engine.recovery.join("\n")),
    ("options", |asked| asked.engine.current_options().to_text()),
    ("options-failure", |asked| asked.engine.options_files.lock().failure()),
    ("background-errors", |asked| asked.engine.background_errors().len().to_string()),
    ("background-error", |asked| asked.engine.background_errors().join("\n")),
];

/// Tables that were adopted and are still in another program's format.
fn foreign_tables(view: &View) -> usize {
    let tables = view.version.levels().iter().flat_map(|level| level.tables().iter());
    tables.filter(|table| table.meta.format != TableFormat::Native).count()
}

/// Other names of some of them.
const ALIASES: &[(&str, &str)] =
    &[("levelstats", "levels"), ("sstables", "tables"), ("total-sst-files-size", "table-bytes")];

/// The names of all properties, with their prefix.
pub(crate) fn property_names() -> impl Iterator<Item = String> {
    let levels = (0..LEVELS).map(|level| format!("num-files-at-level{level}"));
    let names = PROPERTIES.iter().map(|(name, _)| name.to_string());
    names.chain(levels).map(|name| format!("lodestore.{name}"))
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
            traffic: self.shared.statistics.traffic(),
            scores: pick::scores(&view.version, &limits(family)).to_vec(),
        }
    }

    pub(crate) fn memory_stats(&self) -> MemoryStats {
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
            rows: used(Item::Rows),
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
        if let Some(level) = name.strip_prefix("num-files-at-level") {
            let level: usize = level.parse().ok()?;
            return self.stats(family).levels.get(level).map(|level| level.files.to_string());
        }
        let aliased = ALIASES.iter().find(|(alias, _)| *alias == name);
        let name = aliased.map_or(name, |(_, name)| name);
        let (_, value) = PROPERTIES.iter().find(|(known, _)| *known == name)?;
        let (stats, view) = (self.stats(family), family.views.keep());
        Some(value(&Asked { engine: self, family, stats: &stats, view: &view }))
    }

    /// What keeps writes or compactions from going on, in words.
    pub(crate) fn background_errors(&self) -> Vec<String> {
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
        if stats.user_bytes_written > 0 {
            line(&mut text, "write amplification", format!("{:.2}", stats.write_amplification()));
        }
        if stats.cache_hits + stats.cache_misses > 0 {
            line(&mut text, "cache hit rate", format!("{:.1} %", 100.0 * stats.cache_hit_rate()));
        }
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

fn traffic_text(traffic: &[LevelTraffic]) -> String {
    let mut text = String::from("level      bytes read   bytes written     bytes moved\n");
    for (number, level) in traffic.iter().enumerate() {
        let LevelTraffic { bytes_read, bytes_written, bytes_moved } = level;
        writeln!(text, "{number:>5} {bytes_read:>15} {bytes_written:>15} {bytes_moved:>15}")
            .expect("a string takes what is written");
    }
    text
}

/// In microseconds.
fn latencies_text(statistics: &Statistics) -> String {
    let names = ["samples", "mean", "p50", "p95", "p99", "p99.9", "longest us"];
    let mut text = names
        .iter()
        .fold(format!("{:<10}", "operation"), |text, name| text + &format!(" {name:>10}"));
    text.push('\n');
    for operation in Operation::ALL {
        let of = statistics.latency(operation);
        write!(text, "{:<10} {:>10}", operation.name(), of.samples())
            .expect("a string takes what is written");
        let percentiles = [50.0, 95.0, 99.0, 99.9].map(|percent| of.percentile(percent));
        for time in [of.mean()].into_iter().chain(percentiles).chain([of.max()]) {
            write!(text, " {:>10.1}", time.as_nanos() as f64 / 1000.0)
                .expect("a string takes what is written");
        }
        text.push('\n');
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
