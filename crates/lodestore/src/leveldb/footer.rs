//! The end of a table, and places within it.

use crate::coding::{Reader, put_varint};

use super::Checked;

/// Length of a table's footer.
pub const FOOTER_BYTES: usize = 48;
const MAGIC: u64 = 0xdb47_7524_8b80_fb57;
/// Type byte and checksum behind each stored block.
pub(crate) const BLOCK_TRAILER_BYTES: u64 = 5;

/// Where a stored block is; its type and checksum follow it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Handle {
    pub(crate) offset: u64,
    pub(crate) bytes: u64,
}

impl Handle {
    /// Reads a handle from the front of what `reader` has left.
    pub(crate) fn read(reader: &mut Reader<'_>) -> Option<Handle> {
        Some(Handle { offset: reader.varint()?, bytes: reader.varint()? })
    }

    pub(crate) fn put(&self, out: &mut Vec<u8>) {
        put_varint(out, self.offset);
        put_varint(out, self.bytes);
    }

    /// The handle that `value` begins with, of a block that lies before `end`.
    pub(crate) fn decode(value: &[u8], end: u64) -> Checked<Handle> {
        let handle = Handle::read(&mut Reader::new(value)).ok_or("a malformed handle")?;
        handle.end().filter(|&own| own <= end).ok_or("a block that lies outside its file")?;
        Ok(handle)
    }

    /// Where the block ends, its checksum included.
    pub(crate) fn end(&self) -> Option<u64> {
        self.offset.checked_add(self.bytes)?.checked_add(BLOCK_TRAILER_BYTES)
    }
}

/// What a table's last bytes say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Footer {
    pub(crate) meta_index: Handle,
    pub(crate) index: Handle,
}

/// True if `last` are the last bytes of a LevelDB table.
pub(crate) fn is_magic(last: [u8; 8]) -> bool {
    u64::from_le_bytes(last) == MAGIC
}

impl Footer {
    /// Decodes the last bytes of a table of `file_bytes`.
    pub(crate) fn decode(bytes: &[u8; FOOTER_BYTES], file_bytes: u64) -> Checked<Footer> {
        let (handles, magic) = bytes.split_last_chunk::<8>().expect("a footer is longer");
        if !is_magic(*magic) {
            return Err("not a LevelDB table: the magic number at its end is another one");
        }
        let end = file_bytes.saturating_sub(FOOTER_BYTES as u64);
        let mut reader = Reader::new(handles);
        let mut next = || {
            let handle = Handle::read(&mut reader).ok_or("a malformed footer")?;
            let is_inside = handle.end().is_some_and(|own| own <= end);
            is_inside.then_some(handle).ok_or("a footer that points outside its file")
        };
        Ok(Footer { meta_index: next()?, index: next()? })
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(FOOTER_BYTES);
        self.meta_index.put(&mut bytes);
        self.index.put(&mut bytes);
        bytes.resize(FOOTER_BYTES - 8, 0);
        bytes.extend_from_slice(&MAGIC.to_le_bytes());
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn footer([offset, bytes, index_offset, index_bytes]: [u64; 4]) -> [u8; FOOTER_BYTES] {
        let meta_index = Handle { offset, bytes };
        let index = Handle { offset: index_offset, bytes: index_bytes };
        Footer { meta_index, index }.encode().try_into().unwrap()
    }

    #[test]
    fn a_footer_says_where_both_indexes_are() {
        let found = Footer::decode(&footer([100, 8, 113, 30]), 1000).unwrap();
        assert_eq!(found.meta_index, Handle { offset: 100, bytes: 8 });
        assert_eq!(found.index, Handle { offset: 113, bytes: 30 });
    }

    #[test]
    fn a_footer_of_something_else_is_refused() {
        let mut other = footer([100, 8, 113, 30]);
        other[47] ^= 1;
        assert!(Footer::decode(&other, 1000).is_err());
        assert!(Footer::decode(&footer([100, 8, 113, 900]), 1000).is_err());
        assert!(Footer::decode(&footer([u64::MAX, 8, 113, 30]), 1000).is_err());
        assert!(Footer::decode(&footer([0, u64::MAX - 4, 113, 30]), 1000).is_err());
    }
}
