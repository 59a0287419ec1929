//! The numbers that a log gives to entries. Tables that are ingested take numbers
//! too, of which the log knows nothing.

use crate::key::SequenceNumber;

/// The numbers of the log's entries: runs from their first to their last.
#[derive(Default)]
pub(super) struct Numbers(Vec<(SequenceNumber, SequenceNumber)>);

impl Numbers {
    /// Numbers ascend from one call to the next.
    pub(super) fn add(&mut self, number: SequenceNumber) {
        match self.0.last_mut() {
            Some((_, last)) if number <= *last + 1 => *last = number.max(*last),
            _ => self.0.push((number, number)),
        }
    }

    /// True if an entry had this number that the log had too: it has it still, or
    /// begins later. Others are those of tables that were ingested, which say
    /// nothing of what was in memory then.
    pub(super) fn was_logged(&self, number: SequenceNumber) -> bool {
        let is_before = self.0.first().is_none_or(|&(first, _)| number < first);
        is_before || self.0.iter().any(|&(first, last)| (first..=last).contains(&number))
    }
}
