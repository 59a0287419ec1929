//! Batches as records. A short record has a batch whose numbers go on where those
//! of the batch before it end: of the batch's header it has the count only, as one
//! byte.

use std::path::Path;

use super::SegmentHeader;
use crate::batch::{BATCH_HEADER_BYTES, sequence_count_in, sequence_in};
use crate::error::Result;
use crate::fs::ReadableFile;
use crate::key::SequenceNumber;
use crate::record::{Next, RecordReader, Scan, find_short};
use crate::sync::Arc;

/// The number that the next batch begins with, if the one before it says so.
#[derive(Debug, Default)]
pub(super) struct Numbering(Option<SequenceNumber>);

impl Numbering {
    /// The next batch comes after `batch`.
    #[inline]
    pub(super) fn go_past(&mut self, batch: &[u8]) {
        self.0 = match batch.len() < BATCH_HEADER_BYTES {
            true => None,
            false => sequence_in(batch).checked_add(u64::from(sequence_count_in(batch))),
        };
    }

    /// What a short record has of `batch`, its count and its records; `None` if that
    /// would not tell all of it.
    #[inline]
    pub(super) fn shortened<'a>(&self, batch: &'a [u8]) -> Option<(u8, &'a [u8])> {
        let (_, records) = batch.split_at_checked(BATCH_HEADER_BYTES)?;
        let count = u8::try_from(sequence_count_in(batch)).ok()?;
        (self.0 == Some(sequence_in(batch))).then_some((count, records))
    }

    /// Makes the batch in `out` of which a short record has `payload`. Without a number
    /// or a count it is empty, which no batch is.
    fn restore(&self, payload: &[u8], out: &mut Vec<u8>) {
        out.clear();
        if let (Some(first), Some((&count, records))) = (self.0, payload.split_first()) {
            out.extend_from_slice(&first.to_le_bytes());
            out.extend_from_slice(&u32::from(count).to_le_bytes());
            out.extend_from_slice(records);
        }
    }
}

/// Reads the batches of a segment from front to back.
#[derive(Debug)]
pub(crate) struct BatchReader {
    records: RecordReader,
    numbering: Numbering,
    /// The last one that was in a short record.
    batch: Vec<u8>,
}

impl BatchReader {
    /// Reads the segment of `header` from `offset`, where a record starts, up to `limit`
    /// (`u64::MAX`: the file's end).
    pub(crate) fn new(
        file: Arc<dyn ReadableFile>,
        path: &Path,
        header: &SegmentHeader,
        offset: u64,
        limit: u64,
    ) -> BatchReader {
        let records = RecordReader::new(file, path, header.id, offset, limit);
        let records = if header.short_records { records.with_shorts() } else { records };
        BatchReader { records, numbering: Numbering::default(), batch: Vec::new() }
    }

    /// As [`RecordReader::next`], with whole batches as payloads.
    pub(crate) fn next(&mut self) -> Result<Next<'_>> {
        let next = match self.records.next()? {
            Next::Record { offset, payload, is_short: true } => {
                self.numbering.restore(payload, &mut self.batch);
                Next::Record { offset, payload: &self.batch, is_short: true }
            }
            next => next,
        };
        if let Next::Record { payload, .. } = next {
            self.numbering.go_past(payload);
        }
        Ok(next)
    }

    /// As [`RecordReader::set_limit`].
    pub(crate) fn set_limit(&mut self, limit: u64) {
        self.records.set_limit(limit);
    }

    /// What was read so far, and what it says of the log.
    pub(crate) fn records(&self) -> &RecordReader {
        &self.records
    }
}

/// Where the nearest record behind `offset` is that is surely of the segment of `header`:
/// the first header that `scan` found there, or a short record before it.
pub(crate) fn nearest_record(
    file: &dyn ReadableFile,
    path: &Path,
    header: &SegmentHeader,
    offset: u64,
    scan: &Scan,
) -> Result<Option<u64>> {
    let short = match header.short_records {
        true => find_short(file, path, header.id, offset)?,
        false => None,
    };
    Ok([short, scan.first].into_iter().flatten().min())
}
