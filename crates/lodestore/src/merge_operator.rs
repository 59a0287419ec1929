//! Merge operators: how operands written blindly become a value when read.
//! Two are built in; a family is opened with one by name.

use std::fmt;
use std::sync::Arc;

/// Combines a key's value with operands that were merged into it later.
///
/// It must give the same result however the operands are grouped, because
/// compaction may combine some of them before a reader combines the rest.
///
/// ```
/// use lodestore::{Db, FamilyOptions, MergeOperator, Options};
/// use std::sync::Arc;
///
/// /// Keeps the largest value, in the order of bytes.
/// struct Largest;
///
/// impl MergeOperator for Largest {
///     fn name(&self) -> &str {
///         "example.largest"
///     }
///     fn full_merge(&self, _key: &[u8], old: Option<&[u8]>, new: &[&[u8]]) -> Option<Vec<u8>> {
///         new.iter().copied().chain(old).max().map(<[u8]>::to_vec)
///     }
/// }
///
/// # let place = std::env::temp_dir().join(format!("lodestore-merge-{}", std::process::id()));
/// let family = FamilyOptions { merge_operator: Some(Arc::new(Largest)), ..Default::default() };
/// let options = Options { create_if_missing: true, family, ..Options::default() };
/// # let again = options.clone();
/// let db = Db::open(&place, options)?;
/// db.merge(b"ann", b"0040")?;
/// db.merge(b"ann", b"0017")?;
/// assert_eq!(db.get(b"ann")?.as_deref(), Some(&b"0040"[..]));
/// # drop(db);
/// # Db::destroy(&place, &again)?;
/// # Ok::<(), lodestore::Error>(())
/// ```
pub trait MergeOperator: Send + Sync {
    /// A name that is stored; a family opens only under the same one.
    fn name(&self) -> &str;

    /// The value of `key` after `operands`, oldest first, were merged into
    /// `existing` (`None`: there was no value). `None` if they make no sense
    /// together: the reader gets `MergeFailed`, and compaction keeps them all.
    fn full_merge(
        &self,
        key: &[u8],
        existing: Option<&[u8]>,
        operands: &[&[u8]],
    ) -> Option<Vec<u8>>;

    /// One operand that stands for `older` followed by `newer`; `None` if
    /// there is none, and both are kept.
    fn partial_merge(&self, key: &[u8], older: &[u8], newer: &[u8]) -> Option<Vec<u8>> {
        let _ = (key, older, newer);
        None
    }
}

/// A shared merge operator.
pub type SharedMergeOperator = Arc<dyn MergeOperator>;

impl fmt::Debug for dyn MergeOperator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Adds 64-bit little-endian numbers, wrapping around; a missing value is 0.
/// The name is RocksDB's.
#[derive(Clone, Copy, Debug, Default)]
pub struct AddU64;

impl AddU64 {
    fn number(bytes: &[u8]) -> Option<u64> {
        bytes.try_into().ok().map(u64::from_le_bytes)
    }
}

impl MergeOperator for AddU64 {
    fn name(&self) -> &str {
        "UInt64AddOperator"
    }

    fn full_merge(&self, _: &[u8], existing: Option<&[u8]>, operands: &[&[u8]]) -> Option<Vec<u8>> {
        let start = existing.map_or(Some(0), Self::number)?;
        let add = |sum: u64, operand: &&[u8]| Some(sum.wrapping_add(Self::number(operand)?));
        Some(operands.iter().try_fold(start, add)?.to_le_bytes().to_vec())
    }

    fn partial_merge(&self, _: &[u8], older: &[u8], newer: &[u8]) -> Option<Vec<u8>> {
        let sum = Self::number(older)?.wrapping_add(Self::number(newer)?);
        Some(sum.to_le_bytes().to_vec())
    }
}

/// What joins by a comma is called in RocksDB, whose default that is.
const APPEND_NAME: &str = "StringAppendOperator";

/// Appends operands to the value, with a delimiter between. The delimiter is in
/// its name, `StringAppendOperator:0x` and two hexadecimal digits for each byte:
/// with another one, stored operands would become another value. By a comma it
/// is `StringAppendOperator` alone, as in RocksDB.
#[derive(Clone, Debug)]
pub struct Append {
    name: String,
    delimiter: Vec<u8>,
}

impl Append {
    /// An operator that puts `delimiter` between what it appends.
    pub fn with_delimiter(delimiter: &[u8]) -> Append {
        let mut name = APPEND_NAME.to_string();
        if delimiter != b"," {
            name.push_str(":0x");
            delimiter.iter().for_each(|byte| name.push_str(&format!("{byte:02x}")));
        }
        Append { name, delimiter: delimiter.to_vec() }
    }

    /// The one of this name.
    fn named(name: &str) -> Option<Append> {
        if name == APPEND_NAME {
            return Some(Append::with_delimiter(b","));
        }
        let (pairs, rest) =
            name.strip_prefix(APPEND_NAME)?.strip_prefix(":0x")?.as_bytes().as_chunks::<2>();
        let byte = |pair: &[u8; 2]| u8::from_str_radix(str::from_utf8(pair).ok()?, 16).ok();
        let delimiter: Vec<u8> = pairs.iter().map(byte).collect::<Option<_>>()?;
        // Each has one name.
        let found = Append::with_delimiter(&delimiter);
        (rest.is_empty() && found.name == name).then_some(found)
    }
}

impl Default for Append {
    /// Puts nothing between.
    fn default() -> Append {
        Append::with_delimiter(b"")
    }
}

impl MergeOperator for Append {
    fn name(&self) -> &str {
        &self.name
    }

    fn full_merge(&self, _: &[u8], existing: Option<&[u8]>, operands: &[&[u8]]) -> Option<Vec<u8>> {
        let parts: Vec<&[u8]> = existing.into_iter().chain(operands.iter().copied()).collect();
        Some(parts.join(&self.delimiter[..]))
    }

    fn partial_merge(&self, _: &[u8], older: &[u8], newer: &[u8]) -> Option<Vec<u8>> {
        Some([older, newer].join(&self.delimiter[..]))
    }
}

/// The built-in operator of this name, if there is one.
pub(crate) fn built_in(name: &str) -> Option<SharedMergeOperator> {
    match name {
        "UInt64AddOperator" => Some(Arc::new(AddU64)),
        _ => Append::named(name).map(|append| Arc::new(append) as SharedMergeOperator),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Grouping operands first gives the same value as merging them one by one.
    #[test]
    fn built_in_operators_are_associative() {
        let number = |n: u64| n.to_le_bytes().to_vec();
        let cases: [(SharedMergeOperator, Vec<Vec<u8>>); 2] = [
            (Arc::new(AddU64), vec![number(1), number(u64::MAX), number(40)]),
            (Arc::new(Append::with_delimiter(b",")), vec![b"a".into(), b"".into(), b"c".into()]),
        ];
        for (operator, operands) in cases {
            let all: Vec<&[u8]> = operands.iter().map(|o| &o[..]).collect();
            let whole = operator.full_merge(b"k", None, &all);
            let joined = operator.partial_merge(b"k", &operands[1], &operands[2]).unwrap();
            let grouped = operator.full_merge(b"k", None, &[&operands[0], &joined]);
            assert_eq!(whole, grouped, "{}", operator.name());
        }
    }

    /// What is built in is found by its name, which says all that it does.
    #[test]
    fn built_in_operators_are_found_by_their_names() {
        let appends: [(&[u8], &str); 5] = [
            (b",", "StringAppendOperator"),
            (b"", "StringAppendOperator:0x"),
            (b";", "StringAppendOperator:0x3b"),
            (b"\xff\0", "StringAppendOperator:0xff00"),
            (b", ", "StringAppendOperator:0x2c20"),
        ];
        for (delimiter, name) in appends {
            assert_eq!(Append::with_delimiter(delimiter).name(), name);
            let found = built_in(name).unwrap();
            let joined = [&b"a"[..], b"b"].join(delimiter);
            assert_eq!((found.name(), found.partial_merge(b"", b"a", b"b")), (name, Some(joined)));
        }
        assert_eq!(built_in("UInt64AddOperator").unwrap().name(), "UInt64AddOperator");
        for other in [":0x2c", ":0x3B", ":0x3", ":0x+1", ":3b", "0x3b", "s"] {
            assert!(built_in(&format!("StringAppendOperator{other}")).is_none(), "{other}");
        }
    }

    /// An operand of the wrong length is reported, not guessed at.
    #[test]
    fn adding_something_that_is_no_number_gives_nothing() {
        assert_eq!(AddU64.full_merge(b"k", None, &[b"123"]), None);
        assert_eq!(AddU64.full_merge(b"k", Some(b"x"), &[&[0; 8]]), None);
    }
}
