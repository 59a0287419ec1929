//! A seek whose blocks are read at once: each source by itself would wait for a
//! device, one after the other.

use std::io;

use super::Source;
use crate::fs::{Fs, ReadRequest, ReadStream};

/// Reads what `foresee` says of each source, and supplies it. What a single source
/// needs is left to its seek.
pub(super) fn read_together(
    fs: &dyn Fs,
    sources: &mut [Source],
    foresee: impl Fn(&mut Source) -> Option<ReadRequest>,
) {
    let mut waiting = Vec::with_capacity(sources.len());
    let mut requests = Vec::with_capacity(sources.len());
    for source in sources {
        if let Some(request) = foresee(source) {
            waiting.push(source);
            requests.push(request);
        }
    }
    if requests.len() > 1 {
        fs.read_many(&mut SeekReads { requests: requests.into_iter(), waiting });
    }
}

struct SeekReads<'s> {
    requests: std::vec::IntoIter<ReadRequest>,
    /// Whose each of them is.
    waiting: Vec<&'s mut Source>,
}

impl ReadStream for SeekReads<'_> {
    fn next(&mut self) -> Option<ReadRequest> {
        self.requests.next()
    }

    fn answer(&mut self, index: usize, read: io::Result<&[u8]>) {
        self.waiting[index].supply(read);
    }
}
