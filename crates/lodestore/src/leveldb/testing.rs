//! Small LevelDB databases for tests, table by table, also such as LevelDB makes
//! only after a repair or in a fork.

use std::path::Path;

use crate::fs::{Fs, create_directory_durably};
use crate::key::{Kind, trailer};

use super::edit::{Edit, LevelDbTable};
use super::table::{Layout, StoredKeys, TableImage};
use super::{join_key, log};

/// Key, sequence number, and the value or a deletion.
pub(crate) type Made<'a> = (&'a [u8], u64, Option<&'a [u8]>);

/// A database that is being put together.
pub(crate) struct MadeDb<'a> {
    fs: &'a dyn Fs,
    directory: &'a Path,
    /// The record of the manifest.
    pub(crate) edit: Edit,
}

impl<'a> MadeDb<'a> {
    /// An empty one in a new directory.
    pub(crate) fn new(fs: &'a dyn Fs, directory: &'a Path, comparator: &str) -> MadeDb<'a> {
        create_directory_durably(fs, directory).unwrap();
        let edit = Edit {
            comparator: Some(comparator.as_bytes().to_vec()),
            log_number: Some(1_000),
            previous_log_number: Some(0),
            next_file_number: Some(1_001),
            last_sequence: Some(0),
            ..Edit::default()
        };
        MadeDb { fs, directory, edit }
    }

    /// Adds a table of `level`, whose entries are in their order, in the file `name`.
    pub(crate) fn table(&mut self, level: usize, number: u64, name: &str, entries: &[Made<'_>]) {
        let layout = Layout { snappy: true, ..Layout::default() };
        let mut image = TableImage::new(StoredKeys::new(10), layout);
        let mut keys = Vec::new();
        for (key, sequence, value) in entries {
            let kind = if value.is_some() { Kind::Put } else { Kind::Delete };
            let stored = join_key(key, trailer(*sequence, kind));
            image.add(&stored, value.unwrap_or_default());
            keys.push(stored);
            let last = self.edit.last_sequence.get_or_insert_default();
            *last = (*last).max(*sequence);
        }
        image.finish();
        let bytes = image.take();
        let [smallest, largest] = [keys.first(), keys.last()].map(|key| key.unwrap().clone());
        let table = LevelDbTable { number, bytes: bytes.len() as u64, smallest, largest };
        self.edit.added.push((level, table));
        self.file(name, &bytes);
    }

    /// Adds a file, in a folder of the directory if its name has one.
    pub(crate) fn file(&self, name: &str, bytes: &[u8]) {
        let path = self.directory.join(name);
        create_directory_durably(self.fs, path.parent().unwrap()).unwrap();
        let mut file = self.fs.create(&path).unwrap();
        file.append(bytes).unwrap();
        file.sync().unwrap();
        file.close().unwrap();
        self.fs.sync_directory(path.parent().unwrap()).unwrap();
    }

    /// Writes the manifest, and names it.
    pub(crate) fn finish(self) {
        self.finish_after(&[]);
    }

    /// The same with what came to pass later.
    pub(crate) fn finish_after(self, later: &[Edit]) {
        let mut manifest = Vec::new();
        for edit in [&self.edit].into_iter().chain(later) {
            log::append(&mut manifest, &edit.encode());
        }
        self.file("MANIFEST-000001", &manifest);
        self.file("CURRENT", b"MANIFEST-000001\n");
        self.file("LOCK", b"");
    }
}
