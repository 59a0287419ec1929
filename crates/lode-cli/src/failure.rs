//! How a verb fails: the exit code and the one line on standard error.

use std::io;
use std::path::Path;
use std::process::ExitCode;

use lode_bench::BenchError;
use lodestore::Error;

/// Printed below `lode --help`.
pub const EXIT_CODES_HELP: &str = "Exit codes:
  0    done
  1    not found, or not equal
  2    the command line is wrong; nothing was done
  3    an error
  4    stored data is damaged
  130  stopped by the user";

/// Why a verb did not do what it was asked for.
#[derive(Debug)]
pub enum Failure {
    /// What was looked for is not there, or two things that were compared
    /// differ. Empty if the verb has already said so.
    Negative(String),
    /// The command line is wrong.
    Usage(String),
    /// Something failed.
    Error(String),
    /// Stored data is damaged.
    Corruption(String),
    /// The user ended it.
    Stopped,
    /// The reader of standard output went away, as `head` does: no failure.
    OutputClosed,
}

impl Failure {
    /// A failure to read or write `path`.
    pub fn io(path: &Path) -> impl FnOnce(io::Error) -> Failure {
        move |error| Failure::Error(format!("{}: {error}", path.display()))
    }

    /// A failure to write to standard output.
    pub fn output(error: io::Error) -> Failure {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Failure::OutputClosed,
            _ => Failure::Error(format!("standard output: {error}")),
        }
    }

    /// Prints the line and returns the exit code.
    pub fn report(&self) -> ExitCode {
        let (code, message) = match self {
            Failure::OutputClosed => return ExitCode::SUCCESS,
            Failure::Negative(message) => (1, message.as_str()),
            Failure::Usage(message) => (2, message.as_str()),
            Failure::Error(message) => (3, message.as_str()),
            Failure::Corruption(message) => (4, message.as_str()),
            Failure::Stopped => (130, "stopped"),
        };
        if !message.is_empty() {
            eprintln!("lode: {message}");
        }
        ExitCode::from(code)
    }

    /// The same failure, its message ending in `what`.
    pub fn noting(self, what: &str) -> Failure {
        match self {
            Failure::Error(message) => Failure::Error(format!("{message}; {what}")),
            Failure::Corruption(message) => Failure::Corruption(format!("{message}; {what}")),
            other => other,
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        let message = match advice(&error) {
            "" => error.to_string(),
            advice => format!("{error}; {advice}"),
        };
        match error {
            Error::Corruption { .. } => Failure::Corruption(message),
            Error::ReadOnly { cause } if cause.is_corruption() => Failure::Corruption(message),
            _ => Failure::Error(message),
        }
    }
}

impl From<BenchError> for Failure {
    fn from(error: BenchError) -> Failure {
        match error {
            BenchError::Usage(message) => Failure::Usage(message),
            BenchError::Damaged(message) => Failure::Corruption(message),
            BenchError::Engine { during, source } => match Failure::from(source) {
                Failure::Corruption(what) => Failure::Corruption(format!("{during}: {what}")),
                Failure::Error(what) => Failure::Error(format!("{during}: {what}")),
                other => other,
            },
            BenchError::Io { path, source } if path.as_os_str().is_empty() => {
                Failure::output(source)
            }
            error => Failure::Error(error.to_string()),
        }
    }
}

/// What the user can do about it.
fn advice(error: &Error) -> &'static str {
    match error {
        Error::Io { .. } => "see to the disk, the path and its permissions, then try again",
        Error::Corruption { .. } => {
            "restore from a checkpoint, or see what `lode db repair` can recover"
        }
        // It says itself what to do.
        Error::Incompatible { what, .. } if what.contains("`lode ") => "",
        // A draft of the formats: no newer one reads it either.
        Error::Incompatible { what, .. } if what.contains("an older build wrote it") => {
            "use the version of lode that wrote it"
        }
        Error::Incompatible { .. } => "use the version of lode that wrote it, or a newer one",
        Error::Stalled { .. } => "try again later: background work is behind",
        Error::Busy { .. } => "wait until the other program has closed it",
        Error::Missing { .. } => "check the path and the name; put and load can --create",
        Error::ReadOnly { .. } => "see to the cause, then open it again",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Damage has an exit code of its own, also where it hides behind another
    /// error.
    #[test]
    fn damage_is_told_from_other_errors() {
        let corruption =
            Error::Corruption { path: "/x".into(), offset: 7, what: "bad block".to_string() };
        let hidden = Error::ReadOnly { cause: Box::new(corruption.clone()) };
        assert!(matches!(Failure::from(corruption.clone()), Failure::Corruption(_)));
        assert!(matches!(Failure::from(hidden), Failure::Corruption(_)));
        let during = BenchError::Engine { during: "readseq".to_string(), source: corruption };
        assert!(
            matches!(Failure::from(during), Failure::Corruption(m) if m.starts_with("readseq"))
        );
        let missing = Error::Missing { what: "no database".to_string() };
        assert!(matches!(Failure::from(missing), Failure::Error(m) if m.contains("--create")));
    }

    #[test]
    fn what_names_a_command_is_not_told_to_look_for_another_version() {
        let told = |what: &str, advice: &str| {
            let error = Error::Incompatible { path: "/x".into(), what: what.to_string() };
            matches!(Failure::from(error), Failure::Error(told) if told.contains(advice))
        };
        assert!(told("a format of later", "or a newer one"));
        assert!(told("draft 5: an older build wrote it", "the version of lode that wrote it"));
        assert!(!told("draft 5: an older build wrote it", "newer"));
        assert!(!told("`lode adopt` makes it ours", "version"));
    }

    /// `lode ... | head` is not an error.
    #[test]
    fn closed_output_is_no_error() {
        let closed = io::Error::from(io::ErrorKind::BrokenPipe);
        assert!(matches!(Failure::output(closed), Failure::OutputClosed));
        let full = io::Error::from(io::ErrorKind::StorageFull);
        assert!(matches!(Failure::output(full), Failure::Error(_)));
    }
}
