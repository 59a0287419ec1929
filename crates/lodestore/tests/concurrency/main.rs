//! What needs the whole engine, in many schedules: commits, views, the log.
//! Each structure alone is in `simulation.rs` beside its source.
//!
//! Built only with `RUSTFLAGS="--cfg simulation"`; `scripts/concurrency` does
//! that. `CONCURRENCY_SCHEDULES` in the environment says how many schedules.
#![cfg(simulation)]

mod commit;
mod failures;
mod recorded;
mod views;
