//! Appending by copying into a shared mapping, a window of the file at a time.
//!
//! A copied byte is in the kernel's page cache, as after `write(2)`, without
//! the call: a killed process loses none. What a mapping can't do is give an
//! error: where a store finds no page, the process dies by a signal. So every
//! window's pages are made writable first by `MADV_POPULATE_WRITE` (Linux
//! 5.14), which gives the error instead, and only files are mapped whose
//! blocks exist already, on file systems that write a block where it is.
//! Anything else goes back to `write(2)`.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::ptr::NonNull;

use rustix::mm::{Advice, MapFlags, ProtFlags};

use crate::prefetch::prefetch_next;

/// Mapped at once. One append in some thousands pays for a window, so it
/// should not be long; nor short, since each takes four calls.
const WINDOW_BYTES: u64 = 256 << 10;

/// Absent pages are written over so many bytes at once, and come to the page cache
/// as one folio where the file system has large ones. To make its pages writable
/// costs less the larger it is; but a page that is written to again after a sync
/// makes the whole folio dirty.
const FOLIO_BYTES: usize = 32 << 10;

/// File systems that never move a block that was written, by the number that
/// `statfs` gives (linux/magic.h): a store can't run out of space there.
const STEADY_FILE_SYSTEMS: [u64; 3] = [
    0xef53,      // ext2, ext3, ext4
    0x5846_5342, // XFS
    0x0102_1994, // tmpfs
];

/// Where appends go by copying.
#[derive(Debug)]
pub(super) struct Mapping {
    window: Option<Window>,
    /// The file's length: nothing is mapped from there on.
    limit: u64,
}

impl Mapping {
    /// A mapping of `file`, which is `length` bytes long and has a block for
    /// each of them; `None` where stores could fail. Nobody needs what the file has
    /// behind the place that is appended to.
    pub(super) fn new(file: &File, length: u64) -> Option<Mapping> {
        let magic = rustix::fs::fstatfs(file).ok()?.f_type as u64;
        let mapping = Mapping { window: None, limit: length };
        STEADY_FILE_SYSTEMS.contains(&magic).then_some(mapping)
    }

    /// Up to where the file has a block for each byte.
    pub(super) fn limit(&self) -> u64 {
        self.limit
    }

    /// Says that the file is `length` bytes long now, and has a block for each of them.
    pub(super) fn extend(&mut self, length: u64) {
        self.limit = length;
    }

    /// Copies the first of `bytes` to `position`. Gives how many were copied:
    /// none from the end of the mapped part on.
    ///
    /// # Errors
    /// A window could not be mapped; nothing was copied.
    pub(super) fn copy(&mut self, file: &File, position: u64, bytes: &[u8]) -> io::Result<usize> {
        if position >= self.limit {
            return Ok(0);
        }
        if !self.window.as_ref().is_some_and(|window| window.holds(position)) {
            self.window = None; // unmapped before the next is mapped
            self.window = Some(Window::new(file, position, self.limit)?);
        }
        let window = self.window.as_mut().expect("it was mapped");
        Ok(window.copy(position, bytes))
    }
}

/// A mapped part of a file whose pages are there and writable, from the one on that
/// holds the first byte to be copied.
#[derive(Debug)]
struct Window {
    base: NonNull<u8>,
    start: u64,
    bytes: usize,
}

// SAFETY: the mapping is owned by this value alone, and belongs to no thread.
unsafe impl Send for Window {}

impl Window {
    /// The window that `position` is in, up to `limit` at most.
    fn new(file: &File, position: u64, limit: u64) -> io::Result<Window> {
        let start = position / WINDOW_BYTES * WINDOW_BYTES;
        let bytes = WINDOW_BYTES.min(limit - start) as usize;
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping at an address of the kernel's choice; nobody
        // else knows it.
        let base = unsafe {
            rustix::mm::mmap(
                std::ptr::null_mut(),
                bytes,
                protection,
                MapFlags::SHARED,
                file,
                start,
            )?
        };
        let base = NonNull::new(base.cast()).expect("a mapping is not at address 0");
        let window = Window { base, start, bytes };
        // Reading ahead would bring large folios from the disk; of those that are not
        // dirty yet, each page that is made writable marks all.
        window.advise(0, Advice::Random)?;
        window.write_over_absent(file, position)?;
        // Pages before that hold what may be synced: made writable they would be written
        // again, and read for it first.
        let at = (position - start) as usize;
        window.advise(page_start(at, rustix::param::page_size()), Advice::LinuxPopulateWrite)?;
        Ok(window)
    }

    /// Writes zeros over the pages behind `position` that the page cache does not have: to be
    /// made writable they would be read from the file, one by one.
    fn write_over_absent(&self, file: &File, position: u64) -> io::Result<()> {
        const PAGE_BYTES_MIN: usize = 4096;
        let page_bytes = rustix::param::page_size();
        if !(PAGE_BYTES_MIN..=FOLIO_BYTES).contains(&page_bytes) {
            return Ok(()); // they are read
        }
        let mut states = [0_u8; WINDOW_BYTES as usize / PAGE_BYTES_MIN];
        // SAFETY: the range is this window's mapping, whose pages are no more than `states`
        // has bytes; the call writes one for each.
        let told = unsafe {
            libc::mincore(self.base.as_ptr().cast(), self.bytes, states.as_mut_ptr().cast())
        };
        if told != 0 {
            return Ok(()); // a sandbox may refuse to tell
        }
        let first = ((position - self.start) as usize).div_ceil(page_bytes);
        let states = &states[..self.bytes.div_ceil(page_bytes)];
        for run in absent_runs(states, first, FOLIO_BYTES / page_bytes) {
            let (from, to) = (run.start * page_bytes, (run.end * page_bytes).min(self.bytes));
            file.write_all_at(&[0; FOLIO_BYTES][..to - from], self.start + from as u64)?;
        }
        Ok(())
    }

    /// Gives advice on what is mapped from `at` on, where a page begins.
    fn advise(&self, at: usize, advice: Advice) -> io::Result<()> {
        let bytes = self.bytes.checked_sub(at).expect("it is in the window");
        // SAFETY: the range is the end of this window's mapping; neither advice changes
        // what is in it.
        unsafe { rustix::mm::madvise(self.base.as_ptr().add(at).cast(), bytes, advice) }?;
        Ok(())
    }

    #[inline]
    fn holds(&self, position: u64) -> bool {
        position >= self.start && position - self.start < self.bytes as u64
    }

    #[inline]
    fn copy(&mut self, position: u64, bytes: &[u8]) -> usize {
        let at = (position - self.start) as usize;
        let count = bytes.len().min(self.bytes - at);
        // SAFETY: `at + count` is within the mapping, which lives as long as
        // this value; no reference into it exists.
        unsafe { self.base.as_ptr().add(at).copy_from_nonoverlapping(bytes.as_ptr(), count) };
        prefetch_next(self.base.as_ptr().wrapping_add(at + count));
        count
    }
}

impl Drop for Window {
    fn drop(&mut self) {
        // SAFETY: the mapping was made with this base and length, and nothing
        // refers to it any more. Unmapping what is mapped can't fail.
        let _ = unsafe { rustix::mm::munmap(self.base.as_ptr().cast(), self.bytes) };
    }
}

/// The pages from `first` on that are absent, as `mincore` tells: those that lie one after the
/// other together, but none across a multiple of `pages_max`.
fn absent_runs(
    states: &[u8],
    first: usize,
    pages_max: usize,
) -> impl Iterator<Item = Range<usize>> + '_ {
    let is_absent = move |page: usize| states[page] & 1 == 0;
    let mut page = first;
    std::iter::from_fn(move || {
        let start = (page..states.len()).find(|&page| is_absent(page))?;
        let end_max = (start / pages_max + 1) * pages_max;
        page =
            (start..end_max.min(states.len())).take_while(|&page| is_absent(page)).count() + start;
        Some(start..page)
    })
}

/// Where the page begins that holds the byte `at`.
fn page_start(at: usize, page_bytes: usize) -> usize {
    at / page_bytes * page_bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Absent pages are found once each, together where they lie together, and never
    /// across the border of a folio.
    #[test]
    fn absent_pages_are_found_in_runs_within_folios() {
        let states = [1, 0, 0, 1, 0, 0, 0, 0, 0, 1, 0];
        let runs = |first| absent_runs(&states, first, 4).collect::<Vec<_>>();
        assert_eq!(runs(0), [1..3, 4..8, 8..9, 10..11]);
        assert_eq!(runs(2), [2..3, 4..8, 8..9, 10..11]);
        assert_eq!(runs(6), [6..8, 8..9, 10..11]);
        assert_eq!(runs(11), []);
        assert_eq!(runs(12), []);
    }
}
