//! What `mixgraph` draws from: ranges of keys of which some are hotter, keys of
//! which some are hotter, and sizes with a heavy tail. Pure but for the
//! generator that is handed in.

use crate::random::SplitMix;
use crate::shapes::{MixShape, Pareto, RangeShape};

/// Ranges less likely than this are never used.
const SHARE_MIN: f64 = 1e-16;

impl Pareto {
    /// A size, rounded up, zero or more.
    pub fn draw(&self, random: &mut SplitMix) -> u64 {
        // From just above 0 to 1: the tail begins at 0.
        self.at(1.0 - random.fraction())
    }

    /// The size that a part `u` of all sizes exceed; `u` is above 0, at most 1.
    fn at(&self, u: f64) -> u64 {
        let size = match self.k {
            0.0 => self.theta - self.sigma * u.ln(),
            k => self.theta + self.sigma * (u.powf(-k) - 1.0) / k,
        };
        // The conversion saturates: below zero is zero.
        size.ceil() as u64
    }
}

/// Which number the next key is made of.
#[derive(Clone, Debug)]
pub struct HotKeys {
    num: u64,
    ranges: Option<HotRanges>,
    keys: Option<(f64, f64)>,
}

impl HotKeys {
    /// Keys of the numbers below `num`.
    pub fn new(num: u64, shape: &MixShape) -> HotKeys {
        let ranges = shape.ranges.map(|ranges| HotRanges::new(num, ranges));
        HotKeys { num, ranges, keys: shape.keys }
    }

    /// A number below `num`.
    pub fn draw(&self, random: &mut SplitMix) -> u64 {
        let (first, count) = match &self.ranges {
            None => (0, self.num),
            Some(ranges) => (ranges.draw(random.fraction()) * ranges.keys, ranges.keys),
        };
        let offset = match self.keys {
            None => random.below(count),
            Some((a, b)) => {
                // `rank` is how hot the key is: the hottest is 1. A hash says
                // where in the range it is, so that hot keys aren't neighbours.
                let u = random.below(count) as f64 / count as f64;
                let rank = (u / a).powf(1.0 / b).ceil() as u64;
                SplitMix::new(rank).below(count)
            }
        };
        first + offset
    }
}

/// Ranges of keys with the sum of their shares up to each.
#[derive(Clone, Debug)]
struct HotRanges {
    /// Keys of each.
    keys: u64,
    /// The share of each range and of those before it; the last is 1.
    sums: Vec<f64>,
}

impl HotRanges {
    fn new(num: u64, shape: RangeShape) -> HotRanges {
        let mut shares = shares(shape);
        // The hottest range is not the first one; equal flags give equal orders.
        let mut random = SplitMix::new(shape.count);
        for at in (1..shares.len()).rev() {
            shares.swap(at, random.below(at as u64 + 1) as usize);
        }
        let total: f64 = shares.iter().sum();
        let mut sum = 0.0;
        let sums = shares.iter().map(|share| {
            sum += share / total;
            sum
        });
        HotRanges { keys: num / shape.count, sums: sums.collect() }
    }

    /// The range at `part` of all shares.
    fn draw(&self, part: f64) -> u64 {
        let at = self.sums.partition_point(|&sum| sum <= part);
        at.min(self.sums.len() - 1) as u64
    }
}

/// How often each range is used, the hottest first; not yet of sum 1.
pub fn shares(shape: RangeShape) -> Vec<f64> {
    let [a, b, c, d] = shape.factors;
    let share = |x: f64| a * (b * x).exp() + c * (d * x).exp();
    let positive = |share: f64| if share < SHARE_MIN { 0.0 } else { share };
    (1..=shape.count).map(|x| positive(share(x as f64))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const FLAT: Pareto = Pareto { theta: 0.0, k: 0.2615, sigma: 25.45 };

    fn shape(ranges: Option<RangeShape>, keys: Option<(f64, f64)>) -> MixShape {
        MixShape {
            ranges,
            keys,
            value: FLAT,
            value_bytes_max: 1_024,
            scan: FLAT,
            scan_max: 10_000,
            shares: [1.0, 0.0, 0.0],
            sine: None,
        }
    }

    fn counts(num: u64, shape: &MixShape) -> Vec<u64> {
        let (keys, mut random) = (HotKeys::new(num, shape), SplitMix::new(1));
        let mut counts = vec![0; num as usize];
        (0..100_000).for_each(|_| counts[keys.draw(&mut random) as usize] += 1);
        counts
    }

    /// Sizes follow the published formula: its median is
    /// 25.45 * (2^0.2615 - 1) / 0.2615 = 19.3, its mean 25.45 / 0.7385 = 34.5.
    #[test]
    fn sizes_follow_the_distribution() {
        assert_eq!(FLAT.at(0.5), 20);
        assert_eq!(FLAT.at(1.0), 0);
        let exponential = Pareto { theta: 5.0, k: 0.0, sigma: 10.0 };
        assert_eq!(exponential.at((-1.0f64).exp()), 15);
        let mut random = SplitMix::new(9);
        let sum: u64 = (0..100_000).map(|_| FLAT.draw(&mut random)).sum();
        // Rounding up adds a half.
        assert!((34.0..36.0).contains(&(sum as f64 / 1e5)), "{sum}");
    }

    /// A size is never negative or without end.
    #[test]
    fn extreme_sizes_are_bounded() {
        assert_eq!(Pareto { theta: -100.0, ..FLAT }.at(0.9), 0);
        assert_eq!(Pareto { theta: 0.0, k: 2.5, sigma: 1e300 }.at(1e-16), u64::MAX);
    }

    /// Without parameters all keys are alike.
    #[test]
    fn keys_are_alike_without_parameters() {
        let counts = counts(100, &shape(None, None));
        assert!(counts.iter().all(|count| (800..1_200).contains(count)), "{counts:?}");
    }

    /// The hottest range gets its share, and within it all keys are alike.
    #[test]
    fn hot_ranges_get_their_share() {
        let ranges = RangeShape { count: 30, factors: [14.18, -2.917, 0.0164, -0.08082] };
        let shares = shares(ranges);
        let expected = shares[0] / shares.iter().sum::<f64>() * 1e5;
        let counts = counts(300, &shape(Some(ranges), None));
        let ranges: Vec<u64> = counts.chunks(10).map(|range| range.iter().sum()).collect();
        let hottest = (0..30).max_by_key(|&at| ranges[at]).expect("there are ranges");
        assert!((ranges[hottest] as f64 / expected - 1.0).abs() < 0.05, "{ranges:?}");
        let within = &counts[hottest * 10..][..10];
        let even = ranges[hottest] / 10;
        assert!(within.iter().all(|&count| count.abs_diff(even) < even / 5), "{within:?}");
    }

    /// With a power law, few keys take most operations, and none is out of range.
    #[test]
    fn hot_keys_follow_the_power_law() {
        let mut counts = counts(10_000, &shape(None, Some((0.1, 0.25))));
        counts.sort_unstable();
        let hottest: u64 = counts.iter().rev().take(100).sum();
        // a * 100^b = 0.32 of all operations go to the first hundred ranks.
        assert!(
            (30_000..36_000).contains(&hottest),
            "{hottest} of 100,000 go to a hundredth of the keys"
        );
    }
}
