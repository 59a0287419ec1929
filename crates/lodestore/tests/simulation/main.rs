//! Simulated lives: the engine on files in memory, one runnable thread at a
//! time, and every choice of the next thread made by a seed.
//!
//! Built only with `RUSTFLAGS="--cfg simulation"`; `scripts/simulate` does
//! that. `SIMULATION_SEED` and `SIMULATION_SEEDS` in the environment say which.
#![cfg(simulation)]

mod bursts;
mod crew;
mod gaps;
mod keeping;
mod life;
mod machine;
mod one_step;
mod one_stop;
mod plan;
mod promise;
mod reading;
mod recovery;
mod report;
mod tables;
mod writing;

use life::{Size, live};
use plan::Trouble;
use report::Report;
use std::sync::Mutex;
use testkit::seeds::on_all_cores;

const LONG: Size =
    Size { operations: 50_000, batches_max: 60, one_in: 1_500, power_losses: 2, again: false };
const SMALL: Size = Size { operations: 1, batches_max: 8, one_in: 1, power_losses: 2, again: true };

fn number(name: &str, default: u64) -> u64 {
    match std::env::var(name) {
        Err(_) => default,
        Ok(text) => text.parse().unwrap_or_else(|_| panic!("{name}={text} is no number")),
    }
}

/// Lives the lives of all `seeds`, on all cores; the sum of their reports.
fn live_all(seeds: std::ops::Range<u64>, size: Size) -> Report {
    let total = Mutex::new(Report::default());
    on_all_cores(seeds, |seed| {
        let told = Told(seed);
        let report = live(seed, size);
        std::mem::forget(told);
        total.lock().expect("adding does not panic").add(&report);
    });
    total.into_inner().expect("adding does not panic")
}

/// Says how to repeat a life that panics.
struct Told(u64);

impl Drop for Told {
    fn drop(&mut self) {
        eprintln!("SIMULATION_SEED={} SIMULATION_SEEDS=1 repeats this life", self.0);
    }
}

fn print(title: &str, seeds: &std::ops::Range<u64>, report: &Report) {
    println!("{title}, seeds {} to {}:", seeds.start, seeds.end - 1);
    for (name, count) in report.counts() {
        println!("  {name:<24} {count:>12}");
    }
}

/// Whatever the interleaving, whatever fails and whenever the crash comes: what
/// is left is a prefix of the batches, in all families, and nothing promised is
/// missing; and what readers see on the way is what was written.
#[test]
fn no_life_breaks_a_promise() {
    let first = number("SIMULATION_SEED", 1);
    let seeds = first..first + number("SIMULATION_SEEDS", 20);
    let operations = number("SIMULATION_OPERATIONS", LONG.operations);
    let one_in = number("SIMULATION_ONE_IN", LONG.one_in as u64) as usize;
    let size = Size { operations, one_in, ..LONG };
    let total = live_all(seeds.clone(), size);
    print("long lives", &seeds, &total);
    if seeds.end - seeds.start >= 10 {
        let unreached = total.counts().into_iter().filter(|(_, count)| *count == 0);
        let unreached: Vec<_> = unreached.map(|(name, _)| name).collect();
        assert_eq!(unreached, ["recoveries_of_recoveries"], "the lives never came to these");
        assert!(10 * total.rich >= total.lives, "too few rich lives: {}", total.rich);
    }
}

/// A crash after every single call of a short life, in several ways; and after
/// every single call of one recovery from each.
#[test]
fn a_crash_at_every_call_and_at_every_call_of_the_recovery_keeps_all_promises() {
    let first = number("SIMULATION_SEED", 1);
    // Among the first are lives with errors, and one without a log.
    let seeds = first + 5..first + 5 + number("SIMULATION_SMALL_SEEDS", 2);
    let total = live_all(seeds.clone(), SMALL);
    print("short lives", &seeds, &total);
    assert!(total.recoveries_of_recoveries > 100 * total.lives, "recoveries make few calls");
}

/// A failure can be looked at again: a seed gives the same calls to the file
/// system, with the same bytes, in the same order.
#[test]
fn a_seed_repeats_its_life_exactly() {
    let size = Size { operations: 2_000, ..LONG };
    for seed in 1..=20 {
        let (a, b) = (live(seed, size), live(seed, size));
        assert_eq!(a, b, "seed {seed}, {:?}", Trouble::of(seed));
        assert_ne!(a.trace, live(seed + 1000, size).trace, "another seed gives another life");
    }
}

/// Tables that are ingested into two families come at once to every reader:
/// whoever sees them in one family finds them in the other from then on, and
/// what a snapshot shows never changes.
#[test]
fn an_ingest_is_one_step_to_every_reader() {
    let first = number("SIMULATION_SEED", 1);
    let seeds = number("SIMULATION_SEEDS", 60);
    let mut total = one_step::Seen::default();
    for seed in first..first + seeds {
        let told = Told(seed);
        total.add(&one_step::simulate(seed));
        std::mem::forget(told);
    }
    println!("{seeds} seeds from {first}: {total:?}");
    assert!(total.reads > 0 && total.between > 0 && total.changes > 0 && total.compactions > 0);
}
