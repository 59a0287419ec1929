//! RocksDB.

use std::path::Path;

use rocksdb::{
    BlockBasedOptions, Cache, ColumnFamilyDescriptor, DB, DBCompressionType, DataBlockIndexType,
    Options, ReadOptions, WaitForCompactOptions, WriteBatch, WriteOptions,
};

use crate::engine::{Change, Changes, Direction, Engine, Result};
use crate::failure::Failure;
use crate::lanes::{Codec, Settings};

/// The family that calls without one use.
const FAMILY: &str = "default";
/// RocksDB's constructor takes a limit as an int.
const FILES_MAX: u64 = i32::MAX as u64;

struct RocksDb {
    db: DB,
    verify_checksums: Option<bool>,
    async_multi_get: bool,
    read: ReadOptions,
    write: WriteOptions,
    synced: WriteOptions,
}

fn failed(error: rocksdb::Error) -> Failure {
    Failure::Failed(format!("RocksDB: {error}"))
}

/// See [`super::open`].
pub fn open(directory: &Path, settings: &Settings) -> Result<Box<dyn Engine>> {
    let options = options(settings);
    let family = ColumnFamilyDescriptor::new(FAMILY, options.clone());
    let db = DB::open_cf_descriptors(&options, directory, [family]).map_err(failed)?;
    let mut synced = WriteOptions::default();
    synced.set_sync(true);
    Ok(Box::new(RocksDb {
        db,
        verify_checksums: settings.verify_checksums,
        async_multi_get: settings.async_multi_get == Some(true),
        read: read_options(settings.verify_checksums),
        write: WriteOptions::default(),
        synced,
    }))
}

fn read_options(verify_checksums: Option<bool>) -> ReadOptions {
    let mut options = ReadOptions::default();
    if let Some(verify) = verify_checksums {
        options.set_verify_checksums(verify);
    }
    options
}

fn options(settings: &Settings) -> Options {
    let mut options = Options::default();
    options.create_if_missing(true);
    if let Some(bytes) = settings.memtable_bytes {
        options.set_write_buffer_size(bytes.size());
    }
    if let Some(memtables) = settings.memtables {
        options.set_max_write_buffer_number(memtables as i32);
    }
    if let Some(bytes) = settings.table_bytes {
        options.set_target_file_size_base(bytes.0);
    }
    if let Some(codec) = settings.codec {
        options.set_compression_type(match codec {
            Codec::Snappy => DBCompressionType::Snappy,
            Codec::Lz4 => DBCompressionType::Lz4,
        });
    }
    if let Some(threads) = settings.background_threads {
        options.set_max_background_jobs(threads as i32);
    }
    if settings.preloaded_tables == Some(true) {
        // As many files as it has: it then opens them all at once.
        options.set_max_open_files(-1);
    }
    if let Some(files) = settings.open_files {
        options.set_max_open_files(files.min(FILES_MAX) as i32);
    }
    if let Some(logs) = settings.recycled_logs {
        options.set_recycle_log_file_num(logs as usize);
    }
    if let Some(pipelined) = settings.pipelined_writes {
        options.set_enable_pipelined_write(pipelined);
    }
    if let Some(mapped) = settings.mapped_tables {
        options.set_allow_mmap_reads(mapped);
    }
    if let Some(direct) = settings.direct_reads {
        options.set_use_direct_reads(direct);
    }
    if let Some(dynamic) = settings.dynamic_levels {
        options.set_level_compaction_dynamic_level_bytes(dynamic);
    }
    options.set_block_based_table_factory(&block_options(settings));
    options
}

fn block_options(settings: &Settings) -> BlockBasedOptions {
    let mut blocks = BlockBasedOptions::default();
    if let Some(bytes) = settings.block_bytes {
        blocks.set_block_size(bytes.size());
    }
    if let Some(bits) = settings.filter_bits {
        // Whole tables, not LevelDB's filters by block.
        blocks.set_bloom_filter(bits as f64, false);
    }
    if let Some(bytes) = settings.cache_bytes {
        blocks.set_block_cache(&match settings.hyper_clock_cache {
            // A charge of 0 lets the cache find out how large entries are.
            Some(true) => Cache::new_hyper_clock_cache(bytes.size(), 0),
            _ => Cache::new_lru_cache(bytes.size()),
        });
    }
    if settings.block_hash_index == Some(true) {
        blocks.set_data_block_index_type(DataBlockIndexType::BinaryAndHash);
    }
    blocks
}

impl Engine for RocksDb {
    fn put(&self, key: &[u8], value: &[u8]) -> Result<()> {
        self.db.put_opt(key, value, &self.write).map_err(failed)
    }

    fn put_synced(&self, key: &[u8], value: &[u8]) -> Result<()> {
        self.db.put_opt(key, value, &self.synced).map_err(failed)
    }

    fn delete(&self, key: &[u8]) -> Result<()> {
        self.db.delete_opt(key, &self.write).map_err(failed)
    }

    fn write(&self, changes: &Changes) -> Result<()> {
        let mut batch = WriteBatch::default();
        for change in changes.iter() {
            match change {
                Change::Put(key, value) => batch.put(key, value),
                Change::Delete(key) => batch.delete(key),
            }
        }
        self.db.write_opt(batch, &self.write).map_err(failed)
    }

    fn get(&self, key: &[u8], visit: &mut dyn FnMut(&[u8])) -> Result<bool> {
        let value = self.db.get_pinned_opt(key, &self.read).map_err(failed)?;
        if let Some(value) = &value {
            visit(value);
        }
        Ok(value.is_some())
    }

    fn multi_get(&self, keys: &[Vec<u8>], visit: &mut dyn FnMut(usize, &[u8])) -> Result<()> {
        let family = self.db.cf_handle(FAMILY);
        let family = family.ok_or_else(|| Failure::Failed("RocksDB: no family".to_string()))?;
        let mut options = read_options(self.verify_checksums);
        options.set_async_io(self.async_multi_get);
        let sorted = keys.is_sorted();
        let values = self.db.batched_multi_get_cf_opt(&family, keys, sorted, &options);
        for (at, value) in values.into_iter().enumerate() {
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
        let mut cursor = self.db.raw_iterator_opt(read_options(self.verify_checksums));
        match (direction, from) {
            (Direction::Forward, None) => cursor.seek_to_first(),
            (Direction::Forward, Some(key)) => cursor.seek(key),
            (Direction::Backward, None) => cursor.seek_to_last(),
            (Direction::Backward, Some(key)) => cursor.seek_for_prev(key),
        }
        let mut left = limit;
        while left > 0 {
            let Some((key, value)) = cursor.item() else { break };
            left -= 1;
            if !visit(key, value) || left == 0 {
                break;
            }
            match direction {
                Direction::Forward => cursor.next(),
                Direction::Backward => cursor.prev(),
            }
        }
        cursor.status().map_err(failed)
    }

    fn wait_until_quiet(&self) -> Result<()> {
        self.db.wait_for_compact(&WaitForCompactOptions::default()).map_err(failed)
    }

    fn bytes_written(&self) -> Option<u64> {
        // Its counters cost what would have to be measured apart.
        None
    }
}
