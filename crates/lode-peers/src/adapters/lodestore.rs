//! Lodestore.

use std::path::Path;

use lodestore::{Compression, Counter, Db, Options, ReadOptions, WriteBatch, WriteOptions};

use crate::engine::{Change, Changes, Direction, Engine, Result};
use crate::failure::Failure;
use crate::lanes::{Codec, Settings};

struct Lodestore(Db);

fn failed(error: lodestore::Error) -> Failure {
    Failure::Failed(format!("lodestore: {error}"))
}

/// See [`super::open`]. Checksums are always compared.
pub fn open(directory: &Path, settings: &Settings) -> Result<Box<dyn Engine>> {
    let db = Db::open(directory, options(settings)).map_err(failed)?;
    Ok(Box::new(Lodestore(db)))
}

fn options(settings: &Settings) -> Options {
    let mut options = Options { create_if_missing: true, ..Options::default() };
    if let Some(bytes) = settings.cache_bytes {
        options.cache_bytes = bytes.size();
    }
    if let Some(threads) = settings.background_threads {
        // One more flushes.
        options.background_threads = (threads as usize).saturating_sub(1).max(1);
    }
    if settings.mapped_tables == Some(true) {
        options.mapped_bytes_max = u64::MAX;
    }
    options.preload_tables = settings.preloaded_tables.unwrap_or(false);
    options.direct_reads = settings.direct_reads.unwrap_or(false);
    options.open_files_max = settings.open_files.map(|files| files as usize);
    let family = &mut options.family;
    if let Some(bytes) = settings.memtable_bytes {
        family.memtable_bytes = bytes.size();
    }
    if let Some(memtables) = settings.memtables {
        family.sealed_memtables_max = (memtables as usize).saturating_sub(1).max(1);
    }
    if let Some(bytes) = settings.block_bytes {
        family.block_bytes = bytes.size();
    }
    if let Some(bytes) = settings.table_bytes {
        family.table_bytes = bytes.0;
    }
    if let Some(codec) = settings.codec {
        family.compression = match codec {
            Codec::Snappy => Compression::Snappy,
            Codec::Lz4 => Compression::Lz4,
        };
    }
    if let Some(bits) = settings.filter_bits {
        family.filter_bits_per_key = bits as u8;
    }
    options
}

impl Engine for Lodestore {
    fn put(&self, key: &[u8], value: &[u8]) -> Result<()> {
        self.0.put(key, value).map_err(failed)
    }

    fn put_synced(&self, key: &[u8], value: &[u8]) -> Result<()> {
        self.0.put_with(&WriteOptions::SYNCED, key, value).map_err(failed)
    }

    fn delete(&self, key: &[u8]) -> Result<()> {
        self.0.delete(key).map_err(failed)
    }

    fn write(&self, changes: &Changes) -> Result<()> {
        let mut batch = WriteBatch::with_capacity(changes.bytes() + 16 * changes.len());
        for change in changes.iter() {
            match change {
                Change::Put(key, value) => batch.put(key, value),
                Change::Delete(key) => batch.delete(key),
            }
        }
        self.0.write(batch).map_err(failed)
    }

    fn get(&self, key: &[u8], visit: &mut dyn FnMut(&[u8])) -> Result<bool> {
        let value = self.0.get(key).map_err(failed)?;
        if let Some(value) = &value {
            visit(value);
        }
        Ok(value.is_some())
    }

    fn multi_get(&self, keys: &[Vec<u8>], visit: &mut dyn FnMut(usize, &[u8])) -> Result<()> {
        for (at, value) in self.0.multi_get(keys).into_iter().enumerate() {
            if let Some(value) = value.map_err(failed)? {
                visit(at, &value);
            }
        }
        Ok(())
    }

    fn scan(
        &self,
        from: Option<&[u8]>,
        direction: Direction,
        limit: u64,
        visit: &mut dyn FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<()> {
        let mut cursor = self.0.cursor_with(ReadOptions::default());
        match (direction, from) {
            (Direction::Forward, None) => cursor.first(),
            (Direction::Forward, Some(key)) => cursor.seek(key),
            (Direction::Backward, None) => cursor.last(),
            (Direction::Backward, Some(key)) => cursor.seek_for_prev(key),
        }
        let mut left = limit;
        while left > 0 && cursor.valid() && visit(cursor.key(), cursor.value()) {
            left -= 1;
            match direction {
                _ if left == 0 => break,
                Direction::Forward => cursor.next(),
                Direction::Backward => cursor.prev(),
            }
        }
        cursor.status().map_err(failed)
    }

    fn wait_until_quiet(&self) -> Result<()> {
        self.0.wait_for_background().map_err(failed)
    }

    fn bytes_written(&self) -> Option<u64> {
        let statistics = self.0.statistics();
        let tables: u64 = statistics.traffic().iter().map(|level| level.bytes_written).sum();
        Some(tables + statistics.get(Counter::LogBytes))
    }
}
