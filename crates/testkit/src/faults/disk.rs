//! A small file system in memory, mounted for one test, with ballast on it.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// What the ballast consists of.
const PAGE: [u8; 4096] = [0x55; 4096];

/// A mounted tmpfs; unmounted when it is dropped.
#[derive(Debug)]
pub struct SmallDisk {
    path: PathBuf,
}

impl SmallDisk {
    /// Mounts one of `bytes` bytes at `path`, which is created. Needs to be root,
    /// at least of a user namespace of its own.
    ///
    /// # Errors
    /// What mount(8) says.
    pub fn mount(path: &Path, bytes: u64) -> Result<SmallDisk, String> {
        std::fs::create_dir_all(path).map_err(|error| error.to_string())?;
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", &format!("size={bytes}"), "tmpfs"]).arg(path);
        let output = mount.stdin(Stdio::null()).output();
        let output = output.map_err(|error| format!("mount cannot be started: {error}"))?;
        match output.status.success() {
            true => Ok(SmallDisk { path: path.to_path_buf() }),
            false => Err(String::from_utf8_lossy(&output.stderr).trim().to_string()),
        }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Bytes that are free.
    ///
    /// # Errors
    /// What asking gives.
    pub fn free_bytes(&self) -> io::Result<u64> {
        let found = rustix::fs::statvfs(&self.path)?;
        Ok(found.f_bavail * found.f_frsize)
    }

    /// Leaves `free_bytes` free, or less where others write at the same time, by
    /// a file that takes the rest.
    ///
    /// # Errors
    /// What writing it gives.
    pub fn fill(&self, free_bytes: u64) -> io::Result<()> {
        self.relieve()?;
        let wanted = self.free_bytes()?.saturating_sub(free_bytes);
        let file = File::create(self.ballast())?;
        for offset in (0..wanted).step_by(PAGE.len()) {
            match file.write_all_at(&PAGE, offset) {
                Err(error) if error.kind() == io::ErrorKind::StorageFull => break,
                written => written?,
            }
        }
        Ok(())
    }

    /// Takes the ballast away.
    ///
    /// # Errors
    /// What removing it gives.
    pub fn relieve(&self) -> io::Result<()> {
        match std::fs::remove_file(self.ballast()) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    fn ballast(&self) -> PathBuf {
        self.path.join("ballast")
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // Lazily: a mount in a namespace of its own goes with that anyway.
        let _ = Command::new("umount").arg("-l").arg(&self.path).status();
    }
}
