//! The engines by name.

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

/// An engine of a comparison. Ours comes first, then ours again; tables have their
/// columns in this order.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, ValueEnum, Serialize, Deserialize,
)]
#[serde(rename_all = "kebab-case")]
pub enum EngineKind {
    /// Lodestore.
    Lodestore,
    /// Lodestore a second time, to see what chance does to a ratio.
    LodestoreAgain,
    /// RocksDB.
    #[value(name = "rocksdb")]
    #[serde(rename = "rocksdb")]
    RocksDb,
    /// LevelDB.
    #[value(name = "leveldb")]
    #[serde(rename = "leveldb")]
    LevelDb,
    /// fjall.
    Fjall,
    /// redb.
    Redb,
    /// LMDB.
    Lmdb,
}

impl EngineKind {
    /// The name on the command line and in tables.
    pub fn name(self) -> &'static str {
        match self {
            EngineKind::Lodestore => "lodestore",
            EngineKind::LodestoreAgain => "lodestore-again",
            EngineKind::RocksDb => "rocksdb",
            EngineKind::LevelDb => "leveldb",
            EngineKind::Fjall => "fjall",
            EngineKind::Redb => "redb",
            EngineKind::Lmdb => "lmdb",
        }
    }

    /// What its makers call it.
    pub fn title(self) -> &'static str {
        match self {
            EngineKind::Lodestore => "Lodestore",
            EngineKind::LodestoreAgain => "Lodestore again",
            EngineKind::RocksDb => "RocksDB",
            EngineKind::LevelDb => "LevelDB",
            EngineKind::Fjall => "fjall",
            EngineKind::Redb => "redb",
            EngineKind::Lmdb => "LMDB",
        }
    }

    /// True if this program was built with it.
    pub fn is_compiled(self) -> bool {
        match self {
            EngineKind::Lodestore | EngineKind::LodestoreAgain => true,
            EngineKind::LevelDb => cfg!(feature = "leveldb"),
            EngineKind::RocksDb => cfg!(feature = "rocksdb"),
            EngineKind::Fjall => cfg!(feature = "fjall"),
            EngineKind::Redb => cfg!(feature = "redb"),
            EngineKind::Lmdb => cfg!(feature = "lmdb"),
        }
    }

    /// All engines that this program was built with.
    pub fn compiled() -> impl Iterator<Item = EngineKind> {
        EngineKind::value_variants().iter().copied().filter(|engine| engine.is_compiled())
    }

    /// True if every write is a transaction that has the database for itself.
    pub fn is_transactional(self) -> bool {
        matches!(self, EngineKind::Redb | EngineKind::Lmdb)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Names are the same on the command line, in JSON and in tables.
    #[test]
    fn names_agree() {
        for &engine in EngineKind::value_variants() {
            let typed = engine.to_possible_value().expect("none is hidden");
            assert_eq!(typed.get_name(), engine.name());
            let json = serde_json::to_string(&engine).expect("a name");
            assert_eq!(json, format!("{:?}", engine.name()));
        }
        assert!(EngineKind::compiled().any(|engine| engine == EngineKind::LodestoreAgain));
    }
}
