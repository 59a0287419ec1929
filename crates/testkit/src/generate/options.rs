//! Random options: of a database when it is opened, and live ones.

use super::{Generator, PREFIX_EXTRACTORS, Shape};
use crate::command::Command;
use crate::random::Random;

/// Knobs that decide how data is laid out, not what is answered.
const LAYOUT: [&str; 11] = [
    "memtable",
    "sealed",
    "table",
    "block",
    "level0",
    "level1",
    "multiplier",
    "tombstones",
    "threads",
    "codec",
    "files",
];

/// The same history with other layouts of the data, which follow from `seed`:
/// each opening takes other values where it sets one that only decides that.
pub fn with_other_options(history: &[Command], seed: u64) -> Vec<Command> {
    let mut generator = Generator::new(seed, Shape::default());
    let mut history = history.to_vec();
    for command in &mut history {
        let Command::Open { settings, .. } = command else { continue };
        let others = generator.knobs();
        for (name, value) in &mut settings.knobs {
            let other = others.iter().find(|(other, _)| other == name);
            if let Some((_, other)) = other.filter(|_| LAYOUT.contains(&&name[..])) {
                value.clone_from(other);
            }
        }
    }
    history
}

impl Generator {
    /// Small memtables, tables and levels, so that short histories go deep.
    pub(super) fn knobs(&mut self) -> Vec<(String, String)> {
        let r = &mut self.random;
        let codecs = ["none", "snappy", "lz4", "zstd"];
        let knobs = [
            ("memtable", r.between(4, 64) << 10),
            ("sealed", r.between(1, 3)),
            ("table", r.between(2, 32) << 10),
            ("block", 64 << r.below(7)),
            ("filter", r.below(17)),
            ("level0", r.between(1, 4)),
            ("level1", r.between(4, 64) << 10),
            ("multiplier", r.between(2, 6)),
            ("tombstones", *r.pick(&[0, 10, 50])),
            ("threads", r.between(1, 3)),
            ("cache", if r.one_in(4) { 0 } else { r.between(1, 256) << 10 }),
            ("rows", if r.one_in(2) { 0 } else { r.between(1, 12) << 10 }),
        ];
        let mut knobs = knobs.map(|(name, value)| (name.to_string(), value.to_string())).to_vec();
        knobs.push(("codec".to_string(), r.pick(&codecs).to_string()));
        let among = |r: &mut Random, name: &str, choices: &[&str]| {
            (name.to_string(), r.pick(choices).to_string())
        };
        if r.one_in(2) {
            knobs.push(among(
                r,
                "compression_by_level",
                &["none", "none,lz4", "snappy,zstd:1,none"],
            ));
            let codecs = ["default", "none", "zstd:1", "zstd:3"];
            knobs.push(among(r, "compression_bottommost", &codecs));
        }
        if r.one_in(2) {
            knobs.push(among(r, "compression_bottommost", &["zstd:1"]));
            knobs.push(among(r, "dictionary_bytes", &["256", "1KiB", "4KiB"]));
            knobs.push(among(r, "dictionary_training_bytes", &["4KiB", "64KiB"]));
        }
        let has_filter = knobs.iter().any(|(name, bits)| name == "filter" && bits != "0");
        if has_filter {
            knobs.push(among(r, "prefix_extractor", &PREFIX_EXTRACTORS));
            knobs.push(among(r, "filter_bits_per_key_bottommost", &["default", "0", "4"]));
        }
        self.memory_is_limited = r.one_in(3);
        if self.memory_is_limited {
            knobs.push(("memory".to_string(), (r.between(64, 512) << 10).to_string()));
        }
        if r.one_in(2) {
            knobs.push(("partition".to_string(), (64 << r.below(4)).to_string()));
        }
        if r.one_in(3) {
            knobs.push(("files".to_string(), r.between(1, 4).to_string()));
        }
        knobs
    }

    /// The limit on memory, which may come or go, and the row cache within it.
    fn change_memory(&mut self) -> Command {
        let r = &mut self.random;
        self.memory_is_limited = !r.one_in(3);
        let limit = match self.memory_is_limited {
            true => format!("{}KiB", r.between(64, 512)),
            false => "default".to_string(),
        };
        let rows = if r.one_in(3) { 0 } else { r.between(1, 24) };
        let changes = [("memory_bytes", limit), ("row_cache_bytes", format!("{rows}KiB"))];
        let changes = changes.map(|(name, value)| (name.to_string(), value)).to_vec();
        Command::SetOptions { family: None, changes }
    }

    /// Options that change while the database is open: of one family, or of
    /// the database.
    pub(super) fn change_options(&mut self) -> Command {
        if self.random.one_in(8) {
            return self.change_memory();
        }
        let family = self.family();
        let r = &mut self.random;
        let kib = |bytes: usize| format!("{bytes}KiB");
        let level0 = r.between(1, 4);
        let of_family = [
            vec![("memtable_bytes", kib(r.between(4, 64)))],
            vec![("sealed_memtables_max", r.between(1, 3).to_string())],
            vec![("block_bytes", (64 << r.below(7)).to_string())],
            vec![("compression", r.pick(&["none", "snappy", "lz4", "zstd:1"]).to_string())],
            vec![("compression_bottommost", r.pick(&["default", "lz4", "zstd:3"]).to_string())],
            vec![
                ("dictionary_bytes", r.pick(&["0", "512", "2KiB"]).to_string()),
                ("dictionary_training_bytes", kib(r.between(2, 64))),
            ],
            vec![("filter_bits_per_key", r.below(17).to_string())],
            vec![("filter_bits_per_key_bottommost", r.pick(&["default", "0", "5"]).to_string())],
            vec![("partition_bytes", r.pick(&["default", "64", "512"]).to_string())],
            vec![("table_bytes", kib(r.between(2, 32)))],
            vec![
                ("level0_compaction_files", level0.to_string()),
                ("level0_slowdown_files", (level0 + 4).to_string()),
                ("level0_stop_files", (level0 + 12).to_string()),
            ],
            vec![("level1_bytes", kib(r.between(4, 64)))],
            vec![("level_multiplier", r.between(2, 6).to_string())],
            vec![("tombstone_percent", r.pick(&["0", "10", "50"]).to_string())],
        ];
        let of_database = [
            vec![("open_files_max", r.pick(&["default", "1", "3"]).to_string())],
            vec![("log_bytes_max", kib(r.between(8, 1024)))],
            vec![("background_bytes_per_second", r.pick(&["0", "1GiB"]).to_string())],
            vec![("row_cache_bytes", kib(r.below(24)))],
            vec![("status_interval", r.pick(&["default", "10ms", "1s"]).to_string())],
            vec![("cache_bytes", kib(r.below(256)))],
        ];
        let settable = of_database.len() - usize::from(self.memory_is_limited);
        let (family, list) = match r.one_in(5) {
            true => (None, &of_database[..settable]),
            false => (Some(family), &of_family[..]),
        };
        let first = r.below(list.len());
        let second = r.below(list.len());
        let mut changes = list[first].clone();
        if second != first {
            changes.extend_from_slice(&list[second]);
        }
        let changes = changes.into_iter().map(|(name, value)| (name.to_string(), value)).collect();
        Command::SetOptions { family, changes }
    }
}
