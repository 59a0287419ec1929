//! A file system that stops at the n-th call that changes something, or fails
//! one call once; and that hashes what it is asked, so that two runs can be
//! compared.
//!
//! Stopping is how a crash is played: the call in flight is done by half, and
//! no call after it does anything. What is on the file system below is then
//! what a killed process leaves behind; a `MemFs` can lose power on top.

use crate::random::digest;
use lodestore::fs::{
    Capabilities, FileLock, Fs, LockError, ReadableFile, WritableFile,
};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// Kinds of calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
#[allow(missing_docs)]
pub enum Call {
    Create,
    Overwrite,
    Append,
    Sync,
    Truncate,
    Rename,
    Remove,
    Link,
    Directory,
    SyncDirectory,
    Read,
}

impl Call {
    /// Every kind.
    pub const ALL: [Call; 11] = [
        Call::Create,
        Call::Overwrite,
        Call::Append,
        Call::Sync,
        Call::Truncate,
        Call::Rename,
        Call::Remove,
        Call::Link,
        Call::Directory,
        Call::SyncDirectory,
        Call::Read,
    ];

    fn changes(self) -> bool {
        self != Call::Read
    }
}

/// What goes wrong, and when. Calls are counted from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plan {
    /// Nothing.
    Never,
    /// Everything stops at the n-th call that changes something.
    StopAt(u64),
    /// The n-th call of this kind fails; the next ones work.
    FailOnce(Call, u64),
    /// The n-th call of this kind and every later one of it fail.
    FailFrom(Call, u64),
}

/// Watches and interrupts another file system.
#[derive(Clone, Debug)]
pub struct StopFs {
    inner: Arc<dyn Fs>,
    control: Arc<Control>,
}

#[derive(Debug)]
struct Control {
    plan: Plan,
    changes: AtomicU64,
    calls: [AtomicU64; Call::ALL.len()],
    stopped: AtomicBool,
    failed: AtomicBool,
    trace: Mutex<u64>,
}

/// What is to become of a call.
enum Fate {
    Works,
    /// Half of it is done, then the error.
    Fails(io::Error),
    /// Nothing of it is done.
    Refused(io::Error),
}

impl Control {
    fn fate(&self, call: Call, path: &Path, detail: u64) -> Fate {
        let stop = || io::Error::other("the machine has stopped");
        if self.stopped.load(Ordering::SeqCst) {
            return Fate::Refused(stop());
        }
        let nth = self.calls[call as usize].fetch_add(1, Ordering::SeqCst);
        if call.changes() {
            self.note(call, path, detail);
            let change = self.changes.fetch_add(1, Ordering::SeqCst);
            if self.plan == Plan::StopAt(change) {
                self.stopped.store(true, Ordering::SeqCst);
                return Fate::Fails(stop());
            }
        }
        let fails = match self.plan {
            Plan::FailOnce(kind, at) => kind == call && at == nth,
            Plan::FailFrom(kind, at) => kind == call && at <= nth,
            Plan::Never | Plan::StopAt(_) => false,
        };
        if fails {
            self.failed.store(true, Ordering::SeqCst);
            return Fate::Fails(io::Error::other("an injected failure"));
        }
        Fate::Works
    }

    fn note(&self, call: Call, path: &Path, detail: u64) {
        let name = path.file_name().unwrap_or_default().as_encoded_bytes();
        let mut trace = self.trace.lock().expect("no one panics while noting");
        let mut bytes = trace.to_le_bytes().to_vec();
        bytes.push(call as u8);
        bytes.extend_from_slice(&detail.to_le_bytes());
        bytes.extend_from_slice(name);
        *trace = digest(&bytes);
    }

    /// Does `work`, unless it is to fail.
    fn run<T>(
        &self,
        call: Call,
        path: &Path,
        detail: u64,
        work: impl FnOnce() -> io::Result<T>,
    ) -> io::Result<T> {
        match self.fate(call, path, detail) {
            Fate::Works => work(),
            Fate::Fails(error) | Fate::Refused(error) => Err(error),
        }
    }
}

impl StopFs {
    /// Interrupts `inner` as `plan` says.
    pub fn new(inner: Arc<dyn Fs>, plan: Plan) -> Arc<StopFs> {
        Arc::new(StopFs {
            inner,
            control: Arc::new(Control {
                plan,
                changes: AtomicU64::new(0),
                calls: Default::default(),
                stopped: AtomicBool::new(false),
                failed: AtomicBool::new(false),
                trace: Mutex::new(0),
            }),
        })
    }

    /// Calls so far that changed something.
    pub fn changes(&self) -> u64 {
        self.control.changes.load(Ordering::SeqCst)
    }

    /// Calls so far of one kind.
    pub fn calls(&self, call: Call) -> u64 {
        self.control.calls[call as usize].load(Ordering::SeqCst)
    }

    /// True once everything has stopped.
    pub fn has_stopped(&self) -> bool {
        self.control.stopped.load(Ordering::SeqCst)
    }

    /// True once a call was made to fail.
    pub fn has_failed(&self) -> bool {
        self.control.failed.load(Ordering::SeqCst)
    }

    /// Stops everything from now on.
    pub fn stop(&self) {
        self.control.stopped.store(true, Ordering::SeqCst);
    }

    /// A hash of all changing calls so far, in order, with names and bytes.
    pub fn trace(&self) -> u64 {
        *self.control.trace.lock().expect("no one panics while noting")
    }

    fn writable(
        &self,
        path: &Path,
        file: io::Result<Box<dyn WritableFile>>,
    ) -> io::Result<Box<dyn WritableFile>> {
        let (path, control) = (path.to_path_buf(), Arc::clone(&self.control));
        Ok(Box::new(StopWritable { inner: file?, path, control }))
    }
}

impl Fs for StopFs {
    fn capabilities(&self) -> Capabilities {
        self.inner.capabilities()
    }

    fn create(&self, path: &Path) -> io::Result<Box<dyn WritableFile>> {
        self.writable(path, self.control.run(Call::Create, path, 0, || self.inner.create(path)))
    }

    fn overwrite(&self, path: &Path) -> io::Result<Box<dyn WritableFile>> {
        let file = self.control.run(Call::Overwrite, path, 0, || self.inner.overwrite(path));
        self.writable(path, file)
    }

    fn open(&self, path: &Path) -> io::Result<Arc<dyn ReadableFile>> {
        let control = Arc::clone(&self.control);
        let path_kept = path.to_path_buf();
        Ok(Arc::new(StopReadable { inner: self.inner.open(path)?, path: path_kept, control }))
    }

    fn list(&self, directory: &Path) -> io::Result<Vec<String>> {
        self.inner.list(directory)
    }

    fn length(&self, path: &Path) -> io::Result<u64> {
        self.inner.length(path)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.control.run(Call::Remove, path, 0, || self.inner.remove(path))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.control.run(Call::Rename, to, 0, || self.inner.rename(from, to))
    }

    fn hard_link(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.control.run(Call::Link, to, 0, || self.inner.hard_link(from, to))
    }

    fn create_directory(&self, path: &Path) -> io::Result<()> {
        self.control.run(Call::Directory, path, 0, || self.inner.create_directory(path))
    }

    fn remove_directory(&self, path: &Path) -> io::Result<()> {
        self.control.run(Call::Directory, path, 1, || self.inner.remove_directory(path))
    }

    fn sync_directory(&self, path: &Path) -> io::Result<()> {
        self.control.run(Call::SyncDirectory, path, 0, || self.inner.sync_directory(path))
    }

    fn lock(&self, path: &Path) -> Result<Box<dyn FileLock>, LockError> {
        self.inner.lock(path)
    }
}

#[derive(Debug)]
struct StopWritable {
    inner: Box<dyn WritableFile>,
    path: PathBuf,
    control: Arc<Control>,
}

impl WritableFile for StopWritable {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self.control.fate(Call::Append, &self.path, digest(bytes)) {
            Fate::Works => self.inner.append(bytes),
            Fate::Refused(error) => Err(error),
            Fate::Fails(error) => {
                self.inner.append(&bytes[..bytes.len() / 2])?;
                Err(error)
            }
        }
    }

    fn sync(&mut self) -> io::Result<()> {
        self.control.run(Call::Sync, &self.path, 0, || self.inner.sync())
    }

    fn preallocate(&mut self, length: u64) -> io::Result<()> {
        self.inner.preallocate(length)
    }

    fn truncate(&mut self, length: u64) -> io::Result<()> {
        self.control.run(Call::Truncate, &self.path, length, || self.inner.truncate(length))
    }

    fn close(self: Box<Self>) -> io::Result<()> {
        self.inner.close()
    }
}

#[derive(Debug)]
struct StopReadable {
    inner: Arc<dyn ReadableFile>,
    path: PathBuf,
    control: Arc<Control>,
}

impl ReadableFile for StopReadable {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        self.control.run(Call::Read, &self.path, offset, || self.inner.read_at(offset, buffer))
    }

    fn length(&self) -> io::Result<u64> {
        self.inner.length()
    }

    fn will_need(&self, offset: u64, length: u64) {
        self.inner.will_need(offset, length);
    }
}
