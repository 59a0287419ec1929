//! `stats`, `levels`, `sizes`, `property`, `properties`, `families`, `verify`: what a database tells
//! about itself. Nothing in it changes.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::time::Instant;

use clap::Args;
use lode_bench::{bytes_text, grouped, seconds_text};
use lodestore::Family;
use lodestore::inspect::{Engine, Survey};
use serde_json::{Map, json};

use super::target::Target;
use crate::Done;
use crate::failure::Failure;

/// What keeps a reader from taking zeros for what his program does.
const OWN_COUNTERS: &str = "\
Counters, latencies and stalls are of this process, which has only opened the database. What the
process that uses it counts is shown by 'lode top', if it is opened with status_interval.
";

/// What has to be known of the entries of a table that does not say their number.
const ESTIMATED: &str = "Entries of tables in LevelDB's format are estimated.\n";

/// Prints the engine's statistics.
pub fn stats(target: &Target) -> Done {
    let (_db, family) = target.open_for_reading()?;
    let stats = family.stats();
    let object = json!({
        "table_bytes": stats.table_bytes(),
        "memtable_bytes": stats.memtable_bytes,
        "cache_bytes": stats.cache_bytes,
        "user_bytes_written": stats.user_bytes_written,
        "flush_bytes_written": stats.flush_bytes_written,
        "compaction_bytes_read": stats.compaction_bytes_read,
        "compaction_bytes_written": stats.compaction_bytes_written,
        "write_amplification": stats.write_amplification(),
    });
    let mut text = family.property("lodestore.stats").unwrap_or_default();
    if !text.ends_with('\n') {
        text.push('\n');
    }
    text += OWN_COUNTERS;
    let mut output = target.output();
    output.report(&text, object)?;
    output.finish()
}

/// Prints files and bytes of each level.
pub fn levels(target: &Target) -> Done {
    let (_db, family) = target.open_for_reading()?;
    let stats = family.stats();
    let mut text = format!("{:>5} {:>8} {:>14} {:>12}\n", "level", "tables", "entries", "size");
    let mut objects = Vec::new();
    let (mut files, mut entries) = (0, 0);
    for (level, of) in stats.levels.iter().enumerate() {
        row(&mut text, &level.to_string(), of.files, of.entries, of.bytes);
        objects.push(json!({
            "level": level, "tables": of.files, "entries": of.entries, "bytes": of.bytes,
        }));
        files += of.files;
        entries += of.entries;
    }
    let bytes = stats.table_bytes();
    row(&mut text, "all", files, entries, bytes);
    let survey = Survey::read(&target.fs(), target.path()?)?;
    let files_of = survey.family(target.family());
    let of_leveldb = files_of.map_or(0, |family| {
        family.levels.iter().flatten().filter(|table| table.engine == Engine::LevelDb).count()
    });
    if of_leveldb > 0 {
        text += ESTIMATED;
    }
    let object = json!({
        "levels": objects, "tables": files, "entries": entries, "bytes": bytes,
        "tables_of_leveldb": of_leveldb,
    });
    let mut output = target.output();
    output.report(&text, object)?;
    output.finish()
}

fn row(text: &mut String, level: &str, files: usize, entries: u64, bytes: u64) {
    let (entries, bytes) = (grouped(entries), bytes_text(bytes));
    let _ = writeln!(text, "{level:>5} {files:>8} {entries:>14} {bytes:>12}");
}

/// `lode db sizes`
#[derive(Debug, Args)]
pub struct Sizes {
    /// The first key of the range
    begin: OsString,
    /// The first key behind it
    end: OsString,
}

/// Prints about how many bytes of tables a range of keys takes.
pub fn sizes(target: &Target, sizes: &Sizes) -> Done {
    let (begin, end) = (target.bytes(&sizes.begin)?, target.bytes(&sizes.end)?);
    let (_db, family) = target.open_for_reading()?;
    let bytes: u64 = family.approximate_sizes(&[(&begin, &end)])?.into_iter().sum();
    let mut output = target.output();
    output.report(&format!("{}\n", bytes_text(bytes)), json!({ "bytes": bytes }))?;
    output.finish()
}

/// Prints a property.
/// # Errors: `Negative` if there is none of the name.
pub fn property(target: &Target, name: &str) -> Done {
    let (_db, family) = target.open_for_reading()?;
    let Some(value) = family.property(name) else {
        return Err(Failure::Negative(format!(
            "there is no property '{name}'; names start with lodestore., leveldb. or rocksdb."
        )));
    };
    let text = format!("{}\n", value.trim_end_matches('\n'));
    let mut object = Map::new();
    object.insert(name.to_string(), json!(value));
    let mut output = target.output();
    output.report(&text, object.into())?;
    output.finish()
}

/// Prints all properties: a line each, or a heading and the lines below it.
pub fn properties(target: &Target) -> Done {
    let (_db, family) = target.open_for_reading()?;
    let (mut text, mut object) = (String::new(), Map::new());
    for name in Family::property_names() {
        let value = family.property(&name).unwrap_or_default();
        let value = value.trim_end_matches('\n');
        let _ = match value.contains('\n') {
            false => writeln!(text, "{name:<40} {value}"),
            true => writeln!(text, "{name}\n  {}", value.replace('\n', "\n  ")),
        };
        object.insert(name, json!(value));
    }
    text += OWN_COUNTERS;
    let mut output = target.output();
    output.report(&text, object.into())?;
    output.finish()
}

/// Prints the names of the families, a line each.
pub fn families(target: &Target) -> Done {
    let survey = Survey::read(&target.fs(), target.path()?)?;
    let names: Vec<String> = survey.families.into_iter().map(|family| family.info.name).collect();
    let text: String = names.iter().map(|name| format!("{name}\n")).collect();
    let mut output = target.output();
    output.report(&text, json!({ "families": names }))?;
    output.finish()
}

/// Reads everything and checks it.
/// # Errors: `Corruption` names the file and the offset.
pub fn verify(target: &Target) -> Done {
    let (db, _family) = target.open_for_reading()?;
    let start = Instant::now();
    let report = db.verify()?;
    let seconds = start.elapsed().as_secs_f64();
    let mut text = format!(
        "sound: {} tables, {} blocks, {} entries, {}, in {}\n",
        grouped(report.tables),
        grouped(report.blocks),
        grouped(report.entries),
        bytes_text(report.bytes),
        seconds_text(seconds)
    );
    if report.unknown_filters > 0 {
        let count = grouped(report.unknown_filters);
        text.push_str(&format!("{count} filters are of a newer build: lookups do without\n"));
    }
    let object = json!({
        "sound": true, "tables": report.tables, "blocks": report.blocks,
        "entries": report.entries, "bytes": report.bytes, "seconds": seconds,
        "unknown_filters": report.unknown_filters,
    });
    let mut output = target.output();
    output.report(&text, object)?;
    output.finish()
}
