//! What is stored: the key and the value of an entry, computed from its
//! number. So nothing has to be kept to know what must be in the database.

use crate::pulse::stream::Shape;
use crate::random::SplitMix;

/// Bytes of every key.
pub const KEY_BYTES: usize = 40;
/// Bytes of the shortest value.
pub const VALUE_BYTES_MIN: u64 = 30;
/// Bytes of the longest value. All lengths between are equally frequent.
pub const VALUE_BYTES_MAX: u64 = 101;

/// Bytes of a key and an average value, twice (so that it is a whole number).
const ENTRY_BYTES_TWICE: u64 = 2 * KEY_BYTES as u64 + VALUE_BYTES_MIN + VALUE_BYTES_MAX;

/// The bytes of a key.
pub type Key = [u8; KEY_BYTES];

/// Makes keys and values. The same seed and shape give the same ones.
#[derive(Clone, Debug)]
pub struct Entries {
    shape: Shape,
    seed: u64,
}

impl Entries {
    /// The entries of `shape` that follow from `seed`.
    pub fn new(shape: Shape, seed: u64) -> Entries {
        Entries { shape, seed: SplitMix::new(seed).next() }
    }

    /// The key of entry `number`; no two entries have the same.
    ///
    /// | shape | 0..8 | 8..32 | 32..40 |
    /// |---|---|---|---|
    /// | classic, utxo | the number, mixed one to one | random | random |
    /// | sequential | 0 | 0 | the number, most significant first |
    pub fn key(&self, number: u64) -> Key {
        let mut key = [0; KEY_BYTES];
        if self.shape == Shape::Sequential {
            key[KEY_BYTES - 8..].copy_from_slice(&number.to_be_bytes());
            return key;
        }
        // The first step of the generator is one to one.
        let mut random = SplitMix::new(number ^ self.seed);
        for part in key.chunks_exact_mut(8) {
            part.copy_from_slice(&random.next().to_be_bytes());
        }
        key
    }

    /// Writes the value of entry `number` into `value`.
    pub fn value(&self, number: u64, value: &mut Vec<u8>) {
        // Apart from the sequence that keys are made of.
        let mut random = SplitMix::new(number.rotate_left(32) ^ !self.seed);
        let length = VALUE_BYTES_MIN + random.below(VALUE_BYTES_MAX - VALUE_BYTES_MIN + 1);
        value.clear();
        random.fill(value, length as usize);
    }
}

/// A number that tells values apart; never 0, which stands for no value.
pub fn digest(bytes: &[u8]) -> u64 {
    const ODD: u64 = 0x9e37_79b9_7f4a_7c15;
    let mut state = bytes.len() as u64;
    let mut add = |word: [u8; 8]| {
        state = (state ^ u64::from_le_bytes(word)).wrapping_mul(ODD);
        state ^= state >> 32;
    };
    let mut words = bytes.chunks_exact(8);
    for word in &mut words {
        add(word.try_into().expect("chunks have 8 bytes"));
    }
    let mut rest = [0; 8];
    rest[..words.remainder().len()].copy_from_slice(words.remainder());
    add(rest);
    state.max(1)
}

/// Entries whose keys and values have about so many bytes.
pub fn entries_of_bytes(bytes: u64) -> u64 {
    (u128::from(bytes) * 2 / u128::from(ENTRY_BYTES_TWICE)) as u64
}

/// Bytes of the keys and values of so many entries, about.
pub fn bytes_of_entries(entries: u64) -> u64 {
    (u128::from(entries) * u128::from(ENTRY_BYTES_TWICE) / 2) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    /// Keys of all shapes are 40 bytes and none comes twice; values have the
    /// lengths of the original.
    #[test]
    fn entries_are_of_the_promised_size() {
        for shape in [Shape::Classic, Shape::Utxo, Shape::Sequential] {
            let entries = Entries::new(shape, 3);
            let keys: HashSet<Key> = (0..50_000).map(|n| entries.key(n)).collect();
            assert_eq!(keys.len(), 50_000);
            let mut value = Vec::new();
            let lengths: Vec<u64> = (0..50_000)
                .map(|n| {
                    entries.value(n, &mut value);
                    value.len() as u64
                })
                .collect();
            assert_eq!(lengths.iter().min(), Some(&VALUE_BYTES_MIN));
            assert_eq!(lengths.iter().max(), Some(&VALUE_BYTES_MAX));
            let bytes: u64 = lengths.iter().sum::<u64>() + 50_000 * KEY_BYTES as u64;
            assert!(bytes.abs_diff(bytes_of_entries(50_000)) < 50_000, "{bytes}");
        }
        assert_eq!(entries_of_bytes(bytes_of_entries(1_000_000)), 1_000_000);
    }

    /// Sequential keys are in the order of their numbers, the others are not.
    #[test]
    fn sequential_keys_are_in_order() {
        let sequential = Entries::new(Shape::Sequential, 1);
        assert!((1..1_000).all(|n| sequential.key(n - 1) < sequential.key(n)));
        let classic = Entries::new(Shape::Classic, 1);
        let rising = (1..1_000).filter(|&n| classic.key(n - 1) < classic.key(n)).count();
        assert!((400..600).contains(&rising), "{rising}");
    }

    /// A digest sees each byte and the length.
    #[test]
    fn digest_sees_every_byte() {
        let mut value = Vec::new();
        Entries::new(Shape::Classic, 1).value(7, &mut value);
        let whole = digest(&value);
        for at in 0..value.len() {
            value[at] ^= 1;
            assert_ne!(digest(&value), whole, "byte {at}");
            value[at] ^= 1;
        }
        assert_eq!(digest(&value), whole);
        assert_ne!(digest(b"\0"), digest(b"\0\0"));
        assert_ne!(digest(b""), 0);
    }
}
