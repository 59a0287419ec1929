//! Whose a directory is, the original's files, and the way back.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use crate::db::{self, Db};
use crate::error::{Error, Result};
use crate::filename::{self, FileKind};
use crate::fs::{self, FileLock, Fs};
use crate::key::SequenceNumber;
use crate::leveldb::directory::{self, LevelDb};
use crate::leveldb::names::{self, LevelDbFile};
use crate::options::Options;
use crate::sync::Arc;
use crate::version::{self, Current};

/// Says that the folder is whole, and what was adopted. Written last.
const RECORD: &str = "ADOPTED";

/// Who opens a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Owner {
    LevelDb,
    Ours,
}

/// What is kept of LevelDB's files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Original {
    Nothing,
    Whole,
    /// A part: the rest is gone, or was never there.
    Remains,
}

/// A directory that no one else opens meanwhile.
pub(super) struct Place {
    fs: Arc<dyn Fs>,
    directory: PathBuf,
    folder: PathBuf,
    /// Whether LevelDB's lock file was there before.
    had_lock_file: bool,
    lock: Option<Box<dyn FileLock>>,
}

impl Drop for Place {
    /// In a directory that is LevelDB's nothing of ours stays, nor a lock file
    /// that it did not have. They go while they are held.
    fn drop(&mut self) {
        if matches!(self.owner(), Ok(Owner::LevelDb)) {
            let _ = self.fs.remove(&self.directory.join(filename::LOCK_OPEN));
            if !self.had_lock_file {
                let _ = self.fs.remove(&self.directory.join(filename::LOCK));
            }
        }
        drop(self.lock.take());
    }
}

impl Place {
    /// Locks `directory` against us and against LevelDB.
    pub(super) fn lock(fs: &Arc<dyn Fs>, directory: &Path) -> Result<Place> {
        if version::read_current(&**fs, directory)?.is_none() {
            let what = format!("no LevelDB database in {}", directory.display());
            return Err(Error::missing(what));
        }
        let folder = directory.join(filename::ADOPTED);
        // A folder that is whole knows; the file outside is ours as well by then.
        let had_lock_file = exists(&**fs, &folder.join(filename::LOCK))?
            || !exists(&**fs, &folder.join(RECORD))?
                && exists(&**fs, &directory.join(filename::LOCK))?;
        let lock = Some(db::take_lock(&**fs, directory)?);
        let (fs, directory) = (Arc::clone(fs), directory.to_path_buf());
        Ok(Place { fs, directory, folder, had_lock_file, lock })
    }

    /// What `CURRENT` says.
    pub(super) fn owner(&self) -> Result<Owner> {
        match version::read_current(&*self.fs, &self.directory)? {
            Some(Current::Ours { .. }) => Ok(Owner::Ours),
            Some(Current::NameAlone { .. }) => Ok(Owner::LevelDb),
            None => Err(Error::missing(format!("no database in {}", self.directory.display()))),
        }
    }

    pub(super) fn original(&self) -> Result<Original> {
        let names = list(&*self.fs, &self.folder)?;
        Ok(match names.iter().any(|name| name == RECORD) {
            true => Original::Whole,
            false if names.is_empty() => Original::Nothing,
            false => Original::Remains,
        })
    }

    /// # Errors
    /// `InvalidArgument` if files are there whose names we would use.
    pub(super) fn check_no_other_files(&self) -> Result<()> {
        let is_unfinished = self.original()? != Original::Nothing;
        let names = list(&*self.fs, &self.directory)?;
        match names.iter().find(|name| is_ours_alone(name)) {
            Some(name) if !is_unfinished => Err(Error::invalid(format!(
                "{} has a file {name}, as databases of ours have: move it away first",
                self.directory.display()
            ))),
            _ => Ok(()),
        }
    }

    /// Links LevelDB's files into the folder, durably; but for tables in folders of levels,
    /// as Basho's fork has them, which stay where they are.
    pub(super) fn keep_original(&self, database: &LevelDb) -> Result<()> {
        let created = fs::create_directory_durably(&*self.fs, &self.folder);
        created.map_err(|error| Error::io(&self.folder, "create directory", error))?;
        for (name, kind) in database.files.iter().filter(|(name, _)| !name.contains('/')) {
            let (from, to) = (self.directory.join(name), self.folder.join(name));
            match kind {
                // LevelDB syncs its tables, but a log only where a write asks for it.
                LevelDbFile::Log(_) | LevelDbFile::Manifest(_) | LevelDbFile::Current => {
                    db::link_or_copy_synced(&*self.fs, &from, &to)?;
                }
                LevelDbFile::Lock if !self.had_lock_file => {} // it is the one that we hold
                // The lock file is not opened: closing it would give up the lock.
                _ => db::link_or_copy(&*self.fs, &from, &to)?,
            }
        }
        // Files of ours without it would be taken for somebody else's.
        self.sync(&self.folder)
    }

    /// Says that the folder is whole, durably.
    pub(super) fn record(&self, last_sequence: SequenceNumber) -> Result<()> {
        let path = self.folder.join(RECORD);
        let failed = |during: &'static str| {
            let path = path.clone();
            move |error| Error::io(&path, during, error)
        };
        let text = format!("last_sequence {last_sequence}\n");
        let mut file = self.fs.create(&path).map_err(failed("create"))?;
        file.append(text.as_bytes()).map_err(failed("append to"))?;
        file.sync().map_err(failed("sync"))?;
        file.close().map_err(failed("close"))?;
        self.sync(&self.folder)
    }

    /// Removes LevelDB's files outside of the folder, once the directory is ours.
    pub(super) fn remove_leveldb_files(&self) -> Result<()> {
        for name in list(&*self.fs, &self.folder)? {
            let is_shared = matches!(
                names::parse(&name),
                None | Some(LevelDbFile::Current | LevelDbFile::Lock)
            );
            if !is_shared {
                self.remove(&self.directory.join(name))?;
            }
        }
        self.sync(&self.directory)
    }

    /// Removes the folders of levels, once the directory is ours for good.
    pub(super) fn remove_level_folders(&self) -> Result<()> {
        let kept = list(&*self.fs, &self.folder)?;
        let is_table = |name: &String| matches!(names::parse(name), Some(LevelDbFile::Table(_)));
        if !kept.iter().any(|name| name == filename::CURRENT) {
            return Ok(()); // it was done, and other files of the folder may be gone since
        }
        if kept.iter().any(is_table) {
            return Ok(()); // LevelDB's own has none: they are somebody else's
        }
        let names = list(&*self.fs, &self.directory)?;
        for folder in names.iter().filter(|name| names::is_level_folder(name)) {
            for (name, _) in directory::tables_in(&*self.fs, &self.directory, folder)? {
                self.remove(&self.directory.join(name))?;
            }
            self.sync(&self.directory.join(folder))?;
            // What is there besides is somebody else's.
            let _ = self.fs.remove_directory(&self.directory.join(folder));
        }
        self.sync(&self.directory)
    }

    /// Removes what is ours from a directory that is LevelDB's, and the folder.
    pub(super) fn clean(&self) -> Result<()> {
        let kept = list(&*self.fs, &self.folder)?;
        // Manifests of ours are made only once the folder is whole. A crash may
        // have left anything in them; LevelDB may have gone on since.
        let is_whole = kept.iter().any(|name| name == RECORD);
        let current = version::read_current(&*self.fs, &self.directory)?;
        let is_our_manifest = |name: &String| match (filename::parse(name), &current) {
            (Some(FileKind::Manifest(of)), Some(Current::NameAlone { number })) => {
                is_whole && of != *number && !kept.contains(name)
            }
            _ => false,
        };
        for name in list(&*self.fs, &self.directory)? {
            if is_ours_alone(&name) || is_our_manifest(&name) {
                self.remove(&self.directory.join(&name))?;
            }
        }
        self.sync(&self.directory)?;
        self.forget_original()
    }

    /// Says that the folder is not whole, durably: there is no way back then.
    pub(super) fn remove_record(&self) -> Result<()> {
        self.remove_first(RECORD)
    }

    /// Removes a file of the folder before anything else goes, durably.
    fn remove_first(&self, name: &str) -> Result<()> {
        if list(&*self.fs, &self.folder)?.is_empty() {
            return Ok(());
        }
        self.remove(&self.folder.join(name))?;
        self.sync(&self.folder)
    }

    /// Removes the folder.
    pub(super) fn forget_original(&self) -> Result<()> {
        // Without the record nobody takes the rest for whole, and without `CURRENT`
        // nobody concludes anything from tables that are not there.
        self.remove_first(RECORD)?;
        self.remove_first(filename::CURRENT)?;
        let names = list(&*self.fs, &self.folder)?;
        for name in names.iter().filter(|name| names::parse(name).is_some()) {
            self.remove(&self.folder.join(name))?;
        }
        // What is there besides is somebody else's.
        let _ = self.fs.remove_directory(&self.folder);
        self.sync(&self.directory)
    }

    /// # Errors
    /// `InvalidArgument` if something was written since the adoption.
    pub(super) fn check_unwritten(&self, options: &Options) -> Result<()> {
        let path = self.folder.join(RECORD);
        let text = fs::read_all(&*self.fs, &path).map_err(|e| Error::io(&path, "read", e))?;
        let text = String::from_utf8_lossy(&text);
        let adopted: Option<SequenceNumber> =
            text.strip_prefix("last_sequence ").and_then(|number| number.trim_end().parse().ok());
        let adopted = adopted.ok_or_else(|| Error::corruption(&path, 0, "it says no number"))?;
        let options = Options { status_interval: None, ..options.clone() };
        let now = Db::open_read_only(&self.directory, options)?.latest_sequence();
        if now <= adopted {
            return Ok(());
        }
        let written = now - adopted;
        Err(Error::invalid(format!(
            "{written} entries were written to {} since it was adopted: going back would lose them",
            self.directory.display()
        )))
    }

    /// Gives the directory back to LevelDB.
    pub(super) fn give_back(&self) -> Result<()> {
        let kept = list(&*self.fs, &self.folder)?;
        let of_leveldb = kept.iter().filter(|name| names::parse(name).is_some());
        for name in of_leveldb {
            let to = self.directory.join(name);
            if name != filename::CURRENT && name != filename::LOCK {
                self.remove(&to)?;
                db::link_or_copy(&*self.fs, &self.folder.join(name), &to)?;
            }
        }
        self.sync(&self.directory)?;
        // A temporary file of ours: whoever cleans up removes it.
        let current = self.directory.join(filename::CURRENT);
        let temporary = filename::temporary_path(&self.directory, 0);
        self.remove(&temporary)?;
        db::link_or_copy(&*self.fs, &self.folder.join(filename::CURRENT), &temporary)?;
        let renamed = self.fs.rename(&temporary, &current);
        renamed.map_err(|error| Error::io(&temporary, "rename", error))?;
        self.sync(&self.directory)?;
        self.clean()
    }

    /// Removes a file that may be gone already.
    fn remove(&self, path: &Path) -> Result<()> {
        match self.fs.remove(path) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                Err(Error::io(path, "remove", error))
            }
            _ => Ok(()),
        }
    }

    fn sync(&self, directory: &Path) -> Result<()> {
        let synced = self.fs.sync_directory(directory);
        synced.map_err(|error| Error::io(directory, "sync directory", error))
    }
}

/// True for names that we use and LevelDB does not; lock files are not among
/// them.
pub(super) fn is_ours_alone(name: &str) -> bool {
    match filename::parse(name) {
        None | Some(FileKind::Current | FileKind::Lock | FileKind::Manifest(_)) => false,
        Some(
            FileKind::Log(_)
            | FileKind::Table(_)
            | FileKind::Options(_)
            | FileKind::Temporary(_)
            | FileKind::Status,
        ) => true,
    }
}

fn exists(fs: &dyn Fs, path: &Path) -> Result<bool> {
    match fs.length(path) {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        Err(error) => Err(Error::io(path, "get length of", error)),
    }
}

/// Names in a directory; none if there is no such directory.
fn list(fs: &dyn Fs, directory: &Path) -> Result<Vec<String>> {
    match fs.list(directory) {
        Ok(mut names) => {
            names.sort();
            Ok(names)
        }
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(Error::io(directory, "list", error)),
    }
}
