//! Flags as they are typed: LevelDB's `db_bench` names and meanings first,
//! then those that its users missed. `settings` checks them.

use std::path::PathBuf;

use lodestore::Compression;

use crate::keys::KeyFormat;
use crate::numbers::{
    OrDefault, parse_bytes, parse_bytes_or_default, parse_count, parse_count_or_default,
    parse_switch,
};

/// The benchmarks that run without `--benchmarks`: about a minute with a
/// million entries on two cores.
pub const BENCHMARKS_DEFAULT: &str = "fillseq,fillbatch,fillsync,fill100K,fillrandom,overwrite,\
    readrandom,readmissing,readhot,readseq,readreverse,seekrandom,compact,readrandom,readmissing,\
    readseq,readreverse,seekrandom,readwhilewriting,deleterandom";

/// Flags of `lode bench`. Both `--num=10` and `--num 10` are understood.
/// Counts may end in K, M or G (thousands), sizes in K, M or G (1,024s).
/// Where -1 is the default, the engine's own default is taken.
#[derive(Clone, Debug, clap::Args)]
#[command(rename_all = "snake_case")]
pub struct Flags {
    /// Benchmarks to run, in this order, separated by commas (see the list below)
    #[arg(long, default_value = BENCHMARKS_DEFAULT, value_name = "LIST", hide_default_value = true)]
    pub benchmarks: String,

    /// Entries in the database: keys are made of the numbers below this
    #[arg(long, default_value = "1000000", value_parser = parse_count, value_name = "N")]
    pub num: u64,

    /// Reads of each thread of a read benchmark; -1 = num
    #[arg(long, default_value = "-1", value_parser = parse_count_or_default, value_name = "N", allow_negative_numbers = true)]
    pub reads: OrDefault,

    /// Writes of each thread of a write benchmark; -1 = num
    #[arg(long, default_value = "-1", value_parser = parse_count_or_default, value_name = "N", allow_negative_numbers = true)]
    pub writes: OrDefault,

    /// Threads that run each benchmark at the same time
    #[arg(long, default_value = "1", value_parser = parse_count, value_name = "N")]
    pub threads: u64,

    /// Run each benchmark for this many seconds instead of a number of operations; 0 = off
    #[arg(long, default_value_t = 0.0, value_name = "SECONDS")]
    pub duration: f64,

    /// Bytes of each value
    #[arg(long, default_value = "100", value_parser = parse_bytes, value_name = "BYTES")]
    pub value_size: u64,

    /// Bytes of each key, without --key_prefix
    #[arg(long, default_value = "16", value_parser = parse_bytes, value_name = "BYTES")]
    pub key_size: u64,

    /// Bytes of the letter a before each key
    #[arg(long, default_value = "0", value_parser = parse_bytes, value_name = "BYTES")]
    pub key_prefix: u64,

    /// How a number becomes a key: leveldb (decimal digits) or rocksdb (eight bytes, then digits 0)
    #[arg(long, value_enum, hide_possible_values = true, default_value_t = KeyFormat::Leveldb, value_name = "FORMAT")]
    pub key_format: KeyFormat,

    /// Fraction to which values can be compressed
    #[arg(long, default_value_t = 0.5, value_name = "FRACTION")]
    pub compression_ratio: f64,

    /// Codec of table blocks: 0 or none, 1 or snappy (LevelDB's), lz4, zstd, zstd:LEVEL
    #[arg(long, visible_alias = "compression_type", default_value = "lz4", value_parser = parse_compression, value_name = "CODEC")]
    pub compression: Codec,

    /// Entries written at once; -1 = 1, and 1,000 for fillbatch
    #[arg(long, default_value = "-1", value_parser = parse_count_or_default, value_name = "N", allow_negative_numbers = true)]
    pub batch_size: OrDefault,

    /// Make every write durable before it is acknowledged
    #[arg(long, num_args = 0..=1, default_value = "0", default_missing_value = "1", value_parser = parse_switch, value_name = "0|1", action = clap::ArgAction::Set)]
    pub sync: bool,

    /// First of the random numbers is drawn from this plus 1
    #[arg(long, default_value_t = crate::random::SEED_BASE, value_name = "N")]
    pub seed: u64,

    /// Directory of the database [default: a temporary one, removed at the end]
    #[arg(long, value_name = "DIR")]
    pub db: Option<PathBuf>,

    /// Keep the database that is there; benchmarks that need an empty one are skipped
    #[arg(long, num_args = 0..=1, default_value = "0", default_missing_value = "1", value_parser = parse_switch, value_name = "0|1", action = clap::ArgAction::Set)]
    pub use_existing_db: bool,

    /// Has no effect: Lodestore always recycles the segments of its log
    #[arg(long, num_args = 0..=1, default_value = "0", default_missing_value = "1", value_parser = parse_switch, value_name = "0|1", action = clap::ArgAction::Set)]
    pub reuse_logs: bool,

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

    /// Files that may be open for reading; 0 = as many as the process may open
    #[arg(long, default_value = "0", value_parser = parse_count, value_name = "N")]
    pub open_files: u64,

    /// One limit on memtables, cache, indexes, filters and buffers; the cache gets what the others leave
    #[arg(long, default_value = "-1", value_parser = parse_bytes_or_default, value_name = "BYTES", allow_negative_numbers = true)]
    pub memory_budget: OrDefault,

    /// Bits of the filter for each key; 0 = no filter
    #[arg(long, default_value = "-1", value_parser = parse_count_or_default, value_name = "BITS", allow_negative_numbers = true)]
    pub bloom_bits: OrDefault,

    /// Threads for compactions
    #[arg(long, default_value = "-1", value_parser = parse_count_or_default, value_name = "N", allow_negative_numbers = true)]
    pub background_threads: OrDefault,

    /// Time every operation, and print percentiles and a picture after each line
    #[arg(long, num_args = 0..=1, default_value = "0", default_missing_value = "1", value_parser = parse_switch, value_name = "0|1", action = clap::ArgAction::Set)]
    pub histogram: bool,

    /// Count comparisons of keys, through a comparator of one's own (slower than the built-in order)
    #[arg(long, num_args = 0..=1, default_value = "0", default_missing_value = "1", value_parser = parse_switch, value_name = "0|1", action = clap::ArgAction::Set)]
    pub comparisons: bool,

    /// Print the engine's counters at the end
    #[arg(long, num_args = 0..=1, default_value = "0", default_missing_value = "1", value_parser = parse_switch, value_name = "0|1", action = clap::ArgAction::Set)]
    pub statistics: bool,

    /// Print one JSON document on standard output at the end, and the lines on standard error
    #[arg(long, num_args = 0..=1, default_value = "0", default_missing_value = "1", value_parser = parse_switch, value_name = "0|1", action = clap::ArgAction::Set)]
    pub json: bool,

    /// Print the lines only: no header, progress or summary
    #[arg(long, num_args = 0..=1, default_value = "0", default_missing_value = "1", value_parser = parse_switch, value_name = "0|1", action = clap::ArgAction::Set)]
    pub quiet: bool,

    /// Show progress on standard error [default: if it is a terminal]
    #[arg(long, num_args = 0..=1, default_missing_value = "1", value_parser = parse_switch, value_name = "0|1", action = clap::ArgAction::Set)]
    pub progress: Option<bool>,
}

/// A codec with its name.
#[derive(Clone, Debug)]
pub struct Codec {
    /// As in `--compression`.
    pub name: String,
    /// For the engine's options.
    pub compression: Compression,
}

/// Reads `--compression`.
fn parse_compression(text: &str) -> Result<Codec, String> {
    let lower = text.to_ascii_lowercase();
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
    Ok(Codec { name: name.to_string(), compression })
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Debug, Parser)]
    #[command(no_binary_name = true)]
    struct Line {
        #[command(flatten)]
        flags: Flags,
    }

    fn flags(line: &str) -> Flags {
        Line::try_parse_from(line.split_whitespace()).expect(line).flags
    }

    /// A command line written for LevelDB's db_bench is understood as it is.
    #[test]
    fn command_lines_of_leveldb_are_understood() {
        let flags = flags(
            "--benchmarks=fillseq,readseq --num=10 --reads=-1 --threads=2 --value_size=7 \
             --compression_ratio=0.25 --compression=1 --histogram=1 --comparisons=0 \
             --write_buffer_size=4194304 --max_file_size=2097152 --block_size=4096 --key_prefix=3 \
             --cache_size=-1 --open_files=0 --bloom_bits=10 --use_existing_db=0 --reuse_logs=0 \
             --db=/tmp/x",
        );
        assert_eq!((flags.num, flags.reads, flags.threads), (10, OrDefault(None), 2));
        assert_eq!((flags.value_size, flags.key_prefix), (7, 3));
        assert_eq!(flags.compression.name, "snappy");
        assert!(flags.histogram && !flags.comparisons && !flags.use_existing_db);
        assert_eq!(flags.bloom_bits, OrDefault(Some(10)));
        assert_eq!(flags.write_buffer_size, OrDefault(Some(4 << 20)));
    }

    /// A space may stand for the equals sign, and a switch needs no value.
    #[test]
    fn spaces_and_bare_switches_are_understood() {
        let flags = flags("--num 10K --histogram --reads -1 --json --sync 0 --progress");
        assert_eq!(flags.num, 10_000);
        assert!(flags.histogram && flags.json && !flags.sync);
        assert_eq!(flags.progress, Some(true));
    }

    /// A mistyped flag gets the right one suggested.
    #[test]
    fn mistyped_flags_are_corrected() {
        let error = Line::try_parse_from(["--thread=2"]).expect_err("there is no such flag");
        assert!(error.to_string().contains("--threads"), "{error}");
    }

    /// Every codec of the engine can be named.
    #[test]
    fn codecs_are_named() {
        for (text, name) in
            [("0", "none"), ("Snappy", "snappy"), ("lz4", "lz4"), ("zstd:19", "zstd:19")]
        {
            assert_eq!(parse_compression(text).expect(text).name, name);
        }
        for wrong in ["2", "lz4:3", "zstd:x", ""] {
            assert!(parse_compression(wrong).is_err(), "{wrong} was taken for a codec");
        }
    }
}
