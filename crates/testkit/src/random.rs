//! Randomness that follows from a seed alone: the SplitMix64 generator
//! (Steele, Lea, Flood 2014).

/// A seeded source of random numbers.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// The generator for `seed`. Neighbouring seeds give unrelated numbers.
    pub fn new(seed: u64) -> Random {
        let mut random = Random(seed ^ 0x5851_f42d_4c95_7f2d);
        random.word();
        random
    }

    /// The next 64 random bits.
    pub fn word(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    /// A number in `0..limit`; `limit` must not be 0.
    pub fn below(&mut self, limit: usize) -> usize {
        (self.word() % limit as u64) as usize
    }

    /// A number in `from..=to`.
    pub fn between(&mut self, from: usize, to: usize) -> usize {
        from + self.below(to - from + 1)
    }

    /// True once in `n` times.
    pub fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    /// One of `items`, which must not be empty.
    pub fn pick<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.below(items.len())]
    }

    /// One of `choices` by their weights.
    pub fn weighted<T: Copy>(&mut self, choices: &[(usize, T)]) -> T {
        let total = choices.iter().map(|c| c.0).sum();
        let mut at = self.below(total);
        for &(weight, choice) in choices {
            if at < weight {
                return choice;
            }
            at -= weight;
        }
        unreachable!("the weights add up to the total");
    }
}

/// `length` bytes that follow from `seed`: runs of repeated and of random
/// bytes, so that they compress, but not to nothing.
pub fn bytes(length: usize, seed: u64) -> Vec<u8> {
    let mut random = Random::new(seed);
    let mut out = Vec::with_capacity(length + 32);
    while out.len() < length {
        let run = random.between(1, 24);
        if random.one_in(2) {
            let byte = random.word() as u8;
            out.extend(std::iter::repeat_n(byte, run));
        } else {
            out.extend((0..run).map(|_| random.word() as u8));
        }
    }
    out.truncate(length);
    out
}

/// A 64-bit digest of `bytes` (FNV-1a), for showing and comparing long values.
pub fn digest(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A failure is reported by its seed, so a seed must repeat everything.
    #[test]
    fn the_same_seed_gives_the_same_numbers() {
        let draw = |seed| {
            let mut random = Random::new(seed);
            (0..100).map(|_| random.below(1000)).collect::<Vec<_>>()
        };
        assert_eq!(draw(1), draw(1));
        assert_ne!(draw(1), draw(2));
        assert_eq!(bytes(5000, 3), bytes(5000, 3));
        assert_eq!(bytes(5000, 3).len(), 5000);
    }
}
