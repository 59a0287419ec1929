//! Real faults of a real system: a disk that is full, other openers.
//!
//! `disk` is a small file system in memory, `full` fills it, `openers` are
//! processes that want the same directory.

pub mod disk;
pub mod full;
pub mod openers;
