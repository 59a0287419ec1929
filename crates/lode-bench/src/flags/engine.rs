//! Flags that become options of the engine.

use std::path::PathBuf;

use lodestore::Compression;

use crate::numbers::{
    OrDefault, parse_bytes, parse_bytes_or_default, parse_count, parse_count_or_default,
    parse_switch,
};

/// Flags that say what a file of options says. (A merge operator belongs to the
/// benchmark too, and goes before the file's.)
const OPTIONS_IN_FILE: &[&str] = &[
    "compression",
    "write_buffer_size",
    "max_file_size",
    "block_size",
    "cache_size",
    "row_cache_size",
    "bloom_bits",
    "optimize_filters_for_hits",
    "background_threads",
    "max_background_jobs",
    "disable_wal",
    "comparisons",
    "open_files",
    "memory_budget",
    "log_mapped",
    "use_direct_reads",
    "mmap_read",
    "latencies",
];

/// Where -1 is the default, the engine's own default is taken.
#[derive(Clone, Debug, clap::Args)]
#[command(rename_all = "snake_case", next_help_heading = "Engine")]
pub struct EngineFlags {
    /// Take the engine's options from this file instead of flags
    #[arg(long, value_name = "FILE", conflicts_with_all = OPTIONS_IN_FILE)]
    pub options_file: Option<PathBuf>,

    /// Codec of table blocks: 0 or none, 1 or snappy (LevelDB's), lz4, zstd, zstd:LEVEL
    #[arg(long, visible_alias = "compression_type", default_value = "lz4", value_parser = parse_compression, value_name = "CODEC")]
    pub compression: Codec,

    /// Level of zstd, also for zstdcomp and zstduncomp [default: 1]
    #[arg(
        long,
        visible_alias = "zstd_compression_level",
        value_name = "LEVEL",
        allow_negative_numbers = true
    )]
    pub compression_level: Option<i32>,

    /// Bytes of a memtable before it is flushed
    #[arg(long, default_value = "-1", value_parser = parse_bytes_or_default, value_name = "BYTES", allow_negative_numbers = true)]
    pub write_buffer_size: OrDefault,

    /// Bytes of a table before the next is begun
    #[arg(long, default_value = "-1", value_parser = parse_bytes_or_default, value_name = "BYTES", allow_negative_numbers = true)]
    pub max_file_size: OrDefault,

    /// Bytes of a table's block before compression
    #[arg(long, default_value = "-1", value_parser = parse_bytes_or_default, value_name = "BYTES", allow_negative_numbers = true)]
    pub block_size: OrDefault,

    /// Bytes of the cache of blocks
    #[arg(long, default_value = "-1", value_parser = parse_bytes_or_default, value_name = "BYTES", allow_negative_numbers = true)]
    pub cache_size: OrDefault,

    /// Bytes of the cache of single rows; 0 = none
    #[arg(long, default_value = "0", value_parser = parse_bytes, value_name = "BYTES")]
    pub row_cache_size: u64,

    /// Bits of the filter for each key; 0 = no filter
    #[arg(long, default_value = "-1", value_parser = parse_count_or_default, value_name = "BITS", allow_negative_numbers = true)]
    pub bloom_bits: OrDefault,

    /// No filters in the deepest level: for keys that nearly always exist
    #[arg(long, num_args = 0..=1, default_value = "0", default_missing_value = "1", value_parser = parse_switch, value_name = "0|1", action = clap::ArgAction::Set)]
    pub optimize_filters_for_hits: bool,

    /// Threads for compactions; one more flushes
    #[arg(long, default_value = "-1", value_parser = parse_count_or_default, value_name = "N", allow_negative_numbers = true)]
    pub background_threads: OrDefault,

    /// Threads for compactions and flushes together: one flushes, the others compact
    #[arg(long, default_value = "-1", value_parser = parse_count_or_default, value_name = "N", allow_negative_numbers = true, conflicts_with = "background_threads")]
    pub max_background_jobs: OrDefault,

    /// Keep no log: a crash loses what was written since the last flush
    #[arg(long, num_args = 0..=1, default_value = "0", default_missing_value = "1", value_parser = parse_switch, value_name = "0|1", action = clap::ArgAction::Set)]
    pub disable_wal: bool,

    /// What merges do: none, uint64add (8-byte values) or stringappend
    #[arg(long, value_enum, hide_possible_values = true, default_value_t = MergeChoice::None, value_name = "NAME")]
    pub merge_operator: MergeChoice,

    /// Count comparisons of keys, through a comparator of one's own (slower than the built-in order)
    #[arg(long, num_args = 0..=1, default_value = "0", default_missing_value = "1", value_parser = parse_switch, value_name = "0|1", action = clap::ArgAction::Set)]
    pub comparisons: bool,

    /// Files that may be open for reading; 0 = as many as the process may open
    #[arg(long, default_value = "0", value_parser = parse_count, value_name = "N")]
    pub open_files: u64,

    /// One limit on memtables, cache, indexes, filters and buffers; the cache gets what the others leave
    #[arg(long, default_value = "-1", value_parser = parse_bytes_or_default, value_name = "BYTES", allow_negative_numbers = true)]
    pub memory_budget: OrDefault,

    /// Write the log through a mapping, where the file system allows it; 0 = one write(2) a commit
    #[arg(long, num_args = 0..=1, default_value = "1", default_missing_value = "1", value_parser = parse_switch, value_name = "0|1", action = clap::ArgAction::Set)]
    pub log_mapped: bool,

    /// Read tables past the page cache, many blocks at once
    #[arg(long, num_args = 0..=1, default_value = "0", default_missing_value = "1", value_parser = parse_switch, value_name = "0|1", action = clap::ArgAction::Set)]
    pub use_direct_reads: bool,

    /// Map all tables, and read small blocks out of the mappings
    #[arg(long, num_args = 0..=1, default_value = "0", default_missing_value = "1", value_parser = parse_switch, value_name = "0|1", action = clap::ArgAction::Set)]
    pub mmap_read: bool,

    /// Let the engine time its operations, for its own statistics; 0 = it does not
    #[arg(long, num_args = 0..=1, default_value = "1", default_missing_value = "1", value_parser = parse_switch, value_name = "0|1", action = clap::ArgAction::Set)]
    pub latencies: bool,

    /// Tell lode top how the run is doing: a small file, written each second
    #[arg(long, num_args = 0..=1, default_value = "0", default_missing_value = "1", value_parser = parse_switch, value_name = "0|1", action = clap::ArgAction::Set)]
    pub status: bool,

    /// Has no effect: Lodestore always recycles the segments of its log
    #[arg(long, num_args = 0..=1, default_value = "0", default_missing_value = "1", value_parser = parse_switch, value_name = "0|1", action = clap::ArgAction::Set)]
    pub reuse_logs: bool,
}

/// A merge operator that is built in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum MergeChoice {
    /// None: nothing can be merged.
    #[default]
    None,
    /// Adds numbers of eight bytes.
    Uint64add,
    /// Appends, with a comma between.
    Stringappend,
}

/// A codec with its name.
#[derive(Clone, Debug)]
pub struct Codec {
    /// As in `--compression`.
    pub name: String,
    /// For the engine's options.
    pub compression: Compression,
    /// True if the name has a level.
    pub level_was_given: bool,
}

/// Reads `--compression`.
pub(super) fn parse_compression(text: &str) -> Result<Codec, String> {
    let lower = text.to_ascii_lowercase();
    let level_was_given = lower.contains(':');
    let (name, compression) = match lower.split_once(':') {
        Some(("zstd", level)) => {
            let level = level.parse().map_err(|_| format!("{level:?} is not a level of zstd"))?;
            (lower.as_str(), Compression::Zstd { level })
        }
        Some(_) => return Err("only zstd has a level, as in zstd:3".to_string()),
        None => match lower.as_str() {
            "0" | "none" => ("none", Compression::None),
            "1" | "snappy" => ("snappy", Compression::Snappy),
            "lz4" => ("lz4", Compression::Lz4),
            "zstd" => ("zstd:1", Compression::Zstd { level: 1 }),
            _ => {
                return Err(format!("{text:?} is none of none, snappy, lz4, zstd, zstd:LEVEL"));
            }
        },
    };
    Ok(Codec { name: name.to_string(), compression, level_was_given })
}
