//! `lode bench`: the flags go straight to the library of benchmarks. The first
//! Ctrl-C ends the run in order (its report is printed, its temporary directory
//! removed), a second one at once.

use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use clap::Args;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use lode_bench::{Flags, Outcome};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;

use crate::Done;
use crate::failure::Failure;

const EXIT_STOPPED: i32 = 130;

/// The command line of the verb.
#[derive(Debug, Args)]
pub struct Bench {
    #[command(flatten)]
    flags: Flags,
}

/// Runs the benchmarks.
pub fn run(bench: &Bench) -> Done {
    let stop = Arc::new(AtomicBool::new(false));
    stop_on_signals(&stop)
        .map_err(|error| Failure::Error(format!("signals cannot be caught: {error}")))?;
    match lode_bench::run(&bench.flags, &stop)? {
        Outcome::Complete => Ok(()),
        Outcome::Stopped => Err(Failure::Stopped),
    }
}

/// `error` of a command line; with the reason, if it is for a flag that only
/// RocksDB's db_bench has.
pub fn explain(error: clap::Error) -> clap::Error {
    let is_bench = std::env::args_os().nth(1).is_some_and(|verb| verb == "bench");
    match foreign_reason(&error).filter(|_| is_bench) {
        Some((flag, reason)) => clap::Error::raw(
            ErrorKind::UnknownArgument,
            format!("{flag} of db_bench: {reason}\n\nFor more information, try '--help'.\n"),
        ),
        None => error,
    }
}

/// The flag that is unknown, and why.
fn foreign_reason(error: &clap::Error) -> Option<(String, &'static str)> {
    let (ErrorKind::UnknownArgument, Some(ContextValue::String(flag))) =
        (error.kind(), error.get(ContextKind::InvalidArg))
    else {
        return None;
    };
    let name = flag.trim_start_matches('-').split('=').next()?;
    Some((flag.clone(), lode_bench::foreign_flag_reason(name)?))
}

/// Sets `stop` on the first signal, and ends the process on the second.
pub fn stop_on_signals(stop: &Arc<AtomicBool>) -> io::Result<()> {
    for signal in [SIGINT, SIGTERM] {
        flag::register_conditional_shutdown(signal, EXIT_STOPPED, Arc::clone(stop))?;
        flag::register(signal, Arc::clone(stop))?;
    }
    Ok(())
}
