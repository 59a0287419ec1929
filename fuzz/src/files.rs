//! A file system that holds an input.

use std::path::Path;
use std::sync::{Arc, OnceLock};

use lodestore::fs::{self, Fs};
use lodestore::{Append, FamilyOptions, MemFs, Options, Scheduler};
use testkit::files::{self, Files};

/// Where a database is.
pub const DIRECTORY: &str = "/db";

/// A file system with one file.
pub fn one(path: &Path, bytes: &[u8]) -> MemFs {
    let fs = MemFs::new();
    let mut file = fs.create(path).expect("memory takes a file");
    file.append(bytes).expect("memory takes bytes");
    fs
}

/// A file system with `files` in [`DIRECTORY`].
pub fn directory(files: &Files) -> MemFs {
    let fs = MemFs::new();
    files::write(&fs, Path::new(DIRECTORY), files).expect("memory takes files");
    fs
}

/// The files in `directory`, without locks.
pub fn read(fs: &MemFs, directory: &str) -> Files {
    let read = files::read(fs, Path::new(directory)).expect("memory can be read");
    files::without_locks(&read)
}

/// The bytes of one file.
pub fn bytes(fs: &MemFs, path: &str) -> Vec<u8> {
    fs::read_all(fs, Path::new(path)).expect("it is there")
}

/// How hostile databases are opened: with little memory, on threads that all
/// of them share.
pub fn options(fs: &MemFs) -> Options {
    static THREADS: OnceLock<Arc<Scheduler>> = OnceLock::new();
    let scheduler = THREADS.get_or_init(|| Scheduler::seeded(1, 1));
    Options {
        fs: Arc::new(fs.clone()),
        scheduler: Some(Arc::clone(scheduler)),
        cache_bytes: 1 << 20,
        latencies: false,
        family: family_options(),
        ..Options::default()
    }
}

/// The options of every family.
pub fn family_options() -> FamilyOptions {
    FamilyOptions {
        memtable_bytes: 64 << 10,
        table_bytes: 64 << 10,
        block_bytes: 256,
        merge_operator: Some(Arc::new(Append::with_delimiter(b","))),
        ..FamilyOptions::default()
    }
}
