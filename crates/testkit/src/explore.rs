//! Many schedules of a small test with threads, each repeatable by its name.
//!
//! [`explore`] runs a test under two ways of choosing the next thread:
//! - `random`: at each step any thread, all alike. Finds what needs one switch
//!   at the right moment, seldom what needs three.
//! - `pct`: threads have priorities, the highest runs, and at a few steps
//!   chosen beforehand the running thread falls below all others (Burckhardt et
//!   al., "A Randomized Scheduler with Probabilistic Guarantees of Finding Bugs",
//!   2010). Finds what needs a thread to stand still in one place for long.
//!
//! [`explore_all`] runs the smallest tests under every schedule there is.
//!
//! `CONCURRENCY_SCHEDULES` in the environment says how many of each way,
//! `CONCURRENCY_SEED` from which on, and
//! `CONCURRENCY_REPEAT`, as a failure prints it, which one alone.

use crate::random::Random;
use shuttle::scheduler::{DfsScheduler, Schedule, Scheduler, Task, TaskId};
use std::cell::RefCell;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Once};
use std::time::Instant;

const SCHEDULES: u64 = 10_000;

/// What takes more steps than this will not end.
const STEPS_MAX: usize = 1_000_000;

/// More schedules than this are not for [`explore_all`].
const ALL_MAX: usize = 200_000;

/// Moments, at most, at which the running thread falls behind all others.
const FALLS_MAX: usize = 4;

/// How often, by schedules in turn, a thread may yield before it falls behind the
/// others. A thread that waits by polling yields, and must fall; one that calls
/// the file system in memory yields too, and if it always fell, none would ever
/// run for long while another stands still.
const YIELDS_MAX: [u64; 3] = [1, 16, 256];

/// How the next thread is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Random,
    Pct,
}

impl Way {
    fn name(self) -> &'static str {
        match self {
            Way::Random => "random",
            Way::Pct => "pct",
        }
    }
}

/// One schedule: it follows from these two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Name {
    way: Way,
    seed: u64,
}

impl Name {
    fn parse(text: &str) -> Name {
        let parts = text.split_once(' ').and_then(|(way, seed)| Some((way, seed.parse().ok()?)));
        let (way, seed) = match parts {
            Some(("random", seed)) => (Way::Random, seed),
            Some(("pct", seed)) => (Way::Pct, seed),
            _ => panic!("CONCURRENCY_REPEAT={text:?} is not like \"pct 17\""),
        };
        Name { way, seed }
    }
}

thread_local! {
    /// What runs on this thread: the test, how threads are chosen, and the seed.
    static RUNNING: RefCell<Option<(String, Way, Arc<AtomicU64>)>> = const { RefCell::new(None) };
}

/// Makes every panic say how to repeat the schedule in which it happened: in the
/// hook, because a second panic while values are dropped ends the process.
fn name_schedules_in_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            RUNNING.with_borrow(|running| {
                if let Some((test, way, seed)) = running {
                    let (way, seed) = (way.name(), seed.load(Ordering::SeqCst));
                    eprintln!(
                        "CONCURRENCY_REPEAT=\"{way} {seed}\" repeats this schedule of {test}"
                    );
                }
            });
            before(panic);
        }));
    });
}

/// Runs `run` under as many schedules of each way as the environment says.
/// `run` is given a number that is the schedule's own, to vary what it does, and
/// must do nothing that does not follow from that number and the schedule.
///
/// # Panics
/// If a run does, comes to a deadlock, or does not end.
pub fn explore(test: &str, run: impl Fn(u64) + Send + Sync + 'static) {
    let begin = Instant::now();
    let run = Arc::new(run);
    let names = match std::env::var("CONCURRENCY_REPEAT") {
        Ok(text) => {
            let name = Name::parse(&text);
            vec![(name.way, name.seed..name.seed + 1)]
        }
        Err(_) => {
            let first = number("CONCURRENCY_SEED", 1);
            let seeds = first..first + number("CONCURRENCY_SCHEDULES", SCHEDULES);
            [Way::Random, Way::Pct].map(|way| (way, seeds.clone())).to_vec()
        }
    };
    let mut told = Vec::new();
    for (way, seeds) in names {
        let count = seeds.end - seeds.start;
        let steps = runs(test, way, seeds, &run);
        told.push(format!("{count} {} (about {steps} steps)", way.name()));
    }
    println!("explored {test}: {}, {:.1} s", told.join(", "), begin.elapsed().as_secs_f64());
}

fn number(name: &str, default: u64) -> u64 {
    match std::env::var(name) {
        Err(_) => default,
        Ok(text) => text.parse().unwrap_or_else(|_| panic!("{name}={text} is no number")),
    }
}

/// Runs all `seeds`; how many steps they take on average.
fn runs<F>(test: &str, way: Way, seeds: std::ops::Range<u64>, run: &Arc<F>) -> usize
where
    F: Fn(u64) + Send + Sync + 'static,
{
    let (seed, steps) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicUsize::new(0)));
    let count = (seeds.end - seeds.start) as usize + 1;
    let chooser = Chooser::new(way, seeds, &seed, &steps);
    name_schedules_in_panics();
    RUNNING.set(Some((test.to_string(), way, Arc::clone(&seed))));
    let run = Arc::clone(run);
    shuttle::Runner::new(chooser, config()).run(move || run(seed.load(Ordering::SeqCst)));
    RUNNING.set(None);
    steps.load(Ordering::SeqCst) / count
}

fn config() -> shuttle::Config {
    let mut config = shuttle::Config::new();
    config.stack_size = 1 << 20;
    config.failure_persistence = shuttle::FailurePersistence::None;
    config.max_steps = shuttle::MaxSteps::FailAfter(STEPS_MAX);
    config.silence_warnings = true; // all orderings count as SeqCst: that is known
    config
}

/// Runs `run` under every schedule that there is.
///
/// # Panics
/// If a run does, or if there are too many schedules to run all.
pub fn explore_all(test: &str, run: impl Fn() + Send + Sync + 'static) {
    let begin = Instant::now();
    let count = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&count);
    let every = DfsScheduler::new(Some(ALL_MAX), false);
    shuttle::Runner::new(every, config()).run(move || {
        counted.fetch_add(1, Ordering::SeqCst);
        run();
    });
    let count = count.load(Ordering::SeqCst);
    assert!(count < ALL_MAX, "{test} has more than {count} schedules");
    println!("explored {test}: all {count}, {:.1} s", begin.elapsed().as_secs_f64());
}

/// Counts how often runs came to a state that a test is about.
#[derive(Clone, Debug, Default)]
pub struct Reached(Arc<AtomicU64>);

impl Reached {
    /// Counts one more if `is_reached`.
    pub fn note(&self, is_reached: bool) {
        self.0.fetch_add(u64::from(is_reached), Ordering::SeqCst);
    }

    /// How often it was reached.
    pub fn times(&self) -> u64 {
        self.0.load(Ordering::SeqCst)
    }

    /// # Panics
    /// If no run came there, unless a single one was asked for.
    pub fn check(&self, what: &str) {
        let is_single = std::env::var("CONCURRENCY_REPEAT").is_ok();
        assert!(is_single || self.times() > 0, "no schedule came to {what}");
        println!("reached {what}: {}", self.times());
    }
}

/// Chooses threads, for one schedule after the other.
struct Chooser {
    way: Way,
    seeds: std::ops::Range<u64>,
    /// The seed of the schedule that runs.
    seed: Arc<AtomicU64>,
    /// Steps of all schedules together.
    steps_total: Arc<AtomicUsize>,
    random: Random,
    /// How many steps the first schedule took, which is the same always: falls
    /// are spread over so many.
    length: Option<usize>,
    steps: usize,
    /// By task; the highest runs.
    priorities: Vec<u64>,
    /// Steps after which the running task falls.
    falls: Vec<usize>,
    /// Below all priorities that were given.
    lowest: u64,
    /// How often each task has yielded since it last fell.
    yields: Vec<u64>,
    /// A task that has yielded so often falls.
    yields_max: u64,
}

impl Chooser {
    fn new(
        way: Way,
        seeds: std::ops::Range<u64>,
        seed: &Arc<AtomicU64>,
        steps_total: &Arc<AtomicUsize>,
    ) -> Chooser {
        Chooser {
            way,
            seeds,
            seed: Arc::clone(seed),
            steps_total: Arc::clone(steps_total),
            random: Random::new(0),
            length: None,
            steps: 0,
            priorities: Vec::new(),
            falls: Vec::new(),
            lowest: 1 << 63,
            yields: Vec::new(),
            yields_max: 1,
        }
    }

    fn begin(&mut self, seed: u64) {
        self.seed.store(seed, Ordering::SeqCst);
        self.random = Random::new(seed);
        self.steps = 0;
        self.priorities.clear();
        self.lowest = 1 << 63;
        self.yields.clear();
        self.yields_max = YIELDS_MAX[(seed % YIELDS_MAX.len() as u64) as usize];
        let length = self.length.unwrap_or(1).max(1);
        let count = self.random.between(1, FALLS_MAX);
        self.falls = (0..count).map(|_| self.random.below(length)).collect();
    }

    fn fall(&mut self, task: TaskId) {
        self.lowest -= 1;
        self.priorities[usize::from(task)] = self.lowest;
    }

    fn highest(&mut self, runnable: &[&Task], current: Option<TaskId>, yields: bool) -> TaskId {
        let last = runnable.iter().map(|task| usize::from(task.id())).max().expect("some can run");
        while self.priorities.len() <= last {
            self.priorities.push(self.random.word() | 1 << 63);
            self.yields.push(0);
        }
        if let Some(current) = current {
            let yielded = &mut self.yields[usize::from(current)];
            *yielded += u64::from(yields);
            if *yielded >= self.yields_max || self.falls.contains(&self.steps) {
                *yielded = 0;
                self.fall(current);
            }
        }
        let priority = |task: &&&Task| self.priorities[usize::from(task.id())];
        runnable.iter().max_by_key(priority).expect("some can run").id()
    }
}

impl Scheduler for Chooser {
    fn new_execution(&mut self) -> Option<Schedule> {
        // The first run measures.
        let seed = match self.length {
            None if self.steps == 0 => 0,
            None => {
                self.length = Some(self.steps);
                self.seeds.next()?
            }
            Some(_) => self.seeds.next()?,
        };
        self.begin(seed);
        Some(Schedule::new(seed))
    }

    fn next_task(
        &mut self,
        runnable: &[&Task],
        current: Option<TaskId>,
        yields: bool,
    ) -> Option<TaskId> {
        self.steps += 1;
        self.steps_total.fetch_add(1, Ordering::SeqCst);
        Some(match self.way {
            _ if self.length.is_none() => self.random.pick(runnable).id(),
            Way::Random => self.random.pick(runnable).id(),
            Way::Pct => self.highest(runnable, current, yields),
        })
    }

    fn next_u64(&mut self) -> u64 {
        self.random.word()
    }
}
