//! Everything that looks at a benchmark while its threads work: the progress
//! line, the rates, the samples for plots. One thread calls it every few
//! moments; nothing in here is in the way of what is measured.

use std::time::{Duration, Instant};

use lodestore::{Db, Statistics};

use crate::counts::Counts;
use crate::error::BenchError;
use crate::progress::{Goal, Progress};
use crate::rates::{RateFile, RateLines, tell};
use crate::settings::Settings;
use crate::timeline::{Sample, Timeline};

/// How often it looks.
pub const INTERVAL: Duration = Duration::from_millis(50);

/// What lasts longer than one benchmark.
#[derive(Debug)]
pub struct RunWatch {
    start: Instant,
    rows: Option<RateFile>,
    /// Operations of the benchmarks that are over.
    ops_before: u64,
}

impl RunWatch {
    /// For a run that begins now.
    pub fn new(settings: &Settings) -> Result<RunWatch, BenchError> {
        let rows = settings
            .output
            .rows_every
            .map(|every| RateFile::create(&settings.output.rows_file, every));
        Ok(RunWatch { start: Instant::now(), rows: rows.transpose()?, ops_before: 0 })
    }
}

/// Looks at one benchmark.
pub struct Watch<'a> {
    run: &'a mut RunWatch,
    db: &'a Db,
    statistics: &'a Statistics,
    before: Counts,
    start: Instant,
    progress: Option<Progress>,
    lines: Option<RateLines>,
    statistics_with_lines: bool,
    timeline: Option<Timeline>,
    /// The first thing that failed; the benchmark goes on without the rows.
    failure: Option<BenchError>,
}

impl<'a> Watch<'a> {
    /// For the benchmark `name`, which begins now.
    pub fn new(
        run: &'a mut RunWatch,
        settings: &Settings,
        name: &str,
        goal: Goal,
        db: &'a Db,
        statistics: &'a Statistics,
    ) -> Watch<'a> {
        let output = &settings.output;
        let mut watch = Watch {
            run,
            db,
            statistics,
            before: Counts::now(statistics),
            start: Instant::now(),
            progress: output.progress.then(|| Progress::new(name, goal)),
            lines: output.rates_every.map(|every| RateLines::new(name, every)),
            statistics_with_lines: output.statistics_with_rates,
            timeline: (output.json || output.page.is_some()).then(Timeline::default),
            failure: None,
        };
        watch.sample(0);
        watch
    }

    /// Looks once; `ops` are done.
    pub fn look(&mut self, ops: u64) {
        if let Some(progress) = &mut self.progress {
            progress.draw(ops);
        }
        let elapsed = self.start.elapsed();
        if let Some(line) = self.lines.as_mut().and_then(|lines| lines.look(elapsed, ops)) {
            tell(&line);
            if self.statistics_with_lines {
                tell(&self.db.property("lodestore.stats").unwrap_or_default());
            }
        }
        self.row(ops);
        if self.timeline.as_ref().is_some_and(|timeline| timeline.is_due(elapsed)) {
            self.sample(ops);
        }
    }

    /// Ends: the samples, the last of them of the end, if there are any.
    /// # Errors: `Io` if `--report_file` could not be written.
    pub fn finish(mut self, ops: u64) -> Result<Vec<Sample>, BenchError> {
        self.row(ops);
        self.sample(ops);
        self.run.ops_before += ops;
        match self.failure {
            Some(failure) => Err(failure),
            None => Ok(self.timeline.map(Timeline::into_samples).unwrap_or_default()),
        }
    }

    fn row(&mut self, ops: u64) {
        let Some(rows) = &mut self.run.rows else {
            return;
        };
        if let Err(failure) = rows.look(self.run.start.elapsed(), self.run.ops_before + ops) {
            self.failure.get_or_insert(failure);
            self.run.rows = None;
        }
    }

    fn sample(&mut self, ops: u64) {
        if let Some(timeline) = &mut self.timeline {
            let counts = Counts::now(self.statistics).since(&self.before);
            let elapsed = self.start.elapsed();
            timeline.add(elapsed, Sample::now(elapsed, ops, &counts, self.db));
        }
    }
}
