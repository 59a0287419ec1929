//! Row cache: single rows of tables, for point reads that come back to keys
//! whose neighbours nobody reads. A block of the block cache has the size of
//! thirty such rows.
//!
//! A row is kept under its table and its key. A table never changes, so a row
//! is right for as long as anybody reads the table, and nothing has to be
//! invalidated. Only what is the newest version of its key in the table is
//! kept, and only if it is a put: then every reader who may see it needs
//! nothing else of that table.

use crate::budget::{Account, Charge, Item, Reservation};
use crate::cache::{BlockKind, Cache};
use crate::key::Trailer;
use crate::sync::{Arc, Mutex, OnceLock};

/// Before the key: the trailer, and the key's length.
const HEADER_BYTES: usize = 12;

/// Recently read rows, up to a number of bytes that may change.
#[derive(Debug)]
pub(crate) struct RowCache {
    /// Made when it is first to hold something, in as many shards as that needs.
    cache: OnceLock<Arc<Cache>>,
    /// All that the cache may hold, set aside.
    memory: Mutex<Reservation>,
}

/// A row that was found: its trailer, and the bytes whose end is its value.
pub(crate) struct Row {
    pub(crate) trailer: Trailer,
    pub(crate) bytes: Arc<[u8]>,
    pub(crate) value_start: usize,
}

impl RowCache {
    /// A cache of `bytes_max`, which are charged to `account`; 0 keeps nothing.
    pub(crate) fn new(bytes_max: usize, account: &Arc<Account>) -> RowCache {
        let memory = Mutex::new(Charge::new(account, Item::Rows).reserve(0));
        let rows = RowCache { cache: OnceLock::new(), memory };
        rows.set_bytes_max(bytes_max);
        rows
    }

    /// Changes what it may hold; what is too much falls out at once.
    pub(crate) fn set_bytes_max(&self, bytes_max: usize) {
        // The reservation is the larger one while both change.
        let mut memory = self.memory.lock();
        let before = memory.bytes();
        memory.resize(bytes_max.max(before));
        if bytes_max > 0 || self.cache.get().is_some() {
            self.cache.get_or_init(|| Cache::new(bytes_max)).set_capacity_bytes(bytes_max);
        }
        memory.resize(bytes_max);
    }

    /// The cache, unless it may hold nothing.
    #[inline]
    pub(crate) fn in_use(&self) -> Option<&RowCache> {
        self.cache.get().filter(|cache| cache.capacity_bytes() > 0).map(|_| self)
    }

    /// The row of `user_key`, whose hash is `hash`, in the table `file`.
    pub(crate) fn get(&self, file: u64, hash: u64, user_key: &[u8]) -> Option<Row> {
        let bytes = self.cache.get()?.get(file, hash)?;
        let (trailer, rest) = bytes.split_first_chunk::<8>()?;
        let (length, rest) = rest.split_first_chunk::<4>()?;
        let trailer = Trailer::from_le_bytes(*trailer);
        // Two keys may have one hash.
        let is_it = u32::from_le_bytes(*length) as usize == user_key.len();
        if !is_it || !rest.starts_with(user_key) {
            return None;
        }
        Some(Row { trailer, value_start: HEADER_BYTES + user_key.len(), bytes })
    }

    /// Keeps a row, in place of one with the same hash.
    pub(crate) fn insert(
        &self,
        file: u64,
        hash: u64,
        user_key: &[u8],
        trailer: Trailer,
        value: &[u8],
    ) {
        let Some(cache) = self.cache.get() else { return };
        let Ok(length) = u32::try_from(user_key.len()) else { return };
        let bytes = HEADER_BYTES + user_key.len() + value.len();
        if bytes > cache.block_bytes_max() {
            return;
        }
        let mut row = Vec::with_capacity(bytes);
        row.extend_from_slice(&trailer.to_le_bytes());
        row.extend_from_slice(&length.to_le_bytes());
        row.extend_from_slice(user_key);
        row.extend_from_slice(value);
        cache.insert(file, hash, BlockKind::Data, row.into());
    }
}

#[cfg(all(test, simulation))]
mod simulation;
#[cfg(all(test, not(simulation)))]
mod tests {
    use super::*;

    fn found(rows: &RowCache, file: u64, hash: u64, key: &[u8]) -> Option<(Trailer, Vec<u8>)> {
        let row = rows.get(file, hash, key)?;
        Some((row.trailer, row.bytes[row.value_start..].to_vec()))
    }

    /// A row is found under its own table and key only.
    #[test]
    fn rows_are_not_mixed_up() {
        let account = Account::unlimited();
        let rows = RowCache::new(1 << 20, &account);
        assert_eq!(account.used(Item::Rows), 1 << 20);
        rows.insert(1, 7, b"key", 300, b"value");
        assert_eq!(found(&rows, 1, 7, b"key"), Some((300, b"value".to_vec())));
        assert_eq!(found(&rows, 2, 7, b"key"), None);
        // The same hash by chance: also of keys that begin like the row.
        for other in [&b"ke"[..], b"kex", b"keyv", b""] {
            assert_eq!(found(&rows, 1, 7, other), None);
        }
        rows.insert(1, 8, b"", 1, b"");
        assert_eq!(found(&rows, 1, 8, b""), Some((1, Vec::new())));
        rows.insert(1, 9, b"large", 1, &[0; 2 << 20]);
        assert_eq!(found(&rows, 1, 9, b"large"), None);
    }

    /// What it may hold is what is set aside, whichever way that changes.
    #[test]
    fn the_reservation_follows_the_size() {
        let account = Account::unlimited();
        let rows = RowCache::new(0, &account);
        assert!(rows.in_use().is_none());
        for bytes in [1 << 20, 4 << 10, 0, 64 << 10] {
            rows.set_bytes_max(bytes);
            assert_eq!(account.used(Item::Rows), bytes);
            assert_eq!(rows.in_use().is_some(), bytes > 0);
            rows.insert(1, bytes as u64, b"key", 300, b"value");
            let is_kept = found(&rows, 1, bytes as u64, b"key").is_some();
            assert_eq!(is_kept, bytes > 0, "of {bytes} bytes");
        }
    }
}
