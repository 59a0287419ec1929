//! Changes of one directory that stay in memory, around another file system.
//!
//! Whoever needs a directory to be other than it is, to read it, changes it here:
//! files are given other names, new ones are written beside them, and nothing of
//! that is on the disk. A file with another name outlives its removal below, as it
//! would behind a hard link: it is kept open. Then the changes are closed: whoever
//! would write there later, and lose it, is refused. All other directories are as
//! they are below.
//!
//! Invariant: no call changes anything in the directory below.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};

use super::{Capabilities, FileLock, Fs, LockError, MemFs, ReadStream, ReadableFile, WritableFile};
use crate::sync::atomic::{AtomicBool, Ordering};
use crate::sync::{Arc, Mutex};

/// A file system with a directory whose changes stay in memory. Clones share them.
#[derive(Clone, Debug)]
pub(crate) struct OverlayFs {
    below: Arc<dyn Fs>,
    directory: PathBuf,
    memory: MemFs,
    names: Arc<Mutex<BTreeMap<PathBuf, Name>>>,
    is_closed: Arc<AtomicBool>,
}

/// What a name stands for.
#[derive(Clone, Debug)]
enum Name {
    /// What it stands for below.
    Below,
    /// A file below that has this name there, or had it when it was given its own.
    Link(PathBuf, Arc<dyn ReadableFile>),
    /// A file in memory, of the same name.
    Memory,
    Directory,
    /// It was removed.
    Nothing,
}

impl OverlayFs {
    /// Everything is as `below` has it; changes in `directory`, which is there, will
    /// stay in memory.
    pub(crate) fn new(below: &Arc<dyn Fs>, directory: &Path) -> OverlayFs {
        OverlayFs {
            below: Arc::clone(below),
            directory: directory.to_path_buf(),
            memory: MemFs::new(),
            names: Arc::default(),
            is_closed: Arc::default(),
        }
    }

    /// Keeps the file `path` below, whatever becomes of its name there.
    pub(crate) fn keep(&self, path: &Path) -> io::Result<()> {
        self.link(path, path)
    }

    /// From now on nothing changes in the directory.
    pub(crate) fn close(&self) {
        self.is_closed.store(true, Ordering::Release);
    }

    /// Whether a change of `path` stays in memory; false for what is not in the
    /// directory.
    fn takes(&self, path: &Path) -> io::Result<bool> {
        let is_inside = path.starts_with(&self.directory);
        match is_inside && self.is_closed.load(Ordering::Acquire) {
            true => Err(io::ErrorKind::ReadOnlyFilesystem.into()),
            false => Ok(is_inside),
        }
    }

    fn name(&self, path: &Path) -> Name {
        let names = self.names.lock();
        names.get(path).cloned().unwrap_or(Name::Below)
    }

    fn set(&self, path: &Path, name: Name) {
        let is_memory = matches!(name, Name::Memory);
        let before = self.names.lock().insert(path.to_path_buf(), name);
        if matches!(before, Some(Name::Memory)) && !is_memory {
            // The memory is given back; that it was there is known.
            let _ = self.memory.remove(path);
        }
    }

    /// Directories in memory are made as files need them.
    fn make_parent(&self, path: &Path) -> io::Result<()> {
        path.parent().map_or(Ok(()), |parent| self.memory.create_directory(parent))
    }

    /// Makes `to` stand for what `from` does.
    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        match self.name(from) {
            Name::Below => {
                self.set(to, Name::Link(from.to_path_buf(), self.below.open(from)?));
                Ok(())
            }
            link @ Name::Link(..) => {
                self.set(to, link);
                Ok(())
            }
            Name::Memory => {
                self.make_parent(to)?;
                if matches!(self.name(to), Name::Memory) {
                    self.memory.remove(to)?;
                }
                self.memory.hard_link(from, to)?;
                self.set(to, Name::Memory);
                Ok(())
            }
            Name::Directory => Err(io::ErrorKind::IsADirectory.into()),
            Name::Nothing => Err(io::ErrorKind::NotFound.into()),
        }
    }
}

impl Fs for OverlayFs {
    fn capabilities(&self) -> Capabilities {
        let direct_io = self.below.capabilities().direct_io;
        Capabilities { hard_links: true, direct_io, ..Capabilities::default() }
    }

    fn open_files_max(&self) -> Option<usize> {
        self.below.open_files_max()
    }

    fn create(&self, path: &Path) -> io::Result<Box<dyn WritableFile>> {
        if !self.takes(path)? {
            return self.below.create(path);
        }
        self.make_parent(path)?;
        let file = self.memory.create(path)?;
        self.set(path, Name::Memory);
        Ok(file)
    }

    fn overwrite(&self, path: &Path) -> io::Result<Box<dyn WritableFile>> {
        match self.takes(path)? {
            true => Err(io::ErrorKind::Unsupported.into()),
            false => self.below.overwrite(path),
        }
    }

    fn open(&self, path: &Path) -> io::Result<Arc<dyn ReadableFile>> {
        match self.name(path) {
            Name::Below => self.below.open(path),
            Name::Link(_, file) => Ok(file),
            Name::Memory => self.memory.open(path),
            Name::Directory => Err(io::ErrorKind::IsADirectory.into()),
            Name::Nothing => Err(io::ErrorKind::NotFound.into()),
        }
    }

    fn open_direct(&self, path: &Path) -> io::Result<Arc<dyn ReadableFile>> {
        match self.name(path) {
            Name::Below => self.below.open_direct(path),
            // The file that is kept open reads as well where its name is gone.
            Name::Link(path, file) => match self.below.open_direct(&path) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(file),
                opened => opened,
            },
            // What is in memory passes no page cache.
            _ => self.open(path),
        }
    }

    fn read_many(&self, reads: &mut dyn ReadStream) {
        self.below.read_many(reads);
    }

    fn known_as(&self, path: &Path) -> PathBuf {
        match self.name(path) {
            Name::Link(path, _) => path,
            _ => path.to_path_buf(),
        }
    }

    fn list(&self, directory: &Path) -> io::Result<Vec<String>> {
        let below = match self.name(directory) {
            Name::Below => self.below.list(directory)?,
            Name::Directory => Vec::new(),
            Name::Memory | Name::Link(..) => return Err(io::ErrorKind::NotADirectory.into()),
            Name::Nothing => return Err(io::ErrorKind::NotFound.into()),
        };
        let mut listed: BTreeSet<String> = below.into_iter().collect();
        for (path, name) in self.names.lock().iter() {
            let (parent, own) = (path.parent(), path.file_name().and_then(|own| own.to_str()));
            let (Some(own), true) = (own, parent == Some(directory)) else { continue };
            match name {
                Name::Nothing => listed.remove(own),
                _ => listed.insert(own.to_string()),
            };
        }
        Ok(listed.into_iter().collect())
    }

    fn length(&self, path: &Path) -> io::Result<u64> {
        match self.name(path) {
            Name::Below => self.below.length(path),
            Name::Link(_, file) => file.length(),
            Name::Memory => self.memory.length(path),
            Name::Directory => Err(io::ErrorKind::IsADirectory.into()),
            Name::Nothing => Err(io::ErrorKind::NotFound.into()),
        }
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        if !self.takes(path)? {
            return self.below.remove(path);
        }
        self.length(path)?;
        self.set(path, Name::Nothing);
        Ok(())
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        match (self.takes(from)?, self.takes(to)?) {
            (true, true) => {}
            (false, false) => return self.below.rename(from, to),
            _ => return Err(io::ErrorKind::CrossesDevices.into()),
        }
        self.link(from, to)?;
        self.set(from, Name::Nothing);
        Ok(())
    }

    fn hard_link(&self, from: &Path, to: &Path) -> io::Result<()> {
        if !self.takes(to)? {
            return match self.name(from) {
                Name::Below => self.below.hard_link(from, to),
                Name::Link(path, _) => self.below.hard_link(&path, to),
                _ => Err(io::ErrorKind::Unsupported.into()),
            };
        }
        match self.length(to) {
            Ok(_) => Err(io::ErrorKind::AlreadyExists.into()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => self.link(from, to),
            Err(error) => Err(error),
        }
    }

    fn create_directory(&self, path: &Path) -> io::Result<()> {
        if !self.takes(path)? {
            return self.below.create_directory(path);
        }
        match self.list(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                self.set(path, Name::Directory);
                Ok(())
            }
            listed => listed.map(|_| ()),
        }
    }

    fn remove_directory(&self, path: &Path) -> io::Result<()> {
        if !self.takes(path)? {
            return self.below.remove_directory(path);
        }
        match self.list(path)?.is_empty() {
            true => self.set(path, Name::Nothing),
            false => return Err(io::ErrorKind::DirectoryNotEmpty.into()),
        }
        Ok(())
    }

    fn sync_directory(&self, path: &Path) -> io::Result<()> {
        match path.starts_with(&self.directory) {
            true => self.list(path).map(|_| ()),
            false => self.below.sync_directory(path),
        }
    }

    /// In the directory it excludes those who share the changes, and nobody below.
    fn lock(&self, path: &Path) -> Result<Box<dyn FileLock>, LockError> {
        if !self.takes(path).map_err(LockError::Io)? {
            return self.below.lock(path);
        }
        self.make_parent(path).map_err(LockError::Io)?;
        self.memory.lock(path)
    }
}

#[cfg(test)]
mod tests {
    use super::super::read_all;
    use super::*;

    fn write(fs: &dyn Fs, path: &str, bytes: &[u8]) {
        let mut file = fs.create(Path::new(path)).unwrap();
        file.append(bytes).unwrap();
        file.close().unwrap();
    }

    fn read(fs: &dyn Fs, path: &str) -> io::Result<Vec<u8>> {
        read_all(fs, Path::new(path))
    }

    /// Every change is seen through the overlay, and none of them below.
    #[test]
    fn changes_are_seen_and_stay_in_memory() {
        let below = MemFs::new();
        below.create_directory(Path::new("/d/e")).unwrap();
        write(&below, "/d/a", b"first");
        write(&below, "/d/b", b"second");
        let before = below.operations();
        let fs = OverlayFs::new(&(Arc::new(below.clone()) as Arc<dyn Fs>), Path::new("/d"));
        let list = |of: &str| fs.list(Path::new(of)).unwrap();
        let (a, b, c) = (Path::new("/d/a"), Path::new("/d/b"), Path::new("/d/c"));

        fs.hard_link(a, c).unwrap();
        assert_eq!(fs.hard_link(a, b).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        write(&fs, "/d/a", b"new");
        assert_eq!(
            (read(&fs, "/d/a").unwrap(), read(&fs, "/d/c").unwrap()),
            (b"new".to_vec(), b"first".to_vec())
        );
        fs.rename(a, b).unwrap();
        assert_eq!(read(&fs, "/d/b").unwrap(), b"new");
        assert_eq!(read(&fs, "/d/a").unwrap_err().kind(), io::ErrorKind::NotFound);
        fs.hard_link(b, a).unwrap();
        fs.remove(b).unwrap();
        assert_eq!(
            (read(&fs, "/d/a").unwrap(), list("/d")),
            (b"new".to_vec(), ["a", "c", "e"].map(String::from).to_vec())
        );
        assert_eq!(fs.length(c).unwrap(), 5);

        fs.create_directory(Path::new("/d/f")).unwrap();
        write(&fs, "/d/f/g", b"");
        assert!(fs.remove_directory(Path::new("/d/f")).is_err());
        fs.remove(Path::new("/d/f/g")).unwrap();
        fs.remove_directory(Path::new("/d/f")).unwrap();
        fs.remove_directory(Path::new("/d/e")).unwrap();
        assert_eq!(list("/d"), ["a", "c"]);
        let held = fs.lock(Path::new("/d/LOCK")).unwrap();
        assert!(fs.lock(Path::new("/d/LOCK")).is_err());
        drop(held);
        fs.sync_directory(Path::new("/d")).unwrap();

        fs.close();
        assert_eq!(fs.create(a).unwrap_err().kind(), io::ErrorKind::ReadOnlyFilesystem);
        assert!(fs.remove(a).is_err() && fs.rename(a, b).is_err() && fs.hard_link(a, b).is_err());
        assert_eq!(
            (list("/d"), read(&fs, "/d/a").unwrap()),
            (vec!["a".into(), "c".into()], b"new".to_vec())
        );
        assert_eq!(below.operations(), before);
        assert_eq!(read(&below, "/d/b").unwrap(), b"second");
    }

    /// What was given another name is known by its own, and lives on when that goes.
    #[test]
    fn a_name_outlives_that_of_the_file_below() {
        let below = MemFs::new();
        below.create_directory(Path::new("/d")).unwrap();
        write(&below, "/d/a", b"first");
        let fs = OverlayFs::new(&(Arc::new(below.clone()) as Arc<dyn Fs>), Path::new("/d"));
        let [a, b, c] = ["/d/a", "/d/b", "/d/c"].map(Path::new);
        fs.hard_link(a, b).unwrap();
        fs.hard_link(b, c).unwrap();
        write(&below, "/d/kept", b"second");
        fs.keep(Path::new("/d/kept")).unwrap();
        below.remove(Path::new("/d/kept")).unwrap();
        assert_eq!(read(&fs, "/d/kept").unwrap(), b"second");
        below.remove(a).unwrap();
        assert_eq!(
            (read(&fs, "/d/c").unwrap(), fs.length(b).unwrap(), fs.known_as(c), fs.known_as(a)),
            (b"first".to_vec(), 5, a.to_path_buf(), a.to_path_buf())
        );
        assert_eq!(fs.open(a).unwrap_err().kind(), io::ErrorKind::NotFound);
    }

    /// As long as it is kept, also for whoever reads past the page cache.
    #[test]
    fn what_is_kept_is_read_directly_when_its_name_is_gone() {
        let directory = testkit::temp_dir::TempDir::new("overlay");
        let [kept, gone] = ["kept", "gone"].map(|name| directory.path().join(name));
        std::fs::write(&kept, b"second").unwrap();
        let fs = OverlayFs::new(&(Arc::new(crate::fs::OsFs) as Arc<dyn Fs>), directory.path());
        fs.keep(&kept).unwrap();
        std::fs::remove_file(&kept).unwrap();
        let mut bytes = [0; 6];
        assert_eq!(fs.open_direct(&kept).unwrap().read_at(0, &mut bytes).unwrap(), 6);
        assert_eq!(&bytes, b"second");
        assert_eq!(fs.open_direct(&gone).unwrap_err().kind(), io::ErrorKind::NotFound);
    }

    /// What is not in the directory is changed below, as if nobody were between.
    #[test]
    fn other_directories_are_changed_below() {
        let below = MemFs::new();
        below.create_directory(Path::new("/d")).unwrap();
        write(&below, "/d/a", b"first");
        let fs = OverlayFs::new(&(Arc::new(below.clone()) as Arc<dyn Fs>), Path::new("/d"));
        let [inside, out, next] = ["/d/memory", "/e/out", "/e/next"].map(Path::new);
        write(&fs, "/d/memory", b"memory");
        fs.close();
        fs.create_directory(Path::new("/e")).unwrap();
        write(&fs, "/e/out", b"written");
        fs.rename(out, next).unwrap();
        fs.hard_link(Path::new("/d/a"), out).unwrap();
        assert_eq!(
            fs.hard_link(inside, Path::new("/e/x")).unwrap_err().kind(),
            io::ErrorKind::Unsupported
        );
        assert_eq!(
            OverlayFs::new(&fs.below, Path::new("/d"))
                .rename(next, Path::new("/d/b"))
                .unwrap_err()
                .kind(),
            io::ErrorKind::CrossesDevices
        );
        fs.sync_directory(Path::new("/e")).unwrap();
        assert_eq!(read(&below, "/e/next").unwrap(), b"written");
        assert_eq!(
            (read(&below, "/e/out").unwrap(), below.list(Path::new("/e")).unwrap().len()),
            (b"first".to_vec(), 2)
        );
        assert_eq!(below.list(Path::new("/d")).unwrap(), ["a"]);
    }
}
