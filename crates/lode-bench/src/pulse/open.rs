//! Opening a pulse's database, inside a memory limit or not.

use std::sync::Arc;

use lodestore::{Db, Options, Statistics};

use crate::STATUS_INTERVAL;
use crate::error::BenchError;
use crate::pulse::cgroup::MemoryLimit;
use crate::pulse::flags::Surroundings;
use crate::pulse::pages::drop_cached;

/// Whether the database may change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Nothing in it changes.
    Read,
    /// What is written is in the log before it is acknowledged.
    Write,
    /// Without a log: what is not flushed is loaded again.
    Load,
}

/// An open database and what surrounds it.
#[derive(Debug)]
pub struct Opened {
    /// The database. It closes before the process leaves its group.
    pub db: Db,
    /// What it counts.
    pub statistics: Arc<Statistics>,
    /// The group that this process is in, if one was asked for.
    pub limit: Option<MemoryLimit>,
}

/// Nearly all keys of a pulse exist: its largest level goes without filters.
fn default_options() -> Options {
    let mut options = Options::default();
    options.family.filter_bits_per_key_bottommost = Some(0);
    options
}

/// Enters the memory limit, if there is one, and opens the database.
pub fn open(surroundings: &Surroundings, access: Access) -> Result<Opened, BenchError> {
    let path = &surroundings.db;
    let limit = surroundings.memory_limit.map(MemoryLimit::enter).transpose()?;
    if limit.is_some() && path.exists() {
        // Pages that others have read count for them, not for the limit.
        drop_cached(path)?;
    }
    let statistics = Arc::<Statistics>::default();
    let options = match &surroundings.options {
        Some(path) => {
            Options::load(path).map_err(|error| BenchError::Usage(format!("--options: {error}")))?
        }
        None => default_options(),
    };
    let mut options = Options {
        create_if_missing: access == Access::Load,
        error_if_exists: false,
        direct_reads: options.direct_reads || surroundings.direct,
        logging: options.logging && access != Access::Load,
        statistics: Some(Arc::clone(&statistics)),
        status_interval: surroundings.status.then_some(STATUS_INTERVAL).or(options.status_interval),
        ..options
    };
    if access == Access::Read {
        // Who writes nothing tells nobody how it is, whatever the file says.
        options.status_interval = None;
    }
    if let Some(bytes) = surroundings.cache_size {
        if options.memory_bytes.is_some() {
            let what = "--cache-size: memory_bytes in the file of --options sizes the cache";
            return Err(BenchError::Usage(what.to_string()));
        }
        options.cache_bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
    }
    let db = match access {
        Access::Read => Db::open_read_only(path, options),
        Access::Write | Access::Load => Db::open(path, options),
    };
    let db = db.map_err(BenchError::engine("opening the database"))?;
    Ok(Opened { db, statistics, limit })
}
