//! Moving out: what a family holds as a LevelDB database.
//!
//! Newest values only, one entry a key, in tables of one level, as after a
//! compaction of everything; no log. LevelDB opens it as its own.
//!
//! ```no_run
//! # use lodestore::{Db, Options, ReadOptions, export};
//! let db = Db::open("chaindata", Options::default())?;
//! let exported = export::to_leveldb(&db, &ReadOptions::default(), "for-leveldb")?;
//! println!("{} entries in {} tables", exported.entries, exported.tables);
//! # Ok::<(), lodestore::Error>(())
//! ```

use std::path::Path;

use crate::db::{self, DbCursor, Family, ReadOptions};
use crate::error::Result;
use crate::key::{Kind, trailer};
use crate::leveldb::edit::{Edit, LevelDbTable};
use crate::leveldb::new_database::{self, NewDatabase, level_of};
use crate::leveldb::{join_key, names};

/// The manifest's number; tables follow.
const MANIFEST_NUMBER: u64 = 1;

/// What was written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Exported {
    /// Keys.
    pub entries: u64,
    /// Files of entries.
    pub tables: u64,
    /// Bytes of these files.
    pub bytes: u64,
}

/// Writes what `family` holds, of the snapshot of `options` if there is one, to
/// the new directory `directory` as a LevelDB database, durably. The order of
/// keys keeps its name; tables have filters if the family's have, and Snappy unless the
/// family's are not compressed.
///
/// # Errors
/// `InvalidArgument` if `directory` is not empty; what reading and writing give.
/// Nothing is left in `directory` then.
pub fn to_leveldb(
    family: &Family,
    options: &ReadOptions,
    directory: impl AsRef<Path>,
) -> Result<Exported> {
    let (fs, directory) = (family.fs(), directory.as_ref());
    let was_there = db::prepare_directory(&**fs, directory)?;
    let style = family.family_options().leveldb_style(family.order());
    let mut database = NewDatabase::new(&**fs, directory, style);
    let exported = write(&mut database, family.cursor_with(options.clone()), family);
    exported.inspect_err(|_| new_database::remove(&**fs, directory, was_there))
}

fn write(
    database: &mut NewDatabase<'_>,
    mut cursor: DbCursor,
    family: &Family,
) -> Result<Exported> {
    let (mut done, mut tables) = (Exported::default(), Vec::<LevelDbTable>::new());
    cursor.first();
    while cursor.valid() {
        let mut table = database.begin_table();
        while cursor.valid() && !table.is_full() {
            done.entries += 1;
            table.add(&join_key(cursor.key(), trailer(done.entries, Kind::Put)), cursor.value());
            cursor.next();
        }
        cursor.status()?;
        let number = MANIFEST_NUMBER + 1 + tables.len() as u64;
        tables.push(database.write_table(number, &names::table(number), table)?);
    }
    cursor.status()?;
    done.tables = tables.len() as u64;
    done.bytes = tables.iter().map(|table| table.bytes).sum();
    let next_number = MANIFEST_NUMBER + 1 + done.tables;
    let edit = Edit {
        comparator: Some(family.order().name().as_bytes().to_vec()),
        // No log has this number, nor any above it.
        log_number: Some(next_number),
        previous_log_number: Some(0),
        next_file_number: Some(next_number + 1),
        last_sequence: Some(done.entries),
        added: tables.into_iter().map(|table| (level_of(done.bytes), table)).collect(),
        ..Edit::default()
    };
    database.finish(MANIFEST_NUMBER, &edit)?;
    Ok(done)
}
