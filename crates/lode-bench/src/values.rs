//! Values of a benchmark: slices of one mebibyte that is made once and can be
//! compressed as far as `--compression_ratio` says.
//! The recipe is LevelDB's (`RandomGenerator` of `db_bench.cc`): pieces of 100
//! bytes, each a random string of ratio x 100 bytes repeated.

use std::sync::Arc;

use crate::random::{Random, SplitMix};

const POOL_BYTES: usize = 1 << 20;
const PIECE_BYTES: usize = 100;
const POOL_SEED: u64 = 301;

/// The bytes that all threads of a run cut their values from.
#[derive(Clone, Debug)]
pub struct ValuePool {
    bytes: Arc<[u8]>,
}

impl ValuePool {
    /// Makes the bytes; `value_bytes_max` is the longest value that will be
    /// asked for (longer than LevelDB's mebibyte makes the pool longer).
    pub fn new(compression_ratio: f64, value_bytes_max: usize) -> ValuePool {
        let wanted = POOL_BYTES.max(value_bytes_max + 1);
        let mut random = Random::new(POOL_SEED);
        let unique = ((PIECE_BYTES as f64 * compression_ratio) as usize).clamp(1, PIECE_BYTES);
        let mut bytes = Vec::with_capacity(wanted + PIECE_BYTES);
        let mut piece = [0u8; PIECE_BYTES];
        while bytes.len() < wanted {
            // Printable characters, from the space to the tilde.
            piece[..unique].fill_with(|| b' ' + random.uniform(95) as u8);
            for at in unique..PIECE_BYTES {
                piece[at] = piece[at - unique];
            }
            bytes.extend_from_slice(&piece);
        }
        ValuePool { bytes: bytes.into() }
    }

    /// The value of `length` bytes, at most the longest that the pool was made
    /// for, that belongs to `number`: equal numbers have equal values.
    #[inline]
    pub fn value(&self, number: u64, length: usize) -> &[u8] {
        let places = (self.bytes.len() - length) as u64;
        let start = (SplitMix::new(number).next() % places) as usize;
        &self.bytes[start..start + length]
    }

    /// A cursor over the pool, starting at its beginning.
    pub fn source(&self) -> ValueSource {
        ValueSource { bytes: Arc::clone(&self.bytes), position: 0 }
    }
}

/// One value after the other.
#[derive(Debug)]
pub struct ValueSource {
    bytes: Arc<[u8]>,
    position: usize,
}

impl ValueSource {
    /// The next value of `length` bytes, which is at most the longest that the
    /// pool was made for.
    #[inline]
    pub fn next(&mut self, length: usize) -> &[u8] {
        if self.position + length > self.bytes.len() {
            self.position = 0;
        }
        let start = self.position;
        self.position += length;
        &self.bytes[start..self.position]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Half of each piece is random and the other half repeats it.
    #[test]
    fn pieces_repeat_as_the_ratio_says() {
        let pool = ValuePool::new(0.5, 100);
        let mut values = pool.source();
        let first = values.next(100).to_vec();
        assert_eq!(first[..50], first[50..]);
        assert!(first.iter().all(|b| (b' '..=b'~').contains(b)));
        assert_ne!(first, values.next(100));
        // Seed 301 gives 301 * 16807 = 5,058,907 first; modulo 95 it is 62.
        assert_eq!(first[0], b' ' + 62);
        // LevelDB's own generator goes on like this.
        assert!(first.starts_with(b"^{Vhz\"!/%wMZ"));
    }

    /// Ratios at and beyond the ends are pieces of one byte or wholly random.
    #[test]
    fn extreme_ratios_work() {
        let flat = ValuePool::new(0.0, 1).source().next(100).to_vec();
        assert!(flat.iter().all(|&b| b == flat[0]));
        let random = ValuePool::new(1.0, 1).source().next(100).to_vec();
        assert_ne!(random[..50], random[50..]);
    }

    /// A value as long as the pool still fits; a longer one makes it longer.
    #[test]
    fn long_values_are_served() {
        for length in [0, POOL_BYTES, 3 * POOL_BYTES] {
            let pool = ValuePool::new(0.5, length);
            let mut values = pool.source();
            values.next(7.min(length));
            assert_eq!(values.next(length).len(), length);
        }
    }

    /// A value follows from its number, and others have others.
    #[test]
    fn values_belong_to_numbers() {
        let pool = ValuePool::new(0.5, 100);
        let values: std::collections::HashSet<&[u8]> =
            (0..1_000).map(|number| pool.value(number, 100)).collect();
        assert!(values.len() > 990, "{} of 1000 values", values.len());
        assert_eq!(pool.value(7, 100), ValuePool::new(0.5, 100).value(7, 100));
        let long = ValuePool::new(0.5, 3 << 20);
        assert_eq!(long.value(1, 3 << 20).len(), 3 << 20);
    }
}
