//! The C interface: what `include/lodestore.h` declares, over the public API of
//! the engine.
//!
//! What crosses the boundary has types that say it: `Option<&T>` is a pointer
//! that may be null, `Option<Box<T>>` one whose owner changes, [`Bytes`] a
//! pointer and a length, [`Out`] a place for a result that need not hold
//! anything yet. That the pointers are what they say is the caller's promise, and
//! the header tells it; null where something must be is an error.
//!
//! No panic leaves this crate: what can fail goes through [`failure::guarded`].
//!
//! | module | job |
//! |---|---|
//! | `pass` | bytes, names and results across the boundary |
//! | `failure` | errors, with a code and a text; panics become one |
//! | `value` | bytes that the caller keeps for a while |
//! | `order`, `merge`, `listener` | the caller's comparator, merge operator and listener |
//! | `filesystem` | the caller's file system |
//! | `options` | options of databases, writes and reads |
//! | `snapshot`, `batch` | a state to read; changes to write together |
//! | `data` | puts, deletes, gets |
//! | `cursor` | walks |
//! | `database` | opening, families, and what concerns all of them |
//! | `upkeep` | flushes, compactions, sizes, properties |
//! | `files` | directories that are not open: destroy, repair, adopt |
//! | `tables` | tables written elsewhere, and taken in |
//! | `updates` | the log as a source |
//! | `leveldb` | LevelDB's formats, for the drop-in library only |

mod pass;

mod failure;
mod value;

mod listener;
mod merge;
mod order;

mod filesystem;

mod options;

mod batch;
mod snapshot;

mod cursor;
mod data;

mod database;
mod files;
mod tables;
mod updates;
mod upkeep;

#[cfg(any(test, feature = "leveldb-files"))]
mod leveldb;

#[cfg(test)]
mod header_tests;
