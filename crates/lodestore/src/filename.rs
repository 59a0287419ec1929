//! Names of the files of a database, and what kind of file a name is.
//!
//! | name | file |
//! |---|---|
//! | `CURRENT` | names the manifest in use |
//! | `MANIFEST-000007` | durable list of the tables |
//! | `000012.wal` | a segment of the write-ahead log |
//! | `000013.table` | a table |
//! | `OPTIONS-000015` | the options that it was last open with; not needed |
//! | `000014.tmp` | being written; removed at open |
//! | `LOCK`, `LOCK.open` | held while the database is open |
//! | `adopted/` | the files of the LevelDB database that it was, until that is final |
//! | `STATUS`, `STATUS.next` | what an open database tells of itself; gone when it is closed |
//!
//! `CURRENT` and `LOCK` are LevelDB's names, so that a LevelDB that is pointed
//! at the directory finds it locked or unreadable instead of empty; the others
//! are not, so that it never deletes one of them.

use std::path::{Path, PathBuf};

use crate::coding::COUNTER_MAX;

pub(crate) const CURRENT: &str = "CURRENT";
pub(crate) const LOCK: &str = "LOCK";
/// What an open database publishes of itself, for other processes to look at.
pub(crate) const STATUS: &str = "STATUS";
/// The same, being written.
pub(crate) const STATUS_NEXT: &str = "STATUS.next";
/// The second lock file, held through an open-file-description lock.
pub(crate) const LOCK_OPEN: &str = "LOCK.open";

/// The folder that keeps the files of a LevelDB database that was adopted.
pub(crate) const ADOPTED: &str = "adopted";

/// What a file's name says that it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum FileKind {
    Current,
    Lock,
    Manifest(u64),
    Log(u64),
    Table(u64),
    Options(u64),
    Temporary(u64),
    Status,
}

pub(crate) fn current_path(directory: &Path) -> PathBuf {
    directory.join(CURRENT)
}

pub(crate) fn manifest_name(number: u64) -> String {
    format!("MANIFEST-{number:06}")
}

pub(crate) fn log_path(directory: &Path, number: u64) -> PathBuf {
    directory.join(format!("{number:06}.wal"))
}

pub(crate) fn table_name(number: u64) -> String {
    format!("{number:06}.table")
}

pub(crate) fn table_path(directory: &Path, number: u64) -> PathBuf {
    directory.join(table_name(number))
}

pub(crate) fn options_path(directory: &Path, number: u64) -> PathBuf {
    directory.join(format!("OPTIONS-{number:06}"))
}

pub(crate) fn temporary_path(directory: &Path, number: u64) -> PathBuf {
    directory.join(format!("{number:06}.tmp"))
}

/// What `name` is; `None` for a file that is not ours, which is left alone.
pub(crate) fn parse(name: &str) -> Option<FileKind> {
    match name {
        CURRENT => return Some(FileKind::Current),
        LOCK | LOCK_OPEN => return Some(FileKind::Lock),
        STATUS | STATUS_NEXT => return Some(FileKind::Status),
        _ => {}
    }
    if let Some(digits) = name.strip_prefix("MANIFEST-") {
        return number(digits).map(FileKind::Manifest);
    }
    if let Some(digits) = name.strip_prefix("OPTIONS-") {
        return number(digits).map(FileKind::Options);
    }
    let (digits, extension) = name.split_once('.')?;
    let number = number(digits)?;
    match extension {
        "wal" => Some(FileKind::Log(number)),
        "table" => Some(FileKind::Table(number)),
        "tmp" => Some(FileKind::Temporary(number)),
        _ => None,
    }
}

/// The number in a file's name, if it has one.
pub(crate) fn number_of(name: &str) -> Option<u64> {
    parse(name)?.number()
}

impl FileKind {
    /// The number in the name.
    pub(crate) fn number(self) -> Option<u64> {
        match self {
            FileKind::Current | FileKind::Lock | FileKind::Status => None,
            FileKind::Manifest(number)
            | FileKind::Log(number)
            | FileKind::Table(number)
            | FileKind::Options(number)
            | FileKind::Temporary(number) => Some(number),
        }
    }
}

/// `None` also for digits that we do not write: a second name of one number
/// would be a second file of that number.
fn number(digits: &str) -> Option<u64> {
    let number = digits.parse().ok()?;
    (number <= COUNTER_MAX && format!("{number:06}") == digits).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A name that we make is recognised; one that we don't make is foreign.
    #[test]
    fn names_are_recognised_and_foreign_ones_are_not() {
        let directory = Path::new("d");
        let name = |path: PathBuf| path.file_name().unwrap().to_str().unwrap().to_string();
        assert_eq!(parse(&name(log_path(directory, 7))), Some(FileKind::Log(7)));
        assert_eq!(
            parse(&name(table_path(directory, 1_234_567))),
            Some(FileKind::Table(1_234_567))
        );
        assert_eq!(parse(&name(temporary_path(directory, 1))), Some(FileKind::Temporary(1)));
        assert_eq!(parse(&name(options_path(directory, 15))), Some(FileKind::Options(15)));
        assert_eq!(parse(&manifest_name(3)), Some(FileKind::Manifest(3)));
        // No database counts so far: whoever goes on from there must not overflow.
        assert_eq!(parse(&manifest_name(COUNTER_MAX)), Some(FileKind::Manifest(COUNTER_MAX)));
        assert_eq!(parse(&manifest_name(COUNTER_MAX + 1)), None);
        for foreign in ["", "x", "000001.ldb", "1.wal.bak", "-1.wal", "+1.wal", "MANIFEST-", "LOG"]
        {
            assert_eq!(parse(foreign), None, "{foreign}");
        }
    }

    /// A number has one name: no two files of a directory can have the same.
    #[test]
    fn a_second_name_of_a_number_is_foreign() {
        for foreign in ["1.wal", "0000001.table", "+00001.tmp", "MANIFEST-1", "OPTIONS-0000001"] {
            assert_eq!(parse(foreign), None, "{foreign}");
        }
        assert_eq!(parse("1234567.table"), Some(FileKind::Table(1_234_567)));
    }
}
