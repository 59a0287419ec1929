//! The directory of a run's database: a temporary one that is removed at the
//! end, or the user's.
//!
//! Benchmarks that need an empty database destroy the one that is there, as
//! LevelDB's do. So that a mistyped `--db` never costs anyone's data, only a
//! directory that a benchmark made is emptied; a marker file tells.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::error::BenchError;

/// The marker's name.
const MARKER: &str = "LODE_BENCH";

/// Where the database of a run is.
#[derive(Debug)]
pub struct Directory {
    path: PathBuf,
    temporary: bool,
}

impl Directory {
    /// The user's directory, or a new temporary one.
    /// # Errors: `Usage` if `keep` is false and `chosen` holds something that no
    /// benchmark made.
    pub fn new(chosen: Option<&Path>, keep: bool) -> Result<Directory, BenchError> {
        match chosen {
            None => Directory::temporary_in(&std::env::temp_dir()),
            Some(path) => {
                if !keep {
                    check_emptiable(path)?;
                }
                Ok(Directory { path: path.to_path_buf(), temporary: false })
            }
        }
    }

    /// A new directory in `base` that is removed at the end.
    pub fn temporary_in(base: &Path) -> Result<Directory, BenchError> {
        for attempt in 0u32.. {
            let path = base.join(format!("lode-bench-{}-{attempt}", std::process::id()));
            match fs::create_dir(&path) {
                Ok(()) => {
                    mark(&path)?;
                    return Ok(Directory { path, temporary: true });
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(BenchError::io(&path)(error)),
            }
        }
        unreachable!("four billion directories of one process are taken")
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// True if it is removed at the end.
    pub fn is_temporary(&self) -> bool {
        self.temporary
    }

    /// Makes it an empty directory of a benchmark's. The database must be closed.
    pub fn empty(&self) -> Result<(), BenchError> {
        check_emptiable(&self.path)?;
        lodestore::Db::destroy(&self.path, &lodestore::Options::default())
            .or_else(|error| match error {
                lodestore::Error::Missing { .. } => Ok(()),
                other => Err(other),
            })
            .map_err(BenchError::engine("removing the database"))?;
        mark(&self.path)
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        if self.temporary {
            // Nothing can be done about it here; the path was printed.
            let _ = fs::remove_dir_all(&self.path);
        }
    }
}

/// Creates the directory and the marker in it.
fn mark(path: &Path) -> Result<(), BenchError> {
    fs::create_dir_all(path).map_err(BenchError::io(path))?;
    let marker = path.join(MARKER);
    fs::write(&marker, "Made by lode bench, which may empty this directory.\n")
        .map_err(BenchError::io(&marker))
}

fn check_emptiable(path: &Path) -> Result<(), BenchError> {
    let mut entries = match fs::read_dir(path) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(BenchError::io(path)(error)),
    };
    if path.join(MARKER).exists() || entries.next().is_none() {
        return Ok(());
    }
    Err(BenchError::Usage(format!(
        "{} holds something that no benchmark made; choose another directory, or keep what is \
         there with --use_existing_db",
        path.display()
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scratch(name: &str) -> PathBuf {
        let path = std::env::temp_dir().join(format!("lode-dir-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        path
    }

    /// Nobody's data is lost by a mistyped --db.
    #[test]
    fn foreign_directories_are_not_emptied() {
        let path = scratch("foreign");
        fs::create_dir_all(&path).expect("temporary directory");
        fs::write(path.join("thesis.txt"), "years of work").expect("temporary file");
        assert!(matches!(Directory::new(Some(&path), false), Err(BenchError::Usage(_))));
        let kept = Directory::new(Some(&path), true).expect("keeping is allowed");
        assert!(matches!(kept.empty(), Err(BenchError::Usage(_))));
        assert!(path.join("thesis.txt").exists());
        fs::remove_dir_all(&path).expect("cleaning up");
    }

    /// A directory that is absent, empty or a benchmark's is used again.
    #[test]
    fn directories_of_benchmarks_are_emptied() {
        let path = scratch("own");
        for _ in 0..2 {
            let directory = Directory::new(Some(&path), false).expect("nothing foreign is in it");
            directory.empty().expect("emptying");
            assert!(path.join(MARKER).exists());
        }
        fs::remove_dir_all(&path).expect("cleaning up");
    }

    /// Temporary directories differ, and vanish with the run.
    #[test]
    fn temporary_directories_vanish() {
        let (a, b) = (Directory::new(None, false), Directory::new(None, false));
        let (a, b) = (a.expect("temporary"), b.expect("temporary"));
        assert_ne!(a.path(), b.path());
        let path = a.path().to_path_buf();
        assert!(path.is_dir() && a.is_temporary());
        drop((a, b));
        assert!(!path.exists());
    }
}
