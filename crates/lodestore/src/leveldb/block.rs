//! The entries of a block (`table/block_builder.cc`): each key as what it adds
//! to the one before; at the end, places where keys stand whole.
//!
//! We only walk blocks from front to back, so the places serve as a check. Who must
//! search one lays its entries side by side first.

use crate::coding::{Reader, put_u32, put_varint};
use crate::key::common_prefix_bytes;

use super::Checked;

/// Keys and values of a block may be so long together, whatever the block's length,
const BYTES_FREE: usize = 64 << 20;
/// or else so many times its length. Few bytes can stand for many long keys, and
/// most who walk a block copy what it holds.
const RATIO_MAX: usize = 64;

/// Walks the entries of a decoded block.
#[derive(Debug)]
pub(crate) struct Entries<'b> {
    rest: Reader<'b>,
    key: Vec<u8>,
    /// How long the keys and values to come may be together.
    bytes_left: usize,
}

impl<'b> Entries<'b> {
    /// `block` is what its codec gave, without type and checksum.
    pub(crate) fn new(block: &'b [u8]) -> Checked<Entries<'b>> {
        let (before, count) = block.split_last_chunk::<4>().ok_or("a block too short")?;
        let restarts_bytes = (u32::from_le_bytes(*count) as usize).checked_mul(4);
        let entries = restarts_bytes.and_then(|bytes| before.len().checked_sub(bytes));
        let entries_bytes = entries.ok_or("a block shorter than its restart points")?;
        let (entries, restarts) = before.split_at(entries_bytes);
        let mut places = restarts.as_chunks::<4>().0.iter().map(|place| u32::from_le_bytes(*place));
        if !places.clone().is_sorted()
            || places.next_back().is_some_and(|p| p as usize > entries.len())
        {
            return Err("restart points that are none");
        }
        let bytes_left = BYTES_FREE.max(block.len().saturating_mul(RATIO_MAX));
        Ok(Entries { rest: Reader::new(entries), key: Vec::new(), bytes_left })
    }

    /// The next key and value, `None` behind the last.
    pub(crate) fn next(&mut self) -> Checked<Option<(&[u8], &'b [u8])>> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        let value = self.step().ok_or("a malformed entry")?;
        let left = self.bytes_left.checked_sub(self.key.len() + value.len());
        self.bytes_left = left.ok_or("keys that are far longer than what is stored")?;
        Ok(Some((&self.key, value)))
    }

    fn step(&mut self) -> Option<&'b [u8]> {
        let mut length = || usize::try_from(self.rest.varint()?).ok();
        let (shared, own, value_bytes) = (length()?, length()?, length()?);
        if shared > self.key.len() {
            return None;
        }
        self.key.truncate(shared);
        self.key.extend_from_slice(self.rest.bytes(own)?);
        self.rest.bytes(value_bytes)
    }
}

/// The entries of a block side by side, to be searched.
#[derive(Debug, Default)]
pub(crate) struct Listed {
    /// Key and value of each entry.
    bytes: Vec<u8>,
    /// Where in `bytes` key and value of each end.
    ends: Vec<(usize, usize)>,
    damage: Option<&'static str>,
}

impl Listed {
    /// Copies what `block`, as [`Entries::new`] takes it, holds.
    ///
    /// # Errors
    /// What is wrong with its restart points. A malformed entry ends the list:
    /// see [`Listed::damage`].
    pub(crate) fn new(block: &[u8]) -> Checked<Listed> {
        let (mut entries, mut listed) = (Entries::new(block)?, Listed::default());
        listed.damage = listed.fill(&mut entries).err();
        Ok(listed)
    }

    fn fill(&mut self, entries: &mut Entries<'_>) -> Checked<()> {
        while let Some((key, value)) = entries.next()? {
            self.push(key, value);
        }
        Ok(())
    }

    fn push(&mut self, key: &[u8], value: &[u8]) {
        self.bytes.extend_from_slice(key);
        let key_end = self.bytes.len();
        self.bytes.extend_from_slice(value);
        self.ends.push((key_end, self.bytes.len()));
    }

    pub(crate) fn count(&self) -> usize {
        self.ends.len()
    }

    /// Key and value of the entry `index`; `None` behind the last.
    pub(crate) fn entry(&self, index: usize) -> Option<(&[u8], &[u8])> {
        let &(key_end, end) = self.ends.get(index)?;
        let start = index.checked_sub(1).map_or(0, |before| self.ends[before].1);
        Some((&self.bytes[start..key_end], &self.bytes[key_end..end]))
    }

    /// What is wrong behind the last entry, if something is.
    pub(crate) fn damage(&self) -> Option<&'static str> {
        self.damage
    }

    /// Memory that it takes.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.bytes.capacity() + self.ends.capacity() * size_of::<(usize, usize)>()
    }
}

/// Writes the entries of a block.
#[derive(Debug)]
pub(crate) struct BlockWriter {
    bytes: Vec<u8>,
    /// Where keys stand whole.
    places: Vec<u32>,
    last: Vec<u8>,
    /// Every so many keys one stands whole.
    interval: usize,
    since_whole: usize,
}

impl BlockWriter {
    pub(crate) fn new(interval: usize) -> BlockWriter {
        BlockWriter {
            bytes: Vec::new(),
            places: vec![0],
            last: Vec::new(),
            interval,
            since_whole: 0,
        }
    }

    /// From the next key on.
    pub(crate) fn set_interval(&mut self, interval: usize) {
        self.interval = interval;
    }

    /// Adds a key that comes after all before it.
    pub(crate) fn add(&mut self, key: &[u8], value: &[u8]) {
        let is_whole = self.since_whole >= self.interval;
        if is_whole {
            self.places.push(self.bytes.len() as u32);
            self.since_whole = 0;
        }
        let shared = if is_whole { 0 } else { common_prefix_bytes(&self.last, key) };
        for number in [shared, key.len() - shared, value.len()] {
            put_varint(&mut self.bytes, number as u64);
        }
        self.bytes.extend_from_slice(&key[shared..]);
        self.bytes.extend_from_slice(value);
        self.last.truncate(shared);
        self.last.extend_from_slice(&key[shared..]);
        self.since_whole += 1;
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// How long the block is if it ends here.
    pub(crate) fn len(&self) -> usize {
        self.bytes.len() + 4 * self.places.len() + 4
    }

    /// The block, and begins the next one.
    pub(crate) fn finish(&mut self) -> Vec<u8> {
        let mut block = std::mem::take(&mut self.bytes);
        self.places.iter().for_each(|&place| put_u32(&mut block, place));
        put_u32(&mut block, self.places.len() as u32);
        *self = BlockWriter::new(self.interval);
        block
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(entries: &[(Vec<u8>, Vec<u8>)], interval: usize) -> Vec<u8> {
        let mut writer = BlockWriter::new(interval);
        entries.iter().for_each(|(key, value)| writer.add(key, value));
        let length = writer.len();
        let block = writer.finish();
        assert_eq!((block.len(), writer.is_empty()), (length, true));
        block
    }

    fn all(block: &[u8]) -> Checked<Vec<(Vec<u8>, Vec<u8>)>> {
        let (mut entries, mut found) = (Entries::new(block)?, Vec::new());
        while let Some((key, value)) = entries.next()? {
            found.push((key.to_vec(), value.to_vec()));
        }
        Ok(found)
    }

    #[test]
    fn entries_are_walked_in_their_order() {
        let entries: Vec<_> = (0..100u32)
            .map(|i| (format!("key{i:05}").into_bytes(), vec![i as u8; i as usize % 7]))
            .collect();
        for interval in [1, 2, 16, 1000] {
            assert_eq!(all(&block(&entries, interval)).unwrap(), entries);
        }
        assert_eq!(all(&block(&[], 16)).unwrap(), []);
    }

    /// A list has what a walk finds, and what comes before damage.
    #[test]
    fn a_list_has_every_entry_up_to_damage() {
        let entries: Vec<_> =
            (0..50u8).map(|i| (vec![b'k', i], vec![i; usize::from(i) % 4])).collect();
        let mut block = block(&entries, 8);
        let listed = Listed::new(&block).unwrap();
        assert_eq!((listed.count(), listed.damage()), (50, None));
        for (i, (key, value)) in entries.iter().enumerate() {
            assert_eq!(listed.entry(i), Some((&key[..], &value[..])));
        }
        assert_eq!(listed.entry(50), None);
        // The second entry claims to share more than there is.
        block[5] = 100;
        let listed = Listed::new(&block).unwrap();
        assert_eq!((listed.count(), listed.damage().is_some()), (1, true));
        assert!(Listed::new(&[]).is_err());
    }

    /// Many keys that share nearly all of a long one end before they fill memory.
    #[test]
    fn inflated_keys_end() {
        let key = |i: u32| [vec![b'k'; 1 << 20], i.to_be_bytes().to_vec()].concat();
        let entries: Vec<_> = (0..100).map(|i| (key(i), vec![])).collect();
        let inflated = block(&entries, 1000);
        let listed = Listed::new(&inflated).unwrap();
        assert!((60..66).contains(&listed.count()) && listed.damage().is_some());
        assert_eq!(all(&inflated), Err("keys that are far longer than what is stored"));
    }

    /// Whatever is cut off or changed: an error or other entries, never a
    /// panic, and no memory for lengths that were only claimed.
    #[test]
    fn damaged_blocks_are_refused_or_read_within_their_bytes() {
        let entries: Vec<_> = (0..20u8).map(|i| (vec![b'a', i], vec![i; 3])).collect();
        let sound = block(&entries, 4);
        for length in 0..sound.len() {
            let _ = all(&sound[..length]);
        }
        for at in 0..sound.len() {
            for value in [0, 0x7f, 0x80, 0xff] {
                let mut damaged = sound.clone();
                damaged[at] = value;
                let _ = all(&damaged);
            }
        }
        assert!(all(&[0xff; 4]).is_err());
        assert!(all(&[1, 0, 0]).is_err());
    }
}
