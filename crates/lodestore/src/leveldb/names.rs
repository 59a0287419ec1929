//! Names of the files of a LevelDB directory (`db/filename.cc`).

use std::ffi::OsStr;
use std::path::Path;

use super::edit::LEVELS;

/// What a file's name says that it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LevelDbFile {
    /// Names the manifest in use.
    Current,
    Lock,
    /// What LevelDB tells of its work, and the one before.
    InfoLog,
    Manifest(u64),
    /// A segment of the write-ahead log.
    Log(u64),
    /// A table: `ldb`, or `sst` before 1.14.
    Table(u64),
    Temporary(u64),
}

impl LevelDbFile {
    /// The number in the name.
    pub(crate) fn number(self) -> Option<u64> {
        match self {
            LevelDbFile::Current | LevelDbFile::Lock | LevelDbFile::InfoLog => None,
            LevelDbFile::Manifest(number)
            | LevelDbFile::Log(number)
            | LevelDbFile::Table(number)
            | LevelDbFile::Temporary(number) => Some(number),
        }
    }
}

/// What `name` is; `None` for a file that is not LevelDB's.
pub(crate) fn parse(name: &str) -> Option<LevelDbFile> {
    match name {
        "CURRENT" => return Some(LevelDbFile::Current),
        "LOCK" => return Some(LevelDbFile::Lock),
        "LOG" | "LOG.old" => return Some(LevelDbFile::InfoLog),
        _ => {}
    }
    if let Some(digits) = name.strip_prefix("MANIFEST-") {
        return number(digits).map(LevelDbFile::Manifest);
    }
    let (digits, extension) = name.split_once('.')?;
    let number = number(digits)?;
    match extension {
        "log" => Some(LevelDbFile::Log(number)),
        "ldb" | "sst" => Some(LevelDbFile::Table(number)),
        "dbtmp" => Some(LevelDbFile::Temporary(number)),
        _ => None,
    }
}

fn number(digits: &str) -> Option<u64> {
    // `parse` alone would take a sign.
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    if is_number { digits.parse().ok() } else { None }
}

/// The folder in which Basho's fork keeps the tables of a level.
pub(crate) fn level_folder(level: usize) -> String {
    format!("sst_{level}")
}

/// True for the name of such a folder.
pub(crate) fn is_level_folder(name: &str) -> bool {
    name.strip_prefix("sst_").and_then(number).is_some_and(|level| level < LEVELS as u64)
}

/// True for a file in such a folder.
pub(crate) fn is_in_level_folder(path: &Path) -> bool {
    let folder = path.parent().and_then(Path::file_name).and_then(OsStr::to_str);
    folder.is_some_and(is_level_folder)
}

/// The name of a table.
pub(crate) fn table(number: u64) -> String {
    format!("{number:06}.ldb")
}

/// The manifest that the content of `CURRENT` names.
pub(crate) fn manifest_of(current: &[u8]) -> Option<&str> {
    let name = std::str::from_utf8(current).ok()?.strip_suffix('\n')?;
    matches!(parse(name), Some(LevelDbFile::Manifest(_))).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_told_apart() {
        assert_eq!(parse("000123.ldb"), Some(LevelDbFile::Table(123)));
        assert_eq!(parse("000123.sst"), Some(LevelDbFile::Table(123)));
        assert_eq!(parse("7.log"), Some(LevelDbFile::Log(7)));
        assert_eq!(parse("MANIFEST-000005"), Some(LevelDbFile::Manifest(5)));
        assert_eq!(parse("000009.dbtmp"), Some(LevelDbFile::Temporary(9)));
        assert_eq!(parse("LOG.old"), Some(LevelDbFile::InfoLog));
        for foreign in
            ["+1.log", ".ldb", "1.table", "MANIFEST-", "lost", "18446744073709551616.ldb"]
        {
            assert_eq!(parse(foreign), None, "{foreign}");
        }
    }

    #[test]
    fn current_names_one_manifest_and_ends_its_line() {
        assert_eq!(manifest_of(b"MANIFEST-000005\n"), Some("MANIFEST-000005"));
        for wrong in
            [&b"MANIFEST-000005"[..], b"", b"\n", b"000005.log\n", b"MANIFEST-5\n\n", b"\xff\n"]
        {
            assert_eq!(manifest_of(wrong), None);
        }
    }
}
