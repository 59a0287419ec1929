//! Bytes that the caller keeps for a while.

use crate::failure::released;
use crate::pass::Bytes;

/// `lodestore_value`.
pub enum Held {
    /// A value where it lies: in a block or a memtable, which it keeps.
    InPlace(engine::Value),
    /// A text, with a zero byte behind it.
    Text(Vec<u8>),
}

impl Held {
    pub(crate) fn value(value: engine::Value) -> Box<Held> {
        Box::new(Held::InPlace(value))
    }

    pub(crate) fn text(text: String) -> Box<Held> {
        let mut bytes = text.into_bytes();
        bytes.push(0);
        Box::new(Held::Text(bytes))
    }

    fn bytes(&self) -> &[u8] {
        match self {
            Held::InPlace(value) => value,
            Held::Text(bytes) => &bytes[..bytes.len() - 1],
        }
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn lodestore_value_bytes(value: Option<&Held>) -> Bytes<'_> {
    value.map_or(Bytes::NONE, |value| Bytes::of(value.bytes()))
}

#[unsafe(no_mangle)]
pub extern "C" fn lodestore_value_free(value: Option<Box<Held>>) {
    released(value);
}
