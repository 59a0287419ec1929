//! The part of `lode bench --help` that is not about flags.

use crate::catalogue::{OF_LEVELDB, OF_ROCKSDB};
use crate::flags::BENCHMARKS_DEFAULT;
use crate::workload::Workload;

/// The list of benchmarks for `--help`.
pub fn benchmarks() -> String {
    format!(
        "Benchmarks (N is --num, or --reads, or --writes; of each thread):\n{}\n\
         Benchmarks of RocksDB's db_bench:\n{}\n\
         NAME[X5] runs a benchmark five times and prints mean and median; NAME[X5-W1] runs it \
         once\nbefore that, to warm up.\n\n\
         Without --benchmarks: {BENCHMARKS_DEFAULT}\n\n\
         Examples:\n  \
         lode bench --num 10M --benchmarks fillrandom,compact,readrandom --threads 4\n  \
         lode bench --benchmarks 'fillseq,readrandom[X5-W1]' --report page.html\n  \
         lode bench --db /data/bench --use_existing_db --benchmarks seekrandom --duration 60\n",
        rows(OF_LEVELDB),
        rows(OF_ROCKSDB)
    )
}

fn rows(workloads: &[Workload]) -> String {
    workloads.iter().map(|w| format!("  {:<23} {}\n", w.name, w.about)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every benchmark is in the list, and what runs by default is, too.
    #[test]
    fn list_is_complete() {
        let text = benchmarks();
        for workload in crate::catalogue::all() {
            assert!(text.contains(&format!("\n  {} ", workload.name)), "{}", workload.name);
        }
        let defaults = crate::selection::parse_list(BENCHMARKS_DEFAULT).expect("they exist");
        assert_eq!(defaults.len(), 20);
    }
}
