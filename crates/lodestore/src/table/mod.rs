//! Tables: sorted, immutable files of entries.
//!
//! memtable or merge -> `TableBuilder` -> file -> `Table` -> block -> entry
//!
//! | part | job |
//! |---|---|
//! | `meta` | what the manifest knows of a table |
//! | `format` | header, footer and sections: bytes and checks |
//! | `properties` | what a table says of itself |
//! | `codec` | a stored block: compression, type byte, checksum |
//! | `layout` | the inside of a decoded block: where each part lies |
//! | `block` | a decoded block: entries by number, and search |
//! | `block_builder` | entries to the bytes of one block |
//! | `index` | last keys and places of blocks, resident |
//! | `index_builder` | the same, being written |
//! | `filter` | which keys a table certainly lacks |
//! | `partitions` | index and filter of a large table, of which only the top is resident |
//! | `directory` | one or the other: where blocks are, in an open table |
//! | `block_end` | what index and filter need of a block |
//! | `dictionary` | what the blocks of a table have in common, for Zstandard |
//! | `directory_builder` | the same, being written |
//! | `range_section` | range deletes, resident |
//! | `builder` | entries to a file |
//! | `foreign` | tables of LevelDB |
//! | `reader` | an open table: stored blocks, checked and cached |
//! | `search` | point lookups without I/O |
//! | `prefix_search` | whether there may be keys with a prefix |
//! | `locator` | which block comes next on a walk |
//! | `readahead` | stored blocks in growing spans, for walking |
//! | `cursor` | walking a table both ways |
//! | `verify` | reading every byte and doubting all of it |
//! | `describe` | what a table says of itself that no manifest describes |
//! | `alone` | what a file tells without a manifest, for tools |
//! | `salvage` | what can still be read of a damaged table |
//! | `probe` | single decoders, for fuzzing |
//!
//! Invariants: a block is validated once, when it is decoded, and trusted
//! from then on; what a checksum covers includes the place of the bytes;
//! nothing is allocated from a length that was not compared with the bytes
//! present. The bytes are described in docs/format/table.md.

pub(crate) mod meta;
mod format;
mod properties;
mod codec;
mod layout;
mod block;
mod block_builder;
mod index;
mod index_builder;
mod partitions;
mod directory;
mod block_end;
mod dictionary;
mod directory_builder;
mod filter;
mod range_section;
mod pages;
mod builder;
mod foreign;
mod reader;
mod search;
mod prefix_search;
mod locator;
mod readahead;
mod cursor;
mod verify;
mod describe;
mod alone;
mod salvage;
#[cfg(feature = "internals")]
mod probe;

#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod damage_tests;
#[cfg(test)]
mod newer_tests;
#[cfg(test)]
mod dictionary_tests;
#[cfg(test)]
mod prefix_tests;
#[cfg(test)]
mod take_over_tests;

use std::fmt;
use std::str::FromStr;

use crate::budget::Charge;
use crate::key::{KeyOrder, Trailer, hash};
use crate::prefix::PrefixExtractor;

pub use alone::{BlockSummary, Engine, TableProperties, TableSection};
pub(crate) use block::Block;
pub(crate) use builder::TableBuilder;
pub(crate) use cursor::TableCursor;
pub(crate) use describe::{Description, describe};
pub(crate) use foreign::{is_leveldb, leveldb_meta};
#[cfg(feature = "internals")]
pub(crate) use probe::stored_blocks;
#[cfg(feature = "internals")]
pub use probe::{check_block, check_section};
pub(crate) use reader::{BlockRef, ReadContext, Table};
pub(crate) use salvage::{Salvaged, salvage, stated_id};
pub(crate) use search::{Held, Need};

/// The outcome of a check that only says what is wrong; whoever knows the file
/// and the offset makes an `Error` of it.
type Checked<T, W = &'static str> = std::result::Result<T, W>;

/// A dictionary is at least and at most so long.
pub(crate) const DICTIONARY_BYTES_MIN: usize = 256;
pub(crate) const DICTIONARY_BYTES_MAX: usize = 1 << 20;

/// Zstandard's levels.
const LEVELS: std::ops::RangeInclusive<i32> = -131_072..=22;

/// How the blocks of new tables are compressed. A block that does not shrink
/// by an eighth is stored as it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Compression {
    /// Blocks are stored as they are.
    None,
    /// Snappy: for its wide use.
    Snappy,
    /// LZ4: the fastest to decompress.
    #[default]
    Lz4,
    /// Zstandard: the smallest.
    Zstd {
        /// From 1 (fast) to 22 (small); negative levels are faster still.
        level: i32,
    },
}

impl fmt::Display for Compression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Compression::None => f.write_str("none"),
            Compression::Snappy => f.write_str("snappy"),
            Compression::Lz4 => f.write_str("lz4"),
            Compression::Zstd { level } => write!(f, "zstd:{level}"),
        }
    }
}

impl FromStr for Compression {
    type Err = String;

    /// Reads what `Display` writes; `zstd` alone is level 1.
    fn from_str(text: &str) -> Result<Compression, String> {
        let level = |text: &str| {
            let level = text.parse().ok().filter(|level| LEVELS.contains(level));
            level.map(|level| Compression::Zstd { level })
        };
        let found = match text {
            "none" => Some(Compression::None),
            "snappy" => Some(Compression::Snappy),
            "lz4" => Some(Compression::Lz4),
            "zstd" => level("1"),
            _ => text.strip_prefix("zstd:").and_then(level),
        };
        let what = "is none of none, snappy, lz4, zstd:LEVEL with a level up to 22";
        found.ok_or_else(|| format!("{text:?} {what}"))
    }
}

/// The family that a table was written for: for whoever has no manifest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TableFamily {
    pub(crate) id: u32,
    pub(crate) name: String,
}

/// What a builder needs to know of a family's options.
#[derive(Clone, Debug)]
pub(crate) struct TableSettings {
    /// A block is ended before it would grow beyond this, uncompressed. A
    /// single larger entry gets a block of its own.
    pub(crate) block_bytes: usize,
    /// Size of the filter for each key; 0 means no filter.
    pub(crate) filter_bits_per_key: u8,
    pub(crate) compression: Compression,
    /// Length of a dictionary for Zstandard, at most; 0 for none.
    pub(crate) dictionary_bytes: usize,
    /// The beginning of the table that it is made of.
    pub(crate) dictionary_training_bytes: usize,
    /// What the filter knows beside the keys.
    pub(crate) prefix_extractor: PrefixExtractor,
    /// Index and filter are divided into partitions of this size if they
    /// exceed it; `usize::MAX`: never.
    pub(crate) partition_bytes: usize,
    pub(crate) order: KeyOrder,
    /// Whose table it is, if that is known.
    pub(crate) family: Option<TableFamily>,
    /// What the builder's buffers are charged to.
    pub(crate) buffers: Charge,
}

#[cfg(any(test, feature = "internals"))]
impl TableSettings {
    /// The simplest table with a filter, in one part, for tests and benchmarks.
    pub(crate) fn plain(buffers: Charge) -> TableSettings {
        TableSettings {
            block_bytes: 4096,
            filter_bits_per_key: 10,
            compression: Compression::None,
            dictionary_bytes: 0,
            dictionary_training_bytes: 0,
            prefix_extractor: PrefixExtractor::None,
            family: None,
            order: KeyOrder::Bytewise,
            partition_bytes: usize::MAX,
            buffers,
        }
    }
}

/// A key to look up in many tables, with what is computed once for all.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LookupKey<'a> {
    user_key: &'a [u8],
    /// `key::hash(user_key)`.
    hash: u64,
    trailer_max: Trailer,
}

impl<'a> LookupKey<'a> {
    #[inline]
    pub(crate) fn new(user_key: &'a [u8], trailer_max: Trailer) -> LookupKey<'a> {
        LookupKey { user_key, hash: hash(user_key), trailer_max }
    }

    #[inline]
    pub(crate) fn user_key(&self) -> &'a [u8] {
        self.user_key
    }

    /// [`hash`] of the user key.
    #[inline]
    pub(crate) fn hash(&self) -> u64 {
        self.hash
    }

    /// Versions with a larger trailer are too new to be seen.
    #[inline]
    pub(crate) fn trailer_max(&self) -> Trailer {
        self.trailer_max
    }
}
