//! A table: what it says of itself, its blocks, and all its entries.

use std::path::Path;

use lodestore::inspect::{BlockSummary, Engine, Entry, TableFile, TableProperties};
use lodestore::{Fs, KeyOrder, Result};

use super::{bound, brief};

/// All that the table `path`, whose keys are in `order`, says.
///
/// # Errors
/// What reading gives.
pub(super) fn described(fs: &dyn Fs, path: &Path, order: KeyOrder) -> Result<String> {
    let table = TableFile::open(fs, path, order)?;
    let counted = table.counted()?;
    let mut text = properties(&counted);
    for block in table.blocks() {
        text += &self::block(&block?, counted.engine);
    }
    text.extend(table.range_deletes().map(|delete| entry(&delete)));
    for of in table.entries() {
        text += &entry(&of?);
    }
    Ok(text)
}

/// A line of an entry, or of a range delete up to its value.
pub(super) fn entry(of: &Entry) -> String {
    let (key, value) = (brief(&of.key), brief(&of.value));
    format!("  {key} @{} {} {value}\n", of.sequence, of.kind.name())
}

fn properties(of: &TableProperties) -> String {
    let mut text = format!(
        "table of {}, id {}, checksum {:08x}, order {:?}, compression {}, block bytes {}\n\
         {} blocks in {} bytes, partitioned {}\n\
         entries {}, deletes {}, range deletes {}, key bytes {}, value bytes {}\n\
         numbers {} to {}, {} to {}\n\
         prefix extractor {:?}, family {:?}\n",
        of.engine.name(),
        of.id,
        of.checksum,
        of.order_name,
        of.compression,
        of.block_bytes,
        of.blocks,
        of.data_bytes,
        of.partitioned,
        of.entries,
        of.tombstones,
        of.range_deletes,
        of.key_bytes,
        of.value_bytes,
        of.sequence_min,
        of.sequence_max,
        bound(&of.smallest, of.smallest_trailer),
        bound(&of.largest, of.largest_trailer),
        of.prefix_extractor,
        of.family
    );
    for section in &of.sections {
        text += &format!(
            "section {} with flags {:#x} at {}, {} bytes\n",
            section.tag, section.flags, section.offset, section.bytes
        );
    }
    text
}

/// A line of a block. Of LevelDB's, how it looks when decoded is not LevelDB's.
fn block(of: &BlockSummary, engine: Engine) -> String {
    let BlockSummary { offset, stored_bytes, stored_type, entries, .. } = of;
    if engine == Engine::LevelDb {
        let stored = format!("block at {offset}, {stored_bytes} bytes of type {stored_type}");
        return format!("{stored}: entries {entries}, from {}\n", brief(&of.first_key));
    }
    format!(
        "block at {}, {} bytes of type {}: {} decoded, entries {}, flags {:#x}, bytes of a number \
         {}, zeros {}, from {}\n",
        offset,
        stored_bytes,
        stored_type,
        of.decoded_bytes,
        entries,
        of.flags,
        of.sequence_bytes,
        of.fill_bytes,
        brief(&of.first_key)
    )
}
