//! A cap on open files, around another file system.
//!
//! Files that are open for reading are closed when there are too many, those
//! first that were not read for a while (CLOCK), and opened again when they
//! are read. Whoever opened one does not notice: it goes by its path. A call
//! that finds no descriptor free closes some of them and is tried again.
//!
//! Invariants: a file is not closed under a reader that is in it; a path that
//! is open for reading keeps naming the same file, which is the caller's to
//! see to.

use std::io;
use std::path::{Path, PathBuf};

use super::{
    Access, BegunRead, Capabilities, FileLock, Fs, LockError, ReadRequest, ReadStream,
    ReadableFile, WritableFile,
};
use crate::stats::{Counter, Statistics};
use crate::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use crate::sync::{Arc, Mutex, Published};

/// How often a call that finds no descriptor is tried; each time, a part of
/// what others hold has been closed.
const TRIES_MAX: usize = 8;

/// The place of a file that is not open.
const CLOSED: usize = usize::MAX;

type Descriptor = Arc<dyn ReadableFile>;

/// A file system that keeps at most so many files open for reading. Clones
/// share the cap.
#[derive(Clone, Debug)]
pub(crate) struct LimitedFs {
    inner: Arc<dyn Fs>,
    open: Arc<OpenFiles>,
}

impl LimitedFs {
    /// Passes everything on to `inner`, with at most `files_max` files (at
    /// least one) open for reading, give or take one a thread.
    pub(crate) fn new(
        inner: Arc<dyn Fs>,
        files_max: usize,
        statistics: &Arc<Statistics>,
    ) -> LimitedFs {
        let (files_max, ring) = (AtomicUsize::new(files_max.max(1)), Mutex::default());
        let statistics = Arc::clone(statistics);
        LimitedFs { inner, open: Arc::new(OpenFiles { files_max, ring, statistics }) }
    }

    /// Changes the cap; files that are too many are closed at once.
    pub(crate) fn set_files_max(&self, files_max: usize) {
        let files_max = files_max.max(1);
        self.open.files_max.store(files_max, Ordering::Relaxed);
        let mut ring = self.open.ring.lock();
        self.open.close_from(&mut ring, files_max.saturating_add(1));
    }

    /// Calls `call` again while it finds no descriptor and some can be freed.
    fn with_descriptors<T>(&self, mut call: impl FnMut(&dyn Fs) -> io::Result<T>) -> io::Result<T> {
        for _ in 1..TRIES_MAX {
            match call(&*self.inner) {
                Err(error) if is_out_of_descriptors(&error) && self.open.close_some() => {}
                result => return result,
            }
        }
        call(&*self.inner)
    }

    /// The descriptor of a file that had to be closed.
    fn reopen(&self, slot: &Arc<Slot>) -> io::Result<Descriptor> {
        let file = self.with_descriptors(|fs| slot.access.open(fs, &slot.path))?;
        Ok(self.open.put(slot, file))
    }
}

/// True for EMFILE and ENFILE: the process or the system has no descriptor.
pub(crate) fn is_out_of_descriptors(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EMFILE | libc::ENFILE))
}

/// The files that are open for reading.
#[derive(Debug)]
struct OpenFiles {
    /// Changed before the ring's lock is taken, and asked for under it.
    files_max: AtomicUsize,
    ring: Mutex<Ring>,
    statistics: Arc<Statistics>,
}

/// The clock: a hand goes round the open files and closes the first that was
/// not read since it last came by.
#[derive(Debug, Default)]
struct Ring {
    places: Vec<Option<Arc<Slot>>>,
    free: Vec<usize>,
    hand: usize,
    open: usize,
}

/// What is known of a file that somebody reads.
#[derive(Debug)]
struct Slot {
    path: PathBuf,
    access: Access,
    /// `None` while it is closed.
    descriptor: Published<Option<Descriptor>>,
    /// Read since the hand last came by.
    used: AtomicBool,
    /// Where it is in the ring. Changed only under the ring's lock.
    place: AtomicUsize,
}

impl OpenFiles {
    /// Notes that a file is open, and closes others as the cap demands. If
    /// another thread was faster, its descriptor serves.
    fn put(&self, slot: &Arc<Slot>, file: Descriptor) -> Descriptor {
        let mut ring = self.ring.lock();
        if let Some(known) = &**slot.descriptor.load() {
            return Arc::clone(known);
        }
        self.close_from(&mut ring, self.files_max());
        slot.descriptor.store(Arc::new(Some(Arc::clone(&file))));
        slot.used.store(true, Ordering::Relaxed);
        ring.put(slot);
        file
    }

    fn files_max(&self) -> usize {
        self.files_max.load(Ordering::Relaxed)
    }

    /// Closes files until fewer than `files` are open.
    fn close_from(&self, ring: &mut Ring, files: usize) {
        while ring.open >= files && ring.close_next() {
            self.statistics.add(Counter::FilesClosed, 1);
        }
    }

    /// Closes a quarter of what is open; false if there was nothing to close.
    fn close_some(&self) -> bool {
        let mut ring = self.ring.lock();
        let wanted = ring.open.div_ceil(4);
        let closed = (0..wanted).take_while(|_| ring.close_next()).count();
        self.statistics.add(Counter::FilesClosed, closed as u64);
        closed > 0
    }

    /// Forgets a file that nobody will read any more.
    fn forget(&self, slot: &Slot) {
        let mut ring = self.ring.lock();
        let place = slot.place.load(Ordering::Relaxed);
        if place != CLOSED {
            ring.empty(place);
        }
    }
}

impl Ring {
    fn put(&mut self, slot: &Arc<Slot>) {
        let place = self.free.pop().unwrap_or_else(|| {
            self.places.push(None);
            self.places.len() - 1
        });
        slot.place.store(place, Ordering::Relaxed);
        self.places[place] = Some(Arc::clone(slot));
        self.open += 1;
    }

    fn empty(&mut self, place: usize) {
        if let Some(slot) = self.places[place].take() {
            slot.place.store(CLOSED, Ordering::Relaxed);
            self.free.push(place);
            self.open -= 1;
        }
    }

    /// Closes the next file; false if none is open. A reader that is in it
    /// has the descriptor until it is done.
    fn close_next(&mut self) -> bool {
        while self.open > 0 {
            let place = self.hand % self.places.len();
            self.hand = place + 1;
            let Some(slot) = &self.places[place] else { continue };
            if slot.used.swap(false, Ordering::Relaxed) {
                continue;
            }
            slot.descriptor.store(Arc::new(None));
            self.empty(place);
            return true;
        }
        false
    }
}

/// A file that may be closed and opened again between two reads.
#[derive(Debug)]
struct LimitedFile {
    fs: LimitedFs,
    slot: Arc<Slot>,
}

impl LimitedFile {
    /// Calls `read` with the open file, which stays open meanwhile.
    fn with<T>(&self, read: impl FnOnce(&dyn ReadableFile) -> io::Result<T>) -> io::Result<T> {
        {
            let descriptor = self.slot.descriptor.load();
            if let Some(file) = &**descriptor {
                self.slot.note_use();
                return read(&**file);
            }
        }
        read(&*self.fs.reopen(&self.slot)?)
    }
}

impl Slot {
    /// Writes only if there is something to change: readers of one file do
    /// not take a cache line from each other.
    fn note_use(&self) {
        if !self.used.load(Ordering::Relaxed) {
            self.used.store(true, Ordering::Relaxed);
        }
    }
}

impl Drop for LimitedFile {
    fn drop(&mut self) {
        self.fs.open.forget(&self.slot);
    }
}

impl ReadableFile for LimitedFile {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        self.with(|file| file.read_at(offset, buffer))
    }

    fn length(&self) -> io::Result<u64> {
        self.with(|file| file.length())
    }

    fn read_if_cached(&self, offset: u64, buffer: &mut [u8]) -> bool {
        self.with(|file| Ok(file.read_if_cached(offset, buffer))).unwrap_or(false)
    }

    fn begin_read(&self, offset: u64, length: usize) -> Option<Box<dyn BegunRead>> {
        self.with(|file| Ok(file.begin_read(offset, length))).ok().flatten()
    }

    fn will_need(&self, offset: u64, length: u64) {
        // A hint: a file that does not open now is told nothing.
        let _ = self.with(|file| {
            file.will_need(offset, length);
            Ok(())
        });
    }

    fn hold(&self) -> io::Result<Option<Descriptor>> {
        if let Some(file) = &**self.slot.descriptor.load() {
            self.slot.note_use();
            return Ok(Some(Arc::clone(file)));
        }
        self.fs.reopen(&self.slot).map(Some)
    }
}

impl Fs for LimitedFs {
    fn capabilities(&self) -> Capabilities {
        self.inner.capabilities()
    }

    fn open_files_max(&self) -> Option<usize> {
        self.inner.open_files_max()
    }

    fn create(&self, path: &Path) -> io::Result<Box<dyn WritableFile>> {
        self.with_descriptors(|fs| fs.create(path))
    }

    fn overwrite(&self, path: &Path) -> io::Result<Box<dyn WritableFile>> {
        self.with_descriptors(|fs| fs.overwrite(path))
    }

    fn open(&self, path: &Path) -> io::Result<Descriptor> {
        self.open_as(path, Access::Buffered)
    }

    fn open_direct(&self, path: &Path) -> io::Result<Descriptor> {
        self.open_as(path, Access::Direct)
    }

    fn open_mapped(&self, path: &Path) -> io::Result<Descriptor> {
        self.open_as(path, Access::Mapped)
    }

    /// Passes the reads on with the files below, as many at once as leaves
    /// half of the cap to others.
    fn read_many(&self, reads: &mut dyn ReadStream) {
        let under_way_max = (self.open.files_max() / 2).max(1);
        let mut held =
            HeldReads { reads, under_way_max, under_way: 0, asked: 0, indices: Vec::new() };
        self.inner.read_many(&mut held);
    }

    fn list(&self, directory: &Path) -> io::Result<Vec<String>> {
        self.with_descriptors(|fs| fs.list(directory))
    }

    fn known_as(&self, path: &Path) -> PathBuf {
        self.inner.known_as(path)
    }

    fn length(&self, path: &Path) -> io::Result<u64> {
        self.inner.length(path)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.inner.remove(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.inner.rename(from, to)
    }

    fn hard_link(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.inner.hard_link(from, to)
    }

    fn create_directory(&self, path: &Path) -> io::Result<()> {
        self.inner.create_directory(path)
    }

    fn remove_directory(&self, path: &Path) -> io::Result<()> {
        self.inner.remove_directory(path)
    }

    fn sync_directory(&self, path: &Path) -> io::Result<()> {
        self.with_descriptors(|fs| fs.sync_directory(path))
    }

    fn lock(&self, path: &Path) -> Result<Box<dyn FileLock>, LockError> {
        self.inner.lock(path)
    }
}

impl LimitedFs {
    fn open_as(&self, path: &Path, access: Access) -> io::Result<Descriptor> {
        let slot = Arc::new(Slot {
            path: path.to_path_buf(),
            access,
            descriptor: Published::new(Arc::new(None)),
            used: AtomicBool::new(false),
            place: AtomicUsize::new(CLOSED),
        });
        self.reopen(&slot)?;
        Ok(Arc::new(LimitedFile { fs: self.clone(), slot }))
    }
}

/// A stream of reads with the files below.
struct HeldReads<'r> {
    reads: &'r mut dyn ReadStream,
    under_way_max: usize,
    under_way: usize,
    /// How many reads the stream has given.
    asked: usize,
    /// The stream's number of each read that was passed on.
    indices: Vec<usize>,
}

impl ReadStream for HeldReads<'_> {
    fn next(&mut self) -> Option<ReadRequest> {
        while self.under_way < self.under_way_max {
            let read = self.reads.next()?;
            let index = self.asked;
            self.asked += 1;
            match read.file.hold() {
                Ok(below) => {
                    self.under_way += 1;
                    self.indices.push(index);
                    return Some(ReadRequest { file: below.unwrap_or(read.file), ..read });
                }
                Err(error) => self.reads.answer(index, Err(error)),
            }
        }
        None
    }

    fn answer(&mut self, index: usize, read: io::Result<&[u8]>) {
        self.under_way -= 1;
        self.reads.answer(self.indices[index], read);
    }
}

#[cfg(all(test, simulation))]
mod simulation;
#[cfg(test)]
mod tests;
