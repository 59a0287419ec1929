//! The child: one engine, one group of workloads, one directory.

use std::io::{Read as _, Write as _};

use lode_bench::pulse::cgroup::MemoryLimit;
use lode_bench::pulse::pages::drop_cached;
use lode_bench::system;
use rustix::process::{Resource, Signal, getrlimit, set_parent_process_death_signal, setrlimit};

use crate::adapters;
use crate::engine::{Engine, Result};
use crate::failure::Failure;
use crate::lanes::Settings;
use crate::meter::{self, Meter};
use crate::protocol::{Answer, Job, Measured, Quiet};
use crate::stream::Stream;
use crate::workload::{Group, Workload};
use crate::workloads::{self, Done, Run};

/// Does the job on standard input, and answers on standard output.
pub fn run() -> Result<()> {
    // A child whose parent was killed would disturb the next run for hours.
    let ended = set_parent_process_death_signal(Some(Signal::KILL));
    ended.map_err(Failure::of("the signal of a parent's end"))?;
    let mut text = String::new();
    let read = std::io::stdin().read_to_string(&mut text);
    read.map_err(Failure::of("standard input"))?;
    let job: Job = serde_json::from_str(&text)
        .map_err(|error| Failure::Usage(format!("this is no job of a comparison: {error}")))?;
    raise_file_limit()?;
    if let Err(failure) = work(&job) {
        let usage = matches!(failure, Failure::Usage(_));
        tell(&Answer::Failed { reason: failure.to_string(), usage })?;
    }
    Ok(())
}

/// Lets the process have as many open files as it may: LevelDB goes by that,
/// and the others should have no less.
fn raise_file_limit() -> Result<()> {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    setrlimit(Resource::Nofile, limit).map_err(Failure::of("the limit on open files"))
}

fn tell(answer: &Answer) -> Result<()> {
    let mut output = std::io::stdout().lock();
    let written = writeln!(output, "{}", answer.line()).and_then(|()| output.flush());
    written.map_err(Failure::of("standard output"))
}

fn work(job: &Job) -> Result<()> {
    let limit = job.memory_limit.map(MemoryLimit::enter).transpose()?;
    let settings = job.lane.settings(job.engine, job.memory_limit);
    let needed = job.group.needed(&job.workloads);
    let mut worker = match Worker::new(job, settings, limit) {
        Err(Failure::Cannot(reason)) => {
            let cannot =
                |&workload: &Workload| tell(&Answer::Cannot { workload, reason: reason.clone() });
            return job.workloads.iter().try_for_each(cannot);
        }
        worker => worker?,
    };
    if needed.first().is_some_and(|workload| workload.group() == Group::Pulse) {
        workloads::load_pulse(&worker.run())?;
        worker.engine().wait_until_quiet()?;
        meter::wait_until_quiet()?;
    }
    for workload in needed {
        let answer = match worker.measure(workload) {
            Err(Failure::Cannot(reason)) => Answer::Cannot { workload, reason },
            measured => Answer::Measured(Box::new(measured?)),
        };
        if job.workloads.contains(&workload) {
            tell(&answer)?;
        }
    }
    Ok(())
}

/// The open database and what it is measured with.
struct Worker<'a> {
    job: &'a Job,
    settings: Settings,
    stream: Stream,
    /// `None` only while it is closed in order to be opened again. It goes
    /// before the limit that holds it.
    engine: Option<Box<dyn Engine>>,
    limit: Option<MemoryLimit>,
}

impl<'a> Worker<'a> {
    fn new(job: &'a Job, settings: Settings, limit: Option<MemoryLimit>) -> Result<Worker<'a>> {
        let stream = Stream::new(job.shape, job.seed, job.entries);
        let engine = Some(adapters::open(job.engine, &job.directory, &settings)?);
        Ok(Worker { job, settings, stream, limit, engine })
    }

    fn engine(&self) -> &dyn Engine {
        self.engine.as_deref().expect("it is opened again before anything else happens")
    }

    fn run(&self) -> Run<'_> {
        Run {
            engine: self.engine(),
            stream: &self.stream,
            batch_changes: self.settings.batch_changes.unwrap_or(1) as usize,
            threads: self.job.threads,
            reads: self.job.reads,
            latencies: self.job.latencies,
        }
    }

    fn measure(&mut self, workload: Workload) -> Result<Measured> {
        if self.limit.is_some() && !workload.is_write() {
            self.cool_down()?;
        }
        meter::reset_peak_rss();
        let told_before = self.engine().bytes_written();
        let mut start = Meter::now();
        let done = workloads::run(workload, &self.run(), &mut || start = Meter::now())?;
        let end = Meter::now();
        let (quiet, last) = match workload.is_write() {
            true => {
                self.engine().wait_until_quiet()?;
                let quiet = meter::wait_until_quiet()?;
                (Some(quiet), quiet)
            }
            false => (None, end),
        };
        let quiet = quiet.map(|quiet| Quiet {
            seconds: (quiet.at - start.at).as_secs_f64(),
            cpu_seconds: (quiet.cpu - start.cpu).as_secs_f64(),
        });
        let Done { operations, user_bytes, digest, latencies, puts_beside, written } = done;
        drop(written); // not before the engine was quiet
        Ok(Measured {
            workload,
            operations,
            seconds: (end.at - start.at).as_secs_f64(),
            cpu_seconds: (end.cpu - start.cpu).as_secs_f64(),
            quiet,
            user_bytes,
            written_bytes: last.io.write_bytes.saturating_sub(start.io.write_bytes),
            read_bytes: last.io.read_bytes.saturating_sub(start.io.read_bytes),
            engine_written_bytes: self
                .engine()
                .bytes_written()
                .zip(told_before)
                .map(|(after, before)| after - before),
            directory_bytes: system::allocated_bytes(&self.job.directory)
                .map_err(Failure::io(&self.job.directory))?,
            peak_rss_bytes: system::peak_rss_bytes().unwrap_or(0),
            peak_group_bytes: self.limit.as_ref().and_then(MemoryLimit::peak_bytes),
            found: digest.as_ref().map(|digest| digest.found()),
            digest: digest.as_ref().map(|digest| digest.text()),
            latency: latencies.latency(),
            puts_beside,
        })
    }

    /// Closes the database, drops its files from the page cache, opens it.
    fn cool_down(&mut self) -> Result<()> {
        self.engine = None;
        drop_cached(&self.job.directory)?;
        self.engine = Some(adapters::open(self.job.engine, &self.job.directory, &self.settings)?);
        self.engine().wait_until_quiet()?;
        meter::wait_until_quiet()?;
        Ok(())
    }
}
