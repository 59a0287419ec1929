//! Byte strings as words of a script.
//!
//! | word | bytes |
//! |---|---|
//! | `abc` | themselves |
//! | `""` | none |
//! | `a\x00\xff` | any byte, in hexadecimal |
//! | `#5000:17` | 5000 bytes that follow from the seed 17 |

use crate::random;
use std::fmt;

/// Longest byte string that is shown in full in an output.
const SHOWN_BYTES_MAX: usize = 64;

/// A key or a value, as a script writes it down.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Datum {
    /// The bytes themselves.
    Literal(Vec<u8>),
    /// Bytes made from a seed, see [`random::bytes`].
    Generated {
        /// How many bytes.
        length: usize,
        /// What they follow from.
        seed: u64,
    },
}

impl Datum {
    /// The bytes meant.
    pub fn bytes(&self) -> Vec<u8> {
        match self {
            Datum::Literal(bytes) => bytes.clone(),
            Datum::Generated { length, seed } => random::bytes(*length, *seed),
        }
    }

    /// Reads a word; says what is wrong with it.
    pub fn parse(word: &str) -> Result<Datum, String> {
        if word == "\"\"" {
            return Ok(Datum::Literal(Vec::new()));
        }
        if let Some(rest) = word.strip_prefix('#') {
            let (length, seed) = rest.split_once(':').ok_or("expected #LENGTH:SEED")?;
            let length = length.parse().map_err(|_| format!("no length in {word}"))?;
            let seed = seed.parse().map_err(|_| format!("no seed in {word}"))?;
            return Ok(Datum::Generated { length, seed });
        }
        unescape(word).map(Datum::Literal).ok_or_else(|| format!("bad escape in {word}"))
    }
}

impl From<&[u8]> for Datum {
    fn from(bytes: &[u8]) -> Datum {
        Datum::Literal(bytes.to_vec())
    }
}

impl fmt::Display for Datum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Datum::Literal(bytes) => f.write_str(&escape(bytes)),
            Datum::Generated { length, seed } => write!(f, "#{length}:{seed}"),
        }
    }
}

fn unescape(word: &str) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    let mut rest = word.as_bytes();
    while let Some((&byte, tail)) = rest.split_first() {
        if byte != b'\\' {
            out.push(byte);
            rest = tail;
            continue;
        }
        let (digits, after) = tail.strip_prefix(b"x")?.split_at_checked(2)?;
        out.push(u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?);
        rest = after;
    }
    Some(out)
}

/// `bytes` as a word that [`Datum::parse`] reads back.
pub fn escape(bytes: &[u8]) -> String {
    if bytes.is_empty() {
        return "\"\"".to_string();
    }
    let mut out = String::new();
    for &byte in bytes {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' => out.push(byte as char),
            b'-' | b'_' | b'.' | b'/' | b',' | b'+' | b'~' | b'!' | b'@' => {
                out.push(byte as char);
            }
            _ => out.push_str(&format!("\\x{byte:02x}")),
        }
    }
    out
}

/// `bytes` as shown in an output: long ones by length and digest.
pub fn show(bytes: &[u8]) -> String {
    if bytes.len() <= SHOWN_BYTES_MAX {
        return escape(bytes);
    }
    format!("<{} bytes, digest {:016x}>", bytes.len(), random::digest(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whatever the bytes, the word that stands for them is read back as them.
    #[test]
    fn words_round_trip() {
        let all: Vec<u8> = (0..=255).collect();
        for bytes in [&b""[..], b"abc", b"\0\xff", b"#1:2", b"a b\\x", b";", &all] {
            let word = escape(bytes);
            assert!(!word.contains(char::is_whitespace), "{word}");
            assert_eq!(Datum::parse(&word).unwrap().bytes(), bytes, "{word}");
        }
        assert_eq!(Datum::parse("#7:9").unwrap().to_string(), "#7:9");
        assert_eq!(Datum::parse("#7:9").unwrap().bytes().len(), 7);
        for wrong in ["\\x0", "\\y00", "#7", "#x:1", "\\xg0"] {
            assert!(Datum::parse(wrong).is_err(), "{wrong}");
        }
    }
}
