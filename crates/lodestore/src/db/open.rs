//! Opening: lock, manifest, log, and what a crash left behind.
//!
//! lock -> manifest -> options fit? -> log sound? -> (from here on files
//! change:) new manifest -> log replayed into tables -> leftovers removed
//!
//! Where there is nothing to replay or remove, nothing changes: the first write begins
//! the new manifest, and in any case a segment of the log.
//!
//! Invariant: everything that can refuse an open is looked at before the first
//! file but the lock file is changed.

use std::collections::{BTreeMap, BTreeSet};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use crate::batch::FamilyId;
use crate::budget::{Account, Budget};
use crate::cache::Cache;
use crate::error::{Error, Result};
use crate::events::{Event, Events};
use crate::filename::{self, FileKind};
use crate::fs::{FileLock, Fs, LimitedFs, LockError, create_directory_durably};
use crate::key::{FileId, KeyOrder};
use crate::limiter::RateLimiter;
use crate::memtable::Memtable;
use crate::merge_operator;
use crate::options::{FamilyOptions, Options};
use crate::rows::RowCache;
use crate::scheduler::{OwnThreads, Scheduler};
use crate::sync::atomic::{AtomicBool, AtomicU64};
use crate::sync::{Arc, Mutex, Published};
use crate::table::describe;
use crate::tables::{self, TableHome, TableReads};
use crate::version::manifest::{self, ManifestIdentity, Recovered};
use crate::version::{FamilyDescriptor, State, VersionEdit};
use crate::versions::Versions;
use crate::wal::Access;

use super::background::Background;
use super::commit::{ActiveMemtable, CommitState};
use super::engine::Engine;
use super::families::{descriptor, prefix_extractor_name};
use super::family::{DEFAULT_NAME, Families, FamilyCore, Shared};
use super::health::Health;
use super::logs::{ActiveLog, Logs};
use super::publish::Publisher;
use super::queue::CommitQueue;
use super::replay;
use super::snapshot::SnapshotList;
use super::stalls::StallLog;
use super::view::{View, Views, VisibleSequence};

/// Opens a database for reading and writing.
pub(crate) fn open(directory: &Path, options: Options) -> Result<(Arc<Engine>, OwnThreads)> {
    options.validate()?;
    let (options, file_limit) = with_file_limit(options);
    let fs: Arc<dyn Fs> = Arc::new(file_limit.clone());
    let names = list(&*fs, directory)?;
    if names.is_none() && !options.create_if_missing {
        let what = "create_if_missing is off";
        return Err(Error::missing(format!("no database in {}, and {what}", directory.display())));
    }
    let has_current = names.is_some_and(|names| names.iter().any(|name| name == filename::CURRENT));
    if !has_current && options.create_if_missing {
        // Also where the directory is there: whoever made it may have been killed before
        // its name was durable.
        create_directory_durably(&*fs, directory)
            .map_err(|error| Error::io(directory, "create directory", error))?;
    }
    // Before there are lock files in a directory that is somebody else's.
    manifest::refuse_foreign(&fs, directory)?;
    let lock = take_lock(&*fs, directory)?;
    check_direct_reads(&options, &directory.join(filename::LOCK))?;
    let (scheduler, threads) = scheduler(&options);
    let mut notes = Vec::new();
    let recovered = match manifest::recover(&fs, directory) {
        Ok(_) if options.error_if_exists => {
            let directory = directory.display();
            return Err(Error::invalid(format!(
                "a database exists in {directory} already, and error_if_exists is on"
            )));
        }
        Err(Error::Missing { .. }) if options.create_if_missing => {
            Recovered::nothing(directory, first_identity(&scheduler))
        }
        recovered => recovered?,
    };
    recovered.check_writable()?;
    notes.extend(recovered.torn_note());
    check_tables(&*fs, directory, &recovered.state)?;
    let found = replay::check(&fs, directory, &recovered, Access::ReadWrite)?;
    notes.extend(found.note());
    if recovered.name_may_be_lost() {
        // Whoever made it so may have been killed before the name was durable. It must
        // last before there are files that nothing but it leads to.
        let synced = fs.sync_directory(directory);
        synced.map_err(|error| Error::io(directory, "sync directory", error))?;
    }
    let is_settled = is_settled(&*fs, directory, &recovered)?;
    let Recovered { mut state, identity, .. } = recovered;
    if found.is_empty {
        replay::leave_behind(&mut state);
    }
    let opening = Opening::new(directory, options, file_limit, scheduler, state, notes)?;
    let engine = match is_settled && !opening.is_described_anew {
        true => opening.inherit(identity, false)?,
        false => opening.begin(identity)?,
    };
    *engine.lock.lock() = Some(lock);
    replay::into_tables(&engine, &found)?;
    remove_leftovers(&engine)?;
    preload_tables(&engine);
    engine.lend_memory();
    engine.update_pressure();
    engine.compact_after_opening();
    engine.publish_by_options();
    engine.keep_options();
    tell_opened(&engine);
    Ok((engine, threads))
}

/// How often a directory that changes meanwhile is read at most.
const READ_TRIES: usize = 16;

/// Opens a database for reading: nothing is written, nothing locked.
///
/// A process that writes to it at the same time may have begun another manifest, or have
/// removed a log, between two steps of this: the directory looks damaged then. Damage is
/// what is found again.
pub(crate) fn open_read_only(
    directory: &Path,
    options: Options,
) -> Result<(Arc<Engine>, OwnThreads)> {
    options.validate()?;
    check_writes_nothing(&options)?;
    let mut last = String::new();
    for _ in 1..READ_TRIES {
        match try_open_read_only(directory, options.clone()) {
            Err(error) if may_have_changed(&error) && error.to_string() != last => {
                last = error.to_string();
            }
            opened => return opened,
        }
    }
    try_open_read_only(directory, options)
}

/// Whether a change beside a reader can look like this.
fn may_have_changed(error: &Error) -> bool {
    match error {
        Error::Corruption { .. } | Error::Missing { .. } => true,
        Error::Io { source, .. } => source.kind() == ErrorKind::NotFound,
        _ => false,
    }
}

fn try_open_read_only(directory: &Path, options: Options) -> Result<(Arc<Engine>, OwnThreads)> {
    let (options, file_limit) = with_file_limit(options);
    let fs: Arc<dyn Fs> = Arc::new(file_limit.clone());
    let recovered = manifest::recover(&fs, directory)?;
    check_direct_reads(&options, &directory.join(filename::CURRENT))?;
    let mut notes: Vec<String> = recovered.torn_note().into_iter().collect();
    let found = replay::check(&fs, directory, &recovered, Access::ReadOnly)?;
    let Recovered { state, identity, .. } = recovered;
    let (scheduler, threads) = scheduler(&options);
    notes.extend(found.note());
    let engine = Opening::new(directory, options, file_limit, scheduler, state, notes)?
        .inherit(identity, true)?;
    replay::into_memtables(&engine, &found)?;
    check_log_kept(&fs, directory, found.first_live)?;
    preload_tables(&engine);
    tell_opened(&engine);
    Ok((engine, threads))
}

/// Who writes needs no log before the first live one, and may write over its file: the log
/// that is being read would seem to end there.
///
/// # Errors
/// `Missing` if the log does not begin at `first_live` any more.
fn check_log_kept(fs: &Arc<dyn Fs>, directory: &Path, first_live: u64) -> Result<()> {
    let now = manifest::recover(fs, directory)?.state.oldest_log_number().unwrap_or(0);
    if now == first_live {
        return Ok(());
    }
    let directory = directory.display();
    let what =
        format!("log {first_live} of {directory}: whoever writes there has gone on to {now}");
    Err(Error::missing(what))
}

fn preload_tables(engine: &Engine) {
    engine.families.load().all().for_each(|family| family.preload_tables());
}

fn tell_opened(engine: &Engine) {
    engine.shared.events.tell(Event::Opened {
        directory: &engine.shared.directory,
        read_only: engine.read_only,
        recovery: &engine.recovery,
    });
}

/// # Errors
/// `InvalidArgument` if `options` are none for reading only.
pub(crate) fn check_writes_nothing(options: &Options) -> Result<()> {
    match options.status_interval {
        Some(_) => {
            Err(Error::invalid("status_interval: who opens for reading only writes nothing"))
        }
        None => Ok(()),
    }
}

/// Refuses to read past the page cache where that cannot be done with `file`, one
/// of the directory's.
fn check_direct_reads(options: &Options, file: &Path) -> Result<()> {
    if !options.direct_reads {
        return Ok(());
    }
    if options.mapped_bytes_max > 0 {
        let what =
            "direct_reads and mapped_bytes_max: tables are read past the page cache or mapped";
        return Err(Error::invalid(what));
    }
    let what = "direct_reads is on, but this file system cannot read past the page cache";
    match options.fs.open_direct(file) {
        Ok(_) => Ok(()),
        Err(error) if matches!(error.kind(), ErrorKind::Unsupported | ErrorKind::InvalidInput) => {
            Err(Error::invalid(what))
        }
        Err(error) => Err(Error::io(file, "open", error)),
    }
}

/// Descriptors that are left to logs, files being written, locks, directories
/// and the rest of the program.
const DESCRIPTORS_RESERVED: usize = 32;
const OPEN_FILES_MIN: usize = 4;

/// The cap on files that are open for reading.
pub(crate) fn files_max(options: &Options) -> usize {
    options.open_files_max.unwrap_or_else(|| match options.fs.open_files_max() {
        Some(limit) => limit.saturating_sub(DESCRIPTORS_RESERVED).max(OPEN_FILES_MIN),
        None => usize::MAX,
    })
}

/// A file system that keeps to the cap on open files, and the options with the
/// counters that it counts in.
pub(crate) fn with_file_limit(mut options: Options) -> (Options, LimitedFs) {
    let statistics = Arc::clone(options.statistics.get_or_insert_default());
    let limit = LimitedFs::new(Arc::clone(&options.fs), files_max(&options), &statistics);
    (options, limit)
}

/// Names of a database's families, by number: the default one first.
pub(crate) fn list_families(directory: &Path, options: &Options) -> Result<Vec<String>> {
    let recovered = manifest::recover(&options.fs, directory)?;
    Ok(recovered.state.families.into_values().map(|family| family.descriptor.name).collect())
}

/// Takes the lock of `directory`.
pub(crate) fn take_lock(fs: &dyn Fs, directory: &Path) -> Result<Box<dyn FileLock>> {
    let path = directory.join(filename::LOCK);
    fs.lock(&path).map_err(|error| match error {
        LockError::Held { holder_pid } => Error::Busy { path: path.clone(), holder_pid },
        LockError::Io(source) => Error::io(&path, "lock", source),
    })
}

fn scheduler(options: &Options) -> (Arc<Scheduler>, OwnThreads) {
    let shared = options.scheduler.as_ref();
    let own = || Scheduler::new(options.background_threads);
    let scheduler = shared.map_or_else(own, Arc::clone);
    let threads = OwnThreads::of(&scheduler, shared);
    (scheduler, threads)
}

/// What a database's first manifest is the successor of.
fn first_identity(scheduler: &Scheduler) -> ManifestIdentity {
    let database_id = FileId(scheduler.random_u128());
    ManifestIdentity { database_id, ..ManifestIdentity::default() }
}

/// A database whose options are known to fit, before anything is changed.
struct Opening {
    options: Options,
    file_limit: LimitedFs,
    shared: Arc<Shared>,
    state: State,
    families: Vec<(FamilyId, String, FamilyOptions)>,
    /// Whether the manifest is to say something else of a family than it does.
    is_described_anew: bool,
    notes: Vec<String>,
}

impl Opening {
    fn new(
        directory: &Path,
        options: Options,
        file_limit: LimitedFs,
        scheduler: Arc<Scheduler>,
        mut state: State,
        notes: Vec<String>,
    ) -> Result<Opening> {
        if state.families.is_empty() {
            let created = default_family(&options.family_options(DEFAULT_NAME).clone());
            state.apply(&created).expect("an empty state takes its first family");
        }
        let mut families = Vec::new();
        let mut is_described_anew = false;
        for (&id, family) in &mut state.families {
            let stored = family.descriptor.clone();
            let options = options.family_options(&stored.name);
            let options = fit(&mut family.descriptor, options.clone())?;
            is_described_anew |= stored != family.descriptor;
            families.push((FamilyId(id), family.descriptor.name.clone(), options));
        }
        let fs: Arc<dyn Fs> = Arc::new(file_limit.clone());
        let own = || options.memory_bytes.map_or_else(Budget::unlimited, Budget::new);
        let budget = options.budget.clone().unwrap_or_else(own);
        let cache = match &options.cache {
            Some(cache) => Arc::clone(cache),
            None => Cache::within_or(&budget, options.cache_bytes),
        };
        let memory = Account::new(&budget);
        let rows = Arc::new(RowCache::new(options.row_cache_bytes, &memory));
        let directory = directory.to_path_buf();
        let reads = TableReads {
            direct: options.direct_reads,
            mapped_bytes_max: options.mapped_bytes_max,
            preload: options.preload_tables,
        };
        let shared = Shared {
            home: TableHome::new(
                Arc::clone(&fs),
                directory.clone(),
                Arc::clone(&cache),
                Arc::clone(&scheduler),
                Arc::clone(&memory),
                reads,
            ),
            fs,
            directory,
            scheduler,
            cache,
            rows,
            memory,
            statistics: options.statistics.clone().unwrap_or_default(),
            snapshots: Arc::new(SnapshotList::default()),
            visible: VisibleSequence::new(state.last_sequence),
            events: Events::new(options.listener.as_ref()),
            latencies: options.latencies,
        };
        let shared = Arc::new(shared);
        Ok(Opening { options, file_limit, shared, state, families, is_described_anew, notes })
    }

    fn orders(&self) -> BTreeMap<u32, KeyOrder> {
        self.families.iter().map(|(id, _, options)| (id.0, options.order.clone())).collect()
    }

    /// Begins a new manifest, and the engine on it.
    fn begin(self, previous: ManifestIdentity) -> Result<Arc<Engine>> {
        let (home, statistics) = (&self.shared.home, &self.shared.statistics);
        let state = self.state.clone();
        let versions = Versions::begin(home, statistics, state, previous, &self.orders())?;
        Ok(self.engine(versions, false))
    }

    /// The engine on a manifest that stays as it is, at least until the first edit.
    fn inherit(self, identity: ManifestIdentity, read_only: bool) -> Result<Arc<Engine>> {
        let (home, statistics) = (&self.shared.home, &self.shared.statistics);
        let state = self.state.clone();
        let versions = Versions::inherit(home, statistics, state, identity, &self.orders())?;
        Ok(self.engine(versions, read_only))
    }

    fn engine(self, versions: Versions, read_only: bool) -> Arc<Engine> {
        let shared = self.shared;
        let limiter = match (&self.options.rate_limiter, self.options.background_bytes_per_second) {
            (Some(limiter), _) => limiter.join(),
            (None, 0) => RateLimiter::unlimited(&shared.scheduler).join(),
            (None, rate) => RateLimiter::new(&shared.scheduler, rate).join(),
        };
        let logs = Logs::new(&shared.fs, shared.directory.clone());
        let publisher = Publisher::new(shared.scheduler.now());
        let health = Health::new(&shared.events);
        let log = self.options.logging.then(|| ActiveLog::after(None, &logs.sealed));
        let mut commit = CommitState::new(self.state.last_sequence, log);
        let mut families = Families::default();
        for (id, name, options) in self.families {
            let (active, writer) = Memtable::new(options.order.clone(), &shared.memory);
            let version = versions.current(id.0).expect("every family has a version");
            let view = View { active: Arc::clone(&active), sealed: Vec::new(), version };
            let family = FamilyCore::new(id, &name, options, Views::new(view), &shared);
            commit.put_memtable(ActiveMemtable::new(&family, active, writer));
            families.insert(family);
        }
        Arc::new(Engine {
            logs,
            logging: self.options.logging,
            log_mapped: self.options.log_mapped,
            log_bytes_max: AtomicU64::new(self.options.log_bytes_max),
            options: Mutex::new(self.options),
            file_limit: self.file_limit,
            options_files: Mutex::default(),
            shared,
            families: Published::new(Arc::new(families)),
            queue: CommitQueue::default(),
            commit: Mutex::new(commit),
            background: Background::default(),
            versions,
            health,
            is_pressed: AtomicBool::new(false),
            log_bytes: AtomicU64::new(0),
            stalls: StallLog::default(),
            memory_given_back: Mutex::default(),
            publisher,
            limiter,
            lock: Mutex::new(None),
            read_only,
            recovery: self.notes,
        })
    }
}

/// The edit that creates the default family.
fn default_family(options: &FamilyOptions) -> VersionEdit {
    let descriptor = descriptor(FamilyId::DEFAULT, DEFAULT_NAME, options);
    VersionEdit { families_created: vec![descriptor], ..VersionEdit::default() }
}

/// Checks that a family can be worked on with `options`, and completes them
/// with what is stored.
fn fit(descriptor: &mut FamilyDescriptor, mut options: FamilyOptions) -> Result<FamilyOptions> {
    let name = &descriptor.name;
    options.order = options.order.for_stored(&descriptor.comparator).ok_or_else(|| {
        Error::invalid(format!(
            "family {name:?} is ordered by {:?}, but was opened with {:?}",
            descriptor.comparator,
            options.order.name()
        ))
    })?;
    match options.prefix_extractor {
        Some(_) => descriptor.prefix_extractor = prefix_extractor_name(&options),
        // A name that only a later build has stands for no prefixes here, and
        // stays what is stored.
        None => {
            let stored = descriptor.prefix_extractor.as_deref();
            let known = stored.and_then(|name| name.parse().ok());
            options.prefix_extractor = Some(known.unwrap_or_default());
        }
    }
    let given = options.merge_operator.as_ref().map(|m| m.name().to_string());
    match (&descriptor.merge_operator, given) {
        // An operator may be added later: from then on it is stored.
        (None, given) => descriptor.merge_operator = given,
        (Some(stored), Some(given)) if *stored == given => {}
        (Some(stored), Some(given)) => {
            return Err(Error::invalid(format!(
                "family {name:?} merges by {stored:?}, but was opened with {given:?}"
            )));
        }
        (Some(stored), None) => {
            let built_in = merge_operator::built_in(stored).ok_or_else(|| {
                Error::invalid(format!("family {name:?} needs its merge operator {stored:?}"))
            })?;
            options.merge_operator = Some(built_in);
        }
    }
    Ok(options)
}

/// True if the database is as whoever closed it last left it, and all that it holds is in
/// tables, durably: opening it then changes nothing, and the manifest there is will do until
/// something is written.
fn is_settled(fs: &dyn Fs, directory: &Path, recovered: &Recovered) -> Result<bool> {
    let Recovered { state, identity, .. } = recovered;
    let names = list(fs, directory)?.unwrap_or_default();
    // An edit that a killed process left unsynced is seen by who opens next, who must not
    // lose it when power fails.
    let is_durable = !state.families.is_empty() && recovered.torn.is_none() && recovered.is_synced;
    Ok(is_durable && !names.iter().any(|name| is_leftover(name, state, identity.number)))
}

/// True for a file of ours that nothing refers to once the log was replayed: what a crash
/// left between writing a file and naming it in the manifest, or between the end of its
/// use and its removal.
fn is_leftover(name: &str, state: &State, manifest_number: u64) -> bool {
    let is_table = |number| state.families.values().any(|f| f.tables.contains_key(&number));
    match filename::parse(name) {
        Some(FileKind::Table(number)) => !is_table(number),
        Some(FileKind::Manifest(number)) => number != manifest_number,
        // What a process that was killed has told of itself is stale.
        Some(FileKind::Log(_) | FileKind::Temporary(_) | FileKind::Status) => true,
        Some(FileKind::Options(_) | FileKind::Current | FileKind::Lock) | None => false,
    }
}

fn remove_leftovers(engine: &Engine) -> Result<()> {
    let (fs, directory) = (&engine.shared.fs, &engine.shared.directory);
    let names = fs.list(directory).map_err(|error| Error::io(directory, "list", error))?;
    let (state, manifest, _versions) = engine.versions.capture();
    for name in names {
        if let Some(FileKind::Options(number)) = filename::parse(&name) {
            engine.options_files.lock().found(number);
        }
        if is_leftover(&name, &state, manifest.number) {
            let path = directory.join(&name);
            match fs.remove(&path) {
                Err(error) if error.kind() != ErrorKind::NotFound => {
                    return Err(Error::io(&path, "remove", error));
                }
                _ => {}
            }
        }
    }
    Ok(())
}

/// Refuses a manifest that names tables which are gone: it may have lost edits
/// at its end, and what is a leftover by it may be all that there is.
fn check_tables(fs: &dyn Fs, directory: &Path, state: &State) -> Result<()> {
    let names = list(fs, directory)?.unwrap_or_default();
    let there: BTreeSet<u64> = names
        .iter()
        .filter_map(|name| match filename::parse(name) {
            Some(FileKind::Table(number)) => Some(number),
            _ => None,
        })
        .collect();
    let named = state.families.values().flat_map(|family| family.tables.keys());
    match named.into_iter().find(|number| !there.contains(number)) {
        Some(&number) => Err(tables::missing(&filename::table_path(directory, number))),
        None => check_newest_table(fs, directory, state),
    }
}

/// Refuses a database with tables of a later format before it is changed. A
/// build that writes such tables gives them higher numbers than all others
/// have: it is enough to look at one.
fn check_newest_table(fs: &dyn Fs, directory: &Path, state: &State) -> Result<()> {
    let named = state.families.values().flat_map(|family| family.tables.keys());
    let Some(&newest) = named.max() else { return Ok(()) };
    let path = filename::table_path(directory, newest);
    let file = fs.open(&path).map_err(|error| Error::io(&path, "open", error))?;
    match describe(&*file, &path) {
        Err(error @ Error::Incompatible { .. }) => Err(error),
        // Damage is for whoever reads it: the rest can be used.
        _ => Ok(()),
    }
}

/// Names in `directory`; `None` if there is no such directory. Any other
/// failure (no descriptors, no permission) never looks like that.
pub(crate) fn list(fs: &dyn Fs, directory: &Path) -> Result<Option<Vec<String>>> {
    match fs.list(directory) {
        Ok(names) => Ok(Some(names)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Error::io(directory, "list", error)),
    }
}

/// The log files in `directory`: number and path.
pub(crate) fn log_files(fs: &dyn Fs, directory: &Path) -> Result<Vec<(u64, PathBuf)>> {
    let names = list(fs, directory)?.unwrap_or_default();
    let logs = names.iter().filter_map(|name| match filename::parse(name) {
        Some(FileKind::Log(number)) => Some((number, directory.join(name))),
        _ => None,
    });
    Ok(logs.collect())
}
