//! The database of ours beside LevelDB's files: linked tables, new tables where
//! the old ones will not do, and a first manifest.

use std::path::{Path, PathBuf};

use crate::batch::FamilyId;
use crate::budget::{Account, Charge, Item};
use crate::compact::retain::{Below, Retain};
use crate::compact::run::{Grandparents, NewTable, Outputs, write_tables};
use crate::db::{self, descriptor};
use crate::error::{Error, Result};
use crate::filename;
use crate::key::{FileId, KeyOrder};
use crate::leveldb::directory::LevelDb;
use crate::merge::{MergeCursor, Source};
use crate::options::{LevelPlace, Options};
use crate::range_deletes::Fragments;
use crate::record::Failure;
use crate::scheduler::{system_random_u128, system_unix_seconds};
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::table::meta::TableMeta;
use crate::table::{TableBuilder, TableFamily, TableSettings};
use crate::version::edit::VersionEdit;
use crate::version::state::State;
use crate::version::{Manifest, ManifestIdentity, Version};
use crate::wal::{Room, SegmentHeader, SegmentWriter};

use super::Adopted;
use super::logs::{self, Entry, Log};
use super::place::Place;
use super::tables::{Foreign, Tables};

/// Entries of a log are written to a table of level 0 at this size.
const LOG_TABLE_BYTES: usize = 64 << 20;

/// Builds it all and makes it the database of `directory`, durably.
pub(super) fn build(
    place: &Place,
    directory: &Path,
    options: &Options,
    order: &KeyOrder,
    database: &LevelDb,
    tables: Tables,
    logs: Vec<Log>,
) -> Result<Adopted> {
    let mut build = Build::new(directory, options, order, database);
    for foreign in &tables.kept {
        build.link(foreign)?;
    }
    for group in &tables.rewritten {
        build.rewrite(group)?;
    }
    for log in logs {
        build.write_log(log)?;
    }
    build.finish(place)
}

/// Builds, in an overlay over `directory`, what [`Db::open_read_only`] needs to read
/// the database there: names for its tables, a manifest, and a log of ours.
///
/// [`Db::open_read_only`]: crate::Db::open_read_only
pub(super) fn build_view(
    directory: &Path,
    overlay: &Options,
    order: &KeyOrder,
    database: &LevelDb,
    tables: &Tables,
) -> Result<()> {
    let mut build = Build::new(directory, overlay, order, database);
    for foreign in &tables.kept {
        build.link(foreign)?;
    }
    for group in &tables.rewritten {
        build.rewrite(group)?;
    }
    let logs: Vec<PathBuf> = database.logs.iter().map(|(_, path)| path.clone()).collect();
    build.finish_view(&logs)
}

struct Build<'a> {
    directory: &'a Path,
    options: &'a Options,
    order: &'a KeyOrder,
    next_number: AtomicU64,
    added: Vec<(usize, TableMeta)>,
    report: Adopted,
}

impl<'a> Build<'a> {
    fn new(
        directory: &'a Path,
        options: &'a Options,
        order: &'a KeyOrder,
        database: &LevelDb,
    ) -> Build<'a> {
        let report = Adopted { last_sequence: database.state.last_sequence, ..Adopted::default() };
        let next_number = AtomicU64::new(database.next_file_number);
        Build { directory, options, order, next_number, added: Vec::new(), report }
    }

    /// A number that no file has.
    fn number(&self) -> u64 {
        self.next_number.fetch_add(1, Ordering::Relaxed)
    }

    /// An id that no file has, from the scheduler that is to be used, if one is: a seeded
    /// one gives the same each time.
    fn new_id(&self) -> FileId {
        let scheduler = self.options.scheduler.as_ref();
        FileId(scheduler.map_or_else(system_random_u128, |of| of.random_u128()))
    }

    fn unix_seconds(&self) -> u64 {
        let scheduler = self.options.scheduler.as_ref();
        scheduler.map_or_else(system_unix_seconds, |of| of.unix_seconds())
    }

    fn link(&mut self, foreign: &Foreign) -> Result<()> {
        let to = filename::table_path(self.directory, foreign.meta.number);
        db::link_or_copy(&*self.options.fs, &foreign.path, &to)?;
        let meta = TableMeta { id: self.new_id(), ..foreign.meta.clone() };
        self.added.push((foreign.level, meta));
        self.report.tables_linked += 1;
        Ok(())
    }

    /// Writes the entries of tables of one level to new ones there.
    fn rewrite(&mut self, group: &[Foreign]) -> Result<()> {
        let Some(first) = group.first() else { return Ok(()) };
        let sources = group.iter().map(|of| Source::Table(Box::new(of.table.cursor())));
        let mut cursor = MergeCursor::new(sources.collect(), self.order.clone());
        let family = self.options.family_options(db::DEFAULT_NAME);
        let begin = || self.begin_table(first.level);
        let outputs =
            Outputs::new(&begin, family.table_bytes, Grandparents::default(), self.order.clone());
        let mut retain = Retain::new(Vec::new(), Below::Unknown, Fragments::default());
        let (tables, _) = write_tables(&mut cursor, &mut retain, None, outputs)?;
        self.added.extend(tables.into_iter().map(|meta| (first.level, meta)));
        self.report.tables_rewritten += group.len() as u64;
        Ok(())
    }

    /// Writes what a log holds to tables of level 0: each newer than the one
    /// before, as the log is.
    fn write_log(&mut self, log: Log) -> Result<()> {
        self.report.last_sequence = self.report.last_sequence.max(log.last_sequence);
        self.report.log_entries += log.entries.len() as u64;
        if let Some(offset) = log.torn_at {
            let what = "ended in the middle of a record, as after a crash: LevelDB ignores it too";
            self.report.notes.push(format!("{}: {what} (byte {offset})", log.name));
        }
        let (mut part, mut bytes) = (Vec::new(), 0);
        for entry in log.entries {
            bytes += entry.0.len() + entry.2.len();
            part.push(entry);
            if bytes >= LOG_TABLE_BYTES {
                self.write_part(std::mem::take(&mut part))?;
                bytes = 0;
            }
        }
        self.write_part(part)
    }

    fn write_part(&mut self, mut entries: Vec<Entry>) -> Result<()> {
        if entries.is_empty() {
            return Ok(());
        }
        entries.sort_by(|a, b| self.order.compare_entries((&a.0, a.1), (&b.0, b.1)));
        let mut new = self.begin_table(0)?;
        for (key, trailer, value) in &entries {
            new.builder.add(key, *trailer, value)?;
        }
        self.added.push((0, new.finish()?));
        Ok(())
    }

    fn begin_table(&self, level: usize) -> Result<NewTable> {
        let number = self.number();
        let path = filename::table_path(self.directory, number);
        let file = self.options.fs.create(&path);
        let file = file.map_err(|error| Error::io(&path, "create", error))?;
        let family = self.options.family_options(db::DEFAULT_NAME);
        let buffers = Charge::new(&Account::unlimited(), Item::Compactions);
        let place = LevelPlace { level, base: level.max(1), covers_older: false };
        let settings = TableSettings {
            order: self.order.clone(),
            family: Some(TableFamily {
                id: FamilyId::DEFAULT.0,
                name: db::DEFAULT_NAME.to_string(),
            }),
            ..family.table_settings(place, false, buffers)
        };
        let builder = TableBuilder::new(file, &path, self.new_id(), settings)?;
        Ok(NewTable::begin(number, self.unix_seconds(), builder))
    }

    /// Writes the manifest and makes the directory ours.
    fn finish(self, place: &Place) -> Result<Adopted> {
        let (identity, state) = (self.identity(), self.state()?);
        // Everything that the manifest names must be there before it is.
        let fs = &self.options.fs;
        let synced = fs.sync_directory(self.directory);
        synced.map_err(|error| Error::io(self.directory, "sync directory", error))?;
        place.record(self.report.last_sequence)?;
        Manifest::create(fs, self.directory, identity, &state)?;
        place.remove_leveldb_files()?;
        Ok(self.report)
    }

    /// Writes the manifest, and the records of `logs` to a segment of our log.
    fn finish_view(self, logs: &[PathBuf]) -> Result<()> {
        let (identity, number) = (self.identity(), self.number());
        let fs = &self.options.fs;
        let header = SegmentHeader {
            number,
            id: self.new_id(),
            database: identity.database_id,
            manifest_id: identity.id,
            short_records: true,
            ..SegmentHeader::default()
        };
        let path = filename::log_path(self.directory, number);
        let mut segment = SegmentWriter::create(fs, &path, &header, None, Room::AsNeeded)?;
        let mut next = 0;
        for log in logs {
            logs::visit(&**fs, log, &mut next, &mut |record| {
                segment.append(record).map(|_| ()).map_err(Failure::into_error)
            })?;
        }
        let mut state = self.state()?;
        state.families.values_mut().for_each(|family| family.log_number = number);
        Manifest::create(fs, self.directory, identity, &state)?;
        Ok(())
    }

    fn identity(&self) -> ManifestIdentity {
        ManifestIdentity {
            number: self.number(),
            id: self.new_id(),
            database_id: self.new_id(),
            created_unix_seconds: self.unix_seconds(),
            ..ManifestIdentity::default()
        }
    }

    /// What the manifest begins with.
    ///
    /// # Errors
    /// `Corruption` if no database of ours can be so: one that does not open would be
    /// neither ours nor LevelDB's.
    fn state(&self) -> Result<State> {
        let family = self.options.family_options(db::DEFAULT_NAME);
        let family = descriptor(FamilyId::DEFAULT, db::DEFAULT_NAME, family);
        let id = family.id;
        let added = self.added.iter().map(|(level, meta)| (id, *level, meta.clone()));
        let edit = VersionEdit {
            families_created: vec![family],
            tables_added: added.collect(),
            last_sequence: Some(self.report.last_sequence),
            next_file_number: Some(self.next_number.load(Ordering::Relaxed)),
            ..VersionEdit::default()
        };
        let mut state = State::default();
        let contradiction = |what: String| Error::corruption(self.directory, 0, what);
        state.apply(&edit).map_err(contradiction)?;
        for family in state.families.values() {
            Version::check_state(self.order, family).map_err(contradiction)?;
        }
        Ok(state)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fs::MemFs;
    use crate::key::{BYTEWISE_NAME, InternalKey};
    use crate::leveldb::testing::MadeDb;

    /// A manifest that no opening would take is not written: an error comes before
    /// anything has changed.
    #[test]
    fn levels_that_cannot_be_opened_are_refused() {
        let (fs, root) = (MemFs::new(), Path::new("/leveldb"));
        MadeDb::new(&fs, root, BYTEWISE_NAME).finish();
        let database = LevelDb::read(&fs, root).unwrap();
        let (options, order) = (Options::default(), KeyOrder::Bytewise);
        let state = |level, bounds: [[&[u8]; 2]; 2]| {
            let mut build = Build::new(root, &options, &order, &database);
            for (number, [first, last]) in (5..).zip(bounds) {
                let smallest = InternalKey::before(first, 0, &order);
                let largest = InternalKey::behind(last, 0, &order);
                let meta = TableMeta { number, smallest, largest, ..TableMeta::default() };
                build.added.push((level, meta));
            }
            build.state().map(|_| ()).map_err(|error| error.to_string())
        };
        state(1, [[b"a", b"b"], [b"c", b"d"]]).unwrap();
        state(0, [[b"a", b"z"], [b"b", b"c"]]).unwrap();
        let told = state(1, [[b"a", b"z"], [b"b", b"c"]]).unwrap_err();
        assert!(told.contains("level 1: tables 5 and 6 overlap"), "{told}");
        let told = state(0, [[b"b", b"a"], [b"c", b"d"]]).unwrap_err();
        assert!(told.contains("ends before it starts"), "{told}");
    }
}
