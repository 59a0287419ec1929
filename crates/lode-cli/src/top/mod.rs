//! `lode top`: how a database is doing, drawn anew each second.
//!
//! source (what the process that has it open tells, or else its files) ->
//! frame (text or JSON) -> screen
//!
//! Nothing is written and no lock is taken; the process that is watched does
//! not notice.

mod source;
mod frame;
mod object;
mod screen;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use clap::Args;

use crate::Done;
use crate::bench::stop_on_signals;
use crate::failure::Failure;
use screen::Screen;
use source::{Source, Watched};

/// Printed below `lode top --help`.
pub const HELP: &str = "\
A program tells how its database is doing if it opens it with Options::status_interval;
lode bench and lode pulse do with --status. Otherwise levels and sizes are read from the
files, and what only the process knows is left out. Ctrl-C ends it.";

/// Time between looks whether the user has ended it.
const PAUSE: Duration = Duration::from_millis(50);

/// The command line of the verb.
#[derive(Debug, Args)]
pub struct Top {
    /// Directory of the database
    directory: PathBuf,
    /// Print one frame and end
    #[arg(long)]
    once: bool,
    /// Print JSON, one object a frame, in a line of its own
    #[arg(long)]
    json: bool,
    /// Show only this family's levels [default: those of all families, added up]
    #[arg(long, value_name = "NAME")]
    family: Option<String>,
    /// Seconds between frames
    #[arg(long, value_name = "SECONDS", default_value = "1", value_parser = parse_seconds)]
    interval: Duration,
}

fn parse_seconds(text: &str) -> Result<Duration, String> {
    let seconds: Option<f64> = text.parse().ok().filter(|s| (0.1..=3_600.0).contains(s));
    let wrong = || format!("{text:?} is not a number of seconds from 0.1 to 3600");
    seconds.map(Duration::from_secs_f64).ok_or_else(wrong)
}

/// Draws frames until the user ends it.
/// # Errors: no database at the beginning, or no family of the name.
pub fn run(top: &Top) -> Done {
    let stop = Arc::new(AtomicBool::new(false));
    stop_on_signals(&stop)
        .map_err(|error| Failure::Error(format!("signals cannot be caught: {error}")))?;
    let mut source = Source::new(&top.directory);
    let mut watched = source.look()?;
    if let Watched::Absent = watched {
        let path = top.directory.display();
        return Err(Failure::Error(format!("no database in {path}; check the path")));
    }
    check_family(top, &watched)?;
    let mut screen = Screen::new(top.once || top.json);
    loop {
        let next = Instant::now() + top.interval;
        let family = top.family.as_deref();
        match top.json {
            true => screen.line(&object::of(&top.directory, &watched, family).to_string())?,
            false => screen.draw(&frame::text(&top.directory, &watched, family, screen.ink()))?,
        }
        while !top.once && !stop.load(Ordering::Relaxed) && Instant::now() < next {
            std::thread::sleep(PAUSE.min(next.saturating_duration_since(Instant::now())));
        }
        if top.once || stop.load(Ordering::Relaxed) {
            return Ok(());
        }
        watched = source.look()?;
    }
}

fn check_family(top: &Top, watched: &Watched) -> Done {
    let Some(name) = &top.family else { return Ok(()) };
    let names: Vec<String> = watched.families().into_iter().map(|family| family.name).collect();
    match names.contains(name) {
        true => Ok(()),
        false => {
            let names = names.join(", ");
            Err(Failure::Error(format!("there is no family '{name}'; there are: {names}")))
        }
    }
}
