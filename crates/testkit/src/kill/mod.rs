//! Killing a process in the middle of its work, and looking at what is left.
//!
//! `points` decides where, `acknowledged` says what was done, `target` is the
//! process that works and dies, `ingester` its worker that ingests; `drive`
//! starts it again and again, and compares.

pub mod points;
pub mod acknowledged;
pub mod ingester;
pub mod target;
pub mod drive;
