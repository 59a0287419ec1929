//! Killing a process in the middle of its work, and looking at what is left.
//!
//! `target` is the process that works and dies, `points` decides where,
//! `drive` starts it again and again, and compares.

pub mod points;
pub mod target;
pub mod drive;
