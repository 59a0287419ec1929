//! Compactions and flushes that pay into one bucket.

use super::{Purpose, RateLimiter};
use crate::scheduler::Scheduler;
use crate::sync::{Arc, thread};
use std::time::Duration;
use testkit::explore::explore;

const RATE: u64 = 1_000_000;
const PIECE: u64 = 10_000;

/// Two databases that share a limit never get more than the rate in the time
/// that has passed, but for one piece, and what a flush took counts.
#[test]
fn the_rate_is_kept_by_all_together() {
    explore("limiter", |seed| {
        let scheduler = Scheduler::seeded(1, seed);
        let limiter = RateLimiter::with_floor(&scheduler, RATE, RATE);
        let purposes = [Purpose::Compaction, Purpose::Compaction, Purpose::Flush];
        let threads: Vec<_> = purposes
            .into_iter()
            .map(|purpose| {
                let tenant = limiter.join();
                let pieces = if purpose == Purpose::Flush { 1 } else { 3 };
                thread::spawn("pays", move || (0..pieces).for_each(|_| tenant.pay(PIECE, purpose)))
            })
            .collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        // The flush may be the last, and does not wait; nor does the last piece.
        let waited_for = 7 * PIECE - 2 * PIECE;
        let least = Duration::from_secs_f64(waited_for as f64 / RATE as f64);
        assert!(scheduler.now() >= least - Duration::from_millis(5), "{:?}", scheduler.now());
    });
}

/// Who would wait for an hour goes on when its database is closed or the limit
/// is lifted.
#[test]
fn waits_end_when_the_limit_does() {
    explore("limiter, waits that end", |seed| {
        let scheduler = Scheduler::seeded(1, seed);
        let limiter = RateLimiter::with_floor(&scheduler, 1, 1);
        let tenant = limiter.join();
        tenant.pay(1 << 40, Purpose::Flush);
        let waiting = Arc::clone(&tenant);
        let waiter = thread::spawn("waits", move || waiting.pay(PIECE, Purpose::Compaction));
        match seed % 2 {
            0 => tenant.hurry(),
            _ => limiter.set_bytes_per_second(u64::MAX),
        }
        waiter.join().unwrap();
        assert!(scheduler.now() < Duration::from_secs(3600));
    });
}
