//! Deleting a database.

use std::path::Path;

use crate::error::{Error, Result};
use crate::filename::{self, FileKind};
use crate::options::Options;

use super::open::{list, take_lock};

/// Deletes our files in `directory`, and the directory if nothing else is in
/// it.
pub(crate) fn destroy(directory: &Path, options: &Options) -> Result<()> {
    let fs = &*options.fs;
    let Some(names) = list(fs, directory)? else {
        return Ok(());
    };
    if !names.iter().any(|name| filename::parse(name).is_some()) {
        return Ok(());
    }
    let lock = take_lock(fs, directory)?;
    // Once more: what was there before may have been another's to change.
    let names = list(fs, directory)?.unwrap_or_default();
    let remove = |name: &str| {
        let path = directory.join(name);
        fs.remove(&path).map_err(|e| Error::io(&path, "remove", e))
    };
    // CURRENT goes first: what is left after a crash is no database any more.
    let (mut last, mut others) = (Vec::new(), Vec::new());
    for name in &names {
        match filename::parse(name) {
            Some(FileKind::Current) => remove(name)?,
            Some(FileKind::Lock) => last.push(name),
            Some(_) => others.push(name),
            None => {}
        }
    }
    fs.sync_directory(directory).map_err(|e| Error::io(directory, "sync", e))?;
    others.into_iter().try_for_each(|name| remove(name))?;
    // The lock's own files go while it is held: released before, another
    // opener could take it, and lose it with the file.
    last.into_iter().try_for_each(|name| remove(name))?;
    drop(lock);
    // Fails if files of others are there: then the directory is theirs.
    let _ = fs.remove_directory(directory);
    Ok(())
}
