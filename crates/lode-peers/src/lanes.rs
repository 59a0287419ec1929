//! The lanes: how every engine is set up. These tables are printed with every
//! run; nothing else decides a setting.

use serde::{Deserialize, Serialize};

use crate::engines::EngineKind;

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
/// Changes of a transaction where each is one: see the design note.
const TRANSACTION_CHANGES: u64 = 1_000;

/// Who is told what.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Lane {
    /// Everybody's defaults.
    Defaults,
    /// Equal memory, codec, filters, checksums, threads and durability.
    Equal,
    /// As equal, and tables are mapped by RocksDB and us as well as by LevelDB.
    Mapped,
    /// As equal, but the peers are tuned by their own guides.
    Tuned,
}

/// A codec of blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Codec {
    /// Snappy.
    Snappy,
    /// LZ4.
    Lz4,
}

/// Declares the settings once, for code and for people.
macro_rules! settings {
    ($($(#[doc = $doc:literal])* $name:ident: $kind:ty,)+) => {
        /// How an engine is set up. What is `None` is left to the engine.
        #[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
        pub struct Settings {
            $($(#[doc = $doc])* pub $name: Option<$kind>,)+
        }

        impl Settings {
            /// Every setting as text: its name, and its value if it has one.
            pub fn rows(&self) -> Vec<(String, Option<String>)> {
                vec![$((stringify!($name).to_string(), self.$name.as_ref().map(|value| value.text())),)+]
            }
        }
    };
}

settings! {
    /// Changes of a transaction where writes need not be single.
    batch_changes: u64,
    /// Size of a memtable.
    memtable_bytes: Bytes,
    /// Memtables that there may be, the one being filled included.
    memtables: u64,
    /// Size of the cache.
    cache_bytes: Bytes,
    /// Size of blocks before compression.
    block_bytes: Bytes,
    /// Size of tables.
    table_bytes: Bytes,
    /// How blocks are compressed.
    codec: Codec,
    /// Filter bits for each key.
    filter_bits: u64,
    /// Compare the checksums of what is read.
    verify_checksums: bool,
    /// Threads for flushes and compactions together.
    background_threads: u64,
    /// Files that may be open.
    open_files: u64,
    /// Read tables past the page cache.
    direct_reads: bool,
    /// Read tables out of mappings.
    mapped_tables: bool,
    /// Read indexes and filters when databases are opened and tables are made.
    preloaded_tables: bool,
    /// Use the files of old logs again.
    recycled_logs: u64,
    /// RocksDB's cache without locks, instead of its LRU.
    hyper_clock_cache: bool,
    /// RocksDB's hash index within blocks.
    block_hash_index: bool,
    /// RocksDB writes log and memtable in two stages.
    pipelined_writes: bool,
    /// RocksDB's lookups of many keys read many files at once.
    async_multi_get: bool,
    /// RocksDB's sizes of levels follow the last one.
    dynamic_levels: bool,
}

/// A size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Bytes(pub u64);

impl Bytes {
    /// For interfaces that count in `usize`.
    pub fn size(self) -> usize {
        self.0 as usize
    }
}

trait Text {
    fn text(&self) -> String;
}

impl Text for u64 {
    fn text(&self) -> String {
        self.to_string()
    }
}

impl Text for bool {
    fn text(&self) -> String {
        if *self { "yes" } else { "no" }.to_string()
    }
}

impl Text for Bytes {
    fn text(&self) -> String {
        lode_bench::bytes_text(self.0)
    }
}

impl Text for Codec {
    fn text(&self) -> String {
        match self {
            Codec::Snappy => "snappy",
            Codec::Lz4 => "lz4",
        }
        .to_string()
    }
}

impl Lane {
    /// The name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Lane::Defaults => "defaults",
            Lane::Equal => "equal",
            Lane::Mapped => "mapped",
            Lane::Tuned => "tuned",
        }
    }

    /// How `engine` is set up. `memory_limit` is that of its control group.
    pub fn settings(self, engine: EngineKind, memory_limit: Option<u64>) -> Settings {
        let own = match self {
            Lane::Defaults => Settings::default(),
            Lane::Equal => equal(engine, memory_limit),
            Lane::Mapped => mapped(engine, memory_limit),
            Lane::Tuned => tuned(engine, memory_limit),
        };
        let batch_changes = engine.is_transactional().then_some(TRANSACTION_CHANGES);
        Settings { batch_changes, ..own }
    }
}

/// Lane (b). Under a limit, memtables and cache have a part of it, and those that can
/// read past the page cache, which counts too.
fn equal(engine: EngineKind, memory_limit: Option<u64>) -> Settings {
    let memtable = memory_limit.map_or(64 * MIB, |limit| (limit / 16).min(64 * MIB));
    let cache = memory_limit.map_or(32 * MIB, |limit| limit / 4);
    let tree = Settings {
        memtable_bytes: Some(Bytes(memtable)),
        memtables: Some(2),
        cache_bytes: Some(Bytes(cache)),
        block_bytes: Some(Bytes(4 * KIB)),
        codec: Some(Codec::Snappy),
        filter_bits: Some(10),
        verify_checksums: Some(true),
        background_threads: Some(3),
        direct_reads: memory_limit.is_some().then_some(true),
        // RocksDB always does, but with fewer files open than it has; it matters
        // where reads begin cold.
        preloaded_tables: memory_limit.is_some().then_some(true),
        ..Settings::default()
    };
    match engine {
        EngineKind::Lodestore | EngineKind::LodestoreAgain | EngineKind::RocksDb => tree,
        // It has one thread and two memtables, and cannot be told otherwise.
        EngineKind::LevelDb => {
            let own = Settings { background_threads: None, memtables: None, ..tree };
            Settings { direct_reads: None, preloaded_tables: None, ..own }
        }
        // It has one codec, and always compares checksums.
        EngineKind::Fjall => {
            let own = Settings { codec: Some(Codec::Lz4), direct_reads: None, ..tree };
            Settings { verify_checksums: None, memtables: None, preloaded_tables: None, ..own }
        }
        // Its cache has what the others' memtables and caches have together.
        EngineKind::Redb => {
            Settings { cache_bytes: Some(Bytes(2 * memtable + cache)), ..Settings::default() }
        }
        // It has nothing but the page cache.
        EngineKind::Lmdb => Settings::default(),
    }
}

/// Lane (b) with one thing more that is equal: LevelDB maps its tables, so all
/// three do.
fn mapped(engine: EngineKind, memory_limit: Option<u64>) -> Settings {
    let base = equal(engine, memory_limit);
    match engine {
        EngineKind::Lodestore | EngineKind::LodestoreAgain | EngineKind::RocksDb => {
            Settings { mapped_tables: Some(true), direct_reads: None, ..base }
        }
        _ => base,
    }
}

/// Lane (c): RocksDB's Setup-Options-and-Basic-Tuning and its release notes,
/// LevelDB's doc/index.md. The others' guides have nothing beyond lane (b).
fn tuned(engine: EngineKind, memory_limit: Option<u64>) -> Settings {
    let base = equal(engine, memory_limit);
    match engine {
        EngineKind::RocksDb => Settings {
            memtables: Some(4),
            recycled_logs: Some(4),
            hyper_clock_cache: Some(true),
            block_hash_index: Some(true),
            pipelined_writes: Some(true),
            async_multi_get: Some(true),
            dynamic_levels: Some(true),
            ..base
        },
        EngineKind::LevelDb => {
            let memtable_bytes = base.memtable_bytes.map(|bytes| Bytes(2 * bytes.0));
            Settings {
                memtable_bytes,
                table_bytes: Some(Bytes(32 * MIB)),
                open_files: Some(11_000),
                ..base
            }
        }
        _ => base,
    }
}

/// What an engine does otherwise than the table says or the others do.
pub fn deviations(engine: EngineKind) -> &'static [&'static str] {
    match engine {
        EngineKind::Lodestore | EngineKind::LodestoreAgain => {
            &["has six filter bits more in tables above older ones, a tenth of its data or less"]
        }
        EngineKind::LevelDb => &[
            "has one background thread and two memtables",
            "has no call for many keys: multiget and pulseread look up one after the other",
            "maps its first 1,000 tables into memory",
            "is the system's library, built for any processor of this kind",
        ],
        EngineKind::RocksDb => &[],
        EngineKind::Fjall => &[
            "compresses with LZ4: it has no Snappy",
            "has no call for many keys: multiget and pulseread look up one after the other",
        ],
        EngineKind::Redb => &[
            "looks a key up, and writes one, in a transaction of its own",
            "has no codec, filters, memtables or background work",
            "keeps unsynced commits in memory until the next synced one: weaker than the others; it \
             syncs at the end of each workload that writes",
            "has no call for many keys: multiget and pulseread look up one after the other in one \
             transaction",
        ],
        EngineKind::Lmdb => &[
            "looks a key up, and writes one, in a transaction of its own; appends without MDB_APPEND",
            "has no codec, filters, checksums, cache, memtables or background work: it is a map of \
             its file, and the page cache is its cache",
            "commits with MDB_NOSYNC outside of fillsync; it syncs at the end of each workload that \
             writes",
            "has no call for many keys: multiget and pulseread look up one after the other in one \
             transaction",
        ],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The three log-structured engines of the targets have the same memory,
    /// codec, filters and checksums in lane (b), limit or not.
    #[test]
    fn equal_is_equal() {
        for limit in [None, Some(256 * MIB)] {
            let ours = Lane::Equal.settings(EngineKind::Lodestore, limit);
            assert_eq!(ours, Lane::Equal.settings(EngineKind::LodestoreAgain, limit));
            assert_eq!(ours, Lane::Equal.settings(EngineKind::RocksDb, limit));
            let leveldb = Lane::Equal.settings(EngineKind::LevelDb, limit);
            let shared = |s: &Settings| {
                (s.memtable_bytes, s.cache_bytes, s.codec, s.filter_bits, s.verify_checksums)
            };
            assert_eq!(shared(&ours), shared(&leveldb));
        }
    }

    /// Tuning is for peers only; defaults set nothing but a transaction's size.
    #[test]
    fn ours_is_the_same_in_equal_and_tuned() {
        let ours = |lane: Lane| lane.settings(EngineKind::Lodestore, None);
        assert_eq!(ours(Lane::Equal), ours(Lane::Tuned));
        assert_ne!(
            Lane::Equal.settings(EngineKind::RocksDb, None),
            Lane::Tuned.settings(EngineKind::RocksDb, None)
        );
        assert!(ours(Lane::Defaults).rows().iter().all(|(_, value)| value.is_none()));
        let lmdb = Lane::Defaults.settings(EngineKind::Lmdb, None);
        assert_eq!(lmdb.rows()[0], ("batch_changes".to_string(), Some("1000".to_string())));
    }
}
