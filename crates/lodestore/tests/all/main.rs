//! All integration tests of the engine in one binary: one link, one run.

mod scripts;
mod model;
