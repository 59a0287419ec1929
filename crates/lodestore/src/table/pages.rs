//! Blocks that fill pages of the file. Whoever reads a block that is stored raw
//! then reads one page, where it would be two as a rule: half of what a device has
//! to give, and of what the page cache has to keep.
//!
//! Pure: says how long the next block may be, and how many zeros go behind it.
//! Only for blocks that are stored raw, since others are no page long, and of many
//! entries, since with few too much would be left over.

use super::codec::TRAILER_BYTES;

/// What devices and the page cache read.
const PAGE_BYTES: u64 = 4096;
/// Blocks are filled up by at most this part of their length.
const FILL_PART: usize = 16;

/// What is known of the blocks so far.
#[derive(Debug)]
pub(super) struct Pages {
    block_bytes: usize,
    /// The next block is expected to be stored raw, and to have many entries.
    is_worth_it: bool,
}

impl Pages {
    /// For blocks of `block_bytes`; `is_raw` if they are stored without a codec.
    pub(super) fn new(block_bytes: usize, is_raw: bool) -> Pages {
        Pages { block_bytes, is_worth_it: is_raw }
    }

    /// Takes in how the last block was stored.
    pub(super) fn note(&mut self, is_raw: bool, bytes: usize, entries: usize) {
        self.is_worth_it = is_raw && bytes / entries.max(1) <= self.block_bytes / FILL_PART;
    }

    /// How long a block at `offset` may be.
    pub(super) fn block_bytes_max(&self, offset: u64) -> usize {
        self.room(offset).unwrap_or(self.block_bytes)
    }

    /// How many zeros go behind a block of `bytes` at `offset`.
    pub(super) fn fill(&self, offset: u64, bytes: usize) -> usize {
        let fill = self.room(offset).and_then(|room| room.checked_sub(bytes));
        fill.filter(|&fill| fill <= self.block_bytes / FILL_PART).unwrap_or(0)
    }

    /// The length with which a block at `offset` ends with a page, if it is about
    /// as long as blocks are to be.
    fn room(&self, offset: u64) -> Option<usize> {
        let end = (offset + self.block_bytes as u64) / PAGE_BYTES * PAGE_BYTES;
        let room = end.checked_sub(offset + TRAILER_BYTES as u64)? as usize;
        (self.is_worth_it && room >= self.block_bytes / 4 * 3).then_some(room)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Where blocks of entries of `entry` bytes come to lie, and what they hold.
    fn places(pages: &mut Pages, mut offset: u64, entry: usize) -> Vec<(u64, usize)> {
        let place = |_| {
            let entries = (pages.block_bytes_max(offset) / entry).max(1);
            let bytes = entries * entry + pages.fill(offset, entries * entry);
            pages.note(true, bytes, entries);
            let here = (offset, entries);
            offset += (bytes + TRAILER_BYTES) as u64;
            here
        };
        (0..100).map(place).collect()
    }

    /// Behind a header, all blocks but the first begin with a page, and have as
    /// many entries as fit.
    #[test]
    fn blocks_begin_with_pages() {
        for (block_bytes, entry) in [(4096, 105), (4096, 250), (16_384, 105), (5000, 100)] {
            let places = places(&mut Pages::new(block_bytes, true), 32, entry);
            let page_bytes = block_bytes / 4096 * 4096;
            for (place, entries) in &places[1..] {
                assert_eq!(place % PAGE_BYTES, 0, "{block_bytes} {entry}");
                assert_eq!(*entries, (page_bytes - TRAILER_BYTES) / entry);
            }
        }
    }

    /// Blocks of large entries and blocks with a codec are left as they are.
    #[test]
    fn what_is_not_worth_it_is_left_alone() {
        for (_, entries) in &places(&mut Pages::new(4096, true), 32, 1000)[1..] {
            assert_eq!(*entries, 4);
        }
        let mut pages = Pages::new(4096, false);
        assert_eq!((pages.block_bytes_max(32), pages.fill(32, 4000)), (4096, 0));
        pages.note(true, 4090, 40);
        assert_eq!((pages.block_bytes_max(32), pages.fill(32, 4000)), (4059, 59));
        assert_eq!(pages.fill(32, 3500), 0, "too much would be left over");
        pages.note(false, 4090, 40);
        assert_eq!((pages.block_bytes_max(32), pages.fill(32, 4000)), (4096, 0));
    }
}
