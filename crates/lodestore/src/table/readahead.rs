//! Readahead: walking a table reads stored blocks in spans that double from
//! 8 KiB to 256 KiB, so that a long scan makes few system calls and a short
//! one reads little that it does not need. Past the page cache, whose kernel would
//! read ahead of us, a long walk begins to read its next span before it needs it.

use crate::budget::Reservation;
use crate::error::Result;
use crate::fs::BegunRead;
use crate::stats::Counter;

use super::format;
use super::locator::Locator;
use super::reader::{BlockPlace, BlockRef, ReadContext, Table};

const SPAN_BYTES_MIN: u64 = 8 << 10;
const SPAN_BYTES_MAX: u64 = 256 << 10;
/// Single blocks that a walk reads before spans begin, where they may be in the page
/// cache: most walks end before. A device takes as long for a short span as for a block.
const BLOCKS_BEFORE_SPANS: u32 = 1;

/// Where a walk goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Direction {
    Forward,
    Backward,
}

/// A buffer of neighbouring stored blocks.
#[derive(Debug, Default)]
pub(super) struct Readahead {
    /// As long as the largest span so far; `filled` bytes of it count.
    buffer: Vec<u8>,
    filled: usize,
    /// Where in the file the buffer's bytes are.
    offset: u64,
    /// Steps to a neighbouring block so far, in one direction.
    steps: u32,
    /// How much is read next, at least one block; 0 before the first span of a walk.
    span_bytes: u64,
    /// The next span of a long walk, where the file reads while we do not wait.
    next: Option<Next>,
    memory: Option<Reservation>,
}

/// A read that was begun.
#[derive(Debug)]
struct Next {
    offset: u64,
    length: usize,
    read: Box<dyn BegunRead>,
}

impl Readahead {
    /// Forgets that there was a walk; a seek does that.
    pub(super) fn restart(&mut self) {
        (self.steps, self.span_bytes) = (0, 0);
    }

    /// Counts a step to a neighbouring block, and gives the block's stored
    /// bytes; `None` if the walk is too young for spans, and the block is to
    /// be read alone.
    pub(super) fn step(
        &mut self,
        table: &Table,
        locator: &Locator,
        wanted: BlockRef,
        direction: Direction,
        context: &ReadContext,
    ) -> Result<Option<&[u8]>> {
        self.steps = self.steps.saturating_add(1);
        if self.steps <= BLOCKS_BEFORE_SPANS && !context.waits_for_device {
            return Ok(None);
        }
        self.take(table, locator, wanted, direction, context).map(Some)
    }

    /// The block's stored bytes, and those of its neighbours read ahead.
    pub(super) fn take(
        &mut self,
        table: &Table,
        locator: &Locator,
        wanted: BlockRef,
        direction: Direction,
        context: &ReadContext,
    ) -> Result<&[u8]> {
        let place = wanted.place;
        if !self.holds(place) {
            self.fill(table, locator, wanted, direction, context)?;
        }
        Ok(self.bytes(place))
    }

    /// The stored bytes of a block, if they are still there.
    pub(super) fn held(&self, place: BlockPlace) -> Option<&[u8]> {
        self.holds(place).then(|| self.bytes(place))
    }

    fn bytes(&self, place: BlockPlace) -> &[u8] {
        let start = (place.offset - self.offset) as usize;
        &self.buffer[start..start + place.stored_bytes]
    }

    fn holds(&self, place: BlockPlace) -> bool {
        let end = self.offset + self.filled as u64;
        self.offset <= place.offset && place.offset + place.stored_bytes as u64 <= end
    }

    /// Reads whole blocks from `wanted` on, as many as the span has room for.
    fn fill(
        &mut self,
        table: &Table,
        locator: &Locator,
        wanted: BlockRef,
        direction: Direction,
        context: &ReadContext,
    ) -> Result<()> {
        let span_bytes = self.span_bytes.max(SPAN_BYTES_MIN);
        let (first, end) = span(table, locator, wanted, direction, span_bytes);
        let length = (end - first) as usize;
        if self.buffer.len() < length {
            self.buffer.resize(length, 0);
        }
        self.filled = 0;
        if !self.take_next(first, length) {
            format::read_at(&*table.file, first, &mut self.buffer[..length], &table.path)?;
        }
        (self.offset, self.filled) = (first, length);
        context.statistics.add(Counter::BlockReads, 1);
        context.statistics.add(Counter::BlockBytesRead, end - first);
        let span_bytes_max = context.buffers.buffer_bytes(SPAN_BYTES_MAX as usize) as u64;
        if direction == Direction::Forward && span_bytes == span_bytes_max {
            self.begin_next(table, end);
        }
        self.span_bytes = (span_bytes * 2).clamp(SPAN_BYTES_MIN, span_bytes_max);
        let ahead = self.next.as_ref().map_or(0, |next| next.length);
        let memory = self.memory.get_or_insert_with(|| context.buffers.reserve(0));
        memory.resize(self.buffer.capacity() + ahead);
        Ok(())
    }

    /// Takes `length` bytes at `offset` out of what was begun to be read. False if
    /// it is not that, or could not be read: then they are read once more.
    fn take_next(&mut self, offset: u64, length: usize) -> bool {
        let next = self.next.take().filter(|next| next.offset == offset && next.length >= length);
        let buffer = &mut self.buffer[..length];
        next.is_some_and(|next| next.read.finish(buffer).is_ok_and(|count| count == length))
    }

    /// Begins to read what follows the blocks that end at `offset`, up to where
    /// blocks of entries end.
    fn begin_next(&mut self, table: &Table, offset: u64) {
        let left = table.directory.data_end().saturating_sub(offset);
        let length = left.min(self.span_bytes) as usize;
        if length > 0 {
            let read = table.file.begin_read(offset, length);
            self.next = read.map(|read| Next { offset, length, read });
        }
    }
}

/// The bytes from start to end of the blocks around `wanted` that fit into
/// `bytes` and that `locator` knows; always `wanted` itself.
fn span(
    table: &Table,
    locator: &Locator,
    wanted: BlockRef,
    direction: Direction,
    bytes: u64,
) -> (u64, u64) {
    let ends = |block: BlockRef| (block.place.offset, block.place.offset + length(block));
    let ((mut first, mut end), mut index) = (ends(wanted), wanted.index);
    loop {
        let next = match direction {
            Direction::Forward => index.checked_add(1),
            Direction::Backward => index.checked_sub(1),
        };
        let Some(next) = next.and_then(|next| locator.known(table, next)) else { break };
        let (start, stop) = ends(next);
        if end.max(stop) - first.min(start) > bytes {
            break;
        }
        (first, end, index) = (first.min(start), end.max(stop), next.index);
    }
    (first, end)
}

fn length(block: BlockRef) -> u64 {
    block.place.stored_bytes as u64
}
