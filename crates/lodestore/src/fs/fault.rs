//! Errors at chosen calls, around another file system.
//!
//! Every call is counted by its [`Operation`]. A [`Fault`] waits for the n-th
//! call of one operation, on all files or on those whose path contains a text,
//! and lets it fail once or from then on. A failing append may write a part
//! first, as a disk that becomes full does.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use super::{Capabilities, FileLock, Fs, LockError, ReadableFile, WritableFile};
use crate::sync::{Arc, StepMutex};

/// What a call does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Operation {
    /// `Fs::create`.
    Create,
    /// `Fs::overwrite`.
    Overwrite,
    /// `Fs::open`.
    Open,
    /// `Fs::list`.
    List,
    /// `Fs::length` and `ReadableFile::length`.
    Length,
    /// `Fs::remove`.
    Remove,
    /// `Fs::rename`; the path is the old one.
    Rename,
    /// `Fs::hard_link`; the path is the old one.
    HardLink,
    /// `Fs::create_directory`.
    CreateDirectory,
    /// `Fs::remove_directory`.
    RemoveDirectory,
    /// `Fs::sync_directory`.
    SyncDirectory,
    /// `Fs::lock`.
    Lock,
    /// `ReadableFile::read_at`.
    Read,
    /// `WritableFile::append`.
    Append,
    /// `WritableFile::sync`.
    Sync,
    /// `WritableFile::preallocate`.
    Preallocate,
    /// `WritableFile::truncate`.
    Truncate,
    /// `WritableFile::close`.
    Close,
}

/// How often a [`Fault`] strikes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Repeat {
    /// At so many calls, one after another.
    Times(u64),
    /// At every call.
    Forever,
}

/// An error that waits for its call.
#[derive(Clone, Debug)]
pub struct Fault {
    operation: Operation,
    /// Calls that still go well.
    spared: u64,
    repeat: Repeat,
    error: FaultError,
    path_part: String,
    written_bytes: usize,
}

#[derive(Clone, Copy, Debug)]
enum FaultError {
    Kind(io::ErrorKind),
    Os(i32),
}

impl Fault {
    /// The `nth` call of `operation` from now on (1: the next one) fails with
    /// an error of this kind.
    pub fn new(operation: Operation, nth: u64, error: io::ErrorKind) -> Fault {
        Fault::with(operation, nth, FaultError::Kind(error))
    }

    /// As [`Fault::new`], with the operating system's number of the error.
    pub fn os(operation: Operation, nth: u64, errno: i32) -> Fault {
        Fault::with(operation, nth, FaultError::Os(errno))
    }

    fn with(operation: Operation, nth: u64, error: FaultError) -> Fault {
        let spared = nth.saturating_sub(1);
        let (repeat, path_part) = (Repeat::Times(1), String::new());
        Fault { operation, spared, repeat, error, path_part, written_bytes: 0 }
    }

    /// Strikes again at every later call.
    pub fn forever(mut self) -> Fault {
        self.repeat = Repeat::Forever;
        self
    }

    /// Strikes at so many calls, one after another; at least one.
    pub fn times(mut self, times: u64) -> Fault {
        self.repeat = Repeat::Times(times.max(1));
        self
    }

    /// Counts, and strikes, only calls on paths that contain `part`.
    pub fn on(mut self, part: &str) -> Fault {
        self.path_part = part.to_string();
        self
    }

    /// A failing append writes up to this many bytes first.
    pub fn after_bytes(mut self, written_bytes: usize) -> Fault {
        self.written_bytes = written_bytes;
        self
    }

    fn error(&self) -> io::Error {
        match self.error {
            FaultError::Kind(kind) => kind.into(),
            FaultError::Os(errno) => io::Error::from_raw_os_error(errno),
        }
    }
}

/// A file system that fails where it is told to. Clones share their faults.
#[derive(Clone, Debug)]
pub struct FaultFs {
    inner: Arc<dyn Fs>,
    plan: Arc<StepMutex<Plan>>,
}

#[derive(Debug, Default)]
struct Plan {
    faults: Vec<Fault>,
    calls: BTreeMap<Operation, u64>,
    struck: u64,
    read_bytes_max: Option<usize>,
}

impl Plan {
    /// Counts a call, and finds the fault that strikes it.
    fn call(&mut self, operation: Operation, path: &Path) -> Option<Fault> {
        *self.calls.entry(operation).or_default() += 1;
        let mut strikes = None;
        let text = path.to_string_lossy();
        self.faults.retain_mut(|fault| {
            let concerned = fault.operation == operation && text.contains(&fault.path_part);
            if !concerned || strikes.is_some() {
                return true;
            }
            if fault.spared > 0 {
                fault.spared -= 1;
                return true;
            }
            strikes = Some(fault.clone());
            match &mut fault.repeat {
                Repeat::Forever => true,
                Repeat::Times(left) => {
                    *left -= 1;
                    *left > 0
                }
            }
        });
        self.struck += u64::from(strikes.is_some());
        strikes
    }
}

impl FaultFs {
    /// Passes everything on to `inner` until a fault is added.
    pub fn new(inner: Arc<dyn Fs>) -> FaultFs {
        FaultFs { inner, plan: Arc::new(StepMutex::new(Plan::default())) }
    }

    /// Adds a fault.
    pub fn inject(&self, fault: Fault) {
        self.plan.lock().faults.push(fault);
    }

    /// Removes all faults and the limit on reads; counts stay.
    pub fn heal(&self) {
        let mut plan = self.plan.lock();
        plan.faults.clear();
        plan.read_bytes_max = None;
    }

    /// Calls of `operation` so far, failed ones too.
    pub fn calls(&self, operation: Operation) -> u64 {
        self.plan.lock().calls.get(&operation).copied().unwrap_or(0)
    }

    /// Calls that a fault has struck so far.
    pub fn struck(&self) -> u64 {
        self.plan.lock().struck
    }

    /// Lets every read give at most this many bytes, at least one: a caller
    /// must go on where a read was short.
    pub fn shorten_reads(&self, bytes_max: usize) {
        self.plan.lock().read_bytes_max = Some(bytes_max.max(1));
    }

    fn check(&self, operation: Operation, path: &Path) -> io::Result<()> {
        match self.plan.lock().call(operation, path) {
            None => Ok(()),
            Some(fault) => Err(fault.error()),
        }
    }

    fn reader(&self, path: &Path, inner: Arc<dyn ReadableFile>) -> Arc<dyn ReadableFile> {
        Arc::new(FaultReader { fs: self.clone(), path: path.to_path_buf(), inner })
    }

    fn writer(&self, path: &Path, inner: Box<dyn WritableFile>) -> Box<dyn WritableFile> {
        Box::new(FaultWriter { fs: self.clone(), path: path.to_path_buf(), inner })
    }
}

impl Fs for FaultFs {
    fn capabilities(&self) -> Capabilities {
        self.inner.capabilities()
    }

    fn open_files_max(&self) -> Option<usize> {
        self.inner.open_files_max()
    }

    fn create(&self, path: &Path) -> io::Result<Box<dyn WritableFile>> {
        self.check(Operation::Create, path)?;
        Ok(self.writer(path, self.inner.create(path)?))
    }

    fn overwrite(&self, path: &Path) -> io::Result<Box<dyn WritableFile>> {
        self.check(Operation::Overwrite, path)?;
        Ok(self.writer(path, self.inner.overwrite(path)?))
    }

    fn open(&self, path: &Path) -> io::Result<Arc<dyn ReadableFile>> {
        self.check(Operation::Open, path)?;
        Ok(self.reader(path, self.inner.open(path)?))
    }

    fn open_direct(&self, path: &Path) -> io::Result<Arc<dyn ReadableFile>> {
        self.check(Operation::Open, path)?;
        Ok(self.reader(path, self.inner.open_direct(path)?))
    }

    fn list(&self, directory: &Path) -> io::Result<Vec<String>> {
        self.check(Operation::List, directory)?;
        self.inner.list(directory)
    }

    fn length(&self, path: &Path) -> io::Result<u64> {
        self.check(Operation::Length, path)?;
        self.inner.length(path)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.check(Operation::Remove, path)?;
        self.inner.remove(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.check(Operation::Rename, from)?;
        self.inner.rename(from, to)
    }

    fn hard_link(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.check(Operation::HardLink, from)?;
        self.inner.hard_link(from, to)
    }

    fn create_directory(&self, path: &Path) -> io::Result<()> {
        self.check(Operation::CreateDirectory, path)?;
        self.inner.create_directory(path)
    }

    fn remove_directory(&self, path: &Path) -> io::Result<()> {
        self.check(Operation::RemoveDirectory, path)?;
        self.inner.remove_directory(path)
    }

    fn sync_directory(&self, path: &Path) -> io::Result<()> {
        self.check(Operation::SyncDirectory, path)?;
        self.inner.sync_directory(path)
    }

    fn lock(&self, path: &Path) -> Result<Box<dyn FileLock>, LockError> {
        self.check(Operation::Lock, path).map_err(LockError::Io)?;
        self.inner.lock(path)
    }
}

#[derive(Debug)]
struct FaultReader {
    fs: FaultFs,
    path: PathBuf,
    inner: Arc<dyn ReadableFile>,
}

impl ReadableFile for FaultReader {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        self.fs.check(Operation::Read, &self.path)?;
        let most = self.fs.plan.lock().read_bytes_max.unwrap_or(usize::MAX).min(buffer.len());
        self.inner.read_at(offset, &mut buffer[..most])
    }

    fn length(&self) -> io::Result<u64> {
        self.fs.check(Operation::Length, &self.path)?;
        self.inner.length()
    }

    fn will_need(&self, offset: u64, length: u64) {
        self.inner.will_need(offset, length);
    }
}

#[derive(Debug)]
struct FaultWriter {
    fs: FaultFs,
    path: PathBuf,
    inner: Box<dyn WritableFile>,
}

impl WritableFile for FaultWriter {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        let strikes = self.fs.plan.lock().call(Operation::Append, &self.path);
        let Some(fault) = strikes else {
            return self.inner.append(bytes);
        };
        let part = &bytes[..fault.written_bytes.min(bytes.len())];
        if !part.is_empty() {
            self.inner.append(part)?;
        }
        Err(fault.error())
    }

    fn sync(&mut self) -> io::Result<()> {
        self.fs.check(Operation::Sync, &self.path)?;
        self.inner.sync()
    }

    fn preallocate(&mut self, length: u64) -> io::Result<()> {
        self.fs.check(Operation::Preallocate, &self.path)?;
        self.inner.preallocate(length)
    }

    fn preallocate_mapped(&mut self, length: u64) -> io::Result<()> {
        self.fs.check(Operation::Preallocate, &self.path)?;
        self.inner.preallocate_mapped(length)
    }

    fn write_back(&mut self, offset: u64, length: u64) {
        self.inner.write_back(offset, length);
    }

    fn truncate(&mut self, length: u64) -> io::Result<()> {
        self.fs.check(Operation::Truncate, &self.path)?;
        self.inner.truncate(length)
    }

    fn close(self: Box<Self>) -> io::Result<()> {
        self.fs.check(Operation::Close, &self.path)?;
        self.inner.close()
    }
}

#[cfg(all(test, not(simulation)))]
mod tests;
