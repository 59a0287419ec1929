//! The terminal, or whatever standard output is.

use std::io::{self, IsTerminal, Write};

use crate::Done;
use crate::failure::Failure;

const ENTER: &str = "\x1b[?1049h\x1b[?25l";
const LEAVE: &str = "\x1b[?25h\x1b[?1049l";

/// Whether words may have colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ink {
    Plain,
    Coloured,
}

impl Ink {
    /// `text` as a heading.
    pub fn bold(self, text: &str) -> String {
        self.paint("1", text)
    }

    /// `text` as something to see to.
    pub fn alarming(self, text: &str) -> String {
        self.paint("31", text)
    }

    fn paint(self, code: &str, text: &str) -> String {
        match self {
            Ink::Plain => text.to_string(),
            Ink::Coloured => format!("\x1b[{code}m{text}\x1b[0m"),
        }
    }
}

/// Where frames are drawn. On a terminal each takes the place of the one
/// before, on a screen of its own that is gone in the end; else they follow
/// each other.
pub struct Screen {
    is_own: bool,
    ink: Ink,
    drawn: bool,
}

impl Screen {
    /// `plain`: frames follow each other also on a terminal.
    pub fn new(plain: bool) -> Screen {
        let is_terminal = io::stdout().is_terminal();
        let no_color = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let ink = if is_terminal && !no_color { Ink::Coloured } else { Ink::Plain };
        Screen { is_own: is_terminal && !plain, ink, drawn: false }
    }

    pub fn ink(&self) -> Ink {
        self.ink
    }

    /// Draws a frame, which ends in a line feed.
    pub fn draw(&mut self, frame: &str) -> Done {
        let text = match (self.is_own, self.drawn) {
            // To the top; each line cleared to its end, and all below.
            (true, drawn) => {
                let enter = if drawn { "" } else { ENTER };
                format!("{enter}\x1b[H{}\x1b[J", frame.replace('\n', "\x1b[K\n"))
            }
            (false, false) => frame.to_string(),
            (false, true) => format!("\n{frame}"),
        };
        self.drawn = true;
        self.write(&text)
    }

    /// Prints a line.
    pub fn line(&mut self, line: &str) -> Done {
        self.write(&format!("{line}\n"))
    }

    fn write(&self, text: &str) -> Done {
        let mut out = io::stdout().lock();
        out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(Failure::output)
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        if self.is_own && self.drawn {
            // A terminal that went away needs no tidying.
            let _ = self.write(LEAVE);
        }
    }
}
