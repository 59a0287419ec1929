//! Snappy's block format (google/snappy, format_description.txt).
//!
//! A block is the length of its content as a varint, and then elements, which each add
//! to the content:
//!
//! | two low bits of the tag | adds |
//! |---|---|
//! | 0 | a literal: as many bytes of the block as the other six bits say and one more; 60 stands for a length in the next byte, 61 in the next two, and so on |
//! | 1 | a copy of 4 to 11 bytes (three bits) from up to 2,047 back (the other three, and a byte) |
//! | 2 | a copy of 1 to 64 bytes (six bits) from up to 65,535 back (two bytes) |
//! | 3 | the same from farther back (four bytes); only read here |

mod decoder;
mod encoder;

pub(crate) use decoder::{content_bytes, decode};
pub(crate) use encoder::{Encoder, encoded_bytes_max};

const LITERAL: u8 = 0;
const COPY_1: u8 = 1;
const COPY_2: u8 = 2;
const COPY_4: u8 = 3;

/// Longer literals have their length behind the tag.
const LITERAL_BYTES_IN_TAG: usize = 60;
