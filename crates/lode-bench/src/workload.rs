//! The table of benchmarks: what each is called, what it needs and which
//! function runs it. A new benchmark is a row here and a function in
//! `workloads`.

use crate::error::BenchError;
use crate::worker::Worker;
use crate::workloads::{read, write};

/// How much a benchmark does, before flags change it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Amount {
    /// `--writes` (or `--num`) divided by this, for each thread.
    Writes(u64),
    /// `--reads` (or `--num`) divided by this, for each thread.
    Reads(u64),
    /// One operation, whatever the flags say.
    Once,
}

/// What runs.
#[derive(Clone, Copy)]
pub enum Body {
    /// This function, in every thread at the same time.
    Threads(fn(&mut Worker<'_>) -> lodestore::Result<()>),
    /// Nothing is measured: this property of the database is printed.
    Property(&'static str),
}

/// A row of the table.
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
    pub threads_extra: u64,
    /// Bytes of a value, where the benchmark fixes them.
    pub value_bytes: Option<usize>,
    /// Entries written at once, unless `--batch_size` says otherwise.
    pub batch_entries: u64,
    /// True if every write is durable whatever `--sync` says.
    pub sync: bool,
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
}

/// What most rows have in common.
const WRITES: Workload = Workload {
    name: "",
    about: "",
    fresh: false,
    amount: Amount::Writes(1),
    threads_extra: 0,
    value_bytes: None,
    batch_entries: 1,
    sync: false,
    body: Body::Threads(write::put_random),
};

const READS: Workload = Workload { amount: Amount::Reads(1), ..WRITES };

/// Every benchmark, in the order of `--help`. Names, amounts and freshness are
/// LevelDB's (`Benchmark::Run` of `db_bench.cc`).
pub const WORKLOADS: &[Workload] = &[
    Workload {
        name: "fillseq",
        about: "write N values in the order of keys, into an empty database",
        fresh: true,
        body: Body::Threads(write::put_sequential),
        ..WRITES
    },
    Workload {
        name: "fillbatch",
        about: "write N values in the order of keys, 1,000 at once, into an empty database",
        fresh: true,
        batch_entries: 1_000,
        body: Body::Threads(write::put_sequential),
        ..WRITES
    },
    Workload {
        name: "fillrandom",
        about: "write N values under random keys, into an empty database",
        fresh: true,
        ..WRITES
    },
    Workload { name: "overwrite", about: "write N values under random keys", ..WRITES },
    Workload {
        name: "fillsync",
        about: "write N/1000 values under random keys, each durable, into an empty database",
        fresh: true,
        amount: Amount::Writes(1_000),
        sync: true,
        ..WRITES
    },
    Workload {
        name: "fill100K",
        about: "write N/1000 values of 100,000 bytes under random keys, into an empty database",
        fresh: true,
        amount: Amount::Writes(1_000),
        value_bytes: Some(100_000),
        ..WRITES
    },
    Workload {
        name: "readseq",
        about: "read N entries from the first on",
        body: Body::Threads(read::sequential),
        ..READS
    },
    Workload {
        name: "readreverse",
        about: "read N entries from the last on, backwards",
        body: Body::Threads(read::reverse),
        ..READS
    },
    Workload {
        name: "readrandom",
        about: "look up N random keys",
        body: Body::Threads(read::random),
        ..READS
    },
    Workload {
        name: "readmissing",
        about: "look up N random keys that are not there",
        body: Body::Threads(read::missing),
        ..READS
    },
    Workload {
        name: "readhot",
        about: "look up N random keys of the first hundredth",
        body: Body::Threads(read::hot),
        ..READS
    },
    Workload {
        name: "seekrandom",
        about: "make a cursor and seek to a random key, N times",
        body: Body::Threads(read::seek_random),
        ..READS
    },
    Workload {
        name: "readwhilewriting",
        about: "look up N random keys while one thread more writes random keys",
        threads_extra: 1,
        body: Body::Threads(read::random_while_writing),
        ..READS
    },
    Workload {
        name: "deleteseq",
        about: "delete N keys in order",
        body: Body::Threads(write::delete_sequential),
        ..WRITES
    },
    Workload {
        name: "deleterandom",
        about: "delete N random keys",
        body: Body::Threads(write::delete_random),
        ..WRITES
    },
    Workload {
        name: "compact",
        about: "compact the whole database",
        amount: Amount::Once,
        body: Body::Threads(write::compact),
        ..WRITES
    },
    Workload {
        name: "stats",
        about: "print the engine's statistics",
        amount: Amount::Once,
        body: Body::Property("lodestore.stats"),
        ..WRITES
    },
];

/// The benchmarks that `list` names, separated by commas.
/// # Errors: `Usage` names what is unknown, with the nearest name there is.
pub fn parse_list(list: &str) -> Result<Vec<&'static Workload>, BenchError> {
    let names = list.split(',').map(str::trim).filter(|name| !name.is_empty());
    let workloads = names.map(find).collect::<Result<Vec<_>, _>>()?;
    if workloads.is_empty() {
        return Err(BenchError::Usage("--benchmarks names none".to_string()));
    }
    Ok(workloads)
}

fn find(name: &str) -> Result<&'static Workload, BenchError> {
    if let Some(workload) = WORKLOADS.iter().find(|w| w.name == name) {
        return Ok(workload);
    }
    let nearest = WORKLOADS
        .iter()
        .min_by_key(|w| strsim::damerau_levenshtein(w.name, name))
        .filter(|w| strsim::damerau_levenshtein(w.name, name) <= name.len().div_ceil(2));
    let advice = match nearest {
        Some(workload) => format!("did you mean '{}'?", workload.name),
        None => "see --help for the list".to_string(),
    };
    Err(BenchError::Usage(format!("unknown benchmark '{name}'; {advice}")))
}

/// The list of benchmarks for `--help`.
pub fn help() -> String {
    let rows = WORKLOADS.iter().map(|w| format!("  {:<18}{}\n", w.name, w.about));
    let list = crate::flags::BENCHMARKS_DEFAULT;
    format!(
        "Benchmarks (N is --num, or --reads, or --writes; of each thread):\n{}\n\
         Without --benchmarks: {list}\n",
        rows.collect::<String>()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every name is there once, and the default list names only what exists.
    #[test]
    fn names_are_unique_and_defaults_exist() {
        for (at, workload) in WORKLOADS.iter().enumerate() {
            assert!(!workload.name.is_empty() && !workload.about.is_empty());
            assert!(WORKLOADS[at + 1..].iter().all(|w| w.name != workload.name));
        }
        let defaults = parse_list(crate::flags::BENCHMARKS_DEFAULT).expect("defaults exist");
        assert_eq!(defaults.len(), 20);
    }

    /// A mistyped name stops the run before it starts, with a suggestion.
    #[test]
    fn unknown_names_are_refused_with_a_suggestion() {
        let message = |list| match parse_list(list) {
            Err(error) => error.to_string(),
            Ok(_) => panic!("{list} was accepted"),
        };
        assert!(message("fillseq,readrandon").contains("did you mean 'readrandom'?"));
        assert!(message("zzz").contains("see --help"));
        assert!(message(" , ").contains("names none"));
    }

    /// LevelDB's quirks are kept: a thousandth of N for the slow ones.
    #[test]
    fn amounts_are_those_of_leveldb() {
        let workload = |name| *find(name).expect(name);
        assert_eq!(workload("fillsync").amount, Amount::Writes(1_000));
        assert_eq!(workload("fill100K").amount, Amount::Writes(1_000));
        assert_eq!(workload("fill100K").value_bytes, Some(100_000));
        assert_eq!(workload("fillbatch").batch_entries, 1_000);
        assert!(workload("fillrandom").fresh && !workload("overwrite").fresh);
    }
}
