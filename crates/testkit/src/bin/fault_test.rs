//! `fault_test disks DIRECTORY` fills small disks that it mounts there;
//! `fault_test open lodestore|leveldb DIRECTORY` is a process that wants a
//! directory. See `testkit::faults`.

use std::path::Path;
use std::process::ExitCode;
use testkit::faults::{full, openers};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let result = match arguments.split_first() {
        Some((verb, [path])) if verb == "disks" => {
            full::fill_disks(Path::new(path)).map(|report| print!("{report}"))
        }
        Some((verb, rest)) if verb == "open" => openers::open(rest),
        _ => Err("usage: fault_test disks DIRECTORY".to_string()),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(what) => {
            eprintln!("{what}");
            ExitCode::FAILURE
        }
    }
}
