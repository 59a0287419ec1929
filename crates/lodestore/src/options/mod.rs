//! Every knob, its default and its validation. Only the modules below this one
//! see these types; those above take the few values that they need.
//!
//! | part | job |
//! |---|---|
//! | `kind` | how a value is written: a size, a time, a codec, ... |
//! | `nearest` | the name that was meant |
//! | `catalogue` | the list of options that text, changes and the guide go by |
//! | `text` | sections and lines |
//! | `file` | reading them from a file |
//! | `validate` | values and combinations that are refused |

mod catalogue;
mod file;
mod kind;
mod nearest;
mod text;
mod validate;

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use crate::budget::{Budget, Charge};
use crate::cache::Cache;
use crate::compact::pick::BOTTOM;
use crate::error::{Error, Result};
use crate::events::Listener;
use crate::fs::{Fs, OsFs};
use crate::key::KeyOrder;
use crate::leveldb::new_database::TableStyle;
use crate::limiter::RateLimiter;
use crate::merge_operator::SharedMergeOperator;
use crate::prefix::PrefixExtractor;
use crate::scheduler::Scheduler;
use crate::stats::Statistics;
use crate::sync::Arc;
use crate::table::{Compression, TableSettings};

pub use catalogue::OptionInfo;

/// How a database is opened.
#[derive(Clone, Debug)]
pub struct Options {
    /// Create the database if there is none. Default: false, so that a
    /// mistyped path is an error and not an empty database.
    pub create_if_missing: bool,
    /// Refuse to open a database that exists.
    pub error_if_exists: bool,
    /// The file system. Default: the operating system's.
    pub fs: Arc<dyn Fs>,
    /// Files that may be open for reading at once; those not read for a while
    /// are closed and opened again when they are needed. Logs and files being
    /// written come on top. At least 1. Default: what the process may open (the
    /// soft limit is raised first, where that is allowed), less a reserve.
    pub open_files_max: Option<usize>,
    /// Threads, time and randomness; share one between databases to share
    /// their threads. Default: one of its own.
    pub scheduler: Option<Arc<Scheduler>>,
    /// Threads for compactions, if no scheduler is given.
    pub background_threads: usize,
    /// One limit on memtables, block cache, indexes, filters, cursors and
    /// buffers together, in bytes. The cache gets what the others leave;
    /// memtables are flushed early when they exceed their share, a half less a
    /// little, and writers wait then. At least 64 KiB. Default: none.
    pub memory_bytes: Option<usize>,
    /// Such a limit, shared between databases, in place of `memory_bytes`.
    pub budget: Option<Arc<Budget>>,
    /// What flushes and compactions may write to tables together, in bytes a
    /// second, if no limiter is given; 0 for as much as they can. It is the
    /// ceiling: where little is to be done, less is used.
    pub background_bytes_per_second: u64,
    /// The limit of background writes; share one between databases.
    pub rate_limiter: Option<Arc<RateLimiter>>,
    /// Block cache; share one between databases. Default: one of its own.
    /// Together with `budget` it must be [`Cache::within`] that.
    pub cache: Option<Arc<Cache>>,
    /// Size of the block cache, if none is given and there is no limit on memory.
    pub cache_bytes: usize,
    /// Size of a cache of single rows, for point reads that come back to keys
    /// whose neighbours are not read. Under a limit on memory it is taken out of
    /// that, and may be half of it at most. Default: 0, none.
    pub row_cache_bytes: usize,
    /// Counters; share them between databases to add them up.
    pub statistics: Option<Arc<Statistics>>,
    /// Is told what the engine does on its own, as lines for a log or otherwise.
    /// Default: nobody.
    pub listener: Option<Arc<dyn Listener>>,
    /// Time operations, see [`Operation`](crate::Operation). Costs a fraction of
    /// a percent; with `false` there are no latencies in the statistics.
    pub latencies: bool,
    /// Write what [`inspect::Status`](crate::inspect::Status) reads to a file in
    /// the directory so often, for `lode top` and the like: a thread and one
    /// small file, never synced. At least 10 ms. Default: never.
    pub status_interval: Option<Duration>,
    /// Keep a write-ahead log. Without one, a crash loses what was written
    /// since the last flush; flushes are then atomic across families.
    pub logging: bool,
    /// Write the log by copying into a shared mapping, where the file system
    /// is known never to fail that; a record then costs no system call. It
    /// outlives a killed process all the same. With `false`, one `write(2)` a
    /// commit group.
    pub log_mapped: bool,
    /// Read tables past the page cache: what the engine's own cache has not comes
    /// from the device, and no memory is spent on having it twice. Lookups of a
    /// [`multi_get`](crate::Family::multi_get) are then in flight together. Good for
    /// random reads of far more data than there is memory for; a file system that
    /// can't do it is refused.
    pub direct_reads: bool,
    /// Map tables of so many bytes together, those that are opened first: a block that
    /// the page cache has is then read without a system call, which makes lookups that
    /// the engine's own cache does not serve 1.2 to 1.6 times as fast. Mapped pages
    /// count as resident memory of the process and the kernel takes them back as it
    /// needs; a device that fails to read one ends the process by SIGBUS, where
    /// otherwise there is an error. Without effect on other file systems than the
    /// operating system's. Default: 0, none.
    pub mapped_bytes_max: u64,
    /// Read the indexes and filters of all tables when the database is opened, and of
    /// each new table once a flush or compaction has made it, so that lookups seldom
    /// wait for them; of those that are in parts, what stays in memory. By default they
    /// are read when a table is first used, which opens large databases at once and
    /// costs nothing for tables that nobody reads.
    pub preload_tables: bool,
    /// Flush families that hold old log segments back once the segments
    /// together, the one being written included, exceed this.
    pub log_bytes_max: u64,
    /// Options of every family that `families` does not name.
    pub family: FamilyOptions,
    /// Options of single families, by name.
    pub families: BTreeMap<String, FamilyOptions>,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            create_if_missing: false,
            error_if_exists: false,
            fs: Arc::new(OsFs::new()),
            open_files_max: None,
            scheduler: None,
            background_threads: 2,
            memory_bytes: None,
            budget: None,
            background_bytes_per_second: 0,
            rate_limiter: None,
            cache: None,
            cache_bytes: 32 << 20,
            row_cache_bytes: 0,
            statistics: None,
            listener: None,
            latencies: true,
            status_interval: None,
            logging: true,
            log_mapped: true,
            direct_reads: false,
            mapped_bytes_max: 0,
            preload_tables: false,
            log_bytes_max: 1 << 30,
            family: FamilyOptions::default(),
            families: BTreeMap::new(),
        }
    }
}

impl Options {
    /// The options of the family `name`.
    pub fn family_options(&self, name: &str) -> &FamilyOptions {
        self.families.get(name).unwrap_or(&self.family)
    }

    /// The options that `text` gives; the others have their defaults. The form
    /// is described in the guide.
    ///
    /// # Errors
    /// `InvalidArgument` names the line and the option that is unknown, given
    /// twice or no value, or the options that contradict each other.
    pub fn from_text(text: &str) -> Result<Options> {
        let mut options = Options::default();
        options.apply_text(text)?;
        Ok(options)
    }

    /// Changes what `text` gives, and leaves the rest: options that cannot be
    /// text are set before. A family that has a section but no options of its
    /// own yet begins with those of `family`.
    ///
    /// # Errors
    /// As [`Options::from_text`]; nothing is changed then.
    pub fn apply_text(&mut self, text: &str) -> Result<()> {
        text::apply(self, text)
    }

    /// [`Options::apply_text`] with what is in the file `path` of the operating
    /// system, or of [`Options::fs`] if that is another one.
    ///
    /// # Errors
    /// As [`Options::apply_text`], with the file's name; `Io` if it cannot be
    /// read.
    pub fn apply_file(&mut self, path: impl AsRef<Path>) -> Result<()> {
        let path = path.as_ref();
        let text = file::read(&*self.fs, path)?;
        self.apply_text(&text).map_err(|error| error.about(path.display()))
    }

    /// The options in the file `path`: see [`Options::apply_file`].
    pub fn load(path: impl AsRef<Path>) -> Result<Options> {
        let mut options = Options::default();
        options.apply_file(path)?;
        Ok(options)
    }

    /// All options as text that [`Options::from_text`] reads; what cannot be
    /// text (an order, an operator of one's own) stands there as a comment.
    pub fn to_text(&self) -> String {
        text::print(self)
    }

    /// Sets one option by its name, as in a line of a text.
    ///
    /// # Errors
    /// `InvalidArgument` if there is no such option or `value` is none of its
    /// values. Contradictions between options are told when it is opened.
    pub fn set(&mut self, name: &str, value: &str) -> Result<()> {
        catalogue::set(self, name, value).map_err(Error::invalid)
    }

    /// All options of a database that can be text.
    pub fn catalogue() -> Vec<OptionInfo> {
        catalogue::infos::<Options>()
    }

    /// These options with `changes`, which an open database can take.
    pub(crate) fn changed(&self, changes: &[(&str, &str)]) -> Result<Options> {
        let changed = catalogue::changed(self, changes)?;
        changed.validate()?;
        Ok(changed)
    }
}

/// How one family keeps its entries.
#[derive(Clone, Debug)]
pub struct FamilyOptions {
    /// The order of keys. Must be the one that the family was created with; bytewise
    /// order, the default, stands for any that the library has.
    pub order: KeyOrder,
    /// How merged operands become values. Built-in operators are found by the
    /// stored name; one of your own must be given at every open.
    pub merge_operator: Option<SharedMergeOperator>,
    /// What filters know of keys besides the keys themselves, so that cursors
    /// with a [prefix](crate::ReadOptions::prefix) skip tables that have no key
    /// with it. Bytewise order only; of no effect without filters. It may
    /// change: each table names the one that its filter was made with, and is
    /// asked by that. Default: the one that the family had last, or none.
    pub prefix_extractor: Option<PrefixExtractor>,
    /// A memtable of this size is sealed and flushed. At most 4 GiB.
    pub memtable_bytes: usize,
    /// Sealed memtables of this family that may wait for their flush. While as
    /// many wait, its writers are paced by the room left in the active one.
    pub sealed_memtables_max: usize,
    /// Data blocks are closed at this size, before compression.
    pub block_bytes: usize,
    /// How data blocks are compressed, where the next two say nothing else.
    pub compression: Compression,
    /// How they are compressed by level: the first for level 0, which flushes
    /// write, the second for the first level in use after it (into which level
    /// 0 is compacted), and so on downwards; `compression` for levels beyond
    /// the list. Tables that are moved down unread keep their writer's.
    pub compression_by_level: Vec<Compression>,
    /// How they are compressed in the deepest level, which holds most of the
    /// data, whatever the list says; `None`: no difference.
    pub compression_bottommost: Option<Compression>,
    /// What a dictionary for Zstandard has at most; 0 for none, else from 256
    /// to 1 MiB. Where a compaction compresses with Zstandard, each table gets
    /// a dictionary of its own if that saves more than it takes. It is held in
    /// memory, as indexes are.
    pub dictionary_bytes: usize,
    /// The beginning of a table, uncompressed, that its dictionary is made of.
    /// It is held in memory meanwhile, and may be less under a limit on memory.
    /// At least `dictionary_bytes`, at most 64 MiB; a hundred times as much is
    /// best.
    pub dictionary_training_bytes: usize,
    /// Filter bits for each key; 0 for no filter. A small table above older ones,
    /// which lookups of theirs ask in vain, gets six more, unless the deepest
    /// level's are given.
    pub filter_bits_per_key: u8,
    /// The same in the deepest level, which holds most of the data; `None`: no
    /// difference. 0 saves most of the memory that filters take where nearly all
    /// keys that are looked up exist: the levels above still tell what they lack,
    /// and only a key that is nowhere costs a block more.
    pub filter_bits_per_key_bottommost: Option<u8>,
    /// Divide the index and the filter of a new table into partitions of this
    /// size, which are read and cached like blocks, if they are larger; only a
    /// small top stays in memory then. Default: 4096 under a limit on memory,
    /// else none are.
    pub partition_bytes: Option<usize>,
    /// Compaction closes a table at this size.
    pub table_bytes: u64,
    /// Level-0 tables that start a compaction. Half of them do where at most half as
    /// many bytes have to be rewritten below.
    pub level0_compaction_files: usize,
    /// Level-0 tables beyond which writers are paced, slower with each.
    pub level0_slowdown_files: usize,
    /// Level-0 tables at which writers wait.
    pub level0_stop_files: usize,
    /// Bytes that compactions have yet to read and write beyond which writers
    /// are paced.
    pub debt_slowdown_bytes: u64,
    /// The same, at which writers wait.
    pub debt_stop_bytes: u64,
    /// Target size of the first level below level 0; what level 0 gathers, in full
    /// memtables, if that is less.
    pub level1_bytes: u64,
    /// How many times larger each further level is.
    pub level_multiplier: u32,
    /// Tables of which this part of the entries is tombstones are compacted
    /// also where no level is too large; so are tables with range deletes that
    /// would free much. 0 turns both off; at most 100.
    pub tombstone_percent: u8,
    /// Tables with tombstones that may be this many seconds old are compacted
    /// down to where tombstones go, at the next flush, compaction or open.
    /// 0: never because of their age.
    pub tombstone_age_seconds: u64,
}

impl Default for FamilyOptions {
    fn default() -> FamilyOptions {
        FamilyOptions {
            order: KeyOrder::Bytewise,
            merge_operator: None,
            prefix_extractor: None,
            memtable_bytes: 64 << 20,
            sealed_memtables_max: 2,
            block_bytes: 4096,
            compression: Compression::Lz4,
            compression_by_level: Vec::new(),
            compression_bottommost: None,
            dictionary_bytes: 0,
            dictionary_training_bytes: 1 << 20,
            filter_bits_per_key: 10,
            filter_bits_per_key_bottommost: None,
            partition_bytes: None,
            table_bytes: 64 << 20,
            level0_compaction_files: 8,
            level0_slowdown_files: 20,
            level0_stop_files: 36,
            debt_slowdown_bytes: 64 << 30,
            debt_stop_bytes: 256 << 30,
            level1_bytes: 256 << 20,
            level_multiplier: 6,
            tombstone_percent: 50,
            tombstone_age_seconds: 7 * 24 * 60 * 60,
        }
    }
}

/// A partition is read where a block is: about as large as one.
const PARTITION_BYTES: usize = 4096;

/// A level that a table is written for, where the first level in use below level 0
/// is `base`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LevelPlace {
    pub(crate) level: usize,
    pub(crate) base: usize,
    /// Older tables have keys of its range: lookups of theirs ask it in vain.
    pub(crate) covers_older: bool,
}

/// Filter bits for each key that a table gets on top where it covers older ones.
/// It is small beside those, a tenth or less, and asked as often: 16 bits in
/// place of 10 let through 1 in 600 in place of 1 in 100.
const COVERING_FILTER_BITS: u8 = 6;

impl FamilyOptions {
    /// How new tables of the family are built; `buffers` is what the builder's
    /// are charged to.
    pub(crate) fn table_settings(
        &self,
        at: LevelPlace,
        has_memory_limit: bool,
        buffers: Charge,
    ) -> TableSettings {
        // With memory enough for everything, partitions only cost a lookup more.
        let default = if has_memory_limit { PARTITION_BYTES } else { usize::MAX };
        TableSettings {
            block_bytes: self.block_bytes,
            filter_bits_per_key: self.filter_bits_at(at),
            compression: self.compression_at(at.level, at.base),
            dictionary_bytes: self.dictionary_bytes,
            dictionary_training_bytes: self.dictionary_training_bytes,
            prefix_extractor: self.prefix_extractor.unwrap_or_default(),
            partition_bytes: self.partition_bytes.unwrap_or(default),
            order: self.order.clone(),
            family: None,
            buffers,
        }
    }

    /// How LevelDB tables of the family, whose keys are in `order`, are written.
    pub(crate) fn leveldb_style(&self, order: &KeyOrder) -> TableStyle {
        // A filter goes by bytes, and would deny a key that is only equal.
        let may_filter = order.equal_means_identical();
        TableStyle {
            snappy: self.compression != Compression::None,
            filter_bits_per_key: if may_filter { self.filter_bits_per_key } else { 0 },
        }
    }

    /// Sets one option by its name: see [`Options::set`].
    pub fn set(&mut self, name: &str, value: &str) -> Result<()> {
        catalogue::set(self, name, value).map_err(Error::invalid)
    }

    /// All options of a family that can be text.
    pub fn catalogue() -> Vec<OptionInfo> {
        catalogue::infos::<FamilyOptions>()
    }

    /// The codec of tables of `level`, where the first level in use after level
    /// 0 is `base`.
    fn compression_at(&self, level: usize, base: usize) -> Compression {
        if let (BOTTOM, Some(compression)) = (level, self.compression_bottommost) {
            return compression;
        }
        // A level above the base is about to be emptied into it.
        let place = if level == 0 { 0 } else { level.max(base) - base + 1 };
        self.compression_by_level.get(place).copied().unwrap_or(self.compression)
    }

    fn filter_bits_at(&self, at: LevelPlace) -> u8 {
        match (self.filter_bits_per_key, self.filter_bits_per_key_bottommost) {
            (_, Some(bits)) if at.level == BOTTOM => bits,
            (0, _) => 0,
            (bits, None) if at.covers_older => bits.saturating_add(COVERING_FILTER_BITS),
            (bits, _) => bits,
        }
    }

    /// These options with `changes`, which an open family can take.
    pub(crate) fn changed(&self, changes: &[(&str, &str)]) -> Result<FamilyOptions> {
        let changed = catalogue::changed(self, changes)?;
        changed.validate_values()?;
        Ok(changed)
    }
}

/// How a write is done.
#[derive(Clone, Copy, Debug, Default)]
pub struct WriteOptions {
    /// Return only when the write survives power loss. Without it, a write
    /// survives the end of the process, but power loss may take back the
    /// newest ones.
    pub sync: bool,
    /// Where background work is behind and the write would be held back, fail
    /// at once with [`Error::Stalled`] instead. Nothing is written then.
    pub no_slowdown: bool,
    /// How long the write may be held back, or wait for writers before it.
    /// Then it fails with [`Error::Stalled`], and nothing is written. Once its
    /// turn to be logged has come it goes through, however slow the log is.
    pub deadline: Option<Duration>,
}

impl WriteOptions {
    /// A write that survives power loss, and waits as long as it takes.
    pub const SYNCED: WriteOptions =
        WriteOptions { sync: true, no_slowdown: false, deadline: None };
}

/// How tables are ingested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IngestOptions {
    /// Take the files away from where they are: they are linked into the
    /// database where the file system can do that, else copied, and their old
    /// names are removed in the end. Nobody may write to them any more, and no
    /// other database may have them. Default: false; they are copied.
    pub move_files: bool,
    /// Read all of each table first, and check every checksum, the order of the
    /// entries and the counts. Default: true. Without it, damage is found when
    /// it is read.
    pub verify: bool,
}

impl Default for IngestOptions {
    fn default() -> IngestOptions {
        IngestOptions { move_files: false, verify: true }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The list counts from above among the levels in use; the deepest level
    /// comes first, also where it is the base.
    #[test]
    fn codecs_go_by_what_a_level_is_for() {
        let (none, snappy, lz4) = (Compression::None, Compression::Snappy, Compression::Lz4);
        let zstd = Compression::Zstd { level: 3 };
        let mut options = FamilyOptions {
            compression: lz4,
            compression_by_level: vec![none, snappy],
            compression_bottommost: Some(zstd),
            ..FamilyOptions::default()
        };
        let codecs = |options: &FamilyOptions, base: usize| {
            [0, base, base + 1, BOTTOM].map(|level| options.compression_at(level.min(BOTTOM), base))
        };
        assert_eq!(codecs(&options, 3), [none, snappy, lz4, zstd]);
        assert_eq!(codecs(&options, BOTTOM), [none, zstd, zstd, zstd]);
        assert_eq!(options.compression_at(2, 4), snappy, "what is emptied counts as the base");
        options.compression_bottommost = None;
        assert_eq!(codecs(&options, 3), [none, snappy, lz4, lz4]);
        assert_eq!(codecs(&options, BOTTOM), [none, snappy, snappy, snappy]);
        options.compression_by_level.clear();
        assert_eq!(codecs(&options, 3), [lz4; 4]);
    }
}
