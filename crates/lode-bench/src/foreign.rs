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

// Lists of names are read better in a block than in a column.
#[rustfmt::skip]
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
            "use_blob_db", "blob_*", "enable_blob_*", "min_blob_size", "prepopulate_blob_cache",
            "use_blob_cache", "charge_blob_cache", "read_triggered_compaction_threshold",
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
        flags: &["num_multi_db", "num_column_families", "column_family_*"],
        benchmarks: &[],
    },
    Absent {
        reason: "a run opens one database, for writing",
        flags: &[
            "use_secondary_db", "secondary_path", "secondary_update_interval", "open_as_follower",
            "leader_path", "readonly",
        ],
        benchmarks: &[],
    },
    Absent {
        reason: "there is one memtable, one table format and one kind of index",
        flags: &[
            "memtablerep", "hash_bucket_count", "skip_list_lookahead", "use_plain_table",
            "use_cuckoo_table", "cuckoo_hash_ratio", "use_hash_search", "use_trie_index",
            "index_block_search_type", "index_with_first_key", "partition_index*",
            "metadata_block_size", "format_version", "checksum_type", "block_restart_interval",
            "use_data_block_hash_index", "data_block_hash_table_util_ratio",
            "separate_key_value_in_data_block", "use_ribbon_filter", "memtable_*",
            "experimental_mempurge_threshold", "inplace_update_*", "arena_block_size",
            "bloom_locality", "whole_key_filtering", "prefix_size", "keys_per_prefix",
            "total_order_seek", "prefix_same_as_start", "auto_prefix_mode",
        ],
        benchmarks: &["approximatememtablestats"],
    },
    Absent {
        reason: "there is one block cache, its number of shards is the engine's",
        flags: &[
            "cache_numshardbits", "cache_type", "cache_high_pri_pool_ratio",
            "cache_low_pri_pool_ratio", "cache_index_and_filter_blocks", "cache_uri",
            "simcache_size", "compressed_*", "use_compressed_secondary_cache",
            "secondary_cache_uri", "use_tiered_cache", "read_cache_*", "pin_l0_*",
            "prepopulate_block_cache", "table_cache_numshardbits", "use_cache_*",
            "uncache_aggressiveness",
        ],
        benchmarks: &["readtocache", "readtorowcache"],
    },
    Absent {
        reason: "files are written through the page cache; --use_direct_reads reads tables past it",
        flags: &[
            "use_direct_io_for_flush_and_compaction", "mmap_write",
            "io_uring_enabled", "async_io",
            "adaptive_readahead", "readahead_size", "compaction_readahead_size",
            "log_readahead_size", "advise_random_on_open", "bytes_per_sync", "wal_bytes_per_sync",
            "use_fsync", "writable_file_max_buffer_size", "env_uri", "fs_uri", "simulate_*",
            "multiread_batched", "optimize_multiget_for_io",
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
        reason: "lode bench leaves it to the engine's defaults",
        flags: &[
            "max_write_buffer_number", "min_write_buffer_number_to_merge",
            "max_write_buffer_size_to_maintain", "db_write_buffer_size", "num_levels",
            "target_file_size_multiplier", "max_bytes_for_level_*", "level0_*",
            "level_compaction_dynamic_level_bytes", "max_total_wal_size", "wal_*",
            "manual_wal_flush", "subcompactions", "rate_limiter_*", "rate_limit_*",
            "soft_pending_*", "hard_pending_*", "delayed_write_rate", "max_compaction_bytes",
            "disable_auto_compactions", "cost_write_buffer_to_cache", "ttl_seconds",
            "periodic_compaction_seconds", "enable_pipelined_write",
            "allow_concurrent_memtable_write", "min_level_to_compress",
            "compression_max_dict_bytes", "compression_zstd_max_train_bytes",
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
            "max_background_compactions", "max_background_flushes", "num_bottom_pri_threads",
            "num_high_pri_threads", "num_low_pri_threads",
        ],
        benchmarks: &[],
    },
    Absent {
        reason: "what is read is always checked",
        flags: &["verify_checksum", "paranoid_checks", "force_consistency_checks"],
        benchmarks: &[],
    },
    Absent { reason: "use --max_file_size", flags: &["target_file_size_base"], benchmarks: &[] },
];

/// Flags of db_bench's that are in no group, so that they are known, too.
#[rustfmt::skip]
const OTHER_FLAGS: &[&str] = &[
    "allow_data_in_errors", "async_wal_precreate", "avoid_flush_*", "bgwriter_num", "block_align",
    "block_protection_bytes_per_key", "build_info", "charge_*", "compression_manager",
    "compression_max_dict_buffer_bytes", "compression_parallel_threads",
    "compression_use_zstd_dict_trainer", "coro_jobs_per_thread",
    "delete_obsolete_files_period_micros", "deletepercent", "deletes", "disable_seek_compaction",
    "disposable_*", "dump_malloc_stats", "enable_*", "expand_range_tombstones",
    "explicit_snapshot", "file_checksum", "file_opening_threads", "finish_after_writes",
    "identity_as_first_hash", "ingest_external_file_*", "io_dispatcher_*", "max_manifest_*",
    "max_num_range_tombstones", "max_scan_distance", "max_successive_merges", "mergereadpercent",
    "min_tombstones_for_range_conversion", "multiscan_*", "numdistinct", "open_files_async",
    "openandcompact_*", "ops_between_duration_checks", "overwrite_*",
    "paranoid_memory_checks", "perf_level", "persist_stats_to_disk",
    "persistent_entries_value_size", "preserve_internal_time_seconds", "print_malloc_stats",
    "progress_reports", "range_tombstone_width", "read_amp_bytes_per_bit",
    "report_bg_io_stats", "report_file_operations", "report_open_timing",
    "same_value_percentage", "sample_for_compression", "seek_nexts_to_delete",
    "show_table_properties", "sine_write_rate", "skip_stats_update_on_db_open", "slow_usecs",
    "statistics_string", "stats_dump_period_sec", "stats_history_buffer_size", "stats_level",
    "stats_persist_period_sec", "stddev", "strict_max_successive_merges", "super_block_*",
    "track_and_verify_*", "truth_db", "uniform_cv_threshold", "use_adaptive_mutex",
    "use_existing_keys", "use_keep_filter", "use_multiscan", "use_single_deletes",
    "use_stderr_info_logger", "use_tailing_iterator", "use_uint64_comparator", "value_size_*",
    "verify_compression", "verify_manifest_content_on_close",
    "write_batch_protection_bytes_per_key", "write_thread_*", "writes_before_delete_range",
    "writes_per_range_tombstone",
];

const OTHER_REASON: &str = "lode bench does not have it";

/// Benchmarks of db_bench's that are in no group.
#[rustfmt::skip]
const OTHER_BENCHMARKS: &[&str] = &[
    "acquireload", "appendrandom", "approximatesizerandom", "compact0", "compact1", "compactall",
    "compress", "compressreject", "fillanddeleteuniquerandom", "fillseekseq",
    "fillseqdeterministic", "filluniquerandomdeterministic", "getmergeoperands", "heapprofile",
    "ingestexternalfile", "memstats", "multiscan", "multiscanrandom", "newiterator",
    "newiteratorwhilewriting", "randomreplacekeys", "randomwithverify", "readrandomfast",
    "readrandommergerandom", "readrandomoperands", "readwhilemerging", "resetstats",
    "seekrandomwhilemerging", "uncompress", "verify", "verifyfilechecksums", "xorupdaterandom",
    "xxh3", "xxhash", "xxhash64",
];

/// Why a flag of db_bench's, without its dashes, is refused; `None` if it is
/// none that is known.
pub fn flag(name: &str) -> Option<&'static str> {
    let matches = |pattern: &&str| match pattern.strip_suffix('*') {
        Some(beginning) => name.starts_with(beginning),
        None => name == *pattern,
    };
    let group = ABSENT.iter().find(|absent| absent.flags.iter().any(&matches));
    let other = || OTHER_FLAGS.iter().any(&matches).then_some(OTHER_REASON);
    group.map(|absent| absent.reason).or_else(other)
}

/// Why a benchmark of db_bench's is refused; `None` if it is none.
pub fn benchmark(name: &str) -> Option<&'static str> {
    let group = ABSENT.iter().find(|absent| absent.benchmarks.contains(&name));
    let other = || OTHER_BENCHMARKS.contains(&name).then_some(OTHER_REASON);
    group.map(|absent| absent.reason).or_else(other)
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
        assert_eq!(flag("slow_usecs"), Some(OTHER_REASON));
    }
}
