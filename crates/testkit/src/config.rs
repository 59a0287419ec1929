//! The knobs of `open` in scripts, as the engine's options.
//!
//! | knob | option |
//! |---|---|
//! | `memtable` | bytes of a memtable |
//! | `table` | bytes of a table |
//! | `block` | bytes of a block |
//! | `codec` | `none`, `snappy`, `lz4`, `zstd` |
//! | `filter` | filter bits a key |
//! | `level0` | tables in level 0 that start a compaction |
//! | `level1` | bytes of level 1 |
//! | `multiplier` | how much larger the next level is |
//! | `tombstones` | percentage of tombstones that starts a compaction |
//! | `sealed` | memtables that may wait for their flush |
//! | `threads` | background threads |
//! | `cache` | bytes of the cache |
//! | `memory` | bytes of the memory budget |
//! | `partition` | bytes of a partition of index and filter |
//! | `files` | files that may be open for reading |
//! | `log` | bytes of log segments from which old families are flushed |
//! | `logging` | `yes` or `no` |
//!
//! The name of any other option is a knob too, as it is.

use crate::command::{Operator, Schema};
use crate::orders::Order;
use lodestore::{AddU64, Append, Compression, FamilyOptions, Options, SharedMergeOperator};
use std::sync::Arc;

/// Applies one knob; says what is wrong with it.
pub(crate) fn apply(options: &mut Options, name: &str, value: &str) -> Result<(), String> {
    let number = || value.parse::<usize>().map_err(|_| format!("no number in {name}={value}"));
    let family = &mut options.family;
    match name {
        "memtable" => family.memtable_bytes = number()?,
        "sealed" => family.sealed_memtables_max = number()?,
        "table" => family.table_bytes = number()? as u64,
        "block" => family.block_bytes = number()?,
        "filter" => family.filter_bits_per_key = number()? as u8,
        "level1" => family.level1_bytes = number()? as u64,
        "tombstones" => family.tombstone_percent = number()? as u8,
        "multiplier" => family.level_multiplier = number()? as u32,
        "threads" => options.background_threads = number()?,
        "log" => options.log_bytes_max = number()? as u64,
        "cache" => options.cache_bytes = number()?,
        "rows" => options.row_cache_bytes = number()?,
        "memory" => options.memory_bytes = Some(number()?),
        "partition" => family.partition_bytes = Some(number()?),
        "files" => options.open_files_max = Some(number()?),
        "level0" => {
            family.level0_compaction_files = number()?;
            family.level0_slowdown_files = number()? + 4;
            family.level0_stop_files = number()? + 12;
        }
        "codec" => {
            family.compression = match value {
                "none" => Compression::None,
                "snappy" => Compression::Snappy,
                "lz4" => Compression::Lz4,
                "zstd" => Compression::Zstd { level: 1 },
                _ => return Err(format!("no codec {value}")),
            }
        }
        "logging" => {
            options.logging = match value {
                "yes" => true,
                "no" => false,
                _ => return Err("logging is yes or no".to_string()),
            }
        }
        _ => {
            let set = match is_option_of_family(name) {
                true => family.set(name, value),
                false => options.set(name, value),
            };
            set.map_err(|error| error.to_string())?;
        }
    }
    Ok(())
}

fn is_option_of_family(name: &str) -> bool {
    FamilyOptions::catalogue().iter().any(|info| info.name == name)
}

/// `base` with the order and the merge operator of `schema`.
pub(crate) fn family_options(base: &FamilyOptions, schema: Schema) -> FamilyOptions {
    let merge_operator: Option<SharedMergeOperator> = match schema.operator {
        Operator::None => None,
        Operator::Add => Some(Arc::new(AddU64)),
        Operator::Append => Some(Arc::new(Append::with_delimiter(b","))),
    };
    let order = schema.order.key_order();
    // In another order keys with one prefix are no neighbours.
    let is_bytewise = schema.order == Order::Bytewise;
    let prefix_extractor = base.prefix_extractor.filter(|_| is_bytewise);
    FamilyOptions { order, merge_operator, prefix_extractor, ..base.clone() }
}
