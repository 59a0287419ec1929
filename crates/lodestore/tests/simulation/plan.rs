//! What kind of life a seed gives.

use lodestore::{Compression, Options, Scheduler};
use std::sync::Arc;
use testkit::load::with_families;
use testkit::random::Random;

/// What goes wrong in a life, beside crashes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// Nothing.
    None,
    /// Calls to the file system fail: with EIO, or for want of room.
    Errors,
    /// A write goes to a wrong place, once.
    Misdirected,
    /// There is no log: a crash takes back to the last flush.
    NoLog,
}

impl Trouble {
    /// The trouble of a seed: three lives in five have none.
    pub fn of(seed: u64) -> Trouble {
        match seed % 10 {
            7 | 8 => Trouble::Errors,
            9 => Trouble::NoLog,
            4 => Trouble::Misdirected,
            _ => Trouble::None,
        }
    }
}

/// Other options at each opening.
pub fn options(random: &mut Random, trouble: Trouble) -> (Options, Arc<Scheduler>) {
    let scheduler = Scheduler::seeded(random.between(1, 3), random.word());
    let codecs =
        [Compression::None, Compression::Snappy, Compression::Lz4, Compression::Zstd { level: 1 }];
    let mut options = Options { create_if_missing: true, ..Options::default() };
    options.scheduler = Some(Arc::clone(&scheduler));
    options.logging = trouble != Trouble::NoLog;
    options.log_mapped = random.one_in(2);
    options.direct_reads = random.one_in(3);
    options.background_bytes_per_second = *random.pick(&[0, 0, 0, 1 << 20]);
    options.cache_bytes = random.between(0, 64 << 10);
    options.row_cache_bytes = *random.pick(&[0, 0, 8 << 10]);
    options.open_files_max = *random.pick(&[None, None, Some(2)]);
    options.log_bytes_max = random.between(4, 24) as u64 * 1024;
    options.family.memtable_bytes = random.between(2, 8) << 10;
    options.family.sealed_memtables_max = random.between(1, 3);
    options.family.table_bytes = random.between(1, 4) as u64 * 1024;
    options.family.block_bytes = 128 << random.below(4);
    options.family.filter_bits_per_key = *random.pick(&[0, 4, 10]);
    options.family.partition_bytes = *random.pick(&[None, Some(128)]);
    options.family.compression = *random.pick(&codecs);
    options.family.level0_compaction_files = random.between(1, 4) as _;
    options.family.level0_slowdown_files = 6;
    options.family.level0_stop_files = 10;
    options.family.level1_bytes = random.between(4, 16) as u64 * 1024;
    options.family.level_multiplier = random.between(2, 4) as _;
    (with_families(options), scheduler)
}
