//! The end of a process, and of a machine.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::inode::Inode;
use super::{Change, Entry, MemFs, State, is_root, parent};
use crate::sync::{Arc, StepMutex};

/// How much of what was not synced a power loss keeps.
#[derive(Clone, Copy, Debug)]
enum Keep {
    Nothing,
    All,
    /// All up to some moment, as on a file system that orders its writes.
    Prefix,
    /// Any part, in any order.
    Any,
}

impl MemFs {
    /// What a machine that lost its power now would find when it starts again.
    /// This file system stops; it can be asked again, with another seed.
    pub fn crash(&self, seed: u64) -> MemFs {
        let mut state = self.state.lock();
        state.stopped = true;
        let mut random = Random(seed);
        let mut entries = state.durable.clone();
        let keep = random.keep();
        let moment = random.up_to(state.changes.len());
        for (index, change) in state.changes.iter().enumerate() {
            let kept = match keep {
                Keep::Nothing => false,
                Keep::All => true,
                Keep::Prefix => index < moment,
                Keep::Any => random.up_to(1) == 1,
            };
            if kept {
                change.apply(&mut entries);
            }
        }
        drop_orphans(&mut entries);
        copy_files(&mut entries, |inode| {
            let keep = random.keep();
            let mut moment = None;
            inode.after_power_loss(|edits| match keep {
                Keep::Nothing => 0,
                Keep::All => edits,
                Keep::Prefix => *moment.get_or_insert_with(|| random.up_to(edits)),
                Keep::Any => random.up_to(edits),
            })
        });
        let durable = entries.clone();
        MemFs::from_parts(self.capabilities, entries, durable, Vec::new())
    }

    /// What the next process finds if this one is killed now: everything, but
    /// not yet durable. Locks are free. This file system stops.
    pub fn kill(&self) -> MemFs {
        let mut state = self.state.lock();
        state.stopped = true;
        self.copy_of(&state)
    }

    /// A file system of its own with all that is here, durable or not, as
    /// [`MemFs::kill`] would leave it; this one goes on. A test that keeps one
    /// after each call has every crash of a run without playing it again.
    pub fn fork(&self) -> MemFs {
        self.copy_of(&self.state.lock())
    }

    fn copy_of(&self, state: &State) -> MemFs {
        let mut entries = state.entries.clone();
        let mut durable = state.durable.clone();
        let mut changes = state.changes.clone();
        let mut copies = Copies::new();
        for entry in entries.values_mut().chain(durable.values_mut()) {
            copies.replace(entry, &mut Inode::clone);
        }
        for change in &mut changes {
            if let Change::Add { entry, .. } | Change::Rename { entry, .. } = change {
                copies.replace(entry, &mut Inode::clone);
            }
        }
        let last_append = state.last_append.as_ref();
        let last_append = last_append.and_then(|(file, length)| {
            let copy = copies.0.iter().find(|(old, _)| Arc::ptr_eq(old, file))?;
            Some((Arc::clone(&copy.1), *length))
        });
        let copy = MemFs::from_parts(self.capabilities, entries, durable, changes);
        copy.state.lock().last_append = last_append;
        copy
    }

    /// Takes back a part of the last change of all, if that was an append: the
    /// process was killed inside it. False if it was something else.
    pub fn tear_last_append(&self, seed: u64) -> bool {
        let Some((file, length)) = self.state.lock().last_append.take() else { return false };
        let kept = Random(seed).up_to(length.saturating_sub(1));
        file.lock().shorten_last_write(kept);
        true
    }
}

/// Removes what lies in directories that are not there.
fn drop_orphans(entries: &mut BTreeMap<PathBuf, Entry>) {
    // A directory precedes what is in it.
    let all: Vec<PathBuf> = entries.keys().cloned().collect();
    for path in all {
        let above = parent(&path);
        if !is_root(above) && !matches!(entries.get(above), Some(Entry::Directory)) {
            entries.remove(&path);
        }
    }
}

/// Gives `entries` files of their own, made from the old ones by `make`.
fn copy_files(entries: &mut BTreeMap<PathBuf, Entry>, mut make: impl FnMut(&Inode) -> Inode) {
    let mut copies = Copies::new();
    for entry in entries.values_mut() {
        copies.replace(entry, &mut make);
    }
}

/// Old files and what replaces them, so that two names of one file stay that.
struct Copies(Vec<(File, File)>);

type File = Arc<StepMutex<Inode>>;

impl Copies {
    fn new() -> Copies {
        Copies(Vec::new())
    }

    fn replace(&mut self, entry: &mut Entry, make: &mut impl FnMut(&Inode) -> Inode) {
        let Entry::File(old) = entry else { return };
        let known = self.0.iter().find(|(from, _)| Arc::ptr_eq(from, old));
        let new = match known {
            Some((_, new)) => Arc::clone(new),
            None => {
                let new = Arc::new(StepMutex::new(make(&old.lock())));
                self.0.push((Arc::clone(old), Arc::clone(&new)));
                new
            }
        };
        *entry = Entry::File(new);
    }
}

/// How much a process that is killed inside a write of `length` bytes has
/// written: from nothing to all, always the same at the same position.
pub(super) fn part_of_last_append(position: u64, length: usize) -> usize {
    Random(position ^ length as u64).up_to(length)
}

/// The SplitMix64 generator (Steele, Lea, Flood 2014).
pub(super) struct Random(pub(super) u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    /// A number from 0 to `limit`, both included.
    pub(super) fn up_to(&mut self, limit: usize) -> usize {
        (self.next() % (limit as u64 + 1)) as usize
    }

    fn keep(&mut self) -> Keep {
        [Keep::Nothing, Keep::All, Keep::Prefix, Keep::Any][self.up_to(3)]
    }
}
