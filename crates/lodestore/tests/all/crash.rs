//! A crash at every call that changes something on disk, for small histories:
//! the process killed there, and power lost there.
//!
//! `CRASH_SEED` and `CRASH_HISTORIES` in the environment make it a soak.

use crate::environment::number;
use lodestore::MemFs;
use std::sync::Arc;
use testkit::command::{Command, Output};
use testkit::history::{self, Crash};
use testkit::load::contents;
use testkit::parse;
use testkit::random::Random;
use testkit::rust_api::RustApi;
use testkit::stop_fs::{Plan, StopFs};
use testkit::surface::Surface;

const ROOT: &str = "/crash";
const STEPS: usize = 60;

/// One crash of one history.
struct Case<'a> {
    history: &'a [Command],
    stop_at: u64,
    crash: Crash,
    seed: u64,
}

/// Plays it, recovers and judges. False if the history ended before the stop.
fn play(case: &Case<'_>) -> Result<bool, String> {
    let disk = MemFs::new();
    let stopping = StopFs::new(disk.clone(), Plan::StopAt(case.stop_at));
    let mut surface = RustApi::new(stopping.clone(), ROOT);
    let done = history::run(case.history, &mut surface);
    let stopped = stopping.has_stopped();
    stopping.stop(); // what closing would do comes too late
    drop(surface);
    lose_power(case, &disk, 0);
    if case.seed % 10 == 0 {
        crash_in_recovery(case, &disk);
    }
    recover(case.history, done, case.crash, &disk)?;
    Ok(stopped)
}

fn lose_power(case: &Case<'_>, disk: &Arc<MemFs>, time: u64) {
    if case.crash == Crash::PowerLoss {
        disk.power_loss(case.seed ^ time << 32);
    }
}

/// Opening is interrupted as well; what it had begun must not hurt.
fn crash_in_recovery(case: &Case<'_>, disk: &Arc<MemFs>) {
    let stop_at = Random::new(case.seed).below(12) as u64;
    let stopping = StopFs::new(disk.clone(), Plan::StopAt(stop_at));
    let mut surface = RustApi::new(stopping.clone(), ROOT);
    let _ = surface.run(&history::open()); // fails, unless it is done before
    stopping.stop();
    drop(surface);
    lose_power(case, disk, 1);
}

fn recover(
    history: &[Command],
    done: usize,
    crash: Crash,
    disk: &Arc<MemFs>,
) -> Result<(), String> {
    let mut surface = RustApi::new(disk.clone(), ROOT);
    expect_done(&mut surface, &history::open())?;
    let db = surface.db().ok_or("the database is open")?;
    let found = contents(db).map_err(|error| format!("reading: {error}"))?;
    history::judge(history, done, crash, &found)?;
    // It is a database again: it takes writes, keeps them, and is sound.
    for line in ["put ~after 1", "verify", "open db", "verify"] {
        expect_done(&mut surface, &parse::command(line)?)?;
    }
    let after = surface.run(&parse::command("get ~after")?);
    if after != Output::Value(Some(b"1".to_vec())) {
        return Err(format!("a write after recovery: {after:?}"));
    }
    Ok(())
}

fn expect_done(surface: &mut RustApi, command: &Command) -> Result<(), String> {
    match surface.run(command) {
        Output::Done => Ok(()),
        other => Err(format!("{command}: {other:?}, {:?}", surface.last_error)),
    }
}

/// Crashes each history at every call until one runs to its end; how often.
fn crash_everywhere(crash: Crash, power_losses: u64) -> u64 {
    let first = number("CRASH_SEED", 1);
    let mut crashes = 0;
    for seed in first..first + number("CRASH_HISTORIES", 2) {
        let history = history::history(seed, STEPS);
        let mut stop_at = 0;
        loop {
            let mut stopped = false;
            for loss in 0..power_losses {
                let seed = seed << 24 | stop_at << 4 | loss;
                let case = Case { history: &history, stop_at, crash, seed };
                match play(&case) {
                    Ok(at_stop) => stopped |= at_stop,
                    Err(what) => panic!(
                        "CRASH_SEED={seed_of_history} CRASH_HISTORIES=1, {crash:?} at change \
                         {stop_at}, loss {loss}: {what}\n{}",
                        script(&history),
                        seed_of_history = seed >> 24,
                    ),
                }
                crashes += 1;
            }
            if !stopped {
                break;
            }
            stop_at += 1;
        }
        assert!(stop_at > 100, "the history of seed {seed} changes little: {stop_at} times");
    }
    crashes
}

fn script(history: &[Command]) -> String {
    history.iter().map(|command| format!("{command}\n")).collect()
}

/// Whenever the process is killed, every acknowledged write is there.
#[test]
fn a_process_killed_at_any_call_loses_nothing_acknowledged() {
    let crashes = crash_everywhere(Crash::Kill, 1);
    println!("{crashes} kills");
}

/// Whenever power goes, and whatever of the unsynced bytes and names it takes,
/// every synced write is there and what else is left is a prefix.
#[test]
fn power_lost_at_any_call_loses_nothing_synced() {
    let crashes = crash_everywhere(Crash::PowerLoss, 2);
    println!("{crashes} power losses");
}
