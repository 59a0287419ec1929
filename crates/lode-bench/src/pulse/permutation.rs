//! A shuffled order of the numbers below a bound, without a table: a Feistel
//! network over the next even number of bits, walked until it lands inside
//! (Black and Rogaway, "Ciphers with arbitrary finite domains", 2002).

use crate::ledger::SplitMix;

const ROUNDS: usize = 4;

/// A one-to-one mapping of `0..len` onto itself that follows from a seed.
#[derive(Clone, Debug)]
pub struct Permutation {
    len: u64,
    half_bits: u32,
    keys: [u64; ROUNDS],
}

impl Permutation {
    /// The order of `0..len`, `len` being 1 to 2^62, that `seed` gives.
    pub fn new(len: u64, seed: u64) -> Permutation {
        assert!((1..=1 << 62).contains(&len), "a permutation of {len} numbers");
        let bits = u64::BITS - (len - 1).leading_zeros();
        let mut random = SplitMix(seed);
        let keys = std::array::from_fn(|_| random.next());
        Permutation { len, half_bits: bits.div_ceil(2).max(1), keys }
    }

    /// The number at `place`, both below the length.
    pub fn at(&self, place: u64) -> u64 {
        self.walk(place, Self::forward)
    }

    /// The place of `number`: undoes [`Permutation::at`].
    pub fn place_of(&self, number: u64) -> u64 {
        self.walk(number, Self::backward)
    }

    /// The domain of the network is at most four times as large as ours, so
    /// that this ends after a few steps, and it always comes back inside.
    fn walk(&self, start: u64, step: fn(&Self, u64) -> u64) -> u64 {
        assert!(start < self.len);
        let mut at = step(self, start);
        while at >= self.len {
            at = step(self, at);
        }
        at
    }

    fn forward(&self, number: u64) -> u64 {
        let (mut left, mut right) = self.halves(number);
        for key in self.keys {
            (left, right) = (right, left ^ self.mix(right, key));
        }
        left << self.half_bits | right
    }

    fn backward(&self, number: u64) -> u64 {
        let (mut left, mut right) = self.halves(number);
        for key in self.keys.iter().rev() {
            (left, right) = (right ^ self.mix(left, *key), left);
        }
        left << self.half_bits | right
    }

    fn halves(&self, number: u64) -> (u64, u64) {
        (number >> self.half_bits, number & self.mask())
    }

    fn mix(&self, half: u64, key: u64) -> u64 {
        SplitMix(half ^ key).next() & self.mask()
    }

    fn mask(&self) -> u64 {
        (1 << self.half_bits) - 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every number comes once, whatever the length, and its place is known.
    #[test]
    fn every_number_comes_once() {
        for len in (1..70).chain([255, 256, 257, 1_000]) {
            let order = Permutation::new(len, 9);
            let mut seen = vec![false; len as usize];
            for place in 0..len {
                let number = order.at(place);
                assert!(!std::mem::replace(&mut seen[number as usize], true), "{number} of {len}");
                assert_eq!(order.place_of(number), place);
            }
        }
    }

    /// Seeds give orders of their own, and neighbours are torn apart.
    #[test]
    fn order_looks_shuffled() {
        let (len, places) = (1 << 40, 10_000);
        let (a, b) = (Permutation::new(len, 1), Permutation::new(len, 2));
        assert!((0..places).all(|place| a.at(place) != b.at(place)));
        let low = (0..places).filter(|&place| a.at(place) < len / 4).count();
        assert!((2_300..2_700).contains(&low), "{low} of {places} are in the first quarter");
        let near = (1..places).filter(|&p| a.at(p).abs_diff(a.at(p - 1)) < len / 1_000).count();
        assert!(near < 60, "{near} of {places} neighbours stayed together");
    }
}
