//! What part of a key is its prefix, for filters that know prefixes too.
//!
//! A filter holds the prefix of every key that has one. A cursor that wants
//! only keys that begin in some way may skip a table whose filter denies the
//! prefix that all these keys have; if they have none in common, or some have
//! none at all, nothing is skipped.

use std::fmt;
use std::str::FromStr;

use crate::key::hash;

/// What part of a key is its prefix. Bytewise order only.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum PrefixExtractor {
    /// No key has a prefix.
    #[default]
    None,
    /// The first bytes, so many. A shorter key has none.
    Fixed(usize),
    /// The first bytes, at most so many: a shorter key is its own prefix.
    Capped(usize),
    /// Everything up to this byte, included, where it comes first. A key
    /// without it has none.
    Delimiter(u8),
}

impl PrefixExtractor {
    /// The prefix of `key`, if it has one.
    #[inline]
    pub fn prefix_of(self, key: &[u8]) -> Option<&[u8]> {
        match self {
            PrefixExtractor::None => None,
            PrefixExtractor::Fixed(bytes) => key.get(..bytes),
            PrefixExtractor::Capped(bytes) => Some(&key[..bytes.min(key.len())]),
            PrefixExtractor::Delimiter(byte) => {
                let at = key.iter().position(|&b| b == byte)?;
                Some(&key[..=at])
            }
        }
    }

    /// The prefix of every key that begins with `start`; `None` if these keys
    /// may have different ones, or none.
    pub fn prefix_of_all(self, start: &[u8]) -> Option<&[u8]> {
        match self {
            // A longer key may have a longer prefix.
            PrefixExtractor::Capped(bytes) => start.get(..bytes),
            _ => self.prefix_of(start),
        }
    }
}

/// What a filter holds for a prefix. Not the hash of the same bytes as a key:
/// else a look-up of a key that is the prefix of others would pass.
#[inline]
pub(crate) fn prefix_hash(prefix: &[u8]) -> u64 {
    hash(prefix) ^ 0xd6e8_feb8_6659_fd93
}

impl fmt::Display for PrefixExtractor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PrefixExtractor::None => f.write_str("none"),
            PrefixExtractor::Fixed(bytes) => write!(f, "fixed:{bytes}"),
            PrefixExtractor::Capped(bytes) => write!(f, "capped:{bytes}"),
            PrefixExtractor::Delimiter(byte) => write!(f, "delimiter:{byte:#04x}"),
        }
    }
}

impl FromStr for PrefixExtractor {
    type Err = String;

    fn from_str(text: &str) -> Result<PrefixExtractor, String> {
        let wrong =
            || format!("{text:?} is none of none, fixed:BYTES, capped:BYTES, delimiter:0xHH");
        let bytes = |text: &str| text.parse().ok().filter(|&bytes: &usize| bytes > 0);
        match text.split_once(':') {
            None if text == "none" => Ok(PrefixExtractor::None),
            Some(("fixed", n)) => bytes(n).map(PrefixExtractor::Fixed).ok_or_else(wrong),
            Some(("capped", n)) => bytes(n).map(PrefixExtractor::Capped).ok_or_else(wrong),
            Some(("delimiter", byte)) => {
                let digits =
                    byte.strip_prefix("0x").filter(|d| d.len() == 2 && !d.starts_with('+'));
                let byte = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok());
                byte.map(PrefixExtractor::Delimiter).ok_or_else(wrong)
            }
            _ => Err(wrong()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [PrefixExtractor; 6] = [
        PrefixExtractor::None,
        PrefixExtractor::Fixed(1),
        PrefixExtractor::Fixed(3),
        PrefixExtractor::Capped(1),
        PrefixExtractor::Capped(3),
        PrefixExtractor::Delimiter(b'a'),
    ];

    /// All strings over two letters, up to a length.
    fn strings(length_max: usize) -> Vec<Vec<u8>> {
        let mut all = vec![Vec::new()];
        for i in 0.. {
            if all[i].len() == length_max {
                return all;
            }
            for letter in *b"ab" {
                let longer = [&all[i][..], &[letter]].concat();
                all.push(longer);
            }
        }
        unreachable!("strings get longer")
    }

    /// What is said of all keys that begin in one way is true of each: else a
    /// table that has one of them could be skipped.
    #[test]
    fn what_holds_for_all_keys_that_begin_so_holds_for_each() {
        for extractor in ALL {
            let mut said = 0;
            for start in strings(4) {
                let Some(prefix) = extractor.prefix_of_all(&start) else { continue };
                said += 1;
                for end in strings(3) {
                    let key = [&start[..], &end].concat();
                    assert_eq!(extractor.prefix_of(&key), Some(prefix), "{extractor} {key:?}");
                }
            }
            assert!(said > 0 || extractor == PrefixExtractor::None);
        }
    }

    /// A name reads as what it names; what is no name is refused.
    #[test]
    fn names_read_back() {
        for extractor in ALL.into_iter().chain([PrefixExtractor::Delimiter(0xff)]) {
            assert_eq!(extractor.to_string().parse(), Ok(extractor));
        }
        for wrong in ["", "fixed", "fixed:0", "fixed:-1", "capped:x", "delimiter:/", "x:1"] {
            assert!(wrong.parse::<PrefixExtractor>().is_err(), "{wrong}");
        }
    }
}
