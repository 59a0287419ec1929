//! Where text goes: to standard output, or to standard error while standard
//! output is kept for a JSON document.

use std::io::{self, Write};

use crate::settings::Output;

/// Prints the text of a run.
pub struct Printer {
    json: bool,
    quiet: bool,
}

impl Printer {
    /// A printer that obeys `output`.
    pub fn new(output: &Output) -> Printer {
        Printer { json: output.json, quiet: output.quiet }
    }

    /// Prints a result, at once.
    pub fn line(&mut self, text: &str) -> io::Result<()> {
        if self.json {
            return io::stderr().write_all(text.as_bytes());
        }
        let mut stdout = io::stdout().lock();
        stdout.write_all(text.as_bytes())?;
        stdout.flush()
    }

    /// Prints what surrounds results, unless only those are wanted.
    pub fn prose(&mut self, text: &str) -> io::Result<()> {
        if self.quiet { Ok(()) } else { self.line(text) }
    }

    /// Prints a document on standard output.
    pub fn document(&mut self, text: &str) -> io::Result<()> {
        let mut stdout = io::stdout().lock();
        stdout.write_all(text.as_bytes())?;
        stdout.write_all(b"\n")?;
        stdout.flush()
    }
}
