//! Reading records in order, in bounded memory, and finding out what it means
//! that they stop.

use std::path::{Path, PathBuf};

use super::short::{SHORT_HEADER_BYTES, ShortHeader};
use super::window::Window;
use super::{Chain, HEADER_BYTES, Header, KIND_SKIPPABLE, Kind, Owner};
use crate::checksum::crc32c;
use crate::error::{Error, Result};
use crate::fs::ReadableFile;
use crate::key::FileId;
use crate::sync::Arc;

/// What [`RecordReader::next`] found.
#[derive(Debug)]
pub(crate) enum Next<'a> {
    /// A record.
    Record {
        /// Where its header starts.
        offset: u64,
        /// What was appended.
        payload: &'a [u8],
        /// It was appended as a short record.
        is_short: bool,
    },
    /// No further record is whole. In a file that is still written to, asking
    /// again later may give one.
    End(End),
}

/// Why there is no further record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// The file, or the part of it that was asked for, ends here.
    Clean {
        /// Where the last record ends.
        offset: u64,
    },
    /// Bytes follow that are no record of this file: a recycled file's former
    /// content, or a damaged header.
    Foreign {
        /// Where the last record ends.
        offset: u64,
    },
    /// A record was begun here and is not whole.
    Torn {
        /// Where the last record ends.
        offset: u64,
        /// What is wrong there.
        what: &'static str,
    },
}

impl End {
    /// Where the last record ends.
    pub(crate) fn offset(&self) -> u64 {
        match self {
            End::Clean { offset } | End::Foreign { offset } | End::Torn { offset, .. } => *offset,
        }
    }
}

/// Reads a file of records from front to back.
#[derive(Debug)]
pub(crate) struct RecordReader {
    file: Arc<dyn ReadableFile>,
    path: PathBuf,
    owner: Owner,
    /// Where the next record starts.
    offset: u64,
    /// Nothing from here on is looked at.
    limit: u64,
    /// The file's length when it was last asked for.
    length: u64,
    chain: Chain,
    watermark: u64,
    manifest_edit: u64,
    predecessor_durable: bool,
    shorts: Shorts,
    window: Window,
}

/// Whether short records are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shorts {
    /// The file has none.
    Absent,
    /// Not before a payload with a whole header was.
    Waiting,
    Expected,
}

impl RecordReader {
    /// Reads the records of the file `id` from `offset`, where one starts, up
    /// to `limit` (`u64::MAX`: the file's end).
    pub(crate) fn new(
        file: Arc<dyn ReadableFile>,
        path: &Path,
        id: FileId,
        offset: u64,
        limit: u64,
    ) -> RecordReader {
        RecordReader {
            file,
            path: path.to_path_buf(),
            owner: Owner::new(id),
            offset,
            limit,
            length: 0,
            chain: Chain::default(),
            watermark: 0,
            manifest_edit: 0,
            predecessor_durable: false,
            shorts: Shorts::Absent,
            window: Window::default(),
        }
    }

    /// Reads short records too.
    pub(crate) fn with_shorts(mut self) -> RecordReader {
        self.shorts = Shorts::Waiting;
        self
    }

    /// Where the last record ends.
    pub(crate) fn offset(&self) -> u64 {
        self.offset
    }

    /// The checksum of the records so far, as the writer had it there.
    pub(crate) fn checksum(&self) -> u32 {
        self.chain.0
    }

    /// The highest watermark in the records so far.
    pub(crate) fn watermark(&self) -> u64 {
        self.watermark
    }

    /// The last edit of the manifest that the records so far know of.
    pub(crate) fn manifest_edit(&self) -> u64 {
        self.manifest_edit
    }

    /// Whether one of the records so far says that the files before this were durable.
    pub(crate) fn predecessor_durable(&self) -> bool {
        self.predecessor_durable
    }

    /// Looks at nothing from `limit` on.
    pub(crate) fn set_limit(&mut self, limit: u64) {
        self.limit = limit;
    }

    /// The next record that carries a payload.
    ///
    /// # Errors
    /// `Io`; `Incompatible` if a record is of a kind that must be understood
    /// and is not.
    pub(crate) fn next(&mut self) -> Result<Next<'_>> {
        let mut reread = false;
        loop {
            match self.step()? {
                // What was read ahead may have been written over since.
                Step::End(_) if !reread && !self.window.bytes.is_empty() => {
                    self.window.bytes.clear();
                    reread = true;
                }
                Step::End(end) => {
                    self.window.bytes.clear();
                    return Ok(Next::End(end));
                }
                Step::Record { kind: Some(Kind::Payload), offset, payload_bytes } => {
                    if self.shorts == Shorts::Waiting {
                        self.shorts = Shorts::Expected;
                    }
                    let payload = self.window.slice(offset + HEADER_BYTES as u64, payload_bytes);
                    return Ok(Next::Record { offset, payload, is_short: false });
                }
                Step::Short { offset, payload_bytes } => {
                    let start = offset + SHORT_HEADER_BYTES as u64;
                    let payload = self.window.slice(start, payload_bytes);
                    return Ok(Next::Record { offset, payload, is_short: true });
                }
                Step::Record { kind: Some(Kind::ManifestEdit), offset, payload_bytes } => {
                    let payload = self.window.slice(offset + HEADER_BYTES as u64, payload_bytes);
                    let edit = payload.first_chunk().copied().map_or(0, u64::from_le_bytes);
                    self.manifest_edit = self.manifest_edit.max(edit);
                }
                Step::Record { kind: Some(Kind::PredecessorDurable), .. } => {
                    self.predecessor_durable = true;
                }
                // Other markers say nothing to readers.
                Step::Record { .. } => {}
            }
        }
    }

    /// Goes past one record of any kind, which is in the window then.
    fn step(&mut self) -> Result<Step> {
        if self.shorts == Shorts::Expected
            && let Some(step) = self.step_short()?
        {
            return Ok(step);
        }
        let offset = self.offset;
        let mut end = self.end_for(HEADER_BYTES as u64)?;
        if offset >= end {
            return Ok(Step::End(End::Clean { offset }));
        }
        let torn = |what| Ok(Step::End(End::Torn { offset, what }));
        if end - offset < HEADER_BYTES as u64 {
            return torn("a record's header ends early");
        }
        if !self.fill(offset, HEADER_BYTES, end)? {
            return torn("the file ends early");
        }
        let bytes = self.window.slice(offset, HEADER_BYTES).first_chunk().expect("header");
        let Some(header) = Header::decode(bytes, self.owner, offset) else {
            return Ok(Step::End(End::Foreign { offset }));
        };
        // The length is held against the bytes there before anything is read.
        let whole = HEADER_BYTES as u64 + header.filled_bytes();
        end = self.end_for(whole)?;
        if whole > end.saturating_sub(offset) {
            return torn("a record ends early");
        }
        let whole = usize::try_from(whole).map_err(|_| self.too_long())?;
        if !self.fill(offset, whole, end)? {
            return torn("the file ends early");
        }
        let filled = &self.window.slice(offset, whole)[HEADER_BYTES..];
        if crc32c(filled) != header.payload_checksum {
            return torn("a record's checksum is wrong");
        }
        let kind = self.understand(&header)?;
        self.offset += whole as u64;
        self.chain.add(header.checksum);
        self.watermark = self.watermark.max(header.watermark);
        Ok(Step::Record { kind, offset, payload_bytes: header.payload_bytes as usize })
    }

    /// As [`RecordReader::step`]; `None` if what is here does not look like a short record.
    fn step_short(&mut self) -> Result<Option<Step>> {
        let offset = self.offset;
        let end = self.end_for(SHORT_HEADER_BYTES as u64)?;
        let is_there = end.saturating_sub(offset) >= SHORT_HEADER_BYTES as u64
            && self.fill(offset, SHORT_HEADER_BYTES, end)?;
        if !is_there {
            return Ok(None);
        }
        let bytes = self.window.slice(offset, SHORT_HEADER_BYTES).first_chunk().expect("header");
        let Some(header) = ShortHeader::decode(*bytes, self.owner) else { return Ok(None) };
        let torn = |what| Ok(Some(Step::End(End::Torn { offset, what })));
        let whole = header.record_bytes();
        let end = self.end_for(whole as u64)?;
        if whole as u64 > end.saturating_sub(offset) || !self.fill(offset, whole, end)? {
            return torn("a record ends early");
        }
        if !header.is_sound(self.window.slice(offset, whole), self.owner, offset) {
            return torn("a record's checksum is wrong");
        }
        self.offset += whole as u64;
        self.chain.add(header.checksum);
        Ok(Some(Step::Short { offset, payload_bytes: header.payload_bytes }))
    }

    /// The record's kind; `None` if it may be skipped.
    fn understand(&self, header: &Header) -> Result<Option<Kind>> {
        let kind = Kind::from_byte(header.kind);
        if (kind.is_none() && header.kind < KIND_SKIPPABLE) || header.flags != 0 {
            let (kind, flags, at) = (header.kind, header.flags, self.offset);
            let what = format!("record at offset {at} has unknown kind {kind} or flags {flags}");
            return Err(Error::incompatible(&self.path, what));
        }
        Ok(kind)
    }

    /// Where reading must stop; the file's length is asked for anew only if
    /// the last answer is less than `count` bytes away.
    fn end_for(&mut self, count: u64) -> Result<u64> {
        let wanted = self.offset.saturating_add(count).min(self.limit);
        if self.length < wanted {
            let length = self.file.length();
            self.length = length.map_err(|error| Error::io(&self.path, "get length of", error))?;
        }
        Ok(self.length.min(self.limit))
    }

    fn too_long(&self) -> Error {
        let what = "a record is longer than this machine's memory can address";
        Error::incompatible(&self.path, what)
    }

    fn fill(&mut self, offset: u64, count: usize, end: u64) -> Result<bool> {
        let result = self.window.fill(&*self.file, offset, count, end);
        result.map_err(|error| Error::io(&self.path, "read", error))
    }
}

enum Step {
    Record { kind: Option<Kind>, offset: u64, payload_bytes: usize },
    Short { offset: u64, payload_bytes: usize },
    End(End),
}
