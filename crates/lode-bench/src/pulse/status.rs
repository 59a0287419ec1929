//! A line on a terminal's standard error that says what is waited for. It is
//! gone when the wait is over.

use std::io::{self, Write as _};

use crate::printer::Voice;

/// The line; nothing is drawn where progress is not wanted.
#[derive(Debug)]
pub struct Status {
    output: Voice,
}

impl Status {
    /// Draws the line.
    pub fn new(output: Voice, text: &str) -> Status {
        let status = Status { output };
        status.draw(text);
        status
    }

    /// Draws it anew.
    pub fn draw(&self, text: &str) {
        if self.output.progress {
            // A terminal that went away is no reason to end the work.
            let _ = write!(io::stderr(), "\r\x1b[K{text}");
        }
    }
}

impl Drop for Status {
    fn drop(&mut self) {
        self.draw("");
    }
}
