//! One table, read by itself.

use std::path::Path;

use crate::budget::{Account, Budget, Charge, Item};
use crate::cache::Cache;
use crate::cursor::Cursor;
use crate::error::{Error, Result};
use crate::fs::{Fs, ReadableFile};
use crate::key::{
    InternalKey, KeyOrder, Kind, SEQUENCE_MAX, SequenceNumber, TRAILER_NEWEST, Trailer, kind_of,
    sequence_of,
};
use crate::range_deletes::Fragments;
use crate::stats::Statistics;
use crate::sync::Arc;
use crate::table::meta::{TableFormat, TableMeta};
use crate::table::{
    BlockSummary, ReadContext, Table, TableCursor, TableProperties, describe, is_leveldb,
};

use super::described::Entry;
use super::foreign;

/// One entry of many, see [`TableFile::sample`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SampledEntry {
    /// The key.
    pub key: Vec<u8>,
    /// Its sequence number.
    pub sequence: SequenceNumber,
    /// What is said of the key.
    pub kind: Kind,
    /// Bytes of the value.
    pub value_bytes: usize,
}

/// A table's file, open for reading: ours or LevelDB's.
pub struct TableFile {
    table: Arc<Table>,
    order: KeyOrder,
    context: ReadContext,
    /// How the blocks of a LevelDB table are compressed, where that was looked at.
    codec: Option<&'static str>,
}

impl std::fmt::Debug for TableFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("TableFile").field(&self.table).finish()
    }
}

impl TableFile {
    /// Opens the table `path`, whose keys are in `order`; bytewise order stands for any
    /// that the library has.
    ///
    /// A table of LevelDB does not say its order: the database in whose directory
    /// it lies is asked, if there is one.
    ///
    /// # Errors
    /// `InvalidArgument` if it is in another order; `Incompatible`; `Corruption`
    /// if its footer, its index or its properties are damaged; `Io`.
    pub fn open(fs: &dyn Fs, path: &Path, order: KeyOrder) -> Result<TableFile> {
        let file = fs.open(path).map_err(|error| Error::io(path, "open", error))?;
        if is_leveldb(&*file, path)? {
            let order = foreign::order_for(fs, path, order)?;
            return TableFile::open_leveldb(file, path, order);
        }
        let described = describe(&*file, path)?;
        let order = order.for_stored(&described.order_name).unwrap_or(order);
        TableFile::of(file, path, &described.meta, order)
    }

    /// Opens a LevelDB table that no manifest describes: its bounds are looked up.
    pub(super) fn open_leveldb(
        file: Arc<dyn ReadableFile>,
        path: &Path,
        order: KeyOrder,
    ) -> Result<TableFile> {
        let bytes = file.length().map_err(|error| Error::io(path, "read length of", error))?;
        let unknown = TableMeta {
            bytes,
            format: TableFormat::LevelDb,
            sequence_max: SEQUENCE_MAX,
            ..TableMeta::default()
        };
        let table = TableFile::of(Arc::clone(&file), path, &unknown, order.clone())?;
        // A damaged block has no keys to tell, and does not keep others from
        // being read: whoever verifies the table hears of it.
        let mut cursor = table.cursor();
        cursor.seek_to_first();
        let smallest = key_at(&cursor).map(|(key, at)| InternalKey::before(&key, at, &order));
        cursor.seek_to_last();
        let largest = key_at(&cursor).map(|(key, at)| InternalKey::behind(&key, at, &order));
        let meta = TableMeta {
            smallest: smallest.unwrap_or_default(),
            largest: largest.unwrap_or_default(),
            entries: table.estimated_entries().unwrap_or(0),
            ..unknown
        };
        let codec = Some(table.table.leveldb_codec(&table.context)?);
        Ok(TableFile { codec, ..TableFile::of(file, path, &meta, order)? })
    }

    /// A cursor over its entries.
    pub(crate) fn cursor(&self) -> TableCursor {
        self.table.cursor(self.context.clone())
    }

    /// About how many entries it has: as many in each block as in the first.
    pub(crate) fn estimated_entries(&self) -> Result<u64> {
        let first = self.table.summaries(&self.context).next().transpose()?;
        Ok(first.map_or(0, |block| block.entries * u64::from(self.table.blocks())))
    }

    /// Its range deletes.
    pub(crate) fn fragments(&self) -> &Fragments {
        self.table.range_deletes()
    }

    /// The table that the manifest describes by `meta`.
    pub(crate) fn of(
        file: Arc<dyn ReadableFile>,
        path: &Path,
        meta: &TableMeta,
        order: KeyOrder,
    ) -> Result<TableFile> {
        let cache = Cache::new(0);
        let cache_file = cache.new_file();
        let table = Table::open(file, path.to_path_buf(), meta, order.clone(), cache_file)?;
        let account = Account::new(&Budget::unlimited());
        let context = ReadContext {
            cache,
            fill_cache: false,
            rows: None,
            statistics: Arc::new(Statistics::default()),
            buffers: Charge::new(&account, Item::Cursors),
            waits_for_device: false,
        };
        Ok(TableFile { table: Arc::new(table), order, context, codec: None })
    }

    /// What the table says of itself.
    pub fn properties(&self) -> TableProperties {
        let own = self.table.summary();
        TableProperties { compression: self.codec.unwrap_or(own.compression), ..own }
    }

    /// The same; what the table does not say itself is counted, entry by entry.
    ///
    /// # Errors
    /// `Corruption`, `Io`.
    pub fn counted(&self) -> Result<TableProperties> {
        let mut of = self.properties();
        if of.counted {
            return Ok(of);
        }
        (of.counted, of.entries, of.sequence_min) = (true, 0, SEQUENCE_MAX);
        of.sequence_max = 0;
        let mut cursor = self.cursor();
        cursor.seek_to_first();
        while cursor.valid() {
            let trailer = cursor.trailer();
            let sequence = sequence_of(trailer);
            of.entries += 1;
            of.tombstones += u64::from(kind_of(trailer) == Some(Kind::Delete));
            of.key_bytes += cursor.user_key().len() as u64;
            of.value_bytes += cursor.value().len() as u64;
            of.sequence_min = of.sequence_min.min(sequence);
            of.sequence_max = of.sequence_max.max(sequence);
            cursor.next();
        }
        cursor.status()?;
        Ok(of)
    }

    /// Reads every byte and checks every checksum, the order of the entries,
    /// index, filter and counts.
    ///
    /// # Errors
    /// `Corruption` for the first thing that is wrong; `Io`.
    pub fn verify(&self) -> Result<()> {
        self.table.verify(&self.context).map(|_| ())
    }

    /// The blocks of entries, in order, each read and checked. The first one
    /// that is damaged is an error, and the last item.
    pub fn blocks(&self) -> impl Iterator<Item = Result<BlockSummary>> + '_ {
        until_error(self.table.summaries(&self.context))
    }

    /// The range deletes, in order of their keys: for each number that holds in
    /// a range, an entry.
    pub fn range_deletes(&self) -> impl Iterator<Item = Entry> + '_ {
        self.table.range_deletes().deletes().map(|delete| Entry {
            key: delete.start.to_vec(),
            sequence: delete.sequence,
            kind: Kind::RangeDelete,
            value: delete.end.to_vec(),
        })
    }

    /// The entries in order, range deletes apart. The first block that is
    /// damaged gives an error, and nothing after it.
    pub fn entries(&self) -> Entries {
        let mut cursor = self.table.cursor(self.context.clone());
        cursor.seek_to_first();
        Entries { cursor, failed: false }
    }

    /// The entries from `key` on.
    pub fn entries_from(&self, key: &[u8]) -> Entries {
        let mut cursor = self.table.cursor(self.context.clone());
        cursor.seek(key, TRAILER_NEWEST);
        Entries { cursor, failed: false }
    }

    /// About `count` entries from blocks evenly over the table, without their
    /// values.
    ///
    /// # Errors
    /// `Corruption`, `Io`.
    pub fn sample(&self, count: usize) -> Result<Vec<SampledEntry>> {
        let sampled = self.table.sample(count, &self.context)?.into_iter();
        let entry = |(key, trailer, value_bytes)| SampledEntry {
            key,
            sequence: sequence_of(trailer),
            kind: kind_of(trailer).expect("blocks with other kinds are refused"),
            value_bytes,
        };
        Ok(sampled.map(entry).collect())
    }

    /// What the table says of `key`: every version, and every range delete that
    /// covers it.
    ///
    /// # Errors
    /// `Corruption`, `Io`.
    pub fn versions(&self, key: &[u8]) -> Result<Vec<Entry>> {
        let is_key = |entry: &Result<Entry>| {
            entry.as_ref().map_or(true, |entry| self.order.compare(&entry.key, key).is_eq())
        };
        let mut found: Vec<Entry> =
            self.entries_from(key).take_while(is_key).collect::<Result<_>>()?;
        found.extend(self.range_deletes().filter(|delete| covers(&self.order, delete, key)));
        Ok(found)
    }
}

/// The key and the trailer that `cursor` is at, if it is at one.
fn key_at(cursor: &TableCursor) -> Option<(Vec<u8>, Trailer)> {
    cursor.valid().then(|| (cursor.user_key().to_vec(), cursor.trailer()))
}

/// True if the range delete deletes `key`.
pub(super) fn covers(order: &KeyOrder, delete: &Entry, key: &[u8]) -> bool {
    order.compare(&delete.key, key).is_le() && order.compare(key, &delete.value).is_lt()
}

/// The entries of a table.
pub struct Entries {
    cursor: TableCursor,
    failed: bool,
}

impl std::fmt::Debug for Entries {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Entries").field("failed", &self.failed).finish()
    }
}

impl Iterator for Entries {
    type Item = Result<Entry>;

    fn next(&mut self) -> Option<Result<Entry>> {
        if !self.cursor.valid() {
            let error = self.cursor.status().err().filter(|_| !self.failed)?;
            self.failed = true;
            return Some(Err(error));
        }
        let trailer = self.cursor.trailer();
        let entry = Entry {
            key: self.cursor.user_key().to_vec(),
            sequence: sequence_of(trailer),
            kind: kind_of(trailer).expect("blocks with other kinds are refused"),
            value: self.cursor.value().to_vec(),
        };
        self.cursor.next();
        Some(Ok(entry))
    }
}

/// `items` up to the first error, which is the last one then.
pub(super) fn until_error<T>(
    items: impl Iterator<Item = Result<T>>,
) -> impl Iterator<Item = Result<T>> {
    let mut failed = false;
    items.take_while(move |item| !std::mem::replace(&mut failed, item.is_err()))
}
