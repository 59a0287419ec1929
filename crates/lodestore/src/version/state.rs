//! What all edits so far add up to: the durable description of the database.
//!
//! It knows nothing of orders of keys or open tables, so that it can be
//! rebuilt before any option is known. Recovery applies the manifest's edits
//! to it; a new manifest begins with it ([`State::to_checkpoint`]).

use std::collections::{BTreeMap, BTreeSet};

use crate::coding::COUNTER_MAX;
use crate::compatibility::Features;
use crate::key::SequenceNumber;
use crate::table::meta::TableMeta;
use crate::version::edit::{FamilyDescriptor, VersionEdit};
use crate::version::levels::LEVELS;
use crate::wal::DurableLog;

/// The durable description of one family.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct FamilyState {
    pub(crate) descriptor: FamilyDescriptor,
    /// Logs below this number hold nothing of this family that is not in its
    /// tables.
    pub(crate) log_number: u64,
    /// Level and description of every live table, by number.
    pub(crate) tables: BTreeMap<u64, (usize, TableMeta)>,
}

/// The durable description of the database.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct State {
    /// Those of the database's files, and of builds that wrote to it before.
    pub(crate) features: Features,
    pub(crate) families: BTreeMap<u32, FamilyState>,
    /// Their names, so that each new one is not compared with all of them.
    names: BTreeSet<String>,
    /// Every file number from here on is free.
    pub(crate) next_file_number: u64,
    /// Every family id from here on is free: ids are never used again, because
    /// logs may still hold records of a dropped family.
    pub(crate) next_family_id: u32,
    /// Not below any sequence number in the tables.
    pub(crate) last_sequence: SequenceNumber,
    /// The newest log that was synced, and how far: what is missing of it is
    /// lost.
    pub(crate) durable_log: DurableLog,
}

impl Default for State {
    /// A database without families; file numbers begin at 1.
    fn default() -> State {
        State {
            features: Features::default(),
            families: BTreeMap::new(),
            names: BTreeSet::new(),
            next_file_number: 1,
            next_family_id: 0,
            last_sequence: 0,
            durable_log: DurableLog::default(),
        }
    }
}

impl State {
    /// A database of these features, without families.
    pub(crate) fn with(features: Features) -> State {
        State { features, ..State::default() }
    }

    /// Makes the change that `edit` describes.
    ///
    /// # Errors
    /// Says what contradicts the state; the state is of no use then.
    pub(crate) fn apply(&mut self, edit: &VersionEdit) -> Result<(), String> {
        self.apply_to_frame(edit)?;
        let dropped: BTreeSet<u32> = edit.families_dropped.iter().copied().collect();
        for &(family, level, number) in &edit.tables_deleted {
            if let Some(family) = self.kept_family(&dropped, family)? {
                family.delete(level, number)?;
            }
        }
        for (family, level, meta) in &edit.tables_added {
            if let Some(family) = self.kept_family(&dropped, *family)? {
                family.add(*level, meta)?;
            }
        }
        Ok(())
    }

    /// Makes the change that `edit` describes to all but the tables: for whoever
    /// has these elsewhere. Costs nothing for the tables that are there.
    ///
    /// # Errors
    /// As [`State::apply`].
    pub(crate) fn apply_to_frame(&mut self, edit: &VersionEdit) -> Result<(), String> {
        for descriptor in &edit.families_created {
            self.create_family(descriptor)?;
        }
        for &(family, log) in &edit.log_numbers {
            let family = self.family_mut(family)?;
            family.log_number = family.log_number.max(log);
        }
        for &(_, level, _) in &edit.tables_deleted {
            check_level(level)?;
        }
        for (_, level, meta) in &edit.tables_added {
            check_level(*level)?;
            self.next_file_number = self.next_file_number.max(after(meta.number)?);
        }
        for &family in &edit.families_dropped {
            let dropped = self.families.remove(&family);
            let dropped = dropped
                .ok_or_else(|| format!("family {family}, which is not there, is dropped"))?;
            self.names.remove(&dropped.descriptor.name);
        }
        // These never go back: an edit may have been prepared before another
        // that was applied earlier.
        let bound = in_range(edit.next_file_number.unwrap_or(0))?;
        self.next_file_number = self.next_file_number.max(bound);
        self.last_sequence = self.last_sequence.max(edit.last_sequence.unwrap_or(0));
        self.next_family_id = self.next_family_id.max(edit.next_family_id.unwrap_or(0));
        self.durable_log = self.durable_log.max(edit.durable_log.unwrap_or_default());
        Ok(())
    }

    /// Edits that make this state out of nothing, but for the features: the counters
    /// first, then one edit a family.
    pub(crate) fn to_checkpoint(&self) -> Vec<VersionEdit> {
        let counters = VersionEdit {
            next_file_number: Some(self.next_file_number),
            last_sequence: Some(self.last_sequence),
            next_family_id: Some(self.next_family_id),
            durable_log: Some(self.durable_log),
            ..VersionEdit::default()
        };
        let families = self.families.iter().map(|(&id, family)| family.to_edit(id));
        std::iter::once(counters).chain(families).collect()
    }

    /// The oldest log that some family needs; `None` without families.
    pub(crate) fn oldest_log_number(&self) -> Option<u64> {
        self.families.values().map(|f| f.log_number).min()
    }

    /// The family of this name.
    pub(crate) fn family_named(&self, name: &str) -> Option<&FamilyState> {
        self.families.values().find(|f| f.descriptor.name == name)
    }

    fn create_family(&mut self, descriptor: &FamilyDescriptor) -> Result<(), String> {
        let FamilyDescriptor { id, name, .. } = descriptor;
        if !self.names.insert(name.clone()) {
            return Err(format!("family {name:?} is created twice"));
        }
        let state = FamilyState { descriptor: descriptor.clone(), ..FamilyState::default() };
        if self.families.insert(*id, state).is_some() {
            return Err(format!("family {id} is created twice"));
        }
        let next = id.checked_add(1).ok_or("family ids are used up")?;
        self.next_family_id = self.next_family_id.max(next);
        Ok(())
    }

    /// Takes in a family that no edit created: for repair. Its number is free.
    /// If its name is taken, [`State::rename_family`] one of the two.
    pub(crate) fn adopt_family(&mut self, descriptor: FamilyDescriptor) {
        let id = descriptor.id;
        self.names.insert(descriptor.name.clone());
        let state = FamilyState { descriptor, ..FamilyState::default() };
        self.families.insert(id, state);
        self.next_family_id = self.next_family_id.max(id.saturating_add(1));
    }

    /// Gives a family that is there another name, which is free.
    pub(crate) fn rename_family(&mut self, id: u32, name: String) {
        if let Some(family) = self.families.get_mut(&id) {
            self.names.insert(name.clone());
            family.descriptor.name = name;
        }
    }

    /// The family whose tables an edit changes; `None` if it drops it, tables
    /// and all.
    fn kept_family(
        &mut self,
        dropped: &BTreeSet<u32>,
        id: u32,
    ) -> Result<Option<&mut FamilyState>, String> {
        match dropped.contains(&id) {
            true => Ok(None),
            false => self.family_mut(id).map(Some),
        }
    }

    /// Forgets the tables, keeps the rest.
    pub(crate) fn clear_tables(&mut self) {
        self.families.values_mut().for_each(|family| family.tables.clear());
    }

    fn family_mut(&mut self, id: u32) -> Result<&mut FamilyState, String> {
        self.families.get_mut(&id).ok_or_else(|| format!("family {id} is not there"))
    }
}

impl FamilyState {
    /// The tables of one level, in the order of their numbers.
    #[cfg(test)]
    pub(crate) fn tables_at(&self, level: usize) -> impl Iterator<Item = &TableMeta> {
        self.tables.values().filter(move |(at, _)| *at == level).map(|(_, meta)| meta)
    }

    fn to_edit(&self, id: u32) -> VersionEdit {
        VersionEdit {
            families_created: vec![self.descriptor.clone()],
            log_numbers: vec![(id, self.log_number)],
            tables_added: self.tables.values().map(|(l, meta)| (id, *l, meta.clone())).collect(),
            ..VersionEdit::default()
        }
    }

    fn delete(&mut self, level: usize, number: u64) -> Result<(), String> {
        match self.tables.remove(&number) {
            Some((at, _)) if at == level => Ok(()),
            Some((at, _)) => Err(format!("table {number} is at level {at}, not {level}")),
            None => Err(format!("table {number}, which is not there, is deleted")),
        }
    }

    fn add(&mut self, level: usize, meta: &TableMeta) -> Result<(), String> {
        check_level(level)?;
        match self.tables.insert(meta.number, (level, meta.clone())) {
            None => Ok(()),
            Some(_) => Err(format!("table {} is added twice", meta.number)),
        }
    }
}

fn check_level(level: usize) -> Result<(), String> {
    if level < LEVELS { Ok(()) } else { Err(format!("there is no level {level}")) }
}

fn after(number: u64) -> Result<u64, String> {
    in_range(number).map(|number| number + 1)
}

fn in_range(number: u64) -> Result<u64, String> {
    Some(number)
        .filter(|number| *number <= COUNTER_MAX)
        .ok_or_else(|| format!("the file number {number} is out of range"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn family(id: u32, name: &str) -> FamilyDescriptor {
        FamilyDescriptor { id, name: name.into(), ..FamilyDescriptor::default() }
    }

    fn table(number: u64) -> TableMeta {
        TableMeta { number, ..TableMeta::default() }
    }

    fn sample() -> State {
        let mut state = State::default();
        let edit = VersionEdit {
            last_sequence: Some(99),
            families_created: vec![family(0, "default"), family(7, "x")],
            log_numbers: vec![(0, 4), (7, 3)],
            tables_added: vec![(0, 0, table(10)), (0, 6, table(11)), (7, 1, table(12))],
            ..VersionEdit::default()
        };
        state.apply(&edit).unwrap();
        state
    }

    /// A checkpoint is the whole state: applying it to nothing gives it back.
    #[test]
    fn a_checkpoint_gives_the_state_back() {
        let mut state = sample();
        let drop = VersionEdit { families_dropped: vec![7], ..VersionEdit::default() };
        for state in [State::default(), state.clone(), {
            state.apply(&drop).unwrap();
            state
        }] {
            let mut again = State::default();
            for edit in state.to_checkpoint() {
                again.apply(&edit).unwrap();
            }
            assert_eq!(again, state);
        }
    }

    /// The id of a dropped family is not given out again, also after a
    /// checkpoint, because logs may still hold its records.
    #[test]
    fn ids_of_dropped_families_are_not_used_again() {
        let mut state = sample();
        let drop = VersionEdit { families_dropped: vec![7], ..VersionEdit::default() };
        state.apply(&drop).unwrap();
        assert_eq!(state.next_family_id, 8);
    }

    /// Many families in edits of their own, as a checkpoint has them, are not
    /// each compared with all others.
    #[test]
    fn many_families_are_applied_quickly() {
        let mut state = State::default();
        for id in 0..100_000 {
            let edit = VersionEdit {
                families_created: vec![family(id, &format!("a name of some length {id}"))],
                ..VersionEdit::default()
            };
            state.apply(&edit).unwrap();
        }
        let ids: Vec<u32> = (0..100_000).collect();
        let edit = VersionEdit {
            tables_added: ids.iter().map(|&id| (id, 0, table(u64::from(id)))).collect(),
            families_dropped: ids,
            ..VersionEdit::default()
        };
        state.apply(&edit).expect("tables of dropped families are dropped");
        state
            .apply(&VersionEdit {
                families_created: vec![family(7, "a name of some length 7")],
                ..VersionEdit::default()
            })
            .expect("the name is free again");
    }

    /// Counters never go back, and a table's number is taken.
    #[test]
    fn counters_only_grow() {
        let mut state = sample();
        assert_eq!(state.next_file_number, 13);
        let edit = VersionEdit {
            next_file_number: Some(5),
            last_sequence: Some(1),
            log_numbers: vec![(0, 2)],
            ..VersionEdit::default()
        };
        state.apply(&edit).unwrap();
        assert_eq!(state.next_file_number, 13);
        assert_eq!(state.last_sequence, 99);
        assert_eq!(state.oldest_log_number(), Some(3));
        assert_eq!(state.families[&0].log_number, 4);
    }

    /// A table moves when it is deleted from one level and added to another.
    #[test]
    fn one_edit_can_move_a_table() {
        let mut state = sample();
        let edit = VersionEdit {
            tables_deleted: vec![(0, 0, 10)],
            tables_added: vec![(0, 5, table(10))],
            ..VersionEdit::default()
        };
        state.apply(&edit).unwrap();
        assert_eq!(state.families[&0].tables_at(5).count(), 1);
        assert_eq!(state.families[&0].tables_at(0).count(), 0);
    }

    /// Edits that contradict the state are errors, not guesses.
    #[test]
    fn contradictions_are_refused() {
        let add = |family, level, number| VersionEdit {
            tables_added: vec![(family, level, table(number))],
            ..VersionEdit::default()
        };
        let delete = |family, level, number| VersionEdit {
            tables_deleted: vec![(family, level, number)],
            ..VersionEdit::default()
        };
        let create = |id, name| VersionEdit {
            families_created: vec![family(id, name)],
            ..VersionEdit::default()
        };
        assert!(sample().apply(&add(0, LEVELS - 1, 50)).is_ok());
        for edit in [
            add(0, LEVELS, 50),
            add(1, 0, 50),
            add(0, 1, 10),
            add(0, 1, u64::MAX),
            add(0, 1, COUNTER_MAX + 1),
            VersionEdit { next_file_number: Some(u64::MAX), ..VersionEdit::default() },
            delete(0, 1, 10),
            delete(0, 0, 50),
            delete(9, 0, 10),
            create(0, "new"),
            create(3, "x"),
            create(u32::MAX, "last"),
            VersionEdit { families_dropped: vec![3], ..VersionEdit::default() },
            VersionEdit { log_numbers: vec![(3, 1)], ..VersionEdit::default() },
        ] {
            assert!(sample().apply(&edit).is_err(), "{edit:?}");
        }
    }
}
