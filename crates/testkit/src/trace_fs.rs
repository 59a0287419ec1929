//! A file system that hashes what it is asked to change, so that two runs can
//! be compared: the same seed must ask the same things in the same order.

use crate::random::digest;
use lodestore::fs::{
    Capabilities, FileLock, Fs, LockError, ReadRequest, ReadStream, ReadableFile, WritableFile,
};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

/// Called after each call that changed, or was to change, something: its name
/// and its path.
pub type Watch = Arc<dyn Fn(&'static str, &Path) + Send + Sync>;

/// Called after each read of a file that was opened for it: its path, the offset, and
/// what was read, which may be changed.
pub type OnRead = Arc<dyn Fn(&Path, u64, &mut [u8]) + Send + Sync>;

/// Passes everything on to another file system, and notes it.
#[derive(Clone, Debug)]
pub struct TraceFs {
    inner: Arc<dyn Fs>,
    trace: Trace,
}

/// A changing call: its name and what it was about. The second name of a link
/// or a rename is a call `to` of its own, right after it.
pub type Call = (&'static str, PathBuf);

/// The hash so far, and the calls if they are kept. The standard library's
/// locks, not simulated ones: noting must not be a moment at which the simulation
/// changes threads.
#[derive(Clone, Default)]
struct Trace {
    hash: Arc<Mutex<u64>>,
    calls: Option<Arc<Mutex<Vec<Call>>>>,
    watch: Option<Watch>,
    on_read: Option<OnRead>,
    /// Reads that were under way at once, at most.
    reads_at_once: Arc<AtomicUsize>,
}

impl std::fmt::Debug for Trace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Trace").field("hash", &self.hash).finish_non_exhaustive()
    }
}

impl Trace {
    /// Notes a changing call, does it, and tells who watches.
    fn changing<T>(
        &self,
        call: &'static str,
        path: &Path,
        detail: u64,
        work: impl FnOnce() -> io::Result<T>,
    ) -> io::Result<T> {
        self.note(&[(call, path)], detail);
        self.done(call, path, work())
    }

    /// The same for a call with two names: both are noted before any other call.
    fn naming(
        &self,
        call: &'static str,
        [from, to]: [&Path; 2],
        work: impl FnOnce() -> io::Result<()>,
    ) -> io::Result<()> {
        self.note(&[(call, from), ("to", to)], 0);
        self.done(call, from, work())
    }

    fn done<T>(&self, call: &'static str, path: &Path, result: io::Result<T>) -> io::Result<T> {
        if let Some(watch) = &self.watch {
            watch(call, path);
        }
        result
    }

    fn note(&self, calls: &[(&'static str, &Path)], detail: u64) {
        if let Some(kept) = &self.calls {
            let mut kept = kept.lock().expect("no one panics while noting");
            kept.extend(calls.iter().map(|&(call, path)| (call, path.to_path_buf())));
        }
        let mut hash = self.hash.lock().expect("no one panics while noting");
        for (call, path) in calls {
            let name = path.file_name().unwrap_or_default().as_encoded_bytes();
            let (before, detail) = (hash.to_le_bytes(), detail.to_le_bytes());
            *hash = digest(&[&before, &detail, call.as_bytes(), name].concat());
        }
    }
}

impl TraceFs {
    /// Notes what `inner` is asked.
    pub fn new(inner: Arc<dyn Fs>) -> TraceFs {
        TraceFs { inner, trace: Trace::default() }
    }

    /// Tells `watch` of each changing call, right after it.
    pub fn watched(inner: Arc<dyn Fs>, watch: Watch) -> TraceFs {
        TraceFs { inner, trace: Trace { watch: Some(watch), ..Trace::default() } }
    }

    /// Tells `on_read` of each read by [`ReadableFile::read_at`], right after it.
    pub fn watching_reads(inner: Arc<dyn Fs>, on_read: OnRead) -> TraceFs {
        TraceFs { inner, trace: Trace { on_read: Some(on_read), ..Trace::default() } }
    }

    /// Notes the changing calls, and keeps them.
    pub fn keeping_calls(inner: Arc<dyn Fs>) -> TraceFs {
        let trace = Trace { calls: Some(Arc::default()), ..Trace::default() };
        TraceFs { inner, trace }
    }

    /// The changing calls so far, in order, with syncs that failed as calls
    /// `failed-sync` after them; none if they are not kept.
    pub fn calls(&self) -> Vec<Call> {
        let calls = self.trace.calls.as_ref();
        calls.map_or(Vec::new(), |calls| calls.lock().expect("no one panics while noting").clone())
    }

    /// A hash of all changing calls so far, in order, with names and bytes.
    pub fn trace(&self) -> u64 {
        *self.trace.hash.lock().expect("no one panics while noting")
    }

    /// How many reads of one [`Fs::read_many`] were under way at once, at most, since
    /// this was last asked.
    pub fn reads_at_once(&self) -> usize {
        self.trace.reads_at_once.swap(0, Ordering::Relaxed)
    }

    fn writable(&self, path: &Path, inner: Box<dyn WritableFile>) -> Box<dyn WritableFile> {
        let (path, trace) = (path.to_path_buf(), self.trace.clone());
        Box::new(TraceFile { inner, path, trace })
    }
}

impl Fs for TraceFs {
    fn capabilities(&self) -> Capabilities {
        self.inner.capabilities()
    }

    fn create(&self, path: &Path) -> io::Result<Box<dyn WritableFile>> {
        let inner = self.trace.changing("create", path, 0, || self.inner.create(path))?;
        Ok(self.writable(path, inner))
    }

    fn overwrite(&self, path: &Path) -> io::Result<Box<dyn WritableFile>> {
        let inner = self.trace.changing("overwrite", path, 0, || self.inner.overwrite(path))?;
        Ok(self.writable(path, inner))
    }

    fn open(&self, path: &Path) -> io::Result<Arc<dyn ReadableFile>> {
        let inner = self.inner.open(path)?;
        Ok(match &self.trace.on_read {
            None => inner,
            Some(on_read) => {
                let (path, on_read) = (path.to_path_buf(), Arc::clone(on_read));
                Arc::new(WatchedReader { inner, path, on_read })
            }
        })
    }

    fn open_direct(&self, path: &Path) -> io::Result<Arc<dyn ReadableFile>> {
        match self.inner.open_direct(path) {
            // What is in memory passes no page cache.
            Err(error) if error.kind() == io::ErrorKind::Unsupported => self.inner.open(path),
            opened => opened,
        }
    }

    fn read_many(&self, reads: &mut dyn ReadStream) {
        let at_once = &self.trace.reads_at_once;
        self.inner.read_many(&mut CountedReads { reads, at_once, under_way: 0 });
    }

    fn list(&self, directory: &Path) -> io::Result<Vec<String>> {
        self.inner.list(directory)
    }

    fn length(&self, path: &Path) -> io::Result<u64> {
        self.inner.length(path)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.trace.changing("remove", path, 0, || self.inner.remove(path))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.trace.naming("rename", [from, to], || self.inner.rename(from, to))
    }

    fn hard_link(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.trace.naming("link", [from, to], || self.inner.hard_link(from, to))
    }

    fn create_directory(&self, path: &Path) -> io::Result<()> {
        self.trace.changing("create-directory", path, 0, || self.inner.create_directory(path))
    }

    fn remove_directory(&self, path: &Path) -> io::Result<()> {
        self.trace.changing("remove-directory", path, 0, || self.inner.remove_directory(path))
    }

    fn sync_directory(&self, path: &Path) -> io::Result<()> {
        self.trace.changing("sync-directory", path, 0, || self.inner.sync_directory(path))
    }

    fn lock(&self, path: &Path) -> Result<Box<dyn FileLock>, LockError> {
        self.inner.lock(path)
    }
}

struct WatchedReader {
    inner: Arc<dyn ReadableFile>,
    path: PathBuf,
    on_read: OnRead,
}

impl std::fmt::Debug for WatchedReader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WatchedReader").field("inner", &self.inner).finish_non_exhaustive()
    }
}

impl ReadableFile for WatchedReader {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let bytes = self.inner.read_at(offset, buffer)?;
        (self.on_read)(&self.path, offset, &mut buffer[..bytes]);
        Ok(bytes)
    }

    fn length(&self) -> io::Result<u64> {
        self.inner.length()
    }
}

#[derive(Debug)]
struct TraceFile {
    inner: Box<dyn WritableFile>,
    path: PathBuf,
    trace: Trace,
}

impl WritableFile for TraceFile {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.trace.changing("append", &self.path, digest(bytes), || self.inner.append(bytes))
    }

    fn sync(&mut self) -> io::Result<()> {
        let result = self.trace.changing("sync", &self.path, 0, || self.inner.sync());
        if result.is_err() {
            self.trace.note(&[("failed-sync", &self.path)], 0);
        }
        result
    }

    fn preallocate(&mut self, length: u64) -> io::Result<()> {
        self.inner.preallocate(length)
    }

    fn preallocate_mapped(&mut self, length: u64) -> io::Result<()> {
        self.trace.changing("map", &self.path, 0, || self.inner.preallocate_mapped(length))
    }

    fn write_back(&mut self, offset: u64, length: u64) {
        self.inner.write_back(offset, length);
    }

    fn truncate(&mut self, length: u64) -> io::Result<()> {
        self.trace.changing("truncate", &self.path, length, || self.inner.truncate(length))
    }

    fn close(self: Box<Self>) -> io::Result<()> {
        self.inner.close()
    }
}

/// Counts the reads that are under way.
struct CountedReads<'r> {
    reads: &'r mut dyn ReadStream,
    at_once: &'r AtomicUsize,
    under_way: usize,
}

impl ReadStream for CountedReads<'_> {
    fn next(&mut self) -> Option<ReadRequest> {
        let request = self.reads.next()?;
        self.under_way += 1;
        self.at_once.fetch_max(self.under_way, Ordering::Relaxed);
        Some(request)
    }

    fn answer(&mut self, index: usize, read: io::Result<&[u8]>) {
        self.under_way -= 1;
        self.reads.answer(index, read);
    }
}
