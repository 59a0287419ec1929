//! The real file system: std's files, and the few system calls that std does
//! not offer.
//!
//! Every append is one `write(2)` (more only where the kernel takes less than
//! all), or a copy into a shared mapping where that was asked for: when it
//! returns, the bytes are the kernel's, and a killed process loses none of
//! them. Nothing here keeps a buffer.

use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::{self, IoSlice};
use std::os::fd::IntoRawFd;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Arc;

use rustix::fs::FallocateFlags;
use rustix::io::Errno;

use super::reads::read_with_hints;
use super::{
    Capabilities, FileLock, Fs, LockError, ReadRequest, ReadStream, ReadableFile, WritableFile,
};

mod direct;
#[cfg(target_os = "linux")]
mod in_flight;
mod lock;
mod mapped;
mod mapped_reader;
#[cfg(target_os = "linux")]
mod ring;

use mapped::Mapping;
use mapped_reader::MappedReader;

/// Descriptors that are asked for if the hard limit allows more: programs that
/// walk over all possible descriptors should not take for ever.
const DESCRIPTORS_WANTED: u64 = 1 << 16;

/// Longer appends are written by `write(2)` also where there is a mapping: the
/// call is little beside the copy then, and each page that is mapped costs more
/// than one that is written. (ext4, Linux 6.18, in new files and in recycled
/// ones: 1,000 bytes 0.56 and 0.35 us mapped, 0.67 and 0.43 us written; 8,000
/// bytes 4.2 and 2.3 us mapped, 3.0 and 2.0 us written.)
const COPIED_BYTES_MAX: usize = 8 << 10;

/// What is appended after a sync finds so much of a new file filled with zeros: one sync
/// in 64 pays for it. Longer fillings are no faster on the whole, and are seen.
const FILLED_BYTES: u64 = 256 << 10;

/// A mapped file whose room was too little gets an eighth more at a time, at most this: a
/// log has more bytes than its memtable where entries are short or synced one by one.
const ADDED_BYTES_MAX: u64 = 2 << 20;

/// Before longer appends nothing is filled: their own syncs change metadata anyway, and few
/// of them would follow into what is filled. (Synced batches of 35 kB are 1.33 times as
/// fast with zeros before them, of 120 kB as fast, of 1 MB 1.05 times as fast without.)
const FILLED_BEFORE_BYTES_MAX: usize = 128 << 10;

/// Reads of a file leave no note of when it was read last. Whether one is due the kernel
/// looks up at each read otherwise, which is 2 % of a lookup in the page cache.
#[cfg(target_os = "linux")]
const NO_ACCESS_TIMES: i32 = libc::O_NOATIME;
#[cfg(not(target_os = "linux"))]
const NO_ACCESS_TIMES: i32 = 0;

/// The file system of the operating system.
#[derive(Clone, Copy, Debug, Default)]
pub struct OsFs;

impl OsFs {
    /// The file system of the operating system.
    pub fn new() -> OsFs {
        OsFs
    }
}

impl Fs for OsFs {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            overwriting: true,
            preallocation: true,
            hard_links: true,
            truncation: true,
            mapping: cfg!(target_pointer_width = "64"),
            direct_io: cfg!(target_os = "linux"),
        }
    }

    /// Raises the process's soft limit, as far as the hard one and
    /// 65,536 allow.
    fn open_files_max(&self) -> Option<usize> {
        use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
        let limit = getrlimit(Resource::Nofile);
        let current = limit.current?;
        let wanted = limit.maximum.map_or(DESCRIPTORS_WANTED, |hard| hard.min(DESCRIPTORS_WANTED));
        let raised = Rlimit { current: Some(wanted), ..limit };
        let is_raised = wanted > current && setrlimit(Resource::Nofile, raised).is_ok();
        usize::try_from(if is_raised { wanted } else { current }).ok()
    }

    fn create(&self, path: &Path) -> io::Result<Box<dyn WritableFile>> {
        // Readable too: a shared mapping must be.
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(true);
        Ok(Box::new(OsWriter::new(options.open(path)?)))
    }

    fn overwrite(&self, path: &Path) -> io::Result<Box<dyn WritableFile>> {
        let file = OpenOptions::new().read(true).write(true).open(path)?;
        Ok(Box::new(OsWriter::new(file)))
    }

    fn open(&self, path: &Path) -> io::Result<Arc<dyn ReadableFile>> {
        Ok(Arc::new(OsReader(open_for_reads(path, 0)?)))
    }

    fn open_mapped(&self, path: &Path) -> io::Result<Arc<dyn ReadableFile>> {
        match MappedReader::new(open_for_reads(path, 0)?) {
            Ok(mapped) => Ok(Arc::new(mapped)),
            Err(file) => Ok(Arc::new(OsReader(file))),
        }
    }

    #[cfg(target_os = "linux")]
    fn open_direct(&self, path: &Path) -> io::Result<Arc<dyn ReadableFile>> {
        let file = open_for_reads(path, libc::O_DIRECT)?;
        // Nobody will read what writing the file has left in the page cache.
        let _ = rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed);
        Ok(Arc::new(direct::DirectFile(Arc::new(file))))
    }

    fn read_many(&self, reads: &mut dyn ReadStream) {
        let Some(first) = reads.next() else { return };
        let is_direct = direct::is_direct(&*first.file);
        let mut reads = Begun { first: Some(first), reads };
        match is_direct {
            true => direct::read_many(&mut reads),
            false => read_with_hints(&mut reads),
        }
    }

    fn list(&self, directory: &Path) -> io::Result<Vec<String>> {
        // A name that is not UTF-8 is none of ours; it is listed all the same,
        // with a replacement character, so that the directory isn't called empty.
        let name = |name: OsString| name.to_string_lossy().into_owned();
        std::fs::read_dir(directory)?.map(|entry| Ok(name(entry?.file_name()))).collect()
    }

    fn length(&self, path: &Path) -> io::Result<u64> {
        Ok(std::fs::metadata(path)?.len())
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        std::fs::remove_file(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        std::fs::rename(from, to)
    }

    fn hard_link(&self, from: &Path, to: &Path) -> io::Result<()> {
        std::fs::hard_link(from, to)
    }

    fn create_directory(&self, path: &Path) -> io::Result<()> {
        std::fs::create_dir_all(path)
    }

    fn remove_directory(&self, path: &Path) -> io::Result<()> {
        std::fs::remove_dir(path)
    }

    fn sync_directory(&self, path: &Path) -> io::Result<()> {
        // `fsync` on a descriptor of the directory makes its entries durable
        // (fsync(2): a file's own fsync does not).
        let here = path.as_os_str().is_empty();
        File::open(if here { Path::new(".") } else { path })?.sync_all()
    }

    fn lock(&self, path: &Path) -> Result<Box<dyn FileLock>, LockError> {
        Ok(Box::new(lock::lock(path)?))
    }
}

fn open_for_reads(path: &Path, flags: i32) -> io::Result<File> {
    let open = |flags| OpenOptions::new().read(true).custom_flags(flags).open(path);
    match open(flags | NO_ACCESS_TIMES) {
        // Only the file's owner may ask for that (open(2)).
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => open(flags),
        opened => opened,
    }
}

/// A stream whose first read was looked at.
struct Begun<'r> {
    first: Option<ReadRequest>,
    reads: &'r mut dyn ReadStream,
}

impl ReadStream for Begun<'_> {
    fn next(&mut self) -> Option<ReadRequest> {
        self.first.take().or_else(|| self.reads.next())
    }

    fn answer(&mut self, index: usize, read: io::Result<&[u8]>) {
        self.reads.answer(index, read);
    }
}

#[derive(Debug)]
struct OsReader(File);

impl ReadableFile for OsReader {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.read_at(buffer, offset)
    }

    fn length(&self) -> io::Result<u64> {
        Ok(self.0.metadata()?.len())
    }

    fn read_if_cached(&self, offset: u64, buffer: &mut [u8]) -> bool {
        use rustix::io::{IoSliceMut, ReadWriteFlags, preadv2};
        let wanted = buffer.len();
        // Any failure is met again, and told, by the read that waits.
        let mut buffers = [IoSliceMut::new(buffer)];
        preadv2(&self.0, &mut buffers, offset, ReadWriteFlags::NOWAIT) == Ok(wanted)
    }

    fn will_need(&self, offset: u64, length: u64) {
        let length = std::num::NonZeroU64::new(length);
        // A hint: whether the kernel took it changes nothing that is promised.
        let _ = rustix::fs::fadvise(&self.0, offset, length, rustix::fs::Advice::WillNeed);
    }
}

#[derive(Debug)]
struct OsWriter {
    file: File,
    /// Where the next byte goes.
    position: u64,
    /// Takes appends instead of `write(2)`, as long as it can.
    mapping: Option<Mapping>,
    /// Nothing was appended since the last sync.
    is_synced: bool,
    /// Up to here the file's blocks have been written before, if only with zeros.
    filled_bytes: u64,
}

impl OsWriter {
    fn new(file: File) -> OsWriter {
        OsWriter { file, position: 0, mapping: None, is_synced: false, filled_bytes: 0 }
    }

    /// Makes ready for an append of `length` bytes. True if it is the first since a sync.
    #[inline]
    fn fill_after_sync(&mut self, length: usize) -> bool {
        let is_synced = std::mem::take(&mut self.is_synced);
        let end = self.position + length as u64;
        if is_synced && length <= FILLED_BEFORE_BYTES_MAX && end > self.filled_bytes {
            self.fill(end);
        }
        is_synced
    }

    /// Sees to it that blocks up to `end` have been written before, and some more, so
    /// that syncing what comes there changes no metadata. Of a mapped file, which has its
    /// length already.
    fn fill(&mut self, end: u64) {
        if self.mapping.as_ref().is_some_and(|mapping| end > mapping.limit()) {
            self.add_room();
        }
        let Some(mapping) = &self.mapping else { return };
        let filled_bytes = end.next_multiple_of(FILLED_BYTES).min(mapping.limit());
        let zeros = vec![0; (filled_bytes - self.position) as usize];
        // Where this does not work, the write that follows will tell.
        if self.file.write_all_at(&zeros, self.position).is_ok() {
            self.filled_bytes = filled_bytes;
        }
    }

    /// Gives the mapped file more blocks, or ends its mapping.
    #[cold]
    fn add_room(&mut self) {
        let added_bytes = (self.position / 8).clamp(FILLED_BYTES, ADDED_BYTES_MAX);
        let length = (self.position + added_bytes).next_multiple_of(FILLED_BYTES);
        match (allocate(&self.file, FallocateFlags::empty(), length), &mut self.mapping) {
            (Ok(true), Some(mapping)) => mapping.extend(length),
            // `write(2)` will tell what is wrong, if anything is.
            _ => self.mapping = None,
        }
    }

    /// As much of `bytes` as can be copied; returns how many were.
    #[inline]
    fn copy(&mut self, bytes: &[u8]) -> usize {
        let mut done = 0;
        while let Some(mapping) = &mut self.mapping {
            if done == bytes.len() {
                break;
            }
            match mapping.copy(&self.file, self.position, &bytes[done..]) {
                Ok(0) => self.add_room(),
                Ok(count) => {
                    done += count;
                    self.position += count as u64;
                }
                // `write(2)` will tell what is wrong, if anything is.
                Err(_) => self.mapping = None,
            }
        }
        done
    }
}

impl WritableFile for OsWriter {
    #[inline]
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        let is_synced = self.fill_after_sync(bytes.len());
        // A file's head is written: who writes nothing more pays for no window. So is what
        // follows a sync: where each append is synced, writing costs less than the fault of
        // a page that was written back.
        let is_copied = self.position > 0 && !is_synced && bytes.len() <= COPIED_BYTES_MAX;
        let done = if is_copied { self.copy(bytes) } else { 0 };
        let bytes = &bytes[done..];
        if bytes.is_empty() {
            return Ok(());
        }
        // std repeats the call where it was interrupted or took only a part.
        self.file.write_all_at(bytes, self.position)?;
        self.position += bytes.len() as u64;
        Ok(())
    }

    /// Written by `pwritev(2)`, whatever its length: who has parts has long ones.
    fn append_parts(&mut self, parts: &[&[u8]]) -> io::Result<()> {
        self.fill_after_sync(parts.iter().map(|part| part.len()).sum());
        let mut left: Vec<IoSlice<'_>> = parts.iter().map(|part| IoSlice::new(part)).collect();
        let mut left = left.as_mut_slice();
        // Leaves out empty parts: a call with nothing else would write nothing.
        IoSlice::advance_slices(&mut left, 0);
        while !left.is_empty() {
            let written = match rustix::io::pwritev(&self.file, left, self.position) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => written,
                Err(Errno::INTR) => continue,
                Err(error) => return Err(error.into()),
            };
            self.position += written as u64;
            IoSlice::advance_slices(&mut left, written);
        }
        Ok(())
    }

    fn sync(&mut self) -> io::Result<()> {
        // `fdatasync` leaves out only what reading the data back does not need
        // (timestamps); a changed length is written (fdatasync(2)), so that an
        // append is as durable as after `fsync`. It writes mapped pages too.
        self.file.sync_data()?;
        self.is_synced = true;
        Ok(())
    }

    fn preallocate(&mut self, length: u64) -> io::Result<()> {
        allocate(&self.file, FallocateFlags::KEEP_SIZE, length).map(|_| ())
    }

    fn preallocate_mapped(&mut self, length: u64) -> io::Result<()> {
        let there = self.file.metadata()?.len();
        if there < length && !allocate(&self.file, FallocateFlags::empty(), length)? {
            return Ok(());
        }
        self.filled_bytes = there;
        self.mapping = Mapping::new(&self.file, length.max(there));
        Ok(())
    }

    #[cfg(target_os = "linux")]
    fn write_back(&mut self, offset: u64, length: u64) {
        use std::os::fd::AsRawFd;
        let (Ok(offset), Ok(length)) = (offset.try_into(), length.try_into()) else { return };
        let descriptor = self.file.as_raw_fd();
        // SAFETY: the descriptor is open for as long as `self.file` lives, and the
        // call takes nothing else. Whether it fails changes nothing: see the trait.
        unsafe { libc::sync_file_range(descriptor, offset, length, libc::SYNC_FILE_RANGE_WRITE) };
    }

    fn truncate(&mut self, length: u64) -> io::Result<()> {
        // Beyond the file's end a mapping has no pages.
        self.mapping = None;
        self.file.set_len(length)?;
        self.position = length;
        Ok(())
    }

    fn close(self: Box<Self>) -> io::Result<()> {
        let OsWriter { file, mapping, .. } = *self;
        drop(mapping);
        let descriptor = file.into_raw_fd();
        // SAFETY: `into_raw_fd` gave up the only owner of this open
        // descriptor, so nothing uses or closes it after this call.
        match unsafe { libc::close(descriptor) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

/// Gives the file blocks for its first `length` bytes. False where that does
/// not work or there is no room for all of it: the appends will tell if there
/// is none for what is really written.
fn allocate(file: &File, flags: FallocateFlags, length: u64) -> io::Result<bool> {
    if length == 0 {
        return Ok(false);
    }
    all_or_nothing(file, || rustix::fs::fallocate(file, flags, 0, length))
}

/// Whether `allocate` could give `file` its blocks. Where there is no room for all, the
/// file has none of them: ext4 keeps those that it found, and would leave a disk full
/// for the sake of bytes that may never be written.
fn all_or_nothing(
    file: &File,
    allocate: impl FnOnce() -> rustix::io::Result<()>,
) -> io::Result<bool> {
    let there = file.metadata()?.len();
    match allocate() {
        Ok(()) => Ok(true),
        Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::INTR) => Ok(false),
        Err(Errno::NOSPC | Errno::DQUOT | Errno::FBIG) => {
            // Frees also blocks behind a length that is the same. Where it fails, the
            // file has more than it needs, which does no harm to it.
            let _ = file.set_len(there);
            Ok(false)
        }
        Err(error) => Err(error.into()),
    }
}

#[cfg(all(test, not(simulation)))]
mod tests;
