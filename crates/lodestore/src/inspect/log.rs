//! One segment of the log, read by itself.

use std::path::{Path, PathBuf};

use crate::batch::{BatchRef, Record};
use crate::error::{Error, Result, Undecodable};
use crate::fs::{Fs, ReadableFile};
use crate::key::{FileId, SequenceNumber};
use crate::leveldb::decode_batch;
use crate::record::{End, Next, scan};
use crate::sync::Arc;
use crate::wal::{self, BatchReader, Predecessor, SegmentHeader, nearest_record};

use super::described::Engine;
use super::foreign_log::LevelDbRecords;

/// A segment of the log, open for reading: ours or LevelDB's.
#[derive(Debug)]
pub struct LogFile {
    path: PathBuf,
    header: LogHeader,
    records: Records,
    /// Its end was reached, or an error.
    ended: bool,
}

#[derive(Debug)]
enum Records {
    Ours { file: Arc<dyn ReadableFile>, header: Box<SegmentHeader>, reader: BatchReader },
    LevelDb(LevelDbRecords),
}

/// What a segment says of itself before its first record. A log of LevelDB says
/// nothing: its number is that of its name, 0 if it has another one, its first
/// sequence number that of its first record, and ids are 0.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LogHeader {
    /// The engine that wrote it.
    pub engine: Engine,
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
    /// What it knows of that one.
    pub sealed: Option<SealedLog>,
    /// The manifest in use when it was begun.
    pub manifest: FileId,
    /// The last edit of that manifest then.
    pub manifest_edit: u64,
}

/// A segment as the one after it describes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SealedLog {
    /// Its identity.
    pub id: FileId,
    /// Where its last record ends.
    pub bytes: u64,
    /// It was durable up to here when the next one was begun.
    pub durable_bytes: u64,
    /// Checksum over its records.
    pub checksum: u32,
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
    /// Its length, header included (docs/format/batch.md), without its record's frame.
    pub bytes: usize,
    /// It is in a short record, which has one byte in place of the batch's header of 12.
    pub is_short: bool,
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

impl From<Predecessor> for SealedLog {
    fn from(of: Predecessor) -> SealedLog {
        let Predecessor { id, bytes, watermark: durable_bytes, checksum, .. } = of;
        SealedLog { id, bytes, durable_bytes, checksum }
    }
}

/// How the records of a segment end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LogEnd {
    /// Where the last whole record ends.
    pub offset: u64,
    /// What follows there, in words, if the file goes on: what a recycled file
    /// held before, room that was asked for ahead, or a record that was not
    /// written to its end. `None` if nothing does.
    pub rest: Option<String>,
    /// A record of this file stands behind that, at this offset: at least the
    /// bytes between were lost. Without a durable witness that is an unsynced tail.
    pub next: Option<u64>,
    /// Its records say that everything before here was durable; 0 in LevelDB's.
    pub durable_bytes: u64,
    /// Its records say that every segment before it was durable.
    pub predecessors_durable: bool,
    /// The last edit of the manifest that its records know of; 0: none.
    pub manifest_edit: u64,
    /// Checksum over its records; 0 of LevelDB's.
    pub checksum: u32,
}

impl LogFile {
    /// Opens the segment `path`, whatever its number. A file without a header of
    /// ours is LevelDB's if its name says so, or if it begins with a record as
    /// LevelDB writes them; it is read into memory as a whole.
    ///
    /// # Errors
    /// `Corruption` if it has no whole header; `Incompatible`; `Io`.
    pub fn open(fs: &dyn Fs, path: &Path) -> Result<LogFile> {
        let file = fs.open(path).map_err(|error| Error::io(path, "open", error))?;
        match wal::read_header(&*file, path) {
            Ok(header) => Ok(LogFile::ours(file, path, header)),
            Err(error) if error.is_corruption() => match LevelDbRecords::read(&*file, path)? {
                Some(records) => LogFile::leveldb(path, records),
                None => Err(error),
            },
            Err(error) => Err(error),
        }
    }

    fn ours(file: Arc<dyn ReadableFile>, path: &Path, header: SegmentHeader) -> LogFile {
        let SegmentHeader { number, id, database, first_sequence, .. } = header;
        let start = wal::HEADER_BLOCK_BYTES;
        let reader = BatchReader::new(Arc::clone(&file), path, &header, start, u64::MAX);
        let engine = Engine::Lodestore;
        LogFile {
            path: path.to_path_buf(),
            header: LogHeader {
                engine,
                number,
                id,
                database,
                first_sequence,
                predecessor: header.predecessor.map(|predecessor| predecessor.number),
                sealed: header.predecessor.map(SealedLog::from),
                manifest: header.manifest_id,
                manifest_edit: header.manifest_edit,
            },
            records: Records::Ours { file, header: Box::new(header), reader },
            ended: false,
        }
    }

    fn leveldb(path: &Path, records: LevelDbRecords) -> Result<LogFile> {
        let header = LogHeader {
            engine: Engine::LevelDb,
            number: records.number,
            id: FileId(0),
            database: FileId(0),
            first_sequence: records.first_sequence(),
            predecessor: None,
            sealed: None,
            manifest: FileId(0),
            manifest_edit: 0,
        };
        let records = Records::LevelDb(records);
        Ok(LogFile { path: path.to_path_buf(), header, records, ended: false })
    }

    /// What it says of itself.
    pub fn header(&self) -> LogHeader {
        self.header.clone()
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
        let next = match &mut self.records {
            Records::Ours { reader, .. } => match reader.next()? {
                Next::Record { offset, payload, is_short } => {
                    Some((offset, payload.len(), is_short, BatchRef::decode(payload)))
                }
                Next::End(_) => None,
            },
            Records::LevelDb(records) => {
                let next = records.next(&self.path)?;
                next.map(|(offset, record)| {
                    let decoded = decode_batch(record).map_err(Undecodable::from);
                    (offset, record.len(), false, decoded)
                })
            }
        };
        let Some((offset, bytes, is_short, decoded)) = next else { return Ok(None) };
        let batch = decoded.map_err(|undecodable| undecodable.at(&self.path, offset))?;
        let (sequence, entries) = (batch.sequence(), batch.sequence_count());
        self.ended = false;
        Ok(Some(LogBatch { offset, sequence, entries, bytes, is_short, batch }))
    }

    /// How the records end. Goes on to there first.
    ///
    /// # Errors
    /// `Corruption` if a later record proves that missing ones had been
    /// durable; as [`LogFile::next_batch`] else.
    pub fn end(self) -> Result<LogEnd> {
        match self.records {
            Records::Ours { file, header, reader } => {
                end_of_ours(&self.path, &*file, &header, reader)
            }
            Records::LevelDb(records) => records.end(&self.path),
        }
    }
}

fn end_of_ours(
    path: &Path,
    file: &dyn ReadableFile,
    header: &SegmentHeader,
    mut reader: BatchReader,
) -> Result<LogEnd> {
    let end = loop {
        if let Next::End(end) = reader.next()? {
            break end;
        }
    };
    let offset = end.offset();
    let records = reader.records();
    let ended = LogEnd {
        offset,
        rest: None,
        next: None,
        durable_bytes: records.watermark(),
        predecessors_durable: records.predecessor_durable(),
        manifest_edit: records.manifest_edit(),
        checksum: records.checksum(),
    };
    let rest = match end {
        End::Clean { .. } => return Ok(ended),
        End::Foreign { .. } => "bytes that are no record of this segment",
        End::Torn { what, .. } => what,
    };
    // A torn record's own header may be sound: what counts comes after it.
    let past = scan(file, path, header.id, offset + 1)?;
    if past.watermark > offset {
        let what = format!("{rest}, although what was here had been made durable");
        return Err(Error::corruption(path, offset, what));
    }
    let next = nearest_record(file, path, header, offset, &past)?;
    Ok(LogEnd { rest: Some(rest.to_string()), next, ..ended })
}
