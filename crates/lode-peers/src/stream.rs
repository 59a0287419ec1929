//! The key stream: which keys there are and what their values are. All of it
//! follows from a seed, so that every engine gets the same, and nothing large
//! is kept beside the database.

use clap::ValueEnum;
use lode_bench::keys::{KeyBuffer, KeyFormat, KeyShape};
use lode_bench::pulse::{Entries, Shape as PulseShape};
use lode_bench::random::SplitMix;
use lode_bench::values::ValuePool;
use serde::{Deserialize, Serialize};

/// Values of fill100K.
pub const LARGE_VALUE_BYTES: usize = 100_000;

/// How large keys and values are.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, ValueEnum, Serialize, Deserialize,
)]
pub enum Shape {
    /// Keys of 16 bytes, values of 100 that compress to half: db_bench's.
    #[value(name = "16-100")]
    #[serde(rename = "16-100")]
    Standard,
    /// Keys of 24 bytes, values of 400 that compress to half.
    #[value(name = "24-400")]
    #[serde(rename = "24-400")]
    Medium,
    /// Keys of 40 random bytes, values of 60 that do not compress.
    #[value(name = "40-60")]
    #[serde(rename = "40-60")]
    Hashes,
    /// Keys of 16 bytes, values of 1,024 that compress to half.
    #[value(name = "16-1k")]
    #[serde(rename = "16-1k")]
    Kilobyte,
    /// Keys of 16 bytes, values of 8,192 that compress to half.
    #[value(name = "16-8k")]
    #[serde(rename = "16-8k")]
    Large,
}

impl Shape {
    /// The name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Shape::Standard => "16-100",
            Shape::Medium => "24-400",
            Shape::Hashes => "40-60",
            Shape::Kilobyte => "16-1k",
            Shape::Large => "16-8k",
        }
    }

    /// Bytes of every key.
    pub fn key_bytes(self) -> usize {
        match self {
            Shape::Standard | Shape::Kilobyte | Shape::Large => 16,
            Shape::Medium => 24,
            Shape::Hashes => 40,
        }
    }

    /// Bytes of every value.
    pub fn value_bytes(self) -> usize {
        match self {
            Shape::Standard => 100,
            Shape::Medium => 400,
            Shape::Hashes => 60,
            Shape::Kilobyte => 1_024,
            Shape::Large => 8_192,
        }
    }

    /// What is left of a value when it is compressed.
    pub fn compression_ratio(self) -> f64 {
        if self == Shape::Hashes { 1.0 } else { 0.5 }
    }

    /// Bytes of a key and its value when it is compressed.
    pub fn stored_bytes(self) -> u64 {
        self.key_bytes() as u64 + (self.value_bytes() as f64 * self.compression_ratio()) as u64
    }
}

/// The stream of one round.
#[derive(Clone, Debug)]
pub struct Stream {
    shape: Shape,
    seed: u64,
    entries: u64,
    values: ValuePool,
}

impl Stream {
    /// `entries` are at least 1.
    pub fn new(shape: Shape, seed: u64, entries: u64) -> Stream {
        let longest = shape.value_bytes().max(LARGE_VALUE_BYTES);
        Stream { shape, seed, entries, values: ValuePool::new(shape.compression_ratio(), longest) }
    }

    /// What it was made from.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// Numbers below this have keys.
    pub fn entries(&self) -> u64 {
        self.entries
    }

    /// A maker of keys, for one thread.
    pub fn keys(&self) -> Keys {
        match self.shape {
            Shape::Hashes => {
                Keys::Hashed { entries: Entries::new(PulseShape::Classic, self.seed), key: [0; 40] }
            }
            shape => {
                let number_bytes = shape.key_bytes();
                let format = KeyFormat::Leveldb;
                Keys::Decimal(KeyShape { format, prefix_bytes: 0, number_bytes }.buffer())
            }
        }
    }

    /// The value that entry `number` has in `version`.
    #[inline]
    pub fn value(&self, number: u64, version: u64) -> &[u8] {
        self.values.value(self.place(number, version), self.shape.value_bytes())
    }

    /// The value of entry `number` of fill100K.
    pub fn large_value(&self, number: u64) -> &[u8] {
        self.values.value(self.place(number, 0), LARGE_VALUE_BYTES)
    }

    fn place(&self, number: u64, version: u64) -> u64 {
        number ^ self.seed.rotate_left(40) ^ version.rotate_left(20)
    }

    /// Numbers in random order, with repeats. Each `purpose` has its own.
    pub fn draws(&self, purpose: u64) -> Draws {
        let random = SplitMix::new(SplitMix::new(self.seed).next() ^ purpose);
        Draws { random, entries: self.entries }
    }
}

/// Makes one key after the other, in one buffer.
#[derive(Clone, Debug)]
pub enum Keys {
    /// A number in decimal digits.
    Decimal(KeyBuffer),
    /// Random bytes that follow from the number.
    Hashed {
        /// Makes them.
        entries: Entries,
        /// The last one.
        key: [u8; 40],
    },
}

impl Keys {
    /// The key of entry `number`.
    #[inline]
    pub fn key(&mut self, number: u64) -> &[u8] {
        match self {
            Keys::Decimal(buffer) => buffer.set(number),
            Keys::Hashed { entries, key } => {
                *key = entries.key(number);
                key
            }
        }
    }

    /// A key next to that of `number` which is never written.
    #[inline]
    pub fn missing(&mut self, number: u64) -> &[u8] {
        let key = self.key(number);
        &key[..key.len() - 1]
    }
}

/// Draws numbers, each equally likely.
#[derive(Clone, Debug)]
pub struct Draws {
    random: SplitMix,
    entries: u64,
}

impl Iterator for Draws {
    type Item = u64;

    #[inline]
    fn next(&mut self) -> Option<u64> {
        Some(self.random.below(self.entries))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    /// Keys and values have the sizes of their shape, keys are told apart, and
    /// what is missing is next to what is there.
    #[test]
    fn sizes_are_those_of_the_shape() {
        for &shape in Shape::value_variants() {
            let stream = Stream::new(shape, 7, 1_000);
            let mut keys = stream.keys();
            let all: HashSet<Vec<u8>> = (0..1_000).map(|n| keys.key(n).to_vec()).collect();
            assert_eq!(all.len(), 1_000);
            assert!(all.iter().all(|key| key.len() == shape.key_bytes()));
            assert!((0..1_000).all(|n| !all.contains(keys.missing(n))));
            assert_eq!(stream.value(3, 0).len(), shape.value_bytes());
            assert_eq!(stream.large_value(3).len(), LARGE_VALUE_BYTES);
        }
    }

    /// The same seed gives the same stream; other seeds, versions and purposes
    /// give others.
    #[test]
    fn streams_follow_from_their_seeds() {
        let stream = |seed| Stream::new(Shape::Hashes, seed, 1_000);
        let (one, two) = (stream(1), stream(2));
        assert_eq!(one.value(5, 0), stream(1).value(5, 0));
        assert_ne!(one.value(5, 0), two.value(5, 0));
        assert_ne!(one.value(5, 0), one.value(5, 1));
        assert_ne!(one.keys().key(5), two.keys().key(5));
        let draws = |stream: &Stream, purpose| stream.draws(purpose).take(50).collect::<Vec<_>>();
        assert_eq!(draws(&one, 1), draws(&stream(1), 1));
        assert_ne!(draws(&one, 1), draws(&one, 2));
        assert_ne!(draws(&one, 1), draws(&two, 1));
    }
}
