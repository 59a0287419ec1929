//! A segment of the log, squeezed.

use std::path::Path;

use lodestore::inspect::LogFile;

use crate::judge::judged;
use crate::{archive, files, seal};

const BLOCK_BYTES: u64 = 4096;

pub fn run(bytes: &[u8]) {
    let mut segment = archive::expand(bytes);
    seal::log(&mut segment);
    let path = Path::new("000007.wal");
    let fs = files::one(path, &segment);
    let Some(mut log) = judged(LogFile::open(&fs, path)) else { return };
    let mut offset_min = BLOCK_BYTES;
    let mut sequence_next = None;
    while let Some(Some(batch)) = judged(log.next_batch()) {
        assert!(batch.offset >= offset_min, "records that overlap");
        // A short record has 8 bytes and a count in place of the batch's header of 12.
        offset_min = batch.offset + batch.bytes as u64 - if batch.is_short { 3 } else { 0 };
        assert!(!batch.is_short || sequence_next == Some(batch.sequence), "a number from nowhere");
        sequence_next = batch.sequence.checked_add(u64::from(batch.entries));
        let numbered = batch.records().filter(|(sequence, _)| *sequence > 0).count();
        assert!(numbered <= batch.entries as usize);
    }
    let log = judged(LogFile::open(&fs, path)).expect("it was opened before");
    if let Some(end) = judged(log.end()) {
        let length = segment.len() as u64;
        assert!(end.offset <= length.max(BLOCK_BYTES), "records behind the end of the file");
        assert!(end.next.is_none_or(|next| end.offset < next && next < length));
    }
}
