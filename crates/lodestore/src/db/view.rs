//! What a reader works on: a family's memtables and its version at one moment.
//!
//! A view is immutable and published as a whole. Readers take it without the
//! database's locks; whoever changes it holds the family's install lock, so
//! that no change is lost.

use crate::key::SequenceNumber;
use crate::memtable::Memtable;
use crate::sync::{Arc, Mutex, Published};
use crate::version::Version;

/// The homes of a family's entries, newest first.
#[derive(Clone)]
pub(crate) struct View {
    /// Takes new entries.
    pub(crate) active: Arc<Memtable>,
    /// Full memtables that wait for their flush, newest first.
    pub(crate) sealed: Vec<Arc<Memtable>>,
    /// The tables.
    pub(crate) version: Arc<Version>,
}

/// The published view of one family.
pub(crate) struct Views {
    view: Published<View>,
    install: Mutex<()>,
}

impl Views {
    pub(crate) fn new(view: View) -> Views {
        Views { view: Published::new(Arc::new(view)), install: Mutex::new(()) }
    }

    /// The view now, for a read that ends soon.
    #[inline]
    pub(crate) fn load(&self) -> impl std::ops::Deref<Target = Arc<View>> + '_ {
        self.view.load()
    }

    /// The view now, to keep.
    pub(crate) fn keep(&self) -> Arc<View> {
        self.view.load_full()
    }

    /// Makes `active` take new entries; the memtable that did is sealed.
    pub(crate) fn seal(&self, active: Arc<Memtable>) {
        self.change(|view| {
            let sealed = std::mem::replace(&mut view.active, active);
            view.sealed.insert(0, sealed);
        });
    }

    /// Makes `active` take new entries; the memtable that did is forgotten.
    pub(crate) fn begin(&self, active: Arc<Memtable>) {
        self.change(|view| view.active = active);
    }

    /// Puts `version` in place, and removes the memtables that it now contains,
    /// in one step: nothing is ever there twice.
    pub(crate) fn install(&self, version: Arc<Version>, flushed: &[&Arc<Memtable>]) {
        self.change(|view| {
            view.version = version;
            view.sealed.retain(|table| !flushed.iter().any(|flushed| Arc::ptr_eq(table, flushed)));
        });
    }

    fn change(&self, change: impl FnOnce(&mut View)) {
        let _alone = self.install.lock();
        let mut view = View::clone(&self.view.load_full());
        change(&mut view);
        self.view.store(Arc::new(view));
    }
}

/// The newest sequence number that readers may see, and its order of events:
/// a reader takes the view first and this number second, so that everything up
/// to the number that its view could hold is in the view.
#[derive(Debug, Default)]
pub(crate) struct VisibleSequence(crate::sync::atomic::AtomicU64);

impl VisibleSequence {
    pub(crate) fn new(sequence: SequenceNumber) -> VisibleSequence {
        VisibleSequence(crate::sync::atomic::AtomicU64::new(sequence))
    }

    /// After this, whatever was inserted before `publish` is seen.
    #[inline]
    pub(crate) fn get(&self) -> SequenceNumber {
        self.0.load(crate::sync::atomic::Ordering::Acquire)
    }

    pub(crate) fn publish(&self, sequence: SequenceNumber) {
        self.0.store(sequence, crate::sync::atomic::Ordering::Release);
    }
}

#[cfg(all(test, simulation))]
mod simulation;
