//! Files of each format, kept in `testdata/golden`, are opened for ever.

use lodestore::inspect::TableFile;
use lodestore::{Db, Error, KeyOrder, MemFs, Options};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use testkit::files::{self, Files};
use testkit::golden::{self, FORMAT, Golden, VERSIONED};

const DIRECTORY: &str = "/copy";
const BYTES_MAX: usize = 300 << 10;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/golden")
}

/// Names of what is in a directory of the repository.
fn names(path: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let name = |entry: std::io::Result<std::fs::DirEntry>| {
        entry.expect("it can be listed").file_name().into_string().expect("names are text")
    };
    let mut names: Vec<String> = entries.map(name).collect();
    names.sort();
    names
}

/// A directory of one format: its files and what a database in it holds.
fn kept(format: &str, name: &str) -> (Files, String) {
    let directory = root().join(format).join(name);
    let read = |name: String| {
        let bytes = std::fs::read(directory.join(&name)).expect("it can be read");
        (name, bytes)
    };
    let expected = root().join(format).join(format!("{name}.expected"));
    let expected = std::fs::read_to_string(expected).expect("it can be read");
    (names(&directory).into_iter().map(read).collect(), expected)
}

/// The directories of every format.
fn all() -> Vec<(String, String)> {
    let mut found = Vec::new();
    for format in names(&root()) {
        for name in names(&root().join(&format)) {
            if !name.ends_with(".expected") {
                found.push((format.clone(), name));
            }
        }
    }
    found
}

fn disk(files: &Files) -> (MemFs, Options) {
    let fs = MemFs::new();
    files::write(&fs, Path::new(DIRECTORY), files).expect("memory takes files");
    let options = Options { create_if_missing: false, ..golden::options(&fs) };
    (fs, options)
}

fn read(fs: &MemFs) -> Files {
    let files = files::read(fs, Path::new(DIRECTORY)).expect("memory can be read");
    files::without_locks(&files)
}

/// Both ways, and key by key.
fn assert_holds(db: &Db, expected: &str, what: &str) {
    db.verify().unwrap_or_else(|error| panic!("{what}: {error}"));
    let found = golden::contents(db).unwrap_or_else(|error| panic!("{what}: {error}"));
    assert!(found == expected, "{what} holds something else:\n{found}");
    for name in db.family_names() {
        let family = db.family(&name).expect("it was listed");
        let forward: BTreeMap<Vec<u8>, Vec<u8>> = family
            .range(..)
            .map(|entry| entry.map(|(key, value)| (key.to_vec(), value.to_vec())))
            .collect::<Result<_, _>>()
            .expect("it was read before");
        let mut cursor = family.cursor();
        cursor.last();
        for (key, value) in forward.iter().rev() {
            assert_eq!((cursor.key(), cursor.value()), (&key[..], &value[..]), "{what}");
            assert_eq!(family.get(key).expect("it is sound").as_deref(), Some(&value[..]));
            cursor.prev();
        }
        assert!(!cursor.valid() && cursor.status().is_ok(), "{what}: more backward in {name}");
    }
}

/// A database of every format that was ever frozen, and of today's draft, is
/// read as it was written; reading only changes no byte, and writing goes on.
#[test]
fn golden_directories_are_read_in_full() {
    assert!(names(&root()).contains(&FORMAT.to_string()), "no golden files of {FORMAT}");
    for (format, name) in all() {
        let what = format!("{format}/{name}");
        let (files, expected) = kept(&format, &name);
        let (fs, options) = disk(&files);
        let db = Db::open_read_only(DIRECTORY, options.clone());
        assert_holds(&db.unwrap_or_else(|error| panic!("{what}: {error}")), &expected, &what);
        assert!(read(&fs) == files, "{what}: opening read-only changed a file");
        let db = Db::open(DIRECTORY, options).unwrap_or_else(|error| panic!("{what}: {error}"));
        assert_holds(&db, &expected, &what);
        db.compact_range(None, None).expect("its tables can be compacted");
        assert_holds(&db, &expected, &what);
    }
}

/// No byte of what is written changes by accident. Also: the files have what
/// they are there for.
#[test]
fn what_is_written_today_is_golden() {
    let made = golden::make().expect("nothing fails");
    if std::env::var_os("REGENERATE").is_some() {
        write(&made);
    }
    let again = "A format has changed. Not on purpose: find out where. On purpose, before the \
        freeze: raise the draft version, rename testdata/golden/FORMAT and testkit::golden::FORMAT \
        after it, and REGENERATE=1 cargo test -p lodestore --test all golden. After the freeze: \
        leave the old directory, and add one for the new format.";
    let mut bytes = 0;
    for Golden { name, files, expected } in &made {
        let (kept, kept_expected) = kept(FORMAT, name);
        assert!(kept_expected == *expected, "{name} holds something else now. {again}");
        assert!(kept.keys().eq(files.keys()), "{name} has other files now. {again}");
        for (file, now) in files {
            let then = &kept[file];
            let differs = then.iter().zip(now).position(|(then, now)| then != now);
            let at = differs.unwrap_or(then.len().min(now.len()));
            assert!(then == now, "{name}/{file} is another from byte {at} on. {again}");
            bytes += now.len();
        }
    }
    assert!(bytes <= BYTES_MAX, "{bytes} bytes of golden files");
    assert_is_varied(&made[0].files);
}

fn write(made: &[Golden]) {
    let directory = root().join(FORMAT);
    if directory.exists() {
        std::fs::remove_dir_all(&directory).expect("it can be removed");
    }
    for Golden { name, files, expected } in made {
        std::fs::create_dir_all(directory.join(name)).expect("it can be made");
        for (file, bytes) in files {
            std::fs::write(directory.join(name).join(file), bytes).expect("it can be written");
        }
        let path = directory.join(format!("{name}.expected"));
        std::fs::write(path, expected).expect("it can be written");
    }
}

/// Every codec, partitions, range deletes, and a log of two segments.
fn assert_is_varied(files: &Files) {
    let (fs, _) = disk(files);
    let mut codecs = std::collections::BTreeSet::new();
    let (mut partitioned, mut range_deletes) = (0, 0);
    for name in files.keys().filter(|name| name.ends_with(".table")) {
        let path = Path::new(DIRECTORY).join(name);
        let table = TableFile::open(&fs, &path, KeyOrder::Bytewise).expect("it is sound");
        let properties = table.properties();
        codecs.insert(properties.compression);
        partitioned += u64::from(properties.partitioned);
        range_deletes += properties.range_deletes;
    }
    assert_eq!(codecs.into_iter().collect::<Vec<_>>(), ["lz4", "none", "snappy", "zstd"]);
    assert!(partitioned > 0 && range_deletes > 3, "{partitioned} {range_deletes}");
    assert!(files.keys().filter(|name| name.ends_with(".wal")).count() >= 2);
}

/// What a later build wrote is refused as such, and not a byte of it changes.
#[test]
fn newer_formats_are_refused_and_left_alone() {
    let (files, _) = kept(FORMAT, "database");
    for kind in VERSIONED {
        let newer = golden::newer(&files, kind);
        assert!(newer != files, "no file {kind}");
        let (fs, options) = disk(&newer);
        for read_only in [true, false] {
            let opened = match read_only {
                true => Db::open_read_only(DIRECTORY, options.clone()),
                false => Db::open(DIRECTORY, options.clone()),
            };
            let refused = opened.and_then(|db| db.verify());
            assert!(matches!(refused, Err(Error::Incompatible { .. })), "{kind}: {refused:?}");
            assert!(read(&fs) == newer, "{kind}: a newer database was changed");
        }
    }
}
