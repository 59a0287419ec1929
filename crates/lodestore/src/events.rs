//! What the engine does on its own, told as it happens: flushes, compactions,
//! writers that wait, failures.

use std::fmt;
use std::path::Path;
use std::time::Duration;

use crate::error::Error;
use crate::sync::Arc;
use crate::sync::thread::catch_panic;

/// Something that happened. Its text ([`fmt::Display`]) is one line for a log.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Event<'a> {
    /// A database is open.
    Opened {
        /// Its directory.
        directory: &'a Path,
        /// Whether it was opened for reading only.
        read_only: bool,
        /// What had to be left out, in words: ends of files that were never
        /// acknowledged as durable.
        recovery: &'a [String],
    },
    /// A memtable has become tables of level 0.
    Flushed {
        /// The family's name.
        family: &'a str,
        /// How many tables; none if nothing in it was visible any more.
        tables: usize,
        /// Their size in bytes.
        bytes: u64,
        /// How long that took, with what was flushed in the same step.
        time: Duration,
    },
    /// Tables of two levels were rewritten as tables of the deeper one.
    Compacted {
        /// The family's name.
        family: &'a str,
        /// From, to.
        levels: (usize, usize),
        /// How many tables were read, of both levels.
        tables_in: usize,
        /// Their size in bytes.
        bytes_in: u64,
        /// How many tables were written.
        tables_out: usize,
        /// Their size in bytes.
        bytes_out: u64,
        /// How long it took.
        time: Duration,
    },
    /// Tables went to a deeper level as they are.
    Moved {
        /// The family's name.
        family: &'a str,
        /// From, to.
        levels: (usize, usize),
        /// How many tables.
        tables: usize,
        /// Their size in bytes.
        bytes: u64,
    },
    /// A writer had to wait for 100 ms or longer.
    Waited {
        /// For what, how long, and what was going on meanwhile.
        text: &'a str,
    },
    /// Work in the background failed for a reason that may pass, and is tried
    /// again.
    Retried {
        /// The failure.
        error: &'a Error,
    },
    /// A compaction failed; there are none until the database is resumed.
    CompactionsStopped {
        /// The failure.
        error: &'a Error,
    },
    /// Nothing can be written until the database is resumed or opened again.
    BecameReadOnly {
        /// The failure.
        error: &'a Error,
    },
    /// Writing goes on after a failure.
    Resumed,
    /// The database is closed.
    Closed {
        /// Its directory.
        directory: &'a Path,
    },
}

impl fmt::Display for Event<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Event::Opened { directory, read_only, recovery } => {
                let how = if read_only { " for reading only" } else { "" };
                write!(f, "opened {}{how}", directory.display())?;
                recovery.iter().try_for_each(|note| write!(f, "; {note}"))
            }
            Event::Flushed { family, tables, bytes, time } => write!(
                f,
                "flushed a memtable of family {family:?}: {tables} tables, {bytes} bytes, {} ms",
                time.as_millis()
            ),
            Event::Compacted {
                family,
                levels: (from, to),
                tables_in,
                bytes_in,
                tables_out,
                bytes_out,
                time,
            } => write!(
                f,
                "compacted family {family:?}, level {from} to {to}: {tables_in} tables, {bytes_in} \
                 bytes, to {tables_out} tables, {bytes_out} bytes, {} ms",
                time.as_millis()
            ),
            Event::Moved { family, levels: (from, to), tables, bytes } => write!(
                f,
                "moved {tables} tables of family {family:?}, {bytes} bytes, level {from} to {to}"
            ),
            Event::Waited { text } => f.write_str(text),
            Event::Retried { error } => write!(f, "trying again after {error}"),
            Event::CompactionsStopped { error } => write!(f, "no more compactions after {error}"),
            Event::BecameReadOnly { error } => write!(f, "read-only after {error}"),
            Event::Resumed => f.write_str("resumed"),
            Event::Closed { directory } => write!(f, "closed {}", directory.display()),
        }
    }
}

/// Is told what happens.
pub trait Listener: Send + Sync + fmt::Debug {
    /// Called in the thread that an event concerns, which goes on only after it,
    /// and may hold locks: it must be quick and must not call the database. A
    /// panic in it is passed over.
    fn tell(&self, event: &Event<'_>);
}

/// The listener, if there is one.
#[derive(Clone, Debug, Default)]
pub(crate) struct Events(Option<Arc<dyn Listener>>);

impl Events {
    pub(crate) fn new(listener: Option<&Arc<dyn Listener>>) -> Events {
        Events(listener.cloned())
    }

    pub(crate) fn tell(&self, event: Event<'_>) {
        if let Some(listener) = &self.0 {
            // Whoever works on must not stop for it.
            let _ = catch_panic(|| listener.tell(&event));
        }
    }
}
