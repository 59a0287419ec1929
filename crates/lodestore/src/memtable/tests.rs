use std::cmp::{Ordering, Reverse};
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Release};

use super::{Memtable, MemtableCursor, MemtableWriter};
use crate::budget::Account;
use crate::cursor::Cursor;
use crate::key::{Comparator, KeyOrder, Kind, TRAILER_NEWEST, Trailer, hash, trailer};
use crate::sync::{Arc, Weak};

type Entry = (Vec<u8>, Trailer, Vec<u8>);

/// Small, repeatable randomness (xorshift).
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % bound
    }
}

struct Backwards;

impl Comparator for Backwards {
    fn name(&self) -> &str {
        "backwards"
    }
    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        b.cmp(a)
    }
}

struct CaseBlind;

impl Comparator for CaseBlind {
    fn name(&self) -> &str {
        "case-blind"
    }
    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        a.to_ascii_lowercase().cmp(&b.to_ascii_lowercase())
    }
}

fn backwards() -> KeyOrder {
    KeyOrder::Custom(Arc::new(Backwards))
}

fn case_blind() -> KeyOrder {
    KeyOrder::Custom(Arc::new(CaseBlind))
}

/// A memtable beside a sorted map that must always agree with it.
struct Pair {
    order: KeyOrder,
    memtable: Arc<Memtable>,
    writer: MemtableWriter,
    entries: Vec<Entry>,
}

impl Pair {
    fn new(order: KeyOrder) -> Pair {
        let (memtable, writer) = Memtable::new(order.clone(), &Account::unlimited());
        Pair { order, memtable, writer, entries: Vec::new() }
    }

    fn insert(&mut self, key: &[u8], trailer: Trailer, value: &[u8]) {
        self.writer.insert(key, trailer, value);
        self.entries.push((key.to_vec(), trailer, value.to_vec()));
    }

    fn sorted(&self) -> Vec<Entry> {
        let mut sorted = self.entries.clone();
        sorted.sort_by(|a, b| self.order.compare_entries((&a.0, a.1), (&b.0, b.1)));
        sorted
    }

    /// Compares everything that can be asked; `probes` are extra targets.
    fn check(&self, probes: &[(Vec<u8>, Trailer)]) {
        let sorted = self.sorted();
        assert_eq!(self.memtable.entries(), sorted.len() as u64);
        assert_eq!(self.memtable.is_empty(), sorted.is_empty());
        let mut cursor = self.memtable.cursor();
        assert!(!cursor.valid(), "a new cursor has no position");
        assert_eq!(walk(&mut cursor, true), sorted);
        let mut backward = walk(&mut cursor, false);
        backward.reverse();
        assert_eq!(backward, sorted);
        for (key, trailer) in probes {
            self.check_at(&sorted, &mut cursor, key, *trailer);
        }
    }

    fn check_at(&self, sorted: &[Entry], cursor: &mut MemtableCursor, key: &[u8], at: Trailer) {
        let before = |e: &Entry| self.order.compare_entries((&e.0, e.1), (key, at)).is_lt();
        let until = |e: &Entry| self.order.compare_entries((&e.0, e.1), (key, at)).is_le();
        let start = sorted.partition_point(before);
        let end = sorted.partition_point(until);

        cursor.seek(key, at);
        assert_eq!(here(cursor).as_ref(), sorted.get(start), "seek");
        if cursor.valid() {
            cursor.prev();
            assert_eq!(here(cursor).as_ref(), start.checked_sub(1).map(|i| &sorted[i]));
        }
        cursor.seek_for_prev(key, at);
        assert_eq!(here(cursor).as_ref(), end.checked_sub(1).map(|i| &sorted[i]), "for prev");
        if cursor.valid() {
            cursor.next();
            assert_eq!(here(cursor).as_ref(), sorted.get(end));
        }

        let versions: Vec<(Trailer, &[u8])> = sorted[start..]
            .iter()
            .take_while(|e| self.order.compare(&e.0, key).is_eq())
            .map(|e| (e.1, &e.2[..]))
            .collect();
        for limit in [usize::MAX, 1] {
            let mut met = Vec::new();
            self.memtable.get((key, hash(key)), at, |trailer, value| {
                met.push((trailer, value));
                if met.len() == limit { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            });
            assert_eq!(met, versions[..versions.len().min(limit)], "get {}", key.escape_ascii());
        }
    }
}

fn here(cursor: &MemtableCursor) -> Option<Entry> {
    assert!(cursor.status().is_ok());
    let entry = || (cursor.user_key().to_vec(), cursor.trailer(), cursor.value().to_vec());
    cursor.valid().then(entry)
}

fn walk(cursor: &mut MemtableCursor, forward: bool) -> Vec<Entry> {
    let mut met = Vec::new();
    if forward {
        cursor.seek_to_first()
    } else {
        cursor.seek_to_last()
    }
    while let Some(entry) = here(cursor) {
        met.push(entry);
        if forward { cursor.next() } else { cursor.prev() }
    }
    met
}

/// Inserts `count` entries with keys from `key` and checks now and then.
fn soak(order: KeyOrder, seed: u64, count: u64, key: impl Fn(&mut Random) -> Vec<u8>) {
    let mut random = Random(seed);
    let mut pair = Pair::new(order);
    pair.check(&[(Vec::new(), 0), (b"x".to_vec(), TRAILER_NEWEST)]);
    for i in 0..count {
        // Sequence numbers are unique, but do not always ascend.
        let sequence = if random.below(4) == 0 { 2 * count - i } else { i };
        let kind = [Kind::Put, Kind::Delete, Kind::Merge][random.below(3) as usize];
        let value = vec![b'v'; random.below(40) as usize];
        pair.insert(&key(&mut random), trailer(sequence, kind), &value);
        if i % (count / 4).max(1) == 0 || i + 1 == count {
            let mut probes: Vec<_> = (0..100)
                .map(|_| (key(&mut random), trailer(random.below(2 * count), Kind::Put)))
                .collect();
            for entry in pair.entries.iter().rev().take(50) {
                probes.push((entry.0.clone(), entry.1));
                probes.push((entry.0.clone(), TRAILER_NEWEST));
                probes.push((entry.0.clone(), 0));
            }
            pair.check(&probes);
        }
    }
}

fn decimal(i: u64) -> Vec<u8> {
    format!("{i:016}").into_bytes()
}

/// The shape of db_bench's keys, in random order, with some written twice.
#[test]
fn random_decimal_keys_agree_with_the_oracle() {
    soak(KeyOrder::Bytewise, 1, 20_000, |r| decimal(r.below(15_000)));
}

/// Few keys with very many versions: seeking by trailer must be exact.
#[test]
fn many_versions_agree_with_the_oracle() {
    soak(KeyOrder::Bytewise, 2, 5_000, |r| decimal(r.below(3)));
    soak(KeyOrder::Bytewise, 3, 3_000, |_| b"one".to_vec());
}

/// Keys that are prefixes of each other, with the smallest and largest bytes,
/// and the empty key: zero-filled heads must never decide between them.
#[test]
fn prefixes_of_each_other_agree_with_the_oracle() {
    for seed in 1..6 {
        soak(KeyOrder::Bytewise, seed, 3_000, |r| {
            let length = r.below(12);
            (0..length).map(|_| [0x00, 0xff, b'a'][r.below(3) as usize]).collect()
        });
    }
    soak(KeyOrder::Bytewise, 9, 2_000, |r| vec![0x00; r.below(300) as usize]);
    soak(KeyOrder::Bytewise, 10, 2_000, |r| vec![0xff; r.below(300) as usize]);
}

/// Random bytes, and long common prefixes that change in the middle.
#[test]
fn hashes_and_paths_agree_with_the_oracle() {
    soak(KeyOrder::Bytewise, 11, 10_000, |r| {
        (0..5).flat_map(|_| r.below(u64::MAX).to_be_bytes()).collect()
    });
    soak(KeyOrder::Bytewise, 12, 10_000, |r| {
        let (user, file) = (r.below(40), r.below(1_000));
        format!("/a/rather/long/common/prefix/of/paths/user{user}/file/{file:05}").into_bytes()
    });
}

/// Other orders than bytewise work, also when unequal bytes compare equal.
#[test]
fn custom_orders_agree_with_the_oracle() {
    soak(backwards(), 21, 5_000, |r| decimal(r.below(4_000)));
    soak(backwards(), 22, 2_000, |r| vec![0x00; r.below(100) as usize]);
    soak(case_blind(), 23, 3_000, |r| (0..3).map(|_| b"aAbBcC"[r.below(6) as usize]).collect());
}

/// Ascending and descending loads, and several ascending streams side by
/// side: the shapes in which a writer takes short cuts.
#[test]
fn ordered_loads_agree_with_the_oracle() {
    for order in [KeyOrder::Bytewise, backwards()] {
        let shapes: [fn(u64) -> u64; 4] =
            [|i| i, |i| 5_000 - i, |i| (i % 7) * 10_000 + i, |i| i / 2 * 10 + (i % 2) * 3];
        for shape in shapes {
            let mut pair = Pair::new(order.clone());
            for i in 0..5_000 {
                pair.insert(&decimal(shape(i)), trailer(i, Kind::Put), b"value");
            }
            let probes: Vec<_> =
                (0..300).map(|i| (decimal(i * 31), trailer(i * 16, Kind::Put))).collect();
            pair.check(&probes);
        }
    }
}

/// Entries larger than any block of the arena, beside tiny ones.
#[test]
fn large_keys_and_values_are_kept_whole() {
    let mut pair = Pair::new(KeyOrder::Bytewise);
    let mut random = Random(31);
    for i in 0..60u64 {
        let mut key = vec![b'k'; 64 << 10];
        let last = key.len() - 1 - random.below(10) as usize;
        key[last] = random.below(256) as u8;
        pair.insert(&key, trailer(i, Kind::Put), &vec![i as u8; random.below(3) as usize]);
        pair.insert(
            &key[..random.below(70_000).min(65_536) as usize],
            trailer(i + 100, Kind::Put),
            b"v",
        );
    }
    for (i, bytes) in [16 << 10, (2 << 20) - 100, 2 << 20, 5 << 20].into_iter().enumerate() {
        for more in 0..3 {
            let value = vec![b'x'; bytes + more - 1];
            pair.insert(b"big", trailer((i * 3 + more) as u64, Kind::Put), &value);
        }
    }
    let probes: Vec<_> = pair.entries.iter().step_by(7).map(|e| (e.0.clone(), e.1)).collect();
    pair.check(&probes);
}

/// The empty key is a key, the empty value a value.
#[test]
fn empty_key_and_value_are_legal() {
    let mut pair = Pair::new(KeyOrder::Bytewise);
    pair.insert(b"", trailer(1, Kind::Put), b"");
    pair.check(&[(Vec::new(), TRAILER_NEWEST), (Vec::new(), 0), (vec![0], TRAILER_NEWEST)]);
    pair.insert(b"\0", trailer(2, Kind::Put), b"");
    pair.insert(b"", trailer(3, Kind::Delete), b"");
    pair.check(&[(Vec::new(), TRAILER_NEWEST), (Vec::new(), 0), (vec![0], TRAILER_NEWEST)]);
}

/// A cursor that rests while its leaf is filled and split goes on with what
/// comes next and missed nothing that was there when it came, both ways.
#[test]
fn resting_cursors_go_on_rightly() {
    let shapes: [fn(u64) -> u64; 3] = [|i| i * 37 % 4_099, |i| i, |i| 9_000 - i];
    for shape in shapes {
        let mut pair = Pair::new(KeyOrder::Bytewise);
        let mut resting = Vec::new();
        for i in 0..4_000 {
            let key = decimal(shape(i));
            pair.insert(&key, trailer(i, Kind::Put), b"v");
            if i % 61 == 0 {
                let mut cursor = pair.memtable.cursor();
                cursor.seek(&key, TRAILER_NEWEST);
                resting.push((cursor, pair.sorted()));
            }
        }
        for (n, (mut cursor, there)) in resting.into_iter().enumerate() {
            let start = here(&cursor).unwrap();
            let at = there.iter().position(|e| *e == start).unwrap();
            let forward = n % 2 == 0;
            let mut met = vec![];
            while let Some(entry) = here(&cursor) {
                met.push(entry);
                if forward { cursor.next() } else { cursor.prev() }
            }
            if !forward {
                met.reverse();
            }
            assert!(met.is_sorted_by(|a, b| (&a.0, b.1) < (&b.0, a.1)));
            let expected = if forward { &there[at..] } else { &there[..=at] };
            let met: std::collections::BTreeSet<_> = met.into_iter().collect();
            assert!(expected.iter().all(|e| met.contains(e)));
        }
    }
}

/// A reader on another thread meets every published entry exactly once and
/// in order, both ways, while the writer goes on.
#[test]
fn cursors_are_exact_during_writes() {
    for seed in 0..4 {
        concurrent(KeyOrder::Bytewise, 20_000, move |i| {
            decimal((i ^ seed).wrapping_mul(0x9e37_79b9_7f4a_7c15) % 16_384)
        });
    }
    concurrent(KeyOrder::Bytewise, 20_000, decimal);
    concurrent(KeyOrder::Bytewise, 20_000, |i| decimal(99_999 - i));
    concurrent(KeyOrder::Bytewise, 20_000, |_| b"hot".to_vec());
    concurrent(backwards(), 10_000, |i| decimal(i.wrapping_mul(0x9e37_79b9) % 8_192));
}

fn concurrent(order: KeyOrder, count: u64, key: impl Fn(u64) -> Vec<u8> + Sync) {
    let (memtable, mut writer) = Memtable::new(order.clone(), &Account::unlimited());
    let published = AtomicU64::new(0);
    std::thread::scope(|scope| {
        let readers = [true, false].map(|forward| {
            let (memtable, published, key, order) = (&memtable, &published, &key, &order);
            scope.spawn(move || {
                loop {
                    let visible = published.load(Acquire);
                    check_snapshot(memtable, order, visible, forward);
                    for i in (0..visible).step_by(97) {
                        let (mut found, key) = (None, key(i));
                        memtable.get(
                            (&key, hash(&key)),
                            trailer(i, Kind::Put),
                            |trailer, value| {
                                found = Some((trailer, value));
                                ControlFlow::Break(())
                            },
                        );
                        assert_eq!(found, Some((trailer(i, Kind::Put), &i.to_le_bytes()[..])));
                    }
                    if visible == count {
                        return;
                    }
                }
            })
        });
        for i in 0..count {
            writer.insert(&key(i), trailer(i, Kind::Put), &i.to_le_bytes());
            published.store(i + 1, Release);
        }
        // ThreadSanitizer sees a join, not the end of the scope.
        readers.into_iter().for_each(|reader| reader.join().unwrap());
    });
}

fn check_snapshot(memtable: &Arc<Memtable>, order: &KeyOrder, visible: u64, forward: bool) {
    let mut seen = vec![false; visible as usize];
    let mut met = 0;
    let mut cursor = memtable.cursor();
    let mut last: Option<(Vec<u8>, Trailer)> = None;
    if forward {
        cursor.seek_to_first()
    } else {
        cursor.seek_to_last()
    }
    while cursor.valid() {
        let here = (cursor.user_key(), cursor.trailer());
        if let Some(last) = &last {
            let step = order.compare_entries((&last.0, last.1), here);
            assert_eq!(step, if forward { Ordering::Less } else { Ordering::Greater });
        }
        let sequence = here.1 >> 8;
        assert_eq!(cursor.value(), sequence.to_le_bytes());
        if let Some(seen) = seen.get_mut(sequence as usize) {
            assert!(!std::mem::replace(seen, true), "met twice");
            met += 1;
        }
        last = Some((here.0.to_vec(), here.1));
        if forward { cursor.next() } else { cursor.prev() }
    }
    assert_eq!(met, visible, "met all that was published");
}

/// The last reference frees the memory, whichever side holds it; a cursor
/// keeps everything alive.
#[test]
fn memory_lives_as_long_as_the_last_reference() {
    let (memtable, mut writer) = Memtable::new(KeyOrder::Bytewise, &Account::unlimited());
    for i in 0..1_000 {
        writer.insert(&decimal(i), trailer(i, Kind::Put), &[7; 1_000]);
    }
    let weak: Weak<Memtable> = Arc::downgrade(&memtable);
    let mut cursor = memtable.cursor();
    drop((memtable, writer));
    cursor.seek(&decimal(500), TRAILER_NEWEST);
    assert_eq!(cursor.value(), [7; 1_000]);
    drop(cursor);
    assert!(weak.upgrade().is_none());
}

/// Memory is counted as it is taken, starts small and stays near the payload.
#[test]
fn memory_follows_the_payload() {
    let (memtable, mut writer) = Memtable::new(KeyOrder::Bytewise, &Account::unlimited());
    assert!(memtable.memory_bytes() <= 32 << 10, "{}", memtable.memory_bytes());
    let mut random = Random(41);
    let mut keys = BTreeMap::new();
    for i in 0..100_000u64 {
        let key = decimal(random.below(1 << 40));
        let before = memtable.memory_bytes();
        writer.insert(&key, trailer(i, Kind::Put), &[b'v'; 100]);
        assert!(memtable.memory_bytes() >= before);
        keys.insert((key, Reverse(i)), ());
    }
    let payload = 116 * keys.len();
    let ratio = memtable.memory_bytes() as f64 / payload as f64;
    assert!(ratio < 1.5, "memory is {ratio:.2} times the payload");
}

/// Versions of one key stay tied whatever a leaf's prefix, so they are no
/// reason to build the leaf anew and leave the old one behind.
#[test]
fn versions_of_keys_leave_no_nodes_behind() {
    let (memtable, mut writer) = Memtable::new(KeyOrder::Bytewise, &Account::unlimited());
    let mut random = Random(43);
    for i in 0..100_000u64 {
        writer.insert(&decimal(random.below(100_000)), trailer(i, Kind::Put), b"");
    }
    // 28 of them are the entry, 13 its share of a leaf that is two thirds full.
    let bytes = memtable.tree.bytes() / 100_000;
    assert!(bytes < 46, "{bytes} bytes an entry");
}
