//! Small LevelDB databases for tests, table by table, also such as LevelDB makes
//! only after a repair or in a fork.

use std::path::Path;

use crate::fs::{Fs, create_directory_durably};
use crate::key::{Kind, trailer};

use super::block::BlockWriter;
use super::edit::{Edit, LevelDbTable};
use super::filter::FILTER_NAME;
use super::footer::{FOOTER_BYTES, Footer, Handle};
use super::table::{Layout, StoredKeys, TableImage};
use super::{join_key, log, stored};

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

    /// Adds a table of `level`, whose entries are in their order, in the file `name`. One
    /// in a folder is as Basho's fork has them: its filters deny everything if they are
    /// asked as LevelDB's.
    pub(crate) fn table(&mut self, level: usize, number: u64, name: &str, entries: &[Made<'_>]) {
        let layout = Layout { snappy: true, ..Layout::default() };
        let is_bashos = name.contains('/');
        let filter_bits = if is_bashos { 0 } else { 10 };
        let mut image = TableImage::new(StoredKeys::new(filter_bits), layout);
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
        let mut bytes = image.take();
        if is_bashos {
            make_bashos(&mut bytes);
        }
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

/// Gives a table without filters those of Basho's fork, and the statistics by which they
/// are known.
fn make_bashos(table: &mut Vec<u8>) {
    let end = table.len() as u64;
    let footer = table.split_off(table.len() - FOOTER_BYTES);
    let footer = Footer::decode(&footer.try_into().unwrap(), end).unwrap();
    let mut block = |raw: &[u8]| {
        let offset = table.len() as u64;
        Handle { offset, bytes: stored::put(table, raw, false) }
    };
    // One filter without a bit, of 6 probes.
    let filters = block(&[&[0; 8][..], &[6], &[0, 0, 0, 0], &[9, 0, 0, 0], &[11]].concat());
    let mut meta_index = BlockWriter::new(16);
    for (name, handle) in [(FILTER_NAME, filters), (b"stats.sst1", filters)] {
        let mut value = Vec::new();
        handle.put(&mut value);
        meta_index.add(name, &value);
    }
    let meta_index = block(&meta_index.finish());
    table.extend_from_slice(&Footer { meta_index, ..footer }.encode());
}
