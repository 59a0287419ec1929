//! Looking into the files of a database without opening it: for tools.
//!
//! | part | answers |
//! |---|---|
//! | [`TableFile`] | what is in one table |
//! | [`LogFile`] | what is in one segment of the log |
//! | [`ManifestFile`] | which changes of the database one manifest records |
//! | [`Survey`] | which files a directory has, and what each is for |
//! | [`find`] | in which files a key is, with every version |
//! | [`Status`] | what a process that has it open tells of it |
//!
//! Each answers for LevelDB's files as for ours, and says whose they are.
//!
//! Nothing here takes a lock, writes, or needs more than the files: a database
//! may be open meanwhile. A damaged file is read as far as it goes, then the
//! error names the file and the offset; bytes from outside never panic.
//!
//! ```
//! # use lodestore::{Db, Fs, MemFs, Options};
//! # use std::sync::Arc;
//! # let fs: Arc<dyn Fs> = Arc::new(MemFs::new());
//! # let db = Db::open("db", Options { create_if_missing: true, fs: fs.clone(), ..Default::default() })?;
//! # db.put(b"apple", b"red")?;
//! # db.flush()?;
//! use lodestore::{KeyOrder, inspect::{Survey, TableFile}};
//! use std::path::Path;
//!
//! let survey = Survey::read(&fs, Path::new("db"))?;
//! for table in survey.families[0].levels.iter().flatten() {
//!     let path = Path::new("db").join(table.file_name());
//!     for entry in TableFile::open(&*fs, &path, KeyOrder::Bytewise)?.entries() {
//!         let entry = entry?;
//!         println!("{} @{} {}", entry.key.escape_ascii(), entry.sequence, entry.kind.name());
//!     }
//! }
//! # Ok::<(), lodestore::Error>(())
//! ```

mod described;
mod foreign;
mod table;
mod foreign_log;
mod log;
mod foreign_manifest;
mod manifest;
mod survey;
mod settled;
mod find;

pub use crate::status::{
    CompactionStatus, CounterStatus, FamilyStatus, LatencyStatus, LevelStatus, Status,
};
pub use crate::table::{BlockSummary, TableProperties, TableSection};
pub use described::{Engine, Entry, FamilyInfo, TableInfo};
pub use find::{Found, FoundIn, find};
pub use log::{LogBatch, LogEnd, LogFile, LogHeader, SealedLog};
pub use manifest::{Change, ManifestEdit, ManifestFile, ManifestHeader, ManifestSummary};
pub(crate) use settled::settled;
pub use survey::{FamilyFiles, FileUse, FoundFile, Survey};
pub use table::{Entries, SampledEntry, TableFile};
