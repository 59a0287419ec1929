//! Many reads in flight at once: io_uring.
//!
//! A ring and its buffers are kept for the next call. What a ring can't do, its
//! caller does without.

use std::io::ErrorKind;
use std::os::fd::AsRawFd;

use io_uring::{IoUring, opcode, types};

use super::direct::{Pages, Span};
use crate::sync::StepMutex;

/// Reads in flight at once: SSDs are not faster with more.
const DEPTH: usize = 128;
/// Rings that are kept while nobody reads.
const KEPT_MAX: usize = 8;

/// Rings that wait for their next use.
static KEPT: StepMutex<Vec<Ring>> = StepMutex::new(Vec::new());

struct Ring {
    ring: IoUring,
    /// Where reads in flight write to, one each.
    buffers: Vec<Pages>,
    in_flight: usize,
}

/// Reads `spans`; `done` is called with the index and the bytes of each that was
/// read, in any order, and not for those that could not be read.
pub(super) fn read(spans: &[Span<'_>], done: &mut dyn FnMut(usize, &[u8])) {
    let kept = KEPT.lock().pop();
    let Some(mut ring) = kept.or_else(Ring::new) else { return };
    ring.read(spans, done);
    if ring.in_flight == 0 {
        let mut kept = KEPT.lock();
        if kept.len() < KEPT_MAX {
            kept.push(ring);
        }
    }
}

impl Ring {
    /// `None` where the kernel has none, or does not let this process have one.
    fn new() -> Option<Ring> {
        let ring = IoUring::new(DEPTH as u32).ok()?;
        let buffers = (0..DEPTH).map(|_| Pages::default()).collect();
        Some(Ring { ring, buffers, in_flight: 0 })
    }

    fn read(&mut self, spans: &[Span<'_>], done: &mut dyn FnMut(usize, &[u8])) {
        let mut free: Vec<usize> = (0..DEPTH).collect();
        // Which span each buffer is for.
        let mut span_of = [0; DEPTH];
        let mut next = 0;
        while next < spans.len() || self.in_flight > 0 {
            while let (Some(span), Some(slot)) = (spans.get(next), free.pop()) {
                span_of[slot] = next;
                next += 1;
                self.begin(span, slot);
            }
            match self.ring.submit_and_wait(1) {
                Ok(_) => {}
                Err(error) if is_passing(error.kind()) => {}
                // The ring goes, and what is in flight with it: see `drop`.
                Err(_) => return,
            }
            for entry in self.ring.completion() {
                let slot = entry.user_data() as usize;
                self.in_flight -= 1;
                free.push(slot);
                if let Ok(bytes) = usize::try_from(entry.result()) {
                    done(span_of[slot], &self.buffers[slot].at_least(bytes)[..bytes]);
                }
            }
        }
    }

    fn begin(&mut self, span: &Span<'_>, slot: usize) {
        let buffer = self.buffers[slot].at_least(span.bytes);
        let read = opcode::Read::new(
            types::Fd(span.file.as_raw_fd()),
            buffer.as_mut_ptr(),
            span.bytes as u32,
        );
        let entry = read.offset(span.offset).build().user_data(slot as u64);
        // SAFETY: the buffer is as long as the read, is not touched before the read
        // has completed, and is not freed before that either: see `drop`. The file
        // is open until `read` returns, which it does when nothing is in flight, or
        // the kernel holds it.
        let pushed = unsafe { self.ring.submission().push(&entry) };
        pushed.expect("there are as many places as buffers");
        self.in_flight += 1;
    }
}

/// True if the same call may succeed the next time.
fn is_passing(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::Interrupted | ErrorKind::WouldBlock | ErrorKind::ResourceBusy)
}

impl Drop for Ring {
    /// The kernel may still write to buffers of reads in flight: those are never
    /// freed.
    fn drop(&mut self) {
        if self.in_flight > 0 {
            std::mem::forget(std::mem::take(&mut self.buffers));
        }
    }
}
