//! Many reads in flight at once: io_uring.
//!
//! A ring and its buffers are kept for the next call. What a ring can't do, its
//! caller does without.

use std::io::ErrorKind;
use std::os::fd::AsRawFd;

use io_uring::{IoUring, opcode, types};

use super::direct::{Pages, Span, Spans};
use crate::sync::StepMutex;

/// Reads in flight at once: SSDs are not faster with more.
const DEPTH: usize = 128;
/// Rings that are kept while nobody reads.
const KEPT_MAX: usize = 8;

/// Rings that wait for their next use.
static KEPT: StepMutex<Vec<Ring>> = StepMutex::new(Vec::new());

struct Ring {
    ring: IoUring,
    slots: Vec<Slot>,
    /// Slots without a read.
    free: Vec<usize>,
}

/// A read that may be in flight.
#[derive(Default)]
struct Slot {
    /// Where it writes to.
    buffer: Pages,
    /// What is read; `None` while nothing is.
    span: Option<Span>,
}

/// Reads `spans` until there are none and none is in flight, or as far as it can.
pub(super) fn read(spans: &mut Spans<'_>) {
    let (Some(first), second) = (spans.next(), spans.next()) else { return };
    let is_one = second.is_none();
    second.into_iter().chain([first]).for_each(|span| spans.give_back(span));
    if is_one {
        return; // a call of its own is cheaper
    }
    let kept = KEPT.lock().pop();
    let Some(mut ring) = kept.or_else(Ring::new) else { return };
    ring.read(spans);
    if ring.is_idle() {
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
        let slots = (0..DEPTH).map(|_| Slot::default()).collect();
        Some(Ring { ring, slots, free: (0..DEPTH).collect() })
    }

    fn is_idle(&self) -> bool {
        self.free.len() == DEPTH
    }

    fn read(&mut self, spans: &mut Spans<'_>) {
        loop {
            while !self.free.is_empty()
                && let Some(span) = spans.next()
            {
                self.begin(span);
            }
            if self.is_idle() {
                return;
            }
            match self.ring.submit_and_wait(1) {
                Ok(_) => self.take_completed(spans),
                Err(error) if is_passing(error.kind()) => {}
                Err(_) => return self.give_up(spans),
            }
        }
    }

    fn take_completed(&mut self, spans: &mut Spans<'_>) {
        let Ring { ring, slots, free } = self;
        for entry in ring.completion() {
            let place = entry.user_data() as usize;
            let Slot { buffer, span } = &mut slots[place];
            let span = span.take().expect("what completes is in flight");
            let bytes = usize::try_from(entry.result()).unwrap_or(0);
            spans.answer(span, &buffer.at_least(bytes)[..bytes]);
            free.push(place);
        }
    }

    /// The ring goes, and what is in flight with it: see `drop`.
    fn give_up(&mut self, spans: &mut Spans<'_>) {
        let in_flight = self.slots.iter_mut().filter_map(|slot| slot.span.take());
        in_flight.for_each(|span| spans.give_back(span));
    }

    fn begin(&mut self, span: Span) {
        let place = self.free.pop().expect("there is a place");
        let slot = &mut self.slots[place];
        let buffer = slot.buffer.at_least(span.bytes);
        let descriptor = types::Fd(span.file().as_raw_fd());
        let read = opcode::Read::new(descriptor, buffer.as_mut_ptr(), span.bytes as u32);
        let entry = read.offset(span.offset).build().user_data(place as u64);
        // SAFETY: the buffer is as long as the read, is not touched before the read
        // has completed, and is not freed before that either: see `drop`. The file
        // is open until then, because the slot keeps the span that has it, or the
        // kernel holds it.
        let pushed = unsafe { self.ring.submission().push(&entry) };
        pushed.expect("there are as many places as buffers");
        slot.span = Some(span);
    }
}

/// True if the same call may succeed the next time.
pub(super) fn is_passing(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::Interrupted | ErrorKind::WouldBlock | ErrorKind::ResourceBusy)
}

impl Drop for Ring {
    /// The kernel may still write to buffers of reads in flight: those are never
    /// freed.
    fn drop(&mut self) {
        if !self.is_idle() {
            std::mem::forget(std::mem::take(&mut self.slots));
        }
    }
}
