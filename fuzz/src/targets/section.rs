//! A section of a table: a byte for its tag, then its bytes. No checksum is in
//! the way here.

use lodestore::internals::bytes::check_section;

pub fn run(bytes: &[u8]) {
    if let Some((&tag, section)) = bytes.split_first() {
        check_section(tag, section);
    }
}
