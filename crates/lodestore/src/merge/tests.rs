use super::*;
use crate::key::{Kind, trailer};
use crate::memtable::Memtable;

/// Three memtables with entries dealt out in turn, and all entries in order.
fn dealt(entries: u64) -> (Vec<Source>, Vec<(Vec<u8>, Trailer)>) {
    let mut tables: Vec<_> = (0..3)
        .map(|_| Memtable::new(KeyOrder::Bytewise, &crate::budget::Account::unlimited()))
        .collect();
    let mut all = Vec::new();
    for i in 0..entries {
        // Few keys, of which some begin alike for more than a head.
        let key = format!("a common beginning {:02}", i * 7 % 40).into_bytes();
        let trailer = trailer(i + 1, Kind::Put);
        tables[(i % 3) as usize].1.insert(&key, trailer, b"");
        all.push((key, trailer));
    }
    all.sort_by(|a, b| a.0.cmp(&b.0).then(b.1.cmp(&a.1)));
    (tables.iter().map(|(table, _)| Source::Memtable(table.cursor())).collect(), all)
}

fn here(cursor: &MergeCursor) -> Option<(Vec<u8>, Trailer)> {
    cursor.valid().then(|| (cursor.user_key().to_vec(), cursor.trailer()))
}

/// Both directions give every entry once, in order.
#[test]
fn merging_gives_every_entry_in_order_both_ways() {
    let (sources, all) = dealt(200);
    let mut cursor = MergeCursor::new(sources, KeyOrder::Bytewise);
    cursor.seek_to_first();
    for entry in &all {
        assert_eq!(here(&cursor).as_ref(), Some(entry));
        cursor.next();
    }
    assert!(!cursor.valid() && cursor.status().is_ok());
    cursor.seek_to_last();
    for entry in all.iter().rev() {
        assert_eq!(here(&cursor).as_ref(), Some(entry));
        cursor.prev();
    }
    assert!(!cursor.valid());
}

/// Turning round at any entry leads to its neighbour on the other side.
#[test]
fn turning_round_leads_to_the_neighbour() {
    let (sources, all) = dealt(60);
    let mut cursor = MergeCursor::new(sources, KeyOrder::Bytewise);
    for (i, (key, trailer)) in all.iter().enumerate() {
        cursor.seek(key, *trailer);
        cursor.prev();
        assert_eq!(here(&cursor), i.checked_sub(1).map(|j| all[j].clone()));
        cursor.seek_for_prev(key, *trailer);
        cursor.next();
        assert_eq!(here(&cursor), all.get(i + 1).cloned());
        if cursor.valid() {
            cursor.prev();
            assert_eq!(here(&cursor).as_ref(), Some(&all[i]));
        }
    }
}
