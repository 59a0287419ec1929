//! What writers waited for: counted by cause, and, for long waits, kept in
//! words.

use std::collections::VecDeque;
use std::fmt::Write;
use std::time::Duration;

use crate::error::StallCause;
use crate::events::Event;
use crate::stats::{Counter, Statistics};
use crate::sync::Mutex;

use super::background::BackgroundState;
use super::engine::Engine;
use super::family::FamilyCore;
use super::pressure::Load;

/// Waits from here on leave a line.
pub(crate) const LONG: Duration = Duration::from_millis(100);
/// Lines kept: the newest.
const LINES_MAX: usize = 256;

/// The newest long waits, in words.
#[derive(Debug, Default)]
pub(crate) struct StallLog {
    lines: Mutex<VecDeque<String>>,
}

impl StallLog {
    pub(crate) fn add(&self, line: String) {
        let mut lines = self.lines.lock();
        if lines.len() == LINES_MAX {
            lines.pop_front();
        }
        lines.push_back(line);
    }

    /// The lines, oldest first.
    pub(crate) fn text(&self) -> String {
        self.lines.lock().iter().fold(String::new(), |text, line| text + line + "\n")
    }
}

/// A wait that is over.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wait {
    pub(crate) cause: StallCause,
    pub(crate) begin: Duration,
    pub(crate) end: Duration,
    /// True if a hard limit was met, false if the writer was only paced.
    pub(crate) is_stop: bool,
}

/// Counters of a cause: time, paced writes if there can be any, stopped writes.
fn counters(cause: StallCause) -> Option<(Counter, Option<Counter>, Counter)> {
    use Counter::*;
    match cause {
        StallCause::Flush => Some((StallMemtableMicros, Some(SlowdownsMemtable), StopsMemtable)),
        StallCause::Level0 => Some((StallLevel0Micros, Some(SlowdownsLevel0), StopsLevel0)),
        StallCause::Debt => Some((StallDebtMicros, Some(SlowdownsDebt), StopsDebt)),
        StallCause::Memory => Some((StallMemoryMicros, None, StopsMemory)),
        // Waiting for one's turn in the log is part of every group commit.
        StallCause::Log => None,
    }
}

/// What writers waited for so far, by cause.
pub(crate) fn table(statistics: &Statistics) -> String {
    let mut text = String::from("cause         slowdowns        stops  milliseconds\n");
    let causes = [
        ("flush", StallCause::Flush),
        ("level0", StallCause::Level0),
        ("debt", StallCause::Debt),
        ("memory", StallCause::Memory),
    ];
    for (name, cause) in causes {
        let Some((micros, slowdowns, stops)) = counters(cause) else { continue };
        let slowdowns = slowdowns.map_or(0, |counter| statistics.get(counter));
        let (millis, stops) = (statistics.get(micros) / 1000, statistics.get(stops));
        writeln!(text, "{name:<10} {slowdowns:>12} {stops:>12} {millis:>13}")
            .expect("a string takes what is written");
    }
    text
}

impl Engine {
    /// Counts a writer's wait, and keeps a long one in words: with what was
    /// going on while it waited.
    pub(crate) fn count_wait(&self, family: &FamilyCore, wait: Wait, evidence: Option<&str>) {
        let time = wait.end.saturating_sub(wait.begin);
        if let Some((micros, slowdowns, stops)) = counters(wait.cause) {
            let statistics = &self.shared.statistics;
            statistics.add(micros, time.as_micros() as u64);
            let paced = slowdowns.filter(|_| !wait.is_stop);
            statistics.add(paced.unwrap_or(stops), 1);
        }
        if let Some(evidence) = evidence.filter(|_| time >= LONG) {
            let kind = if wait.is_stop { "stopped" } else { "paced" };
            let (name, cause) = (&family.name, wait.cause);
            let who = format!("a writer to {name:?} was {kind}: {cause}; {evidence}");
            self.keep_wait(wait.begin, wait.end, &who);
        }
    }

    /// Counts a writer's wait for memory, and keeps a long one in words.
    pub(crate) fn count_memory_wait(&self, begin: Duration, end: Duration) {
        let (statistics, time) = (&self.shared.statistics, end.saturating_sub(begin));
        statistics.add(Counter::StallMemoryMicros, time.as_micros() as u64);
        statistics.add(Counter::StopsMemory, 1);
        if time >= LONG {
            let doing = self.background.lock().describe(end);
            let who = format!("a writer was stopped: {}; {doing}", StallCause::Memory);
            self.keep_wait(begin, end, &who);
        }
    }

    /// Keeps a long wait for the log in words.
    pub(crate) fn note_log_wait(&self, begin: Duration, end: Duration, who: &str) {
        let doing = self.background.lock().describe(end);
        self.keep_wait(begin, end, &format!("{who}; {doing}"));
    }

    fn keep_wait(&self, begin: Duration, end: Duration, text: &str) {
        let line = line(begin, end, text);
        self.shared.events.tell(Event::Waited { text: &line });
        self.stalls.add(line);
    }

    /// How far behind a family is, and what is being done about it now.
    pub(crate) fn describe(&self, family: &FamilyCore, load: &Load) -> String {
        let doing = self.background.lock().describe(self.shared.scheduler.now());
        let mut text = format!("{}; {doing}", reasons(family, load));
        let limiter = self.limiter.limiter();
        if !limiter.is_unlimited() {
            let (rate, waited) = (limiter.bytes_per_second(), limiter.waited().as_millis());
            text += &format!("; the rate limiter gives {rate} bytes/s, held up {waited} ms");
        }
        text
    }
}

fn line(begin: Duration, end: Duration, text: &str) -> String {
    let millis = end.saturating_sub(begin).as_millis();
    format!("at {:.3} s for {millis} ms, {text}", begin.as_secs_f64())
}

/// The numbers behind a wait.
fn reasons(family: &FamilyCore, load: &Load) -> String {
    let options = family.options();
    format!(
        "{} of {} memtables wait for their flush, the active one is {:.0} % full; level 0 has {} \
         tables ({} slow, {} stop); compactions owe {} bytes ({} slow, {} stop)",
        load.sealed_memtables,
        options.sealed_memtables_max,
        100.0 * load.active_fill,
        load.level0_tables,
        options.level0_slowdown_files,
        options.level0_stop_files,
        load.debt_bytes,
        options.debt_slowdown_bytes,
        options.debt_stop_bytes,
    )
}

impl BackgroundState {
    /// What is being done now, in words.
    fn describe(&self, now: Duration) -> String {
        let since = |begin: Duration| now.saturating_sub(begin).as_millis();
        let mut text = match self.flushing_since {
            Some(begin) => format!("a flush runs for {} ms", since(begin)),
            None => "no flush runs".to_string(),
        };
        if let Some(error) = &self.retrying_flush {
            text += &format!(", after {error}");
        }
        for work in self.at_work.values() {
            let (from, to) = work.levels;
            let (tables, bytes, millis) = (work.tables, work.bytes, since(work.begin));
            text += &format!(
                "; a compaction of {tables} tables, {bytes} bytes, from level {from} to {to} \
                 runs for {millis} ms"
            );
        }
        if let Some(error) = self.compaction_failure() {
            text += &format!("; compactions failed: {error}");
        }
        text
    }
}
