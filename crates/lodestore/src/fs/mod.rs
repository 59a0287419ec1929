//! Files: everything that the engine reads or writes goes through [`Fs`].
//!
//! The least that a file system must do is append to new files, read any
//! range, rename, remove and list; LevelDB's `Env` can do that. What else it
//! can do it says in [`Capabilities`], and the engine does without where it
//! can't.
//!
//! | part | job |
//! |---|---|
//! | `reads` | many reads at once |
//! | `os` | the real file system |
//! | `mem` | files in memory that can lose what was not synced |
//! | `fault` | errors at chosen calls, around another `Fs` |
//! | `limited` | a cap on open files, around another `Fs` |
//! | `overlay` | changes that stay in memory, around another `Fs` |

use std::any::Any;
use std::fmt::Debug;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

mod reads;
mod os;
mod mem;
mod fault;
mod limited;
mod overlay;

pub use fault::{Fault, FaultFs, Operation};
pub(crate) use limited::{LimitedFs, is_out_of_descriptors};
pub use mem::MemFs;
pub use os::OsFs;
pub(crate) use overlay::OverlayFs;
#[cfg(test)]
pub(crate) use reads::ReadList;
pub use reads::{ReadRequest, ReadStream};

/// What a file system can do beyond the least.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Capabilities {
    /// [`Fs::overwrite`] works: logs can be recycled.
    pub overwriting: bool,
    /// [`WritableFile::preallocate`] has an effect.
    pub preallocation: bool,
    /// [`Fs::hard_link`] works: checkpoints need not copy.
    pub hard_links: bool,
    /// [`WritableFile::truncate`] works: a failed append can be cut off.
    pub truncation: bool,
    /// [`Fs::open_mapped`] maps files into memory.
    pub mapping: bool,
    /// Files can be read past the page cache.
    pub direct_io: bool,
}

/// How a file that is opened for reading is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    /// Through the page cache, a call for each read.
    Buffered,
    /// Past the page cache.
    Direct,
    /// Small reads are copied out of a mapping.
    Mapped,
}

impl Access {
    /// Opens `path` so.
    ///
    /// # Errors
    /// Those of the method of [`Fs`].
    pub(crate) fn open(self, fs: &dyn Fs, path: &Path) -> io::Result<Arc<dyn ReadableFile>> {
        match self {
            Access::Buffered => fs.open(path),
            Access::Direct => fs.open_direct(path),
            Access::Mapped => fs.open_mapped(path),
        }
    }
}

/// A file system. All methods may be called from any thread.
pub trait Fs: Send + Sync + Debug {
    /// What this file system can do beyond the least.
    fn capabilities(&self) -> Capabilities;

    /// How many files may be open at once, after whatever can be done to allow
    /// more. `None`: no limit is known.
    fn open_files_max(&self) -> Option<usize> {
        None
    }

    /// Creates `path` for writing; a file that is there is emptied.
    fn create(&self, path: &Path) -> io::Result<Box<dyn WritableFile>>;

    /// Opens `path` for writing from its start, keeping its length and what is
    /// not written over. Needs [`Capabilities::overwriting`].
    fn overwrite(&self, path: &Path) -> io::Result<Box<dyn WritableFile>>;

    /// Opens `path` for reading at any offset.
    fn open(&self, path: &Path) -> io::Result<Arc<dyn ReadableFile>>;

    /// The same, for reads past the page cache. Needs
    /// [`Capabilities::direct_io`]; a file that can't be read so gives
    /// `Unsupported` or `InvalidInput`.
    fn open_direct(&self, path: &Path) -> io::Result<Arc<dyn ReadableFile>> {
        let _ = path;
        Err(io::ErrorKind::Unsupported.into())
    }

    /// The same, for small reads by copying out of a mapping of the file, which must
    /// not change while it is open. Reads as [`Fs::open`] does where there can be no
    /// mapping, as by default.
    fn open_mapped(&self, path: &Path) -> io::Result<Arc<dyn ReadableFile>> {
        self.open(path)
    }

    /// The path by which a user knows the file `path`: what errors about its content
    /// name. It is another one only where a file system gives files names of its own.
    fn known_as(&self, path: &Path) -> PathBuf {
        path.to_path_buf()
    }

    /// Does all reads of a stream, perhaps many at once and in any order: until it
    /// gives none any more and all are answered.
    fn read_many(&self, reads: &mut dyn ReadStream) {
        reads::read_with_hints(reads);
    }

    /// Names of the entries of a directory, in no particular order.
    fn list(&self, directory: &Path) -> io::Result<Vec<String>>;

    /// Length of a file in bytes.
    fn length(&self, path: &Path) -> io::Result<u64>;

    /// Removes a file.
    fn remove(&self, path: &Path) -> io::Result<()>;

    /// Renames a file, replacing what is at `to`, atomically.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Gives a file a second name. Needs [`Capabilities::hard_links`].
    fn hard_link(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Creates a directory and its parents; no error if it is there.
    fn create_directory(&self, path: &Path) -> io::Result<()>;

    /// Removes an empty directory.
    fn remove_directory(&self, path: &Path) -> io::Result<()>;

    /// Makes the names in a directory durable. The empty path is the directory
    /// that relative paths start from.
    fn sync_directory(&self, path: &Path) -> io::Result<()>;

    /// Locks `path` for this opener, creating it if need be; the lock lasts
    /// until the returned value is dropped or the process ends, and excludes
    /// every other opener in this process and in others, a LevelDB included.
    /// Never waits.
    fn lock(&self, path: &Path) -> Result<Box<dyn FileLock>, LockError>;
}

/// A held lock; dropping it releases.
pub trait FileLock: Send + Sync + Debug {}

/// Why [`Fs::lock`] gave no lock.
#[derive(Debug)]
pub enum LockError {
    /// Another opener holds it.
    Held {
        /// The process, where the system tells; this one's own id if the
        /// holder is in this process.
        holder_pid: Option<u32>,
    },
    /// The lock file could not be used.
    Io(io::Error),
}

/// A file open for reading.
pub trait ReadableFile: Any + Send + Sync + Debug {
    /// Reads up to `buffer.len()` bytes at `offset`; fewer only at the end of
    /// the file or when interrupted, 0 only at the end.
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize>;

    /// Length in bytes now.
    fn length(&self) -> io::Result<u64>;

    /// The open file behind one that is opened only while it is read, for an
    /// [`Fs`] that must see its own; it stays open while it is kept. `None` if
    /// this is the file itself.
    fn hold(&self) -> io::Result<Option<Arc<dyn ReadableFile>>> {
        Ok(None)
    }

    /// Fills `buffer` from `offset` on if that does not wait for a device.
    /// False where that is not so, or not known; `buffer` may have changed.
    fn read_if_cached(&self, offset: u64, buffer: &mut [u8]) -> bool {
        let _ = (offset, buffer);
        false
    }

    /// Begins to read `length` bytes at `offset`, to be waited for later. `None` where
    /// nothing would go on meanwhile, or where something keeps what was read before
    /// anyway.
    fn begin_read(&self, offset: u64, length: usize) -> Option<Box<dyn BegunRead>> {
        let _ = (offset, length);
        None
    }

    /// Says that `length` bytes at `offset` will be wanted soon.
    fn will_need(&self, offset: u64, length: u64) {
        let _ = (offset, length);
    }
}

/// A read that goes on. Dropping it gives the read up.
pub trait BegunRead: Send + Debug {
    /// Waits until it is done. Gives the bytes as [`ReadableFile::read_at`] does, those
    /// at the beginning if `buffer` is shorter than what was asked for.
    fn finish(self: Box<Self>, buffer: &mut [u8]) -> io::Result<usize>;
}

/// A file open for writing in order. Dropping it closes it; an error that
/// must be seen is seen by calling [`WritableFile::close`].
pub trait WritableFile: Send + Debug {
    /// Writes all of `bytes` at the current position. When this returns, a
    /// killed process loses none of them. After an error the position and how
    /// much was written are unknown.
    fn append(&mut self, bytes: &[u8]) -> io::Result<()>;

    /// As [`WritableFile::append`], of all `parts` in a row.
    fn append_parts(&mut self, parts: &[&[u8]]) -> io::Result<()> {
        self.append(&parts.concat())
    }

    /// Makes what was appended survive power loss. After an error nothing may
    /// be assumed of any byte not synced before; never call it again then.
    fn sync(&mut self) -> io::Result<()>;

    /// Asks for room for `length` bytes from the start, without changing the
    /// length. A hint: no effect is no error.
    fn preallocate(&mut self, length: u64) -> io::Result<()> {
        let _ = length;
        Ok(())
    }

    /// As [`WritableFile::preallocate`], for a file that may be longer than
    /// what is appended: the length may become `length` at once. Appends may
    /// then go through a shared mapping, with all that they promise. What a file that
    /// is overwritten has behind what was appended may become zeros.
    fn preallocate_mapped(&mut self, length: u64) -> io::Result<()> {
        self.preallocate(length)
    }

    /// Lets the device begin with what was appended from `offset` on, without
    /// waiting for it: later there is less to sync at once, and memory that can
    /// be given up sooner. A hint: it promises nothing.
    fn write_back(&mut self, offset: u64, length: u64) {
        let _ = (offset, length);
    }

    /// Cuts the file to `length` and continues there. Needs
    /// [`Capabilities::truncation`].
    fn truncate(&mut self, length: u64) -> io::Result<()>;

    /// Closes the file and reports what closing found.
    fn close(self: Box<Self>) -> io::Result<()>;
}

/// Reads exactly `buffer.len()` bytes at `offset`.
///
/// # Errors
/// `UnexpectedEof` if the file ends before that, besides what reading gives.
pub fn read_full_at(file: &dyn ReadableFile, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
    let mut filled = 0;
    while filled < buffer.len() {
        match file.read_at(offset + filled as u64, &mut buffer[filled..]) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(count) => filled += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Creates a directory, and those above it, so that power loss leaves them.
/// No error if it is there.
///
/// Names of what is there may be recent too: whoever made it may have been killed before
/// syncing them, so all names of the path are synced.
pub fn create_directory_durably(fs: &dyn Fs, path: &Path) -> io::Result<()> {
    let names = || path.ancestors().take_while(|ancestor| *ancestor != Path::new(""));
    let mut missing = 0;
    for ancestor in names() {
        match fs.list(ancestor) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => missing += 1,
            // It is there, although it may not be listed.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => break,
            Err(error) => return Err(error),
            Ok(_) => break,
        }
    }
    fs.create_directory(path)?;
    let names: Vec<&Path> = names().collect();
    for (depth, name) in names.into_iter().enumerate().rev() {
        let Some(parent) = name.parent() else { continue };
        match fs.sync_directory(parent) {
            Err(error) if depth >= missing && is_not_ours_to_sync(&error) => {}
            synced => synced?,
        }
    }
    Ok(())
}

/// True where a directory may not be read, or is of a file system that syncs none, as
/// some do that nobody can write to: what is in it is there since before us.
fn is_not_ours_to_sync(error: &io::Error) -> bool {
    use io::ErrorKind::{InvalidInput, PermissionDenied, ReadOnlyFilesystem, Unsupported};
    matches!(error.kind(), InvalidInput | PermissionDenied | ReadOnlyFilesystem | Unsupported)
}

/// All bytes of a file.
pub fn read_all(fs: &dyn Fs, path: &Path) -> io::Result<Vec<u8>> {
    read_whole(&*fs.open(path)?)
}

/// All bytes of an open file.
pub(crate) fn read_whole(file: &dyn ReadableFile) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; usize::try_from(file.length()?).map_err(io::Error::other)?];
    read_full_at(file, 0, &mut bytes)?;
    Ok(bytes)
}
