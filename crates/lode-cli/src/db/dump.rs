//! `dump-table`, `dump-log`: one file, without its database.
//! A damaged file is shown as far as it goes; then the error, and exit code 4.

use std::path::PathBuf;

use clap::Args;
use lode_bench::{bytes_text, grouped, parse_count};
use lodestore::inspect::{
    BlockSummary, Engine, Entry, LogBatch, LogFile, LogHeader, TableFile, TableProperties,
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

/// How much of the entries is shown.
#[derive(Clone, Debug, Args)]
pub struct Shown {
    /// At most so many entries; 0 for none
    #[arg(long, value_parser = parse_count, value_name = "N")]
    limit: Option<u64>,
    /// Print no values
    #[arg(long)]
    keys_only: bool,
}

impl DumpTable {
    /// The table `file`, checked first.
    pub fn of(file: PathBuf, shown: Shown) -> DumpTable {
        DumpTable { file, blocks: false, shown, no_verify: false }
    }
}

impl DumpLog {
    /// The segment `file`.
    pub fn of(file: PathBuf, shown: Shown) -> DumpLog {
        DumpLog { file, shown }
    }
}

impl Shown {
    /// True if something was asked for.
    pub fn is_given(&self) -> bool {
        self.limit.is_some() || self.keys_only
    }

    fn limit(&self) -> u64 {
        self.limit.unwrap_or(u64::MAX)
    }
}

/// What to say where keys turn out to be in an order of a program's own: an
/// order is code, and a file has its name only.
pub fn unknown_order(error: Error) -> Failure {
    match error {
        Error::InvalidArgument { what } => Failure::Error(format!(
            "{what}: lode knows the orders of the library only; the program whose order it is can \
             read it with lodestore::inspect, and dump-log and dump-manifest need none"
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
    // Counting reads everything, as verifying does.
    let is_whole = sound.is_ok() && !dump.no_verify;
    let told = if is_whole { table.counted()? } else { table.properties() };
    properties(&mut output, &told)?;
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
    // What a LevelDB table has no word for, and what was not counted.
    let is_ours = of.engine == Engine::Lodestore;
    let counted = |number: u64| of.counted.then_some(number);
    let stated = |number: u64| is_ours.then_some(number);
    if output.is_json() {
        let mut object = Map::new();
        let numbers = [
            ("blocks", Some(of.blocks)),
            ("data_bytes", Some(of.data_bytes)),
            ("block_bytes", stated(of.block_bytes)),
            ("resident_bytes", Some(of.resident_bytes)),
            ("entries", Some(of.entries)),
            ("tombstones", counted(of.tombstones)),
            ("range_deletes", Some(of.range_deletes)),
            ("key_bytes", counted(of.key_bytes)),
            ("value_bytes", counted(of.value_bytes)),
            ("sequence_min", counted(of.sequence_min)),
            ("sequence_max", counted(of.sequence_max)),
        ];
        object.insert("engine".to_string(), json!(of.engine.name()));
        object.insert("counted".to_string(), json!(of.counted));
        object.insert("id".to_string(), json!(is_ours.then(|| of.id.to_string())));
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
    let (about, blocks) = (if of.counted { "" } else { "about " }, grouped(of.blocks));
    let of_each = stated(of.block_bytes).map(|bytes| format!("{blocks} of {}", bytes_text(bytes)));
    let sequence = format!("{} to {}", of.sequence_min, of.sequence_max);
    let unpacked = format!("{}, {}", bytes_text(of.key_bytes), bytes_text(of.value_bytes));
    let lines = [
        ("format", (!is_ours).then(|| of.engine.name().to_string())),
        ("id", is_ours.then(|| of.id.to_string())),
        ("order", Some(of.order_name.clone())),
        ("entries", Some(format!("{about}{}", grouped(of.entries)))),
        ("tombstones", of.counted.then(|| grouped(of.tombstones))),
        ("range deletes", is_ours.then(|| grouped(of.range_deletes))),
        ("sequence", of.counted.then_some(sequence)),
        ("smallest", Some(smallest)),
        ("largest", Some(largest)),
        ("blocks", Some(of_each.unwrap_or(blocks))),
        ("compression", Some(of.compression.to_string())),
        ("data", Some(bytes_text(of.data_bytes))),
        ("keys, values", of.counted.then_some(unpacked)),
        ("index, filter", Some(format!("{divided}, {} in memory", bytes_text(of.resident_bytes)))),
    ];
    let mut told = lines.iter().filter_map(|(name, value)| Some((name, value.as_ref()?)));
    told.try_for_each(|(name, value)| output.line(&format!("{name:<15} {value}")))
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
    log_header(&mut output, &log.header())?;
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
        text += &format!("a later record is at offset {next}: at least what is between was lost\n");
    }
    let object = json!({
        "batches": batches, "entries": entries, "end_offset": end.offset, "rest": end.rest,
        "next_offset": end.next,
    });
    output.report(&text, object)?;
    output.finish()
}

fn log_header(output: &mut Output, header: &LogHeader) -> Done {
    let (number, first_sequence) = (header.number, header.first_sequence);
    if header.engine == Engine::LevelDb {
        let text = format!("log {number} of LevelDB, from sequence number {first_sequence}\n");
        let object = json!({
            "log": number, "engine": header.engine.name(), "first_sequence": first_sequence,
        });
        return output.report(&text, object);
    }
    let predecessor = header.predecessor;
    let after = predecessor.map_or("the first".to_string(), |number| format!("after {number}"));
    output.report(
        &format!(
            "log {number}, {after}, from sequence number {first_sequence}\nid {}, database {}\n",
            header.id, header.database
        ),
        json!({
            "log": number, "predecessor": predecessor, "id": header.id.to_string(),
            "database": header.database.to_string(), "first_sequence": first_sequence,
        }),
    )
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
            Record::Hint { tag, bytes } => {
                object.insert("hint".to_string(), json!(tag));
                output.add_bytes(&mut object, "bytes", bytes);
                let line = format!("{}\thint {tag:#04x}\t{}\n", of.offset, output.shown(bytes));
                output.report(&line, object.into())?;
            }
            other => {
                let text = format!("{other:?}");
                object.insert("record".to_string(), json!(text));
                let line = format!("{}\t{text}\n", of.offset);
                output.report(&line, object.into())?;
            }
        }
    }
    Ok(())
}
