//! `export-table`, `ingest`: tables as files of their own, out of a database
//! and into one.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Instant;

use clap::Args;
use lode_bench::{bytes_text, grouped, seconds_text};
use lodestore::{IngestOptions, ReadOptions, TableWriter};
use serde_json::{Value, json};

use super::target::{Absent, Target};
use crate::Done;

/// `lode db ingest`
#[derive(Debug, Args)]
pub struct Ingest {
    /// The tables; of two with the same key the later one counts
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// Take the files away: link them where possible, and remove their old names
    #[arg(long = "move")]
    move_files: bool,
    /// Do not read the tables in full first
    #[arg(long)]
    no_verify: bool,
    /// Create the database and the family if they are not there
    #[arg(long)]
    create: bool,
}

/// Makes tables part of the database, all or none.
pub fn ingest(target: &Target, ingest: &Ingest) -> Done {
    let absent = if ingest.create { Absent::Create } else { Absent::Refuse };
    let (_db, family) = target.open_for_writing(absent)?;
    let options = IngestOptions { move_files: ingest.move_files, verify: !ingest.no_verify };
    let start = Instant::now();
    let report = family.ingest(&ingest.files, &options)?;
    let seconds = start.elapsed().as_secs_f64();
    let bytes: u64 = report.tables.iter().map(|table| table.bytes).sum();
    let entries: u64 = report.tables.iter().map(|table| table.entries).sum();
    let mut text = String::new();
    for table in &report.tables {
        let (source, level) = (table.source.display(), table.level);
        let entries = grouped(table.entries);
        text += &format!("{source}: {entries} entries at level {level}\n");
    }
    for source in &report.sources_left {
        text += &format!("{} could not be removed\n", source.display());
    }
    text += &format!(
        "ingested {} tables, {} entries, {}, in {}\n",
        grouped(report.tables.len() as u64),
        grouped(entries),
        bytes_text(bytes),
        seconds_text(seconds)
    );
    let tables: Vec<Value> = report
        .tables
        .iter()
        .map(|table| {
            json!({
                "file": table.source.display().to_string(),
                "level": table.level,
                "sequence": table.sequence,
                "entries": table.entries,
                "range_deletes": table.range_deletes,
                "bytes": table.bytes,
                "linked": table.linked,
            })
        })
        .collect();
    let left: Vec<String> =
        report.sources_left.iter().map(|source| source.display().to_string()).collect();
    let object = json!({ "tables": tables, "sources_left": left, "seconds": seconds });
    let mut output = target.output();
    output.report(&text, object)?;
    output.finish()
}

/// `lode db export-table`
#[derive(Debug, Args)]
pub struct ExportTable {
    /// The file to write, which must not be there
    file: PathBuf,
    /// First key (inclusive)
    #[arg(long, value_name = "KEY")]
    from: Option<OsString>,
    /// Where to end (exclusive)
    #[arg(long, value_name = "KEY")]
    to: Option<OsString>,
}

/// Writes the entries of a range to a table that can be ingested.
pub fn export(target: &Target, export: &ExportTable) -> Done {
    let bounds = ReadOptions {
        lower_bound: target.bytes_if_any(export.from.as_deref())?,
        upper_bound: target.bytes_if_any(export.to.as_deref())?,
        ..ReadOptions::default()
    };
    let (_db, family) = target.open_for_reading()?;
    let options = target.options()?;
    let of_family = options.family_options(target.family());
    let mut writer = TableWriter::create(&export.file, &options, of_family)?;
    let mut cursor = family.cursor_with(bounds);
    cursor.first();
    while cursor.valid() {
        writer.put(cursor.key(), cursor.value())?;
        cursor.next();
    }
    cursor.status()?;
    let table = writer.finish()?;
    let text = format!(
        "wrote {} entries, {}, to {}\n",
        grouped(table.entries),
        bytes_text(table.bytes),
        table.path.display()
    );
    let mut output = target.output();
    output.report(&text, json!({ "entries": table.entries, "bytes": table.bytes }))?;
    output.finish()
}
