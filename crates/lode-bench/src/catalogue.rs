//! The table of benchmarks. A new one is a row here and a function in
//! `workloads`. Names, amounts and freshness are LevelDB's (`Benchmark::Run` of
//! `db_bench.cc`) and, in the second part, RocksDB's (`db_bench_tool.cc`).

use crate::worker::Parts;
use crate::workload::{Amount, Beside, Body, Workload};
use crate::workloads::{codec, mixed, mixgraph, once, read, seek, series, write};

/// What most rows have in common.
const WRITES: Workload = Workload {
    name: "",
    about: "",
    fresh: false,
    amount: Amount::Writes(1),
    beside: Beside::Nobody,
    single: false,
    value_bytes: None,
    batch_entries: 1,
    sync: false,
    tell: None,
    body: Body::Threads(write::put_random),
};

const READS: Workload = Workload { amount: Amount::Reads(1), ..WRITES };
const MIXED: Workload = Workload { amount: Amount::ReadsOrWrites, ..WRITES };
const ONCE: Workload = Workload { amount: Amount::Once, ..WRITES };
const COMPRESSES: Workload = Workload { amount: Amount::Fixed(codec::COMPRESSIONS), ..WRITES };

/// LevelDB's, in the order of `--help`.
pub const OF_LEVELDB: &[Workload] = &[
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
        name: "readrandomsmall",
        about: "look up N/1000 random keys",
        amount: Amount::Reads(1_000),
        body: Body::Threads(read::random),
        ..READS
    },
    Workload {
        name: "seekrandom",
        about: "make a cursor, seek to a random key and read --seek_nexts entries, N times",
        body: Body::Threads(seek::random),
        ..READS
    },
    Workload {
        name: "seekordered",
        about: "seek N times with one cursor, up to 99 keys further each time",
        body: Body::Threads(seek::ordered),
        ..READS
    },
    Workload {
        name: "readwhilewriting",
        about: "look up N random keys while one thread more writes random keys",
        beside: Beside::UntilOthersEnd("writer"),
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
        body: Body::Threads(once::compact),
        ..ONCE
    },
    Workload {
        name: "open",
        about: "close and open the database, --num/10000 times",
        amount: Amount::Opens(10_000),
        single: true,
        body: Body::Reopen,
        ..WRITES
    },
    Workload {
        name: "crc32c",
        about: "checksum 500 MiB, 4 KiB at once, without a database",
        amount: Amount::Fixed(codec::CHECKSUMS),
        body: Body::Threads(codec::crc32c),
        ..WRITES
    },
    Workload {
        name: "snappycomp",
        about: "compress 1 GiB with Snappy, 4 KiB at once, without a database",
        body: Body::Threads(codec::snappy_compress),
        ..COMPRESSES
    },
    Workload {
        name: "snappyuncomp",
        about: "decompress 1 GiB with Snappy",
        body: Body::Threads(codec::snappy_decompress),
        ..COMPRESSES
    },
    Workload {
        name: "zstdcomp",
        about: "compress 1 GiB with Zstandard at --compression_level",
        body: Body::Threads(codec::zstd_compress),
        ..COMPRESSES
    },
    Workload {
        name: "zstduncomp",
        about: "decompress 1 GiB with Zstandard",
        body: Body::Threads(codec::zstd_decompress),
        ..COMPRESSES
    },
    Workload {
        name: "stats",
        about: "print the engine's statistics",
        body: Body::Property("lodestore.stats"),
        ..ONCE
    },
    Workload {
        name: "sstables",
        about: "print every table with its keys",
        body: Body::Property("lodestore.tables"),
        ..ONCE
    },
];

/// RocksDB's, in the order of `--help`.
pub const OF_ROCKSDB: &[Workload] = &[
    Workload {
        name: "filluniquerandom",
        about: "write every key once, in random order (not RocksDB's), into an empty database",
        fresh: true,
        single: true,
        body: Body::Threads(write::put_unique_random),
        ..WRITES
    },
    Workload {
        name: "updaterandom",
        about: "look up a random key and write it anew, N times",
        tell: Some(updates),
        body: Body::Threads(mixed::update),
        ..MIXED
    },
    Workload {
        name: "mergerandom",
        about: "merge into N random keys of --merge_keys with --merge_operator",
        tell: Some(merges),
        body: Body::Threads(mixed::merge),
        ..MIXED
    },
    Workload {
        name: "readrandomwriterandom",
        about: "look up --readwritepercent of N random keys, write the others",
        tell: Some(reads_and_writes),
        body: Body::Threads(mixed::read_write),
        ..MIXED
    },
    Workload {
        name: "multireadrandom",
        about: "look up N random keys, --batch_size at once",
        body: Body::Threads(read::multi_random),
        ..READS
    },
    Workload {
        name: "multireadwhilewriting",
        about: "the same, while one thread more writes random keys",
        beside: Beside::UntilOthersEnd("writer"),
        body: Body::Threads(read::multi_random_while_writing),
        ..READS
    },
    Workload {
        name: "seekrandomwhilewriting",
        about: "seekrandom, while one thread more writes random keys",
        beside: Beside::UntilOthersEnd("writer"),
        body: Body::Threads(seek::random_while_writing),
        ..READS
    },
    Workload {
        name: "readwhilescanning",
        about: "look up N random keys while one thread more scans everything",
        beside: Beside::UntilOthersEnd("scanner"),
        body: Body::Threads(read::random_while_scanning),
        ..READS
    },
    Workload {
        name: "mixgraph",
        about: "lookups, writes and scans mixed as in a social graph's store (see its flags)",
        amount: Amount::Reads(1),
        tell: Some(mix),
        body: Body::Threads(mixgraph::run),
        ..WRITES
    },
    Workload {
        name: "timeseries",
        about: "read the entries of random ids while one thread more adds N of them",
        fresh: true,
        beside: Beside::Leads("writer"),
        body: Body::Threads(series::run),
        ..WRITES
    },
    Workload {
        name: "flush",
        about: "write what is in memory to tables",
        body: Body::Threads(once::flush),
        ..ONCE
    },
    Workload {
        name: "waitforcompaction",
        about: "wait until nothing is left to flush or compact",
        body: Body::Threads(once::wait_for_compaction),
        ..ONCE
    },
    Workload {
        name: "verifychecksum",
        about: "read all tables and check their checksums",
        body: Body::Threads(once::verify_checksum),
        ..ONCE
    },
    Workload {
        name: "levelstats",
        about: "print files, bytes and entries of each level",
        body: Body::Property("lodestore.levels"),
        ..ONCE
    },
];

/// Every benchmark.
pub fn all() -> impl Iterator<Item = &'static Workload> {
    OF_LEVELDB.iter().chain(OF_ROCKSDB)
}

// The remarks are RocksDB's, for scripts that parse them.

fn updates(parts: &Parts) -> String {
    format!("( updates:{} found:{})", parts.writes, parts.found)
}

fn merges(parts: &Parts) -> String {
    format!("( updates:{})", parts.writes)
}

fn reads_and_writes(parts: &Parts) -> String {
    let Parts { reads, writes, found, .. } = parts;
    format!("( reads:{reads} writes:{writes} total:{} found:{found})", reads + writes)
}

fn mix(parts: &Parts) -> String {
    let Parts { reads, writes, seeks, found, .. } = parts;
    let mean = |sum: u64, count: u64| sum as f64 / count.max(1) as f64;
    format!(
        "( Gets:{reads} Puts:{writes} Seek:{seeks}, reads {found} in {} found, \
         avg size: {:.1} value, {:.1} scan)",
        reads + seeks,
        mean(parts.value_bytes, *writes),
        mean(parts.scanned, *seeks)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn workload(name: &str) -> &'static Workload {
        all().find(|w| w.name == name).expect(name)
    }

    /// Every name is there once.
    #[test]
    fn names_are_unique() {
        let names: Vec<&str> = all().map(|w| w.name).collect();
        for (at, name) in names.iter().enumerate() {
            assert!(!name.is_empty() && !names[at + 1..].contains(name), "{name}");
        }
        assert!(all().all(|w| !w.about.is_empty()));
    }

    /// LevelDB's quirks are kept: a thousandth of N for the slow ones, fixed
    /// amounts of bytes for those without a database.
    #[test]
    fn amounts_are_those_of_leveldb() {
        assert_eq!(workload("fillsync").amount, Amount::Writes(1_000));
        assert_eq!(workload("fill100K").amount, Amount::Writes(1_000));
        assert_eq!(workload("fill100K").value_bytes, Some(100_000));
        assert_eq!(workload("fillbatch").batch_entries, 1_000);
        assert_eq!(workload("readrandomsmall").amount, Amount::Reads(1_000));
        assert_eq!(workload("open").amount, Amount::Opens(10_000));
        assert_eq!(workload("crc32c").amount, Amount::Fixed(128_000));
        assert_eq!(workload("zstdcomp").amount, Amount::Fixed(262_144));
        assert!(workload("fillrandom").fresh && !workload("overwrite").fresh);
    }

    /// Scripts find RocksDB's remarks.
    #[test]
    fn remarks_are_those_of_rocksdb() {
        let parts =
            Parts { reads: 90, writes: 10, seeks: 10, found: 63, value_bytes: 345, scanned: 21 };
        assert_eq!(reads_and_writes(&parts), "( reads:90 writes:10 total:100 found:63)");
        assert_eq!(updates(&parts), "( updates:10 found:63)");
        assert_eq!(
            mix(&parts),
            "( Gets:90 Puts:10 Seek:10, reads 63 in 100 found, avg size: 34.5 value, 2.1 scan)"
        );
    }
}
