//! What must hold of the files that a run left, looked at by another process.

use super::story::{CHECKPOINT, databases};
use crate::command::{Command, Output};
use crate::files::{pause, stray_tables};
use crate::history::{self, Crash};
use crate::load::{Contents, contents};
use crate::parse;
use crate::rust_api::RustApi;
use crate::surface::Surface;
use lodestore::OsFs;
use std::path::Path;
use std::sync::Arc;

/// The write that shows that a database takes writes again.
pub const AFTER: &str = "put ~after 1";
const AFTER_KEY: &[u8] = b"~after";

/// Opens what is left after `done` commands of `story`, and judges it: every
/// acknowledged batch is there, tables are sound and belong to something, and
/// it is a database that takes writes and keeps them. A checkpoint that
/// was acknowledged is whole; another one is whole or does not open.
///
/// # Errors
/// What is wrong, in words.
pub fn recover(directory: &Path, story: &[Command], done: usize) -> Result<(), String> {
    let mut surface = RustApi::new(Arc::new(OsFs::new()), databases(directory));
    expect_done(&mut surface, &story[0])?;
    judge(&surface, story, done)?;
    let db = surface.db().ok_or("the database is open")?;
    match stray_tables(db, &OsFs::new(), pause)? {
        0 => {}
        stray => return Err(format!("{stray} table files belong to nothing")),
    }
    expect_line(&mut surface, "verify")?;
    expect_line(&mut surface, AFTER)?;
    expect_done(&mut surface, &story[0])?;
    match surface.run(&parse::command("get ~after")?) {
        Output::Value(Some(value)) if value == b"1" => {}
        other => return Err(format!("a write after recovery: {other:?}")),
    }
    check_checkpoint(&mut surface, story, done)
}

/// Judges what the open database holds.
///
/// # Errors
/// What is wrong, in words.
pub fn judge(surface: &RustApi, story: &[Command], done: usize) -> Result<(), String> {
    let db = surface.db().ok_or("the database is not open")?;
    let found = contents(db).map_err(|error| format!("reading: {error}"))?;
    judge_found(found, story, done)
}

/// [`judge`] for what was read already.
///
/// # Errors
/// What is wrong, in words.
pub fn judge_found(mut found: Contents, story: &[Command], done: usize) -> Result<(), String> {
    if let Some(default) = found.get_mut("default") {
        default.remove(AFTER_KEY);
    }
    history::judge(story, done, Crash::Kill, &found).map(drop)
}

fn check_checkpoint(surface: &mut RustApi, story: &[Command], done: usize) -> Result<(), String> {
    let made = story.iter().position(|command| matches!(command, Command::Checkpoint { .. }));
    let made = made.ok_or("the story makes a checkpoint")?;
    let open = parse::command(&format!("open {CHECKPOINT} default:merge=append a:merge=append"))?;
    match surface.run(&open) {
        Output::Done => judge(surface, story, made).map_err(|what| format!("checkpoint: {what}")),
        // Files of an unfinished one are not taken for a database.
        Output::Failed(kind) if done <= made && (kind == "Missing" || kind == "Corruption") => {
            Ok(())
        }
        other => Err(format!("opening the checkpoint: {other:?}, {:?}", surface.last_error)),
    }
}

/// Runs a command that must work.
///
/// # Errors
/// What came of it.
pub fn expect_done(surface: &mut RustApi, command: &Command) -> Result<(), String> {
    match surface.run(command) {
        Output::Done => Ok(()),
        other => Err(format!("{command}: {other:?}, {:?}", surface.last_error)),
    }
}

/// [`expect_done`] for a line of a script.
///
/// # Errors
/// What came of it.
pub fn expect_line(surface: &mut RustApi, line: &str) -> Result<(), String> {
    expect_done(surface, &parse::command(line)?)
}
