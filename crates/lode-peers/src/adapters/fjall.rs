//! fjall.

use std::path::Path;

use fjall::config::{
    BlockSizePolicy, BloomConstructionPolicy, CompressionPolicy, FilterPolicy, FilterPolicyEntry,
};
use fjall::{
    CompressionType, Database, Guard, Keyspace, KeyspaceCreateOptions, PersistMode, Readable as _,
};

use crate::engine::{Change, Changes, Direction, Engine, Result};
use crate::failure::Failure;
use crate::lanes::{Codec, Settings};

struct Fjall {
    database: Database,
    entries: Keyspace,
}

fn failed(error: fjall::Error) -> Failure {
    Failure::Failed(format!("fjall: {error}"))
}

/// See [`super::open`]. Checksums are always compared.
pub fn open(directory: &Path, settings: &Settings) -> Result<Box<dyn Engine>> {
    if settings.codec == Some(Codec::Snappy) {
        return Err(Failure::Cannot("fjall has no Snappy".to_string()));
    }
    let mut builder = Database::builder(directory);
    if let Some(bytes) = settings.cache_bytes {
        builder = builder.cache_size(bytes.0);
    }
    if let Some(threads) = settings.background_threads {
        builder = builder.worker_threads(threads as usize);
    }
    if let Some(files) = settings.open_files {
        builder = builder.max_cached_files(Some(files as usize));
    }
    let database = builder.open().map_err(failed)?;
    let entries = database.keyspace("entries", || keyspace_options(settings)).map_err(failed)?;
    Ok(Box::new(Fjall { database, entries }))
}

fn keyspace_options(settings: &Settings) -> KeyspaceCreateOptions {
    let mut options = KeyspaceCreateOptions::default();
    if let Some(bytes) = settings.memtable_bytes {
        options = options.max_memtable_size(bytes.0);
    }
    if let Some(bytes) = settings.block_bytes {
        options = options.data_block_size_policy(BlockSizePolicy::all(bytes.0 as u32));
    }
    if settings.codec.is_some() {
        let policy = CompressionPolicy::all(CompressionType::Lz4);
        options = options.data_block_compression_policy(policy);
    }
    if let Some(bits) = settings.filter_bits {
        let bloom = BloomConstructionPolicy::BitsPerKey(bits as f32);
        options = options.filter_policy(FilterPolicy::all(FilterPolicyEntry::Bloom(bloom)));
    }
    options
}

impl Engine for Fjall {
    fn put(&self, key: &[u8], value: &[u8]) -> Result<()> {
        self.entries.insert(key, value).map_err(failed)
    }

    fn put_synced(&self, key: &[u8], value: &[u8]) -> Result<()> {
        self.put(key, value)?;
        self.database.persist(PersistMode::SyncData).map_err(failed)
    }

    fn delete(&self, key: &[u8]) -> Result<()> {
        self.entries.remove(key).map_err(failed)
    }

    fn write(&self, changes: &Changes) -> Result<()> {
        let mut batch = self.database.batch();
        for change in changes.iter() {
            match change {
                Change::Put(key, value) => batch.insert(&self.entries, key, value),
                Change::Delete(key) => batch.remove(&self.entries, key),
            }
        }
        batch.commit().map_err(failed)
    }

    fn get(&self, key: &[u8], visit: &mut dyn FnMut(&[u8])) -> Result<bool> {
        let value = self.entries.get(key).map_err(failed)?;
        if let Some(value) = &value {
            visit(value);
        }
        Ok(value.is_some())
    }

    fn scan(
        &self,
        from: Option<&[u8]>,
        direction: Direction,
        limit: u64,
        visit: &mut dyn FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<()> {
        let snapshot = self.database.snapshot();
        let entries = match (direction, from) {
            (_, None) => snapshot.iter(&self.entries),
            (Direction::Forward, Some(key)) => snapshot.range(&self.entries, key..),
            (Direction::Backward, Some(key)) => snapshot.range(&self.entries, ..=key),
        };
        match direction {
            Direction::Forward => lend(entries, limit, visit),
            Direction::Backward => lend(entries.rev(), limit, visit),
        }
    }

    fn wait_until_quiet(&self) -> Result<()> {
        // It has no such call; what the process does is watched.
        Ok(())
    }

    fn bytes_written(&self) -> Option<u64> {
        None
    }
}

fn lend(
    entries: impl Iterator<Item = Guard>,
    limit: u64,
    visit: &mut dyn FnMut(&[u8], &[u8]) -> bool,
) -> Result<()> {
    for entry in entries.take(limit as usize) {
        let (key, value) = entry.into_inner().map_err(failed)?;
        if !visit(&key, &value) {
            break;
        }
    }
    Ok(())
}
