//! What may differ from opening to opening: every option that decides how the
//! database works and not what it contains, chosen by the seed of the run.
//!
//! All are small, so that everything happens often.

use crate::load::with_families;
use crate::random::Random;
use lodestore::Options;
use std::fmt;

/// The choices of one run.
#[derive(Clone, Debug)]
pub struct Choices {
    /// Options of the database, by name.
    database: Vec<(&'static str, String)>,
    /// Options of its families, by name.
    family: Vec<(&'static str, String)>,
    /// Writers that are at work.
    pub writers: u8,
    /// One batch in so many is synced.
    pub synced_one_in: usize,
}

impl Choices {
    /// The choices that follow from `seed`.
    pub fn of(seed: u64) -> Choices {
        let mut random = Random::new(seed);
        Choices {
            database: database(&mut random),
            family: family(&mut random),
            writers: random.between(1, usize::from(super::target::WRITERS)) as u8,
            synced_one_in: *random.pick(&[1, 4, 40, 40, 1000]),
        }
    }

    /// The options that they make.
    ///
    /// # Panics
    /// If one of them does not exist or does not take its value.
    pub fn options(&self) -> Options {
        let mut options = Options { create_if_missing: true, ..Options::default() };
        let sound = "a choice is an option";
        self.database.iter().for_each(|(name, value)| options.set(name, value).expect(sound));
        self.family.iter().for_each(|(name, value)| options.family.set(name, value).expect(sound));
        with_families(options)
    }
}

/// As a line for whoever wants to repeat a run by hand.
impl fmt::Display for Choices {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let writers = self.writers;
        write!(f, "writers={writers} synced-one-in={}", self.synced_one_in)?;
        let all = self.database.iter().chain(&self.family);
        all.into_iter().try_for_each(|(name, value)| write!(f, " {name}={value}"))
    }
}

fn kib(kib: usize) -> String {
    format!("{kib}KiB")
}

fn database(random: &mut Random) -> Vec<(&'static str, String)> {
    let mut chosen = vec![
        ("background_threads", random.between(1, 4).to_string()),
        // Small ones have segments retired, and used again, all the time.
        ("log_bytes_max", kib(*random.pick(&[16, 64, 64, 256]))),
        ("log_mapped", random.pick(&["yes", "no"]).to_string()),
    ];
    match random.below(3) {
        0 => chosen.push(("memory_bytes", kib(random.between(128, 512)))),
        _ => chosen.push(("cache_bytes", kib(*random.pick(&[0, 4, 64, 1024])))),
    }
    if random.one_in(2) {
        chosen.push(("row_cache_bytes", kib(random.between(1, 32))));
    }
    if random.one_in(3) {
        chosen.push(("open_files_max", random.between(1, 4).to_string()));
    }
    if random.one_in(4) {
        chosen.push(("status_interval", "10ms".to_string()));
    }
    if random.one_in(4) {
        chosen.push(("background_bytes_per_second", "4MiB".to_string()));
    }
    chosen
}

fn family(random: &mut Random) -> Vec<(&'static str, String)> {
    let level0 = random.between(1, 4);
    let filter_bits = *random.pick(&[0, 1, 10, 16]);
    let mut chosen = vec![
        ("memtable_bytes", kib(random.between(2, 48))),
        ("sealed_memtables_max", random.between(1, 3).to_string()),
        ("table_bytes", kib(random.between(2, 32))),
        ("block_bytes", (64 << random.below(7)).to_string()),
        ("filter_bits_per_key", filter_bits.to_string()),
        ("level0_compaction_files", level0.to_string()),
        ("level0_slowdown_files", (level0 + 4).to_string()),
        ("level0_stop_files", (level0 + 12).to_string()),
        ("level1_bytes", kib(random.between(8, 128))),
        ("level_multiplier", random.between(2, 6).to_string()),
        ("tombstone_percent", random.pick(&["0", "10", "50"]).to_string()),
        ("compression", random.pick(&["none", "snappy", "lz4", "zstd:1"]).to_string()),
    ];
    if filter_bits > 0 {
        let extractors = ["none", "fixed:3", "capped:5", "delimiter:0x2f"];
        chosen.push(("prefix_extractor", random.pick(&extractors).to_string()));
        chosen.push(("filter_bits_per_key_bottommost", random.pick(&["0", "12"]).to_string()));
    }
    if random.one_in(3) {
        chosen.push(("compression_by_level", "none,lz4,zstd:1".to_string()));
    }
    if random.one_in(3) {
        chosen.push(("compression_bottommost", "zstd:1".to_string()));
        chosen.push(("dictionary_bytes", random.pick(&["0", "256", "2KiB"]).to_string()));
        chosen.push(("dictionary_training_bytes", random.pick(&["4KiB", "64KiB"]).to_string()));
    }
    if random.one_in(3) {
        chosen.push(("partition_bytes", (64 << random.below(4)).to_string()));
    }
    chosen
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whatever the seed, the options can be opened with; over some seeds, each
    /// choice is met with more than one value.
    #[test]
    fn every_choice_opens_and_differs() {
        let values = |name: &str| {
            let of = |seed| {
                let choices = Choices::of(seed);
                let all = choices.database.into_iter().chain(choices.family);
                all.filter(|(chosen, _)| *chosen == name).map(|(_, value)| value).next()
            };
            (0..200).map(of).collect::<std::collections::BTreeSet<_>>().len()
        };
        for seed in 0..200 {
            let choices = Choices::of(seed);
            let fs = std::sync::Arc::new(lodestore::MemFs::new());
            let options = Options { fs, ..choices.options() };
            lodestore::Db::open("/db", options)
                .unwrap_or_else(|error| panic!("{choices}: {error}"));
        }
        let choices = Choices::of(1);
        for (name, _) in choices.database.iter().chain(&choices.family) {
            assert!(values(name) > 1, "{name} is always the same");
        }
    }
}
