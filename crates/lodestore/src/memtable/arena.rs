//! The arena: memory that is given out piece by piece and freed all at once.
//!
//! A piece is known by a 32-bit reference, half as large as a pointer: the
//! upper bits choose a block, the lower bits count units from its start.
//! Blocks grow with what was taken before, so that a small memtable stays
//! small and a large one asks the allocator rarely.
//!
//! Invariants: one thread takes; a block never moves; whoever holds a
//! reference got it through an acquire load that pairs with a release store
//! made after the piece was written, so the table of blocks and the piece are
//! plain memory.

use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::cell::UnsafeCell;
use std::ptr::{self, NonNull};

use crate::budget::{Charge, Item, Reservation};
use crate::prefetch::prefetch_next;
use crate::sync::atomic::{AtomicUsize, Ordering};

use super::pages::{self, PAGE_BYTES};

const BLOCK_BYTES_MIN: usize = 8 << 10;
/// A block of this size is a huge page: entries lie far apart, so that with
/// small pages a lookup waits for address translations too.
const BLOCK_BYTES_MAX: usize = PAGE_BYTES;
const BLOCK_ALIGN: usize = 64;
/// A piece of at most this part of a huge page shares one with others, so that
/// less than this part of it is left over.
const SHARE: usize = 8;

/// Pieces of whole units of `UNIT` bytes, `1 << SLOT_BITS` in a block at most.
pub(super) struct Arena<const UNIT: usize, const SLOT_BITS: u32> {
    /// The start of each block. A raw pointer, because readers look up blocks
    /// while the writer adds others.
    table: *mut *mut u8,
    filling: UnsafeCell<Filling>,
    bytes: AtomicUsize,
}

/// What only the writer needs.
struct Filling {
    /// Units given out of the last block, and units in it.
    used: usize,
    capacity: usize,
    blocks: Vec<Layout>,
    /// Blocks outside of the table, for pieces without a reference.
    outside: Vec<(*mut u8, Layout)>,
    /// What is left of the last of these that is shared: its start and bytes.
    left_outside: (*mut u8, usize),
    memory: Reservation,
}

// SAFETY: `filling` is touched only by the one thread that takes (see `take`);
// table and blocks are read as the module's invariants say.
unsafe impl<const UNIT: usize, const SLOT_BITS: u32> Send for Arena<UNIT, SLOT_BITS> {}
// SAFETY: as above.
unsafe impl<const UNIT: usize, const SLOT_BITS: u32> Sync for Arena<UNIT, SLOT_BITS> {}

impl<const UNIT: usize, const SLOT_BITS: u32> Arena<UNIT, SLOT_BITS> {
    const BLOCKS_MAX: usize = {
        let addressable = 1 << (32 - SLOT_BITS);
        if addressable < 8192 { addressable } else { 8192 }
    };

    /// An empty arena, whose memory is charged to `memory`.
    pub(super) fn new(memory: &Charge) -> Self {
        let table = vec![ptr::null_mut::<u8>(); Self::BLOCKS_MAX].into_boxed_slice();
        let filling = Filling {
            used: 0,
            capacity: 0,
            blocks: Vec::new(),
            outside: Vec::new(),
            left_outside: (ptr::null_mut(), 0),
            memory: memory.reserve(0),
        };
        Arena {
            table: Box::into_raw(table).cast(),
            filling: UnsafeCell::new(filling),
            bytes: AtomicUsize::new(0),
        }
    }

    /// Bytes taken from the allocator.
    #[inline]
    pub(super) fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    /// The piece that `reference` names.
    ///
    /// # Safety
    /// `reference` came from this arena's `take`, and was received as the
    /// module's invariants say.
    #[inline]
    pub(super) unsafe fn at(&self, reference: u32) -> *mut u8 {
        let slot = reference as usize & ((1 << SLOT_BITS) - 1);
        // SAFETY: `take` filled this place of the table before it returned the
        // reference, and the slot lies within the block.
        unsafe { (*self.table.add((reference >> SLOT_BITS) as usize)).add(slot * UNIT) }
    }

    /// Uninitialised memory for `bytes`, which must fit the smallest block,
    /// and its reference. It is aligned as whole units from a cache line are.
    ///
    /// # Safety
    /// No other thread takes from this arena at the same time.
    ///
    /// # Panics
    /// If the references are exhausted.
    #[inline]
    pub(super) unsafe fn take(&self, bytes: usize) -> (u32, *mut u8) {
        debug_assert!(bytes <= BLOCK_BYTES_MIN.max(UNIT));
        // SAFETY: the caller is the only one to touch this.
        let filling = unsafe { &mut *self.filling.get() };
        let units = bytes.div_ceil(UNIT);
        if filling.used + units > filling.capacity {
            self.add_block(filling);
        }
        let slot = filling.used;
        filling.used += units;
        let block = filling.blocks.len() - 1;
        // SAFETY: the block is in the table and has room for slot and units.
        let piece = unsafe { (*self.table.add(block)).add(slot * UNIT) };
        prefetch_next(piece.wrapping_add(bytes));
        ((block << SLOT_BITS | slot) as u32, piece)
    }

    /// Uninitialised memory without a reference, of any size.
    ///
    /// # Safety
    /// As for [`Arena::take`].
    pub(super) unsafe fn take_outside(&self, bytes: usize) -> *mut u8 {
        // SAFETY: the caller is the only one to touch this.
        let filling = unsafe { &mut *self.filling.get() };
        if bytes > filling.left_outside.1 {
            // Alone, a piece costs a page fault for each 4 KiB, as much as copying it.
            if bytes > BLOCK_BYTES_MAX / SHARE || self.bytes() < BLOCK_BYTES_MAX {
                return self.add_block_outside(filling, bytes.max(1));
            }
            let block = self.add_block_outside(filling, BLOCK_BYTES_MAX);
            filling.left_outside = (block, BLOCK_BYTES_MAX);
        }
        let (piece, left) = filling.left_outside;
        // SAFETY: the block has `left` bytes from here on.
        filling.left_outside = (unsafe { piece.add(bytes) }, left - bytes);
        piece
    }

    fn add_block_outside(&self, filling: &mut Filling, bytes: usize) -> *mut u8 {
        let (start, layout) = self.allocate(bytes);
        filling.outside.push((start, layout));
        filling.memory.grow(layout.size());
        start
    }

    /// Counts the memory as that of a memtable that takes no more entries.
    ///
    /// # Safety
    /// As for [`Arena::take`].
    pub(super) unsafe fn seal(&self) {
        // SAFETY: the caller is the only one to touch this.
        unsafe { &mut *self.filling.get() }.memory.move_to(Item::SealedMemtables);
    }

    /// Calls `visit` with every unit given out.
    ///
    /// # Safety
    /// As for [`Arena::take`].
    pub(super) unsafe fn for_each_unit(&self, mut visit: impl FnMut(*mut u8)) {
        // SAFETY: the caller is the only one to touch this.
        let filling = unsafe { &*self.filling.get() };
        for (i, layout) in filling.blocks.iter().enumerate() {
            let last = i + 1 == filling.blocks.len();
            let used = if last { filling.used } else { Self::capacity_of(layout.size()) };
            for slot in 0..used {
                // SAFETY: the slot lies within the block.
                visit(unsafe { (*self.table.add(i)).add(slot * UNIT) });
            }
        }
    }

    fn capacity_of(block_bytes: usize) -> usize {
        (block_bytes / UNIT).min(1 << SLOT_BITS)
    }

    #[cold]
    fn add_block(&self, filling: &mut Filling) {
        let block = filling.blocks.len();
        assert!(block < Self::BLOCKS_MAX, "a memtable is sealed long before its arena is full");
        let (start, layout) = self.allocate(block_bytes_after(self.bytes()));
        filling.blocks.push(layout);
        filling.memory.grow(layout.size());
        filling.used = 0;
        filling.capacity = Self::capacity_of(layout.size());
        // SAFETY: the place is within the table, and no reference to it is
        // known to anyone yet.
        unsafe { self.table.add(block).write(start) };
    }

    fn allocate(&self, bytes: usize) -> (*mut u8, Layout) {
        let layout =
            Layout::from_size_align(bytes, BLOCK_ALIGN).expect("a block fits the address space");
        let start = match bytes {
            PAGE_BYTES => pages::take(),
            // SAFETY: the layout is not empty.
            _ => NonNull::new(unsafe { alloc(layout) }),
        };
        let Some(start) = start else { handle_alloc_error(layout) };
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        (start.as_ptr(), layout)
    }
}

/// Gives back what `allocate` gave; pages to the system, or to whoever takes the next.
///
/// # Safety
/// It did, with this layout, and nobody uses it any more.
unsafe fn release(start: *mut u8, layout: Layout, keeps_pages: bool) {
    match (layout.size(), NonNull::new(start)) {
        // SAFETY: blocks of this size are pages; the rest is the caller's.
        (PAGE_BYTES, Some(page)) if keeps_pages => unsafe { pages::keep(page) },
        // SAFETY: as above.
        (PAGE_BYTES, Some(page)) => unsafe { pages::give_back(page) },
        // SAFETY: all others came from `alloc`; the rest is the caller's.
        _ => unsafe { dealloc(start, layout) },
    }
}

impl<const UNIT: usize, const SLOT_BITS: u32> Drop for Arena<UNIT, SLOT_BITS> {
    fn drop(&mut self) {
        let filling = self.filling.get_mut();
        // Where memory is limited, what nobody uses is the system's.
        let keeps_pages = !filling.memory.is_limited();
        // SAFETY: the table was a box of this length; each block and piece
        // came from `allocate` with its layout, and nobody can reach them now.
        unsafe {
            let table = ptr::slice_from_raw_parts_mut(self.table, Self::BLOCKS_MAX);
            let table = Box::from_raw(table);
            for (&start, &layout) in table.iter().zip(&filling.blocks) {
                release(start, layout, keeps_pages);
            }
            for &(start, layout) in &filling.outside {
                release(start, layout, keeps_pages);
            }
        }
    }
}

/// The size of the next block: an eighth of what there is, so that little is
/// taken in vain, and huge pages as soon as one is a quarter.
fn block_bytes_after(bytes: usize) -> usize {
    if bytes >= 4 * BLOCK_BYTES_MAX {
        return BLOCK_BYTES_MAX;
    }
    1 << (bytes / 8).max(BLOCK_BYTES_MIN).ilog2()
}
