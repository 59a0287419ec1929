//! The workloads by name, and the groups that share a database.

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

use crate::engine::Direction;

/// Keys of one lookup of multiget.
pub const MULTI_GET_KEYS: usize = 100;
/// Entries that a seek of seekrandom reads.
pub const SEEK_ENTRIES: u64 = 10;
/// Puts a second beside readers.
pub const PUTS_BESIDE_PER_SECOND: f64 = 20_000.0;
/// Of the popular half of zipfian reads and the rest: see `Popularity`.
pub const ZIPF_RANGE: f64 = 20.0;
/// Scans of scandeleted.
pub const SCANS_DELETED: u64 = 20;
/// Of this many entries, deleteseq leaves the last.
pub const DELETE_ALL_BUT: u64 = 100;
/// Entries for each synced one, and for each of 100,000 bytes: db_bench's.
pub const ENTRIES_PER_SLOW_ONE: u64 = 1_000;
/// The least of these: so that short runs have something to measure.
pub const SLOW_ONES_MIN: u64 = 100;

/// One thing that is measured.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, ValueEnum, Serialize, Deserialize,
)]
#[serde(rename_all = "lowercase")]
#[value(rename_all = "lower")]
pub enum Workload {
    /// Writes all entries in the order of their keys.
    FillSeq,
    /// Deletes all but a hundredth of them, in order.
    DeleteSeq,
    /// Scans the hundredth that is left, from places that were deleted.
    ScanDeleted,
    /// Writes as many entries as there are numbers, drawn at random.
    FillRandom,
    /// Reads everything forwards.
    ReadSeq,
    /// Reads everything backwards.
    ReadReverse,
    /// Looks up keys drawn at random, of which some two thirds are there.
    ReadRandom,
    /// Looks up keys that are not there.
    ReadMissing,
    /// Looks up keys of which few are drawn often.
    ReadZipf,
    /// Looks up 100 random keys at a time.
    MultiGet,
    /// Seeks random keys and reads 10 entries from there.
    SeekRandom,
    /// Two threads look up random keys beside one that writes 20,000 a second.
    #[value(name = "readwhilewriting2")]
    ReadWhileWriting2,
    /// Eight threads do.
    #[value(name = "readwhilewriting8")]
    ReadWhileWriting8,
    /// Writes new values for as many keys as there are numbers, drawn at random.
    Overwrite,
    /// Deletes as many keys as there are numbers, drawn at random.
    DeleteRandom,
    /// Writes a thousandth of the entries, each durable at once.
    FillSync,
    /// Writes a thousandth as many entries of 100,000 bytes.
    #[value(name = "fill100k")]
    Fill100K,
    /// Looks up the keys of a block, sorted, at most 90,000 in one call.
    PulseRead,
    /// Writes and deletes those of a block in one batch: 210,000 and 30,000.
    PulseWrite,
}

/// Workloads that share a database, in their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Group {
    /// What begins with fillseq.
    Ordered,
    /// What begins with fillrandom.
    Random,
    /// Fillsync.
    Synced,
    /// Fill100K.
    Large,
    /// The pulse.
    Pulse,
}

/// What a variant without fields is called on the command line and in reports.
fn lowercase(variant: &impl std::fmt::Debug) -> String {
    format!("{variant:?}").to_lowercase()
}

impl Workload {
    /// The name on the command line.
    pub fn name(self) -> String {
        lowercase(&self)
    }

    /// The group it belongs to.
    pub fn group(self) -> Group {
        *Group::ALL
            .iter()
            .find(|group| group.workloads().contains(&self))
            .expect("every workload is in a group")
    }

    /// True if it changes the database.
    pub fn is_write(self) -> bool {
        matches!(
            self,
            Workload::FillSeq
                | Workload::DeleteSeq
                | Workload::FillRandom
                | Workload::Overwrite
                | Workload::DeleteRandom
                | Workload::FillSync
                | Workload::Fill100K
                | Workload::PulseWrite
        )
    }

    /// The way of a scan of everything, if it is one.
    pub fn scan(self) -> Option<Direction> {
        match self {
            Workload::ReadSeq => Some(Direction::Forward),
            Workload::ReadReverse => Some(Direction::Backward),
            _ => None,
        }
    }

    /// True if later workloads of the group need what it leaves behind, so that
    /// it is run for them too where nobody asked for it.
    fn prepares_for(self, later: Workload) -> bool {
        match self {
            Workload::FillSeq | Workload::FillRandom => true,
            Workload::DeleteSeq => later == Workload::ScanDeleted,
            _ => false,
        }
    }
}

impl Group {
    /// All groups.
    pub const ALL: [Group; 5] =
        [Group::Ordered, Group::Random, Group::Synced, Group::Large, Group::Pulse];

    /// What it is called.
    pub fn name(self) -> String {
        lowercase(&self)
    }

    /// Its workloads, in their order.
    pub fn workloads(self) -> &'static [Workload] {
        use Workload::*;
        match self {
            Group::Ordered => &[FillSeq, DeleteSeq, ScanDeleted],
            Group::Random => &[
                FillRandom,
                ReadSeq,
                ReadReverse,
                ReadRandom,
                ReadMissing,
                ReadZipf,
                MultiGet,
                SeekRandom,
                ReadWhileWriting2,
                ReadWhileWriting8,
                Overwrite,
                DeleteRandom,
            ],
            Group::Synced => &[FillSync],
            Group::Large => &[Fill100K],
            Group::Pulse => &[PulseRead, PulseWrite],
        }
    }

    /// True if its keys and values have the same sizes in every run.
    pub fn has_own_sizes(self) -> bool {
        matches!(self, Group::Large | Group::Pulse)
    }

    /// Those that have to run so that `wanted` can, these included.
    pub fn needed(self, wanted: &[Workload]) -> Vec<Workload> {
        let all = self.workloads();
        let is_needed = |(at, workload): (usize, &Workload)| {
            let serves = |later: &Workload| wanted.contains(later) && workload.prepares_for(*later);
            (wanted.contains(workload) || all[at + 1..].iter().any(serves)).then_some(*workload)
        };
        all.iter().enumerate().filter_map(is_needed).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every workload is in one group, and its name is the same everywhere.
    #[test]
    fn workloads_are_in_one_group() {
        let all: Vec<Workload> = Group::ALL.iter().flat_map(|g| g.workloads()).copied().collect();
        for &workload in Workload::value_variants() {
            assert_eq!(all.iter().filter(|&&other| other == workload).count(), 1);
            assert!(workload.group().workloads().contains(&workload));
            let typed = workload.to_possible_value().expect("none is hidden");
            assert_eq!(typed.get_name(), workload.name());
            let json = serde_json::to_string(&workload).expect("a name");
            assert_eq!(json, format!("{:?}", workload.name()));
            assert!(typed.get_help().is_some());
        }
    }

    /// Loads are run for what needs them, and nothing else is.
    #[test]
    fn loads_are_run_for_what_needs_them() {
        use Workload::*;
        assert_eq!(Group::Random.needed(&[ReadZipf]), [FillRandom, ReadZipf]);
        assert_eq!(Group::Ordered.needed(&[ScanDeleted]), [FillSeq, DeleteSeq, ScanDeleted]);
        assert_eq!(Group::Ordered.needed(&[DeleteSeq]), [FillSeq, DeleteSeq]);
        assert_eq!(Group::Ordered.needed(&[ReadSeq]), []);
        assert_eq!(Group::Pulse.needed(&[PulseWrite]), [PulseWrite]);
    }
}
