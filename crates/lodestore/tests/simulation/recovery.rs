//! What a crash left is opened, compared with what was promised, and used.

use crate::machine::in_seeded_simulation;
use crate::plan::{Trouble, options};
use crate::promise::{Crash, Promises, State};
use crate::report::Report;
use lodestore::{Counter, Db, Error, MemFs, Options, OsFs, WriteOptions};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use testkit::files::{Files, stray_tables};
use testkit::load::{Contents, contents};
use testkit::random::Random;
use testkit::trace_fs::TraceFs;

/// Where the database lies.
pub const DIRECTORY: &str = "/simulation";

/// The disk at one moment of a run, and what had been promised by then.
#[derive(Clone)]
pub struct Moment {
    /// All files, and what of them is durable.
    pub disk: MemFs,
    /// Events that had been acknowledged.
    pub events: usize,
    /// True while a compaction wrote a table.
    pub in_compaction: bool,
}

/// What a crash left.
pub struct Left {
    /// The files.
    pub disk: MemFs,
    /// The kind of crash.
    pub crash: Crash,
    /// Two writers or more, and a compaction, were interrupted.
    pub is_busy: bool,
    /// Crash again after each call of the recovery.
    pub again: bool,
}

impl Moment {
    /// The crashes that are tried at this moment: killed, killed in the middle
    /// of the last write, and `power_losses` ways of losing power.
    pub fn crashes(&self, seed: u64, power_losses: u64, report: &mut Report) -> Vec<Left> {
        let is_busy = self.in_compaction;
        let killed = |disk| Left { disk, crash: Crash::Kill, is_busy, again: false };
        let mut left = vec![killed(self.disk.fork())];
        report.kills += 1;
        let torn = self.disk.fork();
        if torn.tear_last_append(seed) {
            report.torn_kills += 1;
            left.push(killed(torn));
        }
        for loss in 0..power_losses {
            let disk = self.disk.fork().crash(seed ^ loss << 40);
            left.push(Left { disk, crash: Crash::PowerLoss, is_busy, again: false });
        }
        report.power_losses += power_losses;
        report.crashes_in_compactions += left.len() as u64 * u64::from(self.in_compaction);
        left
    }
}

/// The life whose crashes these are.
#[derive(Clone, Copy, Debug)]
pub struct Care {
    /// Of the life.
    pub seed: u64,
    /// What may have gone wrong before the crash.
    pub trouble: Trouble,
}

/// Recovers each in turn. The states that were found.
///
/// # Panics
/// If what a crash left is not what it must be.
pub fn recover_all(
    care: Care,
    promises: &Promises,
    left: Vec<Left>,
    seed: u64,
) -> (Vec<Option<State>>, Report) {
    let promises = promises.clone();
    in_seeded_simulation(seed, move || {
        let mut report = Report::default();
        let mut random = Random::new(seed);
        let states = left.iter().map(|left| {
            let seed = random.word();
            recover(care, &promises, left, seed, &mut report)
        });
        let states = states.collect();
        (states, report)
    })
}

/// Recovers one; `None` if it was refused, for a reason that is allowed.
fn recover(
    care: Care,
    promises: &Promises,
    left: &Left,
    seed: u64,
    report: &mut Report,
) -> Option<State> {
    let moments: Arc<Mutex<Vec<MemFs>>> = Arc::default();
    let is_opening = Arc::new(AtomicBool::new(left.again));
    let watch = {
        let (disk, moments, is_opening) =
            (left.disk.clone(), Arc::clone(&moments), Arc::clone(&is_opening));
        move |_: &'static str, _: &std::path::Path| {
            if is_opening.load(Ordering::Relaxed) {
                moments.lock().expect("keeping does not panic").push(disk.fork());
            }
        }
    };
    let fs = TraceFs::watched(Arc::new(left.disk.clone()), Arc::new(watch));
    let mut random = Random::new(seed);
    let mut options = options(&mut random, care.trouble).0;
    options.fs = Arc::new(fs.clone());
    report.recoveries += 1;
    let evidence = Evidence::of(&left.disk);
    let found = open_and_read(&options, left, &is_opening, random.one_in(4), report);
    report.trace ^= fs.trace();
    let found = match found {
        Ok(found) => found,
        Err(error) => {
            let allowed = care.trouble == Trouble::Misdirected;
            assert!(allowed, "what {:?} leaves is refused: {error}", left.crash);
            report.damage_named += u64::from(error.is_corruption());
            evidence.into_iter().for_each(Evidence::not_needed);
            return None;
        }
    };
    let state = match care.trouble {
        Trouble::Misdirected => judge_damaged(care, promises, &found),
        _ => promises.judge(care.seed, left.crash, &found),
    };
    let moments = std::mem::take(&mut *moments.lock().expect("keeping does not panic"));
    for (call, disk) in moments.into_iter().enumerate() {
        recover_again(care, promises, (left, &state), disk, seed ^ (call as u64) << 20, report);
    }
    evidence.into_iter().for_each(Evidence::not_needed);
    Some(state)
}

/// The files as a crash left them, to be written to the directory that
/// `SIMULATION_EVIDENCE` names if a judgement fails.
struct Evidence {
    directory: std::path::PathBuf,
    files: Files,
}

impl Evidence {
    fn of(disk: &MemFs) -> Option<Evidence> {
        let directory = std::env::var_os("SIMULATION_EVIDENCE")?.into();
        let files = testkit::files::read(disk, DIRECTORY.as_ref()).ok()?;
        Some(Evidence { directory, files })
    }

    fn not_needed(mut self) {
        self.files.clear();
    }
}

impl Drop for Evidence {
    fn drop(&mut self) {
        if !self.files.is_empty() && std::thread::panicking() {
            let written = testkit::files::write(&OsFs::new(), &self.directory, &self.files);
            eprintln!("the files are in {}: {written:?}", self.directory.display());
        }
    }
}

/// The recovery is interrupted after one of its calls, in two ways.
fn recover_again(
    care: Care,
    promises: &Promises,
    (left, first): (&Left, &State),
    disk: MemFs,
    seed: u64,
    report: &mut Report,
) {
    let lost = disk.fork().crash(seed);
    for (disk, crash) in [(disk, Crash::Kill), (lost, Crash::PowerLoss)] {
        let worst = if left.crash == Crash::Kill { crash } else { Crash::PowerLoss };
        let again = Left { disk, crash: worst, is_busy: false, again: false };
        report.recoveries_of_recoveries += 1;
        let state = recover(care, promises, &again, seed, report).expect("nothing is damaged");
        // What the first crash left is durable, or nothing has lost power.
        if left.crash == Crash::PowerLoss || crash == Crash::Kill {
            assert!(state.is_as(first), "{state:?} after a crash in the recovery, not {first:?}");
        }
    }
}

fn open_and_read(
    options: &Options,
    left: &Left,
    is_opening: &AtomicBool,
    is_closely: bool,
    report: &mut Report,
) -> Result<Contents, Error> {
    let db = Db::open(DIRECTORY, options.clone())?;
    is_opening.store(false, Ordering::Relaxed);
    let found = contents(&db)?;
    report.entries_compared += 2 * found.values().map(|entries| entries.len() as u64).sum::<u64>();
    let statistics = db.statistics();
    let has_two_logs = statistics.get(Counter::SegmentsReplayed) >= 2;
    report.recoveries_of_two_logs += u64::from(has_two_logs);
    report.rich += u64::from(has_two_logs && left.is_busy);
    if is_closely {
        use_again(&db, options, left)?;
    }
    Ok(found)
}

/// It is a database again: sound, takes writes and leaves no file behind.
fn use_again(db: &Db, options: &Options, left: &Left) -> Result<(), Error> {
    db.verify()?;
    let how = WriteOptions { sync: options.logging, ..WriteOptions::default() };
    let mut batch = lodestore::WriteBatch::new();
    batch.put(b"~after", b"1");
    db.write_with(&how, &mut batch)?;
    assert_eq!(db.get(b"~after")?.as_deref(), Some(&b"1"[..]));
    let pause = || shuttle::thread::yield_now();
    assert_eq!(stray_tables(db, &left.disk, pause), Ok(0), "table files that belong to nothing");
    Ok(())
}

/// After a write that went astray, acknowledged writes may be missing if it was
/// the log's: nothing tells of bytes that never came. What is there is right.
fn judge_damaged(care: Care, promises: &Promises, found: &Contents) -> State {
    let mut promises = promises.clone();
    promises.events.clear();
    promises.judge(care.seed, Crash::PowerLoss, found)
}
