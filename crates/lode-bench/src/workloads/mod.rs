//! What the benchmarks do, one function each, run by every thread.

pub mod beside;
pub mod codec;
pub mod mixed;
pub mod mixgraph;
pub mod once;
pub mod read;
pub mod seek;
pub mod series;
pub mod write;
