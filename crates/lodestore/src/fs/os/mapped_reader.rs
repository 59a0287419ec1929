//! A file whose small reads are copied out of a mapping of it: no system call,
//! and no search for its pages by the kernel.
//!
//! What a mapping can't do is give an error: where the device has none of the
//! bytes to give, or another program has cut the file off, the process dies by
//! a signal. Whoever opens a file so has been told.

use std::fs::File;
use std::io;
use std::ptr::NonNull;

use rustix::mm::{MapFlags, ProtFlags};

use super::OsReader;
use crate::fs::ReadableFile;

/// Longer reads go by `pread`: the call is little beside the copy then, and what
/// a compaction walks over once need not become part of the process.
const COPIED_BYTES_MAX: usize = 32 << 10;

/// A mapped file.
#[derive(Debug)]
pub(super) struct MappedReader {
    file: OsReader,
    base: NonNull<u8>,
    bytes: usize,
}

// SAFETY: the mapping is owned by this value alone, belongs to no thread, and
// is only read.
unsafe impl Send for MappedReader {}
// SAFETY: as above.
unsafe impl Sync for MappedReader {}

impl MappedReader {
    /// A mapping of `file`, of which nothing is changed while it is open. Where
    /// there can be none, the file comes back.
    pub(super) fn new(file: File) -> Result<MappedReader, File> {
        let Some(bytes) = length_of(&file) else { return Err(file) };
        // SAFETY: a new mapping at an address of the kernel's choice; nobody
        // else has a pointer into it.
        let base = unsafe {
            rustix::mm::mmap(
                std::ptr::null_mut(),
                bytes,
                ProtFlags::READ,
                MapFlags::SHARED,
                &file,
                0,
            )
        };
        match base.ok().and_then(|base| NonNull::new(base.cast::<u8>())) {
            Some(base) => Ok(MappedReader { file: OsReader(file), base, bytes }),
            None => Err(file),
        }
    }
}

/// The length of a file that can be mapped: not an empty one, nor any where
/// addresses are scarce.
fn length_of(file: &File) -> Option<usize> {
    let length = usize::try_from(file.metadata().ok()?.len()).ok()?;
    (length > 0 && cfg!(target_pointer_width = "64")).then_some(length)
}

impl ReadableFile for MappedReader {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.len() > COPIED_BYTES_MAX || offset >= self.bytes as u64 {
            return self.file.read_at(offset, buffer);
        }
        let offset = offset as usize;
        let wanted = buffer.len().min(self.bytes - offset);
        // SAFETY: the range is within the mapping, and the buffer is not: it is
        // exclusively borrowed, and nobody has a reference into the mapping.
        unsafe {
            let from = self.base.as_ptr().add(offset);
            std::ptr::copy_nonoverlapping(from, buffer.as_mut_ptr(), wanted);
        }
        Ok(wanted)
    }

    fn length(&self) -> io::Result<u64> {
        self.file.length()
    }

    fn read_if_cached(&self, offset: u64, buffer: &mut [u8]) -> bool {
        self.file.read_if_cached(offset, buffer)
    }

    fn will_need(&self, offset: u64, length: u64) {
        self.file.will_need(offset, length);
    }
}

impl Drop for MappedReader {
    fn drop(&mut self) {
        // SAFETY: it was mapped by `new` and nobody else knows of it.
        let _ = unsafe { rustix::mm::munmap(self.base.as_ptr().cast(), self.bytes) };
    }
}
