//! Behaviour scripts: commands, `----`, what they print. A blank line ends an
//! expectation. `#` starts a comment line. With `REGENERATE=1` in the
//! environment the expectations are rewritten; read the difference then.

use crate::parse;
use crate::surface::Surface;
use std::fmt::Write as _;
use std::io;
use std::path::{Path, PathBuf};

/// Runs a script's text; the same text with what the surface really printed.
pub fn run_text(text: &str, surface: &mut dyn Surface) -> String {
    let mut out = String::new();
    let mut printed: Vec<String> = Vec::new();
    let mut lines = text.lines();
    let mut pending = false;
    while let Some(line) = lines.next() {
        let _ = writeln!(out, "{line}");
        let words = line.trim();
        if words == "----" {
            printed.drain(..).for_each(|line| {
                let _ = writeln!(out, "{line}");
            });
            out.push('\n');
            pending = false;
            // The old expectation is passed over up to its blank line.
            lines.by_ref().take_while(|line| !line.trim().is_empty()).for_each(drop);
        } else if !words.is_empty() && !words.starts_with('#') {
            pending = true;
            match parse::command(words) {
                Ok(command) => printed.extend(surface.run(&command).lines()),
                Err(what) => printed.push(format!("error Script: {what}")),
            }
        }
    }
    if pending {
        out.push_str("(commands without ---- after them)\n");
    }
    out.truncate(out.trim_end().len());
    out.push('\n');
    out
}

/// Runs a script file. The error shows the first line that differs.
pub fn run_file(path: &Path, surface: &mut dyn Surface) -> Result<(), String> {
    let failed = |error: io::Error| format!("{}: {error}", path.display());
    let expected = std::fs::read_to_string(path).map_err(failed)?;
    let found = run_text(&expected, surface);
    if std::env::var_os("REGENERATE").is_some() {
        return std::fs::write(path, &found).map_err(failed);
    }
    match first_difference(&expected, &found) {
        None => Ok(()),
        Some((line, expected, found)) => Err(format!(
            "{}:{line}: expected {expected:?}, found {found:?} \
             (REGENERATE=1 rewrites the expectations)",
            path.display()
        )),
    }
}

fn first_difference(expected: &str, found: &str) -> Option<(usize, String, String)> {
    let (mut a, mut b) = (expected.lines(), found.lines());
    let end = || "(end of script)".to_string();
    for line in 1.. {
        match (a.next(), b.next()) {
            (None, None) => return None,
            (a, b) if a == b => {}
            (a, b) => {
                let text = |side: Option<&str>| side.map_or_else(end, str::to_string);
                return Some((line, text(a), text(b)));
            }
        }
    }
    None
}

/// The scripts in a directory, by name.
pub fn scripts(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let mut paths = Vec::new();
    for entry in std::fs::read_dir(directory)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "txt") {
            paths.push(path);
        }
    }
    paths.sort();
    Ok(paths)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Model;

    /// What a surface prints is put below the line, whatever was there before.
    #[test]
    fn expectations_are_rewritten_in_place() {
        let text =
            "# story\nopen db create=yes\nput a 1\nget a\nget b\n----\nwrong\n\nsequence\n----\n";
        let expected = "# story\nopen db create=yes\nput a 1\nget a\nget b\n----\n1\n(absent)\n\n\
                        sequence\n----\n1\n";
        let found = run_text(text, &mut Model::default());
        assert_eq!(found, expected);
        assert_eq!(run_text(&found, &mut Model::default()), found, "a second run changes nothing");
    }

    /// A slip in a script shows as a difference, never as a passed test.
    #[test]
    fn slips_show() {
        let found = run_text("open db create=yes\nputt a 1\n----\n", &mut Model::default());
        assert!(found.contains("error Script"), "{found}");
        let found = run_text("open db create=yes\n", &mut Model::default());
        assert!(found.contains("without ----"), "{found}");
    }
}
