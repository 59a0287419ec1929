//! Verification: every byte of every table read and checked, and whether the tables
//! fit together.
//!
//! A lookup goes from place to place (memtables, level 0 from its newest table on, then
//! level by level) and ends where it finds something: of each key, what a place holds must
//! be newer than what any later one does. A cursor goes by sequence numbers alone. Where
//! tables are not at the places where they were written, the two differ.

use crate::cursor::Cursor;
use crate::error::{Error, Result};
use crate::filename;
use crate::key::{SequenceNumber, sequence_of};
use crate::sync::Arc;

use super::engine::Engine;
use super::family::FamilyCore;
use super::view::View;

/// What [`crate::Db::verify`] has read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VerifyReport {
    /// Tables, all sound.
    pub tables: u64,
    /// Their data blocks.
    pub blocks: u64,
    /// Their entries.
    pub entries: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Filters, or parts of one, of a kind that only a later build knows: lookups
    /// do without.
    pub unknown_filters: u64,
}

impl Engine {
    pub(crate) fn verify(self: &Arc<Self>) -> Result<VerifyReport> {
        let mut report = VerifyReport::default();
        let families = self.families.load_full();
        for family in families.all() {
            let view = family.views.keep();
            for level in view.version.levels() {
                for file in level.tables().iter() {
                    let counts = file.table()?.verify(family.context(false))?;
                    report.tables += 1;
                    report.blocks += counts.blocks;
                    report.entries += counts.entries;
                    report.bytes += file.meta.bytes;
                    report.unknown_filters += counts.unknown_filters;
                }
            }
            check_ages(family, &view)?;
        }
        Ok(report)
    }
}

/// Checks that of each key the entries get older from place to place.
///
/// # Errors
/// `Corruption` of `CURRENT`: what it names has the tables at wrong places.
fn check_ages(family: &FamilyCore, view: &View) -> Result<()> {
    // What is written from here on is not looked at.
    let visible = family.shared.visible.get();
    let (mut entries, mut coverage) = family.entries(view, visible, None, family.context(false))?;
    if entries.source_count() < 2 && coverage.is_empty() {
        return Ok(());
    }
    let mut ages = Ages::default();
    entries.seek_to_first();
    while entries.valid() {
        let (user_key, sequence) = (entries.user_key(), sequence_of(entries.trailer()));
        if sequence <= visible {
            let found = Found { sequence, place: entries.source() };
            let deleted = coverage.newest(user_key)?;
            if ages.contradict(user_key, found) || found.contradicts(deleted) {
                let path = filename::current_path(&family.shared.directory);
                let (name, key) = (&family.name, user_key.escape_ascii());
                let what = format!(
                    "the tables of family {name:?} are not where they belong: of key {key} \
                     older entries are found before newer ones"
                );
                return Err(Error::corruption(&path, 0, what));
            }
        }
        entries.next();
    }
    entries.status()
}

/// An entry: its age, and the place where it was found.
#[derive(Clone, Copy)]
struct Found {
    sequence: SequenceNumber,
    place: usize,
}

impl Found {
    /// Whether a range delete over it, from whose place on all are older than it, is older
    /// than this although it comes first, or newer although it comes later.
    fn contradicts(self, (deleted, older_from): (SequenceNumber, usize)) -> bool {
        match self.sequence < deleted {
            true => self.place + 1 < older_from,
            false => deleted > 0 && self.place >= older_from,
        }
    }
}

/// The newest entry of a key that was met last.
#[derive(Default)]
struct Ages {
    user_key: Vec<u8>,
    last: Option<Found>,
}

impl Ages {
    /// Whether this entry comes before one that it is older than. Entries are given
    /// newest first.
    fn contradict(&mut self, user_key: &[u8], found: Found) -> bool {
        let newer = self.last.replace(found);
        if self.user_key != user_key {
            self.user_key.clear();
            self.user_key.extend_from_slice(user_key);
            return false;
        }
        newer.is_some_and(|newer| {
            found.place < newer.place
                || found.place > newer.place && found.sequence >= newer.sequence
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::FamilyId;
    use crate::fs::MemFs;
    use crate::version::VersionEdit;
    use crate::{Db, Options};

    /// Lets the manifest say that each of the two tables is at the other's level.
    fn exchange(db: &Db) -> Result<()> {
        let engine = db.engine();
        let family = Arc::clone(engine.families.load_full().get(FamilyId::DEFAULT).unwrap());
        let version = Arc::clone(&family.views.keep().version);
        let mut edit = VersionEdit::default();
        for (level, tables) in version.levels().iter().enumerate() {
            let (id, other) = (family.id.0, if level == 0 { 6 } else { 0 });
            for file in tables.tables().iter() {
                edit.tables_deleted.push((id, level, file.meta.number));
                edit.tables_added.push((id, other, file.meta.clone()));
            }
        }
        assert_eq!(edit.tables_added.len(), 2);
        engine.versions.apply(edit, |_, version| family.views.install(Arc::clone(version), &[]))
    }

    /// Lookups and cursors would not agree.
    #[test]
    fn tables_at_levels_that_are_not_theirs_are_told() -> Result<()> {
        let fs = Arc::new(MemFs::new());
        let db = Db::open("/db", Options { fs, create_if_missing: true, ..Options::default() })?;
        db.put(b"k", b"old")?;
        db.flush()?;
        db.compact_range(None, None)?;
        db.put(b"k", b"new")?;
        db.flush()?;
        db.verify()?;
        exchange(&db)?;
        let told = db.verify().unwrap_err();
        assert!(told.is_corruption(), "{told}");
        assert!(told.to_string().contains("of key k older entries"), "{told}");
        Ok(())
    }

    #[test]
    fn a_range_delete_belongs_between_what_it_hides_and_what_is_newer() {
        let found = |sequence, place| Found { sequence, place };
        // Of place 1: from place 2 on all is older.
        let deleted = (10, 2);
        for (sequence, place) in [(11, 0), (11, 1), (9, 1), (9, 2), (9, 3)] {
            assert!(!found(sequence, place).contradicts(deleted), "@{sequence} at {place}");
        }
        for (sequence, place) in [(9, 0), (11, 2), (11, 3)] {
            assert!(found(sequence, place).contradicts(deleted), "@{sequence} at {place}");
        }
        assert!(!found(0, 3).contradicts((0, usize::MAX)), "there is none");
    }
}
