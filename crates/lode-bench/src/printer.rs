//! Where text goes: to standard output, or to standard error while standard
//! output is kept for a JSON document.

use std::io::{self, Write};

/// How much is said, and where.
#[derive(Clone, Copy, Debug)]
pub struct Voice {
    /// One JSON document on standard output; lines go to standard error.
    pub json: bool,
    /// Lines only.
    pub quiet: bool,
    /// A line of progress on standard error.
    pub progress: bool,
}

/// Prints the text of a run.
pub struct Printer {
    voice: Voice,
}

impl Printer {
    /// A printer that keeps to `voice`.
    pub fn new(voice: Voice) -> Printer {
        Printer { voice }
    }

    /// Prints a result, at once.
    pub fn line(&mut self, text: &str) -> io::Result<()> {
        if self.voice.json {
            return io::stderr().write_all(text.as_bytes());
        }
        let mut stdout = io::stdout().lock();
        stdout.write_all(text.as_bytes())?;
        stdout.flush()
    }

    /// Prints what surrounds results, unless only those are wanted.
    pub fn prose(&mut self, text: &str) -> io::Result<()> {
        if self.voice.quiet { Ok(()) } else { self.line(text) }
    }

    /// Prints a document on standard output.
    pub fn document(&mut self, text: &str) -> io::Result<()> {
        let mut stdout = io::stdout().lock();
        stdout.write_all(text.as_bytes())?;
        stdout.write_all(b"\n")?;
        stdout.flush()
    }
}
