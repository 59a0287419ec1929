//! Single steps of the engine's paths, for the micro-benchmarks in `benches/`,
//! and single decoders, for fuzzing ([`bytes`]). Built only with the feature
//! `internals`; no promise is made about it.

pub mod bytes;

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use crate::budget::{Account, Charge, Item};
use crate::cache::{BlockKind, Cache};
use crate::cursor::Cursor;
use crate::fs::{Fs, MemFs};
use crate::key::{FileId, KeyOrder, Kind, SequenceNumber, TRAILER_NEWEST, hash, trailer};
use crate::memtable::{Memtable, MemtableWriter};
use crate::merge::{MergeCursor, Source};
use crate::stats::Statistics;
use crate::sync::Arc;
use crate::table::{Block, BlockRef, LookupKey, Need, ReadContext};
use crate::table::{Table, TableBuilder, TableSettings};
use crate::wal::{Room, SegmentHeader, SegmentWriter};

/// A log segment in memory: the cost of framing without that of a file.
#[derive(Debug)]
pub struct Log {
    segment: SegmentWriter,
    sequence: SequenceNumber,
}

impl Default for Log {
    fn default() -> Log {
        let fs: Arc<dyn Fs> = Arc::new(MemFs::new());
        fs.create_directory(Path::new("d")).expect("memory takes a directory");
        let (id, short_records) = (FileId(1), true);
        let header = SegmentHeader { number: 1, id, short_records, ..SegmentHeader::default() };
        let path = PathBuf::from("d/000001.wal");
        let segment = SegmentWriter::create(&fs, &path, &header, None, Room::AsNeeded);
        Log { segment: segment.expect("memory takes a file"), sequence: 1 }
    }
}

impl Log {
    /// Appends a batch of one entry, which gets the next sequence number.
    pub fn append(&mut self, batch: &mut [u8]) {
        batch[..8].copy_from_slice(&self.sequence.to_le_bytes());
        self.sequence += 1;
        self.segment.append(batch).expect("memory takes a record");
    }

    /// A batch of so many bytes that claims to have one entry.
    pub fn batch<const BYTES: usize>() -> [u8; BYTES] {
        let mut batch = [7; BYTES];
        batch[8..12].copy_from_slice(&1u32.to_le_bytes());
        batch
    }
}

/// A memtable with its writer.
pub struct Memory {
    table: Arc<Memtable>,
    writer: MemtableWriter,
    sequence: SequenceNumber,
}

impl Default for Memory {
    fn default() -> Memory {
        let (table, writer) = Memtable::new(KeyOrder::Bytewise, &Account::unlimited());
        Memory { table, writer, sequence: 0 }
    }
}

impl Memory {
    /// Inserts a put.
    pub fn insert(&mut self, key: &[u8], value: &[u8]) {
        self.sequence += 1;
        self.writer.insert(key, trailer(self.sequence, Kind::Put), value);
    }

    /// Length of the value, if the key is there.
    pub fn get(&self, key: &[u8]) -> Option<usize> {
        let mut found = None;
        self.table.get((key, hash(key)), TRAILER_NEWEST, |_, value| {
            found = Some(value.len());
            ControlFlow::Break(())
        });
        found
    }
}

/// A table in memory, its blocks cached.
#[derive(Debug)]
pub struct Sorted {
    table: Arc<Table>,
    context: ReadContext,
}

impl std::fmt::Debug for ReadContext {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ReadContext").field("fill_cache", &self.fill_cache).finish()
    }
}

impl Sorted {
    /// Builds and opens a table of `entries`, which ascend by key.
    pub fn build<'a>(entries: impl Iterator<Item = (&'a [u8], &'a [u8])>) -> Sorted {
        Sorted::build_as(entries, |_| ())
    }

    /// [`Sorted::build`] with index and filter in partitions of so many bytes.
    pub fn build_in_partitions<'a>(
        entries: impl Iterator<Item = (&'a [u8], &'a [u8])>,
        partition_bytes: usize,
    ) -> Sorted {
        Sorted::build_as(entries, |settings| settings.partition_bytes = partition_bytes)
    }

    /// [`Sorted::build`] without a filter.
    pub fn build_unfiltered<'a>(entries: impl Iterator<Item = (&'a [u8], &'a [u8])>) -> Sorted {
        Sorted::build_as(entries, |settings| settings.filter_bits_per_key = 0)
    }

    fn build_as<'a>(
        entries: impl Iterator<Item = (&'a [u8], &'a [u8])>,
        change: impl FnOnce(&mut TableSettings),
    ) -> Sorted {
        let fs = MemFs::new();
        let path = PathBuf::from("000001.table");
        let file = fs.create(&path).expect("memory takes a file");
        let buffers = Charge::new(&Account::unlimited(), Item::Compactions);
        let mut settings = TableSettings::plain(buffers);
        change(&mut settings);
        let mut builder =
            TableBuilder::new(file, &path, FileId(1), settings).expect("memory takes a table");
        for (key, value) in entries {
            builder.add(key, trailer(1, Kind::Put), value).expect("memory takes an entry");
        }
        let meta = builder.finish().expect("memory takes a table");
        let file = fs.open(&path).expect("the table is there");
        let cache = Cache::new(1 << 30);
        let table = Table::open(file, path, &meta, KeyOrder::Bytewise, cache.new_file());
        let context = ReadContext {
            cache,
            fill_cache: true,
            rows: None,
            statistics: Arc::new(Statistics::default()),
            buffers: Charge::new(&Account::unlimited(), Item::Cursors),
            waits_for_device: false,
        };
        Sorted { table: Arc::new(table.expect("the table is sound")), context }
    }

    /// Length of the value, if the key is there: filter, index, cache, block.
    pub fn get(&self, key: &[u8]) -> Option<usize> {
        let key = LookupKey::new(key, TRAILER_NEWEST);
        let (mut need, mut held, mut found) = (self.table.begin(&key), None, None);
        while let (Need::Block(wanted), None) = (need, found) {
            let block = self.table.read_block(wanted, &self.context).expect("the block is sound");
            need = self.table.supply(wanted, &block, &key, &mut held, |_, value| {
                found = Some(value.len());
                ControlFlow::Break(())
            });
        }
        found
    }

    /// True if filter and index let the key be there.
    pub fn may_have(&self, key: &[u8]) -> bool {
        matches!(self.table.begin(&LookupKey::new(key, TRAILER_NEWEST)), Need::Block(_))
    }

    /// The block of entries that has the key, if one may.
    pub fn block_of(&self, key: &[u8]) -> Option<Found> {
        match self.table.begin(&LookupKey::new(key, TRAILER_NEWEST)) {
            Need::Block(wanted) => {
                let block = self.table.read_block(wanted, &self.context);
                Some(Found { wanted, block: block.expect("the block is sound") })
            }
            _ => None,
        }
    }

    /// Length of the value, if the key is in the block.
    pub fn search(&self, Found { wanted, block }: &Found, key: &[u8]) -> Option<usize> {
        let (mut held, mut found) = (None, None);
        let key = LookupKey::new(key, TRAILER_NEWEST);
        self.table.supply(*wanted, block, &key, &mut held, |_, value| {
            found = Some(value.len());
            ControlFlow::Break(())
        });
        found
    }

    /// Entries met by walking all of `tables` as one.
    pub fn walk_merged(tables: &[Sorted]) -> usize {
        let cursor = |t: &Sorted| Source::Table(Box::new(t.table.cursor(t.context.clone())));
        let mut merged = MergeCursor::new(tables.iter().map(cursor).collect(), KeyOrder::Bytewise);
        merged.seek_to_first();
        let mut entries = 0;
        while merged.valid() {
            entries += 1;
            merged.next();
        }
        entries
    }
}

/// A block of entries of a [`Sorted`].
#[derive(Debug)]
pub struct Found {
    wanted: BlockRef,
    block: Block,
}

/// A block cache that holds one block.
#[derive(Debug)]
pub struct Cached {
    cache: Arc<Cache>,
    file: u64,
}

impl Default for Cached {
    fn default() -> Cached {
        let cache = Cache::new(1 << 20);
        let file = cache.new_file();
        cache.insert(file, 0, BlockKind::Data, vec![0; 4096].into());
        Cached { cache, file }
    }
}

impl Cached {
    /// Takes the block.
    pub fn hit(&self) -> bool {
        self.cache.get(self.file, 0).is_some()
    }
}
