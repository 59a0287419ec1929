//! `kill_target drive [KILLS] [SEED]` kills itself, as `kill_target work ...`,
//! and reports what was left each time. See `testkit::kill`.

use std::process::ExitCode;
use testkit::kill::{drive, target};

const KILLS_DEFAULT: usize = 200;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let result = match arguments.split_first() {
        Some((verb, rest)) if verb == "work" => {
            drive::parse_run(rest).and_then(|run| Err(target::work(&run).to_string()))
        }
        Some((verb, rest)) if verb == "drive" => start(rest),
        _ => Err("usage: kill_target drive [KILLS] [SEED]".to_string()),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(what) => {
            eprintln!("{what}");
            ExitCode::FAILURE
        }
    }
}

fn start(arguments: &[String]) -> Result<(), String> {
    let number = |at: usize, default: u64| match arguments.get(at) {
        None => Ok(default),
        Some(text) => text.parse().map_err(|_| format!("{text} is no number")),
    };
    let kills = number(0, KILLS_DEFAULT as u64)? as usize;
    let seed = number(1, 1)?;
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let report = drive::drive(&program, kills, seed)?;
    print!("{report}");
    Ok(())
}
