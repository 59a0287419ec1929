//! A LevelDB database that is being written, file by file; its manifest last.

use std::path::{Path, PathBuf};

use crate::error::{Error, Result};
use crate::filename;
use crate::fs::{Fs, create_directory_durably};

use super::edit::{Edit, LEVELS, LevelDbTable};
use super::table::{Layout, StoredKeys, TableImage};
use super::{directory, log, names};

/// LevelDB's default for its tables.
const TABLE_BYTES: u64 = 2 << 20;
/// LevelDB lets level 1 have so much, and each deeper one ten times as much.
const LEVEL1_BYTES: u64 = 10 << 20;

/// The first level below 1 that takes so many bytes without being too large.
pub(crate) fn level_of(bytes: u64) -> usize {
    let fits = |level: &usize| bytes <= LEVEL1_BYTES * 10u64.pow(*level as u32 - 1);
    (2..LEVELS - 1).find(fits).unwrap_or(LEVELS - 1)
}

/// How tables are stored.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TableStyle {
    pub(crate) snappy: bool,
    /// 0 for no filters.
    pub(crate) filter_bits_per_key: u8,
}

/// A database of which nothing counts before its manifest is there.
pub(crate) struct NewDatabase<'a> {
    fs: &'a dyn Fs,
    directory: &'a Path,
    style: TableStyle,
    /// Those of its folders that were made.
    folders: Vec<PathBuf>,
}

/// A table that is being filled, in memory.
pub(crate) struct NewTable {
    image: TableImage<StoredKeys>,
    smallest: Vec<u8>,
    largest: Vec<u8>,
}

impl NewTable {
    /// Adds a stored key that comes after all before it.
    pub(crate) fn add(&mut self, key: &[u8], value: &[u8]) {
        self.image.add(key, value);
        if self.smallest.is_empty() {
            key.clone_into(&mut self.smallest);
        }
        key.clone_into(&mut self.largest);
    }

    /// True if it is as long as LevelDB makes tables.
    pub(crate) fn is_full(&self) -> bool {
        self.image.bytes_by_now() >= TABLE_BYTES
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.smallest.is_empty()
    }
}

impl<'a> NewDatabase<'a> {
    /// One in the empty directory `directory`.
    pub(crate) fn new(fs: &'a dyn Fs, directory: &'a Path, style: TableStyle) -> NewDatabase<'a> {
        NewDatabase { fs, directory, style, folders: Vec::new() }
    }

    pub(crate) fn begin_table(&self) -> NewTable {
        let TableStyle { snappy, filter_bits_per_key } = self.style;
        let layout = Layout { snappy, ..Layout::default() };
        let image = TableImage::new(StoredKeys::new(filter_bits_per_key), layout);
        NewTable { image, smallest: Vec::new(), largest: Vec::new() }
    }

    /// Writes a table to the file `name`, durably once the database is finished.
    pub(crate) fn write_table(
        &mut self,
        number: u64,
        name: &str,
        table: NewTable,
    ) -> Result<LevelDbTable> {
        let NewTable { mut image, smallest, largest } = table;
        image.finish();
        let file = image.take();
        self.write_file(name, &file)?;
        Ok(LevelDbTable { number, bytes: file.len() as u64, smallest, largest })
    }

    pub(crate) fn write_file(&mut self, name: &str, bytes: &[u8]) -> Result<()> {
        let path = self.file(name)?;
        let failed = |during: &'static str| {
            let path = path.clone();
            move |error| Error::io(&path, during, error)
        };
        let mut file = self.fs.create(&path).map_err(failed("create"))?;
        file.append(bytes).map_err(failed("append to"))?;
        file.sync().map_err(failed("sync"))?;
        file.close().map_err(failed("close"))
    }

    /// Where the file `name` is to be, with its folder if the name has one. The caller
    /// makes it.
    pub(crate) fn file(&mut self, name: &str) -> Result<PathBuf> {
        let path = self.directory.join(name);
        let folder = path.parent().unwrap_or(self.directory).to_path_buf();
        if folder != self.directory && !self.folders.contains(&folder) {
            create_directory_durably(self.fs, &folder)
                .map_err(|error| Error::io(&folder, "create directory", error))?;
            self.folders.push(folder);
        }
        Ok(path)
    }

    /// Writes the manifest, and names it once all else is durable.
    pub(crate) fn finish(&mut self, manifest_number: u64, edit: &Edit) -> Result<()> {
        let mut manifest = Vec::new();
        log::append(&mut manifest, &edit.encode());
        let name = filename::manifest_name(manifest_number);
        self.write_file(&name, &manifest)?;
        self.folders.iter().try_for_each(|folder| self.sync_directory(folder))?;
        self.sync_directory(self.directory)?;
        self.write_file(filename::CURRENT, format!("{name}\n").as_bytes())?;
        self.sync_directory(self.directory)
    }

    fn sync_directory(&self, directory: &Path) -> Result<()> {
        let synced = self.fs.sync_directory(directory);
        synced.map_err(|error| Error::io(directory, "sync directory", error))
    }
}

/// Removes what was made in `directory`, and the directory unless it `was_there`: the
/// failure itself is what the caller hears of.
pub(crate) fn remove(fs: &dyn Fs, directory: &Path, was_there: bool) {
    for (name, _) in directory::list(fs, directory).unwrap_or_default() {
        let _ = fs.remove(&directory.join(name));
    }
    for name in fs.list(directory).unwrap_or_default() {
        if names::is_level_folder(&name) {
            let _ = fs.remove_directory(&directory.join(name));
        }
    }
    if !was_there {
        let _ = fs.remove_directory(directory);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Tables of one size lie where LevelDB would have brought them.
    #[test]
    fn the_level_follows_from_the_size() {
        assert_eq!(level_of(0), 2);
        assert_eq!(level_of(100 << 20), 2);
        assert_eq!(level_of((100 << 20) + 1), 3);
        assert_eq!(level_of(1 << 50), 6);
    }
}
