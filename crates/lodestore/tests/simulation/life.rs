//! The life of a database: opened, used by several threads, crashed, recovered,
//! and so on; at many moments of it all the crashes that did not come.

use crate::crew::Crew;
use crate::machine::in_seeded_simulation;
use crate::plan::{Trouble, options};
use crate::promise::{Crash, Event, Promises, State, WRITERS};
use crate::recovery::{Care, DIRECTORY, Left, Moment, recover_all};
use crate::report::Report;
use crate::{keeping, reading, tables, writing};
use lodestore::fs::FaultFs;
use lodestore::{Counter, Db, MemFs, Result};
use shuttle::thread;
use std::path::Path;
use std::sync::{Arc, Mutex};
use testkit::load::Families;
use testkit::random::Random;
use testkit::trace_fs::TraceFs;

/// How long a life is, and how closely it is looked at.
#[derive(Clone, Copy, Debug)]
pub struct Size {
    /// It ends after so many operations.
    pub operations: u64,
    /// Batches of one writer in one incarnation, at most.
    pub batches_max: usize,
    /// One call in so many that change the disk is followed by crashes; 1 for
    /// all.
    pub one_in: usize,
    /// Ways of losing power at each of these moments.
    pub power_losses: u64,
    /// Crash also after each call of one recovery at each of these moments.
    pub again: bool,
}

/// A database between two incarnations.
struct Life {
    seed: u64,
    trouble: Trouble,
    size: Size,
    random: Random,
    disk: MemFs,
    state: State,
    promises: Promises,
    next_family: u64,
    report: Report,
}

/// What an incarnation leaves.
struct Incarnation {
    moments: Vec<Moment>,
    events: Vec<Event>,
    next_family: u64,
    writers: usize,
}

/// Lives the life of `seed`.
///
/// # Panics
/// If the database breaks a promise.
pub fn live(seed: u64, size: Size) -> Report {
    let trouble = Trouble::of(seed);
    let promises = Promises { is_logged: trouble != Trouble::NoLog, ..Promises::default() };
    let mut life = Life {
        seed,
        trouble,
        size,
        random: Random::new(seed),
        disk: MemFs::new(),
        state: State::default(),
        promises,
        next_family: 1,
        report: Report { lives: 1, ..Report::default() },
    };
    while life.report.operations < size.operations {
        life.incarnate();
        // After damage a database may be refused; another one begins.
        if trouble == Trouble::Misdirected {
            life.disk = MemFs::new();
            life.state = State::default();
            life.promises = Promises { is_logged: true, ..Promises::default() };
        }
    }
    life.report.rich = life.report.rich.min(1);
    life.report
}

impl Life {
    fn incarnate(&mut self) {
        self.report.incarnations += 1;
        let closes = self.random.one_in(6);
        if !closes {
            let calls = 1usize << self.random.between(3, 11);
            self.disk.stop_after(self.random.below(calls) as u64);
        }
        let seed = self.random.word();
        let crew = self.crew(seed);
        let (result, incarnation) = {
            let (size, disk) = (self.size, self.disk.clone());
            in_seeded_simulation(seed, move || crew.run(size, &disk, seed))
        };
        self.report.add(&result);
        self.next_family = incarnation.next_family;
        self.promises.events = incarnation.events.clone();
        self.try_crashes(incarnation);
        self.crash();
    }

    fn crew(&mut self, seed: u64) -> Manned {
        let mut random = Random::new(seed);
        let faults = FaultFs::new(Arc::new(self.disk.clone()));
        if random.one_in(4) {
            faults.shorten_reads(random.between(1, 700));
        }
        if self.trouble == Trouble::Misdirected {
            self.disk.misdirect(random.between(1, 200) as u64, random.word());
        }
        let events = self.promises.events.clone();
        let state = self.state.clone();
        Manned {
            seed: self.seed,
            trouble: self.trouble,
            faults,
            random,
            start: state,
            sure: self.promises.sure.clone(),
            events,
            next_family: self.next_family,
        }
    }

    /// All crashes at the moments that were kept.
    fn try_crashes(&mut self, incarnation: Incarnation) {
        let care = Care { seed: self.seed, trouble: self.trouble };
        for moment in &incarnation.moments {
            let seed = self.random.word();
            let mut promises = self.promises.clone();
            promises.events.truncate(moment.events);
            let mut left = moment.crashes(seed, self.size.power_losses, &mut self.report);
            left.iter_mut().for_each(|left| left.is_busy &= incarnation.writers >= 2);
            let one = self.random.below(left.len());
            left[one].again = self.size.again && self.trouble != Trouble::Misdirected;
            let (_, report) = recover_all(care, &promises, left, seed);
            self.report.add(&report);
        }
    }

    /// The crash that does come, and the recovery after which life goes on.
    fn crash(&mut self) {
        let crash = if self.random.one_in(2) { Crash::Kill } else { Crash::PowerLoss };
        let disk = match crash {
            Crash::Kill => self.disk.kill(),
            Crash::PowerLoss => self.disk.crash(self.random.word()),
        };
        let left = Left { disk: disk.fork(), crash, is_busy: false, again: false };
        let care = Care { seed: self.seed, trouble: self.trouble };
        let seed = self.random.word();
        let (mut states, report) = recover_all(care, &self.promises, vec![left], seed);
        self.report.add(&report);
        // It goes on with what the crash left, not with what this recovery made.
        if let Some(state) = states.pop().flatten() {
            self.promises = std::mem::take(&mut self.promises).after(crash, &state);
            self.state = state;
        }
        self.disk = disk;
    }
}

/// What a crew is made of, before it is in a simulation.
struct Manned {
    seed: u64,
    trouble: Trouble,
    faults: FaultFs,
    random: Random,
    start: State,
    sure: State,
    events: Vec<Event>,
    next_family: u64,
}

impl Manned {
    /// Lives one incarnation.
    fn run(mut self, size: Size, disk: &MemFs, seed: u64) -> (Report, Incarnation) {
        let (mut options, scheduler) = options(&mut self.random, self.trouble);
        let events = Arc::new(Mutex::new(self.events));
        let eye = Arc::new(Eye::new(disk.clone(), Arc::clone(&events), size, seed));
        let watch = {
            let eye = Arc::clone(&eye);
            move |call: &'static str, path: &Path| eye.see(call, path)
        };
        let fs = TraceFs::watched(Arc::new(self.faults.clone()), Arc::new(watch));
        options.fs = Arc::new(fs.clone());
        let crew = Arc::new(Crew::new(
            (self.seed, self.trouble),
            (disk.clone(), self.faults),
            (options, scheduler),
            (self.start, self.sure),
            Arc::clone(&events),
            self.next_family,
        ));
        let writers = self.random.between(1, usize::from(WRITERS));
        if let Err(error) = work(&crew, size, writers, self.random) {
            crew.excuse(&error);
        }
        crew.count(|report| {
            report.trace = fs.trace();
            report.faults = crew.faults.struck();
            report.misdirected =
                u64::from(crew.trouble == Trouble::Misdirected && !disk.will_misdirect());
        });
        let incarnation = Incarnation {
            moments: eye.moments(),
            events: events.lock().expect("noting does not panic").clone(),
            next_family: crew.new_family(),
            writers,
        };
        (crew.report(), incarnation)
    }
}

/// Opens the database and lets all threads work on it, until they are done or
/// the disk has stopped.
fn work(crew: &Arc<Crew>, size: Size, writers: usize, mut random: Random) -> Result<()> {
    let db = Db::open(DIRECTORY, crew.options.clone())?;
    let families = Arc::new(Families::of(&db, &crew.options)?);
    let pair = tables::Pair::of(&db, &crew.options)?;
    let mut threads = Vec::new();
    let mut start = |work: Box<dyn FnOnce(&Crew, &Db, Random) + Send>| {
        let (crew, db, random) = (Arc::clone(crew), db.clone(), Random::new(random.word()));
        threads.push(thread::spawn(move || work(&crew, &db, random)));
    };
    for id in 0..writers as u8 {
        let families = Arc::clone(&families);
        start(Box::new(move |crew, db, mut random| {
            let batches = random.between(1, size.batches_max) as u64;
            writing::write(crew, db, &families, id, batches, random);
        }));
    }
    let (rounds, times) = (size.batches_max / 4 + 1, size.batches_max / 6 + 1);
    let read = pair.clone();
    start(Box::new(move |crew, db, random| reading::read(crew, db, &read, rounds, random)));
    start(Box::new(move |crew, db, random| keeping::keep(crew, db, times, random)));
    start(Box::new(move |crew, db, random| ingest(crew, db, &pair, random)));
    for thread in threads {
        thread.join().expect("nobody panics");
    }
    let statistics = db.statistics();
    crew.count(|report| {
        report.flushes += statistics.get(Counter::Flushes);
        report.compactions += statistics.get(Counter::Compactions);
        report.manifest_rotations += statistics.get(Counter::ManifestRotations);
        report.segments_recycled += statistics.get(Counter::LogSegmentsRecycled);
        report.compaction_parts += statistics.get(Counter::CompactionParts);
    });
    Ok(())
}

fn ingest(crew: &Crew, db: &Db, pair: &tables::Pair, mut random: Random) {
    for _ in 0..random.below(4) {
        let number = crew.next_call();
        match tables::ingest(db, pair, &crew.options, number) {
            Ok(sequence) => crew.acknowledge(Event::Ingested { number, sequence }),
            Err(error) => return crew.excuse(&error),
        }
    }
}

/// Sees every change of the disk, and keeps some moments.
struct Eye {
    disk: MemFs,
    events: Arc<Mutex<Vec<Event>>>,
    one_in: usize,
    seen: Mutex<Seen>,
}

struct Seen {
    random: Random,
    in_compaction: bool,
    moments: Vec<Moment>,
}

impl Eye {
    fn new(disk: MemFs, events: Arc<Mutex<Vec<Event>>>, size: Size, seed: u64) -> Eye {
        let random = Random::new(!seed);
        let seen = Mutex::new(Seen { random, in_compaction: false, moments: Vec::new() });
        Eye { disk, events, one_in: size.one_in, seen }
    }

    fn see(&self, call: &'static str, path: &Path) {
        if self.disk.is_stopped() || !path.starts_with(DIRECTORY) {
            return;
        }
        let mut seen = self.seen.lock().expect("seeing does not panic");
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if thread::current().name() == Some("lode-compact") {
            match call {
                "create" if name.ends_with(".table") => seen.in_compaction = true,
                "append" if name.starts_with("MANIFEST") => seen.in_compaction = false,
                _ => {}
            }
        }
        if seen.random.one_in(self.one_in) {
            let events = self.events.lock().expect("noting does not panic").len();
            let in_compaction = seen.in_compaction;
            seen.moments.push(Moment { disk: self.disk.fork(), events, in_compaction });
        }
    }

    fn moments(&self) -> Vec<Moment> {
        std::mem::take(&mut self.seen.lock().expect("seeing does not panic").moments)
    }
}
