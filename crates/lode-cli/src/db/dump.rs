//! `dump-table`, `dump-log`, `dump-manifest`: one file, without its database.
//! A damaged file is shown as far as it goes; then the error, and exit code 4.

use std::path::PathBuf;

use clap::Args;
use lode_bench::{bytes_text, grouped, parse_count};
use lodestore::inspect::{
    BlockSummary, Change, Entry, FamilyInfo, LogBatch, LogFile, ManifestEdit, ManifestFile,
    ManifestSummary, TableFile, TableInfo, TableProperties,
};
use lodestore::{Error, KeyOrder, Kind, Record, SequenceNumber};
use serde_json::{Map, Value, json};

use super::target::Target;
use crate::Done;
use crate::failure::Failure;
use crate::output::Output;

/// `lode db dump-table`
#[derive(Debug, Args)]
pub struct DumpTable {
    /// The file; a name without a directory is one in that of --db
    file: PathBuf,
    /// List the blocks too
    #[arg(long)]
    blocks: bool,
    #[command(flatten)]
    shown: Shown,
    /// Do not read and check the whole file first
    #[arg(long)]
    no_verify: bool,
}

/// `lode db dump-log`
#[derive(Debug, Args)]
pub struct DumpLog {
    /// The file; a name without a directory is one in that of --db
    file: PathBuf,
    #[command(flatten)]
    shown: Shown,
}

/// `lode db dump-manifest`
#[derive(Debug, Args)]
pub struct DumpManifest {
    /// The file (a name without a directory is one in that of --db), or a database's directory:
    /// its manifest in use then. Default: that of --db
    path: Option<PathBuf>,
}

/// How much of the entries is shown.
#[derive(Debug, Args)]
struct Shown {
    /// At most so many entries; 0 for none
    #[arg(long, value_parser = parse_count, value_name = "N")]
    limit: Option<u64>,
    /// Print no values
    #[arg(long)]
    keys_only: bool,
}

impl Shown {
    fn limit(&self) -> u64 {
        self.limit.unwrap_or(u64::MAX)
    }
}

/// What to say where keys turn out to be in an order of a program's own: an
/// order is code, and a file has its name only.
pub fn unknown_order(error: Error) -> Failure {
    match error {
        Error::InvalidArgument { what } => Failure::Error(format!(
            "{what}: lode knows no other order than {}; the program whose order it is can read it \
             with lodestore::inspect, and dump-log and dump-manifest need none",
            KeyOrder::Bytewise.name()
        )),
        error => error.into(),
    }
}

/// Prints a table: what it says of itself, whether it is sound, its entries.
/// # Errors: `Corruption` for the first thing that is wrong; an order that this
/// program does not know.
pub fn table(target: &Target, dump: &DumpTable) -> Done {
    let fs = target.fs();
    let file = target.file(&dump.file);
    let table = TableFile::open(&*fs, &file, KeyOrder::Bytewise).map_err(unknown_order)?;
    let mut output = target.output();
    let sound = if dump.no_verify { Ok(()) } else { table.verify() };
    properties(&mut output, &table.properties())?;
    match (&sound, dump.no_verify) {
        (_, true) => {}
        (Ok(()), false) => output.report("sound           yes\n", json!({ "sound": true }))?,
        (Err(error), false) => damage(&mut output, error)?,
    }
    if dump.blocks {
        heading(&mut output, "\nblocks: offset, bytes stored, bytes, entries, first key")?;
        for summary in table.blocks() {
            block(&mut output, &summary?)?;
        }
    }
    let mut left = dump.shown.limit();
    if left > 0 {
        heading(&mut output, "\nentries")?;
    }
    for delete in table.range_deletes().take(left.try_into().unwrap_or(usize::MAX)) {
        entry(&mut output, &delete, false)?;
        left -= 1;
    }
    for of in table.entries().take(left.try_into().unwrap_or(usize::MAX)) {
        entry(&mut output, &of?, dump.shown.keys_only)?;
    }
    output.finish()?;
    Ok(sound?)
}

fn heading(output: &mut Output, text: &str) -> Done {
    if output.is_json() { Ok(()) } else { output.line(text) }
}

fn damage(output: &mut Output, error: &Error) -> Done {
    let text = format!("sound           no: {error}\n");
    output.report(&text, json!({ "sound": false, "damage": error.to_string() }))
}

fn properties(output: &mut Output, of: &TableProperties) -> Done {
    if output.is_json() {
        let mut object = Map::new();
        let numbers = [
            ("blocks", of.blocks),
            ("data_bytes", of.data_bytes),
            ("block_bytes", of.block_bytes),
            ("resident_bytes", of.resident_bytes),
            ("entries", of.entries),
            ("tombstones", of.tombstones),
            ("range_deletes", of.range_deletes),
            ("key_bytes", of.key_bytes),
            ("value_bytes", of.value_bytes),
            ("sequence_min", of.sequence_min),
            ("sequence_max", of.sequence_max),
        ];
        object.insert("id".to_string(), json!(of.id.to_string()));
        object.insert("order".to_string(), json!(of.order_name));
        object.insert("compression".to_string(), json!(of.compression));
        object.insert("partitioned".to_string(), json!(of.partitioned));
        object.extend(numbers.map(|(name, number)| (name.to_string(), json!(number))));
        output.add_bytes(&mut object, "smallest", &of.smallest);
        output.add_bytes(&mut object, "largest", &of.largest);
        return output.object(object);
    }
    let (smallest, largest) = (output.shown(&of.smallest), output.shown(&of.largest));
    let divided = if of.partitioned { "in parts" } else { "whole" };
    let lines = [
        ("id", of.id.to_string()),
        ("order", of.order_name.clone()),
        ("entries", grouped(of.entries)),
        ("tombstones", grouped(of.tombstones)),
        ("range deletes", grouped(of.range_deletes)),
        ("sequence", format!("{} to {}", of.sequence_min, of.sequence_max)),
        ("smallest", smallest),
        ("largest", largest),
        ("blocks", format!("{} of {}", grouped(of.blocks), bytes_text(of.block_bytes))),
        ("compression", of.compression.to_string()),
        ("data", bytes_text(of.data_bytes)),
        ("keys, values", format!("{}, {}", bytes_text(of.key_bytes), bytes_text(of.value_bytes))),
        ("index, filter", format!("{divided}, {} in memory", bytes_text(of.resident_bytes))),
    ];
    lines.iter().try_for_each(|(name, value)| output.line(&format!("{name:<15} {value}")))
}

fn block(output: &mut Output, of: &BlockSummary) -> Done {
    let BlockSummary { offset, stored_bytes, decoded_bytes, entries, .. } = of;
    if output.is_json() {
        let mut object = Map::new();
        let numbers = [
            ("block_offset", offset),
            ("stored_bytes", stored_bytes),
            ("decoded_bytes", decoded_bytes),
            ("entries", entries),
        ];
        object.extend(numbers.map(|(name, number)| (name.to_string(), json!(number))));
        output.add_bytes(&mut object, "first_key", &of.first_key);
        return output.object(object);
    }
    let key = output.shown(&of.first_key);
    output.line(&format!("{offset:>12} {stored_bytes:>8} {decoded_bytes:>8} {entries:>6}  {key}"))
}

fn entry(output: &mut Output, of: &Entry, keys_only: bool) -> Done {
    let value = (!keys_only).then_some(&of.value[..]);
    version(output, Map::new(), "", of.sequence, of.kind, &of.key, value)
}

/// A version of a key: `before`, its number and kind, the key, and the value
/// where its kind has one.
pub fn version(
    output: &mut Output,
    mut object: Map<String, Value>,
    before: &str,
    sequence: SequenceNumber,
    kind: Kind,
    key: &[u8],
    value: Option<&[u8]>,
) -> Done {
    let value = value.filter(|_| !matches!(kind, Kind::Delete | Kind::SingleDelete));
    if output.is_json() {
        object.insert("sequence".to_string(), json!(sequence));
        object.insert("kind".to_string(), json!(kind.name()));
        output.add_bytes(&mut object, "key", key);
        let name = if kind == Kind::RangeDelete { "end" } else { "value" };
        if let Some(value) = value {
            output.add_bytes(&mut object, name, value);
        }
        return output.object(object);
    }
    let mut line = format!("{before}@{sequence} {}\t{}", kind.name(), output.shown(key));
    if let Some(value) = value {
        line += "\t";
        line += &output.shown(value);
    }
    output.line(&line)
}

/// Prints a segment of the log: its records, and how it ends.
/// # Errors: `Corruption` for records that are damaged or lost.
pub fn log(target: &Target, dump: &DumpLog) -> Done {
    let mut log = LogFile::open(&*target.fs(), &target.file(&dump.file))?;
    let mut output = target.output();
    let header = log.header();
    let predecessor = header.predecessor;
    let after = predecessor.map_or("the first".to_string(), |number| format!("after {number}"));
    output.report(
        &format!(
            "log {}, {after}, from sequence number {}\nid {}, database {}\n",
            header.number, header.first_sequence, header.id, header.database
        ),
        json!({
            "log": header.number, "predecessor": predecessor, "id": header.id.to_string(),
            "database": header.database.to_string(), "first_sequence": header.first_sequence,
        }),
    )?;
    let mut left = dump.shown.limit();
    let (mut batches, mut entries) = (0, 0);
    while let Some(of) = log.next_batch()? {
        batches += 1;
        entries += u64::from(of.entries);
        batch(&mut output, &of, &mut left, dump.shown.keys_only)?;
    }
    let end = log.end()?;
    let mut text = format!(
        "{} batches, {} entries, to offset {}\n",
        grouped(batches),
        grouped(entries),
        end.offset
    );
    if let Some(rest) = &end.rest {
        text += &format!("then: {rest}\n");
    }
    if let Some(next) = end.next {
        text += &format!("a later record is whole at offset {next}: what is between was lost\n");
    }
    let object = json!({
        "batches": batches, "entries": entries, "end_offset": end.offset, "rest": end.rest,
        "next_offset": end.next,
    });
    output.report(&text, object)?;
    output.finish()
}

fn batch(output: &mut Output, of: &LogBatch<'_>, left: &mut u64, keys_only: bool) -> Done {
    for (sequence, record) in of.records() {
        if *left == 0 {
            return Ok(());
        }
        *left -= 1;
        let mut object = Map::new();
        object.insert("offset".to_string(), json!(of.offset));
        match record {
            Record::Entry { family, kind, key, value } => {
                object.insert("family".to_string(), json!(family.0));
                let before = format!("{}\tfamily {}\t", of.offset, family.0);
                let value = (!keys_only).then_some(value);
                version(output, object, &before, sequence, kind, key, value)?;
            }
            Record::Opaque(bytes) if output.is_json() => {
                output.add_bytes(&mut object, "opaque", bytes);
                output.object(object)?;
            }
            Record::Opaque(bytes) => {
                let bytes = output.shown(bytes);
                output.line(&format!("{}\topaque\t{bytes}", of.offset))?;
            }
            marker => {
                let text = format!("{marker:?}");
                object.insert("marker".to_string(), json!(text));
                let line = format!("{}\t{text}\n", of.offset);
                output.report(&line, object.into())?;
            }
        }
    }
    Ok(())
}

/// Prints a manifest: its changes, and what they add up to.
/// # Errors: `Corruption` for edits that are damaged or lost.
pub fn manifest(target: &Target, dump: &DumpManifest) -> Done {
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
    let header = manifest.header();
    output.report(
        &format!(
            "manifest {}, id {}\ndatabase {}, created {} s after 1970\n",
            header.number, header.id, header.database, header.created_unix_seconds
        ),
        json!({
            "manifest": header.number, "id": header.id.to_string(),
            "database": header.database.to_string(),
            "predecessor": header.predecessor.to_string(),
            "created_unix_seconds": header.created_unix_seconds,
        }),
    )?;
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
            let TableInfo { number, entries, .. } = &**table;
            let (bytes, entries) = (bytes_text(table.bytes), grouped(*entries));
            format!(
                "family {family} level {level}: + table {number}, {bytes}, {entries} entries, \
                 {first} to {last}"
            )
        }
        Change::TableDeleted { family, level, number } => {
            format!("family {family} level {level}: - table {number}")
        }
        Change::CompactionCursor { family, level, after: None } => {
            format!("family {family} level {level}: compactions begin anew")
        }
        Change::CompactionCursor { family, level, after: Some((key, sequence)) } => {
            let key = output.shown(key);
            format!("family {family} level {level}: compactions go on after {key} @{sequence}")
        }
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
            output.add_bytes(&mut object, "smallest", &table.smallest);
            output.add_bytes(&mut object, "largest", &table.largest);
            object.into()
        }
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
