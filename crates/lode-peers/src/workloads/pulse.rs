//! The pulse of a block chain's node: 90,000 sorted lookups, then 210,000 puts
//! and 30,000 deletions in one batch. Keys and rounds are those of `lode pulse`;
//! below a million entries a round shrinks with them.

use lode_bench::pulse::{Entries, Planner, Round, Shape, Stream};

use super::write::LOAD_CHANGES;
use super::{Done, Run};
use crate::digest::Digest;
use crate::engine::{Changes, Result};
use crate::meter;

const READS: u64 = 90_000;
const ADDS: u64 = 210_000;
const DELETES: u64 = 30_000;
/// A round is that large from so many entries on.
const ENTRIES_FULL: u64 = 1_000_000;
/// Fewer entries have no round of at least one deletion.
const ENTRIES_MIN: u64 = 100;

/// Loads the entries before the first round.
pub fn load(run: &Run<'_>) -> Result<()> {
    let stream = stream(run);
    let (entries, mut value) = (stream.entries(), Vec::new());
    let mut changes = Changes::default();
    for number in 0..stream.entries {
        entries.value(number, &mut value);
        changes.put(&entries.key(number), &value);
        if changes.len() == LOAD_CHANGES {
            run.engine.write(&changes)?;
            changes.clear();
        }
    }
    if changes.is_empty() { Ok(()) } else { run.engine.write(&changes) }
}

/// Looks up what the round reads; sorting its keys counts.
pub fn read(run: &Run<'_>, begin: &mut dyn FnMut()) -> Result<Done> {
    let (entries, round) = round(run)?;
    let mut wanted: Vec<Vec<u8>> = round.reads.iter().map(|&n| entries.key(n).to_vec()).collect();
    begin();
    wanted.sort_unstable();
    let mut digest = Digest::default();
    run.engine.multi_get(&wanted, &mut |at, value| digest.add(at as u64, value))?;
    Ok(Done { operations: wanted.len() as u64, digest: Some(digest), ..Done::default() })
}

/// Writes what the round adds and deletes.
pub fn write(run: &Run<'_>, begin: &mut dyn FnMut()) -> Result<Done> {
    let (entries, round) = round(run)?;
    let (mut changes, mut value) = (Changes::default(), Vec::new());
    for number in round.adds {
        entries.value(number, &mut value);
        changes.put(&entries.key(number), &value);
    }
    round.deletes.iter().for_each(|&number| changes.delete(&entries.key(number)));
    // What grew while it was made has left pages to be given back.
    meter::wait_until_quiet()?;
    begin();
    run.engine.write(&changes)?;
    let (operations, user_bytes) = (changes.len() as u64, changes.bytes() as u64);
    Ok(Done { operations, user_bytes, written: changes, ..Done::default() })
}

fn round(run: &Run<'_>) -> Result<(Entries, Round)> {
    let stream = stream(run);
    let round = Planner::new(&stream).next_round()?;
    Ok((stream.entries(), round))
}

fn stream(run: &Run<'_>) -> Stream {
    let entries = run.stream.entries().max(ENTRIES_MIN);
    let part = |count: u64| count * entries.min(ENTRIES_FULL) / ENTRIES_FULL;
    Stream {
        shape: Shape::Classic,
        seed: run.stream.seed(),
        entries,
        reads: part(READS),
        adds: part(ADDS),
        deletes: part(DELETES),
    }
}
