//! Results on standard output: buffered, as text or as JSON, bytes escaped or
//! hexadecimal. A document is an object a line.

use std::io::{self, BufWriter, StdoutLock, Write};

use serde_json::{Map, Value, json};

use crate::Done;
use crate::failure::Failure;
use crate::text::{escaped, push_escaped, to_hex};

/// How results look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Style {
    /// JSON instead of text.
    pub json: bool,
    /// Keys and values as hexadecimal digits.
    pub hex: bool,
}

/// Standard output.
pub struct Output {
    style: Style,
    out: BufWriter<StdoutLock<'static>>,
    line: Vec<u8>,
}

impl Output {
    /// Results in `style`. [`Output::finish`] must be called in the end.
    pub fn new(style: Style) -> Output {
        Output { style, out: BufWriter::new(io::stdout().lock()), line: Vec::new() }
    }

    /// An entry: `key TAB value`, or an object.
    pub fn entry(&mut self, key: &[u8], value: Option<&[u8]>) -> Done {
        if self.style.json {
            let mut object = Map::new();
            self.add_bytes(&mut object, "key", key);
            if let Some(value) = value {
                self.add_bytes(&mut object, "value", value);
            }
            return self.object(object);
        }
        self.line.clear();
        for (at, bytes) in [Some(key), value].into_iter().flatten().enumerate() {
            if at > 0 {
                self.line.push(b'\t');
            }
            match self.style.hex {
                true => self.line.extend_from_slice(to_hex(bytes).as_bytes()),
                false => push_escaped(&mut self.line, bytes),
            }
        }
        self.line.push(b'\n');
        self.out.write_all(&self.line).map_err(Failure::output)
    }

    /// Bytes as they are, or hexadecimal, and a line feed.
    pub fn raw(&mut self, bytes: &[u8]) -> Done {
        match self.style.hex {
            true => self.out.write_all(to_hex(bytes).as_bytes()),
            false => self.out.write_all(bytes),
        }
        .and_then(|()| self.out.write_all(b"\n"))
        .map_err(Failure::output)
    }

    /// Bytes as they are, and nothing else.
    pub fn bytes(&mut self, bytes: &[u8]) -> Done {
        self.out.write_all(bytes).map_err(Failure::output)
    }

    /// `bytes` on one line of text: escaped, or hexadecimal.
    pub fn shown(&self, bytes: &[u8]) -> String {
        match self.style.hex {
            true => to_hex(bytes),
            false => escaped(bytes),
        }
    }

    /// A line of text.
    pub fn line(&mut self, text: &str) -> Done {
        writeln!(self.out, "{text}").map_err(Failure::output)
    }

    /// Text for people, or an object for programs.
    pub fn report(&mut self, text: &str, object: Value) -> Done {
        match self.style.json {
            true => self.object(object),
            false => self.bytes(text.as_bytes()),
        }
    }

    /// Adds `bytes` to `object` under `name` if they are UTF-8 and hexadecimal
    /// is not asked for, or else their digits under `name` and `_hex`.
    pub fn add_bytes(&self, object: &mut Map<String, Value>, name: &str, bytes: &[u8]) {
        match std::str::from_utf8(bytes) {
            Ok(text) if !self.style.hex => object.insert(name.to_string(), json!(text)),
            _ => object.insert(format!("{name}_hex"), json!(to_hex(bytes))),
        };
    }

    /// One object in one line.
    pub fn object(&mut self, object: impl Into<Value>) -> Done {
        writeln!(self.out, "{}", object.into()).map_err(Failure::output)
    }

    /// True if results are JSON.
    pub fn is_json(&self) -> bool {
        self.style.json
    }

    /// Writes what is buffered, before something that takes long.
    pub fn flush(&mut self) -> Done {
        self.out.flush().map_err(Failure::output)
    }

    /// Writes what is still buffered.
    pub fn finish(mut self) -> Done {
        self.flush()
    }
}
