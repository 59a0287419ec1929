//! A small history whose every call to the operating system is cut short once,
//! by strace: the process is killed at it, or it gives an error.
//!
//! `story` is the history, `target` the process that plays it, `inject` runs it
//! under strace, `recover` judges what is left, `drive` goes through the calls
//! one by one, `report` is the table of what was done, `silence` the list of
//! failures of which nobody need be told.

pub mod story;
pub mod target;
pub mod inject;
pub mod recover;
pub mod silence;
pub mod report;
pub mod drive;
