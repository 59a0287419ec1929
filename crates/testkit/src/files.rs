//! A directory's files as bytes, to be cut, changed and put back.

use lodestore::Db;
use lodestore::fs::{self, Fs};
use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::time::Duration;

/// Lets other threads go on, for [`stray_tables`].
pub fn pause() {
    std::thread::sleep(Duration::from_millis(1));
}

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

/// The same, and every file of the folders in it, as `FOLDER/NAME`.
///
/// # Errors
/// What reading gives.
pub fn read_with_folders(fs: &dyn Fs, directory: &Path) -> io::Result<Files> {
    let mut files = Files::new();
    for name in fs.list(directory)? {
        let path = directory.join(&name);
        // A folder can be listed, and a file cannot.
        let Ok(inside) = read(fs, &path) else {
            files.insert(name, fs::read_all(fs, &path)?);
            continue;
        };
        files.extend(inside.into_iter().map(|(file, bytes)| (format!("{name}/{file}"), bytes)));
    }
    Ok(files)
}

/// Writes `files` into `directory`, durably; those with a `/` in their names into a
/// folder there.
///
/// # Errors
/// What writing gives.
pub fn write(fs: &dyn Fs, directory: &Path, files: &Files) -> io::Result<()> {
    fs.create_directory(directory)?;
    for (name, bytes) in files {
        if let Some((folder, _)) = name.split_once('/') {
            fs.create_directory(&directory.join(folder))?;
        }
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

/// How many table files in the directory of `db` belong to nothing, once its
/// background work is done. Nobody may hold a cursor or a dropped family.
/// `pause` lets other threads go on.
///
/// # Errors
/// What the background work or listing gives, in words.
pub fn stray_tables(db: &Db, fs: &dyn Fs, pause: impl Fn()) -> Result<usize, String> {
    db.wait_for_background().map_err(|error| error.to_string())?;
    stray_tables_left(db, fs, pause)
}

/// The same when no background work can be under way.
///
/// # Errors
/// What listing gives, in words.
pub fn stray_tables_left(db: &Db, fs: &dyn Fs, pause: impl Fn()) -> Result<usize, String> {
    let mut stray = 0;
    // A thread that has just ended its work may still hold a last reference.
    for _ in 0..10_000 {
        let families = db.family_names().into_iter().filter_map(|name| db.family(&name));
        let levels = families.flat_map(|family| family.stats().levels);
        let live: usize = levels.map(|level| level.files).sum();
        let names = fs.list(db.path()).map_err(|error| error.to_string())?;
        let there = names.iter().filter(|name| name.ends_with(".table")).count();
        stray = there.checked_sub(live).ok_or_else(|| format!("{live} tables, {there} files"))?;
        if stray == 0 {
            break;
        }
        pause();
    }
    Ok(stray)
}
