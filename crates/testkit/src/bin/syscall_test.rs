//! `syscall_test drive [CALL...]` plays a small history again and again, as
//! `syscall_test play ...` under strace, with one call to the operating system
//! cut short each time. `--require` makes it fail where strace does not work.
//! See `testkit::syscalls`.

use std::process::ExitCode;
use testkit::syscalls::{drive, target};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let result = match arguments.split_first() {
        Some((verb, rest)) if verb == "play" => play(rest),
        Some((verb, rest)) if verb == "drive" => start(rest),
        _ => Err("usage: syscall_test drive [--require] [CALL...]".to_string()),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(what) => {
            eprintln!("{what}");
            ExitCode::FAILURE
        }
    }
}

fn play(arguments: &[String]) -> Result<(), String> {
    let (directory, log, after) = target::parse(arguments)?;
    target::play(directory, log, after)
}

fn start(arguments: &[String]) -> Result<(), String> {
    let (flags, calls): (Vec<&String>, Vec<&String>) =
        arguments.iter().partition(|argument| argument.starts_with("--"));
    let has = |flag: &str| flags.iter().any(|given| *given == flag);
    if let Err(why) = drive::strace_works() {
        return match has("--require") {
            true => Err(format!("strace does not work: {why}")),
            false => {
                println!("skipped, as strace does not work: {why}");
                Ok(())
            }
        };
    }
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let workers = std::thread::available_parallelism().map_or(1, |count| count.get());
    let calls: Vec<String> = calls.into_iter().cloned().collect();
    let report = drive::drive(&program, &calls, workers)?;
    print!("{report}");
    Ok(())
}
