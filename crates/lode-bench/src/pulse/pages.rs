//! `--drop-caches`: takes a database's files out of the page cache, and
//! nothing else out of it. Needs no privileges.

use std::fs::{self, File};
use std::io;
use std::path::Path;

use rustix::fs::{Advice, fadvise};

use crate::error::BenchError;

/// Writes the files below `directory` back to the device and lets go of their
/// pages. Files that vanish meanwhile are passed over.
pub fn drop_cached(directory: &Path) -> Result<(), BenchError> {
    for entry in fs::read_dir(directory).map_err(BenchError::io(directory))? {
        let path = entry.map_err(BenchError::io(directory))?.path();
        if path.is_dir() {
            drop_cached(&path)?;
            continue;
        }
        match drop_file(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            done => done.map_err(BenchError::io(&path))?,
        }
    }
    Ok(())
}

fn drop_file(path: &Path) -> io::Result<()> {
    let file = File::open(path)?;
    if !file.metadata()?.is_file() {
        return Ok(());
    }
    // The system keeps pages that are not on the device yet.
    file.sync_data()?;
    fadvise(&file, 0, None, Advice::DontNeed)?;
    Ok(())
}
