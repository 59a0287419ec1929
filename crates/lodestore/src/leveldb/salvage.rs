//! What can still be read of a damaged table.
//!
//! The index says where blocks are. Where it is damaged, a block begins where
//! the one before it ends, and it ends where its checksum is right.

use crate::checksum::Crc32c;
use crate::error::Result;
use crate::key::{KeyOrder, Kind, SEQUENCE_MAX, SequenceNumber, kind_of, sequence_of};

use super::block::{Entries, Listed};
use super::footer::{FOOTER_BYTES, Footer, Handle};
use super::{Checked, masked, split_key, stored};

/// The end of a block that no index knows is looked for in so many bytes.
const PROBED_BYTES_MAX: usize = 4 << 20;
/// Of a stored block's checksum.
const CHECKSUM_BYTES: usize = 4;

/// What was found besides the entries.
#[derive(Debug, Default)]
pub(crate) struct Salvaged {
    pub(crate) entries: u64,
    /// The first and the last stored key.
    pub(crate) bounds: Option<(Vec<u8>, Vec<u8>)>,
    pub(crate) sequence_max: SequenceNumber,
    /// Where blocks could not be read.
    pub(crate) gaps: Vec<Gap>,
}

/// Blocks that could not be read: what they held lies between these user keys,
/// which may be among it. `None`: nothing readable is on that side.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Gap {
    pub(crate) after: Option<Vec<u8>>,
    pub(crate) before: Option<Vec<u8>>,
}

/// Who is given an entry: stored key and value.
pub(crate) type Visit<'a> = dyn FnMut(&[u8], &[u8]) -> Result<()> + 'a;

/// Gives every entry of a sound block of the table whose bytes are `file` to
/// `visit`, in order.
///
/// # Errors
/// What `visit` returns. Damage is no error.
pub(crate) fn salvage(file: &[u8], order: &KeyOrder, visit: &mut Visit<'_>) -> Result<Salvaged> {
    let mut walk = Walk { order, visit, found: Salvaged::default(), open_gap: false };
    match stated_places(file) {
        Ok(places) => walk.by_index(file, &places)?,
        Err(_) => walk.by_checksums(file)?,
    }
    // A table has entries: one without has lost them.
    walk.open_gap |= walk.found.entries == 0;
    walk.end_gap(None);
    Ok(walk.found)
}

/// Where the blocks of entries are.
fn stated_places(file: &[u8]) -> Checked<Vec<Handle>> {
    let (before, footer) = file.split_last_chunk::<FOOTER_BYTES>().ok_or("no footer")?;
    let footer = Footer::decode(footer, file.len() as u64)?;
    let mut raw = Vec::new();
    stored::open(bytes_of(file, footer.index), &mut raw)?;
    let (mut entries, mut places) = (Entries::new(&raw)?, Vec::new());
    while let Some((_, value)) = entries.next()? {
        places.push(Handle::decode(value, before.len() as u64)?);
    }
    Ok(places)
}

/// The stored block there, which lies within the file.
fn bytes_of(file: &[u8], place: Handle) -> &[u8] {
    let end = place.end().expect("it was compared with the file's length");
    &file[place.offset as usize..end as usize]
}

/// The length of the stored block that `rest` begins with: where its checksum is right.
fn block_bytes(rest: &[u8]) -> Option<usize> {
    let mut crc = Crc32c::new();
    (1..=rest.len().saturating_sub(CHECKSUM_BYTES).min(PROBED_BYTES_MAX))
        .find(|&covered| {
            crc.update(&rest[covered - 1..covered]);
            rest[covered..].starts_with(&masked(crc.value()).to_le_bytes())
        })
        .map(|covered| covered + CHECKSUM_BYTES)
}

/// The way through the entries.
struct Walk<'a, 'v> {
    order: &'a KeyOrder,
    visit: &'a mut Visit<'v>,
    found: Salvaged,
    /// Blocks were missing since the last entry.
    open_gap: bool,
}

impl Walk<'_, '_> {
    fn by_index(&mut self, file: &[u8], places: &[Handle]) -> Result<()> {
        for &place in places {
            match self.open(bytes_of(file, place)) {
                Some(entries) => self.take(&entries)?,
                None => self.open_gap = true,
            }
        }
        Ok(())
    }

    fn by_checksums(&mut self, file: &[u8]) -> Result<()> {
        let mut rest = file;
        loop {
            let Some(bytes) = block_bytes(rest) else {
                // A whole table has other blocks behind those of entries.
                self.open_gap = true;
                return Ok(());
            };
            let (block, behind) = rest.split_at(bytes);
            match self.open(block) {
                Some(entries) => self.take(&entries)?,
                None => return Ok(()),
            }
            rest = behind;
        }
    }

    /// The entries of a stored block; `None` if it is damaged, or holds no entries
    /// that can come after those before.
    fn open(&self, block: &[u8]) -> Option<Listed> {
        let mut raw = Vec::new();
        stored::open(block, &mut raw).ok()?;
        let entries = Listed::new(&raw).ok().filter(|entries| entries.damage().is_none())?;
        let mut last = self.found.bounds.as_ref().map(|(_, last)| &last[..]);
        for i in 0..entries.count() {
            let (key, _) = entries.entry(i)?;
            if !is_entry(key) || !last.is_none_or(|last| self.is_after(last, key)) {
                return None;
            }
            last = Some(key);
        }
        (entries.count() > 0).then_some(entries)
    }

    fn is_after(&self, before: &[u8], key: &[u8]) -> bool {
        match (split_key(before), split_key(key)) {
            (Ok(before), Ok(key)) => self.order.compare_entries(before, key).is_lt(),
            _ => false,
        }
    }

    fn take(&mut self, entries: &Listed) -> Result<()> {
        for (key, value) in (0..entries.count()).filter_map(|i| entries.entry(i)) {
            let Ok((user_key, trailer)) = split_key(key) else { continue };
            self.end_gap(Some(user_key));
            (self.visit)(key, value)?;
            self.found.entries += 1;
            self.found.sequence_max = self.found.sequence_max.max(sequence_of(trailer));
            match &mut self.found.bounds {
                Some((_, last)) => key.clone_into(last),
                bounds => *bounds = Some((key.to_vec(), key.to_vec())),
            }
        }
        Ok(())
    }

    /// Notes blocks that were missing before `next`, the next readable user key.
    fn end_gap(&mut self, next: Option<&[u8]>) {
        if std::mem::take(&mut self.open_gap) {
            let last = self.found.bounds.as_ref().and_then(|(_, last)| split_key(last).ok());
            let after = last.map(|(user_key, _)| user_key.to_vec());
            self.found.gaps.push(Gap { after, before: next.map(<[u8]>::to_vec) });
        }
    }
}

/// True for the stored key of an entry: separators of an index have a number that
/// no entry has, and names no kind.
fn is_entry(key: &[u8]) -> bool {
    split_key(key).is_ok_and(|(_, trailer)| {
        matches!(kind_of(trailer), Some(Kind::Put | Kind::Delete))
            && sequence_of(trailer) < SEQUENCE_MAX
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::trailer;
    use crate::leveldb::join_key;
    use crate::leveldb::table::{Layout, StoredKeys, TableImage};

    const ENTRIES: u64 = 200;

    fn key(i: u64) -> Vec<u8> {
        format!("key {i:04}").into_bytes()
    }

    /// A table of several blocks.
    fn table(filter_bits_per_key: u8) -> Vec<u8> {
        let layout = Layout { block_bytes: 512, snappy: true, ..Layout::default() };
        let mut image = TableImage::new(StoredKeys::new(filter_bits_per_key), layout);
        for i in 0..ENTRIES {
            let kind = if i % 7 == 3 { Kind::Delete } else { Kind::Put };
            image.add(&join_key(&key(i), trailer(i + 1, kind)), &i.to_be_bytes());
        }
        image.finish();
        image.take()
    }

    /// The numbers of the entries that were found.
    fn found(file: &[u8]) -> (Vec<u64>, Salvaged) {
        let mut numbers = Vec::new();
        let salvaged = salvage(file, &KeyOrder::Bytewise, &mut |key, value| {
            let number = u64::from_be_bytes(value.try_into().unwrap());
            assert_eq!(split_key(key).unwrap().0, self::key(number));
            numbers.push(number);
            Ok(())
        });
        (numbers, salvaged.unwrap())
    }

    #[test]
    fn a_sound_table_is_read_whole() {
        for bits in [0, 10] {
            let (numbers, salvaged) = found(&table(bits));
            assert!(numbers.iter().copied().eq(0..ENTRIES));
            assert_eq!((salvaged.gaps, salvaged.sequence_max), (vec![], ENTRIES));
        }
    }

    /// Whichever byte is changed: at most one block is lost, and what is lost lies in
    /// the gap that is told.
    #[test]
    fn a_changed_byte_costs_one_block_and_it_is_told() {
        let table = table(10);
        let blocks = stated_places(&table).unwrap();
        assert!(blocks.len() > 5);
        let longest = ENTRIES as usize / 4;
        for at in 0..table.len() {
            let mut damaged = table.clone();
            damaged[at] ^= 0x20;
            let (numbers, Salvaged { gaps, .. }) = found(&damaged);
            assert!(numbers.is_sorted() && numbers.len() + longest > ENTRIES as usize, "{at}");
            let is_told = |lost: &u64| {
                gaps.iter().any(|gap| {
                    gap.after.as_ref().is_none_or(|after| *after < key(*lost))
                        && gap.before.as_ref().is_none_or(|before| key(*lost) < *before)
                })
            };
            let lost: Vec<u64> = (0..ENTRIES).filter(|i| !numbers.contains(i)).collect();
            assert!(lost.iter().all(is_told), "{at}: {lost:?} {gaps:?}");
            assert_eq!(gaps.is_empty(), lost.is_empty(), "{at}");
        }
    }

    /// A table that was cut off anywhere gives its whole blocks, and says that more
    /// may have come, unless a block behind the entries shows that none has.
    #[test]
    fn a_table_that_was_cut_off_gives_what_came_before() {
        let table = table(10);
        let end = stated_places(&table).unwrap().last().unwrap().end().unwrap() as usize;
        for length in (0..table.len()).step_by(7).chain([end]) {
            let (numbers, Salvaged { gaps, .. }) = found(&table[..length]);
            assert!(numbers.iter().copied().eq(0..numbers.len() as u64), "{length}");
            match gaps.first() {
                None => assert!(numbers.len() as u64 == ENTRIES && length > end, "{length}"),
                Some(gap) => assert_eq!(gap.after, numbers.last().map(|&last| key(last))),
            }
        }
    }

    /// Bytes that are no table give nothing.
    #[test]
    fn what_is_no_table_gives_nothing() {
        for file in [&[][..], &[0; 3], &[0; 5_000], &[0xff; 48]] {
            let (numbers, Salvaged { gaps, .. }) = found(file);
            assert_eq!((numbers.len(), gaps), (0, vec![Gap::default()]));
        }
    }
}
