//! Generated histories: the engine and the oracle must agree on every answer.
//!
//! `MODEL_SEQUENCES`, `MODEL_VARIED` and `MODEL_SEED` in the environment make it a soak.

use crate::environment::number;
use lodestore::fs::Capabilities;
use lodestore::{Counter, Db, Fs, IngestReport, MemFs, OsFs, Statistics};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use testkit::command::{Action, Change, Command, Output};
use testkit::generate::{Generator, Shape, with_other_options};
use testkit::model::{Model, keeps_the_contract};
use testkit::run::{Difference, compare, shrink};
use testkit::rust_api::{Dropped, RustApi};
use testkit::seeds::on_all_cores;
use testkit::surface::Surface;
use testkit::temp_dir::TempDir;

/// Histories of an ordinary run: enough to come to everything.
const SEQUENCES: u64 = 300;
/// Commands of a history.
const COMMANDS: usize = 200;
/// Sets of options that a history is run with.
const VARIANTS: u64 = 4;

/// How often the histories came to states that a test of this kind is for.
#[derive(Debug, Default)]
struct Reached {
    reopened: usize,
    snapshot_reads_after_flush: usize,
    merges_read_over_flush: usize,
    families_dropped: usize,
    families_recreated: usize,
    flushes: u64,
    compactions: u64,
    entries_dropped: u64,
    several_levels: usize,
    custom_orders: usize,
    files_closed: u64,
    partitions_read: u64,
    early_flushes: u64,
    range_deletes_over_levels: usize,
    range_deletes_after_snapshot_read: usize,
    range_deletes_read_over_flush: usize,
    range_deletes_read_after_reopening: usize,
    range_deletes_cut_between_tables: usize,
    tables_dropped_unread: u64,
    tables_deleted_in_range: u64,
    single_deletes: usize,
    dropped_while_flushing: usize,
    dropped_while_compacting: usize,
    dropped_under_a_cursor: usize,
    cursors_kept_over_flush: usize,
    checkpoints_compared: usize,
    checkpoints_with_range_deletes: usize,
    checkpoints_with_ingested_tables: usize,
    checkpoints_written_to: usize,
    ingested_at_level_0: usize,
    ingested_deeper: usize,
    ingested_with_range_deletes: usize,
    ingested_linked: u64,
    ingested_under_a_snapshot: usize,
    ingested_over_a_range_delete: usize,
    ingested_into_several_families: usize,
    ingested_and_refused: usize,
    ingested_read_after_compaction: usize,
    ingested_read_after_reopening: usize,
    options_changed: usize,
    memory_limits_changed: usize,
    rewritten: usize,
    prefix_tables_skipped: u64,
    row_hits: u64,
    gaps_remembered: u64,
    gaps_passed: u64,
    prefix_extractors_changed: usize,
    dictionaries: usize,
    several_codecs: usize,
}

impl Reached {
    fn add_counters(&mut self, statistics: &Statistics) {
        self.flushes += statistics.get(Counter::Flushes);
        self.compactions += statistics.get(Counter::Compactions);
        self.files_closed += statistics.get(Counter::FilesClosed);
        self.partitions_read += statistics
            .get(Counter::CacheIndexMisses)
            .min(statistics.get(Counter::CacheFilterMisses));
        self.early_flushes += statistics.get(Counter::EarlyFlushes);
        self.entries_dropped += statistics.get(Counter::CompactionEntriesDropped);
        self.tables_dropped_unread += statistics.get(Counter::TablesDropped);
        self.prefix_tables_skipped += statistics.get(Counter::PrefixTablesSkipped);
        self.row_hits += statistics.get(Counter::RowHits);
        self.gaps_remembered += statistics.get(Counter::GapsRemembered);
        self.gaps_passed += statistics.get(Counter::GapsPassed);
        self.tables_deleted_in_range += statistics.get(Counter::TablesDeletedInRange);
        self.ingested_linked += statistics.get(Counter::TablesLinked);
    }

    fn add_dropped(&mut self, dropped: Dropped) {
        self.dropped_while_flushing += dropped.flushing;
        self.dropped_while_compacting += dropped.compacting;
        self.dropped_under_a_cursor += dropped.held;
    }

    /// Counts what a history does with copies and with cursors that are kept.
    fn add_copies(&mut self, history: &[Command]) {
        let (mut in_copy, mut written, mut flushed) = (false, false, false);
        let (mut deleted, mut ingested) = (false, false);
        for command in history {
            match command {
                Command::Open { name, .. } => (in_copy, written) = (name != "db", false),
                Command::Write { .. } if in_copy => written = true,
                Command::Write { changes, .. } => {
                    deleted |= changes.iter().any(|c| matches!(c.action, Action::DeleteRange(_)));
                }
                Command::Ingest { .. } => ingested = true,
                Command::Flush { .. } | Command::Compact { .. } => flushed = true,
                Command::Hold { .. } => flushed = false,
                Command::Held { .. } => self.cursors_kept_over_flush += usize::from(flushed),
                Command::Scan { .. } if in_copy && written => self.checkpoints_written_to += 1,
                Command::Scan { .. } if in_copy => {
                    self.checkpoints_compared += 1;
                    self.checkpoints_with_range_deletes += usize::from(deleted);
                    self.checkpoints_with_ingested_tables += usize::from(ingested);
                }
                _ => {}
            }
        }
    }

    /// Counts where tables came when they were ingested.
    fn add_reports(&mut self, reports: &[IngestReport]) {
        for table in reports.iter().flat_map(|report| &report.tables) {
            self.ingested_at_level_0 += usize::from(table.level == 0);
            self.ingested_deeper += usize::from(table.level > 0);
            self.ingested_with_range_deletes += usize::from(table.range_deletes > 0);
        }
    }

    /// Counts what a history ingests, and what it does then.
    fn add_ingested(&mut self, history: &[Command]) {
        let mut deleted: Vec<(&str, Vec<u8>, Vec<u8>)> = Vec::new();
        let mut held = BTreeSet::new();
        let (mut ingested, mut compacted, mut reopened) = (false, false, false);
        let mut model = Model::default();
        for command in history {
            let refused = matches!(model.run(command), Output::Failed(_));
            match command {
                Command::Snapshot { name } => drop(held.insert(name)),
                Command::Release { name } => drop(held.remove(name)),
                Command::Open { .. } => {
                    held.clear();
                    reopened = ingested;
                }
                Command::Compact { .. } => compacted = ingested,
                Command::Write { changes, .. } => {
                    deleted.extend(changes.iter().filter_map(|change| match &change.action {
                        Action::DeleteRange(end) => {
                            Some((&change.family[..], change.key.bytes(), end.bytes()))
                        }
                        _ => None,
                    }));
                }
                Command::Ingest { .. } if refused => self.ingested_and_refused += 1,
                Command::Ingest { tables, .. } => {
                    (ingested, compacted, reopened) = (true, false, false);
                    self.ingested_under_a_snapshot += usize::from(!held.is_empty());
                    let families: BTreeSet<&str> =
                        tables.iter().map(|changes| &changes[0].family[..]).collect();
                    self.ingested_into_several_families += usize::from(families.len() > 1);
                    let is_over = |change: &Change| {
                        let key = change.key.bytes();
                        let within = |(family, start, end): &(&str, Vec<u8>, Vec<u8>)| {
                            *family == change.family && *start <= key && key < *end
                        };
                        deleted.iter().any(within)
                    };
                    let over = tables.iter().flatten().any(is_over);
                    self.ingested_over_a_range_delete += usize::from(over);
                }
                Command::Scan { .. } => {
                    self.ingested_read_after_compaction += usize::from(compacted);
                    self.ingested_read_after_reopening += usize::from(reopened);
                }
                _ => {}
            }
        }
    }

    /// Counts what the tables of a database at the end of its history show.
    fn add_tables(&mut self, db: &Db) {
        let levels = db.stats().levels;
        self.several_levels += usize::from(levels.iter().filter(|l| l.files > 0).count() > 1);
        let text = db.property("lodestore.tables").expect("the property is known");
        // Of open tables it says how they are stored.
        let codecs =
            text.lines().filter_map(|line| line.split(" codec ").nth(1)?.split(' ').next());
        let codecs: BTreeSet<&str> = codecs.filter(|codec| *codec != "-").collect();
        self.dictionaries += usize::from(codecs.contains("zstd+dictionary"));
        self.several_codecs += usize::from(codecs.len() > 1);
        let lines = || text.lines().filter(|line| !line.contains(" range-deletes 0 "));
        let level = |line: &str| line.split(' ').nth(1).map(str::to_string);
        for line in lines().filter(|line| !line.starts_with("level 0")) {
            self.range_deletes_over_levels += 1;
            let neighbours = lines().filter(|other| level(other) == level(line)).count();
            self.range_deletes_cut_between_tables += usize::from(neighbours > 1);
        }
    }

    /// Counts what a history does with range deletes.
    fn add_range_deletes(&mut self, history: &[Command]) {
        let (mut deleted, mut flushed, mut reopened, mut snapshot) = (false, false, false, false);
        for command in history {
            match command {
                Command::Write { changes, .. } => {
                    let is_range = |c: &Change| matches!(c.action, Action::DeleteRange(_));
                    let is_single = |c: &Change| c.action == Action::SingleDelete;
                    self.single_deletes += changes.iter().filter(|c| is_single(c)).count();
                    if changes.iter().any(is_range) {
                        (deleted, flushed, reopened) = (true, false, false);
                    }
                }
                Command::Snapshot { .. } if !deleted => snapshot = true,
                Command::Flush { .. } => flushed |= deleted,
                Command::Open { .. } => reopened |= deleted && !flushed,
                Command::Scan { read, .. } => {
                    let old = snapshot && deleted && read.at.is_some();
                    self.range_deletes_after_snapshot_read += usize::from(old);
                    self.range_deletes_read_over_flush += usize::from(flushed);
                    self.range_deletes_read_after_reopening += usize::from(reopened);
                }
                _ => {}
            }
        }
    }

    /// Counts how options change, between openings and while it is open.
    fn add_options(&mut self, history: &[Command]) {
        let mut extractor: Option<&str> = None;
        for command in history {
            match command {
                Command::SetOptions { changes, .. } => {
                    let is_limit = |(name, _): &(String, String)| name == "memory_bytes";
                    self.memory_limits_changed += usize::from(changes.iter().any(is_limit));
                    self.options_changed += 1;
                }
                Command::Compact { rewrite: true, .. } => self.rewritten += 1,
                Command::Open { settings, .. } => {
                    let mut knobs = settings.knobs.iter();
                    let given = knobs.find(|(name, _)| name == "prefix_extractor");
                    let given = given.map(|(_, value)| &value[..]).filter(|v| *v != "default");
                    let changed = given.is_some() && extractor.is_some() && given != extractor;
                    self.prefix_extractors_changed += usize::from(changed);
                    extractor = given.or(extractor);
                }
                _ => {}
            }
        }
    }

    fn add_history(&mut self, history: &[Command]) {
        let (mut flushed_since_snapshot, mut merged, mut merged_then_flushed) =
            (false, false, false);
        let mut dropped = Vec::new();
        for command in history {
            match command {
                Command::Open { settings, .. } => {
                    self.reopened += usize::from(settings.schemas.is_empty());
                    let custom = settings.schemas.iter().any(|s| s.1.order.word() != "bytewise");
                    self.custom_orders += usize::from(custom);
                }
                Command::Snapshot { .. } => flushed_since_snapshot = false,
                Command::Flush { .. } => {
                    flushed_since_snapshot = true;
                    merged_then_flushed |= merged;
                }
                Command::Get { read, .. } | Command::Scan { read, .. } => {
                    let old = read.at.is_some() && flushed_since_snapshot;
                    self.snapshot_reads_after_flush += usize::from(old);
                    self.merges_read_over_flush += usize::from(merged && merged_then_flushed);
                }
                Command::Write { changes, .. } => {
                    let is_merge = |c: &Change| matches!(c.action, Action::Merge(_));
                    merged |= changes.iter().any(is_merge);
                }
                Command::DropFamily { name } => {
                    self.families_dropped += 1;
                    dropped.push(name);
                }
                Command::CreateFamily { name, .. } if dropped.contains(&name) => {
                    self.families_recreated += 1;
                }
                _ => {}
            }
        }
    }

    fn check(&self) {
        let counts = [
            ("reopened", self.reopened),
            ("snapshot_reads_after_flush", self.snapshot_reads_after_flush),
            ("merges_read_over_flush", self.merges_read_over_flush),
            ("families_dropped", self.families_dropped),
            ("families_recreated", self.families_recreated),
            ("flushes", self.flushes as usize),
            ("compactions", self.compactions as usize),
            ("entries_dropped", self.entries_dropped as usize),
            ("several_levels", self.several_levels),
            ("custom_orders", self.custom_orders),
            ("files_closed", self.files_closed as usize),
            ("partitions_read", self.partitions_read as usize),
            ("early_flushes", self.early_flushes as usize),
            ("range_deletes_over_levels", self.range_deletes_over_levels),
            ("range_deletes_after_snapshot_read", self.range_deletes_after_snapshot_read),
            ("range_deletes_read_over_flush", self.range_deletes_read_over_flush),
            ("range_deletes_read_after_reopening", self.range_deletes_read_after_reopening),
            ("range_deletes_cut_between_tables", self.range_deletes_cut_between_tables),
            ("tables_dropped_unread", self.tables_dropped_unread as usize),
            ("tables_deleted_in_range", self.tables_deleted_in_range as usize),
            ("single_deletes", self.single_deletes),
            ("dropped_while_flushing", self.dropped_while_flushing),
            ("dropped_while_compacting", self.dropped_while_compacting),
            ("dropped_under_a_cursor", self.dropped_under_a_cursor),
            ("cursors_kept_over_flush", self.cursors_kept_over_flush),
            ("checkpoints_compared", self.checkpoints_compared),
            ("checkpoints_with_range_deletes", self.checkpoints_with_range_deletes),
            ("checkpoints_with_ingested_tables", self.checkpoints_with_ingested_tables),
            ("checkpoints_written_to", self.checkpoints_written_to),
            ("ingested_at_level_0", self.ingested_at_level_0),
            ("ingested_deeper", self.ingested_deeper),
            ("ingested_with_range_deletes", self.ingested_with_range_deletes),
            ("ingested_linked", self.ingested_linked as usize),
            ("ingested_under_a_snapshot", self.ingested_under_a_snapshot),
            ("ingested_over_a_range_delete", self.ingested_over_a_range_delete),
            ("ingested_into_several_families", self.ingested_into_several_families),
            ("ingested_and_refused", self.ingested_and_refused),
            ("ingested_read_after_compaction", self.ingested_read_after_compaction),
            ("ingested_read_after_reopening", self.ingested_read_after_reopening),
            ("options_changed", self.options_changed),
            ("memory_limits_changed", self.memory_limits_changed),
            ("rewritten", self.rewritten),
            ("prefix_tables_skipped", self.prefix_tables_skipped as usize),
            ("row_hits", self.row_hits as usize),
            ("gaps_remembered", self.gaps_remembered as usize),
            ("gaps_passed", self.gaps_passed as usize),
            ("prefix_extractors_changed", self.prefix_extractors_changed),
            ("dictionaries", self.dictionaries),
            ("several_codecs", self.several_codecs),
        ];
        for (name, count) in counts {
            assert!(count > 0, "the histories never came to {name}: {self:?}");
        }
    }
}

/// Where a history keeps its files.
#[derive(Clone, Copy)]
enum Disk {
    Real,
    Memory,
    /// In memory, and able to append only, as LevelDB's `Env` is.
    AppendOnly,
}

/// A fresh surface.
fn surface(disk: Disk, directory: Option<&TempDir>) -> RustApi {
    let in_memory = |capabilities| Arc::new(MemFs::with_capabilities(capabilities));
    match (disk, directory) {
        (Disk::AppendOnly, _) => RustApi::new(in_memory(Capabilities::default()), "/model"),
        (_, None) => RustApi::new(Arc::new(MemFs::new()), "/model"),
        (_, Some(directory)) => {
            let fs: Arc<dyn Fs> = Arc::new(OsFs::new());
            RustApi::new(fs, directory.path())
        }
    }
}

/// Runs one history and compares; what it came to is added to `reached`.
fn run(history: &[Command], disk: Disk, reached: &Mutex<Reached>) -> Option<Box<Difference>> {
    let directory = matches!(disk, Disk::Real).then(|| TempDir::new("model"));
    let (mut oracle, mut tested) = (Model::default(), surface(disk, directory.as_ref()));
    let difference = compare(&mut oracle, &mut tested, history);
    let mut reached = reached.lock().expect("adding does not panic");
    reached.add_history(history);
    reached.add_counters(tested.statistics());
    reached.add_range_deletes(history);
    reached.add_ingested(history);
    reached.add_reports(&tested.ingested);
    reached.add_dropped(tested.dropped);
    reached.add_copies(history);
    reached.add_options(history);
    if let Some(db) = tested.db() {
        reached.add_tables(db);
    }
    difference
}

/// The history of a seed, and at its end a look at everything after reopening.
fn history(seed: u64) -> Vec<Command> {
    let mut history: Vec<Command> = Generator::new(seed, Shape::default()).take(COMMANDS).collect();
    let mut model = Model::default();
    history.iter().for_each(|command| drop(model.run(command)));
    history.push(testkit::parse::command("open db").expect("a command"));
    history.push(Command::Verify);
    if let Output::Text(names) = model.run(&Command::Families) {
        for name in names.lines() {
            for reverse in [false, true] {
                let read = testkit::command::Read::of(name);
                history.push(Command::Scan { read, reverse });
            }
        }
    }
    history
}

/// Where the history of a seed keeps its files.
fn disk(seed: u64) -> Disk {
    match seed % 10 {
        0 => Disk::Real,
        1..=3 => Disk::AppendOnly,
        _ => Disk::Memory,
    }
}

/// Whatever is done in whatever order with whatever options, every answer is
/// the oracle's; and the histories do come to the states that matter.
#[test]
fn the_engine_answers_as_the_oracle_does() {
    let first = number("MODEL_SEED", 1);
    let sequences = number("MODEL_SEQUENCES", SEQUENCES);
    let reached = Mutex::new(Reached::default());
    on_all_cores(first..first + sequences, |seed| {
        let disk = disk(seed);
        let Some(found) = run(&history(seed), disk, &reached) else { return };
        let commands = found.history.len();
        let again = |shorter: &[Command]| {
            keeps_the_contract(shorter).then(|| run(shorter, disk, &Mutex::default()))?
        };
        let shortest = shrink(found, again);
        panic!(
            "MODEL_SEED={seed} MODEL_SEQUENCES=1, command {commands} of the history, \
             shrunk to:\n{shortest}"
        )
    });
    let reached = reached.into_inner().expect("adding does not panic");
    // A few, as in repeating what failed, need not come to everything.
    if sequences >= SEQUENCES {
        reached.check();
    }
    println!("{sequences} histories from seed {first}: {reached:?}");
}

/// How the data is laid out is nobody's business: the same history gives the
/// same answers with large and small memtables, blocks, tables and levels, with
/// any codec, filter and number of threads.
#[test]
fn other_options_give_the_same_answers() {
    let first = number("MODEL_SEED", 1);
    let histories = number("MODEL_VARIED", 60);
    let layouts = AtomicU64::new(0);
    on_all_cores(first..first + histories, |seed| {
        // None of those that run against the oracle.
        let history = history(!seed);
        let mut first: Option<Vec<Output>> = None;
        for variant in 0..VARIANTS {
            let varied = with_other_options(&history, seed << 8 | variant);
            let mut surface = surface(disk(seed + 1), None);
            let answers: Vec<Output> = varied.iter().map(|c| surface.run(c)).collect();
            let Some(first) = &first else {
                first = Some(answers);
                continue;
            };
            if let Some(at) = first.iter().zip(&answers).position(|(a, b)| a != b) {
                let script: String = varied[..=at].iter().map(|c| format!("{c}\n")).collect();
                panic!(
                    "MODEL_SEED={seed} MODEL_VARIED=1, variant {variant} gives {:?} where \
                     variant 0 gave {:?}:\n{script}",
                    answers[at], first[at]
                );
            }
            layouts.fetch_add(u64::from(varied != history), Ordering::Relaxed);
        }
    });
    let layouts = layouts.into_inner();
    assert!(layouts >= histories, "only {layouts} other layouts");
    println!("{histories} histories from seed {first} with {VARIANTS} sets of options each");
}
