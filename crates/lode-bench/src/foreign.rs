//! What RocksDB's db_bench has and `lode bench` has not: flags and benchmarks
//! are refused with the reason, so that a command line written for db_bench
//! never measures something else than it says.

/// A part of RocksDB's that Lodestore does not have.
struct Absent {
    /// Why.
    reason: &'static str,
    /// Flags: whole names, or beginnings with a `*`.
    flags: &'static [&'static str],
    /// Benchmarks.
    benchmarks: &'static [&'static str],
}

const ABSENT: &[Absent] = &[
    Absent {
        reason: "Lodestore has no transactions",
        flags: &["optimistic_transaction_db", "transaction_*"],
        benchmarks: &["randomtransaction"],
    },
    Absent {
        reason: "Lodestore makes checkpoints ('lode db checkpoint'), no backups",
        flags: &["backup_*", "restore_*"],
        benchmarks: &["backup", "restore"],
    },
    Absent {
        reason: "Lodestore compacts by levels only",
        flags: &["compaction_style", "compaction_pri", "universal_*", "fifo_*"],
        benchmarks: &["openandcompact"],
    },
    Absent {
        reason: "Lodestore keeps values beside their keys",
        flags: &[
            "use_blob_db",
            "blob_*",
            "enable_blob_*",
            "min_blob_size",
            "prepopulate_blob_cache",
            "use_blob_cache",
            "charge_blob_cache",
            "read_triggered_compaction_threshold",
        ],
        benchmarks: &["fillembeddedblob"],
    },
    Absent {
        reason: "values are bytes, not columns",
        flags: &["num_short_wide_columns"],
        benchmarks: &["fillembeddedentity", "readrandomentity", "multireadentity"],
    },
    Absent {
        reason: "a run has one database with one family",
        flags: &[
            "num_multi_db",
            "num_column_families",
            "num_hot_column_families",
            "column_family_*",
        ],
        benchmarks: &[],
    },
    Absent {
        reason: "the other database must be open in one process only",
        flags: &[
            "use_secondary_db",
            "secondary_path",
            "secondary_update_interval",
            "open_as_follower",
            "leader_path",
            "readonly",
        ],
        benchmarks: &[],
    },
    Absent {
        reason: "there is one memtable, one table format and one kind of index",
        flags: &[
            "memtablerep",
            "hash_bucket_count",
            "skip_list_lookahead",
            "use_plain_table",
            "use_cuckoo_table",
            "cuckoo_hash_ratio",
            "use_hash_search",
            "use_trie_index",
            "index_block_search_type",
            "index_with_first_key",
            "partition_index*",
            "metadata_block_size",
            "format_version",
            "checksum_type",
            "block_restart_interval",
            "use_data_block_hash_index",
            "data_block_hash_table_util_ratio",
            "separate_key_value_in_data_block",
            "use_ribbon_filter",
            "memtable_*",
            "experimental_mempurge_threshold",
            "inplace_update_*",
            "arena_block_size",
            "bloom_locality",
            "whole_key_filtering",
            "prefix_size",
            "keys_per_prefix",
            "total_order_seek",
            "prefix_same_as_start",
            "auto_prefix_mode",
        ],
        benchmarks: &["approximatememtablestats"],
    },
    Absent {
        reason: "there is one block cache, its number of shards is the engine's",
        flags: &[
            "cache_numshardbits",
            "cache_type",
            "cache_*pool_ratio",
            "cache_high_pri_pool_ratio",
            "cache_low_pri_pool_ratio",
            "cache_index_and_filter_blocks",
            "cache_uri",
            "simcache_size",
            "row_cache_size",
            "compressed_*",
            "use_compressed_secondary_cache",
            "secondary_cache_uri",
            "use_tiered_cache",
            "read_cache_*",
            "pin_l0_*",
            "prepopulate_block_cache",
            "table_cache_numshardbits",
            "use_cache_*",
            "uncache_aggressiveness",
        ],
        benchmarks: &["readtocache", "readtorowcache"],
    },
    Absent {
        reason: "files are read and written through the page cache",
        flags: &[
            "use_direct_*",
            "mmap_read",
            "mmap_write",
            "io_uring_enabled",
            "async_io",
            "adaptive_readahead",
            "auto_readahead_size",
            "readahead_size",
            "compaction_readahead_size",
            "log_readahead_size",
            "advise_random_on_open",
            "bytes_per_sync",
            "wal_bytes_per_sync",
            "use_fsync",
            "writable_file_max_buffer_size",
            "env_uri",
            "fs_uri",
            "simulate_*",
            "multiread_batched",
            "optimize_multiget_for_io",
        ],
        benchmarks: &["readrandomcoroutine", "multireadrandomcoroutine"],
    },
    Absent {
        reason: "Lodestore keeps no traces",
        flags: &["trace_*", "block_cache_trace_*"],
        benchmarks: &["replay"],
    },
    Absent {
        reason: "there are no timestamps beside keys",
        flags: &["user_timestamp_size", "read_with_latest_user_timestamp"],
        benchmarks: &[],
    },
    Absent {
        reason: "the program's own memtable, log and level options are not open to flags yet",
        flags: &[
            "max_write_buffer_number",
            "min_write_buffer_number_to_merge",
            "max_write_buffer_size_to_maintain",
            "db_write_buffer_size",
            "num_levels",
            "target_file_size_multiplier",
            "max_bytes_for_level_*",
            "level0_*",
            "level_compaction_dynamic_level_bytes",
            "max_total_wal_size",
            "wal_*",
            "manual_wal_flush",
            "subcompactions",
            "rate_limiter_*",
            "rate_limit_*",
            "soft_pending_*",
            "hard_pending_*",
            "delayed_write_rate",
            "max_compaction_bytes",
            "disable_auto_compactions",
            "cost_write_buffer_to_cache",
            "ttl_seconds",
            "periodic_compaction_seconds",
            "enable_pipelined_write",
            "allow_concurrent_memtable_write",
            "min_level_to_compress",
            "compression_max_dict_bytes",
            "compression_zstd_max_train_bytes",
        ],
        benchmarks: &[],
    },
    Absent {
        reason: "use --stats_interval_seconds: statistics are printed by time, not by operations",
        flags: &["stats_interval", "thread_status_per_interval"],
        benchmarks: &[],
    },
    Absent {
        reason: "it does nothing in db_bench either; use --reads",
        flags: &["mix_accesses"],
        benchmarks: &[],
    },
    Absent {
        reason: "use --background_threads or --max_background_jobs; one thread more flushes",
        flags: &[
            "max_background_compactions",
            "max_background_flushes",
            "num_*_pri_threads",
            "num_bottom_pri_threads",
            "num_high_pri_threads",
            "num_low_pri_threads",
        ],
        benchmarks: &[],
    },
    Absent { reason: "use --max_file_size", flags: &["target_file_size_base"], benchmarks: &[] },
];

/// Names of db_bench's that are in no group, so that they are known, too.
const OTHER_BENCHMARKS: &[&str] = &[
    "acquireload",
    "appendrandom",
    "approximatesizerandom",
    "compact0",
    "compact1",
    "compactall",
    "compress",
    "compressreject",
    "fillanddeleteuniquerandom",
    "fillseekseq",
    "fillseqdeterministic",
    "filluniquerandomdeterministic",
    "getmergeoperands",
    "heapprofile",
    "ingestexternalfile",
    "memstats",
    "multiscan",
    "multiscanrandom",
    "newiterator",
    "newiteratorwhilewriting",
    "randomreplacekeys",
    "randomwithverify",
    "readrandomfast",
    "readrandommergerandom",
    "readrandomoperands",
    "readwhilemerging",
    "resetstats",
    "seekrandomwhilemerging",
    "uncompress",
    "verify",
    "verifyfilechecksums",
    "xorupdaterandom",
    "xxh3",
    "xxhash",
    "xxhash64",
];

/// Why a flag of db_bench's, without its dashes, is refused; `None` if it is
/// none that is known.
pub fn flag(name: &str) -> Option<&'static str> {
    let matches = |pattern: &&str| match pattern.strip_suffix('*') {
        Some(beginning) => name.starts_with(beginning),
        None => name == *pattern,
    };
    ABSENT.iter().find(|absent| absent.flags.iter().any(|f| matches(f))).map(|absent| absent.reason)
}

/// Why a benchmark of db_bench's is refused; `None` if it is none.
pub fn benchmark(name: &str) -> Option<&'static str> {
    if OTHER_BENCHMARKS.contains(&name) {
        return Some("lode bench does not have it");
    }
    ABSENT.iter().find(|absent| absent.benchmarks.contains(&name)).map(|absent| absent.reason)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Nothing is refused that is there.
    #[test]
    fn what_is_there_is_not_refused() {
        for workload in crate::catalogue::all() {
            assert_eq!(benchmark(workload.name), None, "{}", workload.name);
        }
    }

    /// Whole names and beginnings are found, others are not.
    #[test]
    fn names_and_beginnings_are_found() {
        assert!(flag("compaction_style").is_some_and(|reason| reason.contains("levels")));
        assert!(flag("blob_file_size").is_some_and(|reason| reason.contains("beside their keys")));
        assert!(flag("compaction_stylo").is_none() && flag("num").is_none());
    }
}
