//! A directory's files as bytes, to be cut, changed and put back.

use lodestore::fs::{self, Fs};
use std::collections::BTreeMap;
use std::io;
use std::path::Path;

/// Name -> bytes.
pub type Files = BTreeMap<String, Vec<u8>>;

/// Reads every file of `directory`.
///
/// # Errors
/// What reading gives.
pub fn read(fs: &dyn Fs, directory: &Path) -> io::Result<Files> {
    let mut files = Files::new();
    for name in fs.list(directory)? {
        let bytes = fs::read_all(fs, &directory.join(&name))?;
        files.insert(name, bytes);
    }
    Ok(files)
}

/// Writes `files` into `directory`, durably.
///
/// # Errors
/// What writing gives.
pub fn write(fs: &dyn Fs, directory: &Path, files: &Files) -> io::Result<()> {
    fs.create_directory(directory)?;
    for (name, bytes) in files {
        let mut file = fs.create(&directory.join(name))?;
        file.append(bytes)?;
        file.sync()?;
        file.close()?;
    }
    fs.sync_directory(directory)
}

/// The files without the locks, which every opener may create.
pub fn without_locks(files: &Files) -> Files {
    let kept = files.iter().filter(|(name, _)| !name.starts_with("LOCK"));
    kept.map(|(name, bytes)| (name.clone(), bytes.clone())).collect()
}
