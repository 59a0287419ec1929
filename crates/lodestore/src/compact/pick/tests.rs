use super::*;
use crate::key::{InternalKey, KeyOrder, Kind, SequenceNumber, trailer};
use crate::table::meta::TableMeta;
use crate::tables::test_slot;
use crate::version::{LEVELS, VersionEdit};
use std::collections::{BTreeMap, HashMap};

mod ingested;
mod tombstones;

const ENTRY_BYTES: u64 = 10;

/// Newest version of a key: its sequence number, and whether it is a delete.
type Newest = (SequenceNumber, bool);

/// A database whose tables are maps: carries plans out as the engine does.
struct Model {
    version: Version,
    limits: Limits,
    running: Running,
    /// Plans begun, with the version that they began with.
    begun: Vec<(Plan, Version)>,
    contents: HashMap<u64, BTreeMap<u32, Newest>>,
    /// What readers must find.
    oracle: BTreeMap<u32, Newest>,
    next_number: u64,
    sequence: SequenceNumber,
    random: u64,
    bytes_flushed: u64,
    bytes_compacted: u64,
    moves: u64,
}

fn limits() -> Limits {
    let tombstones = TombstoneLimits::default();
    Limits {
        level0_files: 4,
        level0_urgent_files: 8,
        level1_bytes: 4_000,
        multiplier: 4,
        table_bytes: 500,
        tombstones,
        at_rest: false,
    }
}

impl Model {
    fn new(seed: u64) -> Model {
        Model {
            version: Version::empty(KeyOrder::Bytewise),
            limits: limits(),
            running: Running::default(),
            begun: Vec::new(),
            contents: HashMap::new(),
            oracle: BTreeMap::new(),
            next_number: 1,
            sequence: 0,
            random: seed,
            bytes_flushed: 0,
            bytes_compacted: 0,
            moves: 0,
        }
    }

    /// A number below `bound` (SplitMix64).
    fn below(&mut self, bound: u64) -> u64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.random;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ z >> 31) % bound
    }

    fn table(&mut self, entries: BTreeMap<u32, Newest>) -> TableMeta {
        let place = |(key, &(sequence, _)): (&u32, &Newest)| {
            InternalKey::new(&key.to_be_bytes(), trailer(sequence, Kind::Put))
        };
        let sequences = || entries.values().map(|newest| newest.0);
        let meta = TableMeta {
            number: self.next_number,
            bytes: entries.len() as u64 * ENTRY_BYTES,
            entries: entries.len() as u64,
            tombstones: entries.values().filter(|newest| newest.1).count() as u64,
            smallest: place(entries.first_key_value().unwrap()),
            largest: place(entries.last_key_value().unwrap()),
            sequence_min: sequences().min().unwrap(),
            sequence_max: sequences().max().unwrap(),
            ..TableMeta::default()
        };
        self.next_number += 1;
        self.contents.insert(meta.number, entries);
        meta
    }

    fn apply(&mut self, edit: &VersionEdit) {
        self.version = self.version.apply(0, edit, &|meta| test_slot(meta)).unwrap();
    }

    /// A new table of level 0 with these keys.
    fn flush(&mut self, keys: impl IntoIterator<Item = u32>, delete: bool) {
        let mut entries = BTreeMap::new();
        for key in keys {
            self.sequence += 1;
            entries.insert(key, (self.sequence, delete));
        }
        self.oracle.extend(entries.iter().map(|(&key, &newest)| (key, newest)));
        let meta = self.table(entries);
        self.bytes_flushed += meta.bytes;
        let edit = VersionEdit { tables_added: vec![(0, 0, meta)], ..VersionEdit::default() };
        self.apply(&edit);
    }

    fn begin(&mut self, plan: Plan) {
        self.check(&plan);
        self.running.add(&plan);
        self.begun.push((plan, self.version.clone()));
    }

    /// What every plan promises.
    fn check(&self, plan: &Plan) {
        let order = self.version.order();
        let at = |level: usize, table: &Arc<TableFile>| {
            self.version.level(level).tables().iter().any(|t| Arc::ptr_eq(t, table))
        };
        assert!(plan.inputs[0].iter().all(|t| at(plan.level_from, t)));
        assert!(plan.inputs[1].iter().all(|t| at(plan.level_to, t)));
        assert!(!plan.inputs[0].is_empty());
        assert_eq!(KeyRange::covering(order, plan.tables()).as_ref(), Some(&plan.range));
        for (busy, _) in &self.begun {
            assert!(busy.level_to != plan.level_to || !busy.range.overlaps(order, &plan.range));
        }
        if plan.trivial_move {
            assert!(plan.inputs[1].is_empty() && plan.level_from < plan.level_to);
        }
    }

    /// Carries out one of the begun plans.
    fn finish(&mut self, index: usize) {
        let (plan, began_with) = self.begun.swap_remove(index);
        self.running.remove(&plan);
        let deletions = [(0, plan.level_from), (1, plan.level_to)].into_iter();
        let tables_deleted = deletions
            .flat_map(|(i, level)| plan.inputs[i].iter().map(move |t| (0, level, t.meta.number)))
            .collect();
        let tables_added = match plan.trivial_move {
            true => plan.tables().map(|t| t.meta.clone()).collect(),
            false => self.merge(&plan, &began_with),
        };
        self.moves += u64::from(plan.trivial_move);
        let level_to = plan.level_to;
        let edit = VersionEdit {
            tables_deleted,
            tables_added: tables_added.into_iter().map(|meta| (0, level_to, meta)).collect(),
            ..VersionEdit::default()
        };
        self.apply(&edit);
    }

    fn merge(&mut self, plan: &Plan, began_with: &Version) -> Vec<TableMeta> {
        let mut newest: BTreeMap<u32, Newest> = BTreeMap::new();
        for table in plan.tables() {
            for (&key, &version) in &self.contents[&table.meta.number] {
                let kept = newest.entry(key).or_insert(version);
                *kept = (*kept).max(version);
            }
        }
        let mut below = began_with.below(plan.level_to);
        newest.retain(|key, version| {
            !(version.1 && (plan.bottommost || below.is_absent(&key.to_be_bytes())))
        });
        let per_table = (self.limits.table_bytes / ENTRY_BYTES) as usize;
        let entries: Vec<_> = newest.into_iter().collect();
        let outputs = entries.chunks(per_table).map(|chunk| chunk.iter().copied().collect());
        let outputs: Vec<TableMeta> =
            outputs.collect::<Vec<_>>().into_iter().map(|o| self.table(o)).collect();
        self.bytes_compacted += outputs.iter().map(|meta| meta.bytes).sum::<u64>();
        outputs
    }

    /// Begins what can be begun, up to `threads` at once, and finishes plans
    /// in random order until `keep` are left.
    fn work(&mut self, threads: usize, keep: usize) {
        loop {
            while self.begun.len() < threads
                && let Some(plan) = pick(&self.version, &self.limits, &self.running)
            {
                self.begin(plan);
            }
            if self.begun.len() <= keep {
                return;
            }
            let index = self.below(self.begun.len() as u64) as usize;
            self.finish(index);
        }
    }

    /// Compacts a range; new tables may arrive between the steps.
    fn compact_range(&mut self, first: Option<u32>, last: Option<u32>, busy: bool) {
        let bytes = |key: Option<u32>| key.map(u32::to_be_bytes);
        let (first, last) = (bytes(first), bytes(last));
        let as_slice = |key: &'_ Option<[u8; 4]>| key.map(|k| k.to_vec());
        let walk = RangeWalk::new(as_slice(&first).as_deref(), as_slice(&last).as_deref());
        self.carry_out(walk, busy);
    }

    fn carry_out(&mut self, mut walk: RangeWalk, busy: bool) {
        for step in 0.. {
            assert!(step < 10_000, "the walk ends although writes go on");
            match walk.next(&self.version, &self.limits, &self.running) {
                RangeStep::Run(plan) => {
                    self.begin(plan);
                    let index = self.begun.len() - 1;
                    self.finish(index);
                }
                RangeStep::Wait => self.finish(0),
                RangeStep::Done => return,
            }
            if busy {
                let from = self.below(5_000) as u32;
                self.flush(from..from + 40, false);
            }
        }
    }

    /// Readers find the newest version of every key, newest level first.
    fn check_readers(&self) {
        for (key, &(sequence, deleted)) in &self.oracle {
            match self.look_up(*key) {
                Some(found) => assert_eq!(found, (sequence, deleted), "key {key}"),
                None => assert!(deleted, "key {key} is lost"),
            }
        }
    }

    fn look_up(&self, key: u32) -> Option<Newest> {
        let user_key = key.to_be_bytes();
        (0..LEVELS).find_map(|level| {
            let tables = self.version.overlapping(level, Some(&user_key), Some(&user_key));
            tables.iter().find_map(|t| self.contents[&t.meta.number].get(&key).copied())
        })
    }

    fn check_converged(&self) {
        assert!(self.begun.is_empty());
        let targets = Targets::of(&self.version, &self.limits);
        assert!(self.version.level(0).tables().len() < self.limits.level0_files);
        for level in 1..BOTTOM {
            let bytes = self.version.level(level).bytes();
            assert!(bytes <= targets.bytes[level], "level {level} has {bytes}: {targets:?}");
        }
        assert_eq!(debt_bytes(&self.version, &self.limits), 0);
    }
}

/// Random writes, deletes, loads in key order and range compactions, with
/// several compactions at once that end in any order: no key is lost, none
/// comes back, tables below level 0 never overlap (applying checks it), and
/// when writes stop every level comes to its size.
#[test]
fn any_order_of_work_keeps_every_key_and_converges() {
    for seed in 0..6 {
        let mut model = Model::new(seed);
        let span = [300, 3_000, 30_000][seed as usize % 3];
        let threads = 1 + seed as usize % 4;
        for round in 0..200 {
            let count = 20 + model.below(60);
            let from = model.below(span) as u32;
            match model.below(10) {
                0..=5 => {
                    let keys: Vec<u32> = (0..count).map(|_| model.below(span) as u32).collect();
                    model.flush(keys, false);
                }
                6 => model.flush(from..from + count as u32, false),
                7 => model.flush((from..).step_by(3).take(count as usize), true),
                8 => {
                    // A load in key order beyond everything.
                    let start = 1_000_000 + round * 100;
                    model.flush(start..start + 50, false);
                }
                _ if round % 10 == 0 => {
                    let last = from + model.below(span) as u32;
                    model.compact_range(Some(from), Some(last), false);
                }
                _ => {}
            }
            let keep = model.below(threads as u64) as usize;
            model.work(threads, keep);
            if round % 25 == 0 {
                model.check_readers();
            }
        }
        model.work(threads, 0);
        model.check_readers();
        model.check_converged();
        model.compact_range(None, None, false);
        model.check_readers();
        assert!(model.version.tables().all(|t| t.meta.tombstones == 0), "seed {seed}");
        let used = model.version.levels().iter().filter(|level| !level.is_empty());
        assert_eq!(used.count(), 1, "a compacted database is one level");
    }
}

/// A load in key order is never rewritten: every table goes down unread, to
/// the bottom.
#[test]
fn a_load_in_key_order_goes_to_the_bottom_unread() {
    for threads in [1, 3] {
        let mut model = Model::new(1);
        for start in (0..30_000).step_by(50) {
            model.flush(start..start + 50, false);
            model.work(threads, threads - 1);
        }
        model.work(threads, 0);
        assert_eq!(model.bytes_compacted, 0);
        let at_bottom = model.version.level(BOTTOM).tables().len();
        assert!(at_bottom + 4 > 30_000 / 50, "{at_bottom} tables");
        assert!(model.moves <= 30_000 / 50 / 3, "several tables move at once");
    }
}

/// Random writes cost no more rewriting than the shape of the levels says.
#[test]
fn random_writes_are_rewritten_within_bounds() {
    let mut model = Model::new(3);
    for _ in 0..600 {
        let keys: Vec<u32> = (0..100).map(|_| model.below(1 << 32) as u32).collect();
        model.flush(keys, false);
        model.work(2, 0);
    }
    model.check_converged();
    let amplification = model.bytes_compacted as f64 / model.bytes_flushed as f64;
    assert!((4.0..14.0).contains(&amplification), "rewritten {amplification:.2} times");
}

/// A walk over a range ends although tables keep arriving.
#[test]
fn compacting_a_range_ends_although_writes_go_on() {
    let mut model = Model::new(5);
    for _ in 0..60 {
        let keys: Vec<u32> = (0..60).map(|_| model.below(5_000) as u32).collect();
        model.flush(keys, false);
        model.work(1, 0);
    }
    model.compact_range(None, None, true);
    model.check_readers();
    model.compact_range(Some(10), Some(10), false);
    model.check_readers();
}

/// A walk that rewrites writes every old table once: also those that another
/// walk would leave as they are, and those that would be moved unread; not those
/// that came to be meanwhile.
#[test]
fn a_rewriting_walk_writes_every_table_once() {
    let mut model = Model::new(5);
    for start in (0..3_000).step_by(50) {
        model.flush(start..start + 50, false);
        model.work(1, 0);
    }
    model.compact_range(None, None, false);
    let numbers = |model: &Model| -> Vec<u64> {
        model.version.tables().map(|table| table.meta.number).collect()
    };
    let (settled, bytes) = (numbers(&model), model.bytes_compacted);
    model.compact_range(None, None, false);
    assert_eq!((numbers(&model), model.bytes_compacted), (settled.clone(), bytes));
    model.flush(9_000..9_050, false);
    let next = numbers(&model).into_iter().max().expect("there are tables") + 1;
    let all: u64 = model.version.levels().iter().map(|level| level.bytes()).sum();
    model.carry_out(RangeWalk::new(None, None).rewriting(next), false);
    assert!(numbers(&model).iter().all(|&number| number >= next));
    assert_eq!(model.bytes_compacted - bytes, all);
    model.carry_out(RangeWalk::new(None, None).rewriting(1_000_000), true);
    model.check_readers();
}

fn meta(number: u64, bytes: u64, first: u32, last: u32) -> TableMeta {
    let place = |key: u32| InternalKey::new(&key.to_be_bytes(), trailer(number, Kind::Put));
    TableMeta {
        number,
        bytes,
        entries: 100,
        smallest: place(first),
        largest: place(last),
        sequence_max: number,
        ..TableMeta::default()
    }
}

fn version(tables: &[(usize, TableMeta)]) -> Version {
    let edit = VersionEdit {
        tables_added: tables.iter().map(|(level, meta)| (0, *level, meta.clone())).collect(),
        ..VersionEdit::default()
    };
    Version::empty(KeyOrder::Bytewise).apply(0, &edit, &|meta| test_slot(meta)).unwrap()
}

fn numbers(tables: &[Arc<TableFile>]) -> Vec<u64> {
    tables.iter().map(|t| t.meta.number).collect()
}

/// Level 0 is compacted at its count of tables, and not one before; all of an
/// overlapping group go together, newest first.
#[test]
fn level_0_is_compacted_at_its_limit() {
    let mut tables: Vec<_> = (1..4).map(|n| (0, meta(n, 10, 0, 100))).collect();
    tables.push((BOTTOM, meta(9, 20, 50, 60)));
    assert!(pick(&version(&tables), &limits(), &Running::default()).is_none());
    tables.push((0, meta(10, 10, 90, 200)));
    let plan = pick(&version(&tables), &limits(), &Running::default()).unwrap();
    assert_eq!((plan.level_from, plan.level_to, plan.reason), (0, BOTTOM, Reason::Level0));
    assert_eq!(numbers(&plan.inputs[0]), [10, 3, 2, 1]);
    assert_eq!(numbers(&plan.inputs[1]), [9]);
    assert!(plan.bottommost && !plan.trivial_move);
    assert_eq!(total_bytes(plan.tables()), 60);
}

/// Half of the limit is enough where there is little to rewrite.
#[test]
fn level_0_is_compacted_early_where_that_is_cheap() {
    let due = |level0_files, tables: &[(usize, TableMeta)]| {
        let limits = Limits { level0_files, ..limits() };
        pick(&version(tables), &limits, &Running::default()).map(|p| numbers(&p.inputs[0]))
    };
    let mut tables = vec![(BOTTOM, meta(9, 10, 50, 60)), (0, meta(1, 15, 0, 100))];
    assert_eq!(due(4, &tables), None);
    tables.push((0, meta(2, 5, 90, 200)));
    assert_eq!(due(4, &tables), Some(vec![2, 1]));
    assert_eq!(due(5, &tables), None);
    // As many tables that would rewrite a large one.
    tables.push((BOTTOM, meta(8, 1_000, 300, 400)));
    tables.extend((3..5).map(|number| (0, meta(number, 60, 300, 310))));
    assert_eq!(due(5, &tables), None);
    assert_eq!(due(4, &tables), Some(vec![4, 3]));
}

/// At rest more may be rewritten, so that reads meet one run; not anything, and
/// not for a single table.
#[test]
fn level_0_is_compacted_at_rest_where_more_is_below() {
    let due = |at_rest, level0: u64, below| {
        let mut tables = vec![(BOTTOM, meta(9, below, 0, 100))];
        tables.extend((0..level0).map(|n| (0, meta(10 + n, 10, 0, 100))));
        let limits = Limits { at_rest, ..limits() };
        pick(&version(&tables), &limits, &Running::default()).is_some()
    };
    assert!(due(true, 2, 80) && due(true, 3, 120));
    assert!(!due(false, 2, 80) && !due(false, 3, 120));
    assert!(!due(true, 2, 81) && !due(true, 1, 10));
}

/// Newer entries never pass older ones that are still above the base.
#[test]
fn level_0_stops_above_a_level_that_is_not_empty_yet() {
    let mut tables: Vec<_> = (1..5).map(|n| (0, meta(n, 10, 0, 100))).collect();
    tables.push((3, meta(9, 10, 0, 100)));
    tables.push((BOTTOM, meta(10, 1_000, 0, 100)));
    let version = version(&tables);
    let mut running = Running::default();
    let drains = pick(&version, &limits(), &running).unwrap();
    assert_eq!((drains.level_from, drains.level_to, drains.reason), (3, 5, Reason::LevelSize));
    assert!(drains.trivial_move);
    running.add(&drains);
    assert!(pick(&version, &limits(), &running).is_none(), "table 9 is on its way");
}

/// Two threads that always work on the level below would leave level 0 no
/// moment to go: while it is needed most and waits, they begin nothing there.
#[test]
fn level_0_is_not_starved_by_work_on_the_level_below() {
    let mut tables: Vec<_> = (1..21).map(|n| (0, meta(n, 10, 0, 1000))).collect();
    tables.extend((0..10).map(|n| (5, meta(30 + n, 2_000, n as u32 * 100, n as u32 * 100 + 99))));
    tables.extend((0..10).map(|n| (6, meta(50 + n, 6_000, n as u32 * 100, n as u32 * 100 + 99))));
    let version = version(&tables);
    let limits = limits();
    let below = Targets::of(&version, &limits).level0_into(&version);
    assert_eq!(below, 5);
    let mut running = Running::default();
    let deep = {
        let (version, limits, running) = (&version, &limits, &running);
        let picker = Picker { version, limits, running, targets: Targets::of(version, limits) };
        assert!(picker.score(5) > 1.0 && picker.score(0) > picker.score(5));
        picker.level(5).expect("it is too large")
    };
    running.add(&deep);
    assert!(pick(&version, &limits, &running).is_none(), "level 0 comes next");
    running.remove(&deep);
    assert_eq!(pick(&version, &limits, &running).expect("it can go").level_from, 0);
    assert!(pick_level0(&version, &limits, &running).is_some());
}

/// What level 0 goes into is made smaller first while level 0 can wait, and no
/// longer once writers are held back.
#[test]
fn the_level_below_goes_first_where_it_is_too_large() {
    let plan_at = |level0: u64| {
        let mut tables: Vec<_> = (0..level0).map(|n| (0, meta(1 + n, 10, 0, 1000))).collect();
        tables
            .extend((0..10).map(|n| (5, meta(30 + n, 3_000, n as u32 * 100, n as u32 * 100 + 99))));
        tables
            .extend((0..10).map(|n| (6, meta(50 + n, 6_000, n as u32 * 100, n as u32 * 100 + 99))));
        let version = version(&tables);
        let idle = Running::default();
        let between = pick_level0(&version, &limits(), &idle).is_some();
        (pick(&version, &limits(), &idle).expect("both are due").level_from, between)
    };
    assert_eq!([plan_at(4), plan_at(7), plan_at(8)], [(5, false), (5, false), (0, true)]);
}

/// A table of tombstones with nothing below is rewritten, which drops them,
/// and not moved, which would keep them for ever.
#[test]
fn tombstones_are_not_moved_to_the_bottom() {
    let mut tables: Vec<_> =
        (1..5).map(|n| (0, meta(n, 10, n as u32 * 10, n as u32 * 10))).collect();
    let all_move = pick(&version(&tables), &limits(), &Running::default()).unwrap();
    assert!(all_move.trivial_move && all_move.inputs[0].len() == 4);
    for (_, meta) in &mut tables {
        meta.tombstones = 25;
    }
    let rewritten = pick(&version(&tables), &limits(), &Running::default()).unwrap();
    assert!(!rewritten.trivial_move && rewritten.bottommost);
}

/// Targets: one level while the data is small; the ratio never exceeds its
/// limit; a level that came into use does not come and go.
#[test]
fn levels_come_into_use_one_by_one() {
    let limits = limits();
    let at = |bytes, extra: &[(usize, TableMeta)]| {
        let mut tables = vec![(BOTTOM, meta(1, bytes, 0, 9))];
        tables.extend(extra.iter().cloned());
        Targets::of(&version(&tables), &limits)
    };
    assert_eq!(Targets::of(&version(&[]), &limits).base, BOTTOM);
    assert_eq!(at(16_000, &[]).base, BOTTOM);
    let two = at(16_400, &[]);
    assert_eq!(two.base, BOTTOM - 1);
    assert!((8_000..8_200).contains(&two.bytes[BOTTOM - 1]), "{two:?}");
    let in_use = [(BOTTOM - 1, meta(2, 500, 0, 9))];
    assert_eq!(at(15_000, &in_use).base, BOTTOM - 1);
    assert_eq!(at(8_000, &in_use).base, BOTTOM);
    assert_eq!(at(u64::MAX / 4, &[]).base, 1);
}

/// Cuts of a compaction that takes `tables`, into at most `parts`.
fn cuts_of(tables: &[(usize, TableMeta)], parts: usize) -> Vec<u32> {
    let version = version(tables);
    let plan = pick(&version, &limits(), &Running::default()).expect("it is due");
    assert_eq!(plan.tables().count(), tables.len());
    let cuts = cuts(&plan, version.order(), parts, limits().table_bytes);
    cuts.iter().map(|key| u32::from_be_bytes(key[..].try_into().unwrap())).collect()
}

/// A compaction is cut where tables begin, into parts of about the same size;
/// one that is small, or has one thread, or may have tombstones over the
/// borders, is not.
#[test]
fn large_compactions_are_cut_evenly() {
    let mut tables: Vec<_> = (1..5).map(|n| (0, meta(n, 100, 0, 999))).collect();
    tables
        .extend((0..10).map(|n| (BOTTOM, meta(10 + n, 500, n as u32 * 100, n as u32 * 100 + 99))));
    assert_eq!(cuts_of(&tables, 2), [500]);
    assert_eq!(cuts_of(&tables, 4), [300, 500, 800]);
    assert_eq!(cuts_of(&tables, 1), []);
    // 5,400 bytes are worth five parts of two tables of 500 each.
    assert_eq!(cuts_of(&tables, 64).len(), 4);
    let small: Vec<_> =
        tables.iter().map(|(l, m)| (*l, TableMeta { bytes: 1, ..m.clone() })).collect();
    assert_eq!(cuts_of(&small, 4), []);
    tables[0].1.range_tombstones = 1;
    assert_eq!(cuts_of(&tables, 4), []);
}
