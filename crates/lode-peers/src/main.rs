//! Compares Lodestore with other key-value stores: one program, one run, one key
//! stream.
//!
//! What is typed (`cli`) becomes a plan (`schedule`), whose jobs the parent gives
//! to children one at a time (`parent`, `protocol`). A child (`worker`) drives one
//! engine (`engine`, `adapters`) set up as its lane says (`lanes`) through
//! workloads (`workload`, `workloads`) on the key stream (`stream`), and measures
//! (`meter`); beside it the parent watches how fast the machine's memory is
//! (`gauge`). What all of them tell becomes lines (`results`, `statistics`), and
//! these, beside what they should be (`targets`), a table, a document, a page
//! and, from documents, Markdown (`report`).
//!
//! As in the engine, a module uses only modules declared above it.

mod failure;

// Engines.
mod engine;
mod engines;
mod lanes;
mod adapters;

// What is done with them.
mod stream;
mod digest;
mod meter;
mod workload;
mod workloads;

// One of them, in a process of its own.
mod protocol;
mod worker;

// All of them.
mod statistics;
mod gauge;
mod results;
mod targets;
mod schedule;
mod parent;
mod report;
mod cli;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Parser as _, ValueEnum as _};

use crate::cli::{Cli, RunFlags, Verb};
use crate::engine::Result;
use crate::engines::EngineKind;
use crate::failure::Failure;
use crate::lanes::Lane;
use crate::report::{Head, Told};
use crate::stream::Shape;
use crate::workload::Workload;

fn main() -> ExitCode {
    let done = match Cli::parse().verb {
        Verb::Run(flags) => run(&flags),
        Verb::Tables { beside, files } => tables(beside, &files),
        Verb::Worker => worker::run(),
        Verb::List => {
            print!("{}", list());
            Ok(())
        }
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("lode-peers: {failure}");
            ExitCode::from(failure.exit_code())
        }
    }
}

fn run(flags: &RunFlags) -> Result<()> {
    let plan = flags.plan()?;
    let command = std::env::args().collect::<Vec<String>>().join(" ");
    let head = Head::new(&plan, command);
    let collected = parent::run(&plan, &flags.place())?;
    let lines = results::lines(&collected.samples, plan.rounds);
    let parent::Collected { samples, gaps, walks } = collected;
    let told = Told { head, lines, gaps, samples, walks };
    print!("{}", report::table::text(&told));
    if let Some(path) = &flags.json {
        write(path, &report::document::text(&told))?;
    }
    if let Some(path) = &flags.html {
        write(path, &report::page::html(&told))?;
    }
    Ok(())
}

/// Prints a section for each of `files`, `beside` each other if so, or nothing if one
/// cannot be read.
fn tables(beside: bool, files: &[PathBuf]) -> Result<()> {
    let parsed = |path: &PathBuf| {
        let text = std::fs::read_to_string(path).map_err(Failure::io(path))?;
        report::document::parse(&text).map_err(Failure::of(&path.display().to_string()))
    };
    let runs = files.iter().map(parsed).collect::<Result<Vec<Told>>>()?;
    let text = match beside {
        true => report::markdown::beside(&runs),
        false => runs.iter().map(report::markdown::text).collect::<Vec<String>>().join("\n"),
    };
    print!("{text}");
    Ok(())
}

fn write(path: &Path, text: &str) -> Result<()> {
    std::fs::write(path, text).map_err(Failure::io(path))
}

fn list() -> String {
    let mut text = String::from("Engines\n");
    for &engine in EngineKind::value_variants() {
        let version = match engine.is_compiled() {
            true => adapters::version(engine),
            false => "not built in".to_string(),
        };
        text += &format!("  {:<18} {version}\n", engine.name());
    }
    text += "\nLanes\n";
    for &lane in Lane::value_variants() {
        text += &named(lane.name(), lane.to_possible_value());
    }
    text += "\nWorkloads, in their order\n";
    for &workload in Workload::value_variants() {
        text += &named(&workload.name(), workload.to_possible_value());
    }
    text += "\nShapes\n";
    for &shape in Shape::value_variants() {
        text += &named(shape.name(), shape.to_possible_value());
    }
    text
}

fn named(name: &str, value: Option<clap::builder::PossibleValue>) -> String {
    let help = value.and_then(|value| value.get_help().map(ToString::to_string));
    format!("  {name:<18} {}\n", help.unwrap_or_default())
}
