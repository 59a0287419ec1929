//! The entries of a large plain batch in the order of their keys.
//!
//! batch -> places of its records, with the heads of their keys -> sorted ->
//! entries. A memtable takes entries that are neighbours about twice as fast as
//! in a random order, which pays for the sorting from some thousand on.

use super::{BATCH_HEADER_BYTES, FamilyId, Record, Records, WriteBatch};
use crate::key::Kind;
use crate::prefetch::prefetch;

/// Entries whose bytes are asked for ahead.
const PREFETCH_ENTRIES: usize = 8;
const HEAD_BYTES: usize = 8;

/// An entry of the default family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Numbered<'a> {
    /// Its place among the entries of the batch: 0, 1, 2, ...
    pub(crate) nth: u32,
    pub(crate) kind: Kind,
    pub(crate) key: &'a [u8],
    pub(crate) value: &'a [u8],
}

/// Where an entry is, and what mostly decides where it belongs.
#[derive(Clone, Copy)]
struct Place {
    /// What follows the bytes that all keys have in common.
    head: u64,
    /// In the batch's bytes: no batch is longer than 4 GiB.
    at: u32,
    nth: u32,
}

impl WriteBatch {
    /// The entries by key, bytewise; those of one key the newest first. The batch
    /// is plain.
    pub(crate) fn by_key(&self) -> impl Iterator<Item = Numbered<'_>> {
        debug_assert!(self.is_plain());
        let bytes = &self.bytes[..];
        let places = sorted_places(bytes, self.sequence_count() as usize);
        (0..places.len()).map(move |index| {
            if let Some(ahead) = places.get(index + PREFETCH_ENTRIES) {
                prefetch(bytes[ahead.at as usize..].as_ptr());
            }
            entry_at(bytes, places[index])
        })
    }
}

fn sorted_places(bytes: &[u8], count: usize) -> Vec<Place> {
    let mut places = Vec::with_capacity(count);
    let mut common: Option<&[u8]> = None;
    let mut records = Records::new(bytes);
    loop {
        let at = (bytes.len() - records.unread_bytes()) as u32;
        match records.next() {
            None => break,
            Some(Record::Entry { key, .. }) => {
                common = Some(common.map_or(key, |common| common_prefix(common, key)));
                places.push(Place { head: 0, at, nth: places.len() as u32 });
            }
            Some(_) => {}
        }
    }
    let common_bytes = common.map_or(0, <[u8]>::len);
    for place in &mut places {
        place.head = head_of(&entry_at(bytes, *place).key[common_bytes..]);
    }
    places.sort_unstable_by(|a, b| {
        a.head
            .cmp(&b.head)
            .then_with(|| entry_at(bytes, *a).key.cmp(entry_at(bytes, *b).key))
            .then(b.nth.cmp(&a.nth))
    });
    places
}

/// The first bytes as a number of the same order; a short key goes on with zeros,
/// so that equal heads decide nothing.
#[inline]
fn head_of(key: &[u8]) -> u64 {
    match key.first_chunk::<HEAD_BYTES>() {
        Some(head) => u64::from_be_bytes(*head),
        None => {
            let mut head = [0; HEAD_BYTES];
            head[..key.len()].copy_from_slice(key);
            u64::from_be_bytes(head)
        }
    }
}

#[inline]
fn common_prefix<'a>(a: &'a [u8], b: &[u8]) -> &'a [u8] {
    if b.starts_with(a) {
        return a;
    }
    &a[..a.iter().zip(b).take_while(|(a, b)| a == b).count()]
}

#[inline]
fn entry_at(bytes: &[u8], place: Place) -> Numbered<'_> {
    let at = place.at as usize;
    debug_assert!(at >= BATCH_HEADER_BYTES);
    match Records::from(bytes, at).next() {
        Some(Record::Entry { family: FamilyId::DEFAULT, kind, key, value }) => {
            Numbered { nth: place.nth, kind, key, value }
        }
        other => unreachable!("a plain batch has {other:?} at byte {at}"),
    }
}
