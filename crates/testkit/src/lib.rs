//! What Lodestore's tests are made of: an oracle, seeded histories, behaviour
//! scripts, and a process that is killed at a chosen moment.
//!
//! Everything speaks one small language, [`command::Command`]: scripts in
//! `testdata/` are written in it, generated histories are made of it, and a
//! failure that was found by chance is printed in it, ready to become a script.
//! A [`surface::Surface`] runs commands: the oracle is one, the Rust API is
//! one, and every other API of the project becomes one more.

pub mod random;
pub mod seeds;
pub mod text;
pub mod command;
pub mod parse;
pub mod orders;
pub mod surface;

// The oracle, and the thing compared with it.
pub mod model;
pub mod rust_api;
mod config;

// Where commands come from, and how two surfaces are compared.
pub mod generate;
pub mod run;
pub mod script;

// Crashes: what may be left of a history, and the moment of the stop.
pub mod temp_dir;
pub mod trace_fs;
pub mod files;
pub mod history;
pub mod load;
pub mod kill;
pub mod syscalls;
pub mod faults;

// Interleavings of a few threads.
#[cfg(simulation)]
pub mod explore;

// Files of a format, to be kept.
pub mod golden;
