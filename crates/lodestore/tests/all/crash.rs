//! A crash at every call that changes something on disk, for small histories:
//! the process killed there, and power lost there.
//!
//! `CRASH_SEED` and `CRASH_HISTORIES` in the environment make it a soak.

use crate::environment::number;
use lodestore::MemFs;
use std::sync::Arc;
use testkit::command::{Command, Output};
use testkit::files::{pause, stray_tables};
use testkit::history::{self, Crash};
use testkit::load::contents;
use testkit::parse;
use testkit::rust_api::RustApi;
use testkit::surface::Surface;

const ROOT: &str = "/crash";
const STEPS: usize = 60;
/// Ways in which power may be lost at one moment.
const POWER_LOSSES: u64 = 3;

/// A disk as a crash left it, and what had been acknowledged before.
struct Left<'a> {
    disk: MemFs,
    crash: Crash,
    history: &'a [Command],
    done: usize,
}

/// Runs the history until the process is gone: how much was acknowledged, and
/// the disk at that moment.
fn run_until(history: &[Command], stop_after: u64) -> (usize, MemFs, bool) {
    let disk = MemFs::new();
    disk.stop_after(stop_after);
    let mut surface = RustApi::new(Arc::new(disk.clone()), ROOT);
    let done = history::run(history, &mut surface);
    let stopped = disk.is_stopped();
    disk.kill(); // what closing would do comes too late
    drop(surface);
    (done, disk, stopped)
}

impl Left<'_> {
    /// Opens what is left, judges it, and goes on with it.
    fn recover(&self) -> Result<(), String> {
        let mut surface = RustApi::new(Arc::new(self.disk.clone()), ROOT);
        expect_done(&mut surface, &history::open())?;
        let db = surface.db().ok_or("the database is open")?;
        let found = contents(db).map_err(|error| format!("reading: {error}"))?;
        history::judge(self.history, self.done, self.crash, &found)?;
        match stray_tables(db, &self.disk, pause)? {
            0 => {}
            stray => return Err(format!("{stray} table files belong to nothing")),
        }
        // It is a database again: it takes writes, keeps them, and is sound.
        for line in ["put ~after 1", "verify", "open db", "verify"] {
            expect_done(&mut surface, &parse::command(line)?)?;
        }
        match surface.run(&parse::command("get ~after")?) {
            Output::Value(Some(value)) if value == b"1" => Ok(()),
            other => Err(format!("a write after recovery: {other:?}")),
        }
    }

    /// Opening is interrupted as well; what it had begun must not hurt.
    fn crash_again(self, seed: u64) -> Self {
        self.disk.stop_after(seed % 14);
        let mut surface = RustApi::new(Arc::new(self.disk.clone()), ROOT);
        let _ = surface.run(&history::open()); // fails, unless it is done before
        let disk = match self.crash {
            Crash::Kill => self.disk.kill(),
            Crash::PowerLoss => self.disk.crash(seed),
        };
        drop(surface);
        Left { disk, ..self }
    }
}

fn expect_done(surface: &mut RustApi, command: &Command) -> Result<(), String> {
    match surface.run(command) {
        Output::Done => Ok(()),
        other => Err(format!("{command}: {other:?}, {:?}", surface.last_error)),
    }
}

/// Judges every crash at one moment; how many there were, and whether the
/// history was stopped at all.
fn crash_at(history: &[Command], stop_after: u64, seed: u64) -> Result<(u64, bool), String> {
    let (done, disk, stopped) = run_until(history, stop_after);
    let mut left = vec![Left { disk: disk.kill(), crash: Crash::Kill, history, done }];
    for loss in 0..POWER_LOSSES {
        let disk = disk.crash(seed ^ loss << 40);
        left.push(Left { disk, crash: Crash::PowerLoss, history, done });
    }
    let crashes = left.len() as u64;
    for (i, left) in left.into_iter().enumerate() {
        let crash = left.crash;
        // One in eight is interrupted again while it recovers.
        let again = (seed + i as u64).is_multiple_of(8);
        let left = if again { left.crash_again(seed) } else { left };
        let context = |what| format!("{crash:?} {i}, again in recovery: {again}: {what}");
        left.recover().map_err(context)?;
    }
    Ok((crashes, stopped))
}

/// Whenever the process is killed, every acknowledged write is there; whenever
/// power goes, and whatever of the unsynced bytes and names it takes, every
/// synced write is there; and what else is left is a prefix of the batches.
#[test]
fn a_crash_at_any_call_loses_nothing_that_was_promised() {
    let first = number("CRASH_SEED", 1);
    let mut total = 0;
    for seed in first..first + number("CRASH_HISTORIES", 2) {
        let history = history::history(seed, STEPS);
        let mut stop_after = 0;
        loop {
            let moment = seed << 20 | stop_after;
            let (crashes, stopped) =
                crash_at(&history, stop_after, moment).unwrap_or_else(|what| {
                    let script: String = history.iter().map(|c| format!("{c}\n")).collect();
                    panic!(
                        "CRASH_SEED={seed} CRASH_HISTORIES=1, after {stop_after} changes, \
                         {what}\n{script}"
                    )
                });
            total += crashes;
            if !stopped {
                break;
            }
            stop_after += 1;
        }
        assert!(stop_after > 100, "the history of seed {seed} changes little: {stop_after} times");
    }
    println!("{total} crashes from seed {first}");
}
