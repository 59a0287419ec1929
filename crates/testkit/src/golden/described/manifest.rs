//! A manifest: its edits, and what they add up to.

use std::path::Path;

use lodestore::inspect::{Change, FamilyFiles, FamilyInfo, ManifestFile, TableInfo};
use lodestore::{Fs, Result};

use super::bound;

/// All that the manifest `path` says.
///
/// # Errors
/// What reading gives.
pub(super) fn described(fs: &dyn Fs, path: &Path) -> Result<String> {
    let manifest = ManifestFile::open(fs, path)?;
    let header = manifest.header();
    let mut text = format!(
        "number {}, id {}, database {}, predecessor {}, checkpoint of edit {}, created {}\n",
        header.number,
        header.id,
        header.database,
        header.predecessor,
        header.checkpoint_edit,
        header.created_unix_seconds
    );
    let summary = manifest.read(&mut |edit| {
        let what = if edit.checkpoint { "checkpoint of edit" } else { "edit" };
        text += &format!("{what} {} at {}\n", edit.number, edit.offset);
        for change in &edit.changes {
            text += &format!("  {}\n", self::change(change));
        }
    })?;
    text += &format!(
        "in all: edit {}, next file {}, last sequence number {}, torn at {:?}\n",
        summary.edit,
        summary.next_file,
        summary.last_sequence,
        summary.torn.map(|(offset, _)| offset)
    );
    text.extend(summary.families.iter().map(family_files));
    Ok(text)
}

fn change(change: &Change) -> String {
    match change {
        Change::NextFile(number) => format!("next file {number}"),
        Change::LastSequence(sequence) => format!("last sequence number {sequence}"),
        Change::NextFamily(id) => format!("next family {id}"),
        Change::FamilyCreated(created) => format!("created {}", family(created)),
        Change::FamilyDropped(id) => format!("dropped family {id}"),
        Change::LogNumber { family, number } => format!("family {family}: log number {number}"),
        Change::TableAdded { family, level, table } => {
            format!("family {family}, level {level}: added {}", self::table(table))
        }
        Change::TableDeleted { family, level, number } => {
            format!("family {family}, level {level}: deleted {number}")
        }
        Change::PreviousLog(number) => format!("previous log {number}"),
        Change::DurableLog { number, bytes } => format!("log {number} durable up to {bytes}"),
        other => panic!("this text lacks {other:?}"),
    }
}

fn family(of: &FamilyInfo) -> String {
    format!(
        "family {} {:?}, order {:?}, merge operator {:?}, prefix extractor {:?}",
        of.id, of.name, of.comparator, of.merge_operator, of.prefix_extractor
    )
}

fn table(of: &TableInfo) -> String {
    format!(
        "table {} of {}, id {}, {} bytes, checksum {:08x}, {} to {}, numbers {} to {}, \
         all {:?}, entries {}, deletes {}, range deletes {}, key bytes {}, value bytes {}, \
         written {}, deletes from {}",
        of.number,
        of.engine.name(),
        of.id,
        of.bytes,
        of.checksum,
        bound(&of.smallest, of.smallest_trailer),
        bound(&of.largest, of.largest_trailer),
        of.sequence_min,
        of.sequence_max,
        of.sequence_override,
        of.entries,
        of.tombstones,
        of.range_deletes,
        of.key_bytes,
        of.value_bytes,
        of.created_unix_seconds,
        of.tombstones_unix_seconds
    )
}

/// What a family has in the end: its tables, which the edits have described.
fn family_files(of: &FamilyFiles) -> String {
    let mut text = format!("{}, log number {}\n", family(&of.info), of.log_number);
    for (level, tables) in of.levels.iter().enumerate().filter(|(_, tables)| !tables.is_empty()) {
        let numbers: Vec<u64> = tables.iter().map(|table| table.number).collect();
        text += &format!("  level {level}: tables {numbers:?}\n");
    }
    text
}
