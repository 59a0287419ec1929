//! The shape of the engine's source, checked: `lib.rs` read from top to bottom
//! is the architecture, and the outside world comes in by few doors.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

const LINES_MAX: usize = 600;

/// What only the seams may name, and the files that are the seams.
const DOORS: &[(&str, &[&str])] = &[
    ("std::fs", &["fs/os.rs", "fs/os/"]),
    ("std::net", &[]),
    ("std::thread", &["sync.rs"]),
    // What is measured for statistics decides nothing.
    ("std::time::Instant", &["scheduler", "latency.rs", "stats.rs"]),
    ("std::time::SystemTime", &["scheduler.rs"]),
    ("std::sync::Mutex", &["sync.rs"]),
    ("std::sync::RwLock", &["sync.rs"]),
    ("std::sync::Condvar", &["sync.rs"]),
    ("std::sync::mpsc", &["sync.rs"]),
    // The real file system is one door: nothing simulated runs behind it.
    ("std::sync::atomic", &["sync.rs", "latency.rs", "stats.rs", "fs/os.rs", "fs/os/"]),
];

fn source() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src")
}

/// Every source file with its path below `src`.
fn files() -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut directories = vec![source()];
    while let Some(directory) = directories.pop() {
        for entry in std::fs::read_dir(directory).expect("the source is there") {
            let path = entry.expect("the source is readable").path();
            if path.is_dir() {
                directories.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = std::fs::read_to_string(&path).expect("source is text");
                let below = path.strip_prefix(source()).expect("it is below src");
                found.push((below.to_str().expect("names are text").to_string(), text));
            }
        }
    }
    found.sort();
    assert!(found.len() > 20, "only {} source files were found", found.len());
    found
}

fn is_test(file: &str) -> bool {
    file.ends_with("tests.rs") || file.contains("tests/") || file.ends_with("_tests.rs")
}

/// The code of a file: without comments, and without its tests at the end.
fn code(text: &str) -> String {
    let end = text.find("\n#[cfg(test)]\nmod ");
    let end = end.or_else(|| text.find("\n#[cfg(all(test, not(simulation)))]\nmod "));
    let text = &text[..end.unwrap_or(text.len())];
    let line = |line: &str| line.split("//").next().unwrap_or_default().to_string();
    text.lines().map(line).collect::<Vec<_>>().join("\n")
}

/// Every path in `code` that starts with `root`, groups expanded:
/// `use std::{fs, io::Read}` gives `std::fs` and `std::io::Read`.
fn paths(code: &str, root: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (at, _) in code.match_indices(root) {
        let before = code[..at].chars().next_back();
        let is_word = before.is_none_or(|c| !c.is_alphanumeric() && c != '_' && c != ':');
        if is_word && code[at + root.len()..].starts_with("::") {
            expand(&code[at + root.len()..], root.to_string(), &mut found);
        }
    }
    found
}

/// Expands what follows `prefix`; gives what follows that in turn.
fn expand<'a>(code: &'a str, prefix: String, found: &mut Vec<String>) -> &'a str {
    let Some(rest) = code.strip_prefix("::") else {
        found.push(prefix);
        return code;
    };
    let rest = rest.trim_start();
    if let Some(mut rest) = rest.strip_prefix('{') {
        loop {
            rest = rest.trim_start_matches(|c: char| c.is_whitespace() || c == ',');
            if let Some(after) = rest.strip_prefix('}') {
                return after;
            }
            if rest.is_empty() {
                return rest;
            }
            let (name, after) = word(rest);
            if name.is_empty() {
                return rest; // a path within a macro: nothing to expand
            }
            rest = expand(after, format!("{prefix}::{name}"), found);
            let renamed = rest.trim_start().strip_prefix("as ");
            rest = renamed.map_or(rest, |after| word(after.trim_start()).1);
        }
    }
    let (name, after) = word(rest);
    if name.is_empty() {
        found.push(prefix); // a glob
        return rest;
    }
    expand(after, format!("{prefix}::{name}"), found)
}

fn word(text: &str) -> (&str, &str) {
    let end = text.find(|c: char| !c.is_alphanumeric() && c != '_');
    text.split_at(end.unwrap_or(text.len()))
}

/// The modules of `lib.rs` in their order, and the module of each re-export.
fn modules() -> (Vec<String>, BTreeMap<String, String>) {
    let text = std::fs::read_to_string(source().join("lib.rs")).expect("lib.rs is there");
    let code = code(&text);
    let mut modules = Vec::new();
    for line in code.lines() {
        let line = line.trim().trim_start_matches("pub ");
        if let Some(name) = line.strip_prefix("mod ").and_then(|rest| rest.strip_suffix(';')) {
            modules.push(name.to_string());
        }
    }
    let mut exported = BTreeMap::new();
    for module in &modules {
        for path in paths(&code, module) {
            let name = path.rsplit("::").next().unwrap_or_default().to_string();
            exported.insert(name, module.clone());
        }
    }
    assert!(modules.len() > 20, "lib.rs declares modules");
    (modules, exported)
}

/// A module uses only modules declared above it, so that each can be read
/// knowing nothing of what follows, and no cycle can grow.
#[test]
fn modules_use_only_what_is_declared_above_them() {
    let (modules, exported) = modules();
    let place = |name: &str| modules.iter().position(|module| module == name);
    let mut wrong = Vec::new();
    for (file, text) in files() {
        let own = file.split('/').next().unwrap_or_default().trim_end_matches(".rs");
        let Some(own_place) = place(own).filter(|_| !is_test(&file)) else { continue };
        for path in paths(&code(&text), "crate") {
            let used = path.split("::").nth(1).unwrap_or_default();
            let used = exported.get(used).map_or(used, |module| module);
            match place(used) {
                Some(used_place) if used_place > own_place => {
                    wrong.push(format!("{file} uses {path}, which is declared below {own}"));
                }
                Some(_) => {}
                None => wrong.push(format!("{file} uses {path}, which is no module")),
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Every module of `lib.rs` is checked: a file that the check does not know
/// would be free to use anything.
#[test]
fn every_source_file_belongs_to_a_declared_module() {
    let (modules, _) = modules();
    for (file, _) in files() {
        let own = file.split('/').next().unwrap_or_default().trim_end_matches(".rs");
        assert!(own == "lib" || modules.iter().any(|module| module == own), "{file}");
    }
}

/// Files, threads, time and locks come in by their seams only: what goes
/// around them cannot be simulated.
#[test]
fn the_outside_world_comes_in_by_the_seams_only() {
    let mut wrong = Vec::new();
    for (file, text) in files().into_iter().filter(|(file, _)| !is_test(file)) {
        let code = code(&text);
        for path in paths(&code, "std") {
            let is_within = |door: &str| path == door || path.starts_with(&format!("{door}::"));
            for (door, seams) in DOORS {
                let allowed = seams.iter().any(|seam| file.starts_with(seam));
                if is_within(door) && !allowed {
                    wrong.push(format!("{file} names {path}"));
                }
            }
        }
        let randomness = paths(&code, "rand").len() + code.matches("RandomState").count();
        if randomness > 0 && file != "scheduler.rs" {
            wrong.push(format!("{file} takes randomness from outside the scheduler"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// A file does one job; one that needs more lines does two.
#[test]
fn no_source_file_is_long() {
    let long = |(file, text): &(String, String)| {
        let lines = text.lines().count();
        (lines > LINES_MAX).then(|| format!("{file} has {lines} lines"))
    };
    let long: Vec<String> = files().iter().filter_map(long).collect();
    assert!(long.is_empty(), "over {LINES_MAX} lines:\n{}", long.join("\n"));
}

/// The engine stands alone: no other crate of this workspace below it.
#[test]
fn the_engine_depends_on_no_other_crate_of_the_workspace() {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml");
    let text = std::fs::read_to_string(manifest).expect("the manifest is there");
    let before_tests = text.split("[dev-dependencies]").next().unwrap_or_default();
    assert!(!before_tests.contains("path ="), "{before_tests}");
}

/// The check itself: groups, renames and nesting are seen.
#[test]
fn paths_are_found_however_they_are_written() {
    let code = "use std::{fs, io::{self, Read as R}, sync::Arc};\nlet x = crate::a::b(c);";
    let found = paths(code, "std");
    assert_eq!(found, ["std::fs", "std::io::self", "std::io::Read", "std::sync::Arc"]);
    assert_eq!(paths(code, "crate"), ["crate::a::b"]);
}
