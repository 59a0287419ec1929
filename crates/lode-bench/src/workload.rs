//! What a benchmark is: how much it does, what it starts with, which function
//! runs it. `catalogue` has them all.

use crate::worker::{Parts, Worker};

/// How much a benchmark does, before flags change it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Amount {
    /// `--writes` (or `--num`) divided by this, for each thread.
    Writes(u64),
    /// `--reads` (or `--num`) divided by this, for each thread.
    Reads(u64),
    /// The larger of `--reads` and `--writes`, or `--num`, for each thread.
    ReadsOrWrites,
    /// `--num` divided by this, however many threads there are.
    Opens(u64),
    /// So many operations of each thread.
    Fixed(u64),
    /// One operation, whatever the flags say.
    Once,
}

/// What a thread runs.
pub type ThreadBody = fn(&mut Worker<'_>) -> lodestore::Result<()>;

/// What runs.
#[derive(Clone, Copy)]
pub enum Body {
    /// This function, in every thread at the same time.
    Threads(ThreadBody),
    /// The database is closed and opened again.
    Reopen,
    /// Nothing is measured: this property of the database is printed.
    Property(&'static str),
}

/// Which threads run beside those of `--threads`, and what it is called that
/// they do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Beside {
    /// None.
    Nobody,
    /// One more, until the others are done.
    UntilOthersEnd(&'static str),
    /// One more, and when it is done the others end.
    Leads(&'static str),
}

/// A benchmark.
#[derive(Clone, Copy)]
pub struct Workload {
    /// As in `--benchmarks`.
    pub name: &'static str,
    /// What it does, for `--help`.
    pub about: &'static str,
    /// True if it starts with an empty database.
    pub fresh: bool,
    /// How much it does.
    pub amount: Amount,
    /// Threads beside those of `--threads`.
    pub beside: Beside,
    /// True if only one thread can do it.
    pub single: bool,
    /// Bytes of a value, where the benchmark fixes them.
    pub value_bytes: Option<usize>,
    /// Entries written or looked up at once, unless `--batch_size` says
    /// otherwise.
    pub batch_entries: u64,
    /// True if every write is durable whatever `--sync` says.
    pub sync: bool,
    /// What is said of a benchmark with several kinds of operations.
    pub tell: Option<fn(&Parts) -> String>,
    /// What runs.
    pub body: Body,
}

impl Workload {
    /// True if it is one operation, whatever the flags say.
    pub fn is_once(&self) -> bool {
        self.amount == Amount::Once
    }

    /// True if its operations are counted by `--writes`.
    pub fn writes_entries(&self) -> bool {
        matches!(self.amount, Amount::Writes(_))
    }

    /// Threads beside those of `--threads`.
    pub fn threads_extra(&self) -> u64 {
        u64::from(self.beside != Beside::Nobody)
    }

    /// What the thread beside the others is called, if there is one.
    pub fn beside_name(&self) -> Option<&'static str> {
        match self.beside {
            Beside::Nobody => None,
            Beside::UntilOthersEnd(name) | Beside::Leads(name) => Some(name),
        }
    }

    /// True if it ends when the thread beside the others does.
    pub fn is_led(&self) -> bool {
        matches!(self.beside, Beside::Leads(_))
    }
}
