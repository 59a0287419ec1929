//! Every number below a count once, in random order, with a few words of
//! memory: a Feistel network, walked along its cycles.
//!
//! The network permutes all numbers of an even number of bits. Where that
//! gives a number that is too large, it is applied again; the walk comes back
//! below the count, because it goes round a cycle that began there. At most
//! three of four numbers are too large, so that a walk has four steps at most
//! on average.

use crate::random::SplitMix;

/// Four rounds of a random function make a network that statistics cannot
/// tell from a random permutation (Luby and Rackoff, 1988).
const ROUNDS: usize = 4;

/// A permutation of the numbers below a count.
#[derive(Clone, Debug)]
pub struct Permutation {
    count: u64,
    half_bits: u32,
    round_keys: [u64; ROUNDS],
}

impl Permutation {
    /// The permutation of `0..count` that `seed` chooses. `count` must not be
    /// zero.
    pub fn new(count: u64, seed: u64) -> Permutation {
        assert!(count > 0, "there is nothing to permute");
        let bits = u64::BITS - (count - 1).leading_zeros();
        let mut random = SplitMix::new(seed);
        Permutation {
            count,
            half_bits: bits.div_ceil(2).max(1),
            round_keys: std::array::from_fn(|_| random.next()),
        }
    }

    /// How many numbers there are.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The number at `position`, which is below the count.
    #[inline]
    pub fn at(&self, position: u64) -> u64 {
        debug_assert!(position < self.count);
        let mut number = self.network(position);
        while number >= self.count {
            number = self.network(number);
        }
        number
    }

    /// The position of `number`: undoes [`Permutation::at`].
    pub fn position_of(&self, number: u64) -> u64 {
        debug_assert!(number < self.count);
        let mut position = self.inverse(number);
        while position >= self.count {
            position = self.inverse(position);
        }
        position
    }

    #[inline]
    fn network(&self, number: u64) -> u64 {
        let (mut left, mut right) = self.halves(number);
        for key in self.round_keys {
            (left, right) = (right, left ^ self.mix(right, key));
        }
        left << self.half_bits | right
    }

    fn inverse(&self, number: u64) -> u64 {
        let (mut left, mut right) = self.halves(number);
        for key in self.round_keys.iter().rev() {
            (left, right) = (right ^ self.mix(left, *key), left);
        }
        left << self.half_bits | right
    }

    #[inline]
    fn halves(&self, number: u64) -> (u64, u64) {
        (number >> self.half_bits, number & self.mask())
    }

    #[inline]
    fn mix(&self, half: u64, key: u64) -> u64 {
        SplitMix::new(half ^ key).next() & self.mask()
    }

    #[inline]
    fn mask(&self) -> u64 {
        (1 << self.half_bits) - 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(count: u64, seed: u64) -> Vec<u64> {
        let permutation = Permutation::new(count, seed);
        (0..count).map(|position| permutation.at(position)).collect()
    }

    /// No number is missing and none comes twice, whatever the count.
    #[test]
    fn every_number_comes_once() {
        for count in (1..300).chain([1_023, 1_024, 1_025, 4_097, 100_003]) {
            let mut numbers = all(count, 7);
            numbers.sort_unstable();
            assert!(numbers.into_iter().eq(0..count), "of {count}");
        }
    }

    /// A number's position is found again.
    #[test]
    fn positions_are_found_again() {
        for count in [1, 2, 3, 64, 65, 1_000, 1 << 40] {
            let permutation = Permutation::new(count, 9);
            for position in 0..count.min(500) {
                assert_eq!(permutation.position_of(permutation.at(position)), position);
            }
        }
    }

    /// The order is neither that of the positions nor that of another seed,
    /// and neighbours do not stay together.
    #[test]
    fn order_is_random() {
        let numbers = all(100_000, 1);
        assert_eq!(numbers, all(100_000, 1));
        assert_ne!(numbers, all(100_000, 2));
        let near = numbers.windows(2).filter(|pair| pair[0].abs_diff(pair[1]) < 1_000).count();
        // Two of 100,000 random numbers are that near in 2 % of all cases.
        assert!((1_700..2_300).contains(&near), "{near} neighbours are near");
        let fixed = (0..).zip(&numbers).filter(|&(at, &number)| at == number).count();
        assert!(fixed < 10, "{fixed} numbers are where they were");
    }

    /// The first half of the positions is spread over all numbers.
    #[test]
    fn halves_are_spread_evenly() {
        let permutation = Permutation::new(1 << 16, 3);
        let low = (0..1 << 15).filter(|&at| permutation.at(at) < 1 << 15).count();
        // 16,384 are expected; the standard deviation is 64.
        assert!((16_384 - 320..16_384 + 320).contains(&low), "{low} of the lower half");
    }

    /// Counts up to the largest work without more memory or time.
    #[test]
    fn largest_counts_work() {
        for count in [u64::MAX, 1 << 63, (1 << 62) + 1, 100_000_000_000] {
            let permutation = Permutation::new(count, 5);
            assert!((0..1_000).all(|at| permutation.at(at) < count));
            assert!(permutation.at(count - 1) < count);
        }
    }
}
