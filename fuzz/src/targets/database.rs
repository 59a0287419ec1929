//! A directory of files: looked into, opened, read, written to and opened
//! again.

use std::path::Path;
use std::sync::Arc;

use lodestore::inspect::{LogFile, ManifestFile, Status, Survey, TableFile, find};
use lodestore::{Db, Fs, KeyOrder, MemFs};

use crate::files::{self, DIRECTORY};
use crate::judge::judged;
use crate::{archive, reading, seal};

const NEW_KEY: &[u8] = b"~new";

pub fn run(bytes: &[u8]) {
    let files = seal::directory(archive::unpack(bytes));
    let fs = files::directory(&files);
    look(&fs);
    assert!(files::read(&fs, DIRECTORY) == files, "looking changed something");
    if let Some(db) = judged(Db::open_read_only(DIRECTORY, files::options(&fs))) {
        reading::read(&db);
    }
    assert!(files::read(&fs, DIRECTORY) == files, "reading changed something");
    judged(Db::list_families(DIRECTORY, &files::options(&fs)));
    match judged(Db::open(DIRECTORY, files::options(&fs))) {
        Some(db) => use_it(&fs, db),
        None => assert!(files::read(&fs, DIRECTORY) == files, "a refused open changed something"),
    }
}

/// Looks into every file without opening the database.
fn look(fs: &MemFs) {
    let directory = Path::new(DIRECTORY);
    let shared: Arc<dyn Fs> = Arc::new(fs.clone());
    if judged(Survey::read(&shared, directory)).is_some() {
        judged(find(&shared, directory, "default", &KeyOrder::Bytewise, b"k01/0008"));
    }
    judged(Status::read(fs, directory));
    for name in fs.list(directory).expect("memory can be read") {
        let path = directory.join(&name);
        if name.ends_with(".table") {
            judged(TableFile::open(fs, &path, KeyOrder::Bytewise).and_then(|table| table.verify()));
        } else if name.ends_with(".wal") {
            judged(LogFile::open(fs, &path).and_then(LogFile::end));
        } else if name.starts_with("MANIFEST-") {
            judged(ManifestFile::open(fs, &path).and_then(|file| file.read(&mut |_| {})));
        }
    }
}

/// Reads, writes, flushes and compacts; what was written stays.
fn use_it(fs: &MemFs, db: Db) {
    reading::read(&db);
    let mut written = Vec::new();
    for name in db.family_names() {
        let Some(family) = db.family(&name) else { continue };
        if judged(family.put(NEW_KEY, b"new")).is_some() {
            written.push(name);
            let found = judged(family.get(NEW_KEY));
            let found = found.map(|found| found.as_deref().map(<[u8]>::to_vec));
            assert!(found.is_none_or(|found| found.as_deref() == Some(b"new")), "a put was lost");
        }
        judged(family.merge(b"merged", b"operand"));
        judged(family.delete(b"deleted"));
        judged(family.delete_range(b"a", b"b"));
        judged(family.flush());
        judged(family.compact_range(None, None));
    }
    judged(db.wait_for_background());
    reading::read(&db);
    drop(db);
    let Some(db) = judged(Db::open(DIRECTORY, files::options(fs))) else { return };
    for name in written {
        let Some(family) = db.family(&name) else { continue };
        let found = judged(family.get(NEW_KEY));
        let found = found.map(|found| found.as_deref().map(<[u8]>::to_vec));
        assert!(found.is_none_or(|found| found.as_deref() == Some(b"new")), "a put was lost");
    }
}
