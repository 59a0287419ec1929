//! What may come of a damaged database: it is refused and nothing is changed,
//! or everything that it shows is right.

use super::damage::Damage;
use super::sample::{
    BATCHES, DIRECTORY, FAMILIES, MARKER, PREFIX_BYTES, Sample, disk, options, read_files,
};
use lodestore::{Db, DbCursor, Error, Family, ReadOptions};
use std::collections::{BTreeMap, BTreeSet};
use testkit::files::Files;

/// How cases ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// It was not opened.
    pub refused: u64,
    /// Some reads gave an error, the others what is right.
    pub found_on_read: u64,
    /// All reads gave what is right; reading every byte finds the damage.
    pub found_by_verify: u64,
    /// The newest batches look as if they had never become durable.
    pub torn_tail: u64,
    /// Nothing is to be noticed.
    pub harmless: u64,
}

/// Judges one case; says how it ended.
///
/// # Panics
/// If something wrong was shown.
pub fn judge(sample: &Sample, damage: &Damage, tally: &mut Tally) {
    let files = damage.done_to(&sample.files);
    let fs = disk(&files);
    let db = match Db::open(DIRECTORY, options(&fs)) {
        Ok(db) => db,
        Err(error) => {
            check_error(damage, &error);
            let left = read_files(&fs);
            assert!(
                left == files,
                "{}: a refused open changed {:?}",
                damage.what,
                changed(&files, &left)
            );
            tally.refused += 1;
            return;
        }
    };
    let batches = batches_in(&db);
    if let Some(batches) = batches {
        let (what, least) = (&damage.what, damage.batches_min);
        assert!(batches >= least, "{what}: {batches} batches, not {least}");
    }
    let state = &sample.states[batches.unwrap_or(BATCHES) as usize];
    let mut found = u64::from(batches.is_none());
    for name in FAMILIES {
        let family = db.family(name).unwrap_or_else(|| panic!("{}: no {name}", damage.what));
        let reading = Reading { damage, family: &family, expected: &state[name] };
        found += reading.points(&sample.keys[name]) + reading.walks();
    }
    let verified = db.verify();
    if let Err(error) = &verified {
        check_error(damage, error);
    }
    match (found > 0, verified.is_err(), batches) {
        (true, ..) => tally.found_on_read += 1,
        (false, true, _) => tally.found_by_verify += 1,
        (false, false, Some(BATCHES)) => tally.harmless += 1,
        (false, false, _) => tally.torn_tail += 1,
    }
}

/// How many batches of the log are there; `None` if that cannot be read.
fn batches_in(db: &Db) -> Option<u64> {
    match db.get(MARKER) {
        Ok(None) => Some(0),
        Ok(Some(bytes)) => Some(u64::from_le_bytes(bytes[..].try_into().expect("eight bytes"))),
        Err(_) => None,
    }
}

/// Names of the files that differ.
pub fn changed(before: &Files, after: &Files) -> Vec<String> {
    let names: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    names.into_iter().filter(|name| before.get(*name) != after.get(*name)).cloned().collect()
}

/// An error must name a file that was touched.
#[track_caller]
pub fn check_error(damage: &Damage, error: &Error) {
    let named = match error {
        Error::Corruption { path, .. } | Error::Incompatible { path, .. } => {
            path.to_str().expect("names are text").to_string()
        }
        Error::Missing { what } => what.clone(),
        other => panic!("{}: {other}", damage.what),
    };
    let is_named = damage.blamed.iter().any(|name| named.ends_with(&name[..]));
    assert!(is_named, "{}: the error names another file: {error}", damage.what);
}

/// Reading one family.
struct Reading<'a> {
    damage: &'a Damage,
    family: &'a Family,
    expected: &'a BTreeMap<Vec<u8>, Vec<u8>>,
}

impl Reading<'_> {
    /// Looks up every key, one by one and many at once. Gives how many could
    /// not be read.
    fn points(&self, keys: &BTreeSet<Vec<u8>>) -> u64 {
        let keys: Vec<&Vec<u8>> = keys.iter().collect();
        let together = self.family.multi_get(&keys);
        let mut unreadable = 0;
        for (key, of_many) in keys.into_iter().zip(together) {
            for found in [self.family.get(key), of_many] {
                match found {
                    Ok(value) => self.compare(key, value.as_deref()),
                    Err(error) => {
                        check_error(self.damage, &error);
                        unreadable += 1;
                    }
                }
            }
        }
        unreadable
    }

    #[track_caller]
    fn compare(&self, key: &[u8], found: Option<&[u8]>) {
        let expected = self.expected.get(key).map(|value| &value[..]);
        let (what, name, key) = (&self.damage.what, self.family.name(), key.escape_ascii());
        assert!(found == expected, "{what}: {name} {key}: {found:?}, not {expected:?}");
    }

    /// Walks over everything both ways, from the middle, and by prefix. Gives
    /// how many walks ended early, each with an error.
    fn walks(&self) -> u64 {
        let all: Vec<(&Vec<u8>, &Vec<u8>)> = self.expected.iter().collect();
        let middle = all.len() / 2;
        let mut cursor = self.family.cursor();
        cursor.first();
        let mut ended_early = self.forward(&mut cursor, &all);
        cursor.last();
        ended_early += self.backward(&mut cursor, &all);
        cursor.seek(all[middle].0);
        ended_early += self.forward(&mut cursor, &all[middle..]);
        cursor.seek_for_prev(all[middle].0);
        ended_early += self.backward(&mut cursor, &all[..=middle]);
        let prefixes: BTreeSet<&[u8]> =
            all.iter().filter_map(|(key, _)| key.get(..PREFIX_BYTES)).collect();
        for prefix in prefixes {
            let options = ReadOptions { prefix: Some(prefix.to_vec()), ..ReadOptions::default() };
            let with: Vec<_> = all.iter().filter(|(k, _)| k.starts_with(prefix)).copied().collect();
            let mut cursor = self.family.cursor_with(options);
            cursor.first();
            ended_early += self.forward(&mut cursor, &with);
        }
        ended_early
    }

    fn forward(&self, cursor: &mut DbCursor, expected: &[(&Vec<u8>, &Vec<u8>)]) -> u64 {
        self.walk(cursor, expected.iter().copied(), DbCursor::next)
    }

    fn backward(&self, cursor: &mut DbCursor, expected: &[(&Vec<u8>, &Vec<u8>)]) -> u64 {
        self.walk(cursor, expected.iter().rev().copied(), DbCursor::prev)
    }

    fn walk<'e>(
        &self,
        cursor: &mut DbCursor,
        mut expected: impl Iterator<Item = (&'e Vec<u8>, &'e Vec<u8>)>,
        step: impl Fn(&mut DbCursor),
    ) -> u64 {
        let (what, name) = (&self.damage.what, self.family.name());
        while cursor.valid() {
            let next = expected.next();
            let is_next =
                next.is_some_and(|(k, v)| (&k[..], &v[..]) == (cursor.key(), cursor.value()));
            let met = cursor.key().escape_ascii();
            assert!(is_next, "{what}: {name}: a cursor met {met} where {next:?} should be");
            step(cursor);
        }
        match cursor.status() {
            Ok(()) => {
                let missing = expected.next();
                assert!(missing.is_none(), "{what}: {name}: a walk ended before {missing:?}");
                0
            }
            Err(error) => {
                check_error(self.damage, &error);
                1
            }
        }
    }
}
