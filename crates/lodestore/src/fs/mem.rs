//! Files in memory that lose, at a crash, what a real disk may lose.
//!
//! Each file knows what was synced and every change since; each directory
//! entry is durable only once its directory was synced. A power loss keeps, by
//! a seed, any version of each 512-byte sector since the last sync and any of
//! the unsynced directory operations. A killed process loses nothing.
//!
//! Every call is one step under one lock, so that a run under a seeded
//! scheduler can be repeated.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use super::{Capabilities, FileLock, Fs, LockError, ReadableFile, WritableFile};
use crate::sync::{Arc, StepGuard, StepMutex};

mod crash;
mod handle;
mod inode;
mod misdirected;

use handle::{MemLock, MemReader, MemWriter};
use inode::Inode;

/// A file system in memory. Clones share it.
///
/// The directories `/` and the empty path are always there.
#[derive(Clone, Debug)]
pub struct MemFs {
    capabilities: Capabilities,
    state: Arc<StepMutex<State>>,
}

/// What a name stands for.
#[derive(Clone, Debug)]
enum Entry {
    File(Arc<StepMutex<Inode>>),
    Directory,
}

/// A directory operation that is not durable yet.
#[derive(Clone, Debug)]
enum Change {
    Add { path: PathBuf, entry: Entry },
    Remove { path: PathBuf },
    Rename { from: PathBuf, to: PathBuf, entry: Entry },
}

#[derive(Debug)]
struct State {
    entries: BTreeMap<PathBuf, Entry>,
    durable: BTreeMap<PathBuf, Entry>,
    /// What turned `durable` into `entries`, in order.
    changes: Vec<Change>,
    locks: Vec<PathBuf>,
    operations: u64,
    operations_max: u64,
    /// The process is gone: nothing works any more.
    stopped: bool,
    /// The file of the last append, and how long the append was.
    last_append: Option<(Arc<StepMutex<Inode>>, usize)>,
    /// Appends until one goes to a wrong place, and what chooses the place.
    misdirected: Option<(u64, u64)>,
}

impl Default for MemFs {
    fn default() -> MemFs {
        MemFs::new()
    }
}

impl MemFs {
    /// An empty file system that can do all that [`MemFs`] knows.
    pub fn new() -> MemFs {
        MemFs::with_capabilities(Capabilities {
            overwriting: true,
            preallocation: true,
            hard_links: true,
            truncation: true,
            mapping: false,
            direct_io: false,
        })
    }

    /// An empty file system that refuses what `capabilities` leave out. With
    /// the default ones it can only append, as LevelDB's `Env` can.
    pub fn with_capabilities(capabilities: Capabilities) -> MemFs {
        MemFs::from_parts(capabilities, BTreeMap::new(), BTreeMap::new(), Vec::new())
    }

    fn from_parts(
        capabilities: Capabilities,
        entries: BTreeMap<PathBuf, Entry>,
        durable: BTreeMap<PathBuf, Entry>,
        changes: Vec<Change>,
    ) -> MemFs {
        let state = State {
            entries,
            durable,
            changes,
            locks: Vec::new(),
            operations: 0,
            operations_max: u64::MAX,
            stopped: false,
            last_append: None,
            misdirected: None,
        };
        MemFs { capabilities, state: Arc::new(StepMutex::new(state)) }
    }

    /// Calls so far that changed, or would have changed, anything on disk:
    /// creating, appending, syncing, renaming and so on.
    pub fn operations(&self) -> u64 {
        self.state.lock().operations
    }

    /// Lets the process be gone after `operations` changing calls in total:
    /// every later call fails and has no effect, except that the first one, if
    /// it is an append, may still write a part of its bytes.
    pub fn stop_after(&self, operations: u64) {
        self.state.lock().operations_max = operations;
    }

    /// True if the process is gone: by [`MemFs::stop_after`], or because the
    /// file system was crashed or its process killed.
    pub fn is_stopped(&self) -> bool {
        self.state.lock().stopped
    }

    /// Starts any call.
    fn begin(&self) -> io::Result<StepGuard<'_, State>> {
        #[cfg(simulation)]
        crate::sync::thread::yield_now();
        let state = self.state.lock();
        if state.stopped {
            return Err(io::Error::other("the process is gone"));
        }
        Ok(state)
    }

    /// Starts a call that changes something.
    fn begin_change(&self) -> io::Result<StepGuard<'_, State>> {
        let mut state = self.begin()?;
        if state.operations >= state.operations_max {
            state.stopped = true;
            return Err(io::Error::other("the process is gone"));
        }
        state.operations += 1;
        state.last_append = None;
        Ok(state)
    }

    fn require(&self, capability: bool) -> io::Result<()> {
        if capability { Ok(()) } else { Err(io::ErrorKind::Unsupported.into()) }
    }

    fn writer(&self, inode: Arc<StepMutex<Inode>>) -> Box<dyn WritableFile> {
        Box::new(MemWriter { fs: self.clone(), inode, position: 0 })
    }
}

impl Entry {
    fn file(&self) -> Option<&Arc<StepMutex<Inode>>> {
        match self {
            Entry::File(inode) => Some(inode),
            Entry::Directory => None,
        }
    }
}

impl State {
    fn file(&self, path: &Path) -> io::Result<&Arc<StepMutex<Inode>>> {
        match self.entries.get(path) {
            Some(Entry::File(inode)) => Ok(inode),
            Some(Entry::Directory) => Err(io::ErrorKind::IsADirectory.into()),
            None => Err(io::ErrorKind::NotFound.into()),
        }
    }

    fn is_directory(&self, path: &Path) -> bool {
        is_root(path) || matches!(self.entries.get(path), Some(Entry::Directory))
    }

    /// # Errors
    /// `NotFound` if the directory of `path` is not there.
    fn need_parent(&self, path: &Path) -> io::Result<()> {
        if self.is_directory(parent(path)) { Ok(()) } else { Err(io::ErrorKind::NotFound.into()) }
    }

    fn add(&mut self, path: &Path, entry: Entry) {
        self.apply(Change::Add { path: path.to_path_buf(), entry });
    }

    fn apply(&mut self, change: Change) {
        change.apply(&mut self.entries);
        self.changes.push(change);
    }

    /// The file at `path`, made if it is not there.
    fn file_or_new(&mut self, path: &Path) -> io::Result<Arc<StepMutex<Inode>>> {
        self.need_parent(path)?;
        match self.file(path) {
            Ok(inode) => Ok(Arc::clone(inode)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let inode = Arc::new(StepMutex::new(Inode::default()));
                self.add(path, Entry::File(Arc::clone(&inode)));
                Ok(inode)
            }
            Err(error) => Err(error),
        }
    }

    fn children<'a>(&'a self, path: &'a Path) -> impl Iterator<Item = &'a Path> {
        self.entries.keys().map(PathBuf::as_path).filter(move |entry| parent(entry) == path)
    }
}

impl Change {
    fn apply(&self, entries: &mut BTreeMap<PathBuf, Entry>) {
        match self {
            Change::Add { path, entry } => {
                entries.insert(path.clone(), entry.clone());
            }
            Change::Remove { path } => {
                entries.remove(path);
            }
            Change::Rename { from, to, entry } => {
                entries.remove(from);
                entries.insert(to.clone(), entry.clone());
            }
        }
    }

    /// True if syncing `directory` makes the change durable.
    fn is_in(&self, directory: &Path) -> bool {
        match self {
            Change::Add { path, .. } | Change::Remove { path } => parent(path) == directory,
            Change::Rename { from, to, .. } => parent(from) == directory || parent(to) == directory,
        }
    }
}

fn parent(path: &Path) -> &Path {
    path.parent().unwrap_or(Path::new(""))
}

fn is_root(path: &Path) -> bool {
    path == Path::new("") || path == Path::new("/")
}

impl Fs for MemFs {
    fn capabilities(&self) -> Capabilities {
        self.capabilities
    }

    fn create(&self, path: &Path) -> io::Result<Box<dyn WritableFile>> {
        let inode = self.begin_change()?.file_or_new(path)?;
        inode.lock().truncate(0);
        Ok(self.writer(inode))
    }

    fn overwrite(&self, path: &Path) -> io::Result<Box<dyn WritableFile>> {
        self.require(self.capabilities.overwriting)?;
        let inode = Arc::clone(self.begin()?.file(path)?);
        Ok(self.writer(inode))
    }

    fn open(&self, path: &Path) -> io::Result<Arc<dyn ReadableFile>> {
        let inode = Arc::clone(self.begin()?.file(path)?);
        Ok(Arc::new(MemReader { fs: self.clone(), inode }))
    }

    fn list(&self, directory: &Path) -> io::Result<Vec<String>> {
        let state = self.begin()?;
        if !state.is_directory(directory) {
            return Err(io::ErrorKind::NotFound.into());
        }
        let name = |path: &Path| Some(path.file_name()?.to_string_lossy().into_owned());
        Ok(state.children(directory).filter_map(name).collect())
    }

    fn length(&self, path: &Path) -> io::Result<u64> {
        Ok(self.begin()?.file(path)?.lock().length())
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        let mut state = self.begin_change()?;
        state.file(path)?;
        state.apply(Change::Remove { path: path.to_path_buf() });
        Ok(())
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut state = self.begin_change()?;
        let entry = Entry::File(Arc::clone(state.file(from)?));
        state.need_parent(to)?;
        if state.is_directory(to) {
            return Err(io::ErrorKind::IsADirectory.into());
        }
        state.apply(Change::Rename { from: from.into(), to: to.into(), entry });
        Ok(())
    }

    fn hard_link(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.require(self.capabilities.hard_links)?;
        let mut state = self.begin_change()?;
        let entry = Entry::File(Arc::clone(state.file(from)?));
        state.need_parent(to)?;
        if state.entries.contains_key(to) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        state.add(to, entry);
        Ok(())
    }

    fn create_directory(&self, path: &Path) -> io::Result<()> {
        let mut state = self.begin_change()?;
        let above: Vec<&Path> = path.ancestors().filter(|path| !is_root(path)).collect();
        for directory in above.into_iter().rev() {
            match state.entries.get(directory) {
                Some(Entry::Directory) => {}
                Some(Entry::File(_)) => return Err(io::ErrorKind::NotADirectory.into()),
                None => state.add(directory, Entry::Directory),
            }
        }
        Ok(())
    }

    fn remove_directory(&self, path: &Path) -> io::Result<()> {
        let mut state = self.begin_change()?;
        if !state.is_directory(path) {
            return Err(io::ErrorKind::NotFound.into());
        }
        if is_root(path) || state.children(path).next().is_some() {
            return Err(io::ErrorKind::DirectoryNotEmpty.into());
        }
        state.apply(Change::Remove { path: path.to_path_buf() });
        Ok(())
    }

    fn sync_directory(&self, path: &Path) -> io::Result<()> {
        let mut state = self.begin_change()?;
        if !state.is_directory(path) {
            return Err(io::ErrorKind::NotFound.into());
        }
        let State { changes, durable, .. } = &mut *state;
        changes.retain(|change| {
            let synced = change.is_in(path);
            if synced {
                change.apply(durable);
            }
            !synced
        });
        Ok(())
    }

    fn lock(&self, path: &Path) -> Result<Box<dyn FileLock>, LockError> {
        let mut state = self.begin_change().map_err(LockError::Io)?;
        if state.locks.iter().any(|held| held == path) {
            return Err(LockError::Held { holder_pid: Some(std::process::id()) });
        }
        state.file_or_new(path).map_err(LockError::Io)?;
        state.locks.push(path.to_path_buf());
        Ok(Box::new(MemLock { fs: self.clone(), path: path.to_path_buf() }))
    }
}

#[cfg(all(test, not(simulation)))]
mod tests;
