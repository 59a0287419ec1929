//! The one error type. Each variant says what the caller can do about it.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What every fallible call of this crate returns.
pub type Result<T> = std::result::Result<T, Error>;

/// What a writer may have to wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum StallCause {
    /// Full memtables wait for their flush.
    Flush,
    /// Level 0 has many tables.
    Level0,
    /// Compactions are many bytes behind.
    Debt,
    /// Memtables hold their share of the memory budget.
    Memory,
    /// The log is being written for others.
    Log,
}

impl fmt::Display for StallCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            StallCause::Flush => "full memtables wait for their flush",
            StallCause::Level0 => "level 0 has many tables",
            StallCause::Debt => "compactions are behind",
            StallCause::Memory => "memtables hold their share of the memory budget",
            StallCause::Log => "the log is being written for others",
        })
    }
}

/// Why a call failed. Cloning is cheap: a failure in the background is kept
/// and told to every later caller that it concerns.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Error {
    /// The operating system refused; retrying may help.
    Io {
        /// The file or directory concerned.
        path: PathBuf,
        /// What was being done, for example `"sync"`.
        during: &'static str,
        /// What the operating system said.
        source: Arc<io::Error>,
    },
    /// The bytes contradict the format; retrying never helps.
    Corruption {
        /// The file that holds the bytes.
        path: PathBuf,
        /// Offset of the first byte of the structure that is wrong.
        offset: u64,
        /// What is wrong.
        what: String,
    },
    /// The file is sound, but written by a program that knows more than this
    /// one, or before the formats were frozen. Nothing was changed.
    Incompatible {
        /// The file that cannot be read by this build.
        path: PathBuf,
        /// What this build does not know.
        what: String,
    },
    /// The caller passed something that can never work. Nothing was changed.
    InvalidArgument {
        /// What is wrong with it, and what would be right.
        what: String,
    },
    /// Another opener holds the database.
    Busy {
        /// The lock file.
        path: PathBuf,
        /// The process that holds it, where the system tells.
        holder_pid: Option<u32>,
    },
    /// The write would have had to wait longer than it may. Nothing was
    /// written; trying again later helps.
    Stalled {
        /// What it would have waited for.
        cause: StallCause,
    },
    /// There is no database, family or file of this name.
    Missing {
        /// What was looked for.
        what: String,
    },
    /// The merge operator could not combine what is stored under a key; the
    /// stored entries are kept as they are.
    MergeFailed {
        /// The operator's name.
        operator: String,
        /// The key.
        key: Arc<[u8]>,
    },
    /// A write or sync failed earlier, so that what is on disk is not known.
    /// Reads go on; call `resume` or reopen to write again.
    ReadOnly {
        /// The failure that caused it.
        cause: Box<Error>,
    },
}

impl Error {
    /// An [`Error::Io`] for `path`; `during` names the call, as in `"open"`.
    pub(crate) fn io(path: &Path, during: &'static str, source: io::Error) -> Error {
        Error::Io { path: path.to_path_buf(), during, source: Arc::new(source) }
    }

    /// An [`Error::Corruption`] at `offset` of `path`.
    pub(crate) fn corruption(path: &Path, offset: u64, what: impl Into<String>) -> Error {
        Error::Corruption { path: path.to_path_buf(), offset, what: what.into() }
    }

    /// An [`Error::Incompatible`] for `path`.
    pub(crate) fn incompatible(path: &Path, what: impl Into<String>) -> Error {
        Error::Incompatible { path: path.to_path_buf(), what: what.into() }
    }

    /// An [`Error::Incompatible`] for what only a later build knows of `path`.
    pub(crate) fn newer(path: &Path, what: impl fmt::Display) -> Error {
        let what = format!("{what}; a newer build wrote it: open it with that one");
        Error::Incompatible { path: path.to_path_buf(), what }
    }

    /// Says what an [`Error::InvalidArgument`] is about; others stay as they are.
    pub(crate) fn about(self, subject: impl fmt::Display) -> Error {
        match self {
            Error::InvalidArgument { what } => Error::invalid(format!("{subject}: {what}")),
            other => other,
        }
    }

    /// An [`Error::InvalidArgument`].
    pub(crate) fn invalid(what: impl Into<String>) -> Error {
        Error::InvalidArgument { what: what.into() }
    }

    /// An [`Error::Missing`].
    pub(crate) fn missing(what: impl Into<String>) -> Error {
        Error::Missing { what: what.into() }
    }

    /// True if stored bytes were found to be wrong.
    pub fn is_corruption(&self) -> bool {
        matches!(self, Error::Corruption { .. })
    }
}

/// Why bytes whose checksum is right could not be decoded; the caller knows the
/// file and the offset.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Undecodable {
    /// They contradict the format.
    Corrupt(String),
    /// They have a code that this build does not know: a later one wrote it.
    Unknown(String),
}

impl Undecodable {
    /// The error for bytes at `offset` of `path`.
    pub(crate) fn at(self, path: &Path, offset: u64) -> Error {
        match self {
            Undecodable::Corrupt(what) => Error::corruption(path, offset, what),
            Undecodable::Unknown(what) => Error::newer(path, format!("{what}, at offset {offset}")),
        }
    }

    /// What is wrong, in words.
    pub(crate) fn into_text(self) -> String {
        match self {
            Undecodable::Corrupt(what) | Undecodable::Unknown(what) => what,
        }
    }
}

impl From<&str> for Undecodable {
    fn from(what: &str) -> Undecodable {
        Undecodable::Corrupt(what.to_string())
    }
}

impl From<String> for Undecodable {
    fn from(what: String) -> Undecodable {
        Undecodable::Corrupt(what)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Io { path, during, source } => {
                write!(f, "IO error: {during} {}: {source}", path.display())
            }
            Error::Corruption { path, offset, what } => {
                write!(f, "Corruption: {} at offset {offset}: {what}", path.display())
            }
            Error::Incompatible { path, what } => {
                write!(f, "Incompatible: {}: {what}", path.display())
            }
            Error::InvalidArgument { what } => write!(f, "Invalid argument: {what}"),
            Error::Busy { path, holder_pid: Some(pid) } => {
                write!(f, "Busy: {} is locked by process {pid}", path.display())
            }
            Error::Busy { path, holder_pid: None } => {
                write!(f, "Busy: {} is locked by another opener", path.display())
            }
            Error::Stalled { cause } => write!(f, "Stalled: {cause}"),
            Error::Missing { what } => write!(f, "Missing: {what}"),
            Error::MergeFailed { operator, key } => {
                let key = key.escape_ascii();
                write!(f, "Merge failed: {operator} cannot combine the entries of key \"{key}\"")
            }
            Error::ReadOnly { cause } => {
                write!(f, "Read-only until resumed or reopened, because of: {cause}")
            }
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::Io { source, .. } => Some(&**source),
            Error::ReadOnly { cause } => Some(&**cause),
            _ => None,
        }
    }
}
