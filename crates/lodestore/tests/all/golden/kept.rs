//! The directories in `testdata/golden`, and disks with copies of them.

use lodestore::fs::OsFs;
use lodestore::{MemFs, Options};
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use testkit::files::{self, Files};
use testkit::golden::{self, FORMAT, Golden};

use super::sums;

/// Where copies are.
pub const DIRECTORY: &str = "/copy";

/// What is written today.
pub static MADE: LazyLock<Vec<Golden>> = LazyLock::new(|| golden::make().expect("nothing fails"));

/// The golden files, written anew before the first test looks at them if the
/// environment has `REGENERATE`.
static ROOT: LazyLock<PathBuf> = LazyLock::new(|| {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/golden");
    if std::env::var_os("REGENERATE").is_some() {
        regenerate(&root);
    }
    root
});

/// A directory of one format.
pub struct Kept {
    /// Its files.
    pub files: Files,
    /// What readers see.
    pub expected: String,
    /// What its files say.
    pub described: String,
}

/// Where the directories of a format are.
pub fn path(format: &str) -> PathBuf {
    ROOT.join(format)
}

/// The formats of which there are files.
pub fn formats() -> Vec<String> {
    names(&ROOT)
}

/// Format and name of every directory.
pub fn all() -> Vec<(String, String)> {
    let of = |format: String| {
        let names =
            names(&path(&format)).into_iter().filter(|name| path(&format).join(name).is_dir());
        names.map(|name| (format.clone(), name)).collect::<Vec<_>>()
    };
    formats().into_iter().flat_map(of).collect()
}

/// The directory `name` of `format`.
pub fn kept(format: &str, name: &str) -> Kept {
    let text = |ending| {
        let path = path(format).join(format!("{name}.{ending}"));
        std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
    };
    Kept {
        files: read_tree(&path(format).join(name)),
        expected: text("expected"),
        described: text("described"),
    }
}

/// The files in a directory of the repository and in its folders.
pub fn read_tree(path: &Path) -> Files {
    let files = files::read_with_folders(&OsFs::new(), path);
    files.unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// A disk with `files` in [`DIRECTORY`], and how to open them.
pub fn disk(files: &Files) -> (MemFs, Options) {
    let fs = MemFs::new();
    files::write(&fs, Path::new(DIRECTORY), files).expect("memory takes files");
    let options = Options { create_if_missing: false, ..golden::options(&fs) };
    (fs, options)
}

/// The files in [`DIRECTORY`], without locks.
pub fn read(fs: &MemFs) -> Files {
    let files = files::read_with_folders(fs, Path::new(DIRECTORY)).expect("memory can be read");
    files::without_locks(&files)
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

/// Writes what is written today.
fn regenerate(root: &Path) {
    assert!(!sums::is_frozen(FORMAT), "{FORMAT} is frozen: give golden::FORMAT another name");
    let directory = root.join(FORMAT);
    if directory.exists() {
        std::fs::remove_dir_all(&directory).expect("it can be removed");
    }
    for Golden { name, files, expected, described } in &*MADE {
        for (file, bytes) in files {
            write(&directory.join(name).join(file), bytes);
        }
        write(&directory.join(format!("{name}.expected")), expected.as_bytes());
        write(&directory.join(format!("{name}.described")), described.as_bytes());
    }
    write(&directory.join(sums::NAME), sums::of(&directory).as_bytes());
}

fn write(path: &Path, bytes: &[u8]) {
    std::fs::create_dir_all(path.parent().expect("it is in a directory")).expect("it can be made");
    std::fs::write(path, bytes).expect("it can be written");
}
