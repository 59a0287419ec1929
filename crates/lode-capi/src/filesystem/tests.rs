//! The engine's own fault harness through the C interface: the functions of a file
//! system, behind them files in memory that fail or lose their power, and a database
//! driven by calls of the header. What was acknowledged stays, nothing comes from
//! nowhere, and every failure has a code.

mod drive;
mod over;

use std::path::Path;
use std::sync::Arc;

use engine::fs::{Capabilities, Fault, FaultFs, Operation};
use engine::{Fs, MemFs};
use testkit::files;
use testkit::random::Random;

use crate::options::Given;
use drive::{Changes, Entries, Opened, checkpoint, destroy, options, roll_back};

const STEPS: usize = 45;

/// What a caller's file system can be: all that there is, or what LevelDB's can.
fn kinds() -> [Capabilities; 2] {
    [MemFs::new().capabilities(), Capabilities::default()]
}

/// What was written, and how much of it must last.
#[derive(Default)]
struct Written {
    /// The state after each batch; the first is empty.
    states: Vec<Entries>,
    /// Batches that were acknowledged.
    acknowledged: usize,
    /// Batches that survive power loss.
    synced: usize,
}

impl Written {
    fn new() -> Written {
        Written { states: vec![Entries::new()], ..Written::default() }
    }

    /// The state that the batch leads to, whether it is acknowledged or not.
    fn attempt(&mut self, changes: &Changes) {
        let mut state = self.states[self.acknowledged].clone();
        for (key, value) in changes {
            match value {
                Some(value) => state.insert(key.clone(), value.clone()),
                None => state.remove(key),
            };
        }
        self.states.push(state);
    }

    /// `found` is what some number of batches leads to, at least `least`.
    #[track_caller]
    fn judge(&self, found: &Entries, least: usize, context: &str) {
        let fits = self.states[least..].contains(found);
        let newest = self.states.len() - 1;
        assert!(fits, "{context}: what is found is no state from {least} to {newest}");
    }
}

fn changes(random: &mut Random, number: usize) -> Changes {
    let mut changes = Changes::new();
    for _ in 0..*random.pick(&[1, 1, 2, 5]) {
        let key = format!("key{:02}", random.below(40)).into_bytes();
        let length = random.between(0, 500);
        let value = testkit::random::bytes(length, random.word());
        changes.push((key, (!random.one_in(4)).then_some(value)));
    }
    // No two states are the same.
    changes.push((b"~number".to_vec(), Some(number.to_string().into_bytes())));
    changes
}

/// Lives until the end, or until a write or an opening fails.
fn live(seed: u64, options: &Given, written: &mut Written) -> Option<Opened> {
    let mut random = Random::new(seed);
    let mut db = Opened::open(options).ok()?;
    for step in 0..STEPS {
        match random.below(14) {
            // Failures of these concern no write; what follows shows what they did.
            0 => drop(db.flush()),
            1 => drop(db.compact()),
            2 if db.sync_log().is_ok() => written.synced = written.acknowledged,
            3 => {
                drop(db);
                // What fails once may be tried again.
                db = Opened::open(options).or_else(|_| Opened::open(options)).ok()?;
            }
            _ => {
                let (changes, sync) = (changes(&mut random, step), random.one_in(3));
                written.attempt(&changes);
                if db.write(&changes, sync).is_err() {
                    return Some(db);
                }
                written.acknowledged += 1;
                if sync {
                    written.synced = written.acknowledged;
                }
            }
        }
    }
    Some(db)
}

/// Opens what is left, compares, and goes on with it.
#[track_caller]
fn recover(disk: &MemFs, written: &Written, least: usize, context: &str) {
    let options = options(Arc::new(disk.clone()));
    let done = |outcome: Result<(), drive::Told>| {
        outcome.unwrap_or_else(|(code, text)| panic!("{context}: {code}, {text}"));
    };
    let db = Opened::open(&options).unwrap_or_else(|error| panic!("{context}: {error:?}"));
    let found = db.entries().unwrap_or_else(|error| panic!("{context}: {error:?}"));
    written.judge(&found, least, context);
    done(db.write(&vec![(b"after".to_vec(), Some(b"1".to_vec()))], true));
    done(db.compact());
    done(db.verify());
    drop(db);
    let db = Opened::open(&options).unwrap_or_else(|error| panic!("{context}: {error:?}"));
    let mut again = db.entries().unwrap_or_else(|error| panic!("{context}: {error:?}"));
    assert_eq!(again.remove(&b"after"[..]), Some(b"1".to_vec()), "{context}");
    assert_eq!(again, found, "{context}");
}

/// A life in which the `nth` call of a kind fails, and its end by a killed process and
/// by a loss of power. False if there was no such call.
fn one_call_fails(call: Operation, nth: u64, able: Capabilities) -> bool {
    let context = format!("{able:?}: {call:?} number {nth} fails");
    let disk = MemFs::with_capabilities(able);
    let failing = FaultFs::new(Arc::new(disk.clone()));
    failing.inject(Fault::new(call, nth, std::io::ErrorKind::Other).after_bytes(7));
    let options = options(Arc::new(failing.clone()));
    let mut written = Written::new();
    let db = live(1, &options, &mut written);
    if failing.struck() == 0 {
        assert!(db.is_some() && written.acknowledged + 1 == written.states.len(), "{context}");
    }
    if let Some(Ok(found)) = db.as_ref().map(Opened::entries) {
        written.judge(&found, written.acknowledged, &context);
    }
    let (killed, powerless) = (disk.fork(), disk.crash(nth));
    drop(db);
    recover(&killed, &written, written.acknowledged, &format!("{context}, killed"));
    recover(&powerless, &written, written.synced, &format!("{context}, without power"));
    failing.struck() > 0
}

/// A call fails once; of each kind every so many of a life are tried.
#[test]
fn a_failing_call_loses_nothing_acknowledged() {
    use Operation::*;
    let calls = [
        (Append, 7),
        (Sync, 3),
        (Create, 3),
        (Rename, 2),
        (SyncDirectory, 3),
        (Open, 5),
        (Read, 41),
        (Length, 7),
        (Remove, 5),
        (List, 2),
        (Close, 7),
        (Lock, 1),
        (Overwrite, 2),
        (Truncate, 1),
    ];
    for able in kinds() {
        for (call, step) in calls {
            let struck = (1..).step_by(step).take_while(|nth| one_call_fails(call, *nth, able));
            println!("{able:?}: {} calls of kind {call:?} failed once", struck.count());
        }
    }
}

/// Power is lost at many moments of a life.
#[test]
fn a_loss_of_power_takes_nothing_that_was_synced() {
    for able in kinds() {
        for seed in 2..4 {
            let mut stop = 3;
            loop {
                let context = format!("{able:?}: seed {seed}, after {stop} changes");
                let disk = MemFs::with_capabilities(able);
                disk.stop_after(stop);
                let options = options(Arc::new(disk.clone()));
                let mut written = Written::new();
                let db = live(seed, &options, &mut written);
                let was_stopped = disk.is_stopped();
                let left = disk.crash(stop);
                drop(db);
                recover(&left, &written, written.synced, &context);
                if !was_stopped {
                    break;
                }
                stop += 11;
            }
        }
    }
}

/// LevelDB databases are adopted by copies where there are no links, and given back.
#[test]
fn adoption_needs_no_links() {
    let made = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/leveldb");
    let root = Path::new(drive::PATH.to_str().expect("it is text"));
    for (name, entries) in [("log", 300), ("filters", 2788)] {
        let original = files::read(&engine::OsFs::new(), &made.join(name));
        let original = original.expect("it is in testdata");
        for able in kinds() {
            let disk = MemFs::with_capabilities(able);
            files::write(&disk, root, &original).expect("memory takes files");
            let options = options(Arc::new(disk.clone()));
            let (code, text) = Opened::open(&options).err().expect("it is LevelDB's");
            assert_eq!(code, 3, "{text}");
            let db = Opened::open_or_adopt(&options).unwrap_or_else(|error| panic!("{error:?}"));
            let found = db.entries().unwrap_or_else(|error| panic!("{error:?}"));
            assert_eq!(found.len(), entries, "{name}");
            checkpoint(&db, "/home/copy").unwrap_or_else(|error| panic!("{error:?}"));
            drop(db);
            roll_back(&options).unwrap_or_else(|error| panic!("{error:?}"));
            let now = files::read(&disk, root).expect("it is there");
            assert_eq!(files::without_locks(&now), files::without_locks(&original), "{name}");
        }
    }
}

/// `destroy` leaves nothing, in the directory or behind it.
#[test]
fn a_destroyed_database_leaves_nothing() {
    for able in kinds() {
        let disk = MemFs::with_capabilities(able);
        let options = options(Arc::new(disk.clone()));
        let db = live(5, &options, &mut Written::new());
        assert!(db.is_some() && destroy(&options).err().is_some_and(|(code, _)| code == 5));
        drop(db);
        destroy(&options).unwrap_or_else(|error| panic!("{error:?}"));
        assert_eq!(disk.list(Path::new("/home")).expect("it is there"), Vec::<String>::new());
    }
}
