//! Flags as they are typed: LevelDB's and RocksDB's `db_bench` names and
//! meanings first, then those that their users missed. `settings` checks them.

mod engine;
mod output;
mod single;

use std::path::PathBuf;

pub use engine::{Codec, EngineFlags, MergeChoice};
pub use output::OutputFlags;
pub use single::{ExpireStyle, MixFlags, SeriesFlags, SingleFlags};

use crate::keys::KeyFormat;
use crate::numbers::{OrDefault, parse_bytes, parse_count, parse_count_or_default, parse_switch};

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
    /// Benchmarks to run, in this order, separated by commas (see the list below);
    /// NAME[X5-W1] runs one five times, after one run to warm up
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

    /// Entries written or looked up at once; -1 = 1, and 1,000 for fillbatch
    #[arg(long, default_value = "-1", value_parser = parse_count_or_default, value_name = "N", allow_negative_numbers = true)]
    pub batch_size: OrDefault,

    /// Make every write durable before it is acknowledged
    #[arg(long, num_args = 0..=1, default_value = "0", default_missing_value = "1", value_parser = parse_switch, value_name = "0|1", action = clap::ArgAction::Set)]
    pub sync: bool,

    /// Bytes of keys and values that all threads together write in a second; 0 = no limit
    #[arg(long, default_value = "0", value_parser = parse_bytes, value_name = "BYTES")]
    pub benchmark_write_rate_limit: u64,

    /// Lookups and seeks that all threads together make in a second; 0 = no limit
    #[arg(long, default_value = "0", value_parser = parse_count, value_name = "N")]
    pub benchmark_read_rate_limit: u64,

    /// First of the random numbers is drawn from this plus 1
    #[arg(long, default_value_t = crate::random::SEED_BASE, value_name = "N")]
    pub seed: u64,

    /// Directory of the database [default: a temporary one, removed at the end]
    #[arg(long, value_name = "DIR")]
    pub db: Option<PathBuf>,

    /// Keep the database that is there; benchmarks that need an empty one are skipped
    #[arg(long, num_args = 0..=1, default_value = "0", default_missing_value = "1", value_parser = parse_switch, value_name = "0|1", action = clap::ArgAction::Set)]
    pub use_existing_db: bool,

    /// Keys and values.
    #[command(flatten)]
    pub data: DataFlags,

    /// For single benchmarks.
    #[command(flatten)]
    pub single: SingleFlags,

    /// For the engine.
    #[command(flatten)]
    pub engine: EngineFlags,

    /// What is printed and written.
    #[command(flatten)]
    pub output: OutputFlags,

    /// For `mixgraph`.
    #[command(flatten)]
    pub mix: MixFlags,

    /// For `timeseries`.
    #[command(flatten)]
    pub series: SeriesFlags,
}

/// How keys and values look.
#[derive(Clone, Debug, clap::Args)]
#[command(rename_all = "snake_case", next_help_heading = "Keys and values")]
pub struct DataFlags {
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
}

#[cfg(test)]
mod tests {
    use super::engine::parse_compression;
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
        assert_eq!((flags.data.value_size, flags.data.key_prefix), (7, 3));
        assert_eq!(flags.engine.compression.name, "snappy");
        assert!(flags.output.histogram && !flags.engine.comparisons && !flags.use_existing_db);
        assert_eq!(flags.engine.bloom_bits, OrDefault(Some(10)));
        assert_eq!(flags.engine.write_buffer_size, OrDefault(Some(4 << 20)));
    }

    /// A command line written for RocksDB's db_bench is understood as it is.
    #[test]
    fn command_lines_of_rocksdb_are_understood() {
        let flags = flags(
            "--benchmarks=mixgraph[X3] --key_size=48 --keyrange_dist_a=14.18 \
             --keyrange_dist_b=-2.917 --keyrange_num=30 --value_k=0.2615 --iter_sigma=14.236 \
             --mix_get_ratio=0.85 --mix_put_ratio=0.14 --mix_seek_ratio=0.01 \
             --sine_mix_rate_interval_milliseconds=5000 --sine_a=1000 --disable_wal=true \
             --compression_type=zstd --compression_level=3 --max_background_jobs=8 \
             --report_interval_seconds=1 --report_file=r.csv --duration=60 --seek_nexts=10 \
             --reverse_iterator --batch_size=100 --multiread_stride=10 --expire_style=delete",
        );
        assert_eq!((flags.mix.keyrange_dist_b, flags.mix.keyrange_num), (-2.917, 30));
        assert_eq!(flags.engine.compression_level, Some(3));
        assert!(flags.engine.disable_wal && flags.single.reverse_iterator);
        assert_eq!(flags.series.expire_style, ExpireStyle::Delete);
        assert_eq!(flags.output.report_file.as_deref(), Some("r.csv".as_ref()));
    }

    /// A space may stand for the equals sign, and a switch needs no value.
    #[test]
    fn spaces_and_bare_switches_are_understood() {
        let flags = flags("--num 10K --histogram --reads -1 --json --sync 0 --progress");
        assert_eq!(flags.num, 10_000);
        assert!(flags.output.histogram && flags.output.json && !flags.sync);
        assert_eq!(flags.output.progress, Some(true));
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
