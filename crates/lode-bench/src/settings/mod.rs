//! Flags, checked and turned into what a run needs.

mod checks;
mod engine;
mod shapes;
mod unused;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use lodestore::{Options, WriteOptions};

pub use engine::FAMILY;

use crate::error::BenchError;
use crate::flags::{Codec, Flags};
use crate::keys::KeyShape;
use crate::printer::Voice;
use crate::selection::{Selected, parse_list};
use crate::shapes::Shapes;
use crate::workload::{Amount, Workload};

/// Where rates go if no file is named: RocksDB's name.
const ROWS_FILE_DEFAULT: &str = "report.csv";

/// What a run does. Everything in here is possible.
#[derive(Clone)]
pub struct Settings {
    /// The benchmarks as they were typed.
    pub list: String,
    /// The benchmarks in their order.
    pub benchmarks: Vec<Selected>,
    /// Keys are made of the numbers below this.
    pub num: u64,
    /// Reads of a thread, before a benchmark divides them.
    pub reads: u64,
    /// Writes of a thread, before a benchmark divides them.
    pub writes: u64,
    /// Operations of a thread of a benchmark that reads and writes.
    pub reads_or_writes: u64,
    /// Threads of a benchmark.
    pub threads: u64,
    /// Time that ends a benchmark.
    pub duration: Option<Duration>,
    /// How keys look.
    pub keys: KeyShape,
    /// Bytes of a value.
    pub value_bytes: usize,
    /// How far values can be compressed.
    pub compression_ratio: f64,
    /// Entries written or looked up at once, if the flag was given.
    pub batch_entries: Option<u64>,
    /// True if all writes are durable.
    pub sync: bool,
    /// Bytes a second that may be written.
    pub write_rate_max: Option<f64>,
    /// Reads a second that may be made.
    pub read_rate_max: Option<f64>,
    /// Base of the threads' seeds.
    pub seed: u64,
    /// Where the database is; `None` for a temporary directory.
    pub directory: Option<PathBuf>,
    /// True if the database is not to be emptied.
    pub keep: bool,
    /// The file that these come from, if it is one.
    pub options_file: Option<PathBuf>,
    /// Options of the engine.
    pub engine: Options,
    /// The codec, with its name.
    pub codec: Codec,
    /// Counts comparisons, if that was asked for.
    pub comparisons: Option<Arc<AtomicU64>>,
    /// What single benchmarks are told.
    pub shapes: Shapes,
    /// True if operations are timed.
    pub timed: bool,
    /// What is printed.
    pub output: Output,
    /// What the user should know about the flags.
    pub notes: Vec<String>,
}

/// What is printed and written.
#[derive(Clone, Debug)]
pub struct Output {
    /// One JSON document on standard output; lines go to standard error.
    pub json: bool,
    /// Lines only.
    pub quiet: bool,
    /// Latencies after each line.
    pub histogram: bool,
    /// The engine's counters at the end.
    pub counters: bool,
    /// A line of progress on standard error.
    pub progress: bool,
    /// Where the page with plots goes.
    pub page: Option<PathBuf>,
    /// Rates are printed each time that so much has passed.
    pub rates_every: Option<Duration>,
    /// The engine's statistics follow them.
    pub statistics_with_rates: bool,
    /// Rows of the file with rates are written each time that so much has
    /// passed.
    pub rows_every: Option<Duration>,
    /// That file.
    pub rows_file: PathBuf,
    /// Repeats print their confidence interval only.
    pub interval_only: bool,
}

impl Output {
    /// What of it matters to a line of text.
    pub fn voice(&self) -> Voice {
        Voice { json: self.json, quiet: self.quiet, progress: self.progress }
    }
}

impl Settings {
    /// Checks `flags`.
    /// # Errors: `Usage` names the flag that cannot be obeyed, and what would do.
    pub fn new(flags: &Flags) -> Result<Settings, BenchError> {
        let benchmarks = parse_list(&flags.benchmarks)?;
        checks::ranges(flags)?;
        let keys = checks::key_shape(flags)?;
        checks::benchmarks(flags, &benchmarks)?;
        let shapes = shapes::of(flags)?;
        let comparisons = flags.engine.comparisons.then(Arc::<AtomicU64>::default);
        let (engine, codec) = engine::of(flags, comparisons.as_ref())?;
        let mut notes = notes(flags);
        notes.extend(unused::notes(flags, &benchmarks));
        let limit = |rate: u64| (rate > 0).then_some(rate as f64);
        let (reads, writes) = (flags.reads.0, flags.writes.0);
        // A wave needs paces; it sets their rates itself.
        let wave = shapes.mix.sine.map(|_| 1e6);
        Ok(Settings {
            list: flags.benchmarks.clone(),
            benchmarks,
            num: flags.num,
            reads: reads.unwrap_or(flags.num),
            writes: writes.unwrap_or(flags.num),
            reads_or_writes: reads.max(writes).unwrap_or(flags.num),
            threads: flags.threads,
            duration: (flags.duration > 0.0).then(|| Duration::from_secs_f64(flags.duration)),
            keys,
            value_bytes: flags.data.value_size as usize,
            compression_ratio: flags.data.compression_ratio,
            batch_entries: flags.batch_size.0,
            sync: flags.sync,
            write_rate_max: limit(flags.benchmark_write_rate_limit).or(wave),
            read_rate_max: limit(flags.benchmark_read_rate_limit).or(wave),
            seed: flags.seed,
            directory: flags.db.clone(),
            keep: flags.use_existing_db,
            options_file: flags.engine.options_file.clone(),
            engine,
            codec,
            comparisons,
            shapes,
            timed: flags.output.histogram || flags.output.report.is_some(),
            output: output(flags),
            notes,
        })
    }

    /// Operations of each thread of `workload`.
    pub fn ops(&self, workload: &Workload) -> u64 {
        match workload.amount {
            Amount::Writes(divisor) => (self.writes / divisor).max(1),
            Amount::Reads(divisor) => (self.reads / divisor).max(1),
            Amount::ReadsOrWrites => self.reads_or_writes,
            Amount::Opens(divisor) => (self.num / divisor).max(1),
            Amount::Fixed(ops) => ops,
            Amount::Once => 1,
        }
    }

    /// Threads of `workload` that are measured.
    pub fn threads(&self, workload: &Workload) -> u64 {
        if workload.is_once() || workload.single { 1 } else { self.threads }
    }

    /// How `workload` writes.
    pub fn write_options(&self, workload: &Workload) -> WriteOptions {
        WriteOptions { sync: self.sync || workload.sync, ..WriteOptions::default() }
    }

    /// The longest value of the run.
    pub fn value_bytes_max(&self) -> usize {
        let fixed = self.benchmarks.iter().filter_map(|b| b.workload.value_bytes);
        let mixed = self.shapes.mix.value_bytes_max as usize;
        fixed.chain([self.value_bytes, mixed]).max().unwrap_or(0)
    }
}

fn output(flags: &Flags) -> Output {
    let flags = &flags.output;
    let every = |seconds: u64| (seconds > 0).then(|| Duration::from_secs(seconds));
    Output {
        json: flags.json,
        quiet: flags.quiet,
        histogram: flags.histogram,
        counters: flags.statistics,
        progress: flags.progress.unwrap_or_else(|| stderr_is_terminal() && !flags.quiet),
        page: flags.report.clone(),
        rates_every: every(flags.stats_interval_seconds),
        statistics_with_rates: flags.stats_per_interval,
        rows_every: every(flags.report_interval_seconds),
        rows_file: flags.report_file.clone().unwrap_or_else(|| ROWS_FILE_DEFAULT.into()),
        interval_only: flags.confidence_interval_only,
    }
}

fn stderr_is_terminal() -> bool {
    std::io::IsTerminal::is_terminal(&std::io::stderr())
}

/// What a flag changes beside what it is for, and flags that are understood but
/// change nothing, are told of.
fn notes(flags: &Flags) -> Vec<String> {
    let mut notes = Vec::new();
    let mut note = |given: bool, text: &str| {
        if given {
            notes.push(text.to_string());
        }
    };
    note(
        flags.engine.reuse_logs,
        "--reuse_logs changes nothing: Lodestore always recycles the segments of its log",
    );
    note(
        flags.engine.comparisons,
        "--comparisons counts in a comparator of its own: expect slower lines than without",
    );
    note(
        flags.output.report.is_some() && !flags.output.histogram,
        "--report times every operation: expect slower lines than without",
    );
    note(
        flags.engine.disable_wal,
        "--disable_wal keeps no log: what is not flushed is lost when a benchmark reopens",
    );
    notes
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

    fn settings(line: &str) -> Result<Settings, BenchError> {
        Settings::new(&Line::try_parse_from(line.split_whitespace()).expect(line).flags)
    }

    fn refusal(line: &str) -> String {
        match settings(line) {
            Err(error) => error.to_string(),
            Ok(_) => panic!("{line} was accepted"),
        }
    }

    /// What cannot be obeyed is refused by the flag's name.
    #[test]
    fn impossible_flags_are_named() {
        for (line, flag) in [
            ("--num 0", "--num"),
            ("--threads 0", "--threads"),
            ("--key_size 0", "--key_size"),
            ("--key_size 5 --num 100001", "--key_size"),
            ("--compression_ratio 1.5", "--compression_ratio"),
            ("--batch_size 0", "--batch_size"),
            ("--use_existing_db", "--db"),
            ("--bloom_bits 256", "--bloom_bits"),
            ("--max_background_jobs 1", "--max_background_jobs"),
            ("--compression=zstd:3 --compression_level=4", "--compression_level"),
            ("--compression=zstd --compression_level=99", "--compression_level"),
            ("--disable_wal --sync", "--disable_wal"),
            ("--readwritepercent 101", "--readwritepercent"),
            ("--merge_keys 0", "--merge_keys"),
            ("--benchmarks mergerandom", "--merge_operator"),
            ("--benchmarks mergerandom --merge_operator uint64add", "--value_size"),
            ("--mix_get_ratio 0", "--mix_get_ratio"),
            ("--mix_put_ratio -1", "--mix_put_ratio"),
            ("--keyrange_num 0", "--keyrange_num"),
            ("--keyrange_dist_a inf", "--keyrange_dist_a"),
            ("--keyrange_num 2 --keyrange_dist_a -1", "--keyrange_dist_a"),
            ("--key_dist_a 1", "--key_dist_b"),
            ("--value_sigma 0", "--value_sigma"),
            ("--iter_k NaN", "--iter_k"),
            ("--sine_mix_rate_noise 2", "--sine_mix_rate_noise"),
            ("--sine_mix_rate --benchmark_write_rate_limit 7", "--sine_mix_rate"),
            ("--sine_mix_rate --benchmarks fillseq", "--sine_mix_rate"),
            ("--key_id_range 0", "--key_id_range"),
            ("--expire_style compaction_filter", "--expire_style"),
            ("--benchmarks timeseries --key_size 15", "--key_size"),
            ("--stats_per_interval", "--stats_interval_seconds"),
            ("--confidence_interval_only", "[X"),
            ("--report_file rates.csv", "--report_interval_seconds"),
            ("--read_random_exp_range -1", "--read_random_exp_range"),
            ("--read_random_exp_range NaN", "--read_random_exp_range"),
            ("--report /nowhere/at/all.html", "--report"),
            ("--duration NaN", "--duration"),
            ("--benchmarks fillsq", "fillseq"),
        ] {
            assert!(refusal(line).contains(flag), "{line}: {}", refusal(line));
        }
        assert!(settings("--key_size 5 --num 100000").is_ok());
    }

    /// Reads and writes follow --num unless they are given; slow benchmarks
    /// divide them, but never down to nothing.
    #[test]
    fn amounts_follow_the_flags() {
        let ops = |line: &str, name| {
            let settings = settings(line).expect(line);
            settings.ops(parse_list(name).expect(name)[0].workload)
        };
        assert_eq!(ops("--num 5000", "fillrandom"), 5_000);
        assert_eq!(ops("--num 5000", "fillsync"), 5);
        assert_eq!(ops("--num 5", "fill100K"), 1);
        assert_eq!(ops("--num 5000 --reads 7", "readrandom"), 7);
        assert_eq!(ops("--num 5000 --reads 7", "overwrite"), 5_000);
        assert_eq!(ops("--num 5000 --writes 8", "overwrite"), 8);
        assert_eq!(ops("--num 5000", "compact"), 1);
        assert_eq!(ops("--num 50000", "open"), 5);
        assert_eq!(ops("--num 50000", "readrandomsmall"), 50);
        assert_eq!(ops("--num 50", "crc32c"), 128_000);
        assert_eq!(ops("--num 50", "updaterandom"), 50);
        assert_eq!(ops("--num 50 --reads 3", "updaterandom"), 3);
        assert_eq!(ops("--num 50 --reads 3 --writes 4", "updaterandom"), 4);
    }

    /// Engine flags reach the engine's options; -1 and 0 leave its defaults.
    #[test]
    fn engine_flags_reach_the_engine() {
        let line = "--write_buffer_size 4M --max_file_size 2M --block_size 8K --cache_size 1G \
                    --bloom_bits 0 --background_threads 3";
        let options = settings(line).expect(line).engine;
        assert_eq!(options.family.memtable_bytes, 4 << 20);
        assert_eq!(options.family.table_bytes, 2 << 20);
        assert_eq!(options.family.block_bytes, 8 << 10);
        assert_eq!(options.family.filter_bits_per_key, 0);
        assert_eq!((options.cache_bytes, options.background_threads), (1 << 30, 3));
        assert!(options.logging);
        let line = "--max_background_jobs 4 --disable_wal --merge_operator stringappend";
        let options = settings(line).expect(line).engine;
        assert_eq!((options.background_threads, options.logging), (3, false));
        let operator = options.family.merge_operator.expect("it was chosen");
        assert_eq!(operator.name(), "StringAppendOperator");
        let defaults = Options::default();
        let options = settings("--write_buffer_size 0 --cache_size -1").expect("valid").engine;
        assert_eq!(options.family.memtable_bytes, defaults.family.memtable_bytes);
        assert_eq!(options.cache_bytes, defaults.cache_bytes);
        assert!(options.create_if_missing);
    }

    /// A file of options stands for the flags; a merge operator that is given
    /// goes before the file's.
    #[test]
    fn a_file_of_options_reaches_the_engine() {
        let directory = std::env::temp_dir();
        let path = directory.join(format!("lode-bench-options-{}", std::process::id()));
        let text = "[database]\ncache_bytes = 3MiB\n[family]\ncompression = zstd:7\n";
        std::fs::write(&path, text).expect("a temporary file");
        let line = format!("--merge_operator uint64add --options_file {}", path.display());
        let read = settings(&line).expect("valid");
        std::fs::remove_file(&path).expect("it is there");
        let options = read.engine;
        assert_eq!((options.cache_bytes, &read.codec.name[..]), (3 << 20, "zstd:7"));
        assert!(options.create_if_missing);
        let operator = options.family.merge_operator.expect("it was chosen");
        assert_eq!(operator.name(), "UInt64AddOperator");
        let both = format!("{line} --block_size 4K");
        assert!(Line::try_parse_from(both.split_whitespace()).is_err(), "the file and a flag");
        assert!(refusal(&line).contains("--options_file"), "it is gone");
    }

    /// A flag that has no meaning here is told of.
    #[test]
    fn meaningless_flags_are_told_of() {
        assert!(settings("").expect("valid").notes.is_empty());
        for (line, flag) in [
            ("--reuse_logs=1", "--reuse_logs"),
            ("--benchmarks fillseq --seek_nexts 10", "--seek_nexts"),
            ("--benchmarks fillseq --reverse_iterator", "--reverse_iterator"),
            ("--benchmarks fillseq --read_random_exp_range 9", "--read_random_exp_range"),
            ("--benchmarks readrandom --multiread_stride 3", "--multiread_stride"),
            ("--benchmarks readrandom --mix_put_ratio 0.5", "--mix_put_ratio"),
            ("--benchmarks readrandom --mix_max_scan_len 5", "--mix_max_scan_len"),
            ("--benchmarks mixgraph --sine_a 3", "--sine_a"),
            ("--benchmarks readrandom --time_range 5", "--time_range"),
            ("--benchmarks timeseries --time_range 5", "--time_range"),
            ("--benchmarks timeseries --num_deletion_threads 2", "--num_deletion_threads"),
            ("--benchmarks fillseq --compression_level 3", "--compression_level"),
            ("--benchmarks fillseq --readwritepercent 50", "--readwritepercent"),
            ("--benchmarks fillseq --merge_keys 5", "--merge_keys"),
        ] {
            let notes = settings(line).expect(line).notes;
            assert!(matches!(&notes[..], [note] if note.contains(flag)), "{line}: {notes:?}");
        }
        for line in [
            "--benchmarks seekrandomwhilewriting --seek_nexts 10 --reverse_iterator",
            "--benchmarks readrandom,multireadrandom --read_random_exp_range 9 --multiread_stride 3",
            "--benchmarks mixgraph --mix_put_ratio 0.5 --sine_mix_rate --sine_a 3",
            "--benchmarks timeseries --expire_style delete --time_range 5 --num_deletion_threads 2",
            "--benchmarks zstdcomp --compression_level 3",
            "--benchmarks fillseq --compression zstd --compression_level 3",
            "--benchmarks readrandomwriterandom --readwritepercent 50",
        ] {
            assert_eq!(settings(line).expect(line).notes, [""; 0], "{line}");
        }
    }
}
