//! What a file says of the builds that may read and write it: the version of its
//! format, and three words of features. Manifests, tables and segments of the log
//! have both.
//!
//! A database's manifest has every feature of its files, from before the first
//! of them is named: so opening meets a feature that it does not know before it
//! changes anything.

use std::ops::RangeInclusive;
use std::path::Path;

use crate::coding::{Reader, put_u64};
use crate::error::{Error, Result};

/// Checks the version that `path` is written in, against those that this build
/// reads.
///
/// # Errors
/// `Incompatible`, and whether an older or a newer build has to read it.
pub(crate) fn check_version(path: &Path, found: u32, known: &RangeInclusive<u32>) -> Result<()> {
    if known.contains(&found) {
        return Ok(());
    }
    let (first, last) = (known.start(), known.end());
    let what = format!("it is of format version {found}; this build reads {first} to {last}");
    match found < *first {
        true => Err(Error::incompatible(path, format!("{what}: an older build wrote it"))),
        false => Err(Error::newer(path, what)),
    }
}

/// What this build knows. Compatible features need not be known.
const KNOWN_READ_COMPATIBLE: u64 = 0;
const KNOWN_INCOMPATIBLE: u64 = 0;

/// Features of a file, each a bit: who does not know a set bit may go on, may
/// only read, or must refuse.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Features {
    pub(crate) compatible: u64,
    pub(crate) read_compatible: u64,
    pub(crate) incompatible: u64,
}

impl Features {
    /// Appends the three words.
    pub(crate) fn encode(self, out: &mut Vec<u8>) {
        put_u64(out, self.compatible);
        put_u64(out, self.read_compatible);
        put_u64(out, self.incompatible);
    }

    /// Reads the three words; `None` if they are not there.
    pub(crate) fn decode(reader: &mut Reader<'_>) -> Option<Features> {
        Some(Features {
            compatible: reader.u64()?,
            read_compatible: reader.u64()?,
            incompatible: reader.u64()?,
        })
    }

    /// # Errors
    /// `Incompatible` if this build must not read `path`.
    pub(crate) fn check_readable(self, path: &Path) -> Result<()> {
        match self.incompatible & !KNOWN_INCOMPATIBLE {
            0 => Ok(()),
            unknown => Err(Error::newer(path, format!("it has features {unknown:#x}"))),
        }
    }

    /// # Errors
    /// `Incompatible` if this build may read `path`, but must not write what
    /// follows from it.
    pub(crate) fn check_writable(self, path: &Path) -> Result<()> {
        match self.read_compatible & !KNOWN_READ_COMPATIBLE {
            0 => Ok(()),
            unknown => {
                let what = format!("it has features {unknown:#x}, and can only be read here");
                Err(Error::newer(path, what))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Who is refused hears in which direction to look.
    #[test]
    fn versions_are_refused_on_both_sides() {
        let check = |found| check_version(Path::new("000007.table"), found, &(3..=4));
        let said = |found| check(found).unwrap_err().to_string();
        assert!(check(3).is_ok() && check(4).is_ok());
        assert!(said(2).contains("version 2") && said(2).contains("older build"), "{}", said(2));
        assert!(said(5).contains("version 5") && said(5).contains("newer build"), "{}", said(5));
    }
}
