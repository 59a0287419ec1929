//! The filter: a Bloom filter whose every key lives in one cache line.
//!
//! A lookup for an absent key costs one cache miss instead of a block. Cost:
//! at 10 bits a key about 1 % of absent keys pass.
//!
//! | offset | size | meaning |
//! |---|---|---|
//! | 0 | 1 | kind: 1 = lines of 512 bits, hashed with XXH3-64 |
//! | 1 | 1 | bits that each key sets |
//! | 2 | 2 | reserved |
//! | 4 | 4 | lines `n`, at least 1 |
//! | 8 | 64 n | lines of eight little-endian words |
//!
//! A key of hash `x` belongs to line `(x * n) >> 64`. Its k-th bit is the
//! uppermost nine bits of `x * M^k`: upper three the word, lower six the bit.

use crate::coding::{put_u16, put_u32};
use crate::error::Undecodable;

use super::Checked;

const KIND_LINES: u8 = 1;
const LINE_BYTES: usize = 64;
const LINE_BITS: u64 = 512;
const HEADER_BYTES: usize = 8;
const PROBES_MAX: u8 = 16;
/// Hashes in a piece of a [`FilterBuilder`]: 32 KiB.
const PIECE_HASHES: usize = 4096;
/// An odd multiplier: the golden ratio, which spreads low bits upwards.
const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;

#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct Line([u64; 8]);

/// Gathers the hashes of a table's keys.
#[derive(Debug)]
pub(super) struct FilterBuilder {
    bits_per_key: u8,
    /// In pieces, all but the last full: one piece that grows is up to twice as
    /// long, and leaves the shorter ones that it was to the allocator.
    hashes: Vec<Vec<u64>>,
}

impl FilterBuilder {
    pub(super) fn new(bits_per_key: u8) -> FilterBuilder {
        FilterBuilder { bits_per_key, hashes: Vec::new() }
    }

    pub(super) fn add(&mut self, hash: u64) {
        match self.hashes.last_mut() {
            Some(piece) if piece.len() < PIECE_HASHES => piece.push(hash),
            _ => self.add_piece(hash),
        }
    }

    #[cold]
    fn add_piece(&mut self, hash: u64) {
        let mut piece = Vec::with_capacity(PIECE_HASHES);
        piece.push(hash);
        self.hashes.push(piece);
    }

    fn count(&self) -> usize {
        self.hashes.split_last().map_or(0, |(last, full)| full.len() * PIECE_HASHES + last.len())
    }

    /// Memory that the hashes take.
    pub(super) fn memory_bytes(&self) -> usize {
        8 * PIECE_HASHES * self.hashes.len()
    }

    /// About how long the section will be.
    pub(super) fn bytes(&self) -> usize {
        self.count() * usize::from(self.bits_per_key) / 8
    }

    /// The section.
    pub(super) fn finish(self) -> Vec<u8> {
        let bits = self.count() as u64 * u64::from(self.bits_per_key);
        let lines = bits.div_ceil(LINE_BITS).clamp(1, u64::from(u32::MAX));
        let probes = probes(self.bits_per_key);
        let mut filter =
            Filter { lines: vec![Line([0; 8]); lines as usize].into_boxed_slice(), probes };
        for hash in self.hashes.into_iter().flatten() {
            filter.insert(hash);
        }
        let mut out = Vec::with_capacity(HEADER_BYTES + filter.lines.len() * LINE_BYTES);
        out.extend([KIND_LINES, probes]);
        put_u16(&mut out, 0);
        put_u32(&mut out, lines as u32);
        for word in filter.lines.iter().flat_map(|line| line.0) {
            out.extend_from_slice(&word.to_le_bytes());
        }
        out
    }
}

/// Bits set by each key: a little fewer than the ln 2 per bit that are best
/// for one large filter, because lines fill unevenly.
fn probes(bits_per_key: u8) -> u8 {
    let best = (u32::from(bits_per_key) * 6).div_ceil(10);
    best.clamp(1, u32::from(PROBES_MAX)) as u8
}

/// The filter of an open table.
#[derive(Debug)]
pub(super) struct Filter {
    lines: Box<[Line]>,
    probes: u8,
}

impl Filter {
    /// Decodes a section. `None` if it is of a kind that this build does not
    /// know, or if it is malformed: then every key may be there.
    pub(super) fn decode(section: &[u8]) -> Option<Filter> {
        let (probes, lines) = header(section).ok()?;
        let words = |line: &[u8; LINE_BYTES]| {
            let chunks = line.as_chunks::<8>().0;
            Line(std::array::from_fn(|i| u64::from_le_bytes(chunks[i])))
        };
        Some(Filter { lines: lines.iter().map(words).collect(), probes })
    }

    #[inline]
    fn line(&self, hash: u64) -> usize {
        ((u128::from(hash) * self.lines.len() as u128) >> 64) as usize
    }

    fn insert(&mut self, hash: u64) {
        let probes = self.probes;
        let line = self.line(hash);
        let line = &mut self.lines[line].0;
        for_each_bit(hash, probes, |word, bit| {
            line[word] |= bit;
            true
        });
    }

    /// False only if no key of this hash was added.
    #[inline]
    pub(super) fn may_contain(&self, hash: u64) -> bool {
        let line = &self.lines[self.line(hash)].0;
        for_each_bit(hash, self.probes, |word, bit| line[word] & bit != 0)
    }

    /// Memory that the filter takes.
    pub(super) fn memory_bytes(&self) -> usize {
        self.lines.len() * LINE_BYTES
    }
}

/// [`Filter::may_contain`] for a section's bytes, which need not be the end of
/// `section`. True if they are no filter.
#[inline]
pub(super) fn may_contain(section: &[u8], hash: u64) -> bool {
    let Some((&[_, probes, _, _, a, b, c, d], lines)) = section.split_first_chunk::<HEADER_BYTES>()
    else {
        return true;
    };
    let count = u64::from(u32::from_le_bytes([a, b, c, d]));
    let at = ((u128::from(hash) * u128::from(count)) >> 64) as usize * LINE_BYTES;
    let Some(line) = lines.get(at..at + LINE_BYTES) else { return true };
    let line = line.as_chunks::<8>().0;
    for_each_bit(hash, probes, |word, bit| u64::from_le_bytes(line[word]) & bit != 0)
}

/// Whether `section` is a filter that this build can ask; why not, if not.
pub(super) fn check(section: &[u8]) -> Checked<(), Undecodable> {
    header(section).map(|_| ())
}

/// Bits that each key sets, and the lines.
fn header(section: &[u8]) -> Checked<(u8, &[[u8; LINE_BYTES]]), Undecodable> {
    let (header, rest) = section.split_first_chunk::<HEADER_BYTES>().ok_or("a filter too short")?;
    let [kind, probes, _, _, a, b, c, d] = *header;
    if kind != KIND_LINES {
        return Err(Undecodable::Unknown(format!("a filter of kind {kind}")));
    }
    let lines = u32::from_le_bytes([a, b, c, d]) as usize;
    let sound = (1..=PROBES_MAX).contains(&probes) && lines > 0 && rest.len() == lines * LINE_BYTES;
    Ok(sound.then_some((probes, rest.as_chunks().0)).ok_or("a malformed filter")?)
}

/// Calls `each` with word and bit of every probe while it gives true.
#[inline]
fn for_each_bit(hash: u64, probes: u8, mut each: impl FnMut(usize, u64) -> bool) -> bool {
    let mut mixed = hash;
    for _ in 0..probes {
        mixed = mixed.wrapping_mul(MULTIPLIER);
        let position = mixed >> 55;
        if !each((position >> 6) as usize, 1 << (position & 63)) {
            return false;
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::hash;

    fn filter(keys: u64, bits_per_key: u8) -> Filter {
        let mut builder = FilterBuilder::new(bits_per_key);
        (0..keys).for_each(|key| builder.add(hash(&key.to_be_bytes())));
        Filter::decode(&builder.finish()).unwrap()
    }

    fn false_positives(filter: &Filter, from: u64, probes: u64) -> f64 {
        let passed =
            (from..from + probes).filter(|key| filter.may_contain(hash(&key.to_be_bytes())));
        passed.count() as f64 / probes as f64
    }

    /// A key that was added is never denied.
    #[test]
    fn added_keys_pass() {
        for (keys, bits) in [(0, 10), (1, 1), (7, 10), (1000, 1), (1000, 255), (50_000, 10)] {
            let filter = filter(keys, bits);
            assert!((0..keys).all(|key| filter.may_contain(hash(&key.to_be_bytes()))));
        }
    }

    /// At ten bits a key, fewer than 1.5 % of absent keys pass.
    #[test]
    fn few_absent_keys_pass() {
        for keys in [1_000, 100_000] {
            let rate = false_positives(&filter(keys, 10), keys, 200_000);
            assert!(rate < 0.015, "{rate} of absent keys pass among {keys}");
        }
        assert!(false_positives(&filter(100_000, 16), 100_000, 200_000) < 0.002);
    }

    /// Pieces of hashes lose none, and count none twice, at their edges.
    #[test]
    fn the_section_is_as_long_as_its_keys_ask_for() {
        for pieces in 0..3 {
            for keys in (pieces * PIECE_HASHES).saturating_sub(1)..=pieces * PIECE_HASHES + 1 {
                let mut builder = FilterBuilder::new(12);
                (0..keys as u64).for_each(|key| builder.add(hash(&key.to_be_bytes())));
                let lines = (keys * 12).div_ceil(LINE_BITS as usize).max(1);
                let section = builder.finish();
                assert_eq!(section.len(), HEADER_BYTES + lines * LINE_BYTES, "{keys} keys");
                let filter = Filter::decode(&section).unwrap();
                assert!((0..keys as u64).all(|key| filter.may_contain(hash(&key.to_be_bytes()))));
            }
        }
    }

    /// A malformed or unknown filter is no filter, so that no key is denied.
    #[test]
    fn malformed_filters_are_ignored() {
        let mut builder = FilterBuilder::new(10);
        builder.add(1);
        let section = builder.finish();
        assert!(Filter::decode(&section).is_some());
        for length in 0..section.len() {
            assert!(Filter::decode(&section[..length]).is_none());
        }
        let with = |position: usize, byte| {
            let mut changed = section.clone();
            changed[position] = byte;
            changed
        };
        for (position, byte) in [(0, 2), (1, 0), (1, 17), (4, 2), (4, 0)] {
            assert!(Filter::decode(&with(position, byte)).is_none(), "byte {position}");
        }
        assert_eq!(check(&with(1, 0)), Err("a malformed filter".into()));
        assert_eq!(check(&with(0, 2)), Err(Undecodable::Unknown("a filter of kind 2".into())));
        assert!(Filter::decode(&with(3, 1)).is_some(), "reserved bytes mean nothing yet");
    }
}
