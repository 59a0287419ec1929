//! Options that change while the database is open.
//!
//! names and values -> checked as a whole -> (from here on nothing fails:) in
//! effect -> the file of options
//!
//! Whoever needs an option of a family asks the family when it needs it, so
//! that replacing them all at once is the change; only what was copied
//! elsewhere (the size of the memtable, the caches, the caps) is told here.

use crate::budget::memtable_share_of;
use crate::error::{Error, Result};
use crate::options::Options;
use crate::sync::Arc;
use crate::sync::atomic::Ordering;

use super::engine::Engine;
use super::family::FamilyCore;
use super::open::{check_writes_nothing, files_max};

impl Engine {
    /// [`Options::log_bytes_max`] as it is now.
    #[inline]
    pub(crate) fn log_bytes_max(&self) -> u64 {
        self.log_bytes_max.load(Ordering::Relaxed)
    }

    /// Changes options of the database: all, or none.
    pub(crate) fn set_options(self: &Arc<Self>, changes: &[(&str, &str)]) -> Result<()> {
        let sets = |name: &str| changes.iter().any(|(changed, _)| *changed == name);
        let mut options = self.options.lock();
        let changed = options.changed(changes)?;
        check_conflicts(&changed, sets)?;
        if self.read_only {
            check_writes_nothing(&changed)?;
            self.check_fits_memtables(&changed)?;
        }
        self.set_sizes(&changed, sets);
        if sets("background_bytes_per_second") {
            let rate = changed.background_bytes_per_second;
            let rate = if rate == 0 { u64::MAX } else { rate };
            self.limiter.limiter().set_bytes_per_second(rate);
        }
        if sets("open_files_max") {
            self.file_limit.set_files_max(files_max(&changed));
        }
        self.log_bytes_max.store(changed.log_bytes_max, Ordering::Relaxed);
        *options = changed;
        drop(options);
        if sets("memory_bytes") {
            self.fit_memory();
        }
        if sets("status_interval") {
            self.publish_by_options();
        }
        self.keep_options();
        Ok(())
    }

    /// Sets the limit on memory and the sizes of the caches.
    fn set_sizes(&self, changed: &Options, sets: impl Fn(&str) -> bool) {
        if sets("memory_bytes") {
            self.shared.memory.budget().set_bytes_max(changed.memory_bytes);
        }
        if sets("row_cache_bytes") {
            self.shared.rows.set_bytes_max(changed.row_cache_bytes);
        }
        if sets("cache_bytes") {
            self.shared.cache.set_capacity_bytes(changed.cache_bytes);
        }
    }

    /// Refuses a limit that opening for reading only would refuse: what was
    /// read from the log stays in memory.
    fn check_fits_memtables(&self, options: &Options) -> Result<()> {
        let (active, sealed) = self.shared.memory.budget().memtable_bytes();
        match options.memory_bytes {
            Some(bytes) if active + sealed > memtable_share_of(bytes) => {
                Err(Error::invalid(format!(
                    "memory_bytes is {bytes}: memtables may take {}, and what was read from the \
                     log for reading only takes {}",
                    memtable_share_of(bytes),
                    active + sealed
                )))
            }
            _ => Ok(()),
        }
    }

    /// Changes options of a family: all, or none.
    pub(crate) fn set_family_options(
        self: &Arc<Self>,
        family: &FamilyCore,
        changes: &[(&str, &str)],
    ) -> Result<()> {
        let mut commit = self.commit.lock();
        if self.families.load().get(family.id).is_none() {
            return Err(Error::missing(format!("family {:?}", family.name)));
        }
        let changed = family.options().changed(changes)?;
        commit.set_memtable_bytes(family.id, changed.memtable_bytes);
        family.set_options(changed);
        drop(commit);
        // There may be more to do by the new options, or less to wait for.
        self.update_pressure();
        self.wake_writers();
        self.start_compactions();
        self.keep_options();
        Ok(())
    }
}

/// Refuses to set what something that was given at opening decides.
fn check_conflicts(options: &Options, sets: impl Fn(&str) -> bool) -> Result<()> {
    let conflict = if sets("cache_bytes") && options.cache.is_some() {
        "cache_bytes cannot be set: the database was given a cache; set that one's capacity"
    } else if sets("cache_bytes") && options.memory_bytes.is_some() {
        "cache_bytes cannot be set: memory_bytes decides how large the cache is"
    } else if sets("cache_bytes") && options.budget.is_some() {
        "cache_bytes cannot be set: budget decides how large the cache is"
    } else if sets("memory_bytes") && options.budget.is_some() {
        "memory_bytes cannot be set: the database was given a budget, which is its limit"
    } else if sets("background_bytes_per_second") && options.rate_limiter.is_some() {
        "background_bytes_per_second cannot be set: the database was given a rate_limiter; \
         set that one's rate"
    } else {
        return Ok(());
    };
    Err(Error::invalid(conflict))
}
