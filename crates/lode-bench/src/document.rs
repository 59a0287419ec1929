//! `--json`: everything that a run tells, as one document.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use serde::Serialize;

use crate::counts::Counts;
use crate::keys::KeyFormat;
use crate::line::Line;
use crate::settings::Settings;
use crate::summary::Summary;
use crate::system;

/// Grows when a field changes its meaning or goes; new fields may come without.
const DOCUMENT_VERSION: u32 = 1;

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
    summary: &'a Summary,
    counters: BTreeMap<&'static str, u64>,
}

/// What the flags chose.
#[derive(Serialize)]
struct Choices<'a> {
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
    seed: u64,
    memtable_bytes: usize,
    table_bytes: u64,
    block_bytes: usize,
    cache_bytes: usize,
    filter_bits_per_key: u8,
    background_threads: usize,
}

impl<'a> Choices<'a> {
    fn of(settings: &'a Settings) -> Choices<'a> {
        let options = &settings.engine;
        let family = &options.family;
        Choices {
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
            seed: settings.seed,
            memtable_bytes: family.memtable_bytes,
            table_bytes: family.table_bytes,
            block_bytes: family.block_bytes,
            cache_bytes: options.cache_bytes,
            filter_bits_per_key: family.filter_bits_per_key,
            background_threads: options.background_threads,
        }
    }
}

/// The document of a run.
pub fn text(
    settings: &Settings,
    directory: &Path,
    lines: &[Line],
    summary: &Summary,
    counts: &Counts,
) -> String {
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH);
    let document = Document {
        document_version: DOCUMENT_VERSION,
        lodestore_version: env!("CARGO_PKG_VERSION"),
        unix_seconds: since_1970.map_or(0, |d| d.as_secs()),
        processor: system::processor(),
        optimized: !cfg!(debug_assertions),
        directory,
        settings: Choices::of(settings),
        lines,
        summary,
        counters: counts.named().collect(),
    };
    serde_json::to_string_pretty(&document)
        .expect("maps have string keys, and nothing in here fails to serialize")
}
