//! `lode export`: what a database holds, for another engine.

use std::path::PathBuf;
use std::time::Instant;

use clap::{Args, ValueEnum};
use lode_bench::{bytes_text, grouped, seconds_text};
use lodestore::{Error, Options, ReadOptions, adopt, export};
use serde_json::json;

use crate::Done;
use crate::output::{Output, Style};

/// Printed below `lode export --help`.
pub const HELP: &str = "\
The newest value of every key of one family, in a new directory that the other engine opens as
its own. The database is opened read-only: its state of this moment is exported, whoever has it
open.";

/// An engine to export to.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Engine {
    /// A database of LevelDB
    Leveldb,
}

/// The command line of the verb.
#[derive(Debug, Args)]
pub struct Export {
    /// Directory of the database
    #[arg(long, value_name = "DIR")]
    db: PathBuf,
    /// The engine that will open it
    #[arg(long, value_enum, value_name = "ENGINE")]
    to: Engine,
    /// The family to export
    #[arg(long, value_name = "NAME", default_value = "default")]
    family: String,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// The new directory
    directory: PathBuf,
}

/// Does what the command line says.
pub fn run(line: &Export) -> Done {
    let begin = Instant::now();
    let db = adopt::open_read_only(&line.db, Options::default())?;
    let missing = || Error::Missing { what: format!("no family {:?}", line.family) };
    let family = db.family(&line.family).ok_or_else(missing)?;
    let done = match line.to {
        Engine::Leveldb => export::to_leveldb(&family, &ReadOptions::default(), &line.directory)?,
    };
    let seconds = begin.elapsed().as_secs_f64();
    let text = format!(
        "exported in {}: {} entries in {} tables, {}\n",
        seconds_text(seconds),
        grouped(done.entries),
        grouped(done.tables),
        bytes_text(done.bytes)
    );
    let object = json!({
        "entries": done.entries,
        "tables": done.tables,
        "bytes": done.bytes,
        "seconds": seconds,
    });
    let mut output = Output::new(Style { json: line.json, hex: false });
    output.report(&text, object)?;
    output.finish()
}
