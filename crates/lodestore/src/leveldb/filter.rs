//! The Bloom filters of a table (`table/filter_block.cc`, `util/bloom.cc`):
//! one for the blocks that begin in each stretch of 2 KiB.
//!
//! Basho's fork has other filters by the same name (`util/bloom2.cc`): another hash, and
//! stretches of other lengths. Asked as these are, they would deny keys that are there.

use std::path::Path;

use super::Checked;
use super::block::Entries;
use super::footer::Handle;
use super::names::is_in_level_folder;

/// LevelDB's stretches are two to the power of this long: 2 KiB.
const STRETCH_LOG2: u8 = 11;

/// The entry of the meta index that leads to filters that we understand.
pub(crate) const FILTER_NAME: &[u8] = b"filter.leveldb.BuiltinBloomFilter2";

/// The entry of the meta index that tables of Basho's fork have, and no others.
const BASHO_STATISTICS: &[u8] = b"stats.sst1";

/// Where the filters of a table at `path` are, which its meta index and its path must say
/// to be LevelDB's own; the table ends before `end`.
pub(crate) fn filter_place(path: &Path, meta_index: &[u8], end: u64) -> Checked<Option<Handle>> {
    let mut place = None;
    let (mut is_basho, mut entries) = (is_in_level_folder(path), Entries::new(meta_index)?);
    while let Some((name, value)) = entries.next()? {
        is_basho |= name == BASHO_STATISTICS;
        if name == FILTER_NAME {
            place = Some(Handle::decode(value, end)?);
        }
    }
    Ok(place.filter(|_| !is_basho))
}

/// The filters of a table.
#[derive(Debug)]
pub(crate) struct Filters {
    bytes: Box<[u8]>,
    /// Where in `bytes` the ends of the filters are listed.
    ends_at: usize,
    count: usize,
}

impl Filters {
    /// Decodes the filter block of a table.
    pub(crate) fn decode(bytes: Vec<u8>) -> Checked<Filters> {
        let wrong = "a malformed filter";
        let (before, &[stretch_log2]) = bytes.split_last_chunk::<1>().ok_or(wrong)?;
        let (offsets, ends_at) = before.split_last_chunk::<4>().ok_or(wrong)?;
        let ends_at = u32::from_le_bytes(*ends_at) as usize;
        let listed = offsets.get(ends_at..).ok_or(wrong)?;
        if stretch_log2 != STRETCH_LOG2 || listed.len() % 4 != 0 {
            return Err(wrong);
        }
        let count = listed.len() / 4;
        let filters = Filters { bytes: bytes.into(), ends_at, count };
        let is_sound = (0..count).all(|i| filters.start(i) <= filters.start(i + 1));
        if is_sound { Ok(filters) } else { Err(wrong) }
    }

    /// Where filter `i` begins; the list's own place ends the last one.
    fn start(&self, i: usize) -> usize {
        let at = self.ends_at + 4 * i;
        let bytes = self.bytes[at..at + 4].try_into().expect("four bytes");
        u32::from_le_bytes(bytes) as usize
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        self.bytes.len()
    }

    /// False if the block at `offset` of the file certainly lacks `user_key`.
    pub(crate) fn may_contain(&self, offset: u64, user_key: &[u8]) -> bool {
        let Ok(i) = usize::try_from(offset >> STRETCH_LOG2) else { return true };
        if i >= self.count {
            return true;
        }
        let (start, end) = (self.start(i), self.start(i + 1).min(self.ends_at));
        match self.bytes.get(start..end) {
            // No key was added for these blocks: they have none.
            Some([]) => false,
            Some(filter) => bloom_may_contain(filter, user_key),
            None => true,
        }
    }
}

/// Writes the filter block of a table, whoever makes the filters.
#[derive(Debug, Default)]
pub(crate) struct FilterWriter {
    bytes: Vec<u8>,
    starts: Vec<u32>,
    /// Whether keys of blocks that begin in the stretch are to be filtered.
    has_keys: bool,
}

impl FilterWriter {
    /// A key of the block that began last is to be in the next filter.
    pub(crate) fn add(&mut self) {
        self.has_keys = true;
    }

    /// The keys from here on are of a block that begins at `offset`. `make` appends
    /// the filter of the keys since it was called last.
    pub(crate) fn begin_block(&mut self, offset: u64, mut make: impl FnMut(&mut Vec<u8>)) {
        while ((self.starts.len() as u64) << STRETCH_LOG2) + (1 << STRETCH_LOG2) <= offset {
            self.end_stretch(&mut make);
        }
    }

    fn end_stretch(&mut self, make: impl FnOnce(&mut Vec<u8>)) {
        self.starts.push(self.bytes.len() as u32);
        if std::mem::take(&mut self.has_keys) {
            make(&mut self.bytes);
        }
    }

    /// The filter block.
    pub(crate) fn finish(mut self, make: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
        if self.has_keys {
            self.end_stretch(make);
        }
        let ends_at = self.bytes.len() as u32;
        for start in self.starts.iter().chain([&ends_at]) {
            self.bytes.extend_from_slice(&start.to_le_bytes());
        }
        self.bytes.push(STRETCH_LOG2);
        self.bytes
    }
}

/// Makes Bloom filters.
#[derive(Debug)]
pub(crate) struct BloomKeys {
    bits_per_key: usize,
    /// Of the keys for the next filter.
    hashes: Vec<u32>,
}

impl BloomKeys {
    pub(crate) fn new(bits_per_key: usize) -> BloomKeys {
        BloomKeys { bits_per_key, hashes: Vec::new() }
    }

    pub(crate) fn add(&mut self, user_key: &[u8]) {
        self.hashes.push(bloom_hash(user_key));
    }

    /// Appends the filter of the keys since the last one.
    pub(crate) fn make(&mut self, out: &mut Vec<u8>) {
        // 0.69 is about the logarithm of 2, which makes most of so many bits.
        let probes = (self.bits_per_key * 69 / 100).clamp(1, 30);
        let bits = (self.hashes.len() * self.bits_per_key).max(64).next_multiple_of(8);
        let begin = out.len();
        out.resize(begin + bits / 8, 0);
        for mut hash in self.hashes.drain(..) {
            let step = hash.rotate_right(17);
            for _ in 0..probes {
                let bit = hash as usize % bits;
                out[begin + bit / 8] |= 1 << (bit % 8);
                hash = hash.wrapping_add(step);
            }
        }
        out.push(probes as u8);
    }
}

fn bloom_may_contain(filter: &[u8], user_key: &[u8]) -> bool {
    let Some((&probes, bits)) = filter.split_last() else { return true };
    let bit_count = 8 * bits.len() as u32;
    if probes > 30 || bit_count == 0 {
        return true; // reserved for other encodings
    }
    let mut hash = bloom_hash(user_key);
    let step = hash.rotate_right(17);
    (0..probes).all(|_| {
        let bit = (hash % bit_count) as usize;
        hash = hash.wrapping_add(step);
        bits[bit / 8] & (1 << (bit % 8)) != 0
    })
}

/// LevelDB's `Hash` (`util/hash.cc`) with the seed of its Bloom filters.
fn bloom_hash(bytes: &[u8]) -> u32 {
    const MULTIPLIER: u32 = 0xc6a4_a793;
    const SEED: u32 = 0xbc9f_1d34;
    let (words, rest) = bytes.as_chunks::<4>();
    let mut hash = SEED ^ (bytes.len() as u32).wrapping_mul(MULTIPLIER);
    for word in words {
        hash = hash.wrapping_add(u32::from_le_bytes(*word)).wrapping_mul(MULTIPLIER);
        hash ^= hash >> 16;
    }
    if !rest.is_empty() {
        let last = rest.iter().rev().fold(0, |word: u32, &byte| word << 8 | u32::from(byte));
        hash = hash.wrapping_add(last).wrapping_mul(MULTIPLIER);
        hash ^= hash >> 24;
    }
    hash
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::leveldb::block::BlockWriter;

    fn filters(blocks: &[(u64, &[&[u8]])]) -> Vec<u8> {
        let (mut writer, mut bloom) = (FilterWriter::default(), BloomKeys::new(10));
        for (offset, keys) in blocks {
            writer.begin_block(*offset, |out| bloom.make(out));
            for key in *keys {
                bloom.add(key);
                writer.add();
            }
        }
        writer.finish(|out| bloom.make(out))
    }

    /// The filter of a stretch knows its keys, denies nearly all others, and a
    /// stretch without keys denies all.
    #[test]
    fn filters_deny_what_is_not_there() {
        let keys: Vec<Vec<u8>> = (0..200u32).map(|i| i.to_le_bytes().to_vec()).collect();
        let keys: Vec<&[u8]> = keys.iter().map(Vec::as_slice).collect();
        let filters = Filters::decode(filters(&[(0, &keys), (4096, &[b"later"])])).unwrap();
        assert!(keys.iter().all(|key| filters.may_contain(100, key)));
        let wrong = (1000..3000u32).filter(|i| filters.may_contain(0, &i.to_le_bytes())).count();
        assert!(wrong < 100, "{wrong} of 2000 false positives");
        assert!(!filters.may_contain(2048, keys[0]));
        assert!(filters.may_contain(4096, b"later"));
        assert!(filters.may_contain(6144, b"beyond all filters"));
    }

    /// By their place, by what else the table has, or by how long the stretches are.
    #[test]
    fn filters_of_bashos_fork_are_left_out() {
        let meta_index = |names: &[&[u8]]| {
            let mut block = BlockWriter::new(1);
            names.iter().for_each(|name| block.add(name, &[7, 8]));
            block.finish()
        };
        let place = |path: &str, names: &[&[u8]]| {
            filter_place(Path::new(path), &meta_index(names), 100).unwrap()
        };
        let expected = Some(Handle { offset: 7, bytes: 8 });
        assert_eq!(place("/db/000005.sst", &[FILTER_NAME]), expected);
        assert_eq!(place("/db/sst_7/000005.sst", &[FILTER_NAME]), expected);
        assert_eq!(place("/db/sst_6/000005.sst", &[FILTER_NAME]), None);
        assert_eq!(place("/db/000005.table", &[FILTER_NAME, BASHO_STATISTICS]), None);

        let mut longer = filters(&[(0, &[b"a"])]);
        *longer.last_mut().unwrap() = STRETCH_LOG2 + 1;
        assert!(Filters::decode(longer).is_err());
    }

    /// Damage makes an error or a filter that answers anything: never a panic.
    #[test]
    fn malformed_filters_are_refused() {
        assert!(Filters::decode(vec![]).is_err());
        assert!(Filters::decode(vec![0, 0, 0, 0]).is_err());
        assert!(Filters::decode(vec![9, 0, 0, 0, 11]).is_err());
        assert!(Filters::decode(vec![0, 0, 0, 0, 40]).is_err());
        let sound = filters(&[(0, &[b"a"])]);
        for at in 0..sound.len() {
            for value in [0, 1, 0x80, 0xff] {
                let mut damaged = sound.clone();
                damaged[at] = value;
                if let Ok(filters) = Filters::decode(damaged) {
                    let _ = filters.may_contain(0, b"a");
                    let _ = filters.may_contain(u64::MAX, b"a");
                }
            }
        }
    }
}
