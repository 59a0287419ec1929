//! What one input may cost: a second of processor time, and memory of its own
//! length and 64 MiB.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

use crate::Target;

/// Live bytes beyond the length of the input.
const BYTES_MAX: usize = 64 << 20;
/// Processor time of all threads: wall time would depend on the machine's load.
const TIME_MAX: Duration = Duration::from_secs(1);

static LIVE: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

/// The system's allocator, counting live bytes and their peak.
#[derive(Debug)]
pub struct Counting;

fn add(bytes: usize) {
    let live = LIVE.fetch_add(bytes, Ordering::Relaxed) + bytes;
    PEAK.fetch_max(live, Ordering::Relaxed);
}

// SAFETY: every call goes on to the system's allocator as it came; counting
// allocates nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        add(layout.size());
        // SAFETY: the caller's promises are passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        add(layout.size());
        // SAFETY: the caller's promises are passed on.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller's promises are passed on.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // Both may be there for a moment, while one is copied to the other.
        add(size);
        LIVE.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller's promises are passed on.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// Runs `target` on `bytes`.
///
/// # Panics
/// If the target does, or if it takes more than it may.
pub fn run(target: &Target, bytes: &[u8]) {
    // The counters are the process's: one input at a time.
    static ONE: Mutex<()> = Mutex::new(());
    let _one = ONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let before = LIVE.load(Ordering::Relaxed);
    PEAK.store(before, Ordering::Relaxed);
    let started = processor_time();
    (target.run)(bytes);
    let time = processor_time() - started;
    let peak = PEAK.load(Ordering::Relaxed).saturating_sub(before);
    let bytes_max = bytes.len() + BYTES_MAX;
    assert!(peak <= bytes_max, "{peak} bytes of memory for an input of {}", bytes.len());
    assert!(time <= TIME_MAX, "{time:?} of processor time for an input of {}", bytes.len());
}
