//! Replaying the log: which records count, and what it means where they end.
//!
//! The segments that count form a chain: from the newest one that was begun,
//! back through what each header says of its predecessor. Other files are
//! leftovers of crashes. Then the chain is read from its oldest segment on. Where
//! a segment does not hold what it should:
//!
//! - something later proves that the missing bytes were durable: `Corruption`;
//! - nothing does: an unsynced tail was lost; it is cut there, and nothing
//!   later is replayed, because that would leave a hole.
//!
//! Proof is a later header in the same file with a watermark above the place;
//! such a watermark in the next segment's header, which knows it from sealing,
//! or in the manifest, which knows the newest synced segment; or, in any later
//! segment, a watermark at all or the note that its predecessors are durable, or
//! that it is the one that the manifest knows (see the invariants in `wal`).

use std::path::{Path, PathBuf};

use super::header::{self, Access, Found, HEADER_BLOCK_BYTES, Predecessor, SegmentHeader};
use super::{BatchReader, DurableLog, nearest_record};
use crate::error::{Error, Result};
use crate::filename;
use crate::fs::{Fs, ReadableFile};
use crate::key::FileId;
use crate::record::{End, Next, scan};
use crate::sync::Arc;

/// What was replayed, and what was not.
#[derive(Debug, Default)]
pub(crate) struct Recovery {
    /// The segments that were replayed, oldest first. Nothing may be appended
    /// to them: the next record goes to a new segment.
    pub(crate) segments: Vec<Recovered>,
    /// Where an unsynced tail was lost, if one was: at most one place, since
    /// nothing after it is replayed.
    pub(crate) cut: Option<Cut>,
    /// All segments that were begun, replayed or not.
    pub(crate) begun: Vec<Origin>,
}

/// What the manifest says of the log.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Expected<'a> {
    pub(crate) directory: &'a Path,
    /// The database whose log it is.
    pub(crate) database: FileId,
    /// Segments below this are of no interest.
    pub(crate) first_live: u64,
    /// The newest that was synced, unless it is below.
    pub(crate) durable: DurableLog,
}

/// Where a segment comes from.
#[derive(Clone, Debug)]
pub(crate) struct Origin {
    pub(crate) path: PathBuf,
    pub(crate) header: SegmentHeader,
    /// The last edit of the manifest that it knows of.
    pub(crate) manifest_edit: u64,
}

impl Recovery {
    /// What the next segment's header says of its predecessor.
    pub(crate) fn as_predecessor(&self) -> Option<Predecessor> {
        self.segments.last().map(|last| Predecessor {
            number: last.header.number,
            id: last.header.id,
            bytes: last.bytes,
            watermark: last.watermark,
            checksum: last.checksum,
        })
    }
}

/// One segment that was replayed.
#[derive(Clone, Debug)]
pub(crate) struct Recovered {
    pub(crate) header: SegmentHeader,
    /// Where its last good record ends.
    pub(crate) bytes: u64,
    /// Known to have been durable up to here. The rest may be in the page
    /// cache only, see `sync_recovered`.
    pub(crate) watermark: u64,
    /// The checksum of its records.
    pub(crate) checksum: u32,
    /// The last edit of the manifest that its records know of.
    manifest_edit: u64,
}

/// Where the replay ended early.
#[derive(Clone, Debug)]
pub(crate) struct Cut {
    pub(crate) path: PathBuf,
    pub(crate) offset: u64,
    /// What is wrong there.
    pub(crate) what: String,
}

/// Where a record is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place<'a> {
    pub(crate) number: u64,
    pub(crate) path: &'a Path,
    pub(crate) offset: u64,
}

/// Gives every record of the log to `visit`, in order. `segments` are the log
/// files (number and path) that are there.
///
/// # Errors
/// `Io`; `Incompatible`; what `visit` returns; `Corruption` where acknowledged
/// records are missing or damaged. Records may have been visited before any of
/// these.
pub(crate) fn recover(
    fs: &dyn Fs,
    expected: Expected<'_>,
    segments: &[(u64, PathBuf)],
    access: Access,
    visit: &mut dyn FnMut(Place<'_>, &[u8]) -> Result<()>,
) -> Result<Recovery> {
    let Expected { first_live, durable, .. } = expected;
    let mut candidates = Vec::new();
    for (number, path) in segments.iter().filter(|(number, _)| *number >= first_live) {
        candidates.push(Candidate::open(fs, *number, path, expected, access)?);
    }
    candidates.sort_by_key(|candidate| candidate.number);
    if durable.number >= first_live.max(1) {
        check_there(&candidates, segments, expected)?;
    }
    let (chain, mut cut) = find_chain(&candidates, expected)?;
    let mut recovered = Vec::new();
    for (position, segment) in chain.iter().enumerate() {
        let later = &chain[position + 1..];
        let (done, lost) = replay(segment, later, durable, visit)?;
        recovered.push(done);
        if lost.is_some() {
            cut = lost;
            break;
        }
    }
    let begun = candidates.iter().filter_map(as_link);
    let begun = begun.map(|link| origin(&link, &recovered)).collect::<Result<_>>()?;
    Ok(Recovery { segments: recovered, cut, begun })
}

/// # Errors
/// `Corruption` if the segment that was synced last is not there.
fn check_there(
    candidates: &[Candidate],
    segments: &[(u64, PathBuf)],
    Expected { directory, durable, .. }: Expected<'_>,
) -> Result<()> {
    let mut begun = candidates.iter().filter_map(as_link);
    if begun.any(|link| link.header.number == durable.number) {
        return Ok(());
    }
    let bytes = durable.bytes;
    if let Some((_, path)) = segments.iter().find(|(number, _)| *number == durable.number) {
        let what = format!("the log has no header; by the manifest it goes to {bytes}");
        return Err(Error::corruption(path, 0, what));
    }
    let path = filename::log_path(directory, durable.number);
    let what = format!("the log is missing; by the manifest it goes to {bytes}");
    Err(Error::corruption(&path, 0, what))
}

/// Where a segment comes from; one that is not replayed is read for that.
fn origin(link: &Link<'_>, recovered: &[Recovered]) -> Result<Origin> {
    let Link { path, file, header } = *link;
    let done = recovered.iter().find(|done| done.header.number == header.number);
    let noted = match done {
        Some(done) => done.manifest_edit,
        None => {
            let (file, start) = (Arc::clone(file), HEADER_BLOCK_BYTES);
            let mut reader = BatchReader::new(file, path, header, start, u64::MAX);
            while let Next::Record { .. } = reader.next()? {}
            reader.records().manifest_edit()
        }
    };
    let manifest_edit = noted.max(header.manifest_edit);
    Ok(Origin { path: path.to_path_buf(), header: header.clone(), manifest_edit })
}

/// A file that may be a segment.
struct Candidate {
    number: u64,
    path: PathBuf,
    file: Arc<dyn ReadableFile>,
    /// `None` if the segment was not begun.
    header: Option<SegmentHeader>,
}

impl Candidate {
    fn open(
        fs: &dyn Fs,
        number: u64,
        path: &Path,
        Expected { database, first_live, .. }: Expected<'_>,
        access: Access,
    ) -> Result<Candidate> {
        let file = fs.open(path).map_err(|error| Error::io(path, "open", error))?;
        let header = match header::read(&*file, path, number, access)? {
            Found::Header(header) if header.database != database => {
                let found = header.database;
                let what = format!("the log is of database {found}; this is database {database}");
                return Err(Error::corruption(path, 0, what));
            }
            Found::Header(header) => Some(*header),
            Found::Nothing => None,
            // Only segments that nobody needs are recycled: a crash between
            // the new name and the new header leaves one of those.
            Found::Other { number: other } if other < first_live => None,
            Found::Other { number: other } => {
                let what = format!("this is log {other}, and should be log {number}");
                return Err(Error::corruption(path, 0, what));
            }
        };
        Ok(Candidate { number, path: path.to_path_buf(), file, header })
    }
}

/// A segment of the chain.
#[derive(Clone, Copy)]
struct Link<'a> {
    path: &'a Path,
    file: &'a Arc<dyn ReadableFile>,
    header: &'a SegmentHeader,
}

/// The segments that count, oldest first; and the cut, if the ones after a
/// missing segment do not.
fn find_chain<'c>(
    candidates: &'c [Candidate],
    Expected { directory, first_live, durable, .. }: Expected<'_>,
) -> Result<(Vec<Link<'c>>, Option<Cut>)> {
    let mut cut = None;
    let mut below = u64::MAX;
    while let Some(newest) = candidates.iter().rev().filter(|c| c.number < below).find_map(as_link)
    {
        let mut chain = vec![newest];
        let missing = loop {
            let successor = chain.last().expect("the chain has its newest");
            let Some(wanted) = successor.header.predecessor else {
                break None;
            };
            if wanted.number < first_live {
                break None;
            }
            let candidate = candidates.iter().find(|c| c.number == wanted.number);
            let Some(found) = candidate.and_then(as_link) else {
                break Some(wanted);
            };
            if found.header.id != wanted.id {
                let (has, needs, by) = (found.header.id, wanted.id, successor.header.number);
                let what = format!("log has id {has}; by log {by} it should have {needs}");
                return Err(Error::corruption(found.path, 0, what));
            }
            chain.push(found);
        };
        chain.reverse();
        let Some(missing) = missing else {
            return Ok((chain, cut));
        };
        let oldest = chain[0];
        if missing.watermark > 0 || prove_durable(&chain, durable)? {
            let path = filename::log_path(directory, missing.number);
            let what = format!("the log is missing; log {} follows it", oldest.header.number);
            return Err(Error::corruption(&path, 0, what));
        }
        let what = format!("log {}, which comes before this one, is missing", missing.number);
        cut = Some(Cut { path: oldest.path.to_path_buf(), offset: 0, what });
        below = missing.number;
    }
    Ok((Vec::new(), cut))
}

fn as_link(candidate: &Candidate) -> Option<Link<'_>> {
    let header = candidate.header.as_ref()?;
    Some(Link { path: &candidate.path, file: &candidate.file, header })
}

/// True if one of `later` shows that every segment before it was durable, or is
/// the one of which the manifest knows that.
fn prove_durable(later: &[Link<'_>], durable: DurableLog) -> Result<bool> {
    for (position, link) in later.iter().enumerate() {
        if link.header.number == durable.number {
            return Ok(true);
        }
        // What the first one's header says is about the segment in question.
        let sealed = link.header.predecessor.filter(|_| position > 0);
        if sealed.is_some_and(|sealed| sealed.watermark > 0) {
            return Ok(true);
        }
        let found = scan(&**link.file, link.path, link.header.id, HEADER_BLOCK_BYTES)?;
        if found.watermark > 0 || found.predecessor_durable {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Visits the records of one segment, and says if something is missing at its
/// end. `later` is the rest of the chain.
fn replay(
    link: &Link<'_>,
    later: &[Link<'_>],
    durable: DurableLog,
    visit: &mut dyn FnMut(Place<'_>, &[u8]) -> Result<()>,
) -> Result<(Recovered, Option<Cut>)> {
    let Link { path, file, header } = *link;
    let sealed = later.first().map(|next| next.header.predecessor.expect("the chain links them"));
    let limit = sealed.map_or(u64::MAX, |sealed| sealed.bytes);
    let mut reader = BatchReader::new(Arc::clone(file), path, header, HEADER_BLOCK_BYTES, limit);
    let end = loop {
        match reader.next()? {
            Next::Record { offset, payload, .. } => {
                visit(Place { number: header.number, path, offset }, payload)?;
            }
            Next::End(end) => break end,
        }
    };
    let records = reader.records();
    let bytes = records.offset();
    let recovered = Recovered {
        header: header.clone(),
        bytes,
        watermark: records.watermark(),
        checksum: records.checksum(),
        manifest_edit: records.manifest_edit(),
    };
    let of_manifest = if durable.number == header.number { durable.bytes } else { 0 };
    let known = sealed.map_or(0, |sealed| sealed.watermark).max(of_manifest);
    let lost = match sealed {
        Some(sealed) => examine_sealed(link, &recovered, sealed, end)?,
        None if known > bytes => Some(format!("the log ends, but was durable up to {known}")),
        None => examine_newest(link, end)?,
    };
    let Some(what) = lost else {
        return Ok((recovered, None));
    };
    if known > bytes || scan_past(link, bytes)?.watermark > bytes || prove_durable(later, durable)?
    {
        return Err(Error::corruption(path, bytes, what));
    }
    Ok((recovered, Some(Cut { path: path.to_path_buf(), offset: bytes, what })))
}

/// What is missing at the end of a segment that has a successor.
fn examine_sealed(
    link: &Link<'_>,
    recovered: &Recovered,
    sealed: Predecessor,
    end: End,
) -> Result<Option<String>> {
    if recovered.bytes == sealed.bytes {
        if recovered.checksum == sealed.checksum {
            return Ok(None);
        }
        // Every record is sound, yet they are not those that were written: no
        // lost tail looks like this.
        let what = "the log's records are not those that its successor knows";
        return Err(Error::corruption(link.path, sealed.bytes, what));
    }
    let what = match end {
        End::Clean { .. } => "the file ends",
        End::Foreign { .. } => "no record is here",
        End::Torn { what, .. } => what,
    };
    Ok(Some(format!("{what}, but its successor knows records up to {}", sealed.bytes)))
}

/// What is missing at the end of the newest segment.
fn examine_newest(link: &Link<'_>, end: End) -> Result<Option<String>> {
    Ok(match end {
        End::Clean { .. } => None,
        End::Torn { what, .. } => Some(what.to_string()),
        // In a recycled file that is the usual end, unless more records follow.
        End::Foreign { offset } => {
            let past = scan_past(link, offset)?;
            let next = nearest_record(&**link.file, link.path, link.header, offset, &past)?;
            next.map(|next| format!("no record is here, but there is one at {next}"))
        }
    })
}

/// Looks for headers after the bad place at `offset`.
fn scan_past(link: &Link<'_>, offset: u64) -> Result<crate::record::Scan> {
    scan(&**link.file, link.path, link.header.id, offset)
}
