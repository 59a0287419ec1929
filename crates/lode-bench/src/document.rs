//! `--json`: everything that a run tells, as one document.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Serialize;

use crate::counts::Counts;
use crate::keys::KeyFormat;
use crate::line::Line;
use crate::repeats::Average;
use crate::settings::{FAMILY, Settings};
use crate::shapes::Shapes;
use crate::summary::Summary;
use crate::system;

/// Grows when a field changes its meaning or goes; new fields may come without.
const DOCUMENT_VERSION: u32 = 3;

/// Everything that there is to tell at the end of a run.
pub struct Told<'a> {
    /// What was to be done.
    pub settings: &'a Settings,
    /// Where the database was.
    pub directory: &'a Path,
    /// What each run of a benchmark did.
    pub lines: &'a [Line],
    /// What repeats have in common.
    pub averages: &'a [Average],
    /// The figures of the whole run.
    pub summary: &'a Summary,
    /// What the engine counted during the run.
    pub counts: &'a Counts,
}

#[derive(Serialize)]
struct Document<'a> {
    document_version: u32,
    lodestore_version: &'static str,
    unix_seconds: u64,
    processor: Option<String>,
    optimized: bool,
    directory: &'a Path,
    settings: Choices<'a>,
    lines: &'a [Line],
    averages: &'a [Average],
    summary: &'a Summary,
    counters: BTreeMap<&'static str, u64>,
}

/// What the flags chose.
#[derive(Serialize)]
pub struct Choices<'a> {
    benchmarks: &'a str,
    num: u64,
    reads: u64,
    writes: u64,
    threads: u64,
    duration_seconds: Option<f64>,
    key_bytes: usize,
    key_format: KeyFormat,
    value_bytes: usize,
    compression_ratio: f64,
    compression: &'a str,
    batch_entries: Option<u64>,
    sync: bool,
    logging: bool,
    merge_operator: Option<String>,
    write_bytes_per_second_max: Option<f64>,
    reads_per_second_max: Option<f64>,
    timed: bool,
    seed: u64,
    options_file: Option<&'a Path>,
    memtable_bytes: usize,
    table_bytes: u64,
    block_bytes: usize,
    /// Not if there is a limit on memory: then it has what that leaves.
    cache_bytes: Option<usize>,
    row_cache_bytes: usize,
    memory_bytes_max: Option<usize>,
    open_files_max: Option<usize>,
    log_mapped: bool,
    direct_reads: bool,
    mapped_bytes_max: u64,
    latencies: bool,
    comparisons: bool,
    filter_bits_per_key: u8,
    filter_bits_per_key_bottommost: Option<u8>,
    background_threads: usize,
    shapes: &'a Shapes,
}

impl<'a> Choices<'a> {
    /// The choices of `settings`.
    pub fn of(settings: &'a Settings) -> Choices<'a> {
        let options = &settings.engine;
        let family = options.family_options(FAMILY);
        Choices {
            benchmarks: &settings.list,
            num: settings.num,
            reads: settings.reads,
            writes: settings.writes,
            threads: settings.threads,
            duration_seconds: settings.duration.map(|d| d.as_secs_f64()),
            key_bytes: settings.keys.key_bytes(),
            key_format: settings.keys.format,
            value_bytes: settings.value_bytes,
            compression_ratio: settings.compression_ratio,
            compression: &settings.codec.name,
            batch_entries: settings.batch_entries,
            sync: settings.sync,
            logging: options.logging,
            merge_operator: family.merge_operator.as_ref().map(|o| o.name().to_string()),
            write_bytes_per_second_max: settings.write_rate_max,
            reads_per_second_max: settings.read_rate_max,
            timed: settings.timed,
            seed: settings.seed,
            options_file: settings.options_file.as_deref(),
            memtable_bytes: family.memtable_bytes,
            table_bytes: family.table_bytes,
            block_bytes: family.block_bytes,
            cache_bytes: options.memory_bytes.is_none().then_some(options.cache_bytes),
            row_cache_bytes: options.row_cache_bytes,
            memory_bytes_max: options.memory_bytes,
            open_files_max: options.open_files_max,
            log_mapped: options.log_mapped,
            direct_reads: options.direct_reads,
            mapped_bytes_max: options.mapped_bytes_max,
            latencies: options.latencies,
            comparisons: settings.comparisons.is_some(),
            filter_bits_per_key: family.filter_bits_per_key,
            filter_bits_per_key_bottommost: family.filter_bits_per_key_bottommost,
            background_threads: options.background_threads,
            shapes: &settings.shapes,
        }
    }
}

/// The document of a run.
pub fn text(told: &Told<'_>) -> String {
    let document = Document {
        document_version: DOCUMENT_VERSION,
        lodestore_version: env!("CARGO_PKG_VERSION"),
        unix_seconds: system::unix_seconds(),
        processor: system::processor(),
        optimized: !cfg!(debug_assertions),
        directory: told.directory,
        settings: Choices::of(told.settings),
        lines: told.lines,
        averages: told.averages,
        summary: told.summary,
        counters: told.counts.named().collect(),
    };
    serde_json::to_string_pretty(&document)
        .expect("maps have string keys, and nothing in here fails to serialize")
}
