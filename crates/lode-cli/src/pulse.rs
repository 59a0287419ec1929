//! `lode pulse`: the flags go straight to the library. The first Ctrl-C ends a
//! load or a run in order, what is done being kept and reported; a second one
//! ends it at once.

use std::fs::File;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use clap::{Args, Subcommand};
use lode_bench::pulse::{self, DemoFlags, ExportFlags, GenFlags, LoadFlags, RunFlags};
use lode_bench::{BenchError, Outcome};

use crate::Done;
use crate::bench::stop_on_signals;
use crate::failure::Failure;
use crate::records::write_length_prefixed;

/// Printed below `lode pulse --help`.
pub const EXAMPLES_HELP: &str = "Examples:
  lode pulse --demo
  lode pulse gen --shape utxo --size 10G --out utxo.pulse
  lode pulse load --stream utxo.pulse --db utxo.db
  lode pulse run --db utxo.db --interval 0 --rounds 5 --memory-limit 1G
  lode pulse run --db utxo.db --mode mread --threads 16 --read-only --drop-caches --interval 0
  lode pulse run --db utxo.db --mode batch --html pulse.html --json > pulse.json
  lode pulse export --stream utxo.pulse --part reads --round 3 --out reads";

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
    /// Write a stream's records, length-prefixed, for other programs
    Export(ExportFlags),
}

/// Runs the step.
pub fn run(pulse: &Pulse) -> Done {
    match &pulse.step {
        Some(Step::Gen(flags)) => {
            let text = pulse::generate(flags)?;
            io::stdout().write_all(text.as_bytes()).map_err(Failure::output)
        }
        Some(Step::Export(flags)) => export(flags),
        Some(Step::Load(flags)) => until_stopped(|stop| pulse::load(flags, stop)),
        Some(Step::Run(flags)) => until_stopped(|stop| pulse::run(flags, stop)),
        None => until_stopped(|stop| pulse::demo(&pulse.demo, stop)),
    }
}

fn until_stopped(work: impl FnOnce(&AtomicBool) -> Result<Outcome, BenchError>) -> Done {
    let stop = Arc::new(AtomicBool::new(false));
    stop_on_signals(&stop)
        .map_err(|error| Failure::Error(format!("signals cannot be caught: {error}")))?;
    match work(&stop)? {
        Outcome::Complete => Ok(()),
        Outcome::Stopped => Err(Failure::Stopped),
    }
}

fn export(flags: &ExportFlags) -> Done {
    match &flags.out {
        Some(path) => {
            let file = File::create(path).map_err(Failure::io(path))?;
            let mut out = BufWriter::with_capacity(1 << 16, file);
            pulse::export(flags, |key, value| write_length_prefixed(&mut out, key, value))?;
            out.flush().map_err(Failure::io(path))
        }
        None if io::stdout().is_terminal() => Err(Failure::Usage(
            "the records are binary: send them into a pipe, or name a file with --out".to_string(),
        )),
        None => {
            let mut out = BufWriter::with_capacity(1 << 16, io::stdout().lock());
            pulse::export(flags, |key, value| write_length_prefixed(&mut out, key, value))?;
            out.flush().map_err(Failure::output)
        }
    }
}
