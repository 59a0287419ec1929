//! Starts the target, kills it or lets it die at a point, and compares what is
//! left with what was acknowledged; again and again on the same database.
//!
//! What must hold after each kill: every worker's acknowledged steps are there,
//! and at most the one step more that it was at; all families together hold
//! exactly what those steps give; every table passes `verify`; and what was to
//! be ingested is in the database or still outside of it.

use super::acknowledged::{self, AT_POINT, INGESTER, KEEPER, TABLES_WRITTEN};
use super::choices::Choices;
use super::ingester::{Taken, is_ingest, lost_source};
use super::moments::Moments;
use super::points::Point;
use super::target::{
    INGESTER_PLACE, KEEPER_PLACE, KeeperStep, Run, WRITERS, brief_entry, brief_family, keeper_step,
    writer,
};
use crate::load::{Contents, Expected, contents, difference_in};
use crate::random::Random;
use crate::temp_dir::TempDir;
use lodestore::Db;
use std::collections::BTreeMap;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Kills after which a new database is begun.
const KILLS_PER_DATABASE: usize = 25;
/// How long a target may take to come to its point.
const POINT_WAIT_MAX: Duration = Duration::from_secs(2);
/// Kills after which every moment must have been met.
const KILLS_FOR_ALL_MOMENTS: usize = 100;

/// What was done, for the report.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Kills by where they landed; `None` is a moment by the clock.
    pub kills: BTreeMap<Option<Point>, usize>,
    /// Steps that were acknowledged before a kill and found after it.
    pub steps_kept: u64,
    /// Steps that were in doubt at a kill and found after it.
    pub steps_in_doubt_kept: u64,
    /// Ingests that were acknowledged before a kill and found after it.
    pub ingests_kept: u64,
    /// Ingests in doubt, with their tables written, of which all was found.
    pub ingests_in_doubt_kept: u64,
    /// The same, of which nothing was found.
    pub ingests_in_doubt_undone: u64,
    /// What the kills cut short.
    pub moments: Moments,
}

impl std::fmt::Display for Report {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let total: usize = self.kills.values().sum();
        writeln!(
            f,
            "{total} kills, {} acknowledged steps kept, {} of those in doubt kept",
            self.steps_kept, self.steps_in_doubt_kept
        )?;
        for (point, count) in &self.kills {
            writeln!(f, "  {:18} {count}", point.map_or("at some moment", Point::name))?;
        }
        writeln!(f, "{}", self.moments)?;
        writeln!(
            f,
            "{} acknowledged ingests kept; of those in doubt {} whole, {} not at all",
            self.ingests_kept, self.ingests_in_doubt_kept, self.ingests_in_doubt_undone
        )
    }
}

/// Kills targets `count` times. The error says what was found wrong and leaves
/// the database where it says.
///
/// # Errors
/// A sentence for a person.
pub fn drive(program: &Path, count: usize, seed: u64) -> Result<Report, String> {
    let mut random = Random::new(seed);
    let mut report = Report::default();
    let mut database = None;
    for kill in 0..count {
        if kill % KILLS_PER_DATABASE == 0 {
            database = Some(Tested::new(random.word()));
        }
        let tested = database.as_mut().expect("a database was begun above");
        let wanted = Point::ALL.get(kill % (Point::ALL.len() + 1)).copied();
        let nth = match wanted {
            Some(Point::ManifestRotation | Point::SegmentRecycling) => random.between(1, 4),
            Some(Point::FamilyDrop | Point::IngestPublication) => random.between(1, 6),
            Some(Point::IngestEdit) => random.between(1, 12),
            _ => random.between(1, 40),
        };
        let point = wanted.map(|point| (point, nth as u64));
        let run_seed = random.word();
        if let Err(what) = tested.kill_once(program, point, run_seed, &mut report) {
            let directory = database.take().expect("it is in use").keep();
            return Err(format!(
                "kill {kill} of seed {seed}, at {point:?}: {what}\nit was opened with {}, and \
                 after the kill with {}\nthe database is left in {}",
                Choices::of(run_seed),
                Choices::of(!run_seed),
                directory.display()
            ));
        }
    }
    match report.moments.missing() {
        Some(name) if count >= KILLS_FOR_ALL_MOMENTS => {
            Err(format!("{report}{name}: none of {count} kills came at such a moment"))
        }
        _ => Ok(report),
    }
}

/// A database under test, and what must be in it.
struct Tested {
    directory: TempDir,
    history_seed: u64,
    /// Steps done, of each writer, of the keeper and of the ingester.
    done: Vec<u64>,
    expected: Expected,
    taken: Taken,
}

impl Tested {
    fn new(history_seed: u64) -> Tested {
        Tested {
            directory: TempDir::new("kill"),
            history_seed,
            done: vec![0; INGESTER_PLACE + 1],
            expected: Expected::default(),
            taken: Taken::default(),
        }
    }

    fn database(&self) -> PathBuf {
        self.directory.path().join("db")
    }

    /// Leaves the directory for someone to look at.
    fn keep(self) -> PathBuf {
        let path = self.directory.path().to_path_buf();
        std::mem::forget(self.directory);
        path
    }

    fn kill_once(
        &mut self,
        program: &Path,
        point: Option<(Point, u64)>,
        run_seed: u64,
        report: &mut Report,
    ) -> Result<(), String> {
        let acknowledged = self.directory.path().join("acknowledged");
        let _ = std::fs::remove_file(&acknowledged); // of the run before
        let run = Run {
            database: self.database(),
            acknowledged: acknowledged.clone(),
            history_seed: self.history_seed,
            run_seed,
            done: self.done.clone(),
            point,
        };
        let wait = match point {
            Some(_) => POINT_WAIT_MAX,
            None => Duration::from_millis(Random::new(run_seed).between(1, 700) as u64),
        };
        run_and_kill(program, &run, wait)?;
        let acknowledged = acknowledged::read(&acknowledged);
        let landed = acknowledged.get(&AT_POINT).map(|i| Point::ALL[*i as usize]);
        *report.kills.entry(landed).or_default() += 1;
        report.moments.count(&acknowledged, &self.database());
        self.check(&acknowledged, run_seed, report)
    }

    fn check(
        &mut self,
        acknowledged: &BTreeMap<u8, u64>,
        run_seed: u64,
        report: &mut Report,
    ) -> Result<(), String> {
        let options = Choices::of(!run_seed).options();
        let failed = |during: &str, error| format!("{during} after a kill: {error}");
        let db = Db::open(self.database(), options).map_err(|e| failed("opening", e))?;
        let found = contents(&db).map_err(|e| failed("reading", e))?;
        for id in 0..WRITERS {
            let writer = writer(self.history_seed, id);
            let at = usize::from(id);
            let least = acknowledged.get(&id).copied().unwrap_or(self.done[at]);
            let kept = writer.batches_in(&found);
            if kept < least || kept > least + 1 {
                return Err(format!(
                    "writer {id}: {least} batches were acknowledged, {kept} are there"
                ));
            }
            report.steps_kept += least - self.done[at];
            report.steps_in_doubt_kept += kept - least;
            (self.done[at] + 1..=kept).for_each(|index| self.expected.apply(&writer, index));
            self.done[at] = kept;
        }
        if let Some(difference) = self.expected.difference(&found) {
            return Err(difference);
        }
        self.check_keeper(acknowledged, &found)?;
        self.check_ingester(acknowledged, &found, report)?;
        db.verify().map_err(|e| failed("verifying", e))?;
        Ok(())
    }

    fn check_keeper(
        &mut self,
        acknowledged: &BTreeMap<u8, u64>,
        found: &Contents,
    ) -> Result<(), String> {
        let done = &mut self.done[KEEPER_PLACE];
        let least = acknowledged.get(&KEEPER).copied().unwrap_or(*done);
        let differences = [least, least + 1].map(|step| keeper_difference(step, found));
        let kept = differences.iter().position(Option::is_none);
        let difference = differences[0].clone().unwrap_or_default();
        let kept =
            kept.ok_or_else(|| format!("after {least} steps of the keeper: {difference}"))?;
        *done = least + kept as u64;
        Ok(())
    }

    fn check_ingester(
        &mut self,
        acknowledged: &BTreeMap<u8, u64>,
        found: &Contents,
        report: &mut Report,
    ) -> Result<(), String> {
        let (seed, done) = (self.history_seed, self.taken.steps());
        let least = acknowledged.get(&INGESTER).copied().unwrap_or(done);
        let sure = std::mem::take(&mut self.taken).after(seed, least);
        let next = sure.clone().after(seed, least + 1);
        let difference = sure.difference(found);
        let is_kept = difference.is_some() && next.difference(found).is_none();
        if let Some(difference) = difference.filter(|_| !is_kept) {
            return Err(format!("after {least} steps of the ingester: {difference}"));
        }
        let ingests = (done + 1..=least).filter(|index| is_ingest(seed, *index));
        report.ingests_kept += ingests.count() as u64;
        if acknowledged.get(&TABLES_WRITTEN) == Some(&(least + 1)) {
            let outside = Run::outside(&self.database());
            if let Some(lost) = lost_source(&outside, seed, least + 1, is_kept) {
                return Err(lost);
            }
            report.ingests_in_doubt_kept += u64::from(is_kept);
            report.ingests_in_doubt_undone += u64::from(!is_kept);
        }
        self.taken = if is_kept { next } else { sure };
        self.done[INGESTER_PLACE] = self.taken.steps();
        Ok(())
    }
}

/// How the brief families differ from what they are after `step` steps.
fn keeper_difference(step: u64, found: &Contents) -> Option<String> {
    let alive = match (step > 0).then(|| keeper_step(step)) {
        None | Some(KeeperStep::Drop(_)) => None,
        Some(KeeperStep::Create(family)) => Some((family, 0)),
        Some(KeeperStep::Put(family, put)) => Some((family, put)),
    };
    for number in 0..2 {
        let name = brief_family(number);
        let expected = alive
            .filter(|(family, _)| brief_family(*family) == name)
            .map(|(family, puts)| (1..=puts).map(|put| brief_entry(family, put)).collect());
        match (&expected, found.get(&name)) {
            (None, None) => {}
            (Some(_), None) => return Some(format!("family {name} is missing")),
            (None, Some(_)) => return Some(format!("family {name} should not be there")),
            (Some(expected), Some(found)) => {
                if let Some(difference) = difference_in(&name, expected, found) {
                    return Some(difference);
                }
            }
        }
    }
    None
}

fn run_and_kill(program: &Path, run: &Run, wait: Duration) -> Result<(), String> {
    let mut command = Command::new(program);
    let done: Vec<String> = run.done.iter().map(u64::to_string).collect();
    let point = run.point.map_or("none:0".to_string(), |(p, nth)| format!("{}:{nth}", p.name()));
    command.arg("work").arg(&run.database).arg(&run.acknowledged);
    command.args([run.history_seed.to_string(), run.run_seed.to_string()]);
    command.args([done.join(","), point]);
    let mut child = command
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| format!("starting {}: {error}", program.display()))?;
    let deadline = Instant::now() + wait;
    while Instant::now() < deadline {
        match child.try_wait() {
            Ok(None) => std::thread::sleep(Duration::from_millis(1)),
            Ok(Some(_)) => break,
            Err(error) => return Err(format!("waiting: {error}")),
        }
    }
    finish(child)
}

/// Kills the child if it still runs. One that ended by itself found an error.
fn finish(mut child: Child) -> Result<(), String> {
    let _ = child.kill(); // it may be gone already
    let output = child.wait_with_output().map_err(|error| format!("waiting: {error}"))?;
    if output.status.signal() == Some(9) {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    Err(format!("the target ended by itself, {}: {said}", output.status))
}

/// Reads a target's command line, as [`drive`] writes it.
///
/// # Errors
/// What is wrong with it.
pub fn parse_run(arguments: &[String]) -> Result<Run, String> {
    let [database, acknowledged, history_seed, run_seed, done, point] = arguments else {
        return Err("expected DATABASE ACKNOWLEDGED HISTORY-SEED RUN-SEED DONE POINT:NTH".into());
    };
    let number = |text: &str| text.parse::<u64>().map_err(|_| format!("{text} is no number"));
    let (name, nth) = point.split_once(':').ok_or("expected POINT:NTH")?;
    let point = Point::ALL.into_iter().find(|point| point.name() == name);
    Ok(Run {
        database: database.into(),
        acknowledged: acknowledged.into(),
        history_seed: number(history_seed)?,
        run_seed: number(run_seed)?,
        done: done.split(',').map(number).collect::<Result<_, _>>()?,
        point: point.map(|point| Ok::<_, String>((point, number(nth)?))).transpose()?,
    })
}
