//! What the tests of this module share: files in memory, entries by seed, and
//! tables built from them.

use crate::sync::Mutex;
use std::io;
use std::path::{Path, PathBuf};

use crate::budget::{Account, Charge, Item};
use crate::cache::Cache;
use crate::cursor::Cursor;
use crate::error::Result;
use crate::fs::{ReadableFile, WritableFile};
use crate::key::{FileId, KeyOrder, Kind, Trailer, trailer};
use crate::range_deletes::Fragments;
use crate::stats::Statistics;
use crate::sync::Arc;

use super::format::Footer;
use super::meta::TableMeta;
use super::reader::Origin;
use super::{BlockRef, Compression, ReadContext, Table, TableBuilder, TableSettings};

pub(super) const ID: FileId = FileId(0x1234_5678_9abc_def0_0fed_cba9_8765_4321);

/// A file that is a byte string.
#[derive(Debug)]
pub(super) struct BytesFile(pub(super) Vec<u8>);

impl ReadableFile for BytesFile {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let rest = self.0.get(offset as usize..).unwrap_or(&[]);
        let count = rest.len().min(buffer.len());
        buffer[..count].copy_from_slice(&rest[..count]);
        Ok(count)
    }

    fn length(&self) -> io::Result<u64> {
        Ok(self.0.len() as u64)
    }
}

/// A file being written, whose bytes can be had afterwards.
#[derive(Clone, Debug, Default)]
pub(super) struct BytesSink {
    pub(super) bytes: Arc<Mutex<Vec<u8>>>,
    pub(super) fails: bool,
}

impl WritableFile for BytesSink {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.fails {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.bytes.lock().extend_from_slice(bytes);
        Ok(())
    }

    fn sync(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn truncate(&mut self, length: u64) -> io::Result<()> {
        self.bytes.lock().truncate(length as usize);
        Ok(())
    }

    fn close(self: Box<Self>) -> io::Result<()> {
        Ok(())
    }
}

pub(super) type Entry = (Vec<u8>, Trailer, Vec<u8>);

pub(super) fn settings(block_bytes: usize, compression: Compression) -> TableSettings {
    TableSettings { block_bytes, compression, ..TableSettings::plain(buffers()) }
}

/// The bytes of a table of `entries`, and what the manifest would know.
pub(super) fn build(entries: &[Entry], settings: &TableSettings) -> (Vec<u8>, TableMeta) {
    build_with_id(entries, settings, ID)
}

pub(super) fn build_with_id(
    entries: &[Entry],
    settings: &TableSettings,
    id: FileId,
) -> (Vec<u8>, TableMeta) {
    build_whole(entries, settings, id, Fragments::default())
}

pub(super) fn build_with_range_deletes(
    entries: &[Entry],
    settings: &TableSettings,
    deletes: Fragments,
) -> (Vec<u8>, TableMeta) {
    build_whole(entries, settings, ID, deletes)
}

fn build_whole(
    entries: &[Entry],
    settings: &TableSettings,
    id: FileId,
    deletes: Fragments,
) -> (Vec<u8>, TableMeta) {
    let sink = BytesSink::default();
    let file = Box::new(sink.clone());
    let mut builder = TableBuilder::new(file, Path::new("t"), id, settings.clone()).unwrap();
    for (key, trailer, value) in entries {
        builder.add(key, *trailer, value).unwrap();
    }
    builder.set_range_deletes(deletes);
    let meta = builder.finish().unwrap();
    let bytes = std::mem::take(&mut *sink.bytes.lock());
    (bytes, meta)
}

pub(super) fn open(bytes: Vec<u8>, meta: &TableMeta, order: &KeyOrder) -> Result<Arc<Table>> {
    let file = Arc::new(BytesFile(bytes));
    Table::open(file, PathBuf::from("t"), meta, order.clone(), 1).map(Arc::new)
}

/// The footer of a table of our own.
pub(super) fn footer(table: &Table) -> &Footer {
    match &table.origin {
        Origin::Native { footer, .. } => footer,
        Origin::LevelDb => unreachable!("it was built here"),
    }
}

pub(super) fn context() -> ReadContext {
    ReadContext {
        cache: Cache::new(1 << 20),
        fill_cache: true,
        rows: None,
        statistics: Arc::new(Statistics::default()),
        buffers: buffers(),
        waits_for_device: false,
    }
}

/// All entries, as a walk finds them.
pub(super) fn all_entries(table: &Arc<Table>) -> Vec<Entry> {
    let mut cursor = table.cursor(context());
    let mut found = Vec::new();
    cursor.seek_to_first();
    while cursor.valid() {
        found.push((cursor.user_key().to_vec(), cursor.trailer(), cursor.value().to_vec()));
        cursor.next();
    }
    cursor.status().unwrap();
    found
}

/// What to read to have block `index` of entries.
pub(super) fn block_ref(table: &Table, index: u32) -> BlockRef {
    super::locator::Locator::default().locate(table, index, &context()).unwrap()
}

pub(super) fn buffers() -> Charge {
    Charge::new(&Account::unlimited(), Item::Cursors)
}

/// A small generator of numbers that follow from a seed (xorshift64*).
pub(super) struct Random(u64);

impl Random {
    pub(super) fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub(super) fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 11
    }

    pub(super) fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

    pub(super) fn bytes(&mut self, length: usize, letters: u64) -> Vec<u8> {
        (0..length).map(|_| (self.next() % letters) as u8).collect()
    }
}

/// How the keys of a test table look.
#[derive(Clone, Copy, Debug)]
pub(super) enum Shape {
    /// 16 decimal digits.
    Decimal,
    /// 40 random bytes.
    Hash,
    /// Few letters, zero among them: many are prefixes of others.
    Nested,
    /// A long common start, then numbers of different lengths.
    LongPrefix,
    /// Anything from no byte to 300.
    Wild,
}

pub(super) const SHAPES: [Shape; 5] =
    [Shape::Decimal, Shape::Hash, Shape::Nested, Shape::LongPrefix, Shape::Wild];

impl Shape {
    pub(super) fn key(self, random: &mut Random) -> Vec<u8> {
        match self {
            Shape::Decimal => format!("{:016}", random.below(5000)).into_bytes(),
            Shape::Hash => random.bytes(40, 256),
            Shape::Nested => {
                let length = random.below(12);
                random.bytes(length, 3)
            }
            Shape::LongPrefix => {
                format!("a/long/common/start/of/keys/{}", random.below(100_000)).into_bytes()
            }
            Shape::Wild => {
                let length = random.below(300);
                let letters = [2, 256][random.below(2)];
                random.bytes(length, letters)
            }
        }
    }
}

const KINDS: [Kind; 5] = [Kind::Put, Kind::Put, Kind::Delete, Kind::Merge, Kind::SingleDelete];

/// About `count` entries in order, some keys with several versions.
pub(super) fn entries(shape: Shape, count: usize, seed: u64, order: &KeyOrder) -> Vec<Entry> {
    let mut random = Random::new(seed);
    let one_kind = random.below(2) == 0;
    let one_sequence = random.below(3) == 0;
    let value_bytes = random.below(2) * 50;
    let mut entries = Vec::new();
    while entries.len() < count {
        let key = shape.key(&mut random);
        let versions = if random.below(10) == 0 { 1 + random.below(20) } else { 1 };
        for _ in 0..versions {
            let sequence = if one_sequence { 0 } else { random.next() % (1 << random.below(56)) };
            let kind = if one_kind { Kind::Put } else { KINDS[random.below(KINDS.len())] };
            let length = if value_bytes > 0 { value_bytes } else { random.below(200) };
            entries.push((key.clone(), trailer(sequence, kind), random.bytes(length, 9)));
        }
    }
    entries.sort_by(|a, b| order.compare_entries((&a.0, a.1), (&b.0, b.1)));
    entries.dedup_by(|a, b| order.compare(&a.0, &b.0).is_eq() && a.1 == b.1);
    entries
}
