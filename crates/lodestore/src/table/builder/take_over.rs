//! Blocks of one entry from another table, written as they were stored there:
//! a large value is not compressed anew each time that it moves down.

use crate::cursor::StoredBlock;
use crate::error::Result;
use crate::key::Trailer;

use super::TableBuilder;
use crate::table::codec::Sealed;

impl TableBuilder {
    /// A value of so many bytes has a block of its own.
    #[inline]
    pub(crate) fn block_bytes(&self) -> usize {
        self.settings.block_bytes
    }

    /// True if the table may have blocks that are stored like this one.
    pub(crate) fn may_take_over(&self, stored: &StoredBlock<'_>) -> bool {
        stored.table_codec == self.compressor.type_byte()
    }

    /// Adds an entry, which must come after all others, in the block that
    /// holds it and nothing else. After an error the file is lost, as with
    /// [`TableBuilder::add`].
    pub(crate) fn take_over(
        &mut self,
        user_key: &[u8],
        trailer: Trailer,
        value_bytes: usize,
        stored: StoredBlock<'_>,
    ) -> Result<()> {
        let key_is_last = self.admit(user_key, trailer, value_bytes)?;
        debug_assert!(self.block.is_empty() && self.samples.is_none());
        let offset = self.out.offset();
        let sealed = Sealed::again(stored, self.id, offset);
        self.witness.add(sealed.checksum);
        self.out.put(&sealed)?;
        self.taken_over = Some((offset, self.out.offset()));
        // For what follows it is a block of this key; its value is written.
        self.block.add(user_key, trailer, &[], key_is_last);
        Ok(())
    }
}
