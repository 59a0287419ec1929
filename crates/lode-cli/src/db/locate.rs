//! `find`: what every file says of a key. `explain`: how a lookup goes.

use std::ffi::OsString;

use clap::Args;
use lodestore::inspect::{self, Found, FoundIn};
use lodestore::{
    BlockKind, BlockSource, BlockUse, Explanation, FilterAnswer, KeyOrder, Outcome, Place,
    ReadOptions, Searched, VersionMet,
};
use serde_json::{Map, Value, json};

use super::dump::{unknown_order, version};
use super::target::Target;
use crate::Done;
use crate::failure::Failure;

/// `lode db find`
#[derive(Debug, Args)]
pub struct Find {
    /// The key
    key: OsString,
}

/// `lode db explain`
#[derive(Debug, Args)]
pub struct Explain {
    /// The key
    key: OsString,
}

/// Prints in which files a key is, with every version.
/// # Errors: `Negative` if it is in none.
pub fn find(target: &Target, find: &Find) -> Done {
    let key = target.bytes(&find.key)?;
    let order = KeyOrder::Bytewise;
    let found = inspect::find(&target.fs(), target.path()?, target.family(), &order, &key);
    let found = found.map_err(unknown_order)?;
    let mut output = target.output();
    for Found { place, entry, .. } in &found {
        let mut object = Map::new();
        let before = match *place {
            FoundIn::Log { number, offset, needed } => {
                object.insert("log".to_string(), json!(number));
                object.insert("offset".to_string(), json!(offset));
                object.insert("needed".to_string(), json!(needed));
                let note = if needed { "" } else { ", kept for other families" };
                format!("log {number} at offset {offset}{note}\t")
            }
            FoundIn::Table { level, number } => {
                object.insert("level".to_string(), json!(level));
                object.insert("table".to_string(), json!(number));
                format!("level {level}, table {number}\t")
            }
            other => format!("{other:?}\t"),
        };
        let (sequence, value) = (entry.sequence, Some(&entry.value[..]));
        version(&mut output, object, &before, sequence, entry.kind, &entry.key, value)?;
    }
    let shown = output.shown(&key);
    output.finish()?;
    match found.is_empty() {
        false => Ok(()),
        true => Err(Failure::Negative(format!("no file has the key '{shown}'"))),
    }
}

/// Looks a key up, and prints how.
/// # Errors: `Negative` if it has no value; what the lookup failed with.
pub fn explain(target: &Target, explain: &Explain) -> Done {
    let key = target.bytes(&explain.key)?;
    let (_db, family) = target.open_for_reading()?;
    let told = family.explain(&ReadOptions::default(), &key)?;
    let mut output = target.output();
    if output.is_json() {
        let mut object = Map::new();
        output.add_bytes(&mut object, "key", &key);
        fill(&mut object, &told);
        output.object(object)?;
    } else {
        let key = output.shown(&key);
        output.bytes(format!("key {key} {told}").as_bytes())?;
    }
    output.finish()?;
    match told.outcome {
        Outcome::Found { .. } => Ok(()),
        Outcome::Failed(error) => Err(error.into()),
        _ => Err(Failure::Negative(String::new())),
    }
}

fn fill(object: &mut Map<String, Value>, told: &Explanation) {
    let places: Vec<Value> = told.places.iter().map(place_object).collect();
    let outcome = match &told.outcome {
        Outcome::Found { value_bytes, sequence, operands } => json!({
            "found": true, "value_bytes": value_bytes, "sequence": sequence, "operands": operands,
        }),
        Outcome::Deleted { sequence, by } => {
            json!({ "found": false, "deleted_by": by.name(), "sequence": sequence })
        }
        Outcome::Absent => json!({ "found": false }),
        Outcome::Failed(error) => json!({ "error": error.to_string() }),
        other => json!({ "other": format!("{other:?}") }),
    };
    object.insert("family".to_string(), json!(told.family));
    object.insert("sequence_visible".to_string(), json!(told.sequence));
    object.insert("places".to_string(), places.into());
    object.insert("passed_over".to_string(), json!(told.passed_over));
    object.insert("hidden".to_string(), json!(told.hidden()));
    object.insert("outcome".to_string(), outcome);
    object.insert("micros".to_string(), json!(told.elapsed.as_nanos() as f64 / 1000.0));
}

fn place_object(searched: &Searched) -> Value {
    let mut object = match searched.place {
        Place::ActiveMemtable => json!({ "memtable": "active" }),
        Place::SealedMemtable(index) => json!({ "memtable": format!("sealed {index}") }),
        Place::Table { level, number } => json!({ "level": level, "table": number }),
        other => json!({ "place": other.to_string() }),
    };
    let filter = match searched.filter {
        FilterAnswer::NotAsked => None,
        FilterAnswer::MayContain => Some("may contain"),
        FilterAnswer::Denied => Some("denied"),
    };
    object["opened"] = json!(searched.opened);
    object["filter"] = json!(filter);
    object["blocks"] = searched.blocks.iter().map(block_object).collect();
    object["range_delete"] = json!(searched.range_delete);
    object["versions"] = searched.versions.iter().map(version_object).collect();
    object
}

fn block_object(block: &BlockUse) -> Value {
    let kind = match block.kind {
        BlockKind::Data => "data",
        BlockKind::Index => "index",
        BlockKind::Filter => "filter",
    };
    let source = match block.source {
        BlockSource::Cache => "cache",
        BlockSource::File => "file",
    };
    json!({ "kind": kind, "offset": block.offset, "bytes": block.stored_bytes, "from": source })
}

fn version_object(met: &VersionMet) -> Value {
    json!({
        "sequence": met.sequence, "kind": met.kind.map(|kind| kind.name()),
        "value_bytes": met.value_bytes, "hidden": met.hidden,
    })
}
