//! Finding the blocks of a table for a walk: keeps the partition of the index
//! that the walk is in, if the index is partitioned.

use crate::error::Result;
use crate::key::Trailer;

use super::block::Block;
use super::directory::Directory;
use super::layout::Layout;
use super::partitions::{PartitionIndex, Partitions};
use super::reader::{BlockIndex, BlockRef, ReadContext, Table};

/// Where a walk looks blocks up.
#[derive(Debug, Default)]
pub(super) struct Locator {
    partition: Option<(Block, Layout)>,
}

impl Locator {
    /// The first block that can hold an entry not before `(user_key, trailer)`.
    pub(super) fn find(
        &mut self,
        table: &Table,
        user_key: &[u8],
        trailer: Trailer,
        context: &ReadContext,
    ) -> Result<Option<BlockIndex>> {
        let partitions = match &table.directory {
            Directory::Resident { index, .. } | Directory::Foreign { index, .. } => {
                let found = index.find(user_key, trailer, &table.order);
                return Ok(found.map(|block| block as BlockIndex));
            }
            Directory::Partitioned(partitions) => partitions,
        };
        let Some(found) = partitions.find(user_key, trailer, &table.order) else {
            return Ok(None);
        };
        let (block, layout) = self.enter(table, partitions, found, context)?;
        let (entry, _) = layout.find(block.bytes(), user_key, trailer, &table.order);
        let first = partitions.first_block(found);
        Ok((entry < layout.count).then(|| first + entry as BlockIndex))
    }

    /// What to read to have block `block` of the table.
    pub(super) fn locate(
        &mut self,
        table: &Table,
        block: BlockIndex,
        context: &ReadContext,
    ) -> Result<BlockRef> {
        if let Directory::Partitioned(partitions) = &table.directory
            && self.known(table, block).is_none()
        {
            self.enter(table, partitions, partitions.of_block(block), context)?;
        }
        Ok(self.known(table, block).expect("its partition was entered"))
    }

    /// [`Locator::locate`] for a block that can be found without reading.
    pub(super) fn known(&self, table: &Table, block: BlockIndex) -> Option<BlockRef> {
        if block >= table.blocks() {
            return None;
        }
        match &table.directory {
            Directory::Resident { index, .. } | Directory::Foreign { index, .. } => {
                Some(BlockRef::resident(index, block as usize))
            }
            Directory::Partitioned(partitions) => {
                let (partition, layout) = self.partition.as_ref()?;
                let entry = block.checked_sub(partitions.first_block(partition.index()))?;
                let entry = entry as usize;
                (entry < layout.count).then(|| partitions.data_ref(partition, layout, entry))
            }
        }
    }

    fn enter(
        &mut self,
        table: &Table,
        partitions: &Partitions,
        wanted: PartitionIndex,
        context: &ReadContext,
    ) -> Result<&(Block, Layout)> {
        let is_here = self.partition.as_ref().is_some_and(|(here, _)| here.index() == wanted);
        if !is_here {
            let block = table.read_block(partitions.index_ref(wanted), context)?;
            let layout = block.layout();
            self.partition = Some((block, layout));
        }
        Ok(self.partition.as_ref().expect("it was entered"))
    }
}
