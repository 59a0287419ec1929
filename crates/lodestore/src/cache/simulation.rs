//! The block cache beside changes of its size, and beside what else is in its
//! budget.

use super::{BlockKind, Cache, OVERHEAD_BYTES};
use crate::budget::{Account, Budget, Charge, Item};
use crate::sync::{Arc, thread};
use testkit::explore::{Reached, explore};
use testkit::random::Random;

const BLOCK_BYTES: usize = 100;
const COST: usize = BLOCK_BYTES + OVERHEAD_BYTES;
const FILES: u64 = 2;
const OFFSETS: u64 = 3;

fn content(file: u64, offset: u64) -> u8 {
    (file * OFFSETS + offset) as u8
}

fn block(file: u64, offset: u64, bytes: usize) -> Arc<[u8]> {
    vec![content(file, offset); bytes].into()
}

/// Looks for a block, and puts it in if it is not there. What is found is right
/// and stays right while it is held, also when it was evicted.
fn use_cache(cache: &Cache, mut random: Random, bytes: usize) {
    let mut held = Vec::new();
    for _ in 0..4 {
        let (file, offset) = (random.below(FILES as usize) as u64, random.word() % OFFSETS);
        match cache.get(file, offset) {
            Some(found) => held.push((content(file, offset), found)),
            None => cache.insert(file, offset, BlockKind::Data, block(file, offset, bytes)),
        }
        for (content, block) in &held {
            assert!(block.len() == bytes && block.iter().all(|byte| byte == content));
        }
    }
}

/// How many blocks are in the cache.
fn blocks(cache: &Cache) -> usize {
    let all = (0..FILES).flat_map(|file| (0..OFFSETS).map(move |offset| (file, offset)));
    all.filter(|&(file, offset)| cache.get(file, offset).is_some()).count()
}

/// Blocks that are asked for, put in and pushed out while the capacity changes:
/// never more is held than the largest capacity allowed, in the end no more than
/// the last one, and what is counted is what is there.
#[test]
fn the_capacity_is_kept_while_it_changes() {
    explore("cache, its capacity changed", |seed| {
        let mut random = Random::new(seed);
        let cache = Cache::new(4 * COST);
        let users: Vec<_> = (0..2)
            .map(|_| {
                let (cache, random) = (Arc::clone(&cache), Random::new(random.word()));
                thread::spawn("user", move || use_cache(&cache, random, BLOCK_BYTES))
            })
            .collect();
        for _ in 0..3 {
            cache.set_capacity_bytes(random.below(5) * COST);
            assert!(cache.used_bytes() <= 4 * COST);
        }
        users.into_iter().for_each(|user| user.join().unwrap());
        let used = cache.used_bytes();
        assert!(used <= cache.capacity_bytes(), "{used} of {}", cache.capacity_bytes());
        assert_eq!(used, blocks(&cache) * COST);
        assert_eq!(used, cache.used_bytes_of(BlockKind::Data));
    });
}

/// With room for all, no block that was put in is missing.
#[test]
fn blocks_are_kept_while_there_is_room() {
    explore("cache, with room for all", |_| {
        let cache = Cache::new(100 * COST);
        let users: Vec<_> = (0..3)
            .map(|file| {
                let cache = Arc::clone(&cache);
                thread::spawn("user", move || {
                    for offset in 0..OFFSETS {
                        let file = file % FILES;
                        cache.insert(file, offset, BlockKind::Data, block(file, offset, 1));
                        let found = cache.get(file, offset).expect("there is room");
                        assert_eq!(found[..], [content(file, offset)]);
                    }
                })
            })
            .collect();
        users.into_iter().for_each(|user| user.join().unwrap());
        assert_eq!(blocks(&cache), (FILES * OFFSETS) as usize);
        assert_eq!(cache.used_bytes(), blocks(&cache) * (1 + OVERHEAD_BYTES));
    });
}

/// A cache within a budget gives way to what is reserved, whatever is put into
/// it at that moment: when both have ended, all together is no more than what
/// the budget gives out.
#[test]
fn a_cache_gives_way_whatever_is_put_in() {
    let full = Reached::default();
    let count = full.clone();
    explore("cache, within a budget", move |seed| {
        let mut random = Random::new(seed);
        let budget = Budget::new(64 << 10);
        let cache = Cache::within(&budget);
        let room = budget.cache_room();
        let bytes = room / 4 - OVERHEAD_BYTES;
        let user = {
            let (cache, random) = (Arc::clone(&cache), Random::new(random.word()));
            thread::spawn("user", move || use_cache(&cache, random, bytes))
        };
        let account = Account::new(&budget);
        let charge = Charge::new(&account, Item::Tables);
        let parts = 1..=random.between(1, 3);
        let held: Vec<_> = parts.map(|part| charge.reserve(room / 8 * part)).collect();
        user.join().unwrap();
        let reserved: usize = held.iter().map(|reservation| reservation.bytes()).sum();
        let used = cache.used_bytes();
        assert_eq!(budget.used_bytes(), reserved + used);
        assert!(reserved + used <= room, "{reserved} and {used} are more than {room}");
        count.note(reserved + used > room - bytes);
        drop((held, cache));
        assert_eq!(budget.used_bytes(), 0);
    });
    full.check("a full budget");
}
