//! Block cache: recently read blocks of all tables, up to a number of bytes.
//!
//! It knows nothing of tables: a block is bytes under (file, offset), and the
//! file's number comes from [`Cache::new_file`]. Blocks that a reader holds
//! stay alive after they were evicted.
//!
//! Sharded, so that threads seldom meet; each shard evicts by CLOCK: a hit
//! sets a bit, the hand clears bits until it finds a block without one. New
//! blocks come without the bit, so that a long scan pushes out what was read
//! once before what was read again.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use crate::sync::atomic::{AtomicU64, Ordering};
use crate::sync::{Arc, Mutex};

/// Bytes that a cached block costs beside its content: table slots, key,
/// reference counts and what the allocator adds.
const OVERHEAD_BYTES: usize = 96;

/// A shard smaller than this holds too few blocks to be fair to them.
const SHARD_BYTES_MIN: usize = 512 << 10;
const SHARDS_MAX: usize = 64;

/// A cache of blocks, shared by any number of databases.
pub struct Cache {
    shards: Vec<Mutex<Shard>>,
    capacity_bytes: usize,
    next_file: AtomicU64,
}

impl std::fmt::Debug for Cache {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cache").field("capacity_bytes", &self.capacity_bytes).finish()
    }
}

impl Cache {
    /// A cache that holds up to `capacity_bytes`, its own overhead included.
    /// 0 keeps nothing.
    pub fn new(capacity_bytes: usize) -> Arc<Cache> {
        let count = (capacity_bytes / SHARD_BYTES_MIN).clamp(1, SHARDS_MAX);
        let count = 1 << count.ilog2(); // a power of two, so that a mask finds the shard
        let shard = || Mutex::new(Shard::new(capacity_bytes / count));
        let shards = (0..count).map(|_| shard()).collect();
        Arc::new(Cache { shards, capacity_bytes, next_file: AtomicU64::new(1) })
    }

    /// What it may hold, in bytes.
    pub fn capacity_bytes(&self) -> usize {
        self.capacity_bytes
    }

    /// What it holds now, in bytes.
    pub fn used_bytes(&self) -> usize {
        self.shards.iter().map(|s| s.lock().used_bytes).sum()
    }

    /// A number under which an open file's blocks are kept; never reused.
    pub(crate) fn new_file(&self) -> u64 {
        self.next_file.fetch_add(1, Ordering::Relaxed)
    }

    /// The block of `file` at `offset`, if it is here.
    pub(crate) fn get(&self, file: u64, offset: u64) -> Option<Arc<[u8]>> {
        let key = Key { file, offset };
        self.shard(key).lock().get(key)
    }

    /// Keeps `block`, evicting others as needed. A block that is larger than a
    /// shard is not kept.
    pub(crate) fn insert(&self, file: u64, offset: u64, block: Arc<[u8]>) {
        let key = Key { file, offset };
        // What falls out is freed after the lock is released.
        let evicted = self.shard(key).lock().insert(key, block);
        drop(evicted);
    }

    fn shard(&self, key: Key) -> &Mutex<Shard> {
        // The map inside a shard uses the low bits of the same hash.
        let index = (key.hash() >> 48) as usize & (self.shards.len() - 1);
        &self.shards[index]
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
struct Key {
    file: u64,
    offset: u64,
}

impl Key {
    fn hash(self) -> u64 {
        let mixed = (self.file << 40 ^ self.offset).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        mixed ^ mixed >> 29
    }
}

impl std::hash::Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(Key::hash(*self));
    }
}

/// Passes the number through: [`Key::hash`] has mixed it already.
#[derive(Default)]
struct Mixed(u64);

impl Hasher for Mixed {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, _: &[u8]) {
        unreachable!("keys hash as one u64");
    }
    fn write_u64(&mut self, value: u64) {
        self.0 = value.rotate_left(17); // the map wants good bits at both ends
    }
}

struct Shard {
    capacity_bytes: usize,
    used_bytes: usize,
    places: HashMap<Key, u32, BuildHasherDefault<Mixed>>,
    slots: Vec<Slot>,
    hand: usize,
}

struct Slot {
    key: Key,
    block: Arc<[u8]>,
    used_again: bool,
}

impl Shard {
    fn new(capacity_bytes: usize) -> Shard {
        Shard {
            capacity_bytes,
            used_bytes: 0,
            places: HashMap::default(),
            slots: Vec::new(),
            hand: 0,
        }
    }

    fn get(&mut self, key: Key) -> Option<Arc<[u8]>> {
        let slot = &mut self.slots[*self.places.get(&key)? as usize];
        slot.used_again = true;
        Some(Arc::clone(&slot.block))
    }

    fn insert(&mut self, key: Key, block: Arc<[u8]>) -> Vec<Arc<[u8]>> {
        let bytes = block.len() + OVERHEAD_BYTES;
        if bytes > self.capacity_bytes || self.places.contains_key(&key) {
            return Vec::new();
        }
        let mut evicted = Vec::new();
        while self.used_bytes + bytes > self.capacity_bytes {
            evicted.push(self.evict());
        }
        self.used_bytes += bytes;
        self.places.insert(key, self.slots.len() as u32);
        self.slots.push(Slot { key, block, used_again: false });
        if !evicted.is_empty() {
            self.put_last_behind_hand();
        }
        evicted
    }

    /// Gives the newest block the place where the hand has made room, and
    /// moves the hand on: the block's turn is a whole round away.
    fn put_last_behind_hand(&mut self) {
        let last = self.slots.len() - 1;
        self.slots.swap(self.hand, last);
        for index in [self.hand, last] {
            self.places.insert(self.slots[index].key, index as u32);
        }
        self.hand += 1;
    }

    /// Takes out the first block that was not used since the hand last passed.
    fn evict(&mut self) -> Arc<[u8]> {
        loop {
            if self.hand >= self.slots.len() {
                self.hand = 0;
            }
            let slot = &mut self.slots[self.hand];
            if !slot.used_again {
                return self.remove(self.hand);
            }
            slot.used_again = false;
            self.hand += 1;
        }
    }

    /// Empties a slot; the last slot moves into its place.
    fn remove(&mut self, index: usize) -> Arc<[u8]> {
        let slot = self.slots.swap_remove(index);
        self.places.remove(&slot.key);
        if let Some(moved) = self.slots.get(index) {
            self.places.insert(moved.key, index as u32);
        }
        self.used_bytes -= slot.block.len() + OVERHEAD_BYTES;
        slot.block
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(fill: u8, bytes: usize) -> Arc<[u8]> {
        vec![fill; bytes].into()
    }

    /// What is held never exceeds the capacity, whatever comes in.
    #[test]
    fn capacity_is_kept() {
        let cache = Cache::new(1 << 20);
        for i in 0..10_000u64 {
            cache.insert(i % 7, i * 4096, block(i as u8, (i % 9000) as usize));
            assert!(cache.used_bytes() <= cache.capacity_bytes());
        }
        assert!(cache.used_bytes() > cache.capacity_bytes() / 2);
    }

    /// A block comes back under its own file and offset only.
    #[test]
    fn blocks_come_back_under_their_place() {
        let cache = Cache::new(1 << 20);
        let (a, b) = (cache.new_file(), cache.new_file());
        cache.insert(a, 0, block(1, 10));
        cache.insert(b, 0, block(2, 10));
        cache.insert(a, 4096, block(3, 10));
        assert_eq!(cache.get(a, 0).unwrap()[0], 1);
        assert_eq!(cache.get(b, 0).unwrap()[0], 2);
        assert_eq!(cache.get(a, 4096).unwrap()[0], 3);
        assert!(cache.get(b, 4096).is_none());
    }

    /// A scan of blocks read once does not push out blocks that are in use.
    #[test]
    fn scans_do_not_push_out_what_is_read_again() {
        let cache = Cache::new(256 << 10);
        for i in 0..8 {
            cache.insert(1, i, block(0, 4096));
        }
        for scanned in 0..1000 {
            for i in 0..8 {
                assert!(cache.get(1, i).is_some(), "after {scanned} blocks");
            }
            cache.insert(2, scanned, block(0, 4096));
        }
    }

    /// Blocks that came later push out those that nobody reads any more, long
    /// before they would be pushed out themselves.
    #[test]
    fn what_is_read_now_replaces_what_was_read_once() {
        let cache = Cache::new(256 << 10);
        for old in 0..100 {
            cache.insert(1, old, block(0, 4096));
        }
        for i in 0..30 {
            assert!(cache.get(2, i).is_none());
            cache.insert(2, i, block(0, 4096));
        }
        assert!((0..30).all(|i| cache.get(2, i).is_some()), "half of the cache holds them");
    }

    /// A cache of no bytes keeps nothing and still works.
    #[test]
    fn an_empty_cache_keeps_nothing() {
        let cache = Cache::new(0);
        cache.insert(1, 0, block(1, 1));
        assert!(cache.get(1, 0).is_none());
    }
}
