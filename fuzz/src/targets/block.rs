//! A stored block: a byte for its codec, then what is compressed, or the block
//! itself. No checksum is in the way here.

use lodestore::internals::bytes::check_block;

pub fn run(bytes: &[u8]) {
    if let Some((&codec, payload)) = bytes.split_first() {
        check_block(codec, payload);
    }
}
