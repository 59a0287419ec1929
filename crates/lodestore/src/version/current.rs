//! The file `CURRENT`: one line that names the manifest in use, its id, and
//! the checksum of the line so far.
//!
//! ```text
//! MANIFEST-000007 000102030405060708090a0b0c0d0e0f 89abcdef\n
//! ```
//!
//! It is replaced by renaming a synced temporary file, so that it is always
//! the old line or the new one. LevelDB and RocksDB keep a file of the same
//! name that holds the manifest's name alone.

use std::io::ErrorKind;
use std::path::Path;

use crate::checksum::crc32c;
use crate::error::{Error, Result, Undecodable};
use crate::filename::{self, FileKind};
use crate::fs::{self, Fs};
use crate::key::FileId;

/// No `CURRENT` of ours or of LevelDB's is longer.
const LINE_BYTES_MAX: u64 = 512;

/// What `CURRENT` says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Current {
    /// The manifest in use.
    Ours { number: u64, id: FileId },
    /// A line as LevelDB and RocksDB write it.
    NameAlone { number: u64 },
}

/// Writes, durably, what is to become `CURRENT` to the file that [`install`] renames.
pub(crate) fn prepare(fs: &dyn Fs, directory: &Path, number: u64, id: FileId) -> Result<()> {
    let temporary = filename::temporary_path(directory, number);
    let failed = |during: &'static str| {
        let path = &temporary;
        move |error| Error::io(path, during, error)
    };
    let mut file = fs.create(&temporary).map_err(failed("create"))?;
    file.append(line(number, id).as_bytes()).map_err(failed("append"))?;
    file.sync().map_err(failed("sync"))?;
    file.close().map_err(failed("close"))
}

/// Makes `CURRENT` what was prepared for this manifest, durably.
pub(crate) fn install(fs: &dyn Fs, directory: &Path, number: u64) -> Result<()> {
    let temporary = filename::temporary_path(directory, number);
    let renamed = fs.rename(&temporary, &filename::current_path(directory));
    renamed.map_err(|error| Error::io(&temporary, "rename", error))?;
    // A rename survives power loss only once its directory is synced.
    fs.sync_directory(directory).map_err(|error| Error::io(directory, "sync directory", error))
}

/// What `CURRENT` says; `None` if there is no such file.
pub(crate) fn read(fs: &dyn Fs, directory: &Path) -> Result<Option<Current>> {
    let path = filename::current_path(directory);
    let length = match fs.length(&path) {
        Ok(length) => length,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(Error::io(&path, "get length of", error)),
    };
    if length > LINE_BYTES_MAX {
        return Err(Error::corruption(&path, 0, "it is too long to name a manifest"));
    }
    let bytes = fs::read_all(fs, &path).map_err(|error| Error::io(&path, "read", error))?;
    parse(&bytes).map(Some).map_err(|undecodable| undecodable.at(&path, 0))
}

fn line(number: u64, id: FileId) -> String {
    let start = format!("{} {id}", filename::manifest_name(number));
    format!("{start} {:08x}\n", crc32c(start.as_bytes()))
}

fn parse(bytes: &[u8]) -> std::result::Result<Current, Undecodable> {
    if bytes.is_empty() {
        return Err("it is empty".into());
    }
    let text = std::str::from_utf8(bytes).map_err(|_| "it is no text")?;
    let text = text.strip_suffix('\n').ok_or("its line does not end")?;
    let words: Vec<&str> = text.split(' ').collect();
    let Some(FileKind::Manifest(number)) = filename::parse(words[0]) else {
        return Err("it does not begin with a manifest's name".into());
    };
    let &[_, id, _, ref more @ ..] = &words[..] else {
        let alone = words.len() == 1;
        return if alone { Ok(Current::NameAlone { number }) } else { Err("it is cut off".into()) };
    };
    let id = u128::from_str_radix(id, 16).map_err(|_| "the manifest's id is malformed")?;
    // Comparing with the line that we would write covers checksum and form.
    let ours = line(number, FileId(id));
    match text.strip_prefix(ours.trim_end()) {
        Some("") => Ok(Current::Ours { number, id: FileId(id) }),
        Some(_) if !more.is_empty() => {
            Err(Undecodable::Unknown(format!("a line of {} words", words.len())))
        }
        _ => Err("its checksum is wrong".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::coding::COUNTER_MAX;

    /// The line names the manifest; no single changed or lost byte is taken
    /// for another manifest of ours.
    #[test]
    fn a_damaged_line_names_nothing() {
        for (number, id) in [(7, 0), (COUNTER_MAX, u128::MAX), (1_234_567, 0xabc)] {
            let good = line(number, FileId(id)).into_bytes();
            assert_eq!(parse(&good), Ok(Current::Ours { number, id: FileId(id) }));
            for place in 0..good.len() {
                for flip in [1, 2, 4, 0x20, 0x80] {
                    let mut bad = good.clone();
                    bad[place] ^= flip;
                    assert!(parse(&bad).is_err(), "{}", bad.escape_ascii());
                }
                assert!(parse(&good[..place]).is_err());
            }
        }
    }

    /// More words behind the checksum are a later build's; behind a wrong one they
    /// are damage.
    #[test]
    fn a_line_of_more_words_is_a_later_builds() {
        let ours = line(7, FileId(1));
        let longer = format!("{} word\n", ours.trim_end());
        assert!(matches!(parse(longer.as_bytes()), Err(Undecodable::Unknown(_))));
        for damaged in [longer.replace("07 ", "08 "), ours.replace('\n', "0\n")] {
            assert!(matches!(parse(damaged.as_bytes()), Err(Undecodable::Corrupt(_))), "{damaged}");
        }
    }

    /// LevelDB's line is told from a damaged one of ours.
    #[test]
    fn the_line_of_a_leveldb_is_recognised() {
        assert_eq!(parse(b"MANIFEST-000005\n"), Ok(Current::NameAlone { number: 5 }));
        for bad in [&b"MANIFEST-000005"[..], b"\n", b"MANIFEST-5 x\n", b"MANIFEST-\n", b"\xff\n"] {
            assert!(parse(bad).is_err());
        }
    }
}
