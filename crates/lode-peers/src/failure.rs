//! Why a comparison ended early, and the exit code that says so.

use std::fmt;
use std::io;
use std::path::Path;

/// Why a comparison, or a part of it, did not happen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// Two engines found different things: one of them is wrong.
    Disagreement(String),
    /// The command line is wrong; nothing was done.
    Usage(String),
    /// The engine has no way to do this. The others go on; the cell is empty.
    #[allow(dead_code, reason = "only peers lack anything")]
    Cannot(String),
    /// Something failed.
    Failed(String),
}

impl Failure {
    /// A failure of `what`, as an engine tells it.
    pub fn of<E: fmt::Display>(what: &str) -> impl Fn(E) -> Failure {
        move |error| Failure::Failed(format!("{what}: {error}"))
    }

    /// A failure to use `path`.
    pub fn io(path: &Path) -> impl Fn(io::Error) -> Failure {
        move |error| Failure::Failed(format!("{}: {error}", path.display()))
    }

    /// The exit code of the program.
    pub fn exit_code(&self) -> u8 {
        match self {
            Failure::Disagreement(_) => 1,
            Failure::Usage(_) => 2,
            Failure::Cannot(_) | Failure::Failed(_) => 3,
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Disagreement(what)
            | Failure::Usage(what)
            | Failure::Cannot(what)
            | Failure::Failed(what) => f.write_str(what),
        }
    }
}

impl From<lode_bench::BenchError> for Failure {
    fn from(error: lode_bench::BenchError) -> Failure {
        match error {
            lode_bench::BenchError::Usage(what) => Failure::Usage(what),
            error => Failure::Failed(error.to_string()),
        }
    }
}
