//! What flags may say, and what they may not say together.

use std::path::Path;

use crate::error::BenchError;
use crate::flags::{ExpireStyle, Flags, MergeChoice};
use crate::keys::KeyShape;
use crate::selection::Selected;

/// The longest key that a benchmark makes: LevelDB's buffer has 1,024 bytes.
const KEY_BYTES_MAX: u64 = 64 << 10;
/// The longest value, so that the pool of values stays in memory.
pub const VALUE_BYTES_MAX: u64 = 1 << 30;
const THREADS_MAX: u64 = 4_096;
/// A batch is in memory as a whole.
const BATCH_ENTRIES_MAX: u64 = 10_000_000;
/// `timeseries` has an id and a time in a key.
const SERIES_KEY_BYTES: u64 = 16;

/// A refusal.
pub fn usage<T>(what: impl Into<String>) -> Result<T, BenchError> {
    Err(BenchError::Usage(what.into()))
}

/// How keys look.
pub fn key_shape(flags: &Flags) -> Result<KeyShape, BenchError> {
    let data = &flags.data;
    let total = data.key_size.saturating_add(data.key_prefix);
    if data.key_size == 0 || total > KEY_BYTES_MAX {
        return usage(format!(
            "--key_size must be at least 1 and, with --key_prefix, at most {KEY_BYTES_MAX}"
        ));
    }
    let keys = KeyShape {
        format: data.key_format,
        prefix_bytes: data.key_prefix as usize,
        number_bytes: data.key_size as usize,
    };
    let merged = flags.single.merge_keys.0.unwrap_or(0);
    // Sequential writes go as far as --writes says.
    let largest = flags.num.max(flags.writes.0.unwrap_or(0)).max(merged).saturating_sub(1);
    if largest > keys.number_max() {
        return usage(format!(
            "keys of --key_size={} can only tell {} entries apart; make it longer",
            data.key_size,
            keys.number_max().saturating_add(1)
        ));
    }
    Ok(keys)
}

/// Numbers that are too small or too large, and flags that need others.
pub fn ranges(flags: &Flags) -> Result<(), BenchError> {
    if flags.num == 0 {
        return usage("--num must be at least 1");
    }
    if !(1..=THREADS_MAX).contains(&flags.threads) {
        return usage(format!("--threads must be from 1 to {THREADS_MAX}"));
    }
    if flags.data.value_size > VALUE_BYTES_MAX {
        return usage(format!("--value_size must be at most {VALUE_BYTES_MAX}"));
    }
    if !(0.0..=1.0).contains(&flags.data.compression_ratio) {
        return usage("--compression_ratio must be from 0 to 1");
    }
    if !(0.0..=1e9).contains(&flags.duration) {
        return usage("--duration must be from 0 to 1,000,000,000 seconds");
    }
    if flags.batch_size.0.is_some_and(|n| !(1..=BATCH_ENTRIES_MAX).contains(&n)) {
        return usage(format!("--batch_size must be from 1 to {BATCH_ENTRIES_MAX}"));
    }
    if flags.use_existing_db && flags.db.is_none() {
        return usage("--use_existing_db needs --db=DIR");
    }
    if flags.engine.disable_wal && flags.sync {
        return usage("--disable_wal leaves nothing that --sync could make durable");
    }
    output(flags)
}

fn output(flags: &Flags) -> Result<(), BenchError> {
    let output = &flags.output;
    if output.stats_per_interval && output.stats_interval_seconds == 0 {
        return usage("--stats_per_interval needs --stats_interval_seconds");
    }
    if output.report_file.is_some() && output.report_interval_seconds == 0 {
        return usage("--report_file needs --report_interval_seconds: no row would be written");
    }
    // A run of an hour must not end in a report that cannot be written.
    let Some(page) = &output.report else { return Ok(()) };
    let parent = page.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if page.is_dir() || !parent.is_dir() {
        return usage(format!(
            "--report={} cannot be written: name a file in a directory that is there",
            page.display()
        ));
    }
    Ok(())
}

/// What single benchmarks cannot do without.
pub fn benchmarks(flags: &Flags, list: &[Selected]) -> Result<(), BenchError> {
    let runs = |name: &str| list.iter().any(|selected| selected.workload.name == name);
    if runs("mergerandom") {
        match flags.engine.merge_operator {
            MergeChoice::None => {
                return usage("mergerandom needs --merge_operator=uint64add or stringappend");
            }
            MergeChoice::Uint64add if flags.data.value_size != 8 => {
                return usage("--merge_operator=uint64add adds numbers of --value_size=8");
            }
            MergeChoice::Uint64add | MergeChoice::Stringappend => {}
        }
    }
    if runs("timeseries") && flags.data.key_size < SERIES_KEY_BYTES {
        return usage(format!("timeseries needs --key_size={SERIES_KEY_BYTES} or more"));
    }
    if flags.series.expire_style == ExpireStyle::CompactionFilter {
        return usage(
            "--expire_style=compaction_filter: Lodestore has no compaction filters; \
             use delete or none",
        );
    }
    if flags.mix.sine_mix_rate && !list.iter().all(|s| s.workload.name == "mixgraph") {
        return usage("--sine_mix_rate is for mixgraph alone; run other benchmarks without it");
    }
    if flags.output.confidence_interval_only && list.iter().all(|selected| selected.repeats < 2) {
        return usage("--confidence_interval_only needs a benchmark that repeats, as in NAME[X5]");
    }
    Ok(())
}
