//! Views beside a writer that seals, a flush and a compaction.

use super::{View, Views, VisibleSequence};
use crate::budget::Account;
use crate::cursor::Cursor;
use crate::key::{KeyOrder, SequenceNumber};
use crate::memtable::Memtable;
use crate::sync::{Arc, Mutex, thread};
use crate::version::Version;
use testkit::explore::explore;

const ENTRIES: u64 = 6;

struct Database {
    views: Views,
    visible: VisibleSequence,
    /// What the tables of each version hold: entries up to this one. Changed as
    /// `Versions` does it, by one thread at a time, and only for versions that
    /// no view has yet.
    versions: Mutex<Vec<(Arc<Version>, SequenceNumber)>>,
}

impl Database {
    fn new(active: Arc<Memtable>) -> Database {
        let version = Arc::new(Version::empty(KeyOrder::Bytewise));
        let view = View { active, sealed: Vec::new(), version: Arc::clone(&version) };
        let versions = Mutex::new(vec![(version, 0)]);
        Database { views: Views::new(view), visible: VisibleSequence::new(0), versions }
    }

    /// Installs a version with the entries of `flushed`, or with what there is.
    fn install(&self, flushed: &[&Arc<Memtable>]) {
        let mut versions = self.versions.lock();
        let last = versions.last().expect("there is always one").1;
        let last = flushed
            .iter()
            .filter_map(|memtable| numbers(memtable).last().copied())
            .max()
            .unwrap_or(last);
        let version = Arc::new(Version::empty(KeyOrder::Bytewise));
        versions.push((Arc::clone(&version), last));
        self.views.install(version, flushed);
    }

    /// All entries that `view` leads to, ascending.
    fn entries(&self, view: &View) -> Vec<SequenceNumber> {
        let versions = self.versions.lock();
        let is_it = |known: &&(Arc<Version>, SequenceNumber)| Arc::ptr_eq(&known.0, &view.version);
        let last = versions.iter().find(is_it).expect("only these are installed").1;
        drop(versions);
        let mut found: Vec<_> = (1..=last).collect();
        for memtable in std::iter::once(&view.active).chain(&view.sealed) {
            found.extend(numbers(memtable));
        }
        found.sort_unstable();
        found
    }
}

fn new_memtable() -> (Arc<Memtable>, crate::memtable::MemtableWriter) {
    Memtable::new(KeyOrder::Bytewise, &Account::unlimited())
}

fn numbers(memtable: &Arc<Memtable>) -> Vec<SequenceNumber> {
    let mut cursor = memtable.cursor();
    let mut found = Vec::new();
    cursor.seek_to_first();
    while cursor.valid() {
        found.push(cursor.trailer());
        cursor.next();
    }
    found
}

/// Whatever is sealed and installed meanwhile: a reader that takes a view and
/// then the visible number finds all that was visible before in that view, once
/// and without a hole, for as long as it holds the view.
#[test]
fn a_view_holds_all_that_was_visible_when_it_was_taken() {
    explore("views", |seed| {
        let (active, mut writer) = new_memtable();
        let database = Arc::new(Database::new(active));
        let beside = |name: &str, work: fn(&Database, u64)| {
            let database = Arc::clone(&database);
            thread::spawn(name, move || work(&database, seed))
        };
        let others = [beside("reader", read), beside("flush", flush), beside("compact", compact)];
        for number in 1..=ENTRIES {
            writer.insert(&number.to_be_bytes(), number, b"");
            database.visible.publish(number);
            if number % 2 == seed % 2 {
                let (active, next) = new_memtable();
                database.views.seal(active);
                writer = next;
            }
        }
        others.into_iter().for_each(|other| other.join().unwrap());
        let view = database.views.keep();
        assert!(database.entries(&view).into_iter().eq(1..=ENTRIES), "nothing is lost");
    });
}

fn read(database: &Database, _: u64) {
    for _ in 0..3 {
        let before = database.visible.get();
        let view = database.views.keep();
        let visible = database.visible.get();
        let seen = |entries: Vec<u64>| -> Vec<u64> {
            entries.into_iter().filter(|entry| *entry <= visible).collect()
        };
        let first = seen(database.entries(&view));
        // What was put into a later memtable the view could not hold.
        let last = first.last().copied().unwrap_or(0);
        assert!(first.iter().copied().eq(1..=last), "a hole, or two homes: {first:?}");
        assert!(last >= before, "{before} was visible before the view was taken: {first:?}");
        assert_eq!(seen(database.entries(&view)), first, "a view that is held changes");
    }
}

fn flush(database: &Database, _: u64) {
    for _ in 0..3 {
        let oldest = database.views.keep().sealed.last().cloned();
        match oldest {
            Some(oldest) => database.install(&[&oldest]),
            None => thread::yield_now(),
        }
    }
}

fn compact(database: &Database, _: u64) {
    (0..2).for_each(|_| database.install(&[]));
}
