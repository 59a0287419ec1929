//! Telling other processes how the database is: a thread of its own writes the
//! file `STATUS` again and again, while the options ask for it.
//!
//! A courtesy: a status that cannot be written is tried again an interval
//! later, and nothing else is affected. The file goes when the database is
//! closed; what a killed process leaves behind, the next open removes.

use std::io;
use std::time::Duration;

use crate::compact::pick;
use crate::filename;
use crate::latency::Operation;
use crate::stats::{Counter, StatisticsSnapshot};
use crate::status::{
    CompactionStatus, CounterStatus, FamilyStatus, LatencyStatus, LevelStatus, Status,
};
use crate::sync::thread::{JoinHandle, spawn};
use crate::sync::{Arc, Condvar, Mutex};

use super::background::Work;
use super::compaction::limits;
use super::engine::Engine;
use super::family::FamilyCore;

/// The thread that tells, if there is one.
pub(crate) struct Publisher {
    /// When the database was opened.
    opened: Duration,
    /// The thread is to end.
    is_ending: Mutex<bool>,
    changed: Condvar,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Publisher {
    /// Of a database that was opened at `opened`; nobody tells anything yet.
    pub(crate) fn new(opened: Duration) -> Publisher {
        Publisher {
            opened,
            is_ending: Mutex::default(),
            changed: Condvar::new(),
            thread: Mutex::default(),
        }
    }
}

/// Where a window began.
struct Window {
    begin: Duration,
    statistics: StatisticsSnapshot,
}

impl Engine {
    /// Begins to tell, tells more or less often, or ends it, as the options say
    /// now.
    pub(crate) fn publish_by_options(self: &Arc<Self>) {
        // Held until the end: of two changes at a time the later one stays.
        let mut thread = self.publisher.thread.lock();
        let interval = self.options.lock().status_interval;
        self.end_publishing(thread.take());
        *thread = interval.map(|interval| {
            let engine = Arc::clone(self);
            spawn("lode-status", move || engine.publish_until_ended(interval))
        });
    }

    /// Ends it for good, and removes what was told.
    pub(crate) fn stop_publishing(&self) {
        let thread = self.publisher.thread.lock().take();
        self.end_publishing(thread);
    }

    fn end_publishing(&self, thread: Option<JoinHandle<()>>) {
        let Some(thread) = thread else { return };
        *self.publisher.is_ending.lock() = true;
        self.publisher.changed.notify_all();
        // A panic there has told nobody anything wrong.
        let _ = thread.join();
        *self.publisher.is_ending.lock() = false;
        for name in [filename::STATUS, filename::STATUS_NEXT] {
            let _ = self.shared.fs.remove(&self.shared.directory.join(name));
        }
    }

    fn publish_until_ended(&self, interval: Duration) {
        let scheduler = &self.shared.scheduler;
        let mut window =
            Window { begin: scheduler.now(), statistics: self.shared.statistics.snapshot() };
        loop {
            let now = scheduler.now();
            let statistics = self.shared.statistics.snapshot();
            let mut status = self.status(&window, &statistics, now);
            let uptime = now.saturating_sub(self.publisher.opened);
            (status.interval, status.uptime) = (interval, uptime);
            let _ = self.write_status(&status.encode());
            window = Window { begin: now, statistics };
            if self.waits_until_ended(now + interval) {
                return;
            }
        }
    }

    /// Waits until `until`; true if the thread is to end before.
    fn waits_until_ended(&self, until: Duration) -> bool {
        let (scheduler, publisher) = (&self.shared.scheduler, &self.publisher);
        let mut is_ending = publisher.is_ending.lock();
        loop {
            let left = until.saturating_sub(scheduler.now());
            if *is_ending || left.is_zero() {
                return *is_ending;
            }
            let condvar = &publisher.changed;
            is_ending = scheduler.wait_on(condvar, &publisher.is_ending, is_ending, left);
        }
    }

    fn write_status(&self, text: &str) -> io::Result<()> {
        let (fs, directory) = (&self.shared.fs, &self.shared.directory);
        let next = directory.join(filename::STATUS_NEXT);
        let mut file = fs.create(&next)?;
        file.append(text.as_bytes())?;
        file.close()?;
        fs.rename(&next, &directory.join(filename::STATUS))
    }

    fn status(&self, window: &Window, statistics: &StatisticsSnapshot, now: Duration) -> Status {
        let since = statistics.since(&window.statistics);
        let memory = self.memory_stats();
        let state = self.background.lock();
        let flushing = state.flushing_since.map(|begin| now.saturating_sub(begin));
        let compactions = state.at_work.values().map(|work| compaction(work, now)).collect();
        drop(state);
        let (visible, snapshots) = (self.shared.visible.get(), &self.shared.snapshots);
        Status {
            pid: std::process::id(),
            unix_seconds: self.shared.scheduler.unix_seconds(),
            window: now.saturating_sub(window.begin),
            memory_bytes: memory.total(),
            memory_bytes_max: memory.bytes_max,
            cache_bytes: self.shared.cache.used_bytes() as u64,
            cache_bytes_max: self.shared.cache.capacity_bytes() as u64,
            flushing,
            snapshots: snapshots.count(),
            snapshot_lag: snapshots.oldest().map_or(0, |oldest| visible.saturating_sub(oldest)),
            errors: self.background_errors(),
            compactions,
            families: self.families.load().all().map(|of| family(of)).collect(),
            counters: counters(statistics, &since),
            latencies: Operation::ALL.iter().filter_map(|&of| latency(of, &since)).collect(),
            ..Status::default()
        }
    }
}

fn compaction(work: &Work, now: Duration) -> CompactionStatus {
    CompactionStatus {
        level_from: work.levels.0,
        level_to: work.levels.1,
        tables: work.tables,
        bytes: work.bytes,
        bytes_read: work.reads.get(Counter::BlockBytesRead).min(work.bytes),
        elapsed: now.saturating_sub(work.begin),
    }
}

fn family(family: &FamilyCore) -> FamilyStatus {
    let view = family.views.keep();
    let scores = pick::scores(&view.version, &limits(family));
    let levels = view.version.levels().iter().zip(scores);
    let memtables = std::iter::once(&view.active).chain(&view.sealed);
    FamilyStatus {
        name: family.name.clone(),
        memtable_bytes: memtables.map(|table| table.memory_bytes() as u64).sum(),
        sealed_memtables: view.sealed.len(),
        levels: levels
            .map(|(level, score)| LevelStatus {
                files: level.tables().len(),
                bytes: level.bytes(),
                entries: level.tables().iter().map(|table| table.meta.entries).sum(),
                score,
            })
            .collect(),
    }
}

fn counters(now: &StatisticsSnapshot, since: &StatisticsSnapshot) -> Vec<CounterStatus> {
    let status = |&counter: &Counter| CounterStatus {
        name: counter.name().to_string(),
        total: now.get(counter),
        in_window: since.get(counter),
    };
    Counter::ALL.iter().map(status).filter(|counter| counter.total > 0).collect()
}

fn latency(operation: Operation, since: &StatisticsSnapshot) -> Option<LatencyStatus> {
    let of = since.latency(operation);
    (of.samples() > 0).then(|| LatencyStatus {
        name: operation.name().to_string(),
        samples: of.samples(),
        mean: of.mean(),
        p50: of.percentile(50.0),
        p95: of.percentile(95.0),
        p99: of.percentile(99.0),
        p999: of.percentile(99.9),
    })
}
