//! `list`: every file of a database's directory, and what it is for.

use std::collections::BTreeMap;

use lode_bench::bytes_text;
use lodestore::inspect::{FileUse, FoundFile, Survey, TableInfo};
use serde_json::json;

use super::target::Target;
use crate::Done;

/// A table, with its family and its level.
type Listed<'s> = (&'s str, usize, &'s TableInfo);

/// Prints the files.
pub fn run(target: &Target) -> Done {
    let survey = Survey::read(&target.fs(), target.path()?)?;
    let mut tables: BTreeMap<String, Listed> = BTreeMap::new();
    for family in &survey.families {
        for (level, of_level) in family.levels.iter().enumerate() {
            let listed = |table| (family.info.name.as_str(), level, table);
            tables.extend(of_level.iter().map(|table| (table.file_name(), listed(table))));
        }
    }
    let mut output = target.output();
    for file in &survey.files {
        let (usage, table) = (name_of(file.usage), tables.get(&file.name));
        let text = text(file, usage, table);
        let object = json!({
            "file": file.name, "use": usage, "bytes": file.bytes,
            "family": table.map(|(family, ..)| family), "level": table.map(|(_, level, _)| level),
            "format": table.map(|(.., table)| table.engine.name()),
        });
        output.report(&text, object)?;
    }
    output.finish()
}

fn text(file: &FoundFile, usage: &str, table: Option<&Listed>) -> String {
    let FoundFile { name, bytes, .. } = file;
    let bytes = bytes_text(*bytes);
    let place = table.map_or(String::new(), |(family, level, table)| {
        format!(", {family} level {level}, format of {}", table.engine.name())
    });
    format!("{bytes:>12}  {name:<24} {usage}{place}\n")
}

fn name_of(usage: FileUse) -> &'static str {
    match usage {
        FileUse::Table => "table",
        FileUse::Log => "log",
        FileUse::Administration => "administration",
        FileUse::Unreferenced => "unreferenced",
        FileUse::Adopted => "adopted",
        FileUse::Foreign => "foreign",
        _ => "other",
    }
}
