//! Tagged fields: what an edit and its parts are made of.
//!
//! | part | bytes | meaning |
//! |---|---|---|
//! | tag | varint | number of the field times two, plus one if it must be understood |
//! | length | varint | bytes of the body |
//! | body | length | depends on the tag |
//!
//! A program that meets an unknown tag skips the field if the lowest bit is
//! clear, and refuses the file as `Incompatible` if it is set. Skipped fields of
//! what lasts, of families and tables, are written again with it.

use crate::coding::{Reader, put_slice, put_varint, varint_bytes};
use crate::error::Undecodable;

/// An [`Undecodable::Corrupt`].
pub(crate) fn corrupt(what: impl Into<String>) -> Undecodable {
    Undecodable::Corrupt(what.into())
}

/// A tag that may be skipped by who does not know it.
pub(crate) const fn optional(number: u64) -> u64 {
    number << 1
}

/// A tag that must be understood.
pub(crate) const fn required(number: u64) -> u64 {
    number << 1 | 1
}

/// Appends a field whose body is `body`.
pub(crate) fn put_bytes(out: &mut Vec<u8>, tag: u64, body: &[u8]) {
    put_varint(out, tag);
    put_slice(out, body);
}

/// Appends a field whose body is `value` as a varint.
pub(crate) fn put_number(out: &mut Vec<u8>, tag: u64, value: u64) {
    put_varint(out, tag);
    put_varint(out, varint_bytes(value) as u64);
    put_varint(out, value);
}

/// The tags and bodies in `bytes`, in order.
pub(crate) struct Fields<'a> {
    reader: Reader<'a>,
}

impl<'a> Fields<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Fields<'a> {
        Fields { reader: Reader::new(bytes) }
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = Result<(u64, &'a [u8]), Undecodable>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.reader.is_empty() {
            return None;
        }
        let field = self.reader.varint().zip(self.reader.slice());
        if field.is_none() {
            self.reader = Reader::new(&[]);
        }
        Some(field.ok_or_else(|| corrupt("a field ends early")))
    }
}

/// What to do about a tag that is not known: skip it or refuse the file.
pub(crate) fn skip_unknown(tag: u64, within: &str) -> Result<(), Undecodable> {
    if tag & 1 == 0 {
        return Ok(());
    }
    let number = tag >> 1;
    Err(Undecodable::Unknown(format!("field {number} of {within} is not known to this build")))
}

/// Keeps a field whose tag is not known, to be written again, or refuses the file.
pub(crate) fn keep_unknown(
    tag: u64,
    body: &[u8],
    within: &str,
    kept: &mut Vec<u8>,
) -> Result<(), Undecodable> {
    skip_unknown(tag, within)?;
    put_bytes(kept, tag, body);
    Ok(())
}

/// The varint that a body consists of.
pub(crate) fn number(body: &[u8], what: &str) -> Result<u64, Undecodable> {
    let mut reader = Reader::new(body);
    let value = reader.varint().filter(|_| reader.is_empty());
    value.ok_or_else(|| corrupt(format!("{what} is no number")))
}

/// The text that a body consists of.
pub(crate) fn text(body: &[u8], what: &str) -> Result<String, Undecodable> {
    let text = std::str::from_utf8(body).map_err(|_| corrupt(format!("{what} is no UTF-8")))?;
    Ok(text.to_string())
}

/// Stores the value of a field that may be given once.
pub(crate) fn set_once<T>(slot: &mut Option<T>, value: T, what: &str) -> Result<(), Undecodable> {
    match slot.replace(value) {
        None => Ok(()),
        Some(_) => Err(corrupt(format!("{what} is given twice"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An older program goes on after a field that it may skip, and stops at
    /// one that it must understand.
    #[test]
    fn unknown_fields_are_skipped_or_refused_by_their_lowest_bit() {
        assert_eq!(skip_unknown(optional(77), "a test"), Ok(()));
        let refused = skip_unknown(required(77), "a test").unwrap_err();
        assert!(matches!(refused, Undecodable::Unknown(what) if what.contains("77")));
    }

    /// A field that promises more bytes than there are is corrupt, once.
    #[test]
    fn a_field_that_ends_early_is_corrupt() {
        let mut bytes = Vec::new();
        put_number(&mut bytes, required(1), 300);
        put_bytes(&mut bytes, optional(2), b"abc");
        assert_eq!(Fields::new(&bytes).filter(|f| f.is_ok()).count(), 2);
        let cut: Vec<_> = Fields::new(&bytes[..bytes.len() - 1]).collect();
        assert_eq!(cut.len(), 2);
        assert!(cut[1].is_err());
    }
}
