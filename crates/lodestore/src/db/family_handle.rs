//! The public handle of a family: what can be done with it. Each call goes to
//! the part that does it.

use crate::batch::{FamilyId, WriteBatch};
use crate::error::Result;
use crate::fs::Fs;
use crate::key::KeyOrder;
use crate::latency::Operation;
use crate::options::{FamilyOptions, IngestOptions, WriteOptions};
use crate::sync::Arc;

use super::cursor::{DbCursor, Range};
use super::family::FamilyCore;
use super::handle::Handle;
use super::ingest::IngestReport;
use super::key_range::KeyRange;
use super::pending::PendingGet;
use super::read::ReadOptions;
use super::value::Value;

/// A handle to one family of an open database. Cloning is cheap; the database
/// stays open while a handle lives.
///
/// All handles of a dropped family can still read what it held; writing gives
/// [`Error::Missing`](crate::Error::Missing).
#[derive(Clone)]
pub struct Family {
    pub(crate) core: Arc<FamilyCore>,
    /// Dropped last: see [`Handle`].
    pub(crate) handle: Arc<Handle>,
}

impl std::fmt::Debug for Family {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Family").field(&self.core).finish()
    }
}

impl From<&Family> for FamilyId {
    fn from(family: &Family) -> FamilyId {
        family.core.id
    }
}

impl Family {
    /// The name it was created with.
    pub fn name(&self) -> &str {
        &self.core.name
    }

    /// The number that batches and logs know it by; never reused.
    pub fn id(&self) -> FamilyId {
        self.core.id
    }

    /// Stores `value` under `key`.
    ///
    /// # Errors
    /// `InvalidArgument` for a key or value over the limits, `ReadOnly` after
    /// an earlier failure, `Io` if the log could not be written, `Stalled` if
    /// the options do not let it wait: nothing was stored then.
    pub fn put(&self, key: &[u8], value: &[u8]) -> Result<()> {
        self.put_with(&WriteOptions::default(), key, value)
    }

    /// [`Family::put`], with options.
    pub fn put_with(&self, options: &WriteOptions, key: &[u8], value: &[u8]) -> Result<()> {
        self.write_one(options, |batch| batch.put_in(self.core.id, key, value))
    }

    /// Removes `key`; no error if it is absent.
    pub fn delete(&self, key: &[u8]) -> Result<()> {
        self.delete_with(&WriteOptions::default(), key)
    }

    /// [`Family::delete`], with options.
    pub fn delete_with(&self, options: &WriteOptions, key: &[u8]) -> Result<()> {
        self.write_one(options, |batch| batch.delete_in(self.core.id, key))
    }

    /// Removes `key`, where it was put at most once since it was last removed,
    /// and neither merged nor removed by [`Family::delete`]. Then this costs
    /// less than [`Family::delete`]: both records go as soon as a compaction
    /// meets them. Otherwise older values of the key may come back.
    pub fn single_delete(&self, key: &[u8]) -> Result<()> {
        self.single_delete_with(&WriteOptions::default(), key)
    }

    /// [`Family::single_delete`], with options.
    pub fn single_delete_with(&self, options: &WriteOptions, key: &[u8]) -> Result<()> {
        self.write_one(options, |batch| batch.single_delete_in(self.core.id, key))
    }

    /// Removes all keys from `begin`, inclusive, up to `end`, exclusive, in the
    /// family's order. It is one write, however many keys there are; readers do
    /// not slow down with the number of such writes, and tables that lie within
    /// the range are dropped without being read. Snapshots keep what they see.
    ///
    /// # Errors
    /// `InvalidArgument` if `end` comes before `begin` (if they are equal,
    /// nothing is removed), besides what [`Family::put`] gives.
    pub fn delete_range(&self, begin: &[u8], end: &[u8]) -> Result<()> {
        self.delete_range_with(&WriteOptions::default(), begin, end)
    }

    /// [`Family::delete_range`], with options.
    pub fn delete_range_with(
        &self,
        options: &WriteOptions,
        begin: &[u8],
        end: &[u8],
    ) -> Result<()> {
        self.write_one(options, |batch| batch.delete_range_in(self.core.id, begin, end))
    }

    /// Merges `operand` into the value of `key` by the family's
    /// [operator](crate::MergeOperator), without reading it first.
    ///
    /// # Errors
    /// `InvalidArgument` if the family has no merge operator, besides what
    /// [`Family::put`] gives.
    pub fn merge(&self, key: &[u8], operand: &[u8]) -> Result<()> {
        self.merge_with(&WriteOptions::default(), key, operand)
    }

    /// [`Family::merge`], with options.
    pub fn merge_with(&self, options: &WriteOptions, key: &[u8], operand: &[u8]) -> Result<()> {
        self.write_one(options, |batch| batch.merge_in(self.core.id, key, operand))
    }

    /// Writes a batch of one record, in a buffer that the thread keeps.
    fn write_one(&self, options: &WriteOptions, fill: impl FnOnce(&mut WriteBatch)) -> Result<()> {
        thread_local! {
            static BATCH: std::cell::Cell<Option<WriteBatch>> = const { std::cell::Cell::new(None) };
        }
        /// A buffer that grew beyond this for one large value is not kept.
        const KEPT_BYTES_MAX: usize = 1 << 20;

        let mut batch = BATCH.take().unwrap_or_default();
        batch.clear();
        fill(&mut batch);
        let result = self.handle.engine.write(*options, &mut batch);
        if batch.bytes() <= KEPT_BYTES_MAX {
            BATCH.set(Some(batch));
        }
        result.map(|_| ())
    }

    /// The newest value of `key`; `None` if it is absent or deleted. Never
    /// waits for writes, flushes or compactions.
    ///
    /// # Errors
    /// `Corruption` names the file and offset; other keys stay readable.
    #[inline]
    pub fn get(&self, key: &[u8]) -> Result<Option<Value>> {
        self.get_with(&DEFAULT_READ, key)
    }

    /// [`Family::get`], with options. Bounds and prefix are for cursors.
    #[inline]
    pub fn get_with(&self, options: &ReadOptions, key: &[u8]) -> Result<Option<Value>> {
        self.core.shared.timed(Operation::Get, || self.core.get(options, key))
    }

    /// Begins a lookup of the newest value of `key`, and does not wait: what is
    /// not in memory is read by a thread of the database, together with all that
    /// waits by then. The value is that of now, whatever is written before it is
    /// awaited.
    ///
    /// ```
    /// # use lodestore::{Db, MemFs, Options};
    /// # let fs = std::sync::Arc::new(MemFs::new());
    /// # let options = Options { create_if_missing: true, fs, ..Options::default() };
    /// # let db = Db::open("db", options)?;
    /// db.put(b"a", b"1")?;
    /// let later: Vec<_> = [b"a", b"b"].map(|key| db.get_later(key)).into();
    /// db.put(b"a", b"2")?;
    /// let values = later.into_iter().map(|pending| pending.wait());
    /// let values = values.collect::<Result<Vec<_>, _>>()?; // or .await each
    /// assert_eq!(values[0].as_deref(), Some(&b"1"[..]));
    /// # Ok::<(), lodestore::Error>(())
    /// ```
    pub fn get_later(&self, key: &[u8]) -> PendingGet {
        self.get_later_with(&DEFAULT_READ, key)
    }

    /// [`Family::get_later`], with options. Bounds and prefix are for cursors.
    pub fn get_later_with(&self, options: &ReadOptions, key: &[u8]) -> PendingGet {
        self.core.get_later(options, key)
    }

    /// Looks `key` up as [`Family::get_with`] does, and tells where it looked,
    /// what it read and why it ended as it did.
    ///
    /// # Errors
    /// `InvalidArgument` for another database's snapshot. A lookup that fails
    /// is an [`Outcome::Failed`](super::Outcome::Failed).
    pub fn explain(&self, options: &ReadOptions, key: &[u8]) -> Result<super::Explanation> {
        self.core.explain(options, key)
    }

    /// The newest values of many keys, all of one state, in the order of
    /// `keys`. Blocks that several keys need are read once; sorted keys make
    /// that more likely. A [`Value`] keeps its block in memory; of more than
    /// 1,024 keys small values are copied instead.
    pub fn multi_get<K: AsRef<[u8]>>(&self, keys: &[K]) -> Vec<Result<Option<Value>>> {
        self.multi_get_with(&DEFAULT_READ, keys)
    }

    /// [`Family::multi_get`], with options.
    pub fn multi_get_with<K: AsRef<[u8]>>(
        &self,
        options: &ReadOptions,
        keys: &[K],
    ) -> Vec<Result<Option<Value>>> {
        self.core.shared.timed(Operation::MultiGet, || self.core.multi_get(options, keys))
    }

    /// A cursor over the state at this moment. It has no position yet.
    pub fn cursor(&self) -> DbCursor {
        self.cursor_with(ReadOptions::default())
    }

    /// [`Family::cursor`], with options.
    pub fn cursor_with(&self, options: ReadOptions) -> DbCursor {
        DbCursor::new(&self.handle, &self.core, &options)
    }

    /// The keys and values of a range, ascending; `rev()` goes the other way.
    /// All of it is one state of the database.
    ///
    /// ```
    /// # use lodestore::{Db, MemFs, Options};
    /// # let fs = std::sync::Arc::new(MemFs::new());
    /// # let options = Options { create_if_missing: true, fs, ..Options::default() };
    /// # let db = Db::open("db", options)?;
    /// for key in ["apple", "lemon", "melon"] {
    ///     db.put(key.as_bytes(), b"fruit")?;
    /// }
    /// let mut keys = Vec::new();
    /// for entry in db.range("b".."n").rev() {
    ///     let (key, _value) = entry?;
    ///     keys.push(String::from_utf8(key).unwrap());
    /// }
    /// assert_eq!(keys, ["melon", "lemon"]);
    /// assert_eq!(db.range(..).count(), 3);
    /// # Ok::<(), lodestore::Error>(())
    /// ```
    pub fn range(&self, range: impl KeyRange) -> Range {
        self.range_with(&DEFAULT_READ, range)
    }

    /// [`Family::range`], with options: of a snapshot, or of keys with a prefix
    /// (`..` gives all of them then).
    pub fn range_with(&self, options: &ReadOptions, range: impl KeyRange) -> Range {
        Range::new(&self.handle, &self.core, &range, options)
    }

    /// Writes what is in memory to tables and waits until that is durable.
    ///
    /// # Errors
    /// `Io` if the disk is full: the flush is tried again in the background,
    /// and what it has to write stays in memory and in the log.
    pub fn flush(&self) -> Result<()> {
        self.handle.engine.flush(&[self.core.id])
    }

    /// Compacts all keys from `from` to `to`, both included (`None`: open), to
    /// the deepest level that has any, and waits for it. Space of overwritten
    /// and deleted entries is given back.
    pub fn compact_range(&self, from: Option<&[u8]>, to: Option<&[u8]>) -> Result<()> {
        self.handle.engine.compact_range(&self.core, from, to)
    }

    /// [`Family::compact_range`], which also writes those tables anew that are
    /// where they belong and have nothing to drop: with the options that hold
    /// now (compression, filter, size of blocks), which otherwise count for
    /// tables that are written for some other reason. It reads and writes
    /// everything in the range.
    pub fn rewrite_range(&self, from: Option<&[u8]>, to: Option<&[u8]>) -> Result<()> {
        self.handle.engine.rewrite_range(&self.core, from, to)
    }

    /// Drops the tables whose keys lie wholly from `begin`, inclusive, up to
    /// `end`, exclusive (`None`: open), and gives how many there were. It is
    /// fast, gives space back at once, and is meant for data that nobody will
    /// ask for again; call [`Family::delete_range`] first, so that the rest is
    /// deleted too.
    ///
    /// Keys in the range may stay: in memory, in tables that are partly outside
    /// or being compacted, and in tables over such. No older value of a key
    /// comes back. Snapshots do not keep what is dropped: reads from now on do
    /// not find it, whatever they look back to; cursors that are open do.
    ///
    /// # Errors
    /// `ReadOnly` after an earlier failure, `Io` if the manifest could not be
    /// written, `Missing` if the family was dropped.
    pub fn delete_files_in_range(&self, begin: Option<&[u8]>, end: Option<&[u8]>) -> Result<u64> {
        self.handle.engine.delete_files_in_range(&self.core, begin, end)
    }

    /// Takes in tables that a [`TableWriter`](crate::TableWriter) wrote, without
    /// writing their entries again. They appear in one step: readers, and a
    /// database that is opened after a crash, see all of them or none. They
    /// count as written now, in the order given, so that they are newer than
    /// everything before, and of two with the same keys the later one is the
    /// newer. Snapshots and cursors that are there do not see them. When this
    /// returns, they survive power loss, and so does every earlier write.
    ///
    /// Other writers go on while the tables are copied and checked; they wait
    /// while what they have in memory of the same keys is flushed. Each table
    /// goes to the deepest level where it overlaps nothing. A table can be
    /// ingested again, here or elsewhere.
    ///
    /// # Errors
    /// `Missing` if there is no such file, or the family was dropped.
    /// `Corruption` if it is no table or a damaged one; `Incompatible` if
    /// another build wrote it; `InvalidArgument` if it is in another order of
    /// keys than the family, holds operands that the family cannot merge, or
    /// was not written to be ingested. Nothing has changed then, and the files
    /// are as they were. `ReadOnly` as for writes. `Io` while the manifest is
    /// written: only reopening tells whether the tables are there.
    pub fn ingest<P: AsRef<std::path::Path>>(
        &self,
        paths: &[P],
        options: &IngestOptions,
    ) -> Result<IngestReport> {
        let table = |path: &P| (Arc::clone(&self.core), path.as_ref().to_path_buf());
        self.handle.engine.ingest(paths.iter().map(table).collect(), options)
    }

    /// Bytes that the tables take for each range of keys (first included,
    /// second excluded), roughly. What is in memory does not count.
    pub fn approximate_sizes(&self, ranges: &[(&[u8], &[u8])]) -> Result<Vec<u64>> {
        self.core.approximate_sizes(ranges)
    }

    /// What the database says of itself under `name`, as in
    /// `"lodestore.levels"`; `None` for a name that it does not know. See the
    /// guide for the names.
    pub fn property(&self, name: &str) -> Option<String> {
        self.handle.engine.property(&self.core, name)
    }

    /// The names that [`Family::property`] knows, aliases apart.
    pub fn property_names() -> impl Iterator<Item = String> {
        super::properties::property_names()
    }

    /// The file system of the database.
    pub(crate) fn fs(&self) -> &Arc<dyn Fs> {
        &self.core.shared.fs
    }

    /// The order of its keys.
    pub(crate) fn order(&self) -> &KeyOrder {
        self.core.order()
    }

    /// The options that hold now.
    pub fn family_options(&self) -> FamilyOptions {
        FamilyOptions::clone(&self.core.options())
    }

    /// Changes options of this family, by name and value as in a
    /// [text](crate::Options::from_text): all of them, or none. The guide says
    /// which can change, and when that takes effect. What is set here is
    /// forgotten when the database is closed, but for the file of options that
    /// the database keeps.
    ///
    /// ```
    /// # use lodestore::{Db, MemFs, Options};
    /// # let fs = std::sync::Arc::new(MemFs::new());
    /// # let options = Options { create_if_missing: true, fs, ..Options::default() };
    /// let db = Db::open("db", options)?;
    /// db.set_family_options(&[("memtable_bytes", "16MiB"), ("compression", "zstd:3")])?;
    /// assert_eq!(db.family_options().memtable_bytes, 16 << 20);
    /// assert!(db.set_family_options(&[("memtable_byte", "16MiB")]).is_err());
    /// # Ok::<(), lodestore::Error>(())
    /// ```
    ///
    /// # Errors
    /// `InvalidArgument` names an option that is unknown, given twice, fixed
    /// while the database is open or out of range, or two that contradict each
    /// other.
    pub fn set_family_options(&self, changes: &[(&str, &str)]) -> Result<()> {
        self.handle.engine.set_family_options(&self.core, changes)
    }

    /// Sizes and counts of this family.
    pub fn stats(&self) -> super::Stats {
        self.handle.engine.stats(&self.core)
    }
}

static DEFAULT_READ: ReadOptions = ReadOptions {
    snapshot: None,
    fill_cache: true,
    lower_bound: None,
    upper_bound: None,
    prefix: None,
};
