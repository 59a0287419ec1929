//! `lode adopt`: a LevelDB directory becomes a database of ours, in place.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::Instant;

use clap::Args;
use lode_bench::{grouped, seconds_text};
use lodestore::adopt::{self, Adopted};
use lodestore::{Db, Options};
use serde_json::json;

use crate::Done;
use crate::output::{Output, Style};

/// Printed below `lode adopt --help`.
pub const HELP: &str = "\
The program that uses the database must be closed. LevelDB's tables are taken over as they are
and read in their own format; compactions rewrite them over time. Its files stay in the folder
adopted/ until --commit, and LevelDB finds no database meanwhile. --rollback makes the directory
what it was, byte for byte, unless something was written since.";

/// The command line of the verb.
#[derive(Debug, Args)]
pub struct Adopt {
    /// Directory of the database
    directory: PathBuf,
    /// Write all tables anew at once, in our format
    #[arg(long, conflicts_with_all = ["commit", "rollback"])]
    copy: bool,
    /// Give up LevelDB's files: there is no way back then
    #[arg(long, conflicts_with = "rollback")]
    commit: bool,
    /// Go back to LevelDB
    #[arg(long)]
    rollback: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Does what the command line says.
pub fn run(adopt: &Adopt) -> Done {
    let options = Options::default();
    let directory = &adopt.directory;
    let begin = Instant::now();
    let (text, object) = if adopt.commit {
        adopt::commit(directory, &options)?;
        (format!("{} is ours for good\n", directory.display()), json!({ "committed": true }))
    } else if adopt.rollback {
        adopt::roll_back(directory, &options)?;
        (format!("{} is LevelDB's again\n", directory.display()), json!({ "rolled_back": true }))
    } else {
        let adopted = adopt::adopt(directory, &options)?;
        if adopt.copy {
            let db = Db::open(directory, options)?;
            db.rewrite_range(None, None)?;
            db.wait_for_background()?;
        }
        let seconds = begin.elapsed().as_secs_f64();
        (text(directory, &adopted, seconds), object(&adopted, seconds))
    };
    let mut output = Output::new(Style { json: adopt.json, hex: false });
    output.report(&text, object)?;
    output.finish()
}

fn text(directory: &Path, adopted: &Adopted, seconds: f64) -> String {
    let directory = directory.display();
    let count = |number: u64| grouped(number);
    let mut text = format!(
        "adopted in {}: {} tables as they are, {} rewritten, {} entries from logs\n",
        seconds_text(seconds),
        count(adopted.tables_linked),
        count(adopted.tables_rewritten),
        count(adopted.log_entries)
    );
    for note in &adopted.notes {
        let _ = writeln!(text, "note: {note}");
    }
    let _ = writeln!(text, "to go back:            lode adopt {directory} --rollback");
    let _ = writeln!(text, "to give up the old:    lode adopt {directory} --commit");
    text
}

fn object(adopted: &Adopted, seconds: f64) -> serde_json::Value {
    json!({
        "tables_linked": adopted.tables_linked,
        "tables_rewritten": adopted.tables_rewritten,
        "log_entries": adopted.log_entries,
        "last_sequence": adopted.last_sequence,
        "notes": adopted.notes,
        "seconds": seconds,
    })
}
