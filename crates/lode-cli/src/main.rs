//! The program `lode`: benchmarks and tools for Lodestore databases.
//!
//! A verb is a file: `adopt`, `bench`, `db/*`, `export`, `generate`, `pulse`, `top`, `completions`. This one reads the command
//! line, runs a verb and turns what came of it into an exit code.

mod failure;
mod text;
mod output;
mod records;
mod progress;

mod adopt;
mod bench;
mod completions;
mod db;
mod export;
mod generate;
mod pulse;
mod top;

use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};

use crate::failure::Failure;

/// What every verb returns.
type Done = Result<(), Failure>;

/// Benchmarks and tools for Lodestore databases.
#[derive(Debug, Parser)]
#[command(name = "lode", version, propagate_version = true, max_term_width = 100)]
#[command(after_help = failure::EXIT_CODES_HELP)]
struct Lode {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Measure the engine with the benchmarks of LevelDB's and RocksDB's db_bench
    #[command(after_help = lode_bench::benchmarks_help())]
    Bench(Box<bench::Bench>),
    /// Make a LevelDB database one of ours, in place, or go back
    #[command(after_help = adopt::HELP)]
    Adopt(adopt::Adopt),
    /// Read and change a database
    Db(db::Database),
    /// Print what one table's file holds, and check it: lode db dump-table
    Sst(db::Short<db::dump::DumpTable>),
    /// Print what one segment of the log holds: lode db dump-log
    Wal(db::Short<db::dump::DumpLog>),
    /// Print the changes that a manifest records: lode db dump-manifest
    Manifest(db::Short<db::dump_manifest::DumpManifest>),
    /// Write what a database holds for another engine
    #[command(after_help = export::HELP)]
    Export(export::Export),
    /// Make records to load
    #[command(subcommand)]
    Gen(generate::Generate),
    /// Run the workload of a block chain's node on a large database
    #[command(after_help = pulse::EXAMPLES_HELP)]
    Pulse(Box<pulse::Pulse>),
    /// Watch how a database is doing
    #[command(after_help = top::HELP)]
    Top(top::Top),
    /// Print a script that completes verbs and flags in a shell
    Completions(completions::Completions),
    /// Write manual pages
    Man(completions::Man),
}

fn main() -> ExitCode {
    let line = Lode::try_parse().unwrap_or_else(|error| bench::explain(error).exit());
    let done = match line.verb {
        Verb::Bench(bench) => bench::run(&bench),
        Verb::Adopt(adopt) => adopt::run(&adopt),
        Verb::Db(database) => db::run(&database),
        Verb::Sst(table) => db::sst(&table),
        Verb::Wal(log) => db::wal(&log),
        Verb::Manifest(manifest) => db::manifest(&manifest),
        Verb::Export(export) => export::run(&export),
        Verb::Gen(what) => generate::run(&what),
        Verb::Pulse(pulse) => pulse::run(&pulse),
        Verb::Top(top) => top::run(&top),
        Verb::Completions(shell) => completions::completions(&shell, Lode::command()),
        Verb::Man(man) => completions::man(&man, Lode::command()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}
