//! Reads: `get`, `multi_get`, and the sources of a cursor.
//!
//! view (no lock) -> visible sequence number -> [`Lookup`] -> cache or file

use crate::coverage::Coverage;
use crate::error::{Error, Result};
use crate::fs::Fs;
use crate::key::{SequenceNumber, prefix_end};
use crate::merge::{LevelCursor, MergeCursor, Source};
use crate::stats::Counter;
use crate::sync::Arc;
use crate::table::{BlockRef, ReadContext, Table};
use crate::tables::TableFile;
use crate::version::{LEVELS, Level};

use super::family::FamilyCore;
use super::lookup::{Lookup, Step};
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

/// Lookups of a `multi_get` that are under way at once: enough for any device,
/// and their blocks, a few MiB, stay in the processor's cache.
pub(crate) const TOGETHER_KEYS_MAX: usize = 1024;

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
        let mut values = Vec::with_capacity(keys.len());
        for part in keys.chunks(TOGETHER_KEYS_MAX) {
            let lookups = part
                .iter()
                .map(|key| Lookup::start(&view, self.order(), context, key.as_ref(), sequence));
            let found = self.finish_together(lookups.collect(), context);
            match keys.len() > TOGETHER_KEYS_MAX {
                false => values.extend(found),
                // Each would keep a block of its own: fifty times the values.
                true => values.extend(found.into_iter().map(detached)),
            }
        }
        self.count_found(&values);
        values
    }

    pub(crate) fn count_found(&self, values: &[Result<Option<Value>>]) {
        let found = values.iter().filter(|value| matches!(value, Ok(Some(_)))).count();
        self.shared.statistics.add(Counter::GetsFound, found as u64);
    }

    /// What lookups come to: in each round, the blocks that those need which are
    /// not at their end are fetched together.
    pub(crate) fn finish_together(
        &self,
        mut lookups: Vec<Lookup<'_, '_>>,
        context: &ReadContext,
    ) -> Vec<Result<Option<Value>>> {
        let mut failures: Vec<Option<Error>> = vec![None; lookups.len()];
        while fetch_round(&*self.shared.fs, &mut lookups, &mut failures, context) {}
        let operator = &self.merge_operator;
        let values = lookups.into_iter().zip(failures).map(|(lookup, failure)| match failure {
            Some(error) => Err(error),
            None => lookup.finish(operator),
        });
        values.collect()
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
        Ok((MergeCursor::new(sources, order.clone()), coverage))
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

fn detached(value: Result<Option<Value>>) -> Result<Option<Value>> {
    value.map(|value| value.map(Value::detached))
}

/// A block that a lookup of a `multi_get` waits for.
struct Wanted<'v> {
    lookup: usize,
    table: &'v Arc<Table>,
    block: BlockRef,
}

/// Takes every lookup as far as the cache allows, then reads the blocks that
/// are missing, together. False when no lookup waits any more.
fn fetch_round<'v>(
    fs: &dyn Fs,
    lookups: &mut [Lookup<'v, '_>],
    failures: &mut [Option<Error>],
    context: &ReadContext,
) -> bool {
    let mut wanted: Vec<Wanted<'v>> = Vec::new();
    for (index, lookup) in lookups.iter_mut().enumerate() {
        if failures[index].is_some() {
            continue;
        }
        match advance_in_cache(lookup, context) {
            Ok(None) => {}
            Ok(Some((table, block))) => wanted.push(Wanted { lookup: index, table, block }),
            Err(error) => failures[index] = Some(error),
        }
    }
    // In the order of tables and places, and each block once however many lookups
    // want it. Not by address: a simulation must read in the same order again.
    wanted.sort_by_key(|w| (w.table.cache_file(), w.block.place.offset));
    let groups: Vec<&[Wanted<'v>]> =
        wanted.chunk_by(|a, b| Arc::ptr_eq(a.table, b.table) && a.block == b.block).collect();
    let requests = groups.iter().map(|group| group[0].table.request(group[0].block)).collect();
    fs.read_many(requests, &mut |index, result| {
        let group = groups[index];
        match group[0].table.accept(group[0].block, result, context) {
            Ok(block) => group.iter().for_each(|w| lookups[w.lookup].supply(block.clone())),
            Err(error) => group.iter().for_each(|w| failures[w.lookup] = Some(error.clone())),
        }
    });
    !wanted.is_empty()
}

/// Takes a lookup to its end or to a block that is not in the cache.
fn advance_in_cache<'v>(
    lookup: &mut Lookup<'v, '_>,
    context: &ReadContext,
) -> Result<Option<(&'v Arc<Table>, BlockRef)>> {
    loop {
        match advance_in_memory(lookup, context) {
            Step::Done => return Ok(None),
            Step::Table(file) => drop(file.table()?),
            Step::Block(table, block) => return Ok(Some((table, block))),
        }
    }
}

/// Takes a lookup as far as it gets without reading: to its end, to a table that
/// is not open, or to a block that is not in the cache.
pub(crate) fn advance_in_memory<'v>(
    lookup: &mut Lookup<'v, '_>,
    context: &ReadContext,
) -> Step<'v> {
    loop {
        match lookup.advance() {
            Step::Block(table, block) => match table.cached_block(block, context) {
                Some(found) => lookup.supply(found),
                None => return Step::Block(table, block),
            },
            step => return step,
        }
    }
}
