//! A token bucket: how many bytes may go, at a rate that may change.
//!
//! The balance grows with time and falls with what is taken, also below zero:
//! whoever comes while no more than the credit is owed goes at once, whatever the
//! size, and those after pay for it. Pure: the caller brings the time and does
//! the waiting. Pays for writers (`db::pacer`) and for background writes
//! (`limiter`).

use std::time::Duration;

/// What was not used is kept for this long, so that a sleep that lasts too
/// long, as all short sleeps do, costs no throughput.
const KEPT: f64 = 0.005;

/// Waits are not longer than this, so that a change of the rate is noticed.
const WAIT_SECONDS_MAX: f64 = 3600.0;

/// A balance of bytes at one moment.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Bucket {
    balance: f64,
    at: Duration,
    /// The rate at that moment.
    bytes_per_second: f64,
    /// As much may be owed as comes in within this many seconds.
    credit_seconds: f64,
}

impl Bucket {
    /// A bucket whose takers wait seldom, and then for `credit` at least, rather
    /// than often and briefly.
    pub(crate) fn with_credit(credit: Duration) -> Bucket {
        Bucket { credit_seconds: credit.as_secs_f64(), ..Bucket::default() }
    }

    /// Takes `bytes` at the time `now`, if no more than the credit is owed; else
    /// says how long to wait until nothing is.
    pub(crate) fn take(
        &mut self,
        now: Duration,
        bytes_per_second: f64,
        bytes: u64,
    ) -> Result<(), Duration> {
        self.refill(now, bytes_per_second);
        if self.balance < -bytes_per_second * self.credit_seconds {
            let seconds = -self.balance / bytes_per_second.max(1.0);
            let wait = Duration::from_secs_f64(seconds.min(WAIT_SECONDS_MAX));
            // A wait that is rounded to nothing would never end.
            return Err(wait.max(Duration::from_nanos(1)));
        }
        self.balance -= bytes as f64;
        Ok(())
    }

    /// Takes `bytes` whatever is owed: those who ask later wait for it.
    pub(crate) fn charge(&mut self, now: Duration, bytes_per_second: f64, bytes: u64) {
        self.refill(now, bytes_per_second);
        self.balance -= bytes as f64;
    }

    fn refill(&mut self, now: Duration, bytes_per_second: f64) {
        let elapsed = now.saturating_sub(self.at).as_secs_f64();
        self.at = self.at.max(now);
        if bytes_per_second < self.bytes_per_second {
            // Credit is a time: a rate that falls makes it worth less, and nobody waits
            // for longer.
            let owed = self.balance.clamp(-self.bytes_per_second * self.credit_seconds, 0.0);
            self.balance -= owed * (1.0 - bytes_per_second / self.bytes_per_second);
        }
        self.bytes_per_second = bytes_per_second;
        let kept_max = bytes_per_second * KEPT;
        self.balance = (self.balance + elapsed * bytes_per_second).min(kept_max);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Takes what it can for `millis`, in pieces of `bytes`; how much it was.
    fn taken(bucket: &mut Bucket, millis: u64, rate: f64, bytes: u64, oversleep: Duration) -> u64 {
        let (mut now, mut sum) = (bucket.at, 0);
        let end = now + Duration::from_millis(millis);
        while now < end {
            match bucket.take(now, rate, bytes) {
                Ok(()) => sum += bytes,
                Err(wait) => now += wait + oversleep,
            }
        }
        sum
    }

    /// Over time the rate is kept, whatever the size of the pieces, and also
    /// if each sleep lasts longer than was asked for.
    #[test]
    fn the_rate_is_kept_for_all_sizes() {
        for bytes in [10, 1_000, 100_000] {
            for oversleep in [0, 60, 1_000] {
                let mut bucket = Bucket::default();
                let oversleep = Duration::from_micros(oversleep);
                let sum = taken(&mut bucket, 10_000, 1e6, bytes, oversleep) as f64;
                assert!((sum / 1e7 - 1.0).abs() < 0.02, "{bytes} {oversleep:?}: {sum}");
            }
        }
    }

    /// Who has credit waits seldom: of many small pieces at twice the rate, one in
    /// each stretch of the credit's length, and the rate is kept.
    #[test]
    fn credit_makes_waits_few_and_long() {
        let mut bucket = Bucket::with_credit(Duration::from_millis(5));
        let (rate, bytes) = (1e6, 100);
        let (mut now, mut waits, mut sum) = (Duration::ZERO, Vec::new(), 0);
        while now < Duration::from_secs(10) {
            match bucket.take(now, rate, bytes) {
                Ok(()) => (sum, now) = (sum + bytes, now + Duration::from_micros(50)),
                Err(wait) => {
                    waits.push(wait);
                    now += wait;
                }
            }
        }
        assert!((sum as f64 / 1e7 - 1.0).abs() < 0.01, "{sum}");
        assert!(waits.iter().all(|wait| *wait >= Duration::from_millis(5)), "{waits:?}");
        assert!((900..1_000).contains(&waits.len()), "{} of {}", waits.len(), sum / bytes);
    }

    /// What was taken on credit at a high rate is not waited for at a low one.
    #[test]
    fn credit_is_worth_less_where_the_rate_falls() {
        let mut bucket = Bucket::with_credit(Duration::from_millis(5));
        while bucket.take(Duration::ZERO, 1e8, 100).is_ok() {}
        // The credit, and the last piece.
        let wait = bucket.take(Duration::ZERO, 1e4, 100).expect_err("all of the credit is owed");
        assert!(wait <= Duration::from_millis(16), "{wait:?}");
    }

    /// A large piece goes at once; those after it wait for what it took.
    #[test]
    fn large_pieces_are_paid_for_afterwards() {
        let mut bucket = Bucket::default();
        assert_eq!(bucket.take(Duration::ZERO, 1000.0, 5000), Ok(()));
        assert_eq!(bucket.take(Duration::ZERO, 1000.0, 1), Err(Duration::from_secs(5)));
        assert_eq!(bucket.take(Duration::from_secs(4), 1000.0, 1), Err(Duration::from_secs(1)));
        assert_eq!(bucket.take(Duration::from_secs(5), 1000.0, 1), Ok(()));
    }

    /// An idle hour saves up no more than a moment's worth.
    #[test]
    fn idle_time_is_not_saved_up() {
        let mut bucket = Bucket::default();
        bucket.charge(Duration::from_secs(3600), 1e6, 0);
        let mut sum = 0;
        while bucket.take(Duration::from_secs(3600), 1e6, 100).is_ok() {
            sum += 100;
        }
        assert!(sum <= 5_100, "{sum}");
    }

    /// Nothing overflows, however slow the rate and large the piece.
    #[test]
    fn extreme_rates_give_bounded_waits() {
        let mut bucket = Bucket::default();
        bucket.charge(Duration::ZERO, 0.0, u64::MAX);
        let wait = bucket.take(Duration::ZERO, 0.0, 1).expect_err("much is owed");
        assert!(wait <= Duration::from_secs(3600));
        let mut bucket = Bucket::default();
        bucket.charge(Duration::ZERO, 1e9, 1);
        let (now, rate) = (Duration::ZERO, 1e12);
        assert!(bucket.take(now, rate, 1).is_err_and(|wait| !wait.is_zero()), "waits end");
        assert_eq!(Bucket::default().take(Duration::MAX, f64::MAX, u64::MAX), Ok(()));
    }
}
