//! Flags, checked and turned into what a run needs.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use lodestore::{FamilyOptions, KeyOrder, Options, WriteOptions};

use crate::comparisons::CountingOrder;
use crate::error::BenchError;
use crate::flags::{Codec, Flags};
use crate::keys::KeyShape;
use crate::workload::{Amount, Workload, parse_list};

/// The longest key that a benchmark makes: LevelDB's buffer has 1,024 bytes.
const KEY_BYTES_MAX: u64 = 64 << 10;
/// The longest value, so that the pool of values stays in memory.
const VALUE_BYTES_MAX: u64 = 1 << 30;
const THREADS_MAX: u64 = 4_096;

/// What a run does. Everything in here is possible.
#[derive(Clone)]
pub struct Settings {
    /// The benchmarks in their order.
    pub benchmarks: Vec<&'static Workload>,
    /// Keys are made of the numbers below this.
    pub num: u64,
    /// Reads of a thread, before a benchmark divides them.
    pub reads: u64,
    /// Writes of a thread, before a benchmark divides them.
    pub writes: u64,
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
    /// Entries written at once, if the flag was given.
    pub batch_entries: Option<u64>,
    /// True if all writes are durable.
    pub sync: bool,
    /// Base of the threads' seeds.
    pub seed: u64,
    /// Where the database is; `None` for a temporary directory.
    pub directory: Option<PathBuf>,
    /// True if the database is not to be emptied.
    pub keep: bool,
    /// Options of the engine.
    pub engine: Options,
    /// The codec, with its name.
    pub codec: Codec,
    /// Counts comparisons, if that was asked for.
    pub comparisons: Option<Arc<AtomicU64>>,
    /// True if operations are timed.
    pub timed: bool,
    /// What is printed.
    pub output: Output,
    /// What the user should know about the flags.
    pub notes: Vec<String>,
}

/// What is printed.
#[derive(Clone, Copy, Debug)]
pub struct Output {
    /// One JSON document on standard output; lines go to standard error.
    pub json: bool,
    /// Lines only.
    pub quiet: bool,
    /// The engine's counters at the end.
    pub counters: bool,
    /// A line of progress on standard error.
    pub progress: bool,
}

impl Settings {
    /// Checks `flags`.
    /// # Errors: `Usage` names the flag that cannot be obeyed, and what would do.
    pub fn new(flags: &Flags) -> Result<Settings, BenchError> {
        let benchmarks = parse_list(&flags.benchmarks)?;
        let keys = key_shape(flags)?;
        check_ranges(flags)?;
        let comparisons = flags.comparisons.then(Arc::<AtomicU64>::default);
        let progress = flags.progress.unwrap_or_else(|| stderr_is_terminal() && !flags.quiet);
        Ok(Settings {
            benchmarks,
            num: flags.num,
            reads: flags.reads.0.unwrap_or(flags.num),
            writes: flags.writes.0.unwrap_or(flags.num),
            threads: flags.threads,
            duration: (flags.duration > 0.0).then(|| Duration::from_secs_f64(flags.duration)),
            keys,
            value_bytes: flags.value_size as usize,
            compression_ratio: flags.compression_ratio,
            batch_entries: flags.batch_size.0,
            sync: flags.sync,
            seed: flags.seed,
            directory: flags.db.clone(),
            keep: flags.use_existing_db,
            engine: engine_options(flags, comparisons.as_ref())?,
            codec: flags.compression.clone(),
            comparisons,
            timed: flags.histogram,
            output: Output {
                json: flags.json,
                quiet: flags.quiet,
                counters: flags.statistics,
                progress,
            },
            notes: notes(flags),
        })
    }

    /// Operations of each thread of `workload`.
    pub fn ops(&self, workload: &Workload) -> u64 {
        match workload.amount {
            Amount::Writes(divisor) => (self.writes / divisor).max(1),
            Amount::Reads(divisor) => (self.reads / divisor).max(1),
            Amount::Once => 1,
        }
    }

    /// How `workload` writes.
    pub fn write_options(&self, workload: &Workload) -> WriteOptions {
        WriteOptions { sync: self.sync || workload.sync, ..Default::default() }
    }

    /// The longest value of the run.
    pub fn value_bytes_max(&self) -> usize {
        let fixed = self.benchmarks.iter().filter_map(|w| w.value_bytes);
        fixed.chain([self.value_bytes]).max().unwrap_or(0)
    }
}

fn stderr_is_terminal() -> bool {
    std::io::IsTerminal::is_terminal(&std::io::stderr())
}

fn usage<T>(what: String) -> Result<T, BenchError> {
    Err(BenchError::Usage(what))
}

fn key_shape(flags: &Flags) -> Result<KeyShape, BenchError> {
    let total = flags.key_size.saturating_add(flags.key_prefix);
    if flags.key_size == 0 || total > KEY_BYTES_MAX {
        return usage(format!(
            "--key_size must be at least 1 and, with --key_prefix, at most {KEY_BYTES_MAX}"
        ));
    }
    let keys = KeyShape {
        format: flags.key_format,
        prefix_bytes: flags.key_prefix as usize,
        number_bytes: flags.key_size as usize,
    };
    // Sequential writes go as far as --writes says.
    let largest = flags.num.max(flags.writes.0.unwrap_or(0)).saturating_sub(1);
    if largest > keys.number_max() {
        return usage(format!(
            "keys of --key_size={} can only tell {} entries apart; make it longer",
            flags.key_size,
            keys.number_max().saturating_add(1)
        ));
    }
    Ok(keys)
}

fn check_ranges(flags: &Flags) -> Result<(), BenchError> {
    if flags.num == 0 {
        return usage("--num must be at least 1".to_string());
    }
    if !(1..=THREADS_MAX).contains(&flags.threads) {
        return usage(format!("--threads must be from 1 to {THREADS_MAX}"));
    }
    if flags.value_size > VALUE_BYTES_MAX {
        return usage(format!("--value_size must be at most {VALUE_BYTES_MAX}"));
    }
    if !(0.0..=1.0).contains(&flags.compression_ratio) {
        return usage("--compression_ratio must be from 0 to 1".to_string());
    }
    if !(0.0..=1e9).contains(&flags.duration) {
        return usage("--duration must be from 0 to 1,000,000,000 seconds".to_string());
    }
    if flags.batch_size.0 == Some(0) {
        return usage("--batch_size must be at least 1".to_string());
    }
    if flags.use_existing_db && flags.db.is_none() {
        return usage("--use_existing_db needs --db=DIR".to_string());
    }
    Ok(())
}

/// The engine's options: its own defaults, where no flag says otherwise.
/// LevelDB takes 0 for "default" where a size of 0 makes no sense.
fn engine_options(
    flags: &Flags,
    comparisons: Option<&Arc<AtomicU64>>,
) -> Result<Options, BenchError> {
    let mut family = FamilyOptions::default();
    let positive = |value: crate::numbers::OrDefault| value.0.filter(|&n| n > 0);
    if let Some(bytes) = positive(flags.write_buffer_size) {
        family.memtable_bytes = bytes as usize;
    }
    if let Some(bytes) = positive(flags.max_file_size) {
        family.table_bytes = bytes;
    }
    if let Some(bytes) = positive(flags.block_size) {
        family.block_bytes = bytes as usize;
    }
    if let Some(bits) = flags.bloom_bits.0 {
        let Ok(bits) = u8::try_from(bits) else {
            return usage("--bloom_bits must be at most 255".to_string());
        };
        family.filter_bits_per_key = bits;
    }
    family.compression = flags.compression.compression;
    if let Some(counter) = comparisons {
        family.order = KeyOrder::Custom(Arc::new(CountingOrder::new(Arc::clone(counter))));
    }
    let mut options =
        Options { family, create_if_missing: !flags.use_existing_db, ..Options::default() };
    if let Some(bytes) = flags.cache_size.0 {
        options.cache_bytes = bytes as usize;
    }
    if let Some(bytes) = positive(flags.memory_budget) {
        if flags.cache_size.0.is_some() {
            return usage("--memory_budget sizes the cache: leave --cache_size out".to_string());
        }
        options.memory_bytes = Some(bytes as usize);
    }
    options.open_files_max = (flags.open_files > 0).then_some(flags.open_files as usize);
    if let Some(threads) = positive(flags.background_threads) {
        options.background_threads = threads as usize;
    }
    Ok(options)
}

/// Flags that are understood but change nothing are told of, not passed over.
fn notes(flags: &Flags) -> Vec<String> {
    let mut notes = Vec::new();
    if flags.reuse_logs {
        notes.push(
            "--reuse_logs changes nothing: Lodestore always recycles the segments of its log"
                .to_string(),
        );
    }
    if flags.comparisons {
        notes.push(
            "--comparisons counts in a comparator of its own: expect slower lines than without"
                .to_string(),
        );
    }
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
            settings.ops(parse_list(name).expect(name)[0])
        };
        assert_eq!(ops("--num 5000", "fillrandom"), 5_000);
        assert_eq!(ops("--num 5000", "fillsync"), 5);
        assert_eq!(ops("--num 5", "fill100K"), 1);
        assert_eq!(ops("--num 5000 --reads 7", "readrandom"), 7);
        assert_eq!(ops("--num 5000 --reads 7", "overwrite"), 5_000);
        assert_eq!(ops("--num 5000 --writes 8", "overwrite"), 8);
        assert_eq!(ops("--num 5000", "compact"), 1);
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
        let options = settings("--memory_budget 64M --open_files 9").expect("valid").engine;
        assert_eq!((options.memory_bytes, options.open_files_max), (Some(64 << 20), Some(9)));
        assert!(settings("--memory_budget 64M --cache_size 1M").is_err());
        let defaults = Options::default();
        let options = settings("--write_buffer_size 0 --cache_size -1").expect("valid").engine;
        assert_eq!(options.family.memtable_bytes, defaults.family.memtable_bytes);
        assert_eq!(options.cache_bytes, defaults.cache_bytes);
        assert!(options.create_if_missing);
    }

    /// A flag that has no meaning here is told of.
    #[test]
    fn meaningless_flags_are_told_of() {
        assert!(settings("").expect("valid").notes.is_empty());
        assert!(settings("--reuse_logs=1").expect("valid").notes[0].contains("--reuse_logs"));
    }
}
