//! Which entries a flush or compaction keeps: a pure decision, entry by entry.
//!
//! Snapshots cut the sequence numbers into strata: versions of a key between
//! two neighbouring snapshots look the same to every reader except for the
//! newest of them. So of each stratum the newest version is kept and the rest
//! dropped. In the lowest stratum, which everybody sees, a tombstone goes when
//! no deeper level can hold the key, and at the bottom sequence numbers become
//! zero, since nobody can tell them apart any more.
//!
//! Operands are the exception: the ones above a base value belong to it, so
//! the caller collects them (see `run`).

use crate::key::{Kind, SequenceNumber, Trailer, kind_of, sequence_of, trailer};
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
}

/// The number of a stratum; the one that everybody sees is 0.
pub(crate) type Stratum = usize;

/// Judges the entries of one flush or compaction, in their order.
pub(crate) struct Retain {
    /// Live snapshots, ascending.
    snapshots: Vec<SequenceNumber>,
    below: Below,
    /// The stratum of the last entry that was met of this key.
    covered: Option<Stratum>,
}

impl Retain {
    /// `snapshots` ascend.
    pub(crate) fn new(snapshots: Vec<SequenceNumber>, below: Below) -> Retain {
        debug_assert!(snapshots.is_sorted());
        Retain { snapshots, below, covered: None }
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
        if is_same_key && self.covered == Some(stratum) {
            return Verdict::Drop;
        }
        self.covered = Some(stratum);
        match kind_of(entry) {
            Some(Kind::Put) if stratum == 0 && self.below.is_bottom() => {
                Verdict::Keep(trailer(0, Kind::Put))
            }
            Some(Kind::Delete | Kind::SingleDelete)
                if stratum == 0 && self.below.lacks(user_key) =>
            {
                Verdict::Drop
            }
            Some(Kind::Merge) => Verdict::Collect,
            Some(Kind::RangeDelete | Kind::ValueReference) | None => {
                // Not ours to interpret yet: neither it nor what follows goes.
                self.covered = None;
                Verdict::Keep(entry)
            }
            _ => Verdict::Keep(entry),
        }
    }

    /// True if nothing older than this key's versions in `stratum` exists
    /// anywhere, so that operands there can be merged into nothing.
    pub(crate) fn is_oldest(&mut self, user_key: &[u8], stratum: Stratum) -> bool {
        stratum == 0 && self.below.lacks(user_key)
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
}

#[cfg(test)]
mod tests;
