use testkit::random::Random;

use super::*;

/// An operation, as a decoder asks for it.
enum Added {
    Literal(Vec<u8>),
    Copy(usize, usize),
}

/// Operations of all lengths and distances, and what they come to.
fn content(random: &mut Random) -> (Vec<Added>, Vec<u8>) {
    let (mut row, mut expected) = (Vec::new(), Vec::new());
    for _ in 0..random.below(60) {
        let (most, back) = (random.below(4), random.below(4));
        let count = random.below([10, 20, 70, 300][most]);
        if expected.is_empty() || random.below(2) == 0 {
            let literal: Vec<u8> = (0..count).map(|_| random.word() as u8).collect();
            expected.extend_from_slice(&literal);
            row.push(Added::Literal(literal));
        } else {
            let distance = 1 + random.below(expected.len().min([8, 16, 40, 9_999][back]));
            (0..count).for_each(|_| expected.push(expected[expected.len() - distance]));
            row.push(Added::Copy(distance, count));
        }
    }
    (row, expected)
}

/// Adds `row`; the block goes on for `behind` bytes behind each literal.
fn add<'r>(row: &[Added], mut room: Room<'r>, behind: usize) -> Option<Room<'r>> {
    for added in row {
        match added {
            Added::Literal(literal) => {
                let block = [&literal[..], &vec![0xee; behind]].concat();
                room.literal(&block, literal.len())?;
            }
            Added::Copy(distance, count) => room.copy(*distance, *count)?,
        }
    }
    Some(room)
}

/// Content is what was added, whatever the lengths, whatever follows in the block; with one
/// byte less room it is refused, and with one more it is not all.
#[test]
fn content_is_what_was_added() {
    for seed in 0..2_000 {
        let mut random = Random::new(seed);
        let (row, expected) = content(&mut random);
        let behind = random.below(160);
        let found = shared(expected.len(), |room| add(&row, room, behind)).expect("it fits");
        let (content, slack) = found.split_at(expected.len());
        assert!(content == expected && slack == [0; SLACK_BYTES], "seed {seed}");
        let mut found = b"before".to_vec();
        owned(expected.len(), &mut found, |room| add(&row, room, behind)).expect("it fits");
        assert!(found == expected, "seed {seed}");
        assert!(shared(expected.len() + 1, |room| add(&row, room, behind)).is_none());
        if let Some(less) = expected.len().checked_sub(1) {
            assert!(shared(less, |room| add(&row, room, behind)).is_none(), "seed {seed}");
        }
    }
}

/// What is nowhere can't be copied, and what the block has not is no literal.
#[test]
fn what_is_not_there_is_refused() {
    let block = [7; 100];
    for filled in [0, 1, 7, 8, 20, 100] {
        for distance in [0, filled + 1, filled + 8, 1 << 16, usize::MAX] {
            for count in [1, 4, 8, 9, 17, 65, usize::MAX] {
                let refused = shared(1_000, |mut room| {
                    room.literal(&block, filled).expect("it fits");
                    room.copy(distance, count).is_none().then_some(room)
                });
                assert!(refused.is_none(), "not all was filled");
                let added = shared(filled + count.min(100), |mut room| {
                    room.literal(&block, filled)?;
                    room.copy(distance, count)?;
                    Some(room)
                });
                assert!(added.is_none(), "{filled} filled, {count} from {distance} back");
            }
        }
    }
    for count in [101, 1_000, usize::MAX] {
        assert!(
            owned(count.min(2_000), &mut Vec::new(), |mut room| {
                room.literal(&block, count)?;
                Some(room)
            })
            .is_none()
        );
    }
}
