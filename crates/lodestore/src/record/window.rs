//! A part of a file in memory, that moves on through it.

use crate::fs::ReadableFile;

/// Bytes read at once.
const CHUNK_BYTES: usize = 256 << 10;

/// A part of a file in memory.
#[derive(Debug, Default)]
pub(super) struct Window {
    start: u64,
    pub(super) bytes: Vec<u8>,
}

impl Window {
    /// What is here from `offset` on.
    pub(super) fn from(&self, offset: u64) -> &[u8] {
        &self.bytes[(offset - self.start) as usize..]
    }

    /// `count` bytes at `offset`, which [`Window::fill`] has brought here.
    pub(super) fn slice(&self, offset: u64, count: usize) -> &[u8] {
        &self.from(offset)[..count]
    }

    /// Brings at least `count` bytes from `offset` here, which must be below
    /// `end`; never goes back. False if the file turns out shorter.
    pub(super) fn fill(
        &mut self,
        file: &dyn ReadableFile,
        offset: u64,
        count: usize,
        end: u64,
    ) -> std::io::Result<bool> {
        let here = self.start + self.bytes.len() as u64;
        if self.start <= offset && offset + count as u64 <= here {
            return Ok(true);
        }
        if (self.start..here).contains(&offset) {
            self.bytes.drain(..(offset - self.start) as usize);
        } else {
            self.bytes.clear();
        }
        self.start = offset;
        let mut filled = self.bytes.len();
        let wanted = count.max(CHUNK_BYTES).min((end - offset) as usize);
        self.bytes.resize(wanted, 0);
        while filled < wanted {
            match file.read_at(offset + filled as u64, &mut self.bytes[filled..]) {
                Ok(0) => break,
                Ok(more) => filled += more,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => {
                    self.bytes.clear();
                    return Err(error);
                }
            }
        }
        self.bytes.truncate(filled);
        Ok(filled >= count)
    }
}
