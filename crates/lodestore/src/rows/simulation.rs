//! The row cache beside changes of its size.

use super::RowCache;
use crate::budget::{Account, Item};
use crate::sync::{Arc, thread};
use testkit::explore::explore;
use testkit::random::Random;

/// A row that is found is the one that was put in, although two keys share a
/// hash; nothing is held that was not set aside before, and in the end what is
/// set aside is the size that was set last.
#[test]
fn rows_are_right_and_paid_for_while_the_size_changes() {
    explore("rows", |seed| {
        let mut random = Random::new(seed);
        let account = Account::unlimited();
        let rows = Arc::new(RowCache::new(random.below(2) * 400, &account));
        let beside = |name: &str, work: fn(&RowCache, &Account, Random), number: u64| {
            let (rows, account) = (Arc::clone(&rows), Arc::clone(&account));
            let random = Random::new(seed << 8 | number);
            thread::spawn(name, move || work(&rows, &account, random))
        };
        let threads = [beside("user", use_rows, 1), beside("user", use_rows, 2)];
        let resizer = beside("resizer", resize, 3);
        resize(&rows, &account, random);
        threads.into_iter().chain([resizer]).for_each(|thread| thread.join().unwrap());
        let capacity = rows.cache.get().map_or(0, |cache| cache.capacity_bytes());
        let used = rows.cache.get().map_or(0, |cache| cache.used_bytes());
        assert_eq!(account.used(Item::Rows), capacity);
        assert!(used <= capacity, "{used} of {capacity}");
    });
}

fn use_rows(rows: &RowCache, account: &Account, mut random: Random) {
    for _ in 0..4 {
        let (file, key) = (random.word() % 2, [random.below(2) as u8]);
        let value = [file as u8, key[0], 7];
        match rows.get(file, 1, &key) {
            Some(row) => assert_eq!((row.trailer, &row.bytes[row.value_start..]), (9, &value[..])),
            None => rows.insert(file, 1, &key, 9, &value),
        }
        let used = rows.cache.get().map_or(0, |cache| cache.used_bytes());
        assert!(used <= 400 && account.used(Item::Rows) <= 400, "more than was ever asked for");
    }
}

fn resize(rows: &RowCache, account: &Account, mut random: Random) {
    for _ in 0..2 {
        rows.set_bytes_max(random.below(3) * 200);
        assert!(account.used(Item::Rows) <= 400);
    }
}
