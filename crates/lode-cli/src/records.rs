//! Records in files and pipes: the formats that `load` and `compare` read, and
//! that `scan` and `gen` write.
//!
//! | format | key | value |
//! |---|---|---|
//! | lines | up to the first tab | the rest of the line |
//! | lines, whole line as key | the line | nothing |
//! | text | number of the line, 16 digits, from 1 | the line |
//! | length-prefixed | length, 4 bytes little-endian, then its bytes | the same |
//!
//! A line ends in a line feed, which belongs to nothing; the last may lack it.
//! With `--hex`, keys and values of lines are hexadecimal digits.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::Path;

use clap::ValueEnum;
use lodestore::{KEY_BYTES_MAX, VALUE_BYTES_MAX};

use crate::failure::Failure;
use crate::text::from_hex;

/// How records are written down.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Key, tab, value, line feed
    Lines,
    /// Lines of a text: the key is the number of the line, in 16 digits
    Text,
    /// 4 bytes of length (little-endian) and the key, the same for the value
    LengthPrefixed,
}

/// All that is to know of how the records of a file are written down.
#[derive(Clone, Copy, Debug)]
pub struct Notation {
    /// Where a record ends, and its key.
    pub format: Format,
    /// With [`Format::Lines`]: a line is a key, whose value is empty.
    pub line_keys: bool,
    /// With [`Format::Lines`]: keys and values are hexadecimal digits.
    pub hex: bool,
}

impl Notation {
    /// # Errors: `Usage` for what only lines can have.
    pub fn check(&self) -> Result<(), Failure> {
        let flags = [(self.line_keys, "--line-keys"), (self.hex, "--hex")];
        match flags.into_iter().find(|(given, _)| *given && self.format != Format::Lines) {
            Some((_, flag)) => Err(Failure::Usage(format!("{flag} goes with --format lines only"))),
            None => Ok(()),
        }
    }
}

/// One record; its buffers are used again.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Record {
    /// The key.
    pub key: Vec<u8>,
    /// The value.
    pub value: Vec<u8>,
}

/// Reads records one after the other.
pub struct Records {
    input: Box<dyn BufRead>,
    notation: Notation,
    name: String,
    input_bytes: Option<u64>,
    read: u64,
    offset: u64,
}

impl Records {
    /// Records of `path`, or of standard input if it is `-`.
    pub fn open(path: &Path, notation: Notation) -> Result<Records, Failure> {
        if path.as_os_str() == "-" {
            let input = BufReader::with_capacity(1 << 16, io::stdin());
            return Ok(Self::new(Box::new(input), notation, "standard input"));
        }
        let file = File::open(path).map_err(Failure::io(path))?;
        let input_bytes = file.metadata().ok().filter(|m| m.is_file()).map(|m| m.len());
        let input = Box::new(BufReader::with_capacity(1 << 16, file));
        let mut records = Self::new(input, notation, &path.display().to_string());
        records.input_bytes = input_bytes;
        Ok(records)
    }

    fn new(input: Box<dyn BufRead>, notation: Notation, name: &str) -> Records {
        let name = name.to_string();
        Records { input, notation, name, input_bytes: None, read: 0, offset: 0 }
    }

    /// Length of the input, if it is a file.
    pub fn input_bytes(&self) -> Option<u64> {
        self.input_bytes
    }

    /// Bytes of the input that were read so far.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Records read so far.
    pub fn count(&self) -> u64 {
        self.read
    }

    /// Reads the next record; false at the end of the input.
    /// # Errors: name the record, so that it can be found.
    pub fn next(&mut self, record: &mut Record) -> Result<bool, Failure> {
        record.key.clear();
        record.value.clear();
        let got = match self.notation.format {
            Format::LengthPrefixed => self.next_length_prefixed(record)?,
            Format::Lines | Format::Text => self.next_line(record)?,
        };
        self.read += u64::from(got);
        Ok(got)
    }

    fn next_line(&mut self, record: &mut Record) -> Result<bool, Failure> {
        let number = self.read + 1;
        let read = self.input.read_until(b'\n', &mut record.value);
        let bytes = read.map_err(|error| self.wrong(&error.to_string()))?;
        self.offset += bytes as u64;
        if bytes == 0 {
            return Ok(false);
        }
        if record.value.last() == Some(&b'\n') {
            record.value.pop();
        }
        if self.notation.format == Format::Text {
            write!(record.key, "{number:016}").expect("a vector takes every write");
        } else if self.notation.line_keys {
            std::mem::swap(&mut record.key, &mut record.value);
        } else {
            let Some(tab) = record.value.iter().position(|&b| b == b'\t') else {
                return Err(self.wrong(
                    "there is no tab between a key and a value; --line-keys takes whole lines as \
                     keys, --format text numbers them",
                ));
            };
            record.key.extend_from_slice(&record.value[..tab]);
            record.value.drain(..=tab);
        }
        if self.notation.hex {
            for field in [&mut record.key, &mut record.value] {
                *field = from_hex(field).map_err(|what| self.wrong(&what))?;
            }
        }
        Ok(true)
    }

    fn next_length_prefixed(&mut self, record: &mut Record) -> Result<bool, Failure> {
        let at_end = self.input.fill_buf().map(<[u8]>::is_empty);
        if at_end.map_err(|error| self.wrong(&error.to_string()))? {
            return Ok(false);
        }
        self.read_field(&mut record.key, KEY_BYTES_MAX)?;
        self.read_field(&mut record.value, VALUE_BYTES_MAX)?;
        Ok(true)
    }

    fn read_field(&mut self, field: &mut Vec<u8>, bytes_max: usize) -> Result<(), Failure> {
        let mut length = [0; 4];
        self.input.read_exact(&mut length).map_err(|error| self.cut(error))?;
        let length = u64::from(u32::from_le_bytes(length));
        if length > bytes_max as u64 {
            return Err(self.wrong(&format!("its length is given as {length} bytes")));
        }
        // Grows with the bytes that are there, not with what the length says.
        let read = self.input.by_ref().take(length).read_to_end(field);
        let bytes = read.map_err(|error| self.wrong(&error.to_string()))? as u64;
        if bytes < length {
            return Err(self.cut(io::Error::from(io::ErrorKind::UnexpectedEof)));
        }
        self.offset += 4 + length;
        Ok(())
    }

    fn cut(&self, error: io::Error) -> Failure {
        match error.kind() {
            io::ErrorKind::UnexpectedEof => self.wrong("the input ends within it"),
            _ => self.wrong(&error.to_string()),
        }
    }

    fn wrong(&self, what: &str) -> Failure {
        let unit = if self.notation.format == Format::LengthPrefixed { "record" } else { "line" };
        let number = self.read + 1;
        let offset = self.offset;
        Failure::Error(format!("{}: {unit} {number} at byte {offset}: {what}", self.name))
    }
}

/// Writes a record in [`Format::LengthPrefixed`].
pub fn write_length_prefixed(out: &mut impl Write, key: &[u8], value: &[u8]) -> io::Result<()> {
    for field in [key, value] {
        let length = u32::try_from(field.len()).map_err(io::Error::other)?;
        out.write_all(&length.to_le_bytes())?;
        out.write_all(field)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    type Pairs = Vec<(Vec<u8>, Vec<u8>)>;

    fn read(bytes: &[u8], format: Format, line_keys: bool) -> (Pairs, Option<String>) {
        read_as(bytes, Notation { format, line_keys, hex: false })
    }

    fn read_as(bytes: &[u8], notation: Notation) -> (Pairs, Option<String>) {
        let input = Box::new(io::Cursor::new(bytes.to_vec()));
        let mut records = Records::new(input, notation, "input");
        let (mut record, mut all) = (Record::default(), Vec::new());
        loop {
            match records.next(&mut record) {
                Ok(true) => all.push((record.key.clone(), record.value.clone())),
                Ok(false) => return (all, None),
                Err(Failure::Error(message)) => return (all, Some(message)),
                Err(other) => panic!("unexpected {other:?}"),
            }
        }
    }

    fn pairs(expected: &[(&str, &str)]) -> Pairs {
        let bytes = |text: &str| text.as_bytes().to_vec();
        expected.iter().map(|(key, value)| (bytes(key), bytes(value))).collect()
    }

    /// The first tab splits a line; empty keys, empty values and a last line
    /// without line feed are all right.
    #[test]
    fn lines_split_at_the_first_tab() {
        let (all, error) = read(b"a\t1\n\tx\nb\t\nc\t2\t3", Format::Lines, false);
        assert_eq!(all, pairs(&[("a", "1"), ("", "x"), ("b", ""), ("c", "2\t3")]));
        assert_eq!(error, None);
    }

    /// A line without a tab is named by its number and offset.
    #[test]
    fn lines_without_tab_are_named() {
        let (all, error) = read(b"a\t1\nb 2\n", Format::Lines, false);
        assert_eq!(all.len(), 1);
        let error = error.expect("line 2 has no tab");
        assert!(error.contains("line 2 at byte") && error.contains("--line-keys"), "{error}");
    }

    /// Hexadecimal lines are what `scan --hex` prints; what is none is named by
    /// its line.
    #[test]
    fn hexadecimal_lines_are_bytes() {
        let notation = Notation { format: Format::Lines, line_keys: false, hex: true };
        let (all, error) = read_as(b"00ff\t0a\n61\t\n6g\t00\n", notation);
        assert_eq!(all, [(vec![0, 255], vec![10]), (vec![0x61], vec![])]);
        assert!(error.is_some_and(|error| error.contains("line 3") && error.contains("'6g'")));
        assert!(Notation { format: Format::Text, ..notation }.check().is_err());
    }

    /// Whole lines are keys, or values under their number, tabs included.
    #[test]
    fn whole_lines_are_keys_or_numbered_values() {
        let (all, _) = read(b"a\t1\n\nb", Format::Lines, true);
        assert_eq!(all, pairs(&[("a\t1", ""), ("", ""), ("b", "")]));
        let (all, _) = read(b"x\r\n\ny", Format::Text, false);
        let expected =
            [("0000000000000001", "x\r"), ("0000000000000002", ""), ("0000000000000003", "y")];
        assert_eq!(all, pairs(&expected));
    }

    /// What is written is read back; a cut anywhere inside a record is told.
    #[test]
    fn length_prefixed_records_survive_and_cuts_are_told() {
        let mut bytes = Vec::new();
        write_length_prefixed(&mut bytes, b"key", b"value").expect("a vector takes it");
        let first = bytes.len();
        write_length_prefixed(&mut bytes, b"", b"").expect("a vector takes it");
        let (all, error) = read(&bytes, Format::LengthPrefixed, false);
        assert_eq!((all, error), (pairs(&[("key", "value"), ("", "")]), None));
        for cut in 0..bytes.len() {
            let (all, error) = read(&bytes[..cut], Format::LengthPrefixed, false);
            assert_eq!(all.len(), usize::from(cut >= first), "cut at {cut}");
            assert_eq!(error.is_none(), cut == 0 || cut == first, "cut at {cut}: {error:?}");
        }
    }

    /// A length that nobody could mean is refused without taking the memory.
    #[test]
    fn absurd_lengths_are_refused() {
        let (_, error) = read(&[0xff; 8], Format::LengthPrefixed, false);
        assert!(error.expect("refused").contains("4294967295 bytes"));
        let (_, error) = read(&[0, 0, 0, 0x7f, 1], Format::LengthPrefixed, false);
        assert!(error.expect("refused").contains("ends within it"));
    }
}
