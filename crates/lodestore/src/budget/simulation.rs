//! Reservations of several threads, and who is asked for memory.

use super::{Account, Budget, Charge, Item};
use crate::sync::atomic::{AtomicUsize, Ordering};
use crate::sync::{Arc, thread};
use testkit::explore::{explore, explore_all};
use testkit::random::Random;

/// Whatever several threads reserve, move and give back: never more is counted
/// than was asked for, and in the end what is held, under the right items.
#[test]
fn reservations_add_up() {
    explore("budget", |seed| {
        let budget = Budget::new(1 << 20);
        let accounts = [Account::new(&budget), Account::new(&budget)];
        let threads: Vec<_> = (0..3)
            .map(|number| {
                let account = Arc::clone(&accounts[number % 2]);
                let mut random = Random::new(seed << 8 | number as u64);
                thread::spawn("holder", move || hold(&account, &mut random))
            })
            .collect();
        for _ in 0..3 {
            let used = budget.used_bytes();
            assert!(used <= 3 * 300, "{used}");
        }
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        assert_eq!(budget.used_bytes(), 0);
        for item in [Item::Memtables, Item::SealedMemtables] {
            assert!(accounts.iter().all(|account| account.used(item) == 0));
        }
    });
}

fn hold(account: &Arc<Account>, random: &mut Random) {
    let mut held = Charge::new(account, Item::Memtables).reserve(100);
    for _ in 0..3 {
        match random.below(3) {
            0 => held.resize(random.between(1, 3) * 100),
            1 => held.move_to(Item::SealedMemtables),
            _ => held.move_to(Item::Memtables),
        }
        assert!(account.used(held.charge.item) >= held.bytes());
    }
}

/// Of several who ask at a time, one makes the largest holder flush, and the
/// next one only after the flush. In every schedule.
#[test]
fn the_largest_holder_is_asked_once() {
    explore_all("budget, asking, every schedule", || {
        let budget = Budget::new(1 << 20);
        let large = Account::new(&budget);
        let asked = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&asked);
        large.when_asked(move || {
            count.fetch_add(1, Ordering::SeqCst);
        });
        let held = Charge::new(&large, Item::Memtables).reserve(20);
        let asking = Arc::clone(&large);
        let other = thread::spawn("asks", move || assert!(asking.ask()));
        assert!(large.ask());
        other.join().unwrap();
        assert_eq!(asked.load(Ordering::SeqCst), 1);
        large.was_answered();
        assert!(large.ask());
        assert_eq!(asked.load(Ordering::SeqCst), 2);
        drop(held);
    });
}
