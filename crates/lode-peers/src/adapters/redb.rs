//! redb.

use std::path::Path;

use redb::{
    Database, Durability, ReadOnlyTable, ReadableDatabase as _, TableDefinition, TableError,
    WriteTransaction,
};

use crate::engine::{Change, Changes, Direction, Engine, Result};
use crate::failure::Failure;
use crate::lanes::Settings;

const TABLE: TableDefinition<'_, &[u8], &[u8]> = TableDefinition::new("entries");

struct Redb(Database);

fn failed(error: impl std::fmt::Display) -> Failure {
    Failure::Failed(format!("redb: {error}"))
}

/// See [`super::open`].
pub fn open(directory: &Path, settings: &Settings) -> Result<Box<dyn Engine>> {
    let mut builder = Database::builder();
    if let Some(bytes) = settings.cache_bytes {
        builder.set_cache_size(bytes.size());
    }
    let database = builder.create(directory.join("entries.redb")).map_err(failed)?;
    let redb = Redb(database);
    // So that readers find a table, empty or not.
    redb.commit(Durability::Immediate, &Changes::default())?;
    Ok(Box::new(redb))
}

impl Redb {
    fn begin(&self, durability: Durability) -> Result<WriteTransaction> {
        let mut transaction = self.0.begin_write().map_err(failed)?;
        transaction.set_durability(durability).map_err(failed)?;
        Ok(transaction)
    }

    fn commit(&self, durability: Durability, changes: &Changes) -> Result<()> {
        let transaction = self.begin(durability)?;
        {
            let mut table = transaction.open_table(TABLE).map_err(failed)?;
            for change in changes.iter() {
                match change {
                    Change::Put(key, value) => drop(table.insert(key, value).map_err(failed)?),
                    Change::Delete(key) => drop(table.remove(key).map_err(failed)?),
                }
            }
        }
        transaction.commit().map_err(failed)
    }

    fn put_as(&self, durability: Durability, key: &[u8], value: &[u8]) -> Result<()> {
        let transaction = self.begin(durability)?;
        let mut table = transaction.open_table(TABLE).map_err(failed)?;
        drop(table.insert(key, value).map_err(failed)?);
        drop(table);
        transaction.commit().map_err(failed)
    }

    fn table(&self) -> Result<ReadOnlyTable<&'static [u8], &'static [u8]>> {
        let transaction = self.0.begin_read().map_err(failed)?;
        transaction.open_table(TABLE).map_err(|error: TableError| failed(error))
    }
}

impl Engine for Redb {
    fn put(&self, key: &[u8], value: &[u8]) -> Result<()> {
        self.put_as(Durability::None, key, value)
    }

    fn put_synced(&self, key: &[u8], value: &[u8]) -> Result<()> {
        self.put_as(Durability::Immediate, key, value)
    }

    fn delete(&self, key: &[u8]) -> Result<()> {
        let mut changes = Changes::default();
        changes.delete(key);
        self.commit(Durability::None, &changes)
    }

    fn write(&self, changes: &Changes) -> Result<()> {
        self.commit(Durability::None, changes)
    }

    fn get(&self, key: &[u8], visit: &mut dyn FnMut(&[u8])) -> Result<bool> {
        let table = self.table()?;
        let value = table.get(key).map_err(failed)?;
        if let Some(value) = &value {
            visit(value.value());
        }
        Ok(value.is_some())
    }

    fn multi_get(&self, keys: &[Vec<u8>], visit: &mut dyn FnMut(usize, &[u8])) -> Result<()> {
        let table = self.table()?;
        for (at, key) in keys.iter().enumerate() {
            if let Some(value) = table.get(key.as_slice()).map_err(failed)? {
                visit(at, value.value());
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
        let table = self.table()?;
        let mut entries = match (direction, from) {
            (_, None) => table.range::<&[u8]>(..),
            (Direction::Forward, Some(key)) => table.range(key..),
            (Direction::Backward, Some(key)) => table.range(..=key),
        }
        .map_err(failed)?;
        for _ in 0..limit {
            let entry = match direction {
                Direction::Forward => entries.next(),
                Direction::Backward => entries.next_back(),
            };
            let Some(entry) = entry else { break };
            let (key, value) = entry.map_err(failed)?;
            if !visit(key.value(), value.value()) {
                break;
            }
        }
        Ok(())
    }

    fn wait_until_quiet(&self) -> Result<()> {
        self.commit(Durability::Immediate, &Changes::default())
    }

    fn bytes_written(&self) -> Option<u64> {
        None
    }
}
