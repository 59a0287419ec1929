//! Values and combinations of options that are refused, by name.

use std::time::Duration;

use crate::budget::BUDGET_BYTES_MIN;
use crate::error::{Error, Result};
use crate::prefix::PrefixExtractor;
use crate::table::{Compression, DICTIONARY_BYTES_MAX, DICTIONARY_BYTES_MIN};
use crate::version::LEVELS;

use super::{FamilyOptions, Options};

/// A memtable's arena holds 16 GiB; one batch may add 10 GiB to a full one.
const MEMTABLE_BYTES_MAX: usize = 4 << 30;

/// Less tells people nothing more.
const STATUS_INTERVAL_MIN: Duration = Duration::from_millis(10);

/// Samples of a dictionary are held in memory.
const TRAINING_BYTES_MAX: usize = 64 << 20;

impl Options {
    pub(crate) fn validate(&self) -> Result<()> {
        if self.open_files_max == Some(0) {
            return Err(Error::invalid("open_files_max is 0; it must be at least 1"));
        }
        if let Some(interval) = self.status_interval.filter(|i| *i < STATUS_INTERVAL_MIN) {
            let what = format!("status_interval is {interval:?}; it must be at least 10 ms");
            return Err(Error::invalid(what));
        }
        self.validate_memory()?;
        self.family.validate()?;
        self.families.iter().try_for_each(|(name, family)| {
            family.validate().map_err(|error| error.about(format!("family {name:?}")))
        })
    }

    fn validate_memory(&self) -> Result<()> {
        let conflict = match (self.memory_bytes, &self.budget, &self.cache) {
            (Some(bytes), ..) if bytes < BUDGET_BYTES_MIN => {
                let what = format!("memory_bytes is {bytes}; it must be at least 65536");
                return Err(Error::invalid(what));
            }
            (Some(_), Some(_), _) => "memory_bytes and budget are two limits: give one",
            (Some(_), _, Some(_)) => {
                "memory_bytes makes a cache of its own: to share one, give budget and cache"
            }
            (None, Some(budget), Some(cache)) if !cache.is_within(budget) => {
                "cache is not within budget: make it by Cache::within"
            }
            _ => return self.validate_rows(),
        };
        Err(Error::invalid(conflict))
    }

    fn validate_rows(&self) -> Result<()> {
        let of_budget = self.budget.as_ref().and_then(|budget| budget.bytes_max());
        let of_budget = of_budget.map(|limit| ("the budget", limit));
        let limit = of_budget.or(self.memory_bytes.map(|limit| ("memory_bytes", limit)));
        let rows = self.row_cache_bytes;
        match limit.filter(|(_, limit)| rows > limit / 2) {
            Some((name, limit)) => Err(Error::invalid(format!(
                "row_cache_bytes is {rows}; it may be half of {name}, {limit}, at most"
            ))),
            None => Ok(()),
        }
    }
}

impl FamilyOptions {
    pub(crate) fn validate(&self) -> Result<()> {
        self.validate_values()?;
        self.validate_effects()
    }

    /// Nobody asks for what can have no effect. Options of an open family are
    /// exempt: there one may be changed before the other.
    fn validate_effects(&self) -> Result<()> {
        let mut codecs = self.compression_by_level.iter().chain(&self.compression_bottommost);
        let is_zstd = |codec: &Compression| matches!(codec, Compression::Zstd { .. });
        if self.dictionary_bytes > 0 && !is_zstd(&self.compression) && !codecs.any(is_zstd) {
            return Err(Error::invalid(format!(
                "dictionary_bytes is {}, but none of compression, compression_by_level and \
                 compression_bottommost is zstd",
                self.dictionary_bytes
            )));
        }
        match self.prefix_extractor {
            Some(extractor)
                if extractor != PrefixExtractor::None && self.filter_bits_per_key == 0 =>
            {
                Err(Error::invalid(format!(
                    "prefix_extractor is {extractor}, but filter_bits_per_key is 0: prefixes are \
                     kept in filters"
                )))
            }
            _ => Ok(()),
        }
    }

    pub(super) fn validate_values(&self) -> Result<()> {
        let at_least = |name: &str, value: u64, least: u64| {
            if value >= least {
                return Ok(());
            }
            Err(Error::invalid(format!("{name} is {value}; it must be at least {least}")))
        };
        at_least("memtable_bytes", self.memtable_bytes as u64, 1 << 10)?;
        if self.memtable_bytes > MEMTABLE_BYTES_MAX {
            let bytes = self.memtable_bytes;
            let what = format!("memtable_bytes is {bytes}; at most {MEMTABLE_BYTES_MAX} work");
            return Err(Error::invalid(what));
        }
        at_least("sealed_memtables_max", self.sealed_memtables_max as u64, 1)?;
        at_least("block_bytes", self.block_bytes as u64, 64)?;
        at_least("partition_bytes", self.partition_bytes.map_or(64, |b| b as u64), 64)?;
        at_least("table_bytes", self.table_bytes, 1 << 10)?;
        at_least("level1_bytes", self.level1_bytes, 1 << 10)?;
        at_least("level_multiplier", u64::from(self.level_multiplier), 2)?;
        at_least("level0_compaction_files", self.level0_compaction_files as u64, 1)?;
        if self.tombstone_percent > 100 {
            let what = format!("tombstone_percent is {}; at most 100 work", self.tombstone_percent);
            return Err(Error::invalid(what));
        }
        self.validate_compression()?;
        self.validate_prefixes()?;
        let files =
            [self.level0_compaction_files, self.level0_slowdown_files, self.level0_stop_files];
        if !files.is_sorted() {
            return Err(Error::invalid(format!(
                "level0_compaction_files <= level0_slowdown_files <= level0_stop_files \
                 must hold; they are {files:?}"
            )));
        }
        // Nothing is always as much as nothing: writers would wait for ever.
        at_least("debt_stop_bytes", self.debt_stop_bytes, 1)?;
        let debts = [self.debt_slowdown_bytes, self.debt_stop_bytes];
        if !debts.is_sorted() {
            return Err(Error::invalid(format!(
                "debt_slowdown_bytes <= debt_stop_bytes must hold; they are {debts:?}"
            )));
        }
        Ok(())
    }

    fn validate_compression(&self) -> Result<()> {
        let levels = self.compression_by_level.len();
        if levels > LEVELS {
            let what = format!("compression_by_level names {levels} codecs; at most {LEVELS} work");
            return Err(Error::invalid(what));
        }
        let (bytes, training) = (self.dictionary_bytes, self.dictionary_training_bytes);
        let sound = DICTIONARY_BYTES_MIN..=DICTIONARY_BYTES_MAX;
        if bytes > 0 && !sound.contains(&bytes) {
            let (least, most) = sound.into_inner();
            let what = format!("dictionary_bytes is {bytes}; 0, or from {least} to {most} work");
            return Err(Error::invalid(what));
        }
        if training < bytes || training > TRAINING_BYTES_MAX {
            return Err(Error::invalid(format!(
                "dictionary_training_bytes is {training}; from dictionary_bytes, which is {bytes}, \
                 to {TRAINING_BYTES_MAX} work"
            )));
        }
        Ok(())
    }

    fn validate_prefixes(&self) -> Result<()> {
        match self.prefix_extractor {
            Some(PrefixExtractor::Fixed(0) | PrefixExtractor::Capped(0)) => {
                Err(Error::invalid("prefix_extractor takes 0 bytes; it must be at least 1"))
            }
            None | Some(PrefixExtractor::None) => Ok(()),
            Some(extractor) if !self.order.is_bytewise() => Err(Error::invalid(format!(
                "prefix_extractor is {extractor}, but order is {}: keys with one prefix are \
                 neighbours in bytewise order only",
                self.order.name()
            ))),
            Some(_) => Ok(()),
        }
    }
}
