//! A level below level 0 as one source: its tables do not overlap, so a cursor
//! walks one table at a time and opens the next when it gets there.

use std::io;

use crate::cursor::{Cursor, StoredBlock};
use crate::error::{Error, Result};
use crate::fs::ReadRequest;
use crate::key::{KeyOrder, Trailer};
use crate::sync::Arc;
use crate::table::{ReadContext, TableCursor};
use crate::tables::TableFile;

/// Walks tables that are sorted and do not overlap.
pub(crate) struct LevelCursor {
    tables: Arc<[Arc<TableFile>]>,
    order: KeyOrder,
    context: ReadContext,
    /// Index of the table that `cursor` walks.
    here: usize,
    cursor: Option<TableCursor>,
    error: Option<Error>,
}

impl LevelCursor {
    pub(crate) fn new(
        tables: Arc<[Arc<TableFile>]>,
        order: KeyOrder,
        context: ReadContext,
    ) -> LevelCursor {
        LevelCursor { tables, order, context, here: 0, cursor: None, error: None }
    }

    /// Makes `index` the table that is walked; false if there is none or it
    /// does not open.
    fn enter(&mut self, index: usize) -> bool {
        if self.cursor.is_some() && self.here == index {
            return true;
        }
        self.cursor = None;
        self.here = index;
        let Some(file) = self.tables.get(index) else {
            return false;
        };
        match file.table() {
            Ok(table) => self.cursor = Some(table.cursor(self.context.clone())),
            Err(error) => self.error = Some(error),
        }
        self.cursor.is_some()
    }

    fn entered(&mut self) -> &mut TableCursor {
        self.cursor.as_mut().expect("a table was entered")
    }

    /// The first table with an entry not before the target.
    fn first_not_before(&self, user_key: &[u8], trailer: Trailer) -> usize {
        let target = (user_key, trailer);
        self.tables.partition_point(|file| {
            let largest = &file.meta.largest;
            self.order.compare_entries((&largest.user_key, largest.trailer), target).is_lt()
        })
    }

    /// How many tables have an entry not after the target; the last of them has the
    /// last one.
    fn count_not_after(&self, user_key: &[u8], trailer: Trailer) -> usize {
        let target = (user_key, trailer);
        self.tables.partition_point(|file| {
            let smallest = &file.meta.smallest;
            self.order.compare_entries((&smallest.user_key, smallest.trailer), target).is_le()
        })
    }

    /// As [`TableCursor::foresee`], of the table that a seek will enter.
    pub(super) fn foresee(&mut self, user_key: &[u8], trailer: Trailer) -> Option<ReadRequest> {
        let index = self.first_not_before(user_key, trailer);
        self.enter(index).then(|| self.entered().foresee(user_key, trailer))?
    }

    /// As [`TableCursor::foresee`], for a seek to the last entry not after the target.
    pub(super) fn foresee_for_prev(
        &mut self,
        user_key: &[u8],
        trailer: Trailer,
    ) -> Option<ReadRequest> {
        let index = self.count_not_after(user_key, trailer).checked_sub(1)?;
        self.enter(index).then(|| self.entered().foresee(user_key, trailer))?
    }

    /// As [`TableCursor::supply`].
    pub(super) fn supply(&mut self, read: io::Result<&[u8]>) {
        self.entered().supply(read);
    }

    /// Goes on to the first entry of later tables while this one has no
    /// position. A table's failure ends the walk.
    fn skip_forward(&mut self) {
        while let Some(cursor) = &self.cursor {
            if cursor.valid() || cursor.status().is_err() || !self.enter(self.here + 1) {
                return;
            }
            self.entered().seek_to_first();
        }
    }

    /// Goes on to the last entry of earlier tables while this one has no
    /// position.
    fn skip_backward(&mut self) {
        while let Some(cursor) = &self.cursor {
            if cursor.valid() || cursor.status().is_err() {
                return;
            }
            if self.here == 0 {
                self.cursor = None;
                return;
            }
            if self.enter(self.here - 1) {
                self.entered().seek_to_last();
            }
        }
    }

    fn current(&self) -> &TableCursor {
        self.cursor.as_ref().expect("the cursor is valid")
    }
}

impl Cursor for LevelCursor {
    #[inline]
    fn valid(&self) -> bool {
        self.cursor.as_ref().is_some_and(TableCursor::valid)
    }

    fn seek_to_first(&mut self) {
        self.error = None;
        if self.enter(0) {
            self.entered().seek_to_first();
            self.skip_forward();
        }
    }

    fn seek_to_last(&mut self) {
        self.error = None;
        if !self.tables.is_empty() && self.enter(self.tables.len() - 1) {
            self.entered().seek_to_last();
            self.skip_backward();
        }
    }

    fn seek(&mut self, user_key: &[u8], trailer: Trailer) {
        self.error = None;
        let index = self.first_not_before(user_key, trailer);
        if self.enter(index) {
            self.entered().seek(user_key, trailer);
            self.skip_forward();
        }
    }

    fn seek_for_prev(&mut self, user_key: &[u8], trailer: Trailer) {
        self.error = None;
        let after = self.count_not_after(user_key, trailer);
        if after == 0 {
            self.cursor = None;
        } else if self.enter(after - 1) {
            self.entered().seek_for_prev(user_key, trailer);
            self.skip_backward();
        }
    }

    #[inline]
    fn next(&mut self) {
        self.entered().next();
        self.skip_forward();
    }

    #[inline]
    fn prev(&mut self) {
        self.entered().prev();
        self.skip_backward();
    }

    #[inline]
    fn user_key(&self) -> &[u8] {
        self.current().user_key()
    }

    #[inline]
    fn trailer(&self) -> Trailer {
        self.current().trailer()
    }

    #[inline]
    fn value(&self) -> &[u8] {
        self.current().value()
    }

    fn stored(&self) -> Option<StoredBlock<'_>> {
        self.current().stored()
    }

    fn status(&self) -> Result<()> {
        if let Some(error) = &self.error {
            return Err(error.clone());
        }
        self.cursor.as_ref().map_or(Ok(()), TableCursor::status)
    }
}
