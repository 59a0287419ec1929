//! Many reads at once.
//!
//! Whoever wants them is a [`ReadStream`]: a file system asks it for one after the
//! other, as many as it can have under way, and hands in what they gave. So a
//! device is kept busy while the next reads are found out.

use std::io;
use std::sync::Arc;

use super::{ReadableFile, read_full_at};

/// A read of `length` bytes at `offset`.
#[derive(Clone, Debug)]
pub struct ReadRequest {
    /// The file to read.
    pub file: Arc<dyn ReadableFile>,
    /// Where to start.
    pub offset: u64,
    /// How much to read.
    pub length: usize,
}

/// Reads that are wanted one after the other, and where goes what they give.
pub trait ReadStream {
    /// The next read; `None` while there is none. Once reads that are under way are
    /// answered there may be one again.
    fn next(&mut self) -> Option<ReadRequest>;

    /// Takes all bytes of a read, or why it failed: of the read that was the
    /// `index`-th to be given by `next`, from 0 on. Each is answered once, in any
    /// order.
    fn answer(&mut self, index: usize, read: io::Result<&[u8]>);
}

/// So many reads wait for the device at once.
const WAITING_MAX: usize = 1024;

/// Through the page cache: what is in memory is served first, while the device is
/// told of all the rest, which is then waited for.
pub(super) fn read_with_hints(reads: &mut dyn ReadStream) {
    let (mut scratch, mut count) = (Vec::new(), 0);
    loop {
        let mut waiting = Vec::new();
        while waiting.len() < WAITING_MAX
            && let Some(read) = reads.next()
        {
            let buffer = at_least(&mut scratch, read.length);
            if read.file.read_if_cached(read.offset, buffer) {
                reads.answer(count, Ok(buffer));
            } else {
                read.file.will_need(read.offset, read.length as u64);
                waiting.push((count, read));
            }
            count += 1;
        }
        if waiting.is_empty() {
            return;
        }
        waiting
            .into_iter()
            .for_each(|(index, read)| answer_alone(reads, index, &read, &mut scratch));
    }
}

/// Does one read and answers it.
pub(super) fn answer_alone(
    reads: &mut dyn ReadStream,
    index: usize,
    read: &ReadRequest,
    scratch: &mut Vec<u8>,
) {
    let buffer = at_least(scratch, read.length);
    let result = read_full_at(&*read.file, read.offset, buffer);
    reads.answer(index, result.map(|()| &*buffer));
}

fn at_least(scratch: &mut Vec<u8>, length: usize) -> &mut [u8] {
    if scratch.len() < length {
        scratch.resize(length, 0);
    }
    &mut scratch[..length]
}

/// A list of reads, and a closure for their answers.
#[cfg(test)]
pub(crate) struct ReadList<F> {
    reads: std::vec::IntoIter<ReadRequest>,
    answer: F,
}

#[cfg(test)]
impl<F: FnMut(usize, io::Result<&[u8]>)> ReadList<F> {
    pub(crate) fn new(reads: Vec<ReadRequest>, answer: F) -> ReadList<F> {
        ReadList { reads: reads.into_iter(), answer }
    }
}

#[cfg(test)]
impl<F: FnMut(usize, io::Result<&[u8]>)> ReadStream for ReadList<F> {
    fn next(&mut self) -> Option<ReadRequest> {
        self.reads.next()
    }

    fn answer(&mut self, index: usize, read: io::Result<&[u8]>) {
        (self.answer)(index, read);
    }
}
