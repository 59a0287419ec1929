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
use crate::inspect::{LogFile, ManifestFile, TableFile};
use crate::key::{FileId, KeyOrder};
use crate::options::{FamilyOptions, Options};
use crate::prefix::PrefixExtractor;
use crate::sync::Arc;
use crate::table::Compression;

use super::Repair;

const DIRECTORY: &str = "/db";

fn options(fs: &Arc<MemFs>) -> Options {
    let fs: Arc<dyn Fs> = Arc::clone(fs) as Arc<dyn Fs>;
    let family =
        FamilyOptions { block_bytes: 256, compression: Compression::None, ..Default::default() };
    Options { create_if_missing: true, fs, family, ..Options::default() }
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

/// `Incompatible`, in words that name `what`, from all readers; `inspect` is one
/// more. Whoever is refused has changed no file.
fn assert_refused(fs: &Arc<MemFs>, what: &str, inspect: &dyn Fn() -> Result<()>) {
    let before = files(fs);
    let readers: [(&str, &dyn Fn() -> Result<()>); 3] = [
        ("inspection", inspect),
        ("reading", &|| Db::open_read_only(DIRECTORY, options(fs))?.verify().map(|_| ())),
        ("repair", &|| Repair::read(DIRECTORY, &options(fs)).map(|_| ())),
    ];
    for (reader, read) in readers {
        assert_unknown(read(), &format!("{reader} of {what}"), what);
        assert!(files(fs) == before, "{reader} of {what} changed a file");
    }
    match Db::open(DIRECTORY, options(fs)) {
        // Who opens reads of a table only what concerns all of it.
        Ok(db) => assert_unknown(db.verify().map(|_| ()), "verification", what),
        refused => {
            assert_unknown(refused.map(|_| ()), "opening", what);
            assert!(files(fs) == before, "opening changed a file, because of {what}");
        }
    }
}

fn assert_unknown(outcome: Result<()>, reader: &str, expected: &str) {
    match outcome {
        Err(Error::Incompatible { what, .. }) => {
            assert!(what.contains(expected), "{reader} says {what:?}");
            assert!(what.contains("newer build"), "{reader} says {what:?}, and no way out");
        }
        other => panic!("{reader}: {other:?}"),
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
    for tag in [0x09, 0x0d, 0x11, 0x16, 0x7f] {
        let fs = with_log();
        let path = retag(&fs, 0x03, tag);
        let what = format!("a record with tag {tag:#04x}");
        assert_refused(&fs, &what, &|| read_log(&fs, &path));
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

/// A database with one table of many blocks, and nothing in its log.
fn with_table() -> Arc<MemFs> {
    let fs = Arc::new(MemFs::new());
    let db = Db::open(DIRECTORY, options(&fs)).unwrap();
    (0..100u8).for_each(|n| db.put(&[b'k', n], &[n; 20]).unwrap());
    db.flush().unwrap();
    drop(db);
    fs
}

fn open_table(fs: &MemFs) -> Result<TableFile> {
    let name = files(fs).into_keys().find(|name| name.ends_with(".table")).unwrap();
    TableFile::open(fs, &Path::new(DIRECTORY).join(name), KeyOrder::Bytewise)
}

fn read_table(fs: &MemFs) -> Result<()> {
    open_table(fs)?.entries().try_for_each(|entry| entry.map(|_| ()))
}

/// Changes a byte of a stored block, which is not compressed; `None`: its type.
fn change_block(fs: &MemFs, nth: usize, at: Option<usize>, byte: u8) {
    let block = open_table(fs).unwrap().blocks().nth(nth).unwrap().unwrap();
    let (start, end) = (block.offset as usize, (block.offset + block.stored_bytes) as usize);
    change(fs, ".table", |bytes| {
        bytes[at.map_or(end - 5, |at| start + at)] = byte;
        let id = id_at(bytes, 12);
        seal(bytes, start..end - 4, end - 4, context(id, start as u64));
    });
}

/// Changes a section; `None`: its entry in the footer.
fn change_section(fs: &MemFs, tag: usize, at: Option<usize>, bits: u8) {
    change(fs, ".table", |bytes| {
        let tail = bytes.len() - 20;
        let footer = tail - u32_at(bytes, tail);
        let entry = (footer + 52..).step_by(28).find(|entry| u32_at(bytes, *entry) == tag).unwrap();
        let start = u32_at(bytes, entry + 8);
        let end = start + u32_at(bytes, entry + 16);
        bytes[at.map_or(entry + 4, |at| start + at)] |= bits;
        let id = id_at(bytes, 12);
        seal(bytes, start..end, entry + 24, context(id, start as u64));
        seal(bytes, footer..tail + 8, tail + 8, 0);
    });
}

/// A block of entries that only a later build can read is neither damage nor a
/// gap, and is not taken for one beside damage.
#[test]
fn a_table_with_an_unknown_block() {
    for (what, at, byte) in [
        ("a block with flags 0x80", Some(6), 0xff),
        ("an entry of kind 0x11", Some(7), 0x11),
        ("a block compressed with codec 9", None, 9),
    ] {
        let fs = with_table();
        change_block(&fs, 3, at, byte);
        assert_refused(&fs, what, &|| read_table(&fs));
        change(&fs, ".table", |bytes| bytes[40] ^= 1);
        let repair = Repair::read(DIRECTORY, &options(&fs)).map(|_| ());
        assert_unknown(repair, "repair beside damage", what);
    }
}

/// The same of what says where blocks are.
#[test]
fn a_table_with_an_unknown_index_or_section() {
    let changes = [
        ("an index with flags 0x40", Some(4), 0x40),
        ("section 1 of a table with flags 0x4", None, 4),
    ];
    for (what, at, bits) in changes {
        let fs = with_table();
        change_section(&fs, 1, at, bits);
        assert_refused(&fs, what, &|| read_table(&fs));
    }
}

fn manifest_name(fs: &MemFs, directory: &str) -> String {
    let mut names = fs.list(Path::new(directory)).unwrap().into_iter();
    names.find(|name| name.starts_with("MANIFEST-")).unwrap()
}

/// Changes a word of a record of the manifest to another one of its length.
fn change_manifest(fs: &MemFs, from: &[u8], to: &[u8]) {
    change(fs, &manifest_name(fs, DIRECTORY), |bytes| {
        let id = id_at(bytes, 40);
        change_record(bytes, 128, id, |group| {
            let found = group.windows(from.len()).position(|word| word == from);
            found.inspect(|at| group[*at..at + to.len()].copy_from_slice(to)).is_some()
        });
    });
}

/// A prefix extractor is a hint: one that is not known maps no key to a prefix,
/// and its name stays with the family.
#[test]
fn a_family_with_an_unknown_prefix_extractor() {
    let fs = Arc::new(MemFs::new());
    let mut created = options(&fs);
    created.family.prefix_extractor = Some(PrefixExtractor::Fixed(3));
    drop(Db::open(DIRECTORY, created).unwrap());
    change_manifest(&fs, b"fixed:3", b"words:3");
    let read_only = Db::open_read_only(DIRECTORY, options(&fs)).unwrap();
    assert_eq!(read_only.family_options().prefix_extractor, Some(PrefixExtractor::None));
    drop(read_only);
    Db::open(DIRECTORY, options(&fs)).unwrap().put(b"key", b"value").unwrap();
    let is_kept = |(name, bytes): (String, Vec<u8>)| {
        name.starts_with("MANIFEST-") && bytes.windows(7).any(|word| word == b"words:3")
    };
    assert!(files(&fs).into_iter().any(is_kept));
}

/// Sets the lowest of the features that the manifest's header has at `at`.
fn set_feature(fs: &MemFs, at: usize) {
    change(fs, &manifest_name(fs, DIRECTORY), |bytes| {
        bytes[at] |= 1;
        seal(bytes, 0..124, 124, 0);
    });
}

/// A feature that need not be known outlives the manifest that says it: the
/// next one, a checkpoint's and that of a repaired database have it too.
#[test]
fn a_compatible_feature_stays_with_the_database() {
    let fs = with_log();
    set_feature(&fs, 16);
    let before = manifest_name(&fs, DIRECTORY);
    let repair = Repair::read(DIRECTORY, &options(&fs)).unwrap();
    repair.write_to("/repaired").unwrap();
    let db = Db::open(DIRECTORY, options(&fs)).unwrap();
    db.put(b"k", b"new").unwrap();
    db.checkpoint("/checkpoint").unwrap();
    drop(db);
    assert_ne!(manifest_name(&fs, DIRECTORY), before, "the manifest was begun anew");
    for directory in [DIRECTORY, "/checkpoint", "/repaired"] {
        let path = Path::new(directory).join(manifest_name(&fs, directory));
        assert_eq!(fs::read_all(&*fs, &path).unwrap()[16], 1, "{directory}");
    }
}

/// A feature that only readers need not know lets them read, and nothing be
/// written: no repaired database either.
#[test]
fn a_read_compatible_feature_forbids_writing() {
    let fs = with_log();
    set_feature(&fs, 24);
    let before = files(&fs);
    let db = Db::open_read_only(DIRECTORY, options(&fs)).unwrap();
    assert_eq!(db.get(b"k").unwrap().as_deref(), Some(&b"v"[..]));
    drop(db);
    let opened = Db::open(DIRECTORY, options(&fs)).map(|_| ());
    assert_unknown(opened, "opening", "features 0x1, and can only be read");
    let repair = Repair::read(DIRECTORY, &options(&fs)).map(|_| ());
    assert_unknown(repair, "repair", "features 0x1, and can only be read");
    assert!(files(&fs) == before);
}

#[test]
fn a_manifest_with_an_incompatible_feature() {
    let fs = with_log();
    set_feature(&fs, 32);
    let path = Path::new(DIRECTORY).join(manifest_name(&fs, DIRECTORY));
    assert_refused(&fs, "features 0x1", &|| ManifestFile::open(&*fs, &path).map(|_| ()));
}

/// Deeper levels and fields that must be understood: the manifest is no damaged
/// one, whose tables would all be merged.
#[test]
fn a_manifest_with_an_unknown_field() {
    let fs = with_table();
    // The table's count of entries becomes one that must be understood.
    change_manifest(&fs, &[26, 1, 100], &[27, 1, 100]);
    let path = Path::new(DIRECTORY).join(manifest_name(&fs, DIRECTORY));
    let inspect = || ManifestFile::open(&*fs, &path)?.read(&mut |_| {}).map(|_| ());
    assert_refused(&fs, "field 13 of a table", &inspect);
}

/// What need not be known of a family or a table lasts as they do: the next
/// manifest, a checkpoint's and that of a repaired database say it too.
#[test]
fn unknown_hints_of_families_and_tables_last() {
    let fs = with_table();
    let mut other = options(&fs);
    other.family.prefix_extractor = Some(PrefixExtractor::Fixed(3));
    Db::open(DIRECTORY, other).unwrap().family_or_create("other").unwrap();
    // The count of entries and the extractor's name get numbers that are not known.
    let (of_table, of_family) = ([126, 1, 100], *b"\x7c\x07fixed:3");
    change_manifest(&fs, &[26, 1, 100], &of_table);
    change_manifest(&fs, b"\x0a\x07fixed:3", &of_family);
    Repair::read(DIRECTORY, &options(&fs)).unwrap().write_to("/repaired").unwrap();
    let db = Db::open(DIRECTORY, options(&fs)).unwrap();
    db.put(b"k", b"new").unwrap();
    db.checkpoint("/checkpoint").unwrap();
    drop(db);
    for directory in [DIRECTORY, "/checkpoint", "/repaired"] {
        let path = Path::new(directory).join(manifest_name(&fs, directory));
        let bytes = fs::read_all(&*fs, &path).unwrap();
        let has = |field: &[u8]| bytes.windows(field.len()).any(|found| found == field);
        assert!(has(&of_table) && has(&of_family), "{directory}");
    }
}
