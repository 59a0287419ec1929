//! A seek whose blocks are read at once: each source by itself would wait for a
//! device, one after the other.

use std::io;

use super::Source;
use crate::fs::{Fs, ReadRequest, ReadStream};

/// Reads what `foresee` says of each source, and supplies it.
pub(super) fn read_together(
    fs: &dyn Fs,
    sources: &mut [Source],
    foresee: impl Fn(&mut Source) -> Option<ReadRequest>,
) {
    fs.read_many(&mut SeekReads { sources, foresee, next: 0, asked: Vec::new() });
}

struct SeekReads<'s, F> {
    sources: &'s mut [Source],
    foresee: F,
    /// The first source that was not looked at.
    next: usize,
    /// Whose each read is.
    asked: Vec<usize>,
}

impl<F: Fn(&mut Source) -> Option<ReadRequest>> ReadStream for SeekReads<'_, F> {
    fn next(&mut self) -> Option<ReadRequest> {
        while let Some(source) = self.sources.get_mut(self.next) {
            let request = (self.foresee)(source);
            if request.is_some() {
                self.asked.push(self.next);
            }
            self.next += 1;
            if request.is_some() {
                return request;
            }
        }
        None
    }

    fn answer(&mut self, index: usize, read: io::Result<&[u8]>) {
        self.sources[self.asked[index]].supply(read);
    }
}
