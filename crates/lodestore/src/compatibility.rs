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

/// Version 1.0, as which manifests, tables and segments of the log were frozen:
/// `major << 8 | minor`. The drafts before it had the numbers 1 to 5, so that
/// none of them has the number of a version, and each is older than all of these.
pub(crate) const FIRST_VERSION: u32 = 0x0100;

/// Checks the version that `path` is written in, against those that this build
/// reads.
///
/// # Errors
/// `Incompatible`, and whether an older or a newer build has to read it.
pub(crate) fn check_version(path: &Path, found: u32, known: &RangeInclusive<u32>) -> Result<()> {
    if known.contains(&found) {
        return Ok(());
    }
    let (first, last) = (*known.start(), *known.end());
    let read = match first == last {
        true => version_name(first),
        false => format!("{} to {}", version_name(first), version_name(last)),
    };
    let what = format!("its format is {}; this build reads {read}", version_name(found));
    match found < first {
        true => Err(Error::incompatible(path, format!("{what}: an older build wrote it"))),
        false => Err(Error::newer(path, what)),
    }
}

/// A stored number as people write it: `version 1.0`, or `draft 5`.
fn version_name(number: u32) -> String {
    match number < FIRST_VERSION {
        true => format!("draft {number}"),
        false => format!("version {}.{}", number >> 8, number & 0xff),
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
        let check = |found| check_version(Path::new("000007.table"), found, &(0x0102..=0x0201));
        let assert_said = |found, parts: [&str; 2]| {
            let said = check(found).unwrap_err().to_string();
            assert!(parts.iter().all(|part| said.contains(part)), "{said}");
        };
        assert!(check(0x0102).is_ok() && check(0x01ff).is_ok() && check(0x0201).is_ok());
        let read = "this build reads version 1.2 to version 2.1";
        assert_said(0x0101, ["its format is version 1.1;", "an older build wrote it"]);
        assert_said(0x0202, ["its format is version 2.2;", "a newer build wrote it"]);
        assert_said(u32::MAX, ["its format is version 16777215.255;", read]);
    }

    /// Drafts are called so, and all of them are older than what was frozen.
    #[test]
    fn drafts_are_refused_as_older() {
        for draft in [0, 1, 5, 255] {
            let known = FIRST_VERSION..=FIRST_VERSION;
            let said = check_version(Path::new("000007.table"), draft, &known).unwrap_err();
            let what = format!(
                "its format is draft {draft}; this build reads version 1.0: an older build wrote it"
            );
            assert!(said.to_string().contains(&what), "{said}");
        }
    }
}
