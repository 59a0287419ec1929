//! `STATUS`: what was read is read again from what would be written.

use std::path::Path;

use lodestore::inspect::Status;
use lodestore::internals::bytes::status_text;
use testkit::files::Files;

use crate::files::{self, DIRECTORY};
use crate::judge::judged;

pub fn run(bytes: &[u8]) {
    let Some(status) = read(bytes) else { return };
    let again = read(status_text(&status).as_bytes()).expect("what was written is a status");
    assert_eq!(status_text(&again), status_text(&status));
}

fn read(bytes: &[u8]) -> Option<Status> {
    let fs = files::directory(&Files::from([("STATUS".to_string(), bytes.to_vec())]));
    judged(Status::read(&fs, Path::new(DIRECTORY))).map(|status| status.expect("it is there"))
}
