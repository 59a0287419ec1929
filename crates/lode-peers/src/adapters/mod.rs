//! One file for each engine: its settings and calls in terms of
//! [`Engine`].

mod lodestore;
#[cfg(feature = "leveldb")]
mod leveldb;
#[cfg(feature = "rocksdb")]
mod rocksdb;
#[cfg(feature = "fjall")]
mod fjall;
#[cfg(feature = "redb")]
mod redb;
#[cfg(feature = "lmdb")]
mod lmdb;

use std::path::Path;

use crate::engine::{Engine, Result};
use crate::engines::EngineKind;
use crate::failure::Failure;
use crate::lanes::Settings;

/// Opens the database in `directory`, which exists; an empty one becomes a
/// new database.
///
/// # Errors
/// `Usage` if this program was built without the engine.
pub fn open(engine: EngineKind, directory: &Path, settings: &Settings) -> Result<Box<dyn Engine>> {
    match engine {
        EngineKind::Lodestore | EngineKind::LodestoreAgain => lodestore::open(directory, settings),
        #[cfg(feature = "leveldb")]
        EngineKind::LevelDb => leveldb::open(directory, settings),
        #[cfg(feature = "rocksdb")]
        EngineKind::RocksDb => rocksdb::open(directory, settings),
        #[cfg(feature = "fjall")]
        EngineKind::Fjall => fjall::open(directory, settings),
        #[cfg(feature = "redb")]
        EngineKind::Redb => redb::open(directory, settings),
        #[cfg(feature = "lmdb")]
        EngineKind::Lmdb => lmdb::open(directory, settings),
        #[allow(unreachable_patterns)] // with all features there is none left
        engine => Err(Failure::Usage(format!(
            "this program was built without {}; see ./scripts/compare",
            engine.name()
        ))),
    }
}

/// The version of an engine that this program was built with.
pub fn version(engine: EngineKind) -> String {
    match engine {
        EngineKind::Lodestore | EngineKind::LodestoreAgain => env!("CARGO_PKG_VERSION").to_string(),
        #[cfg(feature = "leveldb")]
        EngineKind::LevelDb => leveldb::version(),
        #[cfg(not(feature = "leveldb"))]
        EngineKind::LevelDb => "the system's".to_string(),
        // The part after the plus is RocksDB's own version.
        EngineKind::RocksDb => locked_version("librocksdb-sys"),
        EngineKind::Fjall => locked_version("fjall"),
        EngineKind::Redb => locked_version("redb"),
        #[cfg(feature = "lmdb")]
        EngineKind::Lmdb => lmdb::version(),
        #[cfg(not(feature = "lmdb"))]
        EngineKind::Lmdb => locked_version("lmdb-master-sys"),
    }
}

/// The version of `package` that this workspace is built with.
fn locked_version(package: &str) -> String {
    const LOCK: &str = include_str!("../../../../Cargo.lock");
    let name = format!("name = \"{package}\"");
    let mut after = LOCK.lines().skip_while(|line| *line != name).skip(1);
    let version = after.next().and_then(|line| line.strip_prefix("version = "));
    version.map_or_else(|| "unknown".to_string(), |text| text.trim_matches('"').to_string())
}

#[cfg(test)]
mod tests;
