//! Reads: `get`, `multi_get`, and the sources of a cursor.
//!
//! view (no lock) -> visible sequence number -> [`Lookup`] -> cache or file

use crate::coverage::Coverage;
use crate::error::{Error, Result};
use crate::key::{SequenceNumber, prefix_end};
use crate::merge::{LevelCursor, MergeCursor, Source};
use crate::stats::Counter;
use crate::sync::Arc;
use crate::table::{ReadContext, Table};
use crate::tables::TableFile;
use crate::version::{LEVELS, Level};

use super::family::FamilyCore;
use super::lookup::{Lookup, Step};
use super::many::{Outcome, UNDER_WAY_MAX};
use super::snapshot::Snapshot;
use super::value::Value;
use super::view::View;

/// How a read is done.
///
/// ```
/// # use lodestore::{Db, MemFs, Options, ReadOptions};
/// # let fs = std::sync::Arc::new(MemFs::new());
/// # let options = Options { create_if_missing: true, fs, ..Options::default() };
/// # let db = Db::open("db", options)?;
/// db.put(b"user/ann", b"1")?;
/// let then = ReadOptions::at(&db.snapshot());
/// db.put(b"user/ann", b"2")?;
/// db.put(b"user/bob", b"3")?;
/// assert_eq!(db.get_with(&then, b"user/ann")?.as_deref(), Some(&b"1"[..]));
///
/// let users = ReadOptions { prefix: Some(b"user/".to_vec()), ..ReadOptions::default() };
/// assert_eq!(db.range_with(&users, ..).count(), 2);
/// # Ok::<(), lodestore::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct ReadOptions {
    /// Read this state of the database instead of the newest.
    pub snapshot: Option<Snapshot>,
    /// Keep the blocks that are read in the cache.
    pub fill_cache: bool,
    /// Cursors see no key before this one.
    pub lower_bound: Option<Vec<u8>>,
    /// Cursors see no key from this one on.
    pub upper_bound: Option<Vec<u8>>,
    /// Cursors see only keys that begin so. Bytewise order only.
    pub prefix: Option<Vec<u8>>,
}

impl Default for ReadOptions {
    fn default() -> ReadOptions {
        ReadOptions {
            snapshot: None,
            fill_cache: true,
            lower_bound: None,
            upper_bound: None,
            prefix: None,
        }
    }
}

impl ReadOptions {
    /// Reads the state that `snapshot` keeps.
    pub fn at(snapshot: &Snapshot) -> ReadOptions {
        ReadOptions { snapshot: Some(snapshot.clone()), ..ReadOptions::default() }
    }
}

impl FamilyCore {
    /// The newest value of `key` that `options` lets see.
    #[inline]
    pub(crate) fn get(&self, options: &ReadOptions, key: &[u8]) -> Result<Option<Value>> {
        let view = self.views.load();
        let sequence = self.read_sequence(options)?;
        let statistics = &*self.shared.statistics;
        statistics.add(Counter::Gets, 1);
        let context = self.context(options.fill_cache);
        let mut lookup = Lookup::start(&view, self.order(), context, key, sequence);
        loop {
            match lookup.advance() {
                Step::Done => break,
                Step::Table(file) => drop(file.table()?),
                Step::Block(table, block) => lookup.supply(table.read_block(block, context)?),
            }
        }
        let value = lookup.finish(&self.merge_operator)?;
        if value.is_some() {
            statistics.add(Counter::GetsFound, 1);
        }
        Ok(value)
    }

    /// The values of `keys`, all of one state.
    pub(crate) fn multi_get<K: AsRef<[u8]>>(
        &self,
        options: &ReadOptions,
        keys: &[K],
    ) -> Vec<Result<Option<Value>>> {
        if let [key] = keys {
            return vec![self.get(options, key.as_ref())];
        }
        let view = self.views.load();
        let sequence = match self.read_sequence(options) {
            Ok(sequence) => sequence,
            Err(error) => return keys.iter().map(|_| Err(error.clone())).collect(),
        };
        self.shared.statistics.add(Counter::Gets, keys.len() as u64);
        let context = self.context(options.fill_cache);
        let lookups = keys
            .iter()
            .map(|key| Lookup::start(&view, self.order(), context, key.as_ref(), sequence));
        // Of many each would keep a block of its own: fifty times the values.
        let is_many = keys.len() > UNDER_WAY_MAX;
        let mut found: Vec<Option<Outcome>> = keys.iter().map(|_| None).collect();
        self.finish_together(lookups, context, &mut |number, outcome| {
            let kept = if is_many { outcome.map(|v| v.map(Value::detached)) } else { outcome };
            found[number] = Some(kept);
        });
        // A file system that loses a read must not make a key look absent.
        let values: Vec<Outcome> =
            found.into_iter().map(|outcome| outcome.expect("each read is answered")).collect();
        self.count_found(&values);
        values
    }

    pub(crate) fn count_found(&self, values: &[Result<Option<Value>>]) {
        let found = values.iter().filter(|value| matches!(value, Ok(Some(_)))).count();
        self.shared.statistics.add(Counter::GetsFound, found as u64);
    }

    /// The sequence number that a read with `options` sees. Call it after the
    /// view was taken.
    pub(crate) fn read_sequence(&self, options: &ReadOptions) -> Result<SequenceNumber> {
        match &options.snapshot {
            None => Ok(self.shared.visible.get()),
            Some(snapshot) if snapshot.is_of(&self.shared.snapshots) => Ok(snapshot.sequence()),
            Some(_) => Err(Error::invalid("the snapshot is of another database")),
        }
    }

    /// A cursor over all entries of `view`, of all ages and kinds, and the
    /// range deletes that a reader at `sequence` sees. Entries whose key does
    /// not begin with `start` may be left out.
    pub(crate) fn entries(
        &self,
        view: &View,
        sequence: SequenceNumber,
        start: Option<&[u8]>,
        context: &ReadContext,
    ) -> Result<(MergeCursor, Coverage)> {
        let order = self.order();
        let mut sources: Vec<Source> = Vec::new();
        let mut coverage = Coverage::new(sequence, order.clone());
        for table in std::iter::once(&view.active).chain(&view.sealed) {
            let own = sources.len();
            if table.entries() > 0 {
                sources.push(Source::Memtable(table.cursor()));
            }
            if table.has_range_deletes() {
                let is_hidden = table.deleted_ranges_are_empty();
                let older_from = if is_hidden { own } else { sources.len() };
                coverage.add_memtable(table.range_deletes(), older_from);
            }
        }
        for file in view.version.level(0).tables().iter() {
            let table = file.table()?;
            if start.is_none_or(|start| !self.lacks(table, start, context)) {
                sources.push(Source::Table(Box::new(table.cursor(context.clone()))));
            }
            coverage.add_table(file, sources.len());
        }
        for level in 1..LEVELS {
            let level = view.version.level(level);
            if !level.is_empty() {
                let tables = match start {
                    Some(start) => self.tables_with(level, start, context),
                    None => Arc::clone(level.tables()),
                };
                if !tables.is_empty() {
                    let cursor = LevelCursor::new(tables, order.clone(), context.clone());
                    sources.push(Source::Level(Box::new(cursor)));
                }
                coverage.add_level(level, sources.len());
            }
        }
        let merged = MergeCursor::new(sources, order.clone());
        let merged = match context.waits_for_device {
            true => merged.reading_together(&self.shared.fs),
            false => merged,
        };
        Ok((merged, coverage))
    }

    /// The tables of a level below 0 that may have keys that begin with `start`.
    fn tables_with(
        &self,
        level: &Level,
        start: &[u8],
        context: &ReadContext,
    ) -> Arc<[Arc<TableFile>]> {
        let tables = level.tables();
        let first = tables.partition_point(|file| &file.meta.largest.user_key[..] < start);
        let end = prefix_end(start).map_or(tables.len(), |end| {
            tables.partition_point(|file| file.meta.smallest.user_key < end).max(first)
        });
        // Between the first and the last are only tables with such keys. One
        // that does not open is for the cursor to report.
        let is_inside = |place: usize| place > first && place + 1 < end;
        let lacks =
            |file: &TableFile| file.table().is_ok_and(|table| self.lacks(table, start, context));
        let kept = (first..end).filter(|&place| is_inside(place) || !lacks(&tables[place]));
        kept.map(|place| Arc::clone(&tables[place])).collect()
    }

    /// True, and counted, if a table certainly has no key that begins so.
    fn lacks(&self, table: &Table, start: &[u8], context: &ReadContext) -> bool {
        let lacks = !table.may_have_start(start, context);
        if lacks {
            self.shared.statistics.add(Counter::PrefixTablesSkipped, 1);
        }
        lacks
    }
}
