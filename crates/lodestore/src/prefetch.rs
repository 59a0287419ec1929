//! Hints to the processor.

/// Asks the processor to have the cache line at `address` at hand soon. Any
/// address will do.
#[inline]
pub(crate) fn prefetch(address: *const u8) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch reads nothing that the program can see, and every
    // x86-64 processor has the instruction.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(address.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = address;
}

/// Cache lines that [`prefetch_next`] asks for: an entry and its record in the log are
/// two to three.
const NEXT_LINES: usize = 3;
const LINE_BYTES: usize = 64;

/// Asks for the cache lines behind the one at `address`, where the next piece of
/// something that grows will be written: at the end of a write the processor waits
/// for all lines that were stored to.
#[inline]
pub(crate) fn prefetch_next(address: *const u8) {
    for line in 1..=NEXT_LINES {
        prefetch(address.wrapping_add(line * LINE_BYTES));
    }
}
