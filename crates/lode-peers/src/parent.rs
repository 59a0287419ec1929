//! The parent: starts one child after the other and collects what they tell.

use std::fs;
use std::io::{self, Write as _};
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Instant;

use lode_bench::seconds_text;

use crate::engine::Result;
use crate::failure::Failure;
use crate::gauge::Gauge;
use crate::protocol::{Answer, Job};
use crate::results::{Gap, Sample, Walk, check_agreement};
use crate::schedule::Plan;

/// How the system ends a process that exceeds its limit on memory.
const SIGKILL: i32 = 9;

/// What the allocator of a build with RocksDB is told within a limit on memory: there
/// what it keeps for later counts, by default for ten seconds.
const FRUGAL: &str = "dirty_decay_ms:1000,muzzy_decay_ms:0,background_thread:true";

/// What all children told.
#[derive(Debug, Default)]
pub struct Collected {
    /// Measurements.
    pub samples: Vec<Sample>,
    /// What engines cannot do.
    pub gaps: Vec<Gap>,
    /// What memory took beside each child.
    pub walks: Vec<Walk>,
}

/// Runs `plan` in a new directory below `place`, which is removed in the end.
/// # Errors: `Disagreement` as soon as two engines found different things.
pub fn run(plan: &Plan, place: &Path) -> Result<Collected> {
    let scratch = Scratch::new(place)?;
    let gauge = Gauge::new();
    let mut collected = Collected::default();
    for round in 0..plan.rounds {
        for job in plan.jobs(round, &scratch.0) {
            let start = Instant::now();
            fs::create_dir(&job.directory).map_err(Failure::io(&job.directory))?;
            let (answers, nanos) = gauge.beside(|| answers(&job, round));
            for line in answers? {
                collected.take(line, &job, round)?;
            }
            let Job { engine, group, shape, .. } = job;
            collected.walks.push(Walk { round, engine, group, shape, nanos });
            check_agreement(&collected.samples, round)?;
            fs::remove_dir_all(&job.directory).map_err(Failure::io(&job.directory))?;
            let took = seconds_text(start.elapsed().as_secs_f64());
            let (number, rounds) = (round + 1, plan.rounds);
            eprintln!("round {number} of {rounds}: {}, {took}, memory {nanos:.0} ns", name(&job));
        }
    }
    collected.gaps.sort();
    collected.gaps.dedup();
    Ok(collected)
}

impl Collected {
    fn take(&mut self, answer: Answer, job: &Job, round: usize) -> Result<()> {
        match answer {
            Answer::Measured(measured) => self.samples.push(Sample {
                round,
                engine: job.engine,
                shape: job.shape,
                measured: *measured,
            }),
            Answer::Cannot { workload, reason } => {
                self.gaps.push(Gap { engine: job.engine, workload, reason });
            }
            Answer::Failed { reason, usage: true } => return Err(Failure::Usage(reason)),
            Answer::Failed { reason, usage: false } => return Err(failed(job, round, &reason)),
        }
        Ok(())
    }
}

/// What the child of `job` answers.
fn answers(job: &Job, round: usize) -> Result<Vec<Answer>> {
    let output = child(job).map_err(|error| failed(job, round, &error.to_string()))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let answers: std::result::Result<Vec<Answer>, String> =
        text.lines().map(Answer::parse).collect();
    let answers = answers.map_err(|error| failed(job, round, &error))?;
    if output.status.signal() == Some(SIGKILL) && job.memory_limit.is_some() {
        return Ok(with_killed(answers, job));
    }
    if !output.status.success() {
        let what = format!("its process ended with {}", output.status);
        return Err(failed(job, round, &what));
    }
    let is_complete = answers.len() == job.workloads.len()
        || matches!(answers.last(), Some(Answer::Failed { .. }));
    if !is_complete {
        let (told, wanted) = (answers.len(), job.workloads.len());
        return Err(failed(job, round, &format!("it told of {told} of {wanted} workloads")));
    }
    Ok(answers)
}

/// `answers`, and that the workloads which are missing there cannot be done
/// within the limit on memory: the system kills what exceeds it.
fn with_killed(mut answers: Vec<Answer>, job: &Job) -> Vec<Answer> {
    let told = answers.len();
    let reason = "it was killed, for more memory than --memory-limit".to_string();
    let missing = job.workloads.iter().skip(told);
    answers.extend(missing.map(|&workload| Answer::Cannot { workload, reason: reason.clone() }));
    answers
}

fn child(job: &Job) -> io::Result<Output> {
    let mut command = Command::new(std::env::current_exe()?);
    if job.memory_limit.is_some() {
        command.env("MALLOC_CONF", FRUGAL);
    }
    let mut child = command.arg("worker").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    let text = serde_json::to_string(job).expect("plain fields serialize");
    let mut input = child.stdin.take().expect("it was asked for");
    let written = input.write_all(text.as_bytes());
    drop(input);
    // A child that died early is told of by its exit, not by the broken pipe.
    let output = child.wait_with_output()?;
    if output.status.success() {
        written?;
    }
    Ok(output)
}

fn failed(job: &Job, round: usize, what: &str) -> Failure {
    Failure::Failed(format!("round {}, {}: {what}", round + 1, name(job)))
}

fn name(job: &Job) -> String {
    format!("{} {} {}", job.engine.name(), job.group.name(), job.shape.name())
}

/// A directory that is removed with everything in it.
struct Scratch(PathBuf);

/// Followed by the number of the process.
const SCRATCH_START: &str = "lode-peers-";

impl Scratch {
    fn new(place: &Path) -> Result<Scratch> {
        let path = place.join(format!("{SCRATCH_START}{}", std::process::id()));
        fs::create_dir_all(place).map_err(Failure::io(place))?;
        remove_leftovers(place).map_err(Failure::io(place))?;
        fs::create_dir(&path).map_err(Failure::io(&path))?;
        Ok(Scratch(path))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.0) {
            eprintln!("lode-peers: {} is left behind: {error}", self.0.display());
        }
    }
}

/// Removes databases of runs that were killed; one of a living process is left
/// alone.
fn remove_leftovers(place: &Path) -> io::Result<()> {
    for entry in fs::read_dir(place)? {
        let entry = entry?;
        let name = entry.file_name();
        let process = name.to_str().and_then(|name| name.strip_prefix(SCRATCH_START));
        let is_number = |id: &&str| id.parse::<u32>().is_ok();
        if process.filter(is_number).is_some_and(|id| !Path::new("/proc").join(id).exists()) {
            fs::remove_dir_all(entry.path())?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engines::EngineKind;
    use crate::lanes::Lane;
    use crate::protocol::tests::measured;
    use crate::stream::Shape;
    use crate::workload::Workload;

    fn job() -> Job {
        let plan = Plan {
            lane: Lane::Equal,
            engines: vec![EngineKind::LevelDb],
            workloads: vec![Workload::FillSync],
            shapes: vec![Shape::Hashes],
            entries: 10,
            rounds: 1,
            seed: 1,
            threads: 1,
            reads: 10,
            latencies: false,
            memory_limit: None,
        };
        plan.jobs(0, Path::new("/scratch")).remove(0)
    }

    /// Measurements become samples, what cannot be done a gap with its reason,
    /// failures the end of the run, with round, engine and group.
    #[test]
    fn answers_become_samples_gaps_or_failures() {
        let mut collected = Collected::default();
        let measured = Answer::Measured(Box::new(measured(Workload::FillSync, 1.0)));
        collected.take(measured, &job(), 2).expect("a sample");
        let [sample] = collected.samples.as_slice() else { panic!("{collected:?}") };
        assert_eq!((sample.round, sample.engine), (2, EngineKind::LevelDb));
        assert_eq!(sample.shape, Shape::Hashes);
        let reason = "no".to_string();
        let cannot = Answer::Cannot { workload: Workload::FillSync, reason: reason.clone() };
        collected.take(cannot, &job(), 2).expect("a gap");
        let gap = Gap {
            engine: EngineKind::LevelDb,
            workload: Workload::FillSync,
            reason: reason.clone(),
        };
        assert_eq!(collected.gaps, [gap]);
        let usage = Answer::Failed { reason: reason.clone(), usage: true };
        assert_eq!(collected.take(usage, &job(), 2), Err(Failure::Usage(reason.clone())));
        let failed = Answer::Failed { reason, usage: false };
        let text = "round 3, leveldb synced 40-60: no".to_string();
        assert_eq!(collected.take(failed, &job(), 2), Err(Failure::Failed(text)));
    }

    /// An engine that needs more memory than there is leaves cells empty, by
    /// name; what it had done before counts.
    #[test]
    fn killed_children_leave_gaps() {
        let workloads = vec![Workload::FillRandom, Workload::ReadSeq, Workload::MultiGet];
        let job = Job { workloads, ..job() };
        let first = Answer::Measured(Box::new(measured(Workload::FillRandom, 1.0)));
        let answers = with_killed(vec![first.clone()], &job);
        let [told, rest @ ..] = answers.as_slice() else { panic!("{answers:?}") };
        assert_eq!(*told, first);
        let gaps: Vec<Workload> = rest
            .iter()
            .map(|answer| match answer {
                Answer::Cannot { workload, reason } if reason.contains("killed") => *workload,
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(gaps, [Workload::ReadSeq, Workload::MultiGet]);
    }

    /// A run that was killed leaves nothing for longer than until the next one;
    /// what is another's stays, and so does what only looks like one.
    #[test]
    fn leftovers_are_removed() {
        let place = tempfile::TempDir::new().expect("a temporary directory");
        let make = |name: String| {
            let path = place.path().join(name);
            fs::create_dir_all(path.join("0-lodestore")).expect("a directory");
            path
        };
        // No system numbers its processes this high.
        let dead = make(format!("{SCRATCH_START}4294967295"));
        let alive = make(format!("{SCRATCH_START}1"));
        let other = make(format!("{SCRATCH_START}results"));
        let scratch = Scratch::new(place.path()).expect("a scratch directory");
        assert!(!dead.exists() && alive.exists() && other.exists());
        let path = scratch.0.clone();
        assert!(path.exists());
        drop(scratch);
        assert!(!path.exists());
    }
}
