//! The public handle of an open database.

use std::ops::Deref;
use std::path::Path;

use crate::batch::WriteBatch;
use crate::error::{Error, Result};
use crate::key::SequenceNumber;
use crate::options::{FamilyOptions, IngestOptions, Options, WriteOptions};
use crate::scheduler::OwnThreads;
use crate::stats::Statistics;
use crate::sync::Arc;

use super::engine::Engine;
use super::family_handle::Family;
use super::ingest::IngestReport;
use super::snapshot::Snapshot;
use super::updates::{LogPin, Updates};
use super::verify::VerifyReport;

/// Keeps the engine running; the last one to go closes it, and waits until nothing of
/// the database is in use. So whoever holds files or tables besides drops those first.
pub(crate) struct Handle {
    pub(crate) engine: Arc<Engine>,
    /// Dropped behind the engine: nothing of the database is in use then.
    _threads: OwnThreads,
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.engine.close();
    }
}

/// An open database. Cloning is cheap, and clones are the same database.
///
/// It stays open while a handle to it, to one of its families, a cursor or
/// [`Updates`] lives; the last one to go closes it, which waits for a running flush.
/// Compactions that run give up, and begin anew when the database has been open for a
/// second again, or with the first flush. A `Db` dereferences to its default [`Family`], so that `db.put(..)` and `db.get(..)` work
/// on that.
///
/// ```
/// use lodestore::{Db, Options};
/// # let directory = std::env::temp_dir().join(format!("lodestore-doc-{}", std::process::id()));
///
/// let options = Options { create_if_missing: true, ..Options::default() };
/// let db = Db::open(&directory, options)?;
/// db.put(b"apple", b"red")?;
/// assert_eq!(db.get(b"apple")?.as_deref(), Some(&b"red"[..]));
/// for entry in db.range(..) {
///     let (key, value) = entry?;
///     println!("{} = {}", key.escape_ascii(), value.escape_ascii());
/// }
/// # drop(db);
/// # Db::destroy(&directory, &Options::default())?;
/// # Ok::<(), lodestore::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Db {
    default: Family,
}

impl Deref for Db {
    type Target = Family;

    fn deref(&self) -> &Family {
        &self.default
    }
}

impl Db {
    /// Opens the database in the directory `path`, with all its families.
    /// What the log holds is recovered first.
    ///
    /// # Errors
    /// `Missing` if there is none and it is not to be created, `Busy` if
    /// another opener has it, `Corruption` and `Incompatible` if its files are
    /// damaged or of a newer format: nothing was changed then.
    pub fn open(path: impl AsRef<Path>, options: Options) -> Result<Db> {
        super::open::open(path.as_ref(), options).map(Db::new)
    }

    /// Opens the database for reading only. Nothing on disk is changed, and no
    /// lock is taken: it shows the state at this moment, and a writer in
    /// another process may remove files that it needs later. What looks damaged is
    /// looked at again, since that writer may just have changed it. The log is
    /// read into memory.
    ///
    /// # Errors
    /// As [`Db::open`]; `InvalidArgument` if the log takes more memory than
    /// [`Options::memory_bytes`] leaves to memtables.
    pub fn open_read_only(path: impl AsRef<Path>, options: Options) -> Result<Db> {
        super::open::open_read_only(path.as_ref(), options).map(Db::new)
    }

    /// Deletes the database in the directory `path`. Files that are not ours
    /// stay, and so does the directory then. No error if there is none.
    ///
    /// # Errors
    /// `Busy` if it is open.
    pub fn destroy(path: impl AsRef<Path>, options: &Options) -> Result<()> {
        super::destroy::destroy(path.as_ref(), options)
    }

    /// Names of the families of the database in the directory `path`, the
    /// default one first.
    pub fn list_families(path: impl AsRef<Path>, options: &Options) -> Result<Vec<String>> {
        super::open::list_families(path.as_ref(), options)
    }

    fn new((engine, threads): (Arc<Engine>, OwnThreads)) -> Db {
        let core = engine.families.load().all().next().cloned();
        let core = core.expect("every database has its default family");
        Db { default: Family { handle: Arc::new(Handle { engine, _threads: threads }), core } }
    }

    pub(super) fn engine(&self) -> &Arc<Engine> {
        &self.default.handle.engine
    }

    /// The directory.
    pub fn path(&self) -> &Path {
        &self.engine().shared.directory
    }

    /// Writes all records of `batch`, or none.
    pub fn write(&self, mut batch: WriteBatch) -> Result<()> {
        self.write_with(&WriteOptions::default(), &mut batch).map(|_| ())
    }

    /// [`Db::write`], with options. Gives the sequence number of the batch's
    /// last record. The batch can be cleared and used again.
    ///
    /// # Errors
    /// As [`Family::put`]; `Missing` if a family of the batch is not there.
    pub fn write_with(
        &self,
        options: &WriteOptions,
        batch: &mut WriteBatch,
    ) -> Result<SequenceNumber> {
        self.engine().write(*options, batch)
    }

    /// Writes a batch under given sequence numbers, as a replica does with
    /// what [`Db::updates_since`] gave.
    ///
    /// # Errors
    /// `InvalidArgument` if `first` is not above [`Db::latest_sequence`].
    pub fn apply_at(&self, first: SequenceNumber, batch: &mut WriteBatch) -> Result<()> {
        self.engine().apply_at(first, batch)
    }

    /// The state of all families at this moment, to read later.
    pub fn snapshot(&self) -> Snapshot {
        self.engine().shared.snapshot()
    }

    /// The sequence number of the newest record that readers see.
    pub fn latest_sequence(&self) -> SequenceNumber {
        self.engine().shared.visible.get()
    }

    /// Creates a family. It is there whenever the database is opened again: see
    /// [`Db::family`], and [`Db::family_or_create`] for a program that does not
    /// know whether it is its first run.
    ///
    /// # Errors
    /// `InvalidArgument` if the name is taken or no name.
    pub fn create_family(&self, name: &str, options: FamilyOptions) -> Result<Family> {
        let core = self.engine().create_family(name, options)?;
        Ok(Family { handle: Arc::clone(&self.default.handle), core })
    }

    /// The family of this name. If there is none it is created, with the options
    /// that the database was opened with for it.
    ///
    /// ```
    /// # use lodestore::{AddU64, Db, FamilyOptions, MemFs, Options};
    /// # use std::sync::Arc;
    /// # let fs = Arc::new(MemFs::new());
    /// let mut options = Options { create_if_missing: true, fs, ..Options::default() };
    /// let adding = FamilyOptions { merge_operator: Some(Arc::new(AddU64)), ..Default::default() };
    /// options.families.insert("counts".to_string(), adding);
    /// let db = Db::open("db", options)?;
    /// let counts = db.family_or_create("counts")?;
    /// counts.merge(b"visits", &1u64.to_le_bytes())?;
    /// counts.merge(b"visits", &1u64.to_le_bytes())?;
    /// assert_eq!(counts.get(b"visits")?.as_deref(), Some(&2u64.to_le_bytes()[..]));
    /// # Ok::<(), lodestore::Error>(())
    /// ```
    ///
    /// # Errors
    /// `InvalidArgument` if it is no name, `ReadOnly` as for writes.
    pub fn family_or_create(&self, name: &str) -> Result<Family> {
        if let Some(family) = self.family(name) {
            return Ok(family);
        }
        let options = self.options().family_options(name).clone();
        // Another thread may have been faster.
        self.create_family(name, options).or_else(|error| self.family(name).ok_or(error))
    }

    /// The options that hold now, with those of every family. What the engine
    /// chose where none was given (a cache, a scheduler) is not among them.
    pub fn options(&self) -> Options {
        self.engine().current_options()
    }

    /// Changes options of the database: see [`Family::set_family_options`],
    /// which changes those of a family.
    ///
    /// # Errors
    /// The same.
    pub fn set_options(&self, changes: &[(&str, &str)]) -> Result<()> {
        self.engine().set_options(changes)
    }

    /// Drops a family with all that it holds. Its files go when its last
    /// handle and the last reader are gone.
    ///
    /// # Errors
    /// `Missing` if there is none; `InvalidArgument` for the default family.
    pub fn drop_family(&self, name: &str) -> Result<()> {
        self.engine().drop_family(name)
    }

    /// The family of this name.
    pub fn family(&self, name: &str) -> Option<Family> {
        let core = Arc::clone(self.engine().families.load().named(name)?);
        Some(Family { handle: Arc::clone(&self.default.handle), core })
    }

    /// Names of all families, the default one first.
    pub fn family_names(&self) -> Vec<String> {
        self.engine().families.load().all().map(|family| family.name.clone()).collect()
    }

    /// [`Family::flush`] of all families, with the same errors.
    pub fn flush_all(&self) -> Result<()> {
        self.engine().flush(&self.engine().family_ids())
    }

    /// Makes all writes up to now survive power loss.
    pub fn sync_log(&self) -> Result<()> {
        self.engine().sync_log()
    }

    /// Makes a copy that opens as a database of its own, in the new directory
    /// `path`. Tables are linked where the file system can, so that this takes
    /// little time and space.
    ///
    /// ```
    /// # use lodestore::{Db, MemFs, Options};
    /// # let fs = std::sync::Arc::new(MemFs::new());
    /// # let options = Options { create_if_missing: true, fs, ..Options::default() };
    /// # let db = Db::open("db", options.clone())?;
    /// db.put(b"k", b"then")?;
    /// db.checkpoint("copy")?;
    /// db.put(b"k", b"now")?;
    /// let copy = Db::open("copy", options)?;
    /// assert_eq!(copy.get(b"k")?.as_deref(), Some(&b"then"[..]));
    /// # Ok::<(), lodestore::Error>(())
    /// ```
    ///
    /// # Errors
    /// `InvalidArgument` if `path` exists and is not empty.
    pub fn checkpoint(&self, path: impl AsRef<Path>) -> Result<()> {
        self.engine().checkpoint(path.as_ref())
    }

    /// Ingests tables into several families at once: all of them appear in one
    /// step, also across a crash, or none. See [`Family::ingest`]; of two tables
    /// with the same keys the later one in `tables` is the newer.
    pub fn ingest_together<P: AsRef<Path>>(
        &self,
        tables: &[(&Family, P)],
        options: &IngestOptions,
    ) -> Result<IngestReport> {
        let mut arriving = Vec::with_capacity(tables.len());
        for (family, path) in tables {
            if !Arc::ptr_eq(&family.handle.engine, self.engine()) {
                let what = format!("family {:?} is of another database", family.name());
                return Err(Error::invalid(what));
            }
            arriving.push((Arc::clone(&family.core), path.as_ref().to_path_buf()));
        }
        self.engine().ingest(arriving, options)
    }

    /// Reads every table in full and checks every checksum, the order of the
    /// Reads every table in full and checks every checksum, the order of the
    /// entries and the counts that the manifest has; and that each key's entries get
    /// older from level to level, without which reads would not agree.
    ///
    /// # Errors
    /// `Corruption` for the first thing that is wrong.
    pub fn verify(&self) -> Result<VerifyReport> {
        self.engine().verify()
    }

    /// Lets writing go on after a failure: a new log and a new manifest are
    /// begun, and what is in memory is written to tables. Compactions that
    /// stopped because of a failure of their own start again as well.
    ///
    /// # Errors
    /// What failed again; the database stays read-only then.
    pub fn resume(&self) -> Result<()> {
        self.engine().resume()
    }

    /// The batches from the one that holds `sequence` on, as they were
    /// written. The iterator ends at the newest; ask again for more.
    ///
    /// # Errors
    /// `Missing` if the log no longer goes back so far: keep it with
    /// [`Db::pin_log`]. The iterator gives the same where tables were ingested:
    /// they are in no log, and a replica begins again with a checkpoint.
    pub fn updates_since(&self, sequence: SequenceNumber) -> Result<Updates> {
        Updates::since(&self.default.handle, sequence)
    }

    /// Keeps the log from `sequence` on until the pin is dropped.
    pub fn pin_log(&self, sequence: SequenceNumber) -> LogPin {
        self.engine().logs.pin(self.engine(), sequence)
    }

    /// Waits until no flush or compaction is pending, nor one that would begin
    /// after some seconds without writes: level 0 is merged then if that does
    /// not rewrite more than four times as much below.
    ///
    /// # Errors
    /// What keeps them from going on: `ReadOnly`, or the failure that stopped
    /// compactions.
    pub fn wait_for_background(&self) -> Result<()> {
        self.engine().wait_for_background()
    }

    /// The counters that this database counts in.
    pub fn statistics(&self) -> Arc<Statistics> {
        Arc::clone(&self.engine().shared.statistics)
    }
}
