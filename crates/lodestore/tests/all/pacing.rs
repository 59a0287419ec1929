//! Writers while the background is behind: who waits, for how long, and what
//! a refused write leaves behind (nothing).
//!
//! A merge operator that stops at a gate keeps a flush from ending.

use lodestore::{
    Counter, Db, Error, Family, FamilyOptions, MemFs, MergeOperator, Options, StallCause,
    WriteOptions,
};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

#[derive(Default)]
struct Gate {
    closed: Mutex<bool>,
    changed: Condvar,
}

impl Gate {
    fn set_closed(&self, closed: bool) {
        *self.closed.lock().expect("no test panics with it") = closed;
        self.changed.notify_all();
    }
}

/// Keeps the newest operand, once the gate is open.
struct Gated(Arc<Gate>);

impl MergeOperator for Gated {
    fn name(&self) -> &str {
        "Gated"
    }
    fn full_merge(&self, _: &[u8], _: Option<&[u8]>, operands: &[&[u8]]) -> Option<Vec<u8>> {
        let mut closed = self.0.closed.lock().expect("no test panics with it");
        while *closed {
            closed = self.0.changed.wait(closed).expect("no test panics with it");
        }
        operands.last().map(|operand| operand.to_vec())
    }
}

const MEMTABLE_BYTES: usize = 64 << 10;
const VALUE: [u8; 1000] = [7; 1000];
const NOW: WriteOptions = WriteOptions { sync: false, no_slowdown: true, deadline: None };

struct Blocked {
    disk: MemFs,
    gate: Arc<Gate>,
    db: Db,
    other: Family,
    /// Keys that were acknowledged: from 0 on.
    written: u32,
}

impl Blocked {
    fn options(disk: &MemFs, gate: &Arc<Gate>) -> Options {
        let mut options =
            Options { create_if_missing: true, fs: Arc::new(disk.clone()), ..Options::default() };
        options.family.memtable_bytes = MEMTABLE_BYTES;
        options.family.sealed_memtables_max = 1;
        options.family.merge_operator = Some(Arc::new(Gated(Arc::clone(gate))));
        options
    }

    /// A database whose flush is held up, written to until no write goes
    /// through any more without waiting.
    fn new() -> Result<Blocked, Error> {
        let (disk, gate) = (MemFs::new(), Arc::new(Gate::default()));
        let db = Db::open("pacing", Blocked::options(&disk, &gate))?;
        let options = FamilyOptions {
            memtable_bytes: MEMTABLE_BYTES,
            sealed_memtables_max: 4,
            ..FamilyOptions::default()
        };
        let other = db.create_family("other", options)?;
        gate.set_closed(true);
        db.put(b"gated", b"1")?;
        db.merge(b"gated", b"2")?;
        let mut blocked = Blocked { disk, gate, db, other, written: 0 };
        blocked.fill()?;
        Ok(blocked)
    }

    fn fill(&mut self) -> Result<(), Error> {
        let short =
            WriteOptions { deadline: Some(Duration::from_millis(5)), ..WriteOptions::default() };
        let mut refused = 0;
        // Near the limit a refusal is a matter of a moment: many in a row are not.
        while refused < 20 {
            match self.db.put_with(&short, &self.written.to_be_bytes(), &VALUE) {
                Ok(()) => (self.written, refused) = (self.written + 1, 0),
                Err(Error::Stalled { cause: StallCause::Flush }) => refused += 1,
                Err(error) => return Err(error),
            }
            assert!(self.written < 1000, "the limit is met some time");
        }
        Ok(())
    }

    /// Exactly what was acknowledged is there, now and after a kill.
    fn check(self) -> Result<(), Error> {
        self.gate.set_closed(false);
        self.check_contents(&self.db)?;
        let survivor = self.disk.kill();
        self.check_contents(&Db::open("pacing", Blocked::options(&survivor, &self.gate))?)
    }

    fn check_contents(&self, db: &Db) -> Result<(), Error> {
        for key in 0..self.written {
            assert!(db.get(&key.to_be_bytes())?.is_some(), "{key}");
        }
        assert!(db.get(&self.written.to_be_bytes())?.is_none(), "it was refused");
        Ok(())
    }
}

/// With `no_slowdown` a write that would wait fails at once, says why, and
/// leaves nothing.
#[test]
fn no_slowdown_fails_at_once_and_writes_nothing() -> Result<(), Error> {
    let blocked = Blocked::new()?;
    let before = Instant::now();
    for _ in 0..20 {
        let result = blocked.db.put_with(&NOW, &blocked.written.to_be_bytes(), b"late");
        assert!(matches!(result, Err(Error::Stalled { cause: StallCause::Flush })), "{result:?}");
    }
    assert!(before.elapsed() < Duration::from_secs(5), "nobody waited");
    assert!(blocked.db.statistics().get(Counter::WritesRefused) >= 20);
    blocked.check()
}

/// A deadline is kept, not missed by much, and a write that fails by it leaves
/// nothing.
#[test]
fn a_deadline_is_kept_and_writes_nothing() -> Result<(), Error> {
    let blocked = Blocked::new()?;
    let deadline = Duration::from_millis(60);
    let options = WriteOptions { deadline: Some(deadline), ..WriteOptions::default() };
    let before = Instant::now();
    let result = blocked.db.put_with(&options, &blocked.written.to_be_bytes(), b"late");
    assert!(matches!(result, Err(Error::Stalled { cause: StallCause::Flush })), "{result:?}");
    let waited = before.elapsed();
    assert!(waited >= deadline && waited < Duration::from_secs(5), "{waited:?}");
    blocked.check()
}

/// A family whose flush is held up holds up nobody else: other families, the
/// log's sync and checkpoints go on. When the flush ends, so does the wait,
/// which has left a line that says what it was for.
#[test]
fn a_family_that_is_behind_holds_up_no_other() -> Result<(), Error> {
    let mut blocked = Blocked::new()?;
    let writer = {
        let (db, key) = (blocked.db.clone(), blocked.written);
        std::thread::spawn(move || db.put(&key.to_be_bytes(), &VALUE))
    };
    std::thread::sleep(Duration::from_millis(150));
    assert!(!writer.is_finished(), "it waits for the flush");
    blocked.other.put_with(&NOW, b"key", b"value")?;
    blocked.db.sync_log()?;
    blocked.db.checkpoint("copy")?;
    assert!(!writer.is_finished(), "it waits for the flush");
    blocked.gate.set_closed(false);
    writer.join().expect("it does not panic")?;
    blocked.written += 1;
    let lines = blocked.db.property("lodestore.long-waits").expect("it is known");
    assert!(lines.contains("a flush runs for"), "{lines}");
    assert!(lines.contains("1 of 1 memtables wait for their flush"), "{lines}");
    let stats = blocked.db.stats();
    assert!(stats.stops > 0 && stats.stall_micros > 100_000, "{stats:?}");
    blocked.check()
}

/// Each family may have as many memtables waiting as its own options say.
#[test]
fn each_family_has_room_of_its_own() -> Result<(), Error> {
    let blocked = Blocked::new()?;
    let sealed = |family: &Family| family.property("lodestore.num-immutable-mem-table");
    assert_eq!(sealed(&blocked.db).as_deref(), Some("1"));
    let mut key = 0u32;
    while blocked.other.put_with(&NOW, &key.to_be_bytes(), &VALUE).is_ok() {
        key += 1;
        assert!(key < 1000, "the limit is met some time");
    }
    assert_eq!(sealed(&blocked.other).as_deref(), Some("4"));
    blocked.check()
}
