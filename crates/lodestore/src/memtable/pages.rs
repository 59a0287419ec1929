//! Huge pages straight from the system.
//!
//! An allocator that is asked for 2 MiB at a boundary of 2 MiB takes twice that
//! and keeps what is left over for smaller pieces; where these stay, the place
//! never takes a huge page again. So a process that fills memtables grew to
//! twice what it used. These come and go as a whole.

use std::ptr::NonNull;

/// The size of a huge page, and of the boundary that it begins at.
pub(super) const PAGE_BYTES: usize = 2 << 20;

/// Uninitialised memory of one huge page; `None` if there is none.
#[cfg(target_os = "linux")]
pub(super) fn take() -> Option<NonNull<u8>> {
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

/// Gives a page back.
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
pub(super) fn take() -> Option<NonNull<u8>> {
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

    /// Pages begin at their boundary, take every byte, and do not overlap.
    #[test]
    fn pages_are_whole_and_apart() {
        let mut pages: Vec<_> = (0..8).map(|_| take().expect("there is memory")).collect();
        for (i, page) in pages.iter().enumerate() {
            assert_eq!(page.as_ptr() as usize % PAGE_BYTES, 0);
            // SAFETY: the page is this long and nobody else's.
            unsafe { page.as_ptr().write_bytes(i as u8 + 1, PAGE_BYTES) };
        }
        for (i, page) in pages.iter().enumerate() {
            // SAFETY: as above.
            let bytes = unsafe { std::slice::from_raw_parts(page.as_ptr(), PAGE_BYTES) };
            assert!(bytes.iter().all(|&byte| byte == i as u8 + 1));
        }
        // SAFETY: each is given back once.
        pages.drain(..).for_each(|page| unsafe { give_back(page) });
    }
}
