use testkit::random::Random;

use crate::unpack::{self, testing};

use super::*;

fn decoded(block: &[u8], content_bytes: usize) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    unpack::owned(content_bytes, &mut out, |room| decode(block, room))?;
    Some(out)
}

/// What the library has written is read, of any content; and damaged, it is what the library
/// reads, or refused as it does.
#[test]
fn blocks_are_read_as_by_the_library() {
    let mut random = Random::new(3);
    let (mut read, mut refused) = (0, 0);
    for round in 0..3_000 {
        let most = if round % 100 == 0 { 200_000 } else { 3_000 };
        let content = testing::repetitive(&mut random, most);
        let mut block = lz4_flex::block::compress(&content);
        assert!(decoded(&block, content.len()).as_deref() == Some(&content[..]), "{round}");
        testing::damage(&mut random, &mut block);
        let mut expected = vec![0; content.len()];
        let found = lz4_flex::block::decompress_into(&block, &mut expected);
        let expected = found.is_ok_and(|bytes| bytes == content.len()).then_some(expected);
        assert!(decoded(&block, content.len()) == expected, "damaged {round}");
        *if expected.is_some() { &mut read } else { &mut refused } += 1;
    }
    assert!(read > 100 && refused > 100, "{read} read, {refused} refused");
}

/// Lengths may go on for long, and end with the block.
#[test]
fn lengths_end_with_the_block() {
    let content = vec![5; 100_000];
    let block = lz4_flex::block::compress(&content);
    for end in 0..block.len() {
        assert!(decoded(&block[..end], content.len()).is_none(), "{end}");
    }
    assert!(decoded(&[0xff; 1_000], 1 << 20).is_none());
}
