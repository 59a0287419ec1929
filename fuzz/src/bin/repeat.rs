//! Runs a target on files, as the ordinary tests do: `repeat TARGET FILE...`.
//! Without arguments it lists the targets, each with the length of its inputs.

use std::process::ExitCode;
use std::time::Instant;

use lodestore_fuzz::{TARGETS, limits, targets};

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let Some(name) = arguments.next() else {
        TARGETS.iter().for_each(|target| println!("{} {}", target.name, target.bytes_max));
        return ExitCode::SUCCESS;
    };
    let Some(target) = targets::named(&name) else {
        eprintln!("repeat: there is no target {name:?}");
        return ExitCode::from(2);
    };
    for file in arguments {
        let bytes = match std::fs::read(&file) {
            Ok(bytes) => bytes,
            Err(error) => {
                eprintln!("repeat: {file}: {error}");
                return ExitCode::from(2);
            }
        };
        let started = Instant::now();
        limits::run(target, &bytes);
        println!("{file}: {} bytes, {:?}", bytes.len(), started.elapsed());
    }
    ExitCode::SUCCESS
}
