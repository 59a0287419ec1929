//! Whether a table may have keys that begin in some way: asked before a cursor
//! looks into it.

use crate::key::{TRAILER_NEWEST, prefix_end};
use crate::prefix::prefix_hash;

use super::directory::Directory;
use super::filter;
use super::partitions::{PartitionIndex, Partitions};
use super::reader::{ReadContext, Table};

impl Table {
    /// False only if no key of the table begins with `start`. A part of the
    /// filter that cannot be read denies nothing: whoever looks into the table
    /// will be told.
    pub(crate) fn may_have_start(&self, start: &[u8], context: &ReadContext) -> bool {
        let Some(prefix) = self.prefix_extractor.prefix_of_all(start) else { return true };
        let hash = prefix_hash(prefix);
        match &self.directory {
            Directory::Resident { filter, .. } => {
                filter.as_ref().is_none_or(|filter| filter.may_contain(hash))
            }
            Directory::Foreign { .. } => true,
            Directory::Partitioned(partitions) => {
                self.may_have_in(partitions, start, hash, context)
            }
        }
    }

    fn may_have_in(
        &self,
        partitions: &Partitions,
        start: &[u8],
        hash: u64,
        context: &ReadContext,
    ) -> bool {
        let find = |key: &[u8]| partitions.find(key, TRAILER_NEWEST, &self.order);
        let Some(first) = find(start) else { return false };
        let end = prefix_end(start).and_then(|end| find(&end));
        let last = end.unwrap_or(partitions.count() - 1);
        // Between the first and the last is nothing but such keys.
        if last > first + 1 {
            return true;
        }
        let passes = |partition: PartitionIndex| {
            let Some(wanted) = partitions.filter_ref(partition) else { return true };
            let part = self.read_block(wanted, context);
            part.map_or(true, |part| filter::may_contain(part.bytes(), hash))
        };
        (first..=last).any(passes)
    }
}
