//! Lodestore: an ordered, embedded key-value store (a log-structured merge tree).
//!
//! ```
//! use lodestore::{Db, Options, ReadOptions, WriteBatch};
//! # let directory = std::env::temp_dir().join(format!("lodestore-root-{}", std::process::id()));
//!
//! let options = Options { create_if_missing: true, ..Options::default() };
//! let db = Db::open(&directory, options)?;
//! db.put(b"apple", b"red")?;
//!
//! let mut batch = WriteBatch::new(); // all of it, or nothing
//! batch.put(b"lemon", b"yellow");
//! batch.delete(b"apple");
//! let before = db.snapshot();
//! db.write(batch)?;
//!
//! assert!(db.get(b"apple")?.is_none());
//! assert_eq!(db.get_with(&ReadOptions::at(&before), b"apple")?.as_deref(), Some(&b"red"[..]));
//! for entry in db.range("a".."m") {
//!     let (key, value) = entry?;
//!     println!("{} = {}", key.escape_ascii(), value.escape_ascii());
//! }
//! # drop(db);
//! # Db::destroy(&directory, &Options::default())?;
//! # Ok::<(), lodestore::Error>(())
//! ```
//!
//! | to | see |
//! |---|---|
//! | open and close a database | [`Db`], [`Options`], [`FamilyOptions`] |
//! | write | [`Family::put`], [`WriteBatch`], [`WriteOptions`], [`TableWriter`] |
//! | read | [`Family::get`], [`Family::multi_get`], [`Family::range`], [`DbCursor`], [`ReadOptions`], [`Snapshot`] |
//! | have several trees in one database | [`Db::family_or_create`], [`Family`] |
//! | change values without reading them | [`Family::merge`], [`MergeOperator`] |
//! | delete much | [`Family::delete_range`], [`Family::delete_files_in_range`] |
//! | copy a database | [`Db::checkpoint`] |
//! | know what failed, and what to do | [`Error`] |
//! | find out why something is slow | [`Family::explain`], [`Family::property`], [`Statistics`], [`inspect`] |
//! | be told of flushes, compactions and failures | [`Listener`] |
//!
//! A [`Db`] is also its default [`Family`]: what families can do is said there.
//!
//! For readers of the source: this file, from top to bottom, is the
//! architecture. A module uses only modules declared above it (a test checks
//! that), so each can be read knowing nothing of what follows.

// What the rest stands on: failure, concurrency, time, memory.
mod error;
mod sync;
mod scheduler;
mod budget;
mod latency;
mod stats;
mod events;
mod bucket;

// Bytes: numbers, keys and their order, checksums, and who may read them.
mod coding;
mod key;
mod checksum;
mod unpack;
mod snappy;
mod lz4;
mod compatibility;
mod merge_operator;
mod prefix;
mod prefetch;
mod cursor;
mod range_deletes;

// Files, and the cache of what was read from them.
pub mod fs;
mod filename;
mod status;
mod limiter;
mod cache;
mod rows;

// Logs: what a write leaves behind before it is acknowledged.
mod batch;
mod record;
mod wal;

// The two homes of an entry: memory, then tables.
mod memtable;
mod leveldb;
mod table;
mod tables;

// Which tables make up the database, and how that changes durably.
mod version;
mod versions;

// Reading across homes, and moving entries down the levels.
mod merge;
mod coverage;
mod gaps;
mod visible;
mod compact;
mod options;

// A table outside of a database, to be ingested.
mod table_writer;

// The database: the paths of a write, a read, a flush, a compaction.
mod db;

// Its files, read one by one, for tools.
pub mod inspect;

// A new database out of what damaged files still hold.
pub mod repair;

// A LevelDB directory becomes one of ours, and goes back.
pub mod adopt;
pub mod export;

// Single steps of these paths, for the micro-benchmarks and for fuzzing.
#[cfg(feature = "internals")]
pub mod internals;

// LevelDB's formats, for the drop-in library.
#[doc(hidden)]
pub mod leveldb_files;

pub use batch::{FamilyId, Record, WriteBatch};
pub use budget::Budget;
pub use cache::{BlockKind, Cache};
pub use db::{
    BlockSource, BlockUse, Db, DbCursor, Explanation, Family, FilterAnswer, IngestReport,
    IngestedTable, KeyRange, LevelStats, LogPin, MemoryStats, Outcome, PendingGet, Place, Range,
    ReadOptions, Searched, Snapshot, Stats, Updates, Value, VerifyReport, VersionMet,
};
pub use error::{Error, Result, StallCause};
pub use events::{Event, Listener};
pub use fs::{Fs, MemFs, OsFs};
pub use key::{
    Comparator, FileId, KEY_BYTES_MAX, KeyOrder, Kind, SEQUENCE_MAX, SequenceNumber,
    VALUE_BYTES_MAX,
};
pub use latency::{Latency, Operation};
pub use limiter::RateLimiter;
pub use merge_operator::{AddU64, Append, MergeOperator, SharedMergeOperator};
pub use options::{FamilyOptions, IngestOptions, OptionInfo, Options, WriteOptions};
pub use prefix::PrefixExtractor;
pub use scheduler::Scheduler;
pub use stats::{Counter, LevelTraffic, Statistics, StatisticsSnapshot};
pub use table::Compression;
pub use table_writer::{TableInfo, TableWriter};
