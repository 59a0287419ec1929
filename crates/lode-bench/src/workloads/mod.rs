//! What the benchmarks do, one function each, run by every thread.

pub mod read;
pub mod write;
