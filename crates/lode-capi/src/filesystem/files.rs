//! The engine's traits over the caller's functions.
//!
//! Invariant: what the caller has opened or locked is given back to him exactly
//! once, and before his `destroy` is called.

use std::ffi::c_void;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use engine::Fs;
use engine::fs::{Capabilities, FileLock, LockError, ReadableFile, WritableFile};

use super::{Calls, Listed, OnFile, Open, ToLength, for_c};
use crate::pass::{Bytes, Text};

/// The caller's functions as a file system.
#[derive(Debug)]
pub(super) struct GivenFs(pub(super) Arc<Calls>);

impl Fs for GivenFs {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            overwriting: self.0.overwrite.is_some(),
            preallocation: self.0.preallocate.is_some(),
            hard_links: self.0.hard_link.is_some(),
            truncation: self.0.truncate.is_some(),
            mapping: false,
            direct_io: false,
        }
    }

    fn create(&self, path: &Path) -> io::Result<Box<dyn WritableFile>> {
        self.writable(self.0.create, path)
    }

    fn overwrite(&self, path: &Path) -> io::Result<Box<dyn WritableFile>> {
        self.writable(able(self.0.overwrite)?, path)
    }

    fn open(&self, path: &Path) -> io::Result<Arc<dyn ReadableFile>> {
        let handle = Handle(self.0.opened(self.0.open, path)?);
        Ok(Arc::new(Readable { calls: Arc::clone(&self.0), path: path.to_path_buf(), handle }))
    }

    fn list(&self, directory: &Path) -> io::Result<Vec<String>> {
        let (path, mut names) = (for_c(directory)?, Listed::default());
        self.0.outcome(|context, text| {
            // SAFETY: see `Calls`.
            unsafe { (self.0.list)(context, Text::of(&path), &mut names, text) }
        })?;
        Ok(names.0)
    }

    fn length(&self, path: &Path) -> io::Result<u64> {
        let (path, mut length) = (for_c(path)?, 0);
        self.0.outcome(|context, text| {
            // SAFETY: see `Calls`.
            unsafe { (self.0.length)(context, Text::of(&path), &mut length, text) }
        })?;
        Ok(length)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.0.on_path(self.0.remove, path)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.0.on_paths(self.0.rename, from, to)
    }

    fn hard_link(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.0.on_paths(able(self.0.hard_link)?, from, to)
    }

    fn create_directory(&self, path: &Path) -> io::Result<()> {
        let create = |path| match self.0.on_path(self.0.create_directory, path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            outcome => outcome,
        };
        let parent = path.parent().filter(|parent| *parent != Path::new(""));
        match (create(path), parent) {
            (Err(error), Some(parent)) if error.kind() == io::ErrorKind::NotFound => {
                self.create_directory(parent)?;
                create(path)
            }
            (outcome, _) => outcome,
        }
    }

    fn remove_directory(&self, path: &Path) -> io::Result<()> {
        self.0.on_path(self.0.remove_directory, path)
    }

    fn sync_directory(&self, path: &Path) -> io::Result<()> {
        self.0.on_path(self.0.sync_directory, path)
    }

    fn lock(&self, path: &Path) -> std::result::Result<Box<dyn FileLock>, LockError> {
        match self.0.opened(self.0.lock, path) {
            Ok(handle) => {
                Ok(Box::new(Locked { calls: Arc::clone(&self.0), handle: Handle(handle) }))
            }
            Err(error) => Err(match error.kind() {
                // EBUSY and EAGAIN.
                io::ErrorKind::ResourceBusy | io::ErrorKind::WouldBlock => {
                    LockError::Held { holder_pid: None }
                }
                _ => LockError::Io(error),
            }),
        }
    }
}

impl GivenFs {
    fn writable(&self, function: Open, path: &Path) -> io::Result<Box<dyn WritableFile>> {
        let handle = Handle(self.0.opened(function, path)?);
        Ok(Box::new(Writable { calls: Arc::clone(&self.0), handle, is_closed: false }))
    }
}

/// # Errors
/// `Unsupported` if the caller gave no such function.
fn able<T>(function: Option<T>) -> io::Result<T> {
    function.ok_or_else(|| io::ErrorKind::Unsupported.into())
}

/// What the caller calls a file or a lock.
#[derive(Clone, Copy, Debug)]
struct Handle(*mut c_void);

// SAFETY: the header demands that a file can be used from any thread; we only hand
// it back.
unsafe impl Send for Handle {}
// SAFETY: the header demands that a file which is read can be used by several
// threads at once; the others are used by one at a time.
unsafe impl Sync for Handle {}

#[derive(Debug)]
struct Readable {
    calls: Arc<Calls>,
    path: PathBuf,
    handle: Handle,
}

impl ReadableFile for Readable {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let mut count = 0;
        let (place, size) = (buffer.as_mut_ptr(), buffer.len());
        self.calls.outcome(|context, text| {
            let (file, count) = (self.handle.0, &mut count);
            // SAFETY: see `Calls`.
            unsafe { (self.calls.read)(context, file, offset, place, size, count, text) }
        })?;
        match count <= size {
            true => Ok(count),
            false => Err(io::Error::other("it says that it has read more than it was asked for")),
        }
    }

    fn length(&self) -> io::Result<u64> {
        GivenFs(Arc::clone(&self.calls)).length(&self.path)
    }
}

impl Drop for Readable {
    fn drop(&mut self) {
        // SAFETY: see `Calls`; nobody has the file any more.
        unsafe { (self.calls.close_readable)(self.calls.context.data, self.handle.0) }
    }
}

#[derive(Debug)]
struct Writable {
    calls: Arc<Calls>,
    handle: Handle,
    is_closed: bool,
}

impl Writable {
    fn on_file(&self, function: OnFile) -> io::Result<()> {
        let file = self.handle.0;
        // SAFETY: see `Calls`.
        self.calls.outcome(|context, text| unsafe { function(context, file, text) })
    }

    fn to_length(&self, function: ToLength, length: u64) -> io::Result<()> {
        let file = self.handle.0;
        // SAFETY: see `Calls`.
        self.calls.outcome(|context, text| unsafe { function(context, file, length, text) })
    }
}

impl WritableFile for Writable {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        let file = self.handle.0;
        self.calls.outcome(|context, text| {
            // SAFETY: see `Calls`.
            unsafe { (self.calls.append)(context, file, Bytes::of(bytes), text) }
        })
    }

    fn sync(&mut self) -> io::Result<()> {
        self.on_file(self.calls.sync)
    }

    fn preallocate(&mut self, length: u64) -> io::Result<()> {
        self.calls.preallocate.map_or(Ok(()), |function| self.to_length(function, length))
    }

    fn truncate(&mut self, length: u64) -> io::Result<()> {
        self.to_length(able(self.calls.truncate)?, length)
    }

    fn close(mut self: Box<Self>) -> io::Result<()> {
        self.is_closed = true;
        self.on_file(self.calls.close_writable)
    }
}

impl Drop for Writable {
    fn drop(&mut self) {
        if !self.is_closed {
            // Who wants to know what closing finds calls `close`.
            let _ = self.on_file(self.calls.close_writable);
        }
    }
}

#[derive(Debug)]
struct Locked {
    calls: Arc<Calls>,
    handle: Handle,
}

impl FileLock for Locked {}

impl Drop for Locked {
    fn drop(&mut self) {
        // SAFETY: see `Calls`; it happens once.
        unsafe { (self.calls.unlock)(self.calls.context.data, self.handle.0) }
    }
}
