//! Entries in the arena: trailer, lengths, key and value in one piece.
//!
//! | offset | size | meaning |
//! |---|---|---|
//! | 0 | 8 | trailer |
//! | 8 | 1-5 | key length, varint |
//! | . | 1-5 | value length, varint |
//! | . | . | key bytes, value bytes; or, for a large entry, a pointer to both |

use std::ptr;

use super::arena::Arena;
use crate::budget::Charge;
use crate::key::Trailer;
use crate::prefetch::prefetch;

/// An entry with more bytes than this keeps them outside of the blocks.
const INLINE_BYTES_MAX: usize = 7 << 10;
const HEADER_BYTES_MAX: usize = 8 + 5 + 5;

/// A reference to an entry.
pub(super) type EntryRef = u32;

/// The home of entries. Units of four bytes: 16 GiB can be addressed.
pub(super) struct Entries {
    arena: Arena<4, 19>,
}

/// An entry in memory.
#[derive(Clone, Copy)]
pub(super) struct Entry<'a> {
    pub(super) trailer: Trailer,
    pub(super) key: &'a [u8],
    pub(super) value: &'a [u8],
}

impl Entries {
    pub(super) fn new(memory: &Charge) -> Entries {
        Entries { arena: Arena::new(memory) }
    }

    #[inline]
    pub(super) fn bytes(&self) -> usize {
        self.arena.bytes()
    }

    /// See [`Arena::seal`].
    ///
    /// # Safety
    /// Only the writer may call this.
    pub(super) unsafe fn seal(&self) {
        // SAFETY: the caller is the writer.
        unsafe { self.arena.seal() };
    }

    /// Reads an entry.
    ///
    /// # Safety
    /// `entry` came from `add` and was received as the arena demands.
    #[inline]
    pub(super) unsafe fn read(&self, entry: EntryRef) -> Entry<'_> {
        // SAFETY: `add` wrote the piece completely, in this layout.
        unsafe {
            let start = self.arena.at(entry).cast_const();
            let trailer = start.cast::<u64>().read_unaligned();
            let (key_bytes, at) = read_length(start.add(8));
            let (value_bytes, mut at) = read_length(at);
            if key_bytes + value_bytes > INLINE_BYTES_MAX {
                at = at.cast::<*const u8>().read_unaligned();
            }
            Entry {
                trailer,
                key: std::slice::from_raw_parts(at, key_bytes),
                value: std::slice::from_raw_parts(at.add(key_bytes), value_bytes),
            }
        }
    }

    /// Asks the processor to have the entry's first bytes at hand soon.
    ///
    /// # Safety
    /// As for [`Entries::read`].
    #[inline]
    pub(super) unsafe fn prefetch(&self, entry: EntryRef) {
        // SAFETY: as the caller promises.
        prefetch(unsafe { self.arena.at(entry) });
    }

    /// Copies an entry into the arena.
    ///
    /// # Safety
    /// No other thread adds at the same time.
    #[inline]
    pub(super) unsafe fn add(&self, key: &[u8], trailer: Trailer, value: &[u8]) -> EntryRef {
        let payload = key.len() + value.len();
        // SAFETY: pieces are as large as what is written to them, and nobody
        // else knows them yet.
        unsafe {
            if payload > INLINE_BYTES_MAX {
                return self.add_outside(key, trailer, value);
            }
            let header = 8 + length_bytes(key.len()) + length_bytes(value.len());
            let (entry, piece) = self.arena.take(header + payload);
            let at = write_header(piece, key, trailer, value);
            write_payload(at, key, value);
            entry
        }
    }

    /// # Safety
    /// As for [`Entries::add`].
    #[cold]
    unsafe fn add_outside(&self, key: &[u8], trailer: Trailer, value: &[u8]) -> EntryRef {
        // SAFETY: as in `add`.
        unsafe {
            let outside = self.arena.take_outside(key.len() + value.len());
            write_payload(outside, key, value);
            let (entry, piece) = self.arena.take(HEADER_BYTES_MAX + size_of::<*const u8>());
            let at = write_header(piece, key, trailer, value);
            at.cast::<*const u8>().write_unaligned(outside);
            entry
        }
    }
}

/// # Safety
/// There is room for a header at `piece`.
#[inline]
unsafe fn write_header(piece: *mut u8, key: &[u8], trailer: Trailer, value: &[u8]) -> *mut u8 {
    // SAFETY: as the caller promises.
    unsafe {
        piece.cast::<u64>().write_unaligned(trailer);
        let at = write_length(piece.add(8), key.len());
        write_length(at, value.len())
    }
}

/// # Safety
/// There is room for both at `at`.
#[inline]
unsafe fn write_payload(at: *mut u8, key: &[u8], value: &[u8]) {
    // SAFETY: as the caller promises; new memory overlaps nothing.
    unsafe {
        ptr::copy_nonoverlapping(key.as_ptr(), at, key.len());
        ptr::copy_nonoverlapping(value.as_ptr(), at.add(key.len()), value.len());
    }
}

#[inline]
fn length_bytes(length: usize) -> usize {
    if length < 0x80 { 1 } else { crate::coding::varint_bytes(length as u64) }
}

/// # Safety
/// There is room for `length_bytes(length)` at `at`.
#[inline]
unsafe fn write_length(mut at: *mut u8, length: usize) -> *mut u8 {
    let mut rest = u32::try_from(length).expect("keys and values are shorter than 4 GiB");
    // SAFETY: as the caller promises.
    unsafe {
        while rest >= 0x80 {
            at.write(rest as u8 | 0x80);
            at = at.add(1);
            rest >>= 7;
        }
        at.write(rest as u8);
        at.add(1)
    }
}

/// # Safety
/// `write_length` wrote the bytes at `at`.
#[inline]
unsafe fn read_length(mut at: *const u8) -> (usize, *const u8) {
    // SAFETY: as the caller promises.
    unsafe {
        let mut byte = *at;
        let mut length = usize::from(byte & 0x7f);
        let mut shift = 7;
        while byte >= 0x80 {
            at = at.add(1);
            byte = *at;
            length |= usize::from(byte & 0x7f) << shift;
            shift += 7;
        }
        (length, at.add(1))
    }
}
