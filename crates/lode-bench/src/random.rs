//! The random numbers of LevelDB's `db_bench`, so that equal flags give equal
//! keys in the same order here and there; and a better generator, `SplitMix`,
//! for what has no order to keep.
//! Source of the constants: LevelDB, `util/random.h` (Park and Miller's
//! generator: multiply by 16807 modulo 2^31 - 1).

/// The modulus, 2^31 - 1, a prime.
const MODULUS: u64 = (1 << 31) - 1;
const MULTIPLIER: u64 = 16_807;

/// The seed of the first thread of the first benchmark is one more than this
/// one; each further thread of the run adds one. LevelDB's base.
pub const SEED_BASE: u64 = 1_000;

/// A generator for benchmarks: fast, repeatable, of no great quality.
#[derive(Clone, Debug)]
pub struct Random {
    state: u64,
}

impl Random {
    /// A generator that starts from the low 31 bits of `seed`. The two seeds
    /// that would only ever give themselves are replaced by 1.
    pub fn new(seed: u64) -> Random {
        let state = seed & MODULUS;
        Random { state: if state == 0 || state == MODULUS { 1 } else { state } }
    }

    /// The next number, in `1..2^31 - 1`.
    #[inline]
    pub fn step(&mut self) -> u64 {
        self.state = self.state * MULTIPLIER % MODULUS;
        self.state
    }

    /// A number in `0..bound`. Up to 2^31 - 1 it is LevelDB's number; a larger
    /// `bound` draws twice, because one draw has only 31 bits.
    ///
    /// `bound` must not be zero.
    #[inline]
    pub fn uniform(&mut self, bound: u64) -> u64 {
        if bound <= MODULUS {
            return self.step() % bound;
        }
        let high = self.step();
        (high << 31 | self.step()) % bound
    }
}

/// Steele, Lea and Flood's generator ("Fast splittable pseudorandom number
/// generators", 2014): 64 good bits from each step of a counter. For all that
/// db_bench's generator is too weak for.
#[derive(Clone, Debug)]
pub struct SplitMix(u64);

impl SplitMix {
    /// A generator that starts from `seed`; every seed is a good one.
    pub fn new(seed: u64) -> SplitMix {
        SplitMix(seed)
    }

    /// The next 64 bits.
    #[allow(clippy::should_implement_trait, reason = "there is always a next one")]
    #[inline]
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number in `0..bound`; `bound` must not be zero.
    #[inline]
    pub fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    /// A fraction in `0.0..1.0`, of 53 bits.
    #[inline]
    pub fn fraction(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Appends `length` random bytes.
    pub fn fill(&mut self, to: &mut Vec<u8>, length: usize) {
        let end = to.len() + length;
        while to.len() < end {
            let bytes = self.next().to_le_bytes();
            to.extend_from_slice(&bytes[..bytes.len().min(end - to.len())]);
        }
    }

    /// A number from `low` to `high`, each doubling equally often.
    pub fn log_uniform(&mut self, low: f64, high: f64) -> f64 {
        low * (high / low).powf(self.fraction())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first numbers from seed 1001 are those computed by hand:
    /// 1001 * 16807 = 16,823,807; then 16,823,807 * 16807 = 282,757,724,249,
    /// less 131 times 2^31 - 1 = 1,437,366,492.
    #[test]
    fn numbers_follow_the_recurrence() {
        let mut random = Random::new(1001);
        assert_eq!(random.step(), 16_823_807);
        assert_eq!(random.step(), 282_757_724_249 - 131 * 2_147_483_647);
        assert_eq!(random.step(), 1_437_366_492 * 16_807 % 2_147_483_647);
    }

    /// Park and Miller's published check: from seed 1, the 10,000th number is
    /// 1,043,618,065 ("Random number generators: good ones are hard to find").
    #[test]
    fn ten_thousandth_number_is_the_published_one() {
        let mut random = Random::new(1);
        let last = (0..10_000).map(|_| random.step()).last();
        assert_eq!(last, Some(1_043_618_065));
    }

    /// The second generator is the published one: its first numbers from seed
    /// 1234567 are in many libraries' tests.
    #[test]
    fn split_mix_gives_the_published_numbers() {
        let mut random = SplitMix::new(1_234_567);
        assert_eq!(random.next(), 6_457_827_717_110_365_317);
        assert_eq!(random.next(), 3_203_168_211_198_807_973);
    }

    /// Seeds from which nothing would ever move are replaced.
    #[test]
    fn fixed_points_are_not_used_as_seeds() {
        for seed in [0, MODULUS, 1 << 31] {
            assert_eq!(Random::new(seed).step(), MULTIPLIER);
        }
    }

    /// Below the modulus one draw is made, above it two, and the bound holds.
    #[test]
    fn bounds_beyond_31_bits_draw_twice() {
        let (mut one, mut two) = (Random::new(7), Random::new(7));
        assert_eq!(one.uniform(MODULUS), two.step() % MODULUS);
        let bound = MODULUS + 1;
        let (high, low) = (two.step(), two.step());
        assert_eq!(one.uniform(bound), (high << 31 | low) % bound);
        let bound = 10_000_000_000;
        let mut random = Random::new(3);
        let drawn: Vec<u64> = (0..10_000).map(|_| random.uniform(bound)).collect();
        assert!(drawn.iter().all(|&n| n < bound));
        assert!(drawn.iter().any(|&n| n > 9_000_000_000));
    }
}
