//! What runs commands: the oracle, the Rust API, and one day each other API.

use crate::command::{Command, Output};

/// Something that behaves as a database with a current opener.
pub trait Surface {
    /// Runs one command to its end.
    fn run(&mut self, command: &Command) -> Output;
}

/// Kinds of failure that the surfaces themselves report, besides the engine's.
pub mod failure {
    /// No database is open.
    pub const CLOSED: &str = "Closed";
    /// No snapshot of this name is held.
    pub const NO_SNAPSHOT: &str = "NoSnapshot";
    /// No cursor of this name is kept.
    pub const NO_CURSOR: &str = "NoCursor";
    /// The script has a knob or value that means nothing.
    pub const SCRIPT: &str = "Script";
}
