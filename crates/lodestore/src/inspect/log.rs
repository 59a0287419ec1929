//! One segment of the log, read by itself.

use std::path::{Path, PathBuf};

use crate::batch::{BatchRef, Record};
use crate::error::{Error, Result};
use crate::fs::{Fs, ReadableFile};
use crate::key::{FileId, SequenceNumber};
use crate::record::{End, Next, RecordReader, scan};
use crate::sync::Arc;
use crate::wal::{self, SegmentHeader};

/// A segment of the log, open for reading.
#[derive(Debug)]
pub struct LogFile {
    path: PathBuf,
    file: Arc<dyn ReadableFile>,
    header: SegmentHeader,
    records: RecordReader,
    /// Its end was reached, or an error.
    ended: bool,
}

/// What a segment says of itself before its first record.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LogHeader {
    /// Its number, as in the file's name.
    pub number: u64,
    /// The file's identity, new each time that a file is recycled.
    pub id: FileId,
    /// The database that it was written for.
    pub database: FileId,
    /// No record in it has a lower sequence number.
    pub first_sequence: SequenceNumber,
    /// The number of the segment before it, if there was one.
    pub predecessor: Option<u64>,
}

/// The record of one commit group.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct LogBatch<'a> {
    /// Where it begins in the file.
    pub offset: u64,
    /// The number of its first entry; each further entry has the next one.
    pub sequence: SequenceNumber,
    /// Entries in it.
    pub entries: u32,
    /// Its bytes in the file, without the frame.
    pub bytes: usize,
    batch: BatchRef<'a>,
}

impl<'a> LogBatch<'a> {
    /// What was written, in order; with each entry its number, 0 for what has none.
    pub fn records(&self) -> impl Iterator<Item = (SequenceNumber, Record<'a>)> + use<'a> {
        let mut next = self.sequence;
        self.batch.records().map(move |record| {
            if !record.takes_sequence() {
                return (0, record);
            }
            next += 1;
            (next - 1, record)
        })
    }
}

/// How the records of a segment end.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LogEnd {
    /// Where the last whole record ends.
    pub offset: u64,
    /// What follows there, in words, if the file goes on: what a recycled file
    /// held before, room that was asked for ahead, or a record that was not
    /// written to its end. `None` if nothing does.
    pub rest: Option<String>,
    /// A record of this file stands behind that, at this offset: bytes between
    /// were lost. Without a durable witness that is an unsynced tail.
    pub next: Option<u64>,
}

impl LogFile {
    /// Opens the segment `path`, whatever its number.
    ///
    /// # Errors
    /// `Corruption` if it has no whole header; `Incompatible`; `Io`.
    pub fn open(fs: &dyn Fs, path: &Path) -> Result<LogFile> {
        let file = fs.open(path).map_err(|error| Error::io(path, "open", error))?;
        let header = wal::read_header(&*file, path)?;
        let (id, start) = (header.id, wal::HEADER_BLOCK_BYTES);
        let records = RecordReader::new(Arc::clone(&file), path, id, start, u64::MAX);
        Ok(LogFile { path: path.to_path_buf(), file, header, records, ended: false })
    }

    /// What it says of itself.
    pub fn header(&self) -> LogHeader {
        let SegmentHeader { number, id, database, first_sequence, predecessor, .. } = self.header;
        let predecessor = predecessor.map(|predecessor| predecessor.number);
        LogHeader { number, id, database, first_sequence, predecessor }
    }

    /// The next batch; `None` at the end, see [`LogFile::end`].
    ///
    /// # Errors
    /// `Corruption` for a record that is whole and makes no sense;
    /// `Incompatible`; `Io`. Nothing comes after an error.
    pub fn next_batch(&mut self) -> Result<Option<LogBatch<'_>>> {
        if std::mem::replace(&mut self.ended, true) {
            return Ok(None);
        }
        let Next::Record { offset, payload } = self.records.next()? else { return Ok(None) };
        let decoded = BatchRef::decode(payload);
        let batch = decoded.map_err(|what| Error::corruption(&self.path, offset, what))?;
        let (sequence, entries, bytes) = (batch.sequence(), batch.sequence_count(), payload.len());
        self.ended = false;
        Ok(Some(LogBatch { offset, sequence, entries, bytes, batch }))
    }

    /// How the records end. Goes on to there first.
    ///
    /// # Errors
    /// `Corruption` if a later record proves that missing ones had been
    /// durable; as [`LogFile::next_batch`] else.
    pub fn end(mut self) -> Result<LogEnd> {
        let end = loop {
            if let Next::End(end) = self.records.next()? {
                break end;
            }
        };
        let offset = end.offset();
        let rest = match end {
            End::Clean { .. } => return Ok(LogEnd { offset, rest: None, next: None }),
            End::Foreign { .. } => "bytes that are no record of this segment",
            End::Torn { what, .. } => what,
        };
        // A torn record's own header may be sound: what counts comes after it.
        let past = scan(&*self.file, &self.path, self.header.id, offset + 1)?;
        if past.watermark > offset {
            let what = format!("{rest}, although what was here had been made durable");
            return Err(Error::corruption(&self.path, offset, what));
        }
        Ok(LogEnd { offset, rest: Some(rest.to_string()), next: past.first })
    }
}
