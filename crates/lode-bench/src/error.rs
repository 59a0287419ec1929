//! Why a run of benchmarks ended early.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// Why a run ended early.
#[derive(Debug)]
pub enum BenchError {
    /// The flags contradict each other or name what does not exist. Nothing
    /// was run.
    Usage(String),
    /// The engine failed while a benchmark ran.
    Engine {
        /// The benchmark, or what was being done between benchmarks.
        during: String,
        /// What the engine said.
        source: lodestore::Error,
    },
    /// Stored data is not what was once written.
    Damaged(String),
    /// The system does not let a part of the run happen; the text says what
    /// to do. Nothing was measured.
    Refused(String),
    /// A file or an output other than the engine's failed.
    Io {
        /// The file; empty for an output.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

impl BenchError {
    /// A [`BenchError::Engine`].
    pub(crate) fn engine(during: impl Into<String>) -> impl FnOnce(lodestore::Error) -> BenchError {
        let during = during.into();
        move |source| BenchError::Engine { during, source }
    }

    /// A [`BenchError::Io`] for `path`.
    pub(crate) fn io(path: &Path) -> impl FnOnce(io::Error) -> BenchError {
        let path = path.to_path_buf();
        move |source| BenchError::Io { path, source }
    }
}

impl From<io::Error> for BenchError {
    /// A failed output.
    fn from(source: io::Error) -> BenchError {
        BenchError::Io { path: PathBuf::new(), source }
    }
}

impl fmt::Display for BenchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BenchError::Usage(what) | BenchError::Damaged(what) | BenchError::Refused(what) => {
                f.write_str(what)
            }
            BenchError::Engine { during, source } => write!(f, "{during}: {source}"),
            BenchError::Io { path, source } if path.as_os_str().is_empty() => {
                write!(f, "output: {source}")
            }
            BenchError::Io { path, source } => write!(f, "{}: {source}", path.display()),
        }
    }
}

impl std::error::Error for BenchError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            BenchError::Usage(_) | BenchError::Damaged(_) | BenchError::Refused(_) => None,
            BenchError::Engine { source, .. } => Some(source),
            BenchError::Io { source, .. } => Some(source),
        }
    }
}
