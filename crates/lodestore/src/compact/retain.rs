//! Which entries survive a compaction: decided for all versions of one user
//! key at a time, without I/O.
//!
//! Snapshots cut the versions of a key into strata: two versions are in the
//! same stratum if no snapshot tells them apart. Within a stratum:
//! - what is older than a put or a delete is dropped;
//! - operands right above a put, a delete or the beginning of the key become
//!   one put; others are combined as far as the operator can;
//! - a delete is dropped if nothing older is left, here or deeper.
//!
//! A single delete counts as a delete: that is right however often the key was
//! put. Kinds that are not understood here (range deletes, references to
//! value files, unknown ones) are kept, and nothing is combined across them.
//!
//! Where nothing deeper can hold the key and no snapshot is older, a put gets
//! the sequence number zero: equal numbers compress, and every reader may see
//! them.

use std::borrow::Cow;

use crate::key::{Kind, SEQUENCE_MAX, SequenceNumber, Trailer, kind_of, sequence_of, trailer};
use crate::merge_operator::SharedMergeOperator;

/// One version of a user key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry<'a> {
    pub(crate) trailer: Trailer,
    pub(crate) value: Cow<'a, [u8]>,
}

/// Tells if no deeper level can hold a key.
type AbsentBelow<'s> = Box<dyn FnMut(&[u8]) -> bool + Send + 's>;

/// What is kept of a stream of entries.
pub(crate) struct Retain<'s> {
    /// Ascending.
    snapshots: Vec<SequenceNumber>,
    /// Nothing deeper can hold any key of the stream.
    bottommost: bool,
    /// Puts up to this sequence number get number zero.
    zero_up_to: Option<SequenceNumber>,
    operator: Option<SharedMergeOperator>,
    /// True if no deeper level can hold the key; asked for ascending keys.
    absent_below: AbsentBelow<'s>,
    dropped: u64,
}

impl<'s> Retain<'s> {
    /// `snapshots`, ascending, are those that readers hold. `absent_below`
    /// tells if no level deeper than the output's can hold a key; it is not
    /// asked if `bottommost` says so for all.
    pub(crate) fn new(
        snapshots: &[SequenceNumber],
        bottommost: bool,
        operator: Option<SharedMergeOperator>,
        absent_below: impl FnMut(&[u8]) -> bool + Send + 's,
    ) -> Retain<'s> {
        assert!(
            snapshots.is_sorted(),
            "snapshots are given in ascending order"
        );
        let oldest = snapshots.first().copied().unwrap_or(SEQUENCE_MAX);
        Retain {
            snapshots: snapshots.to_vec(),
            bottommost,
            zero_up_to: bottommost.then_some(oldest),
            operator,
            absent_below: Box::new(absent_below),
            dropped: 0,
        }
    }

    /// The trailer under which a put is kept that is the only version of its
    /// key in the stream.
    #[inline]
    pub(crate) fn single_put(&self, put: Trailer) -> Trailer {
        match self.zero_up_to {
            Some(oldest) if sequence_of(put) <= oldest => trailer(0, Kind::Put),
            _ => put,
        }
    }

    /// True if a delete (or single delete) that is the only version of its key
    /// in the stream is kept. Keys must ascend from call to call.
    #[inline]
    pub(crate) fn keeps_single_delete(&mut self, user_key: &[u8]) -> bool {
        let dropped = self.nothing_below(user_key);
        self.dropped += u64::from(dropped);
        !dropped
    }

    /// Entries that were dropped, those that were combined into one included.
    pub(crate) fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Leaves in `versions`, which are all versions of `user_key` in the
    /// stream, newest first, those that are kept. Keys must ascend from call
    /// to call.
    pub(crate) fn versions_of_key(&mut self, user_key: &[u8], versions: &mut Vec<Entry<'_>>) {
        debug_assert!(versions.is_sorted_by(|a, b| a.trailer >= b.trailer));
        let given = versions.len();
        if given == 1 && self.only_version(user_key, versions) {
            return;
        }
        let mut key = KeyVersions {
            user_key,
            operator: self.operator.as_ref(),
            nothing_below: self.bottommost || (self.absent_below)(user_key),
            kept: Vec::with_capacity(given),
        };
        // From the oldest stratum on: what is kept of it decides what a newer
        // one must keep.
        while let Some(oldest) = versions.last() {
            let stratum = stratum(&self.snapshots, oldest.trailer);
            let same = |entry: &Entry<'_>| self::stratum(&self.snapshots, entry.trailer) == stratum;
            let start = versions.len() - versions.iter().rev().take_while(|e| same(e)).count();
            key.stratum(versions.split_off(start));
        }
        if let Some(oldest) = key.kept.first_mut()
            && kind_of(oldest.trailer) == Some(Kind::Put)
        {
            oldest.trailer = self.single_put(oldest.trailer);
        }
        versions.extend(key.kept.into_iter().rev());
        self.dropped += (given - versions.len()) as u64;
    }

    /// Decides about a key with one version without allocating; false if that
    /// takes more.
    fn only_version(&mut self, user_key: &[u8], versions: &mut Vec<Entry<'_>>) -> bool {
        let only = &mut versions[0];
        match kind_of(only.trailer) {
            Some(Kind::Put) => only.trailer = self.single_put(only.trailer),
            Some(Kind::Delete | Kind::SingleDelete) => {
                if !self.keeps_single_delete(user_key) {
                    versions.clear();
                }
            }
            _ => return false,
        }
        true
    }

    fn nothing_below(&mut self, user_key: &[u8]) -> bool {
        self.bottommost || (self.absent_below)(user_key)
    }
}

/// How many snapshots are older than the entry: entries that agree in this
/// are seen by the same snapshots.
fn stratum(snapshots: &[SequenceNumber], trailer: Trailer) -> usize {
    snapshots.partition_point(|&snapshot| snapshot < sequence_of(trailer))
}

/// One user key while its strata are gone through, the oldest first.
struct KeyVersions<'k, 'v> {
    user_key: &'k [u8],
    operator: Option<&'k SharedMergeOperator>,
    /// No deeper level can hold the key.
    nothing_below: bool,
    /// What is kept so far, oldest first.
    kept: Vec<Entry<'v>>,
}

impl<'v> KeyVersions<'_, 'v> {
    /// Takes the versions of one stratum, newest first.
    fn stratum(&mut self, mut versions: Vec<Entry<'v>>) {
        let base = versions.iter().position(|entry| is_base(entry));
        if let Some(base) = base {
            // What a put or delete hides is dropped, unless it isn't
            // understood.
            let hidden = versions.drain(base + 1..).rev();
            self.kept
                .extend(hidden.filter(|entry| !is_understood(entry)));
        }
        let mut older = versions.into_iter().rev().peekable();
        if base.is_some() {
            let base = older.next().expect("the base is the oldest version left");
            let operands = take_operands(&mut older);
            self.base(base, operands);
        }
        // What is left are operands, and kinds that part them.
        loop {
            let operands = take_operands(&mut older);
            self.operands(operands);
            let Some(other) = older.next() else { return };
            self.kept.push(other);
        }
    }

    /// True if there is nothing older than what comes next.
    fn at_beginning(&self) -> bool {
        self.nothing_below && self.kept.is_empty()
    }

    /// A put or delete with the operands right above it, oldest first.
    fn base(&mut self, base: Entry<'v>, operands: Vec<Entry<'v>>) {
        let value = (kind_of(base.trailer) == Some(Kind::Put)).then_some(&base.value[..]);
        if let Some(put) = self.full_merge(value, &operands) {
            self.kept.push(put);
            return;
        }
        let is_delete = value.is_none();
        if !(is_delete && self.at_beginning()) {
            self.kept.push(base);
        }
        self.kept.extend(operands);
    }

    /// Operands, oldest first, with nothing in their stratum that they apply
    /// to.
    fn operands(&mut self, operands: Vec<Entry<'v>>) {
        if self.at_beginning()
            && let Some(put) = self.full_merge(None, &operands)
        {
            self.kept.push(put);
            return;
        }
        let first_of_these = self.kept.len();
        for newer in operands {
            let older = self.kept.get(first_of_these..).and_then(<[_]>::last);
            match older.and_then(|older| self.partial_merge(older, &newer)) {
                Some(both) => *self.kept.last_mut().expect("there is an older one") = both,
                None => self.kept.push(newer),
            }
        }
    }

    /// The put that stands for `operands`, oldest first, on top of `value`.
    fn full_merge(&self, value: Option<&[u8]>, operands: &[Entry<'v>]) -> Option<Entry<'v>> {
        let newest = operands.last()?;
        let values: Vec<&[u8]> = operands.iter().map(|operand| &operand.value[..]).collect();
        let merged = self.operator?.full_merge(self.user_key, value, &values)?;
        let trailer = trailer(sequence_of(newest.trailer), Kind::Put);
        Some(Entry {
            trailer,
            value: Cow::Owned(merged),
        })
    }

    /// The operand that stands for two.
    fn partial_merge(&self, older: &Entry<'v>, newer: &Entry<'v>) -> Option<Entry<'v>> {
        let both = self
            .operator?
            .partial_merge(self.user_key, &older.value, &newer.value)?;
        Some(Entry {
            trailer: newer.trailer,
            value: Cow::Owned(both),
        })
    }
}

/// True if older versions do not matter to who sees this one.
fn is_base(entry: &Entry<'_>) -> bool {
    matches!(
        kind_of(entry.trailer),
        Some(Kind::Put | Kind::Delete | Kind::SingleDelete)
    )
}

fn is_operand(entry: &Entry<'_>) -> bool {
    kind_of(entry.trailer) == Some(Kind::Merge)
}

fn is_understood(entry: &Entry<'_>) -> bool {
    is_base(entry) || is_operand(entry)
}

/// The operands up to the first entry of another kind.
fn take_operands<'v>(
    older: &mut std::iter::Peekable<impl Iterator<Item = Entry<'v>>>,
) -> Vec<Entry<'v>> {
    std::iter::from_fn(|| older.next_if(is_operand)).collect()
}

#[cfg(test)]
mod tests;
