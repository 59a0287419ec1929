//! Scans: of everything, from random keys on, over what was deleted.

use super::write::first_kept;
use super::{Done, Purpose, Run, Timer};
use crate::digest::Digest;
use crate::engine::{Direction, Result};
use crate::workload::{SCANS_DELETED, SEEK_ENTRIES, Workload};

pub fn everything(run: &Run<'_>, workload: Workload) -> Result<Done> {
    let direction = workload.scan().expect("the caller has checked that it is a scan");
    let mut digest = Digest::default();
    let visit = &mut |key: &[u8], value: &[u8]| {
        digest.chain(key, value);
        true
    };
    run.engine.scan(None, direction, u64::MAX, visit)?;
    Ok(Done { operations: digest.found(), digest: Some(digest), ..Done::default() })
}

pub fn from_random_keys(run: &Run<'_>) -> Result<Done> {
    let draws = run.stream.draws(Purpose::Seek as u64);
    scan_all(run, draws.take(run.reads as usize), SEEK_ENTRIES)
}

/// From numbers that were deleted to the end.
pub fn after_deletes(run: &Run<'_>) -> Result<Done> {
    let draws = run.stream.draws(Purpose::ScanDeleted as u64);
    let deleted = draws.map(|number| number % first_kept(run).max(1));
    scan_all(run, deleted.take(SCANS_DELETED as usize), u64::MAX)
}

/// Scans `limit` entries from each of `numbers`; a scan is one operation.
fn scan_all(run: &Run<'_>, numbers: impl Iterator<Item = u64>, limit: u64) -> Result<Done> {
    let mut keys = run.stream.keys();
    let mut timer = Timer::new(run);
    let mut digest = Digest::default();
    let mut operations = 0;
    for number in numbers {
        let key = keys.key(number);
        let visit = &mut |key: &[u8], value: &[u8]| {
            digest.chain(key, value);
            true
        };
        timer.time(|| run.engine.scan(Some(key), Direction::Forward, limit, visit))?;
        operations += 1;
    }
    Ok(Done { operations, digest: Some(digest), latencies: timer.latencies, ..Done::default() })
}
