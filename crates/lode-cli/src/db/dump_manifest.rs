//! `dump-manifest`: the changes that a manifest records, and what they add up to.
//! A damaged file is shown as far as it goes; then the error, and exit code 4.

use std::path::PathBuf;

use clap::Args;
use lode_bench::{bytes_text, grouped};
use lodestore::inspect::{
    Change, Engine, FamilyInfo, ManifestEdit, ManifestFile, ManifestHeader, ManifestSummary,
};
use serde_json::{Map, Value, json};

use super::target::Target;
use crate::Done;
use crate::output::Output;

/// `lode db dump-manifest`
#[derive(Debug, Args)]
pub struct DumpManifest {
    /// The file (a name without a directory is one in that of --db), or a database's directory:
    /// its manifest in use then. Default: that of --db
    path: Option<PathBuf>,
}

impl DumpManifest {
    /// The manifest `path`, or the one in use in the directory `path`.
    pub fn of(path: PathBuf) -> DumpManifest {
        DumpManifest { path: Some(path) }
    }
}

/// Prints a manifest: its changes, and what they add up to.
/// # Errors: `Corruption` for edits that are damaged or lost.
pub fn run(target: &Target, dump: &DumpManifest) -> Done {
    let path = match &dump.path {
        Some(path) => target.file(path),
        None => target.path()?.to_path_buf(),
    };
    let fs = target.fs();
    let manifest = match path.is_dir() {
        true => ManifestFile::open_current(&*fs, &path)?,
        false => ManifestFile::open(&*fs, &path)?,
    };
    let mut output = target.output();
    header(&mut output, &manifest.header())?;
    // A reader that goes away is told of when the rest is written.
    let mut written: Done = Ok(());
    let read = manifest.read(&mut |of| {
        if written.is_ok() {
            written = edit(&mut output, of);
        }
    });
    written?;
    summary(&mut output, &read?)?;
    output.finish()
}

fn header(output: &mut Output, header: &ManifestHeader) -> Done {
    let number = header.number;
    if header.engine == Engine::LevelDb {
        let text = format!("manifest {number} of LevelDB\n");
        return output.report(&text, json!({ "manifest": number, "engine": header.engine.name() }));
    }
    output.report(
        &format!(
            "manifest {number}, id {}\ndatabase {}, created {} s after 1970\n",
            header.id, header.database, header.created_unix_seconds
        ),
        json!({
            "manifest": number, "id": header.id.to_string(),
            "database": header.database.to_string(),
            "predecessor": header.predecessor.to_string(),
            "created_unix_seconds": header.created_unix_seconds,
        }),
    )
}

fn edit(output: &mut Output, of: &ManifestEdit) -> Done {
    if output.is_json() {
        let changes: Vec<Value> = of.changes.iter().map(|c| change_object(output, c)).collect();
        return output.object(json!({
            "edit": of.number, "offset": of.offset, "checkpoint": of.checkpoint,
            "changes": changes,
        }));
    }
    let what = if of.checkpoint { "checkpoint of edit" } else { "edit" };
    output.line(&format!("{what} {} at offset {}", of.number, of.offset))?;
    of.changes.iter().try_for_each(|change| {
        let text = change_text(output, change);
        output.line(&format!("  {text}"))
    })
}

fn change_text(output: &Output, change: &Change) -> String {
    match change {
        Change::NextFile(number) => format!("next file {number}"),
        Change::LastSequence(sequence) => format!("last sequence number {sequence}"),
        Change::NextFamily(id) => format!("next family {id}"),
        Change::FamilyCreated(FamilyInfo { id, name, comparator, .. }) => {
            format!("family {id} created: {name:?}, ordered by {comparator}")
        }
        Change::FamilyDropped(id) => format!("family {id} dropped"),
        Change::LogNumber { family, number } => format!("family {family} needs logs from {number}"),
        Change::TableAdded { family, level, table } => {
            let (first, last) = (output.shown(&table.smallest), output.shown(&table.largest));
            let (number, bytes) = (table.number, bytes_text(table.bytes));
            let entries = match table.engine {
                Engine::LevelDb if table.entries == 0 => String::new(),
                Engine::LevelDb => format!("about {} entries, ", grouped(table.entries)),
                _ => format!("{} entries, ", grouped(table.entries)),
            };
            format!(
                "family {family} level {level}: + table {number}, {bytes}, {entries}{first} to \
                 {last}"
            )
        }
        Change::TableDeleted { family, level, number } => {
            format!("family {family} level {level}: - table {number}")
        }
        Change::PreviousLog(0) => "no previous log".to_string(),
        Change::PreviousLog(number) => format!("previous log {number}"),
        Change::CompactionCursor { family, level, after: None } => {
            format!("family {family} level {level}: compactions begin anew")
        }
        Change::CompactionCursor { family, level, after: Some((key, sequence)) } => {
            let key = output.shown(key);
            format!("family {family} level {level}: compactions go on after {key} @{sequence}")
        }
        Change::DurableLog { number: 0, .. } => "no log was synced".to_string(),
        Change::DurableLog { number, bytes } => format!("log {number} durable up to {bytes}"),
        other => format!("{other:?}"),
    }
}

fn change_object(output: &Output, change: &Change) -> Value {
    match change {
        Change::NextFile(number) => json!({ "next_file": number }),
        Change::LastSequence(sequence) => json!({ "last_sequence": sequence }),
        Change::NextFamily(id) => json!({ "next_family": id }),
        Change::FamilyCreated(family) => json!({
            "family_created": family.id, "name": family.name, "order": family.comparator,
            "merge_operator": family.merge_operator,
        }),
        Change::FamilyDropped(id) => json!({ "family_dropped": id }),
        Change::LogNumber { family, number } => json!({ "family": family, "log_number": number }),
        Change::TableAdded { family, level, table } => {
            let mut object = Map::new();
            let numbers = [
                ("family", u64::from(*family)),
                ("level", *level as u64),
                ("table_added", table.number),
                ("bytes", table.bytes),
                ("entries", table.entries),
                ("tombstones", table.tombstones),
                ("range_deletes", table.range_deletes),
            ];
            object.extend(numbers.map(|(name, number)| (name.to_string(), json!(number))));
            object.insert("format".to_string(), json!(table.engine.name()));
            output.add_bytes(&mut object, "smallest", &table.smallest);
            output.add_bytes(&mut object, "largest", &table.largest);
            object.into()
        }
        Change::PreviousLog(number) => json!({ "previous_log": number }),
        Change::TableDeleted { family, level, number } => {
            json!({ "family": family, "level": level, "table_deleted": number })
        }
        Change::CompactionCursor { family, level, after } => {
            let mut object = Map::new();
            object.insert("family".to_string(), json!(family));
            object.insert("cursor_of_level".to_string(), json!(level));
            if let Some((key, _)) = after {
                output.add_bytes(&mut object, "after", key);
            }
            object.into()
        }
        Change::DurableLog { number, bytes } => {
            json!({ "durable_log": number, "bytes": bytes })
        }
        other => json!({ "other": format!("{other:?}") }),
    }
}

fn summary(output: &mut Output, of: &ManifestSummary) -> Done {
    let tables = || of.families.iter().flat_map(|family| family.levels.iter().flatten());
    let bytes: u64 = tables().map(|table| table.bytes).sum();
    let mut text = format!(
        "up to edit {}: {} families, {} tables, {}, last sequence number {}, next file {}\n",
        of.edit,
        of.families.len(),
        grouped(tables().count() as u64),
        bytes_text(bytes),
        of.last_sequence,
        of.next_file
    );
    if let Some((offset, what)) = &of.torn {
        text += &format!("left out at offset {offset}: {what}\n");
    }
    let torn = of.torn.as_ref();
    let torn = torn.map(|(offset, what)| json!({ "offset": offset, "what": what }));
    let object = json!({
        "last_edit": of.edit, "families": of.families.len(), "tables": tables().count(),
        "bytes": bytes, "last_sequence": of.last_sequence, "next_file": of.next_file,
        "torn": torn,
    });
    output.report(&text, object)
}
