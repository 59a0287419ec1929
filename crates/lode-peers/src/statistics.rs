//! What can be said of ratios that were measured a few times. Pure functions.

use serde::{Deserialize, Serialize};

/// What an interval should cover, if there are rounds enough.
const COVERAGE_WANTED: f64 = 0.95;
/// A line is noisy where the interval of Lodestore against itself is wider.
const NOISE_MAX: f64 = 0.10;
/// With fewer rounds nothing is claimed.
const ROUNDS_MIN: usize = 3;

/// A median with its interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// The median over rounds.
    pub median: f64,
    /// Where the interval begins.
    pub low: f64,
    /// Where it ends.
    pub high: f64,
    /// The probability that such an interval holds the true median, whatever
    /// the distribution.
    pub coverage: f64,
}

/// What a line says of a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// The peer takes longer: the whole interval is above 1.
    Win,
    /// The interval has 1 in it.
    Even,
    /// Lodestore takes longer: the whole interval is below 1.
    Loss,
    /// Nothing is claimed: Lodestore differs too much from itself.
    Noisy,
}

/// The middle value, or the mean of the two in the middle. `None` if there is
/// none.
pub fn median(values: &[f64]) -> Option<f64> {
    let sorted = sorted(values);
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => None,
        odd if odd % 2 == 1 => Some(sorted[middle]),
        _ => Some((sorted[middle - 1] + sorted[middle]) / 2.0),
    }
}

/// The median of `values` and the interval between two of their order
/// statistics: the narrowest symmetric one that covers what is wanted, or all
/// of them if none does. `None` if there is none.
pub fn estimate(values: &[f64]) -> Option<Estimate> {
    let median = median(values)?;
    let sorted = sorted(values);
    let cut = cut(sorted.len());
    Some(Estimate {
        median,
        low: sorted[cut],
        high: sorted[sorted.len() - 1 - cut],
        coverage: coverage(sorted.len(), cut),
    })
}

/// What the interval of so many rounds covers.
pub fn coverage_of(rounds: usize) -> f64 {
    coverage(rounds, cut(rounds))
}

/// The estimate of `theirs / ours`, round by round. Rounds that only one of
/// them has do not count.
pub fn ratio(ours: &[Option<f64>], theirs: &[Option<f64>]) -> Option<Estimate> {
    let pairs = ours.iter().zip(theirs);
    let ratios = pairs.filter_map(|(ours, theirs)| Some((*theirs)? / (*ours)?));
    estimate(&ratios.filter(|ratio| ratio.is_finite()).collect::<Vec<f64>>())
}

/// Why nothing can be claimed, from the ratio of Lodestore against itself over
/// `rounds`; `None` if something can.
pub fn noise(itself: Option<&Estimate>, rounds: usize) -> Option<String> {
    let Some(itself) = itself else {
        return Some("Lodestore was not compared with itself".to_string());
    };
    if rounds < ROUNDS_MIN {
        return Some(format!("fewer than {ROUNDS_MIN} rounds"));
    }
    let Estimate { low, high, .. } = *itself;
    if !(low..=high).contains(&1.0) {
        return Some(format!("Lodestore against itself: {low:.3} to {high:.3}, without 1"));
    }
    let spread = high / low - 1.0;
    (spread > NOISE_MAX).then(|| {
        format!(
            "Lodestore against itself spans {:.0} %, more than {:.0} %",
            spread * 100.0,
            NOISE_MAX * 100.0
        )
    })
}

/// What `ratio` says, on a line that is noisy or not.
pub fn verdict(ratio: &Estimate, is_noisy: bool) -> Verdict {
    match ratio {
        _ if is_noisy => Verdict::Noisy,
        ratio if ratio.low > 1.0 => Verdict::Win,
        ratio if ratio.high < 1.0 => Verdict::Loss,
        _ => Verdict::Even,
    }
}

fn sorted(values: &[f64]) -> Vec<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted
}

/// How many values at either end can be left out.
fn cut(count: usize) -> usize {
    let covers = |&cut: &usize| coverage(count, cut) >= COVERAGE_WANTED;
    (0..count.div_ceil(2)).take_while(covers).last().unwrap_or(0)
}

/// The probability that the true median is between the values that are left
/// when `cut` at either end are left out: each value is below it as often as
/// above.
fn coverage(count: usize, cut: usize) -> f64 {
    // Terms of the binomial distribution, each from the one before; small
    // counts of rounds keep them far from underflow.
    let mut term = 0.5f64.powi(count as i32);
    let mut tail = 0.0;
    for below in 0..=cut {
        tail += term;
        term *= (count - below) as f64 / (below + 1) as f64;
    }
    (1.0 - 2.0 * tail).max(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(found: f64, expected: f64) {
        assert!((found - expected).abs() < 1e-4, "{found} is not {expected}");
    }

    /// The median of none is none, of an even number the mean of two.
    #[test]
    fn medians_are_in_the_middle() {
        assert_eq!(median(&[]), None);
        assert_eq!(median(&[3.0]), Some(3.0));
        assert_eq!(median(&[9.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&[4.0, 1.0, 3.0, 2.0]), Some(2.5));
    }

    /// The intervals and coverages of tables for the sign test: with 6 values
    /// all are needed (96.9 %), with 9 one at either end can go (96.1 %), with
    /// 20 five (95.9 %).
    #[test]
    fn intervals_are_those_of_the_sign_test() {
        for (count, first, last, covers) in [
            (1, 1.0, 1.0, 0.0),
            (3, 1.0, 3.0, 0.75),
            (5, 1.0, 5.0, 0.9375),
            (6, 1.0, 6.0, 0.96875),
            (8, 1.0, 8.0, 0.99219),
            (9, 2.0, 8.0, 0.96094),
            (12, 3.0, 10.0, 0.96143),
            (20, 6.0, 15.0, 0.95861),
        ] {
            // Upside down, because nobody sorts for us.
            let values: Vec<f64> = (1..=count).rev().map(f64::from).collect();
            let Estimate { low, high, coverage, .. } = estimate(&values).expect("some");
            assert_eq!((low, high), (first, last), "of {count}");
            close(coverage, covers);
            close(coverage_of(count as usize), covers);
        }
        assert_eq!(estimate(&[]), None);
    }

    /// Ratios are of the same round; a round that one of them lacks is left out.
    #[test]
    fn ratios_are_paired() {
        let ours = [Some(1.0), Some(2.0), Some(4.0), None, Some(0.0)];
        let theirs = [Some(2.0), Some(6.0), None, Some(9.0), Some(5.0)];
        let ratio = ratio(&ours, &theirs).expect("two rounds have both");
        close(ratio.median, 2.5);
        assert_eq!((ratio.low, ratio.high), (2.0, 3.0));
        assert_eq!(super::ratio(&ours, &[None; 5]), None);
    }

    /// A line counts only if Lodestore equals itself, closely, often enough.
    #[test]
    fn noise_voids_a_line() {
        let itself = |low, high| Estimate { median: 1.0, low, high, coverage: 0.96 };
        let told = |low, high, rounds| noise(Some(&itself(low, high)), rounds);
        assert_eq!(told(0.97, 1.02, 6), None);
        assert!(told(0.97, 1.02, 2).is_some_and(|why| why.contains("rounds")));
        assert!(told(1.01, 1.02, 6).is_some_and(|why| why.contains("without 1")));
        assert!(told(0.9, 1.02, 6).is_some_and(|why| why.contains("spans 13 %")));
        assert!(noise(None, 9).is_some());
    }

    /// A claim needs the whole interval, and a line that is not noisy.
    #[test]
    fn verdicts_need_the_whole_interval() {
        let ratio = |low, high| Estimate { median: (low + high) / 2.0, low, high, coverage: 0.96 };
        assert_eq!(verdict(&ratio(1.1, 1.3), false), Verdict::Win);
        assert_eq!(verdict(&ratio(0.9, 1.3), false), Verdict::Even);
        assert_eq!(verdict(&ratio(0.7, 0.9), false), Verdict::Loss);
        assert_eq!(verdict(&ratio(0.7, 0.9), true), Verdict::Noisy);
    }
}
