//! Walking one table, both ways.
//!
//! Within a block a step computes positions from the entry's number; the user
//! key is put together in a buffer that keeps the block's prefix, the value
//! is a slice of the block. Nothing is validated here: the block was.

use std::io;

use crate::cursor::{Cursor, StoredBlock};
use crate::error::{Error, Result};
use crate::fs::ReadRequest;
use crate::key::Trailer;
use crate::sync::Arc;

use super::block::Block;
use super::layout::{HEAD_BYTES_MAX, Layout};
use super::locator::Locator;
use super::readahead::{Direction, Readahead};
use super::reader::{BlockIndex, BlockPlace, BlockRef, ReadContext, Table};

/// A cursor over the entries of a table.
pub(crate) struct TableCursor {
    table: Arc<Table>,
    context: ReadContext,
    locator: Locator,
    /// The block of the position; `None` if there is no position.
    block: Option<Block>,
    layout: Layout,
    /// Where in the file the block is, if it was read ahead.
    read_ahead: Option<BlockPlace>,
    /// For the seek that comes next.
    foreseen: Option<Foreseen>,
    entry: usize,
    /// The user key here, and bytes of no meaning behind it.
    key: Vec<u8>,
    key_bytes: usize,
    readahead: Readahead,
    error: Option<Error>,
}

/// A block that a seek will want.
struct Foreseen {
    wanted: BlockRef,
    /// Once it was read.
    block: Option<Block>,
}

impl TableCursor {
    pub(super) fn new(table: Arc<Table>, context: ReadContext) -> TableCursor {
        TableCursor {
            table,
            context,
            locator: Locator::default(),
            block: None,
            layout: Layout::default(),
            read_ahead: None,
            foreseen: None,
            entry: 0,
            key: Vec::new(),
            key_bytes: 0,
            readahead: Readahead::default(),
            error: None,
        }
    }

    /// The block that [`Cursor::value`] points into: keeping a clone of it
    /// keeps the value.
    pub(crate) fn block(&self) -> &Block {
        self.block.as_ref().expect("the cursor has a position")
    }

    /// What a seek to the target will have to read, unless that is here or in the
    /// cache. What it gives goes to [`TableCursor::supply`], and then comes the seek.
    ///
    /// Failures are left to the seek, which meets them again.
    pub(crate) fn foresee(&mut self, user_key: &[u8], trailer: Trailer) -> Option<ReadRequest> {
        let (table, context) = (&self.table, &self.context);
        let index = self.locator.find(table, user_key, trailer, context).ok()??;
        if self.block.as_ref().is_some_and(|block| block.index() == index) {
            return None;
        }
        let wanted = self.locator.locate(table, index, context).ok()?;
        let block = table.cached_block(wanted, context);
        let request = block.is_none().then(|| table.request(wanted));
        self.foreseen = Some(Foreseen { wanted, block });
        request
    }

    /// Takes what was read as [`TableCursor::foresee`] asked.
    pub(crate) fn supply(&mut self, read: io::Result<&[u8]>) {
        if let Some(Foreseen { wanted, block }) = &mut self.foreseen {
            *block = self.table.accept(*wanted, read, &self.context).ok();
        }
    }

    fn lose_position(&mut self) {
        self.block = None;
    }

    /// Goes to a block, wherever it is; false if it can't be read.
    fn jump_to_block(&mut self, index: BlockIndex) -> bool {
        self.readahead.restart();
        self.read_ahead = None;
        let foreseen = self.foreseen.take();
        if self.block.as_ref().is_some_and(|block| block.index() == index) {
            return true;
        }
        let block = match foreseen.filter(|foreseen| foreseen.wanted.index == index) {
            Some(Foreseen { block: Some(block), .. }) => Ok(block),
            Some(Foreseen { wanted, block: None }) => self.table.load_block(wanted, &self.context),
            None => self.read(index),
        };
        self.enter_block(block)
    }

    fn read(&mut self, index: BlockIndex) -> Result<Block> {
        let wanted = self.locator.locate(&self.table, index, &self.context)?;
        self.table.read_block(wanted, &self.context)
    }

    /// Goes to a neighbouring block, reading ahead.
    fn step_to_block(&mut self, index: BlockIndex, direction: Direction) -> bool {
        let block = self.neighbour(index, direction);
        self.enter_block(block)
    }

    fn neighbour(&mut self, index: BlockIndex, direction: Direction) -> Result<Block> {
        let (table, context) = (&self.table, &self.context);
        let wanted = self.locator.locate(table, index, context)?;
        self.read_ahead = None;
        if let Some(block) = table.cached_block(wanted, context) {
            return Ok(block);
        }
        match self.readahead.step(table, &self.locator, wanted, direction, context)? {
            None => table.read_block(wanted, context),
            Some(stored) => {
                let block = table.decode_block(wanted, stored)?;
                self.read_ahead = Some(wanted.place);
                table.keep_block(wanted, &block, context);
                Ok(block)
            }
        }
    }

    fn enter_block(&mut self, block: Result<Block>) -> bool {
        match block {
            Ok(block) => {
                self.layout = block.layout();
                let prefix = self.layout.prefix(block.bytes());
                let room = prefix.len() + HEAD_BYTES_MAX;
                if self.key.len() < room {
                    self.key.resize(room, 0);
                }
                self.key[..prefix.len()].copy_from_slice(prefix);
                self.block = Some(block);
                true
            }
            Err(error) => {
                self.error = Some(error);
                self.lose_position();
                false
            }
        }
    }

    /// Puts the user key of entry `entry` together.
    #[inline]
    fn set_entry(&mut self, entry: usize) {
        let block = self.block.as_ref().expect("an entry is set in a block");
        let bytes = &block.bytes()[..];
        let layout = &self.layout;
        self.entry = entry;
        let prefix_bytes = layout.prefix_bytes;
        let suffix = layout.suffix(bytes, entry);
        self.key_bytes = prefix_bytes + layout.head_length(bytes, entry) + suffix.len();
        let head = layout.head_and_more(bytes, entry);
        self.key[prefix_bytes..prefix_bytes + HEAD_BYTES_MAX].copy_from_slice(&head);
        if !suffix.is_empty() {
            let start = prefix_bytes + layout.head_bytes;
            if self.key.len() < start + suffix.len() {
                self.key.resize(start + suffix.len() + HEAD_BYTES_MAX, 0);
            }
            self.key[start..start + suffix.len()].copy_from_slice(suffix);
        }
    }

    /// Goes to the first entry of the block after this one.
    #[cold]
    fn next_block(&mut self) {
        let next = self.block().index() + 1;
        if next >= self.table.blocks() {
            self.lose_position();
        } else if self.step_to_block(next, Direction::Forward) {
            self.set_entry(0);
        }
    }

    /// Goes to the last entry of the block before this one.
    #[cold]
    fn previous_block(&mut self) {
        let Some(previous) = self.block().index().checked_sub(1) else {
            self.lose_position();
            return;
        };
        if self.step_to_block(previous, Direction::Backward) {
            self.set_entry(self.layout.count - 1);
        }
    }

    /// The block that may hold the first entry not before the target; `None`
    /// with the error kept if that can't be read.
    fn find_block(&mut self, user_key: &[u8], trailer: Trailer) -> Option<Option<BlockIndex>> {
        match self.locator.find(&self.table, user_key, trailer, &self.context) {
            Ok(found) => Some(found),
            Err(error) => {
                self.error = Some(error);
                self.lose_position();
                None
            }
        }
    }

    /// The entry of the block here that is the first not before the target,
    /// and whether it is a version of the same key.
    fn find(&self, user_key: &[u8], trailer: Trailer) -> (usize, bool) {
        self.layout.find(self.block().bytes(), user_key, trailer, &self.table.order)
    }
}

impl Cursor for TableCursor {
    #[inline]
    fn valid(&self) -> bool {
        self.block.is_some()
    }

    fn seek_to_first(&mut self) {
        self.error = None;
        if self.table.blocks() == 0 {
            self.lose_position();
        } else if self.jump_to_block(0) {
            self.set_entry(0);
        }
    }

    fn seek_to_last(&mut self) {
        self.error = None;
        let Some(last) = self.table.blocks().checked_sub(1) else {
            self.lose_position();
            return;
        };
        if self.jump_to_block(last) {
            self.set_entry(self.layout.count - 1);
        }
    }

    fn seek(&mut self, user_key: &[u8], trailer: Trailer) {
        self.error = None;
        let Some(found) = self.find_block(user_key, trailer) else { return };
        let Some(index) = found else {
            self.lose_position();
            return;
        };
        if !self.jump_to_block(index) {
            return;
        }
        let (entry, _) = self.find(user_key, trailer);
        if entry < self.layout.count {
            self.set_entry(entry);
        } else {
            self.next_block();
        }
    }

    fn seek_for_prev(&mut self, user_key: &[u8], trailer: Trailer) {
        self.error = None;
        let Some(found) = self.find_block(user_key, trailer) else { return };
        let Some(index) = found else {
            self.seek_to_last();
            return;
        };
        if !self.jump_to_block(index) {
            return;
        }
        let (entry, same_key) = self.find(user_key, trailer);
        let is_here = same_key && self.layout.trailer(self.block().bytes(), entry) == trailer;
        if is_here {
            self.set_entry(entry);
        } else if entry > 0 {
            self.set_entry(entry - 1);
        } else {
            self.previous_block();
        }
    }

    #[inline]
    fn next(&mut self) {
        debug_assert!(self.valid());
        if self.entry + 1 < self.layout.count {
            self.set_entry(self.entry + 1);
        } else {
            self.next_block();
        }
    }

    #[inline]
    fn prev(&mut self) {
        debug_assert!(self.valid());
        if self.entry > 0 {
            self.set_entry(self.entry - 1);
        } else {
            self.previous_block();
        }
    }

    #[inline]
    fn user_key(&self) -> &[u8] {
        &self.key[..self.key_bytes]
    }

    #[inline]
    fn trailer(&self) -> Trailer {
        self.layout.trailer(self.block().bytes(), self.entry)
    }

    #[inline]
    fn value(&self) -> &[u8] {
        self.layout.value(self.block().bytes(), self.entry)
    }

    fn stored(&self) -> Option<StoredBlock<'_>> {
        let place = self.read_ahead.filter(|_| self.layout.count == 1)?;
        self.table.portable(self.readahead.held(place)?, place)
    }

    fn status(&self) -> Result<()> {
        match &self.error {
            None => Ok(()),
            Some(error) => Err(error.clone()),
        }
    }
}
