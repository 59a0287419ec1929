use super::*;
use crate::bucket::Bucket;

const DRAIN: f64 = 50e6;

fn rates() -> Rates {
    Rates { flush: DRAIN, level0: DRAIN, compaction: DRAIN }
}

/// Bytes per second that a pace allows: infinite if free, 0 if stopped.
fn rate(pace: Pace) -> f64 {
    match pace {
        Pace::Free => f64::INFINITY,
        Pace::Limited { bytes_per_second, .. } => bytes_per_second,
        Pace::Stopped { .. } => 0.0,
    }
}

fn at_fill(active_fill: f64) -> f64 {
    let options = FamilyOptions::default();
    let sealed_memtables = options.sealed_memtables_max;
    rate(pace(&Load { sealed_memtables, active_fill, ..Load::default() }, &options, &rates()))
}

fn at_debt(debt_bytes: u64) -> f64 {
    let options = FamilyOptions::default();
    rate(pace(&Load { debt_bytes, ..Load::default() }, &options, &rates()))
}

/// The rate falls with what is owed, without a step: a percent more of the way
/// to the limit never takes more than a few percent of the rate where writers
/// and background are in balance, and it is never zero before the limit.
#[test]
fn the_rate_falls_without_a_step() {
    let options = FamilyOptions::default();
    let (slow, stop) = (options.debt_slowdown_bytes, options.debt_stop_bytes);
    let debt = |percent: u64| at_debt(slow + (stop - slow) / 100 * percent);
    let fill = |percent: u64| at_fill(FREE_FILL + (1.0 - FREE_FILL) * percent as f64 / 100.0);
    for at in [&debt as &dyn Fn(u64) -> f64, &fill] {
        let rates: Vec<f64> = (1..100).map(at).collect();
        assert!(rates.is_sorted_by(|a, b| a > b), "more debt, less speed");
        assert!(rates.iter().all(|&rate| rate > 0.0));
        assert!((rates[49] / DRAIN - 1.0).abs() < 0.05, "half way, as fast as the drain");
        assert!(rates[0] > 90.0 * DRAIN, "from no limit at all");
        assert!(rates[98] < DRAIN / 90.0, "to nearly nothing");
        assert!(rates[20..80].windows(2).all(|pair| pair[1] > 0.93 * pair[0]), "{rates:?}");
    }
    assert_eq!(at_debt(slow), f64::INFINITY);
    assert_eq!(at_debt(stop), 0.0);
    assert_eq!((at_fill(FREE_FILL), at_fill(1.0)), (f64::INFINITY, 0.0));
}

/// With each table of level 0 beyond the slowdown limit writers are slower.
#[test]
fn each_table_of_level_0_slows_writers_down() {
    let options = FamilyOptions::default();
    let at =
        |tables| rate(pace(&Load { level0_tables: tables, ..Load::default() }, &options, &rates()));
    assert!((0..=20).all(|tables| at(tables) == f64::INFINITY));
    assert!((21..=36).map(at).collect::<Vec<_>>().is_sorted_by(|a, b| a > b));
    assert!(at(35) > 0.0 && at(36) == 0.0);
}

/// Memtables on their way to level 0 make no step of a table's arrival, and
/// stop nobody by themselves.
#[test]
fn a_table_that_arrives_is_no_step() {
    let options = FamilyOptions::default();
    let at = |level0_tables, sealed_memtables, active_fill| {
        let load = Load { level0_tables, sealed_memtables, active_fill, debt_bytes: 0 };
        rate(pace(&load, &options, &rates()))
    };
    assert_eq!(at(28, 1, 0.2), at(29, 0, 0.2));
    assert!(at(28, 0, 0.99) < at(28, 0, 0.01) && at(28, 0, 0.99) > at(29, 0, 0.01));
    assert!(at(35, 1, 0.9) > 0.0);
}

/// The slowest cause decides, and is named.
#[test]
fn the_slowest_cause_is_named() {
    let options = FamilyOptions::default();
    let load = Load { sealed_memtables: 2, active_fill: 0.1, level0_tables: 30, debt_bytes: 0 };
    let Pace::Limited { cause, .. } = pace(&load, &options, &rates()) else { panic!("limited") };
    assert_eq!(cause, StallCause::Level0);
    let load = Load { active_fill: 0.99, ..load };
    let Pace::Limited { cause, .. } = pace(&load, &options, &rates()) else { panic!("limited") };
    assert_eq!(cause, StallCause::Flush);
    let load = Load { debt_bytes: u64::MAX, ..load };
    assert_eq!(pace(&load, &options, &rates()), Pace::Stopped { cause: StallCause::Debt });
}

/// Limits without room between them stop writers at once, and divide nothing
/// by zero.
#[test]
fn equal_limits_are_a_plain_stop() {
    let mut options = FamilyOptions::default();
    (options.level0_slowdown_files, options.level0_stop_files) = (4, 4);
    let at = |tables| pace(&Load { level0_tables: tables, ..Load::default() }, &options, &rates());
    assert_eq!(at(3), Pace::Free);
    assert_eq!(at(4), Pace::Stopped { cause: StallCause::Level0 });
    assert!(may_hold_back(&Load { level0_tables: 4, ..Load::default() }, &options));
    options.level0_compaction_files = 4;
    assert_eq!(urgency(&Load { level0_tables: 4, ..Load::default() }, &options), 1.0);
    assert_eq!(urgency(&Load::default(), &options), 0.0);
}

/// Jobs that overlap count their common time once; old work is forgotten.
#[test]
fn meters_measure_work_and_not_idle_time() {
    let seconds = Duration::from_secs;
    let mut meter = Meter::default();
    for start in (0..1000).step_by(10) {
        // Two jobs, one second in common, of three.
        meter.add(seconds(start), seconds(start + 2), 3_000_000);
        meter.add(seconds(start + 1), seconds(start + 3), 3_000_000);
    }
    assert!((meter.bytes_per_second() / 2e6 - 1.0).abs() < 0.05);
    for start in (2000..2100).step_by(2) {
        meter.add(seconds(start), seconds(start + 1), 10_000_000);
    }
    assert!((meter.bytes_per_second() / 1e7 - 1.0).abs() < 0.1);
}

/// A machine that slept for a day in the middle of a job has not become slow.
#[test]
fn a_clock_that_jumps_within_a_job_does_not_make_writers_crawl() {
    let seconds = Duration::from_secs;
    let mut meter = Meter::default();
    (0..100).for_each(|start| meter.add(seconds(start), seconds(start + 1), 10_000_000));
    let before = meter.bytes_per_second();
    meter.add(seconds(100), seconds(100 + 86_400), 10_000_000);
    assert!(meter.bytes_per_second() > before / 4.0, "{}", meter.bytes_per_second());
}

/// A database as simple as can be: one flush and one compaction of level 0 at
/// a time, each with a speed, and a writer that writes as fast as it may.
struct Model {
    options: FamilyOptions,
    meters: Meters,
    now: Duration,
    load: Load,
    active_bytes: f64,
    flush_ends: Option<(Duration, Duration)>,
    compaction_ends: Option<(Duration, Duration, usize)>,
    longest: Duration,
    written: f64,
}

/// Seconds of a job of so many bytes.
fn at_speed(bytes: f64, bytes_per_second: f64) -> Duration {
    Duration::from_secs_f64(bytes / bytes_per_second)
}

impl Model {
    fn new() -> Model {
        Model {
            options: FamilyOptions::default(),
            meters: Meters::default(),
            now: Duration::ZERO,
            load: Load::default(),
            active_bytes: 0.0,
            flush_ends: None,
            compaction_ends: None,
            longest: Duration::ZERO,
            written: 0.0,
        }
    }

    fn background(&mut self, flush: f64, compaction: f64) {
        let memtable = self.options.memtable_bytes as f64;
        if let Some((begin, end)) = self.flush_ends.filter(|(_, end)| *end <= self.now) {
            self.meters.flush.add(begin, end, memtable as u64);
            self.load.sealed_memtables -= 1;
            self.load.level0_tables += 1;
            self.flush_ends = None;
        }
        if let Some((begin, end, tables)) = self.compaction_ends.filter(|at| at.1 <= self.now) {
            self.meters.level0.add(begin, end, (memtable * tables as f64) as u64);
            self.load.level0_tables -= tables;
            self.compaction_ends = None;
        }
        if self.flush_ends.is_none() && self.load.sealed_memtables > 0 {
            self.flush_ends = Some((self.now, self.now + at_speed(memtable, flush)));
        }
        let tables = self.load.level0_tables;
        if self.compaction_ends.is_none() && tables >= self.options.level0_compaction_files {
            let time = at_speed(memtable * tables as f64, compaction);
            self.compaction_ends = Some((self.now, self.now + time, tables));
        }
    }

    fn seal_if_full(&mut self) {
        if self.active_bytes >= self.options.memtable_bytes as f64
            && self.load.sealed_memtables < self.options.sealed_memtables_max
        {
            self.active_bytes = 0.0;
            self.load.sealed_memtables += 1;
        }
    }

    /// Writes for a time, in pieces of `bytes`, at most at `speed`.
    fn write(&mut self, seconds: u64, bytes: f64, speed: f64, flush: f64, compaction: f64) {
        let mut bucket = Bucket::default();
        let end = self.now + Duration::from_secs(seconds);
        while self.now < end {
            let begin = self.now;
            loop {
                self.background(flush, compaction);
                self.seal_if_full();
                self.load.active_fill = self.active_bytes / self.options.memtable_bytes as f64;
                let wait = match pace(&self.load, &self.options, &self.meters.rates()) {
                    Pace::Free => break,
                    Pace::Stopped { .. } => Duration::from_millis(1),
                    Pace::Limited { bytes_per_second, .. } => {
                        match bucket.take(self.now, bytes_per_second, bytes as u64) {
                            Ok(()) => break,
                            Err(wait) => wait.min(Duration::from_millis(20)),
                        }
                    }
                };
                self.now += wait;
            }
            self.longest = self.longest.max(self.now - begin);
            self.active_bytes += bytes;
            self.written += bytes;
            self.now += at_speed(bytes, speed);
        }
    }
}

/// A writer that is four times faster than flushes, or than compactions, goes
/// as fast as these do, and no single write of 20 KB waits for 100 ms.
#[test]
fn a_writer_faster_than_the_background_never_waits_long() {
    for (flush, compaction) in [(100e6, 200e6), (300e6, 40e6), (60e6, 20e6)] {
        let mut model = Model::new();
        model.write(300, 20e3, 400e6, flush, compaction);
        let speed = model.written / 300.0 / flush.min(compaction);
        assert!((0.9..1.7).contains(&speed), "{flush} {compaction}: {speed} of the drain");
        let longest = model.longest;
        assert!(longest < Duration::from_millis(100), "{flush} {compaction}: {longest:?}");
    }
}

/// The same when compactions become four times slower all of a sudden.
#[test]
fn a_background_that_slows_down_causes_no_long_wait() {
    let mut model = Model::new();
    model.write(100, 20e3, 400e6, 200e6, 80e6);
    model.write(200, 20e3, 400e6, 200e6, 20e6);
    assert!(model.longest < Duration::from_millis(100), "{:?}", model.longest);
}
