//! What the parent asks of a child (one JSON object on standard input) and what
//! the child answers (one JSON object a line on standard output, one for each
//! workload).

use std::path::PathBuf;

use lode_bench::histogram::Latency;
use serde::{Deserialize, Serialize};

use crate::engines::EngineKind;
use crate::lanes::Lane;
use crate::stream::Shape;
use crate::workload::{Group, Workload};

/// A child's work: one engine, one group, one directory.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Job {
    /// Whose turn it is.
    pub engine: EngineKind,
    /// How it is set up.
    pub lane: Lane,
    /// The group.
    pub group: Group,
    /// The workloads of the group that are measured and told of.
    pub workloads: Vec<Workload>,
    /// How large keys and values are.
    pub shape: Shape,
    /// How many there are.
    pub entries: u64,
    /// What the key stream follows from.
    pub seed: u64,
    /// Threads that look keys up.
    pub threads: u64,
    /// How many they look up.
    pub reads: u64,
    /// Time each call.
    pub latencies: bool,
    /// Where the database is; the directory is empty.
    pub directory: PathBuf,
    /// Memory that the child may use, page cache included.
    pub memory_limit: Option<u64>,
}

/// What a workload came to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Answer {
    /// It was measured.
    Measured(Box<Measured>),
    /// The engine cannot do it.
    Cannot {
        /// Which one.
        workload: Workload,
        /// Why.
        reason: String,
    },
    /// It failed; nothing follows.
    Failed {
        /// What happened.
        reason: String,
        /// True if the command line was wrong.
        usage: bool,
    },
}

/// What was measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// What was done.
    pub workload: Workload,
    /// Entries written, deleted or looked up, scans.
    pub operations: u64,
    /// Until the last call returned.
    pub seconds: f64,
    /// Processor time of the process meanwhile.
    pub cpu_seconds: f64,
    /// The same until background work was over; for writes.
    pub quiet: Option<Quiet>,
    /// Bytes of keys and values that were written.
    pub user_bytes: u64,
    /// Bytes that the process wrote to files, until it was quiet, as the system
    /// counts pages that become dirty: not those that were so before.
    pub written_bytes: u64,
    /// Bytes that it read from devices.
    pub read_bytes: u64,
    /// What the engine says that it wrote to tables and logs, if it does.
    pub engine_written_bytes: Option<u64>,
    /// What the directory takes on the device afterwards.
    pub directory_bytes: u64,
    /// The most memory that was resident.
    pub peak_rss_bytes: u64,
    /// The most memory of the control group so far, page cache included.
    pub peak_group_bytes: Option<u64>,
    /// Values that were found; for reads.
    pub found: Option<u64>,
    /// What stands for these values.
    pub digest: Option<String>,
    /// Time of each call, if that was wanted.
    pub latency: Option<Latency>,
    /// Puts beside the readers.
    pub puts_beside: Option<u64>,
}

/// What it took until nothing was left to be done in the background.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Quiet {
    /// From the beginning of the workload.
    pub seconds: f64,
    /// Processor time from there.
    pub cpu_seconds: f64,
}

impl Answer {
    /// The line of this answer.
    pub fn line(&self) -> String {
        serde_json::to_string(self).expect("plain fields serialize")
    }

    /// Reads a line.
    pub fn parse(line: &str) -> Result<Answer, String> {
        serde_json::from_str(line).map_err(|error| format!("{error} in {line:?}"))
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// A measurement of `seconds`, with a number of everything else.
    pub fn measured(workload: Workload, seconds: f64) -> Measured {
        let quiet = Quiet { seconds: seconds * 2.0, cpu_seconds: seconds * 3.0 };
        Measured {
            workload,
            operations: 1_000,
            seconds,
            cpu_seconds: seconds,
            quiet: workload.is_write().then_some(quiet),
            user_bytes: 116_000,
            written_bytes: 232_000,
            read_bytes: 0,
            engine_written_bytes: None,
            directory_bytes: 100_000,
            peak_rss_bytes: 1 << 20,
            peak_group_bytes: None,
            found: (!workload.is_write()).then_some(632),
            digest: (!workload.is_write()).then(|| "00ff".to_string()),
            latency: None,
            puts_beside: None,
        }
    }

    /// Answers come out as they went in; a line that was cut off is refused.
    #[test]
    fn answers_are_read_back() {
        let cannot =
            Answer::Cannot { workload: Workload::Fill100K, reason: "too \"large\"".to_string() };
        let failed = Answer::Failed { reason: "disk".to_string(), usage: false };
        let measured = Answer::Measured(Box::new(measured(Workload::ReadSeq, 0.25)));
        for answer in [measured, cannot, failed] {
            let line = answer.line();
            assert!(!line.contains('\n'));
            assert_eq!(Answer::parse(&line), Ok(answer));
            assert!(Answer::parse(&line[..line.len() - 1]).is_err());
        }
    }
}
