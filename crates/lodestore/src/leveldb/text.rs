//! What a record of a manifest says, in the words of LevelDB's own dump
//! (`db/version_edit.cc`, `db/dbformat.cc`): programs read them.

use std::collections::BTreeSet;
use std::fmt::{self, Write as _};

use crate::key::{Kind, SequenceNumber, kind_of, sequence_of};

use super::edit::Edit;
use super::split_key;

/// `bytes` with all but printable ASCII as `\xNN`.
pub(crate) fn escaped(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for &byte in bytes {
        match byte {
            b' '..=b'~' => text.push(char::from(byte)),
            _ => write!(text, "\\x{byte:02x}").expect("a string takes all text"),
        }
    }
    text
}

/// User key, sequence number, and whether it is a put, of a stored key; `None` if it
/// is none that LevelDB writes.
pub(crate) fn parse_key(stored: &[u8]) -> Option<(&[u8], SequenceNumber, bool)> {
    let (user_key, trailer) = split_key(stored).ok()?;
    let is_put = match kind_of(trailer)? {
        Kind::Put => true,
        Kind::Delete => false,
        _ => return None,
    };
    Some((user_key, sequence_of(trailer), is_put))
}

/// A stored key.
struct Key<'a>(&'a [u8]);

impl fmt::Display for Key<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match parse_key(self.0) {
            Some((user_key, sequence, is_put)) => {
                write!(out, "'{}' @ {sequence} : {}", escaped(user_key), u8::from(is_put))
            }
            None => write!(out, "(bad){}", escaped(self.0)),
        }
    }
}

impl fmt::Display for Edit {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(out, "VersionEdit {{")?;
        if let Some(name) = &self.comparator {
            writeln!(out, "  Comparator: {}", String::from_utf8_lossy(name))?;
        }
        let numbers = [
            ("LogNumber", self.log_number),
            ("PrevLogNumber", self.previous_log_number),
            ("NextFile", self.next_file_number),
            ("LastSeq", self.last_sequence),
        ];
        for (name, number) in numbers {
            if let Some(number) = number {
                writeln!(out, "  {name}: {number}")?;
            }
        }
        for (level, key) in &self.compact_pointers {
            writeln!(out, "  CompactPointer: {level} {}", Key(key))?;
        }
        for (level, number) in self.deleted.iter().collect::<BTreeSet<_>>() {
            writeln!(out, "  RemoveFile: {level} {number}")?;
        }
        for (level, table) in &self.added {
            let (smallest, largest) = (Key(&table.smallest), Key(&table.largest));
            let (number, bytes) = (table.number, table.bytes);
            writeln!(out, "  AddFile: {level} {number} {bytes} {smallest} .. {largest}")?;
        }
        writeln!(out, "}}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_that_are_no_text_are_escaped() {
        assert_eq!(escaped(b"a b~\x7f\0\xff\\"), "a b~\\x7f\\x00\\xff\\");
    }

    #[test]
    fn keys_say_whose_they_are() {
        let key = |kind: u8| [b"k\n".as_slice(), &[kind, 7, 0, 0, 0, 0, 0, 0]].concat();
        assert_eq!(Key(&key(1)).to_string(), "'k\\x0a' @ 7 : 1");
        assert_eq!(Key(&key(0)).to_string(), "'k\\x0a' @ 7 : 0");
        assert_eq!(Key(&key(9)).to_string().find("(bad)k"), Some(0));
        assert_eq!(Key(b"short").to_string(), "(bad)short");
    }
}
