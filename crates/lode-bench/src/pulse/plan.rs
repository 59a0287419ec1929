//! Which entries a round reads, adds and deletes.
//!
//! Entries are numbered as they are written: those of the load from 0 on, then
//! those of each round. Entries that came together are a cohort, and leave it
//! in a shuffled order ([`Permutation`]), so that a cohort's state is one
//! number: how many have left. Each round takes from every cohort its expected
//! share, rounded up or down by a dither that follows from seed, cohort and
//! round; the oldest cohort gives what is then missing from the round's
//! number. Nothing is kept but a number for each cohort, and any round can be
//! planned again.
//!
//! - classic, sequential: the share is the cohort's part of all entries.
//! - utxo: a round is a block. What has left its block's cohort by an age is
//!   the part that [`spent_by`] says. The load stands for the blocks before:
//!   its cohorts hold what blocks of that depth would have left over, and the
//!   oldest one stands for all that is older still.

use std::ops::Range;

use crate::error::BenchError;
use crate::permutation::Permutation;
use crate::pulse::ages::spent_by;
use crate::pulse::stream::{Shape, Stream};
use crate::random::SplitMix;

/// Ends of the load's cohorts in the shape utxo, in blocks before the first round.
const DEPTHS: [i64; 4] = [10, 100, 1_000, 10_000];
/// A depth that no age reaches.
const DEPTH_END: i64 = i64::MAX / 2;

/// What a round does, by the numbers of the entries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Round {
    /// 1, 2, ...
    pub number: u64,
    /// Read before anything is written; all are there, and none twice.
    pub reads: Vec<u64>,
    /// Added.
    pub adds: Range<u64>,
    /// Deleted; none of them is added in the same round.
    pub deletes: Vec<u64>,
}

/// Plans one round after the other.
#[derive(Clone, Debug)]
pub struct Planner {
    stream: Stream,
    /// The oldest first, so that entries' numbers ascend.
    cohorts: Vec<Cohort>,
    rounds: u64,
}

/// Entries that came together.
#[derive(Clone, Debug)]
struct Cohort {
    first: u64,
    len: u64,
    /// How many have left, in the cohort's order.
    left: u64,
    /// Blocks before the first round, 0 being the last of them; later ones are
    /// below 0.
    depth: Range<i64>,
}

impl Cohort {
    fn live(&self) -> u64 {
        self.len - self.left
    }
}

impl Planner {
    /// The state after the load.
    pub fn new(stream: &Stream) -> Planner {
        let cohorts = match stream.shape {
            Shape::Utxo => loaded_by_depth(stream),
            Shape::Classic | Shape::Sequential => {
                vec![Cohort { first: 0, len: stream.entries, left: 0, depth: 0..DEPTH_END }]
            }
        };
        Planner { stream: stream.clone(), cohorts, rounds: 0 }
    }

    /// Goes on to the state after `rounds` rounds.
    pub fn skip_to(&mut self, rounds: u64) -> Result<(), BenchError> {
        while self.rounds < rounds {
            let leaving = self.leaving()?;
            self.advance(&leaving);
        }
        Ok(())
    }

    /// Entries in the database now.
    pub fn live(&self) -> u64 {
        self.cohorts.iter().map(Cohort::live).sum()
    }

    /// Plans the next round, and counts it as done.
    /// # Errors: `Refused` if the load is used up.
    pub fn next_round(&mut self) -> Result<Round, BenchError> {
        let leaving = self.leaving()?;
        let deletes = self.members(&leaving, 0);
        let reads = match self.stream.shape {
            Shape::Utxo => deletes.clone(),
            Shape::Classic | Shape::Sequential => self.drawn(0)?,
        };
        let first = self.next_number();
        self.advance(&leaving);
        Ok(Round { number: self.rounds, reads, adds: first..first + self.stream.adds, deletes })
    }

    /// Plans what a round that only reads does now; each `pass` reads others,
    /// pass 0 what the next round would.
    pub fn reads_only(&self, pass: u64) -> Result<Vec<u64>, BenchError> {
        match self.stream.shape {
            Shape::Utxo => Ok(self.members(&self.leaving()?, pass)),
            Shape::Classic | Shape::Sequential => self.drawn(pass),
        }
    }

    fn next_number(&self) -> u64 {
        self.stream.entries + self.rounds * self.stream.adds
    }

    /// How many leave each cohort in the next round.
    fn leaving(&self) -> Result<Vec<u64>, BenchError> {
        let round = self.rounds + 1;
        let live = self.live() as f64;
        // As many as the round has deletes, those of the shape utxo being its reads.
        let mut missing = self.stream.deletes;
        let mut leaving = vec![0; self.cohorts.len()];
        for (at, cohort) in self.cohorts.iter().enumerate().skip(1) {
            let part = match self.stream.shape {
                Shape::Utxo => part_spent(cohort, round),
                Shape::Classic | Shape::Sequential => cohort.live() as f64 / live,
            };
            let share = self.stream.deletes as f64 * part + self.dither(at, round);
            leaving[at] = (share as u64).min(cohort.live()).min(missing);
            missing -= leaving[at];
        }
        if missing > self.cohorts[0].live() {
            return Err(self.used_up());
        }
        leaving[0] = missing;
        Ok(leaving)
    }

    fn used_up(&self) -> BenchError {
        BenchError::Refused(format!(
            "the stream ends before round {}: the entries of its load are used up; load a larger \
             one",
            self.rounds + 1
        ))
    }

    fn advance(&mut self, leaving: &[u64]) {
        for (cohort, leaving) in self.cohorts.iter_mut().zip(leaving) {
            cohort.left += leaving;
        }
        let (first, block) = (self.next_number(), -(self.rounds as i64) - 1);
        let depth = block..block + 1;
        self.cohorts.push(Cohort { first, len: self.stream.adds, left: 0, depth });
        self.rounds += 1;
    }

    /// The entries that leave, or, for a later pass, that stay and are next in
    /// the same cohorts.
    fn members(&self, leaving: &[u64], pass: u64) -> Vec<u64> {
        let mut members = Vec::new();
        for (at, (cohort, &count)) in self.cohorts.iter().zip(leaving).enumerate() {
            if count == 0 {
                continue;
            }
            let order = self.order(at);
            let start = (u128::from(pass) * u128::from(count) % u128::from(cohort.live())) as u64;
            members.extend((start..start + count).map(|place| {
                let place = cohort.left + place % cohort.live();
                cohort.first + order.at(place)
            }));
        }
        members
    }

    /// Entries that are there, each equally likely, none twice.
    fn drawn(&self, pass: u64) -> Result<Vec<u64>, BenchError> {
        // Drawing the last of a set by chance would take for ever.
        if self.live() < 2 * self.stream.reads {
            return Err(self.used_up());
        }
        let orders: Vec<Permutation> = (0..self.cohorts.len()).map(|at| self.order(at)).collect();
        let mut random = SplitMix::new(self.seed(self.rounds, pass));
        let (wanted, end) = (self.stream.reads as usize, self.next_number());
        let mut drawn: Vec<u64> = Vec::with_capacity(wanted);
        while drawn.len() < wanted {
            while drawn.len() < wanted {
                let number = random.below(end);
                let at = self.cohorts.partition_point(|c| c.first <= number) - 1;
                let cohort = &self.cohorts[at];
                if orders[at].position_of(number - cohort.first) >= cohort.left {
                    drawn.push(number);
                }
            }
            drawn.sort_unstable();
            drawn.dedup();
        }
        Ok(drawn)
    }

    fn order(&self, cohort: usize) -> Permutation {
        Permutation::new(self.cohorts[cohort].len, self.seed(u64::MAX, cohort as u64))
    }

    /// In `0.0..1.0`.
    fn dither(&self, cohort: usize, round: u64) -> f64 {
        let bits = SplitMix::new(self.seed(round, !(cohort as u64))).next() >> 11;
        bits as f64 / (1u64 << 53) as f64
    }

    fn seed(&self, a: u64, b: u64) -> u64 {
        SplitMix::new(SplitMix::new(self.stream.seed ^ a.rotate_left(32)).next() ^ b).next()
    }
}

/// The part of a block's outputs that is spent in `round` and came from the
/// blocks that `cohort` stands for.
fn part_spent(cohort: &Cohort, round: u64) -> f64 {
    let by = |depth: i64| match round.checked_add_signed(depth - 1) {
        Some(age) => spent_by(age),
        None => 0.0,
    };
    by(cohort.depth.end) - by(cohort.depth.start)
}

/// The load as the outputs that the blocks before the first round left over.
fn loaded_by_depth(stream: &Stream) -> Vec<Cohort> {
    let left_over = |depth: i64| stream.adds as f64 - stream.reads as f64 * spent_by(depth as u64);
    let mut cohorts = Vec::new();
    let (mut end, mut start) = (stream.entries, 0);
    for depth in DEPTHS {
        let len = (start..depth).map(left_over).sum::<f64>() as u64;
        // The oldest cohort serves all ages that are left: it must not be small.
        if end < 2 * len {
            break;
        }
        end -= len;
        cohorts.push(Cohort { first: end, len, left: 0, depth: start..depth });
        start = depth;
    }
    cohorts.push(Cohort { first: 0, len: end, left: 0, depth: start..DEPTH_END });
    cohorts.reverse();
    cohorts
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    fn stream(shape: Shape) -> Stream {
        let deletes = if shape == Shape::Utxo { 900 } else { 300 };
        Stream { shape, seed: 11, entries: 400_000, reads: 900, adds: 2_100, deletes }
    }

    const SHAPES: [Shape; 3] = [Shape::Classic, Shape::Utxo, Shape::Sequential];

    /// Whatever the shape: reads and deletes meet what is there, none comes
    /// twice, and the counts are those that were asked for.
    #[test]
    fn rounds_fit_a_set_that_is_kept() {
        for shape in SHAPES {
            let stream = stream(shape);
            let mut there: HashSet<u64> = (0..stream.entries).collect();
            let mut planner = Planner::new(&stream);
            for number in 1..=120 {
                let round = planner.next_round().expect("the load is large enough");
                assert_eq!(round.number, number);
                let reads: HashSet<u64> = round.reads.iter().copied().collect();
                assert_eq!(reads.len() as u64, stream.reads, "{shape:?} round {number}");
                assert!(reads.is_subset(&there), "{shape:?} round {number}");
                assert_eq!(round.deletes.len() as u64, stream.deletes);
                assert!(round.deletes.iter().all(|id| there.remove(id)), "{shape:?} {number}");
                assert_eq!(round.adds.end - round.adds.start, stream.adds);
                assert!(round.adds.clone().all(|id| there.insert(id)));
                assert_eq!(planner.live(), there.len() as u64);
                assert_eq!(shape == Shape::Utxo, round.reads == round.deletes);
            }
        }
    }

    /// A run that goes on later does the same as one that never stopped.
    #[test]
    fn skipped_rounds_leave_the_same_state() {
        for shape in SHAPES {
            let stream = stream(shape);
            let mut one = Planner::new(&stream);
            (0..30).for_each(|_| drop(one.next_round().expect("the load is large enough")));
            let mut two = Planner::new(&stream);
            two.skip_to(30).expect("the load is large enough");
            assert_eq!(one.next_round().expect("a round"), two.next_round().expect("a round"));
        }
    }

    /// Rounds that only read find what they read, and each reads something else.
    #[test]
    fn passes_that_only_read_differ() {
        for shape in SHAPES {
            let stream = stream(shape);
            let mut planner = Planner::new(&stream);
            planner.skip_to(40).expect("the load is large enough");
            let mut gone = HashSet::new();
            let mut before = Planner::new(&stream);
            (0..40).for_each(|_| gone.extend(before.next_round().expect("a round").deletes));
            let passes: Vec<HashSet<u64>> = (0..3)
                .map(|pass| planner.reads_only(pass).expect("a pass").into_iter().collect())
                .collect();
            for pass in &passes {
                assert_eq!(pass.len() as u64, stream.reads);
                assert!(pass.iter().all(|id| *id < 400_000 + 40 * 2_100 && !gone.contains(id)));
            }
            let shared = passes[0].intersection(&passes[1]).count();
            assert!(shared < 100, "{shape:?}: {shared} are the same");
        }
    }

    /// In the shape utxo, outputs are spent as old as the statistics say; in
    /// classic, all are equally likely.
    #[test]
    fn ages_follow_the_shape() {
        let born = |id: u64| id.checked_sub(400_000).map(|n| n / 2_100 + 1);
        let young = |shape| {
            let mut planner = Planner::new(&stream(shape));
            planner.skip_to(100).expect("the load is large enough");
            let round = planner.next_round().expect("the load is large enough");
            let ages = round.deletes.iter().filter_map(|&id| born(id).map(|b| round.number - b));
            ages.filter(|&age| age <= 10).count() as f64 / round.deletes.len() as f64
        };
        let (utxo, classic) = (young(Shape::Utxo), young(Shape::Classic));
        assert!((utxo - 283.0 / 874.0).abs() < 0.02, "{utxo} of utxo's are younger than ten");
        // 10 of 100 rounds' additions, which are a third of all.
        assert!((classic - 21_000.0 / 580_000.0).abs() < 0.03, "{classic} of classic's");
    }

    /// The youngest of a load are spent first, as if blocks had made it.
    #[test]
    fn load_stands_for_blocks() {
        let stream = stream(Shape::Utxo);
        let cohorts = loaded_by_depth(&stream);
        assert!(cohorts.len() > 2, "{cohorts:?}");
        assert!(cohorts.windows(2).all(|pair| pair[0].first + pair[0].len == pair[1].first));
        let first = Planner::new(&stream).next_round().expect("a round");
        let newest = cohorts.last().expect("it is not empty").first;
        let of_newest = first.reads.iter().filter(|&&id| id >= newest).count();
        assert!((270..310).contains(&of_newest), "{of_newest} of 900 are of the last ten blocks");
    }

    /// A load that is used up ends the stream with a message.
    #[test]
    fn used_up_load_ends_the_stream() {
        let short = Stream { entries: 2_000, adds: 900, ..stream(Shape::Utxo) };
        let mut planner = Planner::new(&short);
        let error = planner.skip_to(1_000).expect_err("2,000 entries don't last");
        assert!(error.to_string().contains("load a larger one"), "{error}");
        assert!(planner.rounds > 1);
        let shrinking = Stream { adds: 1, deletes: 100, entries: 2_000, ..stream(Shape::Classic) };
        let mut planner = Planner::new(&shrinking);
        let rounds = std::iter::from_fn(|| planner.next_round().ok()).count();
        assert_eq!(rounds, 3, "1,800 of 2,000 entries must be left");
    }
}
