//! Appending records: one write a group, made durable on demand.
//!
//! Invariants: `bytes` is where the last good record ends; what is durable
//! ends at a block's border; after a failed sync nothing is ever written or
//! synced again.

use std::path::{Path, PathBuf};

use super::short::{self, SHORT_PAYLOAD_BYTES_MAX};
use super::{ALIGNMENT, BLOCK_BYTES, Chain, HEADER_BYTES, Kind, Owner};
use super::{encode, encode_around};
use crate::error::{Error, Result};
use crate::fs::{Fs, WritableFile, is_out_of_descriptors};
use crate::key::FileId;
use crate::sync::Arc;

/// The buffer is given back if one huge record made it longer than this.
const BUFFER_BYTES_MAX: usize = 1 << 20;

/// A payload of so many bytes is written from where it is, not copied behind its
/// header first. (Puts of 100 kB 52.4 -> 49.8 us; of 17 and 33 kB no difference.)
pub(super) const UNCOPIED_BYTES_MIN: usize = 64 << 10;

/// Why an append or a sync failed, and what may follow.
#[derive(Clone, Debug)]
pub(crate) enum Failure {
    /// The records were cut off again, so that no reader will ever see them, or
    /// the sync was not even begun: the file takes more.
    Undone(Error),
    /// What is on disk past the last good record is unknown: nothing may be
    /// appended to this file any more. Records already appended stay.
    Poisoned(Error),
}

impl Failure {
    /// The error to give to the caller.
    pub(crate) fn into_error(self) -> Error {
        match self {
            Failure::Undone(error) | Failure::Poisoned(error) => error,
        }
    }
}

/// A file of records, open for appending.
#[derive(Debug)]
pub(crate) struct RecordWriter {
    fs: Arc<dyn Fs>,
    path: PathBuf,
    file: Box<dyn WritableFile>,
    owner: Owner,
    bytes: u64,
    watermark: u64,
    /// The block that the last whole header of a payload is in: short records may follow
    /// there.
    short_block: Option<u64>,
    chain: Chain,
    /// The file's name is durable too.
    name_durable: bool,
    poison: Option<Error>,
    /// A failed sync: unlike after a failed write, not even what was there
    /// before may be taken for durable by syncing again.
    sync_failed: bool,
    buffer: Vec<u8>,
}

impl RecordWriter {
    /// Continues `file`, which is new or recycled, after `bytes` bytes that the
    /// caller has appended (a header of its own kind). The name `path` is taken
    /// for not yet durable.
    pub(crate) fn new(
        fs: &Arc<dyn Fs>,
        path: &Path,
        file: Box<dyn WritableFile>,
        id: FileId,
        bytes: u64,
    ) -> RecordWriter {
        assert!(bytes.is_multiple_of(ALIGNMENT as u64));
        RecordWriter {
            fs: Arc::clone(fs),
            path: path.to_path_buf(),
            file,
            owner: Owner::new(id),
            bytes,
            watermark: 0,
            short_block: None,
            chain: Chain::default(),
            name_durable: false,
            poison: None,
            sync_failed: false,
            buffer: Vec::new(),
        }
    }

    /// Where the last good record ends.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Bytes below this offset are durable.
    pub(crate) fn watermark(&self) -> u64 {
        self.watermark
    }

    /// The checksum of all records so far.
    pub(crate) fn checksum(&self) -> u32 {
        self.chain.0
    }

    /// The failure that closed this file for appending, if one did.
    pub(crate) fn poison(&self) -> Option<&Error> {
        self.poison.as_ref()
    }

    /// Appends the payloads, a record each, with one write. When this returns,
    /// a killed process loses none of them. Returns the first one's offset.
    pub(crate) fn append(&mut self, payloads: &[&[u8]]) -> std::result::Result<u64, Failure> {
        self.append_records(Kind::Payload, payloads, false)
    }

    /// As [`RecordWriter::append`], of one payload, `first` and `rest`, as a short record;
    /// `None` if it may not be one: the first that begins in a block may not. So each block
    /// has a witness, and a place from which on its records can be read; and what follows a
    /// sync, which ends at a block's border, has a header that tells of it.
    pub(crate) fn append_short(
        &mut self,
        first: u8,
        rest: &[u8],
    ) -> Option<std::result::Result<u64, Failure>> {
        let may_be_short = rest.len() < SHORT_PAYLOAD_BYTES_MAX
            && self.short_block == Some(self.bytes / BLOCK_BYTES);
        may_be_short.then(|| self.append_short_record(first, rest))
    }

    fn append_short_record(&mut self, first: u8, rest: &[u8]) -> std::result::Result<u64, Failure> {
        self.check_poison()?;
        let (start, mut chain) = (self.bytes, self.chain);
        self.buffer.clear();
        chain.add(short::encode(&mut self.buffer, self.owner, start, first, rest));
        self.write_buffer(start + self.buffer.len() as u64, chain, &[])?;
        Ok(start)
    }

    /// As [`RecordWriter::append`], and makes everything in the file durable.
    /// Where that fails, the file ends before these records again: their writer
    /// is told that they failed, and may use their sequence numbers for others.
    pub(crate) fn append_and_sync(
        &mut self,
        payloads: &[&[u8]],
    ) -> std::result::Result<u64, Failure> {
        let (bytes, chain) = (self.bytes, self.chain);
        let offset = self.append_records(Kind::Payload, payloads, true)?;
        if let Err(failure) = self.sync_file() {
            (self.bytes, self.chain) = (bytes, chain);
            if self.fs.capabilities().truncation {
                // For a crash before a successor tells where this file ends. It
                // may fail: then the outcome is open until the next recovery.
                let _ = self.file.truncate(bytes);
            }
            // The records may be durable, so nothing may take their place here.
            let error = failure.into_error();
            self.poison = Some(error.clone());
            return Err(Failure::Poisoned(error));
        }
        Ok(offset)
    }

    /// Appends a record that carries nothing of a user.
    pub(crate) fn append_marker(
        &mut self,
        kind: Kind,
        payload: &[u8],
    ) -> std::result::Result<u64, Failure> {
        self.append_records(kind, &[payload], false)
    }

    /// Makes everything appended so far durable. Does nothing if it is.
    pub(crate) fn sync(&mut self) -> std::result::Result<(), Failure> {
        if self.is_durable() {
            return Ok(());
        }
        self.check_poison()?;
        if !self.bytes.is_multiple_of(BLOCK_BYTES) {
            self.append_records(Kind::Payload, &[], true)?;
        }
        self.sync_file()
    }

    /// True if everything appended so far is durable.
    pub(crate) fn is_durable(&self) -> bool {
        self.watermark == self.bytes && self.name_durable
    }

    /// Makes everything appended so far durable without filling the block:
    /// for a file that will get no more records. A failed append is no
    /// obstacle, a failed sync is.
    pub(crate) fn sync_as_it_is(&mut self) -> Result<()> {
        match &self.poison {
            _ if self.is_durable() => Ok(()),
            Some(error) if self.sync_failed => Err(error.clone()),
            _ => self.sync_file().map_err(Failure::into_error),
        }
    }

    fn append_records(
        &mut self,
        kind: Kind,
        payloads: &[&[u8]],
        fill_block: bool,
    ) -> std::result::Result<u64, Failure> {
        self.check_poison()?;
        let start = self.bytes;
        let (mut end, mut chain) = (start, self.chain);
        let mut short_block = self.short_block;
        self.buffer.clear();
        let mut uncopied = Vec::new();
        for payload in payloads {
            let (owner, watermark) = (self.owner, self.watermark);
            if payload.len() < UNCOPIED_BYTES_MIN {
                chain.add(encode(&mut self.buffer, owner, end, kind, watermark, payload));
            } else {
                let (checksum, place) =
                    encode_around(&mut self.buffer, owner, end, kind, watermark, payload);
                chain.add(checksum);
                uncopied.push((place, *payload));
            }
            if kind == Kind::Payload {
                short_block = Some(end / BLOCK_BYTES);
            }
            end += record_bytes(payload);
        }
        if let Some(zeros) = fill_block.then(|| fill_bytes(end)).flatten() {
            let zeros = &[0; 2 * BLOCK_BYTES as usize][..zeros];
            let watermark = self.watermark;
            chain.add(encode(&mut self.buffer, self.owner, end, Kind::Skip, watermark, zeros));
            end += record_bytes(zeros);
        }
        self.write_buffer(end, chain, &uncopied)?;
        self.short_block = short_block;
        Ok(start)
    }

    /// Writes what is in the buffer, with `uncopied` in their places: the file ends at `end`
    /// then.
    fn write_buffer(
        &mut self,
        end: u64,
        chain: Chain,
        uncopied: &[(usize, &[u8])],
    ) -> std::result::Result<(), Failure> {
        let appended = match uncopied.is_empty() {
            true => self.file.append(&self.buffer),
            false => self.file.append_parts(&interleaved(&self.buffer, uncopied)),
        };
        if let Err(error) = appended {
            return Err(self.cut_back(Error::io(&self.path, "append", error)));
        }
        (self.bytes, self.chain) = (end, chain);
        if self.buffer.capacity() > BUFFER_BYTES_MAX {
            self.buffer = Vec::new();
        }
        Ok(())
    }

    fn check_poison(&self) -> std::result::Result<(), Failure> {
        match &self.poison {
            Some(error) => Err(Failure::Poisoned(error.clone())),
            None => Ok(()),
        }
    }

    /// Cuts off what the file has behind the last record: others may need the room, and
    /// whoever reads it next need not look whether all of that is nothing. Only a help,
    /// so without errors.
    pub(crate) fn give_room_back(&mut self) {
        if self.poison.is_some() || !self.fs.capabilities().truncation {
            return;
        }
        if let Err(error) = self.file.truncate(self.bytes) {
            // Where the next record would go is unknown.
            self.poison = Some(Error::io(&self.path, "truncate", error));
        }
    }

    /// After a failed append: removes what may have been written of it.
    fn cut_back(&mut self, error: Error) -> Failure {
        let truncates = self.fs.capabilities().truncation;
        if truncates && self.file.truncate(self.bytes).is_ok() {
            return Failure::Undone(error);
        }
        self.poison = Some(error.clone());
        Failure::Poisoned(error)
    }

    fn sync_file(&mut self) -> std::result::Result<(), Failure> {
        if let Err(error) = self.file.sync() {
            return Err(self.poison_by_sync(Error::io(&self.path, "sync", error)));
        }
        if !self.name_durable {
            let directory = self.path.parent().unwrap_or(Path::new("."));
            if let Err(error) = self.fs.sync_directory(directory) {
                // A directory that there was no descriptor for was not opened:
                // nothing was tried that may not be tried again.
                let is_untried = is_out_of_descriptors(&error);
                let error = Error::io(directory, "sync directory", error);
                return Err(match is_untried {
                    true => Failure::Undone(error),
                    false => self.poison_by_sync(error),
                });
            }
            self.name_durable = true;
        }
        self.watermark = self.bytes;
        Ok(())
    }

    fn poison_by_sync(&mut self, error: Error) -> Failure {
        self.sync_failed = true;
        self.poison = Some(error.clone());
        Failure::Poisoned(error)
    }
}

/// What a record with this payload takes.
fn record_bytes(payload: &[u8]) -> u64 {
    (HEADER_BYTES + payload.len().next_multiple_of(ALIGNMENT)) as u64
}

/// The pieces of `bytes` with a payload at each of the places.
fn interleaved<'a>(bytes: &'a [u8], payloads: &[(usize, &'a [u8])]) -> Vec<&'a [u8]> {
    let mut parts = Vec::with_capacity(2 * payloads.len() + 1);
    let mut from = 0;
    for &(place, payload) in payloads {
        parts.extend([&bytes[from..place], payload]);
        from = place;
    }
    parts.push(&bytes[from..]);
    parts
}

/// Zeros that a skip record at `end` needs to end at a block's border; `None`
/// if `end` is there already. Where not even its header fits into the block,
/// it takes the whole next one too.
fn fill_bytes(end: u64) -> Option<usize> {
    let left = end.next_multiple_of(BLOCK_BYTES) - end;
    let header = HEADER_BYTES as u64;
    match left {
        0 => None,
        left if left < header => Some((left + BLOCK_BYTES - header) as usize),
        left => Some((left - header) as usize),
    }
}
