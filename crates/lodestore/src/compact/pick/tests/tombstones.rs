//! Which tables are compacted because of their tombstones, and which are
//! dropped as they are.

use super::*;
use crate::key::{SEQUENCE_MAX, TRAILER_NEWEST};

fn limits_with(percent: u64, age_seconds: u64) -> Limits {
    let oldest_snapshot = SEQUENCE_MAX;
    let tombstones = TombstoneLimits { percent, age_seconds, unix_seconds: 1_000, oldest_snapshot };
    Limits { tombstones, ..limits() }
}

fn tombstones(number: u64, tombstones: u64, tombstones_unix_seconds: u64) -> TableMeta {
    TableMeta { tombstones, tombstones_unix_seconds, ..meta(number, 10, 0, 100) }
}

fn picked(tables: &[(usize, TableMeta)], limits: &Limits) -> Option<Plan> {
    pick(&version(tables), limits, &Running::default())
}

/// A table that is half tombstones is compacted although no level is too
/// large; one tombstone less, and it is not; nor is it if that is turned off.
#[test]
fn a_table_of_tombstones_is_compacted() {
    let below = (BOTTOM, meta(1, 10, 0, 100));
    let with = |count| [(0, tombstones(2, count, 900)), below.clone()];
    let plan = picked(&with(50), &limits_with(50, 0)).expect("half is enough");
    assert_eq!((plan.level_from, plan.level_to), (0, BOTTOM));
    assert_eq!(numbers(&plan.inputs[1]), [1]);
    assert!(picked(&with(49), &limits_with(50, 0)).is_none());
    assert!(picked(&with(50), &limits_with(0, 0)).is_none());
}

/// Where they are few beside the entries below, tombstones wait for more, so that
/// these are rewritten once; but not once nothing more comes, nor when they are old.
#[test]
fn tombstones_gather_above_many_entries() {
    let limits = limits_with(50, 0);
    // Above the second size there is a level between. Bytes do not count.
    for (level, bytes) in [(0, 3_000), (BOTTOM - 1, 20_000)] {
        let below = |entries| (BOTTOM, TableMeta { entries, ..meta(1, bytes, 0, 100) });
        let above = |entries| [(level, tombstones(2, 60, 900)), below(entries)];
        assert!(picked(&above(180), &limits).is_some());
        assert!(picked(&above(181), &limits).is_none());
        assert!(picked(&above(181), &Limits { at_rest: true, ..limits.clone() }).is_some());
        assert!(picked(&above(181), &limits_with(50, 100)).is_some());
    }
    let below = (BOTTOM, TableMeta { entries: 360, ..meta(1, 10, 0, 100) });
    let tables = [(0, tombstones(2, 60, 900)), (0, tombstones(3, 60, 950)), below];
    assert!(picked(&tables, &limits).is_some());
}

/// A database that is deleted from all the time and never at rest: what is stored
/// shrinks with what it holds, and is not rewritten for each few deletes.
#[test]
fn deletes_free_space_while_they_go_on() {
    let mut model = Model::new(11);
    model.limits = limits_with(50, 0);
    let keys = 20_000;
    model.flush(0..keys, false);
    model.work(2, 0);
    let step = 7_919; // has no factor in common with `keys`
    let mut order = (0..keys).map(|n| n * step % keys);
    for live in (0..keys).rev().step_by(60).skip(1) {
        model.flush(order.by_ref().take(60).collect::<Vec<_>>(), true);
        model.work(2, 0);
        let puts = |meta: &TableMeta| meta.entries - meta.tombstones;
        let stored: u64 = model.version.tables().map(|table| puts(&table.meta)).sum();
        assert!(stored <= 2 * u64::from(live) + 500, "{stored} stored, {live} live");
    }
    let rewritten = model.bytes_compacted as f64 / model.bytes_flushed as f64;
    assert!(rewritten < 6.0, "{rewritten} bytes rewritten a byte");
}

/// What is deleted in key order waits for what comes next, since both delete from the
/// table between them, and goes together with it; not for ever, and not at rest.
#[test]
fn neighbours_are_collected_together() {
    let below = (0..9).map(|n| (BOTTOM, meta(1 + n, 100, n as u32 * 100, n as u32 * 100 + 99)));
    let below: Vec<_> = below.collect();
    let deletes = |number, first, last| {
        let tombstones = u64::from(last - first);
        (0, TableMeta { tombstones, entries: tombstones, ..meta(number, 10, first, last) })
    };
    let with = |above: &[(usize, TableMeta)]| [&below[..], above].concat();
    let (first, second) = (deletes(20, 0, 250), deletes(21, 251, 560));
    let (busy, rest) = (limits_with(50, 0), Limits { at_rest: true, ..limits_with(50, 0) });
    let alone = with(std::slice::from_ref(&first));
    assert!(picked(&alone, &busy).is_none());
    assert_eq!(numbers(&picked(&alone, &rest).expect("nothing follows").inputs[1]), [1, 2, 3]);
    let plan = picked(&with(&[first.clone(), second.clone()]), &busy).expect("two of four");
    assert_eq!(numbers(&plan.inputs[0]), [21, 20]);
    assert_eq!(numbers(&plan.inputs[1]), [1, 2, 3, 4, 5, 6]);
    // Between these lies a table that neither deletes from, or there is no edge.
    let far = deletes(21, 450, 760);
    assert!(picked(&with(&[first, far]), &busy).is_none());
    assert!(picked(&with(&[deletes(20, 0, 299)]), &busy).is_some());
}

/// Deletes in key order, never at rest, rewrite a table below once for some memtables.
#[test]
fn deletes_in_key_order_rewrite_little() {
    let mut model = Model::new(13);
    model.limits = Limits { level0_files: 8, ..limits_with(50, 0) };
    for start in (0..20_000).step_by(50) {
        model.flush(start..start + 50, false);
        model.work(2, 0);
    }
    (model.bytes_flushed, model.bytes_compacted) = (0, 0);
    for start in (0..19_800).step_by(110) {
        model.flush(start..start + 110, true);
        model.work(2, 0);
    }
    model.check_readers();
    let rewritten = model.bytes_compacted as f64 / model.bytes_flushed as f64;
    assert!(rewritten < 0.15, "{rewritten} bytes rewritten a byte");
}

/// Tombstones of level 0 with nothing in the level that they go into are moved there,
/// and compacted from there with what they delete.
#[test]
fn tombstones_that_meet_nothing_yet_are_moved_down() {
    let below = (0..10).map(|n| (BOTTOM, meta(1 + n, 2_000, n as u32 * 100, n as u32 * 100 + 99)));
    let mut tables: Vec<_> = below.collect();
    let deletes =
        |number, first| TableMeta { tombstones: 100, ..meta(number, 10, first, first + 50) };
    tables.extend([(0, deletes(20, 100)), (0, deletes(21, 300))]);
    let limits = Limits { at_rest: true, ..limits_with(50, 0) };
    let moves = picked(&tables, &limits).expect("all are tombstones");
    assert_eq!((moves.level_to, moves.trivial_move), (BOTTOM - 1, true));
    assert_eq!(numbers(&moves.inputs[0]), [20, 21]);
    for (level, meta) in &mut tables {
        *level = if meta.tombstones > 0 { moves.level_to } else { BOTTOM };
    }
    let deletes = picked(&tables, &limits).expect("they are still to be collected");
    assert_eq!((deletes.level_from, deletes.level_to), (BOTTOM - 1, BOTTOM));
    assert_eq!((numbers(&deletes.inputs[1]), deletes.trivial_move), (vec![2], false));
}

/// Old tombstones are collected, however few; new ones are not.
#[test]
fn old_tombstones_are_collected() {
    let below = (BOTTOM, meta(1, 10, 0, 100));
    let with = |created| [(0, tombstones(2, 1, created)), below.clone()];
    assert!(picked(&with(900), &limits_with(0, 100)).is_some());
    assert!(picked(&with(901), &limits_with(0, 100)).is_none());
    assert!(picked(&with(0), &limits_with(0, 100)).is_none(), "of unknown age");
    let none = [(0, tombstones(2, 0, 1)), below.clone()];
    assert!(picked(&none, &limits_with(50, 100)).is_none(), "there is no tombstone");
}

/// Where nothing is below, a table is rewritten in place, but only if that
/// gets rid of all its tombstones: otherwise it would be done again for ever.
#[test]
fn tombstones_at_the_bottom_are_rewritten_in_place_if_they_can_go() {
    let tables = [(BOTTOM, tombstones(7, 60, 900))];
    let plan = picked(&tables, &limits_with(50, 0)).expect("all can go");
    assert_eq!((plan.level_from, plan.level_to, plan.reason), (BOTTOM, BOTTOM, Reason::Tombstones));
    assert!(plan.bottommost && !plan.trivial_move);
    let mut limits = limits_with(50, 0);
    limits.tombstones.oldest_snapshot = 6;
    assert!(picked(&tables, &limits).is_none(), "a snapshot keeps some");
}

/// Deletes in any order with collection turned on: it comes to an end, and no
/// tombstone is left.
#[test]
fn collection_ends_and_leaves_no_tombstone() {
    let mut model = Model::new(9);
    model.limits = limits_with(50, 0);
    for round in 0..120 {
        let from = model.below(3_000) as u32;
        let keys: Vec<u32> = (0..60).map(|_| model.below(3_000) as u32).collect();
        match round % 3 {
            0 => model.flush(from..from + 80, true),
            _ => model.flush(keys, false),
        }
        model.work(2, 0);
    }
    model.flush(0..4_000, true);
    model.work(2, 0);
    model.check_readers();
    let left: u64 = model.version.tables().map(|table| table.meta.tombstones).sum();
    assert_eq!(left, 0, "{:?}", model.version);
}

fn dropped(tables: &[(usize, TableMeta)], begin: u32, end: u32, running: &Running) -> Vec<u64> {
    let (begin, end) = (begin.to_be_bytes(), end.to_be_bytes());
    let inside = tables_inside(&version(tables), Some(&begin), Some(&end), running);
    let mut numbers: Vec<u64> = inside.iter().map(|(_, table)| table.meta.number).collect();
    numbers.sort_unstable();
    numbers
}

/// Tables wholly within the range are dropped, at every level; the end is not
/// in the range, but a bound may be there.
#[test]
fn only_tables_within_the_range_are_dropped() {
    let idle = Running::default();
    let tables = [
        (0, meta(9, 1, 10, 19)),
        (3, meta(8, 1, 12, 18)),
        (BOTTOM, meta(1, 1, 0, 9)),
        (BOTTOM, meta(2, 1, 10, 19)),
        (BOTTOM, meta(3, 1, 20, 29)),
    ];
    assert_eq!(dropped(&tables, 10, 20, &idle), [2, 8, 9]);
    assert_eq!(dropped(&tables, 0, 30, &idle), [1, 2, 3, 8, 9]);
    assert_eq!(dropped(&tables, 10, 19, &idle), [0u64; 0], "19 stays, and what is over it");
    let mut bound = tables.clone();
    bound[3].1.largest = InternalKey::new(&19u32.to_be_bytes(), TRAILER_NEWEST);
    assert_eq!(dropped(&bound, 10, 19, &idle), [2, 8]);
}

/// A table over an older one that stays is not dropped: it may have deleted or
/// overwritten what is there.
#[test]
fn nothing_comes_back_because_a_newer_table_was_dropped() {
    let idle = Running::default();
    let tables = [
        (0, meta(9, 1, 10, 12)),
        (0, meta(8, 1, 11, 25)),
        (0, meta(7, 1, 10, 15)),
        (4, meta(6, 1, 13, 14)),
        (BOTTOM, meta(1, 1, 14, 40)),
    ];
    // 1 goes on behind the range, so 6 and 7 over it stay, and 9 over 7.
    assert_eq!(dropped(&tables, 10, 20, &idle), [0u64; 0]);
    let mut apart = tables.clone();
    apart[4].1.smallest = InternalKey::new(&16u32.to_be_bytes(), 0);
    assert_eq!(dropped(&apart, 10, 20, &idle), [6, 7], "9 is over 8, which stays");
    let version = version(&apart);
    let mut running = Running::default();
    let compacted = vec![Arc::clone(&version.level(4).tables()[0])];
    running.add(&Plan::new(&version, (4, 5), [compacted, Vec::new()], Reason::LevelSize));
    assert_eq!(dropped(&apart, 10, 20, &running), [0u64; 0], "6 is being compacted");
}
