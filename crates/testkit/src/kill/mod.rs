//! Killing a process in the middle of its work, and looking at what is left.
//!
//! `points` decides where, `acknowledged` says what was done, `target` is the
//! process that works and dies, by options that `choices` picks, `ingester` its
//! worker that ingests; `drive` starts it again and again, and compares;
//! `moments` counts what the kills cut short.

pub mod points;
pub mod acknowledged;
pub mod ingester;
pub mod choices;
pub mod target;
pub mod moments;
pub mod drive;
