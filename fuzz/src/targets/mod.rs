//! The targets: each says what it decodes and which promises it checks.

mod batch;
mod block;
mod current;
mod database;
mod leveldb;
mod log;
mod manifest;
mod options;
mod repair;
mod section;
mod status;
mod table;

/// A target, by name.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// Also the name of its directories.
    pub name: &'static str,
    /// Inputs are not made longer than this.
    pub bytes_max: usize,
    /// Panics where a promise is broken.
    pub run: fn(&[u8]),
}

const fn target(name: &'static str, bytes_max: usize, run: fn(&[u8])) -> Target {
    Target { name, bytes_max, run }
}

/// All of them.
pub const TARGETS: &[Target] = &[
    target("batch", 4 << 10, batch::run),
    target("log", 4 << 10, log::run),
    target("manifest", 8 << 10, manifest::run),
    target("current", 256, current::run),
    target("status", 4 << 10, status::run),
    target("options", 8 << 10, options::run),
    target("block", 8 << 10, block::run),
    target("section", 8 << 10, section::run),
    target("table", 8 << 10, table::run),
    target("database", 16 << 10, database::run),
    target("leveldb", 16 << 10, leveldb::run),
    target("repair", 16 << 10, repair::run),
];

/// The target called `name`.
pub fn named(name: &str) -> Option<&'static Target> {
    TARGETS.iter().find(|target| target.name == name)
}
