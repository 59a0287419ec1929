//! The command line: what is typed, and what is checked before anything runs.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use clap::{Args, Parser, Subcommand, ValueEnum};
use lode_bench::{bytes_text, parse_bytes, parse_count};

use crate::engine::Result;
use crate::engines::EngineKind;
use crate::failure::Failure;
use crate::lanes::Lane;
use crate::schedule::Plan;
use crate::stream::Shape;
use crate::workload::Workload;

/// The largest number that sixteen decimal digits can hold, and one.
const ENTRIES_MAX: u64 = 10_000_000_000_000_000;
/// Beyond this the terms of the statistics underflow.
const ROUNDS_MAX: usize = 1_000;
const THREADS_MAX: u64 = 256;
/// Data is at least so many times as large as a limit on memory.
const MEMORY_MULTIPLE: u64 = 8;
/// Engines need something to work in: with half of it some are killed.
const MEMORY_MIN: u64 = 64 << 20;

const EXIT_CODES: &str = "Exit codes:
  0  every engine found the same
  1  two engines found different things
  2  the command line is wrong; nothing was done
  3  an error";

/// Compares Lodestore with other key-value stores: one program, one run, one
/// key stream.
#[derive(Debug, Parser)]
#[command(name = "lode-peers", version, after_help = EXIT_CODES)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub verb: Verb,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Compares engines, and prints a table.
    Run(Box<RunFlags>),
    /// Prints Markdown, for a page of results, of what runs wrote by --json.
    Tables {
        /// One table of the ratios of all, side by side.
        #[arg(long)]
        beside: bool,
        /// What they wrote; each gets a section.
        #[arg(required = true)]
        files: Vec<PathBuf>,
    },
    /// Does one job of a comparison, which it reads from standard input.
    #[command(hide = true)]
    Worker,
    /// Lists engines with their versions, lanes, workloads and sizes.
    List,
}

/// What is compared, and where the results go.
#[derive(Debug, Args)]
pub struct RunFlags {
    /// How engines are set up.
    #[arg(long, value_enum, default_value_t = Lane::Equal)]
    lane: Lane,
    /// What is measured; `lode-peers list` says what each does. Loads that it
    /// needs are run too. [default: all]
    #[arg(long, value_enum, value_delimiter = ',')]
    workloads: Vec<Workload>,
    /// Bytes of keys and values.
    #[arg(long, value_enum, value_delimiter = ',', default_value = "16-100")]
    shapes: Vec<Shape>,
    /// Entries of each database.
    #[arg(long, value_parser = parse_count, default_value = "1M")]
    entries: u64,
    /// How often everything is repeated; intervals of 95 % need six.
    #[arg(long, default_value_t = 6)]
    rounds: usize,
    /// Engines beside Lodestore. [default: all that this program was built with]
    #[arg(long, value_enum, value_delimiter = ',')]
    engines: Vec<EngineKind>,
    /// Databases are made in a new directory below this one, and removed.
    /// [default: the system's directory for temporary files]
    #[arg(long)]
    directory: Option<PathBuf>,
    /// Another seed gives other keys, values and orders.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Threads of readrandom, readmissing, readzipf and multiget.
    #[arg(long, default_value_t = 1)]
    threads: u64,
    /// Lookups of each workload that looks keys up, or seeks, at random but for
    /// the pulse. [default: as many as entries]
    #[arg(long, value_parser = parse_count)]
    reads: Option<u64>,
    /// Time each call. Costs as much as a fast engine's put.
    #[arg(long)]
    latencies: bool,
    /// Memory of each engine's process, page cache included, as in 1G; at least
    /// 64M. Entries must be eight times as large.
    #[arg(long, value_parser = parse_bytes)]
    memory_limit: Option<u64>,
    /// Write everything to this file as JSON.
    #[arg(long)]
    pub json: Option<PathBuf>,
    /// Write a page with plots to this file.
    #[arg(long)]
    pub html: Option<PathBuf>,
}

impl RunFlags {
    /// Where databases are made.
    pub fn place(&self) -> PathBuf {
        self.directory.clone().unwrap_or_else(std::env::temp_dir)
    }

    /// What to compare.
    /// # Errors: `Usage` names the flag and its value.
    pub fn plan(&self) -> Result<Plan> {
        self.check()?;
        let workloads = match self.workloads.as_slice() {
            [] => Workload::value_variants().to_vec(),
            some => some.to_vec(),
        };
        let plan = Plan {
            lane: self.lane,
            engines: self.engines()?,
            workloads,
            shapes: self.shapes.clone(),
            entries: self.entries,
            rounds: self.rounds,
            seed: self.seed,
            threads: self.threads,
            reads: self.reads.unwrap_or(self.entries),
            latencies: self.latencies,
            memory_limit: self.memory_limit,
        };
        plan.shapes.iter().try_for_each(|&shape| self.check_memory(shape))?;
        Ok(plan)
    }

    /// Lodestore twice, then its peers.
    fn engines(&self) -> Result<Vec<EngineKind>> {
        if let Some(absent) = self.engines.iter().find(|engine| !engine.is_compiled()) {
            let compiled: Vec<&str> = EngineKind::compiled().map(EngineKind::name).collect();
            return usage(format!(
                "--engines: this program was built without {}, with {}; ./scripts/compare builds \
                 it with all",
                absent.name(),
                compiled.join(", ")
            ));
        }
        let ours = [EngineKind::Lodestore, EngineKind::LodestoreAgain];
        let peers: BTreeSet<EngineKind> = match self.engines.as_slice() {
            [] => EngineKind::compiled().collect(),
            some => some.iter().copied().collect(),
        };
        Ok(ours.into_iter().chain(peers.into_iter().filter(|peer| !ours.contains(peer))).collect())
    }

    fn check(&self) -> Result<()> {
        let RunFlags { entries, rounds, threads, .. } = *self;
        if !(1..=ENTRIES_MAX).contains(&entries) {
            return usage(format!("--entries is {entries}; it must be 1 to {ENTRIES_MAX}"));
        }
        if !(1..=ROUNDS_MAX).contains(&rounds) {
            return usage(format!("--rounds is {rounds}; it must be 1 to {ROUNDS_MAX}"));
        }
        if !(1..=THREADS_MAX).contains(&threads) {
            return usage(format!("--threads is {threads}; it must be 1 to {THREADS_MAX}"));
        }
        if self.reads == Some(0) {
            return usage("--reads is 0; it must be 1 or more".to_string());
        }
        let outputs = [("--json", &self.json), ("--html", &self.html)];
        for (flag, path) in outputs {
            // Found out now, not after hours.
            let Some(path) = path else { continue };
            let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
            if !parent.unwrap_or(Path::new(".")).is_dir() || path.is_dir() {
                return usage(format!("{flag} is {}, where no file can be", path.display()));
            }
        }
        Ok(())
    }

    /// A limit must be a limit: data has to be several times as large.
    fn check_memory(&self, shape: Shape) -> Result<()> {
        let Some(limit) = self.memory_limit else { return Ok(()) };
        if limit < MEMORY_MIN {
            let least = bytes_text(MEMORY_MIN);
            return usage(format!(
                "--memory-limit is {}; it must be {least} or more",
                bytes_text(limit)
            ));
        }
        let bytes = self.entries.saturating_mul(shape.stored_bytes());
        let wanted = limit.saturating_mul(MEMORY_MULTIPLE);
        if bytes < wanted {
            return usage(format!(
                "--memory-limit is {}, but {} entries of {} have only {}; use --entries {} or more",
                bytes_text(limit),
                self.entries,
                shape.name(),
                bytes_text(bytes),
                wanted.div_ceil(shape.stored_bytes())
            ));
        }
        Ok(())
    }
}

fn usage<T>(what: String) -> Result<T> {
    Err(Failure::Usage(what))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(flags: &[&str]) -> Result<Plan> {
        let words = ["lode-peers", "run"].into_iter().chain(flags.iter().copied());
        let cli = Cli::try_parse_from(words).expect("the flags are well formed");
        let Verb::Run(flags) = cli.verb else { panic!("{:?}", cli.verb) };
        flags.plan()
    }

    /// clap's own checks of the definitions.
    #[test]
    fn definitions_are_consistent() {
        <Cli as clap::CommandFactory>::command().debug_assert();
    }

    /// Lodestore is always there, twice, before its peers, and none comes twice.
    #[test]
    fn lodestore_is_always_compared() {
        let ours = [EngineKind::Lodestore, EngineKind::LodestoreAgain];
        for flags in [&["--engines", "lodestore,lodestore"][..], &[]] {
            let engines = plan(flags).expect("a plan").engines;
            assert_eq!(engines[..2], ours);
            let unique: BTreeSet<EngineKind> = engines.iter().copied().collect();
            assert_eq!(unique.len(), engines.len());
        }
        let all = plan(&[]).expect("a plan");
        assert_eq!(all.workloads, Workload::value_variants());
        assert_eq!(all.engines.len(), EngineKind::compiled().count());
    }

    /// What makes no sense is refused before anything runs, by name and value.
    #[test]
    fn nonsense_is_refused() {
        for (flags, part) in [
            (&["--entries", "0"][..], "--entries is 0"),
            (&["--rounds", "0"], "--rounds is 0"),
            (&["--rounds", "1001"], "--rounds is 1001"),
            (&["--threads", "0"], "--threads is 0"),
            (&["--reads", "0"], "--reads is 0"),
            (&["--json", "/nowhere/x.json"], "--json is /nowhere/x.json"),
            (&["--html", "/"], "--html is /"),
            (&["--memory-limit", "1K", "--entries", "1G"], "must be 64.0 MiB"),
            (&["--memory-limit", "1G", "--entries", "1M"], "use --entries 130150525 or more"),
        ] {
            match plan(flags) {
                Err(Failure::Usage(text)) => assert!(text.contains(part), "{text}"),
                other => panic!("{flags:?} gave {other:?}"),
            }
        }
        let shapes = ["--memory-limit", "64M", "--entries", "5M", "--shapes", "16-1k"];
        assert!(plan(&shapes).is_ok());
        assert!(plan(&["--memory-limit", "64M", "--entries", "5M"]).is_err());
    }

    /// There are as many lookups as entries unless another number is asked for.
    #[test]
    fn lookups_are_counted_apart() {
        let reads = |flags: &[&str]| plan(flags).expect("a plan").reads;
        assert_eq!(reads(&["--entries", "5K"]), 5_000);
        assert_eq!(reads(&["--entries", "5K", "--reads", "20K"]), 20_000);
    }

    /// An engine that is not built in is refused, and what is there is told.
    #[test]
    fn absent_engines_are_refused() {
        let Some(absent) = EngineKind::value_variants().iter().find(|engine| !engine.is_compiled())
        else {
            return;
        };
        match plan(&["--engines", absent.name()]) {
            Err(Failure::Usage(text)) => {
                assert!(text.contains(&format!("built without {}", absent.name())), "{text}");
                assert!(text.contains("lodestore"), "{text}");
            }
            other => panic!("{other:?}"),
        }
    }
}
