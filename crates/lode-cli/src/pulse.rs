//! `lode pulse`: the flags go straight to the library. The first Ctrl-C ends a
//! load or a run in order, what is done being kept and reported; a second one
//! ends it at once.

use std::io::{self, Write as _};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use clap::{Args, Subcommand};
use lode_bench::Outcome;
use lode_bench::pulse::{self, DemoFlags, GenFlags, LoadFlags, RunFlags};

use crate::Done;
use crate::bench::stop_on_signals;
use crate::failure::Failure;

/// Printed below `lode pulse --help`.
pub const EXAMPLES_HELP: &str = "Examples:
  lode pulse --demo
  lode pulse gen --shape utxo --size 10G --out utxo.pulse
  lode pulse load --stream utxo.pulse --db utxo.db
  lode pulse run --db utxo.db --interval 0 --rounds 5 --memory-limit 1G
  lode pulse run --db utxo.db --mode mread --threads 16 --read-only --drop-caches --interval 0
  lode pulse run --db utxo.db --mode batch --html pulse.html --json > pulse.json";

/// The command line of the verb.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, arg_required_else_help = true)]
pub struct Pulse {
    #[command(subcommand)]
    step: Option<Step>,
    #[command(flatten)]
    demo: DemoFlags,
}

/// The steps of a pulse.
#[derive(Debug, Subcommand)]
enum Step {
    /// Describe a key stream: which keys there are, what a round reads, adds and deletes
    Gen(GenFlags),
    /// Make the database of a stream; goes on where it was stopped
    Load(LoadFlags),
    /// Run rounds of reads, additions and deletions, every read checked
    Run(Box<RunFlags>),
}

/// Runs the step.
pub fn run(pulse: &Pulse) -> Done {
    if let Some(Step::Gen(flags)) = &pulse.step {
        let text = pulse::generate(flags)?;
        return io::stdout().write_all(text.as_bytes()).map_err(Failure::output);
    }
    let stop = Arc::new(AtomicBool::new(false));
    stop_on_signals(&stop)
        .map_err(|error| Failure::Error(format!("signals cannot be caught: {error}")))?;
    let outcome = match &pulse.step {
        Some(Step::Gen(_)) | None => pulse::demo(&pulse.demo, &stop)?,
        Some(Step::Load(flags)) => pulse::load(flags, &stop)?,
        Some(Step::Run(flags)) => pulse::run(flags, &stop)?,
    };
    match outcome {
        Outcome::Complete => Ok(()),
        Outcome::Stopped => Err(Failure::Stopped),
    }
}
