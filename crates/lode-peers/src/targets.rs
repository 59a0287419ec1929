//! The aims: how many times as long as Lodestore a peer should take at least, for
//! each line of a comparison. Tables and their lookup, pure.
//!
//! Lane equal has aims of its own for entries of 16-100 bytes, and so has lane mapped,
//! which is the same but for how tables are read. Everywhere else
//! nothing should take longer than RocksDB or LevelDB, whatever it is; only of
//! everybody's defaults nothing is asked, and of the other engines.

use std::ops::Range;

use crate::engines::EngineKind;
use crate::lanes::Lane;
use crate::results::{Case, Span};
use crate::stream::Shape;
use crate::workload::Workload::{self, *};

/// Where a lane has no other aim.
const NEVER_SLOWER: f64 = 1.0;

const ANY: Range<u64> = 0..u64::MAX;
/// Random writes of few entries are over before compactions weigh: the calls
/// count. Many are as fast as compactions let them, and what is put off counts.
const FEW: Range<u64> = 0..50_000_000;
const MANY: Range<u64> = 50_000_000..u64::MAX;

/// Workload, until when it counts, for how many entries, and the least ratios
/// of RocksDB and LevelDB.
type Row = (Workload, Span, Range<u64>, f64, f64);

/// Of lanes equal and mapped.
const EQUAL: [Row; 18] = [
    (FillSeq, Span::Calls, ANY, 2.5, 2.5),
    (FillRandom, Span::Calls, FEW, 3.0, 2.5),
    (FillRandom, Span::Quiet, MANY, 1.7, 3.0),
    (Overwrite, Span::Calls, FEW, 3.0, 2.5),
    (Overwrite, Span::Quiet, MANY, 1.7, 3.0),
    (FillSync, Span::Calls, ANY, 1.1, NEVER_SLOWER),
    (Fill100K, Span::Calls, ANY, 1.8, 2.0),
    (DeleteSeq, Span::Calls, ANY, 2.5, 2.5),
    (DeleteRandom, Span::Calls, ANY, 2.5, 2.5),
    (ReadSeq, Span::Calls, ANY, 2.0, 1.5),
    (ReadReverse, Span::Calls, ANY, 3.0, 3.0),
    (ReadRandom, Span::Calls, ANY, 2.0, 2.0),
    (ReadMissing, Span::Calls, ANY, 1.7, 2.0),
    (SeekRandom, Span::Calls, ANY, 2.0, 2.0),
    (ReadWhileWriting2, Span::Calls, ANY, 2.0, 4.0),
    (ReadWhileWriting8, Span::Calls, ANY, 2.0, 4.0),
    (ScanDeleted, Span::Calls, ANY, NEVER_SLOWER, 10.0),
    (PulseWrite, Span::Calls, ANY, 3.0, 3.0),
];

/// Of lane tuned.
const TUNED: [Row; 1] = [(FillSync, Span::Calls, ANY, 1.1, NEVER_SLOWER)];

/// How engines were compared, as far as aims depend on it.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    /// The lane.
    pub lane: Lane,
    /// Entries of each database.
    pub entries: u64,
    /// Memory that each engine had.
    pub memory_limit: Option<u64>,
}

impl Setting {
    /// The least ratio that is wanted of `engine`; `None` where nothing is.
    pub fn aim(&self, case: Case, span: Span, engine: EngineKind) -> Option<f64> {
        let of_peer = match engine {
            EngineKind::RocksDb => |&(.., rocksdb, _): &Row| rocksdb,
            EngineKind::LevelDb => |&(.., leveldb): &Row| leveldb,
            _ => return None,
        };
        let rows: &[Row] = match self.lane {
            Lane::Defaults => return None,
            Lane::Equal | Lane::Mapped => &EQUAL,
            Lane::Tuned => &TUNED,
        };
        let is_usual = self.memory_limit.is_none() && has_usual_sizes(case);
        let is_it = |(workload, until, entries, ..): &&Row| {
            (*workload, *until) == (case.workload, span) && entries.contains(&self.entries)
        };
        let own = rows.iter().filter(|_| is_usual).find(is_it).map(of_peer);
        Some(own.unwrap_or(NEVER_SLOWER))
    }
}

/// True for the sizes that lanes have their own aims for: those of db_bench, and
/// those of workloads that have no others.
fn has_usual_sizes(case: Case) -> bool {
    case.shape == Shape::Standard || case.workload.group().has_own_sizes()
}

#[cfg(test)]
mod tests {
    use super::*;

    const EQUAL_1M: Setting = Setting { lane: Lane::Equal, entries: 1_000_000, memory_limit: None };

    /// The aims of a line of 16-100 bytes against RocksDB and LevelDB.
    fn aims(setting: Setting, workload: Workload, span: Span) -> [Option<f64>; 2] {
        let case = Case { shape: Shape::Standard, workload };
        [EngineKind::RocksDb, EngineKind::LevelDb].map(|engine| setting.aim(case, span, engine))
    }

    /// Each peer has its own column; lines without a row must not lose.
    #[test]
    fn equal_has_aims_of_its_own() {
        for (workload, expected) in [
            (ReadWhileWriting8, [2.0, 4.0]),
            (ScanDeleted, [1.0, 10.0]),
            (FillSync, [1.1, 1.0]),
            (PulseWrite, [3.0, 3.0]),
            (PulseRead, [1.0, 1.0]),
            (MultiGet, [1.0, 1.0]),
        ] {
            assert_eq!(aims(EQUAL_1M, workload, Span::Calls), expected.map(Some), "{workload:?}");
        }
        assert_eq!(aims(EQUAL_1M, FillSeq, Span::Quiet), [Some(1.0); 2]);
        let mapped = Setting { lane: Lane::Mapped, ..EQUAL_1M };
        assert_eq!(aims(mapped, ReadWhileWriting8, Span::Calls), [Some(2.0), Some(4.0)]);
    }

    /// Random writes count until the last call where entries are few, and until
    /// all is quiet where they are many.
    #[test]
    fn aims_of_random_writes_follow_entries() {
        let many = Setting { entries: 50_000_000, ..EQUAL_1M };
        let few = Setting { entries: 49_999_999, ..EQUAL_1M };
        for workload in [FillRandom, Overwrite] {
            assert_eq!(aims(few, workload, Span::Calls), [Some(3.0), Some(2.5)]);
            assert_eq!(aims(few, workload, Span::Quiet), [Some(1.0); 2]);
            assert_eq!(aims(many, workload, Span::Calls), [Some(1.0); 2]);
            assert_eq!(aims(many, workload, Span::Quiet), [Some(1.7), Some(3.0)]);
        }
    }

    /// Other lanes, limits on memory and sizes ask only that nothing is slower;
    /// defaults, and the other engines, ask nothing.
    #[test]
    fn elsewhere_nothing_may_be_slower() {
        let tuned = Setting { lane: Lane::Tuned, ..EQUAL_1M };
        let limited = Setting { memory_limit: Some(1 << 30), ..EQUAL_1M };
        for setting in [tuned, limited] {
            assert_eq!(aims(setting, ReadRandom, Span::Calls), [Some(1.0); 2], "{setting:?}");
        }
        assert_eq!(aims(tuned, FillSync, Span::Calls), [Some(1.1), Some(1.0)]);
        let large = |workload| Case { shape: Shape::Large, workload };
        let rocksdb = |workload| EQUAL_1M.aim(large(workload), Span::Calls, EngineKind::RocksDb);
        assert_eq!((rocksdb(ReadRandom), rocksdb(Fill100K)), (Some(1.0), Some(1.8)));
        let defaults = Setting { lane: Lane::Defaults, ..EQUAL_1M };
        assert_eq!(aims(defaults, ReadRandom, Span::Calls), [None; 2]);
        for engine in [EngineKind::LodestoreAgain, EngineKind::Fjall, EngineKind::Lmdb] {
            assert_eq!(EQUAL_1M.aim(large(ReadRandom), Span::Calls, engine), None);
        }
    }
}
