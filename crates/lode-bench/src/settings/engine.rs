//! Flags as options of the engine: its own defaults, where no flag says
//! otherwise.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use lodestore::{
    AddU64, Append, Compression, FamilyOptions, KeyOrder, Options, SharedMergeOperator,
};

use super::checks::usage;
use crate::STATUS_INTERVAL;
use crate::comparisons::CountingOrder;
use crate::error::BenchError;
use crate::events::EventPrinter;
use crate::flags::{Codec, EngineFlags, Flags, MergeChoice};
use crate::numbers::OrDefault;

/// The family that benchmarks write to.
pub const FAMILY: &str = "default";

/// All options and the name of the codec: of the flags, or of a file.
pub fn of(
    flags: &Flags,
    comparisons: Option<&Arc<AtomicU64>>,
) -> Result<(Options, Codec), BenchError> {
    let (mut options, codec) = match &flags.engine.options_file {
        Some(path) => of_file(flags, path)?,
        None => {
            let codec = codec(&flags.engine)?;
            (options(flags, &codec, comparisons)?, codec)
        }
    };
    if flags.output.events {
        options.listener = Some(Arc::new(EventPrinter::new()));
    }
    Ok((options, codec))
}

/// The options in the file `path`, and what flags say beside it.
fn of_file(flags: &Flags, path: &Path) -> Result<(Options, Codec), BenchError> {
    let mut options = Options::load(path)
        .map_err(|error| BenchError::Usage(format!("--options_file: {error}")))?;
    (options.create_if_missing, options.error_if_exists) = (!flags.use_existing_db, false);
    if flags.engine.status {
        options.status_interval = Some(STATUS_INTERVAL);
    }
    if let Some(operator) = merge_operator(flags.engine.merge_operator) {
        let of_all = options.families.values_mut().chain([&mut options.family]);
        of_all.for_each(|family| family.merge_operator = Some(Arc::clone(&operator)));
    }
    let compression = options.family_options(FAMILY).compression;
    let codec = Codec { name: compression.to_string(), compression, level_was_given: true };
    Ok((options, codec))
}

/// The codec, at the level that was asked for.
fn codec(flags: &EngineFlags) -> Result<Codec, BenchError> {
    let codec = &flags.compression;
    let Some(level) = flags.compression_level else {
        return Ok(codec.clone());
    };
    let levels = zstd::compression_level_range();
    if !levels.contains(&level) {
        let (least, most) = levels.into_inner();
        return usage(format!("--compression_level must be from {least} to {most}"));
    }
    match codec.compression {
        Compression::Zstd { .. } if codec.level_was_given => {
            usage("--compression=zstd:LEVEL and --compression_level both give the level")
        }
        Compression::Zstd { .. } => Ok(Codec {
            name: format!("zstd:{level}"),
            compression: Compression::Zstd { level },
            level_was_given: true,
        }),
        // It is for `zstdcomp` then.
        _ => Ok(codec.clone()),
    }
}

/// All options. LevelDB takes 0 for "default" where a size of 0 makes no sense.
fn options(
    flags: &Flags,
    codec: &Codec,
    comparisons: Option<&Arc<AtomicU64>>,
) -> Result<Options, BenchError> {
    let keep = flags.use_existing_db;
    let flags = &flags.engine;
    let family = family(flags, codec, comparisons)?;
    let mut options = Options {
        family,
        create_if_missing: !keep,
        logging: !flags.disable_wal,
        log_mapped: flags.log_mapped,
        direct_reads: flags.use_direct_reads,
        mapped_bytes_max: if flags.mmap_read { u64::MAX } else { 0 },
        latencies: flags.latencies,
        status_interval: flags.status.then_some(STATUS_INTERVAL),
        ..Options::default()
    };
    if let Some(bytes) = flags.cache_size.0 {
        options.cache_bytes = bytes as usize;
    }
    options.row_cache_bytes = flags.row_cache_size as usize;
    if let Some(bytes) = positive(flags.memory_budget) {
        if flags.cache_size.0.is_some() {
            return usage("--memory_budget sizes the cache: leave --cache_size out");
        }
        options.memory_bytes = Some(bytes as usize);
    }
    options.open_files_max = (flags.open_files > 0).then_some(flags.open_files as usize);
    if let Some(threads) = positive(flags.background_threads) {
        options.background_threads = threads as usize;
    }
    match flags.max_background_jobs.0 {
        None => {}
        Some(jobs @ 2..) => options.background_threads = jobs as usize - 1,
        Some(_) => {
            return usage(
                "--max_background_jobs must be at least 2: one flushes, the others compact",
            );
        }
    }
    Ok(options)
}

fn family(
    flags: &EngineFlags,
    codec: &Codec,
    comparisons: Option<&Arc<AtomicU64>>,
) -> Result<FamilyOptions, BenchError> {
    let mut family = FamilyOptions::default();
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
            return usage("--bloom_bits must be at most 255");
        };
        family.filter_bits_per_key = bits;
    }
    if flags.optimize_filters_for_hits {
        family.filter_bits_per_key_bottommost = Some(0);
    }
    family.compression = codec.compression;
    family.merge_operator = merge_operator(flags.merge_operator);
    if let Some(counter) = comparisons {
        family.order = KeyOrder::Custom(Arc::new(CountingOrder::new(Arc::clone(counter))));
    }
    Ok(family)
}

fn merge_operator(choice: MergeChoice) -> Option<SharedMergeOperator> {
    match choice {
        MergeChoice::None => None,
        MergeChoice::Uint64add => Some(Arc::new(AddU64)),
        MergeChoice::Stringappend => Some(Arc::new(Append::with_delimiter(b","))),
    }
}

fn positive(value: OrDefault) -> Option<u64> {
    value.0.filter(|&n| n > 0)
}
