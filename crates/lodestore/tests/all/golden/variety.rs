//! Golden files have what they are there for.

use lodestore::inspect::{
    BlockSummary, Change, Engine, Entry, LogFile, ManifestFile, TableFile, TableProperties,
};
use lodestore::{KeyOrder, Kind, MemFs, Options};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use testkit::golden::{ADOPTED, Golden};

use super::kept::{DIRECTORY, disk};

// Flags of blocks, tags of sections: docs/format/table.md.
const UNIQUE_KEYS: u8 = 16;
const WIDE: u8 = 64;
const FILTER: u32 = 2;
const PARTITIONS: u32 = 5;
const DICTIONARY: u32 = 6;
/// Longer keys are shortened where they are bounds.
const BOUND_BYTES_MAX: usize = 64 << 10;

/// A table, looked into.
struct Table {
    bytes: Vec<u8>,
    properties: TableProperties,
    blocks: Vec<BlockSummary>,
    entries: Vec<Entry>,
    range_deletes: Vec<Entry>,
}

/// Looks into every set.
pub fn assert_is_varied(made: &[Golden]) {
    let set = |name: &str| made.iter().find(|set| set.name == name).expect("it is made");
    assert_database(set("database"));
    assert_odd(set("odd"));
    assert_unlogged(set("unlogged"));
    assert_adopted(set(ADOPTED));
}

/// Every codec, partitions, range deletes, a number for all entries of a table, and a
/// log of two segments with records of both forms.
fn assert_database(set: &Golden) {
    let tables = tables(set);
    let codecs: BTreeSet<_> = tables.iter().map(|of| of.properties.compression).collect();
    assert_eq!(codecs.into_iter().collect::<Vec<_>>(), ["lz4", "none", "snappy", "zstd"]);
    assert!(tables.iter().any(|of| of.partition_flags() == Some(1)));
    assert!(tables.iter().map(|of| of.range_deletes.len()).sum::<usize>() > 3);
    assert!(count(set, ".wal") >= 2);
    assert_eq!(record_forms(set), BTreeSet::from([false, true]));
    assert!(changes(set).iter().any(|change| {
        matches!(change, Change::TableAdded { table, .. } if table.sequence_override.is_some())
    }));
}

fn assert_odd(set: &Golden) {
    assert_odd_entries(&tables(set));
    assert_odd_forms(&tables(set));
    assert!(is_recycled(set), "no segment has records of another behind its end");
    let changes = changes(set);
    assert!(changes.iter().any(|change| matches!(change, Change::FamilyDropped(_))));
    assert!(changes.iter().any(|change| matches!(change, Change::TableDeleted { .. })));
}

/// What snapshots keep, and tables that only delete.
fn assert_odd_entries(tables: &[Table]) {
    let any = |what: &str, of: &dyn Fn(&Table) -> bool| assert!(tables.iter().any(of), "{what}");
    let has = |kind: Kind| move |of: &Table| of.entries.iter().any(|entry| entry.kind == kind);
    any("operands", &has(Kind::Merge));
    any("single deletes", &has(Kind::SingleDelete));
    any("a key twice in a block", &|of| of.blocks.iter().any(|b| b.flags & UNIQUE_KEYS == 0));
    any("a key in two blocks", &Table::has_straddler);
    any("only tombstones", &|of| {
        of.properties.tombstones > 0 && of.properties.tombstones == of.properties.entries
    });
    any("only range deletes", &|of| of.entries.is_empty() && !of.range_deletes.is_empty());
    any("several range deletes in one place", &|of| {
        of.range_deletes.windows(2).any(|two| two[0].key == two[1].key)
    });
    any("numbers that are far apart", &|of| of.blocks.iter().any(|b| b.sequence_bytes >= 2));
}

/// Orders, and parts that tables have or lack.
fn assert_odd_forms(tables: &[Table]) {
    let any = |what: &str, of: &dyn Fn(&Table) -> bool| assert!(tables.iter().any(of), "{what}");
    for order in ["testkit.AnyCase", "idb_cmp1"] {
        any(order, &|of| of.properties.order_name == order && !of.has_section(FILTER));
    }
    any("capped prefixes", &|of| of.properties.prefix_extractor.as_deref() == Some("capped:6"));
    any("partitions without filters", &|of| of.partition_flags() == Some(0));
    any("a dictionary for partitions", &|of| {
        of.partition_flags() == Some(1) && of.has_section(DICTIONARY)
    });
    any("raw blocks that end with pages", &|of| {
        let ends_with_page = |of: &BlockSummary| (of.offset + of.stored_bytes).is_multiple_of(4096);
        of.blocks.iter().any(|b| b.stored_type == 0 && b.fill_bytes > 0 && ends_with_page(b))
    });
}

/// No log, bounds that are no keys, and blocks of many bytes.
fn assert_unlogged(set: &Golden) {
    assert_eq!(count(set, ".wal"), 0);
    let tables = tables(set);
    let any = |what: &str, of: &dyn Fn(&Table) -> bool| assert!(tables.iter().any(of), "{what}");
    any("shortened bounds", &|of| {
        let TableProperties { smallest, largest, .. } = &of.properties;
        let trailers = [of.properties.smallest_trailer, of.properties.largest_trailer];
        let lengths = [smallest.len(), largest.len()];
        trailers == [u64::MAX; 2] && lengths == [BOUND_BYTES_MAX; 2]
    });
    any("offsets of four bytes", &|of| of.blocks.iter().any(|b| b.flags & WIDE != 0));
    any("a block of one large entry", &|of| {
        let bytes_max = of.properties.block_bytes;
        of.blocks.iter().any(|b| b.entries == 1 && b.decoded_bytes > bytes_max)
    });
    any("numbers that are very far apart", &|of| of.blocks.iter().any(|b| b.sequence_bytes >= 3));
}

/// LevelDB's tables in our manifest, and the way back.
fn assert_adopted(set: &Golden) {
    assert!(set.files.contains_key("adopted/ADOPTED"), "{}", set.name);
    let is_leveldb = |of: &Table| of.properties.engine == Engine::LevelDb;
    assert!(tables(set).iter().any(is_leveldb), "{}", set.name);
}

impl Table {
    fn has_section(&self, tag: u32) -> bool {
        self.properties.sections.iter().any(|section| section.tag == tag)
    }

    /// The flags of the list of partitions, if it has one.
    fn partition_flags(&self) -> Option<u8> {
        let mut sections = self.properties.sections.iter();
        let partitions = sections.find(|section| section.tag == PARTITIONS)?;
        Some(self.bytes[partitions.offset as usize + 4])
    }

    /// True if versions of a key go on in another block.
    fn has_straddler(&self) -> bool {
        let mut end = 0;
        self.blocks.iter().any(|block| {
            let last = self.entries[..end].last();
            end += block.entries as usize;
            last.is_some_and(|last| last.key == block.first_key)
        })
    }
}

fn tables(set: &Golden) -> Vec<Table> {
    let (fs, options) = disk(&set.files);
    let names = set.files.keys().filter(|name| name.ends_with(".table"));
    names.map(|name| table(&fs, &options, name, set.files[name].clone())).collect()
}

fn table(fs: &MemFs, options: &Options, name: &str, bytes: Vec<u8>) -> Table {
    let path = path(name);
    // Bytewise order stands for every one that the library has.
    let orders = [KeyOrder::Bytewise, options.family_options("any-case").order.clone()];
    let mut opened = orders.into_iter().filter_map(|order| TableFile::open(fs, &path, order).ok());
    let table = opened.next().expect("it is sound");
    Table {
        bytes,
        properties: table.properties(),
        blocks: table.blocks().collect::<Result<_, _>>().expect("it is sound"),
        entries: table.entries().collect::<Result<_, _>>().expect("it is sound"),
        range_deletes: table.range_deletes().collect(),
    }
}

/// Whether records of the log are short ones.
fn record_forms(set: &Golden) -> BTreeSet<bool> {
    let (fs, _) = disk(&set.files);
    let mut forms = BTreeSet::new();
    for name in set.files.keys().filter(|name| name.ends_with(".wal")) {
        let mut log = LogFile::open(&fs, &path(name)).expect("it is sound");
        while let Some(batch) = log.next_batch().expect("it is sound") {
            forms.insert(batch.is_short);
        }
    }
    forms
}

/// True if some segment has bytes of another one behind its end.
fn is_recycled(set: &Golden) -> bool {
    let (fs, _) = disk(&set.files);
    set.files.iter().filter(|(name, _)| name.ends_with(".wal")).any(|(name, bytes)| {
        let log = LogFile::open(&fs, &path(name)).expect("it is sound");
        let end = log.end().expect("it is sound").offset as usize;
        bytes[end..].iter().any(|byte| *byte != 0)
    })
}

/// All changes that the manifest records.
fn changes(set: &Golden) -> Vec<Change> {
    let (fs, _) = disk(&set.files);
    let manifest = ManifestFile::open_current(&fs, Path::new(DIRECTORY)).expect("it is sound");
    let mut changes = Vec::new();
    let read = manifest.read(&mut |edit| changes.extend(edit.changes.iter().cloned()));
    read.expect("it is sound");
    changes
}

fn count(set: &Golden, ending: &str) -> usize {
    set.files.keys().filter(|name| name.ends_with(ending)).count()
}

fn path(name: &str) -> PathBuf {
    Path::new(DIRECTORY).join(name)
}
