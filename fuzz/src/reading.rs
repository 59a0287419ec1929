//! Everything that can be read of an open database, each in two ways.

use std::collections::BTreeMap;

use lodestore::{Db, DbCursor, Family, ReadOptions};

use crate::judge::judged;

/// Keys beyond so many are walked over, not looked up.
const GETS_MAX: usize = 64;

type Entries = Vec<(Vec<u8>, Vec<u8>)>;

/// Reads all of `db`.
///
/// # Panics
/// If an error is not allowed; if `db` is sound by its own verification and two
/// ways of reading differ.
pub fn read(db: &Db) {
    let sound = judged(db.verify()).is_some();
    for name in db.family_names() {
        if let Some(family) = db.family(&name) {
            read_family(&family, sound);
        }
    }
    if let Some(updates) = judged(db.updates_since(0)) {
        for update in updates {
            judged(update);
        }
    }
}

fn read_family(family: &Family, sound: bool) {
    let forward = judged(forward(family.cursor()));
    let backward = judged(backward(family.cursor()));
    let sought = judged(sought(family.cursor()));
    let keys: Vec<&[u8]> = forward.iter().flatten().map(|(key, _)| &key[..]).collect();
    let asked: Vec<&[u8]> = keys.into_iter().take(GETS_MAX).chain([&b"k"[..], b""]).collect();
    let gets: Vec<Option<Option<Vec<u8>>>> = asked
        .iter()
        .map(|key| judged(family.get(key)).map(|value| value.as_deref().map(<[u8]>::to_vec)))
        .collect();
    let together = family
        .multi_get(&asked)
        .into_iter()
        .map(|got| judged(got).map(|value| value.as_deref().map(<[u8]>::to_vec)));
    assert!(together.eq(gets.iter().cloned()), "get and multi_get differ");
    let prefix = asked[0].get(..4).unwrap_or_default().to_vec();
    let of_prefix = ReadOptions { prefix: Some(prefix.clone()), ..ReadOptions::default() };
    let with_prefix = judged(self::forward(family.cursor_with(of_prefix)));
    judged(family.explain(&ReadOptions::default(), asked[0]));
    judged(family.approximate_sizes(&[(b"a", b"z")]));
    let (true, Some(forward)) = (sound, &forward) else { return };
    // Only an operator that cannot merge may end one walk and not another.
    let (Some(backward), Some(sought)) = (backward, sought) else { return };
    assert_eq!(forward, &backward, "forward and backward differ");
    assert_eq!(forward, &sought, "steps and seeks differ");
    let contents: BTreeMap<&[u8], &[u8]> = forward.iter().map(|(k, v)| (&k[..], &v[..])).collect();
    assert_eq!(contents.len(), forward.len(), "a key twice");
    for (key, got) in asked.iter().zip(&gets) {
        if let Some(got) = got {
            assert_eq!(got.as_deref(), contents.get(key).copied(), "get and walk differ");
        }
    }
    if let Some(with_prefix) = with_prefix {
        let expected = forward.iter().filter(|(key, _)| key.starts_with(&prefix));
        assert!(with_prefix.iter().eq(expected), "prefix and walk differ");
    }
}

fn forward(mut cursor: DbCursor) -> lodestore::Result<Entries> {
    let mut entries = Entries::new();
    cursor.first();
    while cursor.valid() {
        entries.push((cursor.key().to_vec(), cursor.value().to_vec()));
        cursor.next();
    }
    cursor.status().map(|()| entries)
}

fn backward(mut cursor: DbCursor) -> lodestore::Result<Entries> {
    let mut entries = Entries::new();
    cursor.last();
    while cursor.valid() {
        entries.push((cursor.key().to_vec(), cursor.value().to_vec()));
        cursor.prev();
    }
    entries.reverse();
    cursor.status().map(|()| entries)
}

/// Each key is sought anew behind the one before, and a step is taken back and
/// forth there.
fn sought(mut cursor: DbCursor) -> lodestore::Result<Entries> {
    let mut entries = Entries::new();
    cursor.seek(b"");
    while cursor.valid() && entries.len() < 1 << 12 {
        entries.push((cursor.key().to_vec(), cursor.value().to_vec()));
        let behind = [cursor.key(), &[0]].concat();
        cursor.seek(&behind);
        if cursor.valid() {
            cursor.prev();
            if cursor.valid() {
                cursor.next();
            }
        }
    }
    cursor.status().map(|()| entries)
}
