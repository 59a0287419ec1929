//! LMDB, by heed. A lookup is a read transaction of its own, a put a write
//! transaction.

use std::ops::Bound;
use std::path::Path;

use heed::types::Bytes;
use heed::{CommitOrAbort, Database, Env, EnvFlags, EnvOpenOptions, RwTxn, WithoutTls};

use crate::engine::{Change, Changes, Direction, Engine, Result};
use crate::failure::Failure;
use crate::lanes::Settings;

/// Address space, not memory: the file grows up to this. A million million
/// bytes are beyond any run.
const MAP_BYTES_MAX: usize = 1 << 40;
/// Threads that read at once.
const READERS_MAX: u32 = 512;

struct Lmdb {
    env: Env<WithoutTls>,
    entries: Database<'static, Bytes, Bytes>,
}

fn failed(error: heed::Error) -> Failure {
    Failure::Failed(format!("LMDB: {error}"))
}

/// The version of LMDB.
pub fn version() -> String {
    let version = heed::lmdb_version();
    format!("{}.{}.{}", version.major, version.minor, version.patch)
}

/// See [`super::open`]. There is nothing to set.
pub fn open(directory: &Path, _settings: &Settings) -> Result<Box<dyn Engine>> {
    let mut options = EnvOpenOptions::new().read_txn_without_tls();
    options.map_size(MAP_BYTES_MAX).max_readers(READERS_MAX);
    // SAFETY: without syncs a power loss may damage the file; a comparison that
    // is cut off by one is void.
    unsafe { options.flags(EnvFlags::NO_SYNC) };
    // SAFETY: the directory is this process's alone, and nobody else changes or
    // truncates the file that is mapped.
    let env = unsafe { options.open(directory) }.map_err(failed)?;
    let transaction = env.write_txn().map_err(failed)?;
    let created = env.create_databases_and_commit(transaction, |opener, transaction| {
        opener.create_database(transaction, None).map(CommitOrAbort::<_, ()>::Commit)
    });
    let entries = created.map_err(failed)?.unwrap_commit();
    Ok(Box::new(Lmdb { env, entries }))
}

impl Lmdb {
    fn change(&self, change: impl FnOnce(&mut RwTxn<'_>) -> heed::Result<()>) -> Result<()> {
        let mut transaction = self.env.write_txn().map_err(failed)?;
        change(&mut transaction).map_err(failed)?;
        transaction.commit().map_err(failed)
    }
}

impl Engine for Lmdb {
    fn put(&self, key: &[u8], value: &[u8]) -> Result<()> {
        self.change(|transaction| self.entries.put(transaction, key, value))
    }

    fn put_synced(&self, key: &[u8], value: &[u8]) -> Result<()> {
        self.put(key, value)?;
        self.env.force_sync().map_err(failed)
    }

    fn delete(&self, key: &[u8]) -> Result<()> {
        self.change(|transaction| self.entries.delete(transaction, key).map(drop))
    }

    fn write(&self, changes: &Changes) -> Result<()> {
        self.change(|transaction| {
            for change in changes.iter() {
                match change {
                    Change::Put(key, value) => self.entries.put(transaction, key, value)?,
                    Change::Delete(key) => drop(self.entries.delete(transaction, key)?),
                }
            }
            Ok(())
        })
    }

    fn get(&self, key: &[u8], visit: &mut dyn FnMut(&[u8])) -> Result<bool> {
        let transaction = self.env.read_txn().map_err(failed)?;
        let value = self.entries.get(&transaction, key).map_err(failed)?;
        if let Some(value) = value {
            visit(value);
        }
        Ok(value.is_some())
    }

    fn multi_get(&self, keys: &[Vec<u8>], visit: &mut dyn FnMut(usize, &[u8])) -> Result<()> {
        let transaction = self.env.read_txn().map_err(failed)?;
        for (at, key) in keys.iter().enumerate() {
            if let Some(value) = self.entries.get(&transaction, key).map_err(failed)? {
                visit(at, value);
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
        let transaction = self.env.read_txn().map_err(failed)?;
        let entries = &self.entries;
        let limit = limit as usize;
        match (direction, from) {
            (Direction::Forward, None) => {
                lend(entries.iter(&transaction).map_err(failed)?.take(limit), visit)
            }
            (Direction::Forward, Some(key)) => {
                let range = (Bound::Included(key), Bound::Unbounded);
                lend(entries.range(&transaction, &range).map_err(failed)?.take(limit), visit)
            }
            (Direction::Backward, None) => {
                lend(entries.rev_iter(&transaction).map_err(failed)?.take(limit), visit)
            }
            (Direction::Backward, Some(key)) => {
                let range = (Bound::Unbounded, Bound::Included(key));
                lend(entries.rev_range(&transaction, &range).map_err(failed)?.take(limit), visit)
            }
        }
    }

    fn wait_until_quiet(&self) -> Result<()> {
        self.env.force_sync().map_err(failed)
    }

    fn bytes_written(&self) -> Option<u64> {
        None
    }
}

fn lend<'a>(
    entries: impl Iterator<Item = heed::Result<(&'a [u8], &'a [u8])>>,
    visit: &mut dyn FnMut(&[u8], &[u8]) -> bool,
) -> Result<()> {
    for entry in entries {
        let (key, value) = entry.map_err(failed)?;
        if !visit(key, value) {
            break;
        }
    }
    Ok(())
}
