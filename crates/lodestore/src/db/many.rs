//! Many lookups at once: those of a `multi_get`, and those that `get_later` put off.
//!
//! lookups -> as far as memory and cache go -> blocks that they need, sorted, each
//! once -> [`Fs::read_many`](crate::fs::Fs::read_many) -> the lookups go on
//!
//! The reads are a stream: while some are under way, the next lookups find out
//! what they need, so that a device never waits for the processor. Few lookups are
//! under way at a time, and an outcome is given away as soon as it is there: what
//! they hold of blocks stays within the processor's cache.

use std::collections::VecDeque;
use std::io;

use crate::error::Result;
use crate::fs::{ReadRequest, ReadStream};
use crate::merge_operator::SharedMergeOperator;
use crate::sync::Arc;
use crate::table::{BlockRef, ReadContext, Table};

use super::family::FamilyCore;
use super::lookup::{Lookup, Step};
use super::value::Value;

/// What a lookup comes to.
pub(crate) type Outcome = Result<Option<Value>>;

/// Lookups that are under way at once: enough for any device.
pub(crate) const UNDER_WAY_MAX: usize = 1024;
/// So many are taken as far as they go before their reads are given away: sorted,
/// they come by each block once, and by its neighbours.
const WINDOW: usize = 256;

impl FamilyCore {
    /// Takes all of `lookups` to their end; `finished` is called with the number of
    /// each and what it came to, in any order.
    pub(crate) fn finish_together<'v, 'k>(
        &'v self,
        lookups: impl Iterator<Item = Lookup<'v, 'k>>,
        context: &ReadContext,
        finished: &mut dyn FnMut(usize, Outcome),
    ) {
        let mut together = Together {
            lookups: lookups.enumerate(),
            operator: &self.merge_operator,
            context,
            finished,
            slots: Vec::new(),
            free: Vec::new(),
            supplied: Vec::new(),
            wanted: Vec::new(),
            groups: VecDeque::new(),
            groups_from: 0,
            asked: 0,
        };
        if together.find_reads() {
            self.shared.fs.read_many(&mut together);
        }
    }
}

/// A block that a lookup needs.
struct Wanted<'v> {
    slot: usize,
    table: &'v Arc<Table>,
    block: BlockRef,
}

/// Lookups under way, and the reads that they need.
struct Together<'a, 'v, 'k, L> {
    /// Those that have not begun.
    lookups: L,
    operator: &'a Option<SharedMergeOperator>,
    context: &'a ReadContext,
    finished: &'a mut dyn FnMut(usize, Outcome),
    /// Lookups that have begun, with their numbers; `None` where a place is free.
    slots: Vec<Option<(usize, Lookup<'v, 'k>)>>,
    free: Vec<usize>,
    /// Slots that can go on.
    supplied: Vec<usize>,
    /// Of the window that is being looked through.
    wanted: Vec<Wanted<'v>>,
    /// A read each, with those who need it; `None` once it was answered.
    groups: VecDeque<Option<Vec<Wanted<'v>>>>,
    /// The number of the first group.
    groups_from: usize,
    /// How many groups were given away.
    asked: usize,
}

impl<'v, 'k, L: Iterator<Item = (usize, Lookup<'v, 'k>)>> Together<'_, 'v, 'k, L> {
    /// Takes lookups as far as they go, until some need to be read for. False if
    /// none does: all others have been asked for already, or are at their end.
    fn find_reads(&mut self) -> bool {
        while self.asked == self.groups_from + self.groups.len() {
            if !self.look_through_window() {
                return false;
            }
        }
        true
    }

    /// Takes some lookups as far as they go. False if there are none.
    fn look_through_window(&mut self) -> bool {
        let mut looked_at = 0;
        while looked_at < WINDOW
            && let Some(slot) = self.supplied.pop().or_else(|| self.begin())
        {
            self.go_on(slot);
            looked_at += 1;
        }
        // In the order of tables and places, and each block once however many lookups
        // want it. Not by address: a simulation must read in the same order again.
        self.wanted.sort_by_key(|w| (w.table.cache_file(), w.block.place.offset));
        for wanted in self.wanted.drain(..) {
            match self.groups.back_mut() {
                Some(Some(group)) if is_same(&group[0], &wanted) => group.push(wanted),
                _ => self.groups.push_back(Some(vec![wanted])),
            }
        }
        looked_at > 0
    }

    /// Begins the next lookup, if there is one and there is room.
    fn begin(&mut self) -> Option<usize> {
        if self.free.is_empty() && self.slots.len() == UNDER_WAY_MAX {
            return None;
        }
        let begun = Some(self.lookups.next()?);
        Some(match self.free.pop() {
            Some(slot) => {
                self.slots[slot] = begun;
                slot
            }
            None => {
                self.slots.push(begun);
                self.slots.len() - 1
            }
        })
    }

    /// Takes a lookup as far as it goes.
    fn go_on(&mut self, slot: usize) {
        let (_, lookup) = self.slots[slot].as_mut().expect("it is under way");
        match advance_in_cache(lookup, self.context) {
            Ok(None) => {
                let (number, lookup) = self.take(slot);
                (self.finished)(number, lookup.finish(self.operator));
            }
            Ok(Some((table, block))) => self.wanted.push(Wanted { slot, table, block }),
            Err(error) => {
                let (number, _) = self.take(slot);
                (self.finished)(number, Err(error));
            }
        }
    }

    fn take(&mut self, slot: usize) -> (usize, Lookup<'v, 'k>) {
        self.free.push(slot);
        self.slots[slot].take().expect("it is under way")
    }
}

/// True if both want the same block.
fn is_same(a: &Wanted<'_>, b: &Wanted<'_>) -> bool {
    Arc::ptr_eq(a.table, b.table) && a.block == b.block
}

impl<'v, 'k, L: Iterator<Item = (usize, Lookup<'v, 'k>)>> ReadStream for Together<'_, 'v, 'k, L> {
    fn next(&mut self) -> Option<ReadRequest> {
        if !self.find_reads() {
            return None;
        }
        let group = self.groups[self.asked - self.groups_from].as_ref();
        self.asked += 1;
        let wanted = &group.expect("what was not asked for is not answered")[0];
        Some(wanted.table.request(wanted.block))
    }

    fn answer(&mut self, index: usize, read: io::Result<&[u8]>) {
        let group = self.groups[index - self.groups_from].take().expect("each is answered once");
        while let Some(None) = self.groups.front() {
            self.groups.pop_front();
            self.groups_from += 1;
        }
        let Wanted { table, block, .. } = group[0];
        match table.accept(block, read, self.context) {
            Ok(block) => {
                for wanted in group {
                    let (_, lookup) = self.slots[wanted.slot].as_mut().expect("it waits");
                    lookup.supply(block.clone());
                    self.supplied.push(wanted.slot);
                }
            }
            Err(error) => {
                for wanted in group {
                    let (number, _) = self.take(wanted.slot);
                    (self.finished)(number, Err(error.clone()));
                }
            }
        }
    }
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
