//! Golden files of a frozen format never change.

use sha2::{Digest, Sha256};
use std::fmt::Write;
use std::path::Path;
use testkit::golden::FORMAT;

use super::kept;

/// In each format's directory: a line for each file, as `sha256sum` writes and checks it.
pub const NAME: &str = "SHA256SUMS";

/// Formats that are frozen, each with the SHA-256 of its [`NAME`]. A line that is
/// here stays for ever, and so do its files.
const FROZEN: &[(&str, &str)] = &[
    ("v1", "3c433446e1fab4938fa48c3fa3e06dbc26d49cd21fe52274a7a687d3a9700475"),
    ("v1-covering", "b0e33cb4b0e83b2da292a5cd65ff419d519329909f7a207abb9d68374cd5923f"),
    ("v1-snappy", "28accd6801c4b1837b00580e684bbbcb9c5c90962f4476149097708c5f5bafc9"),
    ("v1-short-records", "150656488d5e7dd7ec0e920cca6039f148fbd8b00e1c1bef1f5c7f0b0c3520d8"),
];

/// True if nothing of a format's files may change.
pub fn is_frozen(format: &str) -> bool {
    FROZEN.iter().any(|(frozen, _)| *frozen == format)
}

/// The text of [`NAME`] for the files that are in `directory`.
pub fn of(directory: &Path) -> String {
    let mut text = String::new();
    for name in files_below(directory, "") {
        if name != NAME {
            let bytes = std::fs::read(directory.join(&name)).expect("it can be read");
            text += &format!("{}  {name}\n", sha256(&bytes));
        }
    }
    text
}

/// Paths of all files below `directory`, sorted, `prefix` before each.
fn files_below(directory: &Path, prefix: &str) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory).expect("it can be listed") {
        let entry = entry.expect("it can be listed");
        let name = format!("{prefix}{}", entry.file_name().to_str().expect("names are text"));
        match entry.path().is_dir() {
            true => found.extend(files_below(&entry.path(), &format!("{name}/"))),
            false => found.push(name),
        }
    }
    found.sort();
    found
}

fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").expect("a string takes what is written");
        text
    })
}

/// What databases were written with is what they are read with: files are those that
/// their sums are of, and sums of frozen formats those that this source is of.
#[test]
fn golden_files_are_as_they_were_written() {
    for format in kept::formats() {
        let directory = kept::path(&format);
        let sums = std::fs::read_to_string(directory.join(NAME)).unwrap_or_default();
        let found = of(&directory);
        for (line, now) in sums.lines().zip(found.lines()) {
            assert_eq!(line, now, "{format}: a golden file has changed");
        }
        assert!(sums == found, "{format}: golden files were added or removed");
        let frozen = FROZEN.iter().find(|(frozen, _)| *frozen == format);
        match frozen {
            Some((_, sum)) => assert_eq!(*sum, sha256(sums.as_bytes()), "{format} is frozen"),
            None => assert_eq!(format, FORMAT, "a format that is no longer written is frozen"),
        }
    }
    for (format, _) in FROZEN {
        assert!(kept::path(format).is_dir(), "the files of {format} are gone");
    }
}
