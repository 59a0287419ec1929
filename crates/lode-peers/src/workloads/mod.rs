//! What each workload does: one file a family.

mod write;
mod read;
mod scan;
mod beside;
mod pulse;

use std::time::Instant;

use lode_bench::histogram::Histogram;

use crate::digest::Digest;
use crate::engine::{Changes, Engine, Result};
use crate::stream::Stream;
use crate::workload::Workload;

pub use pulse::load as load_pulse;

/// What a workload works with.
#[derive(Clone, Copy)]
pub struct Run<'a> {
    /// The open database.
    pub engine: &'a dyn Engine,
    /// Keys and values.
    pub stream: &'a Stream,
    /// Changes of a batch where writes need not be single; 1: they are.
    pub batch_changes: usize,
    /// Threads that look keys up.
    pub threads: u64,
    /// How many they look up.
    pub reads: u64,
    /// Time each call.
    pub latencies: bool,
}

/// What a workload did.
#[derive(Debug, Default)]
pub struct Done {
    /// Entries written, deleted, looked up or read.
    pub operations: u64,
    /// Bytes of keys and values that were written.
    pub user_bytes: u64,
    /// What was found.
    pub digest: Option<Digest>,
    /// Time of each call.
    pub latencies: Histogram,
    /// Puts of the writer beside the readers.
    pub puts_beside: Option<u64>,
    /// What was written, if it was made beforehand. It is kept until the engine is
    /// quiet: that the allocator gives its pages back is no work of an engine.
    pub written: Changes,
}

/// What is drawn for: each has numbers of its own. Readers beside a writer add
/// the number of their thread.
#[derive(Clone, Copy)]
enum Purpose {
    Fill = 1,
    Overwrite = 2,
    Delete = 3,
    Seek = 4,
    ScanDeleted = 5,
    Read = 1_000,
    Missing = 2_000,
    Zipf = 3_000,
    MultiGet = 4_000,
    Beside = 5_000,
}

/// Runs `workload`, which calls `begin` when everything is prepared.
pub fn run(workload: Workload, run: &Run<'_>, begin: &mut dyn FnMut()) -> Result<Done> {
    use Workload::*;
    match workload {
        FillSeq => write::fill_in_order(run),
        FillRandom => write::fill_at_random(run),
        Overwrite => write::overwrite(run),
        DeleteSeq => write::delete_in_order(run),
        DeleteRandom => write::delete_at_random(run),
        FillSync => write::fill_synced(run),
        Fill100K => write::fill_large(run),
        ReadRandom => read::random(run),
        ReadMissing => read::missing(run),
        ReadZipf => read::popular(run),
        MultiGet => read::many(run),
        ReadSeq | ReadReverse => scan::everything(run, workload),
        SeekRandom => scan::from_random_keys(run),
        ScanDeleted => scan::after_deletes(run),
        ReadWhileWriting2 => beside::read(run, 2, begin),
        ReadWhileWriting8 => beside::read(run, 8, begin),
        PulseRead => pulse::read(run, begin),
        PulseWrite => pulse::write(run, begin),
    }
}

/// Times calls if that is wanted: looking at the clock costs as much as a fast
/// engine's put.
struct Timer {
    is_on: bool,
    latencies: Histogram,
}

impl Timer {
    fn new(run: &Run<'_>) -> Timer {
        Timer { is_on: run.latencies, latencies: Histogram::default() }
    }

    #[inline]
    fn time<T>(&mut self, call: impl FnOnce() -> T) -> T {
        if !self.is_on {
            return call();
        }
        let start = Instant::now();
        let result = call();
        self.latencies.add(start.elapsed());
        result
    }
}
