//! The write-ahead log: segments, each a file that begins with a header and
//! goes on with records, one a write batch.
//!
//! db::write -> `SegmentWriter::append` -> (power loss) -> `recover` -> memtable
//!
//! A segment's header names the segment before it, with its length and
//! checksum at the moment when it was sealed, so that a log that was cut at a
//! record's border, or whose file is another one, is noticed.
//!
//! Invariants:
//! - a segment becomes durable only after every older live segment is;
//! - what is durable is never written again, except when the whole file is
//!   recycled, under another number;
//! - a segment takes records only until it is sealed, and its successor is
//!   created only after that.

mod batches;
mod header;
mod recover;

pub(crate) use batches::{BatchReader, nearest_record};
pub(crate) use header::{
    Access, HEADER_BLOCK_BYTES, Predecessor, SegmentHeader, read_any as read_header,
};
pub(crate) use recover::{Cut, Expected, Origin, Place, Recovery, recover};

use std::path::{Path, PathBuf};

use crate::error::{Error, Result};
use crate::fs::{Fs, WritableFile};
use crate::key::FileId;
use crate::record::{Failure, Kind, Next, RecordWriter};
use crate::sync::Arc;

use batches::Numbering;

/// A segment that was made durable up to a place: what is missing below it is
/// lost. The manifest names the newest one, whose end no later segment knows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct DurableLog {
    /// 0: there is none.
    pub(crate) number: u64,
    pub(crate) bytes: u64,
}

/// The segment that takes records.
#[derive(Debug)]
pub(crate) struct SegmentWriter {
    header: SegmentHeader,
    records: RecordWriter,
    numbering: Numbering,
    predecessor_durable: bool,
}

impl SegmentWriter {
    /// Creates the file `path` and writes `header`. If the file `recycle` is
    /// given, an obsolete segment, it is used up: overwritten under its new
    /// name, or removed where files can't be overwritten. `room` is asked for
    /// ahead.
    ///
    /// # Errors
    /// `Io`. The segment must not be used then, and its number not again:
    /// whether the file is there is unknown.
    pub(crate) fn create(
        fs: &Arc<dyn Fs>,
        path: &Path,
        header: &SegmentHeader,
        recycle: Option<&Path>,
        room: Room,
    ) -> Result<SegmentWriter> {
        let mut file = open_for_writing(&**fs, path, recycle)?;
        // The room first, so that a full disk is met before anything is written.
        let written = room.ask_for(&mut *file).map_err(|error| ("preallocate", error));
        let written =
            written.and_then(|()| file.append(&header.encode()).map_err(|e| ("append", e)));
        if let Err((during, error)) = written {
            // A leftover does no harm: nothing will ever refer to it.
            let _ = fs.remove(path);
            return Err(Error::io(path, during, error));
        }
        Ok(SegmentWriter {
            header: header.clone(),
            records: RecordWriter::new(fs, path, file, header.id, HEADER_BLOCK_BYTES),
            numbering: Numbering::default(),
            // A durable segment had durable ones before it.
            predecessor_durable: header.predecessor.is_none_or(|p| p.watermark == p.bytes),
        })
    }

    pub(crate) fn header(&self) -> &SegmentHeader {
        &self.header
    }

    /// Where the last good record ends; readers of the live segment stop there.
    pub(crate) fn bytes(&self) -> u64 {
        self.records.bytes()
    }

    /// The failure after which this segment takes no more records, if there
    /// was one. It can still be sealed.
    pub(crate) fn poison(&self) -> Option<&Error> {
        self.records.poison()
    }

    /// Appends one batch with one write. When this returns, a killed process
    /// does not lose it. Returns its record's offset.
    pub(crate) fn append(&mut self, batch: &[u8]) -> std::result::Result<u64, Failure> {
        let shortened = self.numbering.shortened(batch).filter(|_| self.header.short_records);
        let short = shortened.and_then(|(count, rest)| self.records.append_short(count, rest));
        let offset = match short {
            Some(appended) => appended?,
            None => self.records.append(&[batch])?,
        };
        self.numbering.go_past(batch);
        Ok(offset)
    }

    /// As [`SegmentWriter::append`], and makes the whole segment survive power
    /// loss. The record takes whole blocks, so that it need not be short.
    ///
    /// # Panics
    /// If the segments before this one are not known to be durable.
    pub(crate) fn append_and_sync(&mut self, batch: &[u8]) -> std::result::Result<u64, Failure> {
        self.assert_order();
        let offset = self.records.append_and_sync(&[batch])?;
        self.numbering.go_past(batch);
        Ok(offset)
    }

    /// Makes the whole segment survive power loss; does nothing if it does.
    ///
    /// # Panics
    /// If the segments before this one are not known to be durable.
    pub(crate) fn sync(&mut self) -> std::result::Result<(), Failure> {
        self.assert_order();
        self.records.sync()
    }

    /// Notes in the log that every older segment is durable, or no longer
    /// needed by a durable manifest. From then on this one can be synced.
    pub(crate) fn predecessors_are_durable(&mut self) -> std::result::Result<(), Failure> {
        if !self.predecessor_durable {
            self.records.append_marker(Kind::PredecessorDurable, &[])?;
            self.predecessor_durable = true;
        }
        Ok(())
    }

    /// Notes in the log that the manifest has come to an edit, durably: a
    /// manifest that has not is an older one.
    pub(crate) fn note_manifest_edit(&mut self, edit: u64) -> std::result::Result<(), Failure> {
        let payload = edit.to_le_bytes();
        self.records.append_marker(Kind::ManifestEdit, &payload).map(|_| ())
    }

    /// How far the segment survives power loss.
    pub(crate) fn durable(&self) -> DurableLog {
        DurableLog { number: self.header.number, bytes: self.records.watermark() }
    }

    /// True if it has no records.
    pub(crate) fn is_empty(&self) -> bool {
        self.records.bytes() == HEADER_BLOCK_BYTES
    }

    /// Gives the room back that was asked for ahead. What is appended then has to find its
    /// own.
    pub(crate) fn give_room_back(&mut self) {
        self.records.give_room_back();
    }

    /// True if this segment can be synced.
    #[cfg(test)]
    pub(crate) fn are_predecessors_durable(&self) -> bool {
        self.predecessor_durable
    }

    /// Ends the segment. Writes nothing and can't fail; works on a poisoned
    /// segment too, which then ends where its last good record does.
    pub(crate) fn seal(self) -> Sealed {
        Sealed { number: self.header.number, id: self.header.id, records: self.records }
    }

    fn assert_order(&self) {
        assert!(
            self.predecessor_durable,
            "log {} is synced before the one before it",
            self.header.number
        );
    }
}

/// How a segment's file gets its blocks.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Room {
    /// As records are appended, or as it has them from its former life.
    AsNeeded,
    /// This many bytes before the first record.
    Ahead(u64),
    /// As `Ahead`, with records copied into a mapping where that is safe.
    Mapped(u64),
}

impl Room {
    fn ask_for(self, file: &mut dyn WritableFile) -> std::io::Result<()> {
        match self {
            Room::AsNeeded => Ok(()),
            Room::Ahead(bytes) => file.preallocate(bytes),
            Room::Mapped(bytes) => file.preallocate_mapped(bytes),
        }
    }
}

fn open_for_writing(
    fs: &dyn Fs,
    path: &Path,
    recycle: Option<&Path>,
) -> Result<Box<dyn WritableFile>> {
    if let Some(old) = recycle {
        if fs.capabilities().overwriting {
            fs.rename(old, path).map_err(|error| Error::io(old, "rename", error))?;
            return fs.overwrite(path).map_err(|error| Error::io(path, "open", error));
        }
        fs.remove(old).map_err(|error| Error::io(old, "remove", error))?;
    }
    fs.create(path).map_err(|error| Error::io(path, "create", error))
}

/// A segment that takes no more records, but may not be durable yet. Any
/// thread may sync it while its successor is written.
#[derive(Debug)]
pub(crate) struct Sealed {
    number: u64,
    id: FileId,
    records: RecordWriter,
}

impl Sealed {
    /// What the next segment's header says of this one.
    pub(crate) fn as_predecessor(&self) -> Predecessor {
        Predecessor {
            number: self.number,
            id: self.id,
            bytes: self.records.bytes(),
            watermark: self.records.watermark(),
            checksum: self.records.checksum(),
        }
    }

    /// How far it survives power loss.
    pub(crate) fn durable(&self) -> DurableLog {
        DurableLog { number: self.number, bytes: self.records.watermark() }
    }

    /// True if the segment survives power loss.
    #[cfg(test)]
    pub(crate) fn is_durable(&self) -> bool {
        self.records.is_durable()
    }

    /// Makes the segment survive power loss. The ones before it must already.
    ///
    /// # Errors
    /// `Io`, and the same one again at each further call: after a failed sync
    /// nothing may be assumed of the file.
    pub(crate) fn sync(&mut self) -> Result<()> {
        self.records.sync_as_it_is()
    }
}

/// Makes a recovered segment durable: a killed process may have left it in the
/// page cache only. False where the file system can't reopen files for
/// writing; the segment must be made unneeded by a flush instead.
#[cfg(test)]
pub(crate) fn sync_recovered(fs: &dyn Fs, path: &Path) -> Result<bool> {
    if !fs.capabilities().overwriting {
        return Ok(false);
    }
    let io = |during| move |error| Error::io(path, during, error);
    let mut file = fs.overwrite(path).map_err(io("open"))?;
    file.sync().map_err(io("sync"))?;
    file.close().map_err(io("close"))?;
    let directory = path.parent().unwrap_or(Path::new("."));
    fs.sync_directory(directory).map_err(|error| Error::io(directory, "sync directory", error))?;
    Ok(true)
}

/// Reads a segment's batches, also while it is being written.
#[derive(Debug)]
pub(crate) struct SegmentReader {
    path: PathBuf,
    batches: BatchReader,
    limit: Option<u64>,
}

impl SegmentReader {
    /// Opens segment `number`.
    ///
    /// # Errors
    /// `Io`, `Incompatible`, or `Corruption` if the file is no such segment.
    pub(crate) fn open(fs: &dyn Fs, path: &Path, number: u64) -> Result<SegmentReader> {
        let file = fs.open(path).map_err(|error| Error::io(path, "open", error))?;
        let header = match header::read(&*file, path, number, Access::ReadOnly)? {
            header::Found::Header(header) => *header,
            header::Found::Other { .. } | header::Found::Nothing => {
                return Err(Error::corruption(path, 0, format!("this is not log {number}")));
            }
        };
        let batches = BatchReader::new(file, path, &header, HEADER_BLOCK_BYTES, u64::MAX);
        Ok(SegmentReader { path: path.to_path_buf(), batches, limit: None })
    }

    /// Says that the segment has whole records up to `bytes`: where it was
    /// sealed, or where its live writer stands. Gives nothing from there on.
    /// Before the first call, the records end where no further one is whole.
    pub(crate) fn set_limit(&mut self, bytes: u64) {
        self.limit = Some(bytes);
        self.batches.set_limit(bytes);
    }

    /// The next batch, and its record's offset; `None` at the limit, or, without
    /// one, if no further record is whole yet. Asking again later is allowed.
    ///
    /// # Errors
    /// `Io`; `Corruption` if a record below the limit is damaged.
    pub(crate) fn next(&mut self) -> Result<Option<(u64, &[u8])>> {
        match self.batches.next()? {
            Next::Record { offset, payload, .. } => Ok(Some((offset, payload))),
            Next::End(end) => match self.limit {
                Some(limit) if end.offset() < limit => {
                    let what = format!("no whole record is here, but the log goes to {limit}");
                    Err(Error::corruption(&self.path, end.offset(), what))
                }
                _ => Ok(None),
            },
        }
    }
}

#[cfg(all(test, not(simulation)))]
mod tests;
