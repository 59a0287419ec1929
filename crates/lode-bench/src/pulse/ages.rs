//! How old outputs of a public block chain are when they are spent.
//!
//! Published statistics of Bitcoin, in parts of 1,001 spent outputs: 127 are
//! spent in the block that made them, 283 one to ten blocks later, and so on
//! by decades. Inside a decade the ages are spread over 1-2-5 steps as a
//! logarithm spreads them, evenly inside a step.

/// Outputs that are spent in their own block, of [`OUTPUTS`].
pub const SAME_BLOCK: u64 = 127;
/// What the numbers of [`DECADES`] and [`SAME_BLOCK`] add up to.
pub const OUTPUTS: u64 = 1_001;

/// Outputs spent after 1-10, 11-100, 101-1,000 ... blocks.
const DECADES: [u64; 6] = [283, 194, 164, 117, 98, 18];
/// The end of a step, in units of the decade, and its part of 1,000.
const STEPS: [(u64, u64); 3] = [(2, 301), (5, 398), (10, 301)];

/// Of the outputs that are spent after their own block: the part spent when
/// `age` blocks old or younger. 0 at age 0, never falls, 1 at last.
pub fn spent_by(age: u64) -> f64 {
    let all = (OUTPUTS - SAME_BLOCK) * 1_000;
    let (mut before, mut low, mut unit) = (0, 0, 1);
    for outputs in DECADES {
        for (end, part) in STEPS {
            let (high, step) = (end * unit, outputs * part);
            if age < high {
                let inside = (age - low) as f64 / (high - low) as f64;
                return (before as f64 + step as f64 * inside) / all as f64;
            }
            before += step;
            low = high;
        }
        unit *= 10;
    }
    1.0
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The decades have the published parts, of those outputs that get into a
    /// database.
    #[test]
    fn decades_have_the_published_parts() {
        let mut below = 0;
        for (at, outputs) in DECADES.into_iter().enumerate() {
            below += outputs;
            let expected = below as f64 / 874.0;
            let found = spent_by(10u64.pow(at as u32 + 1));
            assert!((found - expected).abs() < 1e-9, "decade {at}: {found}, not {expected}");
        }
        assert_eq!(below + SAME_BLOCK, OUTPUTS);
        assert_eq!(spent_by(0), 0.0);
        assert_eq!(spent_by(u64::MAX), 1.0);
    }

    /// The older, the more are spent; half of them between 50 and 100 blocks, as
    /// 54.6 % are spent within 100.
    #[test]
    fn parts_never_fall() {
        let all: Vec<f64> = (0..200_000).map(spent_by).collect();
        assert!(all.windows(2).all(|pair| pair[0] <= pair[1]));
        let half = all.iter().position(|&part| part > 0.5).expect("it gets to 1");
        assert!((50..100).contains(&half), "half are spent by {half} blocks");
    }
}
