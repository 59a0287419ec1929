//! The pulse of a block chain's node as a workload: every ten minutes it reads
//! 90,000 keys of a large database, writes 210,000 and deletes 30,000.
//!
//! A key stream (`stream`) decides everything: what is loaded (`load`), and
//! what each round (`run`) reads, adds and deletes (`plan`). So every read can
//! be compared with what must be there, and nothing large is kept beside the
//! database.

// What there is, computed from a seed. Programs that drive another engine with
// the same keys use `Stream`, `Planner` and `Entries` too.
mod ages;
mod stream;
mod entry;
mod plan;

// What the user says.
mod flags;
mod export;

// What surrounds the database.
pub mod cgroup;
pub mod pages;
mod watch;
mod status;
mod open;
mod state;

// Doing it, and what the user sees.
mod load;
mod reads;
mod report;
mod page;
mod run;
mod demo;

use std::io::IsTerminal;

pub use demo::demo;
pub use entry::Entries;
pub use export::export;
pub use flags::{DemoFlags, ExportFlags, GenFlags, LoadFlags, RunFlags};
pub use load::load;
pub use plan::{Planner, Round};
pub use run::run;
pub use stream::{Shape, Stream};

use crate::error::BenchError;
use crate::numbers::parse_bytes;
use crate::printer::Voice;
use crate::pulse::entry::entries_of_bytes;
use crate::pulse::flags::Surroundings;

/// Size of the database that `gen` describes if nothing is said.
const SIZE_DEFAULT: &str = "10G";
/// Deletions of a round, but for the shape utxo.
const DELETES_DEFAULT: u64 = 30_000;

/// `lode pulse gen`: writes the file of a stream, and returns what to print.
pub fn generate(flags: &GenFlags) -> Result<String, BenchError> {
    let stream = stream_of(flags);
    stream.check()?;
    stream.create_file(&flags.out)?;
    if flags.json {
        let text = serde_json::to_string(&stream).expect("plain fields serialize");
        return Ok(text + "\n");
    }
    let out = flags.out.display();
    let Stream { reads, adds, deletes, .. } = stream;
    let mut text = format!(
        "{out}: {}\na round reads {reads} keys, adds {adds} and deletes {deletes}\n",
        load::summary(&stream)
    );
    if stream.shape == Shape::Utxo {
        let own = reads * ages::SAME_BLOCK / (ages::OUTPUTS - ages::SAME_BLOCK);
        text += &format!(
            "some {own} more outputs a round are spent in their own block and never get into the \
             database\n"
        );
    }
    Ok(text + &format!("next: lode pulse load --stream {out} --db DIR\n"))
}

fn stream_of(flags: &GenFlags) -> Stream {
    let size = || parse_bytes(SIZE_DEFAULT).expect("the default is a size");
    let deletes = match flags.shape {
        Shape::Utxo => flags.reads,
        Shape::Classic | Shape::Sequential => DELETES_DEFAULT,
    };
    Stream {
        shape: flags.shape,
        seed: flags.seed,
        entries: flags.num.unwrap_or_else(|| entries_of_bytes(flags.size.unwrap_or_else(size))),
        reads: flags.reads,
        adds: flags.adds,
        deletes: flags.deletes.unwrap_or(deletes),
    }
}

/// Where and how much is printed.
fn output_of(surroundings: &Surroundings) -> Voice {
    let Surroundings { json, quiet, .. } = *surroundings;
    let progress = std::io::stderr().is_terminal() && !quiet;
    Voice { json, quiet, progress }
}
