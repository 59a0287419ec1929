//! A write that a disk puts in a wrong place.

use super::crash::Random;
use super::inode::{Inode, SECTOR_BYTES};
use super::{MemFs, State};
use crate::sync::{Arc, StepMutex};

impl MemFs {
    /// The `nth` append from now on (1: the next one) is said to be done, but
    /// its bytes go to a wrong place: another sector of some file of the same
    /// directory, chosen by `seed`. At its own place stands what was there, or
    /// zeros. Not of another directory, nor one with a second name there: whole
    /// files that lie about for a database to take in, or that it has just linked,
    /// could be replaced by others as good, which nobody would notice.
    pub fn misdirect(&self, nth: u64, seed: u64) {
        self.state.lock().misdirected = Some((nth.max(1), seed));
    }

    /// True while an append is still to be misdirected.
    pub fn will_misdirect(&self) -> bool {
        self.state.lock().misdirected.is_some()
    }
}

impl State {
    /// Where an append to `inode` at `position` goes.
    pub(super) fn place_of_append(
        &mut self,
        inode: &Arc<StepMutex<Inode>>,
        position: u64,
    ) -> (Arc<StepMutex<Inode>>, u64) {
        let own = (Arc::clone(inode), position);
        let Some((nth, seed)) = self.misdirected.take() else { return own };
        if nth > 1 {
            self.misdirected = Some((nth - 1, seed));
            return own;
        }
        let mut random = Random(seed);
        let files = self.files_beside(inode);
        let Some(last) = files.len().checked_sub(1) else { return own };
        let target = Arc::clone(files[random.up_to(last)]);
        let sectors = target.lock().length() as usize / SECTOR_BYTES;
        let offset = (random.up_to(sectors) * SECTOR_BYTES) as u64;
        (target, offset)
    }

    /// The files of the directory that `inode` is in, and of no other; none if it
    /// is in none any more.
    fn files_beside(&self, inode: &Arc<StepMutex<Inode>>) -> Vec<&Arc<StepMutex<Inode>>> {
        let files = self.entries.iter().filter_map(|(path, entry)| Some((path, entry.file()?)));
        let mut named = files.clone().filter(|(_, file)| Arc::ptr_eq(file, inode));
        let Some((own, _)) = named.next() else { return Vec::new() };
        let (beside, elsewhere): (Vec<_>, Vec<_>) =
            files.partition(|(path, _)| path.parent() == own.parent());
        let is_elsewhere =
            |file: &Arc<_>| elsewhere.iter().any(|(_, other)| Arc::ptr_eq(file, other));
        beside.into_iter().map(|(_, file)| file).filter(|file| !is_elsewhere(file)).collect()
    }
}
