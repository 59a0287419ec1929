//! Block cache: recently read blocks of all tables, up to a number of bytes
//! that may change, or as many as a budget leaves.
//!
//! It knows nothing of tables: a block is bytes under (file, offset), and the
//! file's number comes from [`Cache::new_file`]. Blocks that a reader holds
//! stay alive after they were evicted.
//!
//! Sharded, so that threads seldom meet. In a full shard a block of entries that
//! is read for the first time comes into a short queue, and leaves the cache
//! at its end unless it was read again there. It leaves a trace, though: read
//! again before the trace is gone, it comes to stay. So neither a long scan nor
//! reads all over a database that is larger than the cache push out what is
//! in use, and their blocks need little memory, which is at hand because it
//! was just used. Those that stay are evicted by CLOCK: a hit sets a bit, the
//! hand clears bits until it finds a block without one.

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasherDefault, Hasher};

use crate::budget::Budget;
use crate::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use crate::sync::{Arc, Mutex};

/// Bytes that a cached block costs beside its content: table slots, key,
/// reference counts and what the allocator adds.
const OVERHEAD_BYTES: usize = 96;

/// A shard smaller than this holds too few blocks to be fair to them.
const SHARD_BYTES_MIN: usize = 512 << 10;
const SHARDS_MAX: usize = 64;

/// The part of a shard's blocks that may be in the queue of new ones.
const NEW_PART: usize = 32;

/// What a stored block is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum BlockKind {
    /// Entries.
    Data,
    /// A part of a table's index.
    Index,
    /// A part of a table's filter.
    Filter,
}

const KINDS: usize = 3;

/// A cache of blocks, shared by any number of databases.
pub struct Cache {
    shards: Vec<Mutex<Shard>>,
    capacity: Capacity,
    used_bytes: AtomicUsize,
    next_file: AtomicU64,
}

/// Who makes it smaller changes it and then looks at what is held; who puts a
/// block in counts it and then looks at the capacity. One of them must see the
/// other, which takes sequential consistency on both sides, here and in the
/// budget.
struct Capacity {
    /// What it may hold where no limit of a budget decides that.
    bytes: AtomicUsize,
    /// The cache may hold what this leaves, while it has a limit.
    budget: Option<Arc<Budget>>,
}

impl Capacity {
    /// The budget that decides, if one does.
    fn limited_budget(&self) -> Option<&Budget> {
        self.budget.as_deref().filter(|budget| budget.bytes_max().is_some())
    }
}

impl std::fmt::Debug for Cache {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cache").field("capacity_bytes", &self.capacity_bytes()).finish()
    }
}

impl Cache {
    /// A cache that holds up to `capacity_bytes`, its own overhead included.
    /// 0 keeps nothing.
    pub fn new(capacity_bytes: usize) -> Arc<Cache> {
        Arc::new(Cache::with(capacity_bytes, None))
    }

    /// A cache that holds what the memtables, tables, cursors and compactions
    /// of a budget leave, more or less as they shrink and grow. Databases that
    /// share the budget may share the cache too; several caches in one budget
    /// have equal parts.
    pub fn within(budget: &Arc<Budget>) -> Arc<Cache> {
        Cache::within_or(budget, 0)
    }

    /// A cache that holds up to `capacity_bytes` while `budget` has no limit,
    /// and what it leaves while it has one.
    pub(crate) fn within_or(budget: &Arc<Budget>, capacity_bytes: usize) -> Arc<Cache> {
        let cache = Arc::new(Cache::with(capacity_bytes, Some(Arc::clone(budget))));
        let weak = Arc::downgrade(&cache);
        budget.add_cache(move || weak.upgrade().map(|cache| cache.shrink_to_fit()).is_some());
        cache
    }

    fn with(capacity_bytes: usize, budget: Option<Arc<Budget>>) -> Cache {
        // Others will take the larger part of a small budget: shards for less.
        let limit = budget.as_ref().and_then(|budget| budget.bytes_max());
        let expected_bytes = limit.map_or(capacity_bytes, |limit| limit / 4);
        let capacity = Capacity { bytes: AtomicUsize::new(capacity_bytes), budget };
        let count = (expected_bytes / SHARD_BYTES_MIN).clamp(1, SHARDS_MAX);
        let count = 1 << count.ilog2(); // a power of two, so that a mask finds the shard
        let shards = (0..count).map(|_| Mutex::default()).collect();
        let (used_bytes, next_file) = (AtomicUsize::new(0), AtomicU64::new(1));
        Cache { shards, capacity, used_bytes, next_file }
    }

    /// What it may hold, in bytes.
    pub fn capacity_bytes(&self) -> usize {
        match self.capacity.limited_budget() {
            Some(budget) => budget.cache_room(),
            None => self.capacity.bytes.load(Ordering::SeqCst),
        }
    }

    /// Changes what it may hold; what is too much falls out at once. The
    /// number of shards, and with it how large a block can be kept, stays.
    ///
    /// # Panics
    /// If the cache is part of a budget, which decides that.
    pub fn set_capacity_bytes(&self, capacity_bytes: usize) {
        let limited = self.capacity.limited_budget();
        assert!(limited.is_none(), "the cache's budget decides how large it is");
        self.capacity.bytes.store(capacity_bytes, Ordering::SeqCst);
        self.shrink_to_fit();
    }

    /// A longer block would not be kept.
    pub(crate) fn block_bytes_max(&self) -> usize {
        (self.capacity_bytes() / self.shards.len()).saturating_sub(OVERHEAD_BYTES)
    }

    /// What it holds now, in bytes.
    pub fn used_bytes(&self) -> usize {
        self.used_bytes.load(Ordering::SeqCst)
    }

    /// What it holds now of one kind, in bytes.
    pub(crate) fn used_bytes_of(&self, kind: BlockKind) -> usize {
        self.shards.iter().map(|shard| shard.lock().used_bytes_of[kind as usize]).sum()
    }

    /// True if it is a part of `budget`.
    pub(crate) fn is_within(&self, budget: &Arc<Budget>) -> bool {
        self.capacity.budget.as_ref().is_some_and(|own| Arc::ptr_eq(own, budget))
    }

    /// Evicts what its capacity has no room for any more.
    fn shrink_to_fit(&self) {
        if self.used_bytes() <= self.capacity_bytes() {
            return;
        }
        for shard in &self.shards {
            let room = self.capacity_bytes() / self.shards.len();
            let mut shard = shard.lock();
            let evicted = shard.make_room(room);
            self.count(0, &evicted);
            drop(shard);
        }
    }

    /// Counts a block of `taken` bytes that came, and blocks that went. Under
    /// the shard's lock, so that nothing goes before its coming was counted.
    fn count(&self, taken: usize, evicted: &[Arc<[u8]>]) {
        let given = evicted.iter().map(|block| block.len() + OVERHEAD_BYTES).sum::<usize>();
        if taken == given {
            return;
        }
        self.used_bytes.fetch_add(taken.wrapping_sub(given), Ordering::SeqCst);
        if let Some(budget) = &self.capacity.budget {
            budget.count_cached(taken, given);
        }
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
    pub(crate) fn insert(&self, file: u64, offset: u64, kind: BlockKind, block: Arc<[u8]>) {
        let key = Key { file, offset };
        let capacity = self.capacity_bytes();
        // What falls out is freed after the lock is released.
        let mut shard = self.shard(key).lock();
        let (taken, evicted) = shard.insert(key, kind, block, capacity / self.shards.len());
        self.count(taken, &evicted);
        drop(shard);
        drop(evicted);
        // Who made the capacity smaller meanwhile may have looked before this
        // block was counted.
        if taken > 0 && self.capacity_bytes() < capacity {
            self.shrink_to_fit();
        }
    }

    fn shard(&self, key: Key) -> &Mutex<Shard> {
        // The map inside a shard uses the low bits of the same hash.
        let index = (key.hash() >> 48) as usize & (self.shards.len() - 1);
        &self.shards[index]
    }
}

impl Drop for Cache {
    fn drop(&mut self) {
        if let Some(budget) = &self.capacity.budget {
            budget.count_cached(0, self.used_bytes());
        }
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

#[derive(Default)]
struct Shard {
    used_bytes: usize,
    used_bytes_of: [usize; KINDS],
    places: HashMap<Key, u32, BuildHasherDefault<Mixed>>,
    /// In the order of the clock's face: a block that comes takes the place of
    /// one that went, just behind the hand, so that its turn is a round away.
    slots: Vec<Option<Slot>>,
    /// Empty slots.
    free: Vec<u32>,
    hand: usize,
    /// Places of blocks that came lately, the oldest first. The hand passes
    /// them by.
    queue: VecDeque<u32>,
    traces: Traces,
}

struct Slot {
    key: Key,
    kind: BlockKind,
    block: Arc<[u8]>,
    used_again: bool,
    queues: bool,
}

/// What left the queue lately: a part of each key's hash, at a place that
/// follows from another part, until another key needs it.
#[derive(Default)]
struct Traces(Vec<u32>);

impl Traces {
    fn place(&self, hash: u64) -> usize {
        (hash >> 16) as usize & (self.0.len() - 1)
    }

    /// Room for as many as there are `blocks`; a larger table begins empty.
    fn leave(&mut self, key: Key, blocks: usize) {
        if self.0.len() < blocks {
            self.0 = vec![0; blocks.next_power_of_two()];
        }
        let hash = key.hash();
        let place = self.place(hash);
        self.0[place] = hash as u32;
    }

    fn has(&self, key: Key) -> bool {
        let hash = key.hash();
        !self.0.is_empty() && self.0[self.place(hash)] == hash as u32
    }
}

impl Shard {
    fn get(&mut self, key: Key) -> Option<Arc<[u8]>> {
        let place = *self.places.get(&key)? as usize;
        let slot = self.slots[place].as_mut().expect("a known place is filled");
        slot.used_again = true;
        Some(Arc::clone(&slot.block))
    }

    /// Keeps `block` if it fits into `room`, which is all that the shard may
    /// hold. Gives the bytes taken, and what had to go.
    fn insert(
        &mut self,
        key: Key,
        kind: BlockKind,
        block: Arc<[u8]>,
        room: usize,
    ) -> (usize, Vec<Arc<[u8]>>) {
        let bytes = block.len() + OVERHEAD_BYTES;
        if bytes > room || self.places.contains_key(&key) {
            return (0, Vec::new());
        }
        let evicted = self.make_room(room - bytes);
        self.used_bytes += bytes;
        self.used_bytes_of[kind as usize] += bytes;
        // There is room, or it was read before; and parts of indexes and filters
        // are few, and needed often.
        let stays = evicted.is_empty() || kind != BlockKind::Data || self.traces.has(key);
        let queues = !stays;
        let slot = Some(Slot { key, kind, block, used_again: false, queues });
        let place = match self.free.pop() {
            Some(place) => {
                self.slots[place as usize] = slot;
                place
            }
            None => {
                self.slots.push(slot);
                self.slots.len() as u32 - 1
            }
        };
        self.places.insert(key, place);
        if queues {
            self.queue.push_back(place);
        }
        (bytes, evicted)
    }

    /// Evicts blocks until the rest fits into `room`.
    fn make_room(&mut self, room: usize) -> Vec<Arc<[u8]>> {
        let mut evicted = Vec::new();
        while self.used_bytes > room {
            evicted.push(self.evict());
        }
        evicted
    }

    /// Takes out a block. Called only while there is one.
    fn evict(&mut self) -> Arc<[u8]> {
        while self.queue.len() > self.places.len() / NEW_PART {
            let place = self.queue.pop_front().expect("it is not empty");
            let slot = self.slots[place as usize].as_mut().expect("what queues is there");
            slot.queues = false;
            if !std::mem::take(&mut slot.used_again) {
                let key = slot.key;
                self.traces.leave(key, self.slots.len());
                return self.take(place as usize).expect("it was there");
            }
        }
        self.evict_by_clock()
    }

    /// Takes out the first block, but for those in the queue, that was not used
    /// since the hand last passed.
    fn evict_by_clock(&mut self) -> Arc<[u8]> {
        loop {
            let place = self.hand % self.slots.len();
            self.hand = place + 1;
            match &mut self.slots[place] {
                Some(slot) if slot.queues => {}
                Some(slot) if slot.used_again => slot.used_again = false,
                _ => {
                    if let Some(block) = self.take(place) {
                        return block;
                    }
                }
            }
        }
    }

    fn take(&mut self, place: usize) -> Option<Arc<[u8]>> {
        let slot = self.slots[place].take()?;
        self.free.push(place as u32);
        self.places.remove(&slot.key);
        let bytes = slot.block.len() + OVERHEAD_BYTES;
        self.used_bytes -= bytes;
        self.used_bytes_of[slot.kind as usize] -= bytes;
        Some(slot.block)
    }
}

#[cfg(all(test, simulation))]
mod simulation;
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
            cache.insert(i % 7, i * 4096, BlockKind::Data, block(i as u8, (i % 9000) as usize));
            assert!(cache.used_bytes() <= cache.capacity_bytes());
        }
        assert!(cache.used_bytes() > cache.capacity_bytes() / 2);
    }

    /// A block comes back under its own file and offset only.
    #[test]
    fn blocks_come_back_under_their_place() {
        let cache = Cache::new(1 << 20);
        let (a, b) = (cache.new_file(), cache.new_file());
        cache.insert(a, 0, BlockKind::Data, block(1, 10));
        cache.insert(b, 0, BlockKind::Data, block(2, 10));
        cache.insert(a, 4096, BlockKind::Data, block(3, 10));
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
            cache.insert(1, i, BlockKind::Data, block(0, 4096));
        }
        for scanned in 0..1000 {
            for i in 0..8 {
                assert!(cache.get(1, i).is_some(), "after {scanned} blocks");
            }
            cache.insert(2, scanned, BlockKind::Data, block(0, 4096));
        }
    }

    /// What is read again and again replaces what was read only once, though
    /// that was there first.
    #[test]
    fn what_is_read_again_replaces_what_was_read_once() {
        let cache = Cache::new(256 << 10);
        for old in 0..100 {
            cache.insert(1, old, BlockKind::Data, block(0, 4096));
        }
        let read = |i| match cache.get(2, i) {
            Some(_) => true,
            None => {
                cache.insert(2, i, BlockKind::Data, block(0, 4096));
                false
            }
        };
        let hits = [(); 3].map(|()| (0..30).filter(|&i| read(i)).count());
        assert_eq!(hits[0], 0);
        assert!(hits[2] > 20, "a few traces meet: {hits:?}");
    }

    /// A block that was just read is there for those who read it next, however
    /// full the cache is.
    #[test]
    fn what_came_last_is_there() {
        let cache = Cache::new(256 << 10);
        for i in 0..10_000 {
            cache.insert(1, i, BlockKind::Data, block(0, 4096));
            assert!(cache.get(1, i).is_some());
        }
    }

    /// A smaller capacity takes effect at once, a larger one lets more in.
    #[test]
    fn the_capacity_can_change() {
        let cache = Cache::new(1 << 20);
        let fill = || (0..200).for_each(|i| cache.insert(1, i, BlockKind::Data, block(0, 4096)));
        fill();
        assert!(cache.used_bytes() > 800_000);
        cache.set_capacity_bytes(100_000);
        assert!(cache.used_bytes() <= 100_000);
        fill();
        assert!(cache.used_bytes() <= 100_000);
        cache.set_capacity_bytes(1 << 20);
        fill();
        assert!(cache.used_bytes() > 800_000);
        assert_eq!(cache.used_bytes_of(BlockKind::Data), cache.used_bytes());
        assert_eq!(cache.used_bytes_of(BlockKind::Index), 0);
    }

    /// A cache in a budget gives way to reservations at once, and has the room
    /// again when they are gone.
    #[test]
    fn a_cache_gives_way_to_the_rest_of_its_budget() {
        use crate::budget::{Account, Charge, Item};
        let budget = Budget::new(1 << 20);
        let cache = Cache::within(&budget);
        let fill = || (0..400).for_each(|i| cache.insert(1, i, BlockKind::Data, block(0, 4096)));
        fill();
        assert!(cache.used_bytes() > 800_000 && budget.used_bytes() <= 1 << 20);
        let account = Account::new(&budget);
        let held = Charge::new(&account, Item::Memtables).reserve(700_000);
        assert!(budget.used_bytes() <= 1 << 20, "{}", budget.used_bytes());
        fill();
        assert!(cache.used_bytes() > 100_000 && budget.used_bytes() <= 1 << 20);
        drop(held);
        fill();
        assert!(cache.used_bytes() > 800_000);
        drop(cache);
        assert_eq!(budget.used_bytes(), 0);
    }

    /// A cache of no bytes keeps nothing and still works.
    #[test]
    fn an_empty_cache_keeps_nothing() {
        let cache = Cache::new(0);
        cache.insert(1, 0, BlockKind::Data, block(1, 1));
        assert!(cache.get(1, 0).is_none());
    }
}
