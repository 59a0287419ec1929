//! `lode gen`: records to load, made from a seed. Memory stays flat whatever
//! their number.

use std::fs::File;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::{Path, PathBuf};

use clap::Subcommand;
use lode_bench::ledger::Ledger;
use lode_bench::parse_count;

use crate::Done;
use crate::failure::Failure;
use crate::records::write_length_prefixed;

/// What can be made.
#[derive(Debug, Subcommand)]
pub enum Generate {
    /// Block headers and unspent outputs like those of a public block chain, length-prefixed
    Blocks {
        /// How many records; K, M and G stand for thousands, millions and billions
        #[arg(long, value_parser = parse_count, value_name = "N")]
        count: u64,
        /// The same seed gives the same records
        #[arg(long, default_value_t = 1, value_name = "S")]
        seed: u64,
        /// Where to write them [default: standard output]
        #[arg(long, value_name = "FILE")]
        out: Option<PathBuf>,
    },
}

/// Makes records.
pub fn run(what: &Generate) -> Done {
    let Generate::Blocks { count, seed, out } = what;
    match out {
        Some(path) => blocks_into_file(*count, *seed, path),
        None if io::stdout().is_terminal() => Err(Failure::Usage(
            "the records are binary: send them into a pipe, or name a file with --out".to_string(),
        )),
        None => blocks(*count, *seed, BufWriter::with_capacity(1 << 16, io::stdout().lock()))
            .map_err(Failure::output),
    }
}

fn blocks_into_file(count: u64, seed: u64, path: &Path) -> Done {
    let file = File::create(path).map_err(Failure::io(path))?;
    blocks(count, seed, BufWriter::with_capacity(1 << 16, file)).map_err(Failure::io(path))
}

fn blocks(count: u64, seed: u64, mut out: impl Write) -> io::Result<()> {
    let mut ledger = Ledger::new(seed);
    let (mut key, mut value) = (Vec::new(), Vec::new());
    for _ in 0..count {
        ledger.next(&mut key, &mut value);
        write_length_prefixed(&mut out, &key, &value)?;
    }
    out.flush()
}
