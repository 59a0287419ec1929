//! Fuzz targets for everything that decodes bytes from disk or from a caller.
//!
//! A target is a function from bytes to nothing that panics when a promise is
//! broken. libFuzzer calls it (`src/bin/fuzz.rs`, built by `scripts/fuzz`), and
//! so does an ordinary test, for every file in `corpus/` and `regressions/`.
//!
//! bytes -> [`seal`] (checksums made right) -> the engine's own decoders, with
//! the checks of production -> what they give is compared, or an error judged
//!
//! | part | job |
//! |---|---|
//! | `limits` | time and memory that one input may take |
//! | `judge` | which errors hostile bytes may lead to |
//! | `archive` | several files as one input |
//! | `seal` | makes the checksums of mutated files right |
//! | `reading` | everything that can be read of an open database, each in two ways |
//! | `targets` | one module a target |
//! | `corpus` | files to begin with, made by the engine |

pub mod limits;
pub mod judge;
pub mod archive;
pub mod seal;
pub mod reading;
pub mod targets;
pub mod corpus;
pub mod files;

pub use targets::{TARGETS, Target};

/// Counts what is allocated: see [`limits`].
#[global_allocator]
static ALLOCATOR: limits::Counting = limits::Counting;
