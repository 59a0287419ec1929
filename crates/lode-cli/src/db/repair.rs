//! `repair`: a new database out of what a damaged one still holds.

use std::fmt::Write as _;
use std::path::PathBuf;

use clap::Args;
use lode_bench::grouped;
use lodestore::repair::{Loss, Repair as Reading, Report};
use serde_json::{Map, Value, json};

use super::target::Target;
use crate::Done;
use crate::failure::Failure;
use crate::output::Output;

/// `lode db repair`
#[derive(Debug, Args)]
#[command(after_help = "\
Nothing in the damaged directory is changed. Close the database first. Without --to it is only
said what would be lost, and the exit code is 4 if that is anything.")]
pub struct Repair {
    /// Build the new database in this directory, which must be new or empty
    #[arg(long, value_name = "DIR")]
    to: Option<PathBuf>,
}

/// Says what is lost, then writes the rest.
pub fn run(target: &Target, repair: &Repair) -> Done {
    let reading = Reading::read(target.path()?, &target.options()?)?;
    let report = reading.report();
    let mut output = target.output();
    if !output.is_json() {
        output.bytes(text(&output, &report).as_bytes())?;
        output.flush()?;
    }
    if let Some(directory) = &repair.to {
        reading.write_to(directory)?;
    }
    if output.is_json() {
        let object = object(&output, &report, repair.to.is_some());
        output.object(object)?;
    } else if let Some(directory) = &repair.to {
        output.line(&format!("written to {}", directory.display()))?;
    }
    output.finish()?;
    match repair.to.is_some() || report.losses.is_empty() {
        true => Ok(()),
        false => {
            let what = "something is lost; repair --to DIR builds a database of the rest";
            Err(Failure::Corruption(what.to_string()))
        }
    }
}

fn text(output: &Output, report: &Report) -> String {
    let mut text = String::new();
    let manifest = report.manifest.as_deref().unwrap_or("sound");
    let _ = writeln!(text, "manifest  {manifest}");
    let _ = writeln!(text, "families  {}", report.families.join(", "));
    let (sound, rewritten) = (grouped(report.tables), grouped(report.tables_rewritten));
    let _ = writeln!(text, "tables    {sound} sound, {rewritten} damaged and read in part");
    let _ = writeln!(text, "log       {} entries to recover", grouped(report.log_entries));
    for note in &report.notes {
        let _ = writeln!(text, "note      {note}");
    }
    for loss in &report.losses {
        let _ = writeln!(text, "lost      {}", loss_text(output, loss));
    }
    if report.losses.is_empty() {
        text.push_str("lost      nothing\n");
    }
    text
}

fn loss_text(output: &Output, loss: &Loss) -> String {
    let mut text = format!("{}: {}", loss.file, loss.what);
    if let Some(family) = &loss.family {
        let _ = write!(text, "; family {family}");
    }
    match &loss.sequences {
        Some((from, Some(to))) => drop(write!(text, "; entries number {from} to {to}, any key")),
        Some((from, None)) => drop(write!(text, "; entries from number {from} on, any key")),
        None => {
            let bound = |key: &Option<Vec<u8>>, open: &str| {
                key.as_ref().map_or(open.to_string(), |key| format!("\"{}\"", output.shown(key)))
            };
            let (from, to) = (bound(&loss.from, "the first"), bound(&loss.to, "the last"));
            let _ = write!(text, "; keys from {from} to {to}");
        }
    }
    if loss.deletes {
        text.push_str("; deleted keys may be back");
    }
    text
}

fn object(output: &Output, report: &Report, written: bool) -> Value {
    let losses: Vec<Value> = report.losses.iter().map(|loss| loss_object(output, loss)).collect();
    json!({
        "manifest_sound": report.manifest.is_none(),
        "manifest": report.manifest,
        "families": report.families,
        "tables": report.tables,
        "tables_rewritten": report.tables_rewritten,
        "log_entries": report.log_entries,
        "losses": losses,
        "notes": report.notes,
        "written": written,
    })
}

fn loss_object(output: &Output, loss: &Loss) -> Value {
    let mut object = Map::new();
    object.insert("file".to_string(), json!(loss.file));
    object.insert("what".to_string(), json!(loss.what));
    object.insert("family".to_string(), json!(loss.family));
    for (name, key) in [("from", &loss.from), ("to", &loss.to)] {
        if let Some(key) = key {
            output.add_bytes(&mut object, name, key);
        }
    }
    if let Some((from, to)) = loss.sequences {
        object.insert("sequence_from".to_string(), json!(from));
        object.insert("sequence_to".to_string(), json!(to));
    }
    object.insert("deletes".to_string(), json!(loss.deletes));
    object.into()
}
