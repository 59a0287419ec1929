//! What a listener is told.

use std::io::ErrorKind;
use std::sync::{Arc, Mutex};

use lodestore::fs::{Fault, FaultFs, Operation};
use lodestore::{Db, Event, Listener, MemFs, Options, WriteOptions};

const ROOT: &str = "/events";

/// Keeps the lines.
#[derive(Debug, Default)]
struct Lines(Mutex<Vec<String>>);

impl Listener for Lines {
    fn tell(&self, event: &Event<'_>) {
        self.0.lock().unwrap().push(event.to_string());
    }
}

impl Lines {
    fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

#[derive(Debug)]
struct Panics;

impl Listener for Panics {
    fn tell(&self, _: &Event<'_>) {
        panic!("a listener that fails");
    }
}

fn options(disk: &FaultFs, listener: Arc<dyn Listener>) -> Options {
    Options {
        create_if_missing: true,
        fs: Arc::new(disk.clone()),
        listener: Some(listener),
        ..Options::default()
    }
}

fn disk() -> FaultFs {
    FaultFs::new(Arc::new(MemFs::new()))
}

/// Each flush and compaction is told once, with what went in and came out.
#[test]
fn flushes_and_compactions_are_told() {
    let (disk, lines) = (disk(), Arc::new(Lines::default()));
    let db = Db::open(ROOT, options(&disk, lines.clone())).unwrap();
    assert_eq!(lines.take(), ["opened /events"]);
    for _ in 0..2 {
        for key in 0..100u32 {
            db.put(&key.to_be_bytes(), b"value").unwrap();
        }
        db.flush().unwrap();
        let told = lines.take();
        assert_eq!(told.len(), 1, "{told:?}");
        assert!(told[0].starts_with("flushed a memtable of family \"default\": 1 tables, "));
    }
    db.compact_range(None, None).unwrap();
    let told = lines.take();
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].starts_with("compacted family \"default\", level 0 to 6: 2 tables, "));
    assert!(told[0].contains(" to 1 tables, "), "{told:?}");
    drop(db);
    assert_eq!(lines.take(), ["closed /events"]);
}

/// Whoever reads only the log learns that writing has ended, why, and that it
/// goes on.
#[test]
fn failures_are_told() {
    let (disk, lines) = (disk(), Arc::new(Lines::default()));
    let db = Db::open(ROOT, options(&disk, lines.clone())).unwrap();
    disk.inject(Fault::new(Operation::Sync, 1, ErrorKind::Other).on(".wal"));
    lines.take();
    assert!(db.put_with(&WriteOptions::SYNCED, b"key", b"value").is_err());
    let told = lines.take();
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].starts_with("read-only after "), "{told:?}");
    db.resume().unwrap();
    assert_eq!(lines.take().last().map(String::as_str), Some("resumed"));
}

/// A listener that panics harms nobody.
#[test]
fn a_panic_of_a_listener_is_passed_over() {
    let disk = disk();
    let db = Db::open(ROOT, options(&disk, Arc::new(Panics))).unwrap();
    db.put(b"key", b"value").unwrap();
    db.flush().unwrap();
    db.compact_range(None, None).unwrap();
    assert!(db.get(b"key").unwrap().is_some());
}
