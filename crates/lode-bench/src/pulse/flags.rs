//! Flags of `lode pulse` as they are typed.

use std::path::PathBuf;

use crate::numbers::{parse_bytes, parse_count};
use crate::pulse::reads::Mode;
use crate::pulse::stream::Shape;

/// Seconds between two rounds: the ten minutes between two blocks.
const INTERVAL_DEFAULT: &str = "10m";

/// `lode pulse gen`
#[derive(Clone, Debug, clap::Args)]
pub struct GenFlags {
    /// Where to write the stream; the file must not exist
    #[arg(long, value_name = "FILE")]
    pub out: PathBuf,
    /// Which keys there are, and which of them are read and deleted
    #[arg(long, value_enum, default_value_t = Shape::Classic)]
    pub shape: Shape,
    /// Size of the database: keys and values of its load, about, in bytes, K, M or G [default: 10G]
    #[arg(long, value_parser = parse_bytes, value_name = "BYTES", conflicts_with = "num")]
    pub size: Option<u64>,
    /// Size of the database in entries; K, M and G stand for thousands, millions and billions
    #[arg(long, value_parser = parse_count, value_name = "N")]
    pub num: Option<u64>,
    /// Another seed gives other keys
    #[arg(long, default_value_t = 1, value_name = "S")]
    pub seed: u64,
    /// Keys that a round reads
    #[arg(long, default_value = "90000", value_parser = parse_count, value_name = "N")]
    pub reads: u64,
    /// Entries that a round writes
    #[arg(long, default_value = "210000", value_parser = parse_count, value_name = "N")]
    pub adds: u64,
    /// Keys that a round deletes [default: 30000; in the shape utxo, those that are read]
    #[arg(long, value_parser = parse_count, value_name = "N")]
    pub deletes: Option<u64>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// What of a stream is written out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Part {
    /// The entries of the load, in the order in which they are written.
    Load,
    /// The keys that a round reads, with the values that must be there.
    Reads,
    /// The entries that a round adds.
    Adds,
    /// The keys that a round deletes, with empty values.
    Deletes,
}

/// `lode pulse export`
#[derive(Clone, Debug, clap::Args)]
pub struct ExportFlags {
    /// The stream; lode pulse gen makes one
    #[arg(long, value_name = "FILE")]
    pub stream: PathBuf,
    /// What of it to write
    #[arg(long, value_enum)]
    pub part: Part,
    /// Of which round, from 1 on; not for the load [default: 1]
    #[arg(long, value_parser = parse_count, value_name = "N")]
    pub round: Option<u64>,
    /// Where to write the records [default: standard output]
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
}

/// What `load` and `run` have in common.
#[derive(Clone, Debug, clap::Args)]
pub struct Surroundings {
    /// Directory of the database
    #[arg(long, value_name = "DIR")]
    pub db: PathBuf,
    /// Put lode into a control group with this much memory, page cache included
    #[arg(long, value_parser = parse_memory_limit, value_name = "BYTES")]
    pub memory_limit: Option<u64>,
    /// Open the database with the options in this file
    #[arg(long, value_name = "FILE")]
    pub options: Option<PathBuf>,
    /// Size of the database's block cache [default: the engine's, or the file's]
    #[arg(long, value_parser = parse_bytes, value_name = "BYTES")]
    pub cache_size: Option<u64>,
    /// Read tables past the page cache, many blocks at once
    #[arg(long)]
    pub direct: bool,
    /// Tell lode top how it is doing: a small file in the database, written each second
    #[arg(long)]
    pub status: bool,
    /// Print one JSON document on standard output; all else goes to standard error
    #[arg(long)]
    pub json: bool,
    /// Print results only
    #[arg(long)]
    pub quiet: bool,
}

/// `lode pulse load`
#[derive(Clone, Debug, clap::Args)]
pub struct LoadFlags {
    /// The stream to make the database of; lode pulse gen makes one
    #[arg(long, value_name = "FILE")]
    pub stream: PathBuf,
    #[command(flatten)]
    #[allow(missing_docs, reason = "each flag of it tells what it is")]
    pub surroundings: Surroundings,
    /// Compact everything at the end
    #[arg(long)]
    pub compact: bool,
}

/// `lode pulse run`
#[derive(Clone, Debug, clap::Args)]
pub struct RunFlags {
    #[command(flatten)]
    #[allow(missing_docs, reason = "each flag of it tells what it is")]
    pub surroundings: Surroundings,
    /// How the keys of a round are read
    #[arg(long, value_enum, default_value_t = Mode::Sort)]
    pub mode: Mode,
    /// Threads that read in the modes mread and batch, 1 to 64 [default: 8 in mread, else 1]
    #[arg(long, value_parser = clap::value_parser!(u8).range(1..=64), value_name = "N")]
    pub threads: Option<u8>,
    /// Keys of one call in the mode batch [default: 1024]
    #[arg(long, value_parser = parse_count, value_name = "N")]
    pub batch_keys: Option<u64>,
    /// Rounds to run
    #[arg(long, default_value = "10", value_parser = parse_count, value_name = "N")]
    pub rounds: u64,
    /// Time from the start of one round to that of the next: 600, 90s, 10m or 1h; 0 = at once
    #[arg(long, default_value = INTERVAL_DEFAULT, value_parser = parse_seconds, value_name = "TIME")]
    pub interval: u64,
    /// Only read; the database is opened for reading and nothing in it changes
    #[arg(long, conflicts_with = "status")]
    pub read_only: bool,
    /// Make the writes of a round durable before it counts as done
    #[arg(long, conflicts_with = "read_only")]
    pub sync: bool,
    /// Take the database out of the page cache before each round
    #[arg(long)]
    pub drop_caches: bool,
    /// Begin at once, while compactions from before may still be going on
    #[arg(long)]
    pub no_wait: bool,
    /// Print how long the single reads (calls in the mode batch) took
    #[arg(long)]
    pub histogram: bool,
    /// Write a page about the run, of one file
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
}

/// `lode pulse --demo`
#[derive(Clone, Debug, Default, clap::Args)]
pub struct DemoFlags {
    /// Make a small database, run every mode on it, explain the result and clean up: some seconds
    #[arg(long)]
    pub demo: bool,
    /// Directory for the demo's files, which are removed at the end [default: a temporary one]
    #[arg(long, value_name = "DIR", requires = "demo")]
    pub dir: Option<PathBuf>,
}

/// Smaller limits leave no room for the program itself.
const MEMORY_LIMIT_MIN: u64 = 64 << 20;

fn parse_memory_limit(text: &str) -> Result<u64, String> {
    match parse_bytes(text)? {
        bytes if bytes < MEMORY_LIMIT_MIN => Err("at least 64M are needed to run at all".into()),
        bytes => Ok(bytes),
    }
}

/// Reads a time: seconds, or a number with s, m or h.
fn parse_seconds(text: &str) -> Result<u64, String> {
    let (digits, unit) = match text.strip_suffix(['s', 'm', 'h']) {
        Some(digits) if text.ends_with('h') => (digits, 3_600),
        Some(digits) if text.ends_with('m') => (digits, 60),
        Some(digits) => (digits, 1),
        None => (text, 1),
    };
    let number: Option<u64> = digits.parse().ok();
    number
        .and_then(|n| n.checked_mul(unit))
        .ok_or_else(|| format!("{text:?} is not a time; write seconds, or a number with s, m or h"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Times have units, and nonsense is refused.
    #[test]
    fn times_are_read() {
        let read = |text| parse_seconds(text).ok();
        assert_eq!(["0", "600", "90s", "10m", "1h"].map(read), [0, 600, 90, 600, 3_600].map(Some));
        assert_eq!(["", "m", "ten", "-1", "1.5m", "99999999999999999h"].map(read), [None; 6]);
        assert!(parse_memory_limit("1M").is_err());
        assert_eq!(parse_memory_limit("1G"), Ok(1 << 30));
    }
}
