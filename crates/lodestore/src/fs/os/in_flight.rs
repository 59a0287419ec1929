//! A read that goes on while its owner does something else: io_uring.

use std::fmt;
use std::fs::File;
use std::io;
use std::mem::ManuallyDrop;
use std::os::fd::AsRawFd;
use std::sync::Arc;

use io_uring::{IoUring, opcode, types};

use super::super::BegunRead;
use super::direct::{ALIGN, Pages};
use super::ring::is_passing;
use crate::sync::StepMutex;

/// Rings that wait for their next use, with their buffers, are at most so many.
const KEPT_MAX: usize = 8;

/// Nothing is in flight in these.
static KEPT: StepMutex<Vec<ReadInFlight>> = StepMutex::new(Vec::new());

/// A read of a file that was opened for reads past the page cache.
pub(super) struct ReadInFlight {
    ring: IoUring,
    /// Not freed while the kernel may write to it: see `drop`.
    buffer: ManuallyDrop<Pages>,
    /// What is read, which has to stay open for as long; `None` once it was.
    file: Option<Arc<File>>,
    /// Bytes in the buffer before those that were asked for.
    skipped: usize,
}

impl ReadInFlight {
    /// Begins to read `length` bytes at `offset`. `None` if that can't be, as where
    /// the kernel has no rings, or does not let this process have one.
    pub(super) fn begin(file: &Arc<File>, offset: u64, length: usize) -> Option<ReadInFlight> {
        let kept = KEPT.lock().pop();
        let mut read = kept.or_else(ReadInFlight::new)?;
        read.skipped = (offset % ALIGN as u64) as usize;
        let bytes = (read.skipped + length).next_multiple_of(ALIGN);
        let start = read.buffer.at_least(bytes).as_mut_ptr();
        let entry = opcode::Read::new(types::Fd(file.as_raw_fd()), start, bytes as u32)
            .offset(offset - read.skipped as u64)
            .build();
        // SAFETY: the buffer is as long as the read, and nobody touches or frees it
        // before `wait` has seen its end; until then `file` is kept open.
        unsafe { read.ring.submission().push(&entry) }.expect("nothing is in flight");
        read.file = Some(Arc::clone(file));
        read.ring.submit().ok()?;
        Some(read)
    }

    fn new() -> Option<ReadInFlight> {
        let ring = IoUring::new(1).ok()?;
        let buffer = ManuallyDrop::new(Pages::default());
        Some(ReadInFlight { ring, buffer, file: None, skipped: 0 })
    }

    /// Waits for the end of the read; gives how many bytes it was.
    fn wait(&mut self) -> io::Result<usize> {
        let result = loop {
            if let Some(entry) = self.ring.completion().next() {
                break entry.result();
            }
            match self.ring.submit_and_wait(1) {
                Ok(_) => {}
                Err(error) if is_passing(error.kind()) => {}
                Err(error) => return Err(error),
            }
        };
        self.file = None;
        usize::try_from(result).map_err(|_| io::Error::from_raw_os_error(-result))
    }
}

impl BegunRead for ReadInFlight {
    fn finish(mut self: Box<Self>, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.wait()?;
        let count = read.saturating_sub(self.skipped).min(buffer.len());
        let skipped = self.skipped;
        buffer[..count].copy_from_slice(&self.buffer.at_least(read)[skipped..skipped + count]);
        let mut kept = KEPT.lock();
        if kept.len() < KEPT_MAX {
            kept.push(*self);
        }
        Ok(count)
    }
}

impl Drop for ReadInFlight {
    fn drop(&mut self) {
        if self.file.is_some() {
            // What failed is still in flight, and then the buffer is never freed.
            let _ = self.wait();
        }
        if self.file.is_none() {
            // SAFETY: nothing is in flight, so that the kernel has no more to do with
            // the buffer, and it is not used after this.
            unsafe { ManuallyDrop::drop(&mut self.buffer) };
        }
    }
}

impl fmt::Debug for ReadInFlight {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReadInFlight").field("file", &self.file).finish_non_exhaustive()
    }
}
