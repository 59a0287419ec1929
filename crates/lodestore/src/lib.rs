//! STAND-IN, never committed.
#![allow(dead_code, missing_docs, unused_variables, clippy::all, unused_imports)]
mod error; mod sync; mod scheduler; mod stats; mod key; mod merge_operator;
pub mod fs;
mod standin;
pub use error::{Error, Result};
pub use fs::{Fs, MemFs, OsFs};
pub use key::{Comparator, FileId, KEY_BYTES_MAX, KeyOrder, Kind, SequenceNumber, VALUE_BYTES_MAX};
pub use merge_operator::{AddU64, Append, MergeOperator, SharedMergeOperator};
pub use options::{FamilyOptions, Options, WriteOptions};
pub use scheduler::Scheduler;
pub use stats::{Counter, Statistics};
pub use standin::*; pub use fs::Fs;
