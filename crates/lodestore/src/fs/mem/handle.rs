//! Open files and held locks.

use std::io;
use std::path::PathBuf;

use super::{MemFs, crash, inode::Inode};
use crate::fs::{FileLock, ReadableFile, WritableFile};
use crate::sync::{Arc, StepMutex};

#[derive(Debug)]
pub(super) struct MemLock {
    pub(super) fs: MemFs,
    pub(super) path: PathBuf,
}

impl FileLock for MemLock {}

impl Drop for MemLock {
    fn drop(&mut self) {
        self.fs.state.lock().locks.retain(|held| *held != self.path);
    }
}

#[derive(Debug)]
pub(super) struct MemReader {
    pub(super) fs: MemFs,
    pub(super) inode: Arc<StepMutex<Inode>>,
}

impl ReadableFile for MemReader {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let _state = self.fs.begin()?;
        Ok(self.inode.lock().read(offset, buffer))
    }

    fn length(&self) -> io::Result<u64> {
        let _state = self.fs.begin()?;
        Ok(self.inode.lock().length())
    }
}

#[derive(Debug)]
pub(super) struct MemWriter {
    pub(super) fs: MemFs,
    pub(super) inode: Arc<StepMutex<Inode>>,
    pub(super) position: u64,
}

/// How long a file becomes by asking for a mapping.
const MAPPED_BYTES_MAX: u64 = 8 << 10;

impl WritableFile for MemWriter {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        let was_stopped = self.fs.is_stopped();
        let started = self.fs.begin_change();
        match started {
            Ok(mut state) => {
                let (inode, offset) = state.place_of_append(&self.inode, self.position);
                inode.lock().write(offset, bytes);
                state.last_append = Some((inode, bytes.len()));
                self.position += bytes.len() as u64;
                Ok(())
            }
            Err(error) if was_stopped => Err(error),
            Err(error) => {
                // Killed in the middle of this write.
                let kept = crash::part_of_last_append(self.position, bytes.len());
                self.inode.lock().write(self.position, &bytes[..kept]);
                self.position += kept as u64;
                Err(error)
            }
        }
    }

    fn sync(&mut self) -> io::Result<()> {
        let _state = self.fs.begin_change()?;
        self.inode.lock().sync();
        Ok(())
    }

    fn preallocate(&mut self, _length: u64) -> io::Result<()> {
        // Room never runs out here, and a hint may have no effect.
        self.fs.begin_change().map(|_| ())
    }

    /// Zeros stand behind the records then, as in a mapped file: a few of them.
    fn preallocate_mapped(&mut self, length: u64) -> io::Result<()> {
        let _state = self.fs.begin_change()?;
        let mut inode = self.inode.lock();
        let (there, wanted) = (inode.length(), length.min(MAPPED_BYTES_MAX));
        if there < wanted {
            inode.write(there, &vec![0; (wanted - there) as usize]);
        }
        Ok(())
    }

    fn truncate(&mut self, length: u64) -> io::Result<()> {
        self.fs.require(self.fs.capabilities.truncation)?;
        let _state = self.fs.begin_change()?;
        self.inode.lock().truncate(length);
        self.position = length;
        Ok(())
    }

    fn close(self: Box<Self>) -> io::Result<()> {
        self.fs.begin().map(|_| ())
    }
}
