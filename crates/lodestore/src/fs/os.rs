//! The real file system: std's files, and the few system calls that std does
//! not offer.
//!
//! Every append is one `write(2)` (more only where the kernel takes less than
//! all): when it returns, the bytes are the kernel's, and a killed process
//! loses none of them. Nothing here keeps a buffer.

use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::{self, Seek, SeekFrom, Write};
use std::os::fd::IntoRawFd;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

use super::{Capabilities, FileLock, Fs, LockError, ReadableFile, WritableFile};

mod lock;

/// Descriptors that are asked for if the hard limit allows more: programs that
/// walk over all possible descriptors should not take for ever.
const DESCRIPTORS_WANTED: u64 = 1 << 16;

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
            // `ReadableFile` offers neither yet.
            mapping: false,
            direct_io: false,
        }
    }

    /// Raises the process's soft limit, as far as the hard one and
    /// [`DESCRIPTORS_WANTED`] allow.
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
        Ok(Box::new(OsWriter(File::create(path)?)))
    }

    fn overwrite(&self, path: &Path) -> io::Result<Box<dyn WritableFile>> {
        Ok(Box::new(OsWriter(OpenOptions::new().write(true).open(path)?)))
    }

    fn open(&self, path: &Path) -> io::Result<Arc<dyn ReadableFile>> {
        Ok(Arc::new(OsReader(File::open(path)?)))
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

#[derive(Debug)]
struct OsReader(File);

impl ReadableFile for OsReader {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.read_at(buffer, offset)
    }

    fn length(&self) -> io::Result<u64> {
        Ok(self.0.metadata()?.len())
    }

    fn will_need(&self, offset: u64, length: u64) {
        let length = std::num::NonZeroU64::new(length);
        // A hint: whether the kernel took it changes nothing that is promised.
        let _ = rustix::fs::fadvise(&self.0, offset, length, rustix::fs::Advice::WillNeed);
    }
}

#[derive(Debug)]
struct OsWriter(File);

impl WritableFile for OsWriter {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        // std repeats the call where it was interrupted or took only a part.
        self.0.write_all(bytes)
    }

    fn sync(&mut self) -> io::Result<()> {
        // `fdatasync` leaves out only what reading the data back does not need
        // (timestamps); a changed length is written (fdatasync(2)), so that an
        // append is as durable as after `fsync`.
        self.0.sync_data()
    }

    fn preallocate(&mut self, length: u64) -> io::Result<()> {
        use rustix::fs::FallocateFlags;
        use rustix::io::Errno;
        if length == 0 {
            return Ok(());
        }
        match rustix::fs::fallocate(&self.0, FallocateFlags::KEEP_SIZE, 0, length) {
            // Not able, or no room for all of it: the appends will tell if
            // there is no room for what is really written.
            Ok(())
            | Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::INTR)
            | Err(Errno::NOSPC | Errno::DQUOT | Errno::FBIG) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    fn truncate(&mut self, length: u64) -> io::Result<()> {
        self.0.set_len(length)?;
        self.0.seek(SeekFrom::Start(length))?;
        Ok(())
    }

    fn close(self: Box<Self>) -> io::Result<()> {
        let descriptor = self.0.into_raw_fd();
        // SAFETY: `into_raw_fd` gave up the only owner of this open
        // descriptor, so nothing uses or closes it after this call.
        match unsafe { libc::close(descriptor) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

#[cfg(all(test, not(simulation)))]
mod tests;
