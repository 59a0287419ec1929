//! Looking behind the last good record: for witnesses, and for records that are lost.

use std::path::Path;

use super::short::{SHORT_HEADER_BYTES, SHORT_RECORD_BYTES_MAX, ShortHeader};
use super::window::Window;
use super::{ALIGNMENT, BLOCK_BYTES, HEADER_BYTES, Header, Kind, Owner};
use crate::error::{Error, Result};
use crate::fs::ReadableFile;
use crate::key::FileId;

/// What a look past the last good record found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Scan {
    /// The first header of this file.
    pub(crate) first: Option<u64>,
    /// The highest watermark that a header of this file has.
    pub(crate) watermark: u64,
    /// A header says that the file before this one is durable.
    pub(crate) predecessor_durable: bool,
}

/// Looks from `offset` to the file's end for headers of the file `id`, at every
/// place where one can start. A header speaks for itself: its payload may be
/// lost, but what it says was true when it was written.
pub(crate) fn scan(file: &dyn ReadableFile, path: &Path, id: FileId, offset: u64) -> Result<Scan> {
    let failed = |during| move |error| Error::io(path, during, error);
    let end = file.length().map_err(failed("get length of"))?;
    let owner = Owner::new(id);
    let (mut window, mut found) = (Window::default(), Scan::default());
    let mut at = offset.next_multiple_of(ALIGNMENT as u64);
    while end.saturating_sub(at) >= HEADER_BYTES as u64 {
        if !window.fill(file, at, HEADER_BYTES, end).map_err(failed("read"))? {
            break; // the file became shorter
        }
        for bytes in window.from(at).windows(HEADER_BYTES).step_by(ALIGNMENT) {
            let bytes = bytes.first_chunk().expect("the window is a header long");
            if let Some(header) = Header::decode(bytes, owner, at) {
                found.first.get_or_insert(at);
                found.watermark = found.watermark.max(header.watermark);
                found.predecessor_durable |= header.kind == Kind::PredecessorDurable as u8;
            }
            at += ALIGNMENT as u64;
        }
    }
    Ok(found)
}

/// The first sound short record behind `offset` in its block: [`scan`] finds none. It is
/// no witness, but tells that something of the file stood between.
pub(crate) fn find_short(
    file: &dyn ReadableFile,
    path: &Path,
    id: FileId,
    offset: u64,
) -> Result<Option<u64>> {
    let failed = |during| move |error| Error::io(path, during, error);
    let length = file.length().map_err(failed("get length of"))?;
    let owner = Owner::new(id);
    let block_end = (offset / BLOCK_BYTES + 1) * BLOCK_BYTES;
    let first = (offset + 1).next_multiple_of(ALIGNMENT as u64);
    let end = length.min(block_end + SHORT_RECORD_BYTES_MAX as u64);
    let mut window = Window::default();
    let here = (end.saturating_sub(first)) as usize;
    if here == 0 || !window.fill(file, first, here, end).map_err(failed("read"))? {
        return Ok(None);
    }
    let is_sound = |at: &u64| {
        let bytes = window.from(*at);
        let header = bytes.first_chunk().and_then(|&bytes| ShortHeader::decode(bytes, owner));
        let whole = header.and_then(|header| Some((header, bytes.get(..header.record_bytes())?)));
        whole.is_some_and(|(header, record)| header.is_sound(record, owner, *at))
    };
    let places_end = end.min(block_end).saturating_sub(SHORT_HEADER_BYTES as u64 - 1);
    Ok((first..places_end).step_by(ALIGNMENT).find(is_sound))
}
