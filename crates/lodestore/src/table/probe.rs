//! Single decoders of a table's parts, and a look at what they made of hostile
//! bytes: for fuzzing. What panics here would panic in production.

use crate::key::{FileId, KeyOrder, TRAILER_NEWEST};
use crate::sync::Arc;

use super::block::Block;
use super::codec::{self, Compressor};
use super::dictionary::Dictionary;
use super::directory::Directory;
use super::filter::{self, Filter};
use super::format::tag;
use super::index::Index;
use super::layout::SLACK_BYTES;
use super::locator::Locator;
use super::partitions::Partitions;
use super::properties::Properties;
use super::reader::{ReadContext, Table};
use super::{Compression, range_section};

const KEYS: [&[u8]; 5] = [b"", b"k", b"key000001", b"k\0\0\0\0\0\0\0\0\0", &[0xff; 12]];

/// Where the stored blocks of a table are that can be found: of entries, of the
/// filter, of the index.
pub(crate) fn stored_blocks(table: &Table, context: &ReadContext) -> Vec<(u64, u64)> {
    let mut locator = Locator::default();
    let mut blocks = Vec::new();
    // A list of partitions may claim more blocks than the file has bytes.
    for index in 0..table.blocks().min(1 << 16) {
        blocks.extend(locator.locate(table, index, context).ok());
    }
    if let Directory::Partitioned(partitions) = &table.directory {
        blocks.extend((0..partitions.count()).filter_map(|p| partitions.filter_ref(p)));
        blocks.extend((0..partitions.count()).map(|p| partitions.index_ref(p)));
    }
    let place = |block: super::BlockRef| {
        (block.place.offset, block.place.offset + block.place.stored_bytes as u64)
    };
    blocks.into_iter().map(place).collect()
}

/// Decodes a section without its checksum.
///
/// # Panics
/// If what was decoded cannot be asked, or is another one once it was written.
pub fn check_section(section_tag: u8, bytes: &[u8]) {
    let order = KeyOrder::Bytewise;
    match u32::from(section_tag) {
        tag::INDEX => {
            if let Ok(index) = Index::decode(bytes, &order) {
                check_index(&index);
            }
        }
        tag::FILTER => check_filter(bytes),
        tag::PROPERTIES => check_properties(bytes),
        tag::RANGE_DELETES => {
            if let Ok(deletes) = range_section::decode(bytes, &order) {
                let again = range_section::decode(&range_section::encode(&deletes), &order);
                assert!(again.expect("it was written").iter().eq(deletes.iter()));
                KEYS.iter().for_each(|key| assert!(deletes.covering(key, 1) <= 1));
            }
        }
        tag::PARTITIONS => {
            if let Ok(partitions) = Partitions::decode(bytes, &order, u64::from(u32::MAX)) {
                check_partitions(&partitions);
            }
        }
        tag::DICTIONARY => drop(Dictionary::decode(bytes)),
        _ => {}
    }
}

fn check_index(index: &Index) {
    for i in 0..index.blocks() {
        assert!(index.block_offset(i) <= index.block_offset(i + 1));
        index.straddles(i);
    }
    for key in KEYS {
        for trailer in [0, TRAILER_NEWEST] {
            let found = index.find(key, trailer, &KeyOrder::Bytewise);
            assert!(found.is_none_or(|block| block < index.blocks()));
        }
    }
}

fn check_filter(bytes: &[u8]) {
    let decoded = Filter::decode(bytes);
    assert_eq!(decoded.is_some(), filter::check(bytes).is_ok());
    for hash in [0, 1, u64::MAX, 0x9e37_79b9_7f4a_7c15] {
        let stored = filter::may_contain(bytes, hash);
        if let Some(decoded) = &decoded {
            assert_eq!(decoded.may_contain(hash), stored);
        }
    }
}

fn check_properties(bytes: &[u8]) {
    let path = std::path::Path::new("000007.table");
    let Ok(properties) = Properties::decode(bytes, 32, path) else { return };
    let again = Properties::decode(&properties.encode(), 32, path);
    assert_eq!(again.expect("they were written"), properties);
}

fn check_partitions(partitions: &Partitions) {
    assert!(partitions.data_end() <= partitions.end());
    for partition in 0..partitions.count() {
        let index = partitions.index_ref(partition).place;
        assert!(index.offset + index.stored_bytes as u64 <= partitions.end());
        if let Some(filter) = partitions.filter_ref(partition) {
            assert!(filter.place.offset + filter.place.stored_bytes as u64 <= partitions.end());
        }
        assert_eq!(partitions.of_block(partitions.first_block(partition)), partition);
    }
    for key in KEYS {
        partitions.find(key, TRAILER_NEWEST, &KeyOrder::Bytewise);
    }
}

/// Opens a stored block of the codec of this number, without its checksum, and
/// looks at every entry.
///
/// # Panics
/// If an entry cannot be had, or is not found where it is.
pub fn check_block(codec: u8, payload: &[u8]) {
    let mut stored = payload.to_vec();
    stored.push(codec);
    let checksum = codec::checksum(&stored, FileId(0), 0);
    stored.extend_from_slice(&checksum.to_le_bytes());
    let Ok(bytes) = codec::open(&stored, FileId(0), 0, None) else { return };
    let raw = &bytes[..bytes.len() - SLACK_BYTES];
    for compression in [Compression::Snappy, Compression::Lz4, Compression::Zstd { level: 1 }] {
        check_codec(compression, raw);
    }
    for overridden in [None, Some(7)] {
        let order = KeyOrder::Bytewise;
        if let Ok(block) = Block::new(0, Arc::from(&bytes[..]), &order, overridden) {
            check_entries(&block, &order);
        }
    }
}

fn check_codec(compression: Compression, raw: &[u8]) {
    let Ok(mut compressor) = Compressor::new(compression) else { return };
    let sealed = compressor.seal(raw, FileId(1), 32);
    let mut stored = Vec::new();
    sealed.put_head(&mut stored);
    stored.extend_from_slice(sealed.payload);
    sealed.put_tail(&mut stored);
    let opened = codec::open(&stored, FileId(1), 32, None).expect("it was just sealed");
    assert!(&opened[..opened.len() - SLACK_BYTES] == raw);
}

fn check_entries(block: &Block, order: &KeyOrder) {
    let (layout, bytes) = (block.layout(), &block.bytes()[..]);
    let mut last: Option<(Vec<u8>, u64)> = None;
    let mut ordered = true;
    for i in 0..layout.count {
        let mut key = Vec::new();
        layout.append_key(bytes, i, &mut key);
        let trailer = layout.trailer(bytes, i);
        block.range_of(layout.value(bytes, i));
        let (found, _) = layout.find(bytes, &key, trailer, order);
        assert!(found <= layout.count);
        ordered &= last.as_ref().is_none_or(|(last, before)| {
            order.compare_entries((last, *before), (&key, trailer)).is_lt()
        });
        // In order so far does not mean in order: what follows is searched too.
        last = Some((key, trailer));
    }
    for i in (0..layout.count).filter(|_| ordered) {
        let mut key = Vec::new();
        layout.append_key(bytes, i, &mut key);
        assert_eq!(layout.find(bytes, &key, layout.trailer(bytes, i), order), (i, true));
    }
}
