//! Runs the benchmarks of a run, one after the other:
//! settings -> open -> (empty, if fresh) -> threads -> line -> document.
//!
//! Memory does not depend on the number of entries: keys and values are made
//! one at a time, latencies go into histograms of fixed size, samples are
//! bounded.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Instant;

use lodestore::{Db, Statistics};

use crate::counts::Counts;
use crate::directory::Directory;
use crate::error::BenchError;
use crate::histogram::Histogram;
use crate::line::{Around, Line};
use crate::pace::Pace;
use crate::permutation::Permutation;
use crate::popularity::Popularity;
use crate::printer::Printer;
use crate::progress::Goal;
use crate::repeats::{Average, Repeats};
use crate::selection::Selected;
use crate::settings::Settings;
use crate::system;
use crate::threads::run_threads;
use crate::timeline::Sample;
use crate::values::ValuePool;
use crate::watch::{RunWatch, Watch};
use crate::worker::{Plan, Total};
use crate::workload::{Body, ThreadBody, Workload};

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
    watch: RunWatch,
}

/// What the benchmarks of a run did.
#[derive(Debug, Default)]
pub struct Results {
    /// One for each run of a benchmark; warm-ups are printed, and forgotten.
    pub lines: Vec<Line>,
    /// One for each benchmark that was repeated.
    pub averages: Vec<Average>,
}

impl<'a> Runner<'a> {
    /// Opens the database, emptied if the settings don't keep it.
    pub fn new(
        settings: &'a Settings,
        directory: &'a Directory,
        stop: &'a AtomicBool,
    ) -> Result<Runner<'a>, BenchError> {
        let mut runner = Runner {
            settings,
            directory,
            stop,
            statistics: Arc::default(),
            values: ValuePool::new(settings.compression_ratio, settings.value_bytes_max()),
            db: None,
            threads_started: 0,
            watch: RunWatch::new(settings)?,
        };
        if !settings.keep {
            directory.empty()?;
        }
        runner.open()?;
        Ok(runner)
    }

    /// Runs every benchmark until the end or until the user stops it, and
    /// returns what they did.
    pub fn run(&mut self, printer: &mut Printer) -> Result<Results, BenchError> {
        let mut results = Results::default();
        for selected in &self.settings.benchmarks {
            if self.stopped() {
                break;
            }
            let workload = selected.workload;
            if workload.fresh && self.settings.keep {
                let name = workload.name;
                printer.line(&format!("{name:<12} : skipped (--use_existing_db is true)\n"))?;
                continue;
            }
            match workload.body {
                Body::Property(name) => printer.line(&self.property(name))?,
                Body::Threads(_) | Body::Reopen => self.repeat(selected, &mut results, printer)?,
            }
        }
        Ok(results)
    }

    /// Runs a benchmark as often as was asked for.
    fn repeat(
        &mut self,
        selected: &Selected,
        results: &mut Results,
        printer: &mut Printer,
    ) -> Result<(), BenchError> {
        let Selected { workload, repeats, warmups } = *selected;
        if warmups > 0 {
            printer.prose(&format!("Warming up benchmark by running {warmups} times\n"))?;
        }
        if repeats > 1 {
            printer.prose(&format!("Running benchmark for {repeats} times\n"))?;
        }
        let mut sum = Repeats::new(workload.name);
        for at in 0..warmups + repeats {
            if self.stopped() {
                break;
            }
            let line = self.measure(workload, at < warmups)?;
            printer.line(&line.text())?;
            if at < warmups {
                continue;
            }
            // A part of a run would bend the mean.
            if !line.stopped {
                sum.add(&line);
                if let Some(average) = sum.average() {
                    printer.line(&match self.settings.output.interval_only {
                        true => average.interval_text(),
                        false => average.text(),
                    })?;
                }
            }
            results.lines.push(line);
        }
        if let Some(average) = sum.average() {
            printer.line(&average.final_text())?;
            results.averages.push(average);
        }
        Ok(())
    }

    /// The database as it is at the end.
    pub fn db(&self) -> Option<&Db> {
        self.db.as_ref()
    }

    /// What the engine counted during the run.
    pub fn counts(&self) -> Counts {
        Counts::now(&self.statistics)
    }

    fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    fn open(&mut self) -> Result<(), BenchError> {
        let mut options = self.settings.engine.clone();
        options.statistics = Some(Arc::clone(&self.statistics));
        let db = Db::open(self.directory.path(), options);
        self.db = Some(db.map_err(BenchError::engine("opening the database"))?);
        Ok(())
    }

    fn property(&self, name: &str) -> String {
        let text = database(&self.db).property(name);
        format!("\n{}\n", text.as_deref().unwrap_or("(failed)"))
    }

    /// Runs `workload` once, with an empty database if it needs one.
    fn measure(&mut self, workload: &Workload, warmup: bool) -> Result<Line, BenchError> {
        if workload.fresh {
            self.db = None;
            self.directory.empty()?;
            self.open()?;
        }
        let before = Counts::now(&self.statistics);
        if let Some(comparisons) = &self.settings.comparisons {
            comparisons.store(0, Ordering::Relaxed);
        }
        let (total, samples) = match workload.body {
            Body::Threads(body) => self.measure_threads(workload, body)?,
            Body::Reopen => (self.measure_opening(workload)?, Vec::new()),
            Body::Property(_) => unreachable!("a property is printed, not measured"),
        };
        let around = Around { warmup, samples, ..self.around(workload, &total, &before)? };
        Ok(Line::new(workload.name, total, around))
    }

    fn around(
        &self,
        workload: &Workload,
        total: &Total,
        before: &Counts,
    ) -> Result<Around, BenchError> {
        let comparisons = self.settings.comparisons.as_ref();
        Ok(Around {
            threads: self.settings.threads(workload),
            stopped: self.stopped(),
            remark: self.remark(workload, total),
            beside: workload.beside_name(),
            pictured: self.settings.output.histogram,
            comparisons: comparisons.map(|count| count.load(Ordering::Relaxed)),
            counts: Counts::now(&self.statistics).since(before),
            disk_bytes: system::directory_bytes(self.directory.path())
                .map_err(BenchError::io(self.directory.path()))?,
            peak_rss_bytes: system::peak_rss_bytes(),
            ..Around::default()
        })
    }

    /// Runs `body` in the threads of `workload` and adds up what they did.
    fn measure_threads(
        &mut self,
        workload: &Workload,
        body: ThreadBody,
    ) -> Result<(Total, Vec<Sample>), BenchError> {
        let settings = self.settings;
        let measured = settings.threads(workload);
        let threads = measured + workload.threads_extra();
        let first_seed = settings.seed + self.threads_started + 1;
        // A benchmark of one thread takes as many seeds as the others, so that
        // those after it have the seeds that they have in LevelDB.
        self.threads_started += settings.threads + workload.threads_extra();

        let db = database(&self.db);
        let plan = plan(settings, workload, db, self.values.clone(), threads, self.stop);
        let goal = match plan.duration {
            _ if workload.is_led() => Goal::Unknown,
            Some(limit) => Goal::Time(limit),
            None => Goal::Ops(plan.ops.saturating_mul(measured)),
        };
        let mut watch =
            Watch::new(&mut self.watch, settings, workload.name, goal, db, &self.statistics);
        let mut look = |ops| watch.look(ops);
        let result = run_threads(&plan, threads as usize, first_seed, body, &mut look);
        let meters = result.map_err(BenchError::engine(workload.name))?;
        let total = Total::of(meters);
        let samples = watch.finish(total.ops)?;
        Ok((total, samples))
    }

    /// Closes and opens the database. There is no thread to do it in: nothing
    /// else can run meanwhile.
    fn measure_opening(&mut self, workload: &Workload) -> Result<Total, BenchError> {
        let settings = self.settings;
        let ops_max = if settings.duration.is_some() { u64::MAX } else { settings.ops(workload) };
        self.threads_started += settings.threads;
        let mut histogram = settings.timed.then(Histogram::default);
        let start = Instant::now();
        let mut ops = 0;
        while ops < ops_max
            && !self.stopped()
            && settings.duration.is_none_or(|limit| start.elapsed() < limit)
        {
            let began = Instant::now();
            self.db = None;
            self.open()?;
            if let Some(histogram) = &mut histogram {
                histogram.add(began.elapsed());
            }
            ops += 1;
        }
        let elapsed = start.elapsed();
        Ok(Total { ops, thread_time: elapsed, elapsed, histogram, ..Total::default() })
    }

    /// LevelDB tells the number of writes where it is not `--num`; RocksDB tells
    /// what the operations of a mixture were.
    fn remark(&self, workload: &Workload, total: &Total) -> Option<String> {
        let settings = self.settings;
        let ops = settings.ops(workload);
        let differs = workload.writes_entries() && ops != settings.num;
        let amount = (differs && settings.duration.is_none()).then(|| format!("({ops} ops)"));
        let single = (workload.single && settings.threads > 1).then(|| "(1 thread)".to_string());
        let parts = workload.tell.zip(total.parts).map(|(tell, parts)| tell(&parts));
        let remarks: Vec<String> = amount.into_iter().chain(single).chain(parts).collect();
        (!remarks.is_empty()).then(|| remarks.join(" "))
    }
}

fn database(db: &Option<Db>) -> &Db {
    db.as_ref().expect("open succeeded, or the run ended")
}

/// What all `threads` of `workload` share.
fn plan<'a>(
    settings: &'a Settings,
    workload: &Workload,
    db: &'a Db,
    values: ValuePool,
    threads: u64,
    stop: &'a AtomicBool,
) -> Plan<'a> {
    Plan {
        db,
        num: settings.num,
        ops: settings.ops(workload),
        duration: settings.duration.filter(|_| !workload.is_once()),
        keys: settings.keys,
        values,
        value_bytes: workload.value_bytes.unwrap_or(settings.value_bytes),
        batch_entries: settings.batch_entries.unwrap_or(workload.batch_entries),
        write_options: settings.write_options(workload),
        shapes: &settings.shapes,
        lookups: Popularity::new(settings.num, settings.shapes.read_exp_range, settings.seed),
        permutation: Permutation::new(settings.num, settings.seed),
        write_pace: settings.write_rate_max.map(Pace::new),
        read_pace: settings.read_rate_max.map(Pace::new),
        timed: settings.timed,
        stop,
        done: AtomicU64::new(0),
        running: AtomicUsize::new(threads as usize),
        clock: AtomicU64::new(0),
        led: AtomicBool::new(false),
    }
}
