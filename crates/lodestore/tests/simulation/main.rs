//! Simulated crashes: the engine on files in memory, one runnable thread at a
//! time, and every choice of the next thread made by a seed.
//!
//! Built only with `RUSTFLAGS="--cfg simulation"`; `scripts/simulate` does
//! that. `SIMULATION_SEED` and `SIMULATION_SEEDS` in the environment say which.
#![cfg(simulation)]

mod bursts;
mod gaps;
mod one_step;
mod run;
mod tables;

use run::{Crash, Outcome, simulate};

fn number(name: &str, default: u64) -> u64 {
    match std::env::var(name) {
        Err(_) => default,
        Ok(text) => text.parse().unwrap_or_else(|_| panic!("{name}={text} is no number")),
    }
}

/// Whatever the interleaving and whenever the crash comes: what is left is a
/// prefix of the batches, in all families, and nothing promised is missing.
#[test]
fn every_interleaving_recovers_to_a_prefix() {
    let first = number("SIMULATION_SEED", 1);
    let seeds = number("SIMULATION_SEEDS", 60);
    let mut total = Outcome::default();
    for seed in first..first + seeds {
        let crash = if seed % 3 == 0 { Crash::Kill } else { Crash::PowerLoss };
        println!("SIMULATION_SEED={seed} SIMULATION_SEEDS=1 repeats this run ({crash:?})");
        let outcome = simulate(seed, crash);
        total.add(&outcome);
    }
    println!("{seeds} seeds from {first}: {total:?}");
    assert!(total.crashed > 0 && total.acknowledged > 0 && total.kept > 0 && total.ingested > 0);
}

/// A failure can be looked at again: a seed gives the same calls to the file
/// system, with the same bytes, in the same order.
#[test]
fn a_seed_repeats_its_run_exactly() {
    for seed in 1..=6 {
        let (a, b) = (simulate(seed, Crash::PowerLoss), simulate(seed, Crash::PowerLoss));
        assert_eq!(a, b, "seed {seed}");
        let other = simulate(seed + 1000, Crash::PowerLoss);
        assert_ne!(a.trace, other.trace, "another seed gives another run");
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
        println!("SIMULATION_SEED={seed} SIMULATION_SEEDS=1 repeats this run");
        total.add(&one_step::simulate(seed));
    }
    println!("{seeds} seeds from {first}: {total:?}");
    assert!(total.reads > 0 && total.between > 0 && total.changes > 0 && total.compactions > 0);
}
