//! The one shape of a cursor over entries, whatever it walks over: a memtable,
//! a block, a table, a level, a merge of them.

use crate::error::Result;
use crate::key::Trailer;

/// A position in a sorted sequence of entries (user key ascending, trailer
/// descending), or no position.
///
/// A new cursor has no position. Walking past either end, or an error, leaves
/// none; [`Cursor::status`] tells which. `next`, `prev` and the three
/// accessors may be called only while [`Cursor::valid`].
pub(crate) trait Cursor {
    /// True while there is an entry here.
    fn valid(&self) -> bool;

    /// Goes to the first entry.
    fn seek_to_first(&mut self);

    /// Goes to the last entry.
    fn seek_to_last(&mut self);

    /// Goes to the first entry that is not before `(user_key, trailer)`.
    fn seek(&mut self, user_key: &[u8], trailer: Trailer);

    /// Goes to the last entry that is not after `(user_key, trailer)`.
    fn seek_for_prev(&mut self, user_key: &[u8], trailer: Trailer);

    /// Goes to the entry after this one.
    fn next(&mut self);

    /// Goes to the entry before this one.
    fn prev(&mut self);

    /// The user key here.
    fn user_key(&self) -> &[u8];

    /// Sequence number and kind here.
    fn trailer(&self) -> Trailer;

    /// The value here.
    fn value(&self) -> &[u8];

    /// The block that the entry here is alone in, as its table stores it, if
    /// the cursor has that at hand and another table may take it over.
    fn stored(&self) -> Option<StoredBlock<'_>> {
        None
    }

    /// The error that took the position away, if one did.
    fn status(&self) -> Result<()>;
}

/// A block whose checksum was right, as a table stores it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StoredBlock<'a> {
    /// Everything but type byte and checksum.
    pub(crate) payload: &'a [u8],
    pub(crate) type_byte: u8,
    /// The type byte of those blocks of its table that shrink enough.
    pub(crate) table_codec: u8,
    /// Of payload and type byte.
    pub(crate) crc32c: u32,
}
