//! Single decoders of bytes from outside, and what makes checksums right: for
//! fuzzing.

use std::io;
use std::ops::ControlFlow;
use std::path::Path;

use crate::batch::{BatchRef, Record, WriteBatch};
use crate::budget::{Account, Charge, Item};
use crate::cache::Cache;
use crate::cursor::Cursor;
use crate::error::{Error, Result, Undecodable};
use crate::fs::ReadableFile;
use crate::inspect::Status;
use crate::key::{KeyOrder, Kind, SequenceNumber, TRAILER_NEWEST, sequence_of};
use crate::stats::Statistics;
use crate::sync::Arc;
use crate::table::{self, LookupKey, Need, ReadContext, Table, describe, salvage};
use crate::version::manifest::read_manifest;
use crate::version::{State, VersionEdit};

pub use crate::checksum::{context, crc32c};
pub use crate::table::{check_block, check_section};

/// Sequence number and records of the batch that `bytes` are.
///
/// # Errors
/// What is wrong with them.
pub fn batch_records(
    bytes: &[u8],
) -> std::result::Result<(SequenceNumber, Vec<Record<'_>>), String> {
    let batch = BatchRef::decode(bytes).map_err(Undecodable::into_text)?;
    let records: Vec<Record<'_>> = batch.records().collect();
    assert_eq!(records.len(), batch.record_count() as usize);
    Ok((batch.sequence(), records))
}

/// The batch of `records`; `None` if one of them has no way into a batch.
pub fn batch_of(sequence: SequenceNumber, records: &[Record<'_>]) -> Option<Vec<u8>> {
    let mut batch = WriteBatch::new();
    for record in records {
        match *record {
            Record::Entry { family, kind, key, value } => match kind {
                Kind::Put => batch.put_in(family, key, value),
                Kind::Delete => batch.delete_in(family, key),
                Kind::SingleDelete => batch.single_delete_in(family, key),
                Kind::Merge => batch.merge_in(family, key, value),
                Kind::RangeDelete => batch.delete_range_in(family, key, value),
            },
            Record::Opaque(bytes) => batch.opaque(bytes),
            Record::Hint { .. } => return None,
        }
    }
    batch.set_sequence(sequence);
    Some(batch.as_bytes().to_vec())
}

/// The edit that `bytes` are, written again; `None` if they are none.
pub fn edit_again(bytes: &[u8]) -> Option<Vec<u8>> {
    let edit = VersionEdit::decode(bytes).ok()?;
    let mut again = Vec::new();
    edit.encode(&mut again);
    assert!(VersionEdit::decode(&again).is_ok_and(|decoded| decoded == edit));
    Some(again)
}

/// True if the state that a manifest adds up to is what a checkpoint of it
/// would say. Only for a manifest that can be read.
pub fn checkpoint_again(manifest: &[u8], path: &Path) -> bool {
    let file: Arc<dyn ReadableFile> = Arc::new(Bytes(manifest.to_vec()));
    let state = read_manifest(&file, path, &mut |_, _| {}).expect("it was read before").state;
    let mut again = State::with(state.features);
    state.to_checkpoint().iter().all(|edit| again.apply(edit).is_ok()) && again == state
}

/// The text of a status.
pub fn status_text(status: &Status) -> String {
    status.encode()
}

/// A file that is a byte string.
#[derive(Debug)]
struct Bytes(Vec<u8>);

impl ReadableFile for Bytes {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let rest = self.0.get(offset as usize..).unwrap_or_default();
        let count = rest.len().min(buffer.len());
        buffer[..count].copy_from_slice(&rest[..count]);
        Ok(count)
    }

    fn length(&self) -> io::Result<u64> {
        Ok(self.0.len() as u64)
    }
}

/// Key, sequence number and value of an entry.
pub type Walked = (Vec<u8>, SequenceNumber, Vec<u8>);

/// A table, read in the ways that tools do not need.
#[derive(Debug)]
pub struct TableProbe {
    table: Arc<Table>,
    context: ReadContext,
}

impl TableProbe {
    /// The table that `bytes` are; `None` if it cannot be opened.
    pub fn open(bytes: &[u8]) -> Option<TableProbe> {
        let (path, file) = (Path::new("000007.table"), Arc::new(Bytes(bytes.to_vec())));
        let meta = describe(&*file, path).ok()?.meta;
        let cache = Cache::new(0);
        let order = KeyOrder::Bytewise;
        let table = Table::open(file, path.to_path_buf(), &meta, order, cache.new_file()).ok()?;
        let context = ReadContext {
            cache,
            fill_cache: false,
            rows: None,
            statistics: Arc::new(Statistics::default()),
            buffers: Charge::new(&Account::unlimited(), Item::Cursors),
            waits_for_device: false,
        };
        Some(TableProbe { table: Arc::new(table), context })
    }

    /// Where each stored block begins and ends that can be found: blocks of
    /// entries, then the filter's partitions, then the index's.
    pub fn stored_blocks(&self) -> Vec<(u64, u64)> {
        table::stored_blocks(&self.table, &self.context)
    }

    /// All entries, the last one first.
    ///
    /// # Errors
    /// `Corruption`.
    pub fn backward(&self) -> Result<Vec<Walked>> {
        let mut cursor = self.table.cursor(self.context.clone());
        let mut entries = Vec::new();
        cursor.seek_to_last();
        while cursor.valid() {
            let sequence = sequence_of(cursor.trailer());
            entries.push((cursor.user_key().to_vec(), sequence, cursor.value().to_vec()));
            cursor.prev();
        }
        cursor.status().map(|()| entries)
    }

    /// The number of the newest entry of `key`: filter, index, block.
    ///
    /// # Errors
    /// `Corruption`.
    pub fn get(&self, key: &[u8]) -> Result<Option<SequenceNumber>> {
        let key = LookupKey::new(key, TRAILER_NEWEST);
        let (mut need, mut held, mut found) = (self.table.begin(&key), None, None);
        while let (Need::Block(wanted), None) = (need, found) {
            let block = self.table.read_block(wanted, &self.context)?;
            need = self.table.supply(wanted, &block, &key, &mut held, |trailer, _| {
                found = Some(sequence_of(trailer));
                ControlFlow::Break(())
            });
        }
        Ok(found)
    }

    /// How many entries can be salvaged of the table that `bytes` were; `None`
    /// if not even what it says of itself can be read, or if it takes a later build.
    pub fn salvage(bytes: &[u8]) -> Option<u64> {
        let (path, file) = (Path::new("000007.table"), Bytes(bytes.to_vec()));
        let meta = describe(&file, path).ok()?.meta;
        let mut entries = 0;
        let salvaged = salvage(&file, path, &meta, &KeyOrder::Bytewise, &mut |_, _, _| {
            entries += 1;
            Ok(())
        });
        match salvaged {
            Err(Error::Incompatible { .. }) => None,
            salvaged => {
                assert_eq!(salvaged.expect("damage is no error").entries, entries);
                Some(entries)
            }
        }
    }
}
