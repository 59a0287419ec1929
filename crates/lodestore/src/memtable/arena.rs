//! The arena: memory that is given out piece by piece and freed all at once.
//!
//! Blocks grow with what was taken before, so that a small memtable stays
//! small and a large one asks the allocator rarely. A piece larger than a
//! quarter of the largest block gets a block of its own.

use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};

use crate::sync::atomic::{AtomicUsize, Ordering};

const BLOCK_BYTES_MIN: usize = 8 << 10;
const BLOCK_BYTES_MAX: usize = 1 << 20;
const BLOCK_ALIGN: usize = 64;

/// Memory for one writer to take from; see the module.
pub(super) struct Arena {
    next: *mut u8,
    left: usize,
    blocks: Vec<(*mut u8, Layout)>,
}

impl Arena {
    pub(super) fn new() -> Arena {
        Arena {
            next: std::ptr::null_mut(),
            left: 0,
            blocks: Vec::new(),
        }
    }

    /// Uninitialised memory that lives as long as the arena. `total` counts
    /// what was taken from the allocator.
    pub(super) fn alloc(&mut self, bytes: usize, align: usize, total: &AtomicUsize) -> *mut u8 {
        debug_assert!(align <= BLOCK_ALIGN);
        let pad = (self.next as usize).wrapping_neg() & (align - 1);
        if bytes + pad <= self.left {
            let piece = self.next.wrapping_add(pad);
            self.next = piece.wrapping_add(bytes);
            self.left -= bytes + pad;
            return piece;
        }
        let before = total.load(Ordering::Relaxed);
        if bytes > BLOCK_BYTES_MAX / 4 {
            return self.block(bytes, total);
        }
        let size = (before / 8)
            .clamp(BLOCK_BYTES_MIN, BLOCK_BYTES_MAX)
            .next_power_of_two();
        let size = size.max(bytes);
        let block = self.block(size, total);
        self.next = block.wrapping_add(bytes);
        self.left = size - bytes;
        block
    }

    fn block(&mut self, bytes: usize, total: &AtomicUsize) -> *mut u8 {
        let layout =
            Layout::from_size_align(bytes, BLOCK_ALIGN).expect("a block fits the address space");
        // SAFETY: the layout is not empty: every piece has a header.
        let block = unsafe { alloc(layout) };
        if block.is_null() {
            handle_alloc_error(layout);
        }
        self.blocks.push((block, layout));
        total.fetch_add(bytes, Ordering::Relaxed);
        block
    }
}

impl Drop for Arena {
    fn drop(&mut self) {
        for &(block, layout) in &self.blocks {
            // SAFETY: the block came from `alloc` with this layout.
            unsafe { dealloc(block, layout) };
        }
    }
}
