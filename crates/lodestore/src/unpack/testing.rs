//! Content and damage for tests of decoders.

use testkit::random::Random;

/// Up to `bytes_max` bytes and some: noise and repetitions of what came before, long or
/// short, near or far.
pub(crate) fn repetitive(random: &mut Random, bytes_max: usize) -> Vec<u8> {
    let length = random.below(bytes_max);
    let mut content = Vec::with_capacity(length + 400);
    let (literal, repeat) = (1 + random.below(300), 1 + random.below(300));
    let is_near = random.below(2) == 0;
    let back = 1 + random.below(if is_near { 20 } else { 70_000 });
    while content.len() < length {
        for _ in 0..=random.below(literal) {
            content.push(random.word() as u8);
        }
        let distance = content.len().min(1 + random.below(back));
        for _ in 0..random.below(repeat) {
            content.push(content[content.len() - distance]);
        }
    }
    content
}

/// Changes a few bytes of `block`, or where it ends.
pub(crate) fn damage(random: &mut Random, block: &mut Vec<u8>) {
    for _ in 0..random.below(3) {
        if !block.is_empty() {
            let at = random.below(block.len());
            block[at] = random.word() as u8;
        }
    }
    match random.below(4) {
        0 => {
            let length = random.below(block.len() + 1);
            block.truncate(length);
        }
        1 => block.extend((0..=random.below(20)).map(|_| random.word() as u8)),
        _ => {}
    }
}
