//! Readers and compactions beside tables that are ingested into two families
//! at once.

use crate::bursts::Bursts;
use crate::machine::in_simulation;
use crate::tables::{self, Pair, Reading, Way};
use lodestore::{Counter, Db, MemFs, Options, ReadOptions, Result, Scheduler};
use shuttle::sync::atomic::{AtomicBool, Ordering};
use shuttle::thread;
use std::sync::Arc;
use testkit::random::Random;

/// Calls that ingest.
const CALLS: u64 = 4;

/// What readers met.
#[derive(Clone, Copy, Debug, Default)]
pub struct Seen {
    /// Reads of both families.
    pub reads: u64,
    /// Of those, how many saw a call in the second family that was not there
    /// yet when the first was read.
    pub between: u64,
    /// Snapshots that showed another call than the one before.
    pub changes: u64,
    /// Compactions that ran beside them.
    pub compactions: u64,
}

impl Seen {
    /// Adds another run's numbers.
    pub fn add(&mut self, other: &Seen) {
        self.reads += other.reads;
        self.between += other.between;
        self.changes += other.changes;
        self.compactions += other.compactions;
    }
}

/// Plays the run of `seed`.
///
/// # Panics
/// If a reader saw a part of a call, or a snapshot changed its answer.
pub fn simulate(seed: u64) -> Seen {
    in_simulation(Bursts::new(seed), move || run(seed).expect("nothing fails here"))
}

fn options(seed: u64) -> Options {
    let fs = Arc::new(MemFs::new());
    let mut options = Options { create_if_missing: true, fs, ..Options::default() };
    options.scheduler = Some(Scheduler::seeded(1, seed));
    options.family.level0_compaction_files = 2;
    options
}

fn run(seed: u64) -> Result<Seen> {
    let options = options(seed);
    let db = Db::open("/simulation", options.clone())?;
    let pair = Pair::of(&db, &options)?;
    let done = Arc::new(AtomicBool::new(false));
    let beside = |work: fn(&Db, &Pair, &AtomicBool, Random) -> Result<Seen>, seed: u64| {
        let (db, pair, done) = (db.clone(), pair.clone(), Arc::clone(&done));
        thread::spawn(move || work(&db, &pair, &done, Random::new(seed)))
    };
    let others = [
        beside(live, seed),
        beside(live, !seed),
        beside(at_snapshots, seed),
        beside(compact, seed),
    ];
    for call in 1..=CALLS {
        tables::ingest(&db, &pair, &options, call)?;
    }
    done.store(true, Ordering::SeqCst);
    let mut seen = Seen::default();
    for other in others {
        seen.add(&other.join().expect("nobody panics")?);
    }
    seen.compactions = db.statistics().get(Counter::Compactions);
    Ok(seen)
}

fn ways(random: &mut Random) -> [Way; 2] {
    [(); 2].map(|()| *random.pick(&[Way::Get, Way::MultiGet, Way::Cursor]))
}

/// Reads one family, then the other: what the first showed, the second has.
fn live(_: &Db, pair: &Pair, done: &AtomicBool, mut random: Random) -> Result<Seen> {
    let (mut seen, newest) = (Seen::default(), ReadOptions::default());
    while !done.load(Ordering::SeqCst) {
        let first = random.below(2);
        let families = [&pair.0[first], &pair.0[1 - first]];
        let ways = ways(&mut random);
        // Both are begun before either goes on.
        let before = Reading::begin(families[0], ways[0], &newest)?;
        let after = Reading::begin(families[1], ways[1], &newest)?;
        let calls = [before.call()?, after.call()?];
        assert!(calls[0] <= calls[1], "family {first} saw a call before the other: {calls:?}");
        seen.reads += 1;
        seen.between += u64::from(calls[0] < calls[1]);
    }
    Ok(seen)
}

/// Compacts what is there, so that a compaction may begin at any moment.
fn compact(_: &Db, pair: &Pair, done: &AtomicBool, _: Random) -> Result<Seen> {
    while !done.load(Ordering::SeqCst) {
        for family in &pair.0 {
            family.compact_range(None, None)?;
        }
    }
    Ok(Seen::default())
}

/// Reads both families at a snapshot, again and again.
fn at_snapshots(db: &Db, pair: &Pair, done: &AtomicBool, mut random: Random) -> Result<Seen> {
    let (mut seen, mut last) = (Seen::default(), 0);
    while !done.load(Ordering::SeqCst) {
        let at = ReadOptions { snapshot: Some(db.snapshot()), ..ReadOptions::default() };
        let mut shown = None;
        for _ in 0..random.between(1, 4) {
            for (family, way) in pair.0.iter().zip(ways(&mut random)) {
                let call = Reading::begin(family, way, &at)?.call()?;
                assert_eq!(*shown.get_or_insert(call), call, "a snapshot has changed");
            }
        }
        let shown = shown.expect("it was read");
        assert!(shown >= last, "a later snapshot shows an earlier call");
        seen.changes += u64::from(shown > last);
        last = shown;
    }
    Ok(seen)
}
