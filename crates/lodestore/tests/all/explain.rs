//! `explain` tells what a lookup did, and does what `get` does.

use std::path::Path;
use std::sync::Arc;

use lodestore::{
    AddU64, BlockKind, BlockSource, Counter, Db, Explanation, FamilyOptions, FilterAnswer, Fs,
    Kind, MemFs, Options, Outcome, Place, ReadOptions,
};

fn options(fs: &Arc<MemFs>) -> Options {
    let family = FamilyOptions {
        merge_operator: Some(Arc::new(AddU64)),
        // Compactions come when a test asks for one.
        level0_compaction_files: 100,
        level0_slowdown_files: 100,
        level0_stop_files: 100,
        ..FamilyOptions::default()
    };
    let fs: Arc<dyn Fs> = fs.clone();
    Options { create_if_missing: true, fs, family, ..Options::default() }
}

fn open() -> Db {
    Db::open("db", options(&Arc::new(MemFs::new()))).expect("it opens")
}

#[track_caller]
fn explain(db: &Db, key: &[u8]) -> Explanation {
    let told = db.explain(&ReadOptions::default(), key).expect("it is explained");
    let value_bytes = db.get(key).ok().flatten().map(|value| value.len());
    let told_bytes = match told.outcome {
        Outcome::Found { value_bytes, .. } => Some(value_bytes),
        _ => None,
    };
    assert_eq!(value_bytes, told_bytes, "what is told is not what get does: {told}");
    told
}

/// Fills one table with keys `from`, `from + 2`, ... below `to`.
fn table(db: &Db, from: u32, to: u32) {
    for key in (from..to).step_by(2) {
        db.put(&key.to_be_bytes(), &[7; 100]).unwrap();
    }
    db.flush().unwrap();
}

/// Memtables come first, and end the lookup.
#[test]
fn what_is_in_memory_is_found_there() {
    let db = open();
    table(&db, 0, 100);
    db.put(b"\0\0\0\x02", b"new").unwrap();
    let told = explain(&db, b"\0\0\0\x02");
    assert_eq!(told.places.len(), 1, "{told}");
    assert_eq!(told.places[0].place, Place::ActiveMemtable);
    assert_eq!(told.places[0].versions[0].kind, Some(Kind::Put));
    let sequence = db.latest_sequence();
    assert!(matches!(told.outcome,
        Outcome::Found { value_bytes: 3, sequence: s, operands: 0 } if s == sequence));
}

/// Each table is named with its level, what the filter said, and the blocks
/// that it took, from the file the first time and from the cache then.
#[test]
fn tables_filters_and_blocks_are_told() {
    let db = open();
    table(&db, 0, 4000);
    db.compact_range(None, None).unwrap();
    table(&db, 1, 4000);
    table(&db, 10_000, 10_100);
    let key = 2002u32.to_be_bytes();

    let told = explain(&db, &key);
    assert_eq!((told.passed_over, told.tables()), (1, 2), "{told}");
    let [memtable, level0, deep] = &told.places[..] else { panic!("{told}") };
    assert_eq!(memtable.place, Place::ActiveMemtable);
    assert!(matches!(level0.place, Place::Table { level: 0, .. }));
    assert_eq!((level0.filter, level0.blocks.len()), (FilterAnswer::Denied, 0));
    assert!(matches!(deep.place, Place::Table { level: 6, .. }), "{told}");
    assert_eq!(deep.filter, FilterAnswer::MayContain);
    assert_eq!(deep.blocks.len(), 1);
    assert_eq!(deep.blocks[0].kind, BlockKind::Data);
    assert_eq!(deep.versions.len(), 1);
    // `get` above has put the block into the cache.
    assert_eq!(explain(&db, &key).places[2].blocks[0].source, BlockSource::Cache);
    let unread = db.explain(&ReadOptions::default(), &10u32.to_be_bytes()).unwrap();
    assert_eq!(unread.places[2].blocks[0].source, BlockSource::File, "{unread}");

    let text = told.to_string();
    for part in ["the filter denies it", "the filter lets it pass", "block of entries at", "found"]
    {
        assert!(text.contains(part), "{part:?} is not in {text}");
    }
}

/// The deepest level can go without filters while those above have theirs: a key
/// that is not there costs a block, one that is there costs no more than before.
#[test]
fn the_deepest_level_can_go_without_filters() {
    let mut options = options(&Arc::new(MemFs::new()));
    options.family.filter_bits_per_key_bottommost = Some(0);
    let db = Db::open("db", options).unwrap();
    table(&db, 0, 4000);
    db.rewrite_range(None, None).unwrap(); // a table that moves keeps its filter
    table(&db, 1, 4000);
    for (key, outcome_is_found) in [(2002u32, true), (5, true), (4001, false)] {
        let told = explain(&db, &key.to_be_bytes());
        assert_eq!(matches!(told.outcome, Outcome::Found { .. }), outcome_is_found, "{told}");
    }
    let told = explain(&db, &2002u32.to_be_bytes());
    let [_, level0, deep] = &told.places[..] else { panic!("{told}") };
    assert_eq!((level0.filter, level0.blocks.len()), (FilterAnswer::Denied, 0));
    assert_eq!((deep.filter, deep.blocks.len()), (FilterAnswer::NotAsked, 1), "{told}");

    db.set_family_options(&[("filter_bits_per_key_bottommost", "default")]).unwrap();
    db.rewrite_range(None, None).unwrap();
    let told = explain(&db, &2002u32.to_be_bytes());
    assert_eq!(told.places[1].filter, FilterAnswer::MayContain, "{told}");
}

/// A small table above older ones is asked as often as they are, so that its
/// filter is the better one: of 4,000 keys that are not there few pass.
#[test]
fn filters_above_older_tables_let_less_through() {
    let db = open();
    table(&db, 0, 8000);
    db.rewrite_range(None, None).unwrap();
    table(&db, 0, 8000);
    let mut passed = [0, 0];
    for key in (1..7999u32).step_by(2) {
        let told = explain(&db, &key.to_be_bytes());
        let [_, above, deep] = &told.places[..] else { panic!("{told}") };
        for (passed, place) in passed.iter_mut().zip([above, deep]) {
            *passed += u32::from(place.filter == FilterAnswer::MayContain);
        }
    }
    let [above, deep] = passed;
    assert!((20..80).contains(&deep), "one in a hundred: {deep}");
    assert!(above < deep / 3, "{above} above, {deep} deep");
}

/// The parts of a large table's filter and index are blocks too.
#[test]
fn parts_of_filters_and_indexes_are_told() {
    let fs = Arc::new(MemFs::new());
    let mut options = options(&fs);
    options.family.partition_bytes = Some(512);
    let db = Db::open("db", options).unwrap();
    table(&db, 0, 8000);
    let told = explain(&db, &4000u32.to_be_bytes());
    let kinds: Vec<BlockKind> = told.places[1].blocks.iter().map(|block| block.kind).collect();
    assert_eq!(kinds, [BlockKind::Filter, BlockKind::Index, BlockKind::Data], "{told}");
    assert_eq!(told.places[1].filter, FilterAnswer::MayContain);
    let told = explain(&db, &4001u32.to_be_bytes());
    assert_eq!(told.places[1].filter, FilterAnswer::Denied, "{told}");
    assert_eq!(told.places[1].blocks.len(), 1);
}

/// A key that is gone is told with the record that removed it.
#[test]
fn deletes_are_told_from_absence() {
    let db = open();
    table(&db, 0, 100);
    db.delete(b"\0\0\0\x02").unwrap();
    let deleted_at = db.latest_sequence();
    db.flush().unwrap();
    let told = explain(&db, b"\0\0\0\x02");
    assert!(
        matches!(told.outcome,
        Outcome::Deleted { by: Kind::Delete, sequence } if sequence == deleted_at),
        "{told}"
    );
    assert!(matches!(explain(&db, b"none").outcome, Outcome::Absent));

    db.put(b"\0\0\0\x06", b"").unwrap();
    db.delete_range(b"\0\0\0\x04", b"\0\0\0\x08").unwrap();
    let covered_at = db.latest_sequence();
    let told = explain(&db, b"\0\0\0\x06");
    assert_eq!(told.places.len(), 1, "older places are not looked at: {told}");
    assert_eq!((told.places[0].range_delete, told.hidden()), (Some(covered_at), 1));
    assert!(matches!(told.outcome,
        Outcome::Deleted { by: Kind::RangeDelete, sequence } if sequence == covered_at));
    db.flush().unwrap();
    let told = explain(&db, b"\0\0\0\x04");
    assert!(told.to_string().contains("a range delete"), "{told}");
    assert!(matches!(told.outcome, Outcome::Deleted { by: Kind::RangeDelete, .. }), "{told}");
}

/// Operands are collected over all places down to the value below them.
#[test]
fn merge_operands_are_counted() {
    let db = open();
    db.put(b"n", &1u64.to_le_bytes()).unwrap();
    db.flush().unwrap();
    db.merge(b"n", &2u64.to_le_bytes()).unwrap();
    db.flush().unwrap();
    db.merge(b"n", &3u64.to_le_bytes()).unwrap();
    let told = explain(&db, b"n");
    assert!(matches!(told.outcome, Outcome::Found { value_bytes: 8, sequence: 3, operands: 2 }));
    let kinds = told.places.iter().flat_map(|place| &place.versions).map(|met| met.kind);
    let expected = [Some(Kind::Merge), Some(Kind::Merge), Some(Kind::Put)];
    assert!(kinds.eq(expected), "{told}");
}

/// A snapshot's lookup looks at nothing newer.
#[test]
fn snapshots_are_explained_as_they_are_read() {
    let db = open();
    db.put(b"a", b"1").unwrap();
    let snapshot = db.snapshot();
    db.put(b"a", b"22").unwrap();
    let options = ReadOptions { snapshot: Some(snapshot), ..ReadOptions::default() };
    let told = db.explain(&options, b"a").unwrap();
    assert_eq!(told.sequence, 1);
    assert!(matches!(told.outcome, Outcome::Found { value_bytes: 1, sequence: 1, .. }));
}

/// Damage is an outcome: the way to it is told, and the error names the place.
#[test]
fn a_lookup_that_fails_is_told_as_far_as_it_went() {
    let fs = Arc::new(MemFs::new());
    let db = Db::open("db", options(&fs)).unwrap();
    table(&db, 0, 4000);
    drop(db);
    let name = fs.list(Path::new("db")).unwrap().into_iter().find(|n| n.ends_with(".table"));
    let path = Path::new("db").join(name.expect("there is a table"));
    let mut bytes = lodestore::fs::read_all(&*fs, &path).unwrap();
    bytes[50] ^= 1;
    let mut file = fs.create(&path).unwrap();
    file.append(&bytes).unwrap();
    file.close().unwrap();

    let db = Db::open("db", options(&fs)).unwrap();
    let told = explain(&db, &0u32.to_be_bytes());
    let Outcome::Failed(error) = &told.outcome else { panic!("{told}") };
    assert!(error.is_corruption(), "{error}");
    assert!(told.places[1].opened && told.places[1].blocks.len() == 1, "{told}");
}

/// Whether filters are worth their memory can be counted: of the lookups that
/// they let pass, those that found the key were right and the others false.
#[test]
fn filters_are_counted_by_what_they_were_worth() {
    let db = open();
    table(&db, 0, 20_000);
    let count = |counter| db.statistics().get(counter);
    for key in (0..20_000u32).step_by(2) {
        assert!(db.get(&key.to_be_bytes()).unwrap().is_some());
    }
    assert_eq!(count(Counter::FilterPassed), 10_000);
    assert_eq!((count(Counter::FilterUseful), count(Counter::FilterFalsePositive)), (0, 0));
    for key in (1..19_999u32).step_by(2) {
        assert!(db.get(&key.to_be_bytes()).unwrap().is_none());
    }
    let (denied, wrong) = (count(Counter::FilterUseful), count(Counter::FilterFalsePositive));
    assert_eq!(denied + wrong, 9_999);
    assert_eq!(count(Counter::FilterPassed), 10_000 + wrong);
    assert!((1..500).contains(&wrong), "10 bits a key give about 1 %, not {wrong} in 10,000");
}
