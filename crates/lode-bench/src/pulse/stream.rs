//! The description of a key stream: all that a pulse does follows from it.
//!
//! Keys, values, and which of them a round reads, adds and deletes are
//! computed from the shape, the seed and the counts. So the file of a stream
//! is a dozen lines of text, however large the database is, and any number of
//! databases can be made from it. Its last line is the digest of those above;
//! `sample` is a digest of some entries and of a round, so that a build whose
//! generators give other keys refuses the file instead of finding nothing.

use std::fmt::Write as _;
use std::fs;
use std::io::{self, Write as _};
use std::path::Path;

use crate::error::BenchError;
use crate::pulse::entry::{Entries, KEY_BYTES, VALUE_BYTES_MAX, VALUE_BYTES_MIN, digest};
use crate::pulse::plan::Planner;

const FIRST_LINE: &str = "lode pulse stream, version 1";
/// Far more than a description has; what is longer is something else.
const FILE_BYTES_MAX: u64 = 4_096;
/// A round is kept in memory: some 200 bytes for each of these.
const ROUND_ENTRIES_MAX: u64 = 10_000_000;
const ENTRIES_MAX: u64 = 1 << 40;
/// Entries at either end of the load that `sample` looks at.
const SAMPLE_ENTRIES: u64 = 64;

/// Which keys there are, and which of them are read and deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Shape {
    /// Random keys; all that are there are equally likely to be read or deleted.
    Classic,
    /// Random keys; old outputs are spent, by the ages of a public block chain:
    /// what is read is deleted, and most of it was written not long ago.
    Utxo,
    /// Keys are integers, most significant byte first, written in their order;
    /// reads and deletes as in classic.
    Sequential,
}

impl Shape {
    const ALL: [Shape; 3] = [Shape::Classic, Shape::Utxo, Shape::Sequential];

    /// The name on the command line and in files.
    pub fn name(self) -> &'static str {
        match self {
            Shape::Classic => "classic",
            Shape::Utxo => "utxo",
            Shape::Sequential => "sequential",
        }
    }
}

/// A key stream.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Stream {
    /// Which keys there are.
    pub shape: Shape,
    /// Another seed gives other keys.
    pub seed: u64,
    /// Entries that are loaded before the first round.
    pub entries: u64,
    /// Keys that a round reads.
    pub reads: u64,
    /// Entries that a round adds.
    pub adds: u64,
    /// Keys that a round deletes.
    pub deletes: u64,
}

impl Stream {
    /// Checks what the counts say together.
    /// # Errors: `Usage` names the flag that would have to change.
    pub fn check(&self) -> Result<(), BenchError> {
        let usage = |what: String| Err(BenchError::Usage(what));
        let Stream { shape, entries, reads, adds, deletes, .. } = *self;
        for (flag, count) in [("--reads", reads), ("--adds", adds), ("--deletes", deletes)] {
            if count > ROUND_ENTRIES_MAX {
                return usage(format!(
                    "{flag} is {count}; a round is kept in memory and has at most \
                     {ROUND_ENTRIES_MAX} of them"
                ));
            }
        }
        if reads == 0 || adds == 0 {
            return usage("--reads and --adds must be at least 1".to_string());
        }
        if shape == Shape::Utxo && deletes != reads {
            return usage(format!(
                "in --shape utxo what is read is deleted: leave --deletes out, or make it {reads}"
            ));
        }
        if shape == Shape::Utxo && adds < reads {
            return usage(format!(
                "in --shape utxo a round adds at least what it spends: make --adds at least {reads}"
            ));
        }
        let least = 2 * reads.max(deletes);
        if !(least..=ENTRIES_MAX).contains(&entries) {
            return usage(format!(
                "{entries} entries: with these --reads and --deletes there must be {least} to \
                 {ENTRIES_MAX}; see --num and --size"
            ));
        }
        Ok(())
    }

    /// Makes keys and values.
    pub fn entries(&self) -> Entries {
        Entries::new(self.shape, self.seed)
    }

    /// The text of its file.
    pub fn text(&self) -> String {
        let Stream { shape, seed, entries, reads, adds, deletes } = self;
        let mut text = format!(
            "{FIRST_LINE}\n\
             shape={}\nseed={seed}\nentries={entries}\n\
             reads={reads}\nadds={adds}\ndeletes={deletes}\n\
             key-bytes={KEY_BYTES}\nvalue-bytes={VALUE_BYTES_MIN}-{VALUE_BYTES_MAX}\n\
             sample={:016x}\n",
            shape.name(),
            self.sample(),
        );
        let check = digest(text.as_bytes());
        let _ = writeln!(text, "check={check:016x}");
        text
    }

    /// Reads the text of a file; `name` is what messages call it.
    /// # Errors: `Damaged` if it is not what was written; `Refused` if another
    /// version wrote it.
    pub fn parse(text: &str, name: &str) -> Result<Stream, BenchError> {
        if text.lines().next() != Some(FIRST_LINE) {
            return Err(BenchError::Refused(format!(
                "{name} is no stream of this version of lode: its first line is not \
                 '{FIRST_LINE}'; make one with lode pulse gen"
            )));
        }
        let damaged = || {
            let what = format!("{name}: the text of the stream is damaged; make it again");
            BenchError::Damaged(what)
        };
        let at = text.rfind("check=").ok_or_else(damaged)?;
        let (checked, check) = text.split_at(at);
        if check != format!("check={:016x}\n", digest(checked.as_bytes())) {
            return Err(damaged());
        }
        let stream = Stream::of_fields(checked).ok_or_else(damaged)?;
        stream.check()?;
        if stream.text() != text {
            return Err(BenchError::Refused(format!(
                "{name} was made by a version of lode that computes other keys; make it again \
                 with this one"
            )));
        }
        Ok(stream)
    }

    fn of_fields(text: &str) -> Option<Stream> {
        let field =
            |name: &str| text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('='));
        let number = |name| field(name)?.parse().ok();
        let shape = field("shape")?;
        Some(Stream {
            shape: Shape::ALL.into_iter().find(|s| s.name() == shape)?,
            seed: number("seed")?,
            entries: number("entries")?,
            reads: number("reads")?,
            adds: number("adds")?,
            deletes: number("deletes")?,
        })
    }

    /// Writes the file, which must not exist.
    pub fn create_file(&self, path: &Path) -> Result<(), BenchError> {
        let file = fs::File::options().write(true).create_new(true).open(path);
        let mut file = file.map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => BenchError::Usage(format!(
                "{} exists; remove it, or name another file with --out",
                path.display()
            )),
            _ => BenchError::io(path)(error),
        })?;
        let written = file.write_all(self.text().as_bytes()).and_then(|()| file.sync_all());
        written.map_err(BenchError::io(path))
    }

    /// Reads the file at `path`.
    pub fn read_file(path: &Path) -> Result<Stream, BenchError> {
        let bytes = fs::metadata(path).map_err(BenchError::io(path))?.len();
        let text = match bytes <= FILE_BYTES_MAX {
            true => fs::read(path).map_err(BenchError::io(path))?,
            false => Vec::new(),
        };
        Stream::parse(&String::from_utf8_lossy(&text), &path.display().to_string())
    }

    fn sample(&self) -> u64 {
        let entries = self.entries();
        let mut value = Vec::new();
        let mut seen = Vec::new();
        let ends = (0..SAMPLE_ENTRIES).chain(self.entries - SAMPLE_ENTRIES.min(self.entries)..);
        for number in ends.take(2 * SAMPLE_ENTRIES as usize) {
            entries.value(number, &mut value);
            seen.extend_from_slice(&entries.key(number));
            seen.extend_from_slice(&value);
        }
        let round = Planner::new(self).next_round().expect("a checked stream has a first round");
        round.reads.iter().chain(&round.deletes).for_each(|n| seen.extend(n.to_le_bytes()));
        digest(&seen)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stream(shape: Shape) -> Stream {
        let deletes = if shape == Shape::Utxo { 90 } else { 30 };
        Stream { shape, seed: 5, entries: 5_000, reads: 90, adds: 210, deletes }
    }

    /// A stream survives the way through its file.
    #[test]
    fn text_is_read_back() {
        for shape in Shape::ALL {
            let stream = stream(shape);
            assert_eq!(Stream::parse(&stream.text(), "x").expect("it is whole"), stream);
        }
    }

    /// No byte of a file can change, go or come unnoticed.
    #[test]
    fn damaged_text_is_refused() {
        let text = stream(Shape::Utxo).text();
        for at in 0..text.len() {
            let mut bytes = text.clone().into_bytes();
            bytes[at] ^= 1;
            let changed = String::from_utf8(bytes).expect("the lowest bit of ASCII gives ASCII");
            assert!(Stream::parse(&changed, "x").is_err(), "byte {at} changed");
            assert!(Stream::parse(&text[..at], "x").is_err(), "cut at {at}");
        }
        assert!(Stream::parse(&(text + "\n"), "x").is_err());
    }

    /// A file whose entries this build would compute differently is refused,
    /// though its digest is right.
    #[test]
    fn stream_of_other_generators_is_refused() {
        let text = stream(Shape::Classic).text();
        let at = text.find("sample=").expect("it is there");
        let mut other = format!("{}sample=0123456789abcdef\n", &text[..at]);
        let check = digest(other.as_bytes());
        let _ = writeln!(other, "check={check:016x}");
        assert!(matches!(Stream::parse(&other, "x"), Err(BenchError::Refused(_))));
    }

    /// Counts that cannot go together are named before anything is made.
    #[test]
    fn impossible_counts_are_refused() {
        let right = stream(Shape::Utxo);
        assert!(right.check().is_ok());
        for wrong in [
            Stream { deletes: 30, ..right.clone() },
            Stream { adds: 89, ..right.clone() },
            Stream { reads: 0, deletes: 0, ..right.clone() },
            Stream { entries: 179, ..right.clone() },
            Stream { entries: u64::MAX, ..right.clone() },
            Stream { adds: u64::MAX, ..right.clone() },
        ] {
            assert!(matches!(wrong.check(), Err(BenchError::Usage(_))), "{wrong:?}");
        }
    }
}
