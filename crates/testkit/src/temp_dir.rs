//! A directory for one test, removed with everything in it afterwards.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

/// A new, empty directory below the system's directory for temporary files.
#[derive(Debug)]
pub struct TempDir(PathBuf);

impl TempDir {
    /// Creates one whose name starts with `name`.
    ///
    /// # Panics
    /// If it cannot be created.
    pub fn new(name: &str) -> TempDir {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("lodestore-{name}-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let _ = std::fs::remove_dir_all(&path); // left by a killed process of the same id
        std::fs::create_dir_all(&path).expect("a temporary directory can be created");
        TempDir(path)
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for TempDir {
    fn drop(&mut self) {
        // What cannot be removed is only litter.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
