//! Reads past the page cache.
//!
//! requests -> [`Span`]s: neighbours of one file together, from where to where a
//! device can read -> `ring`, or threads where there is none -> the requests
//!
//! What the ring could not do (short reads and errors too) is read once more one by
//! one, which also tells the error.

use std::any::Any;
use std::cell::Cell;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;

use super::super::{ReadRequest, ReadResult, ReadableFile, read_full_at};
use crate::sync::{Arc, thread};

/// Devices read and write whole blocks; none in use has larger ones.
const ALIGN: usize = 4096;
/// Neighbours are read together up to this, one read at a time otherwise.
const SPAN_BYTES_MAX: usize = 64 << 10;
/// A single read goes to the device in pieces of at most this.
const PIECE_BYTES_MAX: usize = 256 << 10;
/// Threads that read at once where there is no ring.
const THREADS_MAX: usize = 16;
/// So many reads are worth a thread.
const READS_A_THREAD: usize = 4;

#[derive(Clone, Copy)]
#[repr(C, align(4096))]
struct Page([u8; ALIGN]);

/// Memory where a device may write to.
#[derive(Default)]
pub(super) struct Pages(Vec<Page>);

impl Pages {
    /// At least `bytes` bytes.
    pub(super) fn at_least(&mut self, bytes: usize) -> &mut [u8] {
        let pages = bytes.div_ceil(ALIGN);
        if self.0.len() < pages {
            self.0.resize(pages, Page([0; ALIGN]));
        }
        // SAFETY: pages are bytes, one after the other without gaps.
        unsafe { std::slice::from_raw_parts_mut(self.0.as_mut_ptr().cast(), self.0.len() * ALIGN) }
    }
}

thread_local! {
    /// Kept for the next read of the thread, unless it got large.
    static PAGES: Cell<Pages> = Cell::default();
}

/// A file whose pages the kernel does not keep.
#[derive(Debug)]
pub(super) struct DirectFile(pub(super) File);

impl ReadableFile for DirectFile {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let mut pages = PAGES.take();
        let result = read_in_pieces(&self.0, offset, buffer, &mut pages);
        if pages.0.len() * ALIGN <= SPAN_BYTES_MAX {
            PAGES.set(pages);
        }
        result
    }

    fn length(&self) -> io::Result<u64> {
        Ok(self.0.metadata()?.len())
    }
}

fn read_in_pieces(
    file: &File,
    offset: u64,
    buffer: &mut [u8],
    pages: &mut Pages,
) -> io::Result<usize> {
    let mut done = 0;
    while done < buffer.len() {
        let at = offset + done as u64;
        let skipped = (at % ALIGN as u64) as usize;
        let wanted = (skipped + buffer.len() - done).min(PIECE_BYTES_MAX).next_multiple_of(ALIGN);
        let piece = &mut pages.at_least(wanted)[..wanted];
        let read = match file.read_at(piece, at - skipped as u64) {
            Ok(read) => read,
            Err(_) if done > 0 => break, // the next call meets it again
            Err(error) => return Err(error),
        };
        let here = read.saturating_sub(skipped).min(buffer.len() - done);
        buffer[done..done + here].copy_from_slice(&piece[skipped..skipped + here]);
        done += here;
        if read < wanted {
            break; // the end of the file
        }
    }
    Ok(done)
}

/// Neighbouring requests of one file, as one read.
pub(super) struct Span<'a> {
    pub(super) file: &'a File,
    /// A multiple of what devices read.
    pub(super) offset: u64,
    /// Likewise.
    pub(super) bytes: usize,
    requests: Range<usize>,
}

impl Span<'_> {
    /// Hands the requests what is theirs of `read`, which begins at `offset`.
    /// False, and nothing done, if that does not have all of it.
    fn share(
        &self,
        read: &[u8],
        requests: &mut [ReadRequest],
        complete: &mut dyn FnMut(usize, ReadResult),
    ) -> bool {
        let start = |request: &ReadRequest| (request.offset - self.offset) as usize;
        let ends = |request: &ReadRequest| start(request) + request.buffer.len();
        if requests[self.requests.clone()].iter().any(|request| ends(request) > read.len()) {
            return false;
        }
        for index in self.requests.clone() {
            let request = &mut requests[index];
            let range = start(request)..ends(request);
            let mut buffer = std::mem::take(&mut request.buffer);
            buffer.copy_from_slice(&read[range]);
            complete(index, Ok(buffer));
        }
        true
    }
}

/// The file behind `file`; `None` if that is not a direct one.
fn direct(file: &dyn ReadableFile) -> Option<&File> {
    let file: &dyn Any = file;
    file.downcast_ref::<DirectFile>().map(|file| &file.0)
}

/// True if all of `reads` go past the page cache.
pub(super) fn are_direct(reads: &[ReadRequest]) -> bool {
    reads.iter().all(|read| direct(&*read.file).is_some())
}

/// The reads that serve `files` and `places` (offset and length, by request).
fn spans<'a>(files: &[&'a File], places: &[(u64, usize)]) -> Vec<Span<'a>> {
    let mut spans: Vec<Span<'a>> = Vec::new();
    for (index, (&file, &(offset, length))) in files.iter().zip(places).enumerate() {
        let start = offset / ALIGN as u64 * ALIGN as u64;
        let end = (offset + length as u64).next_multiple_of(ALIGN as u64);
        if let Some(last) = spans.last_mut()
            && std::ptr::eq(last.file, file)
            && (last.offset..=last.offset + last.bytes as u64).contains(&start)
            && end - last.offset <= SPAN_BYTES_MAX as u64
        {
            last.bytes = last.bytes.max((end - last.offset) as usize);
            last.requests.end = index + 1;
            continue;
        }
        let bytes = (end - start) as usize;
        spans.push(Span { file, offset: start, bytes, requests: index..index + 1 });
    }
    spans
}

/// [`Fs::read_many`](super::super::Fs::read_many) of direct files.
pub(super) fn read_many(mut reads: Vec<ReadRequest>, complete: &mut dyn FnMut(usize, ReadResult)) {
    let kept: Vec<Arc<dyn ReadableFile>> = reads.iter().map(|read| read.file.clone()).collect();
    let files = kept.iter().map(|file| direct(&**file).expect("all files were looked at"));
    let files: Vec<&File> = files.collect();
    let places: Vec<_> = reads.iter().map(|read| (read.offset, read.buffer.len())).collect();
    let spans = spans(&files, &places);
    let mut is_done = vec![false; spans.len()];
    #[cfg(target_os = "linux")]
    if spans.len() > 1 {
        super::ring::read(&spans, &mut |index, read| {
            is_done[index] = spans[index].share(read, &mut reads, complete);
        });
    }
    let rest = spans.iter().zip(is_done).filter(|(_, is_done)| !is_done);
    let rest: Vec<usize> = rest.flat_map(|(span, _)| span.requests.clone()).collect();
    read_one_by_one(&mut reads, &rest, complete);
}

/// Reads those of `reads` that `rest` names, by several threads if they are many.
fn read_one_by_one(
    reads: &mut [ReadRequest],
    rest: &[usize],
    complete: &mut dyn FnMut(usize, ReadResult),
) {
    let mut buffers: Vec<Vec<u8>> =
        rest.iter().map(|&index| std::mem::take(&mut reads[index].buffer)).collect();
    let threads = (rest.len() / READS_A_THREAD).clamp(1, THREADS_MAX);
    let part = rest.len().div_ceil(threads).max(1);
    let parts = rest.chunks(part).zip(buffers.chunks_mut(part));
    let reads = &*reads;
    let read_part = |indices: &[usize], buffers: &mut [Vec<u8>]| -> Vec<(usize, ReadResult)> {
        let one = |(&index, buffer): (&usize, &mut Vec<u8>)| {
            let (mut buffer, request) = (std::mem::take(buffer), &reads[index]);
            let result = read_full_at(&*request.file, request.offset, &mut buffer);
            (index, result.map(|()| buffer))
        };
        indices.iter().zip(buffers).map(one).collect()
    };
    let done: Vec<(usize, ReadResult)> = if threads == 1 {
        parts.flat_map(|(indices, buffers)| read_part(indices, buffers)).collect()
    } else {
        thread::scope(|scope| {
            let begin = |(indices, buffers)| scope.spawn(move || read_part(indices, buffers));
            let begun: Vec<_> = parts.map(begin).collect();
            let ended = begun.into_iter().map(|thread| thread.join().expect("a read panicked"));
            ended.flatten().collect()
        })
    };
    done.into_iter().for_each(|(index, result)| complete(index, result));
}

#[cfg(all(test, not(simulation)))]
mod tests;
