//! One file: its content, and what of it would survive.

/// Disks write whole sectors.
pub(super) const SECTOR_BYTES: usize = 512;

/// A file's content now and at its last sync, and what happened between.
#[derive(Clone, Debug, Default)]
pub(super) struct Inode {
    content: Vec<u8>,
    durable: Vec<u8>,
    unsynced: Vec<Edit>,
}

#[derive(Clone, Debug)]
enum Edit {
    Write { offset: usize, bytes: Vec<u8> },
    Truncate { length: usize },
}

impl Edit {
    fn apply(&self, content: &mut Vec<u8>) {
        match self {
            Edit::Write { offset, bytes } => {
                let end = offset + bytes.len();
                if content.len() < end {
                    content.resize(end, 0);
                }
                content[*offset..end].copy_from_slice(bytes);
            }
            Edit::Truncate { length } => content.resize(*length, 0),
        }
    }

    /// What the edit does to the bytes from `start` to `end`, which it touches.
    fn apply_part(&self, content: &mut [u8], start: usize, end: usize) {
        match self {
            Edit::Write { offset, bytes } => {
                content[start..end].copy_from_slice(&bytes[start - offset..end - offset]);
            }
            Edit::Truncate { .. } => content[start..end].fill(0),
        }
    }
}

impl Inode {
    pub(super) fn length(&self) -> u64 {
        self.content.len() as u64
    }

    pub(super) fn read(&self, offset: u64, buffer: &mut [u8]) -> usize {
        let start = usize::try_from(offset).unwrap_or(usize::MAX).min(self.content.len());
        let count = buffer.len().min(self.content.len() - start);
        buffer[..count].copy_from_slice(&self.content[start..start + count]);
        count
    }

    pub(super) fn write(&mut self, offset: u64, bytes: &[u8]) {
        if !bytes.is_empty() {
            self.edit(Edit::Write { offset: offset as usize, bytes: bytes.to_vec() });
        }
    }

    pub(super) fn truncate(&mut self, length: u64) {
        if length as usize != self.content.len() {
            self.edit(Edit::Truncate { length: length as usize });
        }
    }

    fn edit(&mut self, edit: Edit) {
        edit.apply(&mut self.content);
        self.unsynced.push(edit);
    }

    /// Of the last edit, an unsynced write, only the first `kept` bytes came
    /// about.
    pub(super) fn shorten_last_write(&mut self, kept: usize) {
        let Some(Edit::Write { bytes, .. }) = self.unsynced.last_mut() else { return };
        bytes.truncate(kept);
        self.content = self.durable.clone();
        for edit in &self.unsynced {
            edit.apply(&mut self.content);
        }
    }

    pub(super) fn sync(&mut self) {
        for edit in self.unsynced.drain(..) {
            edit.apply(&mut self.durable);
        }
    }

    /// The file after a power loss. `choose(n)` gives a number up to n; it is
    /// asked once for the length and once for each sector how many of the n
    /// unsynced edits that part has seen.
    pub(super) fn after_power_loss(&self, mut choose: impl FnMut(usize) -> usize) -> Inode {
        let edits = self.unsynced.len();
        if edits == 0 {
            return Inode::synced(self.durable.clone());
        }
        let longest = self.longest();
        let mut content = self.durable.clone();
        content.resize(longest, 0);
        let mut length = self.durable.len();
        let length_sees = choose(edits);
        let sees: Vec<usize> = (0..longest.div_ceil(SECTOR_BYTES)).map(|_| choose(edits)).collect();
        for (index, edit) in self.unsynced.iter().enumerate() {
            let (from, to) = match edit {
                Edit::Write { offset, bytes } => (*offset, offset + bytes.len()),
                Edit::Truncate { length } => (*length, longest),
            };
            let touched = from / SECTOR_BYTES..to.div_ceil(SECTOR_BYTES);
            for (sector, &seen) in sees.iter().enumerate().skip(touched.start).take(touched.len()) {
                if index < seen {
                    let start = from.max(sector * SECTOR_BYTES);
                    let end = to.min((sector + 1) * SECTOR_BYTES);
                    edit.apply_part(&mut content, start, end);
                }
            }
            if index < length_sees {
                length = match edit {
                    Edit::Write { .. } => length.max(to),
                    Edit::Truncate { length } => *length,
                };
            }
        }
        content.truncate(length);
        content.resize(length, 0);
        Inode::synced(content)
    }

    /// The longest that the file was since its last sync.
    fn longest(&self) -> usize {
        let end = |edit: &Edit| match edit {
            Edit::Write { offset, bytes } => offset + bytes.len(),
            Edit::Truncate { length } => *length,
        };
        self.unsynced.iter().map(end).fold(self.durable.len(), usize::max)
    }

    /// What is on the disk when the machine starts again is what is there.
    fn synced(content: Vec<u8>) -> Inode {
        Inode { durable: content.clone(), content, unsynced: Vec::new() }
    }
}
