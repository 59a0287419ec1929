//! What only a later build knows is refused by name, by opening, verification,
//! inspection and repair alike, and no byte of it changes. It is made here as a
//! later build would: bytes that are not known, under checksums that are right.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::batch::WriteBatch;
use crate::checksum::{context, crc32c};
use crate::db::Db;
use crate::error::{Error, Result};
use crate::fs::{self, Fs, MemFs};
use crate::inspect::LogFile;
use crate::key::FileId;
use crate::options::Options;
use crate::sync::Arc;

use super::Repair;

const DIRECTORY: &str = "/db";

fn options(fs: &Arc<MemFs>) -> Options {
    let fs: Arc<dyn Fs> = Arc::clone(fs) as Arc<dyn Fs>;
    Options { create_if_missing: true, fs, ..Options::default() }
}

/// Names and bytes of the database's files, but for locks.
fn files(fs: &MemFs) -> BTreeMap<String, Vec<u8>> {
    let names = fs.list(Path::new(DIRECTORY)).unwrap();
    let kept = names.into_iter().filter(|name| !name.starts_with("LOCK"));
    let read = |name: String| {
        let bytes = fs::read_all(fs, &Path::new(DIRECTORY).join(&name)).unwrap();
        (name, bytes)
    };
    kept.map(read).collect()
}

/// Changes the one file of this ending. Gives its path.
fn change(fs: &MemFs, ending: &str, change: impl FnOnce(&mut Vec<u8>)) -> PathBuf {
    let mut found = files(fs).into_iter().filter(|(name, _)| name.ends_with(ending));
    let (name, mut bytes) = found.next().unwrap();
    assert!(found.next().is_none(), "there is one file {ending}");
    change(&mut bytes);
    let path = Path::new(DIRECTORY).join(name);
    let mut file = fs.create(&path).unwrap();
    file.append(&bytes).unwrap();
    file.close().unwrap();
    path
}

fn seal(bytes: &mut [u8], covered: std::ops::Range<usize>, at: usize, mask: u32) {
    let checksum = crc32c(&bytes[covered]) ^ mask;
    bytes[at..at + 4].copy_from_slice(&checksum.to_le_bytes());
}

fn u32_at(bytes: &[u8], at: usize) -> usize {
    u32::from_le_bytes(*bytes[at..].first_chunk().unwrap()) as usize
}

fn id_at(bytes: &[u8], at: usize) -> FileId {
    FileId(u128::from_le_bytes(*bytes[at..].first_chunk().unwrap()))
}

/// Changes the payload of the first record at or after `at` of the file `id` for
/// which `change` gives true, and makes its checksums right.
fn change_record(
    bytes: &mut [u8],
    mut at: usize,
    id: FileId,
    mut change: impl FnMut(&mut [u8]) -> bool,
) {
    loop {
        let length = u32_at(bytes, at + 8);
        let payload = at + 24..at + 24 + length.next_multiple_of(8);
        if bytes[at + 16] == 1 && change(&mut bytes[at + 24..at + 24 + length]) {
            seal(bytes, payload, at + 12, 0);
            return seal(bytes, at + 4..at + 24, at, context(id, at as u64));
        }
        at = payload.end;
    }
}

/// `Incompatible`, in words that name `what`; without a change to any file.
fn assert_refused(fs: &Arc<MemFs>, what: &str, readers: &[(&str, &dyn Fn() -> Result<()>)]) {
    let before = files(fs);
    let own: [(&str, &dyn Fn() -> Result<()>); 3] = [
        ("reading", &|| Db::open_read_only(DIRECTORY, options(fs))?.verify().map(|_| ())),
        ("writing", &|| Db::open(DIRECTORY, options(fs))?.verify().map(|_| ())),
        ("repair", &|| Repair::read(DIRECTORY, &options(fs)).map(|_| ())),
    ];
    for (reader, read) in own.iter().chain(readers) {
        match read() {
            Err(Error::Incompatible { what: said, .. }) => {
                assert!(said.contains(what), "{reader} says {said:?}, not {what:?}");
                assert!(said.contains("newer build"), "{reader} says {said:?}, and no way out");
            }
            other => panic!("{reader} of {what}: {other:?}"),
        }
        assert!(files(fs) == before, "{reader} of {what} changed a file");
    }
}

/// A database with a batch in its log: opaque bytes and a put.
fn with_log() -> Arc<MemFs> {
    let fs = Arc::new(MemFs::new());
    let db = Db::open(DIRECTORY, options(&fs)).unwrap();
    let mut batch = WriteBatch::new();
    batch.opaque(b"note");
    batch.put(b"k", b"v");
    db.write(batch).unwrap();
    drop(db);
    fs
}

fn retag(fs: &MemFs, from: u8, to: u8) -> PathBuf {
    change(fs, ".wal", |bytes| {
        let id = id_at(bytes, 48);
        change_record(bytes, 4096, id, |batch| {
            let tag = batch[12..].iter_mut().find(|byte| **byte == from).unwrap();
            *tag = to;
            true
        });
    })
}

fn read_log(fs: &MemFs, path: &Path) -> Result<()> {
    let mut log = LogFile::open(fs, path)?;
    while log.next_batch()?.is_some() {}
    Ok(())
}

/// Left out, a record of an unknown kind would be a hole; taken for damage, it
/// would be lost with its batch.
#[test]
fn a_log_with_an_unknown_record() {
    for tag in [0x0d, 0x16, 0x7f] {
        let fs = with_log();
        let path = retag(&fs, 0x03, tag);
        let what = format!("a record with tag {tag:#04x}");
        assert_refused(&fs, &what, &[("inspection", &|| read_log(&fs, &path))]);
    }
}

/// A hint in a batch changes nothing for who does not know it; the log's readers
/// are given it. A repaired log has entries alone.
#[test]
fn a_log_with_a_hint() {
    let fs = with_log();
    let path = retag(&fs, 0x03, 0x91);
    read_log(&fs, &path).unwrap();
    let repair = Repair::read(DIRECTORY, &options(&fs)).unwrap();
    assert!(repair.report().losses.is_empty());
    repair.write_to("/repaired").unwrap();
    for directory in [DIRECTORY, "/repaired"] {
        let db = Db::open_read_only(directory, options(&fs)).unwrap();
        assert_eq!(db.get(b"k").unwrap().as_deref(), Some(&b"v"[..]));
    }
    let db = Db::open(DIRECTORY, options(&fs)).unwrap();
    assert_eq!(db.get(b"k").unwrap().as_deref(), Some(&b"v"[..]));
}
