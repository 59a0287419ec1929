//! Runs the benchmarks of a run, one after the other:
//! settings -> open -> (empty, if fresh) -> threads -> line -> document.
//!
//! Memory does not depend on the number of entries: keys and values are made
//! one at a time, latencies go into histograms of fixed size.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, mpsc};

use lodestore::{Db, Statistics};

use crate::counts::Counts;
use crate::directory::Directory;
use crate::error::BenchError;
use crate::line::{Around, Line};
use crate::printer::Printer;
use crate::progress::{Goal, INTERVAL, Progress};
use crate::settings::Settings;
use crate::system;
use crate::values::ValuePool;
use crate::worker::{Meter, Plan, Total, Worker};
use crate::workload::{Body, Workload};

/// A run in progress.
pub struct Runner<'a> {
    settings: &'a Settings,
    directory: &'a Directory,
    stop: &'a AtomicBool,
    /// One set of counters for the run, whatever databases it opens.
    statistics: Arc<Statistics>,
    values: ValuePool,
    /// `None` only while the directory is emptied, or after a failure there.
    db: Option<Db>,
    /// Threads started so far: each gets a seed of its own.
    threads_started: u64,
}

impl<'a> Runner<'a> {
    /// Opens the database, emptied if the settings don't keep it.
    pub fn new(
        settings: &'a Settings,
        directory: &'a Directory,
        stop: &'a AtomicBool,
    ) -> Result<Runner<'a>, BenchError> {
        let values = ValuePool::new(settings.compression_ratio, settings.value_bytes_max());
        let statistics = Arc::default();
        let mut runner =
            Runner { settings, directory, stop, statistics, values, db: None, threads_started: 0 };
        if !settings.keep {
            directory.empty()?;
        }
        runner.open()?;
        Ok(runner)
    }

    /// Runs every benchmark until the end or until the user stops it, and
    /// returns what they did.
    pub fn run(&mut self, printer: &mut Printer) -> Result<Vec<Line>, BenchError> {
        let mut lines = Vec::new();
        for workload in &self.settings.benchmarks {
            if self.stop.load(Ordering::Relaxed) {
                break;
            }
            if workload.fresh && self.settings.keep {
                let name = workload.name;
                printer.line(&format!("{name:<12} : skipped (--use_existing_db is true)\n"))?;
                continue;
            }
            if workload.fresh {
                self.db = None;
                self.directory.empty()?;
                self.open()?;
            }
            match workload.body {
                Body::Property(name) => printer.line(&self.property(name))?,
                Body::Threads(body) => {
                    let line = self.measure(workload, body)?;
                    printer.line(&line.text())?;
                    lines.push(line);
                }
            }
        }
        Ok(lines)
    }

    /// The database as it is at the end.
    pub fn db(&self) -> Option<&Db> {
        self.db.as_ref()
    }

    /// What the engine counted during the run.
    pub fn counts(&self) -> Counts {
        Counts::now(&self.statistics)
    }

    fn open(&mut self) -> Result<(), BenchError> {
        let mut options = self.settings.engine.clone();
        options.statistics = Some(Arc::clone(&self.statistics));
        let db = Db::open(self.directory.path(), options);
        self.db = Some(db.map_err(BenchError::engine("opening the database"))?);
        Ok(())
    }

    fn database(&self) -> &Db {
        self.db.as_ref().expect("open succeeded, or the run ended")
    }

    fn property(&self, name: &str) -> String {
        let text = self.database().property(name);
        format!("\n{}\n", text.as_deref().unwrap_or("(failed)"))
    }

    /// Runs `workload` in its threads and adds up what they did.
    fn measure(
        &mut self,
        workload: &Workload,
        body: fn(&mut Worker<'_>) -> lodestore::Result<()>,
    ) -> Result<Line, BenchError> {
        let settings = self.settings;
        let measured = if workload.is_once() { 1 } else { settings.threads };
        let threads = measured + workload.threads_extra;
        let first_seed = settings.seed + self.threads_started + 1;
        // A benchmark that is one operation takes as many seeds as the others, so
        // that those after it have the seeds that they have in LevelDB.
        self.threads_started += settings.threads + workload.threads_extra;

        let before = Counts::now(&self.statistics);
        if let Some(comparisons) = &settings.comparisons {
            comparisons.store(0, Ordering::Relaxed);
        }
        let plan = self.plan(workload, threads);
        let goal = match plan.duration {
            Some(limit) => Goal::Time(limit),
            None => Goal::Ops(plan.ops * measured),
        };
        let progress = settings.output.progress.then(|| Progress::new(workload.name, goal));
        let result = run_threads(&plan, threads as usize, first_seed, body, progress);
        let meters = result.map_err(BenchError::engine(workload.name))?;

        let around = Around {
            threads: measured,
            stopped: self.stop.load(Ordering::Relaxed),
            remark: self.remark(workload),
            comparisons: settings.comparisons.as_ref().map(|c| c.load(Ordering::Relaxed)),
            counts: Counts::now(&self.statistics).since(&before),
            disk_bytes: system::directory_bytes(self.directory.path())
                .map_err(BenchError::io(self.directory.path()))?,
            peak_rss_bytes: system::peak_rss_bytes(),
        };
        Ok(Line::new(workload.name, Total::of(meters), around))
    }

    fn plan(&self, workload: &Workload, threads: u64) -> Plan<'_> {
        let settings = self.settings;
        Plan {
            db: self.database(),
            num: settings.num,
            ops: settings.ops(workload),
            duration: settings.duration.filter(|_| !workload.is_once()),
            keys: settings.keys,
            values: self.values.clone(),
            value_bytes: workload.value_bytes.unwrap_or(settings.value_bytes),
            batch_entries: settings.batch_entries.unwrap_or(workload.batch_entries),
            write_options: settings.write_options(workload),
            timed: settings.timed,
            stop: self.stop,
            done: AtomicU64::new(0),
            running: AtomicUsize::new(threads as usize),
        }
    }

    /// LevelDB tells the number of writes where it is not `--num`.
    fn remark(&self, workload: &Workload) -> Option<String> {
        let ops = self.settings.ops(workload);
        let differs = workload.writes_entries() && ops != self.settings.num;
        (differs && self.settings.duration.is_none()).then(|| format!("({ops} ops)"))
    }
}

/// Runs `body` in `threads` threads that start together.
/// # Errors: that of the first thread, by number, that failed.
fn run_threads<'p>(
    plan: &'p Plan<'p>,
    threads: usize,
    first_seed: u64,
    body: fn(&mut Worker<'_>) -> lodestore::Result<()>,
    mut progress: Option<Progress>,
) -> lodestore::Result<Vec<Meter<'p>>> {
    let barrier = Barrier::new(threads);
    let (ended, ends) = mpsc::channel();
    std::thread::scope(|scope| {
        let handles: Vec<_> = (0..threads)
            .map(|index| {
                let (barrier, ended) = (&barrier, ended.clone());
                scope.spawn(move || {
                    // Dropped when the thread ends, however it ends.
                    let _ended: mpsc::Sender<()> = ended;
                    let mut worker = Worker::new(plan, index, first_seed + index as u64);
                    barrier.wait();
                    worker.meter.start();
                    let result = body(&mut worker);
                    worker.meter.stop();
                    plan.running.fetch_sub(1, Ordering::Relaxed);
                    result.map(|()| worker.meter)
                })
            })
            .collect();
        drop(ended);
        while let Err(mpsc::RecvTimeoutError::Timeout) = ends.recv_timeout(INTERVAL) {
            if let Some(progress) = &mut progress {
                progress.draw(plan.done.load(Ordering::Relaxed));
            }
        }
        let join = |handle: std::thread::ScopedJoinHandle<'_, _>| match handle.join() {
            Ok(result) => result,
            Err(panic) => std::panic::resume_unwind(panic),
        };
        handles.into_iter().map(join).collect()
    })
}
