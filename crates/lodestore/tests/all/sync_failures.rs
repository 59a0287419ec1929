//! A sync that fails: writing stops until `resume`, which needs no file whose
//! sync has failed, and no such file is ever synced again: the system forgets the
//! error with the first report, and what it could not write may be lost.

use lodestore::fs::{Fault, FaultFs, Operation};
use lodestore::{Db, Error, Family, MemFs, MergeOperator, Options, WriteOptions};
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use testkit::trace_fs::{Call, TraceFs};

const ROOT: &str = "/sync";

/// The file that was synced again after a failed sync, if there is one. A file
/// is the same one under a new name, and when it is emptied or written over.
fn synced_again(calls: &[Call]) -> Option<PathBuf> {
    let mut files: BTreeMap<PathBuf, usize> = BTreeMap::new();
    let mut failed = Vec::new();
    for (at, (call, path)) in calls.iter().enumerate() {
        let known = files.get(path).copied();
        match *call {
            "create" => drop(files.entry(path.clone()).or_insert(at)),
            "remove" => drop(files.remove(path)),
            "rename" | "link" => {
                let (_, to) = &calls[at + 1];
                let file = known.expect("it was created");
                files.insert(to.clone(), file);
                if *call == "rename" {
                    files.remove(path);
                }
            }
            "failed-sync" => failed.extend(known),
            "sync" if known.is_some_and(|file| failed.contains(&file)) => {
                return Some(path.clone());
            }
            _ => {}
        }
    }
    None
}

/// Batches over two families, flushes, a second segment: what is acknowledged,
/// until something fails.
struct Work {
    families: [Family; 2],
    acknowledged: Vec<u32>,
    failure: Option<Error>,
}

impl Work {
    fn run(&mut self, db: &Db) {
        for round in 0..12u32 {
            let options = WriteOptions { sync: round % 3 == 2, ..WriteOptions::default() };
            let key = round.to_be_bytes();
            let written = self.families[round as usize % 2].put_with(&options, &key, &[7; 3000]);
            let flushed = match round {
                _ if written.is_err() => Ok(()),
                4 => self.families[0].flush(),
                8 => db.compact_range(None, None),
                10 => db.sync_log(),
                _ => Ok(()),
            };
            match written {
                Ok(()) => self.acknowledged.push(round),
                Err(error) => return self.failure = Some(error),
            }
            if let Err(error) = flushed {
                return self.failure = Some(error);
            }
        }
    }

    fn check(&self, when: &str) {
        for round in &self.acknowledged {
            let found = self.families[*round as usize % 2].get(&round.to_be_bytes());
            let found = found.unwrap_or_else(|error| panic!("{when}: {error}"));
            assert!(found.is_some(), "{when}: batch {round} is lost");
        }
    }
}

fn families(db: &Db) -> [Family; 2] {
    ["a", "b"].map(|name| db.family_or_create(name).expect("a family"))
}

/// Fails the `nth` sync after opening. False if there was none.
fn fail_sync(nth: u64, log_mapped: bool) -> bool {
    let disk = MemFs::new();
    let failing = FaultFs::new(Arc::new(disk.clone()));
    let trace = TraceFs::keeping_calls(Arc::new(failing.clone()));
    let fs = Arc::new(trace.clone());
    let options = Options { create_if_missing: true, log_mapped, fs, ..Options::default() };
    let db = Db::open(ROOT, options.clone()).expect("it opens");
    let mut work = Work { families: families(&db), acknowledged: Vec::new(), failure: None };
    failing.inject(Fault::new(Operation::Sync, nth, ErrorKind::Other));
    work.run(&db);
    let struck = failing.struck() > 0;
    let context = format!("sync {nth}, mapped {log_mapped}");
    if let Some(failure) = &work.failure {
        assert!(struck, "{context}: {failure} without a cause");
        work.check(&context);
        let refused = db.put(b"~", b"~");
        assert!(matches!(refused, Err(Error::ReadOnly { .. })), "{context}: {refused:?}");
        assert!(db.get(b"~").expect("reads go on").is_none());
        db.resume().unwrap_or_else(|error| panic!("{context}: {error}"));
        work.check(&format!("{context}, resumed"));
        // Enough that segments are used again.
        for round in 0..8u8 {
            work.families[0].put(b"~", &[round]).expect("it takes writes again");
            db.put_with(&WriteOptions::SYNCED, b"~", &[round]).expect("and makes them durable");
            db.flush_all().expect("and flushes");
        }
    } else {
        assert!(!struck, "{context}: nobody was told");
    }
    db.wait_for_background().expect("the background is well");
    drop(db);
    assert_eq!(synced_again(&trace.calls()), None, "{context}");
    drop(std::mem::replace(&mut work.families, {
        let fs = Arc::new(disk.crash(nth));
        let db = Db::open(ROOT, Options { fs, ..options }).expect("it opens after power loss");
        db.verify().expect("it is sound");
        families(&db)
    }));
    if work.failure.is_some() {
        work.check(&format!("{context}, after power loss"));
    }
    struck
}

/// Whichever sync fails.
#[test]
fn a_file_whose_sync_failed_is_never_synced_again() {
    for log_mapped in [false, true] {
        let failed = (1..).take_while(|&nth| fail_sync(nth, log_mapped)).count();
        assert!(failed >= 8, "only {failed} syncs failed");
    }
}

/// A flush with operands ends once the lock is free, and says that it has begun.
#[derive(Default)]
struct Held {
    lock: Mutex<()>,
    begun: AtomicBool,
}

impl MergeOperator for Held {
    fn name(&self) -> &str {
        "Held"
    }
    fn full_merge(&self, _: &[u8], _: Option<&[u8]>, operands: &[&[u8]]) -> Option<Vec<u8>> {
        self.begun.store(true, Relaxed);
        let _free = self.lock.lock().expect("no test panics with it");
        operands.last().map(|operand| operand.to_vec())
    }
}

/// A flush gives up the log's file after its sync has failed, and before `resume`.
#[test]
fn a_file_that_a_flush_gave_up_after_its_failed_sync_is_not_used_again() {
    let failing = FaultFs::new(Arc::new(MemFs::new()));
    let trace = TraceFs::keeping_calls(Arc::new(failing.clone()));
    let operator = Arc::new(Held::default());
    let mut options =
        Options { create_if_missing: true, fs: Arc::new(trace.clone()), ..Options::default() };
    options.family.merge_operator = Some(operator.clone());
    let db = Db::open(ROOT, options).expect("it opens");
    db.put(b"key", b"1").and_then(|()| db.merge(b"key", b"2")).expect("written");
    let held = operator.lock.lock().expect("nobody panics");
    std::thread::scope(|scope| {
        let flush = scope.spawn(|| db.flush());
        while !operator.begun.load(Relaxed) {
            std::thread::yield_now();
        }
        failing.inject(Fault::new(Operation::Sync, 1, ErrorKind::Other).on(".wal"));
        let failed = db.put_with(&WriteOptions::SYNCED, b"other", b"1");
        assert!(failed.is_err() && failing.struck() == 1, "{failed:?}");
        drop(held);
        // Who waits for it may be told of the failure; it ends all the same.
        drop(flush.join().expect("it does not panic"));
        while db.stats().files() == 0 {
            std::thread::yield_now();
        }
    });
    db.resume().expect("it goes on");
    for round in 0..4u8 {
        db.put_with(&WriteOptions::SYNCED, b"other", &[round]).expect("written");
        db.flush().expect("flushed");
    }
    assert_eq!(synced_again(&trace.calls()), None);
}

/// The check sees a second sync of the same file, also under a new name.
#[test]
fn a_second_sync_is_seen() {
    let call = |name, path: &str| (name, PathBuf::from(path));
    let failed = [call("create", "a"), call("sync", "a"), call("failed-sync", "a")];
    let then = |more: &[Call]| synced_again(&[&failed[..], more].concat());
    assert_eq!(then(&[call("sync", "a")]), Some("a".into()));
    let renamed = [call("rename", "a"), call("to", "b"), call("sync", "b")];
    assert_eq!(then(&renamed), Some("b".into()));
    assert_eq!(then(&[call("create", "b"), call("sync", "b")]), None);
    assert_eq!(then(&[call("remove", "a"), call("create", "a"), call("sync", "a")]), None);
}
