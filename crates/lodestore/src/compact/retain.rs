//! Which entries a flush or compaction keeps: a pure decision, entry by entry.
//!
//! Snapshots cut the sequence numbers into strata: versions of a key between
//! two neighbouring snapshots look the same to every reader except for the
//! newest of them. So of each stratum the newest version is kept and the rest
//! dropped. In the lowest stratum, which everybody sees, a tombstone goes when
//! no deeper level can hold the key, and at the bottom sequence numbers become
//! zero, since nobody can tell them apart any more.
//!
//! A range delete drops the older entries of its own stratum in its range, and
//! tables that lie within it as a whole; it goes itself where a tombstone
//! would. A single delete goes together with the put that it meets next, if
//! both are in one stratum: this is where it is cheaper than a delete. Unlike
//! a delete it stays under a newer put, because the older put that it cancels
//! may still be below.
//!
//! Operands are the exception: the ones above a base value belong to it, so
//! the caller collects them (see `run`).

use crate::key::{
    Kind, SEQUENCE_MAX, SequenceNumber, TRAILER_NEWEST, Trailer, kind_of, sequence_of, trailer,
};
use crate::range_deletes::Fragments;
use crate::table::meta::TableMeta;
use crate::version::{self, Version};

use super::pick::Plan;

/// What to do with an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Keep it, with this trailer.
    Keep(Trailer),
    /// No reader can ever see it.
    Drop,
    /// It is the newest operand of its stratum: collect those that follow.
    Collect,
    /// It is a single delete: if [`Retain::cancels`] the entry that follows,
    /// drop both, else ask [`Retain::keeps_single`].
    Single,
}

/// The number of a stratum; the one that everybody sees is 0.
pub(crate) type Stratum = usize;

/// Judges the entries of one flush or compaction, in their order.
pub(crate) struct Retain {
    /// Live snapshots, ascending.
    snapshots: Vec<SequenceNumber>,
    below: Below,
    /// All range deletes of the input.
    range_deletes: Fragments,
    /// Where the keys have come to in `range_deletes`.
    at: usize,
    /// The stratum of the last entry that was met of this key.
    covered: Option<Stratum>,
}

impl Retain {
    /// `snapshots` ascend. `range_deletes` were built with them, of all of the
    /// input.
    pub(crate) fn new(
        snapshots: Vec<SequenceNumber>,
        below: Below,
        range_deletes: Fragments,
    ) -> Retain {
        debug_assert!(snapshots.is_sorted());
        Retain { snapshots, below, range_deletes, at: 0, covered: None }
    }

    /// The range deletes that are kept: those that a reader may still need to
    /// hide something deeper, or something that a snapshot keeps here.
    pub(crate) fn kept_range_deletes(&self) -> Fragments {
        let mut kept = self.range_deletes.clone();
        kept.retain(|fragment, sequence| {
            self.stratum(sequence) > 0 || !self.below.lacks_range(&fragment.start, &fragment.end)
        });
        kept
    }

    /// True if no reader can see anything of this table of the input, because
    /// newer range deletes of the input, which everybody sees, cover it.
    pub(crate) fn drops_table(&self, table: &TableMeta) -> bool {
        let newest = table.newest_sequence();
        let range = (&table.smallest.user_key[..], &table.largest.user_key[..]);
        let last_is_bound = table.largest.trailer == TRAILER_NEWEST;
        self.range_deletes.cover(range, last_is_bound, newest, self.seen_from(0))
    }

    /// The lowest number of those who see a stratum.
    fn seen_from(&self, stratum: Stratum) -> SequenceNumber {
        self.snapshots.get(stratum).copied().unwrap_or(SEQUENCE_MAX)
    }

    /// The newest range delete at `user_key` that everybody sees who sees
    /// `stratum`; 0 if there is none. Keys must not descend from one call to
    /// the next.
    #[inline]
    fn range_deleted(&mut self, user_key: &[u8], stratum: Stratum) -> SequenceNumber {
        if self.range_deletes.is_empty() {
            return 0;
        }
        let visible = self.seen_from(stratum);
        self.range_deletes.covering_next(&mut self.at, user_key, visible)
    }

    /// True if a range delete hides the entry from everybody who would see it.
    #[inline]
    pub(crate) fn hides(&mut self, user_key: &[u8], entry: Trailer) -> bool {
        let sequence = sequence_of(entry);
        self.range_deleted(user_key, self.stratum(sequence)) > sequence
    }

    /// The stratum of a sequence number: how many snapshots do not see it.
    #[inline]
    pub(crate) fn stratum(&self, sequence: SequenceNumber) -> Stratum {
        if self.snapshots.is_empty() {
            return 0;
        }
        self.snapshots.partition_point(|&snapshot| snapshot < sequence)
    }

    /// Judges the next entry. `is_same_key` says that the entry before it had
    /// the same user key.
    #[inline]
    pub(crate) fn judge(&mut self, is_same_key: bool, user_key: &[u8], entry: Trailer) -> Verdict {
        let stratum = self.stratum(sequence_of(entry));
        if !is_same_key {
            self.covered = None;
        }
        if self.hides(user_key, entry) {
            return Verdict::Drop;
        }
        let kind = kind_of(entry).expect("blocks with other kinds are refused");
        if kind == Kind::SingleDelete {
            return Verdict::Single;
        }
        if self.covered == Some(stratum) {
            return Verdict::Drop;
        }
        self.covered = Some(stratum);
        match kind {
            Kind::Put if stratum == 0 && self.below.is_bottom() => {
                Verdict::Keep(trailer(0, Kind::Put))
            }
            Kind::Delete if self.hides_nothing(user_key, stratum) => Verdict::Drop,
            Kind::Merge => Verdict::Collect,
            _ => Verdict::Keep(entry),
        }
    }

    /// True if a single delete and the next older entry of its key are a pair:
    /// a put, and no snapshot between them.
    pub(crate) fn cancels(&self, single_delete: Trailer, older: Trailer) -> bool {
        let stratum = |entry| self.stratum(sequence_of(entry));
        kind_of(older) == Some(Kind::Put) && stratum(single_delete) == stratum(older)
    }

    /// True if a single delete that is no part of a pair is kept.
    pub(crate) fn keeps_single(&mut self, user_key: &[u8], single_delete: Trailer) -> bool {
        let stratum = self.stratum(sequence_of(single_delete));
        self.covered = Some(stratum);
        !self.hides_nothing(user_key, stratum)
    }

    /// True if an entry that was collected below operands is not kept, where they
    /// are: a tombstone that hides nothing. Operands on it are operands on nothing,
    /// and a table would be rewritten again and again for what always stays.
    pub(crate) fn drops_base(&mut self, user_key: &[u8], base: Trailer) -> bool {
        let is_tombstone = matches!(kind_of(base), Some(Kind::Delete | Kind::SingleDelete));
        is_tombstone && self.hides_nothing(user_key, self.stratum(sequence_of(base)))
    }

    /// True if no reader finds anything that a tombstone in `stratum` hides.
    fn hides_nothing(&mut self, user_key: &[u8], stratum: Stratum) -> bool {
        stratum == 0 && self.below.lacks(user_key)
    }

    /// For a key whose last version in the input is in `stratum`: true if
    /// nothing older exists anywhere that a reader could see, so that operands
    /// there can be merged into nothing.
    pub(crate) fn is_oldest(&mut self, user_key: &[u8], stratum: Stratum) -> bool {
        self.hides_nothing(user_key, stratum) || self.range_deleted(user_key, stratum) > 0
    }

    /// The trailer of a value that was merged at `newest`.
    pub(crate) fn merged_trailer(&self, newest: Trailer, stratum: Stratum) -> Trailer {
        let is_zero = stratum == 0 && self.below.is_bottom();
        trailer(if is_zero { 0 } else { sequence_of(newest) }, Kind::Put)
    }

    /// Says that the versions of the key that are still to come must not be
    /// dropped because of those that were collected.
    pub(crate) fn uncover(&mut self) {
        self.covered = None;
    }
}

/// What lies deeper than the output of a flush or compaction.
pub(crate) enum Below {
    /// Nobody looked: every key may be there.
    Unknown,
    /// Nothing.
    Bottom,
    /// These levels; keys are asked for in ascending order.
    Levels(version::Below),
}

impl Below {
    /// What is below the outputs of `plan`, which was made for `version`.
    pub(crate) fn outputs(version: &Version, plan: &Plan) -> Below {
        match plan.bottommost {
            true => Below::Bottom,
            false => Below::Levels(version.below(plan.level_to)),
        }
    }

    #[inline]
    fn is_bottom(&self) -> bool {
        matches!(self, Below::Bottom)
    }

    /// True if no deeper table's range includes `user_key`.
    fn lacks(&mut self, user_key: &[u8]) -> bool {
        match self {
            Below::Unknown => false,
            Below::Bottom => true,
            Below::Levels(levels) => levels.is_absent(user_key),
        }
    }

    /// True if no deeper table has a key from `first` to `last`.
    fn lacks_range(&self, first: &[u8], last: &[u8]) -> bool {
        match self {
            Below::Unknown => false,
            Below::Bottom => true,
            Below::Levels(levels) => levels.is_range_absent(first, last),
        }
    }
}

#[cfg(test)]
mod tests;
