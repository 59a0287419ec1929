//! The process that plays the story. It waits for strace before it begins, and
//! where a call was made to fail, it shows that the database lives on.

use super::recover::{AFTER, expect_done, expect_line, judge, judge_found};
use super::story::{Log, Progress, databases, is_followed_by_a_look, note_met, story};
use crate::command::{Command, Output};
use crate::load::contents;
use crate::parse;
use crate::rust_api::RustApi;
use crate::surface::Surface;
use lodestore::{Error, OsFs, Scheduler};
use std::io::{self, Write as _};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// What the failure of a call lets one expect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum After {
    /// Nothing: the process is killed.
    Kill,
    /// `resume` makes the database whole.
    Resume,
    /// It goes on by itself.
    ByItself,
}

impl After {
    const ALL: [After; 3] = [After::Kill, After::Resume, After::ByItself];

    /// Its name on command lines.
    pub fn name(self) -> &'static str {
        match self {
            After::Kill => "kill",
            After::Resume => "resume",
            After::ByItself => "by-itself",
        }
    }
}

/// How long a database may take to go on by itself.
const BY_ITSELF_MAX: Duration = Duration::from_secs(10);

/// Reads a command line: `DIRECTORY written|mapped kill|resume|by-itself`.
///
/// # Errors
/// What is wrong with it.
pub fn parse(arguments: &[String]) -> Result<(&Path, Log, After), String> {
    let [directory, log, after] = arguments else {
        return Err("expected DIRECTORY written|mapped kill|resume|by-itself".to_string());
    };
    let log = Log::ALL.into_iter().find(|known| known.name() == log);
    let after = After::ALL.into_iter().find(|known| known.name() == after);
    Ok((Path::new(directory), log.ok_or("unknown log")?, after.ok_or("unknown ending")?))
}

/// Plays the story, and notes what it met.
///
/// # Errors
/// What went wrong that must not, in words.
pub fn play(directory: &Path, log: Log, after: After) -> Result<(), String> {
    let failed = |error: io::Error| error.to_string();
    let progress = Progress::begin(directory).map_err(failed)?;
    // Threads that live as long as the process, so that strace can attach to
    // one of them before anything has begun.
    let surface = RustApi::new(Arc::new(OsFs::new()), databases(directory));
    let mut surface = surface.with_scheduler(Scheduler::new(1));
    let story = story(log);
    println!("ready");
    io::stdout().flush().map_err(failed)?;
    io::stdin().read_line(&mut String::new()).map_err(failed)?;

    let mut done = 0;
    let mut met = Vec::new();
    for command in &story {
        let closes = *command == Command::Close;
        if closes {
            mark();
        }
        let output = surface.run(command);
        if closes {
            mark();
        }
        if let Output::Failed(kind) = output {
            met.push(told(&surface, &kind)?);
            break;
        }
        done += 1;
        progress.note(done).map_err(failed)?;
        if is_followed_by_a_look(command) {
            let context = |what| format!("after {done} commands: {what}");
            met.extend(look(&surface, &story[..done]).map_err(context)?);
        }
    }
    // What was met is over: only one call is struck.
    if !met.is_empty() {
        if surface.db().is_none() {
            expect_done(&mut surface, &story[0])?;
        }
        judge(&surface, &story, done).map_err(|what| format!("after the failure: {what}"))?;
        // The same failure may be met in the background too.
        if let Output::Failed(kind) = surface.run(&parse::command("wait")?) {
            met.push(told(&surface, &kind)?);
        }
        go_on(&mut surface, after)?;
    }
    drop(surface);
    match met.is_empty() {
        true => Ok(()),
        false => note_met(directory, &met.join("; ")).map_err(failed),
    }
}

/// A call that has no effect, for whoever reads what strace wrote down: the
/// database is closed between this one and the next.
fn mark() {
    let _ = std::os::unix::process::parent_id();
}

/// The call by which a mark is known.
pub const MARK: &str = "getppid";

/// What was reported; an error of the system must not look like another one.
fn told(surface: &RustApi, kind: &str) -> Result<String, String> {
    let text = surface.last_error.clone().unwrap_or_default();
    match kind {
        "Io" | "ReadOnly" => Ok(text),
        // The surface's own: a file was to be moved, is in the database, and
        // could not be removed from where it was. The engine's report says so.
        stays if stays.ends_with("is gone: false") => Ok(stays.to_string()),
        _ => Err(format!("a failed call is told as {kind}: {text}")),
    }
}

/// Reads everything. A failed read must be told, not be a short answer, and
/// the next look must be a whole one.
fn look(surface: &RustApi, done: &[Command]) -> Result<Option<String>, String> {
    let db = surface.db().ok_or("the database is not open")?;
    match contents(db) {
        Ok(found) => judge_found(found, done, done.len()).map(|()| None),
        Err(error @ Error::Io { .. }) => {
            judge(surface, done, done.len()).map(|()| Some(error.to_string()))
        }
        Err(error) => Err(format!("a failed read is told as {error:?}")),
    }
}

fn go_on(surface: &mut RustApi, after: After) -> Result<(), String> {
    if after == After::Resume {
        expect_line(surface, "resume")?;
    }
    let deadline = Instant::now() + BY_ITSELF_MAX;
    for line in [AFTER, "flush-all", "wait"] {
        let command = parse::command(line)?;
        while let Err(what) = expect_done(surface, &command) {
            if after == After::Resume || Instant::now() > deadline {
                return Err(format!("going on: {what}"));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
    expect_line(surface, "verify")
}
