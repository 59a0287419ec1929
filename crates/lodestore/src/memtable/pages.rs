//! Huge pages straight from the system.
//!
//! An allocator that is asked for 2 MiB at a boundary of 2 MiB takes twice that
//! and keeps what is left over for smaller pieces; where these stay, the place
//! never takes a huge page again. So a process that fills memtables grew to
//! twice what it used. These come and go as a whole.
//!
//! The system clears a page before it gives it, which for values of 100 kB is a
//! quarter of a put. So pages of a memtable that was flushed are kept for the next,
//! which is being filled at that moment, as long as the load goes on.

use std::ptr::NonNull;

use crate::sync::StepMutex;

/// The size of a huge page, and of the boundary that it begins at.
pub(super) const PAGE_BYTES: usize = 2 << 20;

/// At most so many are kept: those of a memtable of the default size.
const KEPT_MAX: usize = 32;

/// Pages that nobody uses.
static KEPT: StepMutex<Vec<Page>> = StepMutex::new(Vec::new());

struct Page(NonNull<u8>);

// SAFETY: nobody else knows the page.
unsafe impl Send for Page {}

/// Uninitialised memory of one huge page; `None` if there is none.
pub(super) fn take() -> Option<NonNull<u8>> {
    let kept = KEPT.lock().pop();
    kept.map_or_else(map, |page| Some(page.0))
}

/// Gives a page back, to whoever takes one next.
///
/// # Safety
/// It came from [`take`], and nobody uses it any more.
pub(super) unsafe fn keep(page: NonNull<u8>) {
    let mut kept = KEPT.lock();
    if kept.len() < KEPT_MAX {
        return kept.push(Page(page));
    }
    drop(kept);
    // SAFETY: as the caller says.
    unsafe { give_back(page) };
}

/// Gives the pages that were kept to the system.
pub(crate) fn give_back_kept() {
    let kept = std::mem::take(&mut *KEPT.lock());
    // SAFETY: nobody uses what is kept.
    kept.into_iter().for_each(|page| unsafe { give_back(page.0) });
}

#[cfg(target_os = "linux")]
fn map() -> Option<NonNull<u8>> {
    use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};
    // Twice as much has a boundary with a whole page behind it.
    let (flags, protection) = (MapFlags::PRIVATE, ProtFlags::READ | ProtFlags::WRITE);
    // SAFETY: a new mapping at an address of the kernel's choice; nobody else
    // knows it. What is unmapped lies within it, on pages of their own. Without
    // huge pages the advice fails, and small ones do.
    unsafe {
        let base = mmap_anonymous(std::ptr::null_mut(), 2 * PAGE_BYTES, protection, flags).ok()?;
        let before = base.align_offset(PAGE_BYTES);
        let page = base.byte_add(before);
        if before > 0 {
            let _ = munmap(base, before);
        }
        let _ = munmap(page.byte_add(PAGE_BYTES), PAGE_BYTES - before);
        let _ = madvise(page, PAGE_BYTES, Advice::LinuxHugepage);
        NonNull::new(page.cast())
    }
}

/// Gives a page to the system.
///
/// # Safety
/// It came from [`take`], and nobody uses it any more.
#[cfg(target_os = "linux")]
pub(super) unsafe fn give_back(page: NonNull<u8>) {
    // SAFETY: as the caller says.
    let _ = unsafe { rustix::mm::munmap(page.as_ptr().cast(), PAGE_BYTES) };
}

#[cfg(not(target_os = "linux"))]
const LAYOUT: std::alloc::Layout = match std::alloc::Layout::from_size_align(PAGE_BYTES, PAGE_BYTES)
{
    Ok(layout) => layout,
    Err(_) => unreachable!(),
};

#[cfg(not(target_os = "linux"))]
fn map() -> Option<NonNull<u8>> {
    // SAFETY: the layout is not empty.
    NonNull::new(unsafe { std::alloc::alloc(LAYOUT) })
}

#[cfg(not(target_os = "linux"))]
pub(super) unsafe fn give_back(page: NonNull<u8>) {
    // SAFETY: as the caller says.
    unsafe { std::alloc::dealloc(page.as_ptr(), LAYOUT) };
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pages begin at their boundary, take every byte, and do not overlap, also those
    /// that were another's before. Of many that nobody uses only some are kept.
    #[test]
    fn pages_are_whole_and_apart() {
        for round in 0..3 {
            let mut pages: Vec<_> = (0..40).map(|_| take().expect("there is memory")).collect();
            for (i, page) in pages.iter().enumerate() {
                assert_eq!(page.as_ptr() as usize % PAGE_BYTES, 0);
                // SAFETY: the page is this long and nobody else's.
                unsafe { page.as_ptr().write_bytes(i as u8 + round, PAGE_BYTES) };
            }
            for (i, page) in pages.iter().enumerate() {
                // SAFETY: as above.
                let bytes = unsafe { std::slice::from_raw_parts(page.as_ptr(), PAGE_BYTES) };
                assert!(bytes.iter().all(|&byte| byte == i as u8 + round));
            }
            // SAFETY: each is given back once.
            pages.drain(..).for_each(|page| unsafe { keep(page) });
            assert!(KEPT.lock().len() <= KEPT_MAX);
        }
        give_back_kept();
    }
}
