//! Point lookup as a machine without I/O: it says which block it needs next,
//! and whoever drives it fetches the block from the cache, from the file, or
//! together with the blocks that other lookups need.
//!
//! memtables -> level 0, newest table first -> one table of each deeper level
//!
//! A range delete ends the search like a delete: what is older than it is hidden,
//! and every source after the one that has it is older.
//!
//! `get` drives one machine, `multi_get` many at once; `explain` drives one
//! that tells an [`Observer`] of each step. An asynchronous get can drive the
//! same one.

use std::ops::ControlFlow;

use crate::cache::BlockKind;
use crate::error::{Error, Result};
use crate::key::{
    KeyOrder, Kind, SequenceNumber, Trailer, kind_of, sequence_of, trailer_visible_at,
};
use crate::memtable::Memtable;
use crate::merge_operator::SharedMergeOperator;
use crate::rows::RowCache;
use crate::stats::{Counter, Statistics};
use crate::sync::Arc;
use crate::table::{Block, BlockRef, Held, LookupKey, Need, ReadContext, Table};
use crate::tables::TableFile;
use crate::version::{LEVELS, Version};
use crate::visible::{merge_all, unreadable_kind};

use super::value::Value;
use super::view::View;

/// What a lookup needs before it can go on.
pub(crate) enum Step<'v> {
    /// This table, opened; then [`Lookup::advance`].
    Table(&'v TableFile),
    /// This block; then [`Lookup::supply`].
    Block(&'v Arc<Table>, BlockRef),
    /// Nothing: the result is there.
    Done,
}

/// Is told what a lookup comes by. Ordinary lookups tell `()`, which costs
/// nothing: the calls are compiled away.
pub(crate) trait Observer {
    /// A memtable is searched: the active one first, then the newest sealed one.
    #[inline(always)]
    fn memtable(&mut self) {}
    /// A table of level 0 does not have the key in its range.
    #[inline(always)]
    fn passed_over(&mut self) {}
    /// A table is searched.
    #[inline(always)]
    fn table(&mut self, level: usize, file: &TableFile) {
        let _ = (level, file);
    }
    /// The table's filter was asked.
    #[inline(always)]
    fn filter(&mut self, may_contain: bool) {
        let _ = may_contain;
    }
    /// The newest range delete of this place that covers the key has a number.
    #[inline(always)]
    fn range_delete(&mut self, sequence: SequenceNumber) {
        let _ = sequence;
    }
    /// The table's row was in the row cache.
    #[inline(always)]
    fn row(&mut self) {}
    /// The next older version of the key was met; `hidden` by a range delete.
    #[inline(always)]
    fn version(&mut self, trailer: Trailer, value: &[u8], hidden: bool) {
        let _ = (trailer, value, hidden);
    }
}

impl Observer for () {}

/// The search for one key in one view at one sequence number.
pub(crate) struct Lookup<'v, 'k, O = ()> {
    key: LookupKey<'k>,
    sequence: SequenceNumber,
    order: &'v KeyOrder,
    version: &'v Version,
    statistics: &'v Statistics,
    rows: Option<&'v RowCache>,
    /// The next table to look into: its level, and its index in level 0.
    level: usize,
    index: usize,
    /// The table that is being searched, and the block that it needs.
    open: Option<(&'v Arc<Table>, BlockRef)>,
    /// The way through that table, if its index is partitioned.
    held: Option<Held>,
    /// That table's filter let the key pass, and no version was met there yet.
    is_suspect: bool,
    /// The first version to be met there is the newest that it has, and is to
    /// be kept in the row cache.
    keeps_row: bool,
    fills_rows: bool,
    answer: Answer,
    observer: O,
}

/// What was found so far.
struct Answer {
    resolved: bool,
    /// The number of the range delete that hides older entries; 0 for none.
    deleted_at: SequenceNumber,
    found: Option<Value>,
    /// Operands met on the way to a base value, newest first.
    operands: Vec<Value>,
    error: Option<Error>,
}

impl Answer {
    /// True if a range delete hides the version.
    #[inline]
    fn hides(&self, trailer: Trailer) -> bool {
        sequence_of(trailer) < self.deleted_at
    }

    /// Takes in the next older version of the key.
    #[inline]
    fn meet(&mut self, trailer: Trailer, value: impl FnOnce() -> Value) -> ControlFlow<()> {
        if self.hides(trailer) {
            self.resolved = true;
            return ControlFlow::Break(());
        }
        match kind_of(trailer) {
            Some(Kind::Put) => self.found = Some(value()),
            Some(Kind::Delete | Kind::SingleDelete) => {}
            Some(Kind::Merge) => {
                self.operands.push(value());
                return ControlFlow::Continue(());
            }
            _ => self.error = Some(unreadable_kind(trailer)),
        }
        self.resolved = true;
        ControlFlow::Break(())
    }
}

impl<'v, 'k> Lookup<'v, 'k> {
    /// Starts with the memtables, which need no I/O.
    #[inline]
    pub(crate) fn start(
        view: &'v View,
        order: &'v KeyOrder,
        context: &'v ReadContext,
        user_key: &'k [u8],
        sequence: SequenceNumber,
    ) -> Lookup<'v, 'k> {
        Lookup::start_observed(view, order, context, user_key, sequence, ())
    }
}

impl<'v, 'k, O: Observer> Lookup<'v, 'k, O> {
    /// [`Lookup::start`], with someone to tell.
    #[inline]
    pub(crate) fn start_observed(
        view: &'v View,
        order: &'v KeyOrder,
        context: &'v ReadContext,
        user_key: &'k [u8],
        sequence: SequenceNumber,
        observer: O,
    ) -> Lookup<'v, 'k, O> {
        let answer = Answer {
            resolved: false,
            deleted_at: 0,
            found: None,
            operands: Vec::new(),
            error: None,
        };
        let mut lookup = Lookup {
            key: LookupKey::new(user_key, trailer_visible_at(sequence)),
            sequence,
            order,
            version: &view.version,
            statistics: &context.statistics,
            rows: context.rows.as_ref().and_then(|rows| rows.in_use()),
            level: 0,
            index: 0,
            open: None,
            held: None,
            is_suspect: false,
            keeps_row: false,
            fills_rows: context.fill_cache,
            answer,
            observer,
        };
        for table in std::iter::once(&view.active).chain(&view.sealed) {
            if lookup.answer.resolved {
                break;
            }
            lookup.search_memtable(table);
        }
        lookup
    }

    /// Whom the lookup tells.
    pub(crate) fn observer(&mut self) -> &mut O {
        &mut self.observer
    }

    fn search_memtable(&mut self, table: &Arc<Memtable>) {
        let (answer, observer) = (&mut self.answer, &mut self.observer);
        observer.memtable();
        answer.deleted_at = table.range_deleted(self.key.user_key(), self.sequence);
        observer.range_delete(answer.deleted_at);
        let key = (self.key.user_key(), self.key.hash());
        table.get(key, self.key.trailer_max(), |trailer, value| {
            observer.version(trailer, value, answer.hides(trailer));
            answer.meet(trailer, || Value::in_memtable(table, value))
        });
        answer.resolved |= answer.deleted_at > 0;
    }

    /// Says what is needed next.
    #[inline]
    pub(crate) fn advance(&mut self) -> Step<'v> {
        loop {
            if self.answer.resolved {
                return Step::Done;
            }
            if let Some((table, block)) = self.open {
                return Step::Block(table, block);
            }
            if self.answer.deleted_at > 0 {
                self.answer.resolved = true;
                return Step::Done;
            }
            let Some(file) = self.candidate() else {
                self.answer.resolved = true;
                return Step::Done;
            };
            let Some(table) = file.opened() else { return Step::Table(file) };
            self.observer.table(self.level, file);
            self.pass_candidate();
            if file.meta.range_tombstones > 0 {
                let deletes = table.range_deletes();
                self.answer.deleted_at = deletes.covering(self.key.user_key(), self.sequence);
                self.observer.range_delete(self.answer.deleted_at);
            }
            let need = table.begin(&self.key);
            if let (Some(rows), Need::Block(_)) = (self.rows, need) {
                if self.meet_row(rows, table) {
                    continue;
                }
                self.keeps_row = self.fills_rows && file.meta.newest_sequence() <= self.sequence;
            }
            if table.has_resident_filter() && need != Need::Denied {
                self.pass_filter();
            }
            self.go_on(table, need);
        }
    }

    /// Takes in the row of the key in `table`, if it is cached.
    fn meet_row(&mut self, rows: &RowCache, table: &Table) -> bool {
        let key = &self.key;
        let row = rows.get(table.cache_file(), key.hash(), key.user_key());
        // An older version may be what this reader sees.
        let Some(row) = row.filter(|row| row.trailer <= key.trailer_max()) else {
            self.statistics.add(Counter::RowMisses, 1);
            return false;
        };
        self.statistics.add(Counter::RowHits, 1);
        let value = &row.bytes[row.value_start..];
        self.observer.row();
        self.observer.version(row.trailer, value, self.answer.hides(row.trailer));
        let met = self.answer.meet(row.trailer, || Value::in_row(row.bytes, row.value_start));
        debug_assert!(met.is_break(), "rows are puts");
        true
    }

    /// Takes in the block that was asked for.
    #[inline]
    pub(crate) fn supply(&mut self, block: Block) {
        let (table, wanted) = self.open.expect("a block is supplied only when asked for");
        let Lookup { key, held, answer, observer, is_suspect, keeps_row, rows, .. } = self;
        let need = table.supply(wanted, &block, key, held, |trailer, value| {
            *is_suspect = false;
            if let (Some(rows), true) = (&rows, std::mem::take(keeps_row))
                && kind_of(trailer) == Some(Kind::Put)
            {
                let (file, hash) = (table.cache_file(), key.hash());
                rows.insert(file, hash, key.user_key(), trailer, value);
            }
            observer.version(trailer, value, answer.hides(trailer));
            answer.meet(trailer, || Value::in_block(block.clone(), block.range_of(value)))
        });
        if wanted.kind == BlockKind::Filter && need != Need::Denied {
            self.pass_filter();
        }
        self.go_on(table, need);
    }

    /// The filter of the table that is being searched did not deny the key.
    #[inline]
    fn pass_filter(&mut self) {
        self.statistics.add(Counter::FilterPassed, 1);
        self.observer.filter(true);
        self.is_suspect = true;
    }

    #[inline]
    fn go_on(&mut self, table: &'v Arc<Table>, need: Need) {
        self.open = match need {
            Need::Block(block) => Some((table, block)),
            Need::Nothing => {
                if std::mem::take(&mut self.is_suspect) {
                    self.statistics.add(Counter::FilterFalsePositive, 1);
                }
                None
            }
            Need::Denied => {
                self.statistics.add(Counter::FilterUseful, 1);
                self.observer.filter(false);
                None
            }
        };
    }

    /// The value, once [`Step::Done`] was reached; `None` if the key is absent
    /// or deleted.
    #[inline]
    pub(crate) fn finish(self, operator: &Option<SharedMergeOperator>) -> Result<Option<Value>> {
        let Answer { resolved, found, mut operands, error, .. } = self.answer;
        assert!(resolved, "the lookup is done");
        if let Some(error) = error {
            return Err(error);
        }
        if operands.is_empty() {
            return Ok(found);
        }
        operands.reverse();
        let merged = merge_all(operator, self.key.user_key(), found.as_deref(), &operands)?;
        Ok(Some(Value::owned(merged)))
    }

    /// The next table whose range includes the key.
    #[inline]
    fn candidate(&mut self) -> Option<&'v TableFile> {
        let key = self.key.user_key();
        while self.level == 0 {
            let tables = self.version.level(0).tables();
            let Some(file) = tables.get(self.index) else {
                self.level = 1;
                break;
            };
            let (smallest, largest) = (&file.meta.smallest, &file.meta.largest);
            if self.order.compare(key, &smallest.user_key).is_ge()
                && self.order.compare(key, &largest.user_key).is_le()
            {
                return Some(file);
            }
            self.observer.passed_over();
            self.index += 1;
        }
        while self.level < LEVELS {
            if let Some(file) = self.version.level(self.level).find(self.order, key) {
                return Some(file);
            }
            self.level += 1;
        }
        None
    }

    /// Goes past the table that `candidate` gave.
    #[inline]
    fn pass_candidate(&mut self) {
        if self.level == 0 {
            self.index += 1;
        } else {
            self.level += 1;
        }
    }
}
