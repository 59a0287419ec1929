//! One manifest, read by itself: its changes, and what they add up to.

use std::path::{Path, PathBuf};

use crate::error::{Error, Result};
use crate::fs::{Fs, ReadableFile};
use crate::key::{FileId, SequenceNumber};
use crate::leveldb::names::{self, LevelDbFile};
use crate::sync::Arc;
use crate::version::VersionEdit;
use crate::version::manifest::{self, ManifestIdentity, Recovered};
use crate::wal::DurableLog;

use super::described::{Engine, FamilyInfo, TableInfo};
use super::survey::FamilyFiles;
use super::{foreign, foreign_manifest};

/// A manifest, open for reading: ours or LevelDB's.
#[derive(Debug)]
pub struct ManifestFile {
    path: PathBuf,
    file: Arc<dyn ReadableFile>,
    /// `None`: LevelDB's.
    identity: Option<ManifestIdentity>,
}

/// What a manifest says of itself before its first edit. One of LevelDB says
/// nothing: its number is that of its name, 0 if it has another one, and all else
/// is 0.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ManifestHeader {
    /// The engine that wrote it.
    pub engine: Engine,
    /// Its number, as in the file's name.
    pub number: u64,
    /// The file's identity, which `CURRENT` names.
    pub id: FileId,
    /// The database in which this line of manifests began.
    pub database: FileId,
    /// The manifest before it; zero if there was none.
    pub predecessor: FileId,
    /// The number of the last edit in the checkpoint that it begins with.
    pub checkpoint_edit: u64,
    /// When it was created, in seconds since 1970.
    pub created_unix_seconds: u64,
}

/// Changes that were made together.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ManifestEdit {
    /// Where its record begins in the file.
    pub offset: u64,
    /// Its place in the life of the database, of LevelDB in the manifest: edits made
    /// as one have one number.
    pub number: u64,
    /// True for a part of the state that the manifest begins with.
    pub checkpoint: bool,
    /// What changes.
    pub changes: Vec<Change>,
}

/// One change of what the database consists of.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Change {
    /// File numbers from here on are free.
    NextFile(u64),
    /// No sequence number in the tables is higher.
    LastSequence(SequenceNumber),
    /// Family ids from here on are free.
    NextFamily(u32),
    /// A family is created.
    FamilyCreated(FamilyInfo),
    /// A family is dropped.
    FamilyDropped(u32),
    /// Logs below a number hold nothing more of a family.
    LogNumber {
        /// The family's id.
        family: u32,
        /// The first log that it still needs.
        number: u64,
    },
    /// A table joins a level.
    TableAdded {
        /// The family's id.
        family: u32,
        /// The level.
        level: usize,
        /// The table.
        table: Box<TableInfo>,
    },
    /// A table leaves a level.
    TableDeleted {
        /// The family's id.
        family: u32,
        /// The level.
        level: usize,
        /// The table's number.
        number: u64,
    },
    /// LevelDB's log before the one that it writes to is needed too; 0: it is not.
    PreviousLog(u64),
    /// Where LevelDB's next compaction of a level begins.
    CompactionCursor {
        /// The family's id.
        family: u32,
        /// The level.
        level: usize,
        /// The last key, with its number, that was compacted; `None`: anew.
        after: Option<(Vec<u8>, SequenceNumber)>,
    },
    /// The newest segment of the log that was synced.
    DurableLog {
        /// The segment's number; 0: none was.
        number: u64,
        /// How many bytes of it are durable.
        bytes: u64,
    },
}

/// What a manifest adds up to.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ManifestSummary {
    /// The number of the last edit that counts.
    pub edit: u64,
    /// File numbers from here on are free.
    pub next_file: u64,
    /// No sequence number in the tables is higher.
    pub last_sequence: SequenceNumber,
    /// The families with their tables.
    pub families: Vec<FamilyFiles>,
    /// Where an unfinished edit was left out at the end, and what is wrong.
    pub torn: Option<(u64, String)>,
}

impl ManifestFile {
    /// Opens the manifest `path`. A file without a header of ours is LevelDB's if
    /// it begins with a record as LevelDB writes them, or if `CURRENT` beside it is
    /// LevelDB's.
    ///
    /// # Errors
    /// `Corruption` if its header is damaged; `Incompatible`; `Io`.
    pub fn open(fs: &dyn Fs, path: &Path) -> Result<ManifestFile> {
        let file = fs.open(path).map_err(|error| Error::io(path, "open", error))?;
        let identity = match manifest::read_header(&*file, path) {
            Err(error) if error.is_corruption() && is_leveldb(fs, &*file, path)? => None,
            header => Some(header?.identity),
        };
        Ok(ManifestFile { path: path.to_path_buf(), file, identity })
    }

    /// The manifest that the database in `directory` uses.
    ///
    /// # Errors
    /// `Missing` if there is no database; as [`ManifestFile::open`] else.
    pub fn open_current(fs: &dyn Fs, directory: &Path) -> Result<ManifestFile> {
        ManifestFile::open(fs, &manifest::current_path(fs, directory)?)
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What it says of itself.
    pub fn header(&self) -> ManifestHeader {
        let engine = match &self.identity {
            Some(_) => Engine::Lodestore,
            None => Engine::LevelDb,
        };
        let named = || ManifestIdentity { number: number_in(&self.path), ..Default::default() };
        let of = self.identity.unwrap_or_else(named);
        let ManifestIdentity { number, id, database_id: database, predecessor, .. } = of;
        let created_unix_seconds = of.created_unix_seconds;
        ManifestHeader {
            engine,
            number,
            id,
            database,
            predecessor,
            checkpoint_edit: of.edit,
            created_unix_seconds,
        }
    }

    /// Gives every edit to `visit`, in order, and then what they add up to.
    ///
    /// # Errors
    /// `Corruption` at the first edit that makes no sense, or where durable ones
    /// are missing; `Incompatible`; `Io`. What came before was visited.
    pub fn read(&self, visit: &mut dyn FnMut(&ManifestEdit)) -> Result<ManifestSummary> {
        if self.identity.is_none() {
            return foreign_manifest::read(&*self.file, &self.path, visit);
        }
        let recovered = manifest::read_manifest(&self.file, &self.path, &mut |place, edit| {
            visit(&ManifestEdit {
                offset: place.offset,
                number: place.edit,
                checkpoint: place.is_checkpoint,
                changes: changes(edit),
            });
        })?;
        Ok(ManifestSummary::from(recovered))
    }
}

fn is_leveldb(fs: &dyn Fs, file: &dyn ReadableFile, path: &Path) -> Result<bool> {
    Ok(foreign_manifest::begins(file, path)?
        || path.parent().is_some_and(|beside| foreign::is_leveldb(fs, beside).unwrap_or(false)))
}

fn number_in(path: &Path) -> u64 {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    names::parse(name).and_then(LevelDbFile::number).unwrap_or(0)
}

impl From<Recovered> for ManifestSummary {
    fn from(recovered: Recovered) -> ManifestSummary {
        let Recovered { state, identity, torn, .. } = recovered;
        ManifestSummary {
            edit: identity.edit,
            next_file: state.next_file_number,
            last_sequence: state.last_sequence,
            families: state.families.values().map(FamilyFiles::from).collect(),
            torn: torn.map(|torn| (torn.offset, torn.what)),
        }
    }
}

/// The changes of an edit, in the order in which they count.
fn changes(edit: &VersionEdit) -> Vec<Change> {
    let mut changes = Vec::new();
    changes.extend(edit.next_file_number.map(Change::NextFile));
    changes.extend(edit.last_sequence.map(Change::LastSequence));
    changes.extend(edit.next_family_id.map(Change::NextFamily));
    changes.extend(edit.families_created.iter().map(|f| Change::FamilyCreated(f.into())));
    let logs = edit.log_numbers.iter();
    changes.extend(logs.map(|&(family, number)| Change::LogNumber { family, number }));
    let deleted = edit.tables_deleted.iter();
    changes.extend(deleted.map(|&(family, level, number)| Change::TableDeleted {
        family,
        level,
        number,
    }));
    changes.extend(edit.tables_added.iter().map(|(family, level, meta)| Change::TableAdded {
        family: *family,
        level: *level,
        table: Box::new(meta.into()),
    }));
    let durable = edit.durable_log;
    changes
        .extend(durable.map(|DurableLog { number, bytes }| Change::DurableLog { number, bytes }));
    changes.extend(edit.families_dropped.iter().map(|&family| Change::FamilyDropped(family)));
    changes
}
