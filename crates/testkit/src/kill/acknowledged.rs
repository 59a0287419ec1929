//! The file outside the database that says what was acknowledged.
//!
//! An acknowledgement is nine bytes, appended by one `write` call after the
//! database has answered: OFFSET 0, SIZE 1: who; OFFSET 1, SIZE 8: how many of
//! its steps are done, little-endian. A killed process loses no finished
//! `write`. No record is needed before a step: a worker has one at a time, so
//! what is in doubt is the one after the last acknowledged.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::path::Path;
use std::sync::OnceLock;

/// Who acknowledges the steps of the keeper of families. Writers do so by
/// their numbers, which are lower.
pub const KEEPER: u8 = 100;
/// Who acknowledges the steps of the ingester.
pub const INGESTER: u8 = 101;
/// Who says that the tables of a step of the ingester are written; the number
/// is the step's.
pub const TABLES_WRITTEN: u8 = 102;
/// Who says what background work is under way; the number is a state of
/// [`InFlight`](super::points::InFlight).
pub const IN_FLIGHT: u8 = 199;
/// Who says that a point was reached; the number is the point's.
pub const AT_POINT: u8 = 200;

static FILE: OnceLock<File> = OnceLock::new();

/// Makes `path` the file of this process.
///
/// # Panics
/// If it has one already, or this cannot be opened.
pub fn begin(path: &Path) {
    let file = OpenOptions::new().append(true).create(true).open(path);
    let file = file.expect("the file of acknowledgements can be opened");
    assert!(FILE.set(file).is_ok(), "a process works once");
}

/// Notes that `who` has done `count` steps.
pub fn acknowledge(who: u8, count: u64) {
    let mut record = [who; 9];
    record[1..].copy_from_slice(&count.to_le_bytes());
    let mut file = FILE.get().expect("set when work begins");
    file.write_all(&record).expect("an acknowledgement can be written");
}

/// The acknowledgements in a file: the last number of each acknowledger.
pub fn read(path: &Path) -> BTreeMap<u8, u64> {
    let bytes = std::fs::read(path).unwrap_or_default();
    let record = |record: &[u8]| {
        (record[0], u64::from_le_bytes(record[1..].try_into().expect("eight bytes")))
    };
    // Later ones replace earlier ones.
    bytes.chunks_exact(9).map(record).collect()
}
