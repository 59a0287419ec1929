//! Reads past the page cache.
//!
//! requests -> [`Spans`]: neighbours of one file together, from where to where a
//! device can read -> `ring`, or threads where there is none -> answers
//!
//! What the ring could not do (short reads and errors too) is read once more one by
//! one, which also tells the error.

use std::any::Any;
use std::cell::Cell;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use super::super::reads::answer_alone;
use super::super::{BegunRead, ReadRequest, ReadStream, ReadableFile};
use crate::sync::{Arc, thread};

/// Devices read and write whole blocks; none in use has larger ones.
pub(super) const ALIGN: usize = 4096;
/// Neighbours are read together up to this, one read at a time otherwise.
const SPAN_BYTES_MAX: usize = 64 << 10;
/// A single read goes to the device in pieces of at most this.
const PIECE_BYTES_MAX: usize = 256 << 10;
/// Threads that read at once where there is no ring.
const THREADS_MAX: usize = 16;
/// So many reads are worth a thread.
const READS_A_THREAD: usize = 4;
/// So many are given to threads at a time.
const READS_TOGETHER: usize = THREADS_MAX * READS_A_THREAD;

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
pub(super) struct DirectFile(pub(super) Arc<File>);

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

    #[cfg(target_os = "linux")]
    fn begin_read(&self, offset: u64, length: usize) -> Option<Box<dyn BegunRead>> {
        let begun = super::in_flight::ReadInFlight::begin(&self.0, offset, length)?;
        Some(Box::new(begun))
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
#[derive(Debug)]
pub(super) struct Span {
    /// A multiple of what devices read.
    pub(super) offset: u64,
    /// Likewise.
    pub(super) bytes: usize,
    /// By index, in the order of the stream. Never empty.
    requests: Vec<(usize, ReadRequest)>,
}

impl Span {
    fn of(index: usize, request: ReadRequest) -> Span {
        let offset = request.offset / ALIGN as u64 * ALIGN as u64;
        let end = (request.offset + request.length as u64).next_multiple_of(ALIGN as u64);
        Span { offset, bytes: (end - offset) as usize, requests: vec![(index, request)] }
    }

    /// Takes `other` in if it is a neighbour and the two are not too long.
    fn join(&mut self, other: Span) -> Result<(), Span> {
        let own_end = self.offset + self.bytes as u64;
        let end = other.offset + other.bytes as u64;
        let is_neighbour = Arc::ptr_eq(&self.requests[0].1.file, &other.requests[0].1.file)
            && (self.offset..=own_end).contains(&other.offset);
        if !is_neighbour || end - self.offset > SPAN_BYTES_MAX as u64 {
            return Err(other);
        }
        self.bytes = self.bytes.max((end - self.offset) as usize);
        self.requests.extend(other.requests);
        Ok(())
    }

    /// The file, which is a direct one.
    pub(super) fn file(&self) -> &File {
        direct(&*self.requests[0].1.file).expect("others are read elsewhere")
    }

    fn has_all(&self, read: &[u8]) -> bool {
        let ends = |request: &ReadRequest| self.start(request) + request.length;
        self.requests.iter().all(|(_, request)| ends(request) <= read.len())
    }

    fn start(&self, request: &ReadRequest) -> usize {
        (request.offset - self.offset) as usize
    }
}

/// The reads of a stream as spans.
pub(super) struct Spans<'r> {
    reads: &'r mut dyn ReadStream,
    /// How many requests the stream has given.
    asked: usize,
    /// Come next: what was no neighbour of the one before, and what was given back.
    ahead: Vec<Span>,
    scratch: Vec<u8>,
}

impl<'r> Spans<'r> {
    fn new(reads: &'r mut dyn ReadStream) -> Spans<'r> {
        Spans { reads, asked: 0, ahead: Vec::new(), scratch: Vec::new() }
    }

    /// The next span; `None` while there is none.
    pub(super) fn next(&mut self) -> Option<Span> {
        let mut span = self.ahead.pop().or_else(|| self.ask())?;
        while self.ahead.is_empty()
            && let Some(next) = self.ask()
        {
            if let Err(next) = span.join(next) {
                self.ahead.push(next);
            }
        }
        Some(span)
    }

    /// The stream's next read past the page cache.
    fn ask(&mut self) -> Option<Span> {
        loop {
            let request = self.reads.next()?;
            let index = self.asked;
            self.asked += 1;
            if direct(&*request.file).is_some() {
                return Some(Span::of(index, request));
            }
            answer_alone(self.reads, index, &request, &mut self.scratch);
        }
    }

    /// Takes back a span that could not be read, to be given once more.
    pub(super) fn give_back(&mut self, span: Span) {
        self.ahead.push(span);
    }

    /// Answers the requests of `span` with what they have of `read`, which begins
    /// where it does; one by one if that is not all of it.
    pub(super) fn answer(&mut self, span: Span, read: &[u8]) {
        let is_whole = span.has_all(read);
        for (index, request) in &span.requests {
            let start = span.start(request);
            match is_whole {
                true => self.reads.answer(*index, Ok(&read[start..start + request.length])),
                false => answer_alone(self.reads, *index, request, &mut self.scratch),
            }
        }
    }
}

/// The file behind `file`; `None` if that is not a direct one.
fn direct(file: &dyn ReadableFile) -> Option<&File> {
    let file: &dyn Any = file;
    file.downcast_ref::<DirectFile>().map(|file| &*file.0)
}

/// True if `file` is read past the page cache.
pub(super) fn is_direct(file: &dyn ReadableFile) -> bool {
    direct(file).is_some()
}

/// [`Fs::read_many`](super::super::Fs::read_many) of direct files.
pub(super) fn read_many(reads: &mut dyn ReadStream) {
    let mut spans = Spans::new(reads);
    #[cfg(target_os = "linux")]
    super::ring::read(&mut spans);
    read_in_threads(&mut spans);
}

/// Reads what there is, by several threads where it is much.
fn read_in_threads(spans: &mut Spans<'_>) {
    loop {
        let together: Vec<Span> =
            std::iter::from_fn(|| spans.next()).take(READS_TOGETHER).collect();
        if together.is_empty() {
            return;
        }
        let read = |part: &[Span]| part.iter().map(read_alone).collect::<Vec<Vec<u8>>>();
        let contents: Vec<Vec<u8>> = if together.len() < 2 * READS_A_THREAD {
            read(&together)
        } else {
            thread::scope(|scope| {
                let parts = together.chunks(READS_A_THREAD);
                let begun: Vec<_> = parts.map(|part| scope.spawn(move || read(part))).collect();
                let ended = begun.into_iter().map(|thread| thread.join().expect("a read panicked"));
                ended.flatten().collect()
            })
        };
        together.into_iter().zip(contents).for_each(|(span, read)| spans.answer(span, &read));
    }
}

/// What can be read of a span at once: all of it, but where the file ends or a
/// read fails.
fn read_alone(span: &Span) -> Vec<u8> {
    let mut bytes = vec![0; span.bytes];
    let read = span.requests[0].1.file.read_at(span.offset, &mut bytes);
    bytes.truncate(read.unwrap_or(0));
    bytes
}

#[cfg(all(test, not(simulation)))]
mod tests;
