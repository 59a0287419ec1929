//! Records like those of a public block chain, made from a seed: what a node
//! that keeps headers and unspent outputs stores. Memory does not depend on
//! their number, and no key comes twice.
//!
//! | record | key | value |
//! |---|---|---|
//! | block header | height, 4 bytes, most significant first | 80 bytes: version 4, parent 32, root 32, time 4, target 4, nonce 4 |
//! | unspent output | transaction 32, index 4, most significant first | height 4, amount 8, script |
//!
//! Numbers in values are little-endian. The sizes of scripts follow public
//! statistics of Bitcoin's unspent outputs: median 25 bytes, mean 38, a tail up
//! to 7.9 KB. A block has some 2,500 transactions of 2.3 outputs on average.

use crate::random::SplitMix;

/// The longest script.
pub const SCRIPT_BYTES_MAX: usize = 7_900;

const HEADER_BYTES: usize = 80;
/// Time of the first block, seconds since 1970, and the time between blocks.
const TIME_FIRST: u32 = 1_231_006_505;
const BLOCK_SECONDS: u32 = 600;

/// Scripts of outputs: how many of 1,000, their first bytes, the length of the
/// random middle, their last bytes. Standard forms of Bitcoin (its developer
/// reference, "Transaction"; BIP 141, BIP 341).
const SCRIPTS: [(u64, &[u8], usize, &[u8]); 7] = [
    (180, &[0x00, 0x14], 20, &[]),     // witness key hash, 22 bytes
    (200, &[0xa9, 0x14], 20, &[0x87]), // script hash, 23 bytes
    (390, &[0x76, 0xa9, 0x14], 20, &[0x88, 0xac]), // key hash, 25 bytes
    (90, &[0x00, 0x20], 32, &[]),      // witness script hash, 34 bytes
    (80, &[0x51, 0x20], 32, &[]),      // taproot, 34 bytes
    (20, &[0x41], 65, &[0xac]),        // public key, 67 bytes
    (36, &[0x51, 0x21], 101, &[0x52, 0xae]), // multisig of two keys, 105 bytes
];
/// The rest of 1,000 have scripts from this length to [`SCRIPT_BYTES_MAX`],
/// each doubling of the length equally often.
const LONG_SCRIPT_BYTES_MIN: f64 = 200.0;

/// Makes records one after the other.
#[derive(Clone, Debug)]
pub struct Ledger {
    random: SplitMix,
    height: u32,
    transactions_left: u64,
    transaction: [u8; 32],
    outputs_left: u64,
    index: u32,
}

impl Ledger {
    /// Records that follow from `seed` alone.
    pub fn new(seed: u64) -> Ledger {
        Ledger {
            random: SplitMix::new(seed),
            height: 0,
            transactions_left: 0,
            transaction: [0; 32],
            outputs_left: 0,
            index: 0,
        }
    }

    /// Writes the next record into `key` and `value`. A block's header comes
    /// before its outputs.
    pub fn next(&mut self, key: &mut Vec<u8>, value: &mut Vec<u8>) {
        key.clear();
        value.clear();
        if self.outputs_left == 0 {
            if self.transactions_left == 0 {
                self.header(key, value);
                return;
            }
            self.begin_transaction();
        }
        self.output(key, value);
    }

    fn header(&mut self, key: &mut Vec<u8>, value: &mut Vec<u8>) {
        key.extend_from_slice(&self.height.to_be_bytes());
        let jitter = self.random.below(u64::from(BLOCK_SECONDS)) as u32;
        let time = TIME_FIRST.wrapping_add(self.height.wrapping_mul(BLOCK_SECONDS)) + jitter;
        value.extend_from_slice(&0x2000_0000u32.to_le_bytes());
        self.random.fill(value, 64);
        value.extend_from_slice(&time.to_le_bytes());
        value.extend_from_slice(&0x1703_4219u32.to_le_bytes());
        self.random.fill(value, 4);
        assert_eq!(value.len(), HEADER_BYTES);
        self.height += 1;
        self.transactions_left = 1_500 + self.random.below(2_001);
    }

    fn begin_transaction(&mut self) {
        self.transactions_left -= 1;
        for part in self.transaction.chunks_exact_mut(8) {
            part.copy_from_slice(&self.random.next().to_le_bytes());
        }
        self.index = 0;
        self.outputs_left = match self.random.below(100) {
            0..24 => 1,
            24..90 => 2,
            90..97 => 3 + self.random.below(4),
            _ => 7 + self.random.below(14),
        };
    }

    fn output(&mut self, key: &mut Vec<u8>, value: &mut Vec<u8>) {
        key.extend_from_slice(&self.transaction);
        key.extend_from_slice(&self.index.to_be_bytes());
        self.index += 1;
        self.outputs_left -= 1;
        // From the smallest amount that is passed on to fifty coins.
        let amount = self.random.log_uniform(546.0, 5e9) as u64;
        value.extend_from_slice(&self.height.to_le_bytes());
        value.extend_from_slice(&amount.to_le_bytes());
        self.script(value);
    }

    fn script(&mut self, value: &mut Vec<u8>) {
        let mut choice = self.random.below(1_000);
        for (share, first, middle, last) in SCRIPTS {
            if choice < share {
                value.extend_from_slice(first);
                self.random.fill(value, middle);
                value.extend_from_slice(last);
                return;
            }
            choice -= share;
        }
        let length = self.random.log_uniform(LONG_SCRIPT_BYTES_MIN, SCRIPT_BYTES_MAX as f64);
        self.random.fill(value, length as usize);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    fn records(seed: u64, count: usize) -> Vec<(Vec<u8>, Vec<u8>)> {
        let mut ledger = Ledger::new(seed);
        let mut next = || {
            let (mut key, mut value) = (Vec::new(), Vec::new());
            ledger.next(&mut key, &mut value);
            (key, value)
        };
        (0..count).map(|_| next()).collect()
    }

    /// The same seed gives the same records, another one others.
    #[test]
    fn records_follow_from_the_seed() {
        assert_eq!(records(7, 1_000), records(7, 1_000));
        assert_ne!(records(7, 10), records(8, 10));
    }

    /// Keys are heights and outpoints, and none comes twice.
    #[test]
    fn keys_are_unique() {
        let all = records(1, 50_000);
        let keys: HashSet<&[u8]> = all.iter().map(|(key, _)| &key[..]).collect();
        assert_eq!(keys.len(), all.len());
        let headers = all.iter().filter(|(key, _)| key.len() == 4);
        assert!(headers.clone().all(|(_, value)| value.len() == HEADER_BYTES));
        assert!((5..15).contains(&headers.count()), "a block has some 5,700 outputs");
        assert!(all.iter().all(|(key, _)| matches!(key.len(), 4 | 36)));
    }

    /// Scripts are as long as the statistics say.
    #[test]
    fn scripts_follow_the_statistics() {
        let all = records(2, 200_000);
        let outputs = all.iter().filter(|(key, _)| key.len() == 36);
        let mut lengths: Vec<usize> = outputs.map(|(_, value)| value.len() - 12).collect();
        lengths.sort_unstable();
        let mean = lengths.iter().sum::<usize>() as f64 / lengths.len() as f64;
        assert_eq!(lengths[lengths.len() / 2], 25);
        assert!((36.5..39.5).contains(&mean), "mean is {mean}");
        let longest = lengths[lengths.len() - 1];
        assert!((7_000..=SCRIPT_BYTES_MAX).contains(&longest), "longest is {longest}");
    }
}
