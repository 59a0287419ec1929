//! A whole table: as it is, and with its checksums made right.

use std::path::Path;

use lodestore::inspect::{Entry, TableFile};
use lodestore::internals::bytes::TableProbe;
use lodestore::{KeyOrder, Result};

use crate::files;
use crate::judge::{judge, judged};
use crate::seal;

pub fn run(bytes: &[u8]) {
    read(bytes);
    let mut sealed = bytes.to_vec();
    seal::table(&mut sealed, seal::Witness::Renewed);
    if sealed != bytes {
        read(&sealed);
    }
}

fn read(bytes: &[u8]) {
    let path = Path::new("000007.table");
    let fs = files::one(path, bytes);
    // What is left of a damaged table is read without its index.
    let salvaged = TableProbe::salvage(bytes);
    let Some(table) = judged(TableFile::open(&fs, path, KeyOrder::Bytewise)) else { return };
    let sound = judged(table.verify()).is_some();
    let properties = table.properties();
    assert!(properties.data_bytes <= bytes.len() as u64);
    let blocks = table.blocks().map(judged_ref).filter(|sound| *sound).count() as u64;
    let sampled = judged(table.sample(5));
    let deletes = table.range_deletes().count();
    let entries: Vec<Result<Entry>> = table.entries().collect();
    entries.iter().filter_map(|entry| entry.as_ref().err()).for_each(judge);
    let keys: Vec<&Entry> = entries.iter().filter_map(|entry| entry.as_ref().ok()).collect();
    let probe = TableProbe::open(bytes).expect("it was opened before");
    let backward = judged(probe.backward());
    for entry in keys.iter().step_by(keys.len() / 8 + 1) {
        judged(table.versions(&entry.key));
        judged(probe.get(&entry.key));
    }
    if !sound {
        return;
    }
    // Nothing is wrong with it: every way of reading gives the same.
    assert_eq!(keys.len(), entries.len());
    assert_eq!((blocks, keys.len() as u64), (properties.blocks, properties.entries));
    assert_eq!(deletes as u64, properties.range_deletes);
    assert_eq!(salvaged.expect("it is sound"), keys.len() as u64);
    assert_eq!(sampled.is_some_and(|sampled| !sampled.is_empty()), !keys.is_empty());
    let mut backward = backward.expect("it is sound");
    backward.reverse();
    assert_eq!(backward.len(), keys.len());
    for (entry, (key, sequence, value)) in keys.iter().zip(&backward) {
        assert_eq!((&entry.key, entry.sequence, &entry.value), (key, *sequence, value));
    }
    for entry in keys {
        let found = table.versions(&entry.key).expect("it is sound");
        assert!(found.contains(entry), "a walk finds what a search does not");
        let found = probe.get(&entry.key).expect("it is sound");
        assert!(found.is_some_and(|newest| newest >= entry.sequence), "a get misses a key");
    }
}

fn judged_ref<T>(result: Result<T>) -> bool {
    judged(result).is_some()
}
