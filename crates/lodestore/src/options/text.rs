//! Options as text.
//!
//! ```text
//! [database]
//! cache_bytes = 64MiB      # and so on: one option a line
//!
//! [family]                 # of every family without a section of its own
//! compression = zstd:3
//!
//! [family "index"]         # begins with what [family] says
//! compression = lz4
//! ```
//!
//! Sections may stand in any order; each at most once.

use std::collections::BTreeSet;
use std::fmt::Write;

use crate::error::{Error, Result};

use super::catalogue::{self, Catalogued};
use super::{FamilyOptions, Options};

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Section {
    Database,
    Families,
    Family(String),
}

/// A line that sets an option.
struct Setting<'a> {
    line: usize,
    name: &'a str,
    value: &'a str,
}

type Sections<'a> = Vec<(Section, Vec<Setting<'a>>)>;

/// Applies `text` to `options`, which are as they were after an error.
pub(super) fn apply(options: &mut Options, text: &str) -> Result<()> {
    let mut sections = read(text).map_err(|(line, what)| at_line(line, &what))?;
    // What a family's section begins with is known only after `[family]`.
    sections.sort_by(|a, b| a.0.cmp(&b.0));
    let mut applied = options.clone();
    for (section, settings) in sections {
        match section {
            Section::Database => set_all(&mut applied, &settings)?,
            Section::Families => set_all(&mut applied.family, &settings)?,
            Section::Family(name) => {
                let base = applied.family.clone();
                set_all(applied.families.entry(name).or_insert(base), &settings)?;
            }
        }
    }
    applied.validate()?;
    *options = applied;
    Ok(())
}

fn at_line(line: usize, what: &str) -> Error {
    Error::invalid(format!("line {line}: {what}"))
}

fn set_all<T: Catalogued>(options: &mut T, settings: &[Setting<'_>]) -> Result<()> {
    for (place, Setting { line, name, value }) in settings.iter().enumerate() {
        if let Some(first) = settings[..place].iter().find(|other| other.name == *name) {
            let what = format!("{name} was given before, in line {}", first.line);
            return Err(at_line(*line, &what));
        }
        catalogue::set(options, name, value).map_err(|what| at_line(*line, &what))?;
    }
    Ok(())
}

/// The sections, each with its lines. An error has its line's number.
fn read(text: &str) -> std::result::Result<Sections<'_>, (usize, String)> {
    let (mut sections, mut known) = (Sections::new(), BTreeSet::new());
    for (index, line) in text.lines().enumerate() {
        let number = index + 1;
        let line = line.trim();
        if line.starts_with('[') {
            let section = section(line).map_err(|what| (number, what))?;
            if !known.insert(section.clone()) {
                return Err((number, format!("a second section {line}")));
            }
            sections.push((section, Vec::new()));
            continue;
        }
        let line = line.split('#').next().unwrap_or_default().trim();
        if line.is_empty() {
            continue;
        }
        let Some((name, value)) = line.split_once('=') else {
            return Err((number, format!("{line:?} is not of the form NAME = VALUE")));
        };
        let Some((_, settings)) = sections.last_mut() else {
            return Err((number, "an option before the first section, as in [database]".into()));
        };
        settings.push(Setting { line: number, name: name.trim(), value: value.trim() });
    }
    Ok(sections)
}

/// The section that a line begins. A comment may follow.
fn section(line: &str) -> std::result::Result<Section, String> {
    let wrong =
        || format!("{line:?} is none of the sections [database], [family], [family \"NAME\"]");
    let is_end = |rest: &str| rest.trim().is_empty() || rest.trim_start().starts_with('#');
    if let Some(name) = line.strip_prefix("[family \"") {
        let (name, rest) = unquoted(name).ok_or_else(wrong)?;
        let rest = rest.strip_prefix(']').ok_or_else(wrong)?;
        return is_end(rest).then_some(Section::Family(name)).ok_or_else(wrong);
    }
    let (name, rest) = line[1..].split_once(']').ok_or_else(wrong)?;
    match name {
        "database" if is_end(rest) => Ok(Section::Database),
        "family" if is_end(rest) => Ok(Section::Families),
        _ => Err(wrong()),
    }
}

/// What stands before the next `"`, with its escapes resolved, and what
/// follows.
fn unquoted(text: &str) -> Option<(String, &str)> {
    let mut name = String::new();
    let mut letters = text.char_indices();
    while let Some((at, letter)) = letters.next() {
        match letter {
            '"' => return Some((name, &text[at + 1..])),
            '\\' => name.push(letters.next().map(|(_, c)| c).filter(|c| "\"\\".contains(*c))?),
            _ => name.push(letter),
        }
    }
    None
}

/// All of `options` that can be text.
pub(super) fn print(options: &Options) -> String {
    let mut text = String::from("[database]\n");
    put_all(&mut text, options, None);
    text.push_str("\n[family]\n");
    put_all(&mut text, &options.family, None);
    for (name, family) in &options.families {
        let name = name.replace('\\', "\\\\").replace('"', "\\\"");
        write!(text, "\n[family \"{name}\"]\n").expect("a string takes what is written");
        put_all::<FamilyOptions>(&mut text, family, Some(&options.family));
    }
    text
}

/// A line for each option of `options`, unless it is as in `base`. What cannot
/// be text is a comment.
fn put_all<T: Catalogued>(text: &mut String, options: &T, base: Option<&T>) {
    for descriptor in T::ALL {
        let value = (descriptor.print)(options);
        if base.is_some_and(|base| value.is_some() && (descriptor.print)(base) == value) {
            continue;
        }
        match value {
            Some(value) if value.is_empty() => writeln!(text, "{} =", descriptor.name),
            Some(value) => writeln!(text, "{} = {value}", descriptor.name),
            None => writeln!(text, "# {} is given in code", descriptor.name),
        }
        .expect("a string takes what is written");
    }
}
