//! A segment of the log: its batches, and how it ends.

use std::path::Path;

use lodestore::inspect::{LogBatch, LogFile, LogHeader};
use lodestore::{Fs, Record, Result};

use super::brief;

/// All that the segment `path` says.
///
/// # Errors
/// What reading gives.
pub(super) fn described(fs: &dyn Fs, path: &Path) -> Result<String> {
    let mut log = LogFile::open(fs, path)?;
    let mut text = header(&log.header());
    while let Some(batch) = log.next_batch()? {
        text += &self::batch(&batch);
    }
    let end = log.end()?;
    text += &format!(
        "ends at {}, goes on {}, next record {:?}; durable up to {}, predecessors durable \
         {}, manifest edit {}, checksum {:08x}\n",
        end.offset,
        end.rest.is_some(),
        end.next,
        end.durable_bytes,
        end.predecessors_durable,
        end.manifest_edit,
        end.checksum
    );
    Ok(text)
}

fn header(of: &LogHeader) -> String {
    let mut text = format!(
        "number {} of {}, id {}, database {}, manifest {} at edit {}, sequence numbers from {}\n",
        of.number,
        of.engine.name(),
        of.id,
        of.database,
        of.manifest,
        of.manifest_edit,
        of.first_sequence
    );
    if let (Some(number), Some(sealed)) = (of.predecessor, of.sealed) {
        text += &format!(
            "after {number}, id {}, which ends at {}, durable up to {}, checksum {:08x}\n",
            sealed.id, sealed.bytes, sealed.durable_bytes, sealed.checksum
        );
    }
    text
}

fn batch(of: &LogBatch<'_>) -> String {
    let mut text = format!(
        "batch at {}, from {}, entries {}, {} bytes\n",
        of.offset, of.sequence, of.entries, of.bytes
    );
    for (sequence, record) in of.records() {
        text += &format!("  @{sequence} {}\n", self::record(&record));
    }
    text
}

fn record(of: &Record<'_>) -> String {
    match *of {
        Record::Entry { family, kind, key, value } => {
            format!("family {} {} {} = {}", family.0, kind.name(), brief(key), brief(value))
        }
        Record::Opaque(bytes) => format!("opaque {}", brief(bytes)),
        Record::Hint { tag, bytes } => format!("hint {tag:#04x} {}", brief(bytes)),
        ref other => panic!("this text lacks {other:?}"),
    }
}
