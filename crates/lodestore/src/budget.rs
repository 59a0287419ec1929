//! One memory budget: what each part of a database holds, itemised, and one
//! number that all of it together keeps to.
//!
//! memtable, table, cursor, compaction -> [`Reservation`] -> [`Account`] of its
//! database -> [`Budget`], which several databases may share
//!
//! Memtables together have a share of their own: writers see to it that it is
//! kept. Block caches get what everything else leaves: whoever reserves makes
//! them shrink at once, so nothing waits for memory that a cache could give.
//! Reservations are coarse (an arena's block, a table's index, a cursor's
//! buffers), so that a lookup or an insertion touches nothing here.

use crate::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use crate::sync::{Arc, Mutex, OnceLock, Weak};

/// Less is not worth dividing.
pub(crate) const BUDGET_BYTES_MIN: usize = 64 << 10;

/// A smaller buffer would make a system call for each block.
const BUFFER_BYTES_MIN: usize = 8 << 10;
/// What buffers that are filled side by side have together: a compaction of thirty
/// tables needs no thirty times the buffers of one.
const BUFFERS_BYTES_MAX: usize = 2 << 20;

/// What memory is reserved for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub(crate) enum Item {
    /// Memtables that take new entries.
    Memtables,
    /// Memtables that wait for their flush, or that readers still hold.
    SealedMemtables,
    /// Indexes and filters of open tables, as far as they are not cached.
    Tables,
    /// Buffers of cursors, and the blocks that they stand on.
    Cursors,
    /// Buffers of flushes and compactions: tables being read and written.
    Compactions,
    /// The row cache, as large as it may become.
    Rows,
}

const ITEMS: usize = 6;

type Counts = [AtomicUsize; ITEMS];

fn usable_bytes(bytes_max: usize) -> usize {
    bytes_max - bytes_max / 16
}

/// What all memtables together may hold under a limit: half of it, so that one
/// half of that can be flushed while the other fills.
pub(crate) fn memtable_share_of(bytes_max: usize) -> usize {
    usable_bytes(bytes_max) / 2
}

/// A limit on the memory of one or several databases. Open them with the same
/// one to share it.
pub struct Budget {
    /// `usize::MAX`: no limit; memory is only counted.
    bytes_max: AtomicUsize,
    /// All that is reserved. A sum of the items, taken while something moves from
    /// one to another, would count that twice or not at all.
    reserved_bytes: AtomicUsize,
    used: Counts,
    /// What caches hold.
    cached_bytes: AtomicUsize,
    /// Makes a cache shrink to its room; false if the cache is gone.
    caches: Mutex<Vec<Box<dyn Fn() -> bool + Send + Sync>>>,
    cache_count: AtomicUsize,
    accounts: Mutex<Vec<Weak<Account>>>,
    /// Groups of memtables that wait to be flushed.
    flushes: AtomicUsize,
    /// Databases that are open for writing.
    writers: AtomicUsize,
}

impl std::fmt::Debug for Budget {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Budget").field("bytes_max", &self.bytes_max()).finish()
    }
}

impl Budget {
    /// A budget of `bytes_max` bytes; at least 64 KiB.
    pub fn new(bytes_max: usize) -> Arc<Budget> {
        Budget::with(bytes_max.max(BUDGET_BYTES_MIN))
    }

    /// No limit: memory is only counted.
    pub(crate) fn unlimited() -> Arc<Budget> {
        Budget::with(usize::MAX)
    }

    fn with(bytes_max: usize) -> Arc<Budget> {
        Arc::new(Budget {
            bytes_max: AtomicUsize::new(bytes_max),
            reserved_bytes: AtomicUsize::new(0),
            used: Counts::default(),
            cached_bytes: AtomicUsize::new(0),
            caches: Mutex::default(),
            cache_count: AtomicUsize::new(0),
            accounts: Mutex::default(),
            flushes: AtomicUsize::new(0),
            writers: AtomicUsize::new(0),
        })
    }

    /// The limit in bytes; `None` if there is none.
    pub fn bytes_max(&self) -> Option<usize> {
        let bytes_max = self.bytes_max.load(Ordering::SeqCst);
        (bytes_max < usize::MAX).then_some(bytes_max)
    }

    /// Changes the limit; `None` takes it away. Caches shrink at once; what
    /// memtables hold beyond their share is for their databases to flush.
    pub(crate) fn set_bytes_max(&self, bytes_max: Option<usize>) {
        self.bytes_max.store(bytes_max.unwrap_or(usize::MAX), Ordering::SeqCst);
        self.shrink_caches();
    }

    /// What is held now, caches included, in bytes.
    pub fn used_bytes(&self) -> usize {
        self.reserved_bytes() + self.cached_bytes.load(Ordering::SeqCst)
    }

    fn reserved_bytes(&self) -> usize {
        self.reserved_bytes.load(Ordering::SeqCst)
    }

    /// What is given out. The rest, a sixteenth, is for what nobody counts:
    /// stacks, rounding of allocators, lists of tables.
    fn usable_bytes(&self) -> usize {
        usable_bytes(self.bytes_max.load(Ordering::SeqCst))
    }

    /// What all memtables together may hold.
    pub(crate) fn memtable_share(&self) -> usize {
        memtable_share_of(self.bytes_max.load(Ordering::Relaxed))
    }

    /// Memtables that take entries, and those that do not any more.
    pub(crate) fn memtable_bytes(&self) -> (usize, usize) {
        let count = |item: Item| self.used[item as usize].load(Ordering::Relaxed);
        (count(Item::Memtables), count(Item::SealedMemtables))
    }

    /// True if memtables hold all of their share.
    #[inline]
    pub(crate) fn is_crowded(&self) -> bool {
        let (active, sealed) = self.memtable_bytes();
        active + sealed >= self.memtable_share()
    }

    /// True if another compaction beside those that run would take too much.
    pub(crate) fn is_short_for_compactions(&self) -> bool {
        let used = self.used[Item::Compactions as usize].load(Ordering::Relaxed);
        used >= self.usable_bytes() / 8
    }

    /// Room of one of the caches in this budget: they have equal parts of what
    /// is left. While a database is open for writing, the share of memtables is
    /// left too: what a cache gives up later, block by block, lies scattered,
    /// and few of its pages would be free for them.
    pub(crate) fn cache_room(&self) -> usize {
        let caches = self.cache_count.load(Ordering::Relaxed).max(1);
        let (active, sealed) = self.memtable_bytes();
        let kept = match self.writers.load(Ordering::Relaxed) {
            0 => 0,
            _ => self.memtable_share().saturating_sub(active + sealed),
        };
        self.usable_bytes().saturating_sub(self.reserved_bytes() + kept) / caches
    }

    /// Adds a cache; `shrink` makes it shrink to its room, and says if it is
    /// still there.
    pub(crate) fn add_cache(&self, shrink: impl Fn() -> bool + Send + Sync + 'static) {
        self.caches.lock().push(Box::new(shrink));
        self.cache_count.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts what a cache took in and gave up.
    pub(crate) fn count_cached(&self, taken: usize, given: usize) {
        self.cached_bytes.fetch_add(taken.wrapping_sub(given), Ordering::SeqCst);
    }

    fn shrink_caches(&self) {
        let mut caches = self.caches.lock();
        caches.retain(|shrink| shrink());
        self.cache_count.store(caches.len(), Ordering::Relaxed);
    }

    fn add(&self, item: Item, bytes: usize) {
        self.used[item as usize].fetch_add(bytes, Ordering::Relaxed);
        // Sequentially consistent, as is counting what a cache takes in: of a
        // reservation and a block that come at the same time, one sees the other.
        self.reserved_bytes.fetch_add(bytes, Ordering::SeqCst);
        if self.bytes_max().is_some() && self.used_bytes() > self.usable_bytes() {
            self.shrink_caches();
        }
    }

    /// Asks the database whose memtables hold most to flush one, unless that is
    /// `asking`'s. False if it is.
    pub(crate) fn ask_largest(&self, asking: &Account) -> bool {
        let accounts: Vec<_> = self.accounts.lock().iter().filter_map(Weak::upgrade).collect();
        let largest = accounts.iter().max_by_key(|account| account.used(Item::Memtables));
        match largest {
            Some(largest) if !std::ptr::eq(&**largest, asking) => largest.ask(),
            _ => false,
        }
    }

    /// Memtables wait to be flushed, until the answer is dropped.
    pub(crate) fn begin_flush(self: &Arc<Self>) -> AwaitedFlush {
        self.flushes.fetch_add(1, Ordering::Relaxed);
        AwaitedFlush(Arc::clone(self))
    }

    /// True while some flush may give memory back.
    pub(crate) fn is_flushing(&self) -> bool {
        self.flushes.load(Ordering::Relaxed) > 0
    }
}

/// A flush that will give memory back.
#[derive(Debug)]
pub(crate) struct AwaitedFlush(Arc<Budget>);

impl Drop for AwaitedFlush {
    fn drop(&mut self) {
        self.0.flushes.fetch_sub(1, Ordering::Relaxed);
    }
}

/// What one database holds of a budget.
pub(crate) struct Account {
    budget: Arc<Budget>,
    used: Counts,
    /// Makes the database flush its largest memtable soon.
    flush_largest: OnceLock<Box<dyn Fn() + Send + Sync>>,
    was_asked: AtomicBool,
}

impl std::fmt::Debug for Account {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Account").field("used", &self.used).finish()
    }
}

impl Account {
    /// An account for a database that shares `budget`.
    pub(crate) fn new(budget: &Arc<Budget>) -> Arc<Account> {
        let account = Arc::new(Account {
            budget: Arc::clone(budget),
            used: Counts::default(),
            flush_largest: OnceLock::new(),
            was_asked: AtomicBool::new(false),
        });
        let mut accounts = budget.accounts.lock();
        accounts.retain(|account| account.strong_count() > 0);
        accounts.push(Arc::downgrade(&account));
        account
    }

    /// An account that only counts.
    pub(crate) fn unlimited() -> Arc<Account> {
        Account::new(&Budget::unlimited())
    }

    pub(crate) fn budget(&self) -> &Arc<Budget> {
        &self.budget
    }

    /// What this database holds of `item`, in bytes.
    pub(crate) fn used(&self, item: Item) -> usize {
        self.used[item as usize].load(Ordering::Relaxed)
    }

    /// What to do when another database needs the memory of this one's
    /// memtables. Must not wait. Databases that are open for writing say this.
    pub(crate) fn when_asked(&self, flush_largest: impl Fn() + Send + Sync + 'static) {
        let set = self.flush_largest.set(Box::new(flush_largest));
        assert!(set.is_ok(), "a database says this once, when it opens");
        self.budget.writers.fetch_add(1, Ordering::Relaxed);
    }

    fn ask(&self) -> bool {
        let Some(flush_largest) = self.flush_largest.get() else { return false };
        if !self.was_asked.swap(true, Ordering::AcqRel) {
            flush_largest();
        }
        true
    }

    /// Lets others ask again.
    pub(crate) fn was_answered(&self) {
        self.was_asked.store(false, Ordering::Release);
    }

    fn add(&self, item: Item, bytes: usize) {
        self.used[item as usize].fetch_add(bytes, Ordering::Relaxed);
        self.budget.add(item, bytes);
    }

    fn subtract(&self, item: Item, bytes: usize) {
        self.used[item as usize].fetch_sub(bytes, Ordering::Relaxed);
        self.budget.used[item as usize].fetch_sub(bytes, Ordering::Relaxed);
        self.budget.reserved_bytes.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Counts `bytes` under another item.
    fn shift(&self, from: Item, to: Item, bytes: usize) {
        for used in [&self.used, &self.budget.used] {
            used[to as usize].fetch_add(bytes, Ordering::Relaxed);
            used[from as usize].fetch_sub(bytes, Ordering::Relaxed);
        }
    }
}

impl Drop for Account {
    fn drop(&mut self) {
        if self.flush_largest.get().is_some() {
            self.budget.writers.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

/// Gives pages that the allocator keeps for later back to the system, as far as
/// it can: what flushes and compactions freed is of use to nobody there, and
/// counts as this process's.
pub(crate) fn give_back_free_memory() {
    #[cfg(all(target_os = "linux", target_env = "gnu", not(simulation)))]
    // SAFETY: it takes the allocator's own locks, and no pointer of ours
    // becomes invalid.
    unsafe {
        libc::malloc_trim(0);
    }
}

/// Where reservations of one kind go.
#[derive(Clone, Debug)]
pub(crate) struct Charge {
    account: Arc<Account>,
    item: Item,
    /// No buffer is larger.
    buffer_bytes_max: usize,
}

impl Charge {
    pub(crate) fn new(account: &Arc<Account>, item: Item) -> Charge {
        Charge { account: Arc::clone(account), item, buffer_bytes_max: usize::MAX }
    }

    /// The same for `count` buffers that are filled side by side: the more, the smaller.
    pub(crate) fn divided(self, count: usize) -> Charge {
        Charge { buffer_bytes_max: BUFFERS_BYTES_MAX / count.max(1), ..self }
    }

    /// How large a buffer may be where `wanted` bytes would be best: no large
    /// part of a small budget.
    pub(crate) fn buffer_bytes(&self, wanted: usize) -> usize {
        let bytes_max = (self.account.budget.usable_bytes() / 256).min(self.buffer_bytes_max);
        wanted.min(bytes_max.max(BUFFER_BYTES_MIN))
    }

    /// True if `bytes` are no large part of the budget.
    pub(crate) fn has_room_for(&self, bytes: usize) -> bool {
        bytes <= self.account.budget.usable_bytes() / 8
    }

    /// Reserves `bytes`. Never fails and never waits: who can wait asks first.
    pub(crate) fn reserve(&self, bytes: usize) -> Reservation {
        let mut reservation = Reservation { charge: self.clone(), bytes: 0 };
        reservation.resize(bytes);
        reservation
    }
}

/// Memory that is spoken for until this is dropped.
#[derive(Debug)]
pub(crate) struct Reservation {
    charge: Charge,
    bytes: usize,
}

impl Reservation {
    /// What is reserved.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// True if there is a limit on all that is reserved.
    pub(crate) fn is_limited(&self) -> bool {
        self.charge.account.budget.bytes_max().is_some()
    }

    /// Reserves this much from here on.
    pub(crate) fn resize(&mut self, bytes: usize) {
        let Charge { account, item, .. } = &self.charge;
        if bytes > self.bytes {
            account.add(*item, bytes - self.bytes);
        } else if bytes < self.bytes {
            account.subtract(*item, self.bytes - bytes);
        }
        self.bytes = bytes;
    }

    /// Reserves so much more.
    pub(crate) fn grow(&mut self, bytes: usize) {
        self.resize(self.bytes + bytes);
    }

    /// Counts it under another item from here on.
    pub(crate) fn move_to(&mut self, item: Item) {
        self.charge.account.shift(self.charge.item, item, self.bytes);
        self.charge.item = item;
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.resize(0);
    }
}

#[cfg(all(test, simulation))]
mod simulation;
#[cfg(all(test, not(simulation)))]
mod tests {
    use super::*;

    /// What is reserved is counted once, under its item, and given back.
    #[test]
    fn reservations_add_up_and_come_back() {
        let budget = Budget::new(1 << 20);
        let (a, b) = (Account::new(&budget), Account::new(&budget));
        let mut memtable = Charge::new(&a, Item::Memtables).reserve(1000);
        let cursor = Charge::new(&b, Item::Cursors).reserve(10);
        memtable.grow(500);
        assert_eq!((a.used(Item::Memtables), b.used(Item::Memtables)), (1500, 0));
        assert_eq!(budget.used_bytes(), 1510);
        memtable.move_to(Item::SealedMemtables);
        assert_eq!(budget.memtable_bytes(), (0, 1500));
        memtable.resize(100);
        assert_eq!(budget.used_bytes(), 110);
        drop((memtable, cursor));
        assert_eq!(budget.used_bytes(), 0);
    }

    /// A cache's room is what the others leave, and it is told to shrink when
    /// that is less than it holds.
    #[test]
    fn caches_get_what_is_left() {
        let budget = Budget::new(1 << 20);
        let account = Account::new(&budget);
        let shrunk = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&shrunk);
        budget.add_cache(move || count.fetch_add(1, Ordering::Relaxed) < 1);
        let all = budget.cache_room();
        assert_eq!(all, budget.usable_bytes());
        budget.count_cached(all, 0);
        let held = Charge::new(&account, Item::Tables).reserve(1000);
        assert_eq!(budget.cache_room(), all - 1000);
        assert_eq!(shrunk.load(Ordering::Relaxed), 1);
        drop(held);
        assert_eq!(budget.cache_room(), all);
    }

    /// The database that holds most is asked, once until it has answered, and
    /// never the one that asks.
    #[test]
    fn the_largest_holder_is_asked() {
        let budget = Budget::new(1 << 20);
        let (small, large) = (Account::new(&budget), Account::new(&budget));
        let asked = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&asked);
        large.when_asked(move || {
            count.fetch_add(1, Ordering::Relaxed);
        });
        let _small = Charge::new(&small, Item::Memtables).reserve(10);
        let _large = Charge::new(&large, Item::Memtables).reserve(20);
        assert!(budget.ask_largest(&small) && budget.ask_largest(&small));
        assert_eq!(asked.load(Ordering::Relaxed), 1);
        large.was_answered();
        assert!(budget.ask_largest(&small));
        assert_eq!(asked.load(Ordering::Relaxed), 2);
        assert!(!budget.ask_largest(&large), "its own is the largest");
    }
}
