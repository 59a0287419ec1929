//! What must be in the database: computed from an entry's number, so that any
//! number of entries can be compared without keeping them.

use std::ops::Range;

pub(crate) const KEY_BYTES: usize = 16;
pub(crate) const VALUE_BYTES: usize = 100;

/// The entries that are there.
pub(crate) struct Data {
    /// Entries that were written, with the numbers from 0 on.
    pub(crate) count: u64,
    /// Which of an entry's values is the newest.
    pub(crate) generation: u64,
    /// Deleted as a range.
    pub(crate) deleted: Range<u64>,
    pub(crate) odd_are_deleted: bool,
}

impl Data {
    pub(crate) fn new(count: u64) -> Data {
        Data { count, generation: 0, deleted: 0..0, odd_are_deleted: false }
    }

    pub(crate) fn is_live(&self, number: u64) -> bool {
        number < self.count
            && !self.deleted.contains(&number)
            && !(self.odd_are_deleted && number % 2 == 1)
    }

    /// The numbers of the entries that are there, in the order of their keys.
    pub(crate) fn numbers(&self) -> impl Iterator<Item = u64> + '_ {
        (0..self.count).filter(|&number| self.is_live(number))
    }

    /// How many are there.
    pub(crate) fn live(&self) -> u64 {
        self.numbers().count() as u64
    }

    /// The first that is there from `number` on.
    pub(crate) fn next_from(&self, number: u64) -> Option<u64> {
        let start = if self.deleted.contains(&number) { self.deleted.end } else { number };
        (start..self.count).find(|&number| self.is_live(number))
    }
}

/// Sixteen decimal digits: the order of keys is that of numbers.
pub(crate) fn key(number: u64) -> [u8; KEY_BYTES] {
    let (mut key, mut rest) = ([b'0'; KEY_BYTES], number);
    for digit in key.iter_mut().rev() {
        *digit += (rest % 10) as u8;
        rest /= 10;
    }
    key
}

/// Half of it random, so that codecs find in it what they find in the values
/// of `lode bench`.
pub(crate) fn value(number: u64, generation: u64) -> [u8; VALUE_BYTES] {
    let mut value = [0; VALUE_BYTES];
    let mut state = number << 8 | generation;
    let (random, repeated) = value.split_at_mut(VALUE_BYTES / 2);
    for bytes in random.chunks_mut(8) {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (state ^ state >> 32).wrapping_mul(0xd6e8_feb8_6659_fd93);
        bytes.copy_from_slice(&(mixed ^ mixed >> 32).to_le_bytes()[..bytes.len()]);
    }
    repeated.copy_from_slice(random);
    value
}
