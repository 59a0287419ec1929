//! What only the leader of a commit touches: the memtables' writing ends, the
//! log's, and the last sequence number.

use crate::batch::{FamilyId, WriteBatch};
use crate::key::{Kind, SequenceNumber, trailer};
use crate::memtable::{Memtable, MemtableWriter};
use crate::sync::Arc;

use super::family::FamilyCore;
use super::logs::ActiveLog;

/// The state that one commit at a time works on.
pub(crate) struct CommitState {
    pub(crate) last_sequence: SequenceNumber,
    /// Joins the batches of a group; kept for its allocation.
    pub(crate) group: WriteBatch,
    /// The log's writing end; `None` with logging off.
    pub(crate) log: Option<ActiveLog>,
    /// Ascending by family.
    memtables: Vec<ActiveMemtable>,
    /// Families whose memtable has reached its size.
    pub(crate) full: Vec<FamilyId>,
    /// What all memtables of the budget held when that was last looked at.
    pub(crate) memory_seen: usize,
}

/// A family's memtable that takes new entries.
pub(crate) struct ActiveMemtable {
    pub(crate) family: Arc<FamilyCore>,
    pub(crate) table: Arc<Memtable>,
    writer: MemtableWriter,
    /// True if operands can be merged.
    pub(crate) merges: bool,
    /// It is full at this size.
    bytes_max: usize,
}

impl ActiveMemtable {
    pub(crate) fn new(
        family: &Arc<FamilyCore>,
        table: Arc<Memtable>,
        writer: MemtableWriter,
    ) -> ActiveMemtable {
        let merges = family.merge_operator.is_some();
        let bytes_max = family.options().memtable_bytes;
        ActiveMemtable { family: Arc::clone(family), table, writer, merges, bytes_max }
    }
}

impl CommitState {
    pub(crate) fn new(last_sequence: SequenceNumber, log: Option<ActiveLog>) -> CommitState {
        CommitState {
            last_sequence,
            group: WriteBatch::new(),
            log,
            memtables: Vec::new(),
            full: Vec::new(),
            memory_seen: 0,
        }
    }

    fn place(&self, family: FamilyId) -> Result<usize, usize> {
        // Nearly always the default family, which is always first.
        match self.memtables.first() {
            Some(first) if first.family.id == family => Ok(0),
            _ => self.memtables.binary_search_by_key(&family, |active| active.family.id),
        }
    }

    #[inline]
    pub(crate) fn memtable(&self, family: FamilyId) -> Option<&ActiveMemtable> {
        self.place(family).ok().map(|index| &self.memtables[index])
    }

    /// True if the default family's keys are in the order of their bytes.
    pub(crate) fn default_is_bytewise(&self) -> bool {
        self.memtable(FamilyId::DEFAULT).is_some_and(|active| active.family.order().is_bytewise())
    }

    /// All memtables that take new entries.
    pub(crate) fn memtables(&self) -> &[ActiveMemtable] {
        &self.memtables
    }

    /// Adds the memtable of a new family, or replaces that of a known one.
    pub(crate) fn put_memtable(&mut self, active: ActiveMemtable) {
        match self.place(active.family.id) {
            Ok(index) => self.memtables[index] = active,
            Err(index) => self.memtables.insert(index, active),
        }
    }

    pub(crate) fn remove_memtable(&mut self, family: FamilyId) {
        if let Ok(index) = self.place(family) {
            self.memtables.remove(index);
        }
        self.full.retain(|&id| id != family);
    }

    /// Inserts an entry of a family that is known to be here.
    #[inline]
    pub(crate) fn insert(
        &mut self,
        family: FamilyId,
        (sequence, kind): (SequenceNumber, Kind),
        key: &[u8],
        value: &[u8],
    ) {
        let index = self.place(family).expect("families were checked before logging");
        let active = &mut self.memtables[index];
        match kind {
            Kind::RangeDelete => active.writer.delete_range(key, value, sequence),
            _ => active.writer.insert(key, trailer(sequence, kind), value),
        }
        if kind.is_value() {
            active.family.gaps.cut(key);
        }
        if active.table.memory_bytes() >= active.bytes_max && !self.full.contains(&family) {
            self.full.push(family);
        }
    }

    /// Makes the family's memtable full at another size: from the next entry
    /// on.
    pub(crate) fn set_memtable_bytes(&mut self, family: FamilyId, bytes_max: usize) {
        if let Ok(index) = self.place(family) {
            self.memtables[index].bytes_max = bytes_max;
        }
    }
}
