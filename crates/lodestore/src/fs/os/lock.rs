//! One opener at a time: in this process, in others, and against LevelDB.
//!
//! Three locks, because each sees what the others do not:
//!
//! | lock | excludes | is blind to |
//! |---|---|---|
//! | a registry in memory | a second opener in this process | other processes, another copy of this library in this process |
//! | open-file-description lock on `LOCK.open` | every other opener with this library | LevelDB |
//! | POSIX record lock on `LOCK` | LevelDB and this library in other processes | its own process |
//!
//! LevelDB for Go locks `LOCK` by flock(2), which sees none of these, nor they it.
//! Whether somebody has that lock is looked at; it is not kept, since over NFS
//! it is the record lock's like.
//!
//! Closing any descriptor of a file drops all POSIX locks that the process has
//! on that file (fcntl(2)). A second opener in this process must therefore be
//! turned away before it opens `LOCK`: by the registry, or, where it has a
//! registry of its own, by the lock on `LOCK.open`, which has no such trap. So
//! that lock is taken first, and the holder's pid is read from the file's
//! content instead of being asked for through `LOCK`.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

use super::super::{FileLock, LockError};
use crate::sync::{Mutex, OnceLock};

/// What one held lock is known by. The path stays ours even if someone removes
/// the file; device and inode see through links.
#[derive(Debug, PartialEq)]
struct Holding {
    path: PathBuf,
    file: (u64, u64),
    /// Who took it: after a fork, the child's copy of the registry still tells
    /// the parent's pid.
    pid: u32,
}

/// What openers in this process hold.
fn registry() -> &'static Mutex<Vec<Holding>> {
    static REGISTRY: OnceLock<Mutex<Vec<Holding>>> = OnceLock::new();
    REGISTRY.get_or_init(|| Mutex::new(Vec::new()))
}

/// The three locks, held.
#[derive(Debug)]
pub(super) struct OsLock {
    file: (u64, u64),
    /// Who took it.
    pid: u32,
    /// Closed by [`Drop`] under the registry's lock.
    files: Option<(File, File)>,
}

impl FileLock for OsLock {}

impl Drop for OsLock {
    fn drop(&mut self) {
        // Both files are closed before the registry lets the next opener in:
        // the other way round, our close would drop the next one's POSIX lock.
        let mut held = registry().lock();
        // Closing does not release `LOCK.open` while a child that was just
        // forked has its copy of the descriptor, so it is unlocked first; not
        // in such a child, which would release the parent's lock.
        if let Some((_, beside)) = self.files.as_ref().filter(|_| self.pid == std::process::id()) {
            // If it does not work, closing is what is left.
            let _ = release_description_lock(beside);
        }
        self.files = None;
        held.retain(|holding| holding.file != self.file);
    }
}

/// Takes all three locks for `path`, or none.
pub(super) fn lock(path: &Path) -> Result<OsLock, LockError> {
    // Held from the first look to the entry, so that openers in this process
    // come one after the other.
    let mut held = registry().lock();
    let path = absolute(path).map_err(LockError::Io)?;
    let known = std::fs::metadata(&path).ok().map(|found| identity(&found));
    let holder = held.iter().find(|h| h.path == path || Some(h.file) == known);
    if let Some(holder) = holder {
        return Err(LockError::Held { holder_pid: Some(holder.pid) });
    }

    let mut beside = path.clone().into_os_string();
    beside.push(".open");
    let beside = open(Path::new(&beside)).map_err(LockError::Io)?;
    if !take_description_lock(&beside).map_err(LockError::Io)? {
        return Err(LockError::Held { holder_pid: written_pid(&beside) });
    }
    let file = open(&path).map_err(LockError::Io)?;
    if is_flocked(&file) {
        return Err(LockError::Held { holder_pid: None });
    }
    if !take_record_lock(&file).map_err(LockError::Io)? {
        return Err(LockError::Held { holder_pid: record_lock_holder(&file) });
    }
    write_pid(&beside).map_err(LockError::Io)?;

    let file_identity = identity(&file.metadata().map_err(LockError::Io)?);
    let pid = std::process::id();
    held.push(Holding { path, file: file_identity, pid });
    Ok(OsLock { file: file_identity, pid, files: Some((file, beside)) })
}

/// `path` with its directory resolved; the file itself need not exist.
fn absolute(path: &Path) -> io::Result<PathBuf> {
    let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
    let directory = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    Ok(directory.canonicalize()?.join(name))
}

fn identity(metadata: &std::fs::Metadata) -> (u64, u64) {
    (metadata.dev(), metadata.ino())
}

fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)
}

/// Notes this process's id for openers that find the file locked.
fn write_pid(file: &File) -> io::Result<()> {
    let text = format!("{}\n", std::process::id());
    file.write_all_at(text.as_bytes(), 0)?;
    // Afterwards: mostly there is nothing to cut off, and no block to give back.
    file.set_len(text.len() as u64)
}

/// The id that the holder noted; `None` in the moment before it did.
fn written_pid(file: &File) -> Option<u32> {
    let mut bytes = [0; 16];
    let count = file.read_at(&mut bytes, 0).ok()?;
    std::str::from_utf8(&bytes[..count]).ok()?.strip_suffix('\n')?.parse().ok()
}

/// A write lock on a whole file, as LevelDB's `PosixEnv` describes it.
fn whole_file() -> libc::flock {
    // SAFETY: `flock` is a C struct of integers, for which zeros are valid;
    // zero start and length mean the whole file, and an
    // open-file-description lock demands a zero pid.
    let mut description: libc::flock = unsafe { std::mem::zeroed() };
    description.l_type = libc::F_WRLCK as libc::c_short;
    description.l_whence = libc::SEEK_SET as libc::c_short;
    description
}

fn fcntl_lock(file: &File, command: libc::c_int, lock: &mut libc::flock) -> io::Result<()> {
    // SAFETY: the descriptor is open while `file` is borrowed, and all lock
    // commands take a pointer to a `flock`, valid and ours for the call.
    match unsafe { libc::fcntl(file.as_raw_fd(), command, lock) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

/// False if another process has the lock.
fn take_record_lock(file: &File) -> io::Result<bool> {
    taken(fcntl_lock(file, libc::F_SETLK, &mut whole_file()))
}

/// True if somebody holds the file by flock(2). Where that does not work nobody does.
fn is_flocked(file: &File) -> bool {
    // SAFETY: the descriptor is open while `file` is borrowed.
    let flock = |operation| unsafe { libc::flock(file.as_raw_fd(), operation) };
    if flock(libc::LOCK_EX | libc::LOCK_NB) == 0 {
        flock(libc::LOCK_UN);
        return false;
    }
    io::Error::last_os_error().kind() == io::ErrorKind::WouldBlock
}

/// False if another open file description has the lock. True also where the
/// kernel has no such locks (before Linux 3.15): the others must do then.
fn take_description_lock(file: &File) -> io::Result<bool> {
    match fcntl_lock(file, libc::F_OFD_SETLK, &mut whole_file()) {
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => Ok(true),
        result => taken(result),
    }
}

fn release_description_lock(file: &File) -> io::Result<()> {
    let mut description = whole_file();
    description.l_type = libc::F_UNLCK as libc::c_short;
    fcntl_lock(file, libc::F_OFD_SETLK, &mut description)
}

fn taken(result: io::Result<()>) -> io::Result<bool> {
    match result {
        Ok(()) => Ok(true),
        Err(error) if matches!(error.raw_os_error(), Some(libc::EAGAIN | libc::EACCES)) => {
            Ok(false)
        }
        Err(error) => Err(error),
    }
}

/// Which process has the record lock; `None` if it let go meanwhile, or is in
/// another pid namespace or on another machine.
fn record_lock_holder(file: &File) -> Option<u32> {
    let mut description = whole_file();
    fcntl_lock(file, libc::F_GETLK, &mut description).ok()?;
    let locked = description.l_type != libc::F_UNLCK as libc::c_short;
    u32::try_from(description.l_pid).ok().filter(|&pid| locked && pid != 0)
}

/// Runs `check` with what is held in `directory` out of the registry: what
/// another copy of this library in the process would see.
#[cfg(test)]
pub(super) fn without_registry(directory: &Path, check: impl FnOnce()) {
    let directory = directory.canonicalize().expect("the directory exists");
    let hidden: Vec<Holding> =
        registry().lock().extract_if(.., |h| h.path.starts_with(&directory)).collect();
    check();
    registry().lock().extend(hidden);
}
