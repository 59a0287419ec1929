//! What the threads of one incarnation share, and what errors they may meet.

use crate::plan::Trouble;
use crate::promise::{Crash, Event, Promises, State};
use crate::report::Report;
use lodestore::fs::FaultFs;
use lodestore::{Db, Error, MemFs, Options, Result, Scheduler};
use shuttle::thread;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use testkit::load::Contents;

/// Attempts to resume before all faults are healed.
const ATTEMPTS: usize = 20;

/// One incarnation of a database: from an opening to a crash.
pub struct Crew {
    /// Of the life.
    pub seed: u64,
    /// What goes wrong.
    pub trouble: Trouble,
    /// The disk.
    pub disk: MemFs,
    /// Where its faults are.
    pub faults: FaultFs,
    /// Time and threads.
    pub scheduler: Arc<Scheduler>,
    /// How the database is opened.
    pub options: Options,
    /// What it held at the opening.
    pub start: State,
    /// What no crash could have taken away by then.
    sure: State,
    calls: AtomicU64,
    /// What it has acknowledged since, after what it had before.
    pub events: Arc<Mutex<Vec<Event>>>,
    /// The number of the next family that is created.
    pub next_family: AtomicU64,
    /// What was done. The standard library's lock: noting is no step.
    report: Mutex<Report>,
}

impl Crew {
    /// A crew that has done nothing yet.
    pub fn new(
        (seed, trouble): (u64, Trouble),
        (disk, faults): (MemFs, FaultFs),
        (options, scheduler): (Options, Arc<Scheduler>),
        (start, sure): (State, State),
        events: Arc<Mutex<Vec<Event>>>,
        next_family: u64,
    ) -> Crew {
        let (next_family, report) = (AtomicU64::new(next_family), Mutex::default());
        let calls = AtomicU64::new(start.calls);
        Crew {
            seed,
            trouble,
            disk,
            faults,
            scheduler,
            options,
            start,
            sure,
            calls,
            events,
            next_family,
            report,
        }
    }

    /// Changes the counts.
    pub fn count(&self, change: impl FnOnce(&mut Report)) {
        change(&mut self.report.lock().expect("counting does not panic"));
    }

    /// What was done.
    pub fn report(&self) -> Report {
        self.report.lock().expect("counting does not panic").clone()
    }

    /// The database acknowledged something.
    pub fn acknowledge(&self, event: Event) {
        self.events.lock().expect("noting does not panic").push(event);
        self.count(|report| match event {
            Event::Batch { .. } => report.acknowledged += 1,
            Event::Ingested { .. } => report.ingested += 1,
            Event::Created { .. } => report.families_created += 1,
            _ => {}
        });
    }

    /// The number of a family that never was.
    pub fn new_family(&self) -> u64 {
        self.next_family.fetch_add(1, Ordering::Relaxed)
    }

    /// The number of the next call that takes in tables.
    pub fn next_call(&self) -> u64 {
        self.calls.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Judges a copy of the database: it has what the first `events` of all
    /// acknowledgements say.
    pub fn check_copy(&self, found: &Contents, events: usize) {
        // A log that a write missed lacks that write in each copy, too.
        let events = if self.trouble == Trouble::Misdirected { 0 } else { events };
        let events = self.events.lock().expect("noting does not panic")[..events].to_vec();
        let promises = Promises { sure: self.sure.clone(), events, is_logged: true };
        promises.judge(self.seed, Crash::Kill, found);
    }

    /// Accepts an error that what goes wrong explains.
    ///
    /// # Panics
    /// If nothing explains it.
    pub fn excuse(&self, error: &Error) {
        if self.disk.is_stopped() {
            return;
        }
        match self.trouble {
            Trouble::None | Trouble::NoLog => panic!("{error}: nothing had failed"),
            Trouble::Errors => {
                assert!(!error.is_corruption(), "{error}: a call failed, no byte is wrong");
            }
            Trouble::Misdirected => {
                assert!(!self.disk.will_misdirect(), "{error}: no write had gone astray");
                self.count(|report| report.damage_named += u64::from(error.is_corruption()));
            }
        }
    }

    /// Makes the database whole after an error. False if that is not to be.
    pub fn mend(&self, db: &Db, error: &Error) -> bool {
        self.excuse(error);
        if self.trouble != Trouble::Errors {
            return false;
        }
        for attempt in 0..2 * ATTEMPTS {
            if self.disk.is_stopped() {
                return false;
            }
            if attempt >= ATTEMPTS {
                self.faults.heal();
            }
            match db.resume() {
                Ok(()) => {
                    self.count(|report| report.resumed += 1);
                    return true;
                }
                Err(error) => self.excuse(&error),
            }
            (0..50).for_each(|_| thread::yield_now());
        }
        panic!("nothing fails any more, and the database does not resume: {error}")
    }

    /// Runs `work`, again if it fails for a reason that can be mended.
    /// `None` if the incarnation is over.
    pub fn persist<T>(&self, db: &Db, mut work: impl FnMut() -> Result<T>) -> Option<T> {
        loop {
            match work() {
                Ok(done) => return Some(done),
                Err(error) if self.mend(db, &error) => {}
                Err(_) => return None,
            }
        }
    }
}
