//! `space`: what takes the space of a database, and how much of it is dead:
//! overwritten, deleted, or what deletes.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;

use clap::Args;
use lode_bench::{bytes_text, grouped, parse_count};
use lodestore::inspect::{
    Engine, FamilyFiles, FileUse, SampledEntry, Survey, TableFile, TableInfo,
};
use lodestore::{Error, Family, Fs, KeyOrder, Kind, Place, ReadOptions, adopt};
use serde_json::{Value, json};

use super::target::{Target, no_family};
use crate::Done;
use crate::failure::Failure;

/// `lode db space`
#[derive(Debug, Args)]
#[command(after_help = "\
How much is dead is estimated: of entries taken evenly from all tables of a level, each is
looked up; it is alive if the lookup ends at it. Snapshots may still see what counts as dead.
Unpacked are keys and values before compression; ranges are range deletes.")]
pub struct Space {
    /// Entries of each level that are looked up; 0: do not estimate
    #[arg(long, value_parser = parse_count, value_name = "N", default_value = "300")]
    samples: u64,
}

/// A level of a family, added up.
struct Row {
    level: usize,
    tables: usize,
    bytes: u64,
    /// False if there are tables of LevelDB, which do not say what they hold:
    /// entries are estimated then, from the tables that were opened.
    known: bool,
    entries: u64,
    tombstones: u64,
    range_deletes: u64,
    /// Bytes of all keys and values, before compression.
    unpacked_bytes: u64,
    /// How the blocks of the tables that were opened are compressed.
    codecs: BTreeSet<String>,
    sampled: Sampled,
}

/// Entries that were looked up.
#[derive(Clone, Copy, Default)]
struct Sampled {
    entries: u64,
    dead: u64,
}

impl Row {
    /// Bytes of the level that are dead, if there is a sample to tell.
    fn dead_bytes(&self) -> Option<u64> {
        let Sampled { entries, dead } = self.sampled;
        let part = dead as f64 / entries as f64;
        (entries > 0).then(|| (self.bytes as f64 * part).round() as u64)
    }
}

/// Prints it.
pub fn run(target: &Target, space: &Space) -> Done {
    let (fs, path) = (target.fs(), target.path()?);
    let survey = Survey::read(&fs, path)?;
    if let Some(name) = target.family_if_any()
        && !survey.families.iter().any(|family| family.info.name == name)
    {
        let names: Vec<String> = survey.families.iter().map(|f| f.info.name.clone()).collect();
        return Err(no_family(name, &names));
    }
    let options = target.options_for_reading()?;
    let db = match space.samples {
        0 => None,
        _ => Some(adopt::open_read_only(path, options)?),
    };
    let mut text = String::new();
    let mut families = Vec::new();
    let wanted = |name: &str| target.family_if_any().is_none_or(|wanted| wanted == name);
    for family in survey.families.iter().filter(|family| wanted(&family.info.name)) {
        let opened = db.as_ref().and_then(|db| db.family(&family.info.name));
        let rows = rows(&*fs, path, family, opened.as_ref(), space.samples)?;
        write_family(&mut text, &family.info.name, &rows);
        families.push(family_object(&family.info.name, &rows));
    }
    let (uses, object) = uses(&survey);
    text += &uses;
    let mut output = target.output();
    output.report(&text, json!({ "families": families, "files": object }))?;
    output.finish()
}

fn rows(
    fs: &dyn Fs,
    directory: &Path,
    files: &FamilyFiles,
    family: Option<&Family>,
    samples: u64,
) -> Result<Vec<Row>, Failure> {
    let mut rows = Vec::new();
    for (level, tables) in files.levels.iter().enumerate().filter(|(_, t)| !t.is_empty()) {
        let sum = |of: fn(&TableInfo) -> u64| tables.iter().map(of).sum::<u64>();
        let bytes = sum(|table| table.bytes);
        let known = tables.iter().all(|table| table.engine == Engine::Lodestore);
        let (mut codecs, mut sampled, mut estimated) = (BTreeSet::new(), Sampled::default(), 0);
        for table in tables.iter().filter(|_| family.is_some()) {
            // As many of each as its part of the level.
            let count = (samples * table.bytes).div_ceil(bytes.max(1));
            let path = directory.join(table.file_name());
            let entries = match TableFile::open(fs, &path, KeyOrder::Bytewise) {
                Ok(opened) => {
                    let properties = opened.properties();
                    codecs.insert(properties.compression.to_string());
                    // A manifest of ours has an estimate of its own, or knows it.
                    let listed = Some(table.entries).filter(|&entries| entries > 0);
                    estimated += listed.unwrap_or(properties.entries);
                    opened.sample(count as usize)?
                }
                // Compacted meanwhile by another process.
                Err(error) if is_gone(&error) => continue,
                Err(error) => return Err(error.into()),
            };
            for entry in &entries {
                let place = Place::Table { level, number: table.number };
                sampled.entries += 1;
                sampled.dead += u64::from(!is_alive(family.expect("checked"), place, entry)?);
            }
        }
        rows.push(Row {
            level,
            tables: tables.len(),
            bytes,
            known,
            entries: if known { sum(|table| table.entries) } else { estimated },
            tombstones: sum(|table| table.tombstones),
            range_deletes: sum(|table| table.range_deletes),
            unpacked_bytes: sum(|table| table.key_bytes + table.value_bytes),
            codecs,
            sampled,
        });
    }
    Ok(rows)
}

fn is_gone(error: &Error) -> bool {
    matches!(error, Error::Io { source, .. } if source.kind() == std::io::ErrorKind::NotFound)
}

/// True if a value follows from the entry: a lookup of its key counts it.
fn is_alive(family: &Family, place: Place, entry: &SampledEntry) -> Result<bool, Failure> {
    if matches!(entry.kind, Kind::Delete | Kind::SingleDelete) {
        return Ok(false);
    }
    let told =
        family.explain(&ReadOptions { fill_cache: false, ..Default::default() }, &entry.key)?;
    let here = told.places.iter().find(|searched| searched.place == place);
    let mut met = here.into_iter().flat_map(|searched| &searched.versions);
    Ok(met.any(|met| !met.hidden && met.kind == Some(entry.kind) && met.sequence == entry.sequence))
}

fn write_family(text: &mut String, name: &str, rows: &[Row]) {
    let _ = writeln!(text, "family {name}");
    let mut line = |cells: [&str; 9]| {
        let [level, tables, unpacked, size, codec, entries, deletes, ranges, dead] = cells;
        let _ = writeln!(
            text,
            "{level:>5} {tables:>6} {unpacked:>10} {size:>10} {codec:>6} {entries:>13} \
             {deletes:>11} {ranges:>6} {dead:>10}"
        );
    };
    line([
        "level",
        "tables",
        "unpacked",
        "size",
        "codec",
        "entries",
        "deletes",
        "ranges",
        "dead about",
    ]);
    for row in rows {
        let codecs: Vec<&str> = row.codecs.iter().map(String::as_str).collect();
        let codecs = if codecs.is_empty() { "-".to_string() } else { codecs.join(",") };
        let exact = |text: String| if row.known { text } else { "-".to_string() };
        let about = if row.known { "" } else { "~" };
        let entries = match (row.known, row.entries) {
            (false, 0) => "-".to_string(),
            (_, entries) => format!("{about}{}", grouped(entries)),
        };
        line([
            &row.level.to_string(),
            &row.tables.to_string(),
            &exact(bytes_text(row.unpacked_bytes)),
            &bytes_text(row.bytes),
            &codecs,
            &entries,
            &exact(grouped(row.tombstones)),
            &exact(grouped(row.range_deletes)),
            &row.dead_bytes().map_or("-".to_string(), bytes_text),
        ]);
    }
    text.push('\n');
}

fn family_object(name: &str, rows: &[Row]) -> Value {
    let levels: Vec<Value> = rows
        .iter()
        .map(|row| {
            let exact = |number: u64| row.known.then_some(number);
            json!({
                "level": row.level, "tables": row.tables, "bytes": row.bytes,
                "entries": row.entries, "entries_estimated": !row.known,
                "tombstones": exact(row.tombstones), "range_deletes": exact(row.range_deletes),
                "dead_bytes_estimated": row.dead_bytes(),
                "entries_sampled": row.sampled.entries,
                "unpacked_bytes": exact(row.unpacked_bytes), "compression": row.codecs,
            })
        })
        .collect();
    json!({ "name": name, "levels": levels })
}

/// Files and bytes by what they are for.
fn uses(survey: &Survey) -> (String, Value) {
    let names = [
        (FileUse::Table, "tables"),
        (FileUse::Log, "logs"),
        (FileUse::Administration, "administration"),
        (FileUse::Unreferenced, "unreferenced"),
        (FileUse::Adopted, "adopted"),
        (FileUse::Foreign, "foreign"),
    ];
    let mut text = format!("{:<15} {:>7} {:>12}\n", "files", "number", "size");
    let mut object = serde_json::Map::new();
    for (usage, name) in names {
        let files = || survey.files.iter().filter(|file| file.usage == usage);
        let bytes: u64 = files().map(|file| file.bytes).sum();
        let count = files().count();
        if usage == FileUse::Adopted && count == 0 {
            continue;
        }
        let _ = writeln!(text, "{name:<15} {count:>7} {:>12}", bytes_text(bytes));
        object.insert(name.to_string(), json!({ "files": count, "bytes": bytes }));
    }
    for file in survey.files.iter().filter(|file| file.usage == FileUse::Unreferenced) {
        let _ = writeln!(text, "unreferenced: {} {}", file.name, bytes_text(file.bytes));
    }
    (text, object.into())
}
