//! Which entries the range deletes of a view hide from a cursor.
//!
//! memtables, level 0, deeper levels -> [`Coverage`] -> `visible`
//!
//! A cursor goes from key to neighbouring key, and range deletes hold for many
//! of them. So the answer is kept with the [`Window`] in which it is the same,
//! and only a key outside of it is looked up again: a few binary searches,
//! whichever way the cursor goes. Tables without range deletes are never
//! opened for this, nor those whose range deletes are elsewhere.

use crate::error::Result;
use crate::key::{KeyOrder, SequenceNumber, Trailer, sequence_of};
use crate::range_deletes::{History, Window};
use crate::sync::Arc;
use crate::tables::TableFile;
use crate::version::{Level, ends_before};

/// A home of range deletes.
enum Home {
    Memtable(Arc<History>),
    /// Of level 0.
    Table(Arc<TableFile>),
    /// A deeper level.
    Level(Arc<Level>),
}

struct Source {
    home: Home,
    /// Of the sources that the cursor merges, newest first, those from here on
    /// hold nothing that is newer than a range delete of this home.
    older_from: usize,
}

/// The range deletes of a view, at one sequence number.
pub(crate) struct Coverage {
    /// Newest first.
    sources: Vec<Source>,
    visible: SequenceNumber,
    order: KeyOrder,
    here: Option<Here>,
}

/// A window that was looked up, owned.
struct Here {
    start: Option<Vec<u8>>,
    end: Option<Vec<u8>>,
    sequence: SequenceNumber,
    /// Of the home of the range delete that holds here.
    older_from: usize,
}

impl Here {
    fn holds(&self, order: &KeyOrder, user_key: &[u8]) -> bool {
        self.start.as_ref().is_none_or(|start| order.compare(start, user_key).is_le())
            && self.end.as_ref().is_none_or(|end| order.compare(user_key, end).is_lt())
    }
}

/// A stretch of keys in which some sources have nothing to show.
#[derive(Clone, Copy)]
pub(crate) struct Gap<'a> {
    /// The first key of it, and the first key after it.
    pub(crate) start: &'a [u8],
    pub(crate) end: &'a [u8],
    /// The sources from this one on.
    pub(crate) older_from: usize,
}

impl Coverage {
    /// No range deletes yet; sources are added newest first.
    pub(crate) fn new(visible: SequenceNumber, order: KeyOrder) -> Coverage {
        Coverage { sources: Vec::new(), visible, order, here: None }
    }

    /// Adds a memtable's range deletes. See `Source` for `older_from`.
    pub(crate) fn add_memtable(&mut self, history: Arc<History>, older_from: usize) {
        self.sources.push(Source { home: Home::Memtable(history), older_from });
    }

    /// Adds a table of level 0, if it has range deletes.
    pub(crate) fn add_table(&mut self, table: &Arc<TableFile>, older_from: usize) {
        if table.meta.range_tombstones > 0 {
            self.sources.push(Source { home: Home::Table(Arc::clone(table)), older_from });
        }
    }

    /// Adds a deeper level, if it has range deletes.
    pub(crate) fn add_level(&mut self, level: &Arc<Level>, older_from: usize) {
        if !level.deleting().is_empty() {
            self.sources.push(Source { home: Home::Level(Arc::clone(level)), older_from });
        }
    }

    /// True if nothing is hidden anywhere.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.sources.is_empty()
    }

    /// True if a range delete hides the entry at `user_key`.
    ///
    /// # Errors
    /// Of a table that has to be opened to know.
    pub(crate) fn hides(&mut self, user_key: &[u8], trailer: Trailer) -> Result<bool> {
        Ok(sequence_of(trailer) < self.newest(user_key)?.0)
    }

    /// The number of the newest range delete over `user_key`, 0 for none, and the first
    /// of the cursor's sources that hold nothing newer than it.
    ///
    /// # Errors
    /// Of a table that has to be opened to know.
    #[inline]
    pub(crate) fn newest(&mut self, user_key: &[u8]) -> Result<(SequenceNumber, usize)> {
        if !self.here.as_ref().is_some_and(|here| here.holds(&self.order, user_key)) {
            self.here = Some(self.look_up(user_key)?);
        }
        let here = self.here.as_ref().expect("it was looked up");
        Ok((here.sequence, here.older_from))
    }

    /// What a walk that stands at `user_key` may pass over without looking, as far
    /// as it is known from the last question: that may have been about a key far
    /// away.
    pub(crate) fn gap(&self, user_key: &[u8]) -> Option<Gap<'_>> {
        let is_gap = |here: &&Here| here.sequence > 0 && here.holds(&self.order, user_key);
        let here = self.here.as_ref().filter(is_gap)?;
        let (start, end) = (here.start.as_deref()?, here.end.as_deref()?);
        Some(Gap { start, end, older_from: here.older_from })
    }

    fn look_up(&self, user_key: &[u8]) -> Result<Here> {
        let mut all = Window::default();
        let mut older_from = usize::MAX;
        for source in &self.sources {
            let window = self.window(&source.home, user_key)?;
            if window.sequence > all.sequence {
                older_from = source.older_from;
            }
            all = all.and(window, &self.order);
        }
        let own = |key: Option<&[u8]>| key.map(<[u8]>::to_vec);
        let (start, end) = (own(all.start), own(all.end));
        Ok(Here { start, end, sequence: all.sequence, older_from })
    }

    fn window<'a>(&self, home: &'a Home, user_key: &[u8]) -> Result<Window<'a>> {
        match home {
            Home::Memtable(history) => Ok(history.around(&self.order, user_key, self.visible)),
            Home::Table(table) => self.window_of(table, user_key),
            Home::Level(level) => {
                let around = level.deleting_around(&self.order, user_key);
                around.iter().try_fold(Window::default(), |all, table| {
                    Ok(all.and(self.window_of(table, user_key)?, &self.order))
                })
            }
        }
    }

    /// What a table's range deletes say. It is opened only if the key is in
    /// its range.
    fn window_of<'a>(&self, table: &'a TableFile, user_key: &[u8]) -> Result<Window<'a>> {
        let (smallest, largest) = (&table.meta.smallest.user_key, &table.meta.largest.user_key);
        if self.order.compare(user_key, smallest).is_lt() {
            return Ok(Window { end: Some(smallest), ..Window::default() });
        }
        if ends_before(&self.order, &table.meta, user_key) {
            return Ok(Window { start: Some(largest), ..Window::default() });
        }
        Ok(table.table()?.range_deletes().around(user_key, self.visible))
    }
}
