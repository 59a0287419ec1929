//! Which keys lookups draw: all alike, or, with `--read_random_exp_range`, some
//! far more often than others. Ranked by how often it is drawn, key number `r`
//! has a probability of about `1 / r`, until `exp(-X)` of all keys are passed:
//! those are all alike again.

use crate::permutation::Permutation;
use crate::random::Random;

/// Fractions have as many bits as a float holds.
const FRACTION_BITS: u32 = 53;

/// Draws numbers of keys.
#[derive(Clone, Debug)]
pub struct Popularity {
    num: u64,
    exp_range: f64,
    /// From rank to number: popular keys are no neighbours.
    places: Permutation,
}

impl Popularity {
    /// Of the numbers below `num`; `seed` says which of them are popular.
    pub fn new(num: u64, exp_range: f64, seed: u64) -> Popularity {
        // Not the order in which filluniquerandom writes.
        Popularity { num, exp_range, places: Permutation::new(num, !seed) }
    }

    /// The next number.
    #[inline]
    pub fn draw(&self, random: &mut Random) -> u64 {
        match self.exp_range {
            // LevelDB's numbers, in its order.
            0.0 => random.uniform(self.num),
            range => self.places.at(self.rank(range, random)),
        }
    }

    fn rank(&self, range: f64, random: &mut Random) -> u64 {
        let whole = 1u64 << FRACTION_BITS;
        let part = random.uniform(whole) as f64 / whole as f64;
        ((self.num as f64 * (-part * range).exp()) as u64).min(self.num - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NUM: u64 = 100_000;
    const DRAWN: usize = 100_000;

    fn drawn(exp_range: f64) -> Vec<u64> {
        let popularity = Popularity::new(NUM, exp_range, 7);
        let mut random = Random::new(1001);
        (0..DRAWN).map(|_| popularity.draw(&mut random)).collect()
    }

    /// How often each key was drawn, the most popular first.
    fn ranked(drawn: &[u64]) -> Vec<(usize, u64)> {
        let mut counts: Vec<(usize, u64)> = (0..NUM).map(|number| (0, number)).collect();
        drawn.iter().for_each(|&number| counts[number as usize].0 += 1);
        counts.sort_unstable_by(|a, b| b.cmp(a));
        counts
    }

    /// How many draws the `keys` most popular keys have, of 100.
    fn percent_of_most_popular(drawn: &[u64], keys: usize) -> usize {
        let draws: usize = ranked(drawn)[..keys].iter().map(|(count, _)| count).sum();
        draws * 100 / drawn.len()
    }

    /// With a range of X, the most popular part exp(-Y) of the keys has the part
    /// 1 - Y / X of the draws: a hundredth (Y = 4.6) has 77 % of them where X is
    /// 20, 54 % where it is 10; without it, few more than any hundredth.
    #[test]
    fn few_keys_have_most_of_the_draws() {
        for (range, percent) in [(20.0, 76..=78), (10.0, 53..=56), (0.0, 2..=6)] {
            let found = percent_of_most_popular(&drawn(range), NUM as usize / 100);
            assert!(percent.contains(&found), "{range}: {found} %");
        }
    }

    /// Popular keys are no neighbours: the hundred most popular are in nearly as
    /// many blocks of 40 keys.
    #[test]
    fn popular_keys_are_spread() {
        let ranked = ranked(&drawn(20.0));
        let mut blocks: Vec<u64> = ranked[..100].iter().map(|(_, number)| number / 40).collect();
        blocks.sort_unstable();
        blocks.dedup();
        assert!(blocks.len() > 90, "{}", blocks.len());
    }
}
