//! Keys of a benchmark: a number written into a buffer that is used again.
//! Nothing here grows with the number of entries.

/// How a number becomes a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, clap::ValueEnum, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum KeyFormat {
    /// Decimal digits, filled up with zeros in front (LevelDB, `%016d`).
    #[default]
    Leveldb,
    /// Eight bytes, most significant first, then the digit 0 up to the size
    /// (RocksDB, `GenerateKeyFromInt`).
    Rocksdb,
}

/// What all keys of a run have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyShape {
    /// How the number is written.
    pub format: KeyFormat,
    /// Bytes of the letter `a` before it.
    pub prefix_bytes: usize,
    /// Bytes of the number.
    pub number_bytes: usize,
}

impl KeyShape {
    /// Bytes of every key.
    pub fn key_bytes(&self) -> usize {
        self.prefix_bytes + self.number_bytes
    }

    /// The largest number that has a key of its own; `u64::MAX` if all have.
    pub fn number_max(&self) -> u64 {
        let digits = self.number_bytes as u32;
        match self.format {
            KeyFormat::Leveldb => 10u64.checked_pow(digits).map_or(u64::MAX, |n| n - 1),
            KeyFormat::Rocksdb => 1u64.checked_shl(digits * 8).map_or(u64::MAX, |n| n - 1),
        }
    }

    /// A buffer for keys of this shape, holding that of number 0.
    pub fn buffer(&self) -> KeyBuffer {
        let mut bytes = vec![b'a'; self.prefix_bytes];
        bytes.resize(self.key_bytes(), b'0');
        let mut buffer = KeyBuffer { shape: *self, bytes };
        buffer.set(0);
        buffer
    }
}

/// One key at a time.
#[derive(Clone, Debug)]
pub struct KeyBuffer {
    shape: KeyShape,
    bytes: Vec<u8>,
}

impl KeyBuffer {
    /// Writes the key of `number`, which is at most the shape's `number_max`,
    /// and returns it.
    #[inline]
    pub fn set(&mut self, number: u64) -> &[u8] {
        let field = &mut self.bytes[self.shape.prefix_bytes..];
        match self.shape.format {
            KeyFormat::Leveldb => {
                let mut rest = number;
                for digit in field.iter_mut().rev() {
                    *digit = b'0' + (rest % 10) as u8;
                    rest /= 10;
                }
            }
            KeyFormat::Rocksdb => {
                let filled = field.len().min(8);
                field[..filled].copy_from_slice(&number.to_be_bytes()[8 - filled..]);
            }
        }
        &self.bytes
    }

    /// Writes a key of two numbers of eight bytes each, most significant first,
    /// filled up with the digit 0, and returns it. The shape must have room for
    /// 16 bytes.
    #[inline]
    pub fn set_pair(&mut self, first: u64, second: u64) -> &[u8] {
        let field = &mut self.bytes[self.shape.prefix_bytes..];
        field[..8].copy_from_slice(&first.to_be_bytes());
        field[8..16].copy_from_slice(&second.to_be_bytes());
        &self.bytes
    }

    /// The second number of a key that [`KeyBuffer::set_pair`] made for this
    /// shape; `None` if it is too short to be one.
    pub fn second_of(&self, key: &[u8]) -> Option<u64> {
        let start = self.shape.prefix_bytes + 8;
        Some(u64::from_be_bytes(key.get(start..start + 8)?.try_into().ok()?))
    }

    /// What all keys with the first number of the last [`KeyBuffer::set_pair`]
    /// begin with.
    pub fn pair_prefix(&self) -> &[u8] {
        &self.bytes[..self.shape.prefix_bytes + 8]
    }

    /// The key of `number` without its last byte: no benchmark writes it.
    #[inline]
    pub fn set_missing(&mut self, number: u64) -> &[u8] {
        self.set(number);
        &self.bytes[..self.bytes.len() - 1]
    }
}

impl AsRef<[u8]> for KeyBuffer {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    fn shape(format: KeyFormat, prefix_bytes: usize, number_bytes: usize) -> KeyShape {
        KeyShape { format, prefix_bytes, number_bytes }
    }

    /// fillrandom of a million entries starts with these keys, the remainders
    /// of 16,823,807 and 1,437,366,492 by a million (see `random`).
    #[test]
    fn first_random_keys_are_those_of_leveldb() {
        let mut random = Random::new(1001);
        let mut key = shape(KeyFormat::Leveldb, 0, 16).buffer();
        assert_eq!(key.set(random.uniform(1_000_000)), b"0000000000823807");
        assert_eq!(key.set(random.uniform(1_000_000)), b"0000000000366492");
    }

    /// The second thread of a run draws from the next seed, 1002, whose first
    /// number is 1002 * 16807 = 16,840,614.
    #[test]
    fn second_thread_has_the_next_seed() {
        let mut key = shape(KeyFormat::Leveldb, 2, 16).buffer();
        assert_eq!(key.set(Random::new(1002).uniform(1_000_000)), b"aa0000000000840614");
    }

    /// RocksDB's keys are big-endian and filled up with the digit 0, or cut to
    /// the low bytes.
    #[test]
    fn rocksdb_keys_are_big_endian() {
        let mut key = shape(KeyFormat::Rocksdb, 0, 16).buffer();
        assert_eq!(key.set(0x0102), b"\0\0\0\0\0\0\x01\x0200000000");
        let mut key = shape(KeyFormat::Rocksdb, 1, 4).buffer();
        assert_eq!(key.set(0x0102_0304), b"a\x01\x02\x03\x04");
    }

    /// Keys of two numbers sort by the first, then by the second, and tell both.
    #[test]
    fn pairs_sort_and_are_read_back() {
        let mut key = shape(KeyFormat::Leveldb, 1, 20).buffer();
        let low = key.set_pair(7, 256).to_vec();
        assert_eq!(low, b"a\0\0\0\0\0\0\0\x07\0\0\0\0\0\0\x01\x000000");
        assert!(low.starts_with(key.pair_prefix()));
        assert_eq!(key.second_of(&low), Some(256));
        assert_eq!(key.second_of(b"a short key"), None);
        assert!(key.set_pair(7, 257) > &low[..] && key.set_pair(6, u64::MAX) < &low[..]);
    }

    /// Keys are made of what is set last, whatever was there before.
    #[test]
    fn buffer_forgets_the_key_before() {
        let mut key = shape(KeyFormat::Leveldb, 0, 16).buffer();
        key.set(9_999_999_999_999_999);
        assert_eq!(key.set(7), b"0000000000000007");
        assert_eq!(key.set_missing(17), b"000000000000001");
    }

    /// A billion and more entries have keys of their own; the limit is told.
    #[test]
    fn largest_number_is_known() {
        assert_eq!(shape(KeyFormat::Leveldb, 0, 16).number_max(), 9_999_999_999_999_999);
        assert_eq!(shape(KeyFormat::Leveldb, 0, 3).number_max(), 999);
        assert_eq!(shape(KeyFormat::Leveldb, 0, 40).number_max(), u64::MAX);
        assert_eq!(shape(KeyFormat::Rocksdb, 0, 2).number_max(), 65_535);
        assert_eq!(shape(KeyFormat::Rocksdb, 0, 8).number_max(), u64::MAX);
    }
}
