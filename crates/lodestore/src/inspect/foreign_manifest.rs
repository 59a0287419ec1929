//! The changes of a manifest of LevelDB, as changes of ours: the database is one
//! family.

use std::path::Path;

use crate::batch::FamilyId;
use crate::db;
use crate::error::{Error, Result};
use crate::fs::{ReadableFile, read_whole};
use crate::key::sequence_of;
use crate::leveldb::directory::decode_manifest;
use crate::leveldb::edit::Edit;
use crate::leveldb::log::begins_with_record;
use crate::leveldb::split_key;

use super::described::{FamilyInfo, TableInfo};
use super::foreign;
use super::manifest::{Change, ManifestEdit, ManifestSummary};

const FAMILY: u32 = FamilyId::DEFAULT.0;

/// True if `file` begins as a manifest of LevelDB does.
pub(super) fn begins(file: &dyn ReadableFile, path: &Path) -> Result<bool> {
    Ok(begins_with_record(&read_all(file, path)?))
}

/// Gives every edit to `visit`, and then what they add up to.
///
/// # Errors
/// `Corruption` at the first edit that makes no sense.
pub(super) fn read(
    file: &dyn ReadableFile,
    path: &Path,
    visit: &mut dyn FnMut(&ManifestEdit),
) -> Result<ManifestSummary> {
    let bytes = read_all(file, path)?;
    let mut number = 0;
    let state = decode_manifest(&bytes, path, &mut |offset, edit| {
        number += 1;
        // LevelDB begins a manifest with one record of what holds then.
        let checkpoint = number == 1;
        visit(&ManifestEdit { offset, number, checkpoint, changes: changes(edit) });
    })?;
    let torn = "a record that was not written to its end, as after a crash";
    Ok(ManifestSummary {
        edit: number,
        next_file: state.next_file_number,
        last_sequence: state.last_sequence,
        families: vec![foreign::family(&state, path)?],
        torn: state.torn_at.map(|offset| (offset, torn.to_string())),
    })
}

fn read_all(file: &dyn ReadableFile, path: &Path) -> Result<Vec<u8>> {
    read_whole(file).map_err(|error| Error::io(path, "read", error))
}

fn changes(edit: &Edit) -> Vec<Change> {
    let mut changes = Vec::new();
    changes.extend(edit.comparator.as_ref().map(|name| {
        Change::FamilyCreated(FamilyInfo {
            id: FAMILY,
            name: db::DEFAULT_NAME.to_string(),
            comparator: String::from_utf8_lossy(name).into_owned(),
            merge_operator: None,
            prefix_extractor: None,
        })
    }));
    changes.extend(edit.next_file_number.map(Change::NextFile));
    changes.extend(edit.last_sequence.map(Change::LastSequence));
    let log = |number| Change::LogNumber { family: FAMILY, number };
    changes.extend(edit.log_number.map(log));
    changes.extend(edit.previous_log_number.map(Change::PreviousLog));
    changes.extend(edit.deleted.iter().map(|&(level, number)| Change::TableDeleted {
        family: FAMILY,
        level,
        number,
    }));
    changes.extend(edit.added.iter().map(|(level, table)| Change::TableAdded {
        family: FAMILY,
        level: *level,
        table: Box::new(TableInfo::from(table)),
    }));
    changes.extend(edit.compact_pointers.iter().map(|(level, key)| {
        // LevelDB would not mind one without a number: it is shown all the same.
        let (key, trailer) = split_key(key).unwrap_or((key, 0));
        Change::CompactionCursor {
            family: FAMILY,
            level: *level,
            after: Some((key.to_vec(), sequence_of(trailer))),
        }
    }));
    changes
}
