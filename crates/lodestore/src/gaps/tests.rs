use std::collections::BTreeSet;

use super::*;

const NEWEST: SequenceNumber = 100;

fn gaps() -> Arc<Gaps> {
    Gaps::new(KeyOrder::Bytewise, &Arc::default())
}

fn key(number: u32) -> [u8; 4] {
    number.to_be_bytes()
}

/// Remembers the keys from `from` up to `to`, excluded, as a walk at `sequence`
/// that passed over many entries.
fn remember(gaps: &Arc<Gaps>, from: u32, to: u32, sequence: SequenceNumber) {
    let claim = gaps.claim(&Edge::before(&key(from)), Direction::Forward, sequence);
    claim.expect("few walk").end(Edge::before(&key(to)), STEPS_MIN);
}

/// Where a walk forward goes on that stands at the key.
fn end_of(gaps: &Gaps, number: u32) -> Option<Edge> {
    gaps.end_around(&key(number), NEWEST, Direction::Forward)
}

#[test]
fn a_gap_is_known_from_its_first_key_to_its_last() {
    let gaps = gaps();
    remember(&gaps, 10, 20, 5);
    assert_eq!(end_of(&gaps, 9), None);
    assert_eq!(end_of(&gaps, 10), Some(Edge::before(&key(20))));
    assert_eq!(end_of(&gaps, 19), Some(Edge::before(&key(20))));
    assert_eq!(end_of(&gaps, 20), None);
    let back = gaps.end_around(&key(15), NEWEST, Direction::Reverse);
    assert_eq!(back, Some(Edge::before(&key(10))));
}

#[test]
fn older_readers_do_not_know_of_a_gap() {
    let gaps = gaps();
    remember(&gaps, 10, 20, 5);
    assert_eq!(gaps.end_around(&key(12), 4, Direction::Forward), None);
    assert!(gaps.end_around(&key(12), 5, Direction::Forward).is_some());
}

#[test]
fn what_is_put_ends_the_gap_before_it() {
    let gaps = gaps();
    remember(&gaps, 10, 20, 5);
    gaps.cut(&key(15));
    assert_eq!(end_of(&gaps, 14), Some(Edge::before(&key(15))));
    assert_eq!(end_of(&gaps, 15), None);
    assert_eq!(end_of(&gaps, 16), None);
    gaps.cut(&key(10));
    assert_eq!(end_of(&gaps, 10), None);
    assert!(!gaps.any.load(Ordering::Relaxed), "nothing is left to be cut");
}

/// Gaps keep no long keys, whoever gives them.
#[test]
fn a_long_key_that_is_put_ends_all_of_a_gap() {
    let gaps = gaps();
    remember(&gaps, 10, 20, 5);
    gaps.cut(&[&key(15)[..], &[0; KEY_BYTES_MAX]].concat());
    assert_eq!(end_of(&gaps, 12), None);
    assert!(!gaps.any.load(Ordering::Relaxed), "nothing is left to be cut");
}

#[test]
fn what_is_put_during_a_walk_ends_what_it_claimed() {
    let gaps = gaps();
    let claim = gaps.claim(&Edge::before(&key(10)), Direction::Forward, 5).unwrap();
    gaps.cut(&key(40));
    gaps.cut(&key(30));
    gaps.cut(&key(35));
    gaps.cut(&key(5));
    claim.end(Edge::before(&key(50)), 100);
    assert_eq!(end_of(&gaps, 10), Some(Edge::before(&key(30))));

    let claim = gaps.claim(&Edge::after(&key(90)), Direction::Reverse, 5).unwrap();
    gaps.cut(&key(60));
    gaps.cut(&key(70));
    claim.end(Edge::after(&key(55)), 100);
    assert_eq!(end_of(&gaps, 70), None);
    assert_eq!(end_of(&gaps, 71), Some(Edge::after(&key(90))));
    let back = gaps.end_around(&key(90), NEWEST, Direction::Reverse);
    assert_eq!(back, Some(Edge::after(&key(70))));
}

#[test]
fn gaps_that_touch_become_one_which_the_newer_reader_knows() {
    let gaps = gaps();
    remember(&gaps, 10, 20, 5);
    remember(&gaps, 30, 40, 9);
    remember(&gaps, 20, 30, 7);
    assert_eq!(end_of(&gaps, 10), Some(Edge::before(&key(40))));
    assert_eq!(gaps.end_around(&key(10), 8, Direction::Forward), None);
    // A few entries more are worth it only where they make a gap longer.
    for from in [40, 60] {
        let claim = gaps.claim(&Edge::before(&key(from)), Direction::Forward, 9).unwrap();
        claim.end(Edge::before(&key(from + 1)), 1);
    }
    assert_eq!(end_of(&gaps, 10), Some(Edge::before(&key(41))));
    assert_eq!(end_of(&gaps, 60), None);
}

#[test]
fn a_walk_that_failed_leaves_nothing() {
    let gaps = gaps();
    drop(gaps.claim(&Edge::before(&key(10)), Direction::Forward, 5));
    assert_eq!(end_of(&gaps, 10), None);
    assert!(!gaps.any.load(Ordering::Relaxed));
}

#[test]
fn what_is_forgotten_is_not_claimed_later() {
    let gaps = gaps();
    remember(&gaps, 10, 20, 5);
    let claim = gaps.claim(&Edge::before(&key(30)), Direction::Forward, 5).unwrap();
    let before = gaps.generation();
    gaps.forget();
    claim.end(Edge::before(&key(90)), 100);
    assert_eq!(end_of(&gaps, 15), None);
    assert_eq!(end_of(&gaps, 35), None);
    assert_ne!(gaps.generation(), before);
}

#[test]
fn few_are_kept_and_those_in_use_stay() {
    let gaps = gaps();
    for number in 0..GAPS_MAX as u32 + 10 {
        remember(&gaps, 10 * number, 10 * number + 5, 5);
        assert!(end_of(&gaps, 0).is_some(), "it is used all the time");
    }
    assert_eq!(gaps.state.lock().gaps.len(), GAPS_MAX);
    let newest = 10 * (GAPS_MAX as u32 + 9);
    assert!(end_of(&gaps, newest).is_some());
    assert!(end_of(&gaps, 10).is_none(), "the one that nobody used for longest is gone");
    let long = [1; KEY_BYTES_MAX + 1];
    assert!(gaps.claim(&Edge::before(&long), Direction::Forward, 5).is_none());
}

/// A walk in the middle of its claim, step by step.
struct Walk {
    claim: Claim,
    direction: Direction,
    /// The next key that it looks at.
    at: u32,
    steps: usize,
}

/// Keys are put and deleted while walks are under way: whatever is remembered
/// then, no key of it is there.
#[test]
fn no_key_of_a_gap_is_ever_there() {
    const KEYS: u32 = 300;
    let (mut random, mut known) = (1u64, 0);
    let mut draw = move |below: u32| {
        random = random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (random >> 33) as u32 % below
    };
    for _ in 0..100 {
        let gaps = gaps();
        let mut present: BTreeSet<u32> = (0..KEYS).filter(|_| draw(3) == 0).collect();
        let mut walks: Vec<Walk> = Vec::new();
        for _ in 0..3000 {
            match draw(20) {
                0 => {
                    let number = draw(KEYS);
                    present.insert(number);
                    gaps.cut(&key(number));
                }
                1 | 2 => {
                    let first = draw(KEYS);
                    (first..first + draw(60)).for_each(|number| _ = present.remove(&number));
                }
                3 => {
                    let (at, forward) = (draw(KEYS), draw(2) == 0);
                    let (edge, direction) = match forward {
                        true => (Edge::before(&key(at)), Direction::Forward),
                        false => (Edge::after(&key(at)), Direction::Reverse),
                    };
                    let claim = gaps.claim(&edge, direction, 5);
                    walks.extend(claim.map(|claim| Walk { claim, direction, at, steps: 0 }));
                }
                _ if walks.is_empty() => {}
                _ => {
                    let place = draw(walks.len() as u32) as usize;
                    let walk = &mut walks[place];
                    let is_over = walk.at == KEYS || present.contains(&walk.at);
                    walk.steps += 1;
                    match (is_over, walk.direction) {
                        (false, Direction::Forward) => walk.at += 1,
                        (false, Direction::Reverse) if walk.at > 0 => walk.at -= 1,
                        (_, direction) => {
                            let walk = walks.swap_remove(place);
                            let end = match direction {
                                Direction::Forward => Edge::before(&key(walk.at)),
                                Direction::Reverse => Edge::after(&key(walk.at)),
                            };
                            walk.claim.end(end, walk.steps);
                        }
                    }
                }
            }
            let all = gaps.state.lock();
            let bytewise = &KeyOrder::Bytewise;
            assert!(all.gaps.is_sorted_by(|a, b| a.to.compare(bytewise, &b.from).is_lt()));
            for number in &present {
                assert_eq!(all.place(bytewise, &key(*number)), None, "{number} is there");
            }
            known += all.gaps.len();
        }
    }
    assert!(known > 100_000, "gaps were known: {known}");
}
